"""The priced oracle: columns are policies, bounds bound every policy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import escapade as ep
from escapade.planning.oracle import (
    Oracle,
    evaluation_precision,
    lagrangian_bound,
    mixed_visits,
)
from escapade.testing import cmdps, policies


@given(data=st.data(), cmdp=cmdps(max_states=4, max_costs=3))
@settings(max_examples=30)
def test_no_policy_beats_the_bound(data, cmdp) -> None:
    oracle = Oracle(cmdp)
    level = st.integers(0, 16).map(lambda n: n / 4.0)
    for weight in (1.0, 0.0):
        prices = np.array([data.draw(level) for _ in range(cmdp.n_costs)])
        column = oracle.best(prices, reward_weight=weight)
        result = ep.evaluate(cmdp, data.draw(policies(cmdp)))
        priced = weight * result.start_value - prices @ result.start_costs
        size = 1.0 + abs(weight * result.start_value) + prices @ result.start_costs
        assert priced <= column.bound + 1e-9 * size
        # the column's policy attains the bound, and is what it says
        own = weight * column.value - prices @ column.costs
        assert own == pytest.approx(column.bound, abs=1e-9 * size)
        policy = ep.Policy.deterministic(cmdp.pair_action[column.pairs], cmdp.n_actions)
        result = ep.evaluate(cmdp, policy)
        within = result.error + column.value_error
        assert abs(result.start_value - column.value) <= within
        within = result.error + column.cost_errors
        assert (np.abs(result.start_costs - column.costs) <= within).all()


@given(data=st.data(), cmdp=cmdps(max_states=4, max_costs=2, feasible=True))
@settings(max_examples=20)
def test_any_prices_bound_the_constrained_optimum(data, cmdp, reference) -> None:
    level = st.integers(0, 16).map(lambda n: n / 4.0)
    prices = np.array([data.draw(level) for _ in range(cmdp.n_costs)])
    upper, _ = lagrangian_bound(Oracle(cmdp), prices)
    best = reference(cmdp).value
    assert upper >= best - 1e-7 * max(1.0, best)


def test_calls_are_counted_and_a_warm_start_is_free(problem) -> None:
    cmdp = problem(1, n_costs=2)
    oracle = Oracle(cmdp)
    one = oracle.best(np.ones(2))
    two = oracle.best(np.ones(2))
    assert oracle.calls == 2
    assert two.pairs is one.pairs
    assert two.value == one.value
    other = oracle.best(np.zeros(2))
    assert other.pairs is not one.pairs
    np.testing.assert_array_equal(one.pairs, two.pairs)  # columns never change


def test_mixtures_earn_the_mixture(problem) -> None:
    cmdp = problem(2, n_costs=2)
    oracle = Oracle(cmdp)
    columns = [oracle.best(np.full(2, price)) for price in (0.0, 0.5, 5.0)]
    weights = np.array([0.25, 0.0, 0.75])
    visits = mixed_visits(oracle, columns, weights)
    assert visits @ cmdp.reward == pytest.approx(
        0.25 * columns[0].value + 0.75 * columns[2].value, rel=1e-8
    )
    np.testing.assert_allclose(
        cmdp.cost @ visits,
        0.25 * columns[0].costs + 0.75 * columns[2].costs,
        rtol=1e-8,
    )


def test_precision_asked_for_can_be_reached(problem) -> None:
    for seed in range(6):
        for discount in (0.9, 0.999, 0.9999):
            cmdp = problem(seed).replace(discount=discount)
            result = ep.evaluate(
                cmdp, ep.Policy.uniform(cmdp), precision=evaluation_precision(cmdp)
            )
            assert result.error > 0.0
