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
    table = _flat("known_rows", value, pairs)
    if not sp.issparse(table):
        table = read_numbers("known_rows", table)
    rows = sp.csr_array(sp.csr_array(table)[flat_pairs(pairs)]).astype(np.float64)
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


def _flat(argument: str, value: Any, pairs: Pairs) -> Any:
    """Return a table of rows as ``(S · A, S)``; refuse every other shape.

    A size that fits is not enough: an array of another order would be read as nonsense.
    """
    n, actions = pairs.n_states, pairs.n_actions
    full, cube = (n * actions, n), (n, actions, n)
    if isinstance(value, list | tuple) and any(sp.issparse(part) for part in value):
        shapes = [np.shape(part) for part in value]
        if shapes != [(n, n)] * actions or not all(map(sp.issparse, value)):
            raise refusal(
                argument, f"{actions} sparse matrices {(n, n)}", f"shapes {shapes}"
            )
        stacked = sp.csr_array(sp.vstack(value, format="csr"))
        return stacked[np.arange(full[0]).reshape(actions, n).T.ravel()]
    sparse = sp.issparse(value)
    table = value if sparse else read_array(argument, f"shape {cube}", value)
    if table.shape == full:
        return table
    if table.shape == cube and not sparse:
        return table.reshape(full)
    found = f"shape {table.shape}"
    if table.shape == (actions, n, n):
        found += ": one matrix an action; transpose(1, 0, 2) puts the states first"
    raise refusal(argument, f"shape {cube} or {full}", found)


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
    table = _flat("support", support, pairs)
    if sp.issparse(table):
        mask = sp.csr_array(cast(Any, table)).astype(np.float64)
        mask.data = np.ones(mask.nnz)  # a stored zero is a possible successor
    elif table.dtype != np.bool_:
        raise refusal("support", "booleans (P > 0, say)", f"dtype {table.dtype}")
    else:
        mask = sp.csr_array(table.astype(np.float64))
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
