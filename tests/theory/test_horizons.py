"""Horizons: definitions, closed forms, and the T-step lemma on random problems."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import escapade as ep
from escapade.errors import InvalidInputError
from escapade.testing import cmdps, policies
from escapade.theory.horizons import (
    horizon_time,
    horizon_time_as_printed,
    least_horizon,
    simulation_horizon,
    truncation_error,
    value_bound,
    value_bound_as_printed,
)

discounts = st.floats(0.0, 0.999)
amounts = st.floats(0.01, 100.0)


@given(gamma=discounts, eps=amounts, reward=amounts, cost=amounts)
def test_after_the_horizon_time_at_most_epsilon_is_left(gamma, eps, reward, cost):
    steps = horizon_time(discount=gamma, epsilon=eps, reward_max=reward, cost_max=cost)
    assert steps >= 1
    for maximum in (reward, cost):
        left = truncation_error(discount=gamma, maximum=maximum, horizon=steps)
        assert left <= eps * (1 + 1e-12)


@given(gamma=discounts, eps=amounts, maximum=amounts)
def test_the_least_horizon_is_the_least(gamma, eps, maximum):
    steps = least_horizon(discount=gamma, epsilon=eps, maximum=maximum)

    def left(horizon):
        return truncation_error(discount=gamma, maximum=maximum, horizon=horizon)

    assert left(steps) <= eps
    assert steps == 0 or left(steps - 1) > eps
    longer = horizon_time(discount=gamma, epsilon=eps, reward_max=maximum, cost_max=0.0)
    assert steps <= longer


@pytest.mark.parametrize("gamma", [0.5, 0.25, 0.9, 0.99])
def test_logarithms_that_round_do_not_cost_a_step(gamma):
    for steps in range(1, 60):
        eps = truncation_error(discount=gamma, maximum=1.0, horizon=steps)
        assert least_horizon(discount=gamma, epsilon=eps, maximum=1.0) == steps


def test_the_printed_horizon_is_not_rounded_and_may_be_negative():
    printed = horizon_time_as_printed(
        discount=0.99, epsilon=1.0, reward_max=1.0, cost_max=0.5
    )
    assert printed == pytest.approx(100 * math.log(100), rel=1e-12)
    assert (
        horizon_time_as_printed(
            discount=0.5, epsilon=100.0, reward_max=1.0, cost_max=1.0
        )
        < 0
    )


def test_the_simulation_lemma_halves_epsilon():
    asked = {"discount": 0.9, "reward_max": 1.0, "cost_max": 1.0}
    assert simulation_horizon(epsilon=0.5, **asked) == horizon_time(
        epsilon=0.25, **asked
    )


@given(gamma=discounts, maximum=amounts, steps=st.integers(0, 300))
def test_the_value_bound_is_the_sum_and_the_rest_is_the_truncation(
    gamma, maximum, steps
):
    bound = value_bound(discount=gamma, maximum=maximum, horizon=steps)
    summed = maximum * math.fsum(gamma**t for t in range(steps))
    assert bound == pytest.approx(summed, rel=1e-9, abs=1e-12)
    whole = value_bound_as_printed(discount=gamma, maximum=maximum)
    rest = truncation_error(discount=gamma, maximum=maximum, horizon=steps)
    assert bound + rest == pytest.approx(whole, rel=1e-9)
    endless = value_bound(discount=gamma, maximum=maximum, horizon=math.inf)
    assert endless == whole == value_bound(discount=gamma, maximum=maximum)


@given(data=st.data(), eps=st.sampled_from([0.05, 0.5, 3.0]))
def test_the_t_step_estimation_lemma_holds(data, eps):
    cmdp = data.draw(cmdps(max_states=4, discounts=(0.0, 0.5, 0.9)))
    policy = data.draw(policies(cmdp))
    most = max(cmdp.reward_max, *cmdp.cost_max)
    if most == 0.0:
        return
    steps = horizon_time(
        discount=cmdp.discount, epsilon=eps, reward_max=most, cost_max=0.0
    )
    whole, cut = ep.evaluate(cmdp, policy), ep.evaluate(cmdp, policy, horizon=steps)
    slack = 1e-7
    for all_steps, first_steps in (
        (whole.value, cut.value),
        (whole.costs, cut.costs),
    ):
        assert (first_steps <= all_steps + slack).all()
        assert (all_steps <= first_steps + eps + slack).all()


@pytest.mark.parametrize(
    ("change", "argument"),
    [
        ({"discount": 1.0}, "discount"),
        ({"discount": math.nan}, "discount"),
        ({"discount": True}, "discount"),
        ({"discount": "0.9"}, "discount"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"epsilon": math.inf}, "epsilon"),
        ({"reward_max": -1.0}, "reward_max"),
        ({"reward_max": 0.0, "cost_max": 0.0}, "reward_max"),
        ({"cost_max": math.inf}, "cost_max"),
    ],
)
def test_wrong_numbers_are_refused_by_name(change, argument):
    numbers = {"discount": 0.9, "epsilon": 1.0, "reward_max": 1.0, "cost_max": 1.0}
    with pytest.raises(InvalidInputError, match=f"^{argument}: expected "):
        horizon_time(**(numbers | change))


def test_numpy_numbers_are_numbers():
    assert (
        truncation_error(
            discount=np.float64(0.5), maximum=np.float32(1.0), horizon=np.int64(3)
        )
        == 0.25
    )
    with pytest.raises(InvalidInputError, match=r"^horizon: expected a whole number"):
        truncation_error(discount=0.5, maximum=1.0, horizon=2.5)
    with pytest.raises(InvalidInputError, match=r"^horizon: .* found -1"):
        truncation_error(discount=0.5, maximum=1.0, horizon=-1)
