"""Where life can lead at all, and how soon visits can be had where they are wanted."""

from __future__ import annotations

import numpy as np

from escapade.kernels.compilation import compiled
from escapade.typing import BoolArray, FloatArray, IndexArray, IntArray

__all__ = ["price_slack", "reach_values", "spread"]


@compiled
def spread(
    state_ptr: IntArray,
    row_ptr: IntArray,
    successor: IndexArray,
    probability: FloatArray,
    playable: BoolArray,
    reached: BoolArray,
) -> None:
    """``reached``: ``[S]``; mark, in place, all that playable pairs may lead to.

    ``playable``: ``[pairs]``, ``probability``: ``[entries]``; each state is taken up
    once.
    """
    waiting = np.flatnonzero(reached)
    queue = np.empty(reached.size, dtype=np.int64)
    last = waiting.size
    queue[:last] = waiting
    first = 0
    while first < last:
        s = queue[first]
        first += 1
        for pair in range(state_ptr[s], state_ptr[s + 1]):
            if not playable[pair]:
                continue
            for entry in range(row_ptr[pair], row_ptr[pair + 1]):
                after = successor[entry]
                if probability[entry] > 0.0 and not reached[after]:
                    reached[after] = True
                    queue[last] = after
                    last += 1


@compiled
def price_slack(
    state_ptr: IntArray,
    w: FloatArray,
    q: FloatArray,
    allowed: BoolArray,
    cap: FloatArray,
    worth: float,
    price: FloatArray,
) -> None:
    """``price``: ``[pairs]``; ``worth`` times the share of the cap that a pair uses up.

    That is ``q − w``, ``[K, pairs]`` and ``[K, S]``, of the channel where it is most.
    """
    for s in range(state_ptr.size - 1):
        for pair in range(state_ptr[s], state_ptr[s + 1]):
            most = 0.0
            for k in range(cap.size):
                if allowed[pair] and np.isfinite(w[k, s]):
                    used = q[k, pair] - w[k, s]
                    # of a budget of 0 nothing can be used
                    most = max(most, used / cap[k] if cap[k] > 0.0 else used)
            price[pair] = worth * most


@compiled
def reach_values(
    state_ptr: IntArray,
    row_ptr: IntArray,
    successor: IndexArray,
    probability: FloatArray,
    playable: BoolArray,
    price: FloatArray,
    wanted: BoolArray,
    gamma: float,
    tolerance: float,
    sweeps: int,
    value: FloatArray,
    score: FloatArray,
    best: IntArray,
) -> int:
    """Solve ``v = 1`` where visits are wanted, else the best ``γ P·v − price``, or 0.

    ``playable``, ``price``, ``score``: ``[pairs]``; ``wanted``, ``value``, ``best``:
    ``[S]``.  Gauss-Seidel sweeps from below, so every value stays a lower bound and
    states from which nothing can be reached stay at exactly 0, with ``best`` −1.
    ``score`` is ``γ P·v``.  Returns the sweeps made.
    """
    n_states = state_ptr.size - 1
    for s in range(n_states):
        value[s] = 1.0 if wanted[s] else 0.0
        best[s] = -1
    made = 0
    for sweep in range(sweeps):
        made = sweep + 1
        largest = 0.0
        for turn in range(n_states):
            s = turn if sweep % 2 == 0 else n_states - 1 - turn
            if wanted[s]:
                continue
            for pair in range(state_ptr[s], state_ptr[s + 1]):
                if not playable[pair]:
                    continue
                total = 0.0
                for entry in range(row_ptr[pair], row_ptr[pair + 1]):
                    total += probability[entry] * value[successor[entry]]
                total = gamma * total - price[pair]
                if total > value[s]:
                    largest = max(largest, total - value[s])
                    value[s] = total
                    best[s] = pair
        if largest <= tolerance:
            break
    for pair in range(score.size):
        total = 0.0
        for entry in range(row_ptr[pair], row_ptr[pair + 1]):
            total += probability[entry] * value[successor[entry]]
        score[pair] = gamma * total
    return made
