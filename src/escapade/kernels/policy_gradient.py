"""Trajectories for the policy gradient, and what they say about the score.

A trajectory is drawn from the start, its gains are summed backwards, and each step adds
``γ^t (G_t − b(s_t))`` to the score of the pair that was taken there: for a softmax
policy that is all the gradient needs.  Uniform numbers come from outside, so compiled
and plain runs draw the same paths.
"""

from __future__ import annotations

import numpy as np

from escapade.kernels.compilation import compiled
from escapade.kernels.sampling import draw
from escapade.typing import FloatArray, IndexArray, IntArray

__all__ = ["add_trajectories"]


@compiled
def add_trajectories(
    state_ptr: IntArray,
    action_cumulative: FloatArray,
    row_ptr: IntArray,
    successor: IndexArray,
    cumulative: FloatArray,
    start_cumulative: FloatArray,
    gains: FloatArray,
    signs: FloatArray,
    gamma: float,
    baseline: FloatArray,
    uniforms: FloatArray,
    score: FloatArray,
    visits: FloatArray,
    to_go: FloatArray,
    counts: FloatArray,
    totals: FloatArray,
) -> None:
    """``gains``: ``[J, pairs]``, ``signs``, ``totals``: ``[J]``, others as named.

    ``uniforms``: ``[trajectories, 2 T + 1]``.  Per pair ``score`` and ``visits`` gain
    ``γ^t (G − b)`` and ``γ^t``; per state ``to_go`` and ``counts`` gain ``G`` and 1, of
    ``G = Σ_j signs_j gains_j`` summed from there on; ``totals`` gains each ``gains_j``
    summed from the start.
    """
    n_trajectories, width = uniforms.shape
    horizon = (width - 1) // 2
    start_ptr = np.array([0, start_cumulative.size])
    states = np.empty(horizon, dtype=np.int64)
    pairs = np.empty(horizon, dtype=np.int64)
    weights = np.empty(horizon)
    for n in range(n_trajectories):
        state = draw(start_ptr, start_cumulative, 0, uniforms[n, 0])
        weight = 1.0
        for t in range(horizon):
            pair = draw(state_ptr, action_cumulative, state, uniforms[n, 2 * t + 1])
            states[t] = state
            pairs[t] = pair
            weights[t] = weight
            entry = draw(row_ptr, cumulative, pair, uniforms[n, 2 * t + 2])
            state = successor[entry]
            weight *= gamma
        ahead = 0.0
        for back in range(horizon):
            t = horizon - 1 - back
            pair = pairs[t]
            state = states[t]
            ahead *= gamma
            for j in range(signs.size):
                ahead += signs[j] * gains[j, pair]
                totals[j] += weights[t] * gains[j, pair]
            score[pair] += weights[t] * (ahead - baseline[state])
            visits[pair] += weights[t]
            to_go[state] += ahead
            counts[state] += 1.0
