"""That an agent which cannot have what it wants leaves off exploring, and earns."""

from __future__ import annotations

import numpy as np
import pytest

from escapade import CMDP, E4, E4Settings, Knowledge, simulate
from escapade.agent import Phase
from escapade.agent.patience import Patience
from escapade.environments import World, moat_grid

REST, WORK, OUT, TRY = range(4)


def outing() -> World:
    """Return a plant where what is wanted outside fits no promise that comes there.

    The way out uses most of the first budget, and ``TRY`` at its end all of it; in the
    last state it costs more than the second ever leaves.
    """
    matrix = np.zeros((4, 4, 4))
    cost = np.zeros((2, 4, 4))
    reward = np.zeros((4, 4))
    matrix[0, :, 0] = matrix[1, :, 0] = matrix[2, :, 0] = matrix[3, :, 0] = 1.0
    for state in range(3):
        matrix[state, OUT] = np.eye(4)[state + 1]
        cost[0, state, OUT] = 0.6
    reward[0, WORK] = 1.0
    cost[1, 0, WORK] = 0.2
    cost[0, 2, TRY] = 1.0
    cost[:, 3, TRY] = 1.0
    available = np.zeros((4, 4), dtype=np.bool_)
    available[:, REST] = available[:3, OUT] = available[2:, TRY] = True
    available[0, WORK] = True
    budget = [1.9, 0.9]
    cmdp = CMDP(
        matrix, reward, cost, discount=0.9, budget=budget, start=0, available=available
    )

    def told() -> Knowledge:
        return Knowledge(
            4,
            4,
            discount=0.9,
            budget=budget,
            reward_max=1.0,
            cost_max=[1.0, 1.0],
            start=0,
            available=available,
            known_rows=matrix.reshape(16, 4),
            costs=cost,
        )

    return World(name="outing", description="A way that costs.", cmdp=cmdp, told=told)


def test_what_the_way_makes_unaffordable_is_given_up_named_and_the_agent_earns(
    tmp_path,
):
    world = outing()
    agent = E4(world.knowledge, E4Settings(known_after=3, margin=1e-6))
    env = world.make_env()
    trace = simulate(agent, env, 6_000)
    phases = trace.summary()["phases"]
    assert phases["exploit"] > 3_000
    found = agent.certificate()
    assert {2, 3} <= set(found.unreachable.tolist())
    path = tmp_path / "agent.npz"
    agent.save(path)
    kept = E4.load(path)
    for name, array in agent.planning.state().items():
        np.testing.assert_array_equal(kept.planning.state()[name], array)


def test_rests_double_and_success_keeps_the_agent_exploring():
    knowledge = outing().knowledge
    n_pairs, patience = knowledge.n_pairs, Patience()
    wanted = np.arange(n_pairs) == 0
    spans, resting = [], 0
    for step in range(0, 20_000, 10):
        visits = np.zeros(n_pairs, dtype=np.int64)
        visits[1] = step
        if patience.rests(knowledge, visits, wanted):
            resting += 1
        elif resting:
            spans.append(resting)
            resting = 0
    assert len(spans) >= 3
    ratios = np.divide(spans[1:], spans[:-1])
    np.testing.assert_allclose(ratios, 2.0, rtol=0.05)
    again, lucky = Patience(), np.zeros(n_pairs, dtype=np.int64)
    for _ in range(2_000):
        lucky[:2] += 1
        assert not again.rests(knowledge, lucky, wanted)


@pytest.mark.parametrize(("every", "rests"), [(8, False), (12, True)])
def test_less_than_a_visit_a_horizon_is_too_little(every, rests):
    """The horizon is ten steps; what is had more seldom does not pay for the way."""
    knowledge = outing().knowledge
    visits, patience = np.zeros(knowledge.n_pairs, dtype=np.int64), Patience()
    wanted = np.arange(knowledge.n_pairs) == 0
    rested = False
    for step in range(1, 20_001):
        visits[0 if step % every == 0 else 1] += 1
        if step % 20 == 0:
            rested = rested or patience.rests(knowledge, visits, wanted)
    assert rested == rests


def test_what_lies_far_out_is_reached_and_no_outing_ends_with_nothing():
    """A third of the promise goes on the way; turning home early must not end it."""
    world = moat_grid(budget=10.0)
    agent = E4(world.knowledge, E4Settings(known_after=1, turn_home=0.8))
    trace = simulate(agent, world.make_env(), 2_500)
    assert (agent.belief.evidence.pair_visits > 0).all()
    assert (trace.phases[-1_000:] == Phase.EXPLOIT).all()
    # as well as the best at this rate of costs, from early in life
    assert trace.rewards[-1_000:].mean() > 0.95 * 0.17


def test_looks_grow_apart_as_rests_do_and_end_when_nothing_is_wanted():
    knowledge, patience = outing().knowledge, Patience()
    wanted = np.arange(knowledge.n_pairs) == 0
    visits = np.zeros(knowledge.n_pairs, dtype=np.int64)
    assert patience.look_in(knowledge, visits) is None
    looks = 0
    while visits[1] < 1_000_000:
        patience.rests(knowledge, visits, wanted)
        visits[1] += patience.look_in(knowledge, visits)
        looks += 1
    assert looks < 400  # a life without success is not one of planning
    patience.rests(knowledge, visits, np.zeros_like(wanted))
    visits[1] += 10_000_000
    patience.rests(knowledge, visits, np.zeros_like(wanted))
    assert patience.look_in(knowledge, visits) is None


def test_after_a_rest_outings_go_further_than_before():
    knowledge, patience = outing().knowledge, Patience()
    wanted = np.arange(knowledge.n_pairs) == 0
    assert patience.tries(knowledge) == 1.0
    visits, tries = np.zeros(knowledge.n_pairs, dtype=np.int64), []
    for step in range(0, 5_000, 10):
        visits[1] = step
        patience.rests(knowledge, visits, wanted)
        tries.append(patience.tries(knowledge))
    assert np.diff(tries).min() >= 0.0
    assert tries[-1] >= 3.0


@pytest.mark.parametrize("wanted", [True, False])
def test_patience_is_kept_in_files_and_ends_only_where_something_is_wanted(wanted):
    knowledge = outing().knowledge
    mask = np.full(knowledge.n_pairs, wanted)
    mask[1:] = False
    visits = np.zeros(knowledge.n_pairs, dtype=np.int64)
    first = Patience()
    assert first.state() == {}
    assert not first.rests(knowledge, visits, mask)
    second = Patience()
    second.restore(first.state())
    visits[1] = 10_000
    assert first.rests(knowledge, visits, mask) == wanted
    assert second.rests(knowledge, visits, mask) == wanted
