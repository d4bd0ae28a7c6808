"""Can the budgets be kept at all?  Both answers with proof.

The *excess* of a policy is ``max_k (C_k − d_k) / u_k`` with ``u_k = cost_max_k/(1−γ)``,
the most that channel ``k`` can cost.  Its least value over all (mixed) policies is a
matrix game: the planner picks a mixture of policies, the adversary weights ``w >= 0``
with ``Σ w_k u_k = 1``.  Both sides are improved in turn: a small linear program mixes
the policies found so far and names the weights at which they are all equally bad, the
oracle returns the policy that is cheapest at these weights.

- A mixture with an excess of at most 0 keeps every budget.
- Weights at which even the cheapest policy costs more than ``w · d``, certified by
  dynamic programming, prove that none can (Farkas).

Between the two lies what double arithmetic cannot tell; there the mixture that comes
closest is returned without a proof, and exceeds the budgets by rounding alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from escapade.errors import SolverError
from escapade.model.cmdp import CMDP
from escapade.planning.highs import LinearProgram, maximise
from escapade.planning.oracle import Column, Oracle, mixed_visits
from escapade.typing import FloatArray

__all__ = ["Closest", "closest_to_budgets", "cost_scales", "least_costs"]

_ENOUGH = -1e-3  # an excess this far below 0 leaves room for everything
_CLOSE = 1e-10
_MAX_CALLS = 500


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Closest:
    """The mixture of policies that comes closest to keeping every budget.

    ``excess`` and ``costs`` are those of the mixture; ``proof`` holds weights that
    prove the budgets infeasible, or is ``None``.
    """

    columns: tuple[Column, ...]
    weights: FloatArray
    costs: FloatArray
    excess: float
    proof: FloatArray | None

    def visits(self, oracle: Oracle) -> FloatArray:
        """Return the occupancy of the mixture, ``(pairs,)``."""
        return mixed_visits(oracle, self.columns, self.weights)


def cost_scales(cmdp: CMDP) -> FloatArray:
    """Return the most that each channel can cost; 1 for channels that are free."""
    most = cmdp.cost_max / (1.0 - cmdp.discount)
    scales: FloatArray = np.where(most > 0.0, most, 1.0)
    return scales


def closest_to_budgets(
    oracle: Oracle, columns: Sequence[Column] = (), *, to_the_end: bool = False
) -> Closest:
    """Find policies that keep the budgets with room to spare, or come closest.

    Parameters
    ----------
    oracle
        Of the problem.
    columns
        Policies that are known already.
    to_the_end
        Go on, when the budgets are proved infeasible, until the least excess is known.
    """
    cmdp = oracle.cmdp
    budget, scales = cmdp.budget, cost_scales(cmdp)
    found = list(columns)
    proof: FloatArray | None = None
    w = 1.0 / (scales * cmdp.n_costs)
    mixture, excess = np.zeros(len(found)), np.inf
    if found:
        mixture, excess, w = _mix(found, budget, scales)
    for _ in range(_MAX_CALLS):
        if excess <= _ENOUGH:
            break
        column = oracle.best(w, reward_weight=0.0)
        least = -column.bound - float(w @ budget)
        if least > 0.0:
            proof = w
            if not to_the_end:
                found.append(column)
                mixture, excess, _ = _mix(found, budget, scales)
                break
        if least >= excess - _CLOSE:
            break
        found.append(column)
        before = excess
        mixture, excess, w = _mix(found, budget, scales)
        if cmdp.n_costs == 1 or (excess >= before and _repeats(found)):
            break
    else:
        if excess > 0.0 and proof is None:
            raise SolverError(
                f"the least excess over {cmdp.n_costs} budgets was not found in "
                f"{_MAX_CALLS} policies; it is at most {excess:.3g} of the largest cost"
            )
    kept = np.flatnonzero(mixture)
    return Closest(
        columns=tuple(found[j] for j in kept),
        weights=mixture[kept],
        costs=mixture @ np.array([column.costs for column in found]),
        excess=float(excess),
        proof=proof,
    )


def least_costs(oracle: Oracle) -> tuple[FloatArray, FloatArray]:
    """Return bounds on the least cost of each channel on its own, both ``(K,)``.

    No policy costs less than the first; some policy costs no more than the second.
    """
    cmdp = oracle.cmdp
    lower, upper = np.empty(cmdp.n_costs), np.empty(cmdp.n_costs)
    for k in range(cmdp.n_costs):
        prices = np.zeros(cmdp.n_costs)
        prices[k] = 1.0
        column = oracle.best(prices, reward_weight=0.0)
        upper[k] = column.costs[k] + column.cost_errors[k]
        lower[k] = min(max(-column.bound, 0.0), upper[k])
    return lower, upper


def _repeats(columns: list[Column]) -> bool:
    """Tell whether the last column was there before."""
    last = columns[-1].pairs
    return any(np.array_equal(last, column.pairs) for column in columns[:-1])


def _mix(
    columns: Sequence[Column], budget: FloatArray, scales: FloatArray
) -> tuple[FloatArray, float, FloatArray]:
    """Return the mixture of least excess, that excess, and the adversary's weights."""
    over = (np.array([column.costs for column in columns]) - budget) / scales  # (n, K)
    n, channels = over.shape
    if channels == 1:
        mixture = np.zeros(n)
        best = int(over[:, 0].argmin())
        mixture[best] = 1.0
        return mixture, float(over[best, 0]), 1.0 / scales
    # maximise −t:  over' μ − t <= 0,  Σ μ = 1
    matrix = np.block([[over.T, -np.ones((channels, 1))], [np.ones((1, n)), 0.0]])
    answer = maximise(
        LinearProgram(
            objective=np.append(np.zeros(n), -1.0),
            matrix=sp.csc_array(matrix),
            row_lower=np.append(np.full(channels, -np.inf), 1.0),
            row_upper=np.append(np.zeros(channels), 1.0),
            lower=np.append(np.zeros(n), -np.inf),
            upper=np.full(n + 1, np.inf),
        ),
        presolve=False,
    )
    if answer.x is None or answer.prices is None:
        raise SolverError(f"HiGHS could not mix {n} policies: {answer.outcome}")
    mixture = np.maximum(answer.x[:n], 0.0)
    mixture /= mixture.sum()
    weights = np.maximum(answer.prices[:channels], 0.0)
    weights /= weights.sum()
    return mixture, float((mixture @ over).max()), weights / scales
