"""The exact solvers: one number by every road, and its certificate held to account."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

import escapade as ep
from escapade.testing import cmdps

SOLVERS = [
    ep.OccupationLP(),
    ep.OccupationLP(method="interior_point"),
    ep.DualLP(),
    ep.ColumnGeneration(),
]
NAMES = ["occupation", "interior_point", "dual", "columns"]

every_solver = pytest.mark.parametrize("solver", SOLVERS, ids=NAMES)


@every_solver
@pytest.mark.parametrize("n_costs", [1, 2, 3])
def test_every_road_leads_to_the_optimum(
    solver, n_costs, problem, reference, inspect
) -> None:
    for seed in range(6):
        cmdp = problem(seed, n_costs=n_costs)
        answer = ep.solve(cmdp, solver)
        expected = reference(cmdp).value
        assert answer.value == pytest.approx(expected, rel=1e-6, abs=1e-6)
        inspect(cmdp, answer)


@given(cmdp=cmdps(max_states=4, max_costs=3, feasible=True))
@settings(max_examples=30)
def test_drawn_problems_agree(cmdp, reference, inspect) -> None:
    expected = reference(cmdp)
    assert expected.feasible
    for solver in SOLVERS:
        answer = ep.solve(cmdp, solver)
        assert answer.value == pytest.approx(expected.value, rel=1e-6, abs=1e-6)
        inspect(cmdp, answer)


@given(cmdp=cmdps(max_states=4, max_costs=3, feasible=False))
@settings(max_examples=20)
def test_budgets_out_of_reach_are_proved_so(cmdp, reference, unconstrained) -> None:
    assert not reference(cmdp).feasible
    least = [-unconstrained(cmdp, -cost) for cost in cmdp.cost]
    for solver in SOLVERS:
        answer = ep.solve(cmdp, solver)
        assert answer.status == "infeasible"
        assert not answer.is_feasible
        assert answer.policy is None
        assert np.isnan([answer.value, *answer.costs, answer.gap]).all()
        assert (answer.lower, answer.upper) == (-np.inf, -np.inf)
        np.testing.assert_allclose(answer.least_costs, least, rtol=1e-6, atol=1e-8)
        # Farkas: at these weights even the cheapest policy costs more than budgeted
        weights = answer.multipliers
        assert (weights >= 0.0).all()
        cheapest = -unconstrained(cmdp, -weights @ cmdp.cost)
        assert cheapest > weights @ cmdp.budget


@every_solver
def test_budgets_that_only_exclude_each_other(solver, unconstrained) -> None:
    """Two actions, each costs in a channel of its own; half of each is too little."""
    cmdp = ep.CMDP(
        np.ones((1, 2, 1)),
        [[1.0, 1.0]],
        [[[1.0, 0.0]], [[0.0, 1.0]]],
        discount=0.5,
        budget=[0.9, 0.9],
    )
    answer = ep.solve(cmdp, solver)
    assert answer.status == "infeasible"
    assert "not all of them together" in answer.message
    np.testing.assert_allclose(answer.least_costs, 0.0, atol=1e-12)
    weights = answer.multipliers
    cheapest = -unconstrained(cmdp, -weights @ cmdp.cost)
    assert cheapest > weights @ cmdp.budget
    # a little more of each and one policy, half and half, keeps both
    just = ep.solve(cmdp.replace(budget=[1.0, 1.0]), solver)
    assert just.status == "optimal"
    np.testing.assert_allclose(just.costs, 1.0)
    np.testing.assert_allclose(just.policy.probabilities, 0.5)


@every_solver
def test_a_budget_of_nothing(solver, inspect) -> None:
    """With budget 0 only free actions remain, however good the others are."""
    cmdp = ep.CMDP(
        [[[0.5, 0.5], [1.0, 0.0]], [[0.0, 1.0], [1.0, 0.0]]],
        [[0.25, 1.0], [0.5, 1.0]],
        [[0.0, 1.0], [0.0, 0.0]],
        discount=0.9,
        budget=0.0,
    )
    answer = ep.solve(cmdp, solver)
    assert answer.costs[0] == 0.0
    # state 1 may go back for 1: v1 = 1 + .9 v0, v0 = .25 + .45 (v0 + v1)
    v0 = (0.25 + 0.45) / (1.0 - 0.45 - 0.45 * 0.9)
    assert answer.value == pytest.approx(v0)
    inspect(cmdp, answer)


@every_solver
def test_a_budget_of_nothing_that_cannot_be(solver) -> None:
    cmdp = ep.CMDP([[[1.0]]], [[1.0]], [[0.5]], discount=0.5, budget=0.0)
    answer = ep.solve(cmdp, solver)
    assert answer.status == "infeasible"
    np.testing.assert_allclose(answer.least_costs, 1.0)
    assert "costs at least 1, its budget is 0" in answer.message


@every_solver
def test_an_error_of_evaluation_is_no_cost(solver) -> None:
    """Either channel can be free, not both: no cost of 1e-12 is to blame for it."""
    P = np.zeros((3, 2, 3))
    P[0, :, 0] = 1.0
    P[1:] = [0.0, 0.3, 0.7]  # is never met, and costs much
    cost = np.zeros((2, 3, 2))
    cost[:, 0] = [[1.0, 0.0], [0.0, 1.0]]
    cost[:, 1:] = [[[0.3]], [[0.7]]]
    cost[:, 2] /= 3.0
    cmdp = ep.CMDP(P, np.ones((3, 2)), cost, discount=0.95, budget=[0.0, 0.0], start=0)
    answer = ep.solve(cmdp, solver)
    assert answer.status == "infeasible"
    assert (answer.least_costs > 0.0).any()  # rounded up
    assert "each budget can be kept by itself" in answer.message
    for budget in ([20.1, 0.0], [0.0, 20.1]):
        assert ep.solve(cmdp.replace(budget=budget), solver).status == "optimal"


@every_solver
def test_nothing_counts_but_now(solver, inspect) -> None:
    """With discount 0 the problem is a knapsack over the start states."""
    rng = np.random.default_rng(3)
    cmdp = ep.CMDP(
        rng.dirichlet(np.ones(4), size=(4, 2)),
        np.stack([np.zeros(4), [0.9, 0.5, 0.8, 0.1]], axis=1),
        np.stack([np.zeros(4), [0.3, 0.5, 0.2, 0.4]], axis=1),
        discount=0.0,
        budget=0.2,
        start=np.full(4, 0.25),
    )
    answer = ep.solve(cmdp, solver)
    # the best gains a cost are taken whole: states 2 and 0, then .075 of state 1's .125
    assert answer.value == pytest.approx((0.8 + 0.9) / 4 + 0.5 * 0.6 / 4)
    inspect(cmdp, answer)


@every_solver
@pytest.mark.parametrize("surplus", [0.0, 1e-12, 1e-9, 1e-6])
def test_budgets_at_the_edge_of_what_can_be(solver, surplus, problem) -> None:
    """The least budget, and a trifle more: kept, and bounded from both sides."""
    for seed in range(4):
        cmdp = problem(seed, n_costs=1)
        least = ep.solve(cmdp.replace(budget=0.0), solver).least_costs
        edge = cmdp.replace(budget=least * (1.0 + surplus))
        answer = ep.solve(edge, solver)
        assert answer.is_feasible
        assert answer.lower <= answer.upper
        excess = answer.costs - edge.budget
        assert (excess <= 1e-10 * np.maximum(1.0, least)).all()
        assert answer.gap <= 1e-6 * max(1.0, answer.value)


@every_solver
def test_multipliers_are_rates_of_change(solver, problem) -> None:
    """Raising a budget a little raises the optimum at the rate of its multiplier."""
    step = 1e-4
    for seed in (1, 2, 5):
        cmdp = problem(seed, n_costs=2)
        answer = ep.solve(cmdp, solver)
        for k, price in enumerate(answer.multipliers):
            move = step * np.eye(2)[k] * cmdp.budget[k]
            more = ep.solve(cmdp.replace(budget=cmdp.budget + move), solver)
            less = ep.solve(cmdp.replace(budget=cmdp.budget - move), solver)
            if not less.is_feasible:
                continue
            # the optimum is concave in the budgets: slopes on both sides enclose it
            ahead = (more.value - answer.value) / move[k]
            behind = (answer.value - less.value) / move[k]
            assert ahead - 1e-4 <= price <= behind + 1e-4


def test_multipliers_match_differences_of_an_independent_route(
    problem, reference
) -> None:
    seen = 0
    for seed in range(12):
        cmdp = problem(seed, n_costs=1)
        price = ep.solve(cmdp, ep.ColumnGeneration()).multipliers[0]
        move = 1e-5 * cmdp.budget
        values = [
            reference(cmdp.replace(budget=cmdp.budget + sign * move)).value
            for sign in (-1.0, 0.0, 1.0)
        ]
        slopes = np.diff(values) / move
        if abs(slopes[0] - slopes[1]) > 1e-3:  # a kink: no single rate exists
            continue
        seen += 1
        assert price == pytest.approx(slopes.mean(), rel=1e-3, abs=1e-3)
    assert seen >= 8


@every_solver
def test_relabelling_states_changes_nothing(solver, problem) -> None:
    cmdp = problem(4, n_costs=2)
    order = np.random.default_rng(0).permutation(cmdp.n_states)
    mask = cmdp.available
    dense = np.zeros((cmdp.n_states, cmdp.n_actions, cmdp.n_states))
    reward, cost = np.zeros(mask.shape), np.zeros((2, *mask.shape))
    dense[cmdp.pair_state, cmdp.pair_action] = cmdp.transition_matrix.toarray()
    reward[mask] = cmdp.reward
    cost[:, mask] = cmdp.cost
    other = ep.CMDP(
        dense[order][:, :, order],
        reward[order],
        cost[:, order],
        discount=cmdp.discount,
        budget=cmdp.budget,
        start=cmdp.start[order],
        available=mask[order],
    )
    one, two = ep.solve(cmdp, solver), ep.solve(other, solver)
    assert one.value == pytest.approx(two.value, rel=1e-8)
    np.testing.assert_allclose(one.multipliers, two.multipliers, rtol=1e-6, atol=1e-8)


@every_solver
def test_scaling_rewards_scales_the_answer(solver, problem) -> None:
    cmdp = problem(7, n_costs=2)
    one = ep.solve(cmdp, solver)
    ten = ep.solve(cmdp.replace(reward=10.0 * cmdp.reward, reward_max=None), solver)
    assert ten.value == pytest.approx(10.0 * one.value, rel=1e-7)
    np.testing.assert_allclose(
        ten.multipliers, 10.0 * one.multipliers, rtol=1e-6, atol=1e-7
    )


@every_solver
def test_the_optimum_rises_with_the_budget_and_bends(solver, problem) -> None:
    cmdp = problem(3, n_costs=1)
    least = ep.solve(cmdp.replace(budget=0.0), solver).least_costs[0]
    most = ep.solve(cmdp.replace(budget=1e6), solver).costs[0]
    budgets = np.linspace(least + 1e-6, most * 1.05, 9)
    values = [ep.solve(cmdp.replace(budget=b), solver).value for b in budgets]
    slopes = np.diff(values)
    assert (slopes >= -1e-8).all()
    assert (np.diff(slopes) <= 1e-7).all()


@every_solver
def test_tiny_probabilities_are_not_dropped(solver) -> None:
    """A leak of 1e-10 a step decides what a patient planner is worth."""
    leak = 1e-10
    cmdp = ep.CMDP(
        [
            [[1.0 - leak, leak], [0.5, 0.5]],
            [[0.0, 1.0], [0.0, 1.0]],
        ],
        [[1.0, 0.0], [0.0, 0.0]],
        [[0.25, 0.0], [0.0, 0.0]],
        discount=0.99999,
        budget=20_000.0,
    )
    answer = ep.solve(cmdp, solver)
    whole = 1.0 / (1.0 - cmdp.discount * (1.0 - leak))
    assert 0.25 * whole > 20_000.0  # the budget binds
    assert answer.status == "optimal"
    assert answer.value == pytest.approx(80_000.0, rel=1e-7)


@every_solver
def test_three_state_loop(solver, inspect) -> None:
    known = [
        ({"discount": 0.9, "budget": 5.0}, 10.3506, 5e-5),
        ({"discount": 0.99, "budget": 50.0}, 100.335, 5e-4),
        ({"horizon": 6, "budget": 3.0}, 20.0 / 3.0, 1e-8),
    ]
    for arguments, optimum, within in known:
        world = ep.environments.three_state_loop(**arguments)
        answer = ep.solve(world.cmdp, solver)
        assert world.raw_value(answer.value) == pytest.approx(optimum, abs=within)
        assert answer.value == pytest.approx(world.optimum, rel=1e-8)
        inspect(world.cmdp, answer)


@every_solver
def test_barrier_grid(solver, inspect) -> None:
    cmdp = ep.environments.barrier_grid().cmdp
    answer = ep.solve(cmdp, solver)
    assert answer.value == pytest.approx(1.0748375833535557, abs=1e-6)
    np.testing.assert_allclose(answer.costs, [2.0, 2.0], atol=1e-6)
    inspect(cmdp, answer)
