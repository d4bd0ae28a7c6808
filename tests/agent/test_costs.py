"""Costs that are missing, lost, or late: what is charged, and what is given back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.simulation.worlds import two_budgets, workshop

from escapade.agent import E4, E4Settings
from escapade.agent.late import LateCosts
from escapade.errors import AssumptionError, InvalidInputError
from escapade.kernels.ledger import Ledger, Pending, choose_rules, settle

# -- the ledger's side -----------------------------------------------------------------


def step_of(rng, gamma, cap, promise):
    """Return a ledger of one pair and two states, and what a decision noted."""
    n_costs = cap.size
    w = 0.5 * promise[:, np.newaxis] * rng.random((n_costs, 2))
    ahead = gamma * w.max(axis=1)
    q = ahead + (promise - ahead) * rng.random(n_costs)
    ledger = Ledger(
        channels=tuple(range(n_costs)),
        state_ptr=np.array([0, 1, 1]),
        w=w,
        q=q[:, np.newaxis],
        ahead=ahead[:, np.newaxis],
        reach=ahead[:, np.newaxis],
        allowed=np.ones(1, dtype=np.bool_),
        fallback=np.zeros(2, dtype=np.int64),
        cap=cap,
        cost_max=np.ones(n_costs),
        gamma=gamma,
    )
    pending = Pending(np.zeros(n_costs, np.int64), q, ahead, ahead, np.zeros(n_costs))
    choose_rules(ledger, promise, pending)
    return ledger, pending


@given(
    st.integers(0, 2**32),
    st.sampled_from([0.5, 0.9, 0.99]),
    st.integers(1, 2),
    st.floats(1.0, 20.0),
    st.sets(st.integers(0, 11), min_size=1, max_size=3),
)
def test_what_is_given_back_is_what_would_have_been_promised(
    seed, gamma, n_costs, cap, missing
):
    """Beside a bystander who is told every cost at once and keeps the same ledger.

    With one cost missing the promises are equal in the end; with several, never above.
    """
    rng = np.random.default_rng(seed)
    caps = np.full(n_costs, cap)
    promise = caps * (0.3 + 0.7 * rng.random(n_costs))
    bystander = promise.copy()
    late = LateCosts(gamma)
    costs = {}
    for step in range(12):
        ledger, pending = step_of(rng, gamma, caps, promise)
        cost = np.ascontiguousarray(rng.choice([0.0, 0.3, 1.0], size=n_costs))
        after = int(rng.integers(2))
        charged = np.ones(n_costs) if step in missing else cost
        settle(ledger, pending, charged, after, promise)
        settle(ledger, pending, cost, after, bystander)
        late.carry_on(step + 1, promise, caps)
        if step in missing:
            late.expect(step, 0, pending.rule, promise, caps)
            costs[step] = cost
    for step in rng.permutation(sorted(missing)):
        _, raised = late.settle(int(step), 1.0 - costs[int(step)], promise)
        assert (raised >= promise).all()
        promise = np.minimum(raised, caps)
    assert (promise <= bystander * (1.0 + 1e-12)).all()
    if len(missing) == 1:
        np.testing.assert_allclose(promise, bystander, rtol=1e-11, atol=1e-12)
    assert len(late) == 0


def test_steps_that_were_not_accounted_for_leave_nothing_to_give_back():
    late = LateCosts(0.9)
    late.carry_on(1, np.ones(1), np.full(1, 5.0))
    late.expect(0, 0, np.array([2]), np.ones(1), np.full(1, 5.0))
    late.carry_on(3, np.ones(1), np.full(1, 5.0))
    _, raised = late.settle(0, np.ones(1), np.ones(1))
    assert raised == 1.0


def test_only_so_many_decisions_are_remembered():
    late = LateCosts(0.9)
    for number in range(1_500):
        late.expect(number, 0, np.array([2]), np.ones(1), np.full(1, 5.0))
    assert len(late) == 1_000
    assert 499 not in late
    assert 500 in late


# -- the agent's side ------------------------------------------------------------------


def live(agent, world, steps, *, seed=0, silent=()):
    """Live in a world; the costs of some decisions are not told, but returned."""
    env = world.make_env()
    state, _ = env.reset(seed=seed)
    kept = {}
    for t in range(steps):
        decision = agent.ask(state)
        state, reward, *_, info = env.step(decision.action)
        cost = info["cost"]
        if t in silent:
            kept[decision] = cost
            cost = None
        agent.tell(decision, reward=float(reward), cost=cost, next_state=int(state))
        assert (agent.safety.w[:, agent.state] <= agent.promise).all()
        assert (agent.promise <= agent.cap).all()
    return kept


@pytest.mark.parametrize("world", [workshop, two_budgets])
def test_costs_that_come_late_are_learned_and_never_lower_the_promise(world):
    agent = E4(world().knowledge, E4Settings(known_after=4, seed=1))
    kept = live(agent, world(), 120, silent=range(0, 120, 3))
    counted = agent.belief.evidence.cost_count.sum()
    for decision, cost in kept.items():
        before = agent.promise.copy()
        agent.tell_cost(decision, cost)
        assert (agent.promise >= before).all()
        assert (agent.promise <= agent.cap).all()
    assert agent.belief.evidence.cost_count.sum() == counted + len(kept)
    assert agent.belief.evidence.cost_count.sum() == agent.decisions
    with pytest.raises(InvalidInputError, match="decision: expected one whose cost is"):
        agent.tell_cost(decision, cost)


def test_a_late_cost_gives_back_what_was_charged_for_nothing():
    """In the second step of the workshop nothing was paid; the promise was not full."""
    world = workshop()
    agent = E4(world.knowledge, E4Settings(known_after=4, seed=1))
    kept = {}
    env = world.make_env()
    state, _ = env.reset(seed=4)
    while not kept:
        decision = agent.ask(state)
        state, reward, *_ = env.step(decision.action)
        agent.tell(decision, reward=float(reward), cost=None, next_state=int(state))
        number = agent.late._awaited[decision.id]
        if number.room[0] > 0.1:
            kept[decision] = agent.promise.copy()
    ((decision, before),) = kept.items()
    agent.tell_cost(decision.id, 0.0)
    assert agent.promise[0] > before[0]


def test_a_lost_outcome_is_charged_and_teaches_nothing():
    world = workshop()
    agent, other = (E4(world.knowledge, E4Settings(seed=1)) for _ in range(2))
    for one in (agent, other):
        live(one, world, 30)
    state = agent.state
    decision = agent.ask(state)
    assert agent.open_decision == decision
    before = agent.belief.state()
    agent.forget(decision, next_state=state)
    agent.forget(decision, next_state=state)
    assert agent.open_decision is None
    for name, array in agent.belief.state().items():
        np.testing.assert_array_equal(array, before[name])
    assert agent.decisions == 31
    other.tell(other.ask(state), reward=0.0, cost=1.0, next_state=state)
    np.testing.assert_array_equal(agent.promise, other.promise)
    with pytest.raises(
        InvalidInputError, match="answered already, with another outcome"
    ):
        agent.tell(decision, reward=0.0, cost=0.0, next_state=state)
    agent.tell_cost(decision, 0.0)
    assert agent.ask(state).id == 31


def test_what_is_awaited_survives_on_disk(tmp_path):
    world = workshop()
    agent = E4(world.knowledge, E4Settings(known_after=4, seed=1))
    kept = live(agent, world, 40, silent=range(30, 40))
    agent.save(tmp_path / "agent.npz")
    again = E4.load(tmp_path / "agent.npz")
    for decision, cost in kept.items():
        for one in (agent, again):
            one.tell_cost(decision, cost)
        np.testing.assert_array_equal(agent.promise, again.promise)
    assert agent.journal() == again.journal()


def test_a_lost_outcome_that_cannot_be_is_a_break():
    world = workshop()
    agent = E4(world.knowledge, E4Settings(seed=1))
    agent.forget(agent.ask(0), next_state=3)
    assert "expected one that is possible after state 0" in agent.breaks[0]


@pytest.mark.parametrize(
    ("cost", "error"), [(2.0, AssumptionError), ([0.0, 1.0], InvalidInputError)]
)
def test_a_late_cost_out_of_bounds_is_refused_and_still_awaited(cost, error):
    agent = E4(workshop().knowledge, E4Settings(seed=1))
    decision = agent.ask(0)
    agent.tell(decision, reward=0.0, cost=None, next_state=0)
    before = agent.journal()
    with pytest.raises(error, match="cost: expected"):
        agent.tell_cost(decision, cost)
    assert agent.journal() == before
