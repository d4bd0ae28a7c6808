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

from escapade.kernels.compilation import compiled, inlined, natural, uncounted
from escapade.typing import BoolArray, FloatArray, IndexArray, IntArray

__all__ = [
    "bernoulli_interval",
    "count",
    "find_entry",
    "record",
    "refresh_means",
    "refresh_rows",
]

_EPS = 2.220446049250313e-16
_LOG_PI = math.log(math.pi)
_OUTWARD = 1e-12
_CLOSE = 2e-15
_NEWTON_STEPS = 12
_WIDENINGS = 4
_SAME = 1e-9
"""By how much, as a share of the bound, equal samples may seem to differ."""


@inlined
def find_entry(
    row_ptr: IntArray, successor: IndexArray, pair: int, next_state: int
) -> int:
    """Return the entry of ``next_state`` in the row of ``pair``, or −1 if none."""
    low: int = natural(row_ptr[pair])
    high: int = natural(row_ptr[pair + 1])
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
def count(
    visits: IntArray,
    pair_visits: IntArray,
    reward_sum: FloatArray,
    cost_count: IntArray,
    cost_sum: FloatArray,
    cost_square: FloatArray,
    entry: int,
    pair: int,
    reward: float,
    cost: FloatArray,
    cost_seen: bool,
    channels: tuple[int, ...],
) -> None:
    """Count one step, by the entry of its successor; shapes as for :func:`record`."""
    visits[entry] += 1
    pair_visits[pair] += 1
    reward_sum[pair] += reward
    if cost_seen:
        cost_count[pair] += 1
        for k in range(len(channels)):
            cost_sum[k, pair] += cost[k]
            cost_square[k, pair] += cost[k] * cost[k]


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
    channels: tuple[int, ...],
) -> bool:
    """Count one step; False, and nothing counted, if the successor is impossible.

    ``visits``: ``[entries]``, ``pair_visits``, ``reward_sum``, ``cost_count``:
    ``[pairs]``, ``cost_sum``, ``cost_square``: ``[K, pairs]``, ``cost``:
    ``[K]``, ``channels``: ``(0, ..., K − 1)``.
    """
    entry = find_entry(row_ptr, successor, pair, next_state)
    if entry < 0:
        return False
    count(
        visits,
        pair_visits,
        reward_sum,
        cost_count,
        cost_sum,
        cost_square,
        entry,
        pair,
        reward,
        cost,
        cost_seen,
        channels,
    )
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
    channels: tuple[int, ...],
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
            channels,
        )
        if not counted:
            return i
    return -1


@uncounted
def _divergence(share: float, p: float) -> float:
    """Return kl(share ‖ p)."""
    # share / p would overflow where p is tiny, and the end would lie inward
    divergence: float = share * (math.log(share) - math.log(p)) + (1.0 - share) * (
        math.log1p(-share) - math.log1p(-p)
    )
    return divergence


@uncounted
def _about(share: float, bound: float, known: float, rising: bool) -> float:
    """Return about where kl(share ‖ p) passes ``bound``, by Newton's method.

    It begins beyond that point, at ``known`` or nearer, and as the divergence is
    convex no step passes it.
    """
    rest = 1.0 - share
    far = math.sqrt(0.5 * bound)  # Pinsker: no farther from the share than this
    if rising:  # all of one term gives another point that lies beyond
        left = rest * math.exp((share * math.log(share) - bound) / rest)
        p = min(known, share + far, 1.0 - left)
    else:
        left = share * math.exp((rest * math.log(rest) - bound) / share)
        p = max(known, share - far, left)
    for _ in range(_NEWTON_STEPS):
        if not 0.0 < p < 1.0 or (p > share) != rising:
            break
        step = (_divergence(share, p) - bound) * p * (1.0 - p) / (p - share)
        p -= step
        if abs(step) <= _CLOSE * p:
            break
    return p


@uncounted
def _end(
    share: float, bound: float, low: float, high: float, known: float, rising: bool
) -> float:
    """Where kl(share ‖ p) passes ``bound`` between two points, rounded outward.

    ``known`` is a point outside, or an end of the interval.
    """
    about = _about(share, bound, known, rising)
    room = _CLOSE * about
    for _ in range(_WIDENINGS):  # until it lies between two points for sure
        left, right = about - room, about + room
        if not low < left < right < high:
            break
        within = _divergence(share, left) <= bound
        if within == rising and (_divergence(share, right) <= bound) != within:
            low, high = left, right
            break
        room *= 32.0
    while True:
        p = 0.5 * (low + high)
        if p <= low or p >= high:  # nothing representable lies between
            break
        if (_divergence(share, p) <= bound) == rising:
            low = p
        else:
            high = p
    return high if rising else low


@uncounted
def _kl_bound(x: float, n: float, log_families: float, log_n: float) -> float:
    """Return what kl(x / n ‖ μ) is at most; ``log_n``: lnΓ(n + 1)."""
    share = x / n
    budget = (
        log_families - math.lgamma(x + 0.5) - math.lgamma(n - x + 0.5) + log_n + _LOG_PI
    )
    # their difference is rounded; lnΓ(n + 2) = lnΓ(n + 1) + ln(n + 1)
    budget += 4.0 * _EPS * (log_n + math.log(n + 1.0))
    if share > 0.0:  # a share that rounds to an end leaves the budget larger
        budget += x * math.log(share)
    if share < 1.0:
        budget += (n - x) * math.log1p(-share)
    return budget / n * (1.0 + _OUTWARD)


@uncounted
def bernoulli_interval(
    total: float, n: float, log_families: float
) -> tuple[float, float]:
    """Return the interval for the mean of ``n`` samples in [0, 1] that sum to total."""
    if n <= 0.0:
        return 0.0, 1.0
    x = min(max(total, 0.0), n)
    bound = _kl_bound(x, n, log_families, math.lgamma(n + 1.0))
    return _narrowed(x / n, bound, 0.0, 1.0)


@uncounted
def _narrowed(
    share: float, bound: float, low: float, high: float
) -> tuple[float, float]:
    """Return ``low`` and ``high``, narrowed to where kl(share ‖ p) is within bound."""
    if share == 0.0:
        return low, min(high, -math.expm1(-bound))
    if share >= 1.0:
        return max(low, math.exp(-bound)), high
    if low < share and not (low > 0.0 and _divergence(share, low) <= bound):
        low = max(low, _end(share, bound, 0.0, share, low, False))
    if high > share and not (high < 1.0 and _divergence(share, high) <= bound):
        high = min(high, _end(share, bound, share, 1.0, high, True))
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
        n = float(pair_visits[pair])
        log_n = math.lgamma(n + 1.0)
        unseen = _kl_bound(0.0, n, log_families, log_n) if n > 0.0 else 0.0
        for entry in range(row_ptr[pair], row_ptr[pair + 1]):
            if visits[entry] > 0 and upper[entry] <= 0.0:
                crossed = True
            if lower[entry] < upper[entry] and n > 0.0:
                x = float(visits[entry])
                bound = unseen
                if x > 0.0:
                    bound = _kl_bound(x, n, log_families, log_n)
                lower[entry], upper[entry] = _narrowed(
                    x / n, bound, lower[entry], upper[entry]
                )
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
