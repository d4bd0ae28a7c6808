"""The optimum by a route of its own: the occupation LP, written out for SciPy.

Nothing of the planners is used.  The program is ``max f·r`` over ``f >= 0`` with the
flow constraints ``Σ_a f(s, a) − γ Σ P f = β`` and ``C f <= d``; its dense or sparse
matrices go to ``scipy.optimize.linprog`` as they stand.  The answer is judged before it
is returned: a flow that does not balance raises :class:`~escapade.errors.SolverError`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

from escapade.errors import SolverError
from escapade.model.cmdp import CMDP
from escapade.typing import FloatArray

__all__ = ["Reference", "least_weighted_cost", "reference_optimum"]

_INFEASIBLE = 2  # SciPy's status
_BALANCE = 1e-6  # relative to all visits, 1 / (1 − γ)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Reference:
    """What the occupation LP says about a problem.

    Attributes
    ----------
    feasible
        Whether some policy keeps every budget from the start distribution.
    value
        The optimum; NaN if infeasible.
    costs
        The costs of the optimal flow, ``(K,)``; NaN if infeasible.
    visits
        The optimal flow, ``(pairs,)``; ``None`` if infeasible.
    multipliers
        What the optimum gains per unit of each budget, ``(K,)``; NaN if infeasible.
    least_costs
        The least that each cost can be on its own, ``(K,)``.
    """

    feasible: bool
    value: float
    costs: FloatArray
    visits: FloatArray | None
    multipliers: FloatArray
    least_costs: FloatArray


def reference_optimum(cmdp: CMDP) -> Reference:
    """Solve a problem by SciPy's linear programming.

    Meant for problems of up to some thousand pairs; exact to about seven digits.

    Examples
    --------
    >>> import escapade as ep
    >>> shop = ep.CMDP(
    ...     [[[1.0], [1.0]]], [[1.0, 0.5]], [[1.0, 0.0]], discount=0.5, budget=1.0
    ... )
    >>> known = reference_optimum(shop)
    >>> round(known.value, 6), known.least_costs.tolist()
    (1.5, [0.0])
    """
    least = np.array([_program(cmdp, -cost).fun for cost in cmdp.cost])
    answer = _program(cmdp, cmdp.reward, budgets=True)
    nothing = np.full(cmdp.n_costs, np.nan)
    if answer.status == _INFEASIBLE:
        return Reference(
            feasible=False,
            value=float("nan"),
            costs=nothing,
            visits=None,
            multipliers=nothing,
            least_costs=least,
        )
    visits = np.asarray(answer.x, dtype=np.float64)
    return Reference(
        feasible=True,
        value=float(cmdp.reward @ visits),
        costs=cmdp.cost @ visits,
        visits=visits,
        multipliers=-np.asarray(answer.ineqlin.marginals, dtype=np.float64),
        least_costs=least,
    )


def least_weighted_cost(cmdp: CMDP, weights: FloatArray) -> float:
    """Return the least that any policy can make of ``weights @ costs``."""
    return float(_program(cmdp, -(weights @ cmdp.cost)).fun)


def _program(cmdp: CMDP, gain: FloatArray, *, budgets: bool = False) -> Any:
    """Maximise ``gain @ f`` over the flows, within the budgets if asked to."""
    owners = sp.csr_array(
        (np.ones(cmdp.n_pairs), (cmdp.pair_state, np.arange(cmdp.n_pairs))),
        shape=(cmdp.n_states, cmdp.n_pairs),
    )
    balance = sp.csr_array(owners - cmdp.discount * cmdp.transition_matrix.T)
    answer = cast(Any, linprog)(  # the stubs know of no sparse matrices
        -gain,
        A_ub=cmdp.cost if budgets else None,
        b_ub=cmdp.budget if budgets else None,
        A_eq=balance,
        b_eq=cmdp.start,
        bounds=(0.0, None),
        method="highs",
    )
    if budgets and answer.status == _INFEASIBLE:
        return answer
    if answer.status != 0:
        raise SolverError(f"linprog: expected an optimum, found: {answer.message}")
    off = float(np.abs(balance @ answer.x - cmdp.start).sum())
    if off > _BALANCE / (1.0 - cmdp.discount):
        raise SolverError(
            f"linprog: expected a flow that balances, found {off:.2g} off"
        )
    return answer
