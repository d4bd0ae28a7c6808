"""How many visits make a state known: formulas, and what they promise."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from escapade.errors import InvalidInputError
from escapade.theory.accuracy import required_accuracy
from escapade.theory.known_states import (
    adaptive_schedule,
    bernstein_gain,
    bernstein_gain_as_printed,
    known_visits,
    known_visits_as_printed,
    known_visits_bernstein,
    known_visits_bernstein_as_printed,
    known_visits_deterministic,
    known_visits_deterministic_as_printed,
)

SMALL = {
    "n_states": 2,
    "n_actions": 1,
    "discount": 0.0,
    "epsilon": 1.0,
    "delta": 0.05,
    "reward_max": 1.0,
    "cost_max": 1.0,
}
problems = st.fixed_dictionaries(
    {
        "n_states": st.integers(1, 200),
        "n_actions": st.integers(1, 10),
        "discount": st.sampled_from([0.0, 0.5, 0.9, 0.99]),
        "epsilon": st.floats(0.01, 5.0),
        "delta": st.floats(1e-6, 0.9),
        "reward_max": st.floats(0.1, 50.0),
        "cost_max": st.floats(0.1, 50.0),
    }
)


def _alpha(problem):
    kept = {k: v for k, v in problem.items() if k not in ("n_actions", "delta")}
    return required_accuracy(**kept).accuracy


@given(problem=problems, channels=st.integers(1, 4))
def test_hoeffding_shares_delta_among_all_estimates(problem, channels):
    visits = known_visits(**problem, n_costs=channels)
    alpha = _alpha(problem)
    scale = max(problem["reward_max"], problem["cost_max"], 1.0)
    estimates = (
        problem["n_states"]
        * problem["n_actions"]
        * (problem["n_states"] + 1 + channels)
    )

    def failure(count):
        return estimates * 2.0 * math.exp(-2.0 * count * (alpha / scale) ** 2)

    assert failure(visits) <= problem["delta"] * (1 + 1e-6)
    assert failure(visits * (1 - 1e-9) - 1) >= problem["delta"] * (1 - 1e-6)


@given(problem=problems, variance=st.floats(0.0, 10.0))
def test_bernstein_shares_delta_among_all_estimates(problem, variance):
    visits = known_visits_bernstein(**problem, variance=variance)
    alpha = _alpha(problem)
    scale = max(problem["reward_max"], problem["cost_max"], 1.0)
    estimates = problem["n_states"] * problem["n_actions"] * (problem["n_states"] + 2)
    exponent = visits * alpha**2 / (2.0 * (variance + scale * alpha / 3.0))
    assert estimates * 2.0 * math.exp(-exponent) <= problem["delta"] * (1 + 1e-6)


@given(problem=problems)
def test_fewer_estimates_ask_for_fewer_visits(problem):
    every = known_visits(**problem)
    assert known_visits_deterministic(**problem) <= every
    assert every <= known_visits(**problem, n_costs=3)
    assert every < known_visits(**(problem | {"delta": problem["delta"] / 2}))
    assert isinstance(every, int)


@given(
    scale=st.floats(1.0, 1e3), variance=st.floats(0.0, 1e3), alpha=st.floats(1e-6, 1.0)
)
def test_the_gain_is_the_ratio_of_the_two_counts(scale, variance, alpha):
    hoeffding = scale**2 / (2 * alpha**2)
    bernstein = 2 * (variance + scale * alpha / 3) / alpha**2
    gain = bernstein_gain(scale=scale, variance=variance, accuracy=alpha)
    assert gain == pytest.approx(hoeffding / bernstein)


def test_the_printed_gain_has_alpha_squared_and_no_range():
    numbers = {"scale": 100.0, "variance": 1.0, "accuracy": 0.1}
    assert bernstein_gain_as_printed(**numbers) == pytest.approx(
        0.25 * 0.01 * 1e4 / (1 + 0.1 / 3)
    )


def test_printed_counts_follow_their_formulas():
    # γ = 0 and ε = 1 make T = G = 1, so that STG/ε is S
    core = 144**2 * 2**4
    assert known_visits_as_printed(**SMALL) == pytest.approx(0.5 * math.log(40) * core)
    assert known_visits_deterministic_as_printed(
        **(SMALL | {"cost_max": 1.0})
    ) == pytest.approx(0.5 * math.log(40) * core)
    scaled = SMALL | {"reward_max": 3.0, "epsilon": 3.0, "n_actions": 4}
    assert known_visits_as_printed(**scaled) == pytest.approx(
        0.5 * 4 * math.log(40) * 9 * core
    )
    bernstein = known_visits_bernstein_as_printed(**SMALL, variance=0.25, accuracy=0.1)
    assert bernstein == pytest.approx(
        2 * (0.25 + 0.1 / 3) / 0.01 * math.log(0.1) * core
    )
    assert bernstein < 0


@pytest.mark.statistical
def test_after_so_many_visits_no_estimate_is_off():
    # Each lifetime fails with probability at most δ = .05, so 300 lifetimes have more
    # than 40 failures with probability below 1e-7.
    rng = np.random.default_rng(0)
    visits, alpha = known_visits(**SMALL), _alpha(SMALL)
    failures = 0
    for _ in range(300):
        means = rng.uniform(size=(2, 3))  # one transition, reward and cost a pair
        found = rng.binomial(visits, means) / visits
        failures += bool((np.abs(found - means) > alpha).any())
    assert failures <= 40


@pytest.mark.statistical
def test_the_bernstein_count_suffices_for_rare_events():
    # As above: more than 40 failures of 300 have probability below 1e-7.
    rng = np.random.default_rng(1)
    rate = 1e-3
    visits = known_visits_bernstein(**SMALL, variance=rate * (1 - rate))
    assert visits < 0.05 * known_visits(**SMALL)
    found = rng.binomial(visits, rate, size=(300, 6)) / visits
    assert (np.abs(found - rate) > _alpha(SMALL)).any(axis=1).sum() <= 40


def test_a_schedule_lowers_epsilon_and_shares_delta():
    asked = SMALL | {"discount": 0.9, "epsilon": 0.1, "n_costs": 2}
    stages = adaptive_schedule(**asked, first_epsilon=1.6, stages=5)
    assert [stage.epsilon for stage in stages] == pytest.approx(
        [1.6, 0.8, 0.4, 0.2, 0.1]
    )
    assert sum(stage.delta for stage in stages) == pytest.approx(0.05)
    visits = [stage.known_visits for stage in stages]
    assert visits == sorted(visits)
    assert [s.horizon for s in stages] == sorted(s.horizon for s in stages)
    assert [s.value_bound for s in stages] == sorted(s.value_bound for s in stages)
    last = known_visits(**(asked | {"delta": 0.01}))
    assert visits[-1] == last
    assert stages[-1].epsilon == 0.1
    first = stages[0]
    assert first.accuracy == _alpha(
        {k: v for k, v in (asked | {"epsilon": 1.6}).items() if k != "n_costs"}
    )


def test_one_stage_is_no_schedule():
    (only,) = adaptive_schedule(**SMALL, first_epsilon=1.0, stages=1)
    assert only.known_visits == known_visits(**SMALL)
    with pytest.raises(InvalidInputError, match=r"^stages: expected at least 2"):
        adaptive_schedule(**SMALL, first_epsilon=2.0, stages=1)
    with pytest.raises(
        InvalidInputError, match=r"^first_epsilon: expected a number of"
    ):
        adaptive_schedule(**SMALL, first_epsilon=0.5, stages=3)


def test_a_count_beyond_all_floats_is_refused():
    with pytest.raises(InvalidInputError, match=r"^epsilon: "):
        known_visits(**(SMALL | {"reward_max": 1e100, "epsilon": 1e70}))
    assert known_visits_as_printed(**(SMALL | {"epsilon": 1e-90})) == math.inf
