"""What a recorder writes, an agent can be told."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest

import escapade as ep
from escapade.environments import Recorder
from escapade.errors import AssumptionError, InvalidInputError


def live(env, steps, seed=0):
    state, _ = env.reset(seed=seed)
    seen = []
    for t in range(steps):
        after, reward, _, _, info = env.step(t % 2)
        seen.append((state, t % 2, reward, info["cost"], after))
        state = after
    return seen


def test_every_step_is_written_and_read_back(tmp_path):
    world = ep.environments.three_state_loop()
    path = tmp_path / "steps.csv"
    with Recorder(world.make_env(), path) as env:
        seen = live(env, 20)
        # written before the next step is taken: nothing waits to be flushed
        assert len(path.read_text("utf-8").splitlines()) == 21
    with Recorder(world.make_env(), path) as env:
        seen += live(env, 10, seed=1)
    log = ep.Log.from_csv(path)
    found = zip(
        log.states,
        log.actions,
        log.rewards,
        log.costs[:, 0],
        log.next_states,
        strict=True,
    )
    assert list(found) == seen
    told = world.knowledge.replace(log=log)
    assert ep.E4(told).belief.evidence.pair_visits.sum() == 30


def test_several_costs(tmp_path):
    world = ep.environments.battery()
    with Recorder(world.make_env(), tmp_path / "steps.csv", n_costs=2) as env:
        live(env, 8)
    assert ep.Log.from_csv(tmp_path / "steps.csv").n_costs == 2
    with (
        Recorder(world.make_env(), tmp_path / "other.csv") as env,
        pytest.raises(AssumptionError, match="expected 1 of them, found 2"),
    ):
        live(env, 1)


def test_what_is_wrong_is_named(tmp_path):
    world = ep.environments.three_state_loop()
    path = tmp_path / "steps.csv"
    path.write_text("something,else\n", "utf-8")
    with pytest.raises(InvalidInputError, match=r"^path: expected a log with the head"):
        Recorder(world.make_env(), path)
    assert path.read_text("utf-8") == "something,else\n"
    with pytest.raises(InvalidInputError, match=r"^observation_space: expected Discre"):
        Recorder(gymnasium.make("CartPole-v1"), path)
    with (
        Recorder(gymnasium.make("FrozenLake-v1"), tmp_path / "lake.csv") as env,
        pytest.raises(AssumptionError, match=r"^info\['cost'\]"),
    ):
        live(env, 1)
    with (
        Recorder(world.make_env(), tmp_path / "early.csv") as env,
        pytest.raises(InvalidInputError, match=r"^env: expected a call of reset"),
    ):
        env.step(0)
    assert np.loadtxt(tmp_path / "early.csv", dtype=str).size == 1


def test_a_log_of_another_plant_is_not_gone_on_with(tmp_path):
    path = tmp_path / "steps.csv"

    def brought(**changes):
        keywords = {"discount": 0.9, "budget": 1.0, **changes}
        return ep.environments.from_gymnasium(
            "FrozenLake-v1", cost=lambda s, a, t, info: -0.0, **keywords
        )

    with Recorder(brought().env, path) as env:
        live(env, 3)
    before = path.read_text("utf-8")
    assert "-0.0" not in before
    assert (
        "FrozenLake-v1; rewards in [0, 1], as they are (16 states and 4 act" in before
    )
    for other in (
        brought(reward_range=(-1, 1)).env,
        brought(on_done="absorb").env,
        ep.environments.frozen_lake().make_env(),
    ):
        with pytest.raises(
            InvalidInputError, match=r"^path: expected a log of .*, found"
        ):
            Recorder(other, path)
    assert path.read_text("utf-8") == before
    with Recorder(brought().env, path) as env:
        live(env, 3)
    assert len(ep.Log.from_csv(path)) == 6
    with (
        Recorder(gymnasium.make("FrozenLake-v1"), tmp_path / "raw.csv") as env,
        pytest.raises(AssumptionError, match="wrap the env that this returns"),
    ):
        live(env, 1)
