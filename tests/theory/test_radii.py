"""Radii for a fixed number of visits: formulas, borders, and coverage."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from escapade.errors import InvalidInputError
from escapade.theory.radii import (
    bernstein_radius,
    hoeffding_radius,
    weissman_radius,
    weissman_radius_as_printed,
)

deltas = st.floats(1e-6, 0.99)


@given(n=st.integers(1, 10**9), states=st.integers(1, 50), delta=deltas)
def test_weissman_inverts_its_tail(n, states, delta):
    radius = weissman_radius(n, n_states=states, n_pairs=7, delta=delta)
    if radius < 2.0:
        tail = 7 * 2.0**states * math.exp(-n * radius**2 / 2)
        assert tail == pytest.approx(delta, rel=1e-6)


@given(n=st.integers(1, 10**9), top=st.floats(0.1, 100.0), delta=deltas)
def test_hoeffding_inverts_its_tail(n, top, delta):
    radius = hoeffding_radius(n, maximum=top, delta=delta)
    if radius < top:
        assert 2 * math.exp(-2 * n * (radius / top) ** 2) == pytest.approx(delta)


@given(
    n=st.integers(1, 10**9),
    top=st.floats(0.1, 100.0),
    variance=st.floats(0.0, 100.0),
    delta=deltas,
)
def test_bernstein_is_no_less_than_the_root_of_its_tail(n, top, variance, delta):
    radius = float(bernstein_radius(n, maximum=top, variance=variance, delta=delta))
    if radius < top:
        exponent = n * radius**2 / (2 * (variance + top * radius / 3))
        assert 2 * math.exp(-exponent) <= delta * (1 + 1e-9)


def test_without_visits_the_radius_is_the_whole_range():
    assert weissman_radius(0, n_states=3, n_pairs=1, delta=0.1) == 2.0
    assert hoeffding_radius(0, maximum=3.0, delta=0.1) == 3.0
    assert bernstein_radius(0, maximum=3.0, variance=1.0, delta=0.1) == 3.0
    assert bernstein_radius(0, maximum=3.0, variance=0.0, delta=0.1) == 3.0


def test_one_radius_a_count():
    counts = np.array([[0, 10], [1000, 100_000]])
    found = hoeffding_radius(counts, maximum=1.0, delta=0.05)
    assert found.shape == counts.shape
    assert (np.diff(found.ravel()) < 0).all()


def test_little_variance_makes_bernstein_the_smaller():
    at = {"maximum": 1.0, "delta": 0.05}
    assert bernstein_radius(10_000, variance=1e-4, **at) < hoeffding_radius(
        10_000, **at
    )


@given(delta=st.floats(1e-6, 0.49))
def test_the_printed_radius_shrinks_with_certainty(delta):
    at = {"n_states": 4, "n_pairs": 8}

    def printed(share):
        return weissman_radius_as_printed(10_000, delta=share, **at)

    assert printed(delta / 2) < printed(delta)
    assert printed(delta) < weissman_radius(10_000, delta=delta, **at)
    assert printed(delta) == weissman_radius(10_000, delta=1 - delta, **at)


@pytest.mark.statistical
def test_weissman_covers():
    # Each of 4000 rows is missed with probability at most .2: more than 1000 misses
    # have probability below 1e-12.
    rng = np.random.default_rng(3)
    row = np.array([0.5, 0.3, 0.2])
    n = 60
    found = rng.multinomial(n, row, size=4000) / n
    radius = weissman_radius(n, n_states=3, n_pairs=1, delta=0.2)
    misses = (np.abs(found - row).sum(axis=1) > radius).sum()
    assert 0 < misses <= 1000


@pytest.mark.statistical
@pytest.mark.parametrize("rate", [0.5, 0.02])
def test_means_are_covered(rate):
    # As above, with 5000 means and δ = .1: more than 700 have probability below 1e-12.
    rng = np.random.default_rng(4)
    n = 200
    off = np.abs(rng.binomial(n, rate, size=5000) / n - rate)
    at = {"maximum": 1.0, "delta": 0.1}
    assert (off > hoeffding_radius(n, **at)).sum() <= 700
    variance = rate * (1 - rate)
    assert (off > bernstein_radius(n, variance=variance, **at)).sum() <= 700


def test_counts_below_zero_are_refused():
    with pytest.raises(InvalidInputError, match=r"^visits: .* -1 at position 2"):
        hoeffding_radius([0, 1, -1], maximum=1.0, delta=0.1)
