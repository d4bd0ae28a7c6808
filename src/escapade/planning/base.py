"""What a solver is: a frozen value with one verb.

*Exact* solvers take the problem alone.  *Robust* solvers also take an uncertainty set
and an objective, and say so by ``robust = True``; those that can do without a set, then
taking the model as true, add ``nominal = True``.
:func:`escapade.planning.solve.solve` reads these two marks and nothing else.  Settings
belong to the solver, progress does not: two calls of ``solve`` know nothing of each
other.

What a robust answer says is settled here once.  Its ``costs`` are worst-case costs, and
its ``value``, ``lower`` and ``upper`` refer to the objective: the reward under the
nominal transitions (``"nominal"``) or under the worst ones (``"worst"``).
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Protocol, TypeAlias, runtime_checkable

from escapade.errors import check_kind, refusal
from escapade.model.cmdp import CMDP
from escapade.planning.solution import Solution
from escapade.uncertainty.base import UncertaintySet

__all__ = ["Objective", "RobustSolver", "Solver", "check_limits", "check_robust"]

Objective: TypeAlias = Literal["nominal", "worst"]
"""Which reward a robust planner maximises; its costs are always the worst."""


@runtime_checkable
class Solver(Protocol):
    """Plans for a CMDP whose model is taken as true."""

    robust: ClassVar[bool]

    def solve(self, problem: CMDP) -> Solution:
        """Return the best policy within the budgets, with its certificate."""
        ...


@runtime_checkable
class RobustSolver(Protocol):
    """Plans for a CMDP whose transitions lie somewhere in an uncertainty set."""

    robust: ClassVar[bool]

    def solve(
        self,
        problem: CMDP,
        *,
        uncertainty: UncertaintySet,
        objective: Objective = "nominal",
    ) -> Solution:
        """Return the best policy found within the worst-case budgets, with bounds."""
        ...


def check_robust(problem: Any, uncertainty: Any, objective: Any) -> None:
    """Refuse what no robust solver can work with; ``uncertainty`` may be ``None``."""
    check_kind("problem", problem, CMDP)
    if objective not in ("nominal", "worst"):
        raise refusal("objective", "'nominal' or 'worst'", repr(objective))
    if uncertainty is None:
        if objective == "worst":
            raise refusal(
                "objective", "'nominal' without an uncertainty set", "'worst'"
            )
        return
    if not isinstance(uncertainty, UncertaintySet):
        raise refusal(
            "uncertainty",
            "a set from escapade.uncertainty",
            f"a {type(uncertainty).__name__}",
        )
    found = (uncertainty.n_pairs, uncertainty.n_states)
    if found != (problem.n_pairs, problem.n_states):
        raise refusal(
            "uncertainty",
            f"a set over {problem.n_pairs} pairs and {problem.n_states} states",
            f"one over {found[0]} pairs and {found[1]} states",
        )


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
