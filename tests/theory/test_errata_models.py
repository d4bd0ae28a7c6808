"""The numbers of errata E1 to E11: definitions, and the lemmas on simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import linprog

import escapade as ep
from escapade.errors import InvalidInputError
from escapade.model.induced import escape_cmdp, exploration_cmdp, known_state_cmdp
from escapade.theory import accuracy, horizons, known_states
from escapade.theory.explore_or_exploit import exit_value_bound

PRACTICE = {
    "n_states": 100,
    "n_actions": 5,
    "discount": 0.99,
    "epsilon": 1.0,
    "delta": 0.05,
    "reward_max": 1.0,
    "cost_max": 1.0,
}


def worst_mean(nominal, values, radius, *, least):
    """Return max P·v over an L1 ball, with entries of at least ``least``."""
    n = nominal.size  # P, then |P − nominal|
    identity = np.eye(n)
    solved = linprog(
        np.concatenate([-values, np.zeros(n)]),
        A_ub=np.block(
            [
                [identity, -identity],
                [-identity, -identity],
                [np.zeros((1, n)), np.ones((1, n))],
            ]
        ),
        b_ub=np.concatenate([nominal, -nominal, [radius]]),
        A_eq=np.concatenate([np.ones(n), np.zeros(n)])[np.newaxis],
        b_eq=[1.0],
        bounds=[(least, None)] * n + [(0, None)] * n,
    )
    return -solved.fun


def test_e1_without_nonnegativity_an_l1_ball_is_too_large():
    nominal, values = np.array([0.1, 0.6, 0.3]), np.array([0.0, 1.0, 10.0])
    assert worst_mean(nominal, values, 0.4, least=0.0) == pytest.approx(5.5)
    assert worst_mean(nominal, values, 0.4, least=None) == pytest.approx(5.6)


def test_e2_transitions_too_must_be_within_alpha():
    def model(chance):
        rows = [[[1 - chance, chance]], [[0.0, 1.0]]]
        zeros = np.zeros((2, 1))
        return ep.CMDP(rows, zeros, zeros, discount=0.5, budget=1.0)

    found = accuracy.approximation_error(model(0.5), model(0.51))
    assert found.alpha == pytest.approx(0.01)
    assert not accuracy.is_alpha_approximation(model(0.5), model(0.51), alpha=0.001)


def test_e3_the_best_policy_within_a_budget_tosses_a_coin():
    # working pays 1 and costs 1, resting nothing: γ = .5 and d = 1 allow half of it
    choice = ep.CMDP(
        [[[1.0], [1.0]]], [[1.0, 0.0]], [[1.0, 0.0]], discount=0.5, budget=1.0
    )
    solved = ep.solve(choice)
    assert solved.value == pytest.approx(1.0)
    assert solved.policy.probabilities[0] == pytest.approx([0.5, 0.5])
    kept = [
        result.start_value
        for action in (0, 1)
        if (
            result := ep.evaluate(choice, ep.Policy.deterministic([action], 2))
        ).start_costs[0]
        <= 1.0
    ]
    assert max(kept) == pytest.approx(0.0)


def test_e4_a_sum_of_t_steps_is_bounded_by_t_steps():
    at = {"discount": 0.98, "maximum": 1.0}
    assert horizons.value_bound(horizon=196, **at) == pytest.approx(49.047, abs=5e-4)
    assert horizons.value_bound_as_printed(**at) == pytest.approx(50.0)


def test_e5_rewards_and_costs_outside_their_range_are_refused():
    with pytest.raises(InvalidInputError, match=r"^R: .* at state 0, action 0"):
        ep.CMDP([[[1.0]]], [[1.5]], [[0.0]], discount=0.5, budget=1.0, reward_max=1.0)
    with pytest.raises(InvalidInputError, match=r"^C: .* at state 0, action 0"):
        ep.CMDP([[[1.0]]], [[1.0]], [[0.3]], discount=0.5, budget=1.0, cost_max=0.2)


def test_e6_the_rest_is_below_epsilon_from_the_horizon_on_and_above_it_before():
    asked = {"discount": 0.98, "epsilon": 1.0, "reward_max": 1.0, "cost_max": 1.0}
    printed = horizons.horizon_time_as_printed(**asked)
    assert printed == pytest.approx(195.60, abs=5e-3)
    assert horizons.horizon_time(**asked) == 196

    def rest(steps):
        return horizons.truncation_error(discount=0.98, maximum=1.0, horizon=steps)

    assert rest(196) == pytest.approx(0.953, abs=5e-4)
    # what the proof asks for, ε ≤ γ^T r_max / (1−γ), is what must not be
    assert rest(196) < 1.0 < rest(190)


def corridor():
    """Return two states: a free one that leads into one that costs 1 for ever."""
    return ep.CMDP(
        [[[0.0, 1.0]], [[0.0, 1.0]]],
        [[0.0], [0.0]],
        [[0.0], [1.0]],
        discount=0.9,
        budget=1.0,
    )


def test_e7_what_comes_after_leaving_is_charged():
    cmdp, stay = corridor(), ep.Policy.deterministic([0, 0], 1)
    truth = ep.evaluate(cmdp, stay).costs[0]
    assert truth[0] == pytest.approx(9.0)
    printed = known_state_cmdp(cmdp, [0], paper=True)
    charged = known_state_cmdp(cmdp, [0], terminal_cost=truth)
    for induced, cost in ((printed, 0.0), (charged, 9.0)):
        found = ep.evaluate(induced.cmdp, induced.restricted(stay)).costs[0, 0]
        assert found == pytest.approx(cost)


def test_e8_the_printed_escape_stays_where_it_is_paid():
    # staying pays 1 a step among the unknown states, leaving nothing
    cmdp = ep.CMDP(
        [[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]],
        [[1.0, 0.0], [0.0, 0.0]],
        [[1.0, 1.0], [0.0, 0.0]],
        discount=0.9,
        budget=10.0,
    )
    printed = escape_cmdp(cmdp, [0], paper=True)
    corrected = escape_cmdp(cmdp, [0], terminal_cost=np.zeros(2))
    stays = ep.solve(printed.cmdp)
    assert stays.value == pytest.approx(10.0)
    assert stays.policy.probabilities[0] == pytest.approx([1.0, 0.0])
    leaves = ep.solve(corrected.cmdp)
    assert leaves.policy.probabilities[0] == pytest.approx([0.0, 1.0])
    assert leaves.costs[0] == pytest.approx(1.0)


def test_e9_the_discounted_exit_is_not_the_chance_to_leave_in_t_steps():
    # `late` leaves surely after 21 steps, `soon` at once with chance .1, else never
    late, steps = 21, 20
    size = late + 3
    rows = np.zeros((size, 2, size))
    rows[0, 0, 1] = 1.0  # late: a chain of waiting
    for state in range(1, late):
        rows[state, :, state + 1] = 1.0
    rows[0, 1, [late, late + 1]] = 0.1, 0.9  # soon: outside, or stuck
    rows[late, :, late] = rows[late + 1, :, late + 1] = rows[-1, :, -1] = 1.0
    cmdp = ep.CMDP(
        rows,
        np.zeros((size, 2)),
        np.zeros((size, 2)),
        discount=0.99,
        budget=1.0,
        reward_max=1.0,
    )
    known = np.arange(size) != late
    leaving = exploration_cmdp(cmdp, known, paper=True)
    best = ep.solve(leaving.cmdp)
    assert best.value == pytest.approx(0.99**21, abs=1e-9)  # .8097: late
    assert best.policy.probabilities[0, 0] == pytest.approx(1.0)
    chance = {}
    for name, action in (("late", 0), ("soon", 1)):
        chain = rows[:, 0].copy()
        chain[0] = rows[0, action]
        chance[name] = np.linalg.matrix_power(chain, steps)[0, late]
    assert chance == {"late": 0.0, "soon": pytest.approx(0.1)}
    assert exit_value_bound(
        known_value=2.0, discount=0.99, reward_max=1.0, discounted_exit=0.05
    ) == pytest.approx(7.0)


def test_e10_the_limit_on_delta_is_half_of_what_is_printed():
    numbers = {"horizon": 461, "value_bound": 100.0, "epsilon": 1.0}
    right = accuracy.step_ratio_limit(**numbers)
    printed = accuracy.step_ratio_limit_as_printed(**numbers)
    assert printed / right == pytest.approx(2.00125, abs=5e-6)
    allowed = 1 + 1 / 800
    assert (1 + right) ** 461 <= allowed
    assert (1 + printed) ** 461 == pytest.approx(1.002503, abs=5e-7)
    assert (1 + printed) ** 461 > allowed


def test_e10_the_constant_survives_for_every_number_of_states():
    for n_states in (1, 2, 3, 4, 100):
        alpha = accuracy.model_accuracy(
            n_states=n_states, horizon=461, value_bound=100.0, epsilon=1.0
        )
        conditions = accuracy.accuracy_conditions(
            n_states=n_states,
            horizon=461,
            value_bound=100.0,
            epsilon=1.0,
            accuracy=alpha,
        )
        assert all(condition.holds for condition in conditions)


def test_e10_delta_is_shared_by_51_000_estimates_in_example_two():
    estimates = 100 * 5 * (100 + 2)
    assert estimates == 51_000
    shared = known_states.known_visits(**PRACTICE)
    alone = known_states.known_visits(**(PRACTICE | {"delta": 0.05 / 2}), n_costs=1)
    alpha = accuracy.required_accuracy(
        n_states=100, discount=0.99, epsilon=1.0, reward_max=1.0, cost_max=1.0
    ).accuracy
    assert shared == pytest.approx(math.log(2 * 51_000 / 0.05) / (2 * alpha**2))
    assert alone > shared


def test_the_printed_count_of_example_two_is_astronomical():
    printed = known_states.known_visits_as_printed(**PRACTICE)
    assert printed == pytest.approx(8.6e31, rel=0.01)
    assert printed / 5 == pytest.approx(1.7e31, rel=0.02)


def test_e11_bernstein_gains_577_fold_in_the_papers_example():
    numbers = {"scale": 100.0, "variance": 1.0, "accuracy": 0.1}
    assert known_states.bernstein_gain(**numbers) == pytest.approx(576.9, abs=0.05)
    printed = known_states.bernstein_gain_as_printed(**numbers)
    assert printed == pytest.approx(24.19, abs=5e-3)


def test_e11_the_printed_count_is_negative():
    printed = known_states.known_visits_bernstein_as_printed(
        **PRACTICE, variance=0.25, accuracy=0.1
    )
    assert printed < 0
