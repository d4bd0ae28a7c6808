"""A long life in few numbers that hide no extreme.

Steps are grouped into bins, and a bin is shown by its least and its largest value, so
that whatever was exceeded at some step is exceeded in the picture.  Bins are cut evenly
and, once more, in equal ratios: both a linear and a logarithmic axis show as much.
A life that is short enough has one step a bin, and nothing is lost.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from escapade.typing import BoolArray, FloatArray, IntArray

__all__ = ["Bins"]

_EACH_WAY = 350
"""Bins of equal length, and bins of equal ratio."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Bins:
    """Groups of consecutive steps.

    Attributes
    ----------
    first
        ``(B,)``; the first step of each, from 0.
    steps
        Steps in all of them.
    """

    first: IntArray
    steps: int

    @classmethod
    def over(cls, steps: int, *, each_way: int = _EACH_WAY) -> Bins:
        """Cut ``steps`` steps, at least one, into at most ``2 * each_way`` bins."""
        if steps <= 2 * each_way:
            first = np.arange(steps)
        else:
            even = np.linspace(0, steps, each_way, endpoint=False)
            ratio = np.geomspace(1, steps, each_way, endpoint=False) - 1.0
            first = np.unique(np.concatenate([even, ratio]).astype(np.int64))
        return cls(first=first.astype(np.int64), steps=steps)

    def __len__(self) -> int:
        return self.first.size

    @property
    def downsampled(self) -> bool:
        """Whether a bin holds more than one step."""
        return len(self) < self.steps

    @property
    def lengths(self) -> IntArray:
        """Steps in each, ``(B,)``."""
        lengths: IntArray = np.diff(self.first, append=self.steps)
        return lengths

    def lowest(self, values: FloatArray) -> FloatArray:
        """Return the least value of each bin; NaN, not known, is passed over."""
        found: FloatArray = np.fmin.reduceat(values, self.first)
        return found

    def highest(self, values: FloatArray) -> FloatArray:
        """Return the largest value of each bin; NaN is passed over."""
        found: FloatArray = np.fmax.reduceat(values, self.first)
        return found

    def place_of_lowest(self, values: FloatArray) -> IntArray:
        """Return at which step of each bin a value is least, the first of equals.

        NaN counts as larger than anything.
        """
        known = np.where(np.isnan(values), np.inf, values)
        least = np.minimum.reduceat(known, self.first)
        at = np.flatnonzero(known == np.repeat(least, self.lengths))
        return at[self._begins(at)]

    def _begins(self, steps: IntArray) -> IntArray:
        """Return the places in ascending steps at which another bin begins."""
        group = np.searchsorted(self.first, steps, side="right")
        return np.flatnonzero(np.diff(group, prepend=-1))

    def total(self, values: FloatArray) -> FloatArray:
        """Return the sum of the values of each bin that are known."""
        found: FloatArray = np.add.reduceat(np.nan_to_num(values), self.first)
        return found

    def count(self, mask: BoolArray) -> IntArray:
        """Return at how many steps of each bin something holds."""
        found: IntArray = np.add.reduceat(mask.astype(np.int64), self.first)
        return found

    def lowest_where(
        self, values: FloatArray, mask: BoolArray
    ) -> tuple[IntArray, FloatArray]:
        """Return, of the bins where a mask holds somewhere, the least value there.

        With it comes the first step of the bin at which the mask holds.
        """
        steps = np.flatnonzero(mask)
        if steps.size == 0:
            return steps, np.zeros(0)
        begins = self._begins(steps)
        return steps[begins], np.fmin.reduceat(values[steps], begins)
