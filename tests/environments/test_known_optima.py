"""Every world's optimum, recovered by SciPy's linear programming."""

from __future__ import annotations

import numpy as np
import pytest

import escapade as ep

worlds = ep.environments


@pytest.mark.parametrize("name", worlds.names())
def test_the_optimum_of_every_world_is_that_of_the_linear_program(name, lp_optimum):
    world = worlds.make(name)
    value, costs = lp_optimum(world.cmdp)
    assert world.optimum == pytest.approx(value, rel=1e-8)
    assert world.optimum_source
    assert (costs <= world.cmdp.budget + 1e-9).all()


# -- the numbers that are stated, as they are stated ---------------------------------


def test_example_two(lp_optimum):
    world = worlds.wall_cycle(10)
    value, costs = lp_optimum(world.cmdp)
    assert value == pytest.approx(97.66793494, abs=5e-9)
    assert world.known_optimum == pytest.approx(value, abs=1e-9)
    assert costs == pytest.approx([0.0], abs=1e-9)  # ten do not bind
    assert world.cmdp.budget.tolist() == [10.0]


def test_the_toll_binds(lp_optimum):
    world = worlds.toll_cycle(10)
    value, costs = lp_optimum(world.cmdp)
    assert value == pytest.approx(200.0 / 3.0, rel=1e-10)
    assert costs == pytest.approx([10.0])
    free, spent = lp_optimum(world.cmdp.replace(budget=100.0))
    assert free == pytest.approx(97.66793494, abs=5e-9)
    assert 14.0 < spent[0] < 15.5


@pytest.mark.parametrize("size", [2, 3, 4, 5, 7])
def test_the_toll_binds_on_a_field_of_any_size(size, lp_optimum):
    world = worlds.toll_cycle(size)
    assert world.known_optimum == pytest.approx(lp_optimum(world.cmdp)[0], rel=1e-10)
    assert lp_optimum(world.cmdp.replace(budget=100.0))[0] > 95.0


@pytest.mark.parametrize(
    ("keywords", "optimum"),
    [
        ({"discount": 0.9, "budget": 5.0}, 10.3506),
        ({"discount": 0.99, "budget": 50.0}, 100.335),
        ({"horizon": 6, "budget": 3.0}, 6.6667),
    ],
)
def test_the_three_state_loop(keywords, optimum, lp_optimum):
    world = worlds.three_state_loop(**keywords)
    value, costs = lp_optimum(world.cmdp)
    assert value == pytest.approx(optimum, abs=5e-4 if optimum > 100 else 5e-5)
    assert world.known_optimum == pytest.approx(value, rel=1e-12)
    assert world.raw_optimum == world.optimum
    assert costs == pytest.approx(world.cmdp.budget)


@pytest.mark.parametrize("discount", [0.0, 0.4, 0.9, 0.99])
@pytest.mark.parametrize("share", [0.2, 0.5, 0.8, 0.95, 1.0])
def test_the_closed_form_of_the_loop(discount, share, lp_optimum):
    world = worlds.three_state_loop(discount=discount, budget=share / (1.0 - discount))
    assert world.optimum == pytest.approx(lp_optimum(world.cmdp)[0], rel=1e-8)


def test_the_barriers(lp_optimum):
    world = worlds.barrier_grid()
    value, costs = lp_optimum(world.cmdp)
    assert value == pytest.approx(1.0748375833535557, rel=1e-12)
    assert world.known_optimum == 1.0748375833535557
    assert costs == pytest.approx([2.0, 2.0])  # both bind
    for budget in ([9.0, 2.0], [2.0, 9.0]):
        assert lp_optimum(world.cmdp.replace(budget=budget))[0] > value + 1e-5


def test_the_moat(lp_optimum, lp_average):
    world = worlds.moat_grid()
    value, costs = lp_optimum(world.cmdp)
    assert world.known_optimum == pytest.approx(value, rel=1e-11)
    assert world.raw_optimum == pytest.approx(value - 100.0, rel=1e-11)
    assert costs == pytest.approx([20.0])
    average, rates = lp_average(world.cmdp, [0.2])
    assert average - 1.0 == pytest.approx(-0.775, abs=1e-12)
    assert rates == pytest.approx([0.2])
    assert world.average_optimum == pytest.approx(average)
    assert world.raw_average_optimum == pytest.approx(-0.775, abs=1e-12)


@pytest.mark.parametrize("discount", [0.0, 0.3, 0.6, 0.9, 0.99])
@pytest.mark.parametrize("budget", [0.0, 0.3, 0.9, 2.0, 20.0, 30.0])
def test_the_closed_forms_of_the_moat(discount, budget, lp_optimum, lp_average):
    world = worlds.moat_grid(discount=discount, budget=budget)
    assert world.optimum == pytest.approx(lp_optimum(world.cmdp)[0], abs=1e-9)
    rate = (1.0 - discount) * budget
    average, _ = lp_average(world.cmdp, [rate])
    assert world.average_optimum == pytest.approx(average, abs=1e-9)


@pytest.mark.parametrize("budget", [4.5, 4.91, 6.0, 10.01, 10.02, 11.7, 11.8, 20.0])
def test_the_closed_form_of_the_gamble(budget, lp_optimum):
    world = worlds.wandering_gamble(escape_budget=budget)
    assert world.optimum == pytest.approx(lp_optimum(world.cmdp)[0], rel=1e-8)
    assert (world.known_optimum is None) == (budget == 4.5)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("n_costs", [1, 3])
def test_the_optimum_of_a_random_problem_is_computed(seed, n_costs, lp_optimum):
    world = worlds.garnet(12, 3, 2, seed, n_costs=n_costs)
    assert world.known_optimum is None
    assert "computed" in world.optimum_source
    assert world.optimum == pytest.approx(lp_optimum(world.cmdp)[0], rel=1e-8)


def test_no_policy_within_the_budgets_is_worth_nan():
    world = worlds.wandering_gamble(escape_budget=0.5)
    assert np.isnan(world.optimum)
