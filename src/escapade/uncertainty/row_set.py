"""What sets have in common that allow each pair the rows around a nominal one."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from escapade.errors import refusal
from escapade.typing import FloatArray, IndexArray, IntArray
from escapade.uncertainty.base import Sense, UncertaintySet
from escapade.uncertainty.buffers import read_sense, read_values
from escapade.uncertainty.rows import Rows, as_input, frozen, improper

__all__ = ["RowSet", "read_sense"]


class RowSet(UncertaintySet):
    """A convex set of rows around the nominal one, for each pair apart.

    A subclass says what its extreme rows are for given values of the entries, and how
    far a row lies outside; members are then drawn as mixtures of extreme rows and the
    nominal one.
    """

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self.n_states = rows.n_states

    @property
    def rows(self) -> Rows:
        """The possible successors and the nominal rows."""
        return self._rows

    @property
    def row_ptr(self) -> IntArray:
        """``[pairs + 1]``; where the entries of each pair begin."""
        return self._rows.row_ptr

    @property
    def successor(self) -> IndexArray:
        """``[entries]``; the possible successors, increasing within a pair."""
        return self._rows.successor

    @property
    def nominal(self) -> FloatArray:
        """``[entries]``; the nominal kernel, a member of the set."""
        return self._rows.nominal

    def name(self, pair: int) -> str:
        """Say in words which pair this is."""
        return self._rows.name(pair)

    @abstractmethod
    def _extreme_rows(
        self, row_ptr: IntArray, successor: IndexArray, v: FloatArray, sign: float
    ) -> FloatArray:
        """Return rows of the set that are extreme for the values ``v[successor]``."""

    @abstractmethod
    def _distance(self, probability: FloatArray) -> FloatArray:
        """Return how far distributions lie outside the set, ``[pairs]``."""

    def worst_kernel(self, v: FloatArray, *, sense: Sense = "max") -> FloatArray:
        """Return a member that attains :meth:`worst`, ``[entries]``."""
        value = read_values(self, v)
        sign = read_sense(sense)
        return self._extreme_rows(self.row_ptr, self.successor, value, sign)

    def excess(self, probability: FloatArray) -> FloatArray:
        """Return how far each row lies outside the set, ``[pairs]``.

        Where a row is no distribution, by how much it is none counts as well.
        """
        array = self._rows.read_kernel(probability)
        off = improper(array, self.row_ptr)
        far = self._distance(array)
        excess: FloatArray = np.where(off > 1e-9, np.maximum(far, off), far)
        return excess

    def sample(self, rng: np.random.Generator) -> FloatArray:
        """Draw a member at random, ``[entries]``.

        Each row is, apart from the others, a mixture with random weights of the
        nominal row and two rows that are extreme in random directions.
        """
        entries = np.arange(self.successor.size, dtype=np.int32)
        weights = rng.dirichlet((0.5, 0.5, 0.5), size=self.n_pairs)
        weights = np.repeat(weights, np.diff(self.row_ptr), axis=0)
        mixture = weights[:, 0] * self.nominal
        for k in (1, 2):
            direction = as_input(rng.standard_normal(entries.size))
            rows = self._extreme_rows(self.row_ptr, frozen(entries), direction, 1.0)
            mixture += weights[:, k] * rows
        return mixture

    @staticmethod
    def _shrunk(factor: float) -> float:
        if not 0.0 <= factor <= 1.0:
            raise refusal("factor", "a number in [0, 1]", factor)
        return float(factor)
