"""What a trace tells of a lifetime."""

from __future__ import annotations

import json

import numpy as np
import pytest

from escapade.agent import E4, E4Settings
from escapade.simulation import Trace, simulate

from .worlds import two_budgets, workshop


def hand_made(steps: int = 4) -> Trace:
    return Trace(
        states=np.array([0, 1, 2, 1, 0][: steps + 1]),
        actions=np.zeros(steps, dtype=np.int64),
        phases=np.array([0, 1, 1, 5][:steps], dtype=np.int8),
        reasons=np.zeros(steps, dtype=np.int8),
        rewards=np.array([1.0, 2.0, 0.0, 4.0][:steps]),
        costs=np.array([[1.0, 0.0], [0.0, 0.0], [2.0, 1.0], [0.0, 3.0]][:steps]),
        promise=np.array([[4.0, 5.0], [3.0, 5.0], [3.5, 4.0], [2.0, 4.0]][:steps]),
        reserved=np.array([[1.0, 1.0], [2.0, 1.0], [1.0, 3.5], [1.5, 0.0]][:steps]),
        plans=np.array([2]),
        discount=0.5,
        budget=np.array([4.0, 5.0]),
        stopped="all steps taken",
        phase_names=("exploit", "explore", "wander", "escape", "return", "wait"),
    )


def test_what_is_still_to_come_is_discounted_from_every_step():
    trace = hand_made()
    np.testing.assert_allclose(
        trace.cost_to_go(), [[1.5, 0.625], [1.0, 1.25], [2.0, 2.5], [0.0, 3.0]]
    )
    np.testing.assert_allclose(trace.value_to_go(), [2.5, 3.0, 2.0, 4.0])


def test_the_summary_is_the_trace_in_a_few_numbers():
    found = hand_made().summary()
    assert json.loads(json.dumps(found)) == found
    assert found == {
        "steps": 4,
        "stopped": "all steps taken",
        "states_visited": 3,
        "plans": 1,
        "phases": {
            "exploit": 1, "explore": 2, "wander": 0,
            "escape": 0, "return": 0, "wait": 1,
        },
        "reward_per_step": 1.75,
        "cost_per_step": [0.75, 1.0],
        "largest_cost_to_go": [2.0, 3.0],
        "least_promise": [2.0, 4.0],
        "least_slack": [0.5, 0.5],
        "budget": [4.0, 5.0],
        "breaks": [],
    }  # fmt: skip


def test_a_life_of_no_steps_has_a_summary_too():
    world = workshop()
    trace = simulate(E4(world.knowledge), world.make_env(), steps=0)
    assert (len(trace), trace.states.tolist()) == (0, [0])
    found = trace.summary()
    assert (found["steps"], found["reward_per_step"]) == (0, 0.0)
    assert sum(found["phases"].values()) == 0
    assert trace.cost_to_go().shape == (0, 1)
    assert repr(trace) == "Trace(0 steps, all steps taken)"


@pytest.mark.parametrize("build", [workshop, two_budgets])
def test_a_trace_agrees_with_the_agent_that_lived_it(build):
    world = build()
    agent = E4(world.knowledge, E4Settings(known_after=4))
    trace = simulate(agent, world.make_env(), steps=150)
    evidence, knowledge = agent.belief.evidence, world.knowledge
    k = knowledge.n_costs
    assert trace.promise.shape == trace.costs.shape == trace.reserved.shape == (150, k)
    assert trace.states.shape == (151,)
    pairs = knowledge.pairs_of(trace.states[:-1], trace.actions)
    assert (
        np.bincount(pairs, minlength=knowledge.n_pairs) == evidence.pair_visits
    ).all()
    np.testing.assert_allclose(trace.rewards.sum(), evidence.reward_sum.sum())
    np.testing.assert_allclose(trace.costs.sum(axis=0), evidence.cost_sum.sum(axis=1))
    assert (trace.reserved <= trace.promise).all()
    assert (trace.promise <= knowledge.budget).all()
    assert trace.plans.size == agent.plans - 1
    assert set(trace.reasons.tolist()) <= set(trace.reason_names)
    assert sum(trace.summary()["phases"].values()) == 150
