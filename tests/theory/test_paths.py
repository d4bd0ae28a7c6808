"""Single paths: tails that are attained, and the deviation of random paths."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

import escapade as ep
from escapade.model.evaluation import policy_matrix
from escapade.testing import cmdps, policies
from escapade.theory.paths import (
    cantelli_tail,
    normal_tail,
    path_constraint,
    path_deviation_bound,
    path_deviation_bound_as_printed,
)


@given(k=st.floats(0.01, 20.0))
def test_cantelli_is_attained_by_two_points(k):
    # the upper of two points, k standard deviations above the mean
    chance = 1.0 / (1.0 + k * k)
    low, high = -1.0 / k, k
    mean = chance * high + (1 - chance) * low
    variance = chance * high**2 + (1 - chance) * low**2
    assert mean == pytest.approx(0.0, abs=1e-9)
    assert variance == pytest.approx(1.0)
    assert cantelli_tail(deviations=k) == pytest.approx(chance)


@given(k=st.floats(0.0, 30.0))
def test_the_normal_tail_is_the_normal_tail(k):
    assert normal_tail(deviations=k) == pytest.approx(norm.sf(k), rel=1e-9)
    assert normal_tail(deviations=k) <= cantelli_tail(deviations=k)


@given(data=st.data())
def test_no_path_cost_deviates_more_than_the_bound(data):
    cmdp = data.draw(cmdps(max_states=4, max_costs=1, discounts=(0.0, 0.5, 0.9)))
    policy = data.draw(policies(cmdp))
    weights = policy.pair_weights(cmdp)
    gamma, cost = cmdp.discount, cmdp.cost[0]
    mean = ep.evaluate(cmdp, policy).costs[0]
    # second moments: E[(c + γX')²] with the cost a function of the pair
    step = cost**2 + 2 * gamma * cost * (cmdp.transition_matrix @ mean)
    gain = np.add.reduceat(step * weights, cmdp.state_ptr[:-1])
    P = policy_matrix(cmdp, weights).toarray()
    second = np.linalg.solve(np.eye(cmdp.n_states) - gamma**2 * P, gain)
    bound = path_deviation_bound(cost_max=float(cmdp.cost_max[0]), discount=gamma)
    assert (second - mean**2 <= bound**2 + 1e-6).all()


def test_the_bound_is_attained_where_a_coin_decides_for_ever():
    # heads costs 1 for ever, tails nothing; both are deterministic costs
    gamma = 0.9
    costs = np.array([0.0, 1.0 / (1 - gamma)])
    bound = path_deviation_bound(cost_max=1.0, discount=gamma)
    assert costs.std() == pytest.approx(bound)
    assert path_deviation_bound_as_printed(cost_variance=0.0, discount=gamma) == 0.0
    assert path_deviation_bound_as_printed(
        cost_variance=0.25, discount=gamma
    ) == pytest.approx(0.5 / (1 - gamma))


def test_the_constraint_keeps_away_from_the_budget():
    found = path_constraint(budget=25.0, cost_max=1.0, discount=0.98, deviation=4.0)
    assert found.path_budget == 13.0
    assert found.failure == pytest.approx(0.1)
    assert found.normal_failure == pytest.approx(norm.sf(3.0))
    assert found.usable
    tight = path_constraint(budget=25.0, cost_max=1.0, discount=0.98)
    assert tight.deviation == pytest.approx(25.0)
    assert tight.path_budget == pytest.approx(-50.0)
    assert not tight.usable


@given(k=st.floats(0.0, 5.0), budget=st.floats(0.0, 100.0))
def test_more_deviations_leave_less_budget_and_less_risk(k, budget):
    def found(deviations):
        return path_constraint(
            budget=budget,
            cost_max=1.0,
            discount=0.5,
            deviation=2.0,
            deviations=deviations,
        )

    near, far = found(k), found(k + 1.0)
    assert far.path_budget == pytest.approx(near.path_budget - 2.0)
    assert far.failure < near.failure
    assert near.budget == budget
    assert math.isclose(near.failure, 1 / (1 + k**2))
