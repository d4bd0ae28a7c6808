"""Plans with a memory: what they promise they keep, and their bounds are bounds."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.robust_gaps import SOLVERS as ROBUST
from benchmarks.robust_gaps import measure, random_problem
from scipy.optimize import linprog

import escapade as ep
from escapade.kernels.promise import (
    between_nodes,
    concave_envelope,
    mixtures,
    priced_promises,
    value_of_promises,
)
from escapade.planning.promise_nodes import open_grid
from escapade.planning.promise_rounds import Rounds
from escapade.planning.robust_certificate import Judge
from escapade.planning.robust_evaluation import operators_of
from escapade.planning.robust_operator import robust_policy_value
from escapade.planning.slack_dp import plan_slack
from escapade.uncertainty import L1Ball

SMALL = ep.PromiseDP(points=9, max_iterations=6, at_all_times=False)


def gamble(danger: float) -> ep.CMDP:
    """`gamble` earns most and costs nothing, but may end where 20 must be spent.

    With the budget 10 asked for at all times it may never be played; asked for from
    the start alone, it may.
    """
    P = np.zeros((3, 2, 3))
    P[0, 0] = [0.0, 1.0 - danger, danger]
    P[0, 1] = [0.0, 1.0, 0.0]
    P[1, :, 1] = P[2, :, 2] = 1.0
    reward = [[1.0, 0.0], [0.0, 0.0], [0.0, 0.0]]
    cost = [[0.0, 1.0], [0.0, 0.0], [2.0, 2.0]]
    return ep.CMDP(P, reward, cost, discount=0.9, budget=10.0)


@pytest.mark.parametrize("solver", [ep.SlackDP, ep.PromiseDP])
def test_at_all_times_is_more_than_from_the_start(solver) -> None:
    cmdp = gamble(0.01)
    sets = L1Ball(cmdp, radius=0.0)
    always = ep.solve(cmdp, solver(points=5), uncertainty=sets)
    assert always.value == pytest.approx(0.0, abs=1e-9)
    once = ep.solve(cmdp, solver(points=5, at_all_times=False), uncertainty=sets)
    assert once.value == pytest.approx(1.0)
    if (
        solver is ep.PromiseDP
    ):  # `upper` is that of the larger class; the message says so
        assert always.upper >= 1.0
        assert "No plan that keeps the budget at all times earns more" in always.message
        assert "bounds those as well that keep it from the start" in always.message
    assert once.costs[0] == pytest.approx(0.18, abs=1e-6)


@pytest.mark.parametrize(
    "solver", [ep.SlackDP(points=9), ep.PromiseDP(points=7, max_iterations=4)]
)
@pytest.mark.parametrize("objective", ["nominal", "worst"])
def test_every_node_keeps_its_promise_under_the_worst_kernels(
    solver, objective
) -> None:
    cmdp, sets = random_problem(2, states=5, actions=2)
    answer = ep.solve(cmdp, solver, uncertainty=sets, objective=objective)
    policy = answer.policy
    assert isinstance(policy, ep.model.MemoryPolicy)
    # begin in any node at all
    operator = operators_of(cmdp, policy, sets)(cmdp.cost[0], "max")
    worst = robust_policy_value(operator, precision=1e-9).upper
    inside = ep.fallback(cmdp, sets).promisable
    kept = inside[policy.node_state]
    assert (worst[kept] <= policy.memory[kept, 0] + 1e-7).all()
    bounds = ep.robust_evaluate(cmdp, policy, sets)
    assert (bounds.costs_upper[0, inside] <= cmdp.budget[0] + 1e-7).all()


@pytest.mark.statistical
def test_a_plan_is_carried_out_step_by_step() -> None:
    """Discounted rewards of runs average to the value: 200 runs, 5 standard errors.

    Fails by chance with probability below 1e-6; the seed is fixed.
    """
    cmdp, sets = random_problem(4, states=5, actions=2, discount=0.7)
    answer = ep.solve(cmdp, SMALL, uncertainty=sets)
    rng = np.random.default_rng(0)
    totals = []
    for _ in range(200):
        run, state, total, weight = answer.policy.run(0, rng), 0, 0.0, 1.0
        for _ in range(30):
            action = run.act()
            pair = cmdp.pair(state, action)
            total += weight * cmdp.reward[pair]
            weight *= cmdp.discount
            successors, p = cmdp.successors(state, action)
            state = int(rng.choice(successors, p=p))
            run.observe(state)
        totals.append(total)
    error = np.std(totals) / np.sqrt(len(totals))
    assert np.mean(totals) == pytest.approx(answer.value, abs=5 * error + 1e-3)


def best_promise_by_scipy(cmdp, sets, u, low, step, budget):
    """One pair's inner problem as a linear program over grid weights (L1 ball only)."""
    first, last = sets.row_ptr[0], sets.row_ptr[1]
    to, p = sets.successor[first:last], sets.nominal[first:last]
    n, g = to.size, u.shape[1]
    radius = sets.radius[0]
    # weights on the grid of each successor; the L1 ball's worst case by its dual:
    # max P·b = p·b + (ψ/2)(max b − min of those drained) <= budget, dualised as
    # min t + Σ p (b − t)_+-like terms: here all vertices of the ball are listed
    vertices = []
    for i in range(n):
        order = [j for j in range(n) if j != i]
        for mask in range(1, 2 ** len(order)):
            q, left = p.copy(), radius / 2
            for bit, j in enumerate(order):
                if mask >> bit & 1:
                    move = min(q[j], left)
                    q[j] -= move
                    q[i] += move
                    left -= move
            vertices.append(q)
    promises = low[to][:, None] + step[to][:, None] * np.arange(g)
    objective = -(p[:, None] * u[to]).ravel()
    rows = [(q[:, None] * promises).ravel() for q in [p, *vertices]]
    answer = linprog(
        objective,
        A_ub=np.array(rows),
        b_ub=np.full(len(rows), budget),
        A_eq=np.kron(np.eye(n), np.ones(g)),
        b_eq=np.ones(n),
        bounds=(0.0, None),
    )
    return -answer.fun if answer.status == 0 else -np.inf


def test_the_inner_game_comes_near_the_linear_program() -> None:
    cmdp, sets = random_problem(6, states=3, actions=1, discount=0.8)
    cmdp = cmdp.replace(budget=cmdp.budget * 1.5)
    grid = open_grid(Judge(cmdp, sets, "nominal"), at_all_times=False)
    rounds = Rounds(grid, 17, plan_slack(grid, 17, 5_000))
    # any concave worth will do: let promises be worth their square root
    ladder = np.sqrt(np.linspace(0.0, 1.0, 17))
    rounds.step = np.full(3, 0.1)
    rounds.high = rounds.low + 1.6
    rounds.u = np.outer([1.0, 2.0, 1.5], ladder)
    rounds.prices = np.concatenate([[0.0], np.geomspace(0.05, 20.0, 16)])
    for _ in range(6):
        last, average = rounds._play()
    every = np.flatnonzero(rounds.rows == 0)
    for promise in (last, average):
        points = rounds._chosen(every, promise)
        at, spots = sets.row_ptr, np.arange(points.target.size)
        values = rounds._point_values(
            points, np.arange(0, spots.size + 1, at[1]), np.tile(spots[: at[1]], 17)
        )
        for cost, value in zip(points.cost, values, strict=True):
            room = (cost - cmdp.cost[0, 0]) / cmdp.discount
            best = best_promise_by_scipy(
                cmdp, sets, rounds.u, rounds.low, rounds.step, room + 1e-9
            )
            exact = cmdp.reward[0] + cmdp.discount * best
            assert value <= exact + 1e-7
    # the averaged answers come close at every price
    assert value >= exact - 0.05


def test_the_start_budget_goes_where_it_earns_most() -> None:
    cmdp, sets = random_problem(8, states=5, actions=2)
    spread = cmdp.replace(start=[0.4, 0.3, 0.3, 0.0, 0.0])
    least = ep.fallback(spread, sets).cost_to_go[0]
    spread = spread.replace(budget=float(spread.start @ least) + 0.3)
    answer = ep.solve(spread, SMALL, uncertainty=sets)
    slack = ep.solve(spread, ep.SlackDP(points=9, at_all_times=False), uncertainty=sets)
    for found in (answer, slack):
        assert found.policy is not None
        assert found.costs[0] <= spread.budget[0]
        assert found.lower <= found.upper


def test_a_budget_with_no_room_is_met_by_the_fallback() -> None:
    cmdp, sets = random_problem(10, states=5, actions=2)
    found = ep.fallback(cmdp, sets, precision=1e-11)
    tight = cmdp.replace(budget=found.cost_to_go[0, 0] * (1 + 1e-9))
    for solver in (ep.SlackDP(points=5, at_all_times=False), SMALL):
        answer = ep.solve(tight, solver, uncertainty=sets)
        assert answer.policy is not None
        assert answer.costs[0] <= tight.budget[0]
    just_below = cmdp.replace(budget=found.cost_to_go[0, 0] * (1 - 1e-9))
    answer = ep.solve(just_below, SMALL, uncertainty=sets)
    assert answer.status in ("unresolved", "infeasible")


def test_stopping_early_is_said() -> None:
    cmdp, sets = random_problem(12, states=5, actions=2)
    slack = ep.solve(cmdp, ep.SlackDP(points=9, max_iterations=2), uncertainty=sets)
    assert slack.status == "iteration_limit"
    assert slack.costs[0] <= cmdp.budget[0]
    assert slack.lower <= slack.upper
    promise = ep.solve(cmdp, ep.PromiseDP(points=5, max_iterations=1), uncertainty=sets)
    assert promise.status == "iteration_limit"
    assert promise.lower <= promise.upper


def test_more_points_and_rounds_close_the_gap() -> None:
    cmdp, sets = random_problem(14, states=5, actions=2, discount=0.8)
    gaps = []
    for points in (5, 17):
        answer = ep.solve(
            cmdp, ep.PromiseDP(points=points, at_all_times=False), uncertainty=sets
        )
        gaps.append(answer.gap)
    assert gaps[1] < gaps[0]
    assert gaps[1] < 0.02 * answer.upper


# -- kernels -------------------------------------------------------------------------


def test_the_envelope_is_the_least_concave_rising_bound() -> None:
    y = np.array([[0.0, -np.inf, 1.0, 1.2, 0.5, 3.0, 2.0], [1.0] * 7])
    u, vertex = np.empty_like(y), np.zeros(y.shape, dtype=bool)
    concave_envelope(y, u, vertex)
    np.testing.assert_allclose(u[0], [0.0, 0.6, 1.2, 1.8, 2.4, 3.0, 3.0])
    assert vertex[0].tolist() == [True, False, False, False, False, True, False]
    np.testing.assert_allclose(u[1], 1.0)
    assert vertex[1].tolist() == [True] + [False] * 6


def test_values_and_prices_are_read_off_the_grid() -> None:
    low, step = np.array([1.0, 2.0]), np.array([0.5, 0.0])
    u = np.array([[0.0, 2.0, 3.0, 3.5], [7.0, 7.0, 7.0, 7.0]])
    state = np.array([0, 0, 0, 0, 1], dtype=np.int32)
    promise = np.array([0.5, 1.25, 2.5, 9.0, 4.0])
    place, share, value = np.empty(5, np.int64), np.empty(5), np.empty(5)
    value_of_promises(state, promise, low, step, u, place, share, value)
    np.testing.assert_allclose(value, [0.0, 1.0, 3.5, 3.5, 7.0])
    best = np.empty(5)
    price = np.array([9.0, 3.0, 1.5, 0.0, 0.0])
    priced_promises(state, price, low, step, u, best)
    np.testing.assert_allclose(best, [1.0, 1.5, 2.0, 2.5, 2.0])


def test_lots_between_nodes_keep_the_promise_on_average() -> None:
    ptr = np.array([0, 3, 4])
    nodes = np.array([1.0, 2.0, 4.0, 5.0])
    state = np.array([0, 0, 0, 0, 1], dtype=np.int32)
    promise = np.array([1.0, 1.5, 3.5, 6.0, 9.0])
    below, share = np.empty(5, np.int64), np.empty(5)
    between_nodes(state, promise, ptr, nodes, below, share)
    assert below.tolist() == [0, 0, 1, 2, 3]
    np.testing.assert_allclose(share, [0.0, 0.5, 0.75, 0.0, 0.0])


def test_mixtures_are_the_upper_hull_of_the_points() -> None:
    ptr = np.array([0, 5])
    cost = np.array([0.0, 1.0, 2.0, 2.0, 3.0])
    value = np.array([0.0, 0.2, 1.0, 2.0, 2.0])
    shape = (1, 5)
    first, second = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    share, u = np.zeros(shape), np.zeros(shape)
    low, step = np.array([0.0]), np.array([1.0])
    mixtures(ptr, cost, value, low, step, first, second, share, u)
    np.testing.assert_allclose(u[0], [0.0, 1.0, 2.0, 2.0, 2.0])
    assert (first[0, 1], second[0, 1], share[0, 1]) == (0, 3, 0.5)


# -- the table -----------------------------------------------------------------------


def test_no_robust_plan_breaks_its_word() -> None:
    row = measure(0, restarts=1)
    assert row.broken == []
    assert all(0.0 <= row.gap(name) < 0.2 for name in ROBUST)


@pytest.mark.slow
def test_thirty_robust_problems() -> None:
    """Bounds in order, budgets kept, and no stationary policy above PromiseDP's error.

    ``benchmarks/robust_gaps.py`` prints the table of fifty, with more restarts.
    """
    rows = [measure(seed, restarts=1) for seed in range(30)]
    assert [(row.seed, row.broken) for row in rows if row.broken] == []
    assert sum(not np.isnan(row.stationary) for row in rows) >= 8
    # PromiseDP is the reference: nearer to the bound than any other, taken together
    gaps = {name: np.median([row.gap(name) for row in rows]) for name in ROBUST}
    assert min(gaps, key=gaps.get) == "PromiseDP"
    assert gaps["PromiseDP"] < 0.04
