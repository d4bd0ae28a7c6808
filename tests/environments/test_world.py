"""A world: what it says about itself, and that it travels."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, replace
from importlib import import_module

import pytest

import escapade as ep
from escapade.environments import World
from escapade.errors import InvalidInputError


def test_an_optimum_needs_a_source():
    cmdp = ep.environments.moat_grid().cmdp
    with pytest.raises(InvalidInputError, match="optimum_source: expected words"):
        World(name="moat", description="A moat.", cmdp=cmdp, known_optimum=1.0)


def test_what_is_not_known_is_computed_once(monkeypatch):
    cmdp = ep.environments.three_state_loop().cmdp
    world = World(name="loop", description="A loop.", cmdp=cmdp)
    assert world.optimum == pytest.approx(10.3506, abs=5e-5)
    monkeypatch.setattr(import_module("escapade.planning.solve"), "solve", None)
    assert world.optimum == world.raw_optimum
    assert world.raw_average_optimum is None
    assert "computed" in world.optimum_source


def test_units():
    cmdp = ep.environments.three_state_loop().cmdp
    world = World(
        name="loop",
        description="A loop.",
        cmdp=cmdp,
        average_optimum=1.0,
        value_scale=2.0,
        value_offset=-30.0,
    )
    # 2 r − 3 a step is 2 V − 3 / (1 − γ) in all, and 2 − 3 on average
    assert world.raw_value(10.0) == pytest.approx(-10.0)
    assert world.raw_average_optimum == pytest.approx(-1.0)


@pytest.mark.parametrize("name", ep.environments.names())
def test_agents_are_told_the_same_units(name):
    world = ep.environments.make(name)
    told = world.knowledge
    assert told.raw_value(3.0) == pytest.approx(world.raw_value(3.0), rel=1e-12)
    assert told.rescaled == (world.value_scale != 1.0 or world.value_offset != 0.0)


@pytest.mark.parametrize("law", ["reward_noise", "cost_noise"])
def test_an_unknown_law_is_refused(law):
    cmdp = ep.environments.moat_grid().cmdp
    with pytest.raises(InvalidInputError, match=f"{law}: expected one of"):
        World(name="moat", description="A moat.", cmdp=cmdp, **{law: "normal"})


def test_a_world_cannot_be_changed():
    world = ep.environments.moat_grid()
    with pytest.raises(FrozenInstanceError):
        world.name = "other"
    noisy = replace(world, cost_noise="bernoulli")
    assert (noisy.cost_noise, world.cost_noise) == ("bernoulli", "deterministic")


def test_the_environment_is_kept_and_others_can_be_made():
    world = ep.environments.wall_cycle(3)
    assert world.env is world.env
    other = world.make_env(render_mode="ansi")
    assert other is not world.env
    assert (other.render_mode, world.env.render_mode) == ("ansi", None)
    assert other.cost_noise == "bernoulli"
    assert (other.cost_given_next == world.cost_given_next).all()


@pytest.mark.parametrize("name", ep.environments.names())
def test_worlds_travel_to_other_processes(name):
    world = ep.environments.make(name)
    world.env.reset(seed=3)
    copy = pickle.loads(pickle.dumps(world))
    assert type(copy) is type(world)
    assert (copy.name, copy.cmdp) == (world.name, world.cmdp)
    copy.env.reset(seed=4)
    world.env.reset(seed=4)
    paths = [[env.step(1)[:2] for _ in range(20)] for env in (world.env, copy.env)]
    assert paths[0] == paths[1]


def test_knowledge_in_the_place_of_what_tells_it_is_refused():
    world = ep.environments.three_state_loop()
    with pytest.raises(InvalidInputError, match="told: expected a function that"):
        World(name="loop", description="", cmdp=world.cmdp, told=world.knowledge)
