"""What was seen: counts of transitions, sums of rewards and costs.

Counts stand on the rows of possible successors: ``visits`` holds one number an entry,
everything else one number a pair.  A transition that the rows do not allow is not
evidence about their probabilities but against the rows themselves, and is refused.
"""

from __future__ import annotations

import numpy as np

from escapade.kernels.evidence import find_entry, record, record_all
from escapade.typing import FloatArray, IndexArray, IntArray

__all__ = ["Evidence"]

_ROUNDING = 1e-9


class Evidence:
    """Counts over the possible successors of every pair; they only grow.

    Parameters
    ----------
    row_ptr, successor
        ``[pairs + 1]`` and ``[entries]``: the possible successors of each pair.
    n_costs
        ``K``.

    Attributes
    ----------
    visits
        ``[entries]``; how often each transition was seen.
    pair_visits
        ``[pairs]``; how often each pair was.
    reward_sum
        ``[pairs]``.
    cost_sum, cost_square, cost_count
        ``[K, pairs]`` and ``[pairs]``; steps whose cost is not known are left out.
    """

    __slots__ = (
        "cost_count",
        "cost_square",
        "cost_sum",
        "pair_visits",
        "reward_sum",
        "row_ptr",
        "successor",
        "visits",
    )

    def __init__(self, row_ptr: IntArray, successor: IndexArray, n_costs: int) -> None:
        n_pairs = row_ptr.size - 1
        self.row_ptr = row_ptr
        self.successor = successor
        self.visits: IntArray = np.zeros(successor.size, dtype=np.int64)
        self.pair_visits: IntArray = np.zeros(n_pairs, dtype=np.int64)
        self.reward_sum: FloatArray = np.zeros(n_pairs)
        self.cost_count: IntArray = np.zeros(n_pairs, dtype=np.int64)
        self.cost_sum: FloatArray = np.zeros((n_costs, n_pairs))
        self.cost_square: FloatArray = np.zeros((n_costs, n_pairs))

    @property
    def n_pairs(self) -> int:
        """Number of pairs."""
        return self.pair_visits.size

    def record(
        self, pair: int, next_state: int, reward: float, cost: FloatArray | None
    ) -> bool:
        """Count one step; return False, and count nothing, if it cannot happen.

        ``cost`` is ``[K]``, or ``None`` if it was not seen.
        """
        seen = cost is not None
        return bool(
            record(
                self.row_ptr,
                self.successor,
                self.visits,
                self.pair_visits,
                self.reward_sum,
                self.cost_count,
                self.cost_sum,
                self.cost_square,
                pair,
                next_state,
                reward,
                cost if cost is not None else self.cost_sum[:, 0],
                seen,
                tuple(range(self.cost_sum.shape[0])),
            )
        )

    def record_cost(self, pair: int, cost: FloatArray) -> None:
        """Count the cost, ``[K]``, of a step that was counted without it."""
        self.cost_count[pair] += 1
        self.cost_sum[:, pair] += cost
        self.cost_square[:, pair] += cost * cost

    def possible(self, pair: int, next_state: int) -> bool:
        """Whether the rows allow a transition."""
        return find_entry(self.row_ptr, self.successor, pair, next_state) >= 0

    def record_all(
        self,
        pairs: IntArray,
        next_states: IntArray,
        rewards: FloatArray,
        costs: FloatArray,
    ) -> int:
        """Count many steps; return the first that cannot happen, or −1.

        ``costs`` is ``[n, K]``, with NaN where a cost was not seen.
        """
        return int(
            record_all(
                self.row_ptr,
                self.successor,
                self.visits,
                self.pair_visits,
                self.reward_sum,
                self.cost_count,
                self.cost_sum,
                self.cost_square,
                pairs,
                next_states,
                rewards,
                np.ascontiguousarray(costs),
                np.logical_not(np.isnan(costs).any(axis=1)),
                tuple(range(self.cost_sum.shape[0])),
            )
        )

    def add(
        self,
        row_ptr: IntArray,
        successor: IntArray,
        visits: IntArray,
        *,
        rewards: FloatArray,
        costs: FloatArray,
        cost_squares: FloatArray,
        cost_steps: IntArray,
    ) -> None:
        """Add counts: rows of successors, all possible, and sums for each pair."""
        n_states = int(max(self.successor.max(), successor.max(initial=0))) + 1
        keys, wanted = (
            np.repeat(np.arange(self.n_pairs), np.diff(pointers)) * n_states + states
            for pointers, states in (
                (self.row_ptr, self.successor),
                (row_ptr, successor),
            )
        )
        np.add.at(self.visits, np.searchsorted(keys, wanted), visits)
        steps = np.zeros(self.n_pairs, dtype=np.int64)
        np.add.at(steps, np.repeat(np.arange(self.n_pairs), np.diff(row_ptr)), visits)
        self.pair_visits += steps
        self.reward_sum += rewards
        self.cost_sum += costs
        self.cost_square += cost_squares
        self.cost_count += cost_steps

    def frequencies(self) -> FloatArray:
        """Return the share of each entry among the visits of its pair; NaN if none."""
        n = np.repeat(self.pair_visits, np.diff(self.row_ptr))
        shares: FloatArray = np.divide(
            self.visits, n, out=np.full(n.size, np.nan), where=n > 0
        )
        return shares

    def mean_reward(self) -> FloatArray:
        """Return the mean reward seen at each pair; NaN where none was."""
        n = self.pair_visits
        mean: FloatArray = np.divide(
            self.reward_sum, n, out=np.full(n.size, np.nan), where=n > 0
        )
        return mean

    def mean_cost(self) -> FloatArray:
        """Return the mean costs seen at each pair, ``[K, pairs]``; NaN if none."""
        n = self.cost_count
        mean: FloatArray = np.divide(
            self.cost_sum, n, out=np.full(self.cost_sum.shape, np.nan), where=n > 0
        )
        return mean

    def cost_variance(self) -> FloatArray:
        """Return the variance of the costs seen at each pair; NaN if there were none.

        ``[K, pairs]``, and exactly 0 where all samples of a pair were equal but for
        rounding.
        """
        n = np.maximum(self.cost_count, 1)
        square = self.cost_square / n
        variance = square - (self.cost_sum / n) ** 2
        variance[variance <= _ROUNDING * square] = 0.0
        variance[:, self.cost_count == 0] = np.nan
        return variance
