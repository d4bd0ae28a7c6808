r"""Rows that share a few factors, and are uncertain through them alone.

In an r-rectangular set (Goyal and Grand-Clément, 2018) every row is a mixture of ``r``
factors,

.. math:: P_{sa} = \sum_{i=1}^{r} u_{sa}^{i} w_i, \qquad w_i \in \mathcal{W}_i,

with known weights :math:`u \ge 0` and factors that vary apart, each in a set of its
own.  Pairs that mix the same factor are then uncertain *together*, which is a smaller
set than one that lets each pair vary alone; with ``r`` pairs and one factor each it is
that set.  As the weights are not negative, the factors that are worst for ``v`` make
all rows worst at once: the set is rectangular in the sense that robust planning needs,
and a backup solves ``r`` inner problems rather than one a pair.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, cast

import numpy as np
import scipy.sparse as sp

from escapade.errors import refusal
from escapade.kernels.worst_case_factors import factors_backup, mixed_rows
from escapade.model.arguments import read_numbers
from escapade.model.layout import read_array
from escapade.typing import ArrayLike, BoolArray, FloatArray, IndexArray, IntArray
from escapade.uncertainty.base import Sense, UncertaintySet
from escapade.uncertainty.buffers import read_buffers
from escapade.uncertainty.l1_ball import L1Ball
from escapade.uncertainty.read_only import ReadOnly
from escapade.uncertainty.rows import Rows, frozen, gather_rows

__all__ = ["FactorMatrix", "factor_rows"]

_SUM = 1e-8


class FactorMatrix(ReadOnly):
    """Rows that are known mixtures of uncertain factors.

    Parameters
    ----------
    coefficients
        The weights ``u``: ``(S, A, r)``, or ``(pairs, r)`` dense or sparse; at least 0,
        and each pair's sum to 1.
    factors
        The factors: a set over ``r`` rows in place of pairs, rectangular, or an array
        ``(r, S)`` of nominal factors.
    radius
        L1 radius of each factor, a number or ``(r,)``, if ``factors`` is an array.
    support
        Mask ``(r, S)`` of the states that a factor can reach, if ``factors`` is an
        array; by default those with a positive probability.

    Examples
    --------
    Two ways of moving on, mixed in three pairs.

    >>> import escapade as ep
    >>> sets = ep.uncertainty.FactorMatrix(
    ...     [[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]],
    ...     [[0.9, 0.1, 0.0], [0.0, 0.5, 0.5]],
    ...     radius=0.2,
    ... )
    >>> [round(worst, 9) for worst in sets.worst([0.0, 1.0, 2.0]).tolist()]
    [0.2, 0.9, 1.6]
    """

    def __init__(
        self,
        coefficients: Any,
        factors: UncertaintySet | ArrayLike,
        *,
        radius: ArrayLike | None = None,
        support: ArrayLike | None = None,
    ) -> None:
        if isinstance(factors, UncertaintySet):
            if radius is not None or support is not None:
                raise refusal(
                    "factors", "an array, as a radius or support is given", "a set"
                )
            if not factors.rectangular:
                raise refusal("factors", "a rectangular set", "one model throughout")
            parts: UncertaintySet = factors
        else:
            rows = factor_rows(factors, support)
            parts = L1Ball.around(rows, 0.0 if radius is None else radius)
        self._factors = parts
        self.n_states = parts.n_states
        self.exact = parts.exact
        self._mixing = _read_coefficients(coefficients, parts.n_pairs)

    # -- the parts ---------------------------------------------------------------------

    @property
    def factors(self) -> UncertaintySet:
        """The set of the factors, over ``r`` rows."""
        return self._factors

    @property
    def n_factors(self) -> int:
        """``r``."""
        return self._factors.n_pairs

    @property
    def coefficients(self) -> FloatArray:
        """``(pairs, r)``; the weights (a copy)."""
        return self._mixing.toarray()

    @property
    def n_pairs(self) -> int:
        """Number of pairs."""
        return int(self._mixing.shape[0])

    @cached_property
    def _weights(self) -> tuple[IntArray, IndexArray, FloatArray]:
        mixing = self._mixing
        return (
            frozen(mixing.indptr.astype(np.int64)),
            frozen(mixing.indices.astype(np.int32)),
            frozen(np.asarray(mixing.data, dtype=np.float64)),
        )

    # -- the rows ----------------------------------------------------------------------

    @cached_property
    def _pattern(self) -> tuple[IntArray, IndexArray]:
        parts = self._factors
        possible = sp.csr_array(
            (np.ones(parts.successor.size), parts.successor, parts.row_ptr),
            shape=(parts.n_pairs, self.n_states),
        )
        union = sp.csr_array(self._mixing @ possible)  # weights and ones: no zeros
        union.sort_indices()
        return (
            frozen(union.indptr.astype(np.int64)),
            frozen(union.indices.astype(np.int32)),
        )

    @property
    def row_ptr(self) -> IntArray:
        """``[pairs + 1]``; where the entries of each pair begin."""
        return self._pattern[0]

    @property
    def successor(self) -> IndexArray:
        """``[entries]``; the possible successors, increasing within a pair."""
        return self._pattern[1]

    @cached_property
    def _nominal(self) -> FloatArray:
        return frozen(self._mixed(self._factors.nominal))

    @property
    def nominal(self) -> FloatArray:
        """``[entries]``; the nominal kernel, a member of the set."""
        return self._nominal

    @cached_property
    def _reachable(self) -> BoolArray:
        reached: BoolArray = self._mixed(self._factors.reachable.astype(np.float64)) > 0
        return frozen(reached)

    @property
    def reachable(self) -> BoolArray:
        """``[entries]``; whether some member gives the entry a positive probability."""
        return self._reachable

    def _mixed(self, probability: FloatArray) -> FloatArray:
        """Return the rows that factors with these entries make."""
        parts = self._factors
        out = np.empty(self.successor.size)
        mixed_rows(
            *self._weights,
            parts.row_ptr,
            parts.successor,
            np.ascontiguousarray(probability),
            self.row_ptr,
            self.successor,
            self.n_states,
            out,
        )
        return out

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
        worst = self._factors.worst(value, sense=sense)
        factors_backup(*self._weights, worst, gain, float(discount), target)
        return target

    def worst_kernel(self, v: FloatArray, *, sense: Sense = "max") -> FloatArray:
        """Return a member that attains :meth:`worst`, ``[entries]``."""
        return self._mixed(self._factors.worst_kernel(v, sense=sense))

    # -- members -----------------------------------------------------------------------

    @cached_property
    def _unmix(self) -> FloatArray:
        mixing = self.coefficients
        rank = int(np.linalg.matrix_rank(mixing))
        if rank < self.n_factors:
            raise refusal(
                "coefficients",
                f"independent columns ({self.n_factors}), so that a kernel tells its "
                f"factors",
                f"rank {rank}",
            )
        return np.asarray(np.linalg.pinv(mixing), dtype=np.float64)

    def excess(self, probability: FloatArray) -> FloatArray:
        """Return how far each row lies outside the set, ``[pairs]``.

        The factors are found by least squares, which takes independent columns of
        coefficients.  A row is as far outside as the factors that it mixes lie outside
        their sets, or as it is from the mixture of those factors.
        """
        array = read_numbers("probability", probability)
        if array.shape != self.successor.shape:
            raise refusal(
                "probability",
                f"shape {self.successor.shape}",
                f"shape {array.shape}",
            )
        parts = self._factors
        kernel = sp.csr_array(
            (array, self.successor, self.row_ptr),
            shape=(self.n_pairs, self.n_states),
        )
        found = np.asarray(self._unmix @ kernel)
        row = np.repeat(np.arange(parts.n_pairs), np.diff(parts.row_ptr))
        entries = found[row, parts.successor]
        outside = np.maximum(parts.excess(entries), 0.0)
        mixed = np.abs(self._mixed(entries) - array)
        gap = np.maximum.reduceat(mixed, self.row_ptr[:-1])
        ptr, factor, _ = self._weights
        far: FloatArray = np.maximum(
            gap, np.maximum.reduceat(outside[factor], ptr[:-1])
        )
        return far

    def sample(self, rng: np.random.Generator) -> FloatArray:
        """Draw a member at random, ``[entries]``: factors, drawn by their own law."""
        return self._mixed(self._factors.sample(rng))

    # -- derived sets ------------------------------------------------------------------

    def shrink(self, factor: float) -> FactorMatrix:
        """Return the set whose factors are drawn together; see the base class."""
        return FactorMatrix(self._mixing, self._factors.shrink(factor))

    def lift(self, pairs: IntArray, target: IntArray, n_states: int) -> FactorMatrix:
        """Return the set over a product space; see the base class.

        Each copy of a row mixes copies of its factors that are its own.
        """
        chosen = np.asarray(pairs, dtype=np.int64)
        rows = Rows(
            n_states=self.n_states,
            stored_ptr=self.row_ptr,
            stored=self.successor,
            stored_nominal=self.nominal,
        ).lift(chosen, target, n_states)
        ptr, factor, weight = self._weights
        mix_ptr, mixed = gather_rows(ptr, chosen)
        copies = np.repeat(np.arange(chosen.size), np.diff(mix_ptr))
        parts = self._factors
        entry_ptr, entries = gather_rows(parts.row_ptr, factor[mixed].astype(np.int64))
        owner = np.repeat(copies, np.diff(entry_ptr))
        keys = (
            np.repeat(np.arange(self.n_pairs), np.diff(self.row_ptr)) * self.n_states
            + self.successor
        )
        pair = chosen[owner]
        place = np.searchsorted(keys, pair * self.n_states + parts.successor[entries])
        labels = rows.successor[place - self.row_ptr[pair] + rows.row_ptr[owner]]
        lifted = parts.lift(factor[mixed].astype(np.int64), labels, n_states)
        mixing = sp.csr_array(
            (weight[mixed], np.arange(mixed.size), mix_ptr),
            shape=(chosen.size, mixed.size),
        )
        return FactorMatrix(mixing, lifted)


def factor_rows(factors: ArrayLike, support: ArrayLike | None = None) -> Rows:
    """Return the rows of nominal factors ``(r, S)``, to build a set on.

    ``support`` is a mask of the states that each can reach; by default those with a
    positive probability.
    """
    table = read_numbers("factors", factors)
    if table.ndim != 2 or 0 in table.shape:
        raise refusal("factors", "shape (r, S)", f"shape {table.shape}")
    bad = ~((table >= 0.0) & np.isfinite(table))
    if bad.any():
        i, state = (int(n) for n in np.argwhere(bad)[0])
        raise refusal(
            "factors",
            "finite numbers of at least 0",
            float(table[i, state]),
            f"factor {i}, state {state}",
        )
    sums = table.sum(axis=1)
    off = np.abs(sums - 1.0) > _SUM
    if off.any():
        i = int(np.argmax(off))
        raise refusal("factors", "rows that sum to 1", float(sums[i]), f"factor {i}")
    table /= sums[:, np.newaxis]
    mask = table > 0.0
    if support is not None:
        given = read_array("support", "a boolean mask", support)
        if given.dtype != np.bool_ or given.shape != table.shape:
            raise refusal(
                "support",
                f"a boolean mask of shape {table.shape}",
                f"{given.dtype} of shape {given.shape}",
            )
        if (mask & ~given).any():
            i, state = (int(n) for n in np.argwhere(mask & ~given)[0])
            raise refusal(
                "support",
                "a mask that holds every factor",
                f"none for state {state}",
                f"factor {i}",
            )
        mask = given
    rows, states = np.nonzero(mask)
    return Rows(
        n_states=table.shape[1],
        stored_ptr=frozen(np.searchsorted(rows, np.arange(len(table) + 1))),
        stored=frozen(states.astype(np.int32)),
        stored_nominal=frozen(table[rows, states]),
    )


def _read_coefficients(coefficients: Any, n_factors: int) -> sp.csr_array:
    """Return the weights as a canonical ``(pairs, r)`` matrix without zeros."""
    if sp.issparse(coefficients):
        matrix = sp.csr_array(cast(Any, coefficients), dtype=np.float64).copy()
    else:
        table = read_numbers("coefficients", coefficients)
        if table.ndim == 3:
            table = table.reshape(-1, table.shape[2])
        if table.ndim != 2:
            raise refusal(
                "coefficients", "shape (S, A, r) or (pairs, r)", f"shape {table.shape}"
            )
        matrix = sp.csr_array(table)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    if matrix.shape[1] != n_factors or matrix.shape[0] == 0:
        raise refusal(
            "coefficients", f"shape (pairs, {n_factors})", f"shape {matrix.shape}"
        )
    bad = ~((matrix.data >= 0.0) & np.isfinite(matrix.data))
    if bad.any():
        entry = int(np.argmax(bad))
        pair = int(np.searchsorted(matrix.indptr, entry, side="right")) - 1
        raise refusal(
            "coefficients",
            "finite numbers of at least 0",
            float(matrix.data[entry]),
            f"pair {pair}, factor {matrix.indices[entry]}",
        )
    sums = np.asarray(matrix.sum(axis=1)).reshape(-1)
    off = np.abs(sums - 1.0) > _SUM
    if off.any():
        pair = int(np.argmax(off))
        raise refusal(
            "coefficients",
            "weights that sum to 1 for each pair",
            float(sums[pair]),
            f"pair {pair}",
        )
    matrix.data /= np.repeat(sums, np.diff(matrix.indptr))
    return matrix
