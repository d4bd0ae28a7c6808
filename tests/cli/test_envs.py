"""``escapade envs``."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

import escapade as ep
from escapade.cli import app


@pytest.fixture
def run():
    def invoke(*words):
        return CliRunner().invoke(app, list(words))

    return invoke


def test_every_world_is_listed(run):
    done = run("envs")
    assert (done.exit_code, done.stderr) == (0, "")
    for name in ep.environments.names():
        world = ep.environments.make(name)
        assert f"{name} " in done.stdout
        assert world.description in done.stdout


def test_the_list_of_worlds_is_an_object_when_asked_for(run):
    done = run("envs", "--json")
    assert done.exit_code == 0
    listed = json.loads(done.stdout, parse_constant=pytest.fail)["worlds"]
    assert tuple(world["name"] for world in listed) == ep.environments.names()
    for world in listed:
        made = ep.environments.make(world["name"], **world["parameters"])
        assert world["states"] == made.cmdp.n_states
        assert world["budget"] == made.cmdp.budget.tolist()
        assert world["known_optimum"] == made.known_optimum
