"""Robust hitting times: closed forms, one kernel, members, and what is out of reach."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import escapade as ep
from escapade.planning.robust_hitting import (
    robust_hitting_times,
    worst_transition_diameter,
)
from escapade.testing import strategies
from escapade.theory.diameter import diameter
from escapade.theory.hitting_times import hitting_times
from escapade.uncertainty import L1Ball


def line(states: int, success: float) -> ep.CMDP:
    """Forth or back by one; each move fails and stays with 1 − success."""
    P = np.zeros((states, 2, states))
    for s in range(states):
        for a, to in enumerate((max(s - 1, 0), min(s + 1, states - 1))):
            P[s, a, to] += success
            P[s, a, s] += 1.0 - success
    zero = np.zeros((states, 2))
    return ep.CMDP(P, zero, zero, discount=0.9, budget=1.0)


@pytest.mark.parametrize("states", [2, 5, 400])
def test_each_step_of_a_line_takes_one_over_the_least_success(states):
    cmdp = line(states, 0.8)
    times = robust_hitting_times(cmdp, L1Ball(cmdp, radius=0.2), 0)
    expected = np.arange(states) / 0.7
    np.testing.assert_allclose(times.upper, expected, rtol=1e-7)
    assert (times.lower <= expected * (1 + 1e-12)).all()
    assert (times.upper >= expected * (1 - 1e-12)).all()
    assert times.converged
    assert times.actions.tolist() == [-1] + [0] * (states - 1)
    assert times.longest == pytest.approx((states - 1) / 0.7)


def test_nature_that_can_refuse_a_move_keeps_the_agent_for_ever():
    cmdp = line(4, 0.1)
    times = robust_hitting_times(cmdp, L1Ball(cmdp, radius=0.2), [0])
    assert times.finite.tolist() == [True, False, False, False]
    assert np.isinf(times.upper[1:]).all()
    assert np.isinf(times.lower[1:]).all()
    assert times.actions.tolist() == [-1] * 4
    found = worst_transition_diameter(cmdp, L1Ball(cmdp, radius=0.2))
    assert not found.is_finite
    assert found.upper == np.inf


@settings(max_examples=25, deadline=None)
@given(strategies.cmdps(max_costs=1), st.integers(0, 100))
def test_one_kernel_gives_the_ordinary_times(cmdp, pick):
    target = pick % cmdp.n_states
    found = robust_hitting_times(cmdp, L1Ball(cmdp, radius=0.0), target)
    plain = hitting_times(cmdp, target)
    np.testing.assert_array_equal(found.finite, plain.finite)
    np.testing.assert_allclose(
        found.upper[found.finite], plain.upper[plain.finite], rtol=1e-6
    )


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_no_member_is_slower_than_the_policy_promises(data):
    cmdp = data.draw(strategies.cmdps(min_states=2, max_costs=1))
    sets = L1Ball(cmdp, radius=0.3)
    times = robust_hitting_times(cmdp, sets, 0)
    rest = np.flatnonzero(times.finite & (np.arange(cmdp.n_states) != 0))
    model = data.draw(strategies.kernels(cmdp, radius=0.3))
    # the policy's times under one member, by a dense linear system
    pairs = np.array([model.pair(s, times.actions[s]) for s in rest], dtype=int)
    P = model.transition_matrix.toarray()[pairs][:, rest]
    took = np.linalg.solve(np.eye(rest.size) - P, np.ones(rest.size))
    assert (took <= times.upper[rest] * (1 + 1e-9)).all()
    # no policy beats the bound from below under the worst kernel: sets grow, times grow
    wider = robust_hitting_times(cmdp, L1Ball(cmdp, radius=0.6), 0)
    assert (times.lower <= wider.upper).all()


def test_the_diameter_is_the_largest_time_and_grows_with_the_set():
    cmdp = line(5, 0.8)
    exact = worst_transition_diameter(cmdp, L1Ball(cmdp, radius=0.0))
    assert exact.upper == pytest.approx(diameter(cmdp).upper, rel=1e-5)
    found = worst_transition_diameter(cmdp, L1Ball(cmdp, radius=0.2))
    assert found.lower <= 4 / 0.7 <= found.upper * (1 + 1e-12)
    assert found.upper == pytest.approx(4 / 0.7, rel=1e-6)
    assert {found.source, found.target} == {0, 4}
    assert found.is_finite


def test_requirement_a_is_asked_in_costs():
    cmdp = line(5, 0.8)
    times = robust_hitting_times(cmdp, L1Ball(cmdp, radius=0.2), [0])
    steps = 4 / 0.7 + 1
    cost = (1 - 0.9**steps) / (1 - 0.9)
    holds = times.requirement(escape_budget=cost + 1e-6, discount=0.9, cost_max=1.0)
    fails = times.requirement(escape_budget=cost - 1e-3, discount=0.9, cost_max=1.0)
    assert holds.name == "a"
    assert holds.left == pytest.approx(cost)
    assert (holds.holds, fails.holds) == (True, False)


def test_bad_input_is_refused():
    cmdp = line(3, 0.8)
    sets = L1Ball(cmdp, radius=0.1)
    for targets in (3, [], [0.5], -1):
        with pytest.raises(ep.errors.InvalidInputError, match="targets"):
            robust_hitting_times(cmdp, sets, targets)
    with pytest.raises(ep.errors.InvalidInputError, match="precision"):
        robust_hitting_times(cmdp, sets, 0, precision=0.0)
    large = line(1_001, 0.8)
    with pytest.raises(ep.errors.InvalidInputError, match="at most 1000 states"):
        worst_transition_diameter(large, L1Ball(large, radius=0.1))
