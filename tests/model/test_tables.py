"""Gymnasium's tables: what they tell, what they do not, and what is wrong with some."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest

from escapade.errors import InvalidInputError
from escapade.model import CMDP, Policy, evaluate

HOLES = (5, 7, 11, 12)


def lake(on_done, **keywords):
    table = gymnasium.make("FrozenLake-v1").unwrapped.P
    given = {"cost": fall, "discount": 0.9, "budget": 0.5, **keywords}
    return CMDP.from_table(table, on_done=on_done, **given)


def fall(_state, _action, following, _reward):
    return float(following in HOLES)


def judged(table, policy, discount, restart):
    """The value by plain sweeps over the table, outcome by outcome."""
    value = np.zeros(len(table))
    for _ in range(400):
        value = np.array(
            [
                sum(
                    policy.probabilities[state, action]
                    * p
                    * (r + discount * (restart(value) if done else value[n]))
                    for action, outcomes in table[state].items()
                    for p, n, r, done in outcomes
                )
                for state in range(len(table))
            ]
        )
    return value


@pytest.mark.parametrize("on_done", ["reset", "absorb"])
def test_the_frozen_lake(on_done):
    cmdp = lake(on_done)
    table = gymnasium.make("FrozenLake-v1").unwrapped.P
    policy = Policy.uniform(cmdp)
    restart = (lambda v: v[0]) if on_done == "reset" else (lambda _v: 0.0)
    expected = judged(table, policy, 0.9, restart)
    alive = [s for s in range(16) if s not in (*HOLES, 15)]
    found = evaluate(cmdp, policy).value
    np.testing.assert_allclose(found[alive], expected[alive], atol=1e-9)
    assert cmdp.n_pairs == 64


def test_absorbed_is_absorbed():
    cmdp = lake("absorb")
    for state in (*HOLES, 15):
        for action in range(4):
            states, _ = cmdp.successors(state, action)
            assert states.tolist() == [state]
            assert cmdp.reward[cmdp.pair(state, action)] == 0.0
    result = evaluate(cmdp, Policy.uniform(cmdp))
    assert np.abs(result.value[list(HOLES)]).max() <= result.error


TWO = {
    0: {0: [(0.5, 0, 1.0, False), (0.5, 1, 3.0, True)], 2: [(1.0, 1, 0.0, True)]},
    1: {1: [(1.0, 1, 0.0, True)]},
}
KEYS = {"discount": 0.5, "budget": 1.0}


def test_states_may_have_different_actions():
    cmdp = CMDP.from_table(TWO, cost=lambda *_: 0.0, on_done="reset", **KEYS)
    assert cmdp.available.tolist() == [[True, False, True], [False, True, False]]
    assert cmdp.reward.tolist() == [2.0, 0.0, 0.0]
    states, chances = cmdp.successors(0, 0)  # the end is the start again
    assert (states.tolist(), chances.tolist()) == ([0], [1.0])


def test_a_reset_leads_to_the_start_distribution():
    cmdp = CMDP.from_table(
        TWO, cost=lambda *_: 0.0, on_done="reset", start=[0.25, 0.75], **KEYS
    )
    assert cmdp.transition_matrix.toarray().tolist() == [
        [0.625, 0.375],
        [0.25, 0.75],
        [0.25, 0.75],
    ]


def test_the_bounds_hold_for_samples_not_only_for_means():
    """E5: a reward of 3 with probability ½ is a sample of 3, its mean is less."""
    cmdp = CMDP.from_table(
        TWO, cost=lambda _s, _a, n, _r: 4.0 * n, on_done="reset", **KEYS
    )
    assert cmdp.reward.max() == 2.0
    assert cmdp.reward_max == 3.0
    assert cmdp.cost[0].tolist() == [2.0, 4.0, 4.0]
    assert cmdp.cost_max.tolist() == [4.0]
    wider = CMDP.from_table(
        TWO, cost=lambda *_: 0.5, on_done="reset", reward_max=9.0, cost_max=7.0, **KEYS
    )
    assert (wider.reward_max, wider.cost_max.tolist()) == (9.0, [7.0])


COSTS = {
    "a grid": (np.arange(6.0).reshape(2, 3), [[0.0, 2.0, 4.0]]),
    "by pairs": (np.array([0.0, 2.0, 4.0]), [[0.0, 2.0, 4.0]]),
    "channels of grids": (np.arange(6.0).reshape(1, 2, 3), [[0.0, 2.0, 4.0]]),
}


@pytest.mark.parametrize("shape", COSTS)
@pytest.mark.parametrize("on_done", ["reset", "absorb"])
def test_costs_as_arrays(shape, on_done):
    cost, expected = COSTS[shape]
    cmdp = CMDP.from_table(TWO, cost=cost, on_done=on_done, **KEYS)
    if on_done == "absorb":  # nothing more happens in state 1
        expected = [[*expected[0][:2], 0.0]]
    assert cmdp.cost.tolist() == expected


def test_two_channels_by_pairs_are_absorbed_too():
    cost = np.array([[1.0, 1.0, 1.0], [2.0, 2.0, 2.0]])
    cmdp = CMDP.from_table(
        TWO, cost=cost, on_done="absorb", discount=0.5, budget=[1, 1]
    )
    assert cmdp.cost.tolist() == [[1.0, 1.0, 0.0], [2.0, 2.0, 0.0]]


def test_lists_will_do_for_dictionaries_and_impossible_outcomes_do_not_count():
    table = [
        [[(1.0, 1, 0.5, False), (0.0, 1, 99.0, True)]],
        [[(1.0, 0, 0.25, False)], []],  # an action without outcomes is none
    ]
    cmdp = CMDP.from_table(table, cost=lambda *_: 0.0, on_done="absorb", **KEYS)
    assert cmdp.n_pairs == 2
    assert cmdp.reward_max == 0.5
    assert evaluate(cmdp, Policy.uniform(cmdp)).start_value == pytest.approx(5 / 6)


def free(table, **keywords):
    given = {"cost": lambda *_: 0.0, "on_done": "reset", **KEYS, **keywords}
    return lambda: CMDP.from_table(table, **given)


ONE = [(1.0, 0, 0.0, False)]
REFUSALS = {
    "a word for what comes after": (
        free(TWO, on_done="stop"),
        "on_done: expected 'reset' or 'absorb', found 'stop'",
    ),
    "a number": (free(3), "table: expected table[state][action], found a int"),
    "nothing": (free({}), "table: expected at least one state, found none"),
    "states with gaps": (
        free({0: {0: ONE}, 2: {0: ONE}}),
        "table: expected states 0..1, found none at state 1",
    ),
    "a state that is no table": (
        free({0: 7}),
        "table: expected a dictionary of actions, found a int at state 0",
    ),
    "a state without outcomes": (
        free({0: {0: ONE}, 1: {}}),
        "table: expected at least one outcome, found none at state 1",
    ),
    "an action with a name": (
        free({0: {"go": ONE}}),
        "table: expected actions numbered from 0, found 'go' at state 0, action go",
    ),
    "an action below 0": (
        free({0: {-1: ONE}}),
        "table: expected actions numbered from 0, found -1 at state 0, action -1",
    ),
    "an outcome of three": (
        free({0: {0: [(1.0, 0, 0.0)]}}),
        "table: expected outcomes (probability, next_state, reward, terminated), "
        "found (1.0, 0, 0.0) at state 0, action 0",
    ),
    "an outcome in words": (
        free({0: {0: [("all", 0, 0.0, False)]}}),
        "table: expected outcomes (probability, next_state, reward, terminated), "
        "found ('all', 0, 0.0, False) at state 0, action 0",
    ),
    "a state that is not": (
        free({0: {0: [(1.0, 1, 0.0, False)]}}),
        "table: expected next states 0..0, found 1 at state 0, action 0",
    ),
    "half a state": (
        free({0: {0: [(1.0, 0.5, 0.0, False)]}}),
        "table: expected next states 0..0, found 0.5 at state 0, action 0",
    ),
    "probabilities that sum to less": (
        free({0: {0: [(0.5, 0, 0.0, False)]}}),
        "table: expected rows that sum to 1, found a sum of 0.5 at state 0, action 0",
    ),
    "a negative probability": (
        free({0: {0: [(1.5, 0, 0.0, False), (-0.5, 0, 0.0, True)]}}),
        "table (probability): expected finite amounts of at least 0, found -0.5 "
        "at state 0, action 0, next state 0",
    ),
    "a sample below 0, though not the mean": (
        free({0: {0: [(0.5, 0, 3.0, False), (0.5, 0, -1.0, False)]}}),
        "table (reward): expected finite amounts of at least 0, found -1 "
        "at state 0, action 0, next state 0",
    ),
    "a negative cost of an outcome": (
        free({0: {0: ONE}}, cost=lambda *_: -1.0),
        "cost: expected finite amounts of at least 0, found -1 "
        "at state 0, action 0, next state 0",
    ),
    "a cost that is no number": (
        free({0: {0: ONE}}, cost=lambda *_: None),
        "cost: expected a function that returns a number, found None "
        "at state 0, action 0, next state 0",
    ),
    "a cost of the state alone": (
        free({0: {0: ONE}}, cost=lambda state: 0.0),
        "cost: expected a function of (state, action, next_state, reward), found "
        "another (too many positional arguments)",
    ),
    "outcomes that are none": (
        free({0: {0: None}}),
        "table: expected a list of outcomes, found None at state 0, action 0",
    ),
    "a negative cost in an array": (
        free({0: {0: ONE}}, cost=[[-1.0]]),
        "cost: expected finite numbers of at least 0, found -1 at state 0, action 0",
    ),
    "costs of another shape": (
        free({0: {0: ONE}}, cost=[[1.0, 2.0]]),
        "cost: expected shape (1, 1), (K, 1, 1), (1,) or (K, 1), found shape (1, 2)",
    ),
    "an end that is passed through": (
        free(
            {
                0: {0: [(0.5, 1, 0.0, True), (0.5, 1, 0.0, False)]},
                1: {0: [(1.0, 0, 0.0, False)]},
            },
            on_done="absorb",
        ),
        "on_done: expected 'reset', as a state is entered both at the end and on the "
        "way, found 'absorb' at state 1",
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_a_table_that_is_wrong_is_refused(name):
    act, message = REFUSALS[name]
    with pytest.raises(InvalidInputError) as caught:
        act()
    assert str(caught.value) == message


def test_a_cliff_pays_less_than_nothing_and_has_to_be_rescaled_first():
    table = gymnasium.make("CliffWalking-v1").unwrapped.P
    with pytest.raises(InvalidInputError, match="found -1 at state 0, action 0"):
        free(table)()
    shifted = {
        state: {
            action: [(p, n, (r + 100) / 100, d) for p, n, r, d in outcomes]
            for action, outcomes in actions.items()
        }
        for state, actions in table.items()
    }
    cmdp = free(shifted, start=36)()
    assert cmdp.reward_max == pytest.approx(0.99)
