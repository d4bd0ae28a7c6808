"""The suite for agents passes what is an agent, and names what is not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import escapade as ep
from escapade.baselines import UniformRandom
from escapade.errors import InvalidInputError
from escapade.testing import check_agent


def e4(knowledge, seed):
    return ep.E4(knowledge, ep.E4Settings(seed=seed, known_after=2))


@pytest.mark.parametrize("name", ep.baselines.names())
def test_every_baseline_is_an_agent(name):
    check_agent(lambda k, seed: ep.baselines.make(name, k, seed=seed), steps=30)


@pytest.mark.parametrize("name", ["three-state-loop", "moat-grid", "garnet"])
def test_e4_is_an_agent(name):
    check_agent(e4, ep.environments.make(name), steps=12)


def test_an_oracle_is_an_agent_too():
    world = ep.environments.moat_grid()
    check_agent(
        lambda k, seed: ep.baselines.OracleLP(k, cmdp=world.cmdp, seed=seed),
        world,
        steps=10,
    )


class Broken(UniformRandom):
    """Wrong in one way."""

    change: dict

    def ask(self, state):
        choice = super().ask(state)
        changed = replace(choice, **self.change)
        self._open = (changed, self._open[1])
        return changed


WRONG = {
    "decides where it is asked": {"state": -1},
    "takes an action that exists": {"action": 7},
    "is in a phase of 0..5": {"phase": 6},
    "says why": {"reason": " "},
    "has 1 promises": {"promise": (1.0, 2.0)},
    "promises no more than the budget": {"promise": (5.1,), "reserved": (0.0,)},
    "reserves no more": {"promise": (1.0,), "reserved": (2.0,)},
}


@pytest.mark.parametrize("law", WRONG)
def test_a_wrong_decision_is_named(law):
    def make(knowledge, seed):
        agent = Broken(knowledge, seed=seed)
        agent.change = WRONG[law]
        return agent

    with pytest.raises(AssertionError, match=law):
        check_agent(make, steps=5)


class Loose(UniformRandom):
    """Accepts one thing that it should refuse, or forgets one that it should keep."""

    fault = ""

    def ask(self, state):
        if self.fault == "asks":
            self._open = None
        if self.fault == "states":
            state = min(state, 2)
        if self.fault == "places":
            self.state = None
        return super().ask(state)

    def tell(self, decision, *, reward, cost, next_state):
        if self.fault == "rewards":
            reward = abs(reward)
        if self.fault == "costs":
            cost = np.nan_to_num(np.array(cost, dtype=float))
        if self.fault == "outcomes" and self._open is None:
            return
        if self.fault == "twice" and self._open is None:
            self.rng.random()
            return
        super().tell(decision, reward=reward, cost=cost, next_state=next_state)
        if self.fault == "stands":
            self.state = 0
        if self.fault == "plans":
            self.plans += int(np.random.default_rng().integers(1 << 30))


FAULTS = {
    "asks": "two questions",
    "states": "states not there",
    "places": "not led to",
    "rewards": "negative rewards",
    "costs": "costs of NaN",
    "outcomes": "another outcome",
    "twice": "told the same thing twice",
    "stands": "stands where it was told",
    "plans": "same life from the same seed",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_loose_agent_is_named(fault):
    def make(knowledge, seed):
        agent = Loose(knowledge, seed=seed)
        agent.fault = fault
        return agent

    with pytest.raises(AssertionError, match=FAULTS[fault]):
        check_agent(make, steps=30)


def test_who_keeps_no_protocol_is_told_what_is_missing():
    class Dumb:
        knowledge = seed = state = None

        def ask(self, state): ...

    with pytest.raises(AssertionError, match=r"protocol: \['plans', 'tell'\]"):
        check_agent(lambda knowledge, seed: Dumb())
    with pytest.raises(InvalidInputError, match="steps"):
        check_agent(e4, steps=2)
