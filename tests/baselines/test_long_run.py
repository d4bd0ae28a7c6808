"""The best policy in the long run: closed forms, and classes visited in turn."""

from __future__ import annotations

import numpy as np
import pytest

import escapade as ep
from escapade.baselines.long_run import Follower, long_run_policy


def at(state, n):
    start = np.zeros(n)
    start[state] = 1.0
    return start


def two_islands():
    """From state 0 to 1 or 2, each of which keeps whoever comes; 2 pays and costs."""
    matrix = np.zeros((3, 2, 3))
    matrix[0, 0, 1] = matrix[0, 1, 2] = 1.0
    matrix[1, :, 1] = matrix[2, :, 2] = 1.0
    reward = np.array([[0.0, 0.0], [0.1, 0.1], [1.0, 1.0]])
    cost = np.array([[0.0, 0.0], [0.0, 0.0], [1.0, 1.0]])
    return ep.CMDP(matrix, reward, cost, discount=0.9, budget=5.0)


def test_the_moat_is_crossed_as_often_as_the_rate_affords():
    cmdp = ep.environments.moat_grid().cmdp
    start = cmdp.start
    for rate in (0.0, 0.1, 0.2):
        found = long_run_policy(cmdp, np.array([rate]), start)
        assert found.feasible
        assert found.gain == pytest.approx(0.125 + 0.5 * rate, abs=1e-9)
        assert found.rates[0] == pytest.approx(rate, abs=1e-9)
        assert found.shares.tolist() == [1.0]
        sums = np.add.reduceat(found.weights[0], cmdp.state_ptr[:-1])
        np.testing.assert_allclose(sums, 1.0, atol=1e-7)


def test_rates_that_cannot_be_kept_give_the_least_costs():
    matrix = np.ones((1, 2, 1))
    dear = ep.CMDP(matrix, [[0.0, 1.0]], [[0.4, 0.9]], discount=0.9, budget=9.0)
    found = long_run_policy(dear, np.array([0.2]), np.ones(1))
    assert not found.feasible
    assert found.rates[0] == pytest.approx(0.4)
    assert found.weights[0].tolist() == [1.0, 0.0]


def test_no_more_is_asked_for_than_can_be_reached():
    cmdp = two_islands()
    gains = [
        long_run_policy(cmdp, np.array([0.5]), at(s, 3)).gain for s in (0, 1)
    ]  # fmt: skip
    np.testing.assert_allclose(gains, [0.55, 0.1], atol=1e-9)


def test_classes_are_visited_in_turn_each_for_its_share():
    found = long_run_policy(two_islands(), np.array([0.25]), at(0, 3))
    assert sorted(found.shares.round(9)) == [0.25, 0.75]
    follower = Follower(found)
    rng = np.random.default_rng(0)
    chosen = [follower.pair(0, 2, rng) for _ in range(400)]
    assert chosen.count(1) == 100
    assert chosen[:25] == [0] * 25


def test_far_from_its_states_the_policy_goes_there():
    cmdp = ep.environments.moat_grid().cmdp
    policy = long_run_policy(cmdp, np.array([0.0]), cmdp.start).weights[0]
    probabilities = np.zeros((cmdp.n_states, cmdp.n_actions))
    probabilities[cmdp.pair_state, cmdp.pair_action] = policy
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    result = ep.evaluate(cmdp, ep.Policy(probabilities))
    assert (result.value > 10.0).all()  # 1 / (1 - .99 ** 8) is 12.9 at G
