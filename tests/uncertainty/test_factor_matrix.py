"""Factor matrices: linear programs over all factors at once, members, estimation."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import escapade as ep
from escapade.planning.robust_evaluation import robust_evaluate
from escapade.testing import check_uncertainty_set
from escapade.uncertainty import (
    FactorMatrix,
    Interval,
    KLBall,
    L1Ball,
    Models,
    estimate_factors,
    factor_rows,
)


def instance(seed: int, n_pairs=7, r=3, n_states=5, radius=0.4, everywhere=False):
    """Weights, factors and the set of L1 balls around them."""
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.ones(r), size=n_pairs)
    weights[rng.random(weights.shape) < 0.3] = 0.0
    weights[weights.sum(axis=1) == 0.0, 0] = 1.0
    weights /= weights.sum(axis=1, keepdims=True)
    if np.linalg.matrix_rank(weights) < r:  # then a kernel does not tell its factors
        weights[:r] = np.eye(r)
    factors = rng.dirichlet(np.ones(n_states), size=r)
    factors[rng.random(factors.shape) < 0.3] = 0.0
    factors[:, 0] += 0.05
    factors /= factors.sum(axis=1, keepdims=True)
    support = np.ones_like(factors, dtype=bool) if everywhere else None
    radii = radius * rng.random(r)
    return (
        weights,
        factors,
        FactorMatrix(weights, factors, radius=radii, support=support),
    )


def lp_over_all_factors(weights, factors, radii, mask, pair, v, sign):
    """Extreme of P·v of one pair: variables are all factors and their distances."""
    r, n = factors.shape
    cost = -sign * np.concatenate([np.outer(weights[pair], v).ravel(), np.zeros(r * n)])
    eye = np.eye(r * n)
    near = np.kron(np.eye(r), np.ones(n))
    done = linprog(
        cost,
        A_ub=np.block(
            [[eye, -eye], [-eye, -eye], [np.zeros((r, r * n)), near]],
        ),
        b_ub=np.concatenate([factors.ravel(), -factors.ravel(), radii]),
        A_eq=np.hstack([near, np.zeros((r, r * n))]),
        b_eq=np.ones(r),
        bounds=[(0.0, 1.0 if ok else 0.0) for ok in mask.ravel()]
        + [(0.0, None)] * (r * n),
    )
    assert done.status == 0
    return -sign * done.fun


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("sense", ["min", "max"])
def test_extremes_equal_those_of_linear_programs_over_all_factors(seed, sense):
    weights, factors, sets = instance(seed, everywhere=bool(seed % 2))
    v = np.random.default_rng(seed).normal(size=5)
    mask = np.ones_like(factors, dtype=bool) if seed % 2 else factors > 0.0
    sign = 1.0 if sense == "max" else -1.0
    radii = sets.factors.radius
    expected = [
        lp_over_all_factors(weights, factors, radii, mask, p, v, sign)
        for p in range(sets.n_pairs)
    ]
    np.testing.assert_allclose(sets.worst(v, sense=sense), expected, atol=1e-9)
    gain = np.arange(7.0)
    np.testing.assert_allclose(
        sets.backup(v, gain, 0.9, sense=sense),
        gain + 0.9 * np.array(expected),
        atol=1e-9,
    )


@settings(max_examples=25)
@given(seed=st.integers(0, 10_000), sense=st.sampled_from(["min", "max"]))
def test_one_member_is_worst_for_all_pairs_at_once(seed, sense):
    _, _, sets = instance(seed)
    rng = np.random.default_rng(seed)
    v = rng.normal(size=5)
    kernel = sets.worst_kernel(v, sense=sense)
    attained = np.add.reduceat(kernel * v[sets.successor], sets.row_ptr[:-1])
    np.testing.assert_allclose(attained, sets.worst(v, sense=sense), atol=1e-12)
    for member in (kernel, sets.nominal, sets.sample(rng)):
        assert sets.contains(member).all()
        assert not member[~sets.reachable].any()
        mean = np.add.reduceat(member * v[sets.successor], sets.row_ptr[:-1])
        assert (sets.worst(v, sense="min") <= mean + 1e-12).all()
        assert (mean <= sets.worst(v) + 1e-12).all()


@pytest.mark.parametrize("seed", range(3))
def test_drawn_together_the_set_falls_to_its_nominal_kernel(seed):
    _, _, sets = instance(seed)
    v = np.random.default_rng(seed).normal(size=5)
    half, point = sets.shrink(0.5), sets.shrink(0.0)
    assert (half.worst(v) <= sets.worst(v) + 1e-12).all()
    assert (half.worst(v, sense="min") >= sets.worst(v, sense="min") - 1e-12).all()
    mean = np.add.reduceat(sets.nominal * v[sets.successor], sets.row_ptr[:-1])
    np.testing.assert_allclose(point.worst(v), mean, atol=1e-12)


def test_strangers_are_told_apart():
    weights = np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]])
    factors = np.array([[0.9, 0.1, 0.0], [0.0, 0.5, 0.5]])
    sets = FactorMatrix(weights, factors, radius=0.2)

    def excess(rows):
        pair = np.repeat(np.arange(3), np.diff(sets.row_ptr))
        return sets.excess(np.array(rows)[pair, sets.successor])

    inside = [[0.8, 0.2, 0.0], [0.4, 0.3, 0.3], [0.0, 0.4, 0.6]]
    assert (excess(inside) <= 1e-12).all()
    # the first factor is .1 too far away: the pairs that mix it show it
    shifted = [[0.75, 0.25, 0.0], [0.375, 0.325, 0.3], [0.0, 0.4, 0.6]]
    np.testing.assert_allclose(excess(shifted), [0.1, 0.1, 0.0], atol=1e-12)
    # a row that no factors explain together with the others
    odd = [[0.8, 0.2, 0.0], [0.5, 0.2, 0.3], [0.0, 0.4, 0.6]]
    assert (excess(odd) > 1e-3).all()


def test_one_factor_a_pair_is_the_rectangular_set():
    rng = np.random.default_rng(0)
    cmdp = ep.environments.wall_cycle(3).cmdp
    ball = L1Ball(cmdp, radius=0.3)
    sets = FactorMatrix(sp.eye_array(cmdp.n_pairs, format="csr"), ball)
    v = rng.normal(size=cmdp.n_states)
    np.testing.assert_array_equal(sets.worst(v), ball.worst(v))
    np.testing.assert_array_equal(sets.successor, ball.successor)
    np.testing.assert_array_equal(sets.nominal, ball.nominal)
    policy = ep.Policy(np.full((9, 5), 0.2))
    apart = robust_evaluate(cmdp, policy, ball)
    together = robust_evaluate(cmdp, policy, sets)
    np.testing.assert_allclose(together.costs_upper, apart.costs_upper, rtol=1e-7)


@pytest.mark.parametrize("shape", [L1Ball, Interval, KLBall])
def test_factors_may_have_sets_of_any_shape(shape):
    rows = factor_rows([[0.5, 0.5, 0.0], [0.2, 0.3, 0.5]])
    ends = (
        (np.maximum(rows.nominal - 0.1, 0.0), np.minimum(rows.nominal + 0.1, 1.0))
        if shape is Interval
        else (0.1,)
    )
    parts = shape.around(rows, *ends)
    sets = FactorMatrix([[0.3, 0.7], [1.0, 0.0]], parts)
    v = np.array([0.0, 1.0, 3.0])
    np.testing.assert_allclose(sets.worst(v), [[0.3, 0.7], [1.0, 0.0]] @ parts.worst(v))
    assert sets.n_factors == 2
    assert sets.factors is parts


def test_pairs_that_share_factors_are_uncertain_together():
    """The rectangular set of the same rows is larger, and costs more at worst."""
    cmdp = ep.CMDP(
        [[[0.5, 0.5]], [[0.5, 0.5]]],
        [[0.0], [0.0]],
        [[0.0], [1.0]],
        discount=0.9,
        budget=5.0,
    )
    # the first pair has more of the factor that leads to costs, the second less
    sets = FactorMatrix([[0.9, 0.1], [0.1, 0.9]], [[0.5, 0.5]] * 2, radius=0.4)
    v = np.array([0.0, 1.0])
    np.testing.assert_allclose(sets.worst(v), [0.7, 0.7])
    sets = FactorMatrix([[0.9, 0.1], [0.1, 0.9]], [[0.5, 0.5]] * 2, radius=[0.0, 0.4])
    np.testing.assert_allclose(sets.worst(v), [0.52, 0.68])
    policy = ep.Policy.deterministic([0, 0], 1)
    cost = robust_evaluate(cmdp, policy, sets).costs_upper[0]
    rates = sets.worst(v)
    chain = np.array([[1 - rates[0], rates[0]], [1 - rates[1], rates[1]]])
    solved = np.linalg.solve(np.eye(2) - 0.9 * chain, [0.0, 1.0])
    np.testing.assert_allclose(cost, solved, rtol=1e-7)


def test_a_lifted_set_is_the_set_of_each_copy():
    _, _, sets = instance(2)
    copies = np.array([3, 0, 3, 6])
    entries = np.concatenate(
        [np.arange(sets.row_ptr[p], sets.row_ptr[p + 1]) for p in copies]
    )
    shift = np.repeat([0, 5, 5, 0], np.diff(sets.row_ptr)[copies])
    lifted = sets.lift(copies, sets.successor[entries] + shift, 10)
    v = np.random.default_rng(0).normal(size=10)
    first, second = sets.worst(v[:5].copy()), sets.worst(v[5:].copy())
    expected = [first[3], second[0], second[3], first[6]]
    np.testing.assert_allclose(lifted.worst(v), expected, atol=1e-12)
    np.testing.assert_allclose(lifted.nominal, sets.nominal[entries], atol=1e-15)
    np.testing.assert_array_equal(lifted.successor, sets.successor[entries] + shift)


# -- estimation ------------------------------------------------------------------------


def mixed_problem(seed: int, r: int, n_states: int = 8) -> ep.CMDP:
    """A problem whose 16 rows mix ``r`` factors, three of them purely."""
    rng = np.random.default_rng(seed)
    factors = rng.dirichlet(np.full(n_states, 0.3), size=r)
    weights = rng.dirichlet(np.full(r, 0.4), size=2 * n_states)
    weights[:r] = np.eye(r)
    rows = (weights @ factors).reshape(n_states, 2, n_states)
    zeros = np.zeros((n_states, 2))
    return ep.CMDP(rows, zeros, zeros, discount=0.9, budget=1.0)


def test_estimated_factors_report_what_they_lose():
    cmdp = mixed_problem(0, 3)
    found = estimate_factors(cmdp, 3)
    kernel = cmdp.transition_matrix.toarray()
    approximation = found.coefficients @ found.factors
    np.testing.assert_allclose(
        found.error, np.abs(approximation - kernel).sum(axis=1), atol=1e-12
    )
    np.testing.assert_allclose(found.factors.sum(axis=1), 1.0)
    np.testing.assert_allclose(found.coefficients.sum(axis=1), 1.0)
    assert found.error.max() < 0.02
    few = estimate_factors(cmdp, 1)
    assert few.error.mean() > 10 * found.error.mean()
    assert "1 factors explain 16 rows" in few.message
    rushed = estimate_factors(cmdp, 3, max_iterations=1)
    assert not rushed.converged
    assert "not at rest after 1 iterations" in rushed.message
    again = estimate_factors(cmdp, 3)
    np.testing.assert_array_equal(found.factors, again.factors)
    # the set holds the kernel up to the error
    sets = found.around(0.1)
    v = np.random.default_rng(0).normal(size=8)
    reach = 0.5 * found.error * (v.max() - v.min())
    assert (kernel @ v <= sets.worst(v) + reach + 1e-12).all()


@pytest.mark.parametrize("n_factors", [0, 9, 2.5])
def test_impossible_numbers_of_factors_are_refused(n_factors):
    with pytest.raises(ep.errors.InvalidInputError, match="n_factors: expected a"):
        estimate_factors(mixed_problem(0, 2), n_factors)


def test_a_missing_extra_names_its_line(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "sklearn.decomposition", None)
    with pytest.raises(ep.errors.MissingExtraError, match=r"escapade\[factors\]"):
        estimate_factors(mixed_problem(0, 2), 2)


def test_factor_matrices_pass_the_conformance_suite():
    cmdp = mixed_problem(1, 3)
    rows = cmdp.transition_matrix.toarray()
    weights = np.linalg.lstsq(rows[:3].T, rows.T, rcond=None)[0].T
    sets = FactorMatrix(np.abs(weights).clip(0.0), rows[:3], radius=0.2)
    check_uncertainty_set(sets, cmdp, draws=4)
    copy = pickle.loads(pickle.dumps(sets))
    v = np.random.default_rng(0).normal(size=8)
    np.testing.assert_array_equal(copy.worst(v), sets.worst(v))


# -- refusals --------------------------------------------------------------------------

EVEN = [[0.5, 0.5], [0.5, 0.5]]


@pytest.mark.parametrize(
    ("coefficients", "factors", "more", "message"),
    [
        (EVEN, [[0.5, 0.4], [1.0, 0.0]], {}, "factors: expected rows that sum to 1"),
        (EVEN, [[1.5, -0.5], [1.0, 0.0]], {}, "at least 0, found -0.5 at factor 0"),
        (EVEN, [0.5, 0.5], {}, r"factors: expected shape \(r, S\)"),
        ([[0.5, 0.6]], EVEN, {}, "coefficients: expected weights that sum to 1"),
        (
            [[1.5, -0.5]],
            EVEN,
            {},
            "coefficients: expected finite numbers of at least 0",
        ),
        ([[1.0]], EVEN, {}, r"coefficients: expected shape \(pairs, 2\)"),
        ([1.0, 0.0], EVEN, {}, r"expected shape \(S, A, r\) or \(pairs, r\)"),
        (EVEN, EVEN, {"radius": 3.0}, r"radius: expected numbers in \[0, 2\]"),
        (EVEN, EVEN, {"support": [[1, 1], [1, 1]]}, "support: expected a boolean mask"),
        (
            EVEN,
            EVEN,
            {"support": [[True, False], [True, True]]},
            "a mask that holds every factor, found none for state 1 at factor 0",
        ),
        (
            EVEN,
            L1Ball.around(factor_rows(EVEN), 0.1),
            {"radius": 0.1},
            "factors: expected an array, as a radius or support is given",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(coefficients, factors, more, message):
    with pytest.raises(ep.errors.InvalidInputError, match=message):
        FactorMatrix(coefficients, factors, **more)


def test_one_model_throughout_has_no_worst_factors():
    cmdp = mixed_problem(0, 2)
    family = Models(cmdp, [cmdp], throughout=True)
    with pytest.raises(ep.errors.InvalidInputError, match="one model throughout"):
        FactorMatrix(np.eye(cmdp.n_pairs), family)


def test_membership_takes_independent_columns():
    sets = FactorMatrix([[0.5, 0.5]], EVEN, radius=0.1)
    with pytest.raises(ep.errors.InvalidInputError, match="independent columns"):
        sets.excess(sets.nominal)
    sets = FactorMatrix(EVEN[:1] * 3, EVEN, radius=0.1)
    with pytest.raises(ep.errors.InvalidInputError, match=r"probability: expected sh"):
        sets.excess(np.ones(2))
    grid = FactorMatrix(np.full((2, 2, 2), 0.5), EVEN)
    assert grid.n_pairs == 4
    np.testing.assert_array_equal(grid.coefficients, np.full((4, 2), 0.5))
