"""The fallback through a lifetime: affordable at every moment, and only better.

In each test the truth is in the belief with probability at least 1 − 10⁻⁴.
"""

from __future__ import annotations

import numpy as np
import pytest
from tests.simulation.worlds import LIVES, two_budgets, workshop

from escapade.agent import E4, E4Settings
from escapade.agent.safety import Safety
from escapade.environments import garnet
from escapade.knowledge.belief import Belief
from escapade.model import Policy, evaluate
from escapade.simulation import simulate


def check_safety(agent: E4, truth) -> None:
    """Hold the fallback to what makes it one."""
    safety, belief = agent.safety, agent.belief
    knowledge = agent.knowledge
    inside = safety.promisable
    assert (np.isfinite(safety.w).all(axis=0) == inside).all()
    assert (safety.w[:, inside] <= safety.cap[:, np.newaxis]).all()
    # the closure: what may be played stays where promises can be kept
    stray = belief.reachable & ~inside[knowledge.successor]
    out = np.add.reduceat(stray, knowledge.row_ptr[:-1], dtype=np.int64) > 0
    assert (safety.allowed == ~out).all()
    states = np.flatnonzero(inside)
    mine = safety.pairs[states]
    assert (knowledge.pairs.pair_state[mine] == states).all()
    assert safety.allowed[mine].all()
    # a supersolution, in doubles, so the fallback always passes the ledger's check
    assert (safety.q[:, mine] <= safety.w[:, states]).all()
    actions = knowledge.pairs.pair_action[safety.pairs]
    true_cost = evaluate(truth, Policy.deterministic(actions, truth.n_actions)).costs
    assert (true_cost[:, inside] <= safety.w[:, inside] + 1e-9).all()
    for k, w in enumerate(safety.w):
        value = np.where(inside, w, 0.0)
        rows = truth.transition_matrix @ value
        expected = truth.cost[k] + truth.discount * rows
        numbers = [truth.pair(int(s), int(actions[s])) for s in states]
        assert (expected[numbers] <= w[states] + 1e-9).all()
        assert (safety.ahead[k, mine] <= safety.reach[k, mine] + 1e-12).all()


@pytest.mark.statistical
@pytest.mark.parametrize("life", [name for name in LIVES if name != "gamble"])
def test_the_fallback_is_a_supersolution_at_every_plan(life):
    build, chosen, steps = LIVES[life]
    world = build()
    agent, env = E4(world.knowledge, E4Settings(**chosen)), world.make_env()
    before = agent.safety.w.copy()
    for _ in range(6):
        check_safety(agent, world.cmdp)
        assert (agent.safety.w <= before).all() or len(before) > 1
        before = agent.safety.w.copy()
        simulate(agent, env, steps // 6)


@pytest.mark.parametrize("life", LIVES)
def test_what_did_not_change_need_not_be_looked_at_again(life):
    """What was kept up plan by plan is, to the bit, what all pairs would give anew."""
    build, chosen, steps = LIVES[life]
    world = build()
    agent = E4(world.knowledge, E4Settings(**chosen))
    simulate(agent, world.make_env(), steps // 4)
    agent.replan()
    kept = agent.safety.state()
    agent.safety._evaluate(agent.belief)
    for name, array in agent.safety.state().items():
        np.testing.assert_array_equal(array, kept[name], err_msg=name)


def test_states_outside_join_when_something_safe_is_found_there():
    """Two states of this line can be promised at birth only once they were seen."""
    world = workshop()
    support = world.cmdp.transition_matrix.toarray().reshape(4, 3, 4) > 0.0
    support[2:] = True
    rows = np.zeros((12, 4))
    rows[0, 0] = rows[3, 1] = 1.0  # to rest in the first two cells never fails
    free = np.zeros((4, 3), dtype=np.bool_)
    free[:2] = True
    knowledge = world.knowledge.replace(support=support, known_rows=rows, free=free)
    agent, env = E4(knowledge, E4Settings(known_after=5)), world.make_env()
    outside = ~agent.safety.promisable
    assert outside.tolist() == [False, False, True, True]  # nobody knows a way back
    assert not agent.safety.allowed[agent.knowledge.pair(1, 2)]
    with pytest.raises(RuntimeError, match="state: expected one from which the budget"):
        agent.ask(3)
    log = simulate(E4(world.knowledge, E4Settings(known_after=60)), env, 3_000)
    for t in range(len(log)):
        pair = agent.knowledge.pair(int(log.states[t]), int(log.actions[t]))
        agent.belief.evidence.record(
            pair, int(log.states[t + 1]), float(log.rewards[t]), log.costs[t]
        )
        agent.changed[pair] = True
    agent.state = 0
    agent.replan()
    assert agent.safety.promisable.all()
    check_safety(agent, world.cmdp)


@pytest.mark.parametrize("n_costs", [1, 2])
def test_more_evidence_lowers_what_is_reserved(n_costs):
    world = garnet(8, 3, 2, n_costs=n_costs, slack=0.9)
    agent, env = E4(world.knowledge, E4Settings(known_after=20)), world.make_env()
    at_birth = agent.safety.w.copy()
    simulate(agent, env, 3_000)
    inside = np.isfinite(at_birth).all(axis=0)
    assert (agent.safety.w[:, inside] <= at_birth[:, inside]).all()
    check_safety(agent, world.cmdp)


def test_with_two_budgets_the_same_policy_is_kept_and_bounded_again():
    world = two_budgets()
    agent = E4(world.knowledge, E4Settings(known_after=5))
    pairs = agent.safety.pairs.copy()
    simulate(agent, world.make_env(), 300)
    np.testing.assert_array_equal(agent.safety.pairs, pairs)
    assert (agent.safety.w == 0.0).all()  # to rest is free


def test_what_stands_at_birth_is_what_planning_finds():
    belief = Belief(workshop().knowledge, delta=0.01)
    cap = np.array([3.9])
    safety = Safety(belief, cap, precision=1e-9)
    found = safety.at_birth
    assert found.promisable.all()
    np.testing.assert_allclose(safety.w, found.cost_to_go, rtol=1e-8, atol=1e-8)
    again = Safety(belief, cap, precision=1e-9)
    again.restore(safety.state())
    for name, array in safety.state().items():
        np.testing.assert_array_equal(array, again.state()[name], err_msg=name)
