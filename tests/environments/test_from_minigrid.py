"""MiniGrid's worlds, every state numbered.  They are an extra: without it, one line."""

from __future__ import annotations

import builtins

import numpy as np
import pytest

import escapade as ep
from escapade.environments import from_minigrid
from escapade.errors import InvalidInputError, MissingExtraError

MOVES = ("left", "right", "forward")


@pytest.fixture
def grids():
    import minigrid

    return minigrid


def gap(**changes):
    keywords = {"discount": 0.95, "budget": 1.0, "actions": MOVES, **changes}
    return from_minigrid("MiniGrid-LavaGapS7-v0", **keywords)


def test_without_the_extra_its_line_is_named(monkeypatch):
    imported = builtins.__import__

    def lacking(name, *rest):
        if name.startswith("minigrid"):
            raise ImportError(name)
        return imported(name, *rest)

    monkeypatch.setattr(builtins, "__import__", lacking)
    with pytest.raises(MissingExtraError, match=r"escapade\[minigrid\]"):
        gap()


@pytest.mark.extras
def test_the_environment_does_what_its_enumeration_says(grids):
    world = gap()
    cmdp, env = world.cmdp, world.env
    assert cmdp is not None
    state, _ = env.reset(seed=3)
    rng = np.random.default_rng(0)
    costs = 0.0
    for _ in range(600):
        action = int(rng.integers(3))
        after, reward, _, _, info = env.step(action)
        successors, chances = cmdp.successors(state, action)
        assert successors.tolist() == [after]
        assert chances.tolist() == [1.0]
        pair = cmdp.pair(state, action)
        assert (reward, info["cost"]) == (cmdp.reward[pair], cmdp.cost[0, pair])
        costs += info["cost"]
        state = after
    assert costs > 0
    assert cmdp.state_names[0] == "(1, 1) east"
    # 25 cells less the lava, four directions, and ends on lava and at the goal
    free = 25 - 4 - 1
    assert sum("ended" not in name for name in cmdp.state_names) == 4 * free


@pytest.mark.extras
def test_the_best_way_goes_through_the_gap(grids):
    found = ep.solve(gap().cmdp)
    assert found.costs[0] == 0.0
    assert found.value > 0.5


@pytest.mark.extras
def test_layouts_differ_by_seed_and_stay(grids):
    one, other = gap(seed=0), gap(seed=1)
    assert one.cmdp != other.cmdp
    assert one.cmdp == gap(seed=0).cmdp
    one.env.reset(seed=5)
    assert one.env.reset(seed=6)[0] == 0


@pytest.mark.extras
def test_doors_and_keys_are_part_of_the_state(grids):
    world = from_minigrid("MiniGrid-DoorKey-5x5-v0", discount=0.9, budget=1.0)
    assert world.cmdp is not None
    assert any("carrying" in name for name in world.cmdp.state_names)
    assert ep.solve(world.cmdp).value > 0.1


@pytest.mark.extras
def test_what_is_wrong_is_named(grids):
    for changes, named in (
        ({"actions": ["fly"]}, "actions"),
        ({"max_states": 10}, "env: expected at most 10 states"),
    ):
        with pytest.raises(InvalidInputError, match=named):
            gap(**changes)
    for name in ("FrozenLake-v1", "MiniGrid-Dynamic-Obstacles-5x5-v0"):
        with pytest.raises(InvalidInputError, match=r"^env: expected a"):
            from_minigrid(name, discount=0.9, budget=1.0)
