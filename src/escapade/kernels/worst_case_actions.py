"""The worst case over action models: a typical successor, missed at a bounded rate.

A *branch* of a pair says: with probability 1 − τ the typical state ``g`` comes, with
probability τ some state of the neighbourhood ``N(g)``, uniformly or in any way at all,
and τ lies anywhere in [low, high].  The expectation of ``v`` is then linear in τ, so
its extremes lie at the ends of that interval, and

    (1 − τ) v(g) + τ · (mean or extreme of v over N(g))

needs the neighbourhood through one number a state.  Those numbers are computed once a
backup; after that each branch costs two look-ups.
"""

from __future__ import annotations

import numba
import numpy as np

from escapade.kernels.compilation import compiled, compiled_parallel

__all__ = [
    "actions_backup",
    "actions_backup_threads",
    "actions_excess",
    "actions_kernel",
]


@compiled
def _around(mode_ptr, around_ptr, around, arbitrary, v, sign, stat):  # type: ignore[no-untyped-def]
    """`stat`: `[modes, S]` mean or largest signed value over each neighbourhood.

    The neighbourhood of state x in mode q is `around[around_ptr[q, x]: …[q, x+1]]`,
    counted from `mode_ptr[q]`.
    """
    modes, n_states = stat.shape
    for q in range(modes):
        for x in range(n_states):
            first = mode_ptr[q] + around_ptr[q, x]
            last = mode_ptr[q] + around_ptr[q, x + 1]
            best = -np.inf
            total = 0.0
            for k in range(first, last):
                z = sign * v[around[k]]
                best = max(best, z)
                total += z
            stat[q, x] = best if arbitrary[q] else total / max(last - first, 1)


@compiled
def _actions_rows(
    first,
    last,
    branch_ptr,
    target,
    mode,
    low,
    high,
    stat,
    immediate,
    gamma,
    v,
    sign,
    chosen,
    out,
):  # type: ignore[no-untyped-def]
    """Rows `first` to `last`; `chosen`: `[N]` 2·branch + (1 at the high τ), or `[0]`."""
    for row in range(first, last):
        best = -np.inf
        at = 0
        for b in range(branch_ptr[row], branch_ptr[row + 1]):
            z = sign * v[target[b]]
            if high[b] == 0.0:  # never missed: the neighbourhood may be empty
                value = z
                top = 0
            else:
                miss = stat[mode[b], target[b]]
                value = (1.0 - low[b]) * z + low[b] * miss
                other = (1.0 - high[b]) * z + high[b] * miss
                top = 1 if other > value else 0
                value = max(value, other)
            if value > best:
                best = value
                at = 2 * b + top
        if chosen.size:
            chosen[row] = at
        worst = sign * best
        out[row] = immediate[row] + gamma * worst if immediate.size else worst


@compiled
def actions_backup(
    branch_ptr,
    target,
    mode,
    low,
    high,
    mode_ptr,
    around_ptr,
    around,
    arbitrary,
    immediate,
    gamma,
    v,
    sign,
    out,
):  # type: ignore[no-untyped-def]
    """`out`: `[N]` = immediate `[N]` (or `[0]`: none) + γ · worst of P·v, v `[S]`.

    `branch_ptr`: `[N+1]`; `target`, `mode`, `low`, `high`: `[branches]`; `mode_ptr`:
    `[modes]`, `around_ptr`: `[modes, S+1]`, `around`: states, `arbitrary`: `[modes]`;
    ``sign`` 1: maximum, −1: minimum.
    """
    stat = np.empty((arbitrary.size, v.size))
    _around(mode_ptr, around_ptr, around, arbitrary, v, sign, stat)
    _actions_rows(
        0,
        branch_ptr.size - 1,
        branch_ptr,
        target,
        mode,
        low,
        high,
        stat,
        immediate,
        gamma,
        v,
        sign,
        np.empty(0, np.int64),
        out,
    )


@compiled_parallel
def actions_backup_threads(
    branch_ptr,
    target,
    mode,
    low,
    high,
    mode_ptr,
    around_ptr,
    around,
    arbitrary,
    immediate,
    gamma,
    v,
    sign,
    out,
    chunks,
):  # type: ignore[no-untyped-def]
    """Shapes as in :func:`actions_backup`, the same bits; `chunks`: pieces of work."""
    stat = np.empty((arbitrary.size, v.size))
    _around(mode_ptr, around_ptr, around, arbitrary, v, sign, stat)
    rows = branch_ptr.size - 1
    chosen = np.empty(0, np.int64)
    for c in numba.prange(chunks):
        _actions_rows(
            rows * c // chunks,
            rows * (c + 1) // chunks,
            branch_ptr,
            target,
            mode,
            low,
            high,
            stat,
            immediate,
            gamma,
            v,
            sign,
            chosen,
            out,
        )


@compiled
def actions_kernel(
    branch_ptr,
    target,
    mode,
    low,
    high,
    mode_ptr,
    around_ptr,
    around,
    arbitrary,
    row_ptr,
    successor,
    v,
    sign,
    out,
):  # type: ignore[no-untyped-def]
    """`out`: `[nnz]` a kernel on `row_ptr` `[N+1]`, `successor` that is worst for v."""
    stat = np.empty((arbitrary.size, v.size))
    _around(mode_ptr, around_ptr, around, arbitrary, v, sign, stat)
    rows = branch_ptr.size - 1
    chosen = np.empty(rows, np.int64)
    _actions_rows(
        0,
        rows,
        branch_ptr,
        target,
        mode,
        low,
        high,
        stat,
        np.empty(0),
        1.0,
        v,
        sign,
        chosen,
        np.empty(rows),
    )
    weight = np.zeros(v.size)
    for row in range(rows):
        b = chosen[row] // 2
        q = mode[b]
        x = target[b]
        tau = high[b] if chosen[row] % 2 else low[b]
        weight[x] += 1.0 - tau
        if tau > 0.0:
            first = mode_ptr[q] + around_ptr[q, x]
            last = mode_ptr[q] + around_ptr[q, x + 1]
            if arbitrary[q]:
                at = around[first]
                for k in range(first, last):
                    if sign * v[around[k]] > sign * v[at]:
                        at = around[k]
                weight[at] += tau
            else:
                for k in range(first, last):
                    weight[around[k]] += tau / (last - first)
        for k in range(row_ptr[row], row_ptr[row + 1]):
            out[k] = weight[successor[k]]
            weight[successor[k]] = 0.0


@compiled
def actions_excess(
    branch_ptr,
    target,
    mode,
    low,
    high,
    mode_ptr,
    around_ptr,
    around,
    arbitrary,
    n_states,
    row_ptr,
    successor,
    probability,
    out,
):  # type: ignore[no-untyped-def]
    """`out`: `[N]` how far each row of `probability` `[nnz]` is from its branches.

    The distance is the largest entry-wise one to the nearest row of some branch, or
    the rate by which τ leaves its interval; 0 for members.
    """
    weight = np.zeros(n_states)
    near = np.zeros(n_states, np.bool_)
    for row in range(branch_ptr.size - 1):
        for k in range(row_ptr[row], row_ptr[row + 1]):
            weight[successor[k]] = probability[k]
        nearest = np.inf
        for b in range(branch_ptr[row], branch_ptr[row + 1]):
            q = mode[b]
            x = target[b]
            first = mode_ptr[q] + around_ptr[q, x]
            last = mode_ptr[q] + around_ptr[q, x + 1]
            size = last - first
            for k in range(first, last):
                near[around[k]] = True
            off = 0.0  # mass neither at the target nor near it
            tau = 0.0  # mass that left the target
            for k in range(row_ptr[row], row_ptr[row + 1]):
                if successor[k] != x:
                    tau += probability[k]
                    if not near[successor[k]]:
                        off += probability[k]
            excess = off
            if arbitrary[q] or size == 0:
                # A failure may itself land on the target, which hides it.
                excess = max(excess, tau - high[b])
                if not near[x]:
                    excess = max(excess, low[b] - tau)
            else:
                if near[x] and size > 1:
                    tau *= size / (size - 1)
                elif near[x]:
                    tau = low[b]
                tau = min(max(tau, low[b]), high[b])
                for k in range(first, last):
                    fair = tau / size
                    if around[k] == x:
                        fair += 1.0 - tau
                    excess = max(excess, abs(weight[around[k]] - fair))
                if not near[x]:
                    excess = max(excess, abs(weight[x] - (1.0 - tau)))
            for k in range(first, last):
                near[around[k]] = False
            nearest = min(nearest, excess)
        out[row] = nearest
        for k in range(row_ptr[row], row_ptr[row + 1]):
            weight[successor[k]] = 0.0
