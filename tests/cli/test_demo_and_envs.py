"""``escapade demo`` and ``escapade envs``."""

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


def test_the_demo_prints_value_cost_and_budget(run):
    done = run("demo")
    assert (done.exit_code, done.stderr) == (0, "")
    assert "value   97.6679" in done.stdout
    assert "cost    0 of a budget of 10" in done.stdout


def test_the_demo_draws_a_walk_round_the_field(run):
    lines = [line.split() for line in run("demo").stdout.splitlines()]
    rows = [line for line in lines if len(line) == 10 and set(line) <= set("←↓→↑")]
    assert len(rows) == 10
    assert rows[0] == ["↓"] + ["←"] * 9
    assert rows[-1] == ["→"] * 9 + ["↑"]
    assert all(row[0] == "↓" and row[-1] == "↑" for row in rows[1:-1])


def test_the_demo_is_an_object_when_asked_for(run):
    done = run("demo", "--json")
    assert (done.exit_code, done.stderr) == (0, "")
    answer = json.loads(done.stdout, parse_constant=pytest.fail)
    world = ep.environments.wall_cycle(size=10)
    assert answer["world"] == "wall-cycle"
    assert answer["feasible"] is True
    assert answer["budget"] == [10.0]
    assert answer["lower"] <= world.optimum + 1e-9
    assert answer["upper"] >= world.optimum - 1e-9
    assert answer["problem"]["fingerprint"] == world.cmdp.fingerprint
    # the policy that was printed is the one that earns this
    policy = ep.Policy(
        [
            [answer["policy"][str(s)].get(a, 0.0) for a in world.cmdp.action_names]
            for s in range(world.cmdp.n_states)
        ]
    )
    assert ep.evaluate(world.cmdp, policy).start_value == pytest.approx(answer["value"])


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
