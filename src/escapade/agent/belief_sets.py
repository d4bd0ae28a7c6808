"""Two sets that both hold the truth, as one.

The extreme of a row is bounded by the extremes over either set, so the lesser of two
greatest means bounds it as well; it need not be attained by a row that is in both.
"""

from __future__ import annotations

import numpy as np

from escapade.typing import BoolArray, FloatArray, IndexArray, IntArray
from escapade.uncertainty.base import Sense, UncertaintySet

__all__ = ["KnownAndSeen"]


class KnownAndSeen(UncertaintySet):
    """What is in both of two sets over the same possible successors.

    Parameters
    ----------
    known
        A set that may tie costs to next states.
    seen
        A set whose nominal kernel is that of the result.
    discount
        That of the charge, where ``known`` is charged.
    """

    exact = False

    def __init__(
        self, known: UncertaintySet, seen: UncertaintySet, *, discount: float = 1.0
    ) -> None:
        self.n_states = known.n_states
        self.known = known
        self.seen = seen
        self._discount = discount

    @property
    def row_ptr(self) -> IntArray:
        """``[pairs + 1]``; where the entries of each pair begin."""
        return self.seen.row_ptr

    @property
    def successor(self) -> IndexArray:
        """``[entries]``; the possible successors, increasing within a pair."""
        return self.seen.successor

    @property
    def nominal(self) -> FloatArray:
        """``[entries]``; the nominal kernel of what was seen."""
        return self.seen.nominal

    @property
    def reachable(self) -> BoolArray:
        """``[entries]``; whether both sets allow the entry."""
        both: BoolArray = self.known.reachable & self.seen.reachable
        return both

    def backup(
        self,
        v: FloatArray,
        immediate: FloatArray | None,
        discount: float,
        *,
        sense: Sense = "max",
        out: FloatArray | None = None,
    ) -> FloatArray:
        """Return the tighter of the two extremes, ``[pairs]``."""
        first = self.known.backup(v, immediate, discount, sense=sense, out=out)
        second = self.seen.backup(v, immediate, discount, sense=sense)
        choose = np.minimum if sense == "max" else np.maximum
        tighter: FloatArray = choose(first, second, out=first)
        return tighter

    def worst_kernel(self, v: FloatArray, *, sense: Sense = "max") -> FloatArray:
        """Return rows that attain the bound, each from one of the two sets."""
        chosen = np.repeat(self._prefers_known(v, sense), np.diff(self.row_ptr))
        kernel: FloatArray = np.where(
            chosen,
            self.known.worst_kernel(v, sense=sense),
            self.seen.worst_kernel(v, sense=sense),
        )
        return kernel

    def worst_gain(
        self, v: FloatArray, immediate: FloatArray, *, sense: Sense = "max"
    ) -> FloatArray:
        """Return the gain of a step under :meth:`worst_kernel`, ``[pairs]``."""
        tied = self.known.worst_gain(v, immediate, sense=sense)
        gain: FloatArray = np.where(self._prefers_known(v, sense), tied, immediate)
        return gain

    def _prefers_known(self, v: FloatArray, sense: Sense) -> BoolArray:
        """Tell for each pair whether ``known`` gives the tighter extreme."""
        first = self.known.backup(v, None, self._discount, sense=sense)
        second = self.seen.backup(v, None, self._discount, sense=sense)
        tighter: BoolArray = first <= second if sense == "max" else first >= second
        return tighter

    def charged(
        self,
        cost: FloatArray,
        weights: FloatArray,
        discount: float,
        *,
        sense: Sense = "max",
    ) -> tuple[UncertaintySet, FloatArray]:
        """Return what backs up costs as ``known`` ties them; see the base class."""
        known, gain = self.known.charged(cost, weights, discount, sense=sense)
        return KnownAndSeen(known, self.seen, discount=discount), gain

    def excess(self, probability: FloatArray) -> FloatArray:
        """Return the larger of the two excesses of each row, ``[pairs]``."""
        larger: FloatArray = np.maximum(
            self.known.excess(probability), self.seen.excess(probability)
        )
        return larger

    def sample(self, rng: np.random.Generator) -> FloatArray:
        """Draw rows from each set in turn, and keep the first that is in both.

        Rows that were not found in 20 draws are nominal.
        """
        drawn = np.array(self.nominal)
        wanted = np.ones(self.n_pairs, dtype=np.bool_)
        for turn in range(20):
            proposed = (self.known if turn % 2 == 0 else self.seen).sample(rng)
            found = wanted & (self.excess(proposed) <= 1e-9)
            entries = np.repeat(found, np.diff(self.row_ptr))
            drawn[entries] = proposed[entries]
            wanted &= ~found
            if not wanted.any():
                break
        return drawn

    def lift(self, pairs: IntArray, target: IntArray, n_states: int) -> KnownAndSeen:
        """Return the set over a product space; see the base class."""
        return KnownAndSeen(
            self.known.lift(pairs, target, n_states),
            self.seen.lift(pairs, target, n_states),
            discount=self._discount,
        )
