"""Least expected hitting times: closed forms, a linear program, and certificates."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

import escapade as ep
from escapade.errors import InvalidInputError
from escapade.testing import cmdps
from escapade.theory import hitting_times as module
from escapade.theory.hitting_times import hitting_times


def chain(rows):
    """Return a problem of one action (or several) from its transitions."""
    rows = np.asarray(rows, dtype=float)
    if rows.ndim == 2:
        rows = rows[:, np.newaxis, :]
    zeros = np.zeros(rows.shape[:2])
    return ep.CMDP(rows, zeros, zeros, discount=0.9, budget=1.0)


def random_walk(size):
    """Return a fair walk on a line that reflects at 0 and ends at ``size``."""
    rows = np.zeros((size + 1, size + 1))
    rows[0, 1] = rows[size, size] = 1.0
    for state in range(1, size):
        rows[state, [state - 1, state + 1]] = 0.5
    return chain(rows)


def linear_program(cmdp, is_target):
    """Return the least times by max Σ h s.t. h ≤ 1 + P h, where all are finite."""
    matrix = -cmdp.transition_matrix.toarray()
    matrix[np.arange(cmdp.n_pairs), cmdp.pair_state] += 1.0
    kept = ~is_target[cmdp.pair_state]
    solved = linprog(
        -np.ones(cmdp.n_states),
        A_ub=matrix[kept],
        b_ub=np.ones(int(kept.sum())),
        bounds=[(0, 0) if target else (0, None) for target in is_target],
    )
    assert solved.status == 0, solved.message
    return solved.x


@given(size=st.integers(1, 40))
def test_a_fair_walk_takes_the_square_of_the_way(size):
    found = hitting_times(random_walk(size), size)
    exact = size**2 - np.arange(size + 1) ** 2
    assert found.certified
    assert (found.lower <= exact * (1 + 1e-12)).all()
    assert (exact <= found.upper * (1 + 1e-12)).all()
    assert found.upper == pytest.approx(exact, rel=1e-8)


@given(chance=st.floats(1e-6, 1.0))
def test_waiting_takes_the_inverse_of_the_chance(chance):
    found = hitting_times(chain([[1 - chance, chance], [0.0, 1.0]]), 1)
    assert found.upper[0] == pytest.approx(1 / chance, rel=1e-9)
    assert found.upper[1] == found.lower[1] == 0.0


@given(data=st.data())
def test_times_solve_the_linear_program(data):
    cmdp = data.draw(cmdps(min_states=2, max_states=6))
    targets = data.draw(
        st.lists(
            st.integers(0, cmdp.n_states - 1),
            min_size=1,
            max_size=cmdp.n_states,
            unique=True,
        )
    )
    found = hitting_times(cmdp, targets)
    is_target = np.zeros(cmdp.n_states, dtype=bool)
    is_target[targets] = True
    assert found.certified
    assert (found.upper[is_target] == 0.0).all()
    assert (np.isfinite(found.upper) == found.finite).all()
    assert (np.isfinite(found.lower) == found.finite).all()
    if found.finite.all():
        exact = linear_program(cmdp, is_target)
        assert found.upper == pytest.approx(exact, rel=1e-6, abs=1e-9)
        assert (found.lower <= found.upper).all()


@given(data=st.data())
def test_the_policy_returned_keeps_its_times(data):
    cmdp = data.draw(cmdps(min_states=2, max_states=6))
    found = hitting_times(cmdp, 0)
    walking = found.finite.copy()
    walking[0] = False
    assert (found.actions[~walking] == -1).all()
    states = np.flatnonzero(walking)
    rows = np.zeros((states.size, cmdp.n_states))
    for k, state in enumerate(states):
        pairs = np.flatnonzero(
            (cmdp.pair_state == state) & (cmdp.pair_action == found.actions[state])
        )
        assert pairs.size == 1
        rows[k] = cmdp.transition_matrix[pairs].toarray()
    # it never leaves the states from which the target is surely reached
    assert (rows[:, ~found.finite] == 0.0).all()
    times = np.linalg.solve(np.eye(states.size) - rows[:, states], np.ones(states.size))
    assert (times <= found.upper[states] * (1 + 1e-9)).all()
    assert (times >= found.lower[states] * (1 - 1e-9)).all()


@given(data=st.data())
def test_infinite_exactly_where_no_policy_is_sure(data):
    cmdp = data.draw(cmdps(min_states=2, max_states=4, max_actions=2))
    found = hitting_times(cmdp, 0)
    steps = cmdp.transition_matrix.toarray() > 0.0
    pairs_of = [np.flatnonzero(cmdp.pair_state == s) for s in range(cmdp.n_states)]
    sure = np.zeros(cmdp.n_states, dtype=bool)
    for chosen in product(*pairs_of):  # sure: wherever it gets, it can still arrive
        links = steps[list(chosen)] | np.eye(cmdp.n_states, dtype=bool)
        links[0] = np.arange(cmdp.n_states) == 0
        reach = np.linalg.matrix_power(links.astype(int), cmdp.n_states) > 0
        sure |= ~(reach & ~reach[:, 0]).any(axis=1)
    assert (found.finite == sure).all()


def test_a_risk_never_to_arrive_is_not_taken():
    # action 0 risks the trap with 1 %, action 1 is slow and sure
    rows = np.zeros((3, 2, 3))
    rows[0, 0] = [0.0, 0.99, 0.01]
    rows[0, 1] = [0.9, 0.1, 0.0]
    rows[1:, :, :] = np.eye(3)[1:, np.newaxis]
    found = hitting_times(chain(rows), 1)
    assert found.upper[0] == pytest.approx(10.0)
    assert found.actions.tolist() == [1, -1, -1]
    assert found.upper[2] == math.inf
    assert found.finite.tolist() == [True, True, False]


def test_any_target_will_do():
    ring = chain(np.roll(np.eye(6), 1, axis=1))
    assert hitting_times(ring, [0, 3]).upper.round(6).tolist() == [0, 2, 1, 0, 2, 1]
    assert hitting_times(ring, np.arange(6)).upper.tolist() == [0.0] * 6


def test_slow_walks_go_on_to_exact_solves(monkeypatch):
    # a long walk, whose sweeps are cut short: policy iteration must finish it
    monkeypatch.setattr(module, "_SWEEP_BLOCKS", 1)
    for size in (60, 260):  # dense and sparse solves
        found = hitting_times(random_walk(size), size, tolerance=1e-7)
        assert found.certified
        assert found.upper[0] == pytest.approx(size**2, rel=1e-7)


def test_policy_iteration_improves_what_it_begins_with(monkeypatch):
    # two actions a state: the first drifts back, the second ahead
    monkeypatch.setattr(module, "_SWEEP_BLOCKS", 1)
    size = 40
    rows = np.zeros((size + 1, 2, size + 1))
    rows[size, :, size] = 1.0
    for state in range(size):
        back = max(state - 1, 0)
        for action, ahead in enumerate((0.45, 0.55)):
            rows[state, action, state + 1] += ahead
            rows[state, action, back] += 1 - ahead
    found = hitting_times(chain(rows), size)
    assert found.certified
    assert (found.actions[:size] == 1).all()
    exact = linear_program(chain(rows), np.arange(size + 1) == size)
    assert found.upper == pytest.approx(exact, rel=1e-7)


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        ([], r"^targets: expected a state"),
        (2.5, r"^targets: expected a state"),
        ([0, 7], r"^targets: expected states in 0..1, found 7"),
        (-1, r"^targets: expected states in 0..1, found -1"),
    ],
)
def test_wrong_targets_are_refused(targets, message):
    with pytest.raises(InvalidInputError, match=message):
        hitting_times(chain(np.eye(2)), targets if targets != 2.5 else [2.5])


def test_arrays_returned_are_read_only():
    found = hitting_times(chain(np.eye(2)), 0)
    with pytest.raises(ValueError, match="read-only"):
        found.upper[0] = 1.0
