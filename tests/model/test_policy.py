"""Stationary policies."""

from __future__ import annotations

import pickle

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from escapade.model import Policy
from escapade.testing import cmdps, policies


def test_a_deterministic_policy_takes_its_actions():
    policy = Policy.deterministic([1, 0, 2], n_actions=3)
    assert policy.is_deterministic
    assert policy.actions.tolist() == [1, 0, 2]
    assert policy.probabilities.sum() == 3.0
    assert (policy.n_states, policy.n_actions) == (3, 3)
    assert repr(policy) == "Policy(3 states, 3 actions, deterministic)"


def test_a_stochastic_policy_says_so():
    policy = Policy([[0.25, 0.75], [0.5, 0.5]])
    assert not policy.is_deterministic
    assert policy.actions.tolist() == [1, 0]  # the first among equals
    assert repr(policy) == "Policy(2 states, 2 actions, stochastic)"


def test_rows_that_nearly_sum_to_one_are_put_right():
    policy = Policy([[0.5, 0.5 + 1e-9], [1.0, 0.0]])
    assert abs(policy.probabilities[0].sum() - 1.0) < 1e-15
    assert policy.probabilities[1].tolist() == [1.0, 0.0]


def test_a_policy_owns_its_numbers():
    mine = np.array([[0.5, 0.5]])
    policy = Policy(mine)
    mine[:] = 9.0
    assert policy.probabilities.tolist() == [[0.5, 0.5]]
    assert not policy.probabilities.flags.writeable


@settings(max_examples=40)
@given(st.data())
def test_pair_weights_there_and_back(data):
    cmdp = data.draw(cmdps())
    policy = data.draw(policies(cmdp))
    weights = policy.pair_weights(cmdp)
    assert Policy.from_pair_weights(cmdp, weights) == policy
    np.testing.assert_allclose(np.add.reduceat(weights, cmdp.state_ptr[:-1]), 1.0)
    again = pickle.loads(pickle.dumps(policy))
    assert again == policy
    assert hash(again) == hash(policy)


@settings(max_examples=40)
@given(cmdps())
def test_the_uniform_policy_plays_what_is_available(cmdp):
    probabilities = Policy.uniform(cmdp).probabilities
    np.testing.assert_array_equal(probabilities > 0, cmdp.available)
    for row in probabilities:
        assert len(set(row[row > 0])) == 1


def test_policies_differ_by_their_numbers_alone():
    one = Policy([[1.0, 0.0]])
    assert one == Policy.deterministic([0], n_actions=2)
    assert one != Policy([[0.0, 1.0]])
    assert one != "a policy"
