"""The worst case over rows bounded entry by entry, and over an L1 ball cut by bounds.

*Bounds alone.*  Every member holds its lower bounds; the mass that is left,
``1 − Σ lower``, goes to the best successors first, up to ``upper − lower`` each: a
greedy hand-out, exact since this is a continuous knapsack.

*Bounds and an L1 ball.*  The nominal is first clipped into the bounds: the nearest
point in every entry, so that each further unit of mass, added or removed, costs one
unit of radius.  Clipping leaves a surplus or a lack of mass; it is levelled where it
costs least (added to the best successors, removed from the worst).  Then mass moves
from the worst to the best successors, two units of radius each, until the radius is
used up or the move no longer gains.  Gains fall along the way, so the greedy order is
optimal.
"""

from __future__ import annotations

import numba
import numpy as np

from escapade.kernels.compilation import (
    compiled,
    compiled_parallel,
    uncounted,
)
from escapade.kernels.worst_case_slices import (
    LANES,
    WIDEST,
    fill_from_top,
    fill_slice,
    gather_slice,
)
from escapade.typing import FloatArray, IndexArray, IntArray

__all__ = [
    "boxed_worst",
    "interval_backup",
    "interval_backup_threads",
    "interval_kernel",
]


@uncounted
def _hold_slice(
    base: FloatArray,
    start: int,
    width: int,
    z: FloatArray,
    p: FloatArray,
    held: FloatArray,
) -> None:
    """`held`: `[64]` gets what the lower bounds earn; `z`, `p`: `[≥64·width]`."""
    first = np.uint64(start)
    for k in range(np.uint64(0), np.uint64(width * LANES)):
        p[k] = base[first + k] * z[k]
    for l in range(LANES):  # noqa: E741
        held[l] = 0.0
    for k in range(width):
        for l in range(LANES):  # noqa: E741
            held[l] += p[k * LANES + l]


@compiled
def _interval_slices(
    first: int,
    last: int,
    start: IntArray,
    width: IntArray,
    row_of: IndexArray,
    index: IndexArray,
    room: FloatArray,
    base: FloatArray,
    left: FloatArray,
    immediate: FloatArray,
    gamma: float,
    v: FloatArray,
    sign: float,
    out: FloatArray,
) -> None:
    """Slices `first` to `last`; see :func:`interval_backup` for the shapes."""
    z = np.empty(WIDEST * LANES)
    p = np.empty(WIDEST * LANES)
    fill = np.empty(LANES)
    top = np.empty(LANES)
    held = np.empty(LANES)
    for part in range(first, last):
        slot = part * LANES
        at = start[part]
        gather_slice(index, at, width[part], v, sign, z)
        _hold_slice(base, at, width[part], z, p, held)
        fill_slice(z, room, at, width[part], left, slot, p, fill, top)
        for l in range(LANES):  # noqa: E741
            row = row_of[slot + l]
            if row < 0:
                break
            worst = sign * (held[l] + fill[l])
            out[row] = immediate[row] + gamma * worst if immediate.size else worst


@compiled
def _interval_wide(
    first: int,
    last: int,
    wide: IntArray,
    row_ptr: IntArray,
    successor: IndexArray,
    lower: FloatArray,
    upper: FloatArray,
    immediate: FloatArray,
    gamma: float,
    v: FloatArray,
    sign: float,
    out: FloatArray,
) -> None:
    """Rows too long for slices: `wide` `[n]` their numbers."""
    longest = 0
    for i in range(first, last):
        longest = max(longest, row_ptr[wide[i] + 1] - row_ptr[wide[i]])
    z = np.empty(longest)
    p = np.empty(longest)
    for i in range(first, last):
        row = wide[i]
        begin = row_ptr[row]
        n = row_ptr[row + 1] - begin
        held = 0.0
        left = 1.0
        for k in range(n):
            low = lower[begin + k]
            z[k] = sign * v[successor[begin + k]]
            p[k] = upper[begin + k] - low
            held += low * z[k]
            left -= low
        worst = sign * (held + fill_from_top(z, p, n, left))
        out[row] = immediate[row] + gamma * worst if immediate.size else worst


@compiled
def interval_backup(
    start: IntArray,
    width: IntArray,
    row_of: IndexArray,
    index: IndexArray,
    room: FloatArray,
    base: FloatArray,
    left: FloatArray,
    wide: IntArray,
    row_ptr: IntArray,
    successor: IndexArray,
    lower: FloatArray,
    upper: FloatArray,
    immediate: FloatArray,
    gamma: float,
    v: FloatArray,
    sign: float,
    out: FloatArray,
) -> None:
    """`out`: `[N]` = immediate `[N]` (or `[0]`: none) + γ · worst of P·v, v `[S]`.

    `start`, `width`: `[slices]`; `row_of`, `left`: `[64·slices]`; `index`, `room`
    (upper − lower), `base` (lower): `[entries]`; `wide`: long rows; `row_ptr`:
    `[N+1]`, `successor`, `lower`, `upper`: `[nnz]`; ``sign`` 1: maximum, −1: minimum.
    """
    _interval_slices(
        0,
        width.size,
        start,
        width,
        row_of,
        index,
        room,
        base,
        left,
        immediate,
        gamma,
        v,
        sign,
        out,
    )
    if wide.size:
        _interval_wide(
            0,
            wide.size,
            wide,
            row_ptr,
            successor,
            lower,
            upper,
            immediate,
            gamma,
            v,
            sign,
            out,
        )


@compiled_parallel
def interval_backup_threads(
    start: IntArray,
    width: IntArray,
    row_of: IndexArray,
    index: IndexArray,
    room: FloatArray,
    base: FloatArray,
    left: FloatArray,
    wide: IntArray,
    row_ptr: IntArray,
    successor: IndexArray,
    lower: FloatArray,
    upper: FloatArray,
    immediate: FloatArray,
    gamma: float,
    v: FloatArray,
    sign: float,
    out: FloatArray,
    chunks: int,
) -> None:
    """Shapes as in :func:`interval_backup`, the same bits; `chunks`: pieces of work."""
    slices = width.size
    rows = wide.size
    for c in numba.prange(chunks):
        _interval_slices(
            slices * c // chunks,
            slices * (c + 1) // chunks,
            start,
            width,
            row_of,
            index,
            room,
            base,
            left,
            immediate,
            gamma,
            v,
            sign,
            out,
        )
        _interval_wide(
            rows * c // chunks,
            rows * (c + 1) // chunks,
            wide,
            row_ptr,
            successor,
            lower,
            upper,
            immediate,
            gamma,
            v,
            sign,
            out,
        )


@compiled
def interval_kernel(
    row_ptr: IntArray,
    successor: IndexArray,
    lower: FloatArray,
    upper: FloatArray,
    v: FloatArray,
    sign: float,
    out: FloatArray,
) -> None:
    """`out`: `[nnz]` a kernel within `lower`, `upper` `[nnz]` that is worst for v."""
    for row in range(row_ptr.size - 1):
        first = row_ptr[row]
        last = row_ptr[row + 1]
        z = np.empty(last - first)
        left = 1.0
        for k in range(first, last):
            z[k - first] = -sign * v[successor[k]]
            left -= lower[k]
        left = max(left, 0.0)
        for k in np.argsort(z, kind="mergesort"):
            x = min(upper[first + k] - lower[first + k], left)
            out[first + k] = lower[first + k] + x
            left -= x


@compiled
def boxed_worst(
    row_ptr: IntArray,
    successor: IndexArray,
    clipped: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    surplus: FloatArray,
    radius: FloatArray,
    v: FloatArray,
    sign: float,
    kernel: FloatArray,
    out: FloatArray,
) -> None:
    """`out`: `[N]` the worst of P·v; `kernel`: `[nnz]` attains it, or `[0]`.

    `clipped`, `lower`, `upper`: `[nnz]` the nominal clipped into its bounds;
    `surplus`: `[N]` its sum less 1; `radius`: `[N]` what is left after clipping.
    """
    longest = 0
    for row in range(row_ptr.size - 1):
        longest = max(longest, row_ptr[row + 1] - row_ptr[row])
    q = np.empty(longest)
    for row in range(row_ptr.size - 1):
        first = row_ptr[row]
        n = row_ptr[row + 1] - first
        z = np.empty(n)
        for k in range(n):
            z[k] = sign * v[successor[first + k]]
            q[k] = clipped[first + k]
        order = np.argsort(z, kind="mergesort")
        low = 0
        high = n - 1
        spare = radius[row] - abs(surplus[row])
        level = surplus[row]
        while level > 0.0 and low < n:
            k = order[low]
            x = min(q[k] - lower[first + k], level)
            q[k] -= x
            level -= x
            if level > 0.0:
                low += 1
        while level < 0.0 and high >= 0:
            k = order[high]
            x = min(upper[first + k] - q[k], -level)
            q[k] += x
            level += x
            if level < 0.0:
                high -= 1
        while low < high and spare > 0.0:
            k = order[low]
            j = order[high]
            if z[k] >= z[j]:
                break
            give = q[k] - lower[first + k]
            take = upper[first + j] - q[j]
            x = min(give, take, 0.5 * spare)
            q[k] -= x
            q[j] += x
            spare -= 2.0 * x
            if give <= x:
                low += 1
            if take <= x:
                high -= 1
        total = 0.0
        for k in range(n):
            total += q[k] * z[k]
        out[row] = sign * total
        if kernel.size:
            for k in range(n):
                kernel[first + k] = q[k]
