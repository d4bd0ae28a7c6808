"""When wandering stops: the printed test and the two others, at their borders."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from escapade.errors import InvalidInputError
from escapade.theory.wandering import (
    wandering_allowed,
    wandering_allowed_as_printed,
    wandering_allowed_in_expectation,
)

AT = {"spent": 1.0, "step": 2, "cost_max": 1.0, "discount": 0.5}


def test_the_corrected_test_charges_the_step_and_the_worst_escape():
    # 1 + ¼ (1 + ½ · 4) = 1.75
    allowed = {"worst_escape_cost": 4.0, **AT}
    assert wandering_allowed(escape_budget=1.75, **allowed)
    assert not wandering_allowed(escape_budget=1.7499, **allowed)


def test_the_printed_test_is_strict_and_discounts_one_step_less():
    # 1 + ¼ · 4 < d' − 1
    allowed = {"expected_escape_cost": 4.0, **AT}
    assert not wandering_allowed_as_printed(escape_budget=3.0, **allowed)
    assert wandering_allowed_as_printed(escape_budget=3.0001, **allowed)


@given(
    spent=st.floats(0.0, 10.0),
    step=st.integers(0, 20),
    worst=st.floats(0.0, 20.0),
    share=st.floats(0.0, 1.0),
    budget=st.floats(0.0, 30.0),
    gamma=st.floats(0.0, 0.99),
)
def test_the_worst_case_allows_no_more_than_the_expectation(
    spent, step, worst, share, budget, gamma
):
    at = {
        "spent": spent,
        "step": step,
        "escape_budget": budget,
        "cost_max": 1.0,
        "discount": gamma,
    }
    if wandering_allowed(worst_escape_cost=worst, **at):
        assert wandering_allowed_in_expectation(
            expected_escape_cost=share * worst, **at
        )


@given(
    spent=st.floats(0.0, 5.0),
    step=st.integers(0, 20),
    escape=st.floats(0.0, 20.0),
    gamma=st.floats(0.0, 0.99),
    costs=st.lists(st.floats(0.0, 1.0), min_size=1, max_size=1),
)
def test_an_allowed_step_followed_by_the_escape_keeps_the_budget(
    spent, step, escape, gamma, costs
):
    budget = spent + gamma**step * (1.0 + gamma * escape)
    after = spent + gamma**step * (costs[0] + gamma * escape)
    assert after <= budget + 1e-12
    assert wandering_allowed(
        spent=spent,
        step=step,
        worst_escape_cost=escape,
        escape_budget=budget * (1 + 1e-12),
        cost_max=1.0,
        discount=gamma,
    )


def test_wrong_numbers_are_refused():
    with pytest.raises(InvalidInputError, match=r"^step: "):
        wandering_allowed(
            worst_escape_cost=1.0, escape_budget=1.0, **(AT | {"step": -1})
        )
