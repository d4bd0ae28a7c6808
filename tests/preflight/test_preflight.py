"""Preflight says what the agent will say, and what would change its mind."""

from __future__ import annotations

import re

import numpy as np
import pytest

import escapade as ep
from escapade.errors import AssumptionError, InvalidInputError
from escapade.preflight import Preflight, budget_binds
from escapade.preflight.plant import Plant, least_budget


def two_ways(budget=10.0):
    """A free action that may lead, with one chance in a hundred, to a dear state."""
    return ep.CMDP(
        [
            [[0.0, 0.99, 0.01], [0.0, 1.0, 0.0]],
            [[0.0, 1.0, 0.0], [0.0, 1.0, 0.0]],
            [[0.0, 0.0, 1.0], [0.0, 0.0, 1.0]],
        ],
        [[1.0, 0.0]] * 3,
        [[0.0, 5.0], [0.0, 0.0], [10.0, 10.0]],
        discount=0.5,
        budget=budget,
    )


def told(cmdp, **changes):
    """Return knowledge of the spaces and bounds of a model, and what is told."""
    return ep.Knowledge(
        cmdp.n_states,
        cmdp.n_actions,
        discount=cmdp.discount,
        budget=cmdp.budget,
        reward_max=cmdp.reward_max,
        cost_max=cmdp.cost_max,
        **changes,
    )


LARGE = {"cliff-walk", "lava-gap", "pendulum", "toll-cycle", "wall-cycle"}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            name,
            marks=[pytest.mark.slow] * (name in LARGE)
            + [pytest.mark.compiled] * (name == "barrier-grid"),
        )
        for name in ep.environments.names()
    ],
)
def test_the_agent_takes_on_what_preflight_allows_and_refuses_the_rest(name):
    smaller = {"size": 4} if name.endswith("-cycle") else {}
    knowledge = ep.environments.make(name, **smaller).knowledge
    found = ep.preflight(knowledge)
    if found.promisable:
        agent = ep.E4(knowledge)
        np.testing.assert_array_equal(
            np.flatnonzero(~agent.safety.at_birth.promisable), found.unpromisable_states
        )
        np.testing.assert_array_equal(agent.cap, found.cap)
    else:
        with pytest.raises(AssumptionError, match="cannot be promised"):
            ep.E4(knowledge)
        assert found.mend


def test_the_package_and_its_verb_share_a_name():
    import escapade.preflight as package

    answer = package(two_ways())  # type: ignore[operator]
    assert isinstance(answer, Preflight)
    assert answer.promisable == ep.preflight(two_ways()).promisable


def test_the_least_budget_minds_what_a_chance_may_lead_to():
    found = ep.preflight(two_ways())
    # the free action would cost .1 on average, but where it may lead costs 20
    assert found.promisable
    np.testing.assert_allclose(found.fallback_cost, 0.1, rtol=1e-6)
    np.testing.assert_allclose(found.least_budget, 5.0, rtol=1e-5)
    np.testing.assert_array_equal(found.unpromisable_states, [2])
    np.testing.assert_array_equal(found.never_promisable, [2])
    assert "over the budget" in found.why(2)


def test_what_is_too_little_is_mended_by_the_least_budget():
    found = ep.preflight(two_ways(budget=4.0))
    assert not found.promisable
    assert found.mend == ("raise the budget to at least 5.01",)
    assert ep.preflight(two_ways(budget=5.01)).promisable
    assert not ep.preflight(two_ways(budget=4.99)).promisable


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("share", [0.9, 1.4])
def test_the_least_budget_suffices_and_hardly_less_does(seed, share):
    cmdp = ep.environments.garnet(n_states=8, seed=seed).cmdp
    ball = ep.uncertainty.L1Ball(cmdp, radius=0.3)
    cost = ep.fallback(cmdp, ball, budget=1e9).unrestricted_cost[0, 0]
    plant = Plant(
        model=cmdp,
        sets=ball,
        cost=cmdp.cost,
        cap=np.array([share * cost]),
        kept=1.0,
        belief=None,
    )
    least = least_budget(plant, plant.fallback())
    assert plant.fallback(least.sufficient).covers(cmdp.start)
    assert not plant.fallback(least.sufficient * (1 - 1e-4)).covers(cmdp.start)
    assert (least.too_little <= least.sufficient).all()


def test_several_budgets_are_raised_in_proportion():
    cmdp = ep.CMDP(
        [[[1.0]]], [[1.0]], [[[0.5]], [[0.25]]], discount=0.5, budget=[0.25, 1.0]
    )
    found = ep.preflight(cmdp)
    assert not found.promisable
    np.testing.assert_allclose(found.least_budget, [1.0, 1.0], rtol=1e-4)
    assert any("one fallback serves all" in warning for warning in found.warnings)
    text = found.mend[0]
    budget = [float(number) for number in re.findall(r"[\d.]+", text)]
    assert ep.preflight(cmdp.replace(budget=budget)).promisable


def test_a_budget_of_nothing_is_raised_too():
    cmdp = ep.CMDP(
        [[[1.0]]], [[1.0]], [[[0.5]], [[0.25]]], discount=0.5, budget=[0.0, 1.0]
    )
    found = ep.preflight(cmdp)
    assert not found.promisable
    assert found.least_budget[0] >= 1.0
    assert "raise the budget" in found.mend[0]


def test_rows_that_would_do_are_named():
    cmdp = ep.CMDP(
        [
            [[0.1, 0.9, 0.0], [0.0, 0.0, 1.0]],
            [[0.0, 1.0, 0.0], [0.0, 1.0, 0.0]],
            [[0.0, 0.0, 1.0], [0.0, 0.0, 1.0]],
        ],
        [[0.0, 1.0]] * 3,
        [[1.0, 1.0], [0.0, 0.0], [1.0, 1.0]],
        discount=0.9,
        budget=5.0,
    )
    support = cmdp.transition_matrix.toarray().reshape(3, 2, 3) > 0
    knowledge = told(cmdp, support=support, costs=cmdp.cost.reshape(1, 3, 2))
    found = ep.preflight(knowledge)
    assert not found.promisable  # the first action may stay for ever
    said = " ".join(found.mend)
    assert "say where action 0 in state 0 may lead, by a log" in said
    rows = np.zeros((6, 3))
    rows[0] = [0.5, 0.5, 0.0]  # the likeliest when nothing is known
    assert ep.preflight(knowledge.replace(known_rows=rows)).promisable


def test_possible_successors_are_asked_for_where_all_states_are():
    cmdp = ep.CMDP(
        np.eye(3)[:, np.newaxis],
        [[0.0]] * 3,
        [[0.0], [1.0], [1.0]],
        discount=0.9,
        budget=5.0,
    )
    knowledge = told(cmdp, costs=cmdp.cost.reshape(1, 3, 1))
    found = ep.preflight(knowledge)
    assert not found.promisable
    assert any("support" in sentence for sentence in found.mend)
    support = np.eye(3, dtype=bool)[:, np.newaxis]
    assert ep.preflight(knowledge.replace(support=support)).promisable


def test_ways_between_all_states_are_not_sought_where_everything_is_possible():
    home = np.zeros((500, 2, 500))
    home[:, :, 0] = 1.0
    nothing = np.zeros((500, 2))
    cmdp = ep.CMDP(
        home, nothing, nothing, discount=0.9, budget=5.0, cost_max=1.0, reward_max=1.0
    )
    some = ep.preflight(told(cmdp, support=home > 0, free=True))
    assert some.diameter == (np.inf, np.inf)
    every = ep.preflight(told(cmdp, free=True))
    assert every.promisable
    assert every.diameter is None
    assert "diameter          not looked at: too large" in str(every)


def test_costs_that_would_do_are_named():
    cmdp = ep.CMDP([[[1.0]]], [[1.0]], [[0.0]], discount=0.9, budget=5.0, cost_max=1.0)
    found = ep.preflight(told(cmdp))
    assert not found.promisable
    assert any(
        "say what action 0 in state 0 may cost, by costs" in sentence
        for sentence in found.mend
    )
    assert ep.preflight(told(cmdp, free=True)).promisable


def test_what_nothing_mends_is_said():
    cmdp = ep.CMDP([[[1.0]]], [[1.0]], [[1.0]], discount=0.9, budget=5.0)
    found = ep.preflight(told(cmdp, costs=[[1.0]]))
    assert "no budget below 10" in found.mend[0]
    assert "would not be enough" in found.mend[-1]


def test_a_budget_that_does_not_bind_is_warned_of():
    tight = ep.environments.toll_cycle(size=4).cmdp
    assert budget_binds(tight) is True
    assert ep.preflight(tight).warnings == ()
    loose = ep.environments.wall_cycle(size=4).cmdp
    assert ep.preflight(loose).budget_binds is False
    assert "does not bind" in ep.preflight(loose).warnings[0]
    assert budget_binds(two_ways(budget=0.0).replace(start=2)) is None


@pytest.mark.slow
def test_the_paper_asks_for_more_than_the_ledger_does():
    found = ep.preflight(ep.environments.wall_cycle().knowledge)
    assert found.promisable
    assert not found.lemma_holds
    assert found.binding is not None
    assert found.binding.name == "a"
    assert found.binding.left > found.binding.right == 10.0
    assert 8.0 < found.escape_steps < 30.0
    assert int(found.known.sum()) == 9
    assert found.theory_visits > 1e30
    assert found.horizon == 530
    assert found.diameter is not None
    assert found.diameter[1] == pytest.approx(17.9366, abs=1e-3)
    assert found.robust_diameter == (np.inf, np.inf)


def test_one_who_can_only_stay_is_told_so():
    support = np.array([[[1, 0], [1, 1]], [[1, 1], [1, 1]]], dtype=bool)
    knowledge = ep.Knowledge(
        2,
        2,
        discount=0.9,
        budget=2.0,
        reward_max=1.0,
        cost_max=1.0,
        support=support,
        free=[[True, False], [False, False]],
    )
    found = ep.preflight(knowledge)
    assert found.promisable
    assert (found.open_pairs, found.open_states) == (1, 1)
    assert "stays there" in found.warnings[0]


def test_facts_and_json_say_the_same():
    found = ep.preflight(two_ways(budget=4.0))
    described = found.describe()
    assert described["promisable"] is False
    assert found.facts()["promisable"] == "no"
    assert described["states"] == 3
    assert described["binding"]["name"] == found.binding.name
    assert "not promisable" in repr(found)


@pytest.mark.parametrize(
    ("problem", "keywords", "named"),
    [
        ("wall-cycle", {}, "problem"),
        (two_ways(), {"epsilon": 0.0}, "epsilon"),
        (two_ways(), {"known_after": 0}, "known_after"),
        (two_ways(), {"reserve": -0.1}, "reserve"),
    ],
)
def test_what_is_wrong_is_named(problem, keywords, named):
    with pytest.raises(InvalidInputError, match=f"^{named}: expected"):
        ep.preflight(problem, **keywords)


def gated(budget: float) -> ep.Knowledge:
    """Rest that is free, and a gate whose cost only a try can tell."""
    support = np.zeros((2, 2, 2), dtype=bool)
    support[:, 0] = np.eye(2)
    support[:, 1] = np.eye(2)[::-1]
    return ep.Knowledge(
        2,
        2,
        discount=0.9,
        budget=budget,
        reward_max=1.0,
        cost_max=1.0,
        support=support,
        free=[[True, False], [True, False]],
    )


@pytest.mark.parametrize("budget", [0.9, 1.0, 1.1, 1.3])
def test_pairs_that_will_never_be_tried_are_told_with_what_would_open_them(budget):
    found = ep.preflight(gated(budget))
    assert found.promisable
    assert found.untried_pairs.tolist() == [1]  # the other state is not met at birth
    (said,) = [words for words in found.warnings if "never be tried" in words]
    assert "state 0, action 1 one try may cost 1" in said
    assert ("reserve=0" in said) == (0.995 * budget >= 1.0)
    enough = float(said.split("raise the budget to ")[1].split(",")[0])
    wider = ep.preflight(gated(enough * (1.0 + 1e-5)))
    assert wider.untried_pairs.size == 0
    assert wider.open_states == 2
    lives = [
        ep.simulate(ep.E4(gated(b), ep.E4Settings(known_after=2)), gate_env(), 200)
        for b in (budget, enough * (1.0 + 1e-5))
    ]
    assert 1 not in lives[0].actions
    assert 1 in lives[1].actions


def gate_env():
    rows = np.zeros((2, 2, 2))
    rows[:, 0] = np.eye(2)
    rows[:, 1] = np.eye(2)[::-1]
    cmdp = ep.CMDP(
        rows, [[0.0, 1.0]] * 2, [[0.0, 0.5]] * 2, discount=0.9, budget=9.0,
        reward_max=1.0, cost_max=1.0,
    )  # fmt: skip
    return ep.environments.CMDPEnv(cmdp)


def test_with_nothing_kept_back_they_open_sooner():
    found = ep.preflight(gated(1.1), reserve=0.0)
    assert found.untried_pairs.size == 0
    settings = ep.E4Settings(known_after=2, reserve=0.0)
    trace = ep.simulate(ep.E4(gated(1.1), settings), gate_env(), 200)
    assert 1 in trace.actions


def test_printing_shows_facts_warnings_and_mends():
    shown = str(ep.preflight(gated(1.0)))
    assert shown.splitlines()[0].startswith("examined")
    assert "\nwarnings:\n- " in shown
    assert "what would mend it:\n- raise the budget" in str(
        ep.preflight(two_ways(budget=4.0))
    )


def cellar(budget: float) -> ep.Knowledge:
    """Two rooms with free ways, and a cellar whose only way out may cost."""
    support = np.zeros((3, 2, 3), dtype=bool)
    support[0, 0, 1] = support[0, 1, 0] = True
    support[1, 0, 0] = support[1, 1, 2] = True  # down to the cellar
    support[2, 0, 2] = support[2, 1, 0] = True
    return ep.Knowledge(
        3,
        2,
        discount=0.9,
        budget=budget,
        reward_max=1.0,
        cost_max=1.0,
        support=support,
        free=[[True, True], [True, True], [True, False]],
    )


def test_a_dead_end_is_named_until_the_budget_opens_it():
    found = ep.preflight(cellar(1.0))
    assert found.promisable
    (said,) = [words for words in found.warnings if "not left again" in words]
    assert said.startswith("state 2 that can be met at birth")
    assert not any("not left" in words for words in ep.preflight(cellar(1.5)).warnings)
    stuck = ep.E4(cellar(1.0), ep.E4Settings(seed=0))
    state = 0
    for _ in range(60):
        decision = stuck.ask(state)
        state = {(0, 0): 1, (1, 1): 2, (2, 1): 0, (2, 0): 2}.get(
            (state, decision.action), 0
        )
        stuck.tell(decision, reward=0.0, cost=0.0, next_state=state)
    assert state == 2


def test_an_end_that_nothing_leads_away_from_is_no_dead_end():
    ended = cellar(1.0)
    support = np.zeros((3, 2, 3), dtype=bool)
    support[0, :, 1] = support[1, 0, 0] = support[1, 1, 2] = support[2, :, 2] = True
    found = ep.preflight(ended.replace(support=support))
    assert found.open_states == 3
    assert not any("not left again" in words for words in found.warnings)
