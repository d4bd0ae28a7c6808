r"""E³: explicit explore or exploit (Kearns and Singh 2002), which E⁴ adds escape to.

A state is known once every action has been taken there ``known_after`` times.  In an
unknown state the least taken action is taken (balanced wandering).  In a known one the
agent either exploits, with the policy that is best in the known states, unknown ones
earning nothing, or explores, with the one that leaves the known states soonest.  It
explores as long as that may still pay: while :math:`H(s) > ε (1-γ) / r_{\max}`, H the
greatest expected :math:`γ^τ` with τ the time until an unknown state is reached.

This is the discounted form of the paper's choice between two policies of finite
horizon, with a quota in place of the worst-case number of visits.  Costs are ignored:
it shows what exploration costs if nobody minds.

*What it is told.*  Pairs whose row and reward are known exactly need no visits.  The
likeliest model starts from the action models and what was recorded.
"""

from __future__ import annotations

import numpy as np

from escapade.baselines.base import EXPLOIT, EXPLORE, WANDER, Move
from escapade.baselines.learner import Learner
from escapade.errors import refusal
from escapade.kernels.exploration import reach_values
from escapade.knowledge.knowledge import Knowledge
from escapade.learning.known import known_by_quota
from escapade.model.arguments import read_count, read_number
from escapade.model.induced import known_state_cmdp
from escapade.planning.dynamic_programming import policy_iteration
from escapade.typing import BoolArray, FloatArray, IntArray

__all__ = ["E3"]

_GROWTH = 1.5
"""By how much a known pair's visits must have grown before it calls for a plan."""


class E3(Learner):
    """Explicit explore or exploit, without a budget.

    Parameters
    ----------
    knowledge, seed
        As for every baseline.
    known_after
        Visits of each action after which a state is known.
    epsilon
        Exploring may not pay more than this.

    Examples
    --------
    >>> import escapade as ep
    >>> from escapade.baselines import E3
    >>> world = ep.environments.three_state_loop()
    >>> agent = E3(world.knowledge, known_after=5)
    >>> trace = ep.simulate(agent, world.env, steps=200)
    >>> float(trace.rewards[-3:].sum()), float(trace.costs[-3:].sum())
    (6.0, 3.0)
    """

    def __init__(
        self,
        knowledge: Knowledge,
        *,
        seed: int | None = 0,
        known_after: int = 5,
        epsilon: float = 1.0,
    ) -> None:
        super().__init__(knowledge, seed=seed)
        self.known_after = read_count("known_after", known_after, least=1)
        self.epsilon = read_number("epsilon", epsilon)
        if not self.epsilon > 0.0:
            raise refusal("epsilon", "a number above 0", self.epsilon)
        self._exact = knowledge.exact_pairs & (
            knowledge.reward_lower == knowledge.reward_upper
        )
        self._known: BoolArray | None = None
        self._hope: FloatArray = np.zeros(knowledge.n_states)
        self._leave: IntArray = np.zeros(knowledge.n_states, dtype=np.int64)
        self._earn: IntArray = np.zeros(knowledge.n_states, dtype=np.int64)

    def _choose(self, state: int) -> Move:
        if self._known is None:
            self._plan()
        known, layout = self._known, self.knowledge.pairs
        assert known is not None
        if not known[state]:
            first, last = layout.state_ptr[state : state + 2]
            visits = self.belief.evidence.pair_visits[first:last]
            return int(first + np.argmin(visits)), WANDER, "the least taken action here"
        least = self.epsilon * (1.0 - self.knowledge.discount)
        if self._hope[state] * self.knowledge.reward_max > least:
            return int(self._leave[state]), EXPLORE, "unknown states may pay more"
        return int(self._earn[state]), EXPLOIT, "the best in the known states"

    def _learn(
        self, pair: int, reward: float, cost: FloatArray | None, next_state: int
    ) -> None:
        super()._learn(pair, reward, cost, next_state)
        state = self.knowledge.pairs.pair_state[pair]
        visits = self.belief.evidence.pair_visits
        if self._known is None:
            return
        if self._known[state]:
            if visits[pair] >= _GROWTH * max(self._at_plan[pair], 1):
                self._known = None
            return
        first, last = self.knowledge.pairs.state_ptr[state : state + 2]
        wanted = (visits[first:last] < self.known_after) & ~self._exact[first:last]
        if not wanted.any():
            self._known = None

    def _plan(self) -> None:
        self._refresh()
        knowledge, belief = self.knowledge, self.belief
        layout = knowledge.pairs
        known = knowledge.known_states | known_by_quota(
            belief.evidence.pair_visits,
            layout.state_ptr,
            self.known_after,
            exact=self._exact,
        )
        reach_values(
            layout.state_ptr,
            knowledge.row_ptr,
            knowledge.successor,
            belief.nominal,
            np.ones(knowledge.n_pairs, dtype=np.bool_),
            np.zeros(knowledge.n_pairs),
            ~known,
            knowledge.discount,
            1e-7,
            20 * knowledge.n_states + 100,
            self._hope,
            np.empty(knowledge.n_pairs),
            self._leave,
        )
        self._earn = layout.state_ptr[:-1].copy()
        if known.any():
            model = belief.likeliest()
            inside = known_state_cmdp(model, known, paper=True)
            best = policy_iteration(inside.cmdp)
            states = inside.inside
            offset = best.pairs[: states.size] - inside.cmdp.state_ptr[: states.size]
            self._earn[states] = layout.state_ptr[states] + offset
        self._known = known
