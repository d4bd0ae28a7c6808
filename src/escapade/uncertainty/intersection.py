"""What several sets have in common.

The truth may be known to lie in several sets at once: what an expert says, and what has
been seen so far, now and earlier.  The most that ``P · v`` can be on their intersection
is at most the least of the separate maxima.  That bound is what planning uses where the
sets are unlike; robust answers stay valid, and are only wider than they need be.

It is exact where what the parts are allows it: intervals intersect in an interval,
which cuts an L1 ball exactly; action models and intervals in boxes and lines; action
models that evidence narrowed, in what is left; and what only says which successors are
possible cuts the others' rows.
Parts are merged in these ways before anything else (see
:mod:`escapade.uncertainty.intersection_merge`).
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from escapade.errors import refusal
from escapade.typing import BoolArray, FloatArray, IndexArray, IntArray
from escapade.uncertainty.action_models_branches import BranchSet
from escapade.uncertainty.action_models_restricted import rows_of_keys
from escapade.uncertainty.base import Sense, UncertaintySet
from escapade.uncertainty.boxed_ball import BoxedBall
from escapade.uncertainty.buffers import read_buffers, read_sense, read_values
from escapade.uncertainty.intersection_boxes import BoxedBranches
from escapade.uncertainty.intersection_merge import keys_of, merged
from escapade.uncertainty.interval import Interval
from escapade.uncertainty.l1_ball import L1Ball
from escapade.uncertainty.read_only import ReadOnly
from escapade.uncertainty.rows import Rows, frozen, gather_rows

__all__ = ["Intersection"]

_MIXTURES = np.linspace(0.0, 1.0, 17)
_HALVINGS = 30


class Intersection(ReadOnly):
    """The kernels that are in all of several sets.

    Parameters
    ----------
    parts
        Rectangular sets over the same pairs.  Intersections among them are taken
        apart.

    Attributes
    ----------
    exact
        Whether the parts merged into one set, whose extremes are attained.

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
    >>> ball = ep.uncertainty.L1Ball(cmdp, radius=0.4)
    >>> bounds = ep.uncertainty.Interval(cmdp, radius=0.1)
    >>> ep.uncertainty.Intersection(ball, bounds).worst([0.0, 1.0]).tolist()
    [0.6, 1.0]
    """

    def __init__(self, *parts: UncertaintySet) -> None:
        given: list[UncertaintySet] = []
        for part in parts:
            given += part.given if isinstance(part, Intersection) else [part]
        if not given:
            raise refusal("parts", "at least one set", "none")
        first = given[0]
        for part in given:
            if (part.n_states, part.n_pairs) != (first.n_states, first.n_pairs):
                raise refusal(
                    "parts",
                    f"sets over {first.n_states} states and {first.n_pairs} pairs",
                    f"{part.n_states} states and {part.n_pairs} pairs",
                )
            if not part.rectangular:
                raise refusal(
                    "parts",
                    "sets that are rectangular over pairs",
                    "one model throughout; take its rectangular hull",
                )
        self._own(given, _boxed(merged(given)))

    def _own(self, given: list[UncertaintySet], parts: list[UncertaintySet]) -> None:
        self._given = given
        self._parts = parts
        self.n_states = parts[0].n_states
        self.exact = len(parts) == 1 and parts[0].exact

    @property
    def given(self) -> list[UncertaintySet]:
        """The sets as they were given, intersections taken apart."""
        return list(self._given)

    @property
    def parts(self) -> list[UncertaintySet]:
        """The sets whose extremes are compared, after merging."""
        return list(self._parts)

    @property
    def n_pairs(self) -> int:
        """Number of pairs."""
        return self._parts[0].n_pairs

    # -- the rows ----------------------------------------------------------------------

    def name(self, pair: int) -> str:
        """Say in words which pair this is."""
        return self._parts[0].name(pair)

    @cached_property
    def _bare(self) -> Rows:
        """The entries of any part: rows of a part stand on them."""
        keys = keys_of(self._parts[0])
        for part in self._parts[1:]:
            keys = np.union1d(keys, keys_of(part))
        return rows_of_keys(keys, self.n_pairs, self.n_states)

    @cached_property
    def _places(self) -> list[IntArray]:
        """Where the entries of each part stand among all."""
        keys = self._bare.row_of_entry() * self.n_states + self._bare.successor
        return [np.searchsorted(keys, keys_of(part)) for part in self._parts]

    @property
    def row_ptr(self) -> IntArray:
        """``[pairs + 1]``; where the entries of each pair begin."""
        return self._bare.row_ptr

    @property
    def successor(self) -> IndexArray:
        """``[entries]``; the possible successors, increasing within a pair."""
        return self._bare.successor

    @cached_property
    def _reachable(self) -> BoolArray:
        votes = np.zeros(self.successor.size, dtype=np.int64)
        for part, place in zip(self._parts, self._places, strict=True):
            votes[place] += part.reachable
        return frozen(votes == len(self._parts))

    @property
    def reachable(self) -> BoolArray:
        """``[entries]``; whether every part has a member that goes there."""
        return self._reachable

    def _spread(self, i: int, kernel: FloatArray) -> FloatArray:
        """Return a kernel of part ``i`` on the entries of all."""
        out = np.zeros(self.successor.size)
        out[self._places[i]] = kernel
        return out

    @cached_property
    def _nominal(self) -> FloatArray:
        if len(self._parts) == 1:
            return frozen(self._spread(0, self._parts[0].nominal))
        rows = [self._spread(i, part.nominal) for i, part in enumerate(self._parts)]
        best, least = rows[0], self.excess(rows[0])
        for i, one in enumerate(rows):
            for other in rows[i + 1 :]:
                for share in _MIXTURES:
                    mixed = share * one + (1.0 - share) * other
                    far = self.excess(mixed)
                    better = far < least
                    best = np.where(
                        np.repeat(better, np.diff(self.row_ptr)), mixed, best
                    )
                    least = np.minimum(least, far)
        return frozen(best)

    @property
    def nominal(self) -> FloatArray:
        """``[entries]``; the nominal kernel.

        Where the parts merged into one set, its own.  Elsewhere the mixture of two
        parts' nominal rows that is the least outside any part: a member as a rule, and
        ``excess(nominal)`` tells where it is not.
        """
        return self._nominal

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
        """Return ``immediate + discount`` times a bound on the extreme, ``[pairs]``.

        The least of the maxima over the parts, or the greatest of the minima.
        """
        value, _, target = read_buffers(self, v, immediate, out)
        narrow = np.minimum if read_sense(sense) > 0.0 else np.maximum
        first, *others = self._parts
        first.backup(value, immediate, discount, sense=sense, out=target)
        for part in others:
            narrow(
                target,
                part.backup(value, immediate, discount, sense=sense),
                out=target,
            )
        return target

    def _narrowest(
        self, v: FloatArray, immediate: FloatArray | None, sense: Sense
    ) -> IntArray:
        """Return the part whose extreme is the bound, for each pair."""
        value, sign = read_values(self, v), read_sense(sense)
        extremes = [
            sign * part.backup(value, immediate, self._discount, sense=sense)
            for part in self._parts
        ]
        narrowest: IntArray = np.argmin(extremes, axis=0)
        return narrowest

    _discount: float = 1.0

    def worst_kernel(self, v: FloatArray, *, sense: Sense = "max") -> FloatArray:
        """Return a kernel that attains :meth:`worst`, ``[entries]``.

        A member where the set is :attr:`exact`; elsewhere each row is of the part that
        gives the bound, and may lie outside the others.
        """
        if len(self._parts) == 1:
            return self._spread(0, self._parts[0].worst_kernel(v, sense=sense))
        narrowest = np.repeat(self._narrowest(v, None, sense), np.diff(self.row_ptr))
        out = np.empty(self.successor.size)
        for i, part in enumerate(self._parts):
            mine = narrowest == i
            out[mine] = self._spread(i, part.worst_kernel(v, sense=sense))[mine]
        return out

    def worst_gain(
        self, v: FloatArray, immediate: FloatArray, *, sense: Sense = "max"
    ) -> FloatArray:
        """Return the gain of a step under :meth:`worst_kernel`, ``[pairs]``."""
        gains = [part.worst_gain(v, immediate, sense=sense) for part in self._parts]
        if all(gain is immediate for gain in gains):
            return immediate
        narrowest = self._narrowest(v, None, sense)
        taken: FloatArray = np.choose(narrowest, gains)
        return taken

    def charged(
        self,
        cost: FloatArray,
        weights: FloatArray,
        discount: float,
        *,
        sense: Sense = "max",
    ) -> tuple[UncertaintySet, FloatArray]:
        """Return the set and the gain that back costs up together with next states.

        Beside the parts, those of them that tie costs to next states are compared in
        their own right.
        """
        gain: FloatArray = np.asarray(weights) @ np.asarray(cost)
        tied = []
        for part in self._given:
            charged, _ = part.charged(cost, weights, discount, sense=sense)
            if charged is not part:
                tied.append(charged)
        if not tied:
            return self, gain
        both = Intersection.__new__(Intersection)
        both._own(self._given, [*self._parts, *tied])
        both.exact = False
        both._discount = float(discount)
        return both, gain

    # -- members -----------------------------------------------------------------------

    def excess(self, probability: FloatArray) -> FloatArray:
        """Return how far each row lies outside the set, ``[pairs]``.

        The largest distance from any part, mass that a part cannot have included.
        """
        array = self._bare.read_kernel(probability)
        far = np.full(self.n_pairs, -np.inf)
        for part, place in zip(self._parts, self._places, strict=True):
            strange = array.copy()
            strange[place] = 0.0
            lost = np.add.reduceat(np.abs(strange), self.row_ptr[:-1])
            inside = part.excess(array[place])
            far = np.maximum(
                far, np.where(lost > 0.0, np.maximum(inside, lost), inside)
            )
        return far

    def sample(self, rng: np.random.Generator) -> FloatArray:
        """Draw a member at random, ``[entries]``.

        A draw of one of the parts, moved towards the nominal row until it is in all of
        them; where that does not succeed, the nominal row.
        """
        if len(self._parts) == 1:
            return self._spread(0, self._parts[0].sample(rng))
        nominal = self.nominal
        lengths = np.diff(self.row_ptr)
        draws = [
            self._spread(i, part.sample(rng)) for i, part in enumerate(self._parts)
        ]
        source = np.repeat(rng.integers(len(draws), size=self.n_pairs), lengths)
        drawn = np.choose(source, draws)
        share = np.ones(self.n_pairs)
        for _ in range(_HALVINGS):
            row = np.repeat(share, lengths)
            mixed = row * drawn + (1.0 - row) * nominal
            outside = self.excess(mixed) > 0.0
            if not outside.any():
                return mixed
            share[outside] *= 0.5
        share[outside] = 0.0
        row = np.repeat(share, lengths)
        kept: FloatArray = row * drawn + (1.0 - row) * nominal
        return kept

    # -- derived sets ------------------------------------------------------------------

    def shrink(self, factor: float) -> Intersection:
        """Return the intersection of the parts drawn together, each around its own."""
        return Intersection(*[part.shrink(factor) for part in self._given])

    def lift(self, pairs: IntArray, target: IntArray, n_states: int) -> Intersection:
        """Return the set over a product space; see the base class."""
        chosen = np.asarray(pairs, dtype=np.int64)
        labels = self._bare.lift(chosen, target, n_states).successor
        _, entries = gather_rows(self.row_ptr, chosen)
        lifted: list[UncertaintySet] = []
        for part, place in zip(self._parts, self._places, strict=True):
            mine = np.zeros(self.successor.size, dtype=np.bool_)
            mine[place] = True
            mine_only = labels[mine[entries]].astype(np.int64)
            lifted.append(part.lift(chosen, mine_only, n_states))
        both = Intersection.__new__(Intersection)
        both._own(lifted, lifted)
        both.exact = self.exact
        both._discount = self._discount
        return both


def _boxed(parts: list[UncertaintySet]) -> list[UncertaintySet]:
    """Return the parts with an interval and what it can cut taken together."""
    boxes = [p for p in parts if isinstance(p, Interval)]
    if len(boxes) != 1:
        return parts
    models = [p for p in parts if isinstance(p, BranchSet)]
    if len(models) == 1:
        others = [p for p in parts if not isinstance(p, BranchSet | Interval)]
        return [BoxedBranches(models[0], boxes[0]), *others]
    balls = [p for p in parts if isinstance(p, L1Ball)]
    if models or not balls:
        return parts
    cut = [BoxedBall(ball, boxes[0]) for ball in balls]
    return [*cut, *(p for p in parts if not isinstance(p, L1Ball | Interval))]
