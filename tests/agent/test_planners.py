"""Each of three policies by each of four optimisers, in both modes: never unsafe."""

from __future__ import annotations

import numpy as np
import pytest
from tests.agent.paper_worlds import harbour, two_channels
from tests.simulation.test_one_rule import assert_same_agent, assert_same_trace

from escapade.agent import E4, E4Settings, PaperSettings, Phase
from escapade.agent.planners import PLANNED, planner_of, read_planners
from escapade.errors import InvalidInputError
from escapade.simulation import simulate

PAPER = PaperSettings(requirements="reported", horizon=10)
FOUR = (
    "linear-program",
    "dual-linear-program",
    "dynamic-programming",
    "policy-gradient",
)


def born(mode: str, planner, world=None, **more) -> E4:
    paper = PAPER if mode == "paper" else None
    settings = E4Settings(
        mode=mode, planner=planner, known_after=4, epsilon=0.4, paper=paper, **more
    )
    return E4((world or harbour()).knowledge, settings)


@pytest.mark.parametrize("mode", ["ledger", "paper"])
@pytest.mark.parametrize("planner", FOUR)
def test_any_optimiser_may_plan_all_three_policies(mode, planner):
    world = harbour()
    agent = born(mode, planner, world)
    steps = 40 if planner == "policy-gradient" else 300
    trace = simulate(agent, world.make_env(), steps)
    assert not agent.breaks
    assert (trace.reserved <= trace.promise).all()
    assert (trace.promise <= agent.cap).all()
    assert {Phase.EXPLORE, Phase.WANDER} <= set(trace.phases)
    if steps == 300:
        assert agent.planned.plan.known.all()


@pytest.mark.parametrize("policy", PLANNED)
def test_each_policy_may_have_its_own(policy):
    chosen = read_planners({policy: "dual-linear-program"})
    assert chosen[policy] == "dual-linear-program"
    assert {chosen[other] for other in PLANNED if other != policy} == {"auto"}
    trace = simulate(born("ledger", {policy: "linear-program"}), harbour().env, 200)
    assert (trace.reserved <= trace.promise).all()


def test_a_named_planner_of_the_escape_is_heard():
    """In the harbour every road home is ``back``; the fallback is the same."""
    world = harbour()
    agent = born("ledger", {"escape": "dynamic-programming"}, world)
    simulate(agent, world.make_env(), 5)
    rules = agent.planned.rules
    assert rules.plans_escape
    assert not rules.on
    unknown = ~agent.planned.plan.known
    np.testing.assert_allclose(rules.escape[unknown].sum(axis=1), 1.0)
    assert (rules.escape[unknown, 1] > 0.99).all()


def test_optimisers_agree_on_what_earns():
    """All states known: exact planners of one model find policies of one value."""
    world = harbour()
    earned = {}
    for planner in ("auto", "linear-program", "dynamic-programming", "slack"):
        agent = born("ledger", planner, world)
        trace = simulate(agent, world.make_env(), 600)
        earned[planner] = trace.rewards[300:].mean()
        assert (trace.reserved <= trace.promise).all()
    best = max(earned.values())
    assert min(earned.values()) > 0.5 * best, earned


def test_with_two_budgets_any_optimiser_keeps_both():
    world = two_channels()
    for mode in ("ledger", "paper"):
        agent = born(mode, "linear-program", world)
        trace = simulate(agent, world.make_env(), 150)
        assert (trace.reserved <= trace.promise).all()


@pytest.mark.parametrize("mode", ["ledger", "paper"])
def test_both_loops_agree_whatever_plans(mode):
    world = harbour()
    lives = []
    for compiled in (False, True):
        agent = born(mode, "dual-linear-program", world)
        trace = simulate(agent, world.make_env(), 150, compiled=compiled)
        lives.append((agent, trace))
    assert_same_trace(lives[0][1], lives[1][1])
    assert_same_agent(lives[0][0], lives[1][0])


@pytest.mark.parametrize("mode", ["ledger", "paper"])
def test_a_loaded_agent_keeps_its_planners(mode, tmp_path):
    world = harbour()
    agent, env = born(mode, {"escape": "linear-program"}, world), world.make_env()
    simulate(agent, env, 80)
    agent.save(tmp_path / "agent.npz")
    other = E4.load(tmp_path / "agent.npz")
    assert planner_of(other.settings.planner, "escape") == "linear-program"
    twin = world.make_env()
    twin.reset(seed=0)
    twin.place(env.state)
    twin.np_random.bit_generator.state = env.np_random.bit_generator.state
    one, its = simulate(agent, env, 120), simulate(other, twin, 120)
    assert_same_trace(one, its)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("newton", "planner: expected one of"),
        ({"wander": "auto"}, "planner: expected keys out of"),
        ({"explore": "newton"}, r"planner\['explore'\]: expected one of"),
        ({"escape": "slack"}, r"planner\['escape'\]: expected a stationary policy's"),
        (3, "planner: expected a name, or a mapping"),
    ],
)
def test_planners_are_checked(value, message):
    with pytest.raises(InvalidInputError, match=message):
        E4Settings(planner=value)


def test_slack_is_for_one_budget():
    message = "planner: expected one for 2 budgets, found 'slack', which is for one"
    for planner in ("slack", {"exploit": "slack"}):
        with pytest.raises(InvalidInputError, match=message):
            E4(two_channels().knowledge, E4Settings(planner=planner))


def test_slack_is_for_the_ledger():
    with pytest.raises(InvalidInputError, match="planner: expected a planner other th"):
        E4Settings(mode="paper", planner="slack")
