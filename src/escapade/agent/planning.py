"""From what is believed to what to do: one plan, good until enough has changed.

A plan says, for every state, which pairs want visits, where to go for them, and what to
do where nothing more is to be learned.  The ledger alone decides whether any of it may
be done; so a plan can be poor, or old, but never unsafe.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from escapade.agent.earning import Earner, Earning
from escapade.agent.exploration import Frontier, find_frontier
from escapade.agent.paper.policies import plan_escape, plan_inside
from escapade.agent.patience import Patience
from escapade.agent.planners import read_planners
from escapade.agent.refunds import without_refund
from escapade.agent.safety import Safety
from escapade.agent.settings import E4Settings
from escapade.kernels.exploration import spread
from escapade.kernels.ledger import Ledger, Plan
from escapade.kernels.paper import NO_RULES, Rules
from escapade.knowledge.belief import Belief
from escapade.model.layout import Pairs
from escapade.preflight.outlook import kept_back
from escapade.typing import BoolArray, FloatArray, IntArray

__all__ = ["Planned", "Planning"]

_HOME_TOLERANCE = 1e-9
_STATES_A_PLAN = 200
"""As many states may do with a plan that is one state behind."""

_PAIRS_A_PLAN = 50
"""As many pairs may do with a plan that is one pair's growth behind."""


_TURN_BACK = 0.5
"""Share of ``turn_home`` at which to turn back if nothing wanted was had on the way."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Planned:
    """What a planning round ends with.

    ``ledger`` and ``plan`` are what the kernels read; ``playable`` marks the pairs that
    the budget can ever afford, ``out_of_reach`` the states with pairs that lack visits
    and are not playable, or not led to by those that are, or given up for a while;
    ``earning`` is the plan where nothing is left to explore, if there is such a state;
    ``no_refund`` is where the ledger is told of no refund, ``[K, pairs]``.
    """

    ledger: Ledger
    plan: Plan
    frontier: Frontier
    playable: BoolArray
    out_of_reach: BoolArray
    earning: Earning | None
    no_refund: BoolArray
    rules: Rules = NO_RULES


def reached_by(belief: Belief, playable: BoolArray) -> BoolArray:
    """Return the states that playable pairs may lead to from the start, ``[S]``."""
    knowledge = belief.knowledge
    reached = knowledge.start > 0.0
    spread(
        knowledge.pairs.state_ptr,
        knowledge.row_ptr,
        knowledge.successor,
        belief.nominal,
        playable,
        reached,
    )
    return reached


def known_as_far(
    safety: Safety, playable: BoolArray, lacks: BoolArray, layout: Pairs
) -> BoolArray:
    """Return the states where no pair that can ever be afforded lacks visits, ``[S]``.

    What the fallback does is afforded always.  A state where nothing can be afforded
    is not known.
    """
    asked = playable.copy()
    asked[safety.pairs[safety.promisable]] = True
    first = layout.state_ptr[:-1]
    some: BoolArray = np.logical_or.reduceat(asked, first)
    lacking: BoolArray = np.logical_or.reduceat(asked & lacks, first)
    return some & ~lacking


def home_and_room(safety: Safety) -> tuple[FloatArray, FloatArray]:
    """Return the least worst-case cost of any state, and what the cap leaves above."""
    home = np.where(safety.promisable, safety.w, np.inf).min(axis=1)
    return home, np.maximum(safety.cap - home, 0.0)


def at_home(safety: Safety) -> BoolArray:
    """Return the states where the fallback costs least, ``[S]``."""
    home, room = home_and_room(safety)
    near = home + _HOME_TOLERANCE * (1.0 + room)
    return safety.promisable & (safety.w <= near[:, np.newaxis]).all(axis=0)


class Planning:
    """Plans again and again, each time from where the last plan ended.

    ``refine`` holds visits ``[pairs]`` that are wanted beyond the quota, if any, and
    ``refines`` says whether there may be some; ``certified`` whether the agent has its
    certificate, and ``looks_early`` whether it asks for one while it still explores.
    """

    def __init__(self, settings: E4Settings) -> None:
        self._settings = settings
        self._planners = read_planners(settings.planner)
        self._earner = Earner(
            self._planners["exploit"], sweeps=settings.planning_sweeps
        )
        self._patience = Patience()
        self._way_out: FloatArray | None = None
        self._escaping_from = 0
        self.refine: IntArray | None = None
        self.certified = False
        self.refines = settings.refine
        self.looks_early = False

    def plan(self, belief: Belief, safety: Safety, state: int | None = None) -> Planned:
        """Return the plan for what is believed now, from ``state`` on."""
        knowledge, settings = belief.knowledge, self._settings
        layout = knowledge.pairs
        visits = belief.evidence.pair_visits
        cap = safety.cap
        home_cost, room = home_and_room(safety)
        reserve = kept_back(settings.reserve, knowledge.cost_max, room)
        affordable = (safety.q + reserve[:, np.newaxis] <= cap[:, np.newaxis]).all(
            axis=0
        )
        playable = safety.allowed & affordable
        quota = settings.known_after
        settled = belief.settled
        lacks = ~settled & (visits < quota) & ~knowledge.known_states[layout.pair_state]
        known = knowledge.known_states | known_as_far(safety, playable, lacks, layout)
        goal = np.where(lacks & playable, quota, 0)
        if self.refine is not None:
            goal = np.maximum(goal, np.where(playable, self.refine, 0))
        missed = lacks & ~(playable & reached_by(belief, playable)[layout.pair_state])
        if self._patience.rests(knowledge, visits, visits < goal):
            missed = lacks
            goal = np.zeros_like(goal)
        frontier = find_frontier(
            belief,
            safety,
            playable,
            visits < goal,
            sweeps=settings.planning_sweeps,
        )
        exploring = frontier.value > 0.0
        turn_back = _TURN_BACK * settings.turn_home / self._patience.tries(knowledge)
        onward = self._onward(belief, safety, frontier, state)
        no_refund = without_refund(belief, safety)
        ledger = self.ledger(belief, safety, no_refund)
        earning = None
        if (safety.promisable & ~exploring).any():
            earning = self._earner.plan(
                belief, safety, ledger, playable=playable, reserve=reserve
            )
        return Planned(
            ledger=ledger,
            plan=Plan(
                known=known,
                home=at_home(safety),
                goal=goal,
                score=frontier.score,
                exploring=exploring,
                **_nodes(belief, frontier, earning, onward),
                reserve=reserve,
                turn_home=home_cost + settings.turn_home * room,
                turn_back=home_cost + turn_back * room,
                recharge=home_cost + settings.recharge * room,
                by_level=earning is not None and earning.by_level,
                watch=self._watch(visits, self._patience.look_in(knowledge, visits)),
                urgency=np.array(
                    [
                        1.0 / max(1.0, knowledge.n_states / _STATES_A_PLAN),
                        1.0 / max(1.0, knowledge.n_pairs / _PAIRS_A_PLAN),
                    ]
                ),
            ),
            frontier=frontier,
            playable=playable,
            out_of_reach=np.logical_or.reduceat(missed, layout.state_ptr[:-1]),
            earning=earning,
            no_refund=no_refund,
            rules=self._escape_rules(belief, safety, known),
        )

    def _onward(
        self, belief: Belief, safety: Safety, frontier: Frontier, state: int | None
    ) -> FloatArray | None:
        """Return the way to the frontier by the planner that was named, ``[pairs]``."""
        planner = self._planners["explore"]
        if planner == "auto" or not frontier.wanted.any() or frontier.wanted.all():
            return None
        found = plan_inside(
            "explore",
            planner,
            belief,
            safety,
            known=~frontier.wanted,
            wanted=frontier.wanted,
            state=state,
            plan_budget=safety.cap,
        )
        return found.weights if found.feasible else None

    def _escape_rules(self, belief: Belief, safety: Safety, known: BoolArray) -> Rules:
        """Return the escape by the planner that was named; by default the fallback."""
        planner = self._planners["escape"]
        if planner == "auto" or known.all() or not known.any():
            return NO_RULES
        if self._way_out is None or known.sum() > self._escaping_from:
            self._escaping_from = int(known.sum())
            self._way_out = plan_escape(
                planner, belief, safety, known=known, escape_budget=safety.cap
            )
        if self._way_out is None:
            return NO_RULES
        return NO_RULES._replace(
            escape=by_state(belief.knowledge.pairs.state_ptr, self._way_out),
            nothing=np.zeros(safety.cap.size),
            plans_escape=True,
        )

    @staticmethod
    def ledger(
        belief: Belief, safety: Safety, no_refund: BoolArray | None = None
    ) -> Ledger:
        """Return what the kernels read of the present fallback.

        Where there shall be ``no_refund``, no promise is large enough for one.
        """
        ahead, reach = safety.ahead, safety.reach
        if no_refund is not None and no_refund.any():
            ahead = np.where(no_refund, np.inf, ahead)
            reach = np.where(no_refund, np.inf, reach)
        return Ledger(
            channels=tuple(range(safety.cap.size)),
            state_ptr=belief.knowledge.pairs.state_ptr,
            w=safety.w.copy(),
            q=safety.q,
            ahead=ahead,
            reach=reach,
            allowed=safety.allowed,
            fallback=safety.pairs.copy(),
            cap=safety.cap,
            cost_max=belief.knowledge.cost_max,
            gamma=belief.knowledge.discount,
        )

    def state(self) -> dict[str, np.ndarray]:
        """Return what the next plan will begin with, as arrays by name."""
        kept = self._earner.state() | self._patience.state()
        if self.refine is not None:
            kept["refine"] = np.array(self.refine)
        if self._way_out is not None:
            kept["escape"] = np.array(self._way_out)
            kept["escaping_from"] = np.array(self._escaping_from)
        return kept

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Go back to what :meth:`state` returned."""
        self._earner.restore(arrays)
        self._patience.restore(arrays)
        self.refine = arrays.get("refine")
        self._way_out = arrays.get("escape")
        if self._way_out is not None:
            self._escaping_from = int(arrays["escaping_from"])

    @staticmethod
    def nothing_but_fallback(planned: Planned) -> Planned:
        """Return a plan without aims, so that the fallback is all that is left."""
        plan = planned.plan
        return replace(
            planned,
            rules=NO_RULES,
            plan=plan._replace(
                goal=np.zeros_like(plan.goal),
                node_ptr=np.zeros_like(plan.node_ptr),
                exploring=np.zeros_like(plan.exploring),
                by_level=False,
            ),
        )

    def only_earning(self, belief: Belief, safety: Safety, planned: Planned) -> Planned:
        """Return a plan that explores nothing, and earns wherever it can."""
        earning = self.earning(belief, safety, planned)
        frontier = replace(
            planned.frontier,
            pairs=np.full_like(planned.frontier.pairs, -1),
            wanted=np.zeros_like(planned.frontier.wanted),
            value=np.zeros_like(planned.frontier.value),
        )
        plan = planned.plan
        return replace(
            planned,
            frontier=frontier,
            earning=earning,
            plan=plan._replace(
                goal=np.zeros_like(plan.goal),
                exploring=np.zeros_like(plan.exploring),
                by_level=earning.by_level,
                **_nodes(belief, frontier, earning, None),
            ),
        )

    def _watch(self, visits: IntArray, most: int | None) -> IntArray:
        """Return the visits of each pair at which evidence has grown enough.

        ``most`` more of them are always enough.
        """
        settings = self._settings
        grown = np.ceil(settings.replan_growth * visits).astype(np.int64)
        watch: IntArray = np.maximum(grown, visits + settings.known_after)
        for further in (settings.drift_window, most):
            if further is not None:
                watch = np.minimum(watch, visits + further)
        return watch

    def earning(self, belief: Belief, safety: Safety, planned: Planned) -> Earning:
        """Return the plan for earning, though the present plan may only explore."""
        if planned.earning is not None:
            return planned.earning
        return self._earner.plan(
            belief,
            safety,
            planned.ledger,
            playable=planned.playable,
            reserve=planned.plan.reserve,
        )


def by_state(state_ptr: IntArray, weights: FloatArray) -> FloatArray:
    """Return weights ``[pairs]`` as a table: a row a state, a column a pair of it."""
    sizes = np.diff(state_ptr)
    table = np.zeros((sizes.size, int(sizes.max())))
    owner = np.repeat(np.arange(sizes.size), sizes)
    table[owner, np.arange(weights.size) - state_ptr[owner]] = weights
    return table


def _nodes(
    belief: Belief,
    frontier: Frontier,
    earning: Earning | None,
    onward: FloatArray | None,
) -> dict[str, Any]:
    """Return the policy as nodes: one where to explore, one a level where to earn.

    ``onward`` is ``[pairs]``, the way to the frontier if it is not the frontier's own.
    """
    layout = belief.knowledge.pairs
    n_states = layout.n_states
    exploring = frontier.pairs >= 0
    levels = np.array([-np.inf])
    share = np.zeros(belief.knowledge.n_costs)
    share[0] = 1.0
    grid: FloatArray = np.zeros((share.size, 0))
    if earning is not None and earning.share is not None:
        share = earning.share
    if earning is not None and earning.levels is not None:
        levels = earning.levels
    if earning is not None and earning.grid is not None and earning.part is not None:
        grid = earning.grid
        levels = np.full(earning.part.shape[1], -np.inf)
    done = ~exploring & ~frontier.wanted
    count = np.where(exploring, 1, 0 if earning is None else levels.size * done)
    node_ptr = np.zeros(n_states + 1, dtype=np.int64)
    np.cumsum(count, out=node_ptr[1:])
    level = np.full(int(node_ptr[-1]), -np.inf)
    weight = np.zeros((int(node_ptr[-1]), int(np.diff(layout.state_ptr).max())))
    states = np.flatnonzero(exploring)
    first = layout.state_ptr[:-1]
    if onward is None:
        weight[node_ptr[states], frontier.pairs[states] - first[states]] = 1.0
    else:
        weight[node_ptr[states]] = by_state(layout.state_ptr, onward)[states]
    states = np.flatnonzero(done)
    if earning is not None and states.size:
        nodes = node_ptr[states][:, np.newaxis] + np.arange(levels.size)
        level[nodes] = levels
        if earning.pairs is not None:
            local = earning.pairs[states] - first[states][:, np.newaxis]
            weight[nodes, local] = 1.0
        elif earning.drawn is not None and earning.part is not None:
            local = earning.drawn[states] - first[states][:, np.newaxis, np.newaxis]
            part = earning.part[states]
            weight[nodes, local[..., 0]] = part
            weight[nodes, local[..., 1]] += 1.0 - part
        else:
            chosen = np.flatnonzero(done[layout.pair_state])
            owner = layout.pair_state[chosen]
            weight[node_ptr[owner], chosen - first[owner]] = earning.weights[chosen]
    return {
        "node_ptr": node_ptr,
        "level": level,
        "share": share,
        "grid": grid,
        "weight": weight,
    }
