r"""Radii of confidence sets for a fixed number of visits.

How far may an empirical distribution or mean be from the truth after n visits, with
probability at most δ of being further?

Weissman
    :math:`\|\hat P_{sa} - P_{sa}\|_1 \le \sqrt{\tfrac{2}{n} \ln(2^S S A/\delta)}` for
    all S·A pairs at once.  The paper has 1 − δ in place of δ (E30), which makes the
    set *smaller* the more certain it should be.
Hoeffding
    :math:`|\hat\mu - \mu| \le M \sqrt{\ln(2/\delta) / (2n)}` for samples in [0, M].
Bernstein
    :math:`|\hat\mu - \mu| \le \sqrt{2 \mathscr{V} \ln(2/\delta)/n} + 2 M \ln(2/\delta)
    / (3n)` for variances of at most :math:`\mathscr{V}`.

They hold for a number of visits that was fixed beforehand; radii that hold at all times
at once are in :mod:`escapade.theory.concentration`.  Without visits a radius is the
whole range: 2 for L1 distances, M for means.
"""

from __future__ import annotations

import math

import numpy as np

from escapade.theory.arguments import (
    read_amount,
    read_count,
    read_positive,
    read_probability,
    read_visits,
)
from escapade.typing import ArrayLike, FloatArray

__all__ = [
    "bernstein_radius",
    "hoeffding_radius",
    "weissman_radius",
    "weissman_radius_as_printed",
]


def _weissman(
    visits: ArrayLike, n_states: int, n_pairs: int, failure: float
) -> FloatArray:
    counts = read_visits(visits)
    states = read_count("n_states", n_states)
    pairs = read_count("n_pairs", n_pairs)
    logarithm = states * math.log(2.0) + math.log(pairs) - math.log(failure)
    with np.errstate(divide="ignore", over="ignore"):
        return np.minimum(np.sqrt(2.0 * logarithm / counts), 2.0)


def weissman_radius(
    visits: ArrayLike, *, n_states: int, n_pairs: int, delta: float
) -> FloatArray:
    """Return the L1 radius of each pair after ``visits`` visits; at most 2.

    Parameters
    ----------
    visits
        n, one count a pair (any shape).
    n_states
        S, or the number of possible successors where that is known.
    n_pairs
        Number of pairs that δ is shared by, S·A.
    delta
        Probability that any of the pairs is outside its radius.
    """
    return _weissman(visits, n_states, n_pairs, read_probability("delta", delta))


def weissman_radius_as_printed(
    visits: ArrayLike, *, n_states: int, n_pairs: int, delta: float
) -> FloatArray:
    """Return the paper's radius, with 1 − δ for δ (E30)."""
    return _weissman(visits, n_states, n_pairs, 1.0 - read_probability("delta", delta))


def hoeffding_radius(visits: ArrayLike, *, maximum: float, delta: float) -> FloatArray:
    """Return the radius of a mean of samples in ``[0, maximum]``.

    Parameters
    ----------
    visits
        n, one count a mean (any shape).
    maximum
        M.
    delta
        Probability of being further from the mean, on either side.
    """
    counts = read_visits(visits)
    top = read_positive("maximum", maximum)
    logarithm = math.log(2.0) - math.log(read_probability("delta", delta))
    with np.errstate(divide="ignore", over="ignore"):
        return np.minimum(top * np.sqrt(logarithm / (2.0 * counts)), top)


def bernstein_radius(
    visits: ArrayLike, *, maximum: float, variance: float, delta: float
) -> FloatArray:
    """Return the radius of a mean of samples of at most a known variance.

    Parameters
    ----------
    visits, maximum, delta
        As in :func:`hoeffding_radius`.
    variance
        Largest variance of one sample.
    """
    counts = read_visits(visits)
    top = read_positive("maximum", maximum)
    spread = read_amount("variance", variance)
    logarithm = math.log(2.0) - math.log(read_probability("delta", delta))
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        radius = np.sqrt(2.0 * spread * logarithm / counts)
        radius += 2.0 * top * logarithm / (3.0 * counts)
    return np.minimum(np.where(counts > 0.0, radius, top), top)
