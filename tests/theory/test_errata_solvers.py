"""The numbers of errata E25 to E34: solvers, sets, attempts, single paths."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import binom, norm

import escapade as ep
from escapade.theory import attempts, paths, radii
from escapade.theory.explore_or_exploit import theorem_margins

# Three states in a ring; `stay` is free and pays nothing, `move` costs 1 and pays 1, 2
# or 3.  The start is even, γ = .9 and d = 5.
LOOP_REWARD = np.array([[0.0, 1.0], [0.0, 2.0], [0.0, 3.0]])
LOOP_COST = np.array([[0.0, 1.0]] * 3)
START = np.full(3, 1 / 3)
GAMMA, BUDGET = 0.9, 5.0


def loop(slips=(0.0, 0.0, 0.0)):
    """Return the transitions of the loop, where a move from s slips with a chance."""
    rows = np.zeros((3, 2, 3))
    for state, slip in enumerate(slips):
        rows[state, 0, state] = 1.0
        rows[state, 1, (state + 1) % 3] += 1.0 - slip
        rows[state, 1, state] += slip
    return rows


def flow_of(rows):
    """Return the matrix of Σ_a f(s, a) − γ Σ P f, one row a state."""
    n_states, n_actions = rows.shape[:2]
    own = np.repeat(np.eye(n_states), n_actions, axis=1)
    return own - GAMMA * rows.reshape(-1, n_states).T


def primal(rows, budget=BUDGET, *, scale=1.0, flow=True):
    """Return the value of the occupation LP; ``scale`` multiplies every f."""
    balance = {"A_eq": flow_of(rows), "b_eq": scale * START} if flow else {}
    return linprog(
        -LOOP_REWARD.ravel() / scale,
        A_ub=LOOP_COST.ravel()[np.newaxis],
        b_ub=[budget],
        bounds=(0, None),
        **balance,
    )


def dual(kernels, *, maximise=False):
    """Return the dual LP over φ and λ, with the inequalities of every kernel."""
    blocks = [
        -np.column_stack([flow_of(rows).T, LOOP_COST.ravel()]) for rows in kernels
    ]
    objective = np.concatenate([START, [BUDGET]])
    if maximise:  # as printed: max over λ and φ of φ(s) − λ d
        objective = np.concatenate([-START, [BUDGET]])
    return linprog(
        objective,
        A_ub=np.vstack(blocks),
        b_ub=np.tile(-LOOP_REWARD.ravel(), len(kernels)),
        bounds=[(None, None)] * 3 + [(0, None)],
    )


def test_e26_the_printed_multiplier_runs_away():
    # one state: work pays and costs 1 a step, γ = .5, d = 1; C is 2 or 0
    def costs(sign):
        multiplier, seen = 0.0, []
        for _ in range(4000):
            cost = 2.0 if 1.0 - multiplier > 0.0 else 0.0
            seen.append(cost)
            multiplier = max(multiplier + sign * 0.01 * (cost - 1.0), -1e9)
        return multiplier, float(np.mean(seen[2000:]))

    assert costs(+1.0) == (pytest.approx(1.0, abs=0.02), pytest.approx(1.0, abs=0.01))
    assert costs(-1.0) == (pytest.approx(-40.0), 2.0)  # over budget for ever


def test_e27_without_flow_the_occupation_lp_is_about_another_problem():
    right = primal(loop())
    assert -right.fun == pytest.approx(10.3506, abs=5e-5)
    # all of the budget on the best pair, which no policy can play all the time
    free = primal(loop(), flow=False)
    assert -free.fun == pytest.approx(15.0)


def test_e27_a_normalised_measure_with_an_unscaled_budget_has_ten_times_as_much():
    normalised = primal(loop(), scale=1.0 - GAMMA)
    assert -normalised.fun == pytest.approx(20.0)
    unbounded = primal(loop(), budget=BUDGET / (1.0 - GAMMA))
    assert -normalised.fun == pytest.approx(-unbounded.fun)
    rescaled = primal(loop(), budget=BUDGET * (1.0 - GAMMA), scale=1.0 - GAMMA)
    assert -rescaled.fun == pytest.approx(10.3506, abs=5e-5)


def test_e28_the_printed_dual_is_unbounded_and_the_right_one_is_the_primal():
    assert dual([loop()], maximise=True).status == 3
    assert dual([loop()]).fun == pytest.approx(-primal(loop()).fun)
    library = ep.CMDP(
        loop(), LOOP_REWARD, LOOP_COST, discount=GAMMA, budget=BUDGET, start=START
    )
    assert ep.solve(library).value == pytest.approx(dual([loop()]).fun)


def test_e28_all_kernels_at_once_give_an_upper_bound():
    # one kernel slips in state 0, the other in states 1 and 2
    first, second = loop((0.5, 0.0, 0.0)), loop((0.0, 0.5, 0.5))
    values = [-primal(rows).fun for rows in (first, second)]
    both = dual([first, second]).fun
    assert values == pytest.approx([9.3396, 11.3825], abs=5e-5)
    assert both == pytest.approx(11.6442, abs=5e-5)
    assert both > max(values)


def test_e29_the_worst_kernel_for_reward_is_the_least():
    values, nominal, radius = np.array([0.0, 10.0]), np.array([0.5, 0.5]), 0.4
    moved = radius / 2 * np.array([1.0, -1.0])
    assert (nominal + moved) @ values == pytest.approx(3.0)
    assert (nominal - moved) @ values == pytest.approx(7.0)  # what is printed


def test_e30_the_printed_radius_hardly_depends_on_delta():
    at = {"n_states": 100, "n_pairs": 500}
    right = [float(radii.weissman_radius(100, delta=d, **at)) for d in (0.05, 1e-9)]
    printed = [
        float(radii.weissman_radius_as_printed(100, delta=d, **at))
        for d in (0.05, 1e-9)
    ]
    assert right == pytest.approx([1.2532, 1.3875], abs=5e-5)
    assert printed == pytest.approx([1.2295, 1.2291], abs=5e-5)


def test_e30_the_printed_radius_fails_nearly_one_time_in_ten():
    # a fair coin, one pair, 1000 visits, promised to fail once in a million
    at = {"n_states": 2, "n_pairs": 1, "delta": 1e-6}

    def failure(radius):
        most = math.floor(1000 * (0.5 + float(radius) / 2))
        return 2 * binom.sf(most, 1000, 0.5)

    printed = failure(radii.weissman_radius_as_printed(1000, **at))
    assert printed == pytest.approx(0.0937, abs=5e-5)
    assert failure(radii.weissman_radius(1000, **at)) < 1e-6


def test_e31_accuracies_of_a_quarter_leave_no_gap_to_explore_in():
    quarter, eighth = (theorem_margins(accuracy=share) for share in (0.25, 0.125))
    assert quarter.exploration_gap == 0.0
    assert not quarter.holds
    assert eighth.exploration_gap == 0.25
    assert eighth.exploitation_loss == 0.625
    assert eighth.planned_exploration_gap == 0.15625
    assert eighth.holds


def test_e32_half_of_the_attempts_fail_one_time_in_four():
    asked = {"visits": 100, "probability": 0.01, "n_states": 1, "delta": 0.001}
    printed = attempts.exploration_attempts_as_printed(**asked)
    assert printed == pytest.approx(10_690.8, abs=0.05)
    at = {"visits": 100, "probability": 0.01}
    failure = attempts.attempts_failure(attempts=math.ceil(printed), **at)
    assert failure == pytest.approx(0.2380, abs=5e-4)
    enough = attempts.exploration_attempts(**asked)
    assert enough == 21_382
    assert attempts.attempts_failure(attempts=enough, **at) < 1e-18


def test_e33_deterministic_costs_do_not_make_paths_certain():
    at = {"discount": 0.98}
    assert paths.path_deviation_bound_as_printed(cost_variance=0.0, **at) == 0.0
    # a coin decides once whether every step costs 1 or nothing
    coin = np.array([0.0, 50.0])
    assert coin.std() == pytest.approx(25.0)
    assert paths.path_deviation_bound(cost_max=1.0, **at) == pytest.approx(25.0)


def test_e33_three_deviations_are_exceeded_by_135_in_100_000():
    assert paths.normal_tail(deviations=3.0) == pytest.approx(0.00135, abs=5e-7)
    assert paths.normal_tail(deviations=3.0) == pytest.approx(norm.sf(3.0))
    assert paths.normal_tail(deviations=3.0) > 0.001  # more than the printed 0.1 %
