"""The fallback: a supersolution on the promisable states, and no state too many."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import escapade as ep
from escapade.testing import strategies
from escapade.uncertainty import L1Ball


def pair_costs(cmdp, sets, w, channel):
    """Q of every pair by NumPy: cost plus the worst expectation of a finite w."""
    worst = np.empty(cmdp.n_pairs)
    kernel = sets.worst_kernel(w, sense="max")
    for pair in range(cmdp.n_pairs):
        entries = slice(sets.row_ptr[pair], sets.row_ptr[pair + 1])
        worst[pair] = kernel[entries] @ w[sets.successor[entries]]
    return cmdp.cost[channel] + cmdp.discount * worst


def violation(cmdp, sets, found, w):
    """By how much ``w`` fails to be a supersolution of the fallback policy."""
    weights = found.policy.pair_weights(cmdp)
    worst = -np.inf
    for k in range(cmdp.n_costs):
        finite = np.where(found.promisable, w[k], 0.0)
        q = np.bincount(
            cmdp.pair_state,
            weights * pair_costs(cmdp, sets, finite, k),
            minlength=cmdp.n_states,
        )
        worst = max(worst, (q - finite)[found.promisable].max(initial=-np.inf))
    return worst


def leaves(cmdp, sets, found):
    """Whether the fallback may leave the promisable states."""
    weights = found.policy.pair_weights(cmdp)
    for pair in np.flatnonzero(weights > 0.0):
        entries = slice(sets.row_ptr[pair], sets.row_ptr[pair + 1])
        to = sets.successor[entries][sets.reachable[entries]]
        if found.promisable[cmdp.pair_state[pair]] and not found.promisable[to].all():
            return True
    return False


@settings(max_examples=40, deadline=None)
@given(
    strategies.cmdps(discounts=(0.0, 0.5, 0.9, 0.99)),
    st.sampled_from([0.0, 0.1, 0.5, 2.0]),
)
def test_the_cost_to_go_is_a_supersolution_within_the_budgets(cmdp, radius):
    sets = L1Ball(cmdp, radius=radius)
    found = ep.fallback(cmdp, sets)
    assert violation(cmdp, sets, found, found.cost_to_go) <= 0.0
    assert not leaves(cmdp, sets, found)
    inside = found.promisable
    assert (found.cost_to_go[:, inside] <= cmdp.budget[:, None]).all()
    assert np.isinf(found.cost_to_go[:, ~inside]).all()
    assert (found.removed_in_round[inside] == 0).all()
    assert (found.removed_in_round[~inside] > 0).all()
    for state in range(cmdp.n_states):
        assert ("cannot" in found.why(state)) == (not inside[state])
    # and it is no more than the policy really costs, to the precision
    if inside.all():
        real = ep.robust_evaluate(cmdp, found.policy, sets, precision=1e-9)
        scale = max(1.0, real.costs_upper.max())
        np.testing.assert_allclose(
            found.cost_to_go, real.costs_upper, atol=1e-8 * scale
        )


@settings(max_examples=40, deadline=None)
@given(
    strategies.cmdps(max_costs=1, discounts=(0.5, 0.9)),
    st.sampled_from([0.0, 0.3]),
)
def test_with_one_budget_no_promisable_state_is_missing(cmdp, radius):
    """The same fixed point by sweeps over dense arrays, in plain NumPy."""
    sets = L1Ball(cmdp, radius=radius)
    found = ep.fallback(cmdp, sets)
    budget = cmdp.budget[0]
    reach = np.zeros((cmdp.n_pairs, cmdp.n_states), dtype=bool)
    row = np.repeat(np.arange(cmdp.n_pairs), np.diff(sets.row_ptr))
    reach[row[sets.reachable], sets.successor[sets.reachable]] = True
    inside = np.ones(cmdp.n_states, dtype=bool)
    while True:
        ok = ~(reach & ~inside).any(axis=1)
        w = np.zeros(cmdp.n_states)
        for _ in range(400):
            q = np.where(ok, pair_costs(cmdp, sets, w, 0), 1e6)
            w = np.minimum.reduceat(q, cmdp.state_ptr[:-1])
            w[~inside] = 0.0
        assume((np.abs(w - budget) > 1e-6).all() or budget == 0.0)
        keep = inside & (w <= budget + 1e-9)
        if np.array_equal(keep, inside):
            break
        inside = keep
    np.testing.assert_array_equal(found.promisable, inside)
    np.testing.assert_allclose(found.cost_to_go[0, inside], w[inside], atol=1e-6)


@settings(max_examples=20, deadline=None)
@given(strategies.cmdps(discounts=(0.5, 0.9), feasible=True), st.integers(0, 10**6))
def test_a_planted_subsolution_is_caught(cmdp, seed):
    """Lower the cost-to-go anywhere by more than rounding, and the check fails."""
    sets = L1Ball(cmdp, radius=0.2)
    found = ep.fallback(cmdp, sets, budget=cmdp.cost_max * 1e3, precision=1e-11)
    rng = np.random.default_rng(seed)
    k, s = rng.integers(cmdp.n_costs), rng.integers(cmdp.n_states)
    w = found.cost_to_go.copy()
    assume(w[k, s] > 1e-3)
    w[k, s] *= 1.0 - 1e-4
    # where the policy waits in s both sides fall, but the right one only by γ of it
    assert violation(cmdp, sets, found, w) > 1e-9
    assert violation(cmdp, sets, found, found.cost_to_go) <= 0.0


def closure(danger: float) -> ep.CMDP:
    """`gamble` costs nothing and reaches, with 1 %, a state with w = 20 > d = 10."""
    P = np.zeros((3, 2, 3))
    P[0, 0] = [0.0, 1.0 - danger, danger]
    P[0, 1] = [0.0, 1.0, 0.0]
    P[1, :, 1] = 1.0
    P[2, :, 2] = 1.0
    cost = [[0.0, 5.0], [0.0, 0.0], [2.0, 2.0]]
    return ep.CMDP(P, np.zeros((3, 2)), cost, discount=0.9, budget=10.0)


def test_the_closure_rules_out_cheap_actions_that_may_break_a_promise():
    cmdp = closure(0.01)
    found = ep.fallback(cmdp, L1Ball(cmdp, radius=0.0))
    assert found.unrestricted_cost[0, 0] == pytest.approx(0.18, abs=1e-6)
    assert found.promisable.tolist() == [True, True, False]
    assert found.cost_to_go[0, :2] == pytest.approx([5.0, 0.0], abs=1e-7)
    assert found.policy.actions[0] == 1
    assert found.allowed.tolist()[:2] == [False, True]
    assert "over the budget 10" in found.why(2)
    assert found.covers(cmdp.start)
    assert "can be promised from the start; 2 of 3" in found.message


def test_a_state_that_cannot_avoid_the_others_falls_out_later():
    cmdp = closure(0.01).replace(cost=[0.0, 11.0, 0.0, 0.0, 2.0, 2.0], cost_max=11.0)
    found = ep.fallback(cmdp, L1Ball(cmdp, radius=0.0))
    assert found.removed_in_round.tolist() == [2, 0, 1]
    assert "each action either may enter" in found.why(0)
    assert not found.covers(cmdp.start)
    assert "cannot be promised from 1 of the start" in found.message


def test_when_nothing_can_be_promised_every_state_is_out():
    cmdp = closure(0.01).replace(cost=np.full(6, 2.0))
    found = ep.fallback(cmdp, L1Ball(cmdp, radius=0.0))
    assert not found.promisable.any()
    assert not found.allowed.any()
    assert np.isinf(found.cost_to_go).all()
    assert found.removed_in_round.tolist() == [1, 1, 1]


def test_a_budget_of_nothing_can_be_promised_where_nothing_is_spent():
    cmdp = closure(0.0).replace(budget=0.0)
    found = ep.fallback(cmdp, L1Ball(cmdp, radius=0.5))
    assert found.promisable.tolist() == [True, True, False]
    assert found.cost_to_go[0, :2].tolist() == [0.0, 0.0]
    assert found.policy.actions[0] == 0


def test_several_budgets_share_one_policy_and_are_bounded_apart():
    cmdp = closure(0.0).replace(
        cost=[[0.0, 5.0, 0, 0, 2.0, 2.0], [4.0, 1.0, 0, 0, 0, 0]],
        cost_max=[5.0, 5.0],
        budget=[10.0, 2.0],
    )
    found = ep.fallback(cmdp, L1Ball(cmdp, radius=0.0))
    assert found.policy.actions[0] == 1  # 5/10 + 1/2 against 0/10 + 4/2
    assert found.cost_to_go[:, 0] == pytest.approx([5.0, 1.0], abs=1e-7)
    assert "channel 0" in found.why(2)
    free = ep.fallback(cmdp, L1Ball(cmdp, radius=0.0), budget=[0.0, 4.5])
    assert free.policy.actions[0] == 0  # a budget of 0 outweighs everything
    assert free.cost_to_go[:, 0] == pytest.approx([0.0, 4.0], abs=1e-7)


@settings(max_examples=20, deadline=None)
@given(strategies.cmdps(discounts=(0.5, 0.9, 0.99)), st.sampled_from([0.5, 1.0]))
def test_a_warm_start_changes_the_work_and_not_the_answer(cmdp, factor):
    sets = L1Ball(cmdp, radius=0.4)
    before = ep.fallback(cmdp, sets)
    smaller = sets.shrink(factor)
    cold = ep.fallback(cmdp, smaller)
    warm = ep.fallback(cmdp, smaller, warm=before)
    assert violation(cmdp, smaller, warm, warm.cost_to_go) <= 0.0
    if cmdp.n_costs == 1:  # with several, ties may be broken otherwise
        close = np.abs(cold.unrestricted_cost[0] - cmdp.budget[0]) < 1e-6
        assume(not close.any())
        np.testing.assert_array_equal(warm.promisable, cold.promisable)
        inside = cold.promisable
        np.testing.assert_allclose(
            warm.cost_to_go[0, inside], cold.cost_to_go[0, inside], rtol=1e-7, atol=1e-7
        )
    # the old policy, held still, is a fallback of the smaller set
    held = ep.fallback(cmdp, smaller, policy=before.policy, warm=before)
    assert violation(cmdp, smaller, held, held.cost_to_go) <= 0.0
    assert held.promisable[before.promisable].all()
    slack = 1e-8 * max(1.0, float(before.unrestricted_cost.max()))
    inside = before.promisable
    assert (held.cost_to_go <= before.cost_to_go + slack)[:, inside].all()


def vents(budget) -> ep.CMDP:
    """Damp air: `vent` costs little and dries for ever, `heat` costs much.

    States: dry for good, damp, wet, too wet, wet and hot (where nothing can heat).
    Channel 0 is what actions cost, channel 1 the time that is too wet.  Of the wet
    states the first two rounds see only that their ways out lead to others like them.
    """
    P = np.zeros((5, 2, 5))
    P[0, :, 0] = 1.0
    P[1, 0] = [0.0, 0.7, 0.3, 0.0, 0.0]  # idle
    P[1, 1] = [1.0, 0.0, 0.0, 0.0, 0.0]  # vent
    P[2, 0] = [0.0, 0.0, 0.3, 0.0, 0.7]  # heat
    P[2, 1] = [0.9, 0.0, 0.0, 0.1, 0.0]  # vent, which may be too late
    P[3, :, 0] = 1.0
    P[4] = [0.9, 0.0, 0.0, 0.1, 0.0]  # vent
    cost = np.zeros((2, 5, 2))
    cost[0] = [[0.0, 0.0], [0.0, 0.1], [1.0, 0.1], [0.0, 0.0], [0.1, 0.1]]
    cost[1, 3] = 1.0
    return ep.CMDP(
        P,
        np.zeros((5, 2)),
        cost,
        discount=0.95,
        budget=budget,
        cost_max=[1.0, 1.0],
        start=1,
    )


@pytest.mark.parametrize("budget", [[2.3, 0.95], [1, 0.5], [0.2, 0.1], [0.11, 0.01]])
def test_what_keeps_small_budgets_keeps_larger_ones(budget):
    """States that must be left out do not spoil the bounds of those that stay."""
    cmdp = vents(budget)
    found = ep.fallback(cmdp, L1Ball(cmdp, radius=0.0))
    assert found.covers(cmdp.start)
    assert found.promisable.tolist() == [True, True, False, False, False]
    assert found.cost_to_go[:, 1] == pytest.approx([0.1, 0.0], abs=1e-9)
    alone = ep.fallback(
        cmdp, L1Ball(cmdp, radius=0.0), policy=found.policy, budget=budget
    )
    assert alone.promisable.tolist() == [True, True, False, False, False]


@pytest.mark.parametrize("budget", [0.2, 0.5, 0.9])
def test_states_left_out_spoil_nothing_with_one_budget_either(budget):
    both = vents([1.0, 1.0])
    cmdp = ep.CMDP(
        both.transition_matrix.toarray().reshape(5, 2, 5),
        np.zeros((5, 2)),
        both.cost.sum(axis=0).reshape(5, 2),
        discount=0.95,
        budget=budget,
        start=1,
    )
    found = ep.fallback(cmdp, L1Ball(cmdp, radius=0.0))
    assert found.promisable.tolist() == [True, True, False, False, False]
    assert found.cost_to_go[0, 1] == pytest.approx(0.1, abs=1e-9)


def garnet_of(n_costs: int, seed: int) -> tuple[ep.CMDP, np.random.Generator]:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 12))
    P = np.zeros((n, 3, n))
    for s, a in np.ndindex(n, 3):
        P[s, a, rng.choice(n, 2, replace=False)] = rng.dirichlet([1.0, 1.0])
    cost = rng.random((n_costs, n, 3)) * (rng.random((n_costs, n, 3)) < 0.4)
    cmdp = ep.CMDP(
        P,
        np.zeros((n, 3)),
        cost,
        discount=0.9,
        budget=np.ones(n_costs),
        cost_max=np.ones(n_costs),
    )
    return cmdp, rng


@pytest.mark.parametrize("n_costs", [1, 2])
def test_larger_budgets_are_promisable_where_smaller_ones_are(n_costs):
    kept = 0
    for seed in range(60):
        cmdp, rng = garnet_of(n_costs, seed)
        sets = L1Ball(cmdp, radius=float(rng.choice([0.0, 0.2])))
        small = 10.0 ** rng.uniform(-0.5, 0.8, n_costs)
        large = small * 10.0 ** rng.uniform(0.0, 0.7, n_costs)
        found = ep.fallback(cmdp, sets, budget=small)
        more = ep.fallback(cmdp, sets, budget=large)
        for answer, budget in ((found, small), (more, large)):
            inside = answer.promisable
            assert violation(cmdp, sets, answer, answer.cost_to_go) <= 0.0
            assert not leaves(cmdp, sets, answer)
            assert (answer.cost_to_go[:, inside] <= budget[:, np.newaxis]).all()
            np.testing.assert_array_equal(answer.budget, budget)
        if found.covers(cmdp.start):
            kept += 1
            assert more.covers(cmdp.start), seed
    assert kept >= 5


def test_another_fallback_is_found_where_the_first_one_fails():
    """The least sum of scaled costs pays more in one channel than can be spared."""
    P = np.zeros((2, 2, 2))
    P[:, :, 1] = 1.0
    cost = np.zeros((2, 2, 2))
    cost[:, 0] = [[0.0, 9.0], [2.6, 2.4]]
    cmdp = ep.CMDP(
        P,
        np.zeros((2, 2)),
        cost,
        discount=0.5,
        budget=[10.0, 2.5],
        cost_max=[10.0, 10.0],
    )
    found = ep.fallback(cmdp, L1Ball(cmdp, radius=0.0))
    assert found.promisable.all()  # 0/10 + 2.6/2.5 is less than 9/10 + 2.4/2.5
    assert found.policy.actions[0] == 1
    assert found.cost_to_go[:, 0] == pytest.approx([9.0, 2.4], abs=1e-7)
    none = ep.fallback(cmdp, L1Ball(cmdp, radius=0.0), budget=[8.0, 2.5])
    assert not none.promisable[0]
    assert "any fallback that was tried" in none.why(0)


def test_a_held_policy_may_be_stochastic_and_keeps_fewer_states():
    cmdp = closure(0.01)
    sets = L1Ball(cmdp, radius=0.0)
    half = ep.Policy([[0.5, 0.5], [1.0, 0.0], [1.0, 0.0]])
    found = ep.fallback(cmdp, sets, policy=half)
    assert found.promisable.tolist() == [False, True, False]
    safe = ep.fallback(cmdp, sets, policy=ep.Policy([[0.0, 1.0], [0.5, 0.5], [1, 0]]))
    assert safe.promisable.tolist() == [True, True, False]
    assert safe.policy.probabilities[1].tolist() == [0.5, 0.5]


def test_bounds_on_costs_replace_the_costs():
    cmdp = closure(0.0)
    sets = L1Ball(cmdp, radius=0.0)
    dear = np.where(cmdp.cost > 0, cmdp.cost, 1.0)
    found = ep.fallback(cmdp, sets, cost=dear, budget=100.0)
    assert found.cost_to_go[0] == pytest.approx([10.0, 10.0, 20.0], abs=1e-6)
    flat = ep.fallback(cmdp, sets, cost=dear[0], budget=100.0)
    np.testing.assert_array_equal(flat.cost_to_go, found.cost_to_go)


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"cost": np.zeros(3)}, "cost: expected shape"),
        ({"cost": np.full(6, -1.0)}, "cost: expected finite numbers of at least 0"),
        ({"budget": [1.0, 2.0]}, "budget: expected 1 numbers, found 2"),
        ({"budget": -1.0}, "budget: expected numbers of at least 0"),
        ({"precision": 0.0}, "precision"),
        ({"max_iterations": 0}, "max_iterations"),
    ],
)
def test_bad_input_is_refused(keywords, message):
    cmdp = closure(0.0)
    with pytest.raises(ep.errors.InvalidInputError, match=message):
        ep.fallback(cmdp, L1Ball(cmdp, radius=0.0), **keywords)


def test_an_answer_for_another_problem_is_no_warm_start():
    cmdp = closure(0.0)
    small = ep.CMDP([[[1.0]]], [[1.0]], [[1.0]], discount=0.5, budget=3.0)
    other = ep.fallback(small, L1Ball(small, radius=0.0))
    with pytest.raises(ep.errors.InvalidInputError, match="warm"):
        ep.fallback(cmdp, L1Ball(cmdp, radius=0.0), warm=other)
    with pytest.raises(ep.errors.InvalidInputError, match="state"):
        other.why(1)


def test_stopping_early_gives_a_supersolution_all_the_same():
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(6), (6, 2))
    cmdp = ep.CMDP(P, np.zeros((6, 2)), rng.random((6, 2)), discount=0.95, budget=50.0)
    sets = L1Ball(cmdp, radius=0.3)
    rough = ep.fallback(cmdp, sets, max_iterations=2)
    assert not rough.converged
    assert "some may be missing" in rough.message
    assert violation(cmdp, sets, rough, rough.cost_to_go) <= 0.0
