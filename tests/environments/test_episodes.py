"""A finite horizon inside a discounted problem, against backward induction."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import escapade as ep
from escapade.errors import InvalidInputError
from escapade.testing import cmdps, policies

episodic = ep.environments.episodic


def sums(cmdp, policies, discount):
    """Return reward and costs of one episode under a policy a step, backwards."""
    matrix = cmdp.transition_matrix
    value, costs = np.zeros(cmdp.n_states), np.zeros((cmdp.n_costs, cmdp.n_states))
    first = cmdp.state_ptr[:-1]
    for policy in reversed(policies):
        weight = policy.pair_weights(cmdp)
        gain = weight * (cmdp.reward + discount * (matrix @ value))
        charge = weight * (cmdp.cost + discount * (matrix @ costs.T).T)
        value = np.add.reduceat(gain, first)
        costs = np.add.reduceat(charge, first, axis=1)
    return float(cmdp.start @ value), costs @ cmdp.start


def lived(cmdp, policies, then):
    """Return the policy of the unrolled problem that follows a policy a step."""
    rows = [policy.probabilities for policy in policies]
    if then == "stop":
        rows.append(np.eye(cmdp.n_actions)[:1])
    return ep.Policy(np.vstack(rows))


@settings(max_examples=40)
@given(
    data=st.data(), horizon=st.integers(1, 4), then=st.sampled_from(["stop", "restart"])
)
def test_an_episode_is_worth_its_sum(data, horizon, then):
    cmdp = data.draw(cmdps(discounts=(0.5, 0.9, 0.99)))
    plans = [data.draw(policies(cmdp)) for _ in range(horizon)]
    for discounted in (False, True):
        world = episodic(cmdp, horizon, then=then, discounted=discounted)
        found = ep.evaluate(world.cmdp, lived(cmdp, plans, then))
        value, costs = sums(cmdp, plans, cmdp.discount if discounted else 1.0)
        assert world.raw_value(found.start_value) == pytest.approx(value, abs=1e-7)
        # the costs are to the budgets as they are in one episode
        episodes = 1.0 if then == "stop" else 1.0 / (1.0 - cmdp.discount**horizon)
        np.testing.assert_allclose(world.cmdp.budget, cmdp.budget * episodes)
        np.testing.assert_allclose(found.start_costs, costs * episodes, atol=1e-6)


@given(data=st.data(), horizon=st.integers(1, 4))
def test_a_discounted_episode_is_a_value_of_t_steps(data, horizon):
    cmdp = data.draw(cmdps())
    plan = data.draw(policies(cmdp))
    world = episodic(cmdp, horizon, discounted=True)
    found = ep.evaluate(world.cmdp, lived(cmdp, [plan] * horizon, "stop"))
    direct = ep.evaluate(cmdp, plan, horizon=horizon)
    assert found.start_value == pytest.approx(direct.start_value, abs=1e-9)
    np.testing.assert_allclose(found.start_costs, direct.start_costs, atol=1e-9)


def test_the_loop_of_six_steps_by_hand():
    world = ep.environments.three_state_loop(horizon=6)
    cmdp = world.cmdp
    assert (cmdp.n_states, cmdp.budget.tolist()) == (19, [3.0])
    assert cmdp.state_names[:4] == (
        "0 at step 0",
        "1 at step 0",
        "2 at step 0",
        "0 at step 1",
    )
    assert cmdp.state_names[-1] == "end"
    # reward 2 for moving from state 1 at step 5, scaled by 0.9 to the power -5
    assert cmdp.reward[cmdp.pair(16, 1)] == pytest.approx(2.0 / 0.9**5)
    assert cmdp.reward_max == pytest.approx(3.0 / 0.9**5)
    assert cmdp.cost_max == pytest.approx([1.0 / 0.9**5])
    assert cmdp.successors(16, 1)[0].tolist() == [18]


@pytest.mark.parametrize("discount", [0.8, 0.9, 0.999])
def test_the_discount_changes_no_value_of_an_episode(discount, lp_optimum):
    world = ep.environments.three_state_loop(discount=discount, horizon=6)
    assert lp_optimum(world.cmdp)[0] == pytest.approx(20.0 / 3.0, rel=1e-8)


def test_restarting_keeps_the_budget_of_each_episode(lp_optimum):
    loop = ep.environments.three_state_loop(budget=3.0).cmdp
    world = episodic(loop, 6, then="restart")
    value, _ = lp_optimum(world.cmdp)
    assert world.raw_value(value) == pytest.approx(20.0 / 3.0, rel=1e-8)
    assert world.raw_optimum == pytest.approx(20.0 / 3.0, rel=1e-7)
    assert world.cmdp.n_states == 18


def test_places_unroll():
    loop = ep.environments.three_state_loop().cmdp
    world = episodic(loop, 2)
    assert world.cmdp.coordinates.shape == (7, 3)
    np.testing.assert_array_equal(world.cmdp.coordinates[:3, :2], loop.coordinates)
    assert world.cmdp.coordinates[:, 2].tolist() == [0, 0, 0, 1, 1, 1, 2]
    bare = episodic(ep.environments.garnet(3, 2, 2).cmdp, 2)
    assert bare.cmdp.coordinates.tolist() == [
        [0, 0],
        [0, -1],
        [0, -2],
        [1, 0],
        [1, -1],
        [1, -2],
        [2, 0],
    ]


def test_masked_actions_stay_masked():
    cmdp = ep.CMDP(
        [[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [0.0, 0.0]]],
        [[0.0, 1.0], [0.5, 0.0]],
        [[0.0, 1.0], [0.0, 0.0]],
        discount=0.9,
        budget=1.0,
        available=[[True, True], [True, False]],
    )
    world = episodic(cmdp, 2)
    assert world.cmdp.available.tolist() == [
        [True, True],
        [True, False],
        [True, True],
        [True, False],
        [True, True],
    ]


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"horizon": 0}, "horizon: expected a whole number of at least 1"),
        ({"horizon": 2, "then": "repeat"}, "then: expected 'stop' or 'restart'"),
        ({"horizon": 200}, "discount: expected at least 0.932931 for 200 steps"),
        ({"cmdp": "loop", "horizon": 2}, "cmdp: expected a CMDP, found str"),
    ],
)
def test_what_is_refused(keywords, message):
    cmdp = ep.environments.three_state_loop().cmdp
    with pytest.raises(InvalidInputError, match=message):
        episodic(**{"cmdp": cmdp, **keywords})


def test_the_least_discount_that_is_named_is_accepted():
    cmdp = ep.environments.three_state_loop(discount=0.932931).cmdp
    assert episodic(cmdp, 200).cmdp.reward_max < 3.0 * 1e6
    with pytest.raises(InvalidInputError, match="discount"):
        episodic(cmdp, 201)


def test_later_steps_cannot_be_counted_without_a_discount():
    cmdp = ep.environments.three_state_loop(discount=0.0).cmdp
    with pytest.raises(InvalidInputError, match="discount: expected a number above 0"):
        episodic(cmdp, 2)
    assert episodic(cmdp, 1).cmdp.reward_max == 3.0
    assert episodic(cmdp, 200, discounted=True).cmdp.reward_max == 3.0
