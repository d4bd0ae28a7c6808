"""Rectangular hulls: the smallest there is, and what taking it loses."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import escapade as ep
from escapade.model.evaluation import evaluate
from escapade.planning.robust_evaluation import robust_evaluate
from escapade.uncertainty import L1Ball, Models, rectangular_hull


def family(seed: int, n_models=3, n_states=2, n_actions=2, n_costs=2):
    rng = np.random.default_rng(seed)
    reward = rng.random((n_states, n_actions))
    cost = rng.random((n_costs, n_states, n_actions))
    kernels = rng.dirichlet(np.ones(n_states), size=(n_models, n_states, n_actions))
    problems = [
        ep.CMDP(k, reward, cost, discount=0.9, budget=np.ones(n_costs)) for k in kernels
    ]
    return problems, Models(problems[0], problems, throughout=True)


def random_policy(seed: int) -> ep.Policy:
    weights = np.random.default_rng(seed).dirichlet(np.ones(2), size=2)
    return ep.Policy(weights)


@pytest.mark.parametrize("seed", range(3))
def test_the_loss_is_that_of_all_kernels_of_the_hull_enumerated(seed):
    problems, models = family(seed)
    hull = rectangular_hull(models)
    policy = random_policy(seed)
    rows = [p.transition_matrix.toarray() for p in problems]
    values, costs = [], []
    for choice in itertools.product(range(3), repeat=4):
        kernel = np.stack([rows[m][pair] for pair, m in enumerate(choice)])
        mixed = ep.CMDP(
            kernel.reshape(2, 2, 2),
            problems[0].reward.reshape(2, 2),
            problems[0].cost.reshape(2, 2, 2),
            discount=0.9,
            budget=np.ones(2),
        )
        result = evaluate(mixed, policy)
        values.append(result.start_value)
        costs.append(result.start_costs)
    alone = [evaluate(p, policy) for p in problems]
    own = np.array([r.start_value for r in alone])
    paid = np.array([r.start_costs for r in alone])
    loss = hull.loss(problems[0], policy)
    assert loss.value_lower == pytest.approx(own.min() - min(values), abs=1e-7)
    assert loss.value_upper == pytest.approx(max(values) - own.max(), abs=1e-7)
    np.testing.assert_allclose(
        loss.costs_lower, paid.min(axis=0) - np.min(costs, axis=0), atol=1e-7
    )
    np.testing.assert_allclose(
        loss.costs_upper, np.max(costs, axis=0) - paid.max(axis=0), atol=1e-7
    )
    assert loss.error < 1e-6
    assert min(loss.value_lower, loss.value_upper, *loss.costs_upper) >= -loss.error
    # and that of robust evaluation, which knows nothing of models
    wide = robust_evaluate(problems[0], policy, hull.sets)
    narrow = robust_evaluate(problems[0], policy, models)
    np.testing.assert_allclose(
        wide.start_costs_upper - narrow.start_costs_upper, loss.costs_upper, atol=1e-6
    )


@pytest.mark.parametrize("seed", range(3))
def test_the_hull_holds_each_row_of_each_model_and_no_more(seed):
    problems, models = family(seed)
    hull = rectangular_hull(models).sets
    assert hull.rectangular
    v = np.random.default_rng(seed).normal(size=2)
    rows = np.stack([p.transition_matrix @ v for p in problems])
    np.testing.assert_allclose(hull.worst(v), rows.max(axis=0), atol=1e-12)
    np.testing.assert_allclose(hull.worst(v, sense="min"), rows.min(axis=0), atol=1e-12)


def test_no_kernel_is_further_away_than_the_distance():
    problems, models = family(5, n_models=4)
    hull = rectangular_hull(models)
    rows = np.stack([p.transition_matrix.toarray() for p in problems])
    assert 0.0 < hull.distance < 1.0
    for choice in itertools.product(range(4), repeat=4):
        kernel = np.stack([rows[m][pair] for pair, m in enumerate(choice)])
        apart = 0.5 * np.abs(rows - kernel).sum(axis=2).max(axis=1)
        assert apart.min() <= hull.distance + 1e-12
        assert apart[hull.centre] <= hull.distance + 1e-12
    assert hull.kernels_log10 == pytest.approx(4 * np.log10(4))
    assert "4 models became 10^2.4 kernels" in hull.message


def test_repeated_rows_are_put_aside_and_nothing_is_lost():
    problems, _ = family(0)
    twice = Models(
        problems[0], [problems[0], problems[1], problems[0]], throughout=True
    )
    hull = rectangular_hull(twice)
    assert hull.sets.active.sum(axis=1).tolist() == [2, 2, 2, 2]
    assert hull.kernels_log10 == pytest.approx(4 * np.log10(2))
    alone = rectangular_hull(Models(problems[0], problems[:1], throughout=True))
    assert (alone.distance, alone.kernels_log10) == (0.0, 0.0)
    loss = alone.loss(problems[0], random_policy(0))
    assert abs(loss.value_lower) <= loss.error
    assert (np.abs(loss.costs_upper) <= loss.error).all()


def test_samples_of_a_posterior_can_be_projected():
    rng = np.random.default_rng(0)
    samples = rng.dirichlet([5.0, 2.0, 1.0], size=(20, 3, 2))
    hull = rectangular_hull(Models.from_posterior_samples(samples))
    assert hull.family.n_models == 20
    v = np.array([0.0, 1.0, 3.0])
    most = (samples @ v).max(axis=0).reshape(-1)
    np.testing.assert_allclose(hull.sets.worst(v), most, atol=1e-12)


def test_what_is_no_family_is_refused():
    problems, _ = family(0)
    with pytest.raises(ep.errors.InvalidInputError, match="family: expected a family"):
        rectangular_hull(L1Ball(problems[0], 0.1))
