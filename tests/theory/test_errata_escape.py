"""The numbers of errata E12 to E24: wandering, escaping, budgets, the examples."""

from __future__ import annotations

import numpy as np
import pytest

import escapade as ep
from escapade.theory import escape_budget as budgets
from escapade.theory.budget_recursion import (
    escape_budget_by_loop,
    escape_budget_by_recursion,
    path_cost,
    path_costs,
    running_budget,
)
from escapade.theory.diameter import diameter
from escapade.theory.example_one import example_one, example_one_as_printed
from escapade.theory.hitting_times import hitting_times
from escapade.theory.wandering import (
    wandering_allowed,
    wandering_allowed_as_printed,
    wandering_allowed_in_expectation,
)

GAMMA = 0.99


def discounted(steps):
    """Return the discounted cost of ``steps`` steps that cost 1 each."""
    return (1.0 - GAMMA**steps) / (1.0 - GAMMA)


def test_e12_the_t_step_cost_of_staying_for_ever_is_within_the_budget():
    budget = discounted(11)
    at = {"cost_max": 1.0, "discount": GAMMA}
    steps = budgets.spending_steps(budget=budget, **at)
    assert steps == 11
    stay = ep.CMDP([[[1.0]]], [[0.0]], [[1.0]], discount=GAMMA, budget=budget)
    policy = ep.Policy.deterministic([0], 1)
    counted = ep.evaluate(stay, policy, horizon=11).costs[0, 0]
    assert counted == pytest.approx(budget)
    twice = ep.evaluate(stay, policy, horizon=22).costs[0, 0]
    rest = budgets.uncounted_cost(steps=22, **at)
    assert rest == pytest.approx(80.16, abs=5e-3)
    assert twice + rest == pytest.approx(100.0)
    assert budgets.spending_steps(budget=100.0, **at) == float("inf")


def test_e13_a_cheap_escape_may_take_longer_than_t_prime():
    # leaving with chance .1 a step costs 9.17 on average, within d' = 10.02 (T' = 11)
    rows = [[[0.9, 0.1]], [[0.0, 1.0]]]
    escape = ep.CMDP(rows, [[0.0], [0.0]], [[1.0], [0.0]], discount=GAMMA, budget=10.02)
    cost = ep.evaluate(escape, ep.Policy.deterministic([0, 0], 1)).costs[0, 0]
    assert cost == pytest.approx(9.174, abs=5e-4)
    steps = budgets.spending_steps(budget=10.02, cost_max=1.0, discount=GAMMA)
    assert steps == 11
    still_there = np.linalg.matrix_power(np.array(rows)[:, 0], steps)[0, 0]
    assert still_there == pytest.approx(0.314, abs=5e-4)


# E14: u0 → … → u4 by `wander`; u4 leads to B10 or G with one half each, G to X4; B and
# X go down one by one to K, whatever is done; elsewhere `home` leads to K.  One kernel.
AFTER_WANDER = {f"u{k}": {f"u{k + 1}": 1.0} for k in range(4)}
AFTER_WANDER |= {"u4": {"B10": 0.5, "G": 0.5}, "G": {"X4": 1.0}}
ONE_WAY = {f"B{k}": f"B{k - 1}" for k in range(2, 11)} | {"B1": "K"}
ONE_WAY |= {f"X{k}": f"X{k - 1}" for k in range(2, 5)} | {"X1": "K"}


def escape_cost(state):
    """Return the cost of the quickest escape, each step at cost 1."""
    if state == "K":
        return 0.0
    return 1.0 + GAMMA * escape_cost(ONE_WAY.get(state, "K"))


def cost_of_wandering(budget, rule, state="u0", step=0, spent=0.0):
    """Return the expected cost and each path's, wandering while a rule allows."""
    if state == "K":
        return spent, {(): spent}
    after = AFTER_WANDER.get(state, {ONE_WAY.get(state, "K"): 1.0})
    escapes = [escape_cost(s) for s in after]
    expected = sum(p * escape_cost(s) for s, p in after.items())
    if not rule(spent, step, expected, max(escapes), budget):
        after = {ONE_WAY.get(state, "K"): 1.0}  # home
    total, paths = 0.0, {}
    for successor, chance in after.items():
        mean, below = cost_of_wandering(
            budget, rule, successor, step + 1, spent + GAMMA**step
        )
        total += chance * mean
        paths |= {(successor, *path): cost for path, cost in below.items()}
    return total, paths


def as_printed(spent, step, expected, worst, budget):
    # the lemma's maximum over actions: home costs less than wandering everywhere here
    return wandering_allowed_as_printed(
        spent=spent,
        step=step,
        expected_escape_cost=expected,
        escape_budget=budget,
        cost_max=1.0,
        discount=GAMMA,
    )


def in_expectation(spent, step, expected, worst, budget):
    return wandering_allowed_in_expectation(
        spent=spent,
        step=step,
        expected_escape_cost=expected,
        escape_budget=budget,
        cost_max=1.0,
        discount=GAMMA,
    )


def corrected(spent, step, expected, worst, budget):
    return wandering_allowed(
        spent=spent,
        step=step,
        worst_escape_cost=worst,
        escape_budget=budget,
        cost_max=1.0,
        discount=GAMMA,
    )


def test_e14_the_printed_rule_wanders_into_a_cost_above_its_budget():
    assert budgets.spending_steps(budget=10.02, cost_max=1.0, discount=GAMMA) == 11
    assert escape_cost("u0") <= 10.02
    mean, paths = cost_of_wandering(10.02, as_printed)
    assert mean == pytest.approx(11.778, abs=5e-4)
    by_branch = {
        "bad" if "B10" in path else "good": cost for path, cost in paths.items()
    }
    assert by_branch["bad"] == pytest.approx(13.994, abs=5e-4)
    assert by_branch["good"] == pytest.approx(9.562, abs=5e-4)
    assert mean > 10.02


def test_e14_the_test_at_the_fork_is_passed_by_a_hair():
    left = discounted(4) + GAMMA**4 * 0.5 * (escape_cost("B10") + escape_cost("G"))
    assert left == pytest.approx(9.0132, abs=5e-5)
    assert as_printed(discounted(4), 4, (left - discounted(4)) / GAMMA**4, 0.0, 10.02)
    mean, _ = cost_of_wandering(10.0132, as_printed)
    assert mean == pytest.approx(discounted(5))  # in time, below that budget


def test_e15_with_the_expectation_the_corrected_check_is_still_false():
    mean, _ = cost_of_wandering(10.01, in_expectation)
    assert mean == pytest.approx(11.778, abs=5e-4)


@pytest.mark.parametrize("budget", [1.0, 4.0, 9.0, 10.01, 10.02, 13.99, 14.0, 20.0])
def test_e15_with_the_worst_successor_every_path_keeps_the_budget(budget):
    mean, paths = cost_of_wandering(budget, corrected)
    assert max(paths.values()) <= budget + 1e-12
    assert mean <= budget
    assert ("B10" in {s for path in paths for s in path}) == (budget >= 13.995)


def test_e16_free_steps_would_raise_the_budget_above_d():
    # d = d' = 10, γ = .9, d_s = 0: five unknown steps that turn out free
    uncapped = 10.0 / 0.9**5
    assert uncapped == pytest.approx(16.935, abs=5e-4)
    capped = running_budget([0.0] * 5, discount=0.9, budget=10.0)[-1]
    assert capped == 10.0


def test_e17_a_path_may_cost_twice_what_is_expected():
    # Example 1's numbers: d'' = 12 is kept by a path that costs 23.8 half of the time
    costs = [1.0] * 32
    assert path_cost(costs, discount=0.98) == pytest.approx(23.81, abs=5e-3)
    report = budgets.escape_budget(
        budget=25.0,
        discount=0.98,
        cost_max=1.0,
        epsilon=1.0,
        safe_return_budget=5.0,
        escape_steps=3.0,
        known_budget=12.0,
        costs=costs,
    )
    assert report.least_escape_budget == pytest.approx(4.0)
    assert report.requirement("b").right == pytest.approx(-2.62, abs=5e-3)
    assert not report.holds


def test_e18_the_loop_over_the_past_is_one_number():
    costs = (0.0, 1.0, 0.0, 0.0, 1.0, 0.5, 1.0, 1.0, 1.0)
    asked = {"discount": 0.98, "budget": 25.0}
    last = running_budget(costs, **asked)[-1]
    assert last == pytest.approx(22.885, abs=5e-4)
    found = escape_budget_by_recursion(costs, safe_return_budget=5.0, **asked)
    bounds = escape_budget_by_loop(costs, safe_return_budget=5.0, **asked)
    assert found == pytest.approx(min(bounds))
    assert found == pytest.approx(17.985, abs=5e-4)


def test_e18_example_two_has_no_budget_to_plan_with():
    field = ep.environments.wall_cycle().cmdp
    found = diameter(field)
    assert found.upper == pytest.approx(17.936, abs=5e-4)
    needed = budgets.feasible_budget(
        safe_return_budget=0.0, escape_steps=found.lower, cost_max=1.0, epsilon=1e-9
    )
    assert needed == pytest.approx(18.936, abs=5e-4)
    assert needed > field.budget[0]


def test_e19_undiscounted_return_is_four_times_too_strict():
    per_step, steps = 0.02, 196
    undiscounted = per_step * steps
    truly = path_cost([per_step] * steps, discount=0.98)
    assert undiscounted == pytest.approx(3.92)
    assert truly == pytest.approx(0.981, abs=5e-4)


def test_e20_an_escape_costs_at_most_what_its_mean_length_costs():
    escape = budgets.escape_cost_bound(
        escape_steps=17.936, cost_max=1.0, discount=GAMMA
    )
    assert escape == pytest.approx(16.495, abs=5e-4)
    # 2 or 18 steps, one half each, have mean 10 and cost less than 10 steps do
    spread = 0.5 * (discounted(2) + discounted(18))
    even = budgets.escape_cost_bound(escape_steps=10.0, cost_max=1.0, discount=GAMMA)
    assert spread == pytest.approx(9.269, abs=5e-4)
    assert spread < even == pytest.approx(9.562, abs=5e-4)


def test_e20_the_diameter_is_not_the_way_back_let_alone_the_worst_one():
    # a one-way ring on which every second state is known: the way back is one step
    ring = np.roll(np.eye(10), 1, axis=1)[:, np.newaxis, :]
    zeros = np.zeros((10, 1))
    model = ep.CMDP(ring, zeros, zeros, discount=0.9, budget=1.0)
    assert diameter(model).upper == pytest.approx(9.0, rel=1e-6)
    assert hitting_times(model, range(0, 10, 2)).upper.max() == pytest.approx(1.0)
    # under another kernel of the set, which stays with chance .9, it is ten
    slow = 0.1 * ring + 0.9 * np.eye(10)[:, np.newaxis, :]
    worst = ep.CMDP(slow, zeros, zeros, discount=0.9, budget=1.0)
    assert hitting_times(worst, range(0, 10, 2)).upper.max() == pytest.approx(10.0)


def test_e22_the_two_sums_differ_by_one_step():
    at = {"budget": 10.02, "cost_max": 1.0, "discount": GAMMA}
    assert budgets.spending_steps(**at) == 11
    assert budgets.spending_steps_as_in_algorithm(**at) == 10


def test_e23_example_one_by_its_own_formulas():
    numbers, report = example_one()
    assert numbers.path_costs == pytest.approx(
        [4.959, 5.060, 4.143, 4.228, 4.314, 3.382, 2.940, 1.98, 1.0], abs=5e-4
    )
    assert numbers.horizon == 196
    assert numbers.cost_bound == pytest.approx(50.05, abs=5e-3)
    assert numbers.known_budget == 12.0
    assert numbers.least_spending_steps == 5
    assert numbers.spending_steps == 23
    assert numbers.binding_time == 4
    assert numbers.escape_budget == pytest.approx(17.985, abs=5e-4)
    assert numbers.unknown_requirement_slack == pytest.approx(20.1)
    assert report.running_budget == pytest.approx(22.885, abs=5e-4)


def test_e23_where_the_printed_numbers_come_from():
    printed = example_one_as_printed()
    costs = (0.0, 1.0, 0.0, 0.0, 1.0, 0.5, 1.0, 1.0, 1.0)
    with_another_discount = path_costs(costs, discount=0.9)
    assert with_another_discount == pytest.approx(printed.path_costs, abs=0.0101)
    # d' at t = 4 with four steps in place of five
    cost = path_costs(costs, discount=0.98)[4]
    one_short = (25.0 - 0.98**5 * 5.0 - cost) / 0.98**4
    assert one_short == pytest.approx(printed.escape_budget, abs=5e-3)
    # G without the ε that the text adds
    assert printed.cost_bound == pytest.approx(
        example_one()[0].cost_bound - 1.0, abs=5e-3
    )


def example_two(size=10, failure=0.05):
    """Return transitions and rewards of Example 2, written down from its definition."""
    cells = [(x, y) for y in range(1, size + 1) for x in range(1, size + 1)]
    index = {cell: i for i, cell in enumerate(cells)}
    moves = [(0, 1), (-1, 0), (0, -1), (1, 0), (0, 0)]
    rows = np.zeros((size**2, 5, size**2))
    reward = np.zeros((size**2, 5))
    for (x, y), state in index.items():
        for action, (dx, dy) in enumerate(moves):
            goal = (x + dx, y + dy) if (x + dx, y + dy) in index else (x, y)
            rate = 0.0 if action == 4 else failure
            around = [
                c for c in cells if (c[0] - goal[0]) ** 2 + (c[1] - goal[1]) ** 2 <= 4
            ]
            rows[state, action, index[goal]] += 1.0 - rate
            for cell in around:
                rows[state, action, index[cell]] += rate / len(around)
            onward = (
                (y == 1 and x < size and (dx, dy) == (1, 0))
                or (x == size and y < size and (dx, dy) == (0, 1))
                or (y == size and x > 1 and (dx, dy) == (-1, 0))
                or (x == 1 and y > 1 and (dx, dy) == (0, -1))
            )
            reward[state, action] = float(onward)
    return rows, reward


def test_e24_the_optimum_of_example_two():
    rows, reward = example_two()
    n_states = reward.shape[0]
    policy = np.zeros(n_states, dtype=int)
    while True:
        own = np.arange(n_states)
        value = np.linalg.solve(
            np.eye(n_states) - GAMMA * rows[own, policy], reward[own, policy]
        )
        gains = reward + GAMMA * rows @ value
        if (gains.max(axis=1) <= value + 1e-10).all():
            break
        policy = np.where(
            gains.max(axis=1) > value + 1e-10, gains.argmax(axis=1), policy
        )
    assert value[0] == pytest.approx(97.66793494, abs=5e-9)
    world = ep.environments.wall_cycle()
    assert (
        np.abs(
            world.cmdp.transition_matrix.toarray() - rows.reshape(-1, n_states)
        ).max()
        < 1e-12
    )
    assert world.optimum == pytest.approx(value[0])
    # and it costs nothing: the budget does not bind
    walk = ep.evaluate(world.cmdp, ep.Policy.deterministic(policy, 5))
    assert walk.start_costs[0] == pytest.approx(0.0, abs=1e-9)
