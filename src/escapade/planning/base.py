"""What a solver is: a frozen value with one verb.

Exact solvers take the problem alone.  Robust solvers also take an uncertainty set and
say so by ``robust = True``; :func:`escapade.planning.solve.solve` hands a set only to
those.  Settings belong to the solver, progress does not: two calls of ``solve`` know
nothing of each other.
"""

from __future__ import annotations

from typing import Any, ClassVar, Protocol, runtime_checkable

from escapade.errors import refusal
from escapade.model.cmdp import CMDP
from escapade.planning.solution import Solution

__all__ = ["RobustSolver", "Solver", "check_limits"]


@runtime_checkable
class Solver(Protocol):
    """Plans for a CMDP whose model is taken as true."""

    robust: ClassVar[bool]

    def solve(self, problem: CMDP) -> Solution:
        """Return the best policy within the budgets, with its certificate."""
        ...


@runtime_checkable
class RobustSolver(Protocol):
    """Plans for a CMDP whose model lies somewhere in an uncertainty set."""

    robust: ClassVar[bool]

    def solve(self, problem: CMDP, *, uncertainty: Any) -> Solution:
        """Return the best policy within the worst-case budgets."""
        ...


def check_limits(
    *,
    precision: float,
    max_iterations: int | None = None,
    time_limit: float | None = None,
) -> None:
    """Refuse settings that no solver can work with."""
    if not 0.0 < precision < 1.0:
        raise refusal("precision", "a number in (0, 1)", precision)
    if max_iterations is not None and (
        isinstance(max_iterations, bool)
        or int(max_iterations) != max_iterations
        or max_iterations < 1
    ):
        raise refusal(
            "max_iterations", "a whole number of at least 1", repr(max_iterations)
        )
    if time_limit is not None and not time_limit > 0.0:
        raise refusal("time_limit", "a number of seconds above 0", time_limit)
