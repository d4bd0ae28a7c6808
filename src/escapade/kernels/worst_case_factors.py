"""The worst case over rows that are mixtures of a few factors.

Row ``x`` is ``Σ_i u_xi w_i`` with weights ``u >= 0``, so its worst expectation is the
same mixture of the worst expectations of the factors: those are found once a backup,
and each row then costs one term a factor that it mixes.
"""

from __future__ import annotations

import numpy as np

from escapade.kernels.compilation import compiled
from escapade.typing import FloatArray, IndexArray, IntArray

__all__ = ["factors_backup", "mixed_rows"]


@compiled
def factors_backup(
    mix_ptr: IntArray,
    factor: IndexArray,
    weight: FloatArray,
    worst: FloatArray,
    immediate: FloatArray,
    gamma: float,
    out: FloatArray,
) -> None:
    """`out`: `[N]` = immediate `[N]` (or `[0]`: none) + γ Σ weight · worst `[r]`.

    Row ``x`` mixes ``factor[mix_ptr[x]:mix_ptr[x + 1]]``, with ``weight`` beside it.
    """
    for row in range(out.size):
        total = 0.0
        for k in range(mix_ptr[row], mix_ptr[row + 1]):
            total += weight[k] * worst[factor[k]]
        out[row] = immediate[row] + gamma * total if immediate.size else gamma * total


@compiled
def mixed_rows(
    mix_ptr: IntArray,
    factor: IndexArray,
    weight: FloatArray,
    factor_ptr: IntArray,
    factor_successor: IndexArray,
    probability: FloatArray,
    row_ptr: IntArray,
    successor: IndexArray,
    n_states: int,
    out: FloatArray,
) -> None:
    """`out`: `[nnz]` the mixtures of factors whose entries are `probability`."""
    total = np.zeros(n_states)
    for row in range(row_ptr.size - 1):
        for k in range(mix_ptr[row], mix_ptr[row + 1]):
            f = factor[k]
            for entry in range(factor_ptr[f], factor_ptr[f + 1]):
                total[factor_successor[entry]] += weight[k] * probability[entry]
        for entry in range(row_ptr[row], row_ptr[row + 1]):
            out[entry] = total[successor[entry]]
            total[successor[entry]] = 0.0
