"""The audit: what it measures, whom it finds guilty, and whom it does not."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import numpy as np
import pytest

import escapade as ep
from escapade.environments.world import World
from escapade.errors import InvalidInputError

NAN = float("nan")


@dataclass
class Choice:
    id: int
    state: int
    action: int
    promise: tuple[float, ...]
    reserved: tuple[float, ...]
    phase: int = 0
    reason: str = "always the same"


@dataclass
class Sworn:
    """Does one thing always, and says something about it."""

    knowledge: ep.Knowledge
    action: int
    promise: float
    reserved: float = 0.0
    seed: int | None = 0
    state: int | None = None
    plans: int = 0
    told: list = field(default_factory=list)

    def ask(self, state):
        k = self.knowledge.n_costs
        return Choice(
            len(self.told),
            state,
            self.action,
            (self.promise,) * k,
            (self.reserved,) * k,
        )

    def tell(self, decision, *, reward, cost, next_state):
        self.told.append(decision.id)
        self.state = next_state


def toll_booth(chance=0.3, budget=3.0, channels=1):
    """One state; action 1 costs 1 with some chance, action 0 nothing."""
    cmdp = ep.CMDP(
        np.ones((1, 2, 1)),
        [[0.0, 1.0]],
        np.repeat([[[0.0, chance]]], channels, axis=0),
        discount=0.9,
        budget=np.full(channels, budget),
        reward_max=1.0,
        cost_max=np.ones(channels),
    )
    known = ep.Knowledge(
        1, 2, discount=0.9, budget=cmdp.budget, reward_max=1.0, cost_max=cmdp.cost_max
    )
    return World(
        name="toll-booth",
        description="One state.",
        cmdp=cmdp,
        cost_noise="bernoulli",
        told=lambda: known,
    )


def audit_of(action, promise, *, world=None, lifetimes=100, steps=150, **more):
    def make_agent(knowledge, seed):
        return Sworn(knowledge, action, promise, seed=seed, **more)

    return ep.audit(make_agent, world or toll_booth(), lifetimes, steps, seed=3)


def e4(knowledge, seed):
    return ep.E4(knowledge, ep.E4Settings(seed=seed, known_after=3))


def test_costs_that_never_vary_are_found_exactly():
    world = ep.environments.three_state_loop()
    found = audit_of(1, 5.0, world=world, lifetimes=3, steps=200)
    left = 200 - np.arange(len(found.mean_cost_to_go))
    np.testing.assert_allclose(
        found.mean_cost_to_go[:, 0], 10.0 - 0.9**left * 10.0 + 0.9**left * 5.0
    )
    assert 0.9 ** left[-1] * 10.0 <= 0.05 < 0.9 ** (left[-1] - 1) * 10.0
    assert np.allclose(found.standard_error, 0.0)
    np.testing.assert_allclose(found.mean_excess, found.mean_cost_to_go - 5.0)
    assert found.fraction_over == 1.0
    assert found.reward_per_step == pytest.approx(2.0, abs=0.02)


def test_an_agent_that_spends_too_much_is_found_out():
    found = audit_of(1, 3.0, world=toll_booth(0.6))
    assert found.broken
    assert (found.block_lower > 3.0).any()
    assert (found.block_excess_lower > 0.0).any()
    assert "beyond doubt" in found.message


def test_an_agent_that_promises_too_little_is_found_out():
    found = audit_of(1, 1.0)
    assert found.worst_mean_cost_to_go < 4.0
    assert not (found.block_lower > 3.0).any()
    assert found.broken


def test_a_promise_above_the_budget_counts_as_the_budget_and_breaks_the_invariant():
    found = audit_of(1, 4.0)
    assert found.invariant_breaks == 100 * 150
    assert found.broken
    np.testing.assert_allclose(found.mean_excess, found.mean_cost_to_go - 3.0)
    assert audit_of(0, 1.0, reserved=1.5).invariant_breaks == 100 * 150


@pytest.mark.statistical  # false with probability at most 2 * .05
def test_an_agent_that_keeps_its_promise_is_not_found_guilty():
    found = audit_of(1, 3.0, lifetimes=400)
    assert not found.broken
    assert found.invariant_breaks == 0
    assert found.block_lower.max() < 3.0 < found.upper_confidence  # 3 is the truth
    assert found.worst_mean_cost_to_go < found.upper_confidence
    assert abs(found.mean_cost_to_go[0, 0] - 3.0) < 5 * found.standard_error[0, 0]
    assert not found.proved
    cautious = audit_of(0, 0.0, lifetimes=400)
    assert cautious.proved
    assert cautious.upper_confidence < 0.5
    assert "stays within" in cautious.message


def test_who_promises_nothing_is_charged_for_what_is_not_seen():
    found = audit_of(0, NAN, reserved=NAN, lifetimes=20)
    assert not found.promises
    assert found.invariant_breaks == 0
    left = 150 - np.arange(len(found.mean_cost_to_go))
    np.testing.assert_allclose(found.mean_cost_to_go[:, 0], 10.0 * 0.9**left)
    assert np.isnan(found.worst_mean_excess)
    assert found.fraction_over == 0.0
    assert not found.broken
    assert "promise" not in str(found).split("phase")[0].replace("no break", "")
    assert json.loads(json.dumps(found.summary()))["worst_mean_excess"] is None
    assert audit_of(1, NAN, world=toll_booth(0.9)).broken


def test_in_a_short_life_only_the_first_step_is_audited():
    found = audit_of(0, NAN, lifetimes=5, steps=4)
    assert found.mean_cost_to_go.shape == (1, 1)
    assert found.mean_cost_to_go[0, 0] == pytest.approx(0.9**4 * 10.0)


def test_the_channel_that_is_worst_is_shown():
    world = toll_booth(channels=2)
    tight = world.cmdp.replace(budget=[9.0, 3.0])
    known = ep.Knowledge(
        1, 2, discount=0.9, budget=[9.0, 3.0], reward_max=1.0, cost_max=[1.0, 1.0]
    )
    world = World(
        name="two", description="Two.", cmdp=tight, cost_noise="bernoulli",
        told=lambda: known,
    )  # fmt: skip
    found = audit_of(1, 3.0, world=world)
    assert found.channel == 1
    assert "(channel 1)" in str(found)
    assert found.block_upper.shape == (found.block_starts.size, 2)


def test_e4_keeps_its_promise_and_the_account_adds_up():
    world = ep.environments.three_state_loop()
    found = ep.audit(e4, world, lifetimes=6, steps=300)
    assert found.invariant_breaks == found.assumption_breaks == 0
    assert not found.broken
    assert found.worst_mean_cost_to_go <= 5.0
    shares = [account.share for account in found.per_phase.values()]
    assert sum(shares) == pytest.approx(1.0)
    mean = sum(a.share * a.cost_to_go[0] for a in found.per_phase.values())
    assert mean == pytest.approx(found.mean_cost_to_go.mean())
    assert found.summary()["per_phase"]["exploit"]["share"] > 0.5
    assert "exploit" in str(found)
    assert "6 lifetimes of 300 steps" in repr(found)


def test_the_result_is_the_same_for_any_number_of_processes():
    world = ep.environments.three_state_loop()
    alone, shared = (
        ep.audit(e4, world, lifetimes=4, steps=120, seed=5, jobs=jobs)
        for jobs in (1, 2)
    )
    assert np.array_equal(alone.mean_cost_to_go, shared.mean_cost_to_go)
    assert np.array_equal(alone.block_upper, shared.block_upper)
    assert alone.summary() == shared.summary()


def test_lives_follow_from_the_seed():
    def make_agent(knowledge, seed):
        return Sworn(knowledge, 1, 3.0, seed=seed)

    means = [
        ep.audit(make_agent, toll_booth(), 5, 80, seed=seed).mean_cost_to_go
        for seed in (1, 1, 2)
    ]
    assert np.array_equal(means[0], means[1])
    assert not np.array_equal(means[0], means[2])


@pytest.mark.parametrize(
    ("keywords", "name"),
    [
        ({"lifetimes": 1}, "lifetimes"),
        ({"steps": 0}, "steps"),
        ({"jobs": 0}, "jobs"),
        ({"confidence": 1.0}, "confidence"),
        ({"seed": -1}, "seed"),
    ],
)
def test_bad_arguments_are_refused(keywords, name):
    with pytest.raises(InvalidInputError, match=name):
        ep.audit(e4, toll_booth(), **{"lifetimes": 2, "steps": 2, **keywords})


def test_what_is_no_world_is_refused():
    for world in (toll_booth().make_env(), None):
        with pytest.raises(InvalidInputError, match="world: expected a World"):
            ep.audit(e4, world, 2, 2)


def test_who_is_no_agent_is_refused():
    with pytest.raises(InvalidInputError, match="make_agent: expected a function of"):
        ep.audit(3, toll_booth(), 2, 2)
    with pytest.raises(InvalidInputError, match="make_agent"):
        ep.audit(lambda knowledge, seed: seed, toll_booth(), 2, 2)
    promises = iter([1.0, NAN])
    with pytest.raises(InvalidInputError, match="all promise something"):
        ep.audit(lambda k, seed: Sworn(k, 0, next(promises)), toll_booth(), 2, 2)


def test_what_proved_false_is_said_before_all_else():
    world = toll_booth()
    lie = ep.Knowledge(
        1, 2, discount=0.9, budget=3.0, reward_max=1.0, cost_max=1.0,
        free=[[True, True]],
    )  # fmt: skip
    told = World(
        name="lie", description="It costs.", cmdp=world.cmdp, cost_noise="bernoulli",
        told=lambda: lie,
    )  # fmt: skip
    found = ep.audit(
        lambda knowledge, seed: ep.E4(knowledge, ep.E4Settings(seed=seed)),
        told,
        lifetimes=3,
        steps=200,
    )
    assert found.assumption_breaks >= 1
    assert found.message.startswith("what the agent was told proved false")
    assert found.message in str(found)
