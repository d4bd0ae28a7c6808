"""Branches: a typical successor, missed at a bounded rate, and what a step costs.

The set of a pair is a union of branches.  Branch ``b`` is

    ``{(1 − τ) δ_g + τ q : low <= τ <= high, q a law on N}``

with typical state ``g``, neighbourhood ``N``, and for ``q`` either the uniform law or
any.  Branches that were ruled out stay in the arrays and are marked as not active.

A branch may also bound what a step costs on average.  Nature then chooses a branch, a
rate and a law *together*, and the worst case of ``c + γ P · v`` is less than the worst
of either apart.  :meth:`BranchSet.charged` returns the set that backs up in this way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from escapade.errors import refusal
from escapade.kernels.compilation import pieces_of_work
from escapade.kernels.worst_case_actions import (
    actions_backup,
    actions_backup_threads,
    actions_excess,
    actions_kernel,
    actions_reachable,
    fill_rows,
)
from escapade.typing import BoolArray, FloatArray, IndexArray, IntArray
from escapade.uncertainty.base import Sense
from escapade.uncertainty.buffers import read_buffers, read_sense, read_values
from escapade.uncertainty.read_only import ReadOnly
from escapade.uncertainty.rows import Rows, frozen, gather_rows, improper

__all__ = [
    "BranchSet",
    "Branches",
    "Charge",
    "first_largest",
    "uniform_rows",
    "write_rows",
]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Branches:
    """The branches of all pairs, as the kernels take them.

    ``ptr`` is ``[pairs + 1]``; ``target``, ``around``, ``low`` and ``high`` are one a
    branch.  Neighbourhood ``around[b]`` is ``near[near_ptr[h] : near_ptr[h + 1]]``,
    with the uniform law or any; it is −1 where the typical state is never missed.
    """

    ptr: IntArray
    target: IndexArray
    around: IntArray
    low: FloatArray
    high: FloatArray
    near_ptr: IntArray
    near: IndexArray
    uniform: BoolArray

    @property
    def size(self) -> int:
        """Number of branches."""
        return self.target.size

    @property
    def pair(self) -> IntArray:
        """The pair of each branch."""
        return np.repeat(np.arange(self.ptr.size - 1), np.diff(self.ptr))

    def near_sizes(self, branches: IntArray) -> IntArray:
        """Return how many states the neighbourhoods of ``branches`` have."""
        around = self.around[branches]
        sizes = np.zeros(around.size, dtype=np.int64)
        some = around >= 0
        sizes[some] = np.diff(self.near_ptr)[around[some]]
        return sizes


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Charge:
    """What each branch takes off the gain of a step, for one sense and one discount.

    ``at_target`` and ``at_miss`` are ``[K, branches]``, times the sign of the sense.
    """

    sense: Sense
    discount: float
    at_target: FloatArray
    at_miss: FloatArray


class BranchSet(ReadOnly):
    """A union of branches for each pair, each pair for itself.

    Built by :class:`escapade.uncertainty.ActionModels` and the sets derived from it.
    """

    def __init__(
        self,
        rows: Rows,
        branches: Branches,
        active: BoolArray,
        *,
        charge: Charge | None = None,
        reachable: BoolArray | None = None,
    ) -> None:
        self.n_states = rows.n_states
        self._rows = rows
        self._branches = branches
        self._active = active
        self._charge = charge
        self._reachable = reachable

    # -- the rows ----------------------------------------------------------------------

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

    @property
    def reachable(self) -> BoolArray:
        """``[entries]``; whether some member gives the entry a positive probability."""
        if self._reachable is None:
            reached = np.zeros(self.successor.size, dtype=np.bool_)
            self._mark_reachable(np.arange(self.n_pairs), self._active, reached)
            self._reachable = frozen(reached)
        return self._reachable

    @property
    def rows(self) -> Rows:
        """The possible successors and the nominal rows."""
        return self._rows

    def name(self, pair: int) -> str:
        """Say in words which pair this is."""
        return self._rows.name(pair)

    @property
    def branches(self) -> Branches:
        """The branches, active or not."""
        return self._branches

    @property
    def active(self) -> BoolArray:
        """``[branches]``; which branches count."""
        return self._active

    @property
    def charge(self) -> Charge | None:
        """What branches take off the gain of a step, if the set is charged."""
        return self._charge

    def _mark_reachable(self, pairs: IntArray, active: BoolArray, out: Any) -> None:
        branches = self._branches
        actions_reachable(
            pairs,
            branches.ptr,
            active,
            branches.target,
            branches.around,
            branches.low,
            branches.high,
            branches.near_ptr,
            branches.near,
            self.row_ptr,
            self.successor,
            self.n_states,
            out,
        )

    # -- extremes ----------------------------------------------------------------------

    @cached_property
    def _layout(self) -> tuple[Any, ...]:
        branches, charge = self._branches, self._charge
        nothing = frozen(np.empty((0, branches.size)))
        return (
            branches.ptr,
            self._active,
            branches.target,
            branches.around,
            branches.low,
            branches.high,
            branches.near_ptr,
            branches.near,
            branches.uniform,
            nothing if charge is None else charge.at_target,
            nothing if charge is None else charge.at_miss,
        )

    def backup(
        self,
        v: FloatArray,
        immediate: FloatArray | None,
        discount: float,
        *,
        sense: Sense = "max",
        out: FloatArray | None = None,
    ) -> FloatArray:
        """Return ``immediate + discount · extreme over P of P · v``, ``[pairs]``.

        A set that is :meth:`charged` takes what its branches say off ``immediate``.
        """
        value, gain, target = read_buffers(self, v, immediate, out)
        sign = self._read_sense(sense)
        chunks = pieces_of_work(self.n_states)
        serial = chunks == 1
        run: Callable[..., None] = actions_backup if serial else actions_backup_threads
        extra = () if serial else (chunks,)
        run(*self._layout, gain, float(discount), value, sign, target, *extra)
        return target

    def worst_kernel(self, v: FloatArray, *, sense: Sense = "max") -> FloatArray:
        """Return a member that attains :meth:`worst`, ``[entries]``."""
        return self._extreme(v, sense)[0]

    def worst_gain(
        self,
        v: FloatArray,
        immediate: FloatArray,
        *,
        sense: Sense = "max",
    ) -> FloatArray:
        """Return the gain of a step where :meth:`worst_kernel` is attained."""
        if self._charge is None:
            return immediate
        taken: FloatArray = immediate + self._extreme(v, sense)[1]
        return taken

    def _extreme(self, v: FloatArray, sense: Sense) -> tuple[FloatArray, FloatArray]:
        value, sign = read_values(self, v), self._read_sense(sense)
        kernel = np.empty(self.successor.size)
        taken = np.empty(self.n_pairs)
        run: Callable[..., None] = actions_kernel
        run(
            *self._layout,
            self.row_ptr,
            self.successor,
            1.0 if self._charge is None else self._charge.discount,
            value,
            sign,
            kernel,
            taken,
        )
        return kernel, sign * taken

    def _read_sense(self, sense: Sense) -> float:
        if self._charge is not None and sense != self._charge.sense:
            raise refusal("sense", f"that of the charge, {self._charge.sense!r}", sense)
        return read_sense(sense)

    # -- members -----------------------------------------------------------------------

    def excess(self, probability: FloatArray) -> FloatArray:
        """Return how far each row lies outside the set, ``[pairs]``.

        The distance from the nearest branch: mass outside its neighbourhood, the rate
        by which misses leave their interval, or for uniform laws the largest distance
        of an entry.  Where a row is no distribution, by how much it is none counts as
        well.
        """
        array = self._rows.read_kernel(probability)
        branches = self._branches
        far = np.empty(self.n_pairs)
        actions_excess(
            branches.ptr,
            self._active,
            branches.target,
            branches.around,
            branches.low,
            branches.high,
            branches.near_ptr,
            branches.near,
            branches.uniform,
            self.row_ptr,
            self.successor,
            self.n_states,
            array,
            far,
        )
        off = improper(array, self.row_ptr)
        excess: FloatArray = np.where(off > 1e-9, np.maximum(far, off), far)
        return excess

    def sample(self, rng: np.random.Generator) -> FloatArray:
        """Draw a member at random, ``[entries]``.

        For each pair an active branch, a rate in its interval, and where any law may
        hold a law, each uniformly.
        """
        branches, n_pairs = self._branches, self.n_pairs
        lottery = np.where(self._active, rng.random(branches.size), -1.0)
        chosen = first_largest(lottery, branches.ptr)
        low, high = branches.low[chosen], branches.high[chosen]
        rates = low + rng.random(n_pairs) * (high - low)
        sizes = branches.near_sizes(chosen)
        pointers = np.concatenate([[0], np.cumsum(sizes)])
        share = rng.standard_exponential(int(pointers[-1]))
        around = branches.around[chosen]
        even = np.zeros(n_pairs, dtype=np.bool_)
        even[around >= 0] = branches.uniform[around[around >= 0]]
        share[np.repeat(even, sizes)] = 1.0
        totals = np.zeros(n_pairs)
        np.add.at(totals, np.repeat(np.arange(n_pairs), sizes), share)
        share /= np.repeat(totals, sizes)
        out = np.empty(self.successor.size)
        everything = np.arange(n_pairs)
        write_rows(
            self._rows, branches, everything, chosen, rates, pointers, share, out
        )
        return out

    def first_rows(self) -> FloatArray:
        """Return a member, ``[entries]``: the first branches, at their least rates."""
        best = first_largest(self._active.astype(np.float64), self._branches.ptr)
        out = np.empty(self.successor.size)
        everything = np.arange(self.n_pairs)
        rates = self._branches.low[best]
        uniform_rows(self._rows, self._branches, everything, best, rates, out)
        return out

    # -- derived sets ------------------------------------------------------------------

    def lift(self, pairs: IntArray, target: IntArray, n_states: int) -> BranchSet:
        """Return the set over a product space; see the base class."""
        rows = self._rows.lift(pairs, target, n_states)
        labels = rows.successor
        chosen = np.asarray(pairs, dtype=np.int64)
        old = self._branches
        ptr, picked = gather_rows(old.ptr, chosen)
        copy = np.repeat(np.arange(chosen.size), np.diff(ptr))

        def relabel(copies: IntArray, states: IndexArray) -> IndexArray:
            """Return the new names of states that follow the pairs of some copies."""
            pair = chosen[copies]
            place = np.searchsorted(self._keys, pair * self.n_states + states)
            named: IndexArray = labels[
                place - self.row_ptr[pair] + rows.row_ptr[copies]
            ]
            return named

        missed = old.around[picked] >= 0
        near_ptr, members = gather_rows(old.near_ptr, old.around[picked[missed]])
        follows = np.repeat(copy[missed], np.diff(near_ptr))
        around = np.full(picked.size, -1, dtype=np.int64)
        around[missed] = np.arange(int(missed.sum()))
        branches = Branches(
            ptr=frozen(ptr),
            target=frozen(relabel(copy, old.target[picked])),
            around=frozen(around),
            low=frozen(old.low[picked]),
            high=frozen(old.high[picked]),
            near_ptr=frozen(near_ptr),
            near=frozen(relabel(follows, old.near[members])),
            uniform=frozen(old.uniform[old.around[picked[missed]]]),
        )
        charge = self._charge
        if charge is not None:
            charge = replace(
                charge,
                at_target=frozen(np.ascontiguousarray(charge.at_target[:, picked])),
                at_miss=frozen(np.ascontiguousarray(charge.at_miss[:, picked])),
            )
        return BranchSet(rows, branches, frozen(self._active[picked]), charge=charge)

    @cached_property
    def _keys(self) -> IntArray:
        return self._rows.row_of_entry() * self.n_states + self.successor


def uniform_rows(
    rows: Rows,
    branches: Branches,
    pairs: IntArray,
    chosen: IntArray,
    rates: FloatArray,
    out: FloatArray,
) -> None:
    """Write the rows of ``pairs`` that miss uniformly, at given branches and rates."""
    sizes = branches.near_sizes(chosen)
    pointers = np.concatenate([[0], np.cumsum(sizes)])
    share = np.repeat(1.0 / np.maximum(sizes, 1), sizes)
    write_rows(rows, branches, pairs, chosen, rates, pointers, share, out)


def write_rows(
    rows: Rows,
    branches: Branches,
    pairs: IntArray,
    chosen: IntArray,
    rates: FloatArray,
    pointers: IntArray,
    share: FloatArray,
    out: FloatArray,
) -> None:
    """Write rows whose misses follow the laws ``share``, neighbourhood by another."""
    fill_rows(
        pairs,
        chosen,
        rates,
        pointers,
        share,
        branches.target,
        branches.around,
        branches.near_ptr,
        branches.near,
        rows.row_ptr,
        rows.successor,
        rows.n_states,
        out,
    )


def first_largest(values: FloatArray, ptr: IntArray) -> IntArray:
    """Return where the first largest entry of each row stands; no row is empty."""
    top = np.maximum.reduceat(values, ptr[:-1])
    hit = values == np.repeat(top, np.diff(ptr))
    index = np.where(hit, np.arange(values.size), values.size)
    first: IntArray = np.minimum.reduceat(index, ptr[:-1])
    return first
