"""One number for each transition, in every shape in which people keep such tables.

Counts, posterior samples, masks and further models all come as a dense ``(S, A, S)``
array, as a dense or sparse matrix ``(S·A, S)`` with row ``s * A + a``, or as a matrix
``(pairs, S)`` over the pairs of a problem.  They all become one sparse ``(pairs, S)``
matrix here, or are refused by name.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import scipy.sparse as sp

from escapade.errors import refusal
from escapade.model.cmdp import CMDP
from escapade.model.layout import read_array
from escapade.typing import FloatArray, IndexArray, IntArray

__all__ = ["Frame", "read_table"]


class Frame:
    """The pairs that a table speaks of: those of a problem, or all of ``S × A``."""

    def __init__(self, n_states: int, pair_state: IndexArray, pair_action: IndexArray):
        self.n_states = n_states
        self.pair_state = pair_state
        self.pair_action = pair_action

    @property
    def n_pairs(self) -> int:
        """Number of pairs."""
        return self.pair_state.size

    @classmethod
    def of(cls, cmdp: CMDP) -> Frame:
        """Return the pairs of a problem."""
        return cls(cmdp.n_states, cmdp.pair_state, cmdp.pair_action)

    @classmethod
    def of_shape(cls, argument: str, shape: tuple[int, ...]) -> Frame:
        """Return all pairs of ``S`` states and ``A`` actions, read off a shape."""
        if len(shape) == 3 and shape[0] == shape[2] and 0 not in shape:
            n_states, n_actions = shape[0], shape[1]
        elif len(shape) == 2 and 0 not in shape and shape[0] % shape[1] == 0:
            n_states, n_actions = shape[1], shape[0] // shape[1]
        else:
            raise refusal(
                argument,
                "shape (S, A, S) or (S * A, S), or a problem (cmdp) to go with it",
                f"shape {shape}",
            )
        states = np.arange(n_states, dtype=np.int32)
        actions = np.arange(n_actions, dtype=np.int32)
        return cls(n_states, np.repeat(states, n_actions), np.tile(actions, n_states))

    def name(self, pair: int) -> str:
        """Say in words which pair this is."""
        return f"state {self.pair_state[pair]}, action {self.pair_action[pair]}"


def read_table(argument: str, value: Any, frame: Frame) -> sp.csr_array:
    """Return a table as a fresh canonical ``(pairs, S)`` matrix, stored zeros kept.

    Of a dense table all entries but zeros are stored.
    """
    n_states, n_pairs = frame.n_states, frame.n_pairs
    if sp.issparse(value):
        matrix = sp.csr_array(cast(Any, value))
    else:
        dense = read_array(argument, "an array of numbers", value)
        if dense.dtype.kind not in "fiub":
            raise refusal(argument, "an array of numbers", f"dtype {dense.dtype}")
        if dense.ndim == 3 and dense.shape[0] == dense.shape[2]:
            dense = dense.reshape(-1, dense.shape[2])
        if dense.ndim != 2:
            raise _wrong_shape(argument, frame, dense.shape)
        matrix = sp.csr_array(dense.astype(np.float64))
    if matrix.shape != (n_pairs, n_states):
        n_rows, n_columns = matrix.shape
        if n_columns != n_states or n_rows % n_states:
            raise _wrong_shape(argument, frame, matrix.shape)
        n_actions = n_rows // n_states
        if n_actions <= int(frame.pair_action.max()):
            raise _wrong_shape(argument, frame, matrix.shape)
        row = frame.pair_state.astype(np.int64) * n_actions + frame.pair_action
        matrix = matrix[row]
    fresh = sp.csr_array(
        (
            np.array(matrix.data, dtype=np.float64),
            matrix.indices.copy(),
            matrix.indptr.copy(),
        ),
        shape=(n_pairs, n_states),
    )
    fresh.sum_duplicates()
    return fresh


def check_entries(
    argument: str, values: FloatArray, matrix: sp.csr_array, frame: Frame
) -> None:
    """Refuse stored entries that are not finite numbers of at least 0."""
    bad = ~((values >= 0.0) & np.isfinite(values))
    if bad.any():
        entry = int(np.argmax(bad))
        pair = pair_of_entry(matrix.indptr, entry)
        raise refusal(
            argument,
            "finite numbers of at least 0",
            float(values[entry]),
            f"{frame.name(pair)}, next state {matrix.indices[entry]}",
        )


def pair_of_entry(row_ptr: IntArray | IndexArray, entry: int) -> int:
    """Return the row to which a stored entry belongs."""
    return int(np.searchsorted(row_ptr, entry, side="right")) - 1


def _wrong_shape(argument: str, frame: Frame, shape: tuple[int, ...]) -> Exception:
    n_states, n_actions = frame.n_states, int(frame.pair_action.max()) + 1
    return refusal(
        argument,
        f"shape ({n_states}, {n_actions}, {n_states}), "
        f"({n_states * n_actions}, {n_states}) or ({frame.n_pairs}, {n_states})",
        f"shape {shape}",
    )
