"""A world that breaks what was assumed: said at once, or with a stated power."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from tests.simulation.worlds import told, two_budgets, workshop

from escapade.agent import E4, E4Settings, Phase
from escapade.environments import World
from escapade.errors import (
    AssumptionError,
    BrokenAssumptionWarning,
    InvalidInputError,
)
from escapade.kernels.evidence import bernoulli_interval
from escapade.model import CMDP
from escapade.simulation import simulate
from escapade.uncertainty import Interval

HOMEWARD = (Phase.ESCAPE, Phase.RETURN, Phase.WAIT)


def with_truth(world: World, cmdp: CMDP) -> World:
    """Return a world whose truth is another than what is told of it."""
    return World(
        name="lie", description="Not what was told.", cmdp=cmdp, told=world.told
    )


def test_a_successor_outside_the_support_is_a_break_at_once():
    agent = E4(workshop().knowledge)
    agent.tell(agent.ask(0), reward=0.0, cost=0.0, next_state=2)
    assert "successor: expected one that is possible after state 0" in agent.breaks[0]
    assert agent.breaks[0].endswith("found state 2")
    for _ in range(20):
        decision = agent.ask(agent.state)
        assert decision.phase in HOMEWARD
        assert (
            decision.action
            == agent.knowledge.pairs.pair_action[agent.safety.pairs[decision.state]]
        )
        agent.tell(
            decision, reward=0.0, cost=0.0, next_state=max(decision.state - 1, 0)
            if decision.action == 1 else decision.state,
        )  # fmt: skip
        assert (agent.safety.w[:, agent.state] <= agent.promise).all()


@pytest.mark.parametrize("compiled", [True, False])
def test_a_kernel_with_an_impossible_successor_ends_in_the_fallback(compiled):
    world = workshop()
    matrix = world.cmdp.transition_matrix.toarray().reshape(4, 3, 4).copy()
    matrix[1, 2] = [0.0, 0.0, 0.5, 0.5]  # on, and at times one too far
    lie = with_truth(
        world,
        CMDP(
            matrix, world.cmdp.reward.reshape(4, 3), world.cmdp.cost.reshape(4, 3),
            discount=0.9, budget=4.0, reward_max=1.0, cost_max=1.0,
        ),
    )  # fmt: skip
    agent = E4(lie.knowledge, E4Settings(known_after=5))
    with pytest.warns(BrokenAssumptionWarning, match="an assumption broke"):
        trace = simulate(agent, lie.make_env(), 300, compiled=compiled)
    assert "found state 3" in agent.breaks[0]
    assert trace.summary()["breaks"] == list(trace.breaks) == agent.breaks
    assert f"broken: {agent.breaks[0]}" in repr(trace)
    assert len(set(agent.breaks)) == len(agent.breaks)
    at = int(agent.breaks[0].split()[1].rstrip(":"))
    assert set(trace.phases[at + 1 :].tolist()) <= {int(p) for p in HOMEWARD}
    assert not trace.costs[-100:].any()  # rest in the first cells is free


@pytest.mark.parametrize("compiled", [True, False])
def test_a_free_pair_that_costs_is_a_break_at_once(compiled):
    world = workshop()
    cost = world.cmdp.cost.reshape(4, 3).copy()
    cost[1, 1] = 1.0  # to go back from the second cell, said to be free
    lie = with_truth(
        world,
        CMDP(
            world.cmdp.transition_matrix.toarray().reshape(4, 3, 4),
            world.cmdp.reward.reshape(4, 3), cost,
            discount=0.9, budget=4.0, reward_max=1.0, cost_max=1.0,
        ),
    )  # fmt: skip
    agent = E4(lie.knowledge, E4Settings(known_after=5))
    with pytest.warns(BrokenAssumptionWarning, match="an assumption broke"):
        trace = simulate(agent, lie.make_env(), 400, compiled=compiled)
    at = int(np.argmax(trace.costs[:, 0] == 1.0))
    assert agent.breaks[0] == (
        f"decision {at}: cost: expected 0 in state 1, action 1, as was told at birth, "
        f"found 1"
    )
    assert set(trace.phases[at + 1 :].tolist()) <= {int(p) for p in HOMEWARD}


def test_samples_that_are_said_to_be_exact_and_are_not():
    cmdp = workshop().cmdp
    knowledge = told(
        cmdp,
        known_rows=cmdp.transition_matrix,
        costs=cmdp.cost.reshape(4, 3),
        rewards=cmdp.reward.reshape(4, 3),
        exact_costs=True,
        exact_rewards=True,
    )
    agent = E4(knowledge)
    decision = agent.ask(0)
    agent.tell(decision, reward=0.5, cost=0.0, next_state=decision.action // 2)
    assert "reward: expected 0 in state 0" in agent.breaks[0]


@pytest.mark.statistical
def test_a_kernel_beside_the_set_is_a_break_with_the_stated_power():
    """Told at most .3, true .6: 3 lives, each found out.

    A break is certain once the interval of what was seen lies above .3; that 400
    visits do not get there has a probability below 1e-9, and that a pair does not have
    as many when the agent looks, below 1e-6.
    """
    rows = np.array([[[0.4, 0.6]], [[0.4, 0.6]]])
    nominal = CMDP(
        [[[0.8, 0.2]], [[0.8, 0.2]]], np.zeros((2, 1)), np.zeros((2, 1)),
        discount=0.8, budget=3.0, reward_max=1.0, cost_max=1.0,
    )  # fmt: skip
    truth = CMDP(
        rows, np.zeros((2, 1)), [[0.0], [1.0]], discount=0.8, budget=4.0,
        reward_max=1.0, cost_max=1.0,
    )  # fmt: skip
    knowledge = told(
        truth,
        models=Interval(nominal, upper=np.array([[[1.0, 0.3]], [[1.0, 0.3]]])),
        costs=truth.cost.reshape(2, 1),
        rewards=np.zeros((2, 1)),
    )
    for seed in range(3):
        agent = E4(knowledge, E4Settings(seed=seed, refine=False, known_after=5))
        level = agent.belief.confidence.log_families
        low = np.array(
            [bernoulli_interval(float(k), 400.0, level)[0] for k in range(401)]
        )
        least = int(np.argmax(low > 0.3))
        assert stats.binom.cdf(least - 1, 400, 0.6) < 1e-9
        env = with_truth(World(
            name="x", description="y", cmdp=truth, told=lambda: knowledge
        ), truth).make_env()  # fmt: skip
        with pytest.warns(BrokenAssumptionWarning, match="an assumption broke"):
            simulate(agent, env, 1_500, seed=seed)
        assert "found a contradiction after" in agent.breaks[0]


def test_a_cost_above_its_bound_is_a_clear_error_and_loses_nothing():
    world = workshop()
    dear = with_truth(
        world,
        CMDP(
            world.cmdp.transition_matrix.toarray().reshape(4, 3, 4),
            world.cmdp.reward.reshape(4, 3),
            np.where(world.cmdp.cost.reshape(4, 3) > 0.0, 1.5, 0.0),
            discount=0.9, budget=4.0, reward_max=1.0, cost_max=2.0,
        ),
    )  # fmt: skip
    agent = E4(world.knowledge, E4Settings(known_after=5))
    with pytest.raises(AssumptionError, match=r"cost: expected a number in \[0, 1\]"):
        simulate(agent, dear.make_env(), 500)
    decision = agent.open_decision
    assert decision is not None
    before = agent.journal()
    with pytest.raises(InvalidInputError, match="compiled: expected an E4 agent and"):
        simulate(agent, dear.make_env(), 500, compiled=True)
    assert agent.journal() == before
    agent.tell(decision, reward=0.0, cost=1.0, next_state=decision.state - 1)
    assert agent.ask(agent.state).id == decision.id + 1


def test_after_a_break_nothing_is_planned_and_nothing_is_lost(tmp_path):
    agent = E4(two_budgets().knowledge, E4Settings(known_after=5))
    simulate(agent, two_budgets().make_env(), 50)
    agent.break_down("as a test")
    plans, visits = agent.plans, agent.belief.evidence.pair_visits.sum()
    agent.replan()
    assert agent.plans == plans
    env = two_budgets().make_env()
    env.reset(seed=0)
    env.place(agent.state)
    trace = simulate(agent, env, 50)
    assert agent.belief.evidence.pair_visits.sum() == visits + 50
    assert set(trace.phases.tolist()) <= {int(p) for p in HOMEWARD}
    agent.save(tmp_path / "agent.npz")
    assert E4.load(tmp_path / "agent.npz").breaks == agent.breaks
    assert math.isfinite(agent.promise.max())


@pytest.mark.parametrize(
    ("told_", "error"),
    [
        ({"cost": [0.0]}, InvalidInputError),
        ({"cost": [0.0, 0.0, 0.0]}, InvalidInputError),
        ({"cost": [0.0, math.nan]}, AssumptionError),
        ({"cost": [0.0, -math.inf]}, AssumptionError),
        ({"reward": math.inf}, AssumptionError),
        ({"next_state": 2}, AssumptionError),
        ({"next_state": None}, InvalidInputError),
    ],
)
def test_answers_that_make_no_sense_change_nothing(told_, error):
    agent = E4(two_budgets().knowledge)
    decision = agent.ask(0)
    before = agent.journal()
    with pytest.raises(error):
        agent.tell(
            decision, **{"reward": 0.0, "cost": [0.0, 0.0], "next_state": 0, **told_}
        )
    assert agent.journal() == before
    assert agent.belief.evidence.pair_visits.sum() == 0


def test_what_was_not_asked_for_cannot_be_told():
    agent, other = E4(workshop().knowledge), E4(workshop().knowledge)
    decision = other.ask(0)
    with pytest.raises(
        InvalidInputError, match="decision: expected one that is open, "
    ):
        agent.tell(decision, reward=0.0, cost=0.0, next_state=0)
    with pytest.raises(
        InvalidInputError, match="decision: expected one that is open, "
    ):
        agent.forget(decision, next_state=0)
    with pytest.raises(InvalidInputError, match="decision: expected one whose cost is"):
        agent.tell_cost(decision, 0.0)


def test_a_life_does_not_go_on_over_an_open_decision():
    agent, world = E4(workshop().knowledge), workshop()
    simulate(agent, world.make_env(), 5)
    decision = agent.ask(agent.state)
    for compiled in (True, False):
        with pytest.raises(InvalidInputError, match="what came of"):
            simulate(agent, world.make_env(), 5, compiled=compiled)
    assert agent.open_decision == decision


def test_after_a_break_nothing_is_certified():
    agent = E4(workshop().knowledge, E4Settings(known_after=3))
    known = agent.knowledge
    assert agent.certificate().safe
    agent.certified, agent.gap = True, 0.5  # as it may have been seen before
    agent.tell(agent.ask(0), reward=0.0, cost=0.0, next_state=2)
    assert not agent.certified
    assert agent.gap is None
    found = agent.certificate()
    assert not found.safe
    assert agent.breaks[0] in found.message
    assert found.exposure == 1.0
    horizon = 1.0 / (1.0 - known.discount)
    np.testing.assert_allclose(found.cost_upper, known.cost_max * horizon)
    assert found.value_lower == 0.0
    assert found.gap == found.upper_bound == pytest.approx(known.reward_max * horizon)
