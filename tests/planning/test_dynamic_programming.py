"""Dynamic programming without budgets: certificates, laws, and a linear program."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

import escapade as ep
from escapade.errors import InvalidInputError, SolverError
from escapade.planning import dynamic_programming as dp
from escapade.planning import policy_iteration, value_iteration
from escapade.testing import cmdps


@given(cmdp=cmdps(max_states=5))
@settings(max_examples=30)
def test_both_agree_with_a_linear_program(cmdp, unconstrained) -> None:
    expected = unconstrained(cmdp, cmdp.reward)
    for found in (value_iteration(cmdp), policy_iteration(cmdp)):
        size = max(1.0, float(np.abs(found.value).max()))
        assert found.error <= 1e-8 * size
        assert cmdp.start @ found.value == pytest.approx(expected, rel=1e-6, abs=1e-6)
        # the policy earns what is promised
        earned = ep.evaluate(cmdp, found.policy(cmdp)).value
        np.testing.assert_allclose(earned, found.value, rtol=1e-7, atol=1e-7)


def test_the_certificate_encloses_the_closed_form() -> None:
    """One state, one action: the value is r / (1 − γ), whatever the first guess."""
    for discount in (0.0, 0.5, 0.999, 0.999999):
        cmdp = ep.CMDP([[[1.0]]], [[1.0]], [[0.0]], discount=discount, budget=0.0)
        exact = 1.0 / (1.0 - discount)
        for guess in (np.zeros(1), np.full(1, 123.0)):
            found = value_iteration(cmdp, value=guess)
            assert abs(found.value[0] - exact) <= found.error
            found = policy_iteration(cmdp, value=guess)
            assert abs(found.value[0] - exact) <= found.error


def test_any_value_is_bounded_by_one_backup(problem) -> None:
    """The certificate holds for values that are far from the fixed point."""
    cmdp = problem(3)
    best = policy_iteration(cmdp).value
    rng = np.random.default_rng(1)
    for _ in range(20):
        guess = 10.0 * rng.standard_normal(cmdp.n_states)
        found = dp.certified_optimum(cmdp, cmdp.reward, guess, 0)
        assert (np.abs(found.value - best) <= found.error + 1e-9).all()


def test_rewards_may_be_negative_and_others(problem) -> None:
    cmdp = problem(2)
    gain = np.random.default_rng(0).standard_normal(cmdp.n_pairs)
    one = policy_iteration(cmdp, gain)
    two = value_iteration(cmdp, gain, precision=1e-10)
    np.testing.assert_allclose(one.value, two.value, atol=1e-8)
    again = policy_iteration(cmdp, gain, pairs=one.pairs, value=one.value)
    assert again.iterations <= 2
    np.testing.assert_array_equal(again.pairs, one.pairs)


def ladder(n: int, discount: float) -> ep.CMDP:
    """A line on which a step forward nearly always fails: it mixes very slowly."""
    matrix = np.zeros((n, 2, n))
    states = np.arange(n)
    matrix[states, 0, np.minimum(states + 1, n - 1)] += 0.1
    matrix[states, 0, states] += 0.9
    matrix[states, 1, np.maximum(states - 1, 0)] = 1.0
    reward = np.zeros((n, 2))
    reward[n - 1] = 1.0
    return ep.CMDP(matrix, reward, reward, discount=discount, budget=1.0)


@pytest.mark.parametrize("discount", [0.9, 0.999])
def test_slow_chains_are_solved(discount) -> None:
    cmdp = ladder(40, discount)
    found = policy_iteration(cmdp)
    # up the ladder: v(s) = γ (.1 v(s + 1) + .9 v(s)), and 1 / (1 − γ) at the top
    factor = 0.1 * discount / (1.0 - 0.9 * discount)
    exact = factor ** np.arange(39, -1, -1) / (1.0 - discount)
    np.testing.assert_allclose(found.value, exact, rtol=1e-9, atol=1e-12)
    assert found.error <= 1e-9 * exact[-1]


def test_when_krylov_breaks_down_other_methods_finish(monkeypatch, problem) -> None:
    cmdp = problem(5)
    expected = policy_iteration(cmdp).value

    def broken(chosen, row_ptr, successor, probability, gamma, right, x, *rest):
        x[:] = np.nan
        return 1, np.nan

    monkeypatch.setattr(dp, "solve_chain", broken)
    np.testing.assert_allclose(policy_iteration(cmdp).value, expected, rtol=1e-9)
    monkeypatch.setattr(dp, "_LU_UP_TO_STATES", 0)
    np.testing.assert_allclose(policy_iteration(cmdp).value, expected, rtol=1e-9)


def test_a_krylov_that_does_not_help_is_not_believed(monkeypatch, problem) -> None:
    cmdp = problem(5)
    expected = policy_iteration(cmdp).value

    def useless(chosen, row_ptr, successor, probability, gamma, right, x, *rest):
        x[:] = 1e3 * np.arange(x.size)
        return 1, 0.0

    monkeypatch.setattr(dp, "solve_chain", useless)
    np.testing.assert_allclose(policy_iteration(cmdp).value, expected, rtol=1e-9)


def test_too_few_sweeps_are_refused(problem) -> None:
    cmdp = problem(0)
    with pytest.raises(SolverError, match="allow more sweeps or ask for less"):
        value_iteration(cmdp, max_sweeps=1, precision=1e-12)
    with pytest.raises(SolverError, match="expected a relative error"):
        value_iteration(cmdp, precision=1e-18)


def test_stopping_early_keeps_the_certificate(problem) -> None:
    cmdp = problem(6)
    best = policy_iteration(cmdp).value
    found = policy_iteration(cmdp, max_iterations=1)
    assert (np.abs(found.value - best) <= found.error + 1e-12).all()


def test_bad_arguments_are_refused(problem) -> None:
    cmdp = problem(0)
    with pytest.raises(InvalidInputError, match="reward: expected shape"):
        value_iteration(cmdp, np.zeros(1))
    gain = np.zeros(cmdp.n_pairs)
    gain[-1] = np.nan
    with pytest.raises(InvalidInputError, match="found nan at state"):
        policy_iteration(cmdp, gain)
    with pytest.raises(InvalidInputError, match="precision: expected"):
        value_iteration(cmdp, precision=0.0)
