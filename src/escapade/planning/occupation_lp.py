"""The occupation-measure linear program.

With ``f(s, a)`` the expected discounted number of times that ``a`` is taken in ``s``,
and β the start distribution:

    maximise    Σ f(s, a) r(s, a)
    subject to  Σ_a f(s', a) − γ Σ_{s,a} P(s' | s, a) f(s, a) = β(s')   for every s'
                Σ f(s, a) c_k(s, a) <= d_k                              for every k
                f >= 0

This is the paper's program with its flow constraints put in and without the factor
``1 − γ``, which would make the budget mean something else (errata E27).  Every feasible
``f`` is the occupancy of a policy and the other way round, so the optimum is that of
the constrained problem.  HiGHS solves it; the policy ``f(s, a) / Σ_b f(s, b)`` and the
prices of the cost rows are then certified by :mod:`escapade.planning.certificate`.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy.sparse as sp

from escapade.errors import SolverError
from escapade.model.cmdp import CMDP
from escapade.planning.base import check_limits
from escapade.planning.certificate import Claim, certified, infeasible
from escapade.planning.feasibility import closest_to_budgets
from escapade.planning.highs import (
    LinearAnswer,
    LinearProgram,
    Method,
    check_method,
    maximise,
)
from escapade.planning.oracle import Oracle
from escapade.planning.solution import Solution, Status

__all__ = ["OccupationLP", "flow_matrix", "occupation_program", "stopped_by"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OccupationLP:
    """Solves the occupation-measure linear program with HiGHS.

    Parameters
    ----------
    method
        ``"simplex"``, or ``"interior_point"`` (with crossover), which is quicker on
        large problems.
    precision
        Largest gap, relative to the value (absolute below 1), to call optimal.
    max_iterations, time_limit
        Where HiGHS stops; the answer then holds the best policy known to keep the
        budgets, and bounds.

    Examples
    --------
    >>> import escapade as ep
    >>> shop = ep.CMDP(
    ...     [[[1.0], [1.0]]], [[1.0, 0.5]], [[1.0, 0.0]], discount=0.5, budget=1.0
    ... )
    >>> ep.solve(shop, ep.OccupationLP()).policy.probabilities.round(6)
    array([[0.5, 0.5]])
    """

    method: Method = "simplex"
    precision: float = 1e-8
    max_iterations: int | None = None
    time_limit: float | None = None

    robust: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_method(self.method)
        check_limits(
            precision=self.precision,
            max_iterations=self.max_iterations,
            time_limit=self.time_limit,
        )

    def solve(self, problem: CMDP) -> Solution:
        """Return the best policy within the budgets, with its certificate."""
        began = time.perf_counter()
        oracle = Oracle(problem)
        closest = closest_to_budgets(oracle)
        if closest.proof is not None:
            return infeasible(oracle, closest, solver="OccupationLP", began=began)
        answer = maximise(
            occupation_program(problem),
            method=self.method,
            max_iterations=self.max_iterations,
            time_limit=self.time_limit,
        )
        prices = np.zeros(problem.n_costs)
        if answer.prices is not None:
            prices = answer.prices[problem.n_states :]
        return certified(
            oracle,
            Claim(
                visits=answer.x,
                multipliers=prices,
                iterations=answer.iterations,
                stopped=stopped_by(answer),
            ),
            closest,
            solver="OccupationLP",
            precision=self.precision,
            began=began,
        )


def occupation_program(cmdp: CMDP) -> LinearProgram:
    """Write the program: flow rows first, one a state, then one cost row a channel."""
    n_costs = cmdp.n_costs
    matrix = sp.vstack([flow_matrix(cmdp).T, sp.csr_array(cmdp.cost)])
    return LinearProgram(
        objective=cmdp.reward,
        matrix=sp.csc_array(matrix),
        row_lower=np.concatenate([cmdp.start, np.full(n_costs, -np.inf)]),
        row_upper=np.concatenate([cmdp.start, cmdp.budget]),
        lower=np.zeros(cmdp.n_pairs),
        upper=np.full(cmdp.n_pairs, np.inf),
    )


def flow_matrix(cmdp: CMDP) -> sp.csr_array:
    """Return ``E − γ P``, ``(pairs, S)``; ``E`` names the state of each pair."""
    pairs = np.arange(cmdp.n_pairs)
    own = sp.csr_array(
        (np.ones(cmdp.n_pairs), (pairs, cmdp.pair_state)),
        shape=(cmdp.n_pairs, cmdp.n_states),
    )
    return sp.csr_array(own - cmdp.discount * cmdp.transition_matrix)


def stopped_by(answer: LinearAnswer) -> Status | None:
    """Return the limit that ended HiGHS early, ``None`` if it ended by itself.

    The budgets can be kept, and nothing visited more than ``1 / (1 − γ)`` times is
    worth more than that; so HiGHS is wrong if it finds otherwise.
    """
    if answer.outcome == "iteration_limit":
        return "iteration_limit"
    if answer.outcome == "time_limit":
        return "time_limit"
    if answer.outcome in ("optimal", "imprecise"):
        return None
    raise SolverError(
        f"HiGHS calls a feasible, bounded program {answer.outcome!r}; try "
        f"ColumnGeneration, or the other method of the linear program"
    )
