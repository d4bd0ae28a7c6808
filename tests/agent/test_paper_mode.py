"""Algorithm 1, corrected: its stages, its budgets, and that they keep the promise."""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from tests.agent.paper_worlds import born, harbour, two_channels
from tests.simulation.test_one_rule import assert_same_agent, assert_same_trace

from escapade.agent import E4, E4Settings, PaperSettings, Phase
from escapade.agent.paper.report import paper_report
from escapade.environments import three_state_loop, wall_cycle, wandering_gamble
from escapade.errors import AssumptionError, InvalidInputError
from escapade.experiment.summary import summarise
from escapade.kernels.ledger import NOT_AFFORDABLE, settle
from escapade.kernels.paper import STAGE, WANDERING
from escapade.knowledge.knowledge import Knowledge
from escapade.simulation import simulate
from escapade.theory.escape_budget import escape_budget
from escapade.theory.horizons import horizon_time

WORLDS = {"harbour": harbour, "two channels": two_channels}


# -- the gamble: what the printed rule spends ------------------------------------------


def spent_in_the_gamble(budget: float, **paper) -> float:
    """Return the exact expected cost: both ends of the gamble, half a chance each."""
    world = wandering_gamble(escape_budget=budget)
    costs = []
    for branch in ("B10", "G"):
        agent = E4(
            world.knowledge,
            E4Settings(
                mode="paper",
                known_after=1_000,
                epsilon=0.5,
                margin=1e-6,  # rewards are estimated, and pay for nothing here
                paper=PaperSettings(
                    requirements="reported", discounting="real", **paper
                ),
            ),
        )
        cmdp, state, total, power = world.cmdp, world.state("u0"), 0.0, 1.0
        while not world.known[state]:
            decision = agent.ask(state)
            pair = cmdp.pair(state, decision.action)
            row = slice(cmdp.row_ptr[pair], cmdp.row_ptr[pair + 1])
            after = cmdp.successor[row][cmdp.probability[row] > 0.0].tolist()
            state = after[0] if len(after) == 1 else world.state(branch)
            cost = float(cmdp.cost[0, pair])
            total, power = total + power * cost, power * cmdp.discount
            reward = float(cmdp.reward[pair])
            agent.tell(decision, reward=reward, cost=cost, next_state=state)
        costs.append(total)
    return 0.5 * sum(costs)


def test_the_printed_rule_spends_11_778_of_10_02():
    spent = spent_in_the_gamble(10.02, test="as-printed")
    assert spent == pytest.approx(11.778, abs=5e-4)


def test_a_test_in_expectation_spends_as_much():
    spent = spent_in_the_gamble(10.02, test="in-expectation")
    assert spent == pytest.approx(11.778, abs=5e-4)


@pytest.mark.parametrize("budget", [10.01, 10.02])
def test_the_corrected_rule_stays_within(budget):
    assert spent_in_the_gamble(budget) == pytest.approx((1 - 0.99**5) / 0.01)  # home
    assert spent_in_the_gamble(budget) <= budget


def test_the_printed_rule_turns_back_in_time_below_10_0132():
    assert spent_in_the_gamble(10.013, test="as-printed") <= 10.013


def test_rules_without_the_ledger_count_what_they_overdraw():
    world = wandering_gamble(escape_budget=10.02)
    overdrawn = {}
    for test in ("corrected", "as-printed"):
        agent = E4(
            world.knowledge,
            E4Settings(
                mode="paper",
                margin=1e-6,
                paper=PaperSettings(
                    test=test, requirements="reported", discounting="real"
                ),
            ),
        )
        simulate(agent, world.make_env(), 12, seed=0)
        report = paper_report(agent)
        overdrawn[test] = report.overdrawn
        assert report.guarded == (test == "corrected")
    assert overdrawn["corrected"] == 0 < overdrawn["as-printed"]


@pytest.mark.parametrize("test", ["corrected", "as-printed"])
def test_a_summary_claims_no_promise_for_a_rule_as_printed(test):
    world = harbour()
    agent = born(world, test=test, known_after=5)
    found = summarise(agent, simulate(agent, world.make_env(), 200))
    assert agent.unguarded == (test == "as-printed")
    assert found["promise_kept"] == (test == "corrected")
    assert found["assumption"].startswith("no promise") == agent.unguarded
    assert found["known_after"] == 5 < found["known_after_by_lemma"]


# -- safety ----------------------------------------------------------------------------


def assert_promise_is_kept(agent: E4, decision, cmdp) -> None:
    """Hold a decision to E[c + γ b'] <= b_a and w(s') <= b', over every outcome."""
    pair = cmdp.pair(decision.state, decision.action)
    row = slice(cmdp.row_ptr[pair], cmdp.row_ptr[pair + 1])
    before = np.array(decision.promise)
    expected = np.zeros(before.size)
    ledger = agent.planned.ledger
    for after, chance in zip(cmdp.successor[row], cmdp.probability[row], strict=True):
        # costs are 0 or 1, each channel for itself
        for k, mean in enumerate(cmdp.cost[:, pair]):
            for cost, weight in ((0.0, 1.0 - mean), (1.0, mean)):
                if chance * weight == 0.0:
                    continue
                promise = before.copy()
                costs = np.zeros(before.size)
                costs[k] = cost
                settle(ledger, agent.pending, costs, int(after), promise)
                assert promise[k] >= ledger.w[k, after]
                assert promise[k] <= agent.cap[k]
                expected[k] += chance * weight * (cost + cmdp.discount * promise[k])
    own = before - agent.pending.shift  # of the action that was drawn, if one was
    assert (expected <= own + before * 1e-12).all()


@pytest.mark.parametrize("name", WORLDS)
@pytest.mark.parametrize(
    "relaxed",
    [
        {},
        {"escape_cost": "confidence", "safe_return": "when-needed"},
        {"escape_cost": "standard-error", "discounting": "real", "horizon": 5},
    ],
)
def test_every_decision_keeps_the_promise_under_the_true_kernel(name, relaxed):
    world = WORLDS[name]()
    agent = born(world, **relaxed)
    env = world.make_env()
    state, _ = env.reset(seed=3)
    for _ in range(300):
        decision = agent.ask(state)
        assert (np.array(decision.reserved) <= np.array(decision.promise)).all()
        assert_promise_is_kept(agent, decision, world.cmdp)
        state, reward, *_, info = env.step(decision.action)
        agent.tell(decision, reward=reward, cost=info["cost"], next_state=state)
    assert not agent.breaks


def test_the_corrected_test_is_within_what_the_ledger_allows():
    """Nothing is refused: what the test lets pass, the ledger affords."""
    world = harbour()
    for seed in range(3):
        agent = born(world, seed=seed, known_after=100)
        simulate(agent, world.make_env(), 2_000)
        report = paper_report(agent)
        assert report.budgets.hold
        assert report.entries > 20
        assert report.refusals == report.overdrawn == 0


@cache
def walls():
    """Return an agent that has lived among walls for a while, and its life."""
    world = wall_cycle(5)
    agent = E4(
        world.knowledge,
        E4Settings(mode="paper", known_after=20, paper={"diameter": "reversible"}),
    )
    return agent, simulate(agent, world.make_env(), 2_000)


# -- stages ----------------------------------------------------------------------------


def test_a_cycle_explores_wanders_escapes_and_rests():
    _, trace = walls()
    seen = [Phase(p) for p in trace.phases]
    assert {Phase.EXPLORE, Phase.WANDER, Phase.ESCAPE, Phase.RETURN} <= set(seen)
    order = [p for p, before in zip(seen, [None, *seen], strict=False) if p != before]
    follows = {
        Phase.EXPLORE: {Phase.WANDER},
        Phase.WANDER: {Phase.ESCAPE, Phase.RETURN},
        Phase.ESCAPE: {Phase.RETURN},
        Phase.RETURN: {Phase.EXPLORE, Phase.EXPLOIT},
    }
    for phase, after in pairwise(order):
        assert after in follows[phase]


def test_a_return_takes_t_steps():
    world = harbour()
    agent = born(world, known_after=30)
    trace = simulate(agent, world.make_env(), 400)
    resting = trace.phases == Phase.RETURN
    begun = np.flatnonzero(resting & ~np.append(False, resting[:-1]))
    ended = np.flatnonzero(~resting & np.append(False, resting[:-1]))
    lengths = ended - begun[: ended.size]
    horizon = horizon_time(discount=0.9, epsilon=0.4, reward_max=1.0, cost_max=1.0)
    assert (lengths == horizon).all()
    assert lengths.size > 2


def test_wandering_is_balanced_until_the_state_is_known():
    world = harbour()
    agent = born(world, known_after=3)
    trace = simulate(agent, world.make_env(), 1_500)
    counts = np.zeros((5, 3), dtype=np.int64)
    for state, action, phase in zip(
        trace.states, trace.actions, trace.phases, strict=False
    ):
        if phase == Phase.WANDER:
            assert counts[state, action] == counts[state].min() < 3
        counts[state, action] += 1
    assert agent.planning.known.all()
    assert set(trace.phases[-30:]) <= {Phase.EXPLOIT, Phase.RETURN}


def test_the_escape_goes_on_until_a_known_state_is_reached():
    agent, trace = walls()
    escaping = np.flatnonzero(trace.phases[:-1] == Phase.ESCAPE)
    inside = agent.planning.known[trace.states[escaping + 1]]
    again = trace.phases[escaping + 1] == Phase.ESCAPE
    assert escaping.size > 5
    assert (inside | again).all()


def test_life_begins_in_a_known_state_at_random():
    world = harbour(known=3)
    how = {"start": "random-known", "requirements": "reported"}
    begun = {
        int(simulate(born(world, seed=seed, **how), world.env, 1).states[0])
        for seed in range(12)
    }
    assert begun == {0, 1, 2}  # each is missing with probability below .01


# -- budgets ---------------------------------------------------------------------------


def test_the_budgets_are_those_of_the_lemma():
    agent = born(harbour())
    found = paper_report(agent).budgets
    expected = escape_budget(
        budget=float(agent.cap[0]),
        discount=0.9,
        cost_max=1.0,
        epsilon=0.4,
        safe_return_budget=0.4,  # resting is free: ε for what comes after T steps
        escape_steps=4.0,
    )
    assert found.escape_steps == pytest.approx(4.0)
    assert found.return_budget == pytest.approx([0.4])
    assert found.known_budget == pytest.approx([expected.known_budget])
    assert found.plan_budget == pytest.approx([expected.known_budget - 0.4])
    assert found.least_escape_budget == pytest.approx([expected.least_escape_budget])
    assert found.escape_budget == pytest.approx([agent.cap[0] - 0.9 * 0.4])
    assert found.hold


def test_on_entering_d_prime_is_what_the_promise_leaves():
    world = harbour()
    agent = born(world)
    env = world.make_env()
    state, _ = env.reset(seed=1)
    entered = 0
    for _ in range(300):
        stage = agent.course.counters[STAGE]
        decision = agent.ask(state)
        if agent.course.counters[STAGE] == WANDERING != stage:
            left = agent.promise - 0.9 * paper_report(agent).budgets.return_budget
            np.testing.assert_allclose(agent.course.budget, left)
            entered += 1
        state, reward, *_, info = env.step(decision.action)
        agent.tell(decision, reward=reward, cost=info["cost"], next_state=state)
    assert entered > 2


@pytest.mark.parametrize(
    ("budget", "known", "letter", "left", "right"),
    [(5.0, 1, "l", 0.8, 0.0), (3.0, 4, "d", 3.4, 0.6925)],
)
def test_a_requirement_that_fails_is_named_with_its_numbers(
    budget, known, letter, left, right
):
    with pytest.raises(AssumptionError) as caught:
        born(harbour(budget, known=known))
    assert f"expected requirement ({letter}) of the Escape Budget" in str(caught.value)
    assert f"found {left:g} against {right:g} with D = " in str(caught.value)


def test_example_two_cannot_keep_the_requirements():
    """Corner to corner takes longer than the budget allows (E18)."""
    with pytest.raises(AssumptionError, match=r"Escape Budget Lemma.* with D = 1\d\."):
        E4(wall_cycle(10).knowledge, E4Settings(mode="paper"))


def test_requirements_that_are_only_reported_let_the_ledger_decide():
    world = harbour(2.5, known=4)
    agent = born(world, requirements="reported")
    report = paper_report(agent)
    assert not report.budgets.hold
    assert report.relaxed == ("requirements",)
    trace = simulate(agent, world.make_env(), 500)
    assert (trace.reserved <= trace.promise).all()


def test_the_visits_that_the_lemma_asks_for_stand_beside_those_of_the_quota():
    report = paper_report(born(harbour(), known_after=5))
    assert report.known_after == 5
    assert report.known_after_by_lemma > 10**15


def test_only_the_paper_mode_reports():
    with pytest.raises(InvalidInputError, match="mode: expected 'paper', found 'ledge"):
        paper_report(E4(harbour().knowledge))


def test_settings_of_the_paper_are_for_its_mode():
    with pytest.raises(InvalidInputError, match="paper: expected None unless mode='pa"):
        E4Settings(paper=PaperSettings())
    with pytest.raises(InvalidInputError, match="paper: expected a PaperSettings"):
        E4Settings(mode="paper", paper=3)
    given = E4Settings(mode="paper", paper={"diameter": "reversible"})
    assert given.paper == PaperSettings(diameter="reversible")


# -- one rule, on disk -----------------------------------------------------------------


@pytest.mark.parametrize("name", WORLDS)
@pytest.mark.parametrize("paper", [{}, {"test": "as-printed", "sampling": "adaptive"}])
def test_both_loops_take_the_same_decisions(name, paper):
    world = WORLDS[name]()
    lives = []
    for compiled in (False, True):
        agent, env = born(world, **paper), world.make_env()
        lives.append((agent, simulate(agent, env, steps=400, compiled=compiled)))
    assert_same_trace(lives[0][1], lives[1][1])
    assert_same_agent(lives[0][0], lives[1][0])
    for mine, its in zip(lives[0][0].course, lives[1][0].course, strict=True):
        np.testing.assert_array_equal(mine, its)


@pytest.mark.parametrize("name", WORLDS)
@pytest.mark.parametrize("steps", [0, 37, 250])
def test_a_loaded_agent_goes_on_bit_for_bit(name, steps, tmp_path):
    world = WORLDS[name]()
    agent, env = born(world, budget_split="by-known-states"), world.make_env()
    if steps:
        simulate(agent, env, steps)
    agent.save(tmp_path / "agent.npz")
    other = E4.load(tmp_path / "agent.npz")
    assert other.settings == agent.settings
    for mine, its in zip(agent.course, other.course, strict=True):
        np.testing.assert_array_equal(mine, its)
    twin = world.make_env()
    twin.reset(seed=0)
    if steps:
        twin.place(env.state)
        twin.np_random.bit_generator.state = env.np_random.bit_generator.state
    one, its = simulate(agent, env, 300), simulate(other, twin, 300)
    assert_same_trace(one, its)
    assert_same_agent(agent, other)


def test_a_break_ends_the_algorithm():
    world = harbour()
    agent = born(world)
    decision = agent.ask(0)
    agent.tell(decision, reward=0.0, cost=0.0, next_state=4)  # two cells at most
    assert len(agent.breaks) == 1
    assert not agent.planned.rules.on
    assert agent.ask(4).phase == Phase.ESCAPE


# -- no escape that surely ends --------------------------------------------------------


def test_without_a_known_state_the_paper_mode_says_that_none_is_known():
    world = three_state_loop()
    with pytest.raises(AssumptionError) as caught:
        E4(world.knowledge, E4Settings(mode="paper"))
    assert "that no state is known; known_states, known_rows" in str(caught.value)
    assert "inf" not in str(caught.value)


def island(leaves: float, *, told: bool) -> Knowledge:
    """Return three states: home, which is known, a shore, and an island behind it.

    ``leaves`` is the chance to get from the island to the shore; 0 is told as
    impossible.  If not ``told``, nothing is told of where steps lead from the island.
    """
    support = np.zeros((3, 1, 3), dtype=np.bool_)
    support[0, 0, 1] = support[1, 0, [0, 2]] = support[2, 0, 2] = True
    support[2, 0, 1] = leaves > 0.0
    support[2] |= not told
    rows = np.zeros((3, 3))
    rows[0, 1] = 1.0
    rows[1, [0, 2]] = 0.5
    return Knowledge(
        3,
        1,
        discount=0.9,
        budget=9.9,
        reward_max=1.0,
        cost_max=1.0,
        start=0,
        support=support,
        known_rows=rows,
        known_states=[0],
        free=[[True], [True], [True]],
        state_names=["home", "shore", "island"],
    )


@pytest.mark.parametrize(
    ("knowledge", "cause"),
    [
        (
            island(0.0, told=True),
            r"from state 2 \(island\) no known state can be reached at all",
        ),
        (
            island(0.2, told=False),
            r"the escape from state 2 \(island\) may never end, for nothing is told of "
            r"where its actions lead; support, known_rows or models would say it",
        ),
        (
            island(0.2, told=True),
            r"the escape from state 1 \(shore\) may never end: whatever is done, some "
            r"kernel that is possible stays among unknown states",
        ),
    ],
)
def test_what_keeps_an_escape_from_ending_is_named(knowledge, cause):
    with pytest.raises(AssumptionError, match=cause):
        E4(knowledge, E4Settings(mode="paper", epsilon=0.4))
    reported = PaperSettings(requirements="reported")
    agent = E4(knowledge, E4Settings(mode="paper", epsilon=0.4, paper=reported))
    assert re.search(cause, paper_report(agent).lapsed)
    assert "with 1 of 3 states known" in paper_report(agent).lapsed


def test_a_requirement_that_fails_later_is_said_and_the_ledger_goes_on(tmp_path):
    """What is known later costs more to rest in, so less is left to wander with."""
    world = harbour(7.0)
    agent = born(world, known_after=2)
    assert paper_report(agent).budgets.hold
    assert paper_report(agent).lapsed == ""
    trace = simulate(agent, world.make_env(), 1_000)
    report = paper_report(agent)
    assert report.known > 1
    assert re.match(
        r"with [234] of 5 states known: expected requirement \(l\) of the Escape "
        r"Budget Lemma, .* found 0\.8 against .*; the ledger alone decides since$",
        report.lapsed,
    )
    assert not agent.breaks  # the promise does not rest on the lemma
    assert (trace.reserved <= trace.promise).all()
    assert (trace.promise <= agent.cap).all()
    assert report.overdrawn == 0
    # what the ledger refuses is the fallback's turn, and each time says so
    refused = trace.reasons == NOT_AFFORDABLE
    assert refused.sum() == report.refusals > 0
    fallback = {Phase.ESCAPE, Phase.RETURN}
    assert {Phase(int(phase)) for phase in trace.phases[refused]} <= fallback
    assert report.lapsed in summarise(agent, trace)["verdict"]
    agent.save(tmp_path / "agent.npz")
    assert paper_report(E4.load(tmp_path / "agent.npz")).lapsed == report.lapsed
