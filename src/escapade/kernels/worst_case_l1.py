"""The worst case over an L1 ball around a nominal row.

For a row ``p``, values ``z`` and radius ψ, moving mass ε from low to high values costs
2ε of the radius.  With ε = min(ψ/2, 1) the maximum of ``q·z`` is

    ε max z  +  the most that mass 1 − ε can earn under the capacities ``p``,

since the worst ``q`` drops the lowest ε of ``p`` and gives it to the best successor.
(What is drained from the best successor itself comes back to it, so no case is needed
for ε larger than 1 − p of the best.)  The minimum is the negative of the maximum of
``−z``.

Entries with ``p`` = 0 can only receive, so they take part through their best value
alone: a short list per row, or one number when every state may be a successor.
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

__all__ = ["l1_backup", "l1_backup_threads", "l1_kernel"]


@uncounted
def _best_unseen(
    row: int,
    best: float,
    unseen_ptr: IntArray,
    unseen: IndexArray,
    everywhere: float,
    v: FloatArray,
    sign: float,
) -> float:
    """Return the largest of ``best`` and of the values of entries of mass 0."""
    if everywhere > best:
        best = everywhere
    if unseen_ptr.size:
        for k in range(unseen_ptr[row], unseen_ptr[row + 1]):
            z = sign * v[unseen[k]]
            if z > best:
                best = z
    return best


@compiled
def _extreme(
    all_states: bool,
    v: FloatArray,
    sign: float,
) -> float:
    """Largest ``sign * v`` when every state is a possible successor, else −inf."""
    best = -np.inf
    if all_states:
        for s in range(v.size):
            z = sign * v[s]
            if z > best:
                best = z
    return best


@compiled
def _l1_slices(
    first: int,
    last: int,
    start: IntArray,
    width: IntArray,
    row_of: IndexArray,
    index: IndexArray,
    mass: FloatArray,
    moved: FloatArray,
    unseen_ptr: IntArray,
    unseen: IndexArray,
    everywhere: float,
    immediate: FloatArray,
    gamma: float,
    v: FloatArray,
    sign: float,
    out: FloatArray,
) -> None:
    """Slices `first` to `last`; see :func:`l1_backup` for the shapes."""
    z = np.empty(WIDEST * LANES)
    p = np.empty(WIDEST * LANES)
    fill = np.empty(LANES)
    keep = np.empty(LANES)
    top = np.empty(LANES)
    bare = unseen_ptr.size == 0
    for part in range(first, last):
        slot = part * LANES
        for l in range(LANES):  # noqa: E741
            keep[l] = 1.0 - moved[slot + l]
        gather_slice(index, start[part], width[part], v, sign, z)
        fill_slice(z, mass, start[part], width[part], keep, 0, p, fill, top)
        if not bare:
            for l in range(LANES):  # noqa: E741
                if row_of[slot + l] >= 0:
                    top[l] = _best_unseen(
                        row_of[slot + l],
                        top[l],
                        unseen_ptr,
                        unseen,
                        everywhere,
                        v,
                        sign,
                    )
        for l in range(LANES):  # noqa: E741
            best = top[l] if top[l] > everywhere else everywhere
            fill[l] = sign * (moved[slot + l] * best + fill[l])
        for l in range(LANES):  # noqa: E741
            row = row_of[slot + l]
            if row < 0:
                break
            out[row] = immediate[row] + gamma * fill[l] if immediate.size else fill[l]


@compiled
def _l1_wide(
    first: int,
    last: int,
    wide: IntArray,
    wide_moved: FloatArray,
    seen_ptr: IntArray,
    seen: IndexArray,
    nominal: FloatArray,
    unseen_ptr: IntArray,
    unseen: IndexArray,
    everywhere: float,
    immediate: FloatArray,
    gamma: float,
    v: FloatArray,
    sign: float,
    out: FloatArray,
) -> None:
    """Rows too long for slices: `wide` `[n]` their numbers."""
    longest = 0
    for i in range(first, last):
        longest = max(longest, seen_ptr[wide[i] + 1] - seen_ptr[wide[i]])
    z = np.empty(longest)
    p = np.empty(longest)
    for i in range(first, last):
        row = wide[i]
        begin = seen_ptr[row]
        n = seen_ptr[row + 1] - begin
        best = everywhere
        for k in range(n):
            z[k] = sign * v[seen[begin + k]]
            p[k] = nominal[begin + k]
            if z[k] > best:
                best = z[k]
        best = _best_unseen(row, best, unseen_ptr, unseen, everywhere, v, sign)
        worst = sign * (
            wide_moved[i] * best + fill_from_top(z, p, n, 1.0 - wide_moved[i])
        )
        out[row] = immediate[row] + gamma * worst if immediate.size else worst


@compiled
def l1_backup(
    start: IntArray,
    width: IntArray,
    row_of: IndexArray,
    index: IndexArray,
    mass: FloatArray,
    moved: FloatArray,
    wide: IntArray,
    wide_moved: FloatArray,
    seen_ptr: IntArray,
    seen: IndexArray,
    nominal: FloatArray,
    unseen_ptr: IntArray,
    unseen: IndexArray,
    all_states: bool,
    immediate: FloatArray,
    gamma: float,
    v: FloatArray,
    sign: float,
    out: FloatArray,
) -> None:
    """`out`: `[N]` = immediate `[N]` (or `[0]`: none) + γ · worst of P·v, v `[S]`.

    `start`, `width`: `[slices]`; `row_of`, `moved`: `[64·slices]`;
    `index`, `mass`: `[entries]`; `wide`, `wide_moved`: long rows; `seen_ptr`: `[N+1]`,
    `seen`, `nominal`: `[nnz]`; `unseen_ptr`: `[N+1]` or `[0]`; ``sign`` 1 for the
    maximum, −1 for the minimum.
    """
    everywhere = _extreme(all_states, v, sign)
    _l1_slices(
        0,
        width.size,
        start,
        width,
        row_of,
        index,
        mass,
        moved,
        unseen_ptr,
        unseen,
        everywhere,
        immediate,
        gamma,
        v,
        sign,
        out,
    )
    if wide.size:
        _l1_wide(
            0,
            wide.size,
            wide,
            wide_moved,
            seen_ptr,
            seen,
            nominal,
            unseen_ptr,
            unseen,
            everywhere,
            immediate,
            gamma,
            v,
            sign,
            out,
        )


@compiled_parallel
def l1_backup_threads(
    start: IntArray,
    width: IntArray,
    row_of: IndexArray,
    index: IndexArray,
    mass: FloatArray,
    moved: FloatArray,
    wide: IntArray,
    wide_moved: FloatArray,
    seen_ptr: IntArray,
    seen: IndexArray,
    nominal: FloatArray,
    unseen_ptr: IntArray,
    unseen: IndexArray,
    all_states: bool,
    immediate: FloatArray,
    gamma: float,
    v: FloatArray,
    sign: float,
    out: FloatArray,
    chunks: int,
) -> None:
    """Shapes as in :func:`l1_backup`, the same bits; `chunks`: pieces of work."""
    everywhere = _extreme(all_states, v, sign)
    slices = width.size
    rows = wide.size
    for c in numba.prange(chunks):
        _l1_slices(
            slices * c // chunks,
            slices * (c + 1) // chunks,
            start,
            width,
            row_of,
            index,
            mass,
            moved,
            unseen_ptr,
            unseen,
            everywhere,
            immediate,
            gamma,
            v,
            sign,
            out,
        )
        _l1_wide(
            rows * c // chunks,
            rows * (c + 1) // chunks,
            wide,
            wide_moved,
            seen_ptr,
            seen,
            nominal,
            unseen_ptr,
            unseen,
            everywhere,
            immediate,
            gamma,
            v,
            sign,
            out,
        )


@compiled
def l1_kernel(
    row_ptr: IntArray,
    successor: IndexArray,
    nominal: FloatArray,
    moved: FloatArray,
    v: FloatArray,
    sign: float,
    out: FloatArray,
) -> None:
    """`out`: `[nnz]` a kernel that attains the worst case; `moved`: `[N]` is ε."""
    for row in range(row_ptr.size - 1):
        first = row_ptr[row]
        last = row_ptr[row + 1]
        z = np.empty(last - first)
        for k in range(first, last):
            z[k - first] = -sign * v[successor[k]]
        order = np.argsort(z, kind="mergesort")
        left = 1.0 - moved[row]
        for k in order:
            x = min(nominal[first + k], left)
            out[first + k] = x
            left -= x
        # Rounding of the nominal's sum stays where it was; the best gets the rest.
        if last > first:
            out[first + order[0]] += moved[row]
