"""Intervals: every transition probability between its own two bounds.

``{q : l ≤ q ≤ u, Σ q = 1}``.  The worst case holds every entry at its lower bound and
hands out the mass that is left to the best successors first.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from escapade.errors import refusal
from escapade.kernels.compilation import pieces_of_work
from escapade.kernels.worst_case_interval import (
    interval_backup,
    interval_backup_threads,
    interval_kernel,
)
from escapade.model.arguments import read_numbers
from escapade.model.cmdp import CMDP
from escapade.typing import ArrayLike, BoolArray, FloatArray, IndexArray, IntArray
from escapade.uncertainty.base import Sense
from escapade.uncertainty.buffers import read_buffers, read_sense
from escapade.uncertainty.evidence import read_counts
from escapade.uncertainty.from_counts import (
    Bound,
    Claim,
    entries_that_can_fail,
    entry_bounds,
)
from escapade.uncertainty.posterior import dirichlet, read_samples
from escapade.uncertainty.row_set import RowSet
from escapade.uncertainty.rows import (
    Rows,
    frozen,
    gather_rows,
    read_per_pair,
    read_rows_of,
    row_sums,
)
from escapade.uncertainty.sliced import slice_rows

__all__ = ["Interval"]

_OUTSIDE = 1e-12


class Interval(RowSet):
    """Rows whose entries lie between bounds, each pair for itself.

    Parameters
    ----------
    cmdp
        The problem whose transitions are nominal.
    radius
        How far each entry may be from its nominal probability: a number, or one a pair
        as ``(S, A)`` or ``(pairs,)``.
    lower, upper
        Bounds instead of a radius, ``(S, A, S)`` or one number a possible transition
        (``[entries]``); 0 and 1 where one of them is not given.
    support
        Successors that are possible: the problem's own by default, ``"everywhere"``,
        or a mask (see :mod:`escapade.uncertainty.rows`).

    Examples
    --------
    >>> import escapade as ep
    >>> cmdp = ep.CMDP(
    ...     [[[0.5, 0.5]], [[0.0, 1.0]]],
    ...     [[1.0], [0.0]],
    ...     [[0.0], [1.0]],
    ...     discount=0.9,
    ...     budget=5.0,
    ... )
    >>> bounds = ep.uncertainty.Interval(cmdp, radius=0.25)
    >>> bounds.worst([0.0, 1.0], sense="min").tolist()
    [0.25, 1.0]
    """

    def __init__(
        self,
        cmdp: CMDP,
        radius: ArrayLike | None = None,
        *,
        lower: ArrayLike | None = None,
        upper: ArrayLike | None = None,
        support: Any = None,
    ) -> None:
        rows = read_rows_of(cmdp, support)
        if (radius is None) == (lower is None and upper is None):
            raise refusal(
                "radius",
                "either a radius or bounds (lower, upper)",
                "both" if radius is not None else "neither",
            )
        if radius is not None:
            reach = read_per_pair("radius", radius, rows, most=1.0)
            around = np.repeat(reach, np.diff(rows.row_ptr))
            low, high = rows.nominal - around, rows.nominal + around
        else:
            low = _read_bound("lower", lower, rows, 0.0)
            high = _read_bound("upper", upper, rows, 1.0)
        self._fill(rows, low, high)

    @classmethod
    def around(cls, rows: Rows, lower: FloatArray, upper: FloatArray) -> Interval:
        """Return the set for rows that are not those of a problem."""
        bounds = cls.__new__(cls)
        bounds._fill(rows, lower, upper)
        return bounds

    @classmethod
    def from_counts(
        cls,
        counts: Any,
        *,
        bound: Bound = "kt",
        delta: float = 0.05,
        cmdp: CMDP | None = None,
        support: Any = None,
        anytime: bool = False,
        families: float | None = None,
        prior: float = 1.0,
    ) -> Interval:
        """Return the set that holds the true kernel with confidence 1 − ``delta``.

        Parameters
        ----------
        counts
            How often each transition was seen: ``(S, A, S)``, or ``(S·A, S)``,
            ``(pairs, S)`` dense or sparse; with ``cmdp`` also one count a possible
            transition.
        bound
            ``"kt"``, ``"hoeffding"``, ``"bernstein"``, ``"weissman"`` or ``"bayes"``
            (see :mod:`escapade.uncertainty.from_counts`).
        delta
            Probability that any pair is outside.
        cmdp
            The problem whose pairs and possible transitions are meant.  Its
            probabilities are not read.  Without it every state may follow any pair.
        support
            Other possible successors than those of ``cmdp``.
        anytime
            Whether to hold for all numbers of visits at once; ``"kt"`` does anyway.
        families
            How many statements share ``delta``; by default those made here.
        prior
            Weight of each possible successor in the Dirichlet prior of ``"bayes"``.
        """
        claim = Claim(bound=bound, delta=delta, anytime=anytime, families=families)
        counted = read_counts(counts, cmdp, support)
        if bound == "bayes":
            posterior = dirichlet(counted, prior)
            shared = entries_that_can_fail(counted, None)
            return cls.around(posterior.rows, *posterior.bounds(delta, shared))
        return cls.around(counted.rows, *entry_bounds(counted, claim))

    @classmethod
    def from_posterior_samples(
        cls, samples: ArrayLike, *, delta: float = 0.05, cmdp: CMDP | None = None
    ) -> Interval:
        """Return a joint credible region: bounds around the mean of posterior samples.

        Parameters
        ----------
        samples
            ``(samples, S, A, S)``, ``(samples, S·A, S)`` or ``(samples, pairs, S)``.
        delta
            Posterior probability that any entry is outside.
        cmdp
            The problem whose pairs are meant; needed where actions are masked.
        """
        return cls.around(*read_samples(samples, cmdp).box(delta))

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self).around, (self._rows, self._lower, self._upper))

    def _fill(self, rows: Rows, lower: FloatArray, upper: FloatArray) -> None:
        super().__init__(rows)
        nominal = rows.nominal
        for name, gap in (("lower", lower - nominal), ("upper", nominal - upper)):
            outside = ~(gap <= _OUTSIDE)
            if outside.any():
                entry = int(np.argmax(outside))
                row = int(np.searchsorted(rows.row_ptr, entry, side="right")) - 1
                bound = float((lower if name == "lower" else upper)[entry])
                side = "at most" if name == "lower" else "at least"
                raise refusal(
                    name,
                    f"bounds that hold the nominal probability, {side} "
                    f"{nominal[entry]:.10g}",
                    bound,
                    f"{rows.name(row)}, next state {rows.successor[entry]}",
                )
        self._lower = frozen(np.clip(lower, 0.0, nominal))
        self._upper = frozen(np.clip(upper, nominal, 1.0))

    @property
    def lower(self) -> FloatArray:
        """``[entries]``; the least that each probability may be."""
        return self._lower

    @property
    def upper(self) -> FloatArray:
        """``[entries]``; the most that each probability may be."""
        return self._upper

    @cached_property
    def _layout(self) -> tuple[Any, ...]:
        rows = self._rows
        slices = slice_rows(rows.row_ptr, rows.successor, self._upper - self._lower)
        left = np.maximum(1.0 - row_sums(self._lower, rows.row_ptr), 0.0)
        return (
            slices.start,
            slices.width,
            slices.row_of,
            slices.index,
            slices.mass,
            slices.per_entry(rows.row_ptr, rows.successor, self._lower),
            slices.per_slot(left),
            slices.wide,
            rows.row_ptr,
            rows.successor,
            self._lower,
            self._upper,
        )

    @property
    def reachable(self) -> BoolArray:
        """``[entries]``; whether some member gives the entry a positive probability."""
        left = 1.0 - row_sums(self._lower, self.row_ptr)
        room = np.repeat(left > 0.0, np.diff(self.row_ptr))
        reached: BoolArray = (self.nominal > 0.0) | ((self._upper > 0.0) & room)
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
        chunks = pieces_of_work(self.n_states)
        run: Callable[..., None] = (
            interval_backup if chunks == 1 else interval_backup_threads
        )
        extra = () if chunks == 1 else (chunks,)
        run(*self._layout, gain, discount, value, sign, target, *extra)
        return target

    def _extreme_rows(
        self,
        row_ptr: IntArray,
        successor: IndexArray,
        v: FloatArray,
        sign: float,
    ) -> FloatArray:
        out = np.empty(successor.size)
        interval_kernel(row_ptr, successor, self._lower, self._upper, v, sign, out)
        return out

    def _distance(self, probability: FloatArray) -> FloatArray:
        off = np.maximum(self._lower - probability, probability - self._upper)
        largest: FloatArray = np.maximum.reduceat(off, self.row_ptr[:-1])
        return largest

    def shrink(self, factor: float) -> Interval:
        """Return the set whose bounds are ``factor`` in [0, 1] times as far away."""
        share = self._shrunk(factor)
        nominal = self.nominal
        return Interval.around(
            self._rows,
            nominal - share * (nominal - self._lower),
            nominal + share * (self._upper - nominal),
        )

    def lift(self, pairs: IntArray, target: IntArray, n_states: int) -> Interval:
        """Return the set over a product space; see the base class."""
        rows = self._rows.lift(pairs, target, n_states)
        _, entries = gather_rows(self.row_ptr, np.asarray(pairs))
        return Interval.around(rows, self._lower[entries], self._upper[entries])


def _read_bound(
    argument: str, value: ArrayLike | None, rows: Rows, default: float
) -> FloatArray:
    """Return bounds on the entries, from ``(S, A, S)`` or ``[entries]``."""
    size = int(rows.row_ptr[-1])
    if value is None:
        return np.full(size, default)
    array = read_numbers(argument, value)
    if array.ndim == 0:
        array = np.full(size, float(array))
    elif array.ndim == 3 and rows.pair_state is not None:
        if array.shape[0] != rows.n_states or array.shape[2] != rows.n_states:
            raise refusal(argument, "shape (S, A, S)", f"shape {array.shape}")
        pair = rows.row_of_entry()
        assert rows.pair_action is not None
        array = array[rows.pair_state[pair], rows.pair_action[pair], rows.successor]
    if array.shape != (size,):
        raise refusal(argument, f"shape (S, A, S) or ({size},)", f"shape {array.shape}")
    return array
