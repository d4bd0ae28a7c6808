"""Counts of transitions, as the rows around which a confidence set is built.

The nominal row of a pair is what was seen of it, ``N / n``.  A pair without visits is
nominally uniform over its possible successors; its radius will be the largest there is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from escapade.errors import refusal
from escapade.model.arguments import read_numbers
from escapade.model.cmdp import CMDP
from escapade.typing import FloatArray
from escapade.uncertainty.rows import Rows, frozen, read_rows_of, row_sums
from escapade.uncertainty.tables import (
    Frame,
    check_entries,
    pair_of_entry,
    read_table,
)

__all__ = ["Counted", "read_counts"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Counted:
    """Empirical rows, with the counts behind them.

    ``counts`` stands beside the entries that ``rows`` stores, ``visits`` is ``[rows]``.
    """

    rows: Rows
    counts: FloatArray
    visits: FloatArray


def read_counts(counts: Any, cmdp: CMDP | None, support: Any) -> Counted:
    """Read counts of transitions.

    Parameters
    ----------
    counts
        ``(S, A, S)`` dense, ``(S·A, S)`` or ``(pairs, S)`` dense or sparse; with a
        problem also ``[entries]``, one count a possible transition.
    cmdp
        The problem whose pairs and, unless ``support`` says otherwise, whose possible
        transitions are meant.  Without one, every state may follow.
    support
        As in :func:`~escapade.uncertainty.rows.read_rows_of`; needs a problem.
    """
    if cmdp is None:
        known = support is None or isinstance(support, str)
        if not known or support not in (None, "everywhere"):
            raise refusal("support", "a problem (cmdp) to go with it", "none")
        shape = counts.shape if hasattr(counts, "shape") else np.shape(counts)
        frame = Frame.of_shape("counts", tuple(shape))
        return _everywhere(counts, frame)
    frame = Frame.of(cmdp)
    if isinstance(support, str) and support == "everywhere":
        return _everywhere(counts, frame)
    rows = read_rows_of(cmdp, support)
    return _count(rows, _on_support(counts, rows, frame))


def _everywhere(counts: Any, frame: Frame) -> Counted:
    """Return rows that store what was seen, and the whole row where nothing was."""
    table = read_table("counts", counts, frame)
    check_entries("counts", table.data, table, frame)
    table.eliminate_zeros()
    lengths = np.diff(table.indptr)
    blank = np.repeat(lengths == 0, np.where(lengths == 0, frame.n_states, lengths))
    pointers = np.zeros(lengths.size + 1, dtype=np.int64)
    np.cumsum(np.where(lengths == 0, frame.n_states, lengths), out=pointers[1:])
    stored = np.empty(blank.size, dtype=np.int32)
    seen = np.zeros(blank.size)
    stored[~blank] = table.indices
    seen[~blank] = table.data
    stored[blank] = np.tile(
        np.arange(frame.n_states, dtype=np.int32), int((lengths == 0).sum())
    )
    rows = Rows(
        n_states=frame.n_states,
        stored_ptr=frozen(pointers),
        stored=frozen(stored),
        stored_nominal=seen,
        everywhere=True,
        pair_state=frame.pair_state,
        pair_action=frame.pair_action,
    )
    return _count(rows, seen)


def _on_support(counts: Any, rows: Rows, frame: Frame) -> FloatArray:
    """Return the counts of the possible transitions; refuse others."""
    size = rows.stored.size
    if np.ndim(counts) == 1:
        seen = read_numbers("counts", counts)
        if seen.shape != (size,):
            raise refusal("counts", f"shape ({size},)", f"shape {seen.shape}")
        bad = ~((seen >= 0.0) & np.isfinite(seen))
        if bad.any():
            entry = int(np.argmax(bad))
            pair = pair_of_entry(rows.row_ptr, entry)
            raise refusal(
                "counts",
                "finite numbers of at least 0",
                float(seen[entry]),
                f"{rows.name(pair)}, next state {rows.successor[entry]}",
            )
        return seen
    table = read_table("counts", counts, frame)
    check_entries("counts", table.data, table, frame)
    table.eliminate_zeros()
    place = rows.entries_of(table)
    if (place < 0).any():
        entry = int(np.argmax(place < 0))
        pair = pair_of_entry(table.indptr, entry)
        raise refusal(
            "counts",
            "no count of a transition outside the support",
            float(table.data[entry]),
            f"{rows.name(pair)}, next state {table.indices[entry]}",
        )
    seen = np.zeros(size)
    seen[place] = table.data
    return seen


def _count(rows: Rows, seen: FloatArray) -> Counted:
    """Return the empirical rows for counts beside the stored entries."""
    lengths = np.diff(rows.stored_ptr)
    visits = row_sums(seen, rows.stored_ptr)
    share = np.where(visits > 0.0, visits, 1.0)
    uniform = np.repeat(1.0 / lengths, lengths)
    nominal = np.where(
        np.repeat(visits > 0.0, lengths), seen / np.repeat(share, lengths), uniform
    )
    empirical = Rows(
        n_states=rows.n_states,
        stored_ptr=rows.stored_ptr,
        stored=rows.stored,
        stored_nominal=frozen(nominal),
        everywhere=rows.everywhere,
        pair_state=rows.pair_state,
        pair_action=rows.pair_action,
    )
    return Counted(rows=empirical, counts=frozen(seen), visits=frozen(visits))
