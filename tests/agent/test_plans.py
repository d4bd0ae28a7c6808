"""Plans: where to explore, what to earn, what to refine, and when to plan again."""

from __future__ import annotations

import numpy as np
import pytest
from tests.simulation.worlds import LIVES, told, two_budgets, workshop

from escapade.agent import E4, E4Settings
from escapade.agent.exploration import find_frontier
from escapade.agent.refinement import further_goals, worth_refining
from escapade.environments import wall_cycle
from escapade.errors import InvalidInputError
from escapade.knowledge import Knowledge
from escapade.knowledge.belief import Belief
from escapade.model import CMDP
from escapade.simulation import simulate

# -- exploration -----------------------------------------------------------------------


def forked() -> Knowledge:
    """Return a plant with two ways, of equal length, to where visits are wanted.

    From 0 the first action leads by 1 and the second by 2 to 3, which leads back to 0.
    The step by 1 costs .5.
    """
    rows = np.zeros((4, 2, 4))
    rows[0, 0, 1] = rows[0, 1, 2] = 1.0
    rows[1:3, :, 3] = 1.0
    rows[3, :, 0] = 1.0
    costs = np.zeros((4, 2))
    costs[1] = 0.5
    cmdp = CMDP(rows, np.zeros((4, 2)), costs, discount=0.9, budget=4.0, cost_max=1.0,
                reward_max=1.0)  # fmt: skip
    return told(cmdp, known_rows=cmdp.transition_matrix, costs=costs)


def frontier_of(agent: E4, wanted: list[int]):
    wants = np.isin(agent.knowledge.pairs.pair_state, wanted)
    playable = agent.planned.playable
    return find_frontier(agent.belief, agent.safety, playable, wants)


def test_of_two_ways_the_one_that_costs_less_of_the_promise_is_taken():
    agent = E4(forked())
    found = frontier_of(agent, [3])
    assert found.wanted.tolist() == [False, False, False, True]
    assert found.pairs[0] == agent.knowledge.pair(0, 1)  # by 2, where nothing is paid
    assert found.pairs[3] == -1  # it is there
    assert found.value[3] == 1.0
    assert found.value[2] == pytest.approx(0.9)
    assert found.value[0] == pytest.approx(0.81, abs=0.01)
    assert found.value[2] == found.value[1]  # there both are forced, and spend nothing


def test_the_nearest_state_that_wants_visits_is_gone_to():
    agent = E4(forked())
    found = frontier_of(agent, [1, 3])
    assert found.pairs[0] == agent.knowledge.pair(0, 0)
    assert found.value[0] == pytest.approx(0.9, abs=0.01)


def test_where_nothing_can_be_reached_there_is_no_way():
    agent = E4(forked())
    found = frontier_of(agent, [])
    assert (found.value == 0.0).all()
    assert (found.pairs == -1).all()


def test_what_the_promise_can_never_afford_is_no_way():
    """The walk of Example 2 with a budget that no unknown cell is worth."""
    world = wall_cycle(4)
    agent = E4(world.knowledge.replace(budget=0.05), E4Settings(known_after=3))
    trace = simulate(agent, world.make_env(), 300)
    beyond = ~agent.planned.playable
    assert beyond.any()
    assert not beyond[
        agent.belief.knowledge.pairs_of(trace.states[:-1], trace.actions)
    ].any()
    assert not agent.planned.plan.known.all()


def test_exploration_ends_where_quotas_are_met_and_earning_begins():
    world = wall_cycle(3)
    agent = E4(world.knowledge, E4Settings(known_after=4, refine=False))
    env = world.make_env()
    for _ in range(40):
        simulate(agent, env, 50)
        if not agent.planned.frontier.wanted.any():
            break
    assert agent.planned.plan.known.all()
    visits = agent.belief.evidence.pair_visits
    assert (visits[agent.planned.playable] >= 4).all()
    assert (agent.planned.frontier.value == 0.0).all()
    assert agent.planned.earning is not None
    trace = simulate(agent, env, 1_000)
    assert trace.rewards[-500:].mean() > 0.8
    assert trace.summary()["phases"]["exploit"] > 900


# -- earning ---------------------------------------------------------------------------


def earning_after(life: str, steps: int, **more):
    build, chosen, _ = LIVES[life]
    world = build()
    agent = E4(world.knowledge, E4Settings(**{**chosen, **more}))
    simulate(agent, world.make_env(), steps)
    return agent, agent.planning.earning(agent.belief, agent.safety, agent.planned)


def test_a_budget_that_does_not_bind_is_forgotten():
    _, earning = earning_after("walls", 600)
    assert not earning.binds
    assert earning.levels is None
    assert set(np.unique(earning.weights)) == {0.0, 1.0}


def test_a_budget_that_binds_is_planned_by_levels_of_the_promise():
    agent, earning = earning_after("loop", 150)
    assert earning.binds
    levels, pairs = earning.levels, earning.pairs
    assert (levels[0], levels[-1]) == (0.0, pytest.approx(agent.cap[0]))
    assert (np.diff(levels) > 0.0).all()
    owner = agent.knowledge.pairs.pair_state[pairs]
    assert (owner == np.arange(3)[:, np.newaxis]).all()
    assert len(np.unique(pairs[0])) > 1  # what to do depends on what is left


def mixes(agent: E4, weights) -> bool:
    owner = agent.knowledge.pairs.pair_state
    np.testing.assert_allclose(np.bincount(owner, weights), 1.0)
    return bool(((weights > 0.0) & (weights < 1.0)).any())


def test_with_several_budgets_the_plan_mixes_by_what_is_left_of_each():
    agent, earning = earning_after("two budgets", 300)
    assert earning.binds
    assert mixes(agent, earning.weights)
    assert agent.planned.plan.by_level
    grid, drawn, part = earning.grid, earning.drawn, earning.part
    np.testing.assert_allclose(grid[:, 0], 0.0, atol=1e-12)
    np.testing.assert_allclose(grid[:, -1], agent.cap)
    assert (np.diff(grid, axis=1) > 0.0).all()
    owner = agent.knowledge.pairs.pair_state[drawn]
    assert (owner == np.arange(2)[:, np.newaxis, np.newaxis]).all()
    assert ((part > 0.0) & (part < 1.0)).any()
    # with the second promise empty, its action, the third, is not drawn
    many = grid.shape[1]
    empty = drawn.reshape(2, many, many, 2)[:, -1, 0]
    actions = agent.knowledge.pairs.pair_action[empty]
    likely = np.stack([part.reshape(2, many, many)[:, -1, 0]] * 2, axis=-1)
    likely[..., 1] = 1.0 - likely[..., 1]
    assert (actions[likely > 0.0] != 2).all()
    assert (actions[likely > 0.0] == 1).any()


def test_where_levels_of_each_would_be_too_many_promises_are_weighed_as_one(
    monkeypatch,
):
    monkeypatch.setattr("escapade.agent.earning._MOST_TOGETHER", 10)
    agent, earning = earning_after("two budgets", 300)
    assert earning.grid is None
    assert earning.share @ agent.cap == pytest.approx(earning.levels[-1])
    assert agent.planned.plan.by_level
    assert mixes(agent, earning.weights)


@pytest.mark.parametrize("life", ["two budgets", "workshop"])
def test_planning_again_without_news_changes_nothing(life):
    agent, earning = earning_after(life, 300)
    again = agent.planning.plan(agent.belief, agent.safety)
    assert again.earning is not None
    np.testing.assert_allclose(again.earning.weights, earning.weights, atol=1e-6)
    np.testing.assert_array_equal(again.plan.goal, agent.planned.plan.goal)


def test_a_budget_of_nothing_leaves_what_is_free_if_nothing_is_estimated():
    world = two_budgets()
    sure = world.knowledge.replace(
        budget=[0.0, 0.0], rewards=world.cmdp.reward.reshape(2, 3).copy()
    )
    agent = E4(sure, E4Settings(known_after=3))
    trace = simulate(agent, world.make_env(), 60)
    assert (trace.actions == 0).all()
    assert (trace.costs == 0.0).all()
    unsure = world.knowledge.replace(budget=[1.0, 0.0])
    with pytest.raises(
        InvalidInputError, match="budget: expected a number above 0 in "
    ):
        E4(unsure)


# -- refinement ------------------------------------------------------------------------


def test_refinement_asks_for_visits_that_the_optimist_would_make_and_pays_for_them():
    build, chosen, _ = LIVES["walls"]
    world = build()
    agent = E4(world.knowledge, E4Settings(**chosen))
    simulate(agent, world.make_env(), 400)
    found = agent.certificate()
    earning = agent.planning.earning(agent.belief, agent.safety, agent.planned)
    goals = further_goals(
        agent.belief, agent.belief.likeliest(), found.optimism, state=agent.state,
        earning=earning.weights, playable=agent.planned.playable, decisions=400,
    )  # fmt: skip
    visits = agent.belief.evidence.pair_visits
    asked = goals > 0
    assert asked.any()
    assert (goals[asked] > visits[asked]).all()
    assert (goals - visits)[asked].sum() <= 0.05 * 400
    assert (earning.weights[asked] == 0.0).all()
    assert agent.planned.playable[asked].all()
    nothing = further_goals(
        agent.belief, agent.belief.likeliest(), found.optimism, state=agent.state,
        earning=earning.weights, playable=np.zeros_like(asked), decisions=400,
    )  # fmt: skip
    assert (nothing == 0).all()


def test_without_refinement_only_the_quota_is_met():
    build, _, _ = LIVES["loop"]
    world = build()
    rare = []
    for refine in (True, False):
        agent = E4(world.knowledge, E4Settings(known_after=3, refine=refine, epsilon=4))
        simulate(agent, world.make_env(), 1_000)
        assert (agent.planning.refine is not None) == refine
        earning = agent.planning.earning(agent.belief, agent.safety, agent.planned)
        assert earning.weights.max() <= 1.0
        rare.append(int(agent.belief.evidence.pair_visits.min()))
    assert rare[0] > rare[1] == 3


def test_nothing_is_refined_before_it_can_help():
    """As long as the earning policy's own width is most of the gap, it earns."""
    build, chosen, _ = LIVES["walls"]
    world = build()
    agent = E4(world.knowledge, E4Settings(**chosen))
    simulate(agent, world.make_env(), 2_000)
    found = agent.certificate()
    assert found.gap - (found.value_upper - found.value_lower) < 0.25 * found.gap
    assert not worth_refining(found, epsilon=100.0)
    assert agent.planning.refine is None


# -- when to plan again ----------------------------------------------------------------


def test_life_is_planned_again_less_and_less_often():
    world = workshop()
    agent = E4(world.knowledge, E4Settings(known_after=5, refine=False))
    trace = simulate(agent, world.make_env(), 8_000)
    half = int((trace.plans < 1_000).sum())
    assert trace.plans.size - half < half
    assert trace.plans.size < 200


def test_growth_that_calls_for_a_plan_is_a_setting():
    world = workshop()
    plans = []
    for growth in (1.1, 4.0):
        agent = E4(
            world.knowledge,
            E4Settings(known_after=5, refine=False, replan_growth=growth),
        )
        simulate(agent, world.make_env(), 3_000)
        plans.append(agent.plans)
    assert plans[0] > plans[1]


def test_what_is_known_beforehand_wants_no_visits():
    knowledge = forked().replace(rewards=np.zeros((4, 2)))
    agent = E4(knowledge, E4Settings(known_after=7))
    assert agent.planned.plan.known.all()
    assert (agent.planned.plan.goal == 0).all()
    belief = Belief(knowledge, delta=0.1)
    assert belief.failure_probability == 0.0


# -- settings --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mode": "bold"}, "mode: expected one of"),
        ({"planner": "luck"}, "planner: expected one of"),
        ({"epsilon": 0.0}, r"epsilon: expected a number in \(0, inf\), found 0"),
        ({"delta": 1.0}, r"delta: expected a number in \(0, 1\), found 1"),
        ({"known_after": 0}, "known_after: expected a whole number"),
        ({"margin": 0.0}, r"margin: expected a number in \(0, 1\), found 0"),
        ({"reserve": -0.1}, r"reserve: expected a number in \[0, inf\], found -0.1"),
        ({"turn_home": 1.2}, r"turn_home: expected a number in \[0, 1\], found 1.2"),
        ({"recharge": 0.6}, r"recharge: expected a number in \(0.7, 1\), found 0.6"),
        ({"replan_growth": 1.0}, r"replan_growth: expected a number in \(1, inf\)"),
        ({"seed": -1}, "seed: expected a whole number"),
    ],
)
def test_settings_out_of_range_are_refused(change, message):
    with pytest.raises(InvalidInputError, match=message):
        E4Settings(**change)


def test_settings_are_values():
    assert E4Settings(known_after=5) == E4Settings(known_after=5)
    with pytest.raises(AttributeError):
        E4Settings().delta = 0.5
