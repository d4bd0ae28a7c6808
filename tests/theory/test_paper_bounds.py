"""All numbers at once: they are those of the modules, and any input is answered."""

from __future__ import annotations

import math
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

import escapade as ep
from escapade.errors import InvalidInputError
from escapade.theory import attempts, known_states
from escapade.theory.escape_budget import escape_budget

EXAMPLE_TWO = {"n_states": 100, "n_actions": 5, "discount": 0.99, "budget": 10.0}


def test_rows_are_the_numbers_of_the_modules():
    found = ep.theory.bounds(
        **EXAMPLE_TWO, safe_return_budget=1.0, escape_steps=2.0, costs=[0.0, 1.0, 1.0]
    )
    lemma = escape_budget(
        budget=10.0,
        discount=0.99,
        cost_max=1.0,
        epsilon=1.0,
        safe_return_budget=1.0,
        escape_steps=2.0,
        costs=[0.0, 1.0, 1.0],
    )
    assert found.requirements == lemma.requirements
    assert found.binding == lemma.binding
    assert found.holds == lemma.holds
    for symbol, value in {
        "d''": lemma.known_budget,
        "d'": lemma.escape_budget,
        "d'_min": lemma.least_escape_budget,
        "L": lemma.running_budget,
        "T'": lemma.spending_steps,
        "T_min": lemma.least_spending_steps,
        "l": lemma.known_budget - 1.0,
        "(d)": lemma.requirement("d").slack,
    }.items():
        assert found.value(symbol) == value
    assert found.value("l", "paper") == lemma.known_budget - 2.0
    assert found.value("T'", "paper") == lemma.spending_steps - 1
    sizes = {k: v for k, v in EXAMPLE_TWO.items() if k != "budget"}
    asked = sizes | {
        "epsilon": 1.0,
        "delta": 0.05,
        "reward_max": 1.0,
        "cost_max": 1.0,
    }
    assert found.value("m_known") == known_states.known_visits(**asked)
    assert found.value("N") == attempts.sample_complexity(**asked).attempts
    assert found.value("N", "paper") == pytest.approx(found.value("N") / 2)


def test_rows_are_ready_to_be_shown():
    found = ep.theory.bounds(**EXAMPLE_TWO)
    groups = [row.group for row in found.rows()]
    assert sorted(set(groups), key=groups.index) == [
        "Horizon",
        "Known states",
        "Budgets",
        "Complexity",
        "Confidence radii",
        "Single paths",
    ]
    assert groups == sorted(groups, key=groups.index)  # groups stand together
    for row in found.rows():
        assert row.name
        assert row.symbol
        assert row.meaning
        assert isinstance(row.value, (int, float))
        assert not math.isnan(row.value)
    corrected, printed = found.rows("corrected"), found.rows("paper")
    assert {row.form for row in corrected} == {"corrected", "both"}
    assert {row.form for row in printed} == {"paper", "both"}
    keys = [row.symbol for row in corrected]
    assert len(keys) == len(set(keys))
    assert dict(found.inputs)["n_states"] == 100
    assert dict(found.inputs)["known_budget"] == found.value("d''")


def test_a_number_of_visits_changes_radii_and_complexity():
    few = ep.theory.bounds(**EXAMPLE_TWO, visits=1000)
    assert dict(few.inputs)["visits"] == 1000
    assert few.value("psi") == pytest.approx(
        math.sqrt(2 / 1000 * math.log(2.0**100 * 500 / 0.05))
    )
    assert few.value("actions") < ep.theory.bounds(**EXAMPLE_TWO).value("actions")


def test_no_kernel_is_loaded_for_numbers():
    code = (
        "import sys, escapade as ep;"
        "ep.theory.bounds(n_states=3, n_actions=2, discount=0.9, budget=5.0);"
        "print('numba' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"


def test_unknown_names_are_refused():
    found = ep.theory.bounds(**EXAMPLE_TWO)
    with pytest.raises(InvalidInputError, match=r"^symbol: expected one of \["):
        found.value("x")
    with pytest.raises(InvalidInputError, match=r"^form: "):
        found.rows("printed")
    with pytest.raises(AttributeError, match="has no attribute 'bound'"):
        _ = ep.theory.bound
    assert "bounds" in dir(ep.theory)


@pytest.mark.parametrize(
    ("change", "argument"),
    [
        ({"n_states": 0}, "n_states"),
        ({"n_actions": 2.0}, "n_actions"),
        ({"discount": 1.0}, "discount"),
        ({"budget": -1.0}, "budget"),
        ({"epsilon": 0}, "epsilon"),
        ({"delta": 1.0}, "delta"),
        ({"reward_max": 0.0}, "reward_max"),
        ({"cost_max": 0.0}, "cost_max"),
        ({"n_costs": 0}, "n_costs"),
        ({"escape_steps": -1.0}, "escape_steps"),
        ({"safe_return_budget": math.inf}, "safe_return_budget"),
        ({"known_budget": -1.0}, "known_budget"),
        ({"costs": [0.0, math.nan]}, "costs"),
        ({"variance": -1.0}, "variance"),
        ({"visits": 0}, "visits"),
        ({"deviations": -1.0}, "deviations"),
        ({"optimisation_operations": -1.0}, "optimisation_operations"),
    ],
)
def test_wrong_numbers_are_refused_by_name(change, argument):
    with pytest.raises(InvalidInputError, match=rf"^{argument}: expected "):
        ep.theory.bounds(**(EXAMPLE_TWO | change))


anything = st.floats(0.0, 1e300, exclude_min=True)


@given(
    numbers=st.fixed_dictionaries(
        {
            "n_states": st.integers(1, 10**160),
            "n_actions": st.integers(1, 10**9),
            "discount": st.floats(0.0, 1.0, exclude_max=True),
            "budget": anything,
            "epsilon": anything,
            "delta": st.floats(0.0, 1.0, exclude_min=True, exclude_max=True),
            "reward_max": anything,
            "cost_max": anything,
            "escape_steps": st.one_of(anything, st.just(math.inf)),
            "safe_return_budget": anything,
            "costs": st.lists(anything, max_size=3),
        }
    )
)
def test_extreme_numbers_are_answered_or_refused(numbers):
    try:
        found = ep.theory.bounds(**numbers)
    except InvalidInputError:
        return
    assert found.rows()
    assert found.value("T") >= 1
