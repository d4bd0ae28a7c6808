"""The baselines: agents like any other, what each is for, and what it is told."""

from __future__ import annotations

import numpy as np
import pytest

import escapade as ep
from escapade import baselines
from escapade.errors import AssumptionError, InvalidInputError
from escapade.knowledge.belief import Belief
from escapade.typing import Agent

ALL = (*baselines.names(), "oracle")


def make(name, world, seed=0):
    if name == "oracle":
        return baselines.OracleLP(
            world.knowledge, cmdp=world.cmdp, seed=seed, horizon="average"
        )
    return baselines.make(name, world.knowledge, seed=seed)


def live(agent, world, steps, seed=1):
    return ep.simulate(agent, world.make_env(), steps, seed=seed)


@pytest.fixture(scope="module")
def loop():
    return ep.environments.three_state_loop()


@pytest.fixture(scope="module")
def moat():
    return ep.environments.moat_grid()


@pytest.mark.parametrize("name", ALL)
def test_the_same_seed_lives_the_same_life(name, loop):
    agents = [make(name, loop, seed=3) for _ in range(2)]
    assert all(isinstance(agent, Agent) for agent in agents)
    one, other = (live(agent, loop, 150) for agent in agents)
    assert np.array_equal(one.actions, other.actions)
    assert np.isnan(one.promise).all()
    assert np.isnan(one.reserved).all()
    assert set(one.phases.tolist()) <= {0, 1, 2}
    assert agents[0].decisions == 150
    assert agents[0].state == one.states[-1]


@pytest.mark.parametrize("name", ALL)
def test_wrong_orders_are_refused_and_telling_twice_does_nothing(name, loop):
    agent = make(name, loop)
    choice = agent.ask(0)
    with pytest.raises(InvalidInputError, match="ask"):
        agent.ask(0)
    with pytest.raises(AssumptionError, match="reward"):
        agent.tell(choice, reward=-1.0, cost=0.0, next_state=1)
    after = (choice.action + 0) % 3
    agent.tell(choice, reward=0.5, cost=1.0, next_state=after)
    agent.tell(choice, reward=0.5, cost=1.0, next_state=after)
    assert agent.decisions == 1
    with pytest.raises(InvalidInputError, match="decision"):
        agent.tell(choice, reward=0.6, cost=1.0, next_state=after)
    with pytest.raises(InvalidInputError, match="state told last"):
        agent.ask((after + 1) % 3)
    choice = agent.ask(after)
    assert choice.id == 1
    agent.tell(choice, reward=0.5, cost=None, next_state=after)


def test_an_unknown_cost_teaches_nothing_but_is_charged(loop):
    agent = make("lagrangian-q", loop)
    choice = agent.ask(0)
    agent.tell(choice, reward=1.0, cost=None, next_state=1)
    assert agent.prices[0] == pytest.approx(0.02 * (1.0 - 0.5))
    assert not agent._rewards.any()


@pytest.mark.parametrize("name", ["psrl", "c-ucrl", "e3"])
def test_an_impossible_successor_is_said_to_be_one(name, moat):
    agent = make(name, moat)
    choice = agent.ask(2)
    with pytest.raises(AssumptionError, match="possible successor"):
        agent.tell(choice, reward=0.0, cost=0.0, next_state=15)


def test_models_begin_as_the_belief_of_the_agent(moat):
    born = Belief(moat.knowledge, delta=0.05)
    for name in ("psrl", "c-ucrl", "e3"):
        assert np.array_equal(make(name, moat).belief.nominal, born.nominal)


def test_posterior_draws_keep_to_what_is_known(moat):
    agent = make("psrl", moat)
    agent._refresh()
    rows, reward, cost = agent._drawn()
    told = moat.knowledge
    assert (rows >= told.lower - 1e-12).all()
    assert (rows <= told.upper + 1e-12).all()
    np.testing.assert_allclose(np.add.reduceat(rows, told.row_ptr[:-1]), 1.0)
    bottom = moat.cmdp.coordinates[moat.cmdp.pair_state, 1] == 0
    np.testing.assert_array_equal(cost[0, bottom], moat.cmdp.cost[0, bottom])
    assert 0.0 < reward.min() < reward.max() < 1.0


def test_upper_means_are_above_the_truth_and_come_down(moat):
    agent = make("c-ucrl", moat)
    agent._refresh()
    before = agent._upper_means()
    trace = live(agent, moat, 800)
    reward, cost = agent._upper_means()
    assert (reward >= moat.cmdp.reward).all()
    assert (cost >= moat.cmdp.cost).all()
    assert (reward <= before[0]).all()
    assert reward.mean() < before[0].mean()
    assert trace.plans.size > 20


def test_e3_finds_the_way_through_and_minds_no_costs(moat):
    agent = baselines.E3(moat.knowledge, known_after=3)
    trace = live(agent, moat, 1_500)
    assert trace.rewards[-400:].mean() == pytest.approx(0.25)
    assert trace.costs[-400:].mean() == pytest.approx(0.25)
    phases = set(trace.phases.tolist())
    assert phases == {0, 1, 2}
    visits = agent.belief.evidence.pair_visits
    assert visits[~moat.knowledge.exact_pairs].min() >= 3


def test_the_oracle_earns_what_the_truth_allows(moat, loop):
    agent = make("oracle", moat)
    np.testing.assert_allclose(agent._follower.policy.gain, 0.225)
    agent = baselines.OracleLP(loop.knowledge, cmdp=loop.cmdp)
    found = ep.simulate(agent, loop.make_env(), 6_000, seed=2)
    weights = agent._follower.policy.weights[0].reshape(3, 2)
    assert ep.evaluate(loop.cmdp, ep.Policy(weights)).start_value == pytest.approx(
        loop.optimum
    )
    assert 0.3 < found.costs.mean() < 0.7


def test_prices_rise_until_the_rate_is_kept(loop):
    agent = make("lagrangian-q", loop)
    trace = live(agent, loop, 6_000)
    assert agent.prices[0] > 0.0
    assert trace.costs[-3_000:].mean() == pytest.approx(0.5, abs=0.05)


def test_posterior_sampling_keeps_the_rate_on_average_and_nears_the_optimum(moat):
    trace = live(make("psrl", moat), moat, 3_000)
    assert trace.rewards[-1_000:].mean() > 0.2
    assert trace.costs[-1_000:].mean() < 0.23


def test_random_is_random(loop):
    trace = live(make("random", loop), loop, 4_000)
    # 4,000 draws are off by .04 with probability below 1e-6
    assert trace.actions.mean() == pytest.approx(0.5, abs=0.04)


def test_two_channels_are_held_to_their_own_rates():
    world = ep.environments.barrier_grid(budget=(13.0, 13.0))
    for name in ("psrl", "c-ucrl", "lagrangian-q"):
        agent = baselines.make(name, world.knowledge, seed=1)
        assert live(agent, world, 40).costs.shape == (40, 2)


@pytest.mark.parametrize(
    ("build", "name"),
    [
        (lambda w: baselines.make("psrll", w.knowledge), "did you mean 'psrl'"),
        (lambda w: baselines.E3(w.knowledge, known_after=0), "known_after"),
        (lambda w: baselines.E3(w.knowledge, epsilon=0.0), "epsilon"),
        (lambda w: baselines.UniformRandom(w.knowledge, seed=-1), "seed"),
        (
            lambda w: baselines.LagrangianQLearning(w.knowledge, price_rate=0.0),
            "price_rate",
        ),
        (
            lambda w: baselines.LagrangianQLearning(w.knowledge, epsilon=2.0),
            "epsilon",
        ),
        (
            lambda w: baselines.OracleLP(w.knowledge, cmdp=w.cmdp, horizon="long"),
            "horizon",
        ),
        (
            lambda w: baselines.OracleLP(
                w.knowledge, cmdp=ep.environments.moat_grid().cmdp
            ),
            "pairs of the knowledge",
        ),
    ],
)
def test_bad_arguments_are_refused(build, name, loop):
    with pytest.raises(InvalidInputError, match=name):
        build(loop)


def test_an_oracle_of_an_infeasible_problem_says_so():
    dear = ep.CMDP(
        np.ones((1, 2, 1)), [[0.0, 1.0]], [[0.4, 0.9]], discount=0.9, budget=1.0
    )
    told = ep.Knowledge(1, 2, discount=0.9, budget=1.0, reward_max=1.0, cost_max=0.9)
    for horizon in ("discounted", "average"):
        with pytest.raises(InvalidInputError, match="cmdp"):
            baselines.OracleLP(told, cmdp=dear, horizon=horizon)
