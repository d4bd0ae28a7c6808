"""Phases: a function of evidence and promise, and of nothing else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.simulation.worlds import LIVES, workshop

from escapade.agent import E4, E4Settings, Phase
from escapade.agent.phases import REASONS
from escapade.kernels import ledger as kernels
from escapade.kernels.ledger import Pending, decide
from escapade.simulation import simulate

_FALLBACK = {Phase.ESCAPE, Phase.RETURN, Phase.WAIT}


def agent_of(life: str, steps: int) -> E4:
    build, chosen, _ = LIVES[life]
    world = build()
    agent = E4(world.knowledge, E4Settings(**chosen))
    simulate(agent, world.make_env(), steps)
    return agent


def decided(agent: E4, state, promise, u, memory, *, dirt=0.0):
    """Ask the kernel; ``dirt`` stands where the last decision left its own notes."""
    planned, k = agent.planned, agent.cap.size
    notes = Pending(
        rule=np.full(k, int(dirt), dtype=np.int64),
        q=np.full(k, dirt),
        ahead=np.full(k, dirt),
        reach=np.full(k, dirt),
        shift=np.full(k, dirt),
    )
    remembered = np.array([memory], dtype=np.int64)
    visits = agent.belief.evidence.pair_visits
    found = decide(
        planned.ledger, planned.plan, visits, promise, remembered, state, u, notes
    )
    return found, [np.array(part) for part in notes], int(remembered[0])


@pytest.fixture(scope="module")
def agents() -> list[E4]:
    return [agent_of(life, 60) for life in ("walls", "two budgets", "workshop")]


@settings(max_examples=60)
@given(st.data())
def test_the_same_evidence_and_promise_give_the_same_decision(agents, data):
    agent = data.draw(st.sampled_from(agents))
    state = data.draw(st.integers(0, agent.knowledge.n_states - 1))
    share = data.draw(st.floats(0.0, 1.0))
    low, high = agent.safety.w[:, state], agent.cap
    promise = low + share * (high - low)
    u = data.draw(st.floats(0.0, 1.0, exclude_max=True))
    memory = data.draw(st.integers(0, 2))
    kept = [np.array(x) for x in agent.planned.plan]
    offered = promise.copy()
    first = decided(agent, state, promise, u, memory)
    second = decided(agent, state, promise, u, memory, dirt=7.0)
    assert first[0] == second[0]
    for one, other in zip(first[1], second[1], strict=True):
        np.testing.assert_array_equal(one, other)
    assert first[2] == second[2]
    np.testing.assert_array_equal(promise, offered)  # a decision spends nothing
    for before, after in zip(kept, agent.planned.plan, strict=True):
        np.testing.assert_array_equal(before, after)
    check_phase(agent, state, promise, first)


def check_phase(agent: E4, state: int, promise, decision) -> None:
    """Hold a decision to the table of phases."""
    (pair, phase, reason), (_, q, *_), memory = decision
    plan, ledger = agent.planned.plan, agent.planned.ledger
    known, home = bool(plan.known[state]), bool(plan.home[state])
    assert ledger.state_ptr[state] <= pair < ledger.state_ptr[state + 1]
    assert reason in REASONS
    assert (q <= promise).all()  # whatever it is, it can be afforded
    if phase in _FALLBACK:
        assert pair == ledger.fallback[state]
        expected = Phase.ESCAPE if not known else Phase.WAIT if home else Phase.RETURN
        assert phase == expected
        assert (reason == kernels.RECHARGING) == (memory == kernels.HOME)
    else:
        assert memory != kernels.HOME
        keeps = q + plan.reserve <= promise
        if q.size > 1:  # what costs no more than the fallback needs no reserve
            keeps |= q <= ledger.w[:, state]
        assert keeps.all()
        visits = agent.belief.evidence.pair_visits
        wanting = visits[pair] < plan.goal[pair]
        if reason == kernels.LEAST_VISITED:
            assert wanting
            assert phase == (Phase.EXPLORE if known else Phase.WANDER)
        else:
            assert reason == kernels.AS_PLANNED
            assert phase == (Phase.EXPLORE if plan.exploring[state] else Phase.EXPLOIT)


@pytest.mark.parametrize("life", ["walls", "toll", "two budgets", "workshop", "moat"])
def test_every_decision_of_a_life_fits_the_table_of_phases(life):
    build, chosen, steps = LIVES[life]
    world = build()
    agent, env = E4(world.knowledge, E4Settings(**chosen)), world.make_env()
    state, _ = env.reset(seed=0)
    for _ in range(min(steps, 200)):
        promise, memory = agent.promise.copy(), int(agent.memory[0])
        generator = np.random.default_rng()
        generator.bit_generator.state = agent.rng.bit_generator.state
        found = decided(agent, state, promise, generator.random(), memory)
        check_phase(agent, state, promise, found)
        decision = agent.ask(state)
        assert (decision.phase, decision.reason_code) == found[0][1:]
        state, reward, *_, info = env.step(decision.action)
        agent.tell(decision, reward=reward, cost=info["cost"], next_state=state)


def test_the_order_of_what_was_seen_does_not_matter():
    """The same steps in another order leave the same decisions."""
    world = workshop()
    trace = simulate(E4(world.knowledge), world.make_env(), 80)
    agents = []
    for order in (np.arange(80), np.random.default_rng(0).permutation(80)):
        agent = E4(world.knowledge, E4Settings(known_after=5))
        for t in order:
            pair = agent.knowledge.pair(int(trace.states[t]), int(trace.actions[t]))
            agent.belief.evidence.record(
                pair, int(trace.states[t + 1]), float(trace.rewards[t]), trace.costs[t]
            )
            agent.changed[pair] = True
        agent.replan()
        agents.append(agent)
    for state in range(4):
        for promise in np.linspace(0.5, 1.0, 6) * agents[0].cap:
            if (agents[0].safety.w[:, state] > promise).any():
                continue
            one, other = (
                decided(agent, state, np.atleast_1d(promise), 0.5, kernels.SETTING_OUT)[
                    0
                ]
                for agent in agents
            )
            assert one == other


def test_a_low_promise_turns_home_and_a_full_one_sets_out():
    agent = agent_of("walls", 60)
    plan, state = agent.planned.plan, 0
    plan = agent.planned.plan._replace(goal=np.zeros_like(agent.planned.plan.goal))
    agent.planned = replace(agent.planned, plan=plan)  # nothing wanted right here
    lowest, low = 0.9 * plan.turn_back, 0.5 * (plan.turn_back + plan.turn_home)
    between, full = 0.5 * (plan.turn_home + plan.recharge), plan.recharge
    home, setting_out = kernels.HOME, kernels.SETTING_OUT
    for promise, before, after in (
        (lowest, setting_out, home),
        (lowest, kernels.VENTURING, home),
        (low, setting_out, setting_out),
        (low, kernels.VENTURING, home),
        (between, setting_out, setting_out),
        (between, kernels.VENTURING, kernels.VENTURING),
        (between, home, home),
        (full, home, setting_out),
        (full, kernels.VENTURING, setting_out),
    ):
        (_, phase, reason), _, memory = decided(agent, state, promise, 0.5, before)
        assert memory == after
        assert (reason == kernels.RECHARGING) == (after == kernels.HOME)
        assert (phase in _FALLBACK) == (after == kernels.HOME)


def test_phases_have_names():
    assert [phase.label for phase in Phase] == [
        "exploit", "explore", "wander", "escape", "return", "wait",
    ]  # fmt: skip
