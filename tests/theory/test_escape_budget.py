"""The Escape Budget Lemma: its budgets, its requirements, and which one binds."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from escapade.errors import InvalidInputError
from escapade.theory.budget_recursion import escape_budget_by_loop
from escapade.theory.conditions import Condition, binding
from escapade.theory.escape_budget import (
    escape_budget,
    escape_cost_bound,
    feasible_budget,
    largest_known_budget,
    least_escape_budget,
    safe_return_budget_limit,
    spending_steps,
    spending_steps_as_in_algorithm,
    uncounted_cost,
)

EASY = {
    "budget": 25.0,
    "discount": 0.98,
    "cost_max": 1.0,
    "epsilon": 1.0,
    "safe_return_budget": 5.0,
    "escape_steps": 3.0,
}


@given(
    gamma=st.floats(0.0, 0.999),
    top=st.floats(0.1, 10.0),
    share=st.floats(0.0, 1.5),
)
def test_spending_steps_are_the_least_that_spend_the_budget(gamma, top, share):
    budget = share * top / (1 - gamma)
    steps = spending_steps(budget=budget, cost_max=top, discount=gamma)

    def spent(count):
        return math.fsum(gamma**t * top for t in range(count))

    if share >= 1.0 + 1e-9:
        assert steps == math.inf
    elif steps < 5000:
        assert spent(steps) >= budget * (1 - 1e-9)
        assert steps == 0 or spent(steps - 1) <= budget * (1 + 1e-9)
    algorithm = spending_steps_as_in_algorithm(
        budget=budget, cost_max=top, discount=gamma
    )
    assert algorithm == max(steps - 1, 0)


@given(gamma=st.floats(0.1, 0.99), steps=st.integers(1, 60))
def test_a_budget_that_is_a_sum_of_costs_counts_as_spent(gamma, steps):
    budget = math.fsum(gamma**t for t in range(steps))
    if gamma**steps > 1e-9:  # later steps still add something
        assert spending_steps(budget=budget, cost_max=1.0, discount=gamma) == steps


@pytest.mark.parametrize("gamma", [0.5, 0.25, 0.9, 0.99])
def test_budgets_next_to_a_sum_of_costs_are_told_apart(gamma):
    at = {"cost_max": 1.0, "discount": gamma}
    for steps in range(1, 15):
        budget = math.fsum(gamma**t for t in range(steps))
        for near in (budget, budget * (1 + 5e-13), budget * (1 - 5e-13)):
            assert spending_steps(budget=near, **at) == steps
        assert spending_steps(budget=budget * (1 + 1e-11), **at) == steps + 1


def test_no_number_of_steps_spends_the_whole_infinite_sum():
    assert spending_steps(budget=10.0, cost_max=1.0, discount=0.9) == math.inf
    assert spending_steps(budget=2.0, cost_max=1.0, discount=0.0) == math.inf
    assert spending_steps(budget=1.0, cost_max=1.0, discount=0.0) == 1
    assert spending_steps(budget=0.0, cost_max=1.0, discount=0.9) == 0
    near = 10.0 * (1 - 1e-13)
    assert spending_steps(budget=near, cost_max=1.0, discount=0.9) > 250


@given(
    weights=st.lists(st.integers(0, 5), min_size=1, max_size=12),
    gamma=st.floats(0.0, 0.99),
)
def test_an_escape_of_d_expected_steps_costs_no_more(weights, gamma):
    chances = np.array([*weights, 1.0]) / (sum(weights) + 1.0)
    steps = np.arange(chances.size)
    cost = np.array([sum(gamma**k for k in range(t)) for t in steps])
    bound = escape_cost_bound(
        escape_steps=float(chances @ steps), cost_max=1.0, discount=gamma
    )
    assert chances @ cost <= bound + 1e-9


def test_the_bound_is_attained_by_an_escape_of_fixed_length():
    assert escape_cost_bound(
        escape_steps=3.0, cost_max=2.0, discount=0.5
    ) == pytest.approx(2.0 * 1.75)
    assert escape_cost_bound(escape_steps=0.0, cost_max=2.0, discount=0.5) == 0.0
    assert escape_cost_bound(escape_steps=0.25, cost_max=2.0, discount=0.0) == 0.5
    endless = escape_cost_bound(escape_steps=math.inf, cost_max=2.0, discount=0.5)
    assert endless == pytest.approx(4.0)
    rest = uncounted_cost(steps=3, cost_max=2.0, discount=0.5)
    assert rest == pytest.approx(4.0 - 2.0 * 1.75)
    assert uncounted_cost(steps=math.inf, cost_max=2.0, discount=0.5) == 0.0


lemmas = st.fixed_dictionaries(
    {
        "budget": st.floats(0.0, 100.0),
        "discount": st.floats(0.1, 0.99),
        "cost_max": st.floats(0.1, 5.0),
        "epsilon": st.floats(0.01, 3.0),
        "safe_return_budget": st.floats(0.0, 20.0),
        "escape_steps": st.floats(0.0, 30.0),
    }
)


@given(lemma=lemmas)
def test_the_default_known_budget_makes_d_tight(lemma):
    report = escape_budget(**lemma)
    asked = {k: v for k, v in lemma.items() if k != "discount"}
    most = largest_known_budget(**asked)
    assert report.known_budget == max(most, 0.0)
    by_d, by_k = report.requirement("d"), report.requirement("k")
    if most >= 0:
        assert by_d.holds
        assert by_k.holds
        assert min(by_d.slack, by_k.slack) == pytest.approx(0.0, abs=1e-9)
    else:
        assert not (by_d.holds and by_k.holds and report.requirement("l").holds)


@given(lemma=lemmas)
def test_requirements_do_not_conflict_when_d_holds(lemma):
    # part 0 of the proof: what is left in the worst case pays for wandering and escape
    report = escape_budget(**lemma)
    if report.requirement("d").holds and report.requirement("k").holds:
        plus = lemma["escape_steps"] + 1.0
        least = report.least_escape_budget
        assert least >= plus * lemma["cost_max"] - 1e-9
        needed = escape_cost_bound(
            escape_steps=plus, cost_max=lemma["cost_max"], discount=lemma["discount"]
        )
        assert needed <= least + 1e-9
        assert report.least_spending_steps >= plus - 1e-6


@given(lemma=lemmas)
def test_a_budget_to_plan_with_exists_from_the_feasible_budget_on(lemma):
    least = feasible_budget(
        safe_return_budget=lemma["safe_return_budget"],
        escape_steps=lemma["escape_steps"],
        cost_max=lemma["cost_max"],
        epsilon=lemma["epsilon"],
    )
    enough = escape_budget(**(lemma | {"budget": least + 1e-9}))
    assert enough.plan_budget >= -1e-6
    assert enough.requirement("l").left <= enough.requirement("l").right + 1e-6
    if least > 0.1:
        short = escape_budget(**(lemma | {"budget": 0.99 * least}))
        assert not short.holds


@given(lemma=lemmas, costs=st.lists(st.floats(0.0, 5.0), max_size=12))
def test_d_prime_is_what_the_loop_over_the_past_leaves(lemma, costs):
    report = escape_budget(**lemma, costs=costs)
    bounds = escape_budget_by_loop(
        costs,
        discount=lemma["discount"],
        budget=lemma["budget"],
        safe_return_budget=lemma["safe_return_budget"],
    )
    scale = max(1.0, abs(min(bounds)))
    assert report.escape_budget == pytest.approx(
        max(min(bounds), 0.0), abs=1e-9 * scale
    )
    by_b, by_c = report.requirement("b"), report.requirement("c")
    assert by_c.right == bounds[-1]
    if costs:
        assert by_b.right == pytest.approx(min(bounds[:-1]), abs=1e-9 * scale)
    else:
        assert by_b.right == math.inf
    if min(bounds) >= 0:
        assert by_b.holds
        assert by_c.holds


def test_the_binding_requirement_is_named():
    assert escape_budget(**EASY, costs=[1.0] * 8).binding.name == "b"
    assert escape_budget(**EASY).binding.name == "c"
    assert escape_budget(**EASY, requested=2.0).binding.name == "a"
    far = escape_budget(**(EASY | {"escape_steps": 40.0}))
    assert far.binding.name == "d"
    assert not far.holds
    assert not far.printed_diameter_requirement
    generous = escape_budget(**EASY, known_budget=24.5)
    assert not generous.requirement("k").holds
    tight = escape_budget(**EASY, known_budget=1.0)
    assert not tight.requirement("l").holds
    assert tight.plan_budget == -1.0


def test_an_escape_that_may_never_end_fails():
    report = escape_budget(**(EASY | {"escape_steps": math.inf}))
    assert not report.holds
    assert report.known_budget == 0.0
    assert report.binding.name == "d"


def test_everything_is_read_off_one_report():
    report = escape_budget(**EASY, known_budget=10.0, requested=8.0)
    assert report.safe_return_budget == 5.0
    assert report.least_escape_budget == least_escape_budget(
        budget=25.0, known_budget=10.0, safe_return_budget=5.0, epsilon=1.0
    )
    assert report.least_escape_budget == 6.0
    assert report.requirement("d").right == safe_return_budget_limit(
        budget=25.0, known_budget=10.0, escape_steps=3.0, cost_max=1.0, epsilon=1.0
    )
    assert report.requirement("d").right == 6.0
    assert report.spending_steps == 9
    assert report.least_spending_steps == 7
    assert report.escape_steps_plus == 4.0
    assert report.printed_diameter_requirement
    assert report.holds
    with pytest.raises(InvalidInputError, match=r"^name: expected one of \['a', 'b'"):
        report.requirement("z")


def test_with_no_future_an_overspent_past_leaves_nothing():
    numbers = EASY | {"discount": 0.0}
    kept = escape_budget(**numbers, costs=[25.0])
    assert kept.requirement("b").right == math.inf
    broken = escape_budget(**numbers, costs=[26.0])
    assert broken.requirement("b").right == -math.inf
    assert broken.escape_budget == 0.0
    assert not broken.holds


@pytest.mark.parametrize(
    ("left", "right", "holds", "slack"),
    [
        (1.0, 2.0, True, 1.0),
        (2.0, 1.0, False, -1.0),
        (1.0 + 1e-14, 1.0, True, -1e-14),
        (0.0, 0.0, True, 0.0),
        (math.inf, math.inf, True, 0.0),
        (math.inf, 3.0, False, -math.inf),
        (3.0, math.inf, True, math.inf),
        (3.0, -math.inf, False, -math.inf),
    ],
)
def test_a_condition_compares_its_sides(left, right, holds, slack):
    condition = Condition(name="x", left=left, right=right, sentence="")
    assert condition.holds is holds
    assert condition.slack == pytest.approx(slack, abs=1e-15)


def test_sides_that_differ_by_rounding_are_equal():
    sides = {"name": "x", "left": 0.0, "right": -1e-17, "sentence": ""}
    assert not Condition(**sides).holds
    assert Condition(**sides, scale=1.0).holds


def test_the_first_of_equal_slacks_binds():
    pair = [
        Condition(name=name, left=1.0, right=2.0, sentence="") for name in ("x", "y")
    ]
    assert binding(pair).name == "x"
