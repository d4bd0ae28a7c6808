"""Dynamic programming without a budget: value iteration and policy iteration.

Both solve ``v = T v`` with ``(T v)(s) = max_a [r(s, a) + γ Σ P(s' | s, a) v(s')]`` for
any reward a pair, and both stop on the same certificate.  With
``low <= T v − v <= high`` the fixed point lies between ``T v + γ low / (1 − γ)`` and
``T v + γ high / (1 − γ)`` (MacQueen); an allowance for rounding is added on both
sides.

*Value iteration* sweeps, with the constant shift after every sweep (see
:mod:`escapade.kernels.value_iteration`): quick on models that mix fast.

*Policy iteration* solves each policy's linear system only as precisely as the
improvement at hand deserves (partial policy iteration), by sweeps where they contract
fast, else by BiCGStab, else by sparse LU.  It ends when no state can change and the
last policy's value is solved to rounding, so it returns a vertex: the value of an
actual deterministic policy.  The constrained planners need that.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spla

from escapade.errors import SolverError, refusal
from escapade.kernels.backups import bellman_backup, chain_residual, improve
from escapade.kernels.value_iteration import solve_chain, sweep_chain, sweep_values
from escapade.model.cmdp import CMDP
from escapade.model.policy import Policy
from escapade.typing import ArrayLike, FloatArray, IntArray

__all__ = [
    "Optimum",
    "certified_optimum",
    "chain_values",
    "policy_iteration",
    "value_iteration",
]

_EPS = float(np.finfo(np.float64).eps)
_ROUNDS = 1e-13  # residual, relative to the values, that counts as solved
_OPENING_SWEEPS = 12
_SWEEPS_AT_A_TIME = 24
_KRYLOV_ITERATIONS = 300
_LU_UP_TO_STATES = 200_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimum:
    """The optimal value of an unconstrained problem, with its certificate.

    Attributes
    ----------
    value
        Optimal value of every state, ``(S,)``, within ``error``.
    pairs
        The pair chosen in each state, ``(S,)``.
    error
        Certified: the optimum differs from ``value`` by at most this, in every state.
    iterations
        Sweeps of value iteration or policies of policy iteration.
    """

    value: FloatArray
    pairs: IntArray
    error: float
    iterations: int

    def policy(self, cmdp: CMDP) -> Policy:
        """Return the deterministic policy of the chosen pairs."""
        return Policy.deterministic(cmdp.pair_action[self.pairs], cmdp.n_actions)


def value_iteration(
    cmdp: CMDP,
    reward: ArrayLike | None = None,
    *,
    precision: float = 1e-8,
    value: FloatArray | None = None,
    max_sweeps: int = 1_000_000,
) -> Optimum:
    """Maximise discounted reward by sweeps; budgets are ignored.

    Parameters
    ----------
    cmdp
        The model.
    reward
        One number a pair; the problem's own rewards by default.
    precision
        Largest certified error, relative to the largest value (absolute below 1).
    value
        Where to begin; zero by default.
    max_sweeps
        Sweeps after which to give up.

    Raises
    ------
    SolverError
        If the precision was not reached.

    Examples
    --------
    >>> import escapade as ep
    >>> two = ep.CMDP(
    ...     [[[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]]],
    ...     [[0.0, 0.0], [0.0, 1.0]],
    ...     [[0.0, 0.0], [0.0, 0.0]],
    ...     discount=0.5,
    ...     budget=0.0,
    ... )
    >>> ep.planning.value_iteration(two).value.round(6)
    array([1., 2.])
    """
    gain = _read_reward(cmdp, reward)
    _check_precision(precision)
    current = np.zeros(cmdp.n_states) if value is None else np.array(value, float)
    scratch = np.empty(cmdp.n_states)
    best = np.empty(cmdp.n_states, dtype=np.int64)
    sweeps = 0
    while True:
        scale = max(1.0, float(np.abs(current).max()))
        made, _ = sweep_values(
            cmdp.state_ptr,
            cmdp.row_ptr,
            cmdp.successor,
            cmdp.probability,
            gain,
            cmdp.discount,
            current,
            scratch,
            best,
            0.5 * precision * scale,
            min(_SWEEPS_AT_A_TIME, max_sweeps - sweeps),
        )
        sweeps += made
        if made < _SWEEPS_AT_A_TIME or sweeps >= max_sweeps:
            found = certified_optimum(cmdp, gain, current, sweeps)
            scale = max(1.0, float(np.abs(found.value).max()))
            if found.error <= precision * scale:
                return found
            if sweeps >= max_sweeps or made <= 1:
                raise SolverError(
                    f"precision: expected a relative error of at most {precision:g}, "
                    f"reached {found.error / scale:.3g} after {sweeps} sweeps; allow "
                    f"more sweeps or ask for less"
                )


def policy_iteration(
    cmdp: CMDP,
    reward: ArrayLike | None = None,
    *,
    pairs: IntArray | None = None,
    value: FloatArray | None = None,
    max_iterations: int = 1_000,
) -> Optimum:
    """Maximise discounted reward by policy iteration; budgets are ignored.

    Parameters
    ----------
    cmdp, reward
        As in :func:`value_iteration`.
    pairs, value
        A policy (one pair a state) and values to begin with; a few sweeps otherwise.
    max_iterations
        Policies after which to stop; the certificate holds whatever happened.
    """
    gain = _read_reward(cmdp, reward)
    current = np.zeros(cmdp.n_states) if value is None else np.array(value, float)
    if pairs is None:
        chosen = np.empty(cmdp.n_states, dtype=np.int64)
        sweep_values(
            cmdp.state_ptr,
            cmdp.row_ptr,
            cmdp.successor,
            cmdp.probability,
            gain,
            cmdp.discount,
            current,
            np.empty(cmdp.n_states),
            chosen,
            0.0,
            _OPENING_SWEEPS,
        )
    else:
        chosen = np.array(pairs, dtype=np.int64)
    spread = float("inf")
    for iteration in range(1, max_iterations + 1):
        scale = max(float(np.abs(current).max()), float(np.abs(gain).max()))
        solved = _ROUNDS * scale
        goal = solved if spread == float("inf") else max(solved, 0.01 * spread)
        if pairs is None and iteration == 1:
            goal = max(solved, 1e-4 * scale * (1.0 - cmdp.discount))
        current = chain_values(cmdp, chosen, gain[chosen], current, goal)
        changed, low, high = improve(
            cmdp.state_ptr,
            cmdp.row_ptr,
            cmdp.successor,
            cmdp.probability,
            gain,
            cmdp.discount,
            current,
            4.0 * solved,
            chosen,
        )
        spread = high - low
        if changed == 0:
            if goal > solved:  # the policy stands; solve it to rounding and look again
                spread = 0.0
                continue
            break
    return certified_optimum(cmdp, gain, current, iteration, chosen)


def certified_optimum(
    cmdp: CMDP,
    gain: FloatArray,
    value: FloatArray,
    iterations: int,
    pairs: IntArray | None = None,
) -> Optimum:
    """Bound the optimum around ``value`` by one backup, rounding included."""
    backup = np.empty(cmdp.n_states)
    best = np.empty(cmdp.n_states, dtype=np.int64)
    low, high = bellman_backup(
        cmdp.state_ptr,
        cmdp.row_ptr,
        cmdp.successor,
        cmdp.probability,
        gain,
        cmdp.discount,
        value,
        backup,
        best,
    )
    factor = cmdp.discount / (1.0 - cmdp.discount)
    centre = backup + factor * 0.5 * (low + high)
    error = factor * 0.5 * (high - low) + rounding_allowance(cmdp, gain, value)
    return Optimum(
        value=centre,
        pairs=best if pairs is None else pairs,
        error=float(error),
        iterations=iterations,
    )


def rounding_allowance(cmdp: CMDP, gain: FloatArray, value: FloatArray) -> float:
    """Bound what rounding in one backup can do to a bound on the fixed point."""
    longest = int(np.diff(cmdp.row_ptr).max())
    scale = float(np.abs(gain).max() + 2.0 * np.abs(value).max())
    return (longest + 4) * _EPS * scale / (1.0 - cmdp.discount)


def chain_values(
    cmdp: CMDP,
    chosen: IntArray,
    gain: FloatArray,
    guess: FloatArray,
    tolerance: float,
) -> FloatArray:
    """Return the value of the deterministic policy ``chosen`` for ``gain`` a state.

    Ends when no entry of ``gain + γ P x − x`` exceeds ``tolerance``, or when nothing
    brings it lower; the caller certifies the answer.
    """
    x = np.array(guess)
    residual = np.empty_like(x)
    rows = (cmdp.row_ptr, cmdp.successor, cmdp.probability)
    gamma = cmdp.discount
    # sweeps first: where the chain mixes fast they are all it takes
    sweep_chain(chosen, *rows, gain, gamma, x, residual, 0.0, _SWEEPS_AT_A_TIME // 4)
    low, high = chain_residual(chosen, *rows, gain, gamma, x, residual)
    worst = max(-low, high)
    correction = np.empty_like(x)
    for _ in range(4):
        if worst <= tolerance:
            return x
        solve_chain(
            chosen,
            *rows,
            gamma,
            residual,
            correction,
            0.5 * tolerance,
            _KRYLOV_ITERATIONS,
        )
        candidate = x + correction
        if not np.isfinite(candidate).all():
            break
        trial = np.empty_like(x)
        low, high = chain_residual(chosen, *rows, gain, gamma, candidate, trial)
        # the constant part of the error is known exactly: remove it
        candidate += 0.5 * (low + high) / (1.0 - gamma)
        low, high = chain_residual(chosen, *rows, gain, gamma, candidate, trial)
        if not max(-low, high) < worst:
            break
        slow = max(-low, high) > 0.1 * worst
        x, residual, worst = candidate, trial, max(-low, high)
        if slow:
            break
    if worst <= tolerance:
        return x
    if cmdp.n_states <= _LU_UP_TO_STATES:
        return _by_factors(cmdp, chosen, gain, x, worst)
    sweep_chain(chosen, *rows, gain, gamma, x, residual, tolerance, 100_000)
    return x


def _by_factors(
    cmdp: CMDP, chosen: IntArray, gain: FloatArray, x: FloatArray, worst: float
) -> FloatArray:
    """Refine ``x`` by sparse LU; keep it if that does not help."""
    chain = cmdp.transition_matrix[chosen]
    system = sp.csc_array(sp.eye_array(cmdp.n_states) - cmdp.discount * chain)
    with warnings.catch_warnings():
        warnings.simplefilter("error", spla.MatrixRankWarning)
        factors = spla.splu(system)
    for _ in range(3):
        candidate = x + factors.solve(gain - system @ x)
        reached = float(np.abs(gain - system @ candidate).max())
        if not reached < worst:
            break
        x, worst = candidate, reached
    return x


def _read_reward(cmdp: CMDP, reward: ArrayLike | None) -> FloatArray:
    if reward is None:
        return cmdp.reward
    gain = np.ascontiguousarray(reward, dtype=np.float64)
    if gain.shape != (cmdp.n_pairs,):
        raise refusal("reward", f"shape ({cmdp.n_pairs},)", f"shape {gain.shape}")
    if not np.isfinite(gain).all():
        pair = int(np.argmin(np.isfinite(gain)))
        raise refusal(
            "reward", "finite numbers", float(gain[pair]), cmdp.describe_pair(pair)
        )
    return gain


def _check_precision(precision: float) -> None:
    if not precision > 0.0:
        raise refusal("precision", "a number above 0", precision)
