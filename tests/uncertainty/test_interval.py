"""Intervals: bounds from a radius or given, and what they must hold."""

from __future__ import annotations

import numpy as np
import pytest

import escapade as ep
from escapade.errors import InvalidInputError


@pytest.fixture
def cmdp():
    P = np.array([[[0.5, 0.5], [0.0, 1.0]], [[0.2, 0.8], [1.0, 0.0]]])
    flat = np.zeros((2, 2))
    return ep.CMDP(P, flat, flat, discount=0.9, budget=1.0)


def test_a_radius_is_clipped_to_probabilities(cmdp):
    bounds = ep.uncertainty.Interval(cmdp, 0.3, support="everywhere")
    np.testing.assert_allclose(bounds.lower, [0.2, 0.2, 0, 0.7, 0, 0.5, 0.7, 0])
    np.testing.assert_allclose(bounds.upper, [0.8, 0.8, 0.3, 1, 0.5, 1, 1, 0.3])
    worst = bounds.worst(np.array([1.0, 0.0]))
    np.testing.assert_allclose(worst, [0.8, 0.3, 0.5, 1.0])


def test_bounds_may_be_given_for_every_triple_or_every_entry(cmdp):
    low = np.array([[[0.4, 0.1], [0.0, 0.9]], [[0.0, 0.5], [0.6, 0.0]]])
    high = np.array([[[0.9, 0.6], [0.1, 1.0]], [[0.5, 1.0], [1.0, 0.4]]])
    triple = ep.uncertainty.Interval(cmdp, lower=low, upper=high, support="everywhere")
    assert triple.lower.tolist() == low.ravel().tolist()
    narrow = ep.uncertainty.Interval(cmdp, lower=low, upper=high)
    assert narrow.lower.tolist() == [0.4, 0.1, 0.9, 0.0, 0.5, 0.6]
    flat = ep.uncertainty.Interval(cmdp, lower=narrow.lower, upper=narrow.upper)
    v = np.array([2.0, -1.0])
    assert np.array_equal(flat.worst(v), narrow.worst(v))


def test_one_bound_leaves_the_other_side_open(cmdp):
    upper = ep.uncertainty.Interval(cmdp, upper=1.0)
    assert not upper.lower.any()
    lower = ep.uncertainty.Interval(cmdp, lower=0.0)
    assert (lower.upper == 1.0).all()


def test_what_lower_bounds_use_up_cannot_be_reached(cmdp):
    bounds = ep.uncertainty.Interval(
        cmdp, lower=[0.5, 0.5, 0.0, 1.0, 0.1, 0.5, 1.0, 0.0], support="everywhere"
    )
    assert bounds.reachable.tolist() == [True, True, False, True] + [True] * 3 + [False]


def test_membership_is_the_largest_break_of_a_bound(cmdp):
    bounds = ep.uncertainty.Interval(cmdp, 0.1)
    moved = bounds.nominal.copy()
    moved[:2] = [0.65, 0.35]
    np.testing.assert_allclose(bounds.excess(moved)[0], 0.05)
    assert bounds.contains(moved).tolist() == [False, True, True, True]


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        (
            {},
            "radius: expected either a radius or bounds (lower, upper), found neither",
        ),
        ({"radius": 0.1, "upper": 1.0}, "found both"),
        ({"radius": -0.1}, "radius: expected numbers in [0, 1], found -0.1"),
        (
            {"lower": 0.3},
            "lower: expected bounds that hold the nominal probability, at most 0.2, "
            "found 0.3 at state 1, action 0, next state 0",
        ),
        ({"upper": 0.9}, "upper: expected bounds that hold the nominal probability"),
        ({"upper": np.nan}, "found nan at state 0, action 0, next state 0"),
        ({"upper": np.ones(3)}, "upper: expected shape (S, A, S) or (6,)"),
        ({"upper": np.ones((3, 2, 3))}, "upper: expected shape (S, A, S)"),
    ],
)
def test_bad_bounds_are_refused(cmdp, keywords, message):
    with pytest.raises(InvalidInputError) as caught:
        ep.uncertainty.Interval(cmdp, **keywords)
    assert message in str(caught.value)
