"""Problems restricted to some states: what they keep, and what leaving costs."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from escapade.errors import InvalidInputError
from escapade.model import (
    CMDP,
    Policy,
    escape_cmdp,
    evaluate,
    exploration_cmdp,
    known_state_cmdp,
    safe_return_cmdp,
)
from escapade.testing import cmdps, policies

INDUCE = {
    "known-state": known_state_cmdp,
    "exploration": exploration_cmdp,
    "escape": escape_cmdp,
    "safe return": safe_return_cmdp,
}


@st.composite
def restrictions(draw):
    """A problem, a policy of it, and some of its states as a mask."""
    cmdp = draw(cmdps(max_states=5))
    inside = np.array(
        draw(st.lists(st.booleans(), min_size=cmdp.n_states, max_size=cmdp.n_states))
    )
    inside[draw(st.integers(0, cmdp.n_states - 1))] = True
    return cmdp, draw(policies(cmdp)), inside


def chain(cmdp, policy):
    """``P_π``, ``r_π`` and ``c_π`` as dense arrays."""
    weights = policy.pair_weights(cmdp)
    first = cmdp.state_ptr[:-1]
    rows = cmdp.transition_matrix.toarray() * weights[:, np.newaxis]
    return (
        np.add.reduceat(rows, first, axis=0),
        np.add.reduceat(cmdp.reward * weights, first),
        np.add.reduceat(cmdp.cost * weights, first, axis=1),
    )


def until_exit(cmdp, policy, inside, gain, at_exit):
    """Sum ``gain`` inside and ``at_exit`` once on leaving, by a dense solve."""
    matrix, _, _ = chain(cmdp, policy)
    within = np.flatnonzero(inside)
    outside = np.flatnonzero(~inside)
    gamma = cmdp.discount
    right = gain[within] + gamma * matrix[np.ix_(within, outside)] @ at_exit[outside]
    system = np.eye(within.size) - gamma * matrix[np.ix_(within, within)]
    return np.linalg.solve(system, right)


@settings(max_examples=25)
@given(restrictions(), st.data())
def test_inside_nothing_changes_and_leaving_costs_what_it_is_said_to(case, data):
    cmdp, policy, inside = case
    charge = np.array(
        data.draw(
            st.lists(
                st.sampled_from([0.0, 0.5, 7.0]),
                min_size=cmdp.n_states,
                max_size=cmdp.n_states,
            )
        )
    )
    charges = np.tile(charge, (cmdp.n_costs, 1))
    part = known_state_cmdp(cmdp, inside, terminal_cost=charges)
    result = evaluate(part.cmdp, part.restricted(policy))
    _, reward, cost = chain(cmdp, policy)
    within = part.inside
    np.testing.assert_array_equal(within, np.flatnonzero(inside))
    np.testing.assert_allclose(
        part.spread(result.value)[within],
        until_exit(cmdp, policy, inside, reward, np.zeros(cmdp.n_states)),
        atol=1e-7,
    )
    for k in range(cmdp.n_costs):
        np.testing.assert_allclose(
            part.spread(result.costs)[k, within],
            until_exit(cmdp, policy, inside, cost[k], charge),
            atol=1e-7,
        )


@settings(max_examples=25)
@given(restrictions(), st.integers(0, 8))
def test_the_induced_underestimation_lemma(case, horizon):
    """The paper's ``M_K`` never promises more value, nor more cost, than ``M``."""
    cmdp, policy, inside = case
    part = known_state_cmdp(cmdp, inside, paper=True)
    for steps in (None, horizon):
        whole = evaluate(cmdp, policy, horizon=steps)
        under = evaluate(part.cmdp, part.restricted(policy), horizon=steps)
        rounding = whole.error + under.error
        count = part.inside.size
        assert (under.value[:count] <= whole.value[inside] + rounding).all()
        assert (under.costs[:, :count] <= whole.costs[:, inside] + rounding).all()


@settings(max_examples=25)
@given(restrictions())
def test_charging_the_cost_to_go_gives_the_cost_in_the_whole_problem(case):
    """The correction E7: with ``w`` the true cost-to-go, ``C(s | M_K)`` is ``C(s)``."""
    cmdp, policy, inside = case
    whole = evaluate(cmdp, policy)
    part = known_state_cmdp(cmdp, inside, terminal_cost=whole.costs)
    result = evaluate(part.cmdp, part.restricted(policy))
    np.testing.assert_allclose(
        result.costs[:, : part.inside.size], whole.costs[:, inside], atol=1e-7
    )


@settings(max_examples=25)
@given(restrictions(), st.data())
def test_a_bound_on_the_cost_to_go_bounds_the_cost_in_the_whole_problem(case, data):
    """Inside by one policy, by another ever after: its ``w`` keeps the promise."""
    cmdp, policy, inside = case
    after = data.draw(policies(cmdp))
    afterwards = evaluate(cmdp, after)
    upper = afterwards.costs + afterwards.error
    part = known_state_cmdp(cmdp, inside, terminal_cost=upper)
    result = evaluate(part.cmdp, part.restricted(policy))
    _, _, cost = chain(cmdp, policy)
    for k in range(cmdp.n_costs):
        lived = until_exit(cmdp, policy, inside, cost[k], afterwards.costs[k])
        found = result.costs[k, : part.inside.size]
        assert (lived <= found + result.error + 1e-9).all()


def test_e7_free_leaving_says_nothing_about_the_cost():
    """Outside costs 1 a step for ever; the paper's problem says that it is free."""
    gamma = 0.9
    cmdp = CMDP(
        [[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]],
        [[0.0, 1.0], [0.0, 0.0]],
        [[0.0, 0.0], [1.0, 1.0]],
        discount=gamma,
        budget=0.5,
    )
    leave = Policy.deterministic([1, 0], n_actions=2)
    whole = evaluate(cmdp, leave)
    assert whole.start_costs == pytest.approx([gamma / (1 - gamma)])  # 9, budget 0.5
    printed = known_state_cmdp(cmdp, [0], paper=True)
    free = evaluate(printed.cmdp, printed.restricted(leave))
    assert free.start_costs == pytest.approx([0.0])
    assert free.start_costs[0] <= cmdp.budget[0]
    corrected = known_state_cmdp(cmdp, [0], terminal_cost=whole.costs)
    charged = evaluate(corrected.cmdp, corrected.restricted(leave))
    assert charged.start_costs == pytest.approx(whole.start_costs)


def best_inside(part):
    """The actions inside of the deterministic policy of the highest value."""
    cmdp = part.cmdp
    choices = [
        cmdp.pair_action[cmdp.state_ptr[s] : cmdp.state_ptr[s + 1]].tolist()
        for s in range(cmdp.n_states)
    ]
    everything = itertools.product(*choices)
    start = max(
        everything,
        key=lambda actions: (
            evaluate(
                cmdp, Policy.deterministic(np.array(actions), cmdp.n_actions)
            ).start_value
        ),
    )
    return start[: part.inside.size]


def test_e8_the_paper_s_escape_prefers_to_stay():
    """With nothing to earn outside, staying for a reward beats leaving."""
    cmdp = CMDP(
        [[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]],
        [[0.25, 0.0], [1.0, 1.0]],
        np.zeros((2, 2)),
        discount=0.9,
        budget=10.0,
        cost_max=1.0,
    )
    stay, leave = 0, 1
    assert best_inside(escape_cmdp(cmdp, [0], paper=True)) == (stay,)
    corrected = escape_cmdp(cmdp, [0], terminal_cost=[0.0, 0.0])
    assert best_inside(corrected) == (leave,)


@settings(max_examples=25)
@given(restrictions())
def test_escape_counts_the_discounted_time_inside(case):
    cmdp, policy, inside = case
    zeros = np.zeros((cmdp.n_costs, cmdp.n_states))
    part = escape_cmdp(cmdp, inside, terminal_cost=zeros)
    result = evaluate(part.cmdp, part.restricted(policy))
    ones = np.ones(cmdp.n_states)
    time_inside = until_exit(cmdp, policy, inside, ones, 0 * ones)
    count = part.inside.size
    forever = 1.0 / (1.0 - cmdp.discount)
    np.testing.assert_allclose(
        result.value[:count], forever - time_inside, atol=1e-7 * forever
    )
    for k, most in enumerate(cmdp.cost_max):
        np.testing.assert_allclose(
            result.costs[k, :count], most * time_inside, atol=1e-7 * forever
        )
    printed = escape_cmdp(cmdp, inside, paper=True)
    plain = evaluate(printed.cmdp, printed.restricted(policy))
    _, reward, _ = chain(cmdp, policy)
    np.testing.assert_allclose(
        plain.value[:count],
        until_exit(cmdp, policy, inside, reward, 0 * ones),
        atol=1e-7 * forever,
    )


@settings(max_examples=25)
@given(restrictions())
def test_exploration_counts_the_discount_at_the_exit(case):
    """``V / r_max`` is ``E[γ^τ]``, and ``V(s) <= V(s | M_K) + G · E[γ^τ]`` (E9)."""
    cmdp, policy, inside = case
    part = exploration_cmdp(cmdp, inside, paper=True)
    found = evaluate(part.cmdp, part.restricted(policy))
    ones = np.ones(cmdp.n_states)
    hitting = until_exit(cmdp, policy, inside, 0 * ones, ones)
    count = part.inside.size
    np.testing.assert_allclose(
        found.value[:count], cmdp.reward_max * hitting, atol=1e-7
    )
    whole = evaluate(cmdp, policy)
    kept = known_state_cmdp(cmdp, inside, paper=True)
    under = evaluate(kept.cmdp, kept.restricted(policy))
    most = cmdp.reward_max / (1.0 - cmdp.discount)
    assert (whole.value[inside] <= under.value[:count] + most * hitting + 1e-6).all()


@settings(max_examples=25)
@given(restrictions())
def test_safe_return_counts_the_time_until_the_exit(case):
    cmdp, policy, inside = case
    part = safe_return_cmdp(cmdp, inside, paper=True)
    found = evaluate(part.cmdp, part.restricted(policy))
    ones = np.ones(cmdp.n_states)
    np.testing.assert_allclose(
        found.value[: part.inside.size],
        until_exit(cmdp, policy, inside, ones, 0 * ones),
        atol=1e-6,
    )


@pytest.mark.parametrize("kind", INDUCE)
@settings(max_examples=15)
@given(case=restrictions())
def test_every_induced_problem_ends_in_its_exits(kind, case):
    cmdp, _, inside = case
    part = INDUCE[kind](cmdp, inside, paper=True)
    assert part.cmdp.n_states == part.inside.size + part.exits.size + 1
    assert part.cmdp.n_actions == cmdp.n_actions
    assert not inside[part.exits].any()
    for exit_state in range(part.inside.size, part.end + 1):
        low, high = part.cmdp.state_ptr[exit_state], part.cmdp.state_ptr[exit_state + 1]
        assert high - low == 1
        states, _ = part.cmdp.successors(exit_state, int(part.cmdp.pair_action[low]))
        assert states.tolist() == [part.end]
    reached = np.zeros(cmdp.n_states, dtype=bool)
    kept = cmdp.transition_matrix[np.flatnonzero(inside[cmdp.pair_state])]
    reached[kept.indices] = True
    np.testing.assert_array_equal(part.exits, np.flatnonzero(reached & ~inside))


def corridor():
    rows = np.zeros((4, 2, 4))
    for state in range(4):
        rows[state, 0, max(state - 1, 0)] = rows[state, 1, min(state + 1, 3)] = 1.0
    return CMDP(
        rows,
        np.full((4, 2), 0.5),
        np.zeros((4, 2)),
        discount=0.5,
        budget=1.0,
        start=[0.5, 0.25, 0.25, 0.0],
        state_names=list("abcd"),
    )


def test_names_starts_and_maps():
    cmdp = corridor()
    part = known_state_cmdp(cmdp, [1, 0], paper=True)  # in any order
    assert part.inside.tolist() == [0, 1]
    assert part.exits.tolist() == [2]
    assert part.end == 3
    assert part.cmdp.state_names == ("a", "b", "exit to c", "end")
    # the start of the whole, given that it lies inside
    np.testing.assert_allclose(part.cmdp.start, [2 / 3, 1 / 3, 0, 0])
    moved = known_state_cmdp(cmdp, [0, 1], paper=True, start=1)
    assert moved.cmdp.start.tolist() == [0.0, 1.0, 0.0, 0.0]
    # or uniform, if it cannot lie inside
    far = known_state_cmdp(cmdp, [False, False, False, True], paper=True)
    assert far.cmdp.start.tolist() == [1.0, 0.0, 0.0]
    assert np.isnan(part.spread(np.arange(4.0))[3])
    assert part.spread(np.arange(4.0), fill=-1.0).tolist() == [0.0, 1.0, 2.0, -1.0]


def test_policies_go_both_ways():
    cmdp = corridor()
    part = known_state_cmdp(cmdp, [1, 2], paper=True)
    whole = Policy.deterministic([1, 0, 1, 0], n_actions=2)
    there = part.restricted(whole)
    assert there.actions.tolist()[:2] == [0, 1]
    other = Policy.deterministic([0, 0, 0, 1], n_actions=2)
    assert part.lifted(there, other).actions.tolist() == [0, 0, 1, 1]
    wrong = Policy([[1.0, 0.0]])
    for act, name in (
        (lambda: part.restricted(wrong), "policy"),
        (lambda: part.lifted(wrong, whole), "policy"),
        (lambda: part.lifted(there, wrong), "elsewhere"),
        (lambda: part.spread(np.zeros(3)), "values"),
    ):
        with pytest.raises(InvalidInputError, match=f"^{name}: expected shape"):
            act()


def test_everything_known_leaves_only_an_end_that_nobody_enters():
    cmdp = corridor()
    part = known_state_cmdp(cmdp, np.ones(4, dtype=bool), paper=True)
    assert part.exits.size == 0
    policy = Policy.uniform(cmdp)
    result = evaluate(part.cmdp, part.restricted(policy))
    np.testing.assert_allclose(
        part.spread(result.value), evaluate(cmdp, policy).value, atol=1e-12
    )


def test_an_infinite_price_where_nobody_goes_is_no_matter():
    cmdp = corridor()
    prices = [0.0, 0.0, 3.0, np.inf]
    part = known_state_cmdp(cmdp, [0, 1], terminal_cost=prices)
    assert part.cmdp.cost_max.tolist() == [3.0]
