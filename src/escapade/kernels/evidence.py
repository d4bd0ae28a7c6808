"""Counting what was seen, and confidence intervals that hold at every count at once.

For samples in [0, 1] with mean μ, of which n sum to x, the mixture over the Beta(½, ½)
law of likelihood ratios against μ,

    KT(x, n) / (μ^x (1 − μ)^(n−x)),    KT = Γ(x+½) Γ(n−x+½) / (π Γ(n+1)),

is a martingale of mean 1 for zeros and ones, and a supermartingale for any law on
[0, 1], since each factor is convex in the sample and meets the line between its ends
there.  By Ville's inequality it ever exceeds F/δ with probability at most δ/F, so

    n kl(x/n ‖ μ) <= ln(F/δ) + x ln(x/n) + (n−x) ln(1 − x/n) − ln KT(x, n)

for all n at once, however the samples were come by.
"""

from __future__ import annotations

import math

from escapade.kernels.compilation import compiled, inlined
from escapade.typing import BoolArray, FloatArray, IndexArray, IntArray

__all__ = [
    "bernoulli_interval",
    "find_entry",
    "record",
    "refresh_means",
    "refresh_rows",
]

_EPS = 2.220446049250313e-16
_LOG_PI = math.log(math.pi)
_OUTWARD = 1e-12
_SAME = 1e-9
"""By how much, as a share of the bound, equal samples may seem to differ."""


@inlined
def find_entry(
    row_ptr: IntArray, successor: IndexArray, pair: int, next_state: int
) -> int:
    """Return the entry of ``next_state`` in the row of ``pair``, or −1 if none."""
    low: int = row_ptr[pair]
    high: int = row_ptr[pair + 1]
    while low < high:
        middle = (low + high) >> 1
        if successor[middle] < next_state:
            low = middle + 1
        else:
            high = middle
    if low < row_ptr[pair + 1] and successor[low] == next_state:
        return low
    return -1


@inlined
def record(
    row_ptr: IntArray,
    successor: IndexArray,
    visits: IntArray,
    pair_visits: IntArray,
    reward_sum: FloatArray,
    cost_count: IntArray,
    cost_sum: FloatArray,
    cost_square: FloatArray,
    pair: int,
    next_state: int,
    reward: float,
    cost: FloatArray,
    cost_seen: bool,
) -> bool:
    """Count one step; False, and nothing counted, if the successor is impossible.

    ``visits``: ``[entries]``, ``pair_visits``, ``reward_sum``, ``cost_count``:
    ``[pairs]``, ``cost_sum``, ``cost_square``: ``[K, pairs]``, ``cost``:
    ``[K]``.
    """
    entry = find_entry(row_ptr, successor, pair, next_state)
    if entry < 0:
        return False
    visits[entry] += 1
    pair_visits[pair] += 1
    reward_sum[pair] += reward
    if cost_seen:
        cost_count[pair] += 1
        for k in range(cost.size):
            cost_sum[k, pair] += cost[k]
            cost_square[k, pair] += cost[k] * cost[k]
    return True


@compiled
def record_all(
    row_ptr: IntArray,
    successor: IndexArray,
    visits: IntArray,
    pair_visits: IntArray,
    reward_sum: FloatArray,
    cost_count: IntArray,
    cost_sum: FloatArray,
    cost_square: FloatArray,
    pairs: IntArray,
    next_states: IntArray,
    rewards: FloatArray,
    costs: FloatArray,
    costs_seen: BoolArray,
) -> int:
    """Count steps, one a row of ``costs``, ``[n, K]``; the first impossible, or −1.

    Steps before the impossible one are counted, it and those after it are not.
    """
    for i in range(pairs.size):
        counted = record(
            row_ptr,
            successor,
            visits,
            pair_visits,
            reward_sum,
            cost_count,
            cost_sum,
            cost_square,
            pairs[i],
            next_states[i],
            rewards[i],
            costs[i],
            costs_seen[i],
        )
        if not counted:
            return i
    return -1


@compiled
def _end(share: float, bound: float, low: float, high: float, rising: bool) -> float:
    """Where kl(share ‖ p) passes ``bound`` between two points, rounded outward."""
    while True:
        p = 0.5 * (low + high)
        if p <= low or p >= high:  # nothing representable lies between
            break
        # share / p would overflow where p is tiny, and the end would lie inward
        entropy = share * (math.log(share) - math.log(p)) + (1.0 - share) * (
            math.log1p(-share) - math.log1p(-p)
        )
        if (entropy <= bound) == rising:
            low = p
        else:
            high = p
    return high if rising else low


@compiled
def bernoulli_interval(
    total: float, n: float, log_families: float
) -> tuple[float, float]:
    """Return the interval for the mean of ``n`` samples in [0, 1] that sum to total."""
    if n <= 0.0:
        return 0.0, 1.0
    x = min(max(total, 0.0), n)
    share = x / n
    budget = (
        log_families
        - math.lgamma(x + 0.5)
        - math.lgamma(n - x + 0.5)
        + math.lgamma(n + 1.0)
        + _LOG_PI
    )
    budget += 4.0 * _EPS * math.lgamma(n + 2.0)  # their difference is rounded
    if share > 0.0:  # a share that rounds to an end leaves the budget larger
        budget += x * math.log(share)
    if share < 1.0:
        budget += (n - x) * math.log1p(-share)
    bound = budget / n * (1.0 + _OUTWARD)
    if share == 0.0:
        return 0.0, -math.expm1(-bound)
    if share >= 1.0:
        return math.exp(-bound), 1.0
    low = _end(share, bound, 0.0, share, False)
    high = _end(share, bound, share, 1.0, True)
    return low, high


@compiled
def refresh_rows(
    pairs: IntArray,
    row_ptr: IntArray,
    visits: IntArray,
    pair_visits: IntArray,
    log_families: float,
    lower: FloatArray,
    upper: FloatArray,
) -> int:
    """``lower``, ``upper``: ``[entries]``; narrow the rows of ``pairs``, in place.

    Entries whose bounds meet are known, and only asked whether what was seen is
    possible.  Returns the first pair whose bounds leave no distribution, or −1.
    """
    empty = -1
    for i in range(pairs.size):
        pair = pairs[i]
        least, most = 0.0, 0.0
        crossed = False
        for entry in range(row_ptr[pair], row_ptr[pair + 1]):
            if visits[entry] > 0 and upper[entry] <= 0.0:
                crossed = True
            if lower[entry] < upper[entry]:
                low, high = bernoulli_interval(
                    float(visits[entry]), float(pair_visits[pair]), log_families
                )
                lower[entry] = max(lower[entry], low)
                upper[entry] = min(upper[entry], high)
                crossed = crossed or lower[entry] > upper[entry]
            least += lower[entry]
            most += upper[entry]
        if empty < 0 and (crossed or least > 1.0 + 1e-9 or most < 1.0 - 1e-9):
            empty = pair
    return empty


@compiled
def refresh_means(
    pairs: IntArray,
    total: FloatArray,
    count: IntArray,
    largest: float,
    exact: BoolArray,
    log_families: float,
    lower: FloatArray,
    upper: FloatArray,
) -> int:
    """``total``, ``count``, ``lower``, ``upper``: ``[pairs]``; narrow means, in place.

    ``exact`` marks the pairs whose samples never vary.  Returns the first pair whose
    bounds crossed, or −1.
    """
    crossed = -1
    for i in range(pairs.size):
        pair = pairs[i]
        n = count[pair]
        if n == 0 or largest == 0.0:
            continue
        if exact[pair]:
            # sums round: leave room, and once the mean is known only compare
            mean = total[pair] / n
            room = _SAME * largest
            if mean < lower[pair] - room or mean > upper[pair] + room:
                crossed = pair if crossed < 0 else crossed
            elif upper[pair] - lower[pair] > 2.0 * room:
                lower[pair] = max(lower[pair], mean - room)
                upper[pair] = min(upper[pair], mean + room)
                if mean == 0.0:
                    upper[pair] = 0.0
            continue
        low, high = bernoulli_interval(total[pair] / largest, float(n), log_families)
        low *= largest
        high *= largest
        lower[pair] = max(lower[pair], low)
        upper[pair] = min(upper[pair], high)
        if crossed < 0 and lower[pair] > upper[pair] + 1e-9 * largest:
            crossed = pair
    return crossed
