"""Which successors are possible, and which rows are known: read and checked."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import scipy.sparse as sp

from escapade.errors import refusal
from escapade.model.arguments import read_numbers
from escapade.model.layout import Pairs, read_array
from escapade.typing import FloatArray, IndexArray, IntArray
from escapade.uncertainty.base import UncertaintySet
from escapade.uncertainty.rows import frozen

__all__ = ["flat_pairs", "read_known_rows", "read_models", "read_support", "row_bounds"]

_ROW_TOLERANCE = 1e-8
_MOST_ENTRIES = 100_000_000


def flat_pairs(pairs: Pairs) -> IntArray:
    """Return ``s · A + a`` of every pair: its row in a table ``(S · A, S)``."""
    flat: IntArray = pairs.pair_state.astype(np.int64) * pairs.n_actions
    return flat + pairs.pair_action


def read_known_rows(value: Any, pairs: Pairs) -> sp.csr_array | None:
    """Return known rows over the available pairs, ``(pairs, S)``; others are empty."""
    if value is None:
        return None
    full = (pairs.n_states * pairs.n_actions, pairs.n_states)
    if not sp.issparse(value):
        dense = read_numbers("known_rows", value)
        value = dense.reshape(full) if dense.size == full[0] * full[1] else dense
    if value.ndim != 2 or value.shape != full:
        raise refusal("known_rows", f"shape {full}", f"shape {value.shape}")
    rows = sp.csr_array(sp.csr_array(value)[flat_pairs(pairs)]).astype(np.float64)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    bad = ~(np.isfinite(rows.data) & (rows.data > 0.0))
    if bad.any():
        entry = int(np.argmax(bad))
        pair = int(np.searchsorted(rows.indptr, entry, side="right")) - 1
        raise refusal(
            "known_rows",
            "finite numbers of at least 0",
            float(rows.data[entry]),
            pairs.name(pair),
        )
    lengths = np.diff(rows.indptr)
    sums = np.asarray(rows.sum(axis=1)).ravel()
    off = (lengths > 0) & (np.abs(sums - 1.0) > _ROW_TOLERANCE)
    if off.any():
        pair = int(np.argmax(off))
        raise refusal(
            "known_rows",
            "rows that are empty or sum to 1",
            f"a sum of {sums[pair]:.10g}",
            pairs.name(pair),
        )
    # a sum that is off by rounding alone is left as it is, so that rows that were
    # written to a file come back bit for bit
    close = np.abs(sums - 1.0) <= 4.0 * np.finfo(np.float64).eps * (lengths + 1)
    rows.data /= np.repeat(np.where(close, 1.0, sums), lengths)
    return rows


def read_models(models: UncertaintySet, pairs: Pairs) -> UncertaintySet:
    """Refuse models over other spaces, and those that are not rectangular."""
    if not isinstance(models, UncertaintySet):
        raise refusal("models", "an uncertainty set", type(models).__name__)
    if (models.n_states, models.n_pairs) != (pairs.n_states, pairs.n_pairs):
        raise refusal(
            "models",
            f"a set over {pairs.n_states} states and {pairs.n_pairs} pairs",
            f"{models.n_states} states and {models.n_pairs} pairs",
        )
    if not models.rectangular:
        raise refusal(
            "models",
            "a set that is rectangular over pairs",
            "one model throughout; take its hull()",
        )
    return models


def read_support(
    support: Any,
    exact: sp.csr_array | None,
    models: UncertaintySet | None,
    pairs: Pairs,
) -> tuple[IntArray, IndexArray]:
    """Return the possible successors of every pair, as pointers and states."""
    if models is not None:
        if support is not None:
            raise refusal("support", "none beside models, which have their own", "one")
        _check_exact(exact, models.row_ptr, models.successor, "models", pairs)
        return models.row_ptr, models.successor
    mask = _all_possible(pairs) if support is None else _read_mask(support, pairs)
    if exact is not None:
        given = mask.indptr.astype(np.int64)
        _check_exact(exact, given, mask.indices, "support", pairs)
        # where a row is known, nothing else is possible
        unknown = sp.diags_array((np.diff(exact.indptr) == 0).astype(np.float64))
        known = exact.copy()
        known.data = np.ones(known.nnz)
        mask = sp.csr_array(unknown @ mask + known)
        mask.eliminate_zeros()
    mask.sort_indices()
    empty = np.diff(mask.indptr) == 0
    if empty.any():
        pair = int(np.argmax(empty))
        raise refusal(
            "support", "at least one possible successor", "none", pairs.name(pair)
        )
    return (
        frozen(mask.indptr.astype(np.int64)),
        frozen(mask.indices.astype(np.int32)),
    )


def _all_possible(pairs: Pairs) -> sp.csr_array:
    shape = (pairs.n_pairs, pairs.n_states)
    if shape[0] * shape[1] > _MOST_ENTRIES:
        raise refusal(
            "support",
            f"the possible successors, for a problem with {shape[0]} pairs and "
            f"{shape[1]} states",
            "none",
        )
    return sp.csr_array(np.ones(shape))


def _read_mask(support: Any, pairs: Pairs) -> sp.csr_array:
    """Return ones where a successor is possible, ``(pairs, S)``."""
    full = (pairs.n_states * pairs.n_actions, pairs.n_states)
    if sp.issparse(support):
        mask = sp.csr_array(cast(Any, support)).astype(np.float64)
        mask.data = np.ones(mask.nnz)  # a stored zero is a possible successor
    else:
        given = read_array("support", "a boolean array (S, A, S)", support)
        if given.dtype != np.bool_ or given.size != full[0] * full[1]:
            raise refusal(
                "support",
                f"booleans of shape ({pairs.n_states}, {pairs.n_actions}, "
                f"{pairs.n_states})",
                f"dtype {given.dtype}, shape {given.shape}",
            )
        mask = sp.csr_array(given.reshape(full).astype(np.float64))
    if mask.shape != full:
        raise refusal("support", f"shape {full}", f"shape {mask.shape}")
    chosen = sp.csr_array(mask[flat_pairs(pairs)])
    chosen.sum_duplicates()
    return chosen


def _check_exact(
    exact: sp.csr_array | None,
    row_ptr: IntArray,
    successor: IndexArray,
    argument: str,
    pairs: Pairs,
) -> None:
    """Refuse exact rows that go where nothing is said to be possible.

    Rows of the support that are empty say nothing: there the exact row itself does.
    """
    if exact is None:
        return
    row = np.repeat(np.arange(pairs.n_pairs), np.diff(exact.indptr))
    wanted = row * pairs.n_states + exact.indices
    allowed = np.repeat(np.arange(pairs.n_pairs), np.diff(row_ptr))
    allowed = allowed * pairs.n_states + successor
    stray = ~np.isin(wanted, allowed) & (np.diff(row_ptr)[row] > 0)
    if stray.any():
        entry = int(np.argmax(stray))
        raise refusal(
            "known_rows",
            f"successors that {argument} allows",
            f"state {exact.indices[entry]}",
            pairs.name(int(row[entry])),
        )


def row_bounds(
    exact: sp.csr_array | None, row_ptr: IntArray, successor: IndexArray, n_states: int
) -> tuple[FloatArray, FloatArray]:
    """Return what is known of every transition probability, from below and above."""
    lengths = np.diff(row_ptr)
    lower, upper = np.zeros(successor.size), np.ones(successor.size)
    lower[row_ptr[:-1][lengths == 1]] = 1.0
    if exact is not None:
        owner = np.repeat(np.arange(lengths.size), lengths)
        row = np.repeat(np.arange(lengths.size), np.diff(exact.indptr))
        place = np.searchsorted(
            owner * n_states + successor, row * n_states + exact.indices
        )
        known = np.repeat(np.diff(exact.indptr) > 0, lengths)
        lower[known] = upper[known] = 0.0
        lower[place] = upper[place] = exact.data
    return frozen(lower), frozen(upper)
