"""The robust solvers: known optima, bounds that hold, budgets kept, honest refusals."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks import finite_kernels
from benchmarks.finite_kernels import problem

import escapade as ep
from escapade.planning.robust_certificate import Judge
from escapade.testing import check_solver, instances
from escapade.uncertainty import Intersection, Interval, KLBall, L1Ball, Models

SOLVERS = {
    "inflation": ep.RobustLP(max_iterations=8),
    "shrunk": ep.RobustLP(form="shrunk", max_iterations=8),
    "escape": ep.RobustLP(form="escape", refine=False, max_iterations=8),
    "cost": ep.LagrangianRobustDP(max_iterations=12),
    "reward": ep.LagrangianRobustDP(worst_for="reward", max_iterations=12),
    "both": ep.LagrangianRobustDP(worst_for="both", max_iterations=12, refine=True),
    "slack": ep.SlackDP(points=9),
    "slack from the start": ep.SlackDP(points=9, at_all_times=False),
    "promise": ep.PromiseDP(points=5, max_iterations=3),
    "promise from the start": ep.PromiseDP(
        points=5, max_iterations=3, at_all_times=False
    ),
}
every_solver = pytest.mark.parametrize("solver", SOLVERS.values(), ids=SOLVERS.keys())
one_budget = (ep.SlackDP, ep.PromiseDP)


def random_problem(seed, states=4, actions=2, discount=0.8, radius=0.25, tight=0.4):
    """A robust problem whose budget lies between the least cost and that of greed."""
    rng = np.random.default_rng(seed)
    P = np.zeros((states, actions, states))
    for s in range(states):
        for a in range(actions):
            to = rng.choice(states, 3, replace=False)
            P[s, a, to] = rng.dirichlet(np.ones(3))
    R = rng.random((states, actions))
    C = np.clip(R + 0.5 * rng.standard_normal(R.shape), 0.0, 1.0)
    cmdp = ep.CMDP(
        P, R, C, discount=discount, budget=100.0, reward_max=1.0, cost_max=1.0
    )
    kind = L1Ball if seed % 2 == 0 else Interval
    sets = kind(cmdp, radius=radius if kind is L1Ball else radius / 2)
    least = ep.fallback(cmdp, sets).cost_to_go[0, 0]
    greedy = ep.planning.policy_iteration(cmdp).policy(cmdp)
    most = ep.robust_evaluate(cmdp, greedy, sets).costs_upper[0, 0]
    return cmdp.replace(budget=least + tight * max(most - least, 0.05)), sets


def known_optima(solver):
    return [
        known
        for known in instances()
        if known.cmdp.n_costs == 1 or not isinstance(solver, one_budget)
    ]


@every_solver
def test_without_uncertainty_a_known_optimum_is_not_exceeded(solver) -> None:
    check_solver(solver, on=known_optima(solver)[:1])


@pytest.mark.slow
@every_solver
def test_without_uncertainty_no_known_optimum_is_exceeded(solver) -> None:
    check_solver(solver, on=known_optima(solver))


@every_solver
@pytest.mark.parametrize("objective", ["nominal", "worst"])
def test_the_answer_keeps_the_budget_and_lies_between_its_bounds(
    solver, objective
) -> None:
    for seed in range(2 if objective == "nominal" else 1):
        cmdp, sets = random_problem(seed)
        answer = ep.solve(cmdp, solver, uncertainty=sets, objective=objective)
        assert answer.policy is not None
        bounds = ep.robust_evaluate(cmdp, answer.policy, sets)
        assert bounds.start_costs_upper[0] <= cmdp.budget[0] + 1e-7
        assert answer.costs[0] <= cmdp.budget[0]
        if objective == "nominal":
            worth = ep.evaluate(cmdp, answer.policy).start_value
        else:
            worth = bounds.start_value_lower
        assert answer.lower <= worth + 1e-6
        assert answer.value == pytest.approx(worth, abs=1e-6)
        assert answer.lower <= answer.upper
        assert answer.residuals["budget"] == 0.0
        assert answer.status in ("feasible", "optimal", "iteration_limit")
        # no stationary policy drawn at random that keeps the budget beats the bound
        rng = np.random.default_rng(seed)
        judge = Judge(cmdp, sets, objective)
        for _ in range(20):
            other = judge.judge(ep.Policy(rng.dirichlet(np.full(2, 0.3), 4)))
            if judge.keeps(other):
                assert other.lower <= answer.upper + 1e-9


@every_solver
def test_a_budget_below_the_least_worst_case_cost_is_infeasible(solver) -> None:
    cmdp, sets = random_problem(0)
    least = ep.fallback(cmdp, sets).cost_to_go[0, 0]
    nominal = ep.solve(cmdp.replace(budget=0.0)).least_costs[0]
    between = cmdp.replace(budget=0.5 * (least + nominal))  # only robustly too small
    answer = ep.solve(between, solver, uncertainty=sets)
    assert answer.status == "infeasible"
    assert answer.policy is None
    assert np.isnan(answer.value)
    assert (answer.lower, answer.upper) == (-np.inf, -np.inf)
    assert answer.least_costs[0] == pytest.approx(least, abs=1e-6)
    assert "least worst-case cost" in answer.message


def inexact(seed=1):
    """A problem under a set whose worst kernels need not be members of it."""
    cmdp, _ = random_problem(seed)
    sets = Intersection(L1Ball(cmdp, radius=0.3), KLBall(cmdp, radius=0.03))
    assert not sets.exact
    return cmdp, sets


@pytest.mark.parametrize("name", ["shrunk", "inflation", "promise from the start"])
@pytest.mark.parametrize("objective", ["nominal", "worst"])
def test_kernels_that_may_be_no_members_bound_nothing(name, objective) -> None:
    for seed in range(3):
        cmdp, sets = inexact(seed)
        answer = ep.solve(cmdp, SOLVERS[name], uncertainty=sets, objective=objective)
        nominal = ep.solve(cmdp)
        assert answer.lower <= answer.upper
        assert answer.upper == pytest.approx(nominal.upper)
        assert "outer" not in answer.residuals


@pytest.mark.parametrize(
    "name", ["inflation", "cost", "slack", "promise from the start"]
)
def test_what_a_set_only_bounds_is_not_proved_impossible(name) -> None:
    cmdp, sets = inexact()
    least = ep.fallback(cmdp, sets).cost_to_go[0, 0]
    nominal = ep.solve(cmdp.replace(budget=0.0)).least_costs[0]
    between = cmdp.replace(budget=0.5 * (least + nominal))
    answer = ep.solve(between, SOLVERS[name], uncertainty=sets)
    assert answer.status == "unresolved"
    assert answer.policy is None
    assert np.isfinite(answer.upper)


def test_a_promise_at_all_times_that_fails_names_the_weaker_one() -> None:
    cmdp, sets = random_problem(0)
    least = ep.fallback(cmdp, sets).cost_to_go[0]
    spread = cmdp.replace(start=np.full(4, 0.25))
    between = spread.replace(budget=0.5 * (least.mean() + least.max()))
    always = ep.solve(between, SOLVERS["slack"], uncertainty=sets)
    assert always.status == "infeasible"
    assert "at_all_times=False" in always.message
    once = ep.solve(between, SOLVERS["slack from the start"], uncertainty=sets)
    assert once.status == "feasible"


def test_a_bound_below_what_is_surely_earned_is_a_defect() -> None:
    cmdp, sets = random_problem(0)
    judge = Judge(cmdp, sets, "nominal")
    judged = judge.judge(ep.Policy.uniform(cmdp))
    words = {
        "multipliers": np.zeros(1),
        "iterations": 1,
        "precision": 1e-8,
        "solver": "Dreamer",
        "began": 0.0,
    }
    rounded = judge.answer(judged, upper=judged.lower - 1e-9, **words)
    assert rounded.lower <= rounded.upper
    with pytest.raises(ep.errors.SolverError, match="Dreamer found"):
        judge.answer(judged, upper=0.9 * judged.lower, **words)


def test_too_much_even_without_uncertainty_is_said_with_numbers() -> None:
    cmdp, sets = random_problem(0)
    hopeless = ep.solve(cmdp.replace(budget=0.01), ep.RobustLP(), uncertainty=sets)
    assert hopeless.status == "infeasible"
    least = ep.solve(cmdp.replace(budget=0.01)).least_costs[0]
    assert f"the least cost under it is {least:.8g}" in hopeless.message
    assert "the budget is 0.01" in hopeless.message


@every_solver
def test_a_set_that_misses_the_problem_itself_is_refused(solver) -> None:
    cmdp, _ = random_problem(0)
    P = cmdp.transition_matrix.toarray().reshape(4, 2, 4)
    moved = ep.CMDP(
        0.5 * P + 0.5 * np.roll(P, 1, axis=2),
        cmdp.reward.reshape(4, 2),
        cmdp.cost.reshape(4, 2),
        discount=0.8,
        budget=1.0,
    )
    with pytest.raises(ep.errors.InvalidInputError, match="own transitions"):
        ep.solve(cmdp, solver, uncertainty=L1Ball(moved, radius=0.01))
    shifted = ep.CMDP(
        np.roll(P, 1, axis=2),
        cmdp.reward.reshape(4, 2),
        cmdp.cost.reshape(4, 2),
        discount=0.8,
        budget=1.0,
    )
    with pytest.raises(ep.errors.InvalidInputError, match="none to state"):
        ep.solve(cmdp, solver, uncertainty=L1Ball(shifted, radius=0.01))


def two_budgets(seed=3):
    cmdp, sets = random_problem(seed)
    rng = np.random.default_rng(seed)
    second = rng.random(cmdp.n_pairs)
    cmdp = cmdp.replace(
        cost=np.vstack([cmdp.cost, second]), cost_max=[1.0, 1.0], budget=[9.0, 9.0]
    )
    least = [
        ep.fallback(cmdp.replace(cost=c, cost_max=1.0, budget=99.0), sets).cost_to_go[
            0, 0
        ]
        for c in cmdp.cost
    ]
    return cmdp.replace(budget=1.15 * np.array(least) + 0.1), sets


@pytest.mark.parametrize("name", ["inflation", "shrunk", "cost"])
def test_several_budgets_are_kept_together(name) -> None:
    cmdp, sets = two_budgets()
    answer = ep.solve(cmdp, SOLVERS[name], uncertainty=sets)
    assert answer.policy is not None
    bounds = ep.robust_evaluate(cmdp, answer.policy, sets)
    assert (bounds.start_costs_upper <= cmdp.budget + 1e-7).all()
    assert answer.lower <= answer.upper


def test_budgets_out_of_reach_one_by_one_are_named() -> None:
    cmdp, sets = two_budgets()
    tight = cmdp.replace(budget=[cmdp.budget[0], 0.01])
    answer = ep.solve(tight, ep.RobustLP(), uncertainty=sets)
    assert answer.status == "infeasible"
    assert answer.least_costs.shape == (2,)


def fork() -> ep.CMDP:
    """Two budgets that nature can break one at a time, but no single kernel both.

    `stay` is free and worth nothing.  `left` and `right` cost one channel each where
    they end; which of two ends is up to nature.
    """
    P = np.zeros((3, 3, 3))
    P[0, 0, 0] = 1.0
    P[0, 1, [1, 2]] = P[0, 2, [1, 2]] = 0.5
    P[1, :, 1] = P[2, :, 2] = 1.0
    cost = np.zeros((2, 3, 3))
    cost[0, 1], cost[1, 2] = 1.0, 1.0
    cost[:, 0, 0] = 0.9
    return ep.CMDP(P, np.ones((3, 3)), cost, discount=0.5, budget=[0.6, 0.6])


@pytest.mark.parametrize("solver", [ep.RobustLP(), ep.LagrangianRobustDP()])
def test_what_was_neither_found_nor_ruled_out_is_unresolved(solver) -> None:
    cmdp = fork()
    answer = ep.solve(cmdp, solver, uncertainty=L1Ball(cmdp, radius=1.0))
    assert answer.status in ("unresolved", "infeasible")
    assert answer.policy is None
    assert "exceeds a budget" in answer.message or answer.status == "infeasible"


@pytest.mark.parametrize("name", ["slack", "promise"])
def test_promises_are_planned_for_one_budget(name) -> None:
    cmdp, sets = two_budgets()
    with pytest.raises(ep.errors.InvalidInputError, match="single budget"):
        ep.solve(cmdp, SOLVERS[name], uncertainty=sets)


@pytest.mark.parametrize("name", ["slack", "promise", "cost"])
def test_a_family_of_whole_models_is_sent_elsewhere(name) -> None:
    cmdp, _ = random_problem(0)
    family = Models(cmdp, [cmdp], throughout=True)
    with pytest.raises(ep.errors.InvalidInputError, match="RobustLP"):
        ep.solve(cmdp, SOLVERS[name], uncertainty=family)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: ep.RobustLP(form="exact"), "form"),
        (lambda: ep.RobustLP(precision=0.0), "precision"),
        (lambda: ep.LagrangianRobustDP(worst_for="all"), "worst_for"),
        (lambda: ep.LagrangianRobustDP(max_iterations=0), "max_iterations"),
        (lambda: ep.SlackDP(points=1), "points"),
        (lambda: ep.PromiseDP(points=1), "points"),
        (lambda: ep.PromiseDP(precision=2.0), "precision"),
    ],
)
def test_settings_that_make_no_sense_are_refused(build, message) -> None:
    with pytest.raises(ep.errors.InvalidInputError, match=message):
        build()


def family_of(seed):
    return problem(seed, states=4, actions=2, kernels=2, discount=0.9)


def test_one_model_throughout_is_planned_for_model_by_model() -> None:
    for objective in ("worst", "nominal"):
        cmdp, family = family_of(1)
        answer = ep.solve(cmdp, ep.RobustLP(), uncertainty=family, objective=objective)
        assert answer.policy is not None
        bounds = ep.robust_evaluate(cmdp, answer.policy, family)
        assert bounds.start_costs_upper[0] <= cmdp.budget[0] + 1e-7
        if objective == "worst":
            assert answer.value == pytest.approx(bounds.start_value_lower, abs=1e-6)
        assert answer.lower <= answer.upper
        # the reward is the cost, and the budget binds: nothing more can be had
        assert answer.upper <= cmdp.budget[0] + 1e-6
        assert objective == "nominal" or answer.gap <= 1e-3


def test_a_family_that_cannot_keep_the_budget_is_infeasible() -> None:
    cmdp, family = family_of(1)
    dear = cmdp.replace(cost=np.ones(cmdp.n_pairs), budget=1.0)
    members = [m.replace(cost=np.ones(m.n_pairs)) for m in family.members(cmdp)]
    answer = ep.solve(
        dear, ep.RobustLP(), uncertainty=Models(dear, members, throughout=True)
    )
    assert answer.status == "infeasible"
    assert answer.least_costs[0] == pytest.approx(10.0)


@pytest.mark.slow
def test_the_published_finite_problems_are_solved_to_their_bounds() -> None:
    """15 states, 5 actions, 5 kernels, γ = .99; the published method is a local search.

    ``benchmarks/finite_kernels.py`` prints the table for twenty of them.
    """
    rows = [finite_kernels.measure(seed) for seed in range(4)]
    rows.append(finite_kernels.measure(0, greedy="cost-1"))
    for row in rows:
        assert row.broken == ()
        assert row.upper - row.lower <= 1e-3 * row.upper
    assert np.mean([row.ratio for row in rows[:4]]) < 0.9
