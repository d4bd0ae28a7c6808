"""Robust evaluation against linear programs, whole families and itself."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import escapade as ep
from escapade.testing import strategies
from escapade.uncertainty import L1Ball
from escapade.uncertainty.base import UncertaintySet


def worst_by_linear_program(cmdp, policy, radius, gain, sign):
    """The most (sign 1) or least a policy can collect over an L1 ball, by SciPy.

    One program: x(s) visits, y(s, a, s') moves, |y − x π p| summed over s' at most
    x π ψ.  The ball is a product over pairs, so one stationary kernel attains it.
    """
    weights = policy.pair_weights(cmdp)
    n, e = cmdp.n_states, cmdp.nnz
    row = np.repeat(np.arange(cmdp.n_pairs), np.diff(cmdp.row_ptr))
    state = cmdp.pair_state[row]
    share = weights[row] * cmdp.probability
    # variables: x (n), y (e), t (e) with t >= |y − x share|
    objective = np.zeros(n + 2 * e)
    objective[:n] = -sign * np.bincount(cmdp.pair_state, weights * gain, minlength=n)
    flow = np.zeros((n, n + 2 * e))
    flow[:, :n] = np.eye(n)
    flow[cmdp.successor, n + np.arange(e)] -= cmdp.discount
    moves = np.zeros((cmdp.n_pairs, n + 2 * e))
    moves[row, n + np.arange(e)] = 1.0
    moves[np.arange(cmdp.n_pairs), cmdp.pair_state] -= weights
    above = np.zeros((2 * e, n + 2 * e))
    for i in range(e):
        above[i, n + i], above[i, state[i]], above[i, n + e + i] = 1, -share[i], -1
        above[e + i, n + i], above[e + i, state[i]] = -1, share[i]
        above[e + i, n + e + i] = -1
    far = np.zeros((cmdp.n_pairs, n + 2 * e))
    far[row, n + e + np.arange(e)] = 1.0
    far[np.arange(cmdp.n_pairs), cmdp.pair_state] -= weights * radius
    answer = linprog(
        objective,
        A_ub=np.vstack([above, far]),
        b_ub=np.zeros(2 * e + cmdp.n_pairs),
        A_eq=np.vstack([flow, moves]),
        b_eq=np.concatenate([cmdp.start, np.zeros(cmdp.n_pairs)]),
        bounds=(0.0, None),
    )
    assert answer.status == 0, answer.message
    return -sign * answer.fun


@settings(max_examples=20, deadline=None)
@given(st.data(), st.sampled_from([0.0, 0.2, 1.0]))
def test_the_worst_kernel_found_by_a_linear_program_agrees(data, radius):
    cmdp = data.draw(strategies.cmdps(max_states=4, discounts=(0.5, 0.9)))
    policy = data.draw(strategies.policies(cmdp))
    bounds = ep.robust_evaluate(cmdp, policy, L1Ball(cmdp, radius=radius))
    numbers = [
        (cmdp.reward, bounds.start_value_lower, bounds.start_value_upper),
        *zip(
            cmdp.cost, bounds.start_costs_lower, bounds.start_costs_upper, strict=True
        ),
    ]
    for gain, least, most in numbers:
        low = worst_by_linear_program(cmdp, policy, radius, gain, -1.0)
        high = worst_by_linear_program(cmdp, policy, radius, gain, 1.0)
        scale = max(1.0, high)
        assert least - 1e-7 * scale <= low <= least + 1e-6 * scale
        assert most - 1e-6 * scale <= high <= most + 1e-7 * scale


@settings(max_examples=20, deadline=None)
@given(st.data())
def test_every_member_lies_within_the_bounds(data):
    cmdp = data.draw(strategies.cmdps(discounts=(0.5, 0.9, 0.99)))
    policy = data.draw(strategies.policies(cmdp))
    bounds = ep.robust_evaluate(cmdp, policy, L1Ball(cmdp, radius=0.3))
    model = data.draw(strategies.kernels(cmdp, radius=0.3))
    there = ep.evaluate(model, policy)
    slack = there.error + 1e-12
    assert (bounds.value_lower <= there.value + slack).all()
    assert (there.value - slack <= bounds.value_upper).all()
    assert (bounds.costs_lower <= there.costs + slack).all()
    assert (there.costs - slack <= bounds.costs_upper).all()


def test_every_vertex_of_a_small_ball_is_looked_at_once():
    """Two successors a pair and one action: the ball has two vertices a state."""
    rng = np.random.default_rng(4)
    p = rng.uniform(0.2, 0.8, 3)
    P = np.zeros((3, 1, 3))
    for s in range(3):
        P[s, 0, s], P[s, 0, (s + 1) % 3] = p[s], 1.0 - p[s]
    cost = rng.random((3, 1))
    cmdp = ep.CMDP(P, cost, cost, discount=0.9, budget=1.0)
    policy = ep.Policy.uniform(cmdp)
    values = []
    for signs in itertools.product([-0.1, 0.1], repeat=3):
        Q = P.copy()
        for s, sign in enumerate(signs):
            Q[s, 0, s] += sign
            Q[s, 0, (s + 1) % 3] -= sign
        model = ep.CMDP(Q, cost, cost, discount=0.9, budget=1.0)
        values.append(ep.evaluate(model, policy, precision=1e-12).value)
    bounds = ep.robust_evaluate(cmdp, policy, L1Ball(cmdp, radius=0.2), precision=1e-11)
    np.testing.assert_allclose(bounds.value_lower, np.min(values, axis=0), atol=1e-9)
    np.testing.assert_allclose(bounds.costs_upper[0], np.max(values, axis=0), atol=1e-9)


@settings(max_examples=10, deadline=None)
@given(st.data())
def test_no_uncertainty_is_plain_evaluation(data):
    cmdp = data.draw(strategies.cmdps())
    policy = data.draw(strategies.policies(cmdp))
    bounds = ep.robust_evaluate(cmdp, policy, L1Ball(cmdp, radius=0.0))
    plain = ep.evaluate(cmdp, policy)
    slack = plain.error + 1e-12
    assert (bounds.value_lower <= plain.value + slack).all()
    assert (plain.value - slack <= bounds.value_upper).all()
    assert bounds.converged


class Family(UncertaintySet):
    """Whole models, one of which holds throughout; only what evaluation asks for."""

    rectangular = False

    def __init__(self, models):
        self.models = models
        self.n_states = models[0].n_states

    @property
    def row_ptr(self):
        return self.models[0].row_ptr

    @property
    def successor(self):
        return self.models[0].successor

    @property
    def nominal(self):
        return self.models[0].probability

    @property
    def reachable(self):
        return np.ones(self.successor.size, dtype=bool)

    def members(self, cmdp):
        return iter(self.models)

    def backup(self, v, immediate, discount, *, sense="max", out=None):
        raise AssertionError("a family is never taken pair by pair")

    worst_kernel = excess = sample = lift = backup


def test_one_model_throughout_is_evaluated_model_by_model():
    """State 0 is bad in one model, state 1 in the other; no model is bad in both."""

    def world(first, second):
        P = np.zeros((4, 1, 4))
        P[0, 0, 2:] = [1 - first, first]
        P[1, 0, 2:] = [1 - second, second]
        P[2, 0, 2] = P[3, 0, 3] = 1.0
        P[P == 0.0] = 1e-12
        P /= P.sum(axis=2, keepdims=True)
        gain = np.array([[0.0], [0.0], [0.0], [1.0]])
        return ep.CMDP(
            P, gain, gain, discount=0.5, budget=1.0, start=[0.5, 0.5, 0.0, 0.0]
        )

    one, two = world(0.9, 0.1), world(0.1, 0.9)
    bounds = ep.robust_evaluate(one, ep.Policy.uniform(one), Family([one, two]))
    np.testing.assert_allclose(bounds.costs_upper[0, :2], [0.9, 0.9], atol=1e-6)
    assert bounds.start_costs_upper[0] == pytest.approx(0.5, abs=1e-6)
    assert bounds.start_value_lower == pytest.approx(0.5, abs=1e-6)
    with pytest.raises(ep.errors.InvalidInputError, match="rectangular hull"):
        ep.fallback(one, Family([one, two]))


def test_the_limit_on_iterations_is_reported():
    cmdp = ep.CMDP(
        [[[0.9, 0.1]], [[0.1, 0.9]]],
        [[1.0], [0.0]],
        [[0.0], [1.0]],
        discount=0.99,
        budget=1.0,
    )
    sets = L1Ball(cmdp, radius=0.1)
    policy = ep.Policy.uniform(cmdp)
    rough = ep.robust_evaluate(cmdp, policy, sets, max_iterations=1)
    fine = ep.robust_evaluate(cmdp, policy, sets)
    assert not rough.converged
    assert "allow more iterations" in rough.message
    assert rough.width > fine.width
    assert (rough.costs_upper >= fine.costs_lower).all()
    assert (rough.value_lower <= fine.value_upper).all()


@pytest.mark.parametrize(
    ("keywords", "name"),
    [({"precision": 0.0}, "precision"), ({"max_iterations": 0}, "max_iterations")],
)
def test_settings_that_make_no_sense_are_refused(keywords, name):
    cmdp = ep.CMDP([[[1.0]]], [[1.0]], [[1.0]], discount=0.5, budget=1.0)
    with pytest.raises(ep.errors.InvalidInputError, match=name):
        ep.robust_evaluate(
            cmdp, ep.Policy.uniform(cmdp), L1Ball(cmdp, radius=0.1), **keywords
        )


def test_a_set_of_another_problem_is_refused():
    cmdp = ep.CMDP([[[1.0]]], [[1.0]], [[1.0]], discount=0.5, budget=1.0)
    other = ep.CMDP(
        np.full((2, 1, 2), 0.5),
        np.ones((2, 1)),
        np.ones((2, 1)),
        discount=0.5,
        budget=1.0,
    )
    with pytest.raises(ep.errors.InvalidInputError, match="sets"):
        ep.robust_evaluate(cmdp, ep.Policy.uniform(cmdp), L1Ball(other, radius=0.1))
