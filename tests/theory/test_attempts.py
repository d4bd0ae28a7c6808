"""Exploration attempts: the Chernoff count, and the complexity bounds made of it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from escapade.errors import InvalidInputError
from escapade.theory.attempts import (
    attempts_failure,
    exploration_attempts,
    exploration_attempts_as_printed,
    sample_complexity,
    sample_complexity_as_printed,
    time_complexity,
    time_complexity_as_printed,
)
from escapade.theory.explore_or_exploit import theorem_margins
from escapade.theory.horizons import horizon_time, value_bound
from escapade.theory.known_states import known_visits, known_visits_as_printed

PROBLEM = {
    "n_states": 4,
    "n_actions": 2,
    "discount": 0.9,
    "epsilon": 0.5,
    "delta": 0.1,
    "reward_max": 1.0,
    "cost_max": 2.0,
}


@given(
    visits=st.integers(1, 2000),
    probability=st.floats(0.001, 1.0),
    n_states=st.integers(1, 1000),
    delta=st.floats(1e-9, 0.99),
)
def test_the_count_keeps_its_promise_exactly(visits, probability, n_states, delta):
    asked = {"visits": visits, "probability": probability}
    number = exploration_attempts(**asked, n_states=n_states, delta=delta)
    assert attempts_failure(attempts=number, **asked) <= delta / n_states
    printed = exploration_attempts_as_printed(**asked, n_states=n_states, delta=delta)
    assert number == math.ceil(2 * printed)


@given(
    number=st.integers(0, 300), visits=st.integers(1, 300), chance=st.floats(0.01, 0.99)
)
def test_the_failure_is_the_binomial_tail(number, visits, chance):
    found = attempts_failure(attempts=number, visits=visits, probability=chance)
    assert found == pytest.approx(binom.cdf(visits - 1, number, chance), abs=1e-9)


@pytest.mark.statistical
def test_attempts_that_depend_on_the_past_fail_no_more_often():
    # Each lifetime fails with probability at most .1; of 2000, more than 300 do with
    # probability below 1e-10.
    rng = np.random.default_rng(2)
    asked = {"visits": 5, "probability": 0.05, "n_states": 1, "delta": 0.1}
    number = exploration_attempts(**asked)
    successes = np.zeros(2000, dtype=int)
    for _ in range(number):
        chance = np.where(successes % 2 == 0, 0.05, 0.5)  # lucky streaks
        successes += rng.random(2000) < chance
    assert (successes < 5).sum() <= 300


def test_certain_attempts_cannot_fail():
    assert attempts_failure(attempts=7, visits=7, probability=1.0) == 0.0
    assert attempts_failure(attempts=6, visits=7, probability=1.0) == 1.0


@pytest.mark.parametrize("probability", [0.0, 1.5, math.nan])
def test_a_chance_lies_between_zero_and_one(probability):
    with pytest.raises(InvalidInputError, match=r"^probability: expected "):
        exploration_attempts(visits=1, probability=probability, n_states=1, delta=0.1)


def test_the_sample_complexity_is_put_together_from_its_parts():
    found = sample_complexity(**PROBLEM, escape_steps=3.0)
    part = PROBLEM | {"epsilon": 0.5 / 8}
    assert found.known_visits == known_visits(**(part | {"delta": 0.025}))
    asked = {"discount": 0.9, "epsilon": 0.5 / 8, "reward_max": 1.0, "cost_max": 2.0}
    assert found.horizon == horizon_time(**asked)
    bound = value_bound(discount=0.9, maximum=1.0, horizon=found.horizon)
    gap = theorem_margins(accuracy=0.125).planned_exploration_gap
    assert found.success_probability == pytest.approx(gap * 0.5 / bound)
    assert found.successes == 8 * found.known_visits
    assert found.attempts == exploration_attempts(
        visits=found.successes,
        probability=found.success_probability,
        n_states=1,
        delta=0.025,
    )
    assert found.exploring_actions == found.attempts * found.horizon
    assert found.returning_actions == found.attempts * found.horizon
    assert found.unknown_actions == found.successes * 4.0
    assert found.actions == pytest.approx(
        2.0 * found.exploring_actions + found.unknown_actions
    )


def test_a_practical_number_of_visits_may_be_given():
    found = sample_complexity(**PROBLEM, visits=20)
    assert found.known_visits == 20
    assert found.successes == 160
    certain = sample_complexity(**(PROBLEM | {"epsilon": 1e6}), visits=1)
    assert certain.success_probability == 1.0


def test_the_printed_complexities_follow_their_formulas():
    printed = sample_complexity_as_printed(**PROBLEM)
    horizon = horizon_time(discount=0.9, epsilon=0.125, reward_max=1.0, cost_max=2.0)
    visits = known_visits_as_printed(**(PROBLEM | {"delta": 0.025}))
    assert printed == pytest.approx(
        horizon * 10.0 / 0.5 * 4 * visits * math.log(4 / 0.025)
    )
    assert time_complexity_as_printed(
        printed, optimisation_operations=7.0
    ) == pytest.approx(7.0 * printed)


def test_planning_happens_at_each_attempt():
    samples = sample_complexity(**PROBLEM, visits=20)
    once = time_complexity(samples, optimisation_operations=0.0)
    assert once == samples.actions
    more = time_complexity(
        samples, optimisation_operations=11.0, optimisations_per_attempt=2
    )
    assert more - once == pytest.approx(22.0 * samples.attempts)


@given(
    changes=st.fixed_dictionaries(
        {
            "epsilon": st.floats(1e-3, 10.0),
            "delta": st.floats(1e-6, 0.5),
            "n_states": st.integers(1, 100),
        }
    )
)
def test_the_bound_grows_with_what_is_asked(changes):
    less = PROBLEM | changes
    more = less | {
        "epsilon": changes["epsilon"] / 2,
        "delta": changes["delta"] / 2,
        "n_states": 2 * changes["n_states"],
    }
    assert sample_complexity(**less).actions < sample_complexity(**more).actions
