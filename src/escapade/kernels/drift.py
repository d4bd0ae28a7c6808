"""Whether what was seen of late can come from what is held possible.

A window of a pair begins at some visit and is looked at as often as one likes; the
interval of :func:`escapade.kernels.evidence.bernoulli_interval` holds for its samples
at every count at once.  Where it lies beside the bounds that are held, these cannot
hold any more, but by chance.
"""

from __future__ import annotations

import math

from escapade.kernels.compilation import compiled, uncounted
from escapade.kernels.evidence import bernoulli_interval
from escapade.typing import BoolArray, FloatArray, IntArray

__all__ = ["find_drift"]

_ROUNDING = 1e-9


@uncounted
def _beside(
    total: float, n: float, log_level: float, lower: float, upper: float, largest: float
) -> bool:
    """Tell whether ``n`` samples in [0, largest] have a mean beside the bounds."""
    if n <= 0.0 or largest <= 0.0:
        return False
    low, high = bernoulli_interval(total / largest, n, log_level)
    room = _ROUNDING * largest
    return bool(low * largest > upper + room or high * largest < lower - room)


@compiled
def find_drift(
    pairs: IntArray,
    row_ptr: IntArray,
    visits: IntArray,
    pair_visits: IntArray,
    reward_sum: FloatArray,
    cost_count: IntArray,
    cost_sum: FloatArray,
    number: IntArray,
    log_families: float,
    lower: FloatArray,
    upper: FloatArray,
    reward_lower: FloatArray,
    reward_upper: FloatArray,
    cost_lower: FloatArray,
    cost_upper: FloatArray,
    reward_max: float,
    cost_max: FloatArray,
    moved: BoolArray,
) -> None:
    """Mark in ``moved``, ``[len(pairs)]``, pairs whose window lies beside the bounds.

    Counts and sums are those of the windows, shaped as in
    :func:`escapade.kernels.evidence.record`; ``number`` is ``[pairs]``, which window it
    is, from 1; the level of the n-th is ``F n (n + 1) / δ``.
    """
    for i in range(pairs.size):
        pair = pairs[i]
        k = float(number[pair])
        level = log_families + math.log(k * (k + 1.0))
        n = float(pair_visits[pair])
        found = _beside(
            reward_sum[pair],
            n,
            level,
            reward_lower[pair],
            reward_upper[pair],
            reward_max,
        )
        for entry in range(row_ptr[pair], row_ptr[pair + 1]):
            found = found or _beside(
                float(visits[entry]), n, level, lower[entry], upper[entry], 1.0
            )
        for c in range(cost_max.size):
            found = found or _beside(
                cost_sum[c, pair],
                float(cost_count[pair]),
                level,
                cost_lower[c, pair],
                cost_upper[c, pair],
                cost_max[c],
            )
        moved[i] = found
