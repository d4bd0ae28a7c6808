"""The worst case over action models: a typical successor, missed at a bounded rate.

A *branch* of a pair says: with probability 1 − τ the typical state ``g`` comes, with
probability τ some state of a neighbourhood, uniformly or in any way at all, and τ lies
anywhere in [low, high].  Branches that are not active do not count.  The expectation of
``v`` is linear in τ, so its extremes lie at the ends of that interval, and

    (1 − τ) v(g) + τ · (mean or extreme of v over the neighbourhood)

needs the neighbourhood through one number.  Those numbers are computed once a backup,
for all branches that share the neighbourhood; then each branch costs two look-ups.

A branch may also say what a step costs.  Then it brings *discounts*, two numbers a
channel: ``at_target`` and ``at_miss``, so that the gain of a step is lowered by

    Σ_k min((1 − τ) at_target_k + τ at_miss_k, 0)

where that branch is the true one.  The sum is concave in τ and bends where a channel
crosses 0: the extreme is at an end or at a bend, and all of them are tried.

Arrays of branches, in every kernel here: ``branch_ptr`` ``[N+1]``; ``active``,
``target``, ``around``, ``low``, ``high`` ``[B]``; neighbourhood ``h`` is
``near[near_ptr[h]:near_ptr[h+1]]``, ``uniform`` ``[H]`` its law; ``around`` is −1 where
nothing is ever missed.
"""

from __future__ import annotations

import numba
import numpy as np

from escapade.kernels.compilation import compiled, compiled_parallel, uncounted
from escapade.typing import BoolArray, FloatArray, IndexArray, IntArray

__all__ = [
    "actions_backup",
    "actions_backup_threads",
    "actions_excess",
    "actions_kernel",
    "actions_reachable",
    "best_rate",
    "fill_rows",
    "neighbourhood",
    "neighbourhoods",
]


@uncounted
def neighbourhood(
    near_ptr: IntArray,
    near: IndexArray,
    uniform: BoolArray,
    v: FloatArray,
    sign: float,
    h: int,
) -> float:
    """Return the mean or the largest signed value over neighbourhood `h`."""
    best = -np.inf
    total = 0.0
    for k in range(near_ptr[h], near_ptr[h + 1]):
        z = sign * v[near[k]]
        best = max(best, z)
        total += z
    mean: float = total / (near_ptr[h + 1] - near_ptr[h])
    return mean if uniform[h] else best


@compiled
def neighbourhoods(
    near_ptr: IntArray,
    near: IndexArray,
    uniform: BoolArray,
    v: FloatArray,
    sign: float,
    stat: FloatArray,
) -> None:
    """`stat`: `[H]` mean or largest signed value over each neighbourhood."""
    for h in range(stat.size):
        stat[h] = neighbourhood(near_ptr, near, uniform, v, sign, h)


@uncounted
def _rate_value(
    tau: float,
    z: float,
    miss: float,
    gamma: float,
    b: int,
    at_target: FloatArray,
    at_miss: FloatArray,
) -> float:
    """Value of branch `b` at the rate `tau`; `at_target`, `at_miss`: `[K, B]`."""
    value = gamma * z if tau == 0.0 else gamma * ((1.0 - tau) * z + tau * miss)
    for k in range(at_target.shape[0]):
        gain = (1.0 - tau) * at_target[k, b] + tau * at_miss[k, b]
        value += min(gain, 0.0)
    return value


@uncounted
def best_rate(
    low: float,
    high: float,
    z: float,
    miss: float,
    gamma: float,
    b: int,
    at_target: FloatArray,
    at_miss: FloatArray,
) -> tuple[float, float]:
    """Largest value of branch `b` and a rate that attains it."""
    rate = low
    best = _rate_value(low, z, miss, gamma, b, at_target, at_miss)
    value = _rate_value(high, z, miss, gamma, b, at_target, at_miss)
    if value > best:
        best = value
        rate = high
    for k in range(at_target.shape[0]):
        a = at_target[k, b]
        m = at_miss[k, b]
        if (a < 0.0) != (m < 0.0):
            tau = a / (a - m)
            if low < tau < high:
                value = _rate_value(tau, z, miss, gamma, b, at_target, at_miss)
                if value > best:
                    best = value
                    rate = tau
    return best, rate


@compiled
def _actions_rows(
    first: int,
    last: int,
    branch_ptr: IntArray,
    active: BoolArray,
    target: IndexArray,
    around: IntArray,
    low: FloatArray,
    high: FloatArray,
    at_target: FloatArray,
    at_miss: FloatArray,
    stat: FloatArray,
    immediate: FloatArray,
    gamma: float,
    v: FloatArray,
    sign: float,
    chosen: IntArray,
    rates: FloatArray,
    out: FloatArray,
) -> None:
    """Rows `first` to `last`; `chosen`, `rates`: `[N]` the extreme branch, or `[0]`."""
    for row in range(first, last):
        best = -np.inf
        at = branch_ptr[row]
        rate = 0.0
        for b in range(branch_ptr[row], branch_ptr[row + 1]):
            if active[b]:
                z = sign * v[target[b]]
                miss = stat[around[b]] if around[b] >= 0 else z
                value, tau = best_rate(
                    low[b], high[b], z, miss, gamma, b, at_target, at_miss
                )
                if value > best:
                    best = value
                    at = b
                    rate = tau
        if chosen.size:
            chosen[row] = at
            rates[row] = rate
        worst = sign * best
        out[row] = immediate[row] + worst if immediate.size else worst


@compiled
def actions_backup(
    branch_ptr: IntArray,
    active: BoolArray,
    target: IndexArray,
    around: IntArray,
    low: FloatArray,
    high: FloatArray,
    near_ptr: IntArray,
    near: IndexArray,
    uniform: BoolArray,
    at_target: FloatArray,
    at_miss: FloatArray,
    immediate: FloatArray,
    gamma: float,
    v: FloatArray,
    sign: float,
    out: FloatArray,
) -> None:
    """`out`: `[N]` = immediate `[N]` (or `[0]`: none) + worst of discount + γ P·v.

    `v`: `[S]`; `at_target`, `at_miss`: `[K, B]`, times ``sign`` (1: maximum, −1:
    minimum); `[0, B]` where branches say nothing about costs.
    """
    stat = np.empty(uniform.size)
    neighbourhoods(near_ptr, near, uniform, v, sign, stat)
    nothing = np.empty(0, np.int64)
    _actions_rows(
        0,
        branch_ptr.size - 1,
        branch_ptr,
        active,
        target,
        around,
        low,
        high,
        at_target,
        at_miss,
        stat,
        immediate,
        gamma,
        v,
        sign,
        nothing,
        np.empty(0),
        out,
    )


@compiled_parallel
def actions_backup_threads(
    branch_ptr: IntArray,
    active: BoolArray,
    target: IndexArray,
    around: IntArray,
    low: FloatArray,
    high: FloatArray,
    near_ptr: IntArray,
    near: IndexArray,
    uniform: BoolArray,
    at_target: FloatArray,
    at_miss: FloatArray,
    immediate: FloatArray,
    gamma: float,
    v: FloatArray,
    sign: float,
    out: FloatArray,
    chunks: int,
) -> None:
    """Shapes as in :func:`actions_backup`, the same bits; `chunks`: pieces of work."""
    stat = np.empty(uniform.size)
    neighbourhoods(near_ptr, near, uniform, v, sign, stat)
    rows = branch_ptr.size - 1
    nothing = np.empty(0, np.int64)
    no_rates = np.empty(0)
    for c in numba.prange(chunks):
        _actions_rows(
            rows * c // chunks,
            rows * (c + 1) // chunks,
            branch_ptr,
            active,
            target,
            around,
            low,
            high,
            at_target,
            at_miss,
            stat,
            immediate,
            gamma,
            v,
            sign,
            nothing,
            no_rates,
            out,
        )


@compiled
def actions_kernel(
    branch_ptr: IntArray,
    active: BoolArray,
    target: IndexArray,
    around: IntArray,
    low: FloatArray,
    high: FloatArray,
    near_ptr: IntArray,
    near: IndexArray,
    uniform: BoolArray,
    at_target: FloatArray,
    at_miss: FloatArray,
    row_ptr: IntArray,
    successor: IndexArray,
    gamma: float,
    v: FloatArray,
    sign: float,
    out: FloatArray,
    discount: FloatArray,
) -> None:
    """`out`: `[nnz]` a kernel on `row_ptr`, `successor` that is worst for `v`.

    `discount`: `[N]` what the chosen branch takes off the gain, times ``sign``.
    """
    stat = np.empty(uniform.size)
    neighbourhoods(near_ptr, near, uniform, v, sign, stat)
    rows = branch_ptr.size - 1
    chosen = np.empty(rows, np.int64)
    rates = np.empty(rows)
    _actions_rows(
        0,
        rows,
        branch_ptr,
        active,
        target,
        around,
        low,
        high,
        at_target,
        at_miss,
        stat,
        np.empty(0),
        gamma,
        v,
        sign,
        chosen,
        rates,
        np.empty(rows),
    )
    weight = np.zeros(v.size)
    for row in range(rows):
        b = chosen[row]
        tau = rates[row]
        weight[target[b]] += 1.0 - tau
        if tau > 0.0 and around[b] >= 0:
            h = around[b]
            first = near_ptr[h]
            last = near_ptr[h + 1]
            if uniform[h]:
                for k in range(first, last):
                    weight[near[k]] += tau / (last - first)
            else:
                at = near[first]
                for k in range(first, last):
                    if sign * v[near[k]] > sign * v[at]:
                        at = near[k]
                weight[at] += tau
        for k in range(row_ptr[row], row_ptr[row + 1]):
            out[k] = weight[successor[k]]
            weight[successor[k]] = 0.0
        discount[row] = _rate_value(tau, 0.0, 0.0, 0.0, b, at_target, at_miss)


@compiled
def actions_reachable(
    pairs: IntArray,
    branch_ptr: IntArray,
    active: BoolArray,
    target: IndexArray,
    around: IntArray,
    low: FloatArray,
    high: FloatArray,
    near_ptr: IntArray,
    near: IndexArray,
    row_ptr: IntArray,
    successor: IndexArray,
    n_states: int,
    out: BoolArray,
) -> None:
    """`out`: `[nnz]` whether an active branch may reach the entry, for rows `pairs`."""
    mark = np.zeros(n_states, np.bool_)
    for row in pairs:
        for b in range(branch_ptr[row], branch_ptr[row + 1]):
            if active[b]:
                if low[b] < 1.0:
                    mark[target[b]] = True
                if high[b] > 0.0:
                    for k in range(near_ptr[around[b]], near_ptr[around[b] + 1]):
                        mark[near[k]] = True
        for k in range(row_ptr[row], row_ptr[row + 1]):
            out[k] = mark[successor[k]]
        for b in range(branch_ptr[row], branch_ptr[row + 1]):
            if active[b]:
                mark[target[b]] = False
                if high[b] > 0.0:
                    for k in range(near_ptr[around[b]], near_ptr[around[b] + 1]):
                        mark[near[k]] = False


@compiled
def actions_excess(
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
    n_states: int,
    probability: FloatArray,
    out: FloatArray,
) -> None:
    """`out`: `[N]` how far each row of `probability` `[nnz]` is from its branches.

    For a law that may be any: the mass outside the neighbourhood, or by how much the
    mass that must have been missed leaves its interval.  For the uniform law: the
    largest distance of an entry from the row whose τ fits the mass at the target best.
    """
    weight = np.zeros(n_states)
    inside = np.zeros(n_states, np.bool_)
    for row in range(branch_ptr.size - 1):
        for k in range(row_ptr[row], row_ptr[row + 1]):
            weight[successor[k]] = probability[k]
        nearest = np.inf
        for b in range(branch_ptr[row], branch_ptr[row + 1]):
            if not active[b]:
                continue
            x = target[b]
            first = 0
            last = 0
            even = True
            if around[b] >= 0:
                first = near_ptr[around[b]]
                last = near_ptr[around[b] + 1]
                even = uniform[around[b]]
            size = last - first
            for k in range(first, last):
                inside[near[k]] = True
            excess = 0.0  # mass neither at the target nor near it
            missed = 0.0  # mass that is not at the target
            for k in range(row_ptr[row], row_ptr[row + 1]):
                if successor[k] != x:
                    missed += probability[k]
                    if not inside[successor[k]]:
                        excess += probability[k]
            if not even:
                # A miss may itself land on the target, which hides it.
                excess = max(excess, missed - high[b])
                if not inside[x]:
                    excess = max(excess, low[b] - missed)
            else:
                tau = missed
                if inside[x] and size > 1:
                    tau *= size / (size - 1)
                tau = min(max(tau, low[b]), high[b])
                fair = tau / max(size, 1)
                for k in range(first, last):
                    if near[k] != x:
                        excess = max(excess, abs(weight[near[k]] - fair))
                kept = 1.0 - tau + fair if inside[x] else 1.0 - tau
                excess = max(excess, abs(weight[x] - kept))
            for k in range(first, last):
                inside[near[k]] = False
            nearest = min(nearest, excess)
        out[row] = nearest
        for k in range(row_ptr[row], row_ptr[row + 1]):
            weight[successor[k]] = 0.0


@compiled
def fill_rows(
    pairs: IntArray,
    chosen: IntArray,
    rates: FloatArray,
    share_ptr: IntArray,
    share: FloatArray,
    target: IndexArray,
    around: IntArray,
    near_ptr: IntArray,
    near: IndexArray,
    row_ptr: IntArray,
    successor: IndexArray,
    n_states: int,
    out: FloatArray,
) -> None:
    """`out`: `[nnz]` the rows `pairs` of branches `chosen` at `rates`, laws `share`.

    ``share[share_ptr[i] + k]`` is the part of a miss that goes to state ``k`` of the
    neighbourhood of branch ``chosen[i]``.
    """
    weight = np.zeros(n_states)
    for i in range(pairs.size):
        row = pairs[i]
        b = chosen[i]
        weight[target[b]] += 1.0 - rates[i]
        if around[b] >= 0:
            first = near_ptr[around[b]]
            for k in range(first, near_ptr[around[b] + 1]):
                weight[near[k]] += rates[i] * share[share_ptr[i] + k - first]
        for k in range(row_ptr[row], row_ptr[row + 1]):
            out[k] = weight[successor[k]]
            weight[successor[k]] = 0.0
