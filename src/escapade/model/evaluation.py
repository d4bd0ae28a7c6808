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
``ρ = ‖b + γ P x̂ − x̂‖∞`` plus an allowance for rounding (that of the residual, and of
``P_π`` and ``b``, which are sums over actions), ``‖x̂ − x‖∞ ≤ ρ / (1 − γ‖P_π‖∞)``; for
occupancies the same in the 1-norm.  That bound is returned as ``error``.

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

from escapade.errors import SolverError, check_kind, refusal
from escapade.model.arguments import read_count, read_number
from escapade.model.cmdp import CMDP
from escapade.model.memory_policy import MemoryPolicy
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
    policy: Policy | MemoryPolicy,
    *,
    horizon: int | None = None,
    precision: float = 1e-8,
) -> Evaluation:
    """Evaluate a policy.

    Parameters
    ----------
    cmdp, policy
        The problem and a policy of it, stationary or with a memory.
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
    check_kind("cmdp", cmdp, CMDP)
    check_kind("policy", policy, Policy, MemoryPolicy)
    if isinstance(policy, MemoryPolicy):
        on_nodes = evaluate(
            policy.product(cmdp), policy.choice, horizon=horizon, precision=precision
        )
        value = policy.from_start(on_nodes.value)
        costs = policy.from_start(on_nodes.costs)
        scale = float(max(np.abs(value).max(), np.abs(costs).max()))
        return _finished(
            value,
            costs,
            on_nodes.error + 2.0 * (policy.n_nodes + 2) * _EPS * scale,
            on_nodes.method,
            cmdp.start,
        )
    weights = policy.pair_weights(cmdp)
    matrix = policy_matrix(cmdp, weights)
    gain = np.vstack([cmdp.reward, cmdp.cost]) * weights
    gain = np.add.reduceat(gain, cmdp.state_ptr[:-1], axis=1).T  # (S, 1 + K)
    if horizon is not None:
        system = _System(matrix, cmdp.discount, mixed=cmdp.n_actions)
        solution, error = _finite(system, gain, read_count("horizon", horizon))
        method = "finite"
    else:
        solution, error, method = discounted_sums(
            matrix,
            gain,
            cmdp.discount,
            _read_precision(precision),
            mixed=cmdp.n_actions,
        )
    return _finished(
        solution[:, 0].copy(), solution[:, 1:].T.copy(), error, method, cmdp.start
    )


def _finished(
    value: FloatArray, costs: FloatArray, error: float, method: str, start: FloatArray
) -> Evaluation:
    value.flags.writeable = False
    costs.flags.writeable = False
    return Evaluation(value=value, costs=costs, error=error, method=method, start=start)


def occupancy(
    cmdp: CMDP, policy: Policy | MemoryPolicy, *, precision: float = 1e-8
) -> FloatArray:
    """Return the expected discounted number of visits to every pair, ``(pairs,)``.

    The visits start from the start distribution and sum to ``1 / (1 − discount)``;
    rewards and costs follow from them as ``f @ cmdp.reward`` and ``cmdp.cost @ f``.
    Their certified error, summed over pairs, is at most ``precision / (1 - discount)``.
    """
    check_kind("cmdp", cmdp, CMDP)
    check_kind("policy", policy, Policy, MemoryPolicy)
    if isinstance(policy, MemoryPolicy):
        on_nodes = occupancy(policy.product(cmdp), policy.choice, precision=precision)
        gathered = np.bincount(policy.pairs, on_nodes, minlength=cmdp.n_pairs)
        return gathered.astype(np.float64)
    weights = policy.pair_weights(cmdp)
    visits, _, _ = discounted_sums(
        sp.csr_array(policy_matrix(cmdp, weights).T),
        cmdp.start[:, np.newaxis],
        cmdp.discount,
        _read_precision(precision),
        transposed=True,
        mixed=cmdp.n_actions,
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


def _read_precision(value: float) -> float:
    precision = read_number("precision", value)
    if not 0.0 < precision < np.inf:
        raise refusal("precision", "a finite number above 0", precision)
    return precision


class _System:
    """The equation ``x = b + γ M x``, and how far a guess is from its solution.

    ``M`` is ``P_π``, or its transpose for occupancies.  Distances are measured in the
    norm in which ``γ M`` contracts by ``γ``: the largest entry, or the sum.  Each entry
    of ``M`` and ``b`` is itself a sum of up to ``mixed`` products.
    """

    def __init__(
        self,
        matrix: sp.csr_array,
        discount: float,
        *,
        transposed: bool = False,
        mixed: int = 1,
    ) -> None:
        self.matrix = matrix
        self.discount = discount
        self.transposed = transposed
        # how often an entry of ``b + γ M x − x`` is rounded, at most
        self.roundings = np.diff(matrix.indptr)[:, np.newaxis] + mixed + 4
        sums = matrix.sum(axis=0 if transposed else 1)
        self.norm = float(sums.max()) * (1.0 + float(self.roundings.max()) * _EPS)

    def norm_of(self, x: FloatArray) -> float:
        """Return the norm of the worst column."""
        size = np.abs(x)
        return float((size.sum(axis=0) if self.transposed else size).max())

    def substitute(self, gain: FloatArray, x: FloatArray) -> FloatArray:
        """Return ``b + γ M x``."""
        result: FloatArray = gain + self.discount * (self.matrix @ x)
        return result

    def rounding(self, gain: FloatArray, x: FloatArray) -> float:
        """Bound, in the norm, the rounding in ``b + γ M x − x``."""
        size = np.abs(x)
        magnitude = self.substitute(np.abs(gain), size) + size
        return self.norm_of(self.roundings * _EPS * magnitude)

    def error(self, gain: FloatArray, x: FloatArray) -> float:
        """Return a certified bound on the distance of ``x`` from the solution."""
        contraction = self.discount * self.norm
        if contraction >= 1.0:
            return np.inf
        residual = self.norm_of(self.substitute(gain, x) - x)
        return (residual + self.rounding(gain, x)) / (1.0 - contraction)


def _finite(
    system: _System, gain: FloatArray, horizon: int
) -> tuple[FloatArray, float]:
    values = np.zeros_like(gain)
    for _ in range(horizon):
        before, values = values, system.substitute(gain, values)
        if np.array_equal(before, values):  # so will be every later step
            break
    contraction = system.discount * system.norm
    steps = float(horizon)
    if contraction < 1.0:
        steps = min(steps, (1.0 - contraction**horizon) / (1.0 - contraction))
    return values, system.rounding(gain, values) * steps


def discounted_sums(
    matrix: sp.csr_array,
    gain: FloatArray,
    discount: float,
    precision: float,
    *,
    transposed: bool = False,
    strict: bool = True,
    mixed: int = 1,
) -> tuple[FloatArray, float, str]:
    """Solve ``x = gain + γ matrix x`` and certify the error of the answer.

    Returns the solution, its certified error and the method.  An answer that misses
    the precision is refused with :class:`SolverError`, or, if not ``strict``, returned
    with the error that it has.  The rows of ``matrix`` sum to 1 (its columns, if
    ``transposed``); its entries are sums of up to ``mixed`` products.
    """
    system = _System(matrix, discount, transposed=transposed, mixed=mixed)
    least = 1.0 / (1.0 - discount) if transposed else 1.0
    best: tuple[FloatArray, float, str] | None = None
    for method in _methods(matrix):
        solution = _METHODS[method](system, gain, precision)
        if not np.isfinite(solution).all():  # the method broke down
            continue
        error = system.error(gain, solution)
        if error <= precision * max(least, system.norm_of(solution)):
            return solution, error, method
        if best is None or error < best[1]:
            best = (solution, error, method)
    if best is not None and not strict:
        return best
    reached = np.inf if best is None else best[1]
    if np.isinf(reached):
        raise SolverError(
            f"discount: expected one that double arithmetic can tell from 1, "
            f"found {discount!r}; a smaller one can be evaluated"
        )
    raise SolverError(
        f"precision: expected an error of at most {precision:g}, found {reached:.3g} "
        f"at best; ask for that precision or a smaller discount"
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


def _by_lu(system: _System, gain: FloatArray, _precision: float) -> FloatArray:
    identity = sp.eye_array(system.matrix.shape[0])
    matrix = sp.csc_array(identity - system.discount * system.matrix)
    try:
        factors = spla.splu(matrix)
    except RuntimeError:  # exactly singular: 1 − discount is lost in rounding
        return np.full_like(gain, np.nan)  # judged by the caller, as any breakdown is
    solution = factors.solve(gain)
    residual = gain - matrix @ solution
    refined: FloatArray = solution + factors.solve(residual)
    return refined


def _by_krylov(system: _System, gain: FloatArray, precision: float) -> FloatArray:
    from escapade.kernels.value_iteration import solve_chain  # compiled: not for all

    matrix, discount = system.matrix, system.discount
    n_states = len(gain)
    rows = np.arange(n_states)
    row_ptr = matrix.indptr.astype(np.int64)
    successor = matrix.indices.astype(np.int32)
    solution = np.empty_like(gain)
    rest = np.empty(n_states)
    for column in range(gain.shape[1]):
        target = gain[:, column]
        level = np.full(n_states, target.mean() / (1.0 - discount))
        if system.transposed:  # the largest entry bounds the sum
            goal = precision / n_states
        else:  # scaled as the certificate will be
            goal = precision * max(1.0 - discount, float(np.abs(target).mean()))
        solve_chain(
            rows,
            row_ptr,
            successor,
            matrix.data,
            discount,
            target - level + discount * (matrix @ level),
            rest,
            0.25 * goal,
            _KRYLOV_ITERATIONS,
        )
        solution[:, column] = level + rest
    return solution


def _by_sweeps(system: _System, gain: FloatArray, precision: float) -> FloatArray:
    """Substitute until the change certifies the answer.

    What all states have in common converges only as fast as the discount, so it is put
    right at once: values are shifted by MacQueen's constant, occupancies begin with the
    mass that they must end with.
    """
    discount = system.discount
    needed = np.log(precision / 8) + np.log1p(-discount)
    limit = max(int(np.ceil(needed / np.log(discount))), 0) + 1 if discount > 0 else 1
    factor = discount / (1.0 - discount)
    values = gain / (1.0 - discount) if system.transposed else np.zeros_like(gain)
    for _sweep in range(limit):
        change = system.substitute(gain, values) - values
        values = values + change
        if system.transposed:
            left = factor * system.norm_of(change)
            scale = 1.0 / (1.0 - discount)
        else:
            low, high = change.min(axis=0), change.max(axis=0)
            values = values + factor * (low + high) / 2
            left = factor * float((high - low).max())
            scale = max(1.0, system.norm_of(values))
        if left <= precision * scale / 8:
            break
    return values


_METHODS: dict[str, Any] = {"lu": _by_lu, "krylov": _by_krylov, "sweeps": _by_sweeps}
