"""Certificates hold: the truth lies within the bounds, whenever one asks.

The truth leaves a belief with probability at most 1.3e-4 in each of these lives.
"""

from __future__ import annotations

import numpy as np
import pytest
from tests.simulation.worlds import LIVES, two_budgets, workshop

from escapade.agent import E4, E4Settings
from escapade.agent.certificate import certify
from escapade.model import evaluate
from escapade.planning import solve
from escapade.simulation import simulate

SLACK = 1e-6


def check_certificate(agent: E4, truth):
    found = agent.certificate()
    s = found.state
    true = evaluate(truth, found.policy)
    assert found.value_lower - SLACK <= true.value[s] <= found.value_upper + SLACK
    assert (true.costs[:, s] <= found.cost_upper + SLACK).all()
    start = np.zeros(truth.n_states)
    start[s] = 1.0
    best = solve(truth.replace(start=start))
    if best.policy is not None:
        assert best.value <= found.upper_bound + SLACK
    assert found.gap == found.upper_bound - found.value_lower
    assert found.safe == (found.cost_upper <= truth.budget).all()
    assert found.exposure == agent.belief.failure_probability < 1.3e-4
    return found


@pytest.mark.statistical
@pytest.mark.parametrize(
    "life", ["walls", "loop", "two budgets", "workshop", "two garnets"]
)
def test_the_truth_lies_within_the_bounds(life):
    build, chosen, steps = LIVES[life]
    world = build()
    agent, env = E4(world.knowledge, E4Settings(**chosen)), world.make_env()
    first = check_certificate(agent, world.cmdp)
    assert first.state == 0  # before the first step: where life may begin
    gaps = [first.gap]
    for _ in range(3):
        simulate(agent, env, steps // 2)
        found = check_certificate(agent, world.cmdp)
        assert found.state == agent.state
        gaps.append(found.gap)
    assert gaps[-1] <= gaps[0] + SLACK


@pytest.mark.statistical
def test_evidence_narrows_the_gap_until_it_is_as_small_as_was_asked_for():
    world = workshop()
    agent = E4(world.knowledge, E4Settings(known_after=20, epsilon=2.0))
    early = check_certificate(agent, world.cmdp)
    assert not agent.certified
    assert "more than the 2 asked for" in early.message
    simulate(agent, world.make_env(), 60_000, until="certified")
    late = check_certificate(agent, world.cmdp)
    assert agent.certified
    assert late.gap < 0.5 * early.gap
    assert late.safe
    assert late.message.startswith("the policy is within ")
    assert repr(late).startswith("Certificate(value in [")
    assert repr(late).endswith(", safe)")


def test_asking_for_a_certificate_changes_nothing():
    world = workshop()
    agents = [E4(world.knowledge, E4Settings(known_after=5)) for _ in range(2)]
    envs = [world.make_env() for _ in range(2)]
    for _ in range(10):
        agents[0].certificate()
        traces = [
            simulate(agent, env, 30) for agent, env in zip(agents, envs, strict=True)
        ]
        np.testing.assert_array_equal(traces[0].actions, traces[1].actions)


def test_states_that_are_wanted_and_out_of_reach_are_named():
    """The last cell costs too much to be entered: the certificate says so."""
    world = workshop()
    dear = world.knowledge.replace(budget=0.3)
    agent = E4(dear, E4Settings(known_after=5))
    simulate(agent, world.make_env(), 200)
    found = agent.certificate()
    assert 3 in found.unreachable
    assert "want visits that cannot be had within the promise" in found.message


def test_the_best_policy_that_surely_keeps_the_budget_is_searched_for():
    """What the likeliest model recommends may cost too much in another."""
    build, chosen, steps = LIVES["loop"]
    world = build()
    agent = E4(world.knowledge, E4Settings(**chosen))
    simulate(agent, world.make_env(), steps)
    earning = agent.planning.earning(agent.belief, agent.safety, agent.planned)
    likeliest = certify(
        agent.belief, agent.planned, earning.weights, state=0, epsilon=1.0, search=False
    )
    searched = certify(
        agent.belief, agent.planned, earning.weights, state=0, epsilon=1.0
    )
    assert not likeliest.safe
    assert "not certified to keep the budget" in likeliest.message
    assert repr(likeliest).endswith(", not certified safe)")
    assert searched.safe
    assert searched.cost_upper[0] <= 5.0 < likeliest.cost_upper[0]


def test_where_nothing_is_certain_to_keep_the_budget_it_says_so():
    """Every way costs something, and the budget is a little less than that."""
    world = two_budgets()
    tight = world.knowledge.replace(
        costs=np.full((2, 2, 3), 0.05), budget=[0.503, 0.503]
    )
    agent = E4(tight, E4Settings(known_after=5, margin=1e-3))
    weights = np.zeros(6)
    weights[[0, 3]] = 1.0
    above = agent.belief.knowledge.replace(budget=[0.4, 0.4])
    agent.belief.knowledge = above
    found = certify(agent.belief, agent.planned, weights, state=0, epsilon=1.0)
    assert not found.safe
    assert "not certified to keep the budget" in found.message
