"""Sets of kernels: what every uncertainty set can do.

An uncertainty set says which transition probabilities are possible.  It lists, for each
pair, the successors that some member may reach (``row_ptr``, ``successor``), and it
answers one question fast: the most or the least that ``P · v`` can be, pair by pair.
All of robust planning rests on that support function, which depends on the convex hull
of the set alone.

A set is *rectangular* when nature may choose each row on its own, or, more generally,
when for every ``v`` one member attains the extreme of all rows at once: then the robust
Bellman operator built on :meth:`UncertaintySet.worst` has the value of the worst
stationary kernel as its fixed point.  Sets that hold one model throughout a lifetime
are not rectangular; they list their :meth:`~UncertaintySet.members`, which are
evaluated one by one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Literal

import numpy as np

from escapade.errors import AssumptionError, refusal
from escapade.model.cmdp import CMDP
from escapade.typing import BoolArray, FloatArray, IndexArray, IntArray

__all__ = ["Sense", "UncertaintySet"]

Sense = Literal["min", "max"]
"""Which extreme is asked for."""


class UncertaintySet(ABC):
    """A set of transition kernels over the pairs of a problem.

    Attributes
    ----------
    n_states
        ``S``.
    rectangular
        Whether :meth:`worst` describes the set exactly (see the module's text).
    exact
        Whether :meth:`worst` is attained by a member.  Where it is not (an intersection
        of unlike sets), it bounds every member all the same, and robust answers stay
        valid, only wider than they need be.
    """

    n_states: int
    rectangular: bool = True
    exact: bool = True

    # -- the rows ----------------------------------------------------------------------

    @property
    @abstractmethod
    def row_ptr(self) -> IntArray:
        """``[pairs + 1]``; where the entries of each pair begin."""

    @property
    @abstractmethod
    def successor(self) -> IndexArray:
        """``[entries]``; the possible successors, increasing within a pair."""

    @property
    @abstractmethod
    def nominal(self) -> FloatArray:
        """``[entries]``; the nominal kernel, a member of the set."""

    @property
    @abstractmethod
    def reachable(self) -> BoolArray:
        """``[entries]``; whether some member gives the entry a positive probability."""

    @property
    def n_pairs(self) -> int:
        """Number of pairs."""
        return self.row_ptr.size - 1

    @property
    def longest_row(self) -> int:
        """Number of possible successors of the pair that has the most."""
        return int(np.diff(self.row_ptr).max(initial=0))

    # -- extremes ----------------------------------------------------------------------

    @abstractmethod
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

    def worst(
        self, v: FloatArray, *, sense: Sense = "max", out: FloatArray | None = None
    ) -> FloatArray:
        """Return the greatest (or least) ``P · v`` of every pair, ``[pairs]``."""
        return self.backup(v, None, 1.0, sense=sense, out=out)

    @abstractmethod
    def worst_kernel(self, v: FloatArray, *, sense: Sense = "max") -> FloatArray:
        """Return a member that attains :meth:`worst`, ``[entries]``.

        Where the set is not ``exact``, the kernel attains the bound and is a member of
        one of the parts.
        """

    # -- costs that are tied to rows ---------------------------------------------------

    def charged(
        self,
        cost: FloatArray,
        weights: FloatArray,
        discount: float,  # noqa: ARG002
        *,
        sense: Sense = "max",  # noqa: ARG002
    ) -> tuple[UncertaintySet, FloatArray]:
        """Return the set and the gain that back costs up together with next states.

        With ``sets, gain = sets.charged(cost, weights, discount)`` the extreme of
        ``Σ_k weights_k c_k + discount · P · v`` over all that is possible is
        ``sets.backup(v, gain, discount)``.  Most sets say nothing about costs: they
        return themselves, and ``weights @ cost``.  Where cost and next state are tied,
        as in :class:`~escapade.uncertainty.ActionModels`, the returned set takes off
        ``gain`` what it knows, for this ``discount`` and this ``sense`` alone.

        Parameters
        ----------
        cost
            ``(K, pairs)`` bounds on the mean costs, from above for ``"max"``.
        weights
            ``(K,)`` numbers of at least 0.
        discount
            ``γ``, as it will be given to :meth:`backup`.
        sense
            Which extreme is wanted.
        """
        gain: FloatArray = np.asarray(weights) @ np.asarray(cost)
        return self, gain

    def worst_gain(
        self,
        v: FloatArray,  # noqa: ARG002
        immediate: FloatArray,
        *,
        sense: Sense = "max",  # noqa: ARG002
    ) -> FloatArray:
        """Return the gain of a step under :meth:`worst_kernel`, ``[pairs]``.

        That is ``immediate``, unless the set is :meth:`charged`.
        """
        return immediate

    # -- members -----------------------------------------------------------------------

    @abstractmethod
    def excess(self, probability: FloatArray) -> FloatArray:
        """Return how far each row lies outside the set, ``[pairs]``.

        ``probability`` is ``[entries]``, rows that sum to 1; the measure is the set's
        own (a distance, an entropy), at most 0 inside.
        """

    def contains(
        self, probability: FloatArray, *, tolerance: float = 1e-9
    ) -> BoolArray:
        """Tell for each pair whether its row is in the set, ``[pairs]``."""
        inside: BoolArray = self.excess(probability) <= tolerance
        return inside

    @abstractmethod
    def sample(self, rng: np.random.Generator) -> FloatArray:
        """Draw a member at random, ``[entries]``; the law is the set's own."""

    def members(self, cmdp: CMDP) -> Iterator[CMDP]:
        """Iterate over the whole models of a finite family; refused by other sets."""
        raise refusal(
            "sets",
            f"a finite family of whole models over {cmdp.n_pairs} pairs",
            type(self).__name__,
        )

    # -- derived sets ------------------------------------------------------------------

    def shrink(self, factor: float) -> UncertaintySet:
        """Return the same kind of set, drawn together around the nominal kernel.

        ``factor`` 1 changes nothing, 0 leaves the nominal kernel alone, and a smaller
        factor gives a subset.  Sets that have no such measure refuse.
        """
        raise refusal(
            "sets",
            f"a set with a radius to multiply by {factor:g}",
            type(self).__name__,
        )

    @abstractmethod
    def lift(self, pairs: IntArray, target: IntArray, n_states: int) -> UncertaintySet:
        """Return the set over a product space, such as states with a memory.

        Row ``i`` of the result is a copy of the set of pair ``pairs[i]``, with its
        entries relabelled: ``target`` holds the new states of the entries of row 0,
        then of row 1 and so on.  Within a row the new labels must differ and increase.
        The copies vary apart, so the result is rectangular, and contains the set that
        keeps equal rows equal.
        """

    def nominal_problem(self, cmdp: CMDP) -> CMDP:
        """Return a problem with the set's nominal kernel in place of its own.

        That is the problem to plan for where the transitions were only counted.
        """
        self.check_matches(cmdp)
        positive = self.nominal > 0.0
        ends = np.concatenate([[0], np.cumsum(positive)])
        return cmdp.replace(
            row_ptr=ends[self.row_ptr],
            successor=self.successor[positive],
            probability=self.nominal[positive],
        )

    def check_matches(self, cmdp: CMDP) -> None:
        """Refuse a problem whose pairs or states are not those of the set."""
        if self.n_states != cmdp.n_states or self.n_pairs != cmdp.n_pairs:
            raise refusal(
                "sets",
                f"a set over {cmdp.n_states} states and {cmdp.n_pairs} pairs",
                f"{self.n_states} states and {self.n_pairs} pairs",
            )

    def check_observed(self, pair: int, next_state: int) -> None:
        """Stop if a transition was seen that no member of the set allows."""
        first, last = int(self.row_ptr[pair]), int(self.row_ptr[pair + 1])
        entries = self.successor[first:last]
        place = int(np.searchsorted(entries, next_state))
        seen = place < entries.size and entries[place] == next_state
        if not (seen and self.reachable[first + place]):
            raise AssumptionError(
                f"support: expected a successor that the uncertainty set allows for "
                f"{self.name(pair)}, found state {next_state}"
            )

    def name(self, pair: int) -> str:
        """Say in words which pair this is; its number where no more is known."""
        return f"pair {pair}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.n_pairs} pairs, {self.n_states} states)"
