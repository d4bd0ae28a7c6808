"""One application of the Bellman operator, and the policies that are greedy for it.

For a reward ``r`` a pair and a discount γ the operator is
``(T v)(s) = max_a [r(s, a) + γ Σ P(s' | s, a) v(s')]``.  The kernels walk the sparse
rows once; the spread of ``T v − v``, which every stopping rule and every certificate
needs, comes for free on the way.
"""

from __future__ import annotations

import numpy as np

from escapade.kernels.compilation import compiled
from escapade.typing import FloatArray, IndexArray, IntArray

__all__ = [
    "bellman_backup",
    "chain_residual",
    "expectation",
    "improve",
    "pair_values",
]


@compiled
def expectation(
    row_ptr: IntArray,
    successor: IndexArray,
    probability: FloatArray,
    value: FloatArray,
    row: int,
) -> float:
    """``row_ptr``: ``[N + 1]``, ``value``: ``[S]``; ``Σ P(s' | row) value(s')``.

    Indices are made unsigned: with signed ones every access would first ask whether
    it counts from the end, which takes longer than the sum.
    """
    total = 0.0
    for entry in range(np.uint64(row_ptr[row]), np.uint64(row_ptr[row + 1])):
        total += probability[entry] * value[np.uint32(successor[entry])]
    return total


@compiled
def pair_values(
    row_ptr: IntArray,
    successor: IndexArray,
    probability: FloatArray,
    reward: FloatArray,
    gamma: float,
    value: FloatArray,
    out: FloatArray,
) -> None:
    """``row_ptr``: ``[N + 1]``, ``reward``, ``out``: ``[N]``, ``value``: ``[S]``.

    Writes ``r + γ P v`` of every pair.
    """
    for pair in range(reward.size):
        total = expectation(row_ptr, successor, probability, value, pair)
        out[pair] = reward[pair] + gamma * total


@compiled
def bellman_backup(
    state_ptr: IntArray,
    row_ptr: IntArray,
    successor: IndexArray,
    probability: FloatArray,
    reward: FloatArray,
    gamma: float,
    value: FloatArray,
    out: FloatArray,
    best: IntArray,
) -> tuple[float, float]:
    """``state_ptr``: ``[S + 1]``, ``value``, ``out``, ``best``: ``[S]``.

    Writes ``T v`` and the first pair that attains it in each state; returns the least
    and the largest entry of ``T v − v``.
    """
    low = 1e308
    high = -1e308
    for state in range(value.size):
        top = -1e308
        top_pair = state_ptr[state]
        for pair in range(state_ptr[state], state_ptr[state + 1]):
            total = expectation(row_ptr, successor, probability, value, pair)
            total = reward[pair] + gamma * total
            if total > top:
                top = total
                top_pair = pair
        out[state] = top
        best[state] = top_pair
        change = top - value[state]
        low = min(low, change)
        high = max(high, change)
    return low, high


@compiled
def improve(
    state_ptr: IntArray,
    row_ptr: IntArray,
    successor: IndexArray,
    probability: FloatArray,
    reward: FloatArray,
    gamma: float,
    value: FloatArray,
    margin: float,
    chosen: IntArray,
) -> tuple[int, float, float]:
    """``state_ptr``: ``[S + 1]``, ``value``, ``chosen``: ``[S]``.

    Moves each state to its greedy pair where that gains more than ``margin`` over the
    chosen one, so that rounding cannot make policies cycle.  Returns how many states
    changed and the least and largest entry of ``T v − v``.
    """
    changed = 0
    low = 1e308
    high = -1e308
    for state in range(value.size):
        top = -1e308
        top_pair = state_ptr[state]
        current = -1e308
        for pair in range(state_ptr[state], state_ptr[state + 1]):
            total = expectation(row_ptr, successor, probability, value, pair)
            total = reward[pair] + gamma * total
            if pair == chosen[state]:
                current = total
            if total > top:
                top = total
                top_pair = pair
        if top > current + margin:
            chosen[state] = top_pair
            changed += 1
        change = top - value[state]
        low = min(low, change)
        high = max(high, change)
    return changed, low, high


@compiled
def chain_residual(
    chosen: IntArray,
    row_ptr: IntArray,
    successor: IndexArray,
    probability: FloatArray,
    gain: FloatArray,
    gamma: float,
    value: FloatArray,
    out: FloatArray,
) -> tuple[float, float]:
    """``chosen``, ``gain``, ``value``, ``out``: ``[S]``; one pair a state.

    Writes ``gain + γ P v − v`` for the chain of the chosen pairs; returns its least
    and largest entry.
    """
    low = 1e308
    high = -1e308
    for state in range(value.size):
        pair = chosen[state]
        total = expectation(row_ptr, successor, probability, value, pair)
        change = gain[state] + gamma * total - value[state]
        out[state] = change
        low = min(low, change)
        high = max(high, change)
    return low, high
