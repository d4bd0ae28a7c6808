"""The counterexample to the paper's Safe Balanced Wandering Lemma, number by number."""

from __future__ import annotations

import numpy as np
import pytest

import escapade as ep
from escapade.errors import InvalidInputError
from escapade.theory.wandering import (
    wandering_allowed,
    wandering_allowed_as_printed,
    wandering_allowed_in_expectation,
)

GAMMA = 0.99


def steps(n):
    """Discounted cost of n steps at 1 each."""
    return (1.0 - GAMMA**n) / (1.0 - GAMMA)


def follow(world, rule):
    """Return the policy of wandering while the rule allows it, and home after that.

    Every state but K is met at one time only, so the rule makes a stationary policy.
    """
    cmdp, actions = world.cmdp, world.home.actions.copy()
    frontier, step = [world.state("u0")], 0
    while frontier:
        ahead = set()
        for state in frontier:
            expected, worst = 0.0, 0.0
            for action in range(2):
                after, chance = cmdp.successors(state, action)
                escape = world.escape_cost[after]
                expected = max(expected, float(chance @ escape))
                worst = max(worst, float(escape.max()))
            if rule(steps(step), step, expected, worst):
                actions[state] = 0
                after, _ = cmdp.successors(state, 0)
                ahead |= {int(s) for s in after if not world.known[s]}
        frontier, step = sorted(ahead), step + 1
    return ep.Policy.deterministic(actions, 2)


def printed(world):
    return lambda spent, step, expected, worst: wandering_allowed_as_printed(
        spent=spent,
        step=step,
        expected_escape_cost=expected,
        escape_budget=world.escape_budget,
        cost_max=1.0,
        discount=GAMMA,
    )


def in_expectation(world):
    return lambda spent, step, expected, worst: wandering_allowed_in_expectation(
        spent=spent,
        step=step,
        expected_escape_cost=expected,
        escape_budget=world.escape_budget,
        cost_max=1.0,
        discount=GAMMA,
    )


def corrected(world):
    return lambda spent, step, expected, worst: wandering_allowed(
        spent=spent,
        step=step,
        worst_escape_cost=worst,
        escape_budget=world.escape_budget,
        cost_max=1.0,
        discount=GAMMA,
    )


def cost(world, policy):
    return float(ep.evaluate(world.cmdp, policy).start_costs[0])


def test_what_the_lemma_speaks_of():
    world = ep.environments.wandering_gamble()
    assert (world.escape_budget, world.escape_steps) == (10.02, 11)
    assert np.flatnonzero(world.known).tolist() == [world.state("K")]
    assert world.cmdp.n_states == 21
    for name, away in {"u0": 1, "u4": 1, "G": 1, "B10": 10, "X4": 4, "K": 0}.items():
        assert world.escape_cost[world.state(name)] == pytest.approx(steps(away))
    costs = ep.evaluate(world.cmdp, world.home).costs[0]
    np.testing.assert_allclose(world.escape_cost, costs)
    with pytest.raises(ValueError, match="read-only"):
        world.known[0] = True


def test_the_printed_rule_breaks_its_promise():
    world = ep.environments.wandering_gamble()
    at_u4 = steps(4) + GAMMA**4 * (steps(10) + steps(1)) / 2
    assert at_u4 == pytest.approx(9.0132, abs=5e-5)
    assert at_u4 < world.escape_budget - 1.0
    policy = follow(world, printed(world))
    assert [policy.actions[world.state(s)] for s in ("u0", "u4", "G")] == [0, 0, 0]
    assert cost(world, policy) == pytest.approx(11.778, abs=5e-4)
    assert cost(world, world.wander) == pytest.approx((steps(15) + steps(10)) / 2)
    assert steps(15) == pytest.approx(13.994, abs=5e-4)
    assert steps(10) == pytest.approx(9.562, abs=5e-4)


def test_a_little_less_budget_and_the_printed_rule_turns_in_time():
    world = ep.environments.wandering_gamble(escape_budget=10.0132)
    policy = follow(world, printed(world))
    assert policy.actions[world.state("u4")] == 1
    assert cost(world, policy) <= world.escape_budget


def test_the_expectation_is_not_enough_even_at_the_right_time():
    world = ep.environments.wandering_gamble(escape_budget=10.01)
    policy = follow(world, in_expectation(world))
    assert cost(world, policy) == pytest.approx(11.778, abs=5e-4)


@pytest.mark.parametrize("budget", [5.0, 8.0, 10.01, 10.0132, 10.02, 12.0, 14.0, 20.0])
def test_the_worst_next_state_keeps_every_budget(budget):
    world = ep.environments.wandering_gamble(escape_budget=budget)
    policy = follow(world, corrected(world))
    assert cost(world, policy) <= budget
    assert (policy.actions[world.state("u4")] == 0) == (budget >= steps(15))


def test_a_budget_that_cannot_be_spent_takes_for_ever():
    assert ep.environments.wandering_gamble(escape_budget=100.0).escape_steps == np.inf


def test_a_budget_that_is_none_is_refused_by_its_name():
    with pytest.raises(InvalidInputError, match=r"^escape_budget: expected a finite"):
        ep.environments.wandering_gamble(escape_budget=-1.0)


def test_an_unknown_state_is_refused():
    world = ep.environments.wandering_gamble()
    with pytest.raises(InvalidInputError, match=r"name: expected one of .*found 'B11'"):
        world.state("B11")
