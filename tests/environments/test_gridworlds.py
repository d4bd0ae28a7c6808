"""Barriers and moat against a reading of their rules."""

from __future__ import annotations

import numpy as np
import pytest

import escapade as ep
from escapade.errors import InvalidInputError

barrier_grid, moat_grid = ep.environments.barrier_grid, ep.environments.moat_grid

# north, west, south, east, as (row up, column right)
STEPS = ((1, 0), (0, -1), (-1, 0), (0, 1))


def dense(cmdp):
    return cmdp.transition_matrix.toarray().reshape(
        cmdp.n_states, cmdp.n_actions, cmdp.n_states
    )


def go(y, x, step, side):
    up, right = y + step[0], x + step[1]
    return (up, right) if 0 <= up < side and 0 <= right < side else (y, x)


@pytest.mark.parametrize("slip", [0.0, 0.1, 1.0])
def test_the_barriers_follow_the_rules(slip):
    P, R, C = np.zeros((36, 4, 36)), np.zeros((36, 4)), np.zeros((2, 36, 4))
    for y in range(6):
        for x in range(6):
            s = y * 6 + x
            for a in range(4):
                if s == 15:
                    P[s, a, s] = R[s, a] = 1.0
                    continue
                for b in range(4):
                    up, right = go(y, x, STEPS[b], 6)
                    P[s, a, up * 6 + right] += slip / 4 + (1 - slip) * (a == b)
                if 1 <= x <= 4 and y == 1:
                    C[0, s, a] = 10.0
                if 1 <= x <= 4 and y == 3:
                    C[1, s, a] = 10.0
    cmdp = barrier_grid(slip=slip).cmdp
    np.testing.assert_allclose(dense(cmdp), P, atol=1e-15)
    np.testing.assert_array_equal(cmdp.reward.reshape(36, 4), R)
    np.testing.assert_array_equal(cmdp.cost.reshape(2, 36, 4), C)
    np.testing.assert_allclose(cmdp.start, (C.sum(axis=(0, 2)) == 0) / 28)
    assert (cmdp.discount, cmdp.budget.tolist()) == (0.7, [2.0, 2.0])


def test_the_optimum_of_the_barriers_is_stated_for_their_own_numbers_alone():
    assert barrier_grid().known_optimum is not None
    for keywords in ({"slip": 0.2}, {"discount": 0.8}, {"budget": [2.0, 3.0]}):
        assert barrier_grid(**keywords).known_optimum is None


def test_the_moat_follows_the_rules():
    drawing = ["00G0", "0P0P", "0PPP", "00S0"]
    cmdp = moat_grid().cmdp
    P = dense(cmdp)
    for row in range(4):
        for x in range(4):
            y = 3 - row
            s = y * 4 + x
            for a in range(4):
                up, right = go(y, x, STEPS[a], 4)
                if drawing[row][x] == "G":
                    up, right = 0, 2  # S
                assert P[s, a, up * 4 + right] == 1.0
                pair = cmdp.pair(s, a)
                # one was added to a reward of -1, and of 0 from G
                assert cmdp.reward[pair] == (drawing[row][x] == "G")
                assert cmdp.cost[0, pair] == (drawing[3 - up][right] == "P")
    assert cmdp.start[2] == 1.0
    assert cmdp.state_names[2] == "S at (3, 1)"
    assert cmdp.state_names[14] == "G at (3, 4)"
    assert (cmdp.discount, cmdp.budget.tolist()) == (0.99, [20.0])


def test_the_two_ways_round():
    cmdp = moat_grid().cmdp
    north, west, _, east = range(4)
    through = ep.Policy.deterministic(np.full(16, north), 4)
    actions = np.full(16, north)
    actions[[2, 1]] = west
    actions[[12, 13]] = east
    around = ep.Policy.deterministic(actions, 4)
    g = cmdp.discount
    short, long = ep.evaluate(cmdp, through), ep.evaluate(cmdp, around)
    assert short.start_value == pytest.approx(g**3 / (1 - g**4))
    assert short.start_costs[0] == pytest.approx(1 / (1 - g**4))
    assert long.start_value == pytest.approx(g**7 / (1 - g**8))
    assert long.start_costs[0] == 0.0


@pytest.mark.parametrize(
    ("build", "keywords", "message"),
    [
        (
            barrier_grid,
            {"slip": 1.5},
            r"slip: expected a number in \[0, 1\], found 1.5",
        ),
        (barrier_grid, {"budget": 2.0}, "budget: expected 2 numbers"),
        (barrier_grid, {"discount": 1.0}, "discount"),
        (moat_grid, {"budget": -1.0}, "budget"),
        (moat_grid, {"discount": 1.0}, "discount"),
    ],
)
def test_what_is_refused(build, keywords, message):
    with pytest.raises(InvalidInputError, match=message):
        build(**keywords)
