"""Example 1: the whole report is that of the lemma on its numbers."""

from __future__ import annotations

import pytest

from escapade.theory.budget_recursion import escape_budget_by_loop
from escapade.theory.example_one import example_one, example_one_as_printed


def test_every_requirement_of_the_example_holds():
    numbers, report = example_one()
    assert report.holds
    # d' is as large as (b) lets it be, and d'' as large as (d) does
    assert report.binding.name == "b"
    assert report.requirement("b").slack == pytest.approx(0.0)
    assert report.requirement("d").slack == pytest.approx(0.0)
    assert numbers.escape_budget == report.escape_budget


def test_the_budget_is_least_where_it_says():
    numbers, _ = example_one()
    bounds = escape_budget_by_loop(
        (0.0, 1.0, 0.0, 0.0, 1.0, 0.5, 1.0, 1.0, 1.0),
        discount=0.98,
        budget=25.0,
        safe_return_budget=5.0,
    )
    assert bounds[numbers.binding_time] == min(bounds)
    assert numbers.escape_budget == pytest.approx(min(bounds))


def test_printed_and_computed_agree_where_the_paper_is_right():
    numbers, _ = example_one()
    printed = example_one_as_printed()
    assert numbers.horizon == printed.horizon
    assert numbers.known_budget == printed.known_budget
    assert numbers.binding_time == printed.binding_time
    assert len(numbers.path_costs) == len(printed.path_costs)
    assert numbers.spending_steps != printed.spending_steps
