"""Pictures of a CMDP with the state the world is in: as text, and as pixels.

States with coordinates are drawn where they are, x to the right and y upwards; the
distinct values of each coordinate become columns and rows, so uneven spacing is not
kept.  Other states fill a near-square board in the order of their numbers.  A cell is
marked where every action has a cost (in some channel), and where some action has a
reward.  Nothing here changes the world.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from escapade.model.cmdp import CMDP
from escapade.typing import BoolArray, IntArray

__all__ = ["Board", "draw_pixels", "draw_text"]

_AGENT, _COSTLY, _REWARDED, _PLAIN, _EMPTY = "@", "x", "+", ".", " "
_LARGEST_SIDE = 256  # cells; finer coordinates share a cell
_PIXELS = 512

# Colours of Okabe and Ito, told apart by colour-blind people too.
_COLOURS = {
    "background": (255, 255, 255),
    "plain": (224, 224, 224),
    "costly": (213, 94, 0),
    "rewarded": (0, 158, 115),
    "agent": (0, 114, 178),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """Where each state stands, and what marks it.

    ``row`` counts from the top and ``column`` from the left, one a state.
    """

    height: int
    width: int
    row: IntArray
    column: IntArray
    costly: BoolArray
    rewarded: BoolArray

    @classmethod
    def of(cls, cmdp: CMDP) -> Board:
        """Lay out the states of ``cmdp``."""
        if cmdp.coordinates is None:
            width = int(np.ceil(np.sqrt(cmdp.n_states)))
            row, column = np.divmod(np.arange(cmdp.n_states, dtype=np.int64), width)
            row, height = _merge(row)
            column, width = _merge(column)
        else:
            column, width = _merge(_ranks(cmdp.coordinates[:, 0]))
            if cmdp.coordinates.shape[1] > 1:
                upwards, height = _merge(_ranks(cmdp.coordinates[:, 1]))
            else:
                upwards, height = np.zeros(cmdp.n_states, dtype=np.int64), 1
            row = height - 1 - upwards
        first = cmdp.state_ptr[:-1]
        return cls(
            height=height,
            width=width,
            row=row,
            column=column,
            costly=np.minimum.reduceat(cmdp.cost.max(axis=0), first) > 0.0,
            rewarded=np.maximum.reduceat(cmdp.reward, first) > 0.0,
        )


def _ranks(values: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> IntArray:
    """Return the place of each value among the distinct ones."""
    _, ranks = np.unique(values, return_inverse=True)
    return ranks.astype(np.int64)


def _merge(ranks: IntArray) -> tuple[IntArray, int]:
    """Let neighbouring ranks share a cell until the side is short enough."""
    side = int(ranks.max()) + 1
    if side <= _LARGEST_SIDE:
        return ranks, side
    return ranks * _LARGEST_SIDE // side, _LARGEST_SIDE


def draw_text(board: Board, state: int) -> str:
    """Return the board as lines of characters, the current state marked ``@``."""
    cells = np.full((board.height, board.width), _EMPTY, dtype="<U1")
    cells[board.row, board.column] = _PLAIN
    cells[board.row[board.rewarded], board.column[board.rewarded]] = _REWARDED
    cells[board.row[board.costly], board.column[board.costly]] = _COSTLY
    cells[board.row[state], board.column[state]] = _AGENT
    return "\n".join(" ".join(line).rstrip() for line in cells)


def draw_pixels(board: Board, state: int) -> np.ndarray[tuple[int, ...], np.dtype]:
    """Return the board as an ``(height, width, 3)`` array of bytes."""
    cell = max(2, min(32, _PIXELS // max(board.height, board.width)))
    image = np.empty((board.height, board.width, 3), dtype=np.uint8)
    image[:] = _COLOURS["background"]
    image[board.row, board.column] = _COLOURS["plain"]
    rewarded, costly = board.rewarded, board.costly
    image[board.row[rewarded], board.column[rewarded]] = _COLOURS["rewarded"]
    image[board.row[costly], board.column[costly]] = _COLOURS["costly"]
    image = image.repeat(cell, axis=0).repeat(cell, axis=1)
    if cell >= 6:  # lines between the cells
        image[::cell] = _COLOURS["background"]
        image[:, ::cell] = _COLOURS["background"]
    # The agent is a disc, so that the colour of its cell still shows in the corners.
    middle = (np.arange(cell) + 0.5) / cell - 0.5
    disc = middle[:, np.newaxis] ** 2 + middle[np.newaxis, :] ** 2 <= 0.16
    top, left = int(board.row[state]) * cell, int(board.column[state]) * cell
    image[top : top + cell, left : left + cell][disc] = _COLOURS["agent"]
    return image
