"""Drawing next states and actions by inverting cumulative distributions.

One uniform number ``u`` in [0, 1) settles a draw: the outcome is the first entry of
the row whose cumulative probability exceeds ``u``.  Rows keep the order of the model,
so the same generator gives the same path in Python and in compiled loops.
"""

from __future__ import annotations

from typing import Any

from escapade.kernels.compilation import compiled, inlined, natural
from escapade.typing import FloatArray, IndexArray, IntArray

__all__ = ["draw", "fill_cumulative", "rollout"]

_LINEAR_UP_TO = 16  # longer rows are bisected


@compiled
def fill_cumulative(row_ptr: IntArray, weight: FloatArray, out: FloatArray) -> None:
    """``row_ptr``: ``[rows + 1]``, ``weight``, ``out``: ``[nnz]``; row-wise sums.

    The last entry of every row is set to 1, so that no draw can fall behind it.
    """
    for row in range(row_ptr.size - 1):
        total = 0.0
        for entry in range(row_ptr[row], row_ptr[row + 1]):
            total += weight[entry]
            out[entry] = total
        last = row_ptr[row + 1] - 1
        while last > row_ptr[row] and weight[last] == 0.0:
            last -= 1
        for entry in range(last, row_ptr[row + 1]):
            out[entry] = 1.0


@inlined
def draw(row_ptr: IntArray, cumulative: FloatArray, row: int, u: float) -> int:
    """``row_ptr``: ``[rows + 1]``, ``cumulative``: ``[nnz]``; the drawn entry."""
    low: int = natural(row_ptr[row])
    high: int = natural(row_ptr[row + 1]) - 1
    if high - low < _LINEAR_UP_TO:
        while low < high and u >= cumulative[low]:
            low += 1
        return low
    while low < high:
        middle = (low + high) >> 1
        if u >= cumulative[middle]:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def rollout(
    state_ptr: IntArray,
    action_cumulative: FloatArray,
    row_ptr: IntArray,
    successor: IndexArray,
    cumulative: FloatArray,
    state: int,
    rng: Any,
    states: IndexArray,
    pairs: IndexArray,
) -> None:
    """``states``: ``[T + 1]``, ``pairs``: ``[T]``; follow a stationary policy.

    Two uniform numbers a step: one for the action, one for the next state.
    """
    states[0] = state
    for t in range(pairs.size):
        pair = draw(state_ptr, action_cumulative, state, rng.random())
        pairs[t] = pair
        state = successor[draw(row_ptr, cumulative, pair, rng.random())]
        states[t + 1] = state
