"""Balls of relative entropy: members, and radii without end."""

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


def test_membership_is_the_entropy_that_is_left(cmdp):
    ball = ep.uncertainty.KLBall(cmdp, radius=0.1, support="everywhere")
    moved = np.array([0.25, 0.75, 0.1, 0.9, 0.2, 0.8, 1.0, 0.0])
    expected = [0.5 * np.log(4 / 3) - 0.1, -np.log(0.9) - 0.1, -0.1, -0.1]
    np.testing.assert_allclose(ball.excess(moved), expected)


def test_losing_a_seen_successor_is_infinitely_far(cmdp):
    ball = ep.uncertainty.KLBall(cmdp, radius=50.0)
    lost = ball.nominal.copy()
    lost[:2] = [0.0, 1.0]
    assert np.isinf(ball.excess(lost)[0])


def test_an_infinite_radius_allows_every_row_on_the_support(cmdp):
    ball = ep.uncertainty.KLBall(cmdp, [np.inf, 0.1, 0.1, 0.1])
    lost = ball.nominal.copy()
    lost[:2] = [0.0, 1.0]
    assert ball.contains(lost).all()
    assert ball.worst(np.array([0.0, 1.0]))[0] == 1.0
    assert not ball.contains(np.array([0.4, 0.4, 1.0, 0.2, 0.8, 1.0]))[0]


def test_a_radius_opens_the_support(cmdp):
    mask = np.ones((2, 2, 2), dtype=bool)
    closed = ep.uncertainty.KLBall(cmdp, 0.0, support=mask)
    assert np.array_equal(closed.reachable, closed.nominal > 0)
    assert ep.uncertainty.KLBall(cmdp, 1e-6, support=mask).reachable.all()


def test_shrinking_an_infinite_radius(cmdp):
    ball = ep.uncertainty.KLBall(cmdp, np.inf)
    assert np.isinf(ball.shrink(0.5).radius).all()
    assert not ball.shrink(0.0).radius.any()


@pytest.mark.parametrize("radius", [-1e-9, np.nan])
def test_bad_radii_are_refused(cmdp, radius):
    with pytest.raises(InvalidInputError, match="radius: expected numbers of at least"):
        ep.uncertainty.KLBall(cmdp, radius)
