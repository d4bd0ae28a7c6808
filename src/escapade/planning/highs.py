"""The one file that touches HiGHS: linear programs in, primal values and prices out.

Both sides' standard forms, and the signs of the duals.

*Here*: maximise ``g · x`` subject to ``row_lower <= A x <= row_upper`` and
``lower <= x <= upper``.  The *price* of a row is the rate at which the maximum rises
with the bound that is active there: ``>= 0`` where the upper bound is active, ``<= 0``
where the lower one is.

*HiGHS*: minimise ``c · x`` under the same bounds; its ``row_dual`` is the rate at which
the minimum rises with the active bound.  With ``c = −g`` the price is ``−row_dual``.

Nothing downstream rests on these numbers being right: planners evaluate the policy that
they imply, and bound the optimum by dynamic programming at the prices that they name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import highspy
import numpy as np
import scipy.sparse as sp

from escapade.errors import SolverError, refusal
from escapade.typing import FloatArray

__all__ = ["LinearAnswer", "LinearProgram", "Method", "check_method", "maximise"]

Method: TypeAlias = Literal["simplex", "interior_point"]

_METHODS = {"simplex": "simplex", "interior_point": "ipm"}
_TOLERANCE = 1e-9  # of feasibility on both sides; HiGHS allows down to 1e-10
_SMALLEST_ENTRY = 1e-12  # HiGHS drops smaller ones; its own choice would be 1e-9

_OUTCOMES: dict[highspy.HighsModelStatus, str] = {
    highspy.HighsModelStatus.kOptimal: "optimal",
    highspy.HighsModelStatus.kModelEmpty: "optimal",
    highspy.HighsModelStatus.kInfeasible: "infeasible",
    highspy.HighsModelStatus.kUnbounded: "unbounded",
    highspy.HighsModelStatus.kUnboundedOrInfeasible: "unbounded_or_infeasible",
    highspy.HighsModelStatus.kTimeLimit: "time_limit",
    highspy.HighsModelStatus.kIterationLimit: "iteration_limit",
    highspy.HighsModelStatus.kUnknown: "imprecise",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearProgram:
    """Maximise ``objective · x`` within bounds on ``matrix @ x`` and on ``x``."""

    objective: FloatArray
    matrix: sp.csc_array
    row_lower: FloatArray
    row_upper: FloatArray
    lower: FloatArray
    upper: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearAnswer:
    """What HiGHS found.

    ``outcome`` is ``"optimal"``, ``"infeasible"``, ``"unbounded"``,
    ``"unbounded_or_infeasible"``, ``"time_limit"``, ``"iteration_limit"`` or
    ``"imprecise"``; ``x`` and ``prices`` are ``None`` where it has none to offer.
    """

    outcome: str
    x: FloatArray | None
    prices: FloatArray | None
    iterations: int


def check_method(method: str) -> None:
    """Refuse a method that this file does not know."""
    if method not in _METHODS:
        raise refusal("method", f"one of {sorted(_METHODS)}", repr(method))


def maximise(
    program: LinearProgram,
    *,
    method: Method = "simplex",
    max_iterations: int | None = None,
    time_limit: float | None = None,
    presolve: bool = True,
) -> LinearAnswer:
    """Solve a linear program.

    HiGHS breaks down on some programs, but seldom in every way it has; so it is asked
    again, with the other setting of ``presolve`` and then by the other method.

    Parameters
    ----------
    program
        The linear program.
    method
        ``"simplex"`` (dual simplex) or ``"interior_point"`` (with crossover).
    max_iterations, time_limit
        Where to stop early; the answer then says so.
    presolve
        Whether HiGHS may reduce the program first; tiny ones are quicker without.

    Raises
    ------
    SolverError
        If HiGHS breaks down.
    """
    other: Method = "simplex" if method == "interior_point" else "interior_point"
    for way, reduce in ((method, presolve), (method, not presolve), (other, True)):
        solver = _solver(
            way, max_iterations=max_iterations, time_limit=time_limit, presolve=reduce
        )
        if solver.passModel(_model(program)) == highspy.HighsStatus.kError:
            raise SolverError("HiGHS refuses the linear program")
        solver.run()
        if solver.getModelStatus() in _OUTCOMES:
            return _answer(solver)
    said = solver.modelStatusToString(solver.getModelStatus())
    raise SolverError(
        f"HiGHS broke down with {said!r}, by either method; try ColumnGeneration"
    )


def _solver(
    method: Method,
    *,
    max_iterations: int | None,
    time_limit: float | None,
    presolve: bool,
) -> highspy.Highs:
    """Return HiGHS with its options set."""
    solver = highspy.Highs()  # type: ignore[no-untyped-call]
    options: dict[str, bool | int | float | str] = {
        "output_flag": False,
        "threads": 1,
        "solver": _METHODS[method],
        "presolve": "on" if presolve else "off",
        "primal_feasibility_tolerance": _TOLERANCE,
        "dual_feasibility_tolerance": _TOLERANCE,
        "ipm_optimality_tolerance": _TOLERANCE,
        "small_matrix_value": _SMALLEST_ENTRY,
    }
    if time_limit is not None:
        options["time_limit"] = float(time_limit)
    if max_iterations is not None:
        options["simplex_iteration_limit"] = int(max_iterations)
        options["ipm_iteration_limit"] = int(max_iterations)
    for name, value in options.items():
        if solver.setOptionValue(name, value) == highspy.HighsStatus.kError:
            raise SolverError(f"HiGHS refuses the option {name} = {value!r}")
    return solver


def _answer(solver: highspy.Highs) -> LinearAnswer:
    """Return what HiGHS came to."""
    solution, info = solver.getSolution(), solver.getInfo()
    iterations = (
        max(info.simplex_iteration_count, 0)
        + max(info.ipm_iteration_count, 0)
        + max(info.crossover_iteration_count, 0)
    )
    return LinearAnswer(
        outcome=_OUTCOMES[solver.getModelStatus()],
        x=np.array(solution.col_value) if solution.value_valid else None,
        prices=-np.array(solution.row_dual) if solution.dual_valid else None,
        iterations=iterations,
    )


def _model(program: LinearProgram) -> highspy.HighsLp:
    """Write a program in the form of HiGHS: minimise the negated objective."""
    model = highspy.HighsLp()
    rows, columns = program.matrix.shape
    model.num_row_ = int(rows)
    model.num_col_ = int(columns)
    model.col_cost_ = -program.objective
    model.col_lower_ = program.lower
    model.col_upper_ = program.upper
    model.row_lower_ = program.row_lower
    model.row_upper_ = program.row_upper
    model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    model.a_matrix_.start_ = program.matrix.indptr.astype(np.int32)
    model.a_matrix_.index_ = program.matrix.indices.astype(np.int32)
    model.a_matrix_.value_ = program.matrix.data
    return model
