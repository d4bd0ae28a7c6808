"""What past costs leave: the recursion is the loop over all past times."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from escapade.errors import InvalidInputError
from escapade.theory.budget_recursion import (
    escape_budget_by_loop,
    escape_budget_by_recursion,
    next_running_budget,
    path_cost,
    path_costs,
    running_budget,
)

costs_of_a_path = st.lists(st.floats(0.0, 5.0), max_size=30)
discounts = st.floats(0.3, 0.999)


@given(costs=costs_of_a_path, gamma=st.floats(0.0, 0.999))
def test_the_cost_of_a_path_is_its_discounted_sum(costs, gamma):
    total = math.fsum(gamma**t * cost for t, cost in enumerate(costs))
    assert path_cost(costs, discount=gamma) == pytest.approx(total, abs=1e-12)
    from_each = path_costs(costs, discount=gamma)
    assert len(from_each) == len(costs)
    for start, found in enumerate(from_each):
        assert found == pytest.approx(path_cost(costs[start:], discount=gamma))


@given(
    costs=costs_of_a_path,
    gamma=discounts,
    budget=st.floats(0.0, 50.0),
    share=st.floats(0.0, 1.0),
)
def test_the_recursion_is_the_least_bound_of_the_loop(costs, gamma, budget, share):
    asked = {"discount": gamma, "budget": budget, "safe_return_budget": share * budget}
    bounds = escape_budget_by_loop(costs, **asked)
    assert len(bounds) == len(costs) + 1
    found = escape_budget_by_recursion(costs, **asked)
    scale = max(1.0, abs(min(bounds)))
    assert found == pytest.approx(min(bounds), abs=1e-9 * scale)


@given(
    costs=costs_of_a_path,
    gamma=discounts,
    budget=st.floats(0.0, 50.0),
    spend=st.floats(0.0, 50.0),
)
def test_spending_what_is_left_keeps_every_past_budget(costs, gamma, budget, spend):
    # A future of cost `spend` keeps all past promises exactly if it is at most L.
    left = running_budget(costs, discount=gamma, budget=budget)[-1]
    totals = path_costs([*costs, spend], discount=gamma)
    kept = all(total <= budget for total in totals)
    if spend < left - 1e-6:
        assert kept
    elif spend > left + 1e-6:
        assert not all(total <= budget - 1e-9 for total in totals)


def test_the_budget_never_exceeds_d_and_an_overspent_one_falls_for_ever():
    path = running_budget([0.0, 9.0, 0.0, 0.0], discount=0.5, budget=4.0)
    assert path == (4.0, 4.0, -10.0, -20.0, -40.0)


def test_without_a_future_only_the_present_counts():
    assert next_running_budget(4.0, 4.0, discount=0.0, budget=4.0) == 4.0
    assert next_running_budget(4.0, 4.5, discount=0.0, budget=4.0) == -math.inf


def test_a_past_that_is_too_far_away_binds_no_more():
    bounds = escape_budget_by_loop(
        [0.5] * 20_000, discount=0.9, budget=10.0, safe_return_budget=1.0
    )
    assert bounds[0] == math.inf
    assert min(bounds) == escape_budget_by_recursion(
        [0.5] * 20_000, discount=0.9, budget=10.0, safe_return_budget=1.0
    )


def test_wrong_numbers_are_refused():
    with pytest.raises(InvalidInputError, match=r"^costs: .* at position 1"):
        path_cost([0.0, -1.0], discount=0.5)
    with pytest.raises(InvalidInputError, match=r"^costs: expected a sequence"):
        path_cost(["a lot"], discount=0.5)
    with pytest.raises(InvalidInputError, match=r"^costs: expected a sequence"):
        path_cost(3.0, discount=0.5)
    with pytest.raises(InvalidInputError, match=r"^costs: expected one row"):
        path_cost([[1.0], [2.0]], discount=0.5)
    with pytest.raises(InvalidInputError, match=r"^running: .* at most budget = 4"):
        next_running_budget(5.0, 0.0, discount=0.5, budget=4.0)
    with pytest.raises(InvalidInputError, match=r"^running: "):
        next_running_budget(math.nan, 0.0, discount=0.5, budget=4.0)
    with pytest.raises(InvalidInputError, match=r"^discount: expected a number in \(0"):
        escape_budget_by_loop([], discount=0.0, budget=1.0, safe_return_budget=0.0)
