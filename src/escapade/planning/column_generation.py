"""Column generation: mix deterministic policies, and price the budgets to find them.

Every occupancy is a mixture of those of deterministic policies, so the constrained
problem is a linear program over their weights ``μ``, with one row a budget:

    maximise  Σ_j μ_j V_j   subject to   Σ_j μ_j C_jk <= d_k,   Σ_j μ_j = 1,   μ >= 0.

The *master* program holds the few policies found so far; its prices ``λ`` go to the
oracle, which solves the ordinary problem with reward ``r − λ·c`` by policy iteration,
begun where the last call ended, and returns the policy to add.  What the oracle proves
on the way, ``max_π V_π − λ·(C_π − d)``, bounds the optimum from above; the master's
value bounds it from below.  They meet after finitely many policies, and the stop is
where they meet to the precision asked for, or where the oracle has nothing new.

With one budget the master has two policies, one within the budget and one beyond it.
The Lagrangian bound is a convex function of ``λ`` made of lines ``V_j − λ (C_j − d)``,
and the price at which the two lines cross is the next to try: a secant method on the
multiplier, which ends after about ten calls.

The work is that of ordinary dynamic programming, times the calls: large problems with
few budgets are solved far sooner than by a linear program over all pairs.
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
from escapade.planning.feasibility import Closest, closest_to_budgets, cost_scales
from escapade.planning.highs import LinearProgram, maximise
from escapade.planning.oracle import Column, Oracle, lagrangian_bound, mixed_visits
from escapade.planning.solution import Solution, Status
from escapade.typing import FloatArray

__all__ = ["ColumnGeneration"]

_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Progress:
    """The best mixture so far and the multipliers of the least upper bound."""

    columns: list[Column]
    weights: FloatArray
    multipliers: FloatArray
    stopped: Status | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnGeneration:
    """Mixes policies of ordinary dynamic programming; made for large problems.

    Parameters
    ----------
    precision
        Largest gap, relative to the value (absolute below 1), to call optimal.
    max_iterations
        Calls of the oracle after which to stop; the bounds hold whatever happened.
    time_limit
        Seconds after which to stop, looked at between calls.

    Examples
    --------
    >>> import escapade as ep
    >>> shop = ep.CMDP(
    ...     [[[1.0], [1.0]]], [[1.0, 0.5]], [[1.0, 0.0]], discount=0.5, budget=1.0
    ... )
    >>> ep.solve(shop, ep.ColumnGeneration())
    ...     # doctest: +ELLIPSIS
    Solution(optimal, value 1.5 in [1.5, 1.5], costs (1), ColumnGeneration, ... s)
    """

    precision: float = 1e-8
    max_iterations: int = 1_000
    time_limit: float | None = None

    robust: ClassVar[bool] = False

    def __post_init__(self) -> None:
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
            return infeasible(oracle, closest, solver="ColumnGeneration", began=began)
        limit = _Limit(
            calls=oracle.calls + self.max_iterations,
            until=np.inf if self.time_limit is None else began + self.time_limit,
        )
        search = _secant if problem.n_costs == 1 else _generate
        progress = search(oracle, closest, 0.1 * self.precision, limit)
        return certified(
            oracle,
            Claim(
                visits=mixed_visits(oracle, progress.columns, progress.weights),
                multipliers=progress.multipliers,
                iterations=oracle.calls,
                stopped=progress.stopped,
            ),
            closest,
            solver="ColumnGeneration",
            precision=self.precision,
            began=began,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Limit:
    calls: int
    until: float

    def reached(self, oracle: Oracle) -> Status | None:
        if oracle.calls >= self.calls:
            return "iteration_limit"
        if time.perf_counter() >= self.until:
            return "time_limit"
        return None


def _secant(
    oracle: Oracle, closest: Closest, precision: float, limit: _Limit
) -> _Progress:
    """Bracket the budget between two policies and try the price that equates them."""
    budget = float(oracle.cmdp.budget[0])
    (within,) = closest.columns  # with one budget the closest is a single policy
    price = np.zeros(1)
    upper, beyond = lagrangian_bound(oracle, price)
    if beyond.costs[0] <= budget:
        return _Progress(
            columns=[beyond], weights=np.ones(1), multipliers=price, stopped=None
        )
    best = (upper, price)
    stopped: Status | None = None
    while True:
        rise = beyond.value - within.value
        run = float(beyond.costs[0] - within.costs[0])
        if rise <= 0.0 or run <= 0.0:  # nothing is gained beyond the budget
            break
        stopped = limit.reached(oracle)
        if stopped is not None:
            break
        price = np.array([rise / run])
        crossing = within.value + price[0] * (budget - float(within.costs[0]))
        upper, column = lagrangian_bound(oracle, price)
        if upper < best[0]:
            best = (upper, price)
        if upper - crossing <= precision * max(1.0, abs(crossing)):
            break
        line = column.value + price[0] * (budget - float(column.costs[0]))
        noise = _noise(within, price) + _noise(beyond, price) + _noise(column, price)
        if line - crossing <= noise:  # no new line rises above
            break
        if column.costs[0] <= budget:
            within = column
        else:
            beyond = column
    run = float(beyond.costs[0] - within.costs[0])
    share = 0.0
    if beyond.value > within.value and run > 0.0:
        share = min(max((budget - float(within.costs[0])) / run, 0.0), 1.0)
    return _Progress(
        columns=[within, beyond],
        weights=np.array([1.0 - share, share]),
        multipliers=best[1],
        stopped=stopped,
    )


def _noise(column: Column, price: FloatArray) -> float:
    """Bound the error of a column's line, rounding in its use included."""
    size = abs(column.value) + float(price @ column.costs)
    return column.value_error + float(price @ column.cost_errors) + 8.0 * _EPS * size


def _generate(
    oracle: Oracle, closest: Closest, precision: float, limit: _Limit
) -> _Progress:
    """Add policies to the master program until its prices call for none."""
    cmdp = oracle.cmdp
    # where the budgets are the least that can be reached, rounding may stand above
    # them; the master must not call that infeasible
    allowed = cmdp.budget + max(closest.excess, 0.0) * cost_scales(cmdp)
    columns = list(closest.columns)
    upper, column = lagrangian_bound(oracle, np.zeros(cmdp.n_costs))
    columns.append(column)
    best = (upper, np.zeros(cmdp.n_costs))
    while True:
        weights, value, prices = _master(columns, allowed)
        gap = best[0] - value
        if gap <= precision * max(1.0, abs(value)):
            stopped = None
            break
        stopped = limit.reached(oracle)
        if stopped is not None:
            break
        upper, column = lagrangian_bound(oracle, prices)
        if upper < best[0]:
            best = (upper, prices)
        columns.append(column)
        if any(np.array_equal(column.pairs, old.pairs) for old in columns[:-1]):
            weights, value, prices = _master(columns, allowed)
            break
    kept = np.flatnonzero(weights)
    return _Progress(
        columns=[columns[j] for j in kept],
        weights=weights[kept],
        multipliers=best[1],
        stopped=stopped,
    )


def _master(
    columns: list[Column], budget: FloatArray
) -> tuple[FloatArray, float, FloatArray]:
    """Return the best mixture of ``columns``, its value and the prices of budgets."""
    n, n_costs = len(columns), budget.size
    values = np.array([column.value for column in columns])
    costs = np.array([column.costs for column in columns]).T
    answer = maximise(
        LinearProgram(
            objective=values,
            matrix=sp.csc_array(np.vstack([costs, np.ones((1, n))])),
            row_lower=np.append(np.full(n_costs, -np.inf), 1.0),
            row_upper=np.append(budget, 1.0),
            lower=np.zeros(n),
            upper=np.full(n, np.inf),
        ),
        presolve=False,
    )
    if answer.outcome != "optimal" or answer.x is None or answer.prices is None:
        raise SolverError(f"HiGHS could not mix {n} policies: {answer.outcome}")
    weights = np.maximum(answer.x, 0.0)
    weights /= weights.sum()
    return weights, float(weights @ values), np.maximum(answer.prices[:n_costs], 0.0)
