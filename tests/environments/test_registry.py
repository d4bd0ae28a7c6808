"""Worlds by name, here and in Gymnasium's registry."""

from __future__ import annotations

import subprocess
import sys

import gymnasium
import pytest
from gymnasium.utils.env_checker import check_env

import escapade as ep
from escapade.errors import InvalidInputError

worlds = ep.environments


def gymnasium_id(name):
    return f"escapade/{name.title().replace('-', '')}-v0"


def test_every_builder_has_its_name():
    assert list(worlds.names()) == sorted(worlds.names())
    built = {name.replace("-", "_") for name in worlds.names()}
    assert built <= set(worlds.__all__)
    for name in worlds.names():
        world = worlds.make(name)
        assert world.name == name
        assert world.cmdp == getattr(worlds, name.replace("-", "_"))().cmdp
        assert world.description.endswith(".")
        assert repr(world).partition("(")[2].startswith(f"'{name}', ")


def test_keywords_are_those_of_the_builder():
    assert worlds.make("wall-cycle", size=4).cmdp == worlds.wall_cycle(4).cmdp
    for name in worlds.names():
        world = worlds.make(name, **worlds.parameters(name))
        assert world.cmdp == worlds.make(name).cmdp


@pytest.mark.parametrize(
    ("name", "keywords", "message"),
    [
        (
            "wall_cycle",
            {},
            r"name: expected one of \[.*found 'wall_cycle' \(did you mea",
        ),
        ("chess", {}, r"name: expected one of \['barrier-grid', .*found 'chess'$"),
        (7, {}, "name: expected one of"),
        (["garnet"], {}, "name: expected one of"),
        (
            "wall-cycle",
            {"sise": 4},
            r"expected names among \['size', .*found 'sise' at",
        ),
        ("wall-cycle", {"size": 1}, "size: expected a whole number of at least 2"),
    ],
)
def test_what_is_refused(name, keywords, message):
    with pytest.raises(InvalidInputError, match=message):
        worlds.make(name, **keywords)


@pytest.mark.parametrize("name", worlds.names())
def test_gymnasium_makes_and_checks_every_world(name):
    env = gymnasium.make(gymnasium_id(name))
    assert env.unwrapped.cmdp == worlds.make(name).cmdp
    check_env(env.unwrapped)  # all render modes too
    env.close()


def test_gymnasium_passes_keywords_on():
    env = gymnasium.make("escapade/WallCycle-v0", size=3, render_mode="ansi")
    env.reset(seed=0)
    assert env.render().splitlines()[-1] == "@ + +"
    again = gymnasium.make(gymnasium.spec("escapade/WallCycle-v0"), size=3)
    assert again.unwrapped.cmdp == env.unwrapped.cmdp


def test_a_limit_and_a_vector_of_worlds():
    limited = gymnasium.make("escapade/MoatGrid-v0", max_episode_steps=3)
    limited.reset(seed=0)
    ends = [limited.step(0)[2:4] for _ in range(3)]
    assert ends == [(False, False), (False, False), (False, True)]
    vector = gymnasium.make_vec("escapade/MoatGrid-v0", num_envs=2)
    vector.reset(seed=0)
    states, _, _, _, info = vector.step([0, 1])
    assert states.tolist() == [6, 1]
    assert info["cost"].tolist() == [1.0, 0.0]
    vector.close()


def test_gymnasium_finds_a_world_by_its_module_in_a_new_process():
    words = (
        "import gymnasium\n"
        "env = gymnasium.make('escapade.environments:escapade/WallCycle-v0')\n"
        "print(env.observation_space)"
    )
    done = subprocess.run(
        [sys.executable, "-c", words], capture_output=True, text=True, check=True
    )
    assert done.stdout == "Discrete(100)\n"
