"""How accurate a model must be: the constants of the proof, and the lemma itself."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import escapade as ep
from escapade.errors import InvalidInputError
from escapade.testing import cmdps, kernels, policies
from escapade.theory.accuracy import (
    ACCURACY_CONSTANT,
    accuracy_conditions,
    approximation_error,
    is_alpha_approximation,
    model_accuracy,
    required_accuracy,
    separate_accuracies,
    simulation_error_bound,
    step_ratio_limit,
    step_ratio_limit_as_printed,
)


@given(
    n_states=st.integers(1, 1000),
    horizon=st.integers(1, 10_000),
    bound=st.floats(1.0, 1e4),
    share=st.floats(1e-6, 8.0),
)
def test_the_constant_1_144_meets_every_condition(n_states, horizon, bound, share):
    eps = share * bound
    alpha = model_accuracy(
        n_states=n_states, horizon=horizon, value_bound=bound, epsilon=eps
    )
    conditions = accuracy_conditions(
        n_states=n_states,
        horizon=horizon,
        value_bound=bound,
        epsilon=eps,
        accuracy=alpha,
    )
    assert [c.name for c in conditions if not c.holds] == []


def test_the_constant_can_be_at_most_nine_quarters_larger():
    # alpha + 2 sqrt(alpha) <= 3 sqrt(alpha) gives away 3/2, squared, where alpha << 1
    numbers = {"n_states": 4, "horizon": 50, "value_bound": 30.0, "epsilon": 0.1}
    alpha = 2.26 * model_accuracy(**numbers)
    broken = [c for c in accuracy_conditions(accuracy=alpha, **numbers) if not c.holds]
    assert [c.name for c in broken] == ["rare transitions"]
    assert ACCURACY_CONSTANT == 1 / 144


def test_beyond_nine_bounds_one_state_breaks_the_ratio_condition():
    for share, holds in ((9.0, True), (9.3, False)):
        numbers = {"n_states": 1, "horizon": 9, "value_bound": 2.0}
        eps = share * 2.0
        alpha = model_accuracy(epsilon=eps, **numbers)
        ratio = accuracy_conditions(epsilon=eps, accuracy=alpha, **numbers)[2]
        assert ratio.holds is holds


@given(
    horizon=st.integers(1, 1000), bound=st.floats(0.1, 1e3), eps=st.floats(1e-3, 10.0)
)
def test_the_step_ratio_keeps_the_growth_of_paths(horizon, bound, eps):
    limit = step_ratio_limit(horizon=horizon, value_bound=bound, epsilon=eps)
    allowed = 1 + eps / (8 * bound)
    assert (1 + limit) ** horizon <= allowed * (1 + 1e-9)


@settings(max_examples=50)
@given(
    data=st.data(),
    eps=st.sampled_from([0.1, 0.5, 1.0]),
)
def test_the_simulation_lemma_holds(data, eps):
    cmdp = data.draw(
        cmdps(max_states=3, max_actions=2, discounts=(0.0, 0.5, 0.75), feasible=None)
    )
    cmdp = cmdp.replace(reward_max=2.0, cost_max=np.full(cmdp.n_costs, 2.0))
    alpha = required_accuracy(
        n_states=cmdp.n_states,
        discount=cmdp.discount,
        epsilon=eps,
        reward_max=2.0,
        cost_max=2.0,
    ).accuracy
    close = data.draw(kernels(cmdp, radius=alpha, on_support=False))
    shift = data.draw(st.sampled_from([-1.0, 1.0])) * alpha
    close = close.replace(
        reward=np.clip(cmdp.reward + shift, 0.0, 2.0),
        cost=np.clip(cmdp.cost - shift, 0.0, 2.0),
    )
    assert is_alpha_approximation(cmdp, close, alpha=alpha * (1 + 1e-9) + 1e-15)
    policy = data.draw(policies(cmdp))
    here, there = ep.evaluate(cmdp, policy), ep.evaluate(close, policy)
    assert np.abs(here.value - there.value).max() <= eps + 1e-7
    assert np.abs(here.costs - there.costs).max() <= eps + 1e-7


@settings(max_examples=50)
@given(data=st.data(), radius=st.sampled_from([0.0, 0.1, 0.5, 2.0]))
def test_the_direct_bound_covers_the_difference_of_two_models(data, radius):
    cmdp = data.draw(cmdps(max_states=4))
    other = data.draw(kernels(cmdp, radius=radius, on_support=False))
    shift = data.draw(st.sampled_from([0.0, 0.1]))
    other = other.replace(reward=np.clip(cmdp.reward - shift, 0.0, None))
    error = approximation_error(cmdp, other)
    policy = data.draw(policies(cmdp))
    here, there = ep.evaluate(cmdp, policy), ep.evaluate(other, policy)
    for ours, theirs, maximum, signal in (
        (here.value, there.value, cmdp.reward_max, error.reward),
        (here.costs, there.costs, float(max(cmdp.cost_max)), error.cost),
    ):
        bound = simulation_error_bound(
            discount=cmdp.discount,
            maximum=maximum,
            signal_error=signal,
            row_distance=error.row_distance,
        )
        assert np.abs(ours - theirs).max() <= bound + 1e-6


def test_the_direct_bound_is_attained():
    # one state pays 1 for ever, the other 0; the other model swaps where they lead
    def model(stay):
        rows = [[[stay, 1 - stay]], [[0.0, 1.0]]]
        return ep.CMDP(rows, [[1.0], [0.0]], [[0.0], [0.0]], discount=0.5, budget=1.0)

    policy = ep.Policy.deterministic([0, 0], 1)
    here, there = (ep.evaluate(model(stay), policy) for stay in (1.0, 0.0))
    bound = simulation_error_bound(
        discount=0.5, maximum=1.0, signal_error=0.0, row_distance=2.0
    )
    assert (here.value - there.value)[0] == pytest.approx(1.0)
    assert bound == pytest.approx(2.0)  # 1/(1-γ) more: the difference is discounted
    assert (here.value - there.value)[0] == pytest.approx(bound * 0.5)


@settings(max_examples=50)
@given(data=st.data())
def test_the_approximation_error_is_the_largest_difference(data):
    cmdp = data.draw(cmdps(max_states=4, masked=False))
    other = data.draw(kernels(cmdp, radius=1.0, on_support=False))
    found = approximation_error(cmdp, other)
    gap = np.abs(cmdp.transition_matrix - other.transition_matrix).toarray()
    assert found.transition == gap.max()
    assert found.row_distance == pytest.approx(gap.sum(axis=1).max())
    assert gap[found.transition_pair].max() == found.transition
    assert found.reward == found.cost == 0.0
    assert found.alpha == found.transition
    assert is_alpha_approximation(cmdp, other, alpha=found.alpha)
    if found.alpha > 0:
        assert not is_alpha_approximation(cmdp, other, alpha=0.99 * found.alpha)


def test_models_of_different_shape_are_refused():
    def model(available, n_costs=1):
        size = np.shape(available)
        rows = np.full((*size, size[0]), 1.0 / size[0])
        zeros = np.zeros(size)
        return ep.CMDP(
            rows,
            zeros,
            np.zeros((n_costs, *size)),
            discount=0.5,
            budget=np.ones(n_costs),
            available=available,
        )

    two = model([[True, False], [True, True]])
    with pytest.raises(
        InvalidInputError, match=r"^estimate: expected the same actions"
    ):
        approximation_error(two, model([[False, True], [True, True]]))
    with pytest.raises(InvalidInputError, match=r"^estimate: expected state_ptr"):
        approximation_error(two, model([[True, True]]))
    with pytest.raises(InvalidInputError, match=r"^estimate: expected the same"):
        approximation_error(two, model([[True, True], [True, False]]))
    with pytest.raises(InvalidInputError, match=r"^estimate: expected cost of shape"):
        approximation_error(two, model([[True, False], [True, True]], 2))


@given(
    n_states=st.integers(1, 50),
    gamma=st.sampled_from([0.0, 0.5, 0.99]),
    eps=st.sampled_from([0.01, 1.0]),
    scale=st.sampled_from([1e-3, 1.0, 100.0]),
)
def test_signals_need_far_less_accuracy_than_transitions(n_states, gamma, eps, scale):
    asked = {
        "n_states": n_states,
        "discount": gamma,
        "epsilon": eps,
        "reward_max": scale,
        "cost_max": scale / 2,
    }
    needed, apart = required_accuracy(**asked), separate_accuracies(**asked)
    assert apart.reward == apart.cost
    assert needed.accuracy == min(apart.transition, apart.reward)
    growth = 1 + eps / (8 * needed.value_bound)
    assert growth * needed.horizon * apart.reward == pytest.approx(eps / 8)
    assert needed.holds or eps > 8 * needed.value_bound


def test_a_given_horizon_is_taken():
    asked = {
        "n_states": 3,
        "discount": 0.9,
        "epsilon": 0.5,
        "reward_max": 1.0,
        "cost_max": 1.0,
    }
    found = required_accuracy(horizon=4, **asked)
    assert found.horizon == 4
    assert found.value_bound == pytest.approx(1 + 0.9 + 0.81 + 0.729)


def test_printed_and_corrected_limits_meet_at_a_factor_of_two():
    numbers = {"horizon": 10, "value_bound": 5.0, "epsilon": 1e-6}
    ratio = step_ratio_limit_as_printed(**numbers) / step_ratio_limit(**numbers)
    assert ratio == pytest.approx(2.0, rel=1e-6)


def test_an_accuracy_that_no_float_holds_is_refused():
    with pytest.raises(InvalidInputError, match=r"^epsilon: "):
        model_accuracy(n_states=10, horizon=10, value_bound=1.0, epsilon=1e-60)


def test_the_direct_bound_never_exceeds_what_values_can_differ_by():
    bound = simulation_error_bound(
        discount=0.5, maximum=1.0, signal_error=9.0, row_distance=0.0
    )
    assert bound == 2.0
