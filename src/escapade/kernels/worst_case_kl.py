"""The worst case over rows whose relative entropy from the nominal is bounded.

For a nominal row ``p``, values ``z`` and a bound ρ the set is
``{q : Σ p ln(p/q) ≤ ρ}`` on a given support.  Lagrange duality leaves one variable,

    max q·z  =  min over ν ≥ max z of   ν − e^{−ρ} exp(Σ p ln(ν − z)),

and *every* such ν bounds the maximum from above, which is what certifies the answer:
the search for the best ν need not be trusted.  At the best ν the worst row is
``q ∝ p/(ν − z)`` on the nominal's support, and

    f(ν) = Σ p ln(ν − z) + ln Σ p/(ν − z)

equals ρ.  If the best value belongs to an entry of nominal mass 0 and f is below ρ
even at ν = max z, that ν is optimal and the entry gets the mass 1 − e^{f − ρ}.

The search runs in ``s``, with 1/(ν − p·z) = (1 − e^{−s})/(max z − p·z): √f is close to
linear in s near 0, and f itself is for large s, so Newton's method with a bracket
needs two or three steps.  Differences are taken from the mean p·z, so that a small ρ
loses no digits.  The result is widened by a bound on its rounding and never leaves
the range of z; ρ = ∞ (a pair never visited) gives max z.
"""

from __future__ import annotations

import math

import numba
import numpy as np

from escapade.kernels.compilation import compiled, compiled_parallel
from escapade.typing import FloatArray, IndexArray, IntArray

__all__ = ["kl_backup", "kl_backup_threads", "kl_kernel"]

_STEP = 1e-3
"""Newton stops after a relative step this small; the error is then its square, and the
error of the bound, which is flat there, the square of that."""

_FINE_STEP = 1e-8
"""The same where the row itself is wanted, whose entropy is not flat."""

_ROUNDS = 100
"""Far above what bracketed Newton needs; a cap, since any ν is a valid bound."""

_ULP = 2.0**-52

_NEAREST = 1.0 - _ULP
"""How near u may come to 1/(max z − p·z): the largest number below 1 that is safe."""

_SATURATED = 40.0
"""Beyond this s, 1 − e^{−s} is 1."""


@compiled
def _entropy(
    p: FloatArray,
    d: FloatArray,
    n: int,
    u: float,
) -> tuple[float, float, float]:
    """Return f, its derivative in u, and Σ p ln(1 − u d) for `p`, `d` `[≥n]`."""
    log_sum = 0.0  # Σ p (ln a + u d): the linear part is Σ p d = 0
    second = 0.0
    slope = 0.0
    for k in range(n):
        y = min(u * d[k], _NEAREST)
        a = 1.0 - y
        log_sum += p[k] * (math.log1p(-y) + y)
        w = p[k] * d[k] / a
        second += w * d[k]
        slope += w / a
    mean = 1.0 + u * u * second
    f = log_sum + math.log1p(u * u * second)
    return f, slope / mean - u * second, log_sum


@compiled
def _kl_row(
    p: FloatArray,
    z: FloatArray,
    n: int,
    best: float,
    rho: float,
    step: float,
) -> tuple[float, float, float, float]:
    """Row of `p`, `z` `[≥n]` (z is overwritten by z − mean), `best` the largest value.

    Newton stops after a relative step of ``step``.  Returns an upper bound on the
    maximum, and ``u``, ``s``, ``f`` at the answer.
    """
    mean = 0.0
    low = best
    for k in range(n):
        mean += p[k] * z[k]
        low = min(low, z[k])
    slack = 4.0 * (n + 8) * _ULP * (max(abs(low), abs(best)) + (best - low))
    spread = best - mean
    if not rho < np.inf or spread <= slack:
        return best, 0.0, np.inf, 0.0
    if rho <= 0.0:
        return min(best, mean + slack), 0.0, 0.0, 0.0
    m2 = 0.0
    m3 = 0.0
    top = low
    for k in range(n):
        top = max(top, z[k])
        d = z[k] - mean
        z[k] = d
        m2 += p[k] * d * d
        m3 += p[k] * d * d * d
    u_max = 1.0 / spread
    if best > top:
        f, _, log_sum = _entropy(p, z, n, u_max)
        if f <= rho:
            value = mean - spread * math.expm1(log_sum - rho)
            return min(best, value + slack), u_max, np.inf, f
    u = math.sqrt(2.0 * rho / m2) if m2 > 0.0 else u_max
    skew = 2.0 / 3.0 * u * m3 / m2 if m2 > 0.0 else 0.0
    if skew > -0.5:
        u /= 1.0 + skew
    s = u * spread
    target = math.sqrt(rho)
    below = 0.0
    above = np.inf
    f = 0.0
    for _ in range(_ROUNDS):
        u = -math.expm1(-s) * u_max
        f, slope, _ = _entropy(p, z, n, u)
        if f < rho:
            below = s
        else:
            above = s
        root = math.sqrt(f) if f > 0.0 else 0.0
        slope *= math.exp(-s) * u_max
        move = 2.0 * root * (target - root) / slope if slope > 0.0 else 0.0
        new = s + move
        if not below < new < above or move == 0.0:
            new = 0.5 * (below + above) if above < np.inf else 2.0 * s
            move = new - s
        s = new
        if abs(move) <= step * s or s > _SATURATED:
            break
    u = -math.expm1(-s) * u_max
    if u <= 0.0:
        return best, u_max, np.inf, f
    u = min(u, u_max * _NEAREST)
    f, _, log_sum = _entropy(p, z, n, u)
    value = mean - math.expm1(log_sum - rho) / u
    return min(best, value + slack), u, s, f


@compiled
def _row_values(
    row: int,
    seen_ptr: IntArray,
    seen: IndexArray,
    nominal: FloatArray,
    unseen_ptr: IntArray,
    unseen: IndexArray,
    best: float,
    v: FloatArray,
    sign: float,
    z: FloatArray,
    p: FloatArray,
) -> tuple[int, float]:
    """Gather a row into `z`, `p`; returns its length and the best value in reach."""
    first = seen_ptr[row]
    n = seen_ptr[row + 1] - first
    for k in range(n):
        z[k] = sign * v[seen[first + k]]
        p[k] = nominal[first + k]
        best = max(best, z[k])
    if unseen_ptr.size:
        for k in range(unseen_ptr[row], unseen_ptr[row + 1]):
            best = max(best, sign * v[unseen[k]])
    return n, best


@compiled
def _best_of_all(
    all_states: bool,
    v: FloatArray,
    sign: float,
) -> float:
    best = -np.inf
    if all_states:
        for s in range(v.size):
            best = max(best, sign * v[s])
    return best


@compiled
def _kl_rows(
    first: int,
    last: int,
    seen_ptr: IntArray,
    seen: IndexArray,
    nominal: FloatArray,
    unseen_ptr: IntArray,
    unseen: IndexArray,
    everywhere: float,
    rho: FloatArray,
    immediate: FloatArray,
    gamma: float,
    v: FloatArray,
    sign: float,
    out: FloatArray,
) -> None:
    """Rows `first` to `last`; see :func:`kl_backup` for the shapes."""
    longest = 1
    for row in range(first, last):
        longest = max(longest, seen_ptr[row + 1] - seen_ptr[row])
    z = np.empty(longest)
    p = np.empty(longest)
    for row in range(first, last):
        n, best = _row_values(
            row, seen_ptr, seen, nominal, unseen_ptr, unseen, everywhere, v, sign, z, p
        )
        worst, _, _, _ = _kl_row(p, z, n, best, rho[row], _STEP)
        worst *= sign
        out[row] = immediate[row] + gamma * worst if immediate.size else worst


@compiled
def kl_backup(
    seen_ptr: IntArray,
    seen: IndexArray,
    nominal: FloatArray,
    unseen_ptr: IntArray,
    unseen: IndexArray,
    all_states: bool,
    rho: FloatArray,
    immediate: FloatArray,
    gamma: float,
    v: FloatArray,
    sign: float,
    out: FloatArray,
) -> None:
    """`out`: `[N]` = immediate `[N]` (or `[0]`: none) + γ · worst of P·v, v `[S]`.

    `seen_ptr`: `[N+1]`, `seen`, `nominal`: `[nnz]` entries of positive mass;
    `unseen_ptr`: `[N+1]` or `[0]`, `unseen`: the others; `rho`: `[N]`; ``sign`` 1:
    maximum, −1: minimum.
    """
    _kl_rows(
        0,
        rho.size,
        seen_ptr,
        seen,
        nominal,
        unseen_ptr,
        unseen,
        _best_of_all(all_states, v, sign),
        rho,
        immediate,
        gamma,
        v,
        sign,
        out,
    )


@compiled_parallel
def kl_backup_threads(
    seen_ptr: IntArray,
    seen: IndexArray,
    nominal: FloatArray,
    unseen_ptr: IntArray,
    unseen: IndexArray,
    all_states: bool,
    rho: FloatArray,
    immediate: FloatArray,
    gamma: float,
    v: FloatArray,
    sign: float,
    out: FloatArray,
    chunks: int,
) -> None:
    """Shapes as in :func:`kl_backup`, the same bits; `chunks`: pieces of work."""
    everywhere = _best_of_all(all_states, v, sign)
    rows = rho.size
    for c in numba.prange(chunks):
        _kl_rows(
            rows * c // chunks,
            rows * (c + 1) // chunks,
            seen_ptr,
            seen,
            nominal,
            unseen_ptr,
            unseen,
            everywhere,
            rho,
            immediate,
            gamma,
            v,
            sign,
            out,
        )


@compiled
def kl_kernel(
    row_ptr: IntArray,
    successor: IndexArray,
    nominal: FloatArray,
    rho: FloatArray,
    v: FloatArray,
    sign: float,
    out: FloatArray,
) -> None:
    """`out`: `[nnz]` a kernel that attains the worst case, zeros of `nominal` included.

    What is left of rounding is mended by mixing a row with the nominal one until its
    relative entropy, which is convex, is within `rho` `[N]`.
    """
    for row in range(row_ptr.size - 1):
        first = row_ptr[row]
        n = row_ptr[row + 1] - first
        z = np.empty(n)
        p = np.empty(n)
        best = -np.inf
        at = 0
        for k in range(n):
            z[k] = sign * v[successor[first + k]]
            p[k] = nominal[first + k]
            if z[k] > best:
                best = z[k]
                at = k
        mean = 0.0
        for k in range(n):
            mean += p[k] * z[k]
        compact_p = np.empty(n)
        compact_z = np.empty(n)
        seen = 0
        for k in range(n):
            if p[k] > 0.0:
                compact_p[seen] = p[k]
                compact_z[seen] = z[k]
                seen += 1
        if not rho[row] < np.inf:
            for k in range(n):
                out[first + k] = 0.0
            out[first + at] = 1.0
            continue
        _, u, s, f = _kl_row(compact_p, compact_z, seen, best, rho[row], _FINE_STEP)
        if u == 0.0:  # nothing to gain, or nothing allowed
            for k in range(n):
                out[first + k] = p[k]
            continue
        total = 0.0
        for k in range(n):
            out[first + k] = 0.0
            if p[k] > 0.0:
                out[first + k] = p[k] / (1.0 - min(u * (z[k] - mean), _NEAREST))
            total += out[first + k]
        keep = math.exp(f - rho[row]) if s == np.inf else 1.0
        for k in range(n):
            out[first + k] *= keep / total
        out[first + at] += 1.0 - keep
        if s < np.inf and f > rho[row]:
            inward = rho[row] / f
            for k in range(n):
                out[first + k] = inward * out[first + k] + (1.0 - inward) * p[k]
