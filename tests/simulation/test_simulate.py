"""The loop: the same life interpreted and compiled, and any agent that keeps to ask."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest

import escapade as ep
from escapade.errors import InvalidInputError
from escapade.typing import Agent


@dataclass
class Choice:
    id: int
    state: int
    action: int
    phase: int = 0
    reason: str = "always the same"
    promise: tuple[float, ...] = (float("nan"),)
    reserved: tuple[float, ...] = (float("nan"),)


@dataclass
class Stubborn:
    """An agent of a user: it knows the protocol and nothing else."""

    knowledge: ep.Knowledge
    action: int = 1
    seed: int | None = 3
    state: int | None = None
    plans: int = 0
    told: list = field(default_factory=list)

    def ask(self, state):
        reason = "where it began" if not self.told else "on and on"
        return Choice(id=len(self.told), state=state, action=self.action, reason=reason)

    def tell(self, decision, *, reward, cost, next_state):
        self.told.append((decision.id, reward, cost, next_state))
        self.state = next_state
        self.plans += len(self.told) % 2 == 0


@pytest.fixture(scope="module")
def loop():
    return ep.environments.three_state_loop()


def test_any_agent_that_keeps_the_protocol_lives_in_the_loop(loop):
    agent = Stubborn(loop.knowledge)
    assert isinstance(agent, Agent)
    trace = ep.simulate(agent, loop.make_env(), steps=9, seed=1)
    first = trace.states[0]
    assert trace.states.tolist() == [(first + i) % 3 for i in range(10)]
    assert trace.actions.tolist() == [1] * 9
    assert trace.rewards.tolist() == [1.0 + (first + i) % 3 for i in range(9)]
    assert trace.costs.tolist() == [[1.0]] * 9
    assert np.isnan(trace.promise).all()
    assert trace.plans.tolist() == [2, 4, 6, 8]
    words = [trace.reason_names[code] for code in trace.reasons.tolist()]
    assert words == ["where it began"] + ["on and on"] * 8
    assert agent.told[-1] == (8, trace.rewards[-1], 1.0, trace.states[-1])


def test_life_goes_on_where_it_stopped(loop):
    env = loop.make_env()
    agent = Stubborn(loop.knowledge)
    early = ep.simulate(agent, env, steps=4, seed=1)
    late = ep.simulate(agent, env, steps=4)
    assert late.states[0] == early.states[-1]
    assert late.actions.size == 4


def test_a_world_without_a_seed_follows_from_the_agents(loop):
    starts = {
        int(ep.simulate(Stubborn(loop.knowledge, seed=s), loop.make_env(), 1).states[0])
        for s in range(12)
    }
    assert starts == {0, 1, 2}
    again = [
        ep.simulate(Stubborn(loop.knowledge, seed=5), loop.make_env(), 1).states[0]
        for _ in range(2)
    ]
    assert again[0] == again[1]


@pytest.mark.parametrize("name", ["three-state-loop", "moat-grid"])
def test_interpreted_and_compiled_lives_are_the_same(name):
    traces = []
    for compiled in (True, False):
        world = ep.environments.make(name)
        agent = ep.E4(world.knowledge, ep.E4Settings(seed=4, known_after=3))
        traces.append(
            ep.simulate(agent, world.make_env(), steps=400, compiled=compiled)
        )
    one, other = traces
    for part in ("states", "actions", "phases", "reasons", "rewards", "plans"):
        assert np.array_equal(getattr(one, part), getattr(other, part)), part
    for part in ("costs", "promise", "reserved"):
        assert np.array_equal(getattr(one, part), getattr(other, part)), part
    assert one.reason_names == other.reason_names


def test_only_e4_has_certificates_and_a_compiled_loop(loop):
    agent = Stubborn(loop.knowledge)
    with pytest.raises(InvalidInputError, match="until"):
        ep.simulate(agent, loop.make_env(), steps=3, until="certified")
    with pytest.raises(InvalidInputError, match="compiled"):
        ep.simulate(agent, loop.make_env(), steps=3, compiled=True)
    with pytest.raises(InvalidInputError, match="until"):
        ep.simulate(agent, loop.make_env(), steps=3, until="tomorrow")


def test_a_world_that_ends_is_refused(loop):
    import gymnasium

    env = gymnasium.wrappers.TimeLimit(loop.make_env(), 2)
    with pytest.raises(InvalidInputError, match="end at step 1"):
        ep.simulate(Stubborn(loop.knowledge), env, steps=3, seed=0)


def test_who_is_no_agent_and_what_is_no_environment_are_refused(loop):
    agent = Stubborn(loop.knowledge)
    for env, message in (
        (loop, r"env: expected what make_env\(\) of that World returns, found a World"),
        (None, "env: expected a Gymnasium environment, found None"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            ep.simulate(agent, env, 3)
    with pytest.raises(InvalidInputError, match="agent: expected an agent, such as"):
        ep.simulate(loop.knowledge, loop.make_env(), 3)


def test_an_environment_without_costs_is_refused(loop):
    import gymnasium

    class Free(gymnasium.Wrapper):
        def step(self, action):
            *told, _ = super().step(action)
            return *told, {"price": 1.0}

    message = r"""env: expected costs in info\["cost"\], found \['price'\] at step 0"""
    with pytest.raises(InvalidInputError, match=message):
        ep.simulate(Stubborn(loop.knowledge), Free(loop.make_env()), 3, seed=0)
