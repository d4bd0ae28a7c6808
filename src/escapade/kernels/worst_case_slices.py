"""Rows of a sparse matrix, laid out so that a worst case is found lane by lane.

A worst-case backup needs the successor values of each row in order.  Sorting row by
row branches on data and cannot be vectorised.  Here rows of like length stand side by
side in slices of 64: entry ``k`` of the slice's row ``l`` is at
``start + k * 64 + l``, so that one comparator of a sorting network acts on 64 rows at
once and the compiler turns it into vector instructions.  A row is padded to the next
power of two with entries of mass 0 at its own first successor, which no worst case can
tell from the row itself; a slice is padded with empty rows.  Rows longer than 64 are
left to a selection on the sparse rows.

The greedy step that all these sets share is :func:`fill_from_top`: hand out an amount
of mass in order of falling value, no entry taking more than its capacity.
"""

from __future__ import annotations

import numpy as np

from escapade.kernels.compilation import compiled, uncounted
from escapade.typing import FloatArray, IndexArray, IntArray

__all__ = [
    "LANES",
    "WIDEST",
    "fill_from_top",
    "fill_slice",
    "fill_slices",
    "gather_slice",
]

LANES = 64
"""Rows in a slice."""

WIDEST = 64
"""The longest row that is kept in slices."""


@compiled
def fill_slices(
    rows: IntArray,
    row_ptr: IntArray,
    successor: IndexArray,
    mass: FloatArray,
    slot: IntArray,
    width: IntArray,
    start: IntArray,
    index: IndexArray,
    sliced: FloatArray,
) -> None:
    """`rows`: `[n]` the row of each slot, `slot`: `[n]` its place; fills the slices."""
    for i in range(rows.size):
        row = rows[i]
        first = row_ptr[row]
        length = row_ptr[row + 1] - first
        part = slot[i] // LANES
        at = start[part] + slot[i] % LANES
        for k in range(width[part]):
            if k < length:
                index[at + k * LANES] = successor[first + k]
                sliced[at + k * LANES] = mass[first + k]
            else:
                index[at + k * LANES] = successor[first]
                sliced[at + k * LANES] = 0.0


@uncounted
def gather_slice(
    index: IndexArray,
    start: int,
    width: int,
    v: FloatArray,
    sign: float,
    z: FloatArray,
) -> None:
    """`z`: `[64·width]` gets ``sign * v`` at the slice's successors.

    Indices are made unsigned: with signed ones every access would first ask whether
    it counts from the end, which takes longer than the access.
    """
    first = np.uint64(start)
    for k in range(np.uint64(0), np.uint64(width * LANES)):
        z[k] = sign * v[np.uint32(index[first + k])]


@uncounted
def _in_order(
    a: float,
    p: float,
    b: float,
    q: float,
) -> tuple[float, float, float, float]:
    """One comparator: the pairs (value, mass) with the smaller value first."""
    swap = b < a
    return (
        b if swap else a,
        q if swap else p,
        a if swap else b,
        p if swap else q,
    )


@uncounted
def _fill_2(
    z: FloatArray,
    p: FloatArray,
    amount: FloatArray,
    slot: int,
    fill: FloatArray,
    top: FloatArray,
) -> None:
    for l in range(LANES):  # noqa: E741
        z0, p0, z1, p1 = _in_order(z[l], p[l], z[LANES + l], p[LANES + l])
        left = amount[slot + l]
        x = p1 if p1 < left else left
        total = x * z1
        left -= x
        x = p0 if p0 < left else left
        fill[l] = total + x * z0
        top[l] = z1


@uncounted
def _fill_4(
    z: FloatArray,
    p: FloatArray,
    amount: FloatArray,
    slot: int,
    fill: FloatArray,
    top: FloatArray,
) -> None:
    for l in range(LANES):  # noqa: E741
        z0, p0 = z[l], p[l]
        z1, p1 = z[LANES + l], p[LANES + l]
        z2, p2 = z[2 * LANES + l], p[2 * LANES + l]
        z3, p3 = z[3 * LANES + l], p[3 * LANES + l]
        z0, p0, z1, p1 = _in_order(z0, p0, z1, p1)
        z2, p2, z3, p3 = _in_order(z2, p2, z3, p3)
        z0, p0, z2, p2 = _in_order(z0, p0, z2, p2)
        z1, p1, z3, p3 = _in_order(z1, p1, z3, p3)
        z1, p1, z2, p2 = _in_order(z1, p1, z2, p2)
        left = amount[slot + l]
        x = p3 if p3 < left else left
        total = x * z3
        left -= x
        x = p2 if p2 < left else left
        total += x * z2
        left -= x
        x = p1 if p1 < left else left
        total += x * z1
        left -= x
        x = p0 if p0 < left else left
        fill[l] = total + x * z0
        top[l] = z3


@uncounted
def _fill_8(
    z: FloatArray,
    p: FloatArray,
    amount: FloatArray,
    slot: int,
    fill: FloatArray,
    top: FloatArray,
) -> None:
    """Nineteen comparators, then the greedy hand-out; all 64 rows in vector lanes."""
    for l in range(LANES):  # noqa: E741
        z0, p0 = z[l], p[l]
        z1, p1 = z[LANES + l], p[LANES + l]
        z2, p2 = z[2 * LANES + l], p[2 * LANES + l]
        z3, p3 = z[3 * LANES + l], p[3 * LANES + l]
        z4, p4 = z[4 * LANES + l], p[4 * LANES + l]
        z5, p5 = z[5 * LANES + l], p[5 * LANES + l]
        z6, p6 = z[6 * LANES + l], p[6 * LANES + l]
        z7, p7 = z[7 * LANES + l], p[7 * LANES + l]
        z0, p0, z1, p1 = _in_order(z0, p0, z1, p1)
        z2, p2, z3, p3 = _in_order(z2, p2, z3, p3)
        z4, p4, z5, p5 = _in_order(z4, p4, z5, p5)
        z6, p6, z7, p7 = _in_order(z6, p6, z7, p7)
        z0, p0, z2, p2 = _in_order(z0, p0, z2, p2)
        z1, p1, z3, p3 = _in_order(z1, p1, z3, p3)
        z4, p4, z6, p6 = _in_order(z4, p4, z6, p6)
        z5, p5, z7, p7 = _in_order(z5, p5, z7, p7)
        z1, p1, z2, p2 = _in_order(z1, p1, z2, p2)
        z5, p5, z6, p6 = _in_order(z5, p5, z6, p6)
        z0, p0, z4, p4 = _in_order(z0, p0, z4, p4)
        z3, p3, z7, p7 = _in_order(z3, p3, z7, p7)
        z1, p1, z5, p5 = _in_order(z1, p1, z5, p5)
        z2, p2, z6, p6 = _in_order(z2, p2, z6, p6)
        z1, p1, z4, p4 = _in_order(z1, p1, z4, p4)
        z3, p3, z6, p6 = _in_order(z3, p3, z6, p6)
        z2, p2, z4, p4 = _in_order(z2, p2, z4, p4)
        z3, p3, z5, p5 = _in_order(z3, p3, z5, p5)
        z3, p3, z4, p4 = _in_order(z3, p3, z4, p4)
        left = amount[slot + l]
        x = p7 if p7 < left else left
        total = x * z7
        left -= x
        x = p6 if p6 < left else left
        total += x * z6
        left -= x
        x = p5 if p5 < left else left
        total += x * z5
        left -= x
        x = p4 if p4 < left else left
        total += x * z4
        left -= x
        x = p3 if p3 < left else left
        total += x * z3
        left -= x
        x = p2 if p2 < left else left
        total += x * z2
        left -= x
        x = p1 if p1 < left else left
        total += x * z1
        left -= x
        x = p0 if p0 < left else left
        fill[l] = total + x * z0
        top[l] = z7


@uncounted
def _compare_lanes(
    z: FloatArray,
    p: FloatArray,
    i: int,
    j: int,
) -> None:
    """One comparator between entries ``i < j`` of every row of a slice."""
    a = i * LANES
    b = j * LANES
    for l in range(LANES):  # noqa: E741
        low, mass_low, high, mass_high = _in_order(
            z[a + l], p[a + l], z[b + l], p[b + l]
        )
        z[a + l] = low
        p[a + l] = mass_low
        z[b + l] = high
        p[b + l] = mass_high


@uncounted
def _fill_any(
    z: FloatArray,
    p: FloatArray,
    width: int,
    amount: FloatArray,
    slot: int,
    fill: FloatArray,
    top: FloatArray,
) -> None:
    """Batcher's odd-even merge sort over whole slices, any power of two as width."""
    block = 1
    while block < width:
        step = block
        while step >= 1:
            first = step % block
            while first + step < width:
                for i in range(min(step, width - first - step)):
                    a = first + i
                    b = first + i + step
                    if a // (2 * block) == b // (2 * block):
                        _compare_lanes(z, p, a, b)
                first += 2 * step
            step //= 2
        block *= 2
    for l in range(LANES):  # noqa: E741
        fill[l] = 0.0
        top[l] = amount[slot + l]  # what is left, until the end
    for k in range(width - 1, -1, -1):
        for l in range(LANES):  # noqa: E741
            x = p[k * LANES + l]
            x = x if x < top[l] else top[l]
            fill[l] += x * z[k * LANES + l]
            top[l] -= x
    last = (width - 1) * LANES
    for l in range(LANES):  # noqa: E741
        top[l] = z[last + l]


@uncounted
def fill_slice(
    z: FloatArray,
    mass: FloatArray,
    start: int,
    width: int,
    amount: FloatArray,
    slot: int,
    p: FloatArray,
    fill: FloatArray,
    top: FloatArray,
) -> None:
    """`z`: `[64·width]`, `mass` at `start`: the same; `amount` at `slot`: `[64]`.

    ``fill[l]`` gets the most that ``amount`` units of mass can earn in row ``l``,
    ``top[l]`` its largest value.  ``z`` and the scratch ``p`` are overwritten.

    The masses are copied first, in the order in which they lie in memory: that is read
    ahead, as eight places at once would not be.
    """
    first = np.uint64(start)
    for k in range(np.uint64(0), np.uint64(width * LANES)):
        p[k] = mass[first + k]
    if width == 8:
        _fill_8(z, p, amount, slot, fill, top)
    elif width == 4:
        _fill_4(z, p, amount, slot, fill, top)
    elif width == 2:
        _fill_2(z, p, amount, slot, fill, top)
    else:
        _fill_any(z, p, width, amount, slot, fill, top)


@uncounted
def fill_from_top(
    z: FloatArray,
    p: FloatArray,
    n: int,
    amount: float,
) -> float:
    """`z`, `p`: `[≥n]` values and capacities; the most that `amount` can earn.

    Selection in expected linear time: split at a pivot, keep the side on which the
    mass runs out.  Both arrays are reordered.
    """
    first = 0
    last = n
    left = amount
    total = 0.0
    while last > first and left > 0.0:
        a = z[first]
        b = z[(first + last) // 2]
        c = z[last - 1]
        pivot = max(min(a, b), min(max(a, b), c))
        # z[first:above] > pivot, z[above:i] == pivot, z[below:last] < pivot
        above = first
        below = last
        mass_above = 0.0
        mass_equal = 0.0
        earned = 0.0
        i = first
        while i < below:
            if z[i] > pivot:
                mass_above += p[i]
                earned += p[i] * z[i]
                z[i], z[above] = z[above], z[i]
                p[i], p[above] = p[above], p[i]
                above += 1
                i += 1
            elif z[i] < pivot:
                below -= 1
                z[i], z[below] = z[below], z[i]
                p[i], p[below] = p[below], p[i]
            else:
                mass_equal += p[i]
                i += 1
        if mass_above >= left:
            last = above
            continue
        total += earned
        left -= mass_above
        if mass_equal >= left:
            total += left * pivot
            left = 0.0
        else:
            total += mass_equal * pivot
            left -= mass_equal
        first = below
    return total
