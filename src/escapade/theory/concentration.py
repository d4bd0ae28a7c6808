r"""Radii around an empirical row or mean: for one sample size, or for all at once.

Every radius here takes ``delta``, the probability of *any* failure, and ``families``,
the number F of rows or means that share it (a union bound).

For one number of visits n, fixed beforehand
    *Weissman*: the L1 distance of an empirical row on m successors exceeds ε with
    probability at most :math:`(2^m - 2) e^{-n ε^2/2}`.
    *Empirical Bernstein* (Maurer and Pontil): a mean of samples in [0, M] with sample
    variance V is off by at most
    :math:`\sqrt{2 V \ln(4/δ)/n} + 7 M \ln(4/δ) / (3(n-1))`.

For all n at once, however the visits were chosen
    *KT*: with :math:`\mathrm{KT}(N) = \frac{Γ(m/2)}{Γ(n+m/2)} \prod_i
    \frac{Γ(N_i+1/2)}{Γ(1/2)}`, the Dirichlet(½) mixture likelihood of the counts, the
    ratio KT/likelihood is a martingale of mean 1 under the true row, so by Ville's
    inequality it ever exceeds F/δ with probability at most δ/F.  Hence, for all n,
    :math:`n\,\mathrm{KL}(\hat p \| p) \le \ln(F/δ) + \sum_i N_i \ln(N_i/n) -
    \ln \mathrm{KT}(N)`.
    *Hoeffding mixture*: a sum of n centred samples in [0, 1] stays within
    :math:`\tfrac12 \sqrt{(n+ρ) \ln((n+ρ)/(ρ δ^2))}` (method of mixtures with a normal
    prior of precision ρ).
    *Any fixed-n radius* becomes valid for all n with δ/(n(n+1)) for δ, since these
    sum to δ: :func:`spread_over_time`.

m is the number of successors that are *possible*; where that is not known it is S.
A row or mean without visits has the whole range as its radius.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import gammaln, rel_entr, xlogy

from escapade.errors import refusal
from escapade.model.arguments import read_numbers
from escapade.theory.arguments import (
    LARGEST_AMOUNT,
    check_each,
    read_amount,
    read_positive,
    read_visits,
)
from escapade.typing import ArrayLike, FloatArray, IntArray

__all__ = [
    "bernoulli_kl_bounds",
    "empirical_bernstein_radius",
    "entry_radius",
    "hoeffding_mixture_radius",
    "kt_budget",
    "kt_excess",
    "log_kt",
    "relative_entropy",
    "row_radius",
    "spread_over_time",
]


def _share(delta: ArrayLike, families: float) -> FloatArray:
    expected = "a probability in (0, 1)"
    shared = read_numbers("delta", delta, expected)
    check_each("delta", shared, expected, (shared > 0.0) & (shared < 1.0))
    number = read_positive("families", families)
    if number < 1.0:
        raise refusal("families", "a number of at least 1", number)
    part: FloatArray = shared / number
    return part


def _sizes(support_size: ArrayLike) -> FloatArray:
    expected = "whole numbers of at least 1"
    m = read_numbers("support_size", support_size, expected)
    good = (m >= 1.0) & (m == np.floor(m)) & (m < 2.0**62)
    return check_each("support_size", m, expected, good)


def spread_over_time(delta: float, visits: ArrayLike) -> FloatArray:
    """Return δ/(n(n+1)) for each count n ≥ 1, and δ where there are no visits.

    A bound that holds for each fixed n with this δ holds for all n at once with δ.
    """
    n = read_visits(visits)
    _share(delta, 1.0)
    spread: FloatArray = delta / np.maximum(n * (n + 1.0), 1.0)
    return spread


def row_radius(
    visits: ArrayLike, support_size: ArrayLike, *, delta: ArrayLike, families: float = 1
) -> FloatArray:
    """Return Weissman's L1 radius of rows with their own number of successors.

    Parameters
    ----------
    visits
        n of each row.
    support_size
        m of each row; a row with one possible successor has radius 0.
    delta, families
        Probability of any failure, and the number of rows that share it.
    """
    n = read_visits(visits)
    m = _sizes(support_size)
    # ln(2^m − 2) without overflow; −inf for m = 1, where nothing can be wrong
    with np.errstate(divide="ignore"):
        subsets = m * math.log(2.0) + np.log1p(-np.exp2(1.0 - m))
        logarithm = np.maximum(subsets - np.log(_share(delta, families)), 0.0)
        radius = np.sqrt(2.0 * logarithm / np.maximum(n, 1.0))
    radius = np.where(n > 0.0, np.minimum(radius, 2.0), 2.0)
    result: FloatArray = np.where(m <= 1.0, 0.0, radius)
    return result


def entry_radius(
    visits: ArrayLike, *, delta: ArrayLike, families: float = 1
) -> FloatArray:
    """Return Hoeffding's radius of single probabilities, two-sided, at most 1."""
    n = read_visits(visits)
    logarithm = math.log(2.0) - np.log(_share(delta, families))
    radius: FloatArray = np.where(
        n > 0.0, np.minimum(np.sqrt(logarithm / (2.0 * np.maximum(n, 1.0))), 1.0), 1.0
    )
    return radius


def empirical_bernstein_radius(
    visits: ArrayLike,
    variance: ArrayLike,
    *,
    maximum: float = 1.0,
    delta: ArrayLike,
    families: float = 1,
) -> FloatArray:
    """Return the radius of means whose variance was measured on the same samples.

    Parameters
    ----------
    visits
        n of each mean; with fewer than two the radius is ``maximum``.
    variance
        Sample variance of each, with n − 1 in the denominator.
    maximum
        Samples lie in ``[0, maximum]``.
    delta, families
        Probability of any failure on either side, and the number of means.
    """
    n = read_visits(visits)
    expected = "finite numbers of at least 0"
    measured = read_numbers("variance", variance, expected)
    top = read_amount("maximum", maximum)
    good = (measured >= 0.0) & np.isfinite(measured)
    check_each("variance", measured, expected, good)
    fewer = f"numbers of at most {LARGEST_AMOUNT:g}"
    check_each("variance", measured, fewer, measured <= LARGEST_AMOUNT)
    logarithm = math.log(4.0) - np.log(_share(delta, families))
    spread = np.sqrt(2.0 * measured * logarithm / np.maximum(n, 1.0))
    radius = spread + 7.0 * top * logarithm / (3.0 * np.maximum(n - 1.0, 1.0))
    result: FloatArray = np.where(n > 1.0, np.minimum(radius, top), top)
    return result


def hoeffding_mixture_radius(
    visits: ArrayLike,
    *,
    maximum: float = 1.0,
    delta: ArrayLike,
    families: float = 1,
    rho: float = 1.0,
) -> FloatArray:
    """Return the radius of means of samples in ``[0, maximum]``, valid for all n.

    ``rho`` is the precision of the mixture's prior, in visits.  Compared with the
    radius of a fixed number of visits the radius is tightest near
    n = ρ (L + ln(1 + L)) with L = 2 ln(F/δ), about 8 ρ for a share of 5 %.
    """
    n = read_visits(visits)
    precision = read_positive("rho", rho)
    with np.errstate(over="ignore"):  # a prior that is next to nothing
        spread = np.log1p(n / precision)
    logarithm = spread - 2.0 * np.log(_share(delta, families))
    total = 0.5 * np.sqrt((n + precision) * logarithm)
    radius: FloatArray = read_amount("maximum", maximum) * np.where(
        n > 0.0, np.minimum(total / np.maximum(n, 1.0), 1.0), 1.0
    )
    return radius


def _row_sums(values: FloatArray, row_ptr: IntArray) -> FloatArray:
    rows = np.repeat(np.arange(row_ptr.size - 1), np.diff(row_ptr))
    sums: FloatArray = np.bincount(
        rows, weights=values, minlength=row_ptr.size - 1
    ).astype(np.float64)
    return sums


def log_kt(
    counts: ArrayLike, row_ptr: IntArray, *, support_size: ArrayLike
) -> FloatArray:
    r"""Return :math:`\ln \mathrm{KT}(N)` of each row of counts.

    Parameters
    ----------
    counts
        Counts of all rows, one after the other; entries that never occurred may be
        left out.
    row_ptr
        ``[rows + 1]`` where each row begins.
    support_size
        m of each row: how many successors are possible, seen or not.
    """
    N = read_visits(counts)
    n = _row_sums(N, row_ptr)
    m = _sizes(support_size)
    single: FloatArray = np.asarray(gammaln(N + 0.5) - gammaln(0.5), dtype=np.float64)
    entries = _row_sums(single, row_ptr)
    result: FloatArray = gammaln(0.5 * m) - gammaln(n + 0.5 * m) + entries
    return result


def kt_excess(
    counts: ArrayLike, row_ptr: IntArray, *, support_size: ArrayLike
) -> FloatArray:
    r"""Return :math:`R(N) = \sum_i N_i \ln(N_i/n) - \ln \mathrm{KT}(N)`, at least 0."""
    N = read_visits(counts)
    n = _row_sums(N, row_ptr)
    terms: FloatArray = np.asarray(xlogy(N, N), dtype=np.float64)
    likelihood = _row_sums(terms, row_ptr) - xlogy(n, n)
    mixture = log_kt(N, row_ptr, support_size=support_size)
    result: FloatArray = np.maximum(likelihood - mixture, 0.0)
    return result


def kt_budget(
    counts: ArrayLike,
    row_ptr: IntArray,
    *,
    support_size: ArrayLike,
    delta: ArrayLike,
    families: float = 1,
) -> FloatArray:
    r"""Return what :math:`n\,\mathrm{KL}(\hat p \| p)` may be, for all n at once.

    Parameters are those of :func:`log_kt`; ``delta`` is the probability that any of
    the ``families`` rows or means ever leaves its set.
    """
    excess = kt_excess(counts, row_ptr, support_size=support_size)
    budget: FloatArray = excess - np.log(_share(delta, families))
    return budget


def relative_entropy(p: ArrayLike, q: ArrayLike, row_ptr: IntArray) -> FloatArray:
    r"""Return :math:`\mathrm{KL}(p \| q) = \sum_i p_i \ln(p_i/q_i)` of each row."""
    P, Q = read_numbers("p", p), read_numbers("q", q)
    result: FloatArray = np.maximum(_row_sums(rel_entr(P, Q), row_ptr), 0.0)
    return result


def bernoulli_kl_bounds(
    mean: ArrayLike, radius: ArrayLike
) -> tuple[FloatArray, FloatArray]:
    r"""Return the least and largest q with :math:`\mathrm{kl}(\hat p \| q) \le ρ`.

    kl is the relative entropy of two coins, which is also a valid bound for means of
    any samples in [0, 1].  ``radius`` is ρ, a budget divided by the visits (infinite
    without visits).  Bisection on both sides; the results are rounded outwards.
    """
    means = read_numbers("mean", mean, "numbers in [0, 1]")
    radii = read_numbers("radius", radius, "numbers of at least 0")
    check_each("mean", means, "numbers in [0, 1]", (means >= 0.0) & (means <= 1.0))
    check_each("radius", radii, "numbers of at least 0", radii >= 0.0)
    p, rho = np.broadcast_arrays(means, radii)

    def kl(q: FloatArray) -> FloatArray:
        with np.errstate(divide="ignore", invalid="ignore"):
            heads = np.where(p > 0.0, p * np.log(p / q), 0.0)
            tails = np.where(p < 1.0, (1.0 - p) * np.log((1.0 - p) / (1.0 - q)), 0.0)
        result: FloatArray = heads + tails
        return result

    bounds = []
    for end in (0.0, 1.0):
        inside, outside = p.copy(), np.full(p.shape, end)
        for _ in range(60):
            middle = 0.5 * (inside + outside)
            holds = kl(middle) <= rho
            inside = np.where(holds, middle, inside)
            outside = np.where(holds, outside, middle)
        bounds.append(np.where(kl(np.full(p.shape, end)) <= rho, end, outside))
    return bounds[0], bounds[1]
