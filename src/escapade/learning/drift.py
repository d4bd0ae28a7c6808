r"""A change test on what was known, with a stated rate of false alarms and power.

The samples of every pair are cut into windows of ``window`` visits.  Within a window
the mixture martingale of :mod:`escapade.kernels.evidence` starts anew, so its intervals
hold at all counts at once; the j-th window of a pair is tested at the level
``δ / (F j (j + 1))``, F the number of probabilities and means that are tested.  These
levels sum up to δ over all windows of all pairs: while nothing changes, and the bounds
that are held are true, an alarm *ever* comes with probability at most δ, however pairs
are chosen and whenever one looks.

**Power.**  Let a mean of a pair that is held to be at most ``u`` (in shares of its
bound) become ``p > u``.  Of ``n`` samples in the first window that begins after the
change, at least ``k`` are needed for an alarm, the least number whose interval lies
above ``u``; so the alarm is raised by the end of that window with probability at least
``P(Bin(n, p) >= k)``, which :func:`power` returns.  The window begins at most
``window`` visits after the change; what the pair's visits between two plans add comes
on top.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from scipy.special import bdtrc

from escapade.kernels.drift import find_drift
from escapade.kernels.evidence import bernoulli_interval
from escapade.learning.confidence import Bounds, Confidence
from escapade.learning.evidence import Evidence
from escapade.typing import FloatArray, IntArray

__all__ = ["DriftTest", "power"]

_COUNTED = (
    "visits",
    "pair_visits",
    "reward_sum",
    "cost_count",
    "cost_sum",
)


class DriftTest:
    """Windows of the evidence, each tested against what is held possible.

    Parameters
    ----------
    evidence
        What is counted; windows begin at what was counted when this is made.
    delta
        Probability with which an alarm may ever be false.
    window
        Visits of a pair after which its window ends.
    """

    def __init__(self, evidence: Evidence, *, delta: float, window: int) -> None:
        self.window = window
        n_costs = evidence.cost_sum.shape[0]
        families = evidence.visits.size + (1 + n_costs) * evidence.n_pairs
        self.log_families = math.log(families / delta)
        self._number: IntArray = np.ones(evidence.n_pairs, dtype=np.int64)
        self._begun = {name: np.array(getattr(evidence, name)) for name in _COUNTED}

    def look(
        self,
        evidence: Evidence,
        held: Bounds | Confidence,
        pairs: IntArray,
        *,
        reward_max: float,
        cost_max: FloatArray,
    ) -> IntArray:
        """Return which of ``pairs`` have a window that lies beside what is held."""
        moved = np.zeros(pairs.size, dtype=np.bool_)
        begun = self._begun
        find_drift(
            pairs,
            evidence.row_ptr,
            evidence.visits - begun["visits"],
            evidence.pair_visits - begun["pair_visits"],
            evidence.reward_sum - begun["reward_sum"],
            evidence.cost_count - begun["cost_count"],
            evidence.cost_sum - begun["cost_sum"],
            self._number,
            self.log_families,
            held.lower,
            held.upper,
            held.reward_lower,
            held.reward_upper,
            held.cost_lower,
            held.cost_upper,
            reward_max,
            cost_max,
            moved,
        )
        return pairs[moved]

    def full(self, evidence: Evidence, pairs: IntArray) -> IntArray:
        """Return which of ``pairs`` have a window that has all its visits."""
        seen = evidence.pair_visits[pairs] - self._begun["pair_visits"][pairs]
        found: IntArray = pairs[seen >= self.window]
        return found

    def begin(self, evidence: Evidence, pairs: IntArray) -> None:
        """Begin new windows of ``pairs`` at what is counted now."""
        self._number[pairs] += 1
        chosen = np.zeros(evidence.n_pairs, dtype=np.bool_)
        chosen[pairs] = True
        entries = np.repeat(chosen, np.diff(evidence.row_ptr))
        self._begun["visits"][entries] = evidence.visits[entries]
        for name in _COUNTED[1:]:
            self._begun[name][..., pairs] = getattr(evidence, name)[..., pairs]

    # -- files -------------------------------------------------------------------------

    def state(self) -> dict[str, np.ndarray]:
        """Return the windows, as copies of arrays by name."""
        arrays = {"number": self._number, **self._begun}
        return {name: np.array(array) for name, array in arrays.items()}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Go back to what :meth:`state` returned."""
        self._number = np.array(arrays["number"])
        self._begun = {name: np.array(arrays[name]) for name in _COUNTED}


def power(window: int, *, held: float, true: float, log_level: float) -> float:
    """Return the least probability with which one window shows a change.

    Parameters
    ----------
    window
        Samples in the window.
    held
        What the mean was held to be at most, as a share of its bound; for a mean that
        fell below what it was held to be at least, pass what both leave of 1.
    true
        What it is now.
    log_level
        ``ln(F j (j + 1) / δ)``, for the j-th window.

    Examples
    --------
    >>> round(power(100, held=0.1, true=0.5, log_level=10.0), 6)
    0.999998
    >>> power(100, held=0.1, true=0.12, log_level=10.0) < 0.01
    True
    """
    low: FloatArray = np.array(
        [
            bernoulli_interval(float(k), float(window), log_level)[0]
            for k in range(window + 1)
        ]
    )
    enough = np.flatnonzero(low > held)
    if enough.size == 0:
        return 0.0
    least = int(enough[0])
    return float(bdtrc(least - 1, window, true)) if least > 0 else 1.0
