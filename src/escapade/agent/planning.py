"""From what is believed to what to do: one plan, good until enough has changed.

A plan says, for every state, which pairs want visits, where to go for them, and what to
do where nothing more is to be learned.  The ledger alone decides whether any of it may
be done; so a plan can be poor, or old, but never unsafe.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from escapade.agent.belief import Belief
from escapade.agent.exploration import Frontier, find_frontier
from escapade.agent.safety import Safety
from escapade.agent.settings import E4Settings
from escapade.kernels.ledger import Ledger, Plan
from escapade.model.cmdp import CMDP
from escapade.planning.dynamic_programming import policy_iteration
from escapade.typing import BoolArray, FloatArray, IntArray

__all__ = ["Planned", "Planning"]

_HOME_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Planned:
    """What a planning round ends with.

    ``ledger`` and ``plan`` are what the kernels read; ``playable`` marks the pairs that
    the budget can ever afford, ``unreachable`` the states that want visits and cannot
    be reached safely, ``watch`` the visits of each pair at which to plan again.
    """

    ledger: Ledger
    plan: Plan
    frontier: Frontier
    playable: BoolArray
    watch: IntArray


class Planning:
    """Plans again and again, each time from where the last plan ended."""

    def __init__(self, settings: E4Settings) -> None:
        self._settings = settings
        self._pairs: IntArray | None = None
        self._value: FloatArray | None = None

    def plan(self, belief: Belief, safety: Safety) -> Planned:
        """Return the plan for what is believed now."""
        knowledge, settings = belief.knowledge, self._settings
        layout = knowledge.pairs
        visits = belief.evidence.pair_visits
        cap = safety.cap
        home_cost = np.where(safety.promisable, safety.w, np.inf).min(axis=1)
        room = np.maximum(cap - home_cost, 0.0)
        reserve = np.minimum(settings.reserve * knowledge.cost_max, 0.25 * room)
        affordable = (safety.q + reserve[:, np.newaxis] <= cap[:, np.newaxis]).all(
            axis=0
        )
        playable = safety.allowed & affordable
        quota = settings.known_after
        seen = np.minimum.reduceat(
            np.where(knowledge.exact_pairs, quota, visits), layout.state_ptr[:-1]
        )
        known = knowledge.known_states | (seen >= quota)
        goal = np.where(known[layout.pair_state] | ~playable, 0, quota)
        frontier = find_frontier(belief, safety, playable, visits < goal)
        exploring = frontier.value > 0.0
        model = belief.likeliest()
        earning = self._exploit(model, belief, playable)
        chosen = np.where(exploring & (frontier.pairs >= 0), frontier.pairs, earning)
        weight = np.zeros((knowledge.n_states, int(np.diff(layout.state_ptr).max())))
        weight[np.arange(knowledge.n_states), chosen - layout.state_ptr[:-1]] = 1.0
        home = safety.promisable & (
            safety.w
            <= home_cost[:, np.newaxis] + _HOME_TOLERANCE * (1.0 + room[:, None])
        ).all(axis=0)
        return Planned(
            ledger=Ledger(
                state_ptr=layout.state_ptr,
                w=safety.w,
                q=safety.q,
                ahead=safety.ahead,
                reach=safety.reach,
                allowed=safety.allowed,
                fallback=safety.pairs,
                cap=cap,
                cost_max=knowledge.cost_max,
                gamma=knowledge.discount,
            ),
            plan=Plan(
                known=known,
                home=home,
                goal=goal,
                score=frontier.score,
                exploring=exploring,
                node_ptr=np.arange(knowledge.n_states + 1),
                level=np.full(knowledge.n_states, -np.inf),
                weight=weight,
                reserve=reserve,
                turn_home=home_cost + settings.turn_home * room,
                recharge=home_cost + settings.recharge * room,
            ),
            frontier=frontier,
            playable=playable,
            watch=self._watch(visits, goal),
        )

    @staticmethod
    def nothing_but_fallback(planned: Planned) -> Planned:
        """Return a plan without aims, so that the fallback is all that is left."""
        plan = planned.plan
        return replace(
            planned,
            plan=plan._replace(
                goal=np.zeros_like(plan.goal), node_ptr=np.zeros_like(plan.node_ptr)
            ),
            watch=np.full_like(planned.watch, np.iinfo(np.int64).max),
        )

    def _watch(self, visits: IntArray, goal: IntArray) -> IntArray:
        """Return the visits of each pair at which evidence has changed enough."""
        grown = np.ceil(self._settings.replan_growth * visits).astype(np.int64)
        further = np.maximum(grown, visits + self._settings.known_after)
        return np.where(visits < goal, goal, further)

    def _exploit(self, model: CMDP, belief: Belief, playable: BoolArray) -> IntArray:
        """Return the pair of the best playable policy in each state."""
        worst = -(belief.knowledge.reward_max + 1.0) / (1.0 - model.discount)
        reward = np.where(playable, model.reward, worst)
        best = policy_iteration(model, reward, pairs=self._pairs, value=self._value)
        self._pairs, self._value = best.pairs, best.value
        return best.pairs
