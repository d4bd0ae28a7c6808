"""What a backup reads and writes, brought into the one form that kernels take."""

from __future__ import annotations

import numpy as np

from escapade.errors import refusal
from escapade.typing import ArrayLike, FloatArray
from escapade.uncertainty.base import Sense, UncertaintySet
from escapade.uncertainty.rows import as_input, frozen

__all__ = ["read_buffers", "read_sense", "read_values"]

_NO_GAIN = frozen(np.empty(0))


def read_sense(sense: Sense) -> float:
    """Return the sign by which values are multiplied, so that the most is wanted."""
    if sense == "max":
        return 1.0
    if sense == "min":
        return -1.0
    raise refusal("sense", "'min' or 'max'", repr(sense))


def read_values(sets: UncertaintySet, v: ArrayLike) -> FloatArray:
    """Return the values of the states."""
    value = as_input(v)
    if value.shape != (sets.n_states,):
        raise refusal("v", f"shape ({sets.n_states},)", f"shape {value.shape}")
    return value


def read_buffers(
    sets: UncertaintySet,
    v: ArrayLike,
    immediate: ArrayLike | None,
    out: FloatArray | None,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return values, gains (empty for none) and the array for the result."""
    n_pairs = sets.n_pairs
    gain = _NO_GAIN if immediate is None else as_input(immediate)
    if immediate is not None and gain.shape != (n_pairs,):
        raise refusal("immediate", f"shape ({n_pairs},)", f"shape {gain.shape}")
    if out is None:
        out = np.empty(n_pairs)
    elif out.shape != (n_pairs,) or out.dtype != np.float64:
        raise refusal(
            "out", f"doubles of shape ({n_pairs},)", f"{out.dtype} of shape {out.shape}"
        )
    return read_values(sets, v), gain, out
