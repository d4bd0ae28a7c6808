"""Asking and telling: in order, once, and within what was said to be possible."""

from __future__ import annotations

import numpy as np
import pytest
from tests.simulation.worlds import told, two_budgets, workshop

from escapade.agent import E4, E4Settings, Phase
from escapade.agent.phases import REASONS
from escapade.errors import AssumptionError, InvalidInputError
from escapade.model import CMDP


@pytest.fixture
def agent() -> E4:
    return E4(workshop().knowledge, E4Settings(known_after=3))


def test_a_decision_says_what_it_rests_on(agent):
    decision = agent.ask(0)
    assert (decision.id, decision.state) == (0, 0)
    assert decision.action in range(3)
    assert decision.phase in Phase
    assert decision.reason in REASONS.values()
    assert decision.promise == tuple(agent.cap)
    assert decision.reserved == (0.0,)  # to rest is free
    with pytest.raises(AttributeError):
        decision.action = 2


def test_questions_and_answers_alternate(agent):
    first = agent.ask(0)
    with pytest.raises(InvalidInputError, match="ask: expected what came of the last"):
        agent.ask(0)
    agent.tell(first, reward=0.0, cost=0.0, next_state=0)
    with pytest.raises(InvalidInputError, match="state: expected the state told last"):
        agent.ask(1)
    second = agent.ask(0)
    assert second.id == 1


def test_the_same_answer_counts_once(agent):
    decision = agent.ask(0)
    for _ in range(3):
        agent.tell(decision, reward=0.5, cost=0.0, next_state=0)
    assert agent.decisions == agent.belief.evidence.pair_visits.sum() == 1
    with pytest.raises(
        InvalidInputError,
        match="found 0, which was answered already, with another outcome",
    ):
        agent.tell(decision, reward=0.25, cost=0.0, next_state=0)
    later = agent.ask(0)
    agent.tell(decision, reward=0.5, cost=0.0, next_state=0)  # a late repetition
    with pytest.raises(InvalidInputError, match="decision: expected 1, which is open,"):
        agent.tell(decision, reward=0.5, cost=None, next_state=0)
    agent.tell(later, reward=0.0, cost=0.0, next_state=0)
    assert agent.decisions == agent.belief.evidence.pair_visits.sum() == 2
    with pytest.raises(
        InvalidInputError, match=r"found 0, which was answered already$"
    ):
        agent.tell(decision, reward=0.5, cost=0.0, next_state=0)


@pytest.mark.parametrize("none", [None, 0, "0"])
def test_what_is_no_decision_is_refused(agent, none):
    opened = agent.ask(0)
    message = "decision: expected a Decision, as ask returned it, found"
    with pytest.raises(InvalidInputError, match=message):
        agent.tell(none, reward=0.0, cost=0.0, next_state=0)
    with pytest.raises(InvalidInputError, match=message):
        agent.forget(none, next_state=0)
    assert agent.open_decision == opened


def beyond(agent: E4):
    """Answer until a pair is played that may cost something; return what came."""
    world = workshop().make_env()
    state, _ = world.reset(seed=1)
    while True:
        decision = agent.ask(state)
        if state >= 2 and decision.action != 0:
            return decision
        state, reward, *_, info = world.step(decision.action)
        agent.tell(decision, reward=reward, cost=info["cost"], next_state=state)


def test_a_cost_that_is_not_known_is_charged_in_full_and_teaches_nothing():
    told_all, told_none = (
        E4(workshop().knowledge, E4Settings(known_after=3)) for _ in range(2)
    )
    one, other = beyond(told_all), beyond(told_none)
    assert one == other
    told_all.tell(one, reward=0.0, cost=1.0, next_state=one.state - 1)
    told_none.tell(other, reward=0.0, cost=None, next_state=one.state - 1)
    np.testing.assert_array_equal(told_all.promise, told_none.promise)
    seen, unseen = told_all.belief.evidence, told_none.belief.evidence
    np.testing.assert_array_equal(seen.pair_visits, unseen.pair_visits)
    np.testing.assert_array_equal(seen.visits, unseen.visits)
    assert seen.cost_count.sum() == unseen.cost_count.sum() + 1
    assert seen.cost_sum.sum() == unseen.cost_sum.sum() + 1.0
    told_none.tell(
        other, reward=0.0, cost=None, next_state=one.state - 1
    )  # again: nothing
    assert told_none.decisions == told_all.decisions


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({"reward": 1.5}, r"reward: expected a number in \[0, 1\], found 1.5"),
        ({"reward": -0.1}, r"reward: expected a number in \[0, 1\], found -0.1"),
        ({"reward": float("nan")}, "reward: expected a number in"),
        ({"cost": 1.25}, r"cost: expected a number in \[0, 1\], found 1.25"),
        ({"cost": -1e-9}, r"cost: expected a number in"),
        ({"cost": float("nan")}, "cost: expected a number in"),
        ({"next_state": 4}, r"next_state: expected a state in 0..3, found 4"),
        ({"next_state": -1}, r"next_state: expected a state in 0..3, found -1"),
    ],
)
def test_what_the_bounds_rule_out_is_refused_and_changes_nothing(
    agent, answer, message
):
    decision = agent.ask(0)
    before = agent.belief.state()
    with pytest.raises(AssumptionError, match=message):
        agent.tell(decision, **{"reward": 0.0, "cost": 0.0, "next_state": 0, **answer})
    for name, array in agent.belief.state().items():
        np.testing.assert_array_equal(array, before[name])
    assert not agent.breaks
    agent.tell(decision, reward=0.0, cost=0.0, next_state=0)
    assert agent.decisions == 1


def test_what_cannot_be_read_is_refused(agent):
    with pytest.raises(InvalidInputError, match=r"state: expected a state in 0..3, fo"):
        agent.ask("here")
    with pytest.raises(InvalidInputError, match=r"state: expected a state in 0..3, fo"):
        agent.ask(0.5)
    with pytest.raises(AssumptionError, match=r"state: expected a state in 0..3, foun"):
        agent.ask(7)
    decision = agent.ask(np.int32(0))
    with pytest.raises(InvalidInputError, match=r"cost: expected 1 numbers, found sha"):
        agent.tell(decision, reward=0.0, cost=[0.0, 0.0], next_state=0)
    with pytest.raises(
        InvalidInputError, match="knowledge: expected a Knowledge, found a CMDP"
    ):
        E4(workshop().cmdp)


def test_with_two_budgets_the_error_names_the_channel():
    agent = E4(two_budgets().knowledge)
    decision = agent.ask(0)
    with pytest.raises(AssumptionError, match="found 2 in channel 1"):
        agent.tell(decision, reward=0.0, cost=[0.0, 2.0], next_state=0)


# -- birth -----------------------------------------------------------------------------


def test_a_budget_that_cannot_be_promised_is_refused_at_birth():
    cmdp = CMDP(
        np.eye(2)[[[1, 1], [1, 1]]],
        np.ones((2, 2)),
        np.ones((2, 2)),
        discount=0.9,
        budget=5.0,
    )
    with pytest.raises(AssumptionError, match="expected a budget that can be promised"):
        E4(told(cmdp, known_rows=cmdp.transition_matrix, costs=cmdp.cost.reshape(2, 2)))


def test_a_start_from_which_nothing_can_be_promised_is_refused_when_asked():
    """Life may only begin where knowledge says it begins; elsewhere it is refused."""
    rows = np.eye(2)[[[0, 0], [1, 1]]]
    cmdp = CMDP(rows, np.ones((2, 2)), [[0.0, 0.0], [1.0, 1.0]], discount=0.9, budget=5)
    agent = E4(
        told(cmdp, known_rows=cmdp.transition_matrix, costs=cmdp.cost.reshape(2, 2))
    )
    with pytest.raises(AssumptionError, match="state: expected one from which the bud"):
        agent.ask(1)


def test_where_nothing_is_estimated_the_whole_budget_is_promised():
    sure, unsure = two_budgets().knowledge, workshop().knowledge
    known = sure.replace(rewards=np.full((2, 3), 0.5))
    agent = E4(known)
    assert agent.belief.failure_probability == 0.0
    np.testing.assert_array_equal(agent.cap, known.budget)
    other = E4(unsure, E4Settings(margin=0.02, delta=0.1))
    np.testing.assert_allclose(other.cap, 0.98 * unsure.budget)
    # δ0 = δ · margin · d (1 − γ) / c_max
    assert other.belief.failure_probability == pytest.approx(0.1 * 0.02 * 4.0 * 0.1)


# -- breaks ----------------------------------------------------------------------------


def test_an_impossible_successor_ends_every_venture(agent):
    state = 0
    while not agent.breaks:
        decision = agent.ask(state)
        state = 3 if decision.action == 2 and state == 0 else state
        agent.tell(decision, reward=0.0, cost=0.0, next_state=state)
    (said,) = agent.breaks
    assert said.endswith("after state 0, action 2, found state 3")
    assert said.startswith(f"decision {agent.decisions - 1}: ")
    assert (agent.promise >= agent.safety.w[:, 3]).all()
    for _ in range(50):
        decision = agent.ask(state)
        assert decision.phase in {Phase.ESCAPE, Phase.RETURN, Phase.WAIT}
        assert decision.promise >= decision.reserved
        agent.tell(decision, reward=0.0, cost=0.0, next_state=state)
        if decision.action == 1 and state > 0:
            break


def test_costs_that_were_said_to_be_exact_and_are_not_break_what_was_told():
    world = workshop()
    agent = E4(
        world.knowledge.replace(exact_costs=True), E4Settings(known_after=4, seed=2)
    )
    env = world.make_env()
    state, _ = env.reset(seed=3)
    for _ in range(400):
        decision = agent.ask(state)
        state, reward, *_, info = env.step(decision.action)
        agent.tell(decision, reward=reward, cost=info["cost"], next_state=state)
    (said,) = agent.breaks
    assert "exact_costs: expected the same cost each time" in said
