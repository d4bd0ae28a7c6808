"""State-action pairs and their successors, in compressed sparse rows.

A model is stored in two nested levels.  The pairs of state ``s`` are numbered
``state_ptr[s] .. state_ptr[s + 1]``, in the order of their actions; the successors of
pair ``i`` stand at ``row_ptr[i] .. row_ptr[i + 1]``, in the order of their states::

    state  --state_ptr-->  pairs  --row_ptr-->  successors
                           pair_state           successor
                           pair_action          probability

States may thus have different actions, and memory grows with the transitions that are
possible rather than with ``S * A * S``.  This module turns each accepted way of
writing transitions down into that layout; it checks shapes and numbers as it goes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from escapade.errors import refusal
from escapade.typing import ArrayLike, BoolArray, FloatArray, IndexArray, IntArray

__all__ = [
    "Pairs",
    "Transitions",
    "check_transitions",
    "read_array",
    "read_transitions",
]

_ROW_TOLERANCE = 1e-8
_ROW_TOLERANCE_SINGLE = 1e-6  # for numbers that arrive in single precision
_RENORMALISE_ABOVE = 1e-12
_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairs:
    """Which action is available in which state, numbered pair by pair.

    States and actions may have names, which messages add to their numbers.
    """

    n_states: int
    n_actions: int
    state_ptr: IntArray
    pair_state: IndexArray
    pair_action: IndexArray
    state_names: tuple[str, ...] | None = None
    action_names: tuple[str, ...] | None = None

    @property
    def n_pairs(self) -> int:
        """Number of available state-action pairs."""
        return self.pair_state.size

    @classmethod
    def from_mask(cls, available: BoolArray) -> Pairs:
        """Return the pairs of an ``(S, A)`` mask, numbered state by state."""
        n_states, n_actions = available.shape
        per_state = available.sum(axis=1)
        if not per_state.all():
            state = int(np.argmin(per_state > 0))
            raise refusal(
                "available",
                "at least one available action in every state",
                "none",
                f"state {state}",
            )
        state_ptr = np.zeros(n_states + 1, dtype=np.int64)
        np.cumsum(per_state, out=state_ptr[1:])
        pair_state, pair_action = np.nonzero(available)
        return cls(
            n_states=n_states,
            n_actions=n_actions,
            state_ptr=state_ptr,
            pair_state=pair_state.astype(np.int32),
            pair_action=pair_action.astype(np.int32),
        )

    def name(self, pair: int) -> str:
        """Say in words which pair this is."""
        action = int(self.pair_action[pair])
        named = f" ({self.action_names[action]})" if self.action_names else ""
        return f"{self.name_state(int(self.pair_state[pair]))}, action {action}{named}"

    def name_state(self, state: int) -> str:
        """Say in words which state this is."""
        named = f" ({self.state_names[state]})" if self.state_names else ""
        return f"state {state}{named}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Transitions:
    """Successors and their probabilities, row by row over the pairs."""

    row_ptr: IntArray
    successor: IndexArray
    probability: FloatArray


def read_array(argument: str, expected: str, value: Any) -> NDArray[Any]:
    """Return ``value`` as an array, perhaps the caller's own; refuse ragged nesting."""
    if isinstance(value, np.ma.MaskedArray):  # its mask would be dropped in silence
        raise refusal(argument, expected, "a masked array")
    try:
        return np.asarray(value)
    except ValueError as error:
        raise refusal(argument, expected, f"ragged nesting ({error})") from None


def read_transitions(
    transitions: Any, available: ArrayLike | None
) -> tuple[Pairs, Transitions]:
    """Read transitions in any accepted form and return the checked layout.

    Parameters
    ----------
    transitions
        A dense ``(S, A, S)`` array, a list of ``A`` sparse ``(S, S)`` matrices, or
        one sparse ``(S * A, S)`` matrix with row ``s * A + a``.
    available
        Mask ``(S, A)``; ``None`` when every action is available everywhere.
    """
    stacked, n_states, n_actions = _stack(transitions)
    mask = _read_mask(available, n_states, n_actions)
    pairs = Pairs.from_mask(mask)
    if pairs.n_pairs < n_states * n_actions:
        stacked = stacked[np.flatnonzero(mask.ravel())]
    single = stacked.dtype == np.float32
    if stacked.dtype.kind not in "fiub":
        raise refusal("P", "real numbers", f"dtype {stacked.dtype}")
    rows = Transitions(
        row_ptr=stacked.indptr.astype(np.int64),
        successor=np.array(stacked.indices, dtype=np.int32),  # never the caller's own
        probability=np.array(stacked.data, dtype=np.float64),
    )
    tolerance = _ROW_TOLERANCE_SINGLE if single else _ROW_TOLERANCE
    return pairs, check_transitions(pairs, rows, tolerance=tolerance)


def check_transitions(
    pairs: Pairs,
    rows: Transitions,
    *,
    tolerance: float = _ROW_TOLERANCE,
    argument: str = "P",
) -> Transitions:
    """Check that every row is a distribution over the states, in canonical form.

    Canonical means: successors in increasing order, none twice, no stored zeros, and
    sums that differ from 1 by rounding only (rows are rescaled where needed, by at
    most ``tolerance``).  What is canonical passes through bit for bit, so that a model
    can be rebuilt from its own arrays.
    """
    row_ptr, successor, probability = rows.row_ptr, rows.successor, rows.probability
    n_pairs = pairs.n_pairs

    def place(entry: int) -> str:
        pair = int(np.searchsorted(row_ptr, entry, side="right")) - 1
        return f"{pairs.name(pair)}, next state {successor[entry]}"

    finite = np.isfinite(probability)
    if not finite.all():
        entry = int(np.argmin(finite))
        raise refusal(
            argument, "finite numbers", float(probability[entry]), place(entry)
        )
    if probability.size and probability.min() < 0:
        entry = int(np.argmax(probability < 0))
        raise refusal(
            argument,
            "probabilities of at least 0",
            float(probability[entry]),
            place(entry),
        )
    if successor.size and (successor.min() < 0 or successor.max() >= pairs.n_states):
        entry = int(np.argmax((successor < 0) | (successor >= pairs.n_states)))
        pair = int(np.searchsorted(row_ptr, entry, side="right")) - 1
        raise refusal(
            argument,
            f"next states in 0..{pairs.n_states - 1}",
            int(successor[entry]),
            pairs.name(pair),
        )
    rows = _canonical(rows, n_pairs, pairs.n_states)
    row_ptr, successor, probability = rows.row_ptr, rows.successor, rows.probability
    lengths = np.diff(row_ptr)
    if not lengths.all():
        pair = int(np.argmin(lengths > 0))
        raise refusal(argument, "rows that sum to 1", "an empty row", pairs.name(pair))
    sums = np.add.reduceat(probability, row_ptr[:-1])
    deviation = np.abs(sums - 1.0)
    if deviation.max() > tolerance:
        pair = int(np.argmax(deviation > tolerance))
        raise refusal(
            argument,
            "rows that sum to 1",
            f"a sum of {sums[pair]:.10g}",
            pairs.name(pair),
        )
    # summing n numbers may cost n units of rounding: that alone is not uneven, or long
    # rows would be rescaled again at every reading
    uneven = deviation > np.maximum(_RENORMALISE_ABOVE, 2 * _EPS * lengths)
    if uneven.any():
        scale = np.where(uneven, sums, 1.0)
        probability = probability / np.repeat(scale, lengths)
    return Transitions(row_ptr=row_ptr, successor=successor, probability=probability)


def _canonical(rows: Transitions, n_pairs: int, n_states: int) -> Transitions:
    """Sort each row, merge repeated successors, drop zeros; copies only if needed."""
    successor = rows.successor
    inside = np.ones(successor.size, dtype=bool)
    starts = rows.row_ptr[:-1]
    inside[starts[starts < successor.size]] = False  # first entry of its row
    increasing = np.ones(successor.size, dtype=bool)
    if successor.size > 1:
        increasing[1:] = successor[1:] > successor[:-1]
    if (increasing | ~inside).all() and rows.probability.all():
        return rows
    matrix = sp.csr_array(
        (rows.probability, rows.successor, rows.row_ptr), shape=(n_pairs, n_states)
    )
    matrix = matrix.copy()
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    return Transitions(
        row_ptr=matrix.indptr.astype(np.int64),
        successor=matrix.indices.astype(np.int32),
        probability=np.asarray(matrix.data, dtype=np.float64),
    )


def _read_mask(available: ArrayLike | None, n_states: int, n_actions: int) -> BoolArray:
    if available is None:
        return np.ones((n_states, n_actions), dtype=np.bool_)
    mask = read_array("available", "a boolean array", available)
    if mask.dtype != np.bool_:
        raise refusal("available", "a boolean array", f"dtype {mask.dtype}")
    if mask.shape != (n_states, n_actions):
        raise refusal(
            "available", f"shape ({n_states}, {n_actions})", f"shape {mask.shape}"
        )
    return mask


def _stack(transitions: Any) -> tuple[sp.csr_array, int, int]:
    """Return the transitions as one ``(S * A, S)`` sparse matrix, with S and A."""
    if sp.issparse(transitions):
        whole = cast(Any, transitions)  # the stubs know of no shape here
        shape = whole.shape
        if len(shape) != 2 or 0 in shape or shape[0] % shape[1]:
            raise refusal("P", "a sparse matrix of shape (S * A, S)", f"shape {shape}")
        n_rows, n_states = shape
        return _rows_of(whole), n_states, n_rows // n_states
    if isinstance(transitions, Sequence) and any(sp.issparse(m) for m in transitions):
        return _interleave(transitions)
    dense = _dense(transitions)
    n_states, n_actions, _ = dense.shape
    flat = dense.reshape(n_states * n_actions, n_states)
    if flat.dtype == np.float16:  # which no sparse matrix holds
        flat = flat.astype(np.float32)
    return sp.csr_array(flat), n_states, n_actions


def _rows_of(matrix: Any, where: str | None = None) -> sp.csr_array:
    """Return a sparse matrix in rows, once it is safe to walk along its pointers."""
    expected = "a sparse matrix that is whole inside"
    if matrix.format in ("csr", "csc", "bsr"):
        try:
            matrix.check_format(full_check=matrix.format != "csr")
        except ValueError as error:
            raise refusal("P", expected, f"one in which {error}", where) from None
        if (np.diff(matrix.indptr) < 0).any():
            raise refusal("P", expected, "one in which index pointers decrease", where)
    return sp.csr_array(matrix)


def _dense(transitions: Any) -> Any:
    dense = read_array("P", "an array of shape (S, A, S)", transitions)
    if dense.dtype.kind not in "fiub":
        raise refusal("P", "an array of numbers (S, A, S)", f"dtype {dense.dtype}")
    if dense.ndim != 3 or dense.shape[0] != dense.shape[2] or 0 in dense.shape:
        raise refusal("P", "shape (S, A, S)", f"shape {dense.shape}")
    return dense


def _interleave(matrices: Sequence[Any]) -> tuple[sp.csr_array, int, int]:
    """Turn ``A`` matrices ``(S, S)`` into rows ordered by state, then action."""
    n_actions = len(matrices)
    n_states = 0
    for action, matrix in enumerate(matrices):
        if not sp.issparse(matrix):
            raise refusal(
                "P",
                "sparse matrices only, when one is",
                f"a {type(matrix).__name__}",
                f"action {action}",
            )
        shape = cast(Any, matrix).shape
        n_states = n_states or int(shape[0])
        if shape != (n_states, n_states) or n_states == 0:
            raise refusal(
                "P",
                f"matrices of shape ({n_states}, {n_states})",
                f"shape {shape}",
                f"action {action}",
            )
    blocks = [_rows_of(m, f"action {a}") for a, m in enumerate(matrices)]
    by_action = sp.csr_array(sp.vstack(blocks, format="csr"))
    order = np.arange(n_states * n_actions).reshape(n_actions, n_states).T.ravel()
    return sp.csr_array(by_action[order]), n_states, n_actions
