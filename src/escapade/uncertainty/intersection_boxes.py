"""Action models whose rows also lie between bounds: an exact intersection.

A branch whose misses may follow any law is itself a set of bounds: nothing outside
``{g} ∪ N``, and at least ``1 − τ_max`` at ``g``.  With bounds on every entry it stays
one.  A branch whose misses are uniform is a line in τ, and bounds cut it to a shorter
line.  So the intersection is again a union, over branches, of boxes and of lines, and
its extremes are the extremes over both.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np

from escapade.typing import BoolArray, FloatArray, IndexArray, IntArray
from escapade.uncertainty.action_models_branches import BranchSet
from escapade.uncertainty.action_models_restricted import empty_at, rows_of_keys
from escapade.uncertainty.base import Sense
from escapade.uncertainty.buffers import read_buffers, read_sense, read_values
from escapade.uncertainty.intersection_merge import keys_of, point_in_box
from escapade.uncertainty.interval import Interval
from escapade.uncertainty.read_only import ReadOnly
from escapade.uncertainty.rows import Rows, frozen, gather_rows

__all__ = ["BoxedBranches"]

_ROUNDING = 1e-12


class BoxedBranches(ReadOnly):
    """The rows of a :class:`BranchSet` that also lie in an :class:`Interval`.

    Both must have the same entries.
    """

    def __init__(self, models: BranchSet, interval: Interval) -> None:
        self.n_states = models.n_states
        self._models = models
        self._interval = interval
        self._keys = keys_of(interval)
        required = interval.lower > 0.0
        self._required = np.add.reduceat(required, self.row_ptr[:-1], dtype=np.int64)
        self._lines = self._cut_lines()
        self._boxes, self._box_pair = self._cut_boxes()
        self._box_ptr = np.searchsorted(self._box_pair, np.arange(self.n_pairs + 1))
        starts = models.branches.ptr[:-1]
        self._n_lines = np.add.reduceat(self._lines.active, starts, dtype=np.int64)
        self._n_boxes = np.diff(self._box_ptr)
        empty = self._n_lines + self._n_boxes == 0
        if empty.any():
            raise empty_at(models.name(int(np.argmax(empty))))

    def name(self, pair: int) -> str:
        """Say in words which pair this is."""
        return self._models.name(pair)

    # -- what is left of each branch ---------------------------------------------------

    def _entries(self, pair: IntArray, state: IntArray | IndexArray) -> IntArray:
        place: IntArray = np.searchsorted(self._keys, pair * self.n_states + state)
        return place

    def _laws(self) -> BoolArray:
        """Return which branches may miss by any law, ``[branches]``."""
        branches = self._models.branches
        some = branches.around >= 0
        free = np.zeros(branches.size, dtype=np.bool_)
        free[some] = ~branches.uniform[branches.around[some]]
        return free

    def _cut_lines(self) -> BranchSet:
        """Shorten the branches whose misses are uniform, or that never miss."""
        branches = self._models.branches
        lower, upper = self._interval.lower, self._interval.upper
        chosen = np.flatnonzero(~self._laws() & self._models.active)
        pair, target = branches.pair[chosen], branches.target[chosen]
        low, high = branches.low[chosen].copy(), branches.high[chosen].copy()
        size = branches.near_sizes(chosen)
        has = np.flatnonzero(size)
        ptr, members = gather_rows(branches.near_ptr, branches.around[chosen[has]])
        owner = np.repeat(has, np.diff(ptr))
        state = branches.near[members]
        own = state == target[owner]
        hidden = np.bincount(owner[own], minlength=chosen.size) > 0
        owner, state = owner[~own], state[~own]
        entry = self._entries(pair[owner], state)
        np.minimum.at(high, owner, upper[entry] * size[owner])
        np.maximum.at(low, owner, lower[entry] * size[owner])
        met = np.bincount(owner, lower[entry] > 0.0, minlength=chosen.size)
        # at the target 1 − τ·away is left
        away = np.where(hidden, (size - 1) / np.maximum(size, 1), 1.0)
        entry = self._entries(pair, target)
        met = met + (lower[entry] > 0.0)
        moves = away > 0.0
        slope = np.where(moves, away, 1.0)
        high = np.where(moves, np.minimum(high, (1.0 - lower[entry]) / slope), high)
        low = np.where(moves, np.maximum(low, (1.0 - upper[entry]) / slope), low)
        left = (low <= high + _ROUNDING) & (met == self._required[pair])
        left &= moves | (upper[entry] >= 1.0 - _ROUNDING)
        active = np.zeros(branches.size, dtype=np.bool_)
        active[chosen[left]] = True
        lows, highs = branches.low.copy(), branches.high.copy()
        lows[chosen[left]] = np.minimum(low, high)[left]
        highs[chosen[left]] = high[left]
        shorter = replace(branches, low=frozen(lows), high=frozen(highs))
        return BranchSet(self._models.rows, shorter, frozen(active))

    def _cut_boxes(self) -> tuple[Interval | None, IntArray]:
        """Bound the branches whose misses may follow any law; say whose they are."""
        branches = self._models.branches
        chosen = np.flatnonzero(self._laws() & self._models.active)
        pair, target = branches.pair[chosen], branches.target[chosen]
        ptr, members = gather_rows(branches.near_ptr, branches.around[chosen])
        owner = np.repeat(np.arange(chosen.size), np.diff(ptr))
        state = branches.near[members]
        own = state == target[owner]
        hidden = np.bincount(owner[own], minlength=chosen.size) > 0
        owner = np.concatenate([np.arange(chosen.size), owner[~own]])
        state = np.concatenate([target, state[~own]])
        entry = self._entries(pair[owner], state)
        lower, upper = self._interval.lower[entry], self._interval.upper[entry]
        met = np.bincount(owner, lower > 0.0, minlength=chosen.size)
        at = slice(0, chosen.size)  # the typical states
        lower[at] = np.maximum(lower[at], 1.0 - branches.high[chosen])
        least = np.where(hidden, 0.0, branches.low[chosen])
        upper[at] = np.minimum(upper[at], 1.0 - least)

        keys = owner * self.n_states + state
        order = np.argsort(keys)
        keys, lower, upper = keys[order], lower[order], upper[order]
        rows = rows_of_keys(keys, chosen.size, self.n_states)
        crossed = np.bincount(
            keys // self.n_states, lower > upper + _ROUNDING, minlength=chosen.size
        )
        lower = np.minimum(lower, upper)
        point, missed = point_in_box(lower, upper, 0.5 * (lower + upper), rows.row_ptr)
        room = _ROUNDING * np.diff(rows.row_ptr)
        fits = (crossed == 0) & (missed <= room) & (met == self._required[pair])
        left = np.flatnonzero(fits)
        if left.size == 0:
            return None, pair[left]
        kept_ptr, kept = gather_rows(rows.row_ptr, left)
        boxes = Rows(
            n_states=self.n_states,
            stored_ptr=frozen(kept_ptr),
            stored=frozen(rows.successor[kept]),
            stored_nominal=frozen(point[kept]),
        )
        return Interval.around(boxes, lower[kept], upper[kept]), pair[left]

    # -- the rows ----------------------------------------------------------------------

    @property
    def row_ptr(self) -> IntArray:
        """``[pairs + 1]``; where the entries of each pair begin."""
        return self._interval.row_ptr

    @property
    def successor(self) -> IndexArray:
        """``[entries]``; the possible successors, increasing within a pair."""
        return self._interval.successor

    @property
    def nominal(self) -> FloatArray:
        """``[entries]``; the nominal kernel, a member of the set.

        The middle of the first box of each pair, or the beginning of its first line.
        """
        lines = self._lines_or_any.first_rows()
        return self._compose(lines, self._n_boxes > 0, self._box_ptr[:-1], None)

    @property
    def reachable(self) -> BoolArray:
        """``[entries]``; whether some member gives the entry a positive probability."""
        reached = self._lines.reachable.copy()
        if self._boxes is not None:
            reached[self._box_entries[self._boxes.reachable]] = True
        return reached

    @cached_property
    def _lines_or_any(self) -> BranchSet:
        """The lines, and for pairs without one any branch in its place."""
        lines = self._lines
        active = lines.active | np.repeat(
            self._n_lines == 0, np.diff(lines.branches.ptr)
        )
        return BranchSet(lines.rows, lines.branches, active)

    def _compose(
        self,
        lines: FloatArray,
        boxed: BoolArray,
        chosen: IntArray,
        boxes: FloatArray | None,
    ) -> FloatArray:
        """Return rows of the chosen boxes where ``boxed``, rows of lines elsewhere."""
        out = np.where(np.repeat(boxed, np.diff(self.row_ptr)), 0.0, lines)
        if self._boxes is not None:
            _, entries = gather_rows(self._boxes.row_ptr, chosen[boxed])
            values = self._boxes.nominal if boxes is None else boxes
            out[self._box_entries[entries]] = values[entries]
        return out

    @cached_property
    def _box_entries(self) -> IntArray:
        """Where the entries of the boxes stand among all."""
        assert self._boxes is not None
        pair = self._box_pair[self._boxes.rows.row_of_entry()]
        return self._entries(pair, self._boxes.successor)

    # -- extremes ----------------------------------------------------------------------

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
        lines = sign * self._lines.worst(value, sense=sense)
        boxes, _ = self._best_boxes(value, sense)
        target[:] = discount * sign * np.maximum(lines, boxes)
        if gain.size:
            target += gain
        return target

    def _best_boxes(
        self, value: FloatArray, sense: Sense
    ) -> tuple[FloatArray, IntArray]:
        """Return the largest signed extreme over boxes of each pair, and its box."""
        best = np.full(self.n_pairs, -np.inf)
        chosen = self._box_ptr[:-1].copy()
        if self._boxes is not None:
            boxed = self._n_boxes > 0
            worst = read_sense(sense) * self._boxes.worst(value, sense=sense)
            starts = self._box_ptr[:-1][boxed]
            best[boxed] = np.maximum.reduceat(worst, starts)
            hit = worst == best[self._box_pair]
            index = np.where(hit, np.arange(worst.size), worst.size)
            chosen[boxed] = np.minimum.reduceat(index, starts)
        return best, chosen

    def worst_kernel(self, v: FloatArray, *, sense: Sense = "max") -> FloatArray:
        """Return a member that attains :meth:`worst`, ``[entries]``."""
        value = read_values(self, v)
        lines = read_sense(sense) * self._lines.worst(value, sense=sense)
        boxes, chosen = self._best_boxes(value, sense)
        rows = self._lines_or_any.worst_kernel(value, sense=sense)
        kernel = (
            None
            if self._boxes is None
            else self._boxes.worst_kernel(value, sense=sense)
        )
        return self._compose(rows, boxes >= lines, chosen, kernel)

    # -- members -----------------------------------------------------------------------

    def excess(self, probability: FloatArray) -> FloatArray:
        """Return how far each row lies outside the set, ``[pairs]``.

        The larger of the distances from the action models and from the interval.
        """
        far: FloatArray = np.maximum(
            self._interval.excess(probability), self._models.excess(probability)
        )
        return far

    def sample(self, rng: np.random.Generator) -> FloatArray:
        """Draw a member at random: a branch that is left, then a row of it."""
        lines = self._lines_or_any.sample(rng)
        number = self._n_boxes
        boxed = rng.random(self.n_pairs) * (number + self._n_lines) < number
        drawn = (rng.random(self.n_pairs) * number).astype(np.int64)
        kernel = None if self._boxes is None else self._boxes.sample(rng)
        return self._compose(lines, boxed, self._box_ptr[:-1] + drawn, kernel)

    # -- derived sets ------------------------------------------------------------------

    def lift(self, pairs: IntArray, target: IntArray, n_states: int) -> BoxedBranches:
        """Return the set over a product space; see the base class."""
        return BoxedBranches(
            self._models.lift(pairs, target, n_states),
            self._interval.lift(pairs, target, n_states),
        )
