"""Rectangular grids: numbering, moves and walls, all cells at once.

The cell in column ``x`` of row ``y``, both counted from 0 at the south-west, is state
``y · width + x``.  Moves are those of the paper's Example 2, in its order: north, west,
south, east, and for the worlds that have it, stay.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from escapade.typing import BoolArray, FloatArray, IntArray

__all__ = [
    "ACTION_NAMES",
    "EAST",
    "NORTH",
    "SOUTH",
    "STAY",
    "WEST",
    "Grid",
    "stack_rows",
]

NORTH, WEST, SOUTH, EAST, STAY = range(5)
ACTION_NAMES = ("north", "west", "south", "east", "stay")

_DX = np.array([0, -1, 0, 1, 0], dtype=np.int64)
_DY = np.array([1, 0, -1, 0, 0], dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Grid:
    """A grid of ``width`` by ``height`` cells."""

    width: int
    height: int

    @property
    def size(self) -> int:
        """Number of cells."""
        return self.width * self.height

    @property
    def x(self) -> IntArray:
        """Column of every state."""
        return np.arange(self.size, dtype=np.int64) % self.width

    @property
    def y(self) -> IntArray:
        """Row of every state."""
        return np.arange(self.size, dtype=np.int64) // self.width

    @property
    def coordinates(self) -> FloatArray:
        """``(S, 2)`` positions, as the paper writes them: counted from 1."""
        places: FloatArray = np.stack([self.x, self.y], axis=1) + np.float64(1.0)
        return places

    def shifted(
        self, cells: IntArray, dx: IntArray | int, dy: IntArray | int
    ) -> tuple[IntArray, BoolArray]:
        """Return the cells that lie ``(dx, dy)`` away, and which of them exist.

        Where none exists the cell itself is returned.
        """
        x, y = cells % self.width + dx, cells // self.width + dy
        inside = (x >= 0) & (x < self.width) & (y >= 0) & (y < self.height)
        return np.where(inside, y * self.width + x, cells), inside

    def moves(self, n_actions: int) -> tuple[IntArray, BoolArray]:
        """Return where each move leads, ``(S, A)``, and whether it hits a wall.

        A move that hits a wall leads nowhere.
        """
        cells = np.arange(self.size, dtype=np.int64)[:, np.newaxis]
        targets, inside = self.shifted(cells, _DX[:n_actions], _DY[:n_actions])
        return targets, ~inside


def stack_rows(
    successors: list[IntArray], weights: list[FloatArray], n_states: int
) -> sp.csr_array:
    """Return the matrix ``(pairs, S)`` whose rows are sums of these terms.

    Each term names one successor and one weight a pair; zero weights are dropped.
    """
    row = np.concatenate([np.arange(term.size) for term in successors])
    column = np.concatenate([term.ravel() for term in successors])
    value = np.concatenate([term.ravel() for term in weights])
    kept = value > 0.0
    shape = (successors[0].size, n_states)
    matrix = sp.coo_array((value[kept], (row[kept], column[kept])), shape=shape)
    return sp.csr_array(matrix)
