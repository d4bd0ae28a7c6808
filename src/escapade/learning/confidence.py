"""Intervals around everything that is estimated, valid at all times at once.

Each transition probability, mean reward and mean cost has an interval of its own, from
the mixture martingale in :mod:`escapade.kernels.evidence`.  There are F of them, and
each may fail with probability δ0/F in a whole lifetime, so with probability 1 − δ0 none
ever does: whatever is visited, however often, and whenever one looks.  Intervals are
intersected over time, so they only narrow.

What is known beforehand needs no interval and takes no share of δ0: exact rows, pairs
with one possible successor, costs known to be 0.  Nor does what has no one mean: of
pairs that vary nothing is estimated, but for costs and rewards that are exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from escapade.errors import AssumptionError, refusal
from escapade.kernels.evidence import refresh_means, refresh_rows
from escapade.learning.evidence import Evidence
from escapade.typing import BoolArray, FloatArray, IntArray

__all__ = ["Bounds", "Confidence"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Bounds:
    """What is known of transition probabilities and of means, as arrays to narrow.

    ``lower`` and ``upper`` are ``[entries]``, those of the rewards ``[pairs]`` and
    those of the costs ``[K, pairs]``.
    """

    lower: FloatArray
    upper: FloatArray
    reward_lower: FloatArray
    reward_upper: FloatArray
    cost_lower: FloatArray
    cost_upper: FloatArray


class Confidence:
    """Intervals for one body of evidence.

    Parameters
    ----------
    evidence
        What the intervals are about.
    delta
        δ0: the probability that any of them ever fails.
    bounds
        What is known beforehand; the arrays are narrowed in place.
    reward_max, cost_max
        Bounds on every sample: a number, and ``[K]``.
    reward_exact, cost_exact
        ``[pairs]`` masks: one sample tells the mean.
    name
        Says in words which pair a number stands for.
    varying
        ``[pairs]`` mask: the law may be another at every visit.
    """

    def __init__(
        self,
        evidence: Evidence,
        *,
        delta: float,
        bounds: Bounds,
        reward_max: float,
        cost_max: FloatArray,
        reward_exact: BoolArray,
        cost_exact: BoolArray,
        name: Callable[[int], str],
        varying: BoolArray,
    ) -> None:
        if not 0.0 < delta < 1.0:
            raise refusal("delta", "a number in (0, 1)", delta)
        self.evidence = evidence
        self.delta = delta
        self.lower, self.upper = bounds.lower, bounds.upper
        self.reward_lower = bounds.reward_lower
        self.reward_upper = bounds.reward_upper
        self.cost_lower, self.cost_upper = bounds.cost_lower, bounds.cost_upper
        self.reward_max = reward_max
        self.cost_max = cost_max
        self._name = name
        self._reward_exact = reward_exact
        self._cost_exact = cost_exact
        self._one_law = ~varying
        lasting = np.repeat(~varying, np.diff(evidence.row_ptr))
        self._learns_reward = self.reward_lower < self.reward_upper
        self._learns_reward &= reward_exact | ~varying
        self._learns_cost = self.cost_lower < self.cost_upper
        self._learns_cost &= cost_exact | ~varying
        open_entries = (self.lower < self.upper) & lasting
        open_rewards = self._learns_reward & ~reward_exact
        open_costs = self._learns_cost & ~cost_exact
        self.extra: FloatArray = np.zeros(reward_exact.size)
        self.families = int(open_entries.sum() + open_rewards.sum() + open_costs.sum())

    @property
    def log_families(self) -> float:
        """``ln(F / δ0)``."""
        return math.log(max(self.families, 1) / self.delta)

    @property
    def holds_surely(self) -> bool:
        """Whether nothing here can fail, since nothing is estimated."""
        return self.families == 0

    def refresh(self, pairs: IntArray) -> None:
        """Narrow the intervals of these pairs to what has been seen.

        Raises
        ------
        AssumptionError
            If intervals exclude each other: the evidence contradicts what was known
            beforehand, or an event of probability at most δ0 has happened.
        """
        for extra in np.unique(self.extra[pairs]):
            self._refresh(pairs[self.extra[pairs] == extra], self.log_families + extra)
        evidence = self.evidence
        self._check_impossible(pairs[~self._one_law[pairs]])
        varies = self._cost_exact[pairs]
        if varies.any():
            spread = evidence.cost_variance()[:, pairs] > 0.0
            varies = varies & spread.any(axis=0)
        if varies.any():
            pair = int(pairs[int(np.argmax(varies))])
            raise AssumptionError(
                f"exact_costs: expected the same cost each time in {self._name(pair)}, "
                f"found costs that differ"
            )

    def _refresh(self, pairs: IntArray, level: float) -> None:
        """Narrow the intervals of pairs whose martingales may reach one level."""
        evidence = self.evidence
        broken = refresh_rows(
            pairs[self._one_law[pairs]],
            evidence.row_ptr,
            evidence.visits,
            evidence.pair_visits,
            level,
            self.lower,
            self.upper,
        )
        if broken >= 0:
            raise AssumptionError(self._contradiction("transitions", broken))
        broken = refresh_means(
            pairs[self._learns_reward[pairs]],
            evidence.reward_sum,
            evidence.pair_visits,
            self.reward_max,
            self._reward_exact,
            level,
            self.reward_lower,
            self.reward_upper,
        )
        if broken >= 0:
            raise AssumptionError(self._contradiction("rewards", broken))
        for k in range(self.cost_lower.shape[0]):
            broken = refresh_means(
                pairs[self._learns_cost[k, pairs]],
                evidence.cost_sum[k],
                evidence.cost_count,
                float(self.cost_max[k]),
                self._cost_exact,
                level,
                self.cost_lower[k],
                self.cost_upper[k],
            )
            if broken >= 0:
                raise AssumptionError(self._contradiction(f"costs {k}", broken))

    def _check_impossible(self, pairs: IntArray) -> None:
        """Refuse what pairs that vary have done although no law of theirs allows it."""
        if pairs.size == 0:
            return
        owner = np.repeat(np.arange(self._one_law.size), np.diff(self.evidence.row_ptr))
        wrong = (self.evidence.visits > 0) & (self.upper == 0.0)
        wrong &= np.isin(owner, pairs)
        if wrong.any():
            pair = int(owner[int(np.argmax(wrong))])
            raise AssumptionError(self._contradiction("transitions", pair))

    def _contradiction(self, what: str, pair: int) -> str:
        n = int(self.evidence.pair_visits[pair])
        return (
            f"{what} of {self._name(pair)}: expected evidence that agrees with what "
            f"was known beforehand, found a contradiction after {n} visits; by chance "
            f"that happens with probability at most {self.delta:g}"
        )
