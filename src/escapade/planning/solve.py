"""One verb for every planner: ``solve(problem)``, with or without a solver named.

Without one, a solver is chosen and the message says which and why.  Exact problems with
few pairs for their number of budgets go to
:class:`~escapade.planning.occupation_lp.OccupationLP`, a single linear program; beyond
that :class:`~escapade.planning.column_generation.ColumnGeneration`, whose work grows
like that of ordinary dynamic programming, is faster by far.

With an uncertainty set :class:`~escapade.planning.robust_lp.RobustLP` is taken: it
serves any number of budgets and returns a stationary policy, which anything can
execute.  Its last refinement is left out where that would take long.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from escapade.errors import refusal
from escapade.model.cmdp import CMDP
from escapade.planning.base import Objective, RobustSolver, Solver, check_robust
from escapade.planning.column_generation import ColumnGeneration
from escapade.planning.occupation_lp import OccupationLP
from escapade.planning.robust_lp import RobustLP
from escapade.planning.solution import Solution
from escapade.uncertainty.base import UncertaintySet

__all__ = ["Objective", "solve"]

_PAIRS_A_BUDGET = 400
"""Up to so many pairs for each budget the linear program is as quick as any."""

_PAIRS_TO_REFINE = 5_000
"""Up to so many pairs a robust policy is refined to a local optimum by default."""


def solve(
    problem: CMDP,
    solver: Solver | RobustSolver | None = None,
    *,
    uncertainty: UncertaintySet | None = None,
    objective: Objective = "nominal",
) -> Solution:
    """Find the best policy that keeps every budget.

    Parameters
    ----------
    problem
        The problem.
    solver
        How to solve it; when not given, chosen by size, number of budgets and whether
        there is a set.
    uncertainty
        Where the true transitions may lie.  The budgets are then kept whichever they
        are; robust solvers need one (policy gradients can do without), exact solvers
        refuse it.
    objective
        What a robust solver maximises: the reward under the nominal transitions, or
        under the worst.

    Returns
    -------
    Solution
        Policy, value and costs, bounds on the optimum, status and advice.  Budgets
        that cannot be kept are a result, with status ``"infeasible"``, too.

    Examples
    --------
    >>> import escapade as ep
    >>> shop = ep.CMDP(
    ...     [[[1.0], [1.0]]], [[1.0, 0.5]], [[1.0, 0.0]], discount=0.5, budget=1.0
    ... )
    >>> answer = ep.solve(shop)
    >>> answer.status, round(answer.value, 6)
    ('optimal', 1.5)
    >>> ep.solve(shop.replace(cost=[1.0, 0.75])).status
    'infeasible'
    """
    check_robust(problem, uncertainty, objective)
    if solver is None:
        chosen = _choose(problem) if uncertainty is None else _choose_robust(problem)
        solver, reason = chosen
        answer = _run(problem, solver, uncertainty, objective)
        return replace(answer, message=f"{reason} {answer.message}")
    return _run(problem, solver, uncertainty, objective)


def _choose(problem: CMDP) -> tuple[Solver, str]:
    """Return a solver for a problem without a set, and why it was taken."""
    pairs, budgets = problem.n_pairs, problem.n_costs
    size = f"{pairs} pairs and {'1 budget' if budgets == 1 else f'{budgets} budgets'}"
    if pairs <= _PAIRS_A_BUDGET * budgets:
        return OccupationLP(), f"OccupationLP was chosen: {size} make a small program."
    return (
        ColumnGeneration(),
        f"ColumnGeneration was chosen: {size} are solved sooner by dynamic programming "
        f"than by a linear program.",
    )


def _choose_robust(problem: CMDP) -> tuple[RobustSolver, str]:
    """Return a solver for a problem with a set, and why it was taken."""
    reason = (
        "RobustLP was chosen: an uncertainty set was given, and a stationary policy "
        "suits every use"
    )
    if problem.n_pairs <= _PAIRS_TO_REFINE:
        return RobustLP(), f"{reason}."
    return (
        RobustLP(refine=False),
        f"{reason}; the policy is not refined, as {problem.n_pairs} pairs are many "
        f"(RobustLP(refine=True) does).",
    )


def _run(
    problem: CMDP,
    solver: Any,
    uncertainty: UncertaintySet | None,
    objective: Objective,
) -> Solution:
    name = type(solver).__name__
    robust = getattr(solver, "robust", None)
    if isinstance(solver, type) or not isinstance(robust, bool):
        raise refusal("solver", "a solver such as OccupationLP()", repr(solver))
    if not robust:
        if uncertainty is not None:
            raise refusal(
                "uncertainty",
                f"none: {name} takes the model as true",
                "an uncertainty set",
            )
        answer: Solution = solver.solve(problem)
        return answer
    if uncertainty is None and not getattr(solver, "nominal", False):
        raise refusal("uncertainty", f"an uncertainty set, which {name} needs", None)
    robust_answer: Solution = solver.solve(
        problem, uncertainty=uncertainty, objective=objective
    )
    return robust_answer
