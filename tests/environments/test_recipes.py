"""Worlds that ship with a recipe: true to their models, promised, and lived in."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest

import escapade as ep
from escapade.baselines.long_run import long_run_policy
from escapade.errors import InvalidInputError
from escapade.preflight import budget_binds

worlds = ep.environments

RECIPES = (
    ("battery", {}),
    ("cliff-walk", {}),
    ("cliff-walk", {"success_rate": 0.9, "discount": 0.99, "budget": 0.3}),
    ("frozen-lake", {}),
    ("frozen-lake", {"success_rate": 0.9}),
    ("frozen-lake", {"success_rate": 0.9, "doubt": 0.25}),
    ("frozen-lake", {"size": 8}),
    ("frozen-lake", {"size": 8, "success_rate": 0.9, "budget": 1.0}),
    ("inventory", {}),
    ("lava-gap", {}),
    ("pendulum", {}),
    ("queue", {}),
)
NEVER_BINDING = (("cliff-walk", {}), ("lava-gap", {}))


SMALL = ("battery", "inventory", "queue")


def _param(recipe):
    name, keywords = recipe
    small = name in SMALL or (name == "frozen-lake" and len(keywords) < 2)
    small &= "size" not in keywords
    marks = [] if small else [pytest.mark.slow]
    return pytest.param(recipe, marks=marks, id=f"{name}{keywords}")


@pytest.fixture(params=[_param(recipe) for recipe in RECIPES])
def world(request):
    name, keywords = request.param
    return worlds.make(name, **keywords)


def test_what_is_told_is_true(world):
    belief = ep.E4(world.knowledge).belief
    cmdp = world.cmdp
    kernel = np.zeros(belief.sets.successor.size)
    pair = np.repeat(np.arange(cmdp.n_pairs), np.diff(belief.sets.row_ptr))
    table = cmdp.transition_matrix.toarray()
    kernel[:] = table[pair, belief.sets.successor]
    assert np.add.reduceat(kernel, belief.sets.row_ptr[:-1]) == pytest.approx(1.0)
    assert belief.sets.contains(kernel, tolerance=1e-9).all()
    assert (cmdp.cost <= belief.cost_upper + 1e-12).all()
    assert (cmdp.reward <= belief.confidence.reward_upper + 1e-12).all()
    assert (cmdp.reward >= belief.confidence.reward_lower - 1e-12).all()


def test_it_can_be_promised_and_lived_in(world):
    found = ep.preflight(world.knowledge)
    assert found.promisable
    agent = ep.E4(world.knowledge, ep.E4Settings(seed=2))
    trace = ep.simulate(agent, world.env, steps=800)
    assert agent.breaks == []
    assert (trace.reserved <= trace.promise).all()
    assert (trace.promise <= trace.budget).all()


@pytest.mark.parametrize("recipe", RECIPES, ids=str)
def test_the_budget_binds_where_any_does(recipe):
    name, keywords = recipe
    cmdp = worlds.make(name, **keywords).cmdp
    assert budget_binds(cmdp) is (recipe not in NEVER_BINDING)
    if recipe in NEVER_BINDING:
        # the best way costs nothing, so that no budget above 0 can bind
        free = ep.solve(cmdp.replace(budget=1e-9))
        best = ep.solve(cmdp.replace(budget=1.0 / (1.0 - cmdp.discount)))
        assert free.value == pytest.approx(best.value, rel=1e-6)
        warnings = ep.preflight(cmdp).warnings
        assert any("the budget does not bind" in said for said in warnings)


@pytest.mark.slow
def test_the_agent_earns_its_share():
    """Of the best in the long run at the rate that the budget allows, told or not."""
    for name, share, keywords in (
        ("frozen-lake", 0.8, {"success_rate": 0.9}),
        ("queue", 0.85, {}),
    ):
        world = worlds.make(name, **keywords)
        rate = (1.0 - world.cmdp.discount) * world.cmdp.budget
        best = long_run_policy(world.cmdp, rate, world.cmdp.start).gain
        agent = ep.E4(world.knowledge, ep.E4Settings(seed=3))
        trace = ep.simulate(agent, world.make_env(), steps=20_000)
        assert trace.rewards[10_000:].mean() >= share * best


def test_the_simulator_of_the_pendulum_is_off():
    world = worlds.pendulum(5, doubt=0.3)
    sets, cmdp = world.knowledge.models, world.cmdp
    ratio = sets.nominal / cmdp.probability
    assert 0.01 < np.abs(ratio - 1.0).max() < 0.3
    assert (sets.lower <= cmdp.probability).all()
    assert (cmdp.probability <= sets.upper).all()


@pytest.mark.slow
@pytest.mark.statistical
def test_audits_are_within_budget(world):
    found = ep.audit(
        lambda knowledge, seed: ep.E4(knowledge, ep.E4Settings(seed=seed)),
        world,
        lifetimes=12,
        steps=2_000,
        seed=4,
    )
    assert found.invariant_breaks == 0
    # an agent that keeps its promise is found guilty with probability 2 · .05 at most
    assert not found.broken


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("name", ["frozen-lake", "battery"])
def test_those_who_promise_nothing_pay_more_than_the_budget(name):
    """Found beyond doubt, at an error of .05; E4 is in the test above."""
    place = worlds.make(name)
    for other in ("e3", "lagrangian-q"):
        found = ep.audit(
            lambda knowledge, seed, other=other: ep.baselines.make(
                other, knowledge, seed=seed
            ),
            place,
            lifetimes=12,
            steps=2_500,
            seed=4,
        )
        assert found.broken


@pytest.mark.parametrize(
    ("theirs", "keywords", "size"),
    [("FrozenLake-v1", {}, 4), ("FrozenLake8x8-v1", {}, 8)],
)
def test_the_lake_is_that_of_gymnasium(theirs, keywords, size):
    letters = gymnasium.make(theirs, **keywords).unwrapped.desc.astype("U1").ravel()
    holes = set(np.flatnonzero(letters == "H").tolist())
    brought = worlds.from_gymnasium(
        theirs,
        cost=lambda s, a, t, info: t in holes and s not in holes,
        discount=0.95,
        budget=1.0,
    ).cmdp
    ours = worlds.frozen_lake(size, budget=1.0).cmdp
    assert brought is not None
    _same(ours, brought, np.isin(letters, ["S", "F"]))


def test_the_cliff_is_that_of_gymnasium():
    theirs = gymnasium.make("CliffWalkingSlippery-v1").unwrapped
    ours = worlds.cliff_walk().cmdp
    for state in range(36):
        for action in range(4):
            row, fell = np.zeros(48), 0.0
            for chance, after, reward, done in theirs.P[state][action]:
                row[36 if done else after] += chance
                fell += chance * (reward == -100)
            pair = ours.pair(state, action)
            assert ours.cost[0, pair] == pytest.approx(fell)
            mine = np.zeros(48)
            successors, chances = ours.successors(state, action)
            mine[successors] = chances
            np.testing.assert_allclose(mine, row, atol=1e-12)


@pytest.mark.extras
def test_the_lava_is_that_of_minigrid():
    brought = worlds.from_minigrid(
        "MiniGrid-LavaGapS7-v0",
        seed=0,
        actions=("left", "right", "forward"),
        discount=0.95,
        budget=2.0,
    ).cmdp
    ours = worlds.lava_gap().cmdp
    assert brought is not None
    number = {name: k for k, name in enumerate(ours.state_names)}
    for state, name in enumerate(brought.state_names):
        if "ended" in name:
            continue
        mine = number[name]
        for action in range(3):
            theirs, ours_pair = brought.pair(state, action), ours.pair(mine, action)
            led = brought.state_names[int(brought.successors(state, action)[0][0])]
            assert number[led] == int(ours.successors(mine, action)[0][0])
            assert brought.cost[0, theirs] == ours.cost[0, ours_pair]
            assert brought.reward[theirs] == ours.reward[ours_pair]


def _same(ours, theirs, states):
    mask = states[ours.pair_state]
    np.testing.assert_allclose(
        ours.transition_matrix.toarray()[mask],
        theirs.transition_matrix.toarray()[mask],
        atol=1e-12,
    )
    np.testing.assert_allclose(ours.cost[:, mask], theirs.cost[:, mask], atol=1e-12)
    np.testing.assert_allclose(ours.reward[mask], theirs.reward[mask], atol=1e-12)


@pytest.mark.parametrize(
    ("name", "keywords", "named"),
    [
        ("frozen-lake", {"size": 5}, "size"),
        ("frozen-lake", {"success_rate": 1.5}, "success_rate"),
        ("frozen-lake", {"doubt": -0.1}, "doubt"),
        ("pendulum", {"doubt": 1.0}, "doubt"),
        ("cliff-walk", {"budget": -1.0}, "budget"),
        ("lava-gap", {"gap": (6, 3)}, "gap"),
        ("lava-gap", {"size": 4}, "size"),
        ("inventory", {"most": 9}, "most"),
        ("inventory", {"demand": -0.1}, "demand"),
        ("inventory", {"keeping": float("inf")}, "keeping"),
        ("queue", {"arrivals": 0.5}, "arrivals"),
        ("battery", {"levels": 2}, "levels"),
        ("pendulum", {"cells": 6}, "cells"),
        ("pendulum", {"band": 0.0}, "band"),
    ],
)
def test_what_is_wrong_is_named(name, keywords, named):
    with pytest.raises(InvalidInputError, match=f"^{named}: expected"):
        worlds.make(name, **keywords)
