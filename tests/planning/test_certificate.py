"""The certificate: however wrong a solver is, its answer is not."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import escapade as ep
from escapade.planning.certificate import Claim, certified
from escapade.planning.feasibility import closest_to_budgets
from escapade.planning.oracle import Oracle
from escapade.testing import cmdps


def judge(cmdp, visits, multipliers, *, stopped=None) -> ep.Solution:
    oracle = Oracle(cmdp)
    return certified(
        oracle,
        Claim(
            visits=visits,
            multipliers=np.asarray(multipliers, dtype=float),
            iterations=7,
            stopped=stopped,
        ),
        closest_to_budgets(oracle),
        solver="Liar",
        precision=1e-8,
        began=time.perf_counter(),
    )


@given(data=st.data(), cmdp=cmdps(max_states=4, max_costs=3, feasible=True))
@settings(max_examples=40)
def test_a_lying_solver_is_found_out(data, cmdp, reference) -> None:
    """Whatever is claimed, the policy keeps the budgets and the bounds hold."""
    best = reference(cmdp).value
    level = st.integers(0, 4).map(float)
    visits = np.array([data.draw(level) for _ in range(cmdp.n_pairs)])
    prices = np.array([data.draw(st.integers(-2, 6)) for _ in range(cmdp.n_costs)])
    answer = judge(cmdp, data.draw(st.sampled_from([visits, None])), prices)
    size = max(1.0, best)
    assert answer.policy is not None
    result = ep.evaluate(cmdp, answer.policy)
    assert result.start_value == pytest.approx(answer.value, rel=1e-8, abs=1e-8)
    over = result.start_costs - cmdp.budget - result.error
    assert (over <= answer.residuals["budget"] + 1e-12).all()
    assert answer.residuals["budget"] <= 1e-8 / (1.0 - cmdp.discount)
    assert answer.lower - 1e-7 * size <= best <= answer.upper + 1e-7 * size
    assert answer.lower <= answer.value
    assert (answer.multipliers >= 0.0).all()
    if answer.status == "optimal":
        assert answer.value == pytest.approx(best, rel=1e-6, abs=1e-6)
    else:
        assert answer.status == "imprecise"
        assert answer.gap > 1e-8 * max(1.0, abs(answer.value))


def test_the_truth_is_recognised(problem, reference) -> None:
    cmdp = problem(0, n_costs=2)
    truth = reference(cmdp)
    prices = ep.solve(cmdp, ep.ColumnGeneration()).multipliers
    answer = judge(cmdp, truth.visits, prices)
    assert answer.status == "optimal"
    assert answer.iterations == 7
    assert answer.solver == "Liar"
    assert set(answer.residuals) == {"budget", "evaluation", "slackness", "gap"}


def test_a_limit_is_only_reported_where_it_mattered(problem, reference) -> None:
    cmdp = problem(0, n_costs=2)
    truth = reference(cmdp)
    prices = ep.solve(cmdp, ep.ColumnGeneration()).multipliers
    done = judge(cmdp, truth.visits, prices, stopped="time_limit")
    assert done.status == "optimal"
    cut = judge(cmdp, None, np.zeros(2), stopped="time_limit")
    assert cut.status == "time_limit"
    assert "larger time_limit" in cut.message


def test_a_trifle_over_budget_is_repaired_cheaply(problem) -> None:
    """Exceeding a budget by 1e-9 costs about its price in value, not a detour."""
    for seed in range(5):
        cmdp = problem(seed, n_costs=1)
        exact = ep.solve(cmdp, ep.ColumnGeneration())
        if exact.multipliers[0] < 1e-3:
            continue
        rich = cmdp.replace(budget=cmdp.budget * (1.0 + 1e-7))
        over = ep.solve(rich, ep.ColumnGeneration())
        visits = ep.occupancy(cmdp, over.policy)
        answer = judge(cmdp, visits, exact.multipliers)
        excess = over.costs[0] - cmdp.budget[0]
        assert excess > 0.0
        assert answer.costs[0] <= cmdp.budget[0]
        assert answer.residuals["budget"] == 0.0
        lost = exact.value - answer.value
        assert lost <= 4.0 * exact.multipliers[0] * excess + 1e-9


def test_no_room_within_the_budget_is_said(problem) -> None:
    """With one policy alone there is nothing to mix: its rounding is the residual."""
    third = 1.0 / 3.0
    cmdp = ep.CMDP(
        [[[third, 2 * third]], [[2 * third, third]]],
        [[1.0], [0.5]],
        [[0.7], [0.1]],
        discount=0.9,
        budget=0.0,
    )
    least = float(ep.evaluate(cmdp, ep.Policy.uniform(cmdp)).start_costs[0])
    answer = ep.solve(cmdp.replace(budget=least), ep.OccupationLP())
    assert answer.is_feasible
    assert 0.0 < answer.residuals["budget"] < 1e-12
    assert "no room within the budgets" in answer.message


def test_weights_too_small_to_matter_vanish(problem) -> None:
    """What a solver leaves at 1e-14 of the visits is noise, not a choice."""
    cmdp = problem(1, n_costs=1).replace(budget=1e6)
    visits = ep.occupancy(cmdp, ep.solve(cmdp).policy)
    noisy = judge(cmdp, visits + 1e-15, np.zeros(1))
    assert noisy.policy.is_deterministic
