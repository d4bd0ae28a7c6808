"""What baselines that keep a model share: the belief of the agent, and episodes.

*Same information*: the model rests on the very belief that :class:`escapade.E4` keeps,
born of the same knowledge: possible successors, exact rows, logs, action models (ruled
out by the same evidence), known means and bounds.  What differs is what is done with
it.
"""

from __future__ import annotations

import numpy as np

from escapade.baselines.base import Baseline
from escapade.errors import AssumptionError
from escapade.knowledge.belief import Belief
from escapade.knowledge.knowledge import Knowledge
from escapade.model.cmdp import CMDP
from escapade.typing import FloatArray, IntArray

__all__ = ["Learner"]


class Learner(Baseline):
    """A baseline that counts what it sees and plans from a belief.

    Parameters
    ----------
    knowledge, seed
        As for every baseline.
    delta
        Probability with which the belief may ever exclude the truth.
    """

    def __init__(
        self, knowledge: Knowledge, *, seed: int | None = 0, delta: float = 0.05
    ) -> None:
        super().__init__(knowledge, seed=seed)
        self.delta = delta
        self.belief = Belief(knowledge, delta=delta)
        self._changed = np.zeros(knowledge.n_pairs, dtype=np.bool_)
        self._at_plan: IntArray = np.zeros(knowledge.n_pairs, dtype=np.int64)
        self._since_plan = 0

    @property
    def rates(self) -> FloatArray:
        """``(K,)``; the cost a step that the discounted budget allows for ever."""
        return np.asarray((1.0 - self.knowledge.discount) * self.knowledge.budget)

    def _learn(
        self, pair: int, reward: float, cost: FloatArray | None, next_state: int
    ) -> None:
        if not self.belief.evidence.record(pair, next_state, reward, cost):
            raise AssumptionError(
                f"next_state: expected a possible successor of "
                f"{self.knowledge.pairs.name(pair)}, found state {next_state}"
            )
        self._changed[pair] = True
        self._since_plan += 1

    def _doubled(self, pair: int) -> bool:
        """Tell whether a pair was seen twice as often as when the plan was made."""
        return bool(
            self.belief.evidence.pair_visits[pair] >= 2 * max(self._at_plan[pair], 1)
        )

    def _refresh(self) -> None:
        """Bring the belief up to date, and begin another episode."""
        self.belief.update(np.flatnonzero(self._changed))
        self._changed[:] = False
        self._at_plan = self.belief.evidence.pair_visits.copy()
        self._since_plan = 0
        self.plans += 1

    def _model(
        self, probability: FloatArray, reward: FloatArray, cost: FloatArray
    ) -> CMDP:
        """Return a model over the entries of the knowledge as a problem."""
        told = self.knowledge
        return CMDP.from_pairs(
            state_ptr=told.pairs.state_ptr,
            pair_action=told.pairs.pair_action,
            row_ptr=told.row_ptr,
            successor=told.successor,
            probability=probability,
            reward=reward,
            cost=cost,
            n_actions=told.n_actions,
            discount=told.discount,
            budget=told.budget,
            start=told.start,
            reward_max=told.reward_max,
            cost_max=told.cost_max,
        )

    def _here(self, state: int) -> FloatArray:
        start = np.zeros(self.knowledge.n_states)
        start[state] = 1.0
        return start
