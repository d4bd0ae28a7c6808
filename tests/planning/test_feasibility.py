"""Can the budgets be kept: both answers, and their proofs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

import escapade as ep
from escapade.errors import SolverError
from escapade.planning import feasibility
from escapade.planning.feasibility import closest_to_budgets, cost_scales, least_costs
from escapade.planning.oracle import Oracle
from escapade.testing import cmdps


@given(cmdp=cmdps(max_states=4, max_costs=3))
@settings(max_examples=40)
def test_the_verdict_is_that_of_a_linear_program(
    cmdp, reference, unconstrained
) -> None:
    oracle = Oracle(cmdp)
    closest = closest_to_budgets(oracle)
    if closest.proof is not None:
        assert (closest.proof >= 0.0).all()
        cheapest = -unconstrained(cmdp, -closest.proof @ cmdp.cost)
        assert cheapest > closest.proof @ cmdp.budget - 1e-9
        assert not reference(cmdp).feasible
    else:
        assert reference(cmdp).feasible
        over = (closest.costs - cmdp.budget) / cost_scales(cmdp)
        assert over.max() == pytest.approx(closest.excess, abs=1e-12)
        assert closest.excess <= 1e-8
    visits = closest.visits(oracle)
    np.testing.assert_allclose(cmdp.cost @ visits, closest.costs, atol=1e-6)
    assert closest.weights.sum() == pytest.approx(1.0)


def test_the_least_excess_is_found_to_the_end() -> None:
    """Two actions that cost in a channel each: half and half is the least evil."""
    cmdp = ep.CMDP(
        np.ones((1, 2, 1)),
        [[0.0, 0.0]],
        [[[1.0, 0.0]], [[0.0, 1.0]]],
        discount=0.5,
        budget=[0.5, 0.5],
    )
    closest = closest_to_budgets(Oracle(cmdp), to_the_end=True)
    assert closest.proof is not None
    np.testing.assert_allclose(closest.costs, 1.0)
    assert closest.excess == pytest.approx(0.25)


def test_known_policies_are_used(problem) -> None:
    cmdp = problem(0, n_costs=3)
    oracle = Oracle(cmdp)
    column = oracle.best(np.ones(3), reward_weight=0.0)
    generous = Oracle(cmdp.replace(budget=column.costs * 1.1 + 1.0))
    closest = closest_to_budgets(generous, [column])
    assert generous.calls == 0
    assert closest.excess < 0.0
    np.testing.assert_array_equal(closest.columns[0].pairs, column.pairs)


@given(cmdp=cmdps(max_states=4, max_costs=2))
@settings(max_examples=20)
def test_least_costs_are_those_of_a_linear_program(cmdp, unconstrained) -> None:
    lower, least = least_costs(Oracle(cmdp))
    assert (lower <= least).all()
    for k, cost in enumerate(cmdp.cost):
        exact = -unconstrained(cmdp, -cost)
        assert least[k] == pytest.approx(exact, rel=1e-6, abs=1e-7)
        assert lower[k] == pytest.approx(exact, rel=1e-6, abs=1e-7)
        # attained by a policy, so enough as a budget
        budget = np.asarray(cmdp.cost_max / (1.0 - cmdp.discount))
        budget[k] = least[k]
        assert ep.solve(cmdp.replace(budget=budget)).is_feasible


def test_channels_that_are_free_do_no_harm() -> None:
    cmdp = ep.CMDP(
        np.ones((1, 2, 1)),
        [[1.0, 0.5]],
        [[[0.0, 0.0]], [[1.0, 0.0]]],
        discount=0.5,
        budget=[0.0, 1.0],
        cost_max=[0.0, 1.0],
    )
    np.testing.assert_array_equal(cost_scales(cmdp), [1.0, 2.0])
    answer = ep.solve(cmdp)
    assert answer.value == pytest.approx(1.5)
    assert answer.multipliers[1] == pytest.approx(0.5)


def test_running_out_of_policies_is_an_error(monkeypatch) -> None:
    rng = np.random.default_rng(0)
    cmdp = ep.CMDP(
        rng.dirichlet(np.ones(6), size=(6, 4)),
        rng.random((6, 4)),
        rng.random((3, 6, 4)),
        discount=0.9,
        budget=np.full(3, 20.0),
    )
    least = closest_to_budgets(
        Oracle(cmdp.replace(budget=np.zeros(3))), to_the_end=True
    )
    # budgets that a mixture keeps by a hair take several policies to find
    tight = cmdp.replace(budget=least.costs.max() + 1e-3 * np.ones(3))
    assert closest_to_budgets(Oracle(tight)).excess <= 0.0
    monkeypatch.setattr(feasibility, "_MAX_CALLS", 1)
    with pytest.raises(SolverError, match="was not found in 1 policies"):
        closest_to_budgets(Oracle(tight))
