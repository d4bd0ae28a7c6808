"""Random problems: shapes, seeds, and budgets that are neither idle nor vain."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import escapade as ep
from escapade.errors import InvalidInputError
from escapade.planning import policy_iteration

garnet = ep.environments.garnet


@settings(max_examples=25)
@given(
    n_states=st.integers(1, 8),
    n_actions=st.integers(1, 3),
    data=st.data(),
    seed=st.integers(0, 2**63 - 1),
)
def test_every_row_has_as_many_successors_as_asked_for(n_states, n_actions, data, seed):
    branching = data.draw(st.integers(1, n_states))
    cmdp = garnet(n_states, n_actions, branching, seed).cmdp
    assert (cmdp.n_states, cmdp.n_actions) == (n_states, n_actions)
    assert np.unique(np.diff(cmdp.row_ptr)).tolist() == [branching]
    rows = cmdp.successor.reshape(-1, branching)
    assert (np.diff(rows, axis=1) > 0).all()
    assert (cmdp.reward_max, cmdp.cost_max.tolist()) == (1.0, [1.0])
    again = garnet(n_states, n_actions, branching, seed).cmdp
    assert again == cmdp


def test_seeds_differ():
    found = {garnet(seed=seed).cmdp.fingerprint for seed in range(5)}
    assert len(found) == 5


@pytest.mark.parametrize("n_costs", [1, 2])
@pytest.mark.parametrize("slack", [0.0, 0.5, 0.9])
def test_the_budgets_can_be_kept_and_bind(n_costs, slack, lp_optimum):
    for seed in range(3):
        cmdp = garnet(15, 3, 3, seed, n_costs=n_costs, slack=slack).cmdp
        value, _ = lp_optimum(cmdp)
        free = float(cmdp.start @ policy_iteration(cmdp).value)
        assert value < free - 1e-6


def test_all_slack_leaves_the_best_policy_free(lp_optimum):
    cmdp = garnet(15, 3, 3, slack=1.0, n_costs=2).cmdp
    free = float(cmdp.start @ policy_iteration(cmdp).value)
    assert lp_optimum(cmdp)[0] == pytest.approx(free, rel=1e-6)


def test_a_budget_may_be_given_and_changes_nothing_else():
    ours = garnet(10, 2, 2, seed=3)
    theirs = garnet(10, 2, 2, seed=3, budget=1.25)
    assert theirs.cmdp.budget.tolist() == [1.25]
    assert theirs.cmdp.replace(budget=ours.cmdp.budget) == ours.cmdp


@pytest.mark.statistical
def test_successors_are_drawn_evenly():
    """Fails with probability at most 1e-9 for a seed drawn at random.

    Each of the 10 sets of two out of five states has n = 5,000 chances of 1/10; by
    Hoeffding and a union bound a frequency is off by more than .0487 with probability
    at most 10 · 2 exp(−2 n .0487²) < 1.1e-9.
    """
    cmdp = garnet(5, 1000, 2, seed=1, budget=9.0).cmdp
    first, second = cmdp.successor.reshape(-1, 2).T
    counts = np.bincount(5 * first + second, minlength=25)
    frequency = counts[counts > 0] / len(first)
    assert frequency.size == 10
    assert np.abs(frequency - 0.1).max() < 0.0487


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"branching": 21}, "branching: expected at most 20, the states, found 21"),
        ({"branching": 0}, "branching: expected a whole number of at least 1"),
        ({"n_states": 0}, "n_states"),
        ({"n_actions": 1.5}, "n_actions"),
        ({"n_costs": 0}, "n_costs"),
        ({"seed": -1}, "seed"),
        ({"slack": 1.1}, r"slack: expected a number in \[0, 1\], found 1.1"),
        ({"budget": [1.0, 2.0]}, "budget"),
    ],
)
def test_what_is_refused(keywords, message):
    with pytest.raises(InvalidInputError, match=message):
        garnet(**keywords)
