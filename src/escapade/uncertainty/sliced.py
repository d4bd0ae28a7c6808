"""Rows laid out for the worst-case kernels: slices of 64 rows of like length.

See :mod:`escapade.kernels.worst_case_slices` for the layout itself.  Here rows are
sorted into buckets by their length, rounded up to a power of two, and keep their order
within a bucket, so that neighbours in the problem stay neighbours in memory.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from escapade.kernels.worst_case_slices import LANES, WIDEST, fill_slices
from escapade.typing import FloatArray, IndexArray, IntArray
from escapade.uncertainty.rows import frozen

__all__ = ["Slices", "slice_rows"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Slices:
    """Rows in slices, with a mass an entry; the longest rows are only named.

    ``start`` and ``width`` are one number a slice, ``row_of`` one a lane (−1 for empty
    lanes), ``index`` and ``mass`` one an entry; ``wide`` holds the rows left out.
    """

    start: IntArray
    width: IntArray
    row_of: IndexArray
    index: IndexArray
    mass: FloatArray
    wide: IntArray

    @property
    def slot(self) -> IntArray:
        """The lanes that hold a row."""
        return np.flatnonzero(self.row_of >= 0)

    def per_slot(self, values: FloatArray, fill: float = 0.0) -> FloatArray:
        """Return one number a lane from one number a row."""
        lanes = np.full(self.row_of.size, fill)
        slot = self.slot
        lanes[slot] = values[self.row_of[slot]]
        return frozen(lanes)

    def per_entry(
        self, row_ptr: IntArray, successor: IndexArray, mass: FloatArray
    ) -> FloatArray:
        """Return further masses of the same rows in the same layout."""
        sliced = np.zeros(self.index.size)
        slot = self.slot
        fill_slices(
            self.row_of[slot].astype(np.int64),
            row_ptr,
            successor,
            mass,
            slot,
            self.width,
            self.start,
            np.zeros(self.index.size, dtype=np.int32),
            sliced,
        )
        return frozen(sliced)


def slice_rows(row_ptr: IntArray, successor: IndexArray, mass: FloatArray) -> Slices:
    """Lay out rows: ``row_ptr`` ``[N + 1]``, ``successor`` and ``mass`` ``[nnz]``."""
    lengths = np.diff(row_ptr)
    exponent = np.ceil(np.log2(np.maximum(lengths, 1))).astype(np.int64)
    inside = lengths <= WIDEST
    widths, slots, chosen = [], [], []
    n_slots = 0
    for e in np.unique(exponent[inside]):
        rows = np.flatnonzero(inside & (exponent == e))
        n_slices = -(-rows.size // LANES)
        widths.append(np.full(n_slices, 1 << int(e), dtype=np.int64))
        slots.append(n_slots + np.arange(rows.size, dtype=np.int64))
        chosen.append(rows)
        n_slots += n_slices * LANES
    width = np.concatenate([*widths, np.empty(0, np.int64)])
    slot = np.concatenate([*slots, np.empty(0, np.int64)])
    sliced = np.concatenate([*chosen, np.empty(0, np.int64)])
    start = np.zeros(width.size + 1, dtype=np.int64)
    np.cumsum(width * LANES, out=start[1:])
    row_of = np.full(n_slots, -1, dtype=np.int32)
    row_of[slot] = sliced
    index = np.zeros(int(start[-1]), dtype=np.int32)
    masses = np.zeros(int(start[-1]))
    fill_slices(sliced, row_ptr, successor, mass, slot, width, start, index, masses)
    return Slices(
        start=frozen(start[:-1]),
        width=frozen(width),
        row_of=frozen(row_of),
        index=frozen(index),
        mass=frozen(masses),
        wide=frozen(np.flatnonzero(~inside)),
    )
