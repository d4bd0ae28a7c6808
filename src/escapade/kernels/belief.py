"""What is held possible of single rows: bounds on entries, and a likely row inside.

Rows change a few at a time, so these kernels take the pairs that changed and write into
arrays that are kept.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from escapade.kernels.compilation import compiled, uncounted
from escapade.kernels.evidence import find_entry
from escapade.kernels.worst_case_actions import best_rate, neighbourhood
from escapade.kernels.worst_case_slices import fill_from_top
from escapade.typing import BoolArray, FloatArray, IndexArray, IntArray

__all__ = [
    "Held",
    "bound_by_branches",
    "fill_likeliest",
    "greatest_means",
    "worst_steps",
]

_OUTWARD = 1e-15
_TOLERANCE = 1e-9
_SHORT = 32


@compiled
def bound_by_branches(
    pairs: IntArray,
    branch_ptr: IntArray,
    active: BoolArray,
    target: IndexArray,
    around: IntArray,
    low: FloatArray,
    high: FloatArray,
    near_ptr: IntArray,
    near: IndexArray,
    uniform: BoolArray,
    row_ptr: IntArray,
    successor: IndexArray,
    lower: FloatArray,
    upper: FloatArray,
) -> None:
    """Narrow ``lower``, ``upper`` ``[entries]`` to what active branches allow.

    In place, in the rows of ``pairs``; arrays of branches are laid out as in
    :mod:`escapade.kernels.worst_case_actions`.
    Where there is one active branch with any law, its rows are those within the bounds.
    """
    longest = 0
    for pair in pairs:
        longest = max(longest, row_ptr[pair + 1] - row_ptr[pair])
    least = np.empty(longest)
    most = np.empty(longest)
    mine_low = np.empty(longest)
    mine_high = np.empty(longest)
    for pair in pairs:
        begin = row_ptr[pair]
        n = row_ptr[pair + 1] - begin
        least[:n] = 1.0
        most[:n] = 0.0
        for b in range(branch_ptr[pair], branch_ptr[pair + 1]):
            if not active[b]:
                continue
            mine_low[:n] = 0.0
            mine_high[:n] = 0.0
            h = around[b]
            goal = find_entry(row_ptr, successor, pair, target[b]) - begin
            if goal >= 0:  # else it was ruled out by something else
                mine_low[goal] = 1.0 if h < 0 else 1.0 - high[b]
                mine_high[goal] = 1.0 if h < 0 else 1.0 - low[b]
            if h >= 0:
                size = near_ptr[h + 1] - near_ptr[h]
                # the share of a miss that each near state gets, at least and at most
                most_share = 1.0 / size if uniform[h] else 1.0
                least_share = 1.0 / size if uniform[h] or size == 1 else 0.0
                for k in range(near_ptr[h], near_ptr[h + 1]):
                    at = find_entry(row_ptr, successor, pair, near[k]) - begin
                    if at < 0:
                        continue
                    if at == goal:
                        mine_low[at] = 1.0 - high[b] * (1.0 - least_share)
                        mine_high[at] = 1.0 - low[b] * (1.0 - most_share)
                    else:
                        mine_low[at] = low[b] * least_share
                        mine_high[at] = high[b] * most_share
            for i in range(n):
                least[i] = min(least[i], mine_low[i])
                most[i] = max(most[i], mine_high[i])
        for i in range(n):
            down = least[i] * (1.0 - _OUTWARD) if least[i] < 1.0 else 1.0
            up = min(most[i] * (1.0 + _OUTWARD), 1.0)
            lower[begin + i] = max(lower[begin + i], down)
            upper[begin + i] = min(upper[begin + i], up)


class Held(NamedTuple):
    """What is held possible of steps: bounds on entries, branches, and what they cost.

    ``row_ptr`` ``[pairs + 1]``, ``successor``, ``lower``, ``upper`` ``[entries]``;
    arrays of branches as in :mod:`escapade.kernels.worst_case_actions`, all empty where
    there are none; ``at_target``, ``at_miss`` ``[K, C, branches]`` what branches take
    off ``cost`` ``[K, pairs]``, with C 0 where costs are not tied to next states.
    ``up`` is more than rounding can do in a worst case.
    """

    row_ptr: IntArray
    successor: IndexArray
    lower: FloatArray
    upper: FloatArray
    branch_ptr: IntArray
    active: BoolArray
    target: IndexArray
    around: IntArray
    low: FloatArray
    high: FloatArray
    near_ptr: IntArray
    near: IndexArray
    uniform: BoolArray
    at_target: FloatArray
    at_miss: FloatArray
    cost: FloatArray
    gamma: float
    up: float


@compiled
def _longest_row(row_ptr: IntArray, pairs: IntArray) -> int:
    longest = 0
    for pair in pairs:
        longest = max(longest, row_ptr[pair + 1] - row_ptr[pair])
    return longest


@uncounted
def _greatest_mean(
    row_ptr: IntArray,
    successor: IndexArray,
    lower: FloatArray,
    upper: FloatArray,
    v: FloatArray,
    pair: int,
    z: FloatArray,
    room: FloatArray,
) -> float:
    """Return the most that ``P · v`` can be; ``z``, ``room``: scratch, a row long."""
    begin = row_ptr[pair]
    n = row_ptr[pair + 1] - begin
    held = 0.0
    left = 1.0
    for k in range(n):
        bound = lower[begin + k]
        z[k] = v[successor[begin + k]]
        room[k] = upper[begin + k] - bound
        held += bound * z[k]
        left -= bound
    if n > _SHORT:
        return held + fill_from_top(z, room, n, left)
    # few entries take all the mass that is left: look for them one by one
    while left > 0.0:
        best = 0
        for k in range(1, n):
            if z[k] > z[best]:
                best = k
        if z[best] == -np.inf:
            break
        given = min(room[best], left)
        held += given * z[best]
        left -= given
        z[best] = -np.inf
    return held


@compiled
def greatest_means(
    row_ptr: IntArray,
    successor: IndexArray,
    lower: FloatArray,
    upper: FloatArray,
    v: FloatArray,
    out: FloatArray,
) -> None:
    """``out``: ``[pairs]``; the most that ``P · v`` can be within the bounds."""
    longest = _longest_row(row_ptr, np.arange(out.size))
    z, room = np.empty(longest), np.empty(longest)
    for pair in range(out.size):
        out[pair] = _greatest_mean(row_ptr, successor, lower, upper, v, pair, z, room)


@compiled
def worst_steps(
    pairs: IntArray,
    held: Held,
    channel: int,
    v: FloatArray,
    together: FloatArray,
    ahead: FloatArray,
) -> None:
    """``ahead``: ``[pairs]`` greatest ``γ P·v``; ``together``: with the cost of a step.

    For ``pairs`` alone, in place, and rounded up.  Each is the lesser of what bounds on
    entries and what branches allow.
    """
    row_ptr, successor, lower, upper = held[:4]
    branch_ptr, active, target, around, low, high, near_ptr, near, uniform = held[4:13]
    at_target, at_miss = held.at_target[channel], held.at_miss[channel]
    cost, gamma, up = held.cost[channel], held.gamma, held.up
    longest = _longest_row(row_ptr, pairs)
    z, room = np.empty(longest), np.empty(longest)
    looked_at = np.zeros(uniform.size, np.bool_)
    stat = np.empty(uniform.size)
    for pair in pairs:
        most = _greatest_mean(row_ptr, successor, lower, upper, v, pair, z, room)
        if target.size == 0:
            ahead[pair] = most * (gamma * up)
            together[pair] = (cost[pair] + ahead[pair]) * up
            continue
        best = -np.inf
        best_tied = -np.inf
        for b in range(branch_ptr[pair], branch_ptr[pair + 1]):
            if not active[b]:
                continue
            here = v[target[b]]
            miss = here
            h = around[b]
            if h >= 0:
                if not looked_at[h]:
                    looked_at[h] = True
                    stat[h] = neighbourhood(near_ptr, near, uniform, v, 1.0, h)
                miss = stat[h]
            tau = high[b] if miss > here else low[b]
            best = max(best, (1.0 - tau) * here + tau * miss)
            tied, _ = best_rate(
                low[b], high[b], here, miss, gamma, b, at_target, at_miss
            )
            best_tied = max(best_tied, tied)
        after = gamma * min(most, best)
        together[pair] = (cost[pair] + min(after, best_tied)) * (up * up)
        ahead[pair] = after * up


@compiled
def fill_likeliest(
    pairs: IntArray,
    row_ptr: IntArray,
    visits: IntArray,
    pair_visits: IntArray,
    prior: FloatArray,
    weight: float,
    lower: FloatArray,
    upper: FloatArray,
    out: FloatArray,
) -> int:
    """``out``: ``[entries]``; frequencies, with ``weight`` visits as ``prior`` says.

    Clipped into the bounds; what is then missing of 1, or too much, is shared among the
    entries in proportion to their room.  Returns the first pair whose bounds hold no
    distribution, or −1.
    """
    for i in range(pairs.size):
        pair: int = pairs[i]
        begin, end = row_ptr[pair], row_ptr[pair + 1]
        missing = 1.0
        n = pair_visits[pair] + weight
        for e in range(begin, end):
            p = (visits[e] + weight * prior[e]) / n
            out[e] = min(max(p, lower[e]), upper[e])
            missing -= out[e]
        room = 0.0
        for e in range(begin, end):
            room += upper[e] - out[e] if missing > 0.0 else out[e] - lower[e]
        if room < abs(missing) - _TOLERANCE:
            return pair
        if room > 0.0:
            share = min(max(missing / room, -1.0), 1.0)
            for e in range(begin, end):
                span = upper[e] - out[e] if missing > 0.0 else out[e] - lower[e]
                out[e] += share * span
    return -1
