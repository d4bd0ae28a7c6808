"""L1 balls cut by bounds: members, emptiness, copies.

The extremes are held to linear programs in the tests of the interval kernels.
"""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import escapade as ep
from escapade.errors import InvalidInputError
from escapade.testing import check_uncertainty_set
from escapade.uncertainty import Interval, L1Ball
from escapade.uncertainty.boxed_ball import BoxedBall


def _cmdp(seed=0, concentration=0.7):
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.full(4, concentration), (4, 2))
    P[P < 0.1] = 0.0
    P /= P.sum(axis=2, keepdims=True)
    flat = rng.random((4, 2))
    return ep.CMDP(P, flat, flat, discount=0.9, budget=5.0)


@pytest.mark.parametrize("support", [None, "everywhere"])
@pytest.mark.parametrize("radius", [0.0, 0.3, 2.0])
def test_cut_balls_pass_the_conformance_suite(support, radius):
    cmdp = _cmdp()
    ball = L1Ball(cmdp, radius, support=support)
    box = Interval(cmdp, 0.12, support=support)
    cut = BoxedBall(ball, box)
    check_uncertainty_set(cut, cmdp, draws=6)
    rng = np.random.default_rng(1)
    for _ in range(20):
        member = cut.sample(rng)
        assert ball.contains(member, tolerance=1e-12).all()
        assert box.contains(member, tolerance=1e-12).all()


def test_bounds_that_miss_the_centre_are_met_nearby():
    """The ball is around one problem, the box around another."""
    here, there = _cmdp(0), _cmdp(5)
    ball = L1Ball(here, 2.0, support="everywhere")
    box = Interval(there, 0.05, support="everywhere")
    cut = BoxedBall(ball, box)
    check_uncertainty_set(cut, here, draws=6)
    assert not box.contains(ball.nominal).all()
    v = np.arange(4.0)
    # a ball that reaches everywhere cuts nothing off
    np.testing.assert_allclose(cut.worst(v), box.worst(v), atol=1e-12)
    middle = np.abs(ball.nominal - box.nominal).reshape(8, 4).sum(axis=1)
    near = BoxedBall(L1Ball(here, np.minimum(middle, 2.0), support="everywhere"), box)
    assert np.all(near.worst(v) <= cut.worst(v) + 1e-12)
    assert near.contains(near.nominal).all()


def test_membership_is_the_worse_of_both_measures():
    cmdp = _cmdp()
    ball, box = L1Ball(cmdp, 0.3), Interval(cmdp, 0.12)
    cut = BoxedBall(ball, box)
    rng = np.random.default_rng(2)
    for _ in range(10):
        row = ball.sample(rng)
        expected = np.maximum(ball.excess(row), box.excess(row))
        np.testing.assert_allclose(cut.excess(row), expected, atol=1e-15)


def test_entries_of_one_part_alone_are_closed():
    """What the box does not list has probability 0, and counts as moved."""
    cmdp = _cmdp()
    cut = BoxedBall(L1Ball(cmdp, 0.5, support="everywhere"), Interval(cmdp, 0.3))
    closed = cut.nominal == 0.0
    assert not cut.reachable[closed].any()
    narrow = BoxedBall(L1Ball(cmdp, 0.5), Interval(cmdp, 0.3, support="everywhere"))
    v = np.array([1.0, -3.0, 0.5, 2.0])
    np.testing.assert_allclose(narrow.worst(v), cut.worst(v), atol=1e-14)


def test_a_ball_and_bounds_without_a_common_row_are_refused():
    here, there = _cmdp(0), _cmdp(5)
    box = Interval(there, 0.01, support="everywhere")
    with pytest.raises(InvalidInputError, match="a row in common, found none at state"):
        BoxedBall(L1Ball(here, 0.1, support="everywhere"), box)
    with pytest.raises(InvalidInputError, match="a row in common"):
        BoxedBall(L1Ball(here, 2.0), box)


def test_copies_and_gains():
    cmdp = _cmdp()
    cut = BoxedBall(L1Ball(cmdp, 0.3), Interval(cmdp, 0.12))
    v, gain = np.array([1.0, -3.0, 0.5, 2.0]), np.arange(8.0)
    for sense in ("min", "max"):
        plain = cut.worst(v, sense=sense)
        backed = cut.backup(v, gain, 0.5, sense=sense)
        np.testing.assert_allclose(backed, gain + 0.5 * plain, atol=1e-15)
        copy = pickle.loads(pickle.dumps(cut))
        assert np.array_equal(copy.worst(v, sense=sense), plain)
        pairs = np.array([3, 3, 0])
        starts, ends = cut.row_ptr[pairs], cut.row_ptr[pairs + 1]
        own = zip(starts, ends, strict=True)
        target = np.concatenate([2 * cut.successor[a:b] for a, b in own])
        lifted = cut.lift(pairs, target, 8)
        np.testing.assert_allclose(
            lifted.worst(np.repeat(v, 2), sense=sense), plain[pairs], atol=1e-15
        )
