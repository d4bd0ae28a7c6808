"""What is told of the walk round the field is what its page says, and no more."""

from __future__ import annotations

import numpy as np
import pytest

from escapade.environments import wall_cycle
from escapade.environments.grids import EAST, NORTH, SOUTH, STAY, WEST

SIZE = 10
STEPS = {NORTH: (0, 1), WEST: (-1, 0), SOUTH: (0, -1), EAST: (1, 0), STAY: (0, 0)}


@pytest.fixture(scope="module")
def world():
    return wall_cycle(SIZE)


def test_moves_fail_at_most_one_time_in_ten_and_stay_never(world):
    """By any law on the cells within two of where a move was meant to end."""
    knowledge = world.knowledge
    sets, x, y = knowledge.models, *knowledge.coordinates.T
    for pair in range(0, knowledge.n_pairs, 7):
        state = int(knowledge.pairs.pair_state[pair])
        action = int(knowledge.pairs.pair_action[pair])
        names = sets.active_at(state)[action]
        if names != ("free",):
            continue
        dx, dy = STEPS[action]
        target = int(np.flatnonzero((x == x[state] + dx) & (y == y[state] + dy))[0])
        distance = np.hypot(x - x[target], y - y[target])
        for cell in range(0, SIZE * SIZE, 3):
            here = np.zeros(SIZE * SIZE)
            here[cell] = 1.0
            most = sets.worst(here)[pair]
            if cell == target:
                assert sets.worst(here, sense="min")[pair] == pytest.approx(
                    1.0 if action == STAY else 0.9
                )
            elif action == STAY or distance[cell] > 2.0:
                assert most == 0.0
            else:
                assert most == pytest.approx(0.1)


def test_stay_is_free_where_the_cells_are_known_and_nowhere_else(world):
    knowledge = world.knowledge
    told = np.zeros(knowledge.n_pairs, dtype=np.bool_)
    told[[knowledge.pair(cell, STAY) for cell in range(9)]] = True
    np.testing.assert_array_equal(knowledge.free, told)
    assert not knowledge.exact_costs.any()
    assert not knowledge.exact_rewards.any()


def test_two_thousand_steps_of_each_action_were_recorded_in_the_known_cells(world):
    log = world.knowledge.log
    pairs, counts = np.unique(
        np.column_stack([log.states, log.actions]), axis=0, return_counts=True
    )
    assert pairs.tolist() == [[s, a] for s in range(9) for a in range(5)]
    assert (counts == 2_000).all()


def test_walls_stand_at_the_rim_or_at_least_five_from_the_opposite_one(world):
    sets = world.knowledge.models
    for state in range(SIZE * SIZE):
        x, y = state % SIZE, state // SIZE
        active = sets.active_at(state)
        assert active[WEST] == (("west wall",) if x == 0 else ("free",))
        assert active[SOUTH] == (("south wall",) if y == 0 else ("free",))
        for action, place, wall in ((NORTH, y, "north wall"), (EAST, x, "east wall")):
            if place == SIZE - 1:
                assert active[action] == (wall,)
            elif place >= 5:
                assert active[action] == ("free", wall)
            else:
                assert active[action] == ("free",)


def test_the_truth_is_one_of_the_things_that_are_possible(world):
    """Its failures are half as frequent as they may be, and spread evenly."""
    sets, truth = world.knowledge.models, world.cmdp
    for seed in range(5):
        value = np.random.default_rng(seed).random(truth.n_states)
        after = truth.transition_matrix @ value
        assert (sets.worst(value) >= after - 1e-12).all()
        assert (sets.worst(value, sense="min") <= after + 1e-12).all()
    moves = truth.pair_action != STAY
    target = np.maximum.reduceat(truth.probability, truth.row_ptr[:-1])
    assert (target[~moves] == 1.0).all()
    assert target[moves].min() >= 0.95
