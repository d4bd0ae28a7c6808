"""Value iteration and the chain solver, against dense linear algebra."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from escapade.kernels.value_iteration import solve_chain, sweep_chain, sweep_values
from escapade.testing import cmdps


def rows(cmdp):
    return cmdp.row_ptr, cmdp.successor, cmdp.probability


def of_chain(cmdp, chosen, gain):
    matrix = cmdp.transition_matrix.toarray()[chosen]
    return np.linalg.solve(np.eye(cmdp.n_states) - cmdp.discount * matrix, gain)


@st.composite
def chains(draw, **choices):
    cmdp = draw(cmdps(**choices))
    counts = np.diff(cmdp.state_ptr)
    places = [draw(st.integers(0, int(count) - 1)) for count in counts]
    return cmdp, cmdp.state_ptr[:-1] + np.array(places)


def swept(cmdp, width, max_sweeps=100_000):
    value, scratch = np.zeros(cmdp.n_states), np.empty(cmdp.n_states)
    best = np.empty(cmdp.n_states, dtype=np.int64)
    sweeps, reached = sweep_values(
        cmdp.state_ptr,
        *rows(cmdp),
        cmdp.reward,
        cmdp.discount,
        value,
        scratch,
        best,
        width,
        max_sweeps,
    )
    return value, best, sweeps, reached


@settings(max_examples=25)
@given(cmdps(max_states=3, max_actions=2))
def test_sweeps_end_within_the_width_of_the_optimum(cmdp):
    """The optimum is the best of all deterministic policies, state by state."""
    value, best, _, reached = swept(cmdp, 1e-9)
    choices = [
        range(cmdp.state_ptr[s], cmdp.state_ptr[s + 1]) for s in range(cmdp.n_states)
    ]
    every = [
        of_chain(cmdp, np.array(chosen), cmdp.reward[np.array(chosen)])
        for chosen in itertools.product(*choices)
    ]
    optimum = np.max(every, axis=0)
    rounding = 1e-12 / (1.0 - cmdp.discount)
    assert reached <= 1e-9
    np.testing.assert_allclose(value, optimum, atol=reached + rounding, rtol=0)
    greedy = of_chain(cmdp, best, cmdp.reward[best])
    np.testing.assert_allclose(greedy, optimum, atol=1e-7, rtol=0)


@settings(max_examples=25)
@given(cmdps())
def test_the_width_reached_bounds_the_error_after_every_sweep(cmdp):
    optimum, _, _, _ = swept(cmdp, 1e-11)
    rounding = 1e-10 / (1.0 - cmdp.discount)
    for sweeps in (1, 2, 5):
        value, _, made, reached = swept(cmdp, 0.0, sweeps)
        assert made <= sweeps
        assert np.abs(value - optimum).max() <= reached / 2.0 + rounding


@settings(max_examples=25)
@given(chains())
def test_sweeps_over_a_chain(case):
    cmdp, chosen = case
    gain = cmdp.cost[0][chosen]
    value, scratch = np.zeros(cmdp.n_states), np.empty(cmdp.n_states)
    _, reached = sweep_chain(
        chosen, *rows(cmdp), gain, cmdp.discount, value, scratch, 1e-9, 100_000
    )
    rounding = 1e-12 / (1.0 - cmdp.discount)
    np.testing.assert_allclose(
        value, of_chain(cmdp, chosen, gain), atol=reached / 2 + rounding, rtol=0
    )


@settings(max_examples=25)
@given(chains())
def test_the_chain_solver(case):
    cmdp, chosen = case
    gain = cmdp.reward[chosen]
    x = np.full(cmdp.n_states, np.nan)  # whatever stood there
    iterations, residual = solve_chain(
        chosen, *rows(cmdp), cmdp.discount, gain, x, 1e-11, 500
    )
    matrix = cmdp.transition_matrix.toarray()[chosen]
    true = np.abs(x - cmdp.discount * matrix @ x - gain).max()
    assert iterations < 500
    assert residual <= 1e-11
    assert true <= 1e-9
    np.testing.assert_allclose(x, of_chain(cmdp, chosen, gain), atol=1e-6)


@pytest.mark.parametrize(
    ("matrix", "right", "gamma"),
    [
        # after one step the residual is at right angles to the first one
        ([[3, 0, 3], [2, 2, 2], [2, 2, 2]], [0, 1, -1], 0.5),
        # so is the image of the very first direction to that direction
        ([[0, 6, 0], [0, 6, 0], [0, 0, 6]], [1, 1, -1], 0.75),
    ],
)
def test_the_chain_solver_goes_on_after_a_breakdown(matrix, right, gamma):
    dense = np.array(matrix) / 6
    chain = sp.csr_array(dense)
    right = np.array(right, dtype=float)
    x = np.empty(3)
    _, residual = solve_chain(
        np.arange(3),
        chain.indptr.astype(np.int64),
        chain.indices.astype(np.int32),
        chain.data,
        gamma,
        right,
        x,
        1e-12,
        50,
    )
    assert residual <= 1e-12
    expected = np.linalg.solve(np.eye(3) - gamma * dense, right)
    np.testing.assert_allclose(x, expected, atol=1e-11)


def ring(n):
    """A ring that is walked one way: nothing mixes."""
    return (
        np.arange(n, dtype=np.int64),
        np.arange(n + 1, dtype=np.int64),
        np.roll(np.arange(n), -1).astype(np.int32),
        np.ones(n),
    )


def test_the_chain_solver_on_a_walk_that_mixes_slowly():
    n = 200
    rng = np.random.default_rng(1)
    left, right = (np.arange(n) - 1) % n, (np.arange(n) + 1) % n
    row_ptr = 2 * np.arange(n + 1)
    successor = (
        np.sort(np.stack([left, right], axis=1), axis=1).ravel().astype(np.int32)
    )
    probability = np.full(2 * n, 0.5)
    chosen, gain, x = np.arange(n), rng.random(n), np.empty(n)
    iterations, residual = solve_chain(
        chosen, row_ptr, successor, probability, 0.999, gain, x, 1e-10, 2_000
    )
    assert residual <= 1e-10
    assert iterations < 2_000
    matrix = np.zeros((n, n))
    matrix[chosen, left] += 0.5
    matrix[chosen, right] += 0.5
    expected = np.linalg.solve(np.eye(n) - 0.999 * matrix, gain)
    np.testing.assert_allclose(x, expected, atol=1e-5)


def test_limits_are_kept():
    chosen, row_ptr, successor, probability = ring(50)
    gain, x = np.random.default_rng(0).random(50), np.empty(50)
    iterations, residual = solve_chain(
        chosen, row_ptr, successor, probability, 0.99, gain, x, 1e-14, 3
    )
    assert iterations == 3
    assert residual > 1e-14
    value, scratch = np.zeros(50), np.empty(50)
    sweeps, reached = sweep_chain(
        chosen, row_ptr, successor, probability, gain, 0.99, value, scratch, 1e-14, 7
    )
    assert sweeps == 7
    assert reached > 1e-14


def test_nothing_to_gain_is_solved_at_once():
    chosen, row_ptr, successor, probability = ring(5)
    x = np.ones(5)
    iterations, residual = solve_chain(
        chosen, row_ptr, successor, probability, 0.9, np.zeros(5), x, 0.0, 10
    )
    assert (iterations, residual) == (0, 0.0)
    assert not x.any()
