"""Value iteration with the constant shift, and the chain solver of policy iteration.

The operator ``T`` satisfies ``T(v + c) = T v + γ c`` for every constant ``c``.  If
``low <= T v − v <= high`` in every state, its fixed point therefore lies between
``T v + γ low / (1 − γ)`` and ``T v + γ high / (1 − γ)`` (MacQueen).  The shift moves
``T v`` to the middle of that interval after every sweep; only the spread
``high − low`` is left to contract, which on fast mixing models takes few sweeps.

The value of one deterministic policy solves ``(I − γ P) x = b``.  On models that mix
slowly a Krylov method needs far fewer passes over the rows than sweeps do; BiCGStab
with the diagonal as preconditioner is used here.  It divides by two inner products with
a fixed *shadow* of the first residual.  Where these vanish, as they do exactly on small
symmetric chains, or where its residual has drifted from the true one, the method starts
again from where it is: after one substitution, which always contracts, with a shadow
halfway between the new residual and its image, at right angles to neither.
"""

from __future__ import annotations

import numpy as np

from escapade.kernels.backups import bellman_backup, expectation
from escapade.kernels.compilation import compiled
from escapade.typing import FloatArray, IndexArray, IntArray

__all__ = ["solve_chain", "sweep_chain", "sweep_values"]

_VANISHING = 1e-14  # what is left of an inner product when all that counts cancels


@compiled
def sweep_values(
    state_ptr: IntArray,
    row_ptr: IntArray,
    successor: IndexArray,
    probability: FloatArray,
    reward: FloatArray,
    gamma: float,
    value: FloatArray,
    scratch: FloatArray,
    best: IntArray,
    width: float,
    max_sweeps: int,
) -> tuple[int, float]:
    """``value``, ``scratch``, ``best``: ``[S]``; improves ``value`` in place.

    Stops when the interval around the optimum is at most ``width`` wide, or after
    ``max_sweeps``.  Returns the sweeps made and the width reached.
    """
    factor = gamma / (1.0 - gamma)
    spread = 1e308
    sweeps = 0
    while sweeps < max_sweeps:
        low, high = bellman_backup(
            state_ptr,
            row_ptr,
            successor,
            probability,
            reward,
            gamma,
            value,
            scratch,
            best,
        )
        shift = factor * 0.5 * (low + high)
        for state in range(value.size):
            value[state] = scratch[state] + shift
        sweeps += 1
        spread = factor * (high - low)
        if spread <= width:
            break
    return sweeps, spread


@compiled
def sweep_chain(
    chosen: IntArray,
    row_ptr: IntArray,
    successor: IndexArray,
    probability: FloatArray,
    gain: FloatArray,
    gamma: float,
    value: FloatArray,
    scratch: FloatArray,
    width: float,
    max_sweeps: int,
) -> tuple[int, float]:
    """``chosen``, ``gain``, ``value``, ``scratch``: ``[S]``; one pair a state.

    The same as :func:`sweep_values` for the chain of the chosen pairs.
    """
    factor = gamma / (1.0 - gamma)
    spread = 1e308
    sweeps = 0
    while sweeps < max_sweeps:
        low = 1e308
        high = -1e308
        for state in range(value.size):
            pair = chosen[state]
            total = expectation(row_ptr, successor, probability, value, pair)
            total = gain[state] + gamma * total
            scratch[state] = total
            change = total - value[state]
            low = min(low, change)
            high = max(high, change)
        shift = factor * 0.5 * (low + high)
        for state in range(value.size):
            value[state] = scratch[state] + shift
        sweeps += 1
        spread = factor * (high - low)
        if spread <= width:
            break
    return sweeps, spread


@compiled
def _apply(
    chosen: IntArray,
    row_ptr: IntArray,
    successor: IndexArray,
    probability: FloatArray,
    gamma: float,
    vector: FloatArray,
    out: FloatArray,
) -> None:
    """``chosen``, ``vector``, ``out``: ``[S]``; writes ``(I − γ P) vector``."""
    for state in range(vector.size):
        pair = chosen[state]
        total = expectation(row_ptr, successor, probability, vector, pair)
        out[state] = vector[state] - gamma * total


@compiled
def _residual(
    chosen: IntArray,
    row_ptr: IntArray,
    successor: IndexArray,
    probability: FloatArray,
    gamma: float,
    right: FloatArray,
    x: FloatArray,
    out: FloatArray,
) -> float:
    """``chosen``, ``right``, ``x``, ``out``: ``[S]``; ``right − (I − γ P) x``.

    Returns the largest entry, by size.
    """
    _apply(chosen, row_ptr, successor, probability, gamma, x, out)
    worst = 0.0
    for state in range(x.size):
        out[state] = right[state] - out[state]
        worst = max(worst, abs(out[state]))
    return worst


@compiled
def _size(vector: FloatArray) -> float:
    """``vector``: ``[S]``; its Euclidean length."""
    total = 0.0
    for entry in vector:
        total += entry * entry
    return float(np.sqrt(total))


@compiled
def _shadow(residual: FloatArray, image: FloatArray, out: FloatArray) -> float:
    """``residual``, ``image``, ``out``: ``[S]``; writes their mean direction.

    Returns its length, 0 if they are opposite or one of them is nothing.
    """
    length, reach = _size(residual), _size(image)
    for i in range(out.size):
        out[i] = (
            residual[i] / length + image[i] / reach if length * reach > 0.0 else 0.0
        )
    return _size(out)


@compiled
def solve_chain(
    chosen: IntArray,
    row_ptr: IntArray,
    successor: IndexArray,
    probability: FloatArray,
    gamma: float,
    right: FloatArray,
    x: FloatArray,
    tolerance: float,
    max_iterations: int,
) -> tuple[int, float]:
    """``chosen``, ``right``, ``x``: ``[S]``; BiCGStab for ``(I − γ P) x = right``.

    Starts from ``x = 0`` and writes the solution there.  Stops when no entry of the
    true residual exceeds ``tolerance``, when starting again no longer halves it, or
    after ``max_iterations``.  Returns the iterations made, those spent on starting
    again among them, and the largest entry of the residual, as the recursion carries
    it when the iterations have run out.
    """
    n = right.size
    inverse = np.empty(n)
    for state in range(n):
        pair = chosen[state]
        diagonal = 1.0
        for entry in range(row_ptr[pair], row_ptr[pair + 1]):
            if successor[entry] == state:
                diagonal -= gamma * probability[entry]
        inverse[state] = 1.0 / diagonal
    residual = right.copy()
    shadow = right.copy()
    direction = np.zeros(n)
    image = np.zeros(n)
    preconditioned = np.empty(n)
    half = np.empty(n)
    half_image = np.empty(n)
    x[:] = 0.0
    rho_old = 1.0
    alpha = 1.0
    omega = 1.0
    shadow_size = _size(shadow)
    worst = np.abs(residual).max()
    drifted = np.inf  # the true residual when the method last thought it was done
    broken = False
    iteration = 0
    while iteration < max_iterations:
        if broken or worst <= tolerance:
            worst = _residual(
                chosen, row_ptr, successor, probability, gamma, right, x, residual
            )
            if worst <= tolerance or (not broken and worst > 0.5 * drifted):
                break
            if not broken:
                drifted = worst
            for i in range(n):
                x[i] += residual[i]
            worst = _residual(
                chosen, row_ptr, successor, probability, gamma, right, x, residual
            )
            for i in range(n):
                preconditioned[i] = inverse[i] * residual[i]
            _apply(
                chosen, row_ptr, successor, probability, gamma, preconditioned, image
            )
            shadow_size = _shadow(residual, image, shadow)
            direction[:] = 0.0
            image[:] = 0.0
            rho_old = alpha = omega = 1.0
            broken = False
            iteration += 1
            continue
        iteration += 1
        rho = 0.0
        for i in range(n):
            rho += shadow[i] * residual[i]
        if abs(rho) <= _VANISHING * shadow_size * _size(residual):
            broken = True
            continue
        beta = (rho / rho_old) * (alpha / omega)
        for i in range(n):
            direction[i] = residual[i] + beta * (direction[i] - omega * image[i])
            preconditioned[i] = inverse[i] * direction[i]
        _apply(chosen, row_ptr, successor, probability, gamma, preconditioned, image)
        along = 0.0
        for i in range(n):
            along += shadow[i] * image[i]
        if abs(along) <= _VANISHING * shadow_size * _size(image):
            broken = True
            continue
        alpha = rho / along
        for i in range(n):
            x[i] += alpha * preconditioned[i]
            residual[i] -= alpha * image[i]
            half[i] = inverse[i] * residual[i]
        _apply(chosen, row_ptr, successor, probability, gamma, half, half_image)
        top = 0.0
        bottom = 0.0
        for i in range(n):
            top += half_image[i] * residual[i]
            bottom += half_image[i] * half_image[i]
        omega = top / bottom if bottom > 0.0 else 0.0
        worst = 0.0
        for i in range(n):
            x[i] += omega * half[i]
            residual[i] -= omega * half_image[i]
            worst = max(worst, abs(residual[i]))
        rho_old = rho
        broken = omega == 0.0
        if not worst < 1e300:  # nothing is left of it; the caller starts elsewhere
            break
    return iteration, worst
