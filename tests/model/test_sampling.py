"""Samples follow the model's numbers, and a seed settles them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from escapade.errors import InvalidInputError
from escapade.kernels.sampling import draw, fill_cumulative
from escapade.model import CMDP, Policy, Sampler
from escapade.testing import cmdps, policies

UNLIKELY = 1e-6  # probability with which a true sampler fails one comparison


def wide(n=40, seed=2):
    """Rows of every length up to 40, so that both ways to search are taken."""
    rng = np.random.default_rng(seed)
    rows = np.zeros((n, 2, n))
    for state in range(n):
        for action in range(2):
            following = rng.choice(n, size=state + 1, replace=False)
            rows[state, action, following] = rng.dirichlet(np.ones(state + 1))
    return CMDP(
        rows,
        rng.random((n, 2)),
        rng.random((2, n, 2)),
        discount=0.9,
        budget=[1.0, 1.0],
        start=rng.dirichlet(np.ones(n)),
    )


def surprise(counts, probability):
    """Pearson's statistic and the value that chance exceeds with `UNLIKELY`."""
    counts, probability = np.asarray(counts), np.asarray(probability)
    assert not counts[probability == 0].any()
    possible = probability > 0
    expected = counts.sum() * probability[possible]
    statistic = ((counts[possible] - expected) ** 2 / expected).sum()
    return statistic, chi2.isf(UNLIKELY, max(int(possible.sum()) - 1, 1))


@pytest.mark.statistical
@pytest.mark.parametrize("state", [1, 10, 39])
def test_next_states_come_as_often_as_they_should(state):
    """Pearson's test on 20,000 draws; fails with probability 1e-6 each."""
    cmdp = wide()
    sampler, rng = Sampler(cmdp), np.random.default_rng(11)
    drawn = [sampler.next_state(state, 1, rng) for _ in range(20_000)]
    row = cmdp.transition_matrix.toarray()[cmdp.pair(state, 1)]
    statistic, limit = surprise(np.bincount(drawn, minlength=cmdp.n_states), row)
    assert statistic < limit


@pytest.mark.statistical
def test_starts_come_as_often_as_they_should():
    """Pearson's test on 20,000 draws; fails with probability 1e-6."""
    cmdp = wide()
    sampler, rng = Sampler(cmdp), np.random.default_rng(12)
    drawn = [sampler.start_state(rng) for _ in range(20_000)]
    statistic, limit = surprise(np.bincount(drawn, minlength=40), cmdp.start)
    assert statistic < limit


@pytest.mark.statistical
def test_a_path_takes_actions_and_turns_as_often_as_it_should():
    """Pearson's test, for actions and for successors; fails with probability 2e-6."""
    rng = np.random.default_rng(0)
    cmdp = CMDP(
        rng.dirichlet(np.ones(3), size=(3, 2)),
        rng.random((3, 2)),
        rng.random((3, 2)),
        discount=0.9,
        budget=1.0,
    )
    policy = Policy([[0.2, 0.8], [0.5, 0.5], [1.0, 0.0]])
    path = Sampler(cmdp).rollout(policy, 40_000, seed=5)
    at_zero = path.states[:-1] == 0
    statistic, limit = surprise(
        np.bincount(path.actions[at_zero], minlength=2), policy.probabilities[0]
    )
    assert statistic < limit
    taken = at_zero & (path.actions == 1)
    row = cmdp.transition_matrix.toarray()[1]
    statistic, limit = surprise(np.bincount(path.states[1:][taken], minlength=3), row)
    assert statistic < limit
    assert not path.actions[path.states[:-1] == 2].any()


@settings(max_examples=25)
@given(st.data())
def test_a_path_is_possible_and_tells_its_means(data):
    cmdp = data.draw(cmdps())
    policy = data.draw(policies(cmdp))
    path = Sampler(cmdp).rollout(policy, 20, seed=data.draw(st.integers(0, 99)))
    assert path.states.shape == (21,)
    assert path.costs.shape == (20, cmdp.n_costs)
    assert cmdp.start[path.states[0]] > 0
    for t in range(20):
        pair = cmdp.pair(int(path.states[t]), int(path.actions[t]))
        assert policy.pair_weights(cmdp)[pair] > 0
        assert path.states[t + 1] in cmdp.successors(*path_pair(cmdp, pair))[0]
        assert path.rewards[t] == cmdp.reward[pair]
        np.testing.assert_array_equal(path.costs[t], cmdp.cost[:, pair])


def path_pair(cmdp, pair):
    return int(cmdp.pair_state[pair]), int(cmdp.pair_action[pair])


def test_same_seed_same_path():
    cmdp = wide()
    sampler, policy = Sampler(cmdp), Policy.uniform(cmdp)
    one, two = (sampler.rollout(policy, 200, seed=9) for _ in range(2))
    for name in ("states", "actions", "rewards", "costs"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
    other = sampler.rollout(policy, 200, seed=10)
    assert not np.array_equal(one.states, other.states)
    generator = sampler.rollout(policy, 200, seed=np.random.default_rng(9))
    np.testing.assert_array_equal(one.states, generator.states)


def test_the_compiled_path_is_the_one_taken_step_by_step():
    """Two numbers a step, for the action and the next state, either way."""
    cmdp = wide()
    sampler, policy = Sampler(cmdp), Policy.uniform(cmdp)
    path = sampler.rollout(policy, 300, seed=3)
    rng = np.random.default_rng(3)
    weights = policy.pair_weights(cmdp)
    cumulative = np.empty_like(weights)
    fill_cumulative(cmdp.state_ptr, weights, cumulative)
    state = sampler.start_state(rng)
    assert state == path.states[0]
    for t in range(300):
        pair = draw(cmdp.state_ptr, cumulative, state, rng.random())
        action = int(cmdp.pair_action[pair])
        state = sampler.next_state(state, action, rng)
        assert (action, state) == (path.actions[t], path.states[t + 1])


def test_a_path_may_begin_elsewhere_and_be_empty():
    cmdp = wide()
    path = Sampler(cmdp).rollout(Policy.uniform(cmdp), 0, start=17)
    assert path.states.tolist() == [17]
    assert path.actions.size == 0


def test_what_cannot_be_sampled_is_refused():
    cmdp = wide()
    sampler, rng = Sampler(cmdp), np.random.default_rng(0)
    with pytest.raises(InvalidInputError, match=r"action: expected one of \[0, 1\]"):
        sampler.next_state(0, 2, rng)
    with pytest.raises(InvalidInputError, match=r"state: expected a state in 0\.\.39"):
        sampler.next_state(40, 0, rng)
