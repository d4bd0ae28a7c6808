"""The worst case over finitely many candidate rows of each pair.

All models of a pair share one list of successors, and their probabilities stand side
by side (``[entry][model]``), so a value is gathered once and serves every model.
"""

from __future__ import annotations

import numba
import numpy as np

from escapade.kernels.compilation import compiled, compiled_parallel
from escapade.typing import BoolArray, FloatArray, IndexArray, IntArray

__all__ = ["models_backup", "models_backup_threads", "models_choice"]


@compiled
def _models_rows(
    first: int,
    last: int,
    row_ptr: IntArray,
    successor: IndexArray,
    probability: FloatArray,
    active: BoolArray,
    immediate: FloatArray,
    gamma: float,
    v: FloatArray,
    sign: float,
    choice: IntArray,
    out: FloatArray,
) -> None:
    """Rows `first` to `last`; `choice`: `[N]` the attaining model, or `[0]`."""
    n_models = probability.shape[1]
    total = np.empty(n_models)
    for row in range(first, last):
        for m in range(n_models):
            total[m] = 0.0
        for k in range(row_ptr[row], row_ptr[row + 1]):
            z = sign * v[successor[k]]
            for m in range(n_models):
                total[m] += probability[k, m] * z
        best = -np.inf
        chosen = 0
        for m in range(n_models):
            if active[row, m] and total[m] > best:
                best = total[m]
                chosen = m
        worst = sign * best
        if choice.size:
            choice[row] = chosen
        out[row] = immediate[row] + gamma * worst if immediate.size else worst


@compiled
def models_backup(
    row_ptr: IntArray,
    successor: IndexArray,
    probability: FloatArray,
    active: BoolArray,
    immediate: FloatArray,
    gamma: float,
    v: FloatArray,
    sign: float,
    out: FloatArray,
) -> None:
    """`out`: `[N]` = immediate `[N]` (or `[0]`: none) + γ · worst of P·v, v `[S]`.

    `row_ptr`: `[N+1]`, `successor`: `[nnz]`, `probability`: `[nnz, M]`, `active`:
    `[N, M]` which models count; ``sign`` 1: maximum, −1: minimum.
    """
    _models_rows(
        0,
        row_ptr.size - 1,
        row_ptr,
        successor,
        probability,
        active,
        immediate,
        gamma,
        v,
        sign,
        np.empty(0, np.int64),
        out,
    )


@compiled_parallel
def models_backup_threads(
    row_ptr: IntArray,
    successor: IndexArray,
    probability: FloatArray,
    active: BoolArray,
    immediate: FloatArray,
    gamma: float,
    v: FloatArray,
    sign: float,
    out: FloatArray,
    chunks: int,
) -> None:
    """Shapes as in :func:`models_backup`, the same bits; `chunks`: pieces of work."""
    rows = row_ptr.size - 1
    choice = np.empty(0, np.int64)
    for c in numba.prange(chunks):
        _models_rows(
            rows * c // chunks,
            rows * (c + 1) // chunks,
            row_ptr,
            successor,
            probability,
            active,
            immediate,
            gamma,
            v,
            sign,
            choice,
            out,
        )


@compiled
def models_choice(
    row_ptr: IntArray,
    successor: IndexArray,
    probability: FloatArray,
    active: BoolArray,
    v: FloatArray,
    sign: float,
    choice: IntArray,
    out: FloatArray,
) -> None:
    """`choice`: `[N]` the model that attains the worst case, `out`: `[N]` its value."""
    _models_rows(
        0,
        row_ptr.size - 1,
        row_ptr,
        successor,
        probability,
        active,
        np.empty(0),
        1.0,
        v,
        sign,
        choice,
        out,
    )
