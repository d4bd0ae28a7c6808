"""What is possible between the cells of a :class:`Discretizer`, and what it assumes.

A cell is no state.  Where a step leads depends on the point within it, and which points
are met depends on how one came there: on the policy, and on the past.  So steps from a
cell have no law of their own that could be learned by counting, unless somebody vouches
for it (``one_law``).  Left to itself an :class:`Abstraction` therefore tells the agent
that every pair is *varying*: what is possible at birth stays possible, and what was
seen guides plans alone.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from escapade.typing import FloatArray, IntArray
from escapade.uncertainty.interval import Interval

__all__ = ["Abstraction", "counted", "of_ends", "of_law"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Abstraction:
    """What is possible between cells, and what that rests on.

    Attributes
    ----------
    support
        ``(S * A, S)`` sparse; the possible successors.
    models
        An interval set over them, or ``None`` where all of the support is possible.
    one_law
        Whether it is assumed that steps from one cell have one law.
    assumes
        One sentence that a safety claim has to name.
    """

    support: sp.csr_array
    models: Interval | None
    one_law: bool
    assumes: str

    def told(self) -> dict[str, Any]:
        """Return the keywords for ``from_gymnasium`` or :class:`escapade.Knowledge`."""
        possible: dict[str, Any] = {"support": self.support}
        if self.models is not None:
            possible = {"models": self.models}
        return possible if self.one_law else {**possible, "varying": True}


def counted(
    found: dict[tuple[int, int], IntArray],
    ends: IntArray,
    begins: tuple[int, ...],
    *,
    anywhere: bool,
) -> tuple[list[int], list[int], FloatArray]:
    """Return rows, columns, and how often each was met by the parts, ``[3, n, parts]``.

    At least, at most and by a guess: an end counts for the one cell in which an episode
    begins, or for each of several at most.
    """
    ending = range(len(ends)) if anywhere else np.flatnonzero(ends.any(axis=1)).tolist()
    keys = sorted({*found, *itertools.product(ending, begins)})
    own = np.array([found.get(key, np.zeros(ends.shape[1])) for key in keys])
    rows, columns = (list(side) for side in zip(*keys, strict=True))
    ended = ends[rows] * np.isin(columns, begins)[:, np.newaxis]
    if len(begins) == 1:
        own = own + ended
        ended = np.zeros_like(ended)
    counts = np.stack([own, own + ended, own + ended / max(len(begins), 1)])
    return rows, columns, counts


def of_ends(begins: tuple[int, ...], n_cells: int, *, told: bool) -> str:
    """Return what is assumed of ends, if there are any."""
    if not begins:
        return ""
    which = "episodes end as told" if told else "any step may end an episode"
    if begins[-1] == n_cells:
        return f"; {which}, for good"
    where = " or ".join(map(str, begins))
    return f"; {which}, and the next begins in cell {where}"


def of_law(*, one_law: bool) -> str:
    """Return what is assumed of the law of a cell, if anything."""
    if not one_law:
        return ""
    return "; steps from a cell have one law, wherever in it one stands"
