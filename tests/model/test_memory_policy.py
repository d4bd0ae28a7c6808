"""Policies with a memory: values on their nodes, and lives lived by them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from escapade.errors import AssumptionError, InvalidInputError
from escapade.model import CMDP, MemoryPolicy, Policy, Sampler, evaluate, occupancy
from escapade.testing import cmdps, policies


def in_turn(cmdp, first, second, stay=0.0):
    """Begin with ``first``; after each step go on to ``second``, or back.

    Node ``s`` plays ``first``, node ``S + s`` plays ``second``.  From the first phase
    the second is entered with probability ``1 − stay``, and never left again.
    """
    n = cmdp.n_states
    node_state = np.tile(np.arange(n), 2)
    choice = Policy(np.vstack([first.probabilities, second.probabilities]))
    node, action = np.nonzero(choice.probabilities)
    pairs = np.array(
        [
            cmdp.pair(int(node_state[m]), int(a))
            for m, a in zip(node, action, strict=True)
        ]
    )
    rows = cmdp.transition_matrix[pairs]
    entry_node = np.repeat(node, np.diff(rows.indptr))
    split = np.zeros((rows.nnz, 2 * n))
    entries = np.arange(rows.nnz)
    early = entry_node < n
    split[entries[early], rows.indices[early]] = stay
    split[entries[early], n + rows.indices[early]] = 1.0 - stay
    split[entries[~early], n + rows.indices[~early]] = 1.0
    return MemoryPolicy(
        n_states=n,
        node_state=node_state,
        choice=choice,
        initial=sp.csr_array(np.hstack([np.eye(n), np.zeros((n, n))])),
        pairs=pairs,
        row_ptr=rows.indptr.astype(np.int64),
        successor=rows.indices.astype(np.int64),
        split=sp.csr_array(split),
        memory=np.repeat([[0.0], [1.0]], n, axis=0),
        memory_name="the phase",
    )


@st.composite
def cases(draw):
    cmdp = draw(cmdps())
    return cmdp, draw(policies(cmdp)), draw(policies(cmdp))


@settings(max_examples=25)
@given(cases(), st.sampled_from([0.0, 0.5]))
def test_the_value_is_that_of_one_policy_and_then_the_other(case, stay):
    """``V_1 = r_1 + γ P_1 (stay V_1 + (1 − stay) V_2)``, the same for costs."""
    cmdp, first, second = case
    policy = in_turn(cmdp, first, second, stay)
    result = evaluate(cmdp, policy)
    weights = first.pair_weights(cmdp)
    starts = cmdp.state_ptr[:-1]
    matrix = np.add.reduceat(
        cmdp.transition_matrix.toarray() * weights[:, np.newaxis], starts, axis=0
    )
    later = evaluate(cmdp, second)
    gains = np.vstack([cmdp.reward, cmdp.cost]) * weights
    gains = np.add.reduceat(gains, starts, axis=1)
    after = np.vstack([later.value, later.costs])
    gamma = cmdp.discount
    right = gains.T + gamma * (1.0 - stay) * matrix @ after.T
    expected = np.linalg.solve(np.eye(cmdp.n_states) - gamma * stay * matrix, right).T
    found = np.vstack([result.value, result.costs])
    np.testing.assert_allclose(found, expected, atol=1e-7)
    assert result.start_value == pytest.approx(cmdp.start @ expected[0], abs=1e-7)


@settings(max_examples=25)
@given(cases())
def test_a_memory_that_changes_nothing_changes_nothing(case):
    cmdp, first, _ = case
    with_memory = evaluate(cmdp, in_turn(cmdp, first, first, 0.5))
    without = evaluate(cmdp, first)
    apart = with_memory.error + without.error
    np.testing.assert_allclose(with_memory.value, without.value, atol=apart, rtol=0)
    np.testing.assert_allclose(with_memory.costs, without.costs, atol=apart, rtol=0)


@settings(max_examples=25)
@given(cases())
def test_its_visits_earn_and_cost_what_it_does(case):
    cmdp, first, second = case
    policy = in_turn(cmdp, first, second, 0.25)
    visits = occupancy(cmdp, policy)
    result = evaluate(cmdp, policy)
    total = 1.0 / (1.0 - cmdp.discount)
    assert visits.shape == (cmdp.n_pairs,)
    assert visits.sum() == pytest.approx(total, rel=1e-7)
    assert visits @ cmdp.reward == pytest.approx(result.start_value, abs=1e-6 * total)
    np.testing.assert_allclose(
        cmdp.cost @ visits, result.start_costs, atol=1e-6 * total
    )


@settings(max_examples=25)
@given(cases(), st.integers(0, 6))
def test_finite_horizons_too(case, horizon):
    cmdp, first, second = case
    result = evaluate(cmdp, in_turn(cmdp, first, second), horizon=horizon)
    if horizon == 0:
        assert not result.value.any()
        return
    later = evaluate(cmdp, second, horizon=horizon - 1)
    weights = first.pair_weights(cmdp)
    pairs = cmdp.reward + cmdp.discount * (cmdp.transition_matrix @ later.value)
    expected = np.add.reduceat(pairs * weights, cmdp.state_ptr[:-1])
    np.testing.assert_allclose(result.value, expected, atol=1e-10)


def two_rooms(**changes):
    given = {
        "P": [[[0.5, 0.5], [1.0, 0.0]], [[0.5, 0.5], [0.0, 1.0]]],
        "R": [[1.0, 0.0], [0.0, 0.5]],
        "C": [[1.0, 0.0], [0.0, 0.0]],
        **changes,
    }
    return CMDP(
        given.pop("P"), given.pop("R"), given.pop("C"), discount=0.9, budget=1, **given
    )


FIRST = Policy([[0.5, 0.5], [1.0, 0.0]])
THEN = Policy([[0.0, 1.0], [0.25, 0.75]])


@pytest.mark.statistical
def test_lives_lived_by_it_earn_its_value():
    """1,000 lives: Hoeffding puts their mean within 0.15 of the value, as a life earns
    between 0 and 2, but for probability 2 exp(−2 · 1000 · 0.15² / 2²) = 2.7e-5."""
    cmdp = two_rooms().replace(discount=0.5)
    policy = in_turn(cmdp, FIRST, THEN, 0.5)
    sampler = Sampler(cmdp)
    rng = np.random.default_rng(7)
    total = 0.0
    for _ in range(1000):
        state = 0
        run = policy.run(state, rng)
        for step in range(12):
            action = run.act()
            assert run.act() == action  # asked again, it does not change its mind
            total += 0.5**step * cmdp.reward[cmdp.pair(state, action)]
            state = sampler.next_state(state, action, rng)
            run.observe(state)
            assert policy.node_state[run.node] == state
    expected = evaluate(cmdp, policy).value[0]
    assert abs(total / 1000 - expected) < 0.15 + 2 * 0.5**12


def test_a_run_remembers_its_phase():
    policy = in_turn(two_rooms(), FIRST, THEN)
    run = policy.run(1, np.random.default_rng(0))
    assert run.memory.tolist() == [0.0]
    run.act()
    run.observe(0)
    assert run.memory.tolist() == [1.0]
    assert run.act() == 1
    assert repr(policy) == "MemoryPolicy(2 states, 4 nodes that remember the phase)"


def test_same_seed_same_life():
    policy = in_turn(two_rooms(), FIRST, THEN, 0.5)

    def life(seed):
        run = policy.run(0, np.random.default_rng(seed))
        acts = []
        for _ in range(30):
            acts.append(run.act())
            run.observe(0)
        return acts

    assert life(4) == life(4)
    assert any(life(4) != life(seed) for seed in range(5, 9))


def test_a_surprise_is_an_assumption_that_broke():
    policy = in_turn(two_rooms(), FIRST, THEN)
    run = policy.run(0, np.random.default_rng(0))
    while run.act() != 1:  # action 1 stays in state 0
        run = policy.run(0, np.random.default_rng(run.act() + 1))
    with pytest.raises(
        AssumptionError, match="found state 1 after action 1 in state 0"
    ):
        run.observe(1)
    wider = two_rooms(P=[[[0.5, 0.5], [0.5, 0.5]], [[0.5, 0.5], [0.0, 1.0]]])
    with pytest.raises(AssumptionError, match="found state 1 after state 0, action 1"):
        evaluate(wider, policy)


def test_a_model_with_fewer_successors_is_no_surprise():
    policy = in_turn(two_rooms(), FIRST, THEN)
    narrower = two_rooms(P=[[[1.0, 0.0], [1.0, 0.0]], [[0.5, 0.5], [0.0, 1.0]]])
    result = evaluate(narrower, policy)
    again = evaluate(narrower, in_turn(narrower, FIRST, THEN))
    np.testing.assert_allclose(result.value, again.value, atol=1e-9)


def spoilt(**changes):
    return replace(in_turn(two_rooms(), FIRST, THEN), **changes)


GOOD = in_turn(two_rooms(), FIRST, THEN)
SHORT = sp.csr_array(np.array(GOOD.split.toarray() * 0.5))
CROSSED = sp.csr_array(GOOD.initial.toarray()[::-1])

REFUSALS = {
    "choice": (lambda: spoilt(choice=FIRST), "choice: expected 4 nodes, found 2"),
    "pairs": (
        lambda: spoilt(pairs=GOOD.pairs[:-1]),
        "pairs: expected 6, one for each action of positive probability in a node, "
        "found 5",
    ),
    "pointers": (
        lambda: spoilt(row_ptr=np.delete(GOOD.row_ptr, 1)),
        "row_ptr: expected 7 pointers, found 6",
    ),
    "last pointer": (
        lambda: spoilt(row_ptr=GOOD.row_ptr[:-1]),
        "row_ptr: expected pointers that begin at 0 and end at 9, found [0] .. [8]",
    ),
    "shape of initial": (
        lambda: spoilt(initial=sp.csr_array(np.eye(2))),
        "initial: expected shape (2, 4), found shape (2, 2)",
    ),
    "sums of split": (
        lambda: spoilt(split=SHORT),
        "split: expected rows that sum to 1, found a sum of 0.5 at row 0",
    ),
    "nodes of other states": (
        lambda: spoilt(initial=CROSSED),
        "initial: expected nodes of the state that is entered, found others at row 0",
    ),
    "a state that is not": (
        lambda: GOOD.run(2, np.random.default_rng(0)),
        "state: expected a state in 0..1, found 2",
    ),
    "an observation out of turn": (
        lambda: GOOD.run(0, np.random.default_rng(0)).observe(0),
        "run: expected a call of act first, found an observation",
    ),
    "another problem": (
        lambda: evaluate(
            CMDP(np.ones((1, 2, 1)), [[0, 0]], [[0, 0]], discount=0.5, budget=1), GOOD
        ),
        "policy: expected a policy for the problem's 1 states, 2 actions and 2 pairs, "
        "found one with nodes for 2 states and 2 actions",
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_what_does_not_fit_together_is_refused(name):
    act, message = REFUSALS[name]
    with pytest.raises(InvalidInputError) as caught:
        act()
    assert str(caught.value) == message
