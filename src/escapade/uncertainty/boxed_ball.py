"""An L1 ball cut by bounds on every entry: an exact intersection.

``{q : l ≤ q ≤ u, Σ q = 1, Σ |q − p| ≤ ψ}``.  The centre ``p`` need not lie within the
bounds.  It is clipped into them first, the nearest point entry by entry; after that
every unit of mass that is added or removed anywhere costs one unit of ψ, and the worst
case is found greedily (:mod:`escapade.kernels.worst_case_interval`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from escapade.errors import refusal
from escapade.kernels.worst_case_interval import boxed_worst
from escapade.typing import BoolArray, FloatArray, IndexArray, IntArray
from escapade.uncertainty.base import Sense
from escapade.uncertainty.buffers import read_buffers, read_sense
from escapade.uncertainty.interval import Interval
from escapade.uncertainty.l1_ball import L1Ball
from escapade.uncertainty.row_set import RowSet
from escapade.uncertainty.rows import Rows, frozen, gather_rows, row_sums

__all__ = ["BoxedBall"]

_ROUNDING = 1e-12


class BoxedBall(RowSet):
    """The rows of an L1 ball that also lie within the bounds of an interval.

    The nominal row is the centre of the ball where that lies within the bounds,
    elsewhere a row of the set that is near it.

    Parameters
    ----------
    ball, box
        Sets over the same pairs.  A pair for which they have no row in common is
        refused.
    """

    def __init__(self, ball: L1Ball, box: Interval) -> None:
        rows = ball.rows
        lower, upper = np.zeros(ball.successor.size), np.zeros(ball.successor.size)
        keys = rows.row_of_entry() * rows.n_states + rows.successor
        theirs = box.rows.row_of_entry() * box.n_states + box.successor
        place = np.minimum(np.searchsorted(keys, theirs), keys.size - 1)
        shared = keys[place] == theirs
        lower[place[shared]] = box.lower[shared]
        upper[place[shared]] = box.upper[shared]
        lost = row_sums(np.where(shared, 0.0, box.lower), box.row_ptr)
        self._fill(rows, ball.radius, lower, upper, lost)

    def _fill(
        self,
        rows: Rows,
        radius: FloatArray,
        lower: FloatArray,
        upper: FloatArray,
        lost: FloatArray,
    ) -> None:
        self._centre = rows
        self._radius = radius
        self._lower, self._upper = frozen(lower), frozen(upper)
        self._clipped = frozen(np.clip(rows.nominal, lower, upper))
        used = row_sums(np.abs(rows.nominal - self._clipped), rows.row_ptr)
        self._surplus = frozen(row_sums(self._clipped, rows.row_ptr) - 1.0)
        self._left = frozen(radius - used)
        room = rows.support_size * _ROUNDING
        empty = self._left + room < np.abs(self._surplus)
        empty |= row_sums(lower, rows.row_ptr) + lost > 1.0 + room
        empty |= row_sums(upper, rows.row_ptr) < 1.0 - room
        empty |= lost > room
        if empty.any():
            raise refusal(
                "parts",
                "a ball and bounds with a row in common",
                "none",
                rows.name(int(np.argmax(empty))),
            )
        # a member near the centre: every direction is as good, none is followed
        near = np.empty(self._clipped.size)
        still = frozen(np.zeros(rows.n_states))
        self._run(rows.row_ptr, rows.successor, still, 1.0, near, None)
        super().__init__(rows.with_nominal(near))

    def _run(
        self,
        row_ptr: IntArray,
        successor: IndexArray,
        v: FloatArray,
        sign: float,
        kernel: FloatArray,
        out: FloatArray | None,
    ) -> None:
        boxed_worst(
            row_ptr,
            successor,
            self._clipped,
            self._lower,
            self._upper,
            self._surplus,
            self._left,
            v,
            sign,
            kernel,
            np.empty(row_ptr.size - 1) if out is None else out,
        )

    def __reduce__(self) -> tuple[Any, ...]:
        parts = (self._centre, self._radius, self._lower, self._upper)
        return (_from_parts, parts)

    @property
    def reachable(self) -> BoolArray:
        """``[entries]``; whether some member may give the entry a positive probability.

        Entries that only rounding could open count as reachable.
        """
        open_rows = (self._left > np.abs(self._surplus)) | (self._surplus < 0.0)
        moving = np.repeat(open_rows, np.diff(self.row_ptr))
        possible = (self._clipped > 0.0) | moving
        reached: BoolArray = (self.nominal > 0.0) | ((self._upper > 0.0) & possible)
        return reached

    def backup(
        self,
        v: FloatArray,
        immediate: FloatArray | None,
        discount: float,
        *,
        sense: Sense = "max",
        out: FloatArray | None = None,
    ) -> FloatArray:
        """Return ``immediate + discount · extreme over P of P · v``, ``[pairs]``."""
        value, gain, target = read_buffers(self, v, immediate, out)
        sign = read_sense(sense)
        self._run(self.row_ptr, self.successor, value, sign, np.empty(0), target)
        target *= discount
        if immediate is not None:
            target += gain
        return target

    def _extreme_rows(
        self, row_ptr: IntArray, successor: IndexArray, v: FloatArray, sign: float
    ) -> FloatArray:
        kernel = np.empty(successor.size)
        self._run(row_ptr, successor, v, sign, kernel, None)
        return kernel

    def _distance(self, probability: FloatArray) -> FloatArray:
        off = np.maximum(self._lower - probability, probability - self._upper)
        outside = np.maximum.reduceat(off, self.row_ptr[:-1])
        far = row_sums(np.abs(probability - self._centre.nominal), self.row_ptr)
        excess: FloatArray = np.maximum(outside, far - self._radius)
        return excess

    def lift(self, pairs: IntArray, target: IntArray, n_states: int) -> BoxedBall:
        """Return the set over a product space; see the base class."""
        chosen = np.asarray(pairs)
        rows = self._centre.lift(chosen, target, n_states)
        _, entries = gather_rows(self.row_ptr, chosen)
        return _from_parts(
            rows, self._radius[chosen], self._lower[entries], self._upper[entries]
        )


def _from_parts(
    centre: Rows, radius: FloatArray, lower: FloatArray, upper: FloatArray
) -> BoxedBall:
    cut = BoxedBall.__new__(BoxedBall)
    cut._fill(centre, frozen(radius), lower, upper, np.zeros(centre.n_rows))
    return cut
