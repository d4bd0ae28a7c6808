"""Another budget in mid-life: taken if the promise can follow, refused if not."""

from __future__ import annotations

import numpy as np
import pytest
from tests.simulation.worlds import told, two_budgets, workshop

from escapade.agent import E4, E4Settings
from escapade.errors import InvalidInputError
from escapade.model import CMDP
from escapade.simulation import simulate


def lived(world, steps=60, **settings) -> E4:
    agent = E4(world.knowledge, E4Settings(known_after=4, seed=2, **settings))
    simulate(agent, world.make_env(), steps)
    return agent


def test_a_larger_budget_lets_the_promise_grow_and_keeps_what_was_promised():
    agent = lived(workshop())
    before, spare = agent.promise.copy(), agent.knowledge.budget - agent.cap
    agent.change_budget(8.0)
    np.testing.assert_array_equal(agent.promise, before)
    assert agent.knowledge.budget == 8.0
    np.testing.assert_array_equal(agent.cap, 8.0 - spare)
    assert agent.born_with.budget == 4.0
    largest = 0.0
    for _ in range(60):
        decision = agent.ask(agent.state)
        state = max(agent.state - 1, 0) if decision.action else agent.state
        agent.tell(decision, reward=0.0, cost=0.0, next_state=state)
        assert (agent.promise <= agent.cap).all()
        largest = max(largest, float(agent.promise[0]))
    assert largest > 4.0


@pytest.mark.parametrize("world", [workshop, two_budgets])
@pytest.mark.parametrize("share", [0.9, 0.6])
def test_a_smaller_budget_is_kept_at_every_step_from_then_on(world, share):
    agent = lived(world())
    agent.change_budget(share * agent.knowledge.budget)
    assert (agent.promise <= agent.cap).all()
    env = world().make_env()
    env.reset(seed=9)
    env.place(agent.state)
    trace = simulate(agent, env, 300)
    assert (trace.reserved <= trace.promise).all()
    assert (trace.promise <= agent.cap).all()
    assert (trace.promise <= share * world().knowledge.budget).all()


def ladder(budget=10.0) -> CMDP:
    """Two cells: the first is free, leaving the second costs 1 a step, 5 on average."""
    return CMDP(
        [[[1.0, 0.0], [0.0, 1.0]], [[0.2, 0.8], [0.2, 0.8]]],
        [[0.0, 1.0], [0.0, 0.0]],
        [[0.0, 0.0], [1.0, 1.0]],
        discount=0.9,
        budget=budget,
        cost_max=1.0,
    )


def on_the_ladder() -> E4:
    cmdp = ladder()
    agent = E4(
        told(cmdp, known_rows=cmdp.transition_matrix, costs=cmdp.cost.reshape(2, 2))
    )
    agent.tell(agent.ask(0), reward=0.0, cost=0.0, next_state=0)
    return agent


def test_states_that_a_smaller_budget_cannot_promise_are_not_entered_any_more():
    agent = on_the_ladder()
    assert agent.safety.promisable.all()
    least = 1.0 / (1.0 - 0.9 * 0.8)
    agent.change_budget(least - 0.1)
    assert agent.safety.promisable.tolist() == [True, False]
    for _ in range(30):
        decision = agent.ask(0)
        assert decision.action == 0
        agent.tell(decision, reward=0.0, cost=0.0, next_state=0)


def test_what_the_promise_cannot_follow_is_refused_and_changes_nothing():
    agent = on_the_ladder()
    while agent.state == 0:
        decision = agent.ask(0)
        agent.tell(decision, reward=0.0, cost=0.0, next_state=decision.action)
    before, safety = agent.journal(), agent.safety.state()
    with pytest.raises(
        InvalidInputError,
        match="budget: expected one that the promise can follow, found that state 1 can"
        "not be promised",
    ):
        agent.change_budget(3.0)
    assert agent.journal() == before
    assert agent.knowledge.budget == 10.0
    np.testing.assert_array_equal(agent.safety.cap, agent.cap)
    for name, array in agent.safety.state().items():
        np.testing.assert_array_equal(array, safety[name])
    agent.change_budget(4.0)
    np.testing.assert_array_equal(agent.promise, agent.cap)
    assert agent.cap > 3.9


@pytest.mark.parametrize(
    ("budget", "message"),
    [
        (-1.0, "budget"),
        (float("nan"), "budget"),
        ([1.0, 2.0], "budget"),
        (1e-9, "what pays for delta is more than that"),
    ],
)
def test_what_is_no_budget_is_refused(budget, message):
    agent = lived(workshop(), 5)
    before = agent.journal()
    with pytest.raises(InvalidInputError, match=message):
        agent.change_budget(budget)
    assert agent.journal() == before


def test_a_budget_is_not_changed_between_question_and_answer_nor_after_a_break():
    agent = E4(workshop().knowledge)
    decision = agent.ask(0)
    with pytest.raises(InvalidInputError, match="budget: expected what came of the la"):
        agent.change_budget(5.0)
    agent.tell(decision, reward=0.0, cost=0.0, next_state=3)
    assert agent.breaks
    with pytest.raises(InvalidInputError, match="budget: expected a life without brea"):
        agent.change_budget(5.0)


def test_before_the_first_step_the_whole_budget_is_promised():
    agent = E4(workshop().knowledge)
    agent.change_budget(6.0)
    np.testing.assert_array_equal(agent.promise, agent.cap)
    assert agent.cap > 5.5


@pytest.mark.parametrize("budget", [2.5, 7.0])
def test_a_changed_budget_survives_on_disk(tmp_path, budget):
    agent = lived(workshop())
    agent.change_budget(budget)
    agent.save(tmp_path / "agent.npz")
    again = E4.load(tmp_path / "agent.npz")
    np.testing.assert_array_equal(agent.cap, again.cap)
    traces = []
    for one in (agent, again):
        env = workshop().make_env()
        env.reset(seed=3)
        env.place(one.state)
        traces.append(simulate(one, env, 200))
    for name in ("states", "actions", "promise", "reserved", "costs"):
        np.testing.assert_array_equal(*(getattr(t, name) for t in traces))
    assert agent.knowledge.fingerprint == again.knowledge.fingerprint
