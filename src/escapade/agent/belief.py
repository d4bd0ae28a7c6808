"""What the agent holds possible: knowledge, narrowed by what it has seen.

Two descriptions of every row are kept side by side, and the truth lies in both:

- what was known at birth: an uncertainty set that holds surely;
- what was seen: an interval around every probability, valid at all times at once.

The most that ``P · v`` can be is bounded by the lesser of the two answers.  The same
goes for costs.  Both only narrow, and only where something was seen, so
:meth:`Belief.update` looks at the pairs that changed and at no others.
"""

from __future__ import annotations

import numpy as np

from escapade.errors import AssumptionError, refusal
from escapade.knowledge.knowledge import Knowledge
from escapade.learning.confidence import Confidence
from escapade.learning.evidence import Evidence
from escapade.model.cmdp import CMDP
from escapade.typing import BoolArray, FloatArray, IntArray
from escapade.uncertainty.base import UncertaintySet
from escapade.uncertainty.interval import Interval
from escapade.uncertainty.rows import Rows, row_sums

__all__ = ["Belief"]

_PRIOR_WEIGHT = 1.0
"""Visits that the nominal model at birth is worth beside those that were made."""


class Belief:
    """Sets of kernels, rewards and costs that are still possible.

    Parameters
    ----------
    knowledge
        What is known at birth, its log included.
    delta
        δ0: the probability that the truth ever leaves what the agent holds possible.
    """

    def __init__(self, knowledge: Knowledge, *, delta: float) -> None:
        self.knowledge = knowledge
        self.evidence = Evidence(
            knowledge.row_ptr, knowledge.successor, knowledge.n_costs
        )
        self.confidence = Confidence(
            self.evidence,
            delta=delta,
            lower=knowledge.lower,
            upper=knowledge.upper,
            reward_lower=knowledge.reward_lower,
            reward_upper=knowledge.reward_upper,
            cost_lower=knowledge.cost_lower,
            cost_upper=knowledge.cost_upper,
            reward_max=knowledge.reward_max,
            cost_max=knowledge.cost_max,
            reward_exact=knowledge.exact_rewards,
            cost_exact=knowledge.exact_costs,
        )
        self._prior = self._nominal_at_birth()
        self._read_log()
        self.update(np.arange(knowledge.n_pairs))

    # -- evidence ------------------------------------------------------------------

    def _read_log(self) -> None:
        log = self.knowledge.log
        if log is None:
            return
        knowledge = self.knowledge
        number = np.full((knowledge.n_states, knowledge.n_actions), -1, dtype=np.int64)
        number[knowledge.pairs.pair_state, knowledge.pairs.pair_action] = np.arange(
            knowledge.n_pairs
        )
        pairs = number[log.states, log.actions]
        if (pairs < 0).any():
            row = int(np.argmin(pairs))
            raise refusal(
                "log",
                f"actions that are available in state {log.states[row]}",
                f"action {log.actions[row]}",
                f"row {row}",
            )
        row = self.evidence.record_all(pairs, log.next_states, log.rewards, log.costs)
        if row >= 0:
            raise refusal(
                "log",
                f"successors that are possible after state {log.states[row]}, action "
                f"{log.actions[row]}",
                f"state {log.next_states[row]}",
                f"row {row}",
            )

    def update(self, pairs: IntArray) -> None:
        """Narrow everything to what has been seen at these pairs.

        Raises
        ------
        AssumptionError
            If what was seen contradicts what was known beforehand.
        """
        self.confidence.refresh(pairs)
        self._sets = None
        self._nominal = None

    # -- sets ----------------------------------------------------------------------

    @property
    def failure_probability(self) -> float:
        """Probability that the truth is ever outside; 0 if nothing is estimated."""
        return 0.0 if self.confidence.holds_surely else self.confidence.delta

    @property
    def reachable(self) -> BoolArray:
        """``[entries]``; whether some kernel that is possible goes there."""
        possible: BoolArray = self.confidence.upper > 0.0
        if self.knowledge.models is not None:
            possible = possible & self.knowledge.models.reachable
        return possible

    @property
    def intervals(self) -> Interval:
        """The intervals around what was seen, as an uncertainty set."""
        if self._sets is None:
            nominal = self.nominal
            rows = Rows(
                n_states=self.knowledge.n_states,
                stored_ptr=self.knowledge.row_ptr,
                stored=self.knowledge.successor,
                stored_nominal=nominal,
                pair_state=self.knowledge.pairs.pair_state,
                pair_action=self.knowledge.pairs.pair_action,
            )
            self._sets = Interval.around(
                rows,
                np.minimum(self.confidence.lower, nominal),
                np.maximum(self.confidence.upper, nominal),
            )
        return self._sets

    @property
    def sets(self) -> UncertaintySet:
        """Everything that is known and seen, as one set."""
        models = self.knowledge.models
        if models is None:
            return self.intervals
        from escapade.uncertainty.intersection import Intersection

        return Intersection((models, self.intervals))

    @property
    def cost_upper(self) -> FloatArray:
        """``[K, pairs]``; no mean cost is above these."""
        return self.confidence.cost_upper

    def ahead(self, w: FloatArray) -> FloatArray:
        """Return the most that ``P · w`` can be, ``[pairs]``; ``w`` is ``[S]``."""
        most = self.intervals.worst(w)
        if self.knowledge.models is not None:
            most = np.minimum(most, self.knowledge.models.worst(w))
        return most

    def worst_cost(self, k: int, w: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the worst cost of a step with ``w`` after it, and the latter alone.

        Both are ``[pairs]`` and rounded up.
        """
        ahead = self.knowledge.discount * self.ahead(w) * (1.0 + 1e-12)
        return (self.cost_upper[k] + ahead) * (1.0 + 1e-12), ahead

    # -- the likeliest model -------------------------------------------------------

    def _nominal_at_birth(self) -> FloatArray:
        knowledge = self.knowledge
        if knowledge.models is not None:
            nominal = np.array(knowledge.models.nominal)
        else:
            lengths = np.diff(knowledge.row_ptr)
            nominal = np.repeat(1.0 / lengths, lengths)
        return nominal

    @property
    def nominal(self) -> FloatArray:
        """``[entries]``; frequencies, with what was thought at birth as one visit."""
        if self._nominal is None:
            evidence, confidence = self.evidence, self.confidence
            n = np.repeat(evidence.pair_visits, np.diff(evidence.row_ptr))
            mixed = (evidence.visits + _PRIOR_WEIGHT * self._prior) / (
                n + _PRIOR_WEIGHT
            )
            self._nominal = _into_bounds(
                mixed, confidence.lower, confidence.upper, evidence.row_ptr
            )
        return self._nominal

    def mean_reward(self) -> FloatArray:
        """Return the likeliest mean reward of every pair."""
        lower, upper = self.confidence.reward_lower, self.confidence.reward_upper
        mean = self.evidence.mean_reward()
        return np.where(np.isnan(mean), 0.5 * (lower + upper), mean).clip(lower, upper)

    def mean_cost(self) -> FloatArray:
        """Return the likeliest mean costs of every pair, ``[K, pairs]``."""
        lower, upper = self.confidence.cost_lower, self.confidence.cost_upper
        mean = self.evidence.mean_cost()
        return np.where(np.isnan(mean), upper, mean).clip(lower, upper)

    def likeliest(self) -> CMDP:
        """Return the likeliest model as a problem."""
        knowledge = self.knowledge
        pairs = knowledge.pairs
        return CMDP.from_pairs(
            state_ptr=pairs.state_ptr,
            pair_action=pairs.pair_action,
            row_ptr=knowledge.row_ptr,
            successor=knowledge.successor,
            probability=self.nominal,
            reward=self.mean_reward(),
            cost=self.mean_cost(),
            n_actions=knowledge.n_actions,
            discount=knowledge.discount,
            budget=knowledge.budget,
            start=knowledge.start,
            reward_max=knowledge.reward_max,
            cost_max=knowledge.cost_max,
            state_names=knowledge.state_names,
            action_names=knowledge.action_names,
            coordinates=knowledge.coordinates,
        )


def _into_bounds(
    mixed: FloatArray, lower: FloatArray, upper: FloatArray, row_ptr: IntArray
) -> FloatArray:
    """Return distributions inside the bounds, near ``mixed``."""
    inside = np.clip(mixed, lower, upper)
    lengths = np.diff(row_ptr)
    missing = 1.0 - row_sums(inside, row_ptr)
    room = np.where(np.repeat(missing, lengths) > 0.0, upper - inside, inside - lower)
    total = row_sums(room, row_ptr)
    if (total < np.abs(missing) - 1e-9).any():
        pair = int(np.argmax(np.abs(missing) - total))
        raise AssumptionError(
            f"transitions of pair {pair}: expected bounds that hold a distribution, "
            f"found none"
        )
    share = np.divide(missing, total, out=np.zeros_like(total), where=total > 0.0)
    moved: FloatArray = inside + np.repeat(np.clip(share, -1.0, 1.0), lengths) * room
    return moved
