"""Values, costs and occupancies of a policy, each with a bound on its error.

For a stationary policy π with matrix ``P_π`` and means ``r_π``, ``c_π`` the value and
the costs are the unique solutions of ``x = b + γ P_π x``; the occupancy from the start
distribution β solves ``f = β + γ P_πᵀ f``.  Three methods stand ready:

``lu``
    sparse LU; exact up to rounding; for small models, and for larger ones whose states
    can be ordered into a narrow band (grids), where fill-in stays low;
``krylov``
    BiCGStab with a diagonal preconditioner; tried first on larger models;
``sweeps``
    repeated substitution with the constant shift; slow and sure.

Whatever the method, the answer is judged by its own residual, computed afresh.  With
``ρ = ‖b + γ P x̂ − x̂‖∞`` plus an allowance for rounding, ``‖x̂ − x‖∞ ≤ ρ / (1 − γ)``
(for occupancies the same in the 1-norm).  That bound is returned as ``error``.

Finite horizons (the paper's T-step values) are computed by T substitutions from zero
and carry rounding alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
import scipy.sparse.csgraph as csgraph
import scipy.sparse.linalg as spla

from escapade.errors import SolverError, refusal
from escapade.model.cmdp import CMDP
from escapade.model.policy import Policy
from escapade.typing import FloatArray

__all__ = ["Evaluation", "discounted_sums", "evaluate", "occupancy", "policy_matrix"]

_EPS = float(np.finfo(np.float64).eps)
_LU_UP_TO_STATES = 600
_LU_UP_TO_WORK = 5e9  # states times squared bandwidth
_KRYLOV_ITERATIONS = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """Value and costs of a policy from every state.

    Attributes
    ----------
    value
        Expected discounted reward, ``(S,)``.
    costs
        Expected discounted costs, ``(K, S)``.
    error
        Certified bound on the error of every entry.
    method
        How it was computed: ``"lu"``, ``"krylov"``, ``"sweeps"`` or ``"finite"``.
    start
        The start distribution of the problem.
    """

    value: FloatArray
    costs: FloatArray
    error: float
    method: str
    start: FloatArray

    @property
    def start_value(self) -> float:
        """Value from the start distribution."""
        return float(self.start @ self.value)

    @property
    def start_costs(self) -> FloatArray:
        """Costs from the start distribution, ``(K,)``."""
        at_start: FloatArray = self.costs @ self.start
        return at_start


def evaluate(
    cmdp: CMDP,
    policy: Policy,
    *,
    horizon: int | None = None,
    precision: float = 1e-8,
) -> Evaluation:
    """Evaluate a policy.

    Parameters
    ----------
    cmdp, policy
        The problem and a stationary policy of it.
    horizon
        Number of steps; ``None`` for the infinite horizon.
    precision
        Largest certified error to accept, relative to the largest value or cost (and
        absolute where those are below 1).  Not used with a finite horizon.

    Raises
    ------
    SolverError
        If the precision cannot be reached in double arithmetic; the message names the
        error that can.

    Examples
    --------
    >>> import escapade as ep
    >>> walk = ep.CMDP([[[1.0]]], [[1.0]], [[0.5]], discount=0.9, budget=10.0)
    >>> result = ep.evaluate(walk, ep.Policy.uniform(walk))
    >>> round(result.start_value, 6), round(float(result.start_costs[0]), 6)
    (10.0, 5.0)
    """
    weights = policy.pair_weights(cmdp)
    matrix = policy_matrix(cmdp, weights)
    gain = np.vstack([cmdp.reward, cmdp.cost]) * weights
    gain = np.add.reduceat(gain, cmdp.state_ptr[:-1], axis=1).T  # (S, 1 + K)
    if horizon is not None:
        solution, error = _finite(matrix, gain, cmdp.discount, horizon)
        method = "finite"
    else:
        _check_precision(precision)
        solution, error, method = discounted_sums(
            matrix, gain, cmdp.discount, precision
        )
    value, costs = solution[:, 0].copy(), solution[:, 1:].T.copy()
    value.flags.writeable = False
    costs.flags.writeable = False
    return Evaluation(
        value=value, costs=costs, error=error, method=method, start=cmdp.start
    )


def occupancy(cmdp: CMDP, policy: Policy, *, precision: float = 1e-8) -> FloatArray:
    """Return the expected discounted number of visits to every pair, ``(pairs,)``.

    The visits start from the start distribution and sum to ``1 / (1 − discount)``;
    rewards and costs follow from them as ``f @ cmdp.reward`` and ``cmdp.cost @ f``.
    Their certified error, summed over pairs, is at most ``precision / (1 - discount)``.
    """
    _check_precision(precision)
    weights = policy.pair_weights(cmdp)
    matrix = sp.csr_array(policy_matrix(cmdp, weights).T)
    visits, _, _ = discounted_sums(
        matrix, cmdp.start[:, np.newaxis], cmdp.discount, precision, transposed=True
    )
    result: FloatArray = visits[cmdp.pair_state, 0] * weights
    return result


def policy_matrix(cmdp: CMDP, weights: FloatArray) -> sp.csr_array:
    """Return the ``(S, S)`` transition matrix under these pair probabilities."""
    mixing = sp.csr_array(
        (weights, np.arange(cmdp.n_pairs), cmdp.state_ptr),
        shape=(cmdp.n_states, cmdp.n_pairs),
    )
    return sp.csr_array(mixing @ cmdp.transition_matrix)


def _check_precision(precision: float) -> None:
    if not precision > 0:
        raise refusal("precision", "a number above 0", precision)


def _finite(
    matrix: sp.csr_array, gain: FloatArray, discount: float, horizon: int
) -> tuple[FloatArray, float]:
    if horizon < 0 or int(horizon) != horizon:
        raise refusal("horizon", "a whole number of at least 0", horizon)
    values = np.zeros_like(gain)
    for _ in range(int(horizon)):
        values = gain + discount * (matrix @ values)
    per_step = _rounding(matrix, gain, values)
    steps = (1.0 - discount**horizon) / (1.0 - discount)
    return values, per_step * steps


def _rounding(matrix: sp.csr_array, gain: FloatArray, values: FloatArray) -> float:
    """Bound the rounding in one evaluation of ``gain + γ matrix @ values − values``."""
    longest = int(np.diff(matrix.indptr).max(initial=0))
    scale = float(np.abs(gain).max(initial=0.0) + 2 * np.abs(values).max(initial=0.0))
    return (longest + 4) * _EPS * scale


def discounted_sums(
    matrix: sp.csr_array,
    gain: FloatArray,
    discount: float,
    precision: float,
    *,
    transposed: bool = False,
    strict: bool = True,
) -> tuple[FloatArray, float, str]:
    """Solve ``x = gain + γ matrix x`` and certify the error of the answer.

    Returns the solution, its certified error and the method.  An answer that misses
    the precision is refused with :class:`SolverError`, or, if not ``strict``, returned
    with the error that it has.
    """

    def certify(x: FloatArray) -> tuple[float, float]:
        residual = np.abs(gain + discount * (matrix @ x) - x)
        if transposed:  # distances in the 1-norm, one column
            rho = float(residual.sum(axis=0).max())
            longest = int(np.diff(matrix.indptr).max())
            rho += (longest + 4) * _EPS * float(1.0 + 2 * np.abs(x).sum())
            scale = 1.0 / (1.0 - discount)
        else:
            rho = float(residual.max()) + _rounding(matrix, gain, x)
            scale = max(1.0, float(np.abs(x).max()))
        return rho / (1.0 - discount), precision * scale

    goal = precision / np.sqrt(len(gain)) if transposed else None
    best: tuple[FloatArray, float, str] | None = None
    for method in _methods(matrix):
        solution = _METHODS[method](matrix, gain, discount, precision, goal)
        error, allowed = certify(solution)
        if error <= allowed:
            return solution, error, method
        if best is None or error < best[1]:
            best = (solution, error, method)
    if best is not None and not strict:
        return best
    reached = np.inf if best is None else best[1]
    raise SolverError(
        f"precision: expected an error of at most {precision:g}, reached {reached:.3g}; "
        f"ask for that precision or a smaller discount"
    )


def _methods(matrix: sp.csr_array) -> Iterator[str]:
    """Name the methods worth trying, cheapest first."""
    n_states = int(matrix.shape[0])
    if n_states <= _LU_UP_TO_STATES:
        yield "lu"
        return
    yield "krylov"
    order = csgraph.reverse_cuthill_mckee(sp.csr_matrix(matrix))
    place = np.empty(n_states, dtype=np.int64)
    place[order] = np.arange(n_states)
    coordinates = matrix.tocoo()
    band = float(np.abs(place[coordinates.row] - place[coordinates.col]).max())
    if n_states * band**2 <= _LU_UP_TO_WORK:
        yield "lu"
    yield "sweeps"


def _by_lu(
    matrix: sp.csr_array, gain: FloatArray, discount: float, *_: Any
) -> FloatArray:
    system = sp.csc_array(sp.eye_array(matrix.shape[0]) - discount * matrix)
    factors = spla.splu(system)
    solution = factors.solve(gain)
    residual = gain - system @ solution
    refined: FloatArray = solution + factors.solve(residual)
    return refined


def _by_krylov(
    matrix: sp.csr_array,
    gain: FloatArray,
    discount: float,
    precision: float,
    goal: float | None,
) -> FloatArray:
    system = sp.csr_array(sp.eye_array(matrix.shape[0]) - discount * matrix)
    diagonal = system.diagonal()
    scaling = spla.LinearOperator(system.shape, matvec=lambda x: x / diagonal)
    solution = np.empty_like(gain)
    for column in range(gain.shape[1]):
        target = gain[:, column]
        if not target.any():
            solution[:, column] = 0.0
            continue
        guess = np.full(len(target), target.mean() / (1.0 - discount))
        # the 2-norm bounds the largest entry; scaled as the certificate will be
        entrywise = precision * max(1.0 - discount, float(np.abs(target).mean()))
        x, _ = spla.bicgstab(
            system,
            target,
            x0=guess,
            rtol=0.0,
            atol=0.25 * (entrywise if goal is None else goal),
            maxiter=_KRYLOV_ITERATIONS,
            M=scaling,
        )
        solution[:, column] = x
    return solution


def _by_sweeps(
    matrix: sp.csr_array, gain: FloatArray, discount: float, precision: float, *_: Any
) -> FloatArray:
    """Substitute until the span of the change certifies the answer (MacQueen)."""
    values = np.zeros_like(gain)
    needed = np.log(precision / 8) + np.log1p(-discount)
    limit = int(np.ceil(needed / np.log(discount))) + 1 if discount > 0 else 1
    for _sweep in range(limit):
        change = gain + discount * (matrix @ values) - values
        low, high = change.min(axis=0), change.max(axis=0)
        factor = discount / (1.0 - discount)
        values = values + change + factor * (low + high) / 2
        span = float((high - low).max())
        if factor * span <= precision * max(1.0, float(np.abs(values).max())) / 8:
            break
    return values


_METHODS: dict[str, Any] = {"lu": _by_lu, "krylov": _by_krylov, "sweeps": _by_sweeps}
