"""From the values of pairs to the values of states, and how much they changed.

One pass over the pairs does what a robust sweep needs after nature has chosen: the best
or the average pair of every state, the least and the largest change, and the size of
the numbers that rounding is judged by.
"""

from __future__ import annotations

import numpy as np

from escapade.kernels.compilation import compiled
from escapade.typing import BoolArray, FloatArray, IntArray

__all__ = ["average_pairs", "select_pairs"]


@compiled
def select_pairs(
    state_ptr: IntArray,
    q: FloatArray,
    allowed: BoolArray,
    sign: float,
    x: FloatArray,
    tx: FloatArray,
    chosen: IntArray,
) -> tuple[float, float, float]:
    """`q` [N], `allowed` [N] or [0]: all, `x` [S] -> fills `tx` [S], `chosen` [S].

    The first best allowed pair of each state, by ``sign · q``.  A state without one
    gets 0 and its first pair.  Returns the least and the largest ``tx − x`` over the
    other states (0, 0 if there is none) and the largest ``|x|``.
    """
    low, high, size = np.inf, -np.inf, 0.0
    every = allowed.size == 0
    for s in range(state_ptr.size - 1):
        best, pair = -np.inf, -1
        for i in range(state_ptr[s], state_ptr[s + 1]):
            if (every or allowed[i]) and sign * q[i] > best:
                best, pair = sign * q[i], i
        if pair < 0:
            tx[s] = 0.0
            chosen[s] = state_ptr[s]
            continue
        tx[s] = sign * best
        chosen[s] = pair
        change = tx[s] - x[s]
        low = min(low, change)
        high = max(high, change)
        size = max(size, abs(x[s]))
    if low > high:
        low, high = 0.0, 0.0
    return low, high, size


@compiled
def average_pairs(
    state_ptr: IntArray,
    q: FloatArray,
    weights: FloatArray,
    live: BoolArray,
    x: FloatArray,
    tx: FloatArray,
) -> tuple[float, float, float]:
    """`q`, `weights` [N], `live` [S] or [0]: all, `x` [S] -> fills `tx` [S].

    Returns what :func:`select_pairs` returns; states that are not live get 0.
    """
    low, high, size = np.inf, -np.inf, 0.0
    every = live.size == 0
    for s in range(state_ptr.size - 1):
        if not (every or live[s]):
            tx[s] = 0.0
            continue
        total = 0.0
        for i in range(state_ptr[s], state_ptr[s + 1]):
            if weights[i] != 0.0:
                total += weights[i] * q[i]
        tx[s] = total
        change = total - x[s]
        low = min(low, change)
        high = max(high, change)
        size = max(size, abs(x[s]))
    if low > high:
        low, high = 0.0, 0.0
    return low, high, size
