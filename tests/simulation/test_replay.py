"""A recorded lifetime told again."""

from __future__ import annotations

from dataclasses import replace as changed

import numpy as np
import pytest

import escapade as ep
from escapade.simulation import replay

STEPS = 1500


@pytest.fixture(scope="module")
def lived():
    world = ep.environments.toll_cycle(size=3, budget=3.0)
    settings = ep.E4Settings(seed=5, known_after=5)
    agent = ep.E4(world.knowledge, settings)
    plans = []
    trace = ep.simulate(agent, world.make_env(), STEPS, on_plan=plans.append)
    assert plans == trace.plans.tolist()
    return world, settings, agent, trace


def test_an_agent_that_is_told_its_life_again_ends_where_it_ended(lived):
    world, settings, agent, trace = lived
    again = ep.E4(world.knowledge, settings)
    plans, stretches = [], []
    found = replay(
        again,
        trace,
        on_plan=plans.append,
        on_stretch=lambda first, last, _: stretches.append((first, last)),
    )
    assert found is None
    assert plans == trace.plans.tolist()
    assert [first for first, _ in stretches] == [0, *(last for _, last in stretches)][
        :-1
    ]
    assert stretches[-1][1] == STEPS
    assert again.state == agent.state
    assert again.decisions == agent.decisions
    assert again.promise.tolist() == agent.promise.tolist()
    for name, array in agent.belief.state().items():
        assert np.array_equal(array, again.belief.state()[name]), name
    assert again.rng.bit_generator.state == agent.rng.bit_generator.state


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("actions", "decides"),
        ("phases", "decides"),
        ("reasons", "decides"),
        ("promise", "promise"),
        ("reserved", "reserved"),
        ("states", "promise"),
        ("costs", "promise"),
    ],
)
def test_a_changed_record_is_noticed(lived, name, what):
    world, settings, _, trace = lived
    array = np.array(getattr(trace, name))
    at = 700
    if array.dtype.kind == "f":
        array[at] = np.nextafter(array[at], 2.0) if name != "costs" else 1.0
    else:
        array[at] = (array[at] + 1) % 3
    found = replay(ep.E4(world.knowledge, settings), changed(trace, **{name: array}))
    assert found is not None
    assert at - 1 <= found.step <= at + 1
    assert what in found.message


def test_numbers_that_stand_for_nothing_are_noticed(lived):
    world, settings, _, trace = lived
    actions = np.array(trace.actions)
    actions[3] = 7
    found = replay(ep.E4(world.knowledge, settings), changed(trace, actions=actions))
    assert (found.step, found.message) == (3, "expected actions in 0..4, found 7")
