"""One rule of decision: ask and tell, the loop in Python and the compiled one agree.

Agreement is bit for bit: every number of the trace, all that the agent has become, and
where both generators stand afterwards.
"""

from __future__ import annotations

import numpy as np
import pytest

from escapade.agent import E4, E4Settings, Phase
from escapade.agent.operators import freeze
from escapade.environments import CMDPEnv, World
from escapade.errors import BrokenAssumptionWarning
from escapade.model import CMDP
from escapade.simulation import simulate

from .worlds import LIVES, told, workshop

RECORDED = (
    "states", "actions", "phases", "reasons", "rewards", "costs", "promise",
    "reserved", "plans",
)  # fmt: skip


def born(world: World, seed: int = 0, **settings) -> E4:
    return E4(world.knowledge, E4Settings(seed=seed, **settings))


def assert_same_trace(one, other):
    for name in RECORDED:
        np.testing.assert_array_equal(
            getattr(one, name), getattr(other, name), err_msg=name, strict=True
        )
    assert one.stopped == other.stopped


def assert_same_agent(one: E4, other: E4):
    for part in ("belief", "safety", "planning"):
        mine, its = getattr(one, part).state(), getattr(other, part).state()
        assert mine.keys() == its.keys()
        for name, array in mine.items():
            np.testing.assert_array_equal(array, its[name], err_msg=f"{part}.{name}")
    for name in ("promise", "memory", "changed", "wish"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), name)
    assert one.rng.bit_generator.state == other.rng.bit_generator.state
    kept, its = one.journal(), other.journal()
    kept.pop("last"), its.pop("last")  # the compiled loop has no repeated tells
    assert kept == its


def together(one, other):
    """Return a trace that is one trace after another."""
    joined = {
        name: np.concatenate([getattr(one, name), getattr(other, name)])
        for name in RECORDED
        if name not in ("states", "plans")
    }
    joined["states"] = np.concatenate([one.states, other.states[1:]])
    joined["plans"] = np.concatenate([one.plans, len(one) + other.plans])
    return joined


@pytest.mark.parametrize("life", LIVES)
def test_the_compiled_lifetime_is_the_interpreted_one_bit_for_bit(life):
    build, settings, steps = LIVES[life]
    world = build()
    lives = []
    for compiled in (False, True):
        agent, env = born(world, **settings), world.make_env()
        trace = simulate(agent, env, steps=steps, compiled=compiled)
        lives.append((agent, env, trace))
    (agent, env, trace), (other, its_env, its_trace) = lives
    assert len(trace) == steps
    assert_same_trace(trace, its_trace)
    assert_same_agent(agent, other)
    assert env.state == its_env.state == agent.state
    assert env.np_random.bit_generator.state == its_env.np_random.bit_generator.state


def test_who_does_not_learn_learns_in_neither_loop():
    world, lives = workshop(), []
    for compiled in (False, True):
        agent, env = born(world), world.make_env()
        simulate(agent, env, steps=40, compiled=False)
        freeze(agent)
        visits = agent.belief.evidence.pair_visits.copy()
        trace = simulate(agent, env, steps=40, compiled=compiled)
        np.testing.assert_array_equal(agent.belief.evidence.pair_visits, visits)
        lives.append((agent, trace))
    assert_same_trace(lives[0][1], lives[1][1])
    assert_same_agent(lives[0][0], lives[1][0])


def test_the_lives_above_show_every_phase_and_a_policy_that_draws():
    seen, drawn = set(), False
    for build, settings, steps in LIVES.values():
        world = build()
        agent = born(world, **settings)
        trace = simulate(agent, world.make_env(), steps=steps)
        seen |= set(trace.phases.tolist())
        weight = agent.planned.plan.weight
        drawn = drawn or bool(((weight > 0.0) & (weight < 1.0)).any())
    assert seen == set(Phase)
    assert drawn


@pytest.mark.parametrize("life", ["walls", "two budgets", "workshop"])
@pytest.mark.parametrize("compiled", [False, True])
def test_a_life_in_two_parts_is_one_life(life, compiled):
    build, settings, steps = LIVES[life]
    world = build()
    agent, env = born(world, **settings), world.make_env()
    whole = simulate(agent, env, steps=steps, compiled=compiled)
    later, its_env = born(world, **settings), world.make_env()
    first = simulate(later, its_env, steps=steps // 3, compiled=compiled)
    second = simulate(later, its_env, steps=steps - steps // 3, compiled=not compiled)
    for name, array in together(first, second).items():
        np.testing.assert_array_equal(array, getattr(whole, name), err_msg=name)
    assert_same_agent(agent, later)


def test_the_same_seed_gives_the_same_life_and_another_another():
    world = workshop()

    def life(agent_seed, seed=None):
        agent = born(world, agent_seed, known_after=5)
        return simulate(agent, world.make_env(), steps=200, seed=seed)

    assert_same_trace(life(3), life(3))
    assert_same_trace(life(3, seed=8), life(3, seed=8))
    assert not np.array_equal(life(3).states, life(4).states)
    assert not np.array_equal(life(3).states, life(3, seed=8).states)


def test_without_any_seed_two_lives_differ():
    world = workshop()
    lives = [
        simulate(E4(world.knowledge, E4Settings(seed=None)), world.make_env(), 300)
        for _ in range(2)
    ]
    # 300 steps with at least a tenth of them drawn: equal with probability < 1e-9
    assert not np.array_equal(lives[0].rewards, lives[1].rewards)


# -- when the world does what is impossible --------------------------------------------


def impossible_world() -> World:
    """Return a workshop in which a step on from cell 1 may jump to the start's left."""
    world = workshop()
    rows = world.cmdp.transition_matrix.toarray().reshape(4, 3, 4)
    rows[1, 2] = [0.0, 0.0, 0.8, 0.2]  # cell 3 was held impossible
    cmdp = CMDP(
        rows,
        world.cmdp.reward.reshape(4, 3),
        world.cmdp.cost.reshape(4, 3),
        discount=0.9,
        budget=4.0,
        reward_max=1.0,
        cost_max=1.0,
    )
    return World(name="jump", description="", cmdp=cmdp, told=lambda: world.knowledge)


def test_after_a_break_both_loops_keep_to_the_fallback():
    world = impossible_world()
    lives = []
    for compiled in (False, True):
        agent, env = born(world, known_after=10), world.make_env()
        with pytest.warns(BrokenAssumptionWarning, match="found state 3"):
            trace = simulate(agent, env, steps=200, compiled=compiled)
        lives.append((agent, trace))
    (agent, trace), (other, its_trace) = lives
    assert_same_trace(trace, its_trace)
    assert_same_agent(agent, other)
    (said,) = agent.breaks
    step = int(said.split(":")[0].removeprefix("decision "))
    assert "after state 1, action 2, found state 3" in said
    assert (trace.states[step], trace.states[step + 1]) == (1, 3)
    assert set(trace.phases[step + 1 :]) <= {Phase.ESCAPE, Phase.RETURN, Phase.WAIT}
    assert agent.belief.evidence.pair_visits.sum() == len(trace) - 1


def test_a_compiled_life_may_end_with_the_break():
    world = impossible_world()
    agent = born(world, known_after=10)
    with pytest.warns(BrokenAssumptionWarning, match="found state 3"):
        trace = simulate(agent, world.make_env(), steps=200)
    step = int(agent.breaks[0].split(":")[0].removeprefix("decision "))
    again = born(world, known_after=10)
    with pytest.warns(BrokenAssumptionWarning, match="found state 3"):
        shorter = simulate(again, world.make_env(), steps=step + 1)
    assert again.breaks == agent.breaks
    np.testing.assert_array_equal(shorter.states, trace.states[: step + 2])


# -- numbering, and what the loop refuses ----------------------------------------------


def test_the_world_may_number_its_pairs_otherwise():
    """The agent knows of fewer actions than the world has."""
    world = workshop()
    fewer = np.ones((4, 3), dtype=np.bool_)
    fewer[:, 1] = False
    support = world.cmdp.transition_matrix.toarray().reshape(4, 3, 4) > 0.0
    knowledge = told(
        world.cmdp,
        available=fewer,
        support=support,
        free=[[True, False, False]] * 2 + [[False] * 3] * 2,
        known_rows=np.eye(4)[:, np.newaxis].repeat(3, 1).reshape(12, 4)
        * np.array([1.0, 0.0, 0.0] * 4)[:, np.newaxis],
    )
    lives = []
    for compiled in (False, True):
        agent, env = E4(knowledge, E4Settings(known_after=4)), world.make_env()
        lives.append((agent, simulate(agent, env, steps=200, compiled=compiled)))
    assert_same_trace(lives[0][1], lives[1][1])
    assert_same_agent(lives[0][0], lives[1][0])
    assert set(lives[0][1].actions) == {0, 2}


class Foreign:
    """A world that is no environment over a CMDP: a coin on two states."""

    def __init__(self, ends_at: int = 10**9):
        self.ends_at = ends_at

    def reset(self, *, seed=None):
        self.rng, self.steps = np.random.default_rng(seed), 0
        return np.int64(0), {}

    def step(self, action):
        self.steps += 1
        state = int(self.rng.random() < 0.5) if action else 0
        info = {"cost": [0.5 * action]}
        return state, float(state), self.steps == self.ends_at, False, info


def coin():
    support = np.array([[[1, 0], [1, 1]]] * 2, dtype=bool)
    return E4(
        told(
            CMDP(support / support.sum(-1, keepdims=True), np.ones((2, 2)),
                 np.ones((2, 2)), discount=0.5, budget=1.5),
            support=support,
            free=[[True, False]] * 2,
        ),
        E4Settings(known_after=5),
    )  # fmt: skip


def test_any_world_with_costs_in_its_info_can_be_lived_in():
    agent = coin()
    trace = simulate(agent, Foreign(), steps=60)
    assert len(trace) == 60
    assert agent.belief.evidence.pair_visits.sum() == 60
    assert agent.planned.plan.known.all()
    with pytest.raises(ValueError, match="compiled: expected an E4 agent and an env"):
        simulate(coin(), Foreign(), steps=5, compiled=True)
    with pytest.raises(ValueError, match="env: expected a world that goes on, found "):
        simulate(coin(), Foreign(ends_at=3), steps=5)


def test_what_cannot_be_simulated_is_refused():
    world = workshop()
    agent, env = born(world), world.make_env()
    with pytest.raises(ValueError, match="until: expected 'steps' or 'certified'"):
        simulate(agent, env, steps=5, until="tomorrow")
    with pytest.raises(ValueError, match="steps: expected a whole number"):
        simulate(agent, env, steps=2.5)
    with pytest.raises(ValueError, match="env: expected 2 states and 2 actions, found"):
        simulate(coin(), env, steps=5)
    mask = np.ones((4, 3), dtype=np.bool_)
    mask[0, 2] = False
    cmdp = world.cmdp
    lame = CMDPEnv(
        CMDP(
            cmdp.transition_matrix, cmdp.reward.reshape(4, 3), cmdp.cost.reshape(4, 3),
            discount=0.9, budget=4.0, available=mask, reward_max=1.0, cost_max=1.0,
        )
    )  # fmt: skip
    with pytest.raises(ValueError, match="state 0, action 2"):
        simulate(born(world), lame, steps=5)


@pytest.mark.parametrize("compiled", [False, True])
def test_a_life_until_certified_ends_when_the_gap_is_closed(compiled):
    world = workshop()
    agent = born(world, known_after=20, epsilon=8.0)
    trace = simulate(
        agent, world.make_env(), steps=20_000, until="certified", compiled=compiled
    )
    assert agent.certified
    assert trace.stopped == "certified"
    assert trace.plans[-1] == len(trace) < 20_000
    found = agent.certificate()
    assert found.safe
    assert found.gap <= 8.0
