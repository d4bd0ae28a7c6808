"""A policy on the map of its problem: one arrow a state.

States with coordinates in the plane are drawn where they are.  An arrow points to the
most likely successor of the most likely action; a dot means to stay, a star a jump
beyond the neighbouring cells.  A number cannot be read off an arrow, so a cell in which
the policy mixes actions is listed elsewhere.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import numpy as np

from escapade.cli.output import is_terminal, say, takes
from escapade.environments.rendering import Board

if TYPE_CHECKING:
    from escapade.model.cmdp import CMDP
    from escapade.model.policy import Policy
    from escapade.typing import FloatArray

__all__ = ["can_draw", "draw_policy", "policy_lines"]

_WIDEST, _HIGHEST = 38, 60  # cells; a line then fits 80 columns

# By the sign of the step down, then by that of the step to the right: -1, 0, 1.
_ARROWS = (("↖", "↑", "↗"), ("←", "·", "→"), ("↙", "↓", "↘"))
_ASCII = (("\\", "^", "/"), ("<", ".", ">"), ("/", "v", "\\"))
_JUMP = "*"


def can_draw(cmdp: CMDP) -> bool:
    """Whether the states lie on a map that fits a screen."""
    if cmdp.coordinates is None or cmdp.coordinates.shape[1] != 2:
        return False
    columns, rows = (len(np.unique(axis)) for axis in cmdp.coordinates.T)
    places = len(np.unique(cmdp.coordinates, axis=0))
    return columns <= _WIDEST and rows <= _HIGHEST and places == cmdp.n_states


def policy_lines(cmdp: CMDP, policy: Policy, *, ascii_only: bool = False) -> list[str]:
    """Return the picture, one string a row, north on top.

    Examples
    --------
    >>> import escapade as ep
    >>> field = ep.environments.wall_cycle(size=2).cmdp
    >>> for line in policy_lines(field, ep.solve(field).policy, ascii_only=True):
    ...     print(line)
    v <
    > ^
    """
    board = Board.of(cmdp)
    cells = np.full((board.height, board.width), " ", dtype="<U1")
    signs = _ASCII if ascii_only else _ARROWS
    for state in range(cmdp.n_states):
        goal = _goal(cmdp, policy.probabilities[state], state)
        down = int(board.row[goal] - board.row[state])
        right = int(board.column[goal] - board.column[state])
        near = max(abs(down), abs(right)) <= 1
        cells[board.row[state], board.column[state]] = (
            signs[down + 1][right + 1] if near else _JUMP
        )
    return [" ".join(line).rstrip() for line in cells]


def _goal(cmdp: CMDP, probabilities: FloatArray, state: int) -> int:
    """Return where a policy most likely goes from a state."""
    successors, chances = cmdp.successors(state, int(np.argmax(probabilities)))
    return int(successors[np.argmax(chances)])


def draw_policy(cmdp: CMDP, policy: Policy, visits: FloatArray) -> None:
    """Print the picture; on a terminal, states of many visits in a stronger colour.

    ``visits`` is the expected discounted number of visits, ``[S]``.
    """
    lines = policy_lines(
        cmdp, policy, ascii_only=not takes("".join(map("".join, _ARROWS)))
    )
    if not is_terminal():
        for line in lines:
            say(f"  {line}".rstrip())
        return
    from rich.console import Console
    from rich.text import Text

    board = Board.of(cmdp)
    picture = Text("\n".join(f"  {line}" for line in lines))
    starts = np.cumsum([0, *(len(line) + 3 for line in lines)])  # indent and line end
    often = visits >= visits.mean()
    for state in range(cmdp.n_states):
        place = int(starts[board.row[state]] + 2 + 2 * board.column[state])
        style = "bold green" if often[state] else "dim"
        picture.stylize(style, place, place + 1)
    Console(file=sys.stdout).print(picture)
