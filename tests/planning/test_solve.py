"""The verb: which solver is taken, what is refused, what an answer says of itself."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from typing import ClassVar

import numpy as np
import pytest

import escapade as ep
from escapade.errors import InvalidInputError, SolverError
from escapade.planning import occupation_lp
from escapade.planning.base import RobustSolver, Solver, check_limits
from escapade.planning.highs import LinearAnswer
from escapade.planning.solution import STATUS_ADVICE
from escapade.planning.solve import Objective

EXACT = [ep.OccupationLP, ep.DualLP, ep.ColumnGeneration]


def test_small_problems_go_to_the_linear_program(problem) -> None:
    answer = ep.solve(problem(0))
    assert answer.solver == "OccupationLP"
    assert answer.message.startswith("OccupationLP was chosen: ")
    assert answer.message.endswith(STATUS_ADVICE["optimal"])


def test_large_problems_go_to_column_generation() -> None:
    rng = np.random.default_rng(0)
    cmdp = ep.CMDP(
        rng.dirichlet(np.ones(120), size=(120, 4)),
        rng.random((120, 4)),
        rng.random((120, 4)),
        discount=0.9,
        budget=3.0,
    )
    answer = ep.solve(cmdp)
    assert answer.solver == "ColumnGeneration"
    assert "480 pairs and 1 budget are solved sooner" in answer.message
    other = ep.solve(cmdp, ep.OccupationLP(method="interior_point"))
    assert other.value == pytest.approx(answer.value, rel=1e-7)


def test_sets_go_to_a_robust_solver(monkeypatch, problem) -> None:
    cmdp = problem(0, n_costs=1)
    cmdp = cmdp.replace(budget=1.5 * cmdp.budget)
    sets = ep.uncertainty.L1Ball(cmdp, radius=0.05)
    for objective in ("nominal", "worst"):
        answer = ep.solve(cmdp, uncertainty=sets, objective=objective)
        assert answer.solver == "RobustLP"
        assert answer.message.startswith("RobustLP was chosen: an uncertainty set")
        bounds = ep.planning.robust_evaluate(cmdp, answer.policy, sets)
        assert bounds.start_costs_upper <= cmdp.budget + 1e-8
    monkeypatch.setitem(ep.solve.__globals__, "_PAIRS_TO_REFINE", 1)
    answer = ep.solve(cmdp, uncertainty=sets)
    assert "the policy is not refined" in answer.message
    assert answer.is_feasible


def test_a_solver_may_be_of_ones_own(problem) -> None:
    class Lazy:
        robust: ClassVar[bool] = False

        def solve(self, problem: ep.CMDP) -> ep.Solution:
            return ep.OccupationLP().solve(problem)

    class Both:
        robust: ClassVar[bool] = True
        nominal: ClassVar[bool] = True

        def solve(self, problem, *, uncertainty, objective: Objective = "nominal"):
            assert uncertainty is None
            assert objective == "nominal"
            return ep.OccupationLP().solve(problem)

    assert isinstance(Lazy(), Solver)
    assert isinstance(Both(), RobustSolver)
    cmdp = problem(0)
    assert ep.solve(cmdp, Lazy()).value == ep.solve(cmdp, Both()).value


@pytest.mark.parametrize("solver", EXACT)
def test_exact_solvers_are_frozen_solvers(solver) -> None:
    assert isinstance(solver(), Solver)
    assert solver() == solver()
    assert not solver.robust
    with pytest.raises(FrozenInstanceError):
        solver().precision = 0.1
    with pytest.raises(TypeError):
        solver(1e-8)  # settings are named


@pytest.mark.parametrize("solver", EXACT)
def test_limits_end_early_with_bounds_that_hold(solver) -> None:
    rng = np.random.default_rng(1)
    cmdp = ep.CMDP(
        rng.dirichlet(np.ones(60), size=(60, 4)),
        rng.random((60, 4)),
        rng.random((2, 60, 4)),
        discount=0.95,
        budget=[8.0, 8.0],
    )
    best = ep.solve(cmdp, solver()).value
    for name, limit in (("max_iterations", 1), ("time_limit", 1e-9)):
        answer = ep.solve(cmdp, solver(**{name: limit}))
        assert answer.status == ("iteration_limit", "time_limit")[name == "time_limit"]
        assert answer.lower <= best <= answer.upper
        assert (answer.costs <= cmdp.budget).all()
        assert f"larger {name}" in answer.message
        single = ep.solve(cmdp.replace(cost=cmdp.cost[0], cost_max=None, budget=8.0))
        cut = solver(**{name: limit}).solve(
            cmdp.replace(cost=cmdp.cost[0], cost_max=None, budget=8.0)
        )
        assert cut.lower <= single.value <= cut.upper


@pytest.mark.parametrize("solver", EXACT)
def test_bad_settings_are_refused(solver) -> None:
    with pytest.raises(InvalidInputError, match="precision: expected a number in"):
        solver(precision=0.0)
    with pytest.raises(InvalidInputError, match="max_iterations: expected a whole"):
        solver(max_iterations=0)
    with pytest.raises(InvalidInputError, match="max_iterations: expected a whole"):
        solver(max_iterations=2.5)
    with pytest.raises(InvalidInputError, match="time_limit: expected a number of"):
        solver(time_limit=0.0)
    check_limits(precision=0.5, max_iterations=3, time_limit=1.0)


def test_bad_calls_are_refused(problem) -> None:
    cmdp = problem(0)
    with pytest.raises(InvalidInputError, match="problem: expected a CMDP, found a"):
        ep.solve(42)
    with pytest.raises(InvalidInputError, match=r"solver: expected .*OccupationLP\(\)"):
        ep.solve(cmdp, ep.OccupationLP)
    with pytest.raises(InvalidInputError, match="solver: expected a solver"):
        ep.solve(cmdp, "simplex")
    with pytest.raises(InvalidInputError, match="objective: expected 'nominal' or"):
        ep.solve(cmdp, objective="best")
    with pytest.raises(InvalidInputError, match="'nominal' without an uncertainty"):
        ep.solve(cmdp, objective="worst")
    with pytest.raises(InvalidInputError, match="uncertainty: expected a set from"):
        ep.solve(cmdp, uncertainty=0.2)
    with pytest.raises(InvalidInputError, match="method: expected one of"):
        ep.OccupationLP(method="barrier")


def test_sets_are_for_robust_solvers(problem) -> None:
    class Robust:
        robust: ClassVar[bool] = True

        def solve(self, problem, *, uncertainty, objective: Objective = "nominal"):
            raise AssertionError("not reached")

    cmdp = problem(0)
    sets = ep.uncertainty.L1Ball(cmdp, radius=0.1)
    with pytest.raises(InvalidInputError, match="uncertainty: expected none: DualLP"):
        ep.solve(cmdp, ep.DualLP(), uncertainty=sets)
    with pytest.raises(InvalidInputError, match="which Robust needs"):
        ep.solve(cmdp, Robust())
    other = problem(1)
    with pytest.raises(InvalidInputError, match="uncertainty: expected a set over"):
        ep.solve(other, Robust(), uncertainty=sets)


def test_highs_contradicting_a_proof_is_an_error(monkeypatch, problem) -> None:
    monkeypatch.setattr(
        occupation_lp,
        "maximise",
        lambda *_, **__: LinearAnswer(
            outcome="infeasible", x=None, prices=None, iterations=0
        ),
    )
    with pytest.raises(SolverError, match="calls a feasible, bounded program"):
        ep.solve(problem(0), ep.OccupationLP())


def test_a_solution_explains_itself(problem) -> None:
    cmdp = problem(0, n_costs=2)
    answer = ep.solve(cmdp)
    assert answer.is_optimal
    assert answer.is_feasible
    assert answer.gap == answer.upper - answer.lower
    assert repr(answer).startswith("Solution(optimal, value ")
    for array in (answer.costs, answer.multipliers):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0
    with pytest.raises(TypeError):
        answer.residuals["gap"] = 0.0
    with pytest.raises(InvalidInputError, match="status: expected one of"):
        ep.Solution(
            policy=None,
            value=0.0,
            costs=[0.0],
            lower=0.0,
            upper=0.0,
            status="splendid",
            message="",
            multipliers=[0.0],
            iterations=0,
            seconds=0.0,
            solver="",
        )
