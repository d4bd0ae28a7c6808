"""L1 balls: what they are built from, who is a member, what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import escapade as ep
from escapade.errors import AssumptionError, InvalidInputError


@pytest.fixture
def cmdp():
    P = np.zeros((3, 2, 3))
    P[0, 0] = [0.5, 0.5, 0.0]
    P[0, 1] = [0.0, 1.0, 0.0]
    P[1, :] = [0.2, 0.3, 0.5]
    P[2, :] = [0.0, 0.0, 1.0]
    flat = np.zeros((3, 2))
    return ep.CMDP(P, flat, flat, discount=0.9, budget=1.0)


def test_worst_case_by_hand(cmdp):
    ball = ep.uncertainty.L1Ball(cmdp, radius=0.4)
    v = np.array([0.0, 1.0, 10.0])
    expected = [0.7, 1.0, 7.3, 7.3, 10.0, 10.0]
    np.testing.assert_allclose(ball.worst(v), expected, atol=1e-15)
    everywhere = ep.uncertainty.L1Ball(cmdp, radius=0.4, support="everywhere")
    expected = [2.5, 2.8, 7.3, 7.3, 10.0, 10.0]
    np.testing.assert_allclose(everywhere.worst(v), expected, atol=1e-15)
    kernel = everywhere.worst_kernel(v).reshape(6, 3)
    np.testing.assert_allclose(kernel[0], [0.3, 0.5, 0.2], atol=1e-15)


def test_radii_may_differ_by_pair(cmdp):
    grid = np.arange(6.0).reshape(3, 2) / 10
    ball = ep.uncertainty.L1Ball(cmdp, grid)
    assert ball.radius.tolist() == grid.ravel().tolist()
    assert not ball.radius.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        ball.radius[0] = 1.0


def test_membership_is_the_distance(cmdp):
    ball = ep.uncertainty.L1Ball(cmdp, radius=0.4, support="everywhere")
    moved = ball.nominal.reshape(6, 3).copy()
    moved[0] = [0.3, 0.5, 0.2]  # at a distance of 0.4
    moved[1] = [0.0, 0.5, 0.5]  # at a distance of 1
    excess = ball.excess(moved.ravel())
    np.testing.assert_allclose(excess, [0.0, 0.6, -0.4, -0.4, -0.4, -0.4], atol=1e-15)
    assert ball.contains(moved.ravel()).tolist() == [True, False, *[True] * 4]


def test_what_is_no_distribution_is_no_member(cmdp):
    ball = ep.uncertainty.L1Ball(cmdp, radius=2.0)
    short = ball.nominal.copy()
    short[0] -= 0.1
    assert not ball.contains(short)[0]
    negative = ball.nominal.copy()
    negative[:2] = [-0.5, 1.5]
    assert not ball.contains(negative)[0]


def test_a_radius_opens_the_support(cmdp):
    mask = np.ones((3, 2, 3), dtype=bool)
    closed = ep.uncertainty.L1Ball(cmdp, 0.0, support=mask)
    assert np.array_equal(closed.reachable, closed.nominal > 0)
    assert ep.uncertainty.L1Ball(cmdp, 0.1, support=mask).reachable.all()


def test_an_observation_outside_the_support_stops_everything(cmdp):
    ball = ep.uncertainty.L1Ball(cmdp, radius=0.4)
    ball.check_observed(0, 1)
    for next_state in (0, 2):
        with pytest.raises(AssumptionError, match=f"found state {next_state}"):
            ball.check_observed(1, next_state)


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"radius": -0.1}, "radius: expected numbers in [0, 2], found -0.1"),
        ({"radius": 2.5}, "radius: expected numbers in [0, 2], found 2.5"),
        ({"radius": np.inf}, "radius: expected numbers in [0, 2], found inf"),
        ({"radius": np.zeros(4)}, "radius: expected a number, shape (S, A) or (6,)"),
        ({"radius": 0.1, "support": "all"}, "support: expected None, 'everywhere'"),
    ],
)
def test_bad_arguments_are_refused(cmdp, keywords, message):
    with pytest.raises(InvalidInputError) as caught:
        ep.uncertainty.L1Ball(cmdp, **keywords)
    assert message in str(caught.value)


def test_bad_backups_are_refused(cmdp):
    ball = ep.uncertainty.L1Ball(cmdp, radius=0.4)
    v = np.zeros(3)
    with pytest.raises(InvalidInputError, match=r"v: expected shape \(3,\)"):
        ball.worst(np.zeros(4))
    with pytest.raises(InvalidInputError, match="sense: expected 'min' or 'max'"):
        ball.worst(v, sense="worst")
    with pytest.raises(InvalidInputError, match=r"immediate: expected shape \(6,\)"):
        ball.backup(v, np.zeros(3), 0.9)
    with pytest.raises(InvalidInputError, match="out: expected doubles"):
        ball.backup(v, None, 0.9, out=np.zeros(6, dtype=np.float32))
    with pytest.raises(InvalidInputError, match=r"factor: expected a number in \[0, 1"):
        ball.shrink(1.5)
    with pytest.raises(InvalidInputError, match="a finite family of whole models"):
        ball.members(cmdp)


def test_another_problem_is_refused(cmdp):
    other = ep.CMDP([[[1.0]]], [[0.0]], [[0.0]], discount=0.9, budget=1.0)
    with pytest.raises(InvalidInputError, match="sets: expected a set over 1 states"):
        ep.uncertainty.L1Ball(cmdp, radius=0.4).check_matches(other)


def test_a_result_may_be_written_in_place(cmdp):
    ball = ep.uncertainty.L1Ball(cmdp, radius=0.4)
    out = np.empty(6)
    gain = np.arange(6.0)
    result = ball.backup(np.array([0.0, 1.0, 10.0]), gain, 0.5, out=out)
    assert result is out
    np.testing.assert_allclose(out, gain + 0.5 * np.array([0.7, 1, 7.3, 7.3, 10, 10]))
