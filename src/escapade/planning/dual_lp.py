"""The dual linear program: values and prices instead of occupancies.

    minimise    Σ β(s) φ(s) + Σ_k d_k λ_k
    subject to  φ(s) >= r(s, a) − Σ_k λ_k c_k(s, a) + γ Σ P(s' | s, a) φ(s')
                                                                for every pair (s, a)
                λ >= 0

``φ`` is the best value when costs are charged at the prices ``λ``, and the prices are
chosen to make it least.  (The paper maximises over ``λ`` and ``φ``, which is unbounded;
errata E28.)  By strong duality the optimum is that of the occupation program, and the
dual value of the row of ``(s, a)`` is the occupancy ``f(s, a)``.

The program has a variable a state and a row a pair, so the simplex method works on a
basis of pairs, not of states: a second road to the same number, and the one to extend
by further rows.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy.sparse as sp

from escapade.model.cmdp import CMDP
from escapade.planning.base import check_limits
from escapade.planning.certificate import Claim, certified, infeasible
from escapade.planning.feasibility import closest_to_budgets
from escapade.planning.highs import LinearProgram, Method, check_method, maximise
from escapade.planning.occupation_lp import flow_matrix, stopped_by
from escapade.planning.oracle import Oracle
from escapade.planning.solution import Solution

__all__ = ["DualLP", "dual_program"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DualLP:
    """Solves the dual linear program with HiGHS.

    Parameters
    ----------
    method, precision, max_iterations, time_limit
        As for :class:`~escapade.planning.occupation_lp.OccupationLP`.

    Examples
    --------
    >>> import escapade as ep
    >>> shop = ep.CMDP(
    ...     [[[1.0], [1.0]]], [[1.0, 0.5]], [[1.0, 0.0]], discount=0.5, budget=1.0
    ... )
    >>> ep.solve(shop, ep.DualLP()).multipliers.round(6)
    array([0.5])
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
            return infeasible(oracle, closest, solver="DualLP", began=began)
        answer = maximise(
            dual_program(problem),
            method=self.method,
            max_iterations=self.max_iterations,
            time_limit=self.time_limit,
        )
        multipliers = np.zeros(problem.n_costs)
        if answer.x is not None:
            multipliers = answer.x[problem.n_states :]
        return certified(
            oracle,
            Claim(
                # rows are bounded from below, so their prices are at most 0
                visits=None if answer.prices is None else -answer.prices,
                multipliers=multipliers,
                iterations=answer.iterations,
                stopped=stopped_by(answer),
            ),
            closest,
            solver="DualLP",
            precision=self.precision,
            began=began,
        )


def dual_program(cmdp: CMDP) -> LinearProgram:
    """Write the program, negated: values, one a state, then prices, one a budget."""
    n_states, n_costs = cmdp.n_states, cmdp.n_costs
    free = np.full(n_states, -np.inf)
    return LinearProgram(
        objective=-np.concatenate([cmdp.start, cmdp.budget]),
        matrix=sp.csc_array(sp.hstack([flow_matrix(cmdp), sp.csr_array(cmdp.cost.T)])),
        row_lower=cmdp.reward,
        row_upper=np.full(cmdp.n_pairs, np.inf),
        lower=np.concatenate([free, np.zeros(n_costs)]),
        upper=np.full(n_states + n_costs, np.inf),
    )
