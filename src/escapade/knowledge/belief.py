"""What the agent holds possible: knowledge, narrowed by what it has seen.

Two descriptions of every row are kept side by side, and the truth lies in both:

- the models that were given at birth, less those that evidence has ruled out;
- an interval around every probability: within what was known and what those models
  allow, narrowed by what was seen, and valid at all times at once.

The most that ``P · v`` can be is bounded by the lesser of the two answers.  So is the
worst case of a cost and what comes after it: models may tie the two together, which is
less than the worst of either apart.  Everything only narrows, and only where something
was seen or follows from it, so :meth:`Belief.update` looks at the pairs that changed
and at no others.  Pairs that were told to be *varying* have no one law to find: there
what was known at birth stays what is possible, and what was seen only what is likely.

Of the δ0 that the agent allows, one half goes to models that are ruled out because they
are unlikely, and the other to the intervals; all of it to the intervals where there is
nothing to rule out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, TypeVar

import numpy as np

from escapade.errors import AssumptionError, refusal
from escapade.kernels.belief import (
    Held,
    fill_likeliest,
    greatest_means,
    worst_steps,
)
from escapade.knowledge.given import Given
from escapade.knowledge.knowledge import Knowledge
from escapade.learning.confidence import Bounds, Confidence
from escapade.learning.evidence import Evidence
from escapade.model.cmdp import CMDP
from escapade.typing import BoolArray, FloatArray, IntArray
from escapade.uncertainty.action_models_branches import Branches, BranchSet
from escapade.uncertainty.base import UncertaintySet
from escapade.uncertainty.intersection import Intersection
from escapade.uncertainty.interval import Interval
from escapade.uncertainty.rows import Rows, frozen

__all__ = ["Belief"]

A = TypeVar("A", bound=np.ndarray[Any, Any])

_PRIOR_WEIGHT = 1.0
"""Visits that the nominal model at birth is worth beside those that were made."""

_ELIMINATION = 0.5
"""Share of δ0 that pays for ruling out models."""

_UP = 1.0 + 1e-12
"""More than rounding can do in a worst case."""


_COUNTED = (
    "visits",
    "pair_visits",
    "reward_sum",
    "cost_sum",
    "cost_square",
    "cost_count",
)
_BOUNDED = tuple(field.name for field in fields(Bounds))

_NO_BRANCHES = Branches(
    ptr=np.zeros(1, dtype=np.int64),
    target=np.empty(0, dtype=np.int32),
    around=np.empty(0, dtype=np.int64),
    low=np.empty(0),
    high=np.empty(0),
    near_ptr=np.zeros(1, dtype=np.int64),
    near=np.empty(0, dtype=np.int32),
    uniform=np.empty(0, dtype=np.bool_),
)

_CONTRADICTION = 1e-9
"""By how much bounds may cross before that is more than rounding."""


class Belief:
    """Sets of kernels, rewards and costs that are still possible.

    Parameters
    ----------
    knowledge
        What is known at birth, its log included.
    delta
        δ0: the probability that the truth ever leaves what the agent holds possible.
    reopens
        Whether pairs may be reopened (:meth:`reopen`): then δ0 is shared among all the
        times that one may be, the j-th, from 0, getting ``1 / ((j + 1)(j + 2))`` of it.

    Attributes
    ----------
    knowledge, delta
        As given.
    given
        The models of ``knowledge``, less what was ruled out.
    evidence, confidence
        What was seen, and the bounds that it leaves.
    prior
        The bounds at birth, before anything was seen.
    settled
        ``[pairs]``; those of which nothing was left to learn at birth.
    reopened
        ``[pairs]``; how often each was.
    version
        Grows with every change.
    news_at
        ``[pairs]``; the version at which what is held of each may last have changed.
    """

    def __init__(
        self, knowledge: Knowledge, *, delta: float, reopens: bool = False
    ) -> None:
        if not 0.0 < delta < 1.0:
            raise refusal("delta", "a number in (0, 1)", delta)
        self.knowledge = knowledge
        self.delta = delta
        self.given = Given(knowledge, error=_ELIMINATION * delta)
        self._bounds = Bounds(
            lower=np.array(knowledge.lower),
            upper=np.array(knowledge.upper),
            cost_lower=np.array(knowledge.cost_lower),
            cost_upper=np.array(knowledge.cost_upper),
            reward_lower=np.array(knowledge.reward_lower),
            reward_upper=np.array(knowledge.reward_upper),
        )
        exact = knowledge.reward_lower == knowledge.reward_upper
        exact &= (knowledge.cost_lower == knowledge.cost_upper).all(axis=0)
        self.settled: BoolArray = frozen(knowledge.exact_pairs & exact)
        self._charges: tuple[FloatArray, FloatArray]
        self._charged_for: FloatArray = np.empty(0)
        self.version = 0
        self.news_at: IntArray = np.zeros(knowledge.n_pairs, dtype=np.int64)
        everything = np.arange(knowledge.n_pairs)
        self._narrow(everything)
        self.prior = Bounds(
            **{name: np.array(getattr(self._bounds, name)) for name in _BOUNDED}
        )
        self.reopens = reopens
        self.reopened: IntArray = np.zeros(knowledge.n_pairs, dtype=np.int64)
        self.evidence = Evidence(
            knowledge.row_ptr, knowledge.successor, knowledge.n_costs
        )
        self.confidence = Confidence(
            self.evidence,
            delta=delta - self.given.spent,
            bounds=self._bounds,
            reward_max=knowledge.reward_max,
            cost_max=knowledge.cost_max,
            reward_exact=knowledge.exact_rewards,
            cost_exact=knowledge.exact_costs,
            name=knowledge.pairs.name,
            varying=knowledge.varying,
        )
        self._share_delta()
        self._nominal: FloatArray = np.empty(knowledge.successor.size)
        self._read_records()
        self.update(everything)

    # -- evidence ------------------------------------------------------------------

    def _read_records(self) -> None:
        """Count what was recorded before birth; knowledge has checked it."""
        knowledge, evidence = self.knowledge, self.evidence
        log, tally = knowledge.log, knowledge.tally
        if log is not None:
            pairs = knowledge.pairs_of(log.states, log.actions)
            evidence.record_all(pairs, log.next_states, log.rewards, log.costs)
        if tally is not None:
            steps = np.maximum(tally.cost_steps, 1)
            evidence.add(
                tally.row_ptr,
                tally.successor,
                tally.visits,
                rewards=tally.rewards,
                costs=tally.costs,
                # of squares nothing is known: the most that they can sum to
                cost_squares=np.where(
                    knowledge.exact_costs,
                    tally.costs * tally.costs / steps,
                    tally.costs * knowledge.cost_max[:, np.newaxis],
                ),
                cost_steps=tally.cost_steps,
            )

    def update(self, pairs: IntArray) -> None:
        """Narrow everything to what has been seen at these pairs.

        Raises
        ------
        AssumptionError
            If what was seen contradicts what was known beforehand.
        """
        self._note_news(pairs)
        moved = self.given.rule_out(self.evidence, pairs)
        if moved.size:
            self._note_news(moved)
            self._narrow(moved)
            pairs = np.union1d(pairs, moved)
        self.confidence.refresh(pairs)
        self._refresh_nominal(pairs)
        self._forget_derived()

    def _share_delta(self) -> None:
        if self.reopens:
            j = self.reopened
            self.confidence.extra = np.log((j + 1.0) * (j + 2.0))
            self.given.share_error(int(j.max()))

    def reopen(self, pairs: IntArray) -> None:
        """Forget what was seen at ``pairs``, and hold what was held at birth of them.

        Models that they helped to rule out come back, and with them whatever had been
        concluded of the pairs that share those models; what was seen there stays.

        Raises
        ------
        AssumptionError
            If what was seen elsewhere contradicts what was known at birth.
        """
        entries = np.repeat(
            np.isin(np.arange(self.knowledge.n_pairs), pairs),
            np.diff(self.knowledge.row_ptr),
        )
        evidence = self.evidence
        evidence.visits[entries] = 0
        for name in _COUNTED[1:]:
            getattr(evidence, name)[..., pairs] = 0
        self.reopened[pairs] += 1
        concerned = self.given.reopen(pairs, int(self.reopened.max()))
        self._share_delta()
        entries = np.repeat(
            np.isin(np.arange(self.knowledge.n_pairs), concerned),
            np.diff(self.knowledge.row_ptr),
        )
        for name in _BOUNDED:
            held, prior = getattr(self._bounds, name), getattr(self.prior, name)
            where = entries if name in ("lower", "upper") else concerned
            held[..., where] = prior[..., where]
        self.update(concerned)

    def _narrow(self, pairs: IntArray) -> None:
        """Narrow bounds on entries and means to what was given, and is left of it."""
        self.given.narrow(self._bounds, pairs)
        self._check_bounds(self._bounds)

    def _check_bounds(self, bounds: Bounds) -> None:
        """Stop where models contradict what was known; level what only rounding did."""
        of_entry = np.repeat(
            np.arange(self.knowledge.n_pairs), np.diff(self.knowledge.row_ptr)
        )
        for what, lower, upper, pair_of in (
            ("transitions", bounds.lower, bounds.upper, of_entry),
            ("rewards", bounds.reward_lower, bounds.reward_upper, None),
            *(
                (f"costs {k}", low, high, None)
                for k, (low, high) in enumerate(
                    zip(bounds.cost_lower, bounds.cost_upper, strict=True)
                )
            ),
        ):
            gap = lower - upper
            place = int(np.argmax(gap))
            if gap[place] > _CONTRADICTION * (1.0 + abs(upper[place])):
                pair = place if pair_of is None else int(pair_of[place])
                where = self.knowledge.pairs.name(pair)
                raise AssumptionError(
                    f"{what} of {where}: expected models that agree with what else was "
                    f"known or seen, found at least {lower[place]:g} and at most "
                    f"{upper[place]:g}"
                )
            np.minimum(lower, upper, out=lower)

    def state(self) -> dict[str, np.ndarray]:
        """Return all that life has changed, as copies of arrays by name."""
        arrays = {
            **{f"evidence.{n}": getattr(self.evidence, n) for n in _COUNTED},
            **{f"bounds.{n}": getattr(self._bounds, n) for n in _BOUNDED},
            **self.given.state(),
            "nominal": self._nominal,
            "reopened": self.reopened,
        }
        return {name: np.array(array) for name, array in arrays.items()}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Go back, bit for bit, to what :meth:`state` returned.

        This must be a belief that was born of the same knowledge and ``delta``.
        """
        for name in _COUNTED:
            _refill(getattr(self.evidence, name), arrays, f"evidence.{name}")
        for name in _BOUNDED:
            _refill(getattr(self._bounds, name), arrays, f"bounds.{name}")
        _refill(self.reopened, arrays, "reopened")
        self._share_delta()
        self.given.restore(arrays)
        nominal = np.empty(self.knowledge.successor.size)
        _refill(nominal, arrays, "nominal")
        nominal.flags.writeable = False
        self._nominal = nominal
        self._note_news(slice(None))
        self._forget_derived()

    def _forget_derived(self) -> None:
        self._sets: UncertaintySet | None = None
        self._held: Held | None = None

    def _note_news(self, pairs: IntArray | slice) -> None:
        """Note that what is held of ``pairs`` may be another from now on."""
        self.version += 1
        self.news_at[pairs] = self.version

    # -- sets ----------------------------------------------------------------------

    @property
    def failure_probability(self) -> float:
        """Probability that the truth is ever outside; 0 if nothing is estimated."""
        estimated = 0.0 if self.confidence.holds_surely else self.confidence.delta
        return estimated + self.given.spent

    @property
    def reachable(self) -> BoolArray:
        """``[entries]``; whether some kernel that is possible goes there."""
        possible: BoolArray = self.confidence.upper > 0.0
        return possible

    @property
    def intervals(self) -> Interval:
        """The intervals around every probability, as an uncertainty set."""
        nominal = self._nominal
        knowledge = self.knowledge
        rows = Rows(
            n_states=knowledge.n_states,
            stored_ptr=knowledge.row_ptr,
            stored=knowledge.successor,
            stored_nominal=nominal,
            pair_state=knowledge.pairs.pair_state,
            pair_action=knowledge.pairs.pair_action,
        )
        return Interval.around(
            rows,
            np.minimum(self.confidence.lower, nominal),
            np.maximum(self.confidence.upper, nominal),
        )

    @property
    def sets(self) -> UncertaintySet:
        """Everything that is known and seen, as one set."""
        if self._sets is None:
            seen, given = self.intervals, self.given.parts
            self._sets = Intersection(*given, seen) if given else seen
        return self._sets

    @property
    def cost_upper(self) -> FloatArray:
        """``[K, pairs]``; no mean cost is above these."""
        return self.confidence.cost_upper

    def ahead(self, w: FloatArray) -> FloatArray:
        """Return the most that ``P · w`` can be, ``[pairs]``; ``w`` is ``[S]``."""
        value = np.ascontiguousarray(w, dtype=np.float64)
        most = np.empty(self.knowledge.n_pairs)
        greatest_means(
            self.knowledge.row_ptr,
            self.knowledge.successor,
            self.confidence.lower,
            self.confidence.upper,
            value,
            most,
        )
        for part in self.given.parts:
            np.minimum(most, part.worst(value), out=most)
        return most

    def worst_cost(self, k: int, w: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the worst cost of a step with ``w`` after it, and the latter alone.

        Both are ``[pairs]`` and rounded up.  The first is the worst of cost and next
        state together where the models tie them.
        """
        value = np.ascontiguousarray(w, dtype=np.float64)
        held = self.held
        if held is not None:
            n_pairs = self.knowledge.n_pairs
            together, ahead = np.empty(n_pairs), np.empty(n_pairs)
            worst_steps(np.arange(n_pairs), held, k, value, together, ahead)
            return together, ahead
        gamma = self.knowledge.discount
        ahead = self.ahead(value) * (gamma * _UP)
        together = self.cost_upper[k] + ahead
        for sets in self._charged(k):
            np.minimum(
                together, sets.backup(value, self.cost_upper[k], gamma), out=together
            )
        return together * _UP, ahead

    def _charged(self, k: int) -> list[UncertaintySet]:
        """Return the parts that tie the costs of a channel to next states, charged."""
        alone = np.zeros(self.knowledge.n_costs)
        alone[k] = 1.0
        found = []
        for part in self.given.parts:
            sets, _ = part.charged(self.cost_upper, alone, self.knowledge.discount)
            if sets is not part:
                found.append(sets)
        return found

    @property
    def held(self) -> Held | None:
        """All of it as kernels read it; ``None`` where sets are of another kind.

        That is intervals, and branches where one part alone was given, which has them.
        """
        if self._held is None:
            self._held = self._as_arrays()
        return self._held

    def _as_arrays(self) -> Held | None:
        knowledge, alone = self.knowledge, self.given.alone
        if self.given.parts and not isinstance(alone, BranchSet):
            return None
        none: IntArray = np.empty(0, dtype=np.int64)
        branches, active = _NO_BRANCHES, none > 0
        if isinstance(alone, BranchSet):
            branches, active = alone.branches, alone.active
        if not np.array_equal(self._charged_for, self.cost_upper):
            self._charges = self._as_charges()
            self._charged_for = self.cost_upper.copy()
        at_target, at_miss = self._charges
        return Held(
            row_ptr=_read(knowledge.row_ptr),
            successor=_read(knowledge.successor),
            lower=_read(self.confidence.lower),
            upper=_read(self.confidence.upper),
            branch_ptr=_read(branches.ptr),
            active=_read(active),
            target=_read(branches.target),
            around=_read(branches.around),
            low=_read(branches.low),
            high=_read(branches.high),
            near_ptr=_read(branches.near_ptr),
            near=_read(branches.near),
            uniform=_read(branches.uniform),
            at_target=_read(at_target),
            at_miss=_read(at_miss),
            cost=_read(self.cost_upper),
            gamma=knowledge.discount,
            up=_UP,
        )

    def _as_charges(self) -> tuple[FloatArray, FloatArray]:
        """Return what branches take off the present bounds on costs."""
        charges = [
            sets.charge
            for k in range(self.knowledge.n_costs)
            for sets in self._charged(k)
            if isinstance(sets, BranchSet) and sets.charge is not None
        ]
        if not charges:
            nothing = np.empty((self.knowledge.n_costs, 0, 0))
            return nothing, nothing
        return (
            np.stack([charge.at_target for charge in charges]),
            np.stack([charge.at_miss for charge in charges]),
        )

    # -- the likeliest model -------------------------------------------------------

    @property
    def nominal(self) -> FloatArray:
        """``[entries]``; frequencies, with what was thought at birth as one visit."""
        return self._nominal

    def _refresh_nominal(self, pairs: IntArray) -> None:
        knowledge = self.knowledge
        nominal = self._nominal.copy()  # earlier plans keep theirs
        empty = fill_likeliest(
            pairs,
            knowledge.row_ptr,
            self.evidence.visits,
            self.evidence.pair_visits,
            self.given.prior,
            _PRIOR_WEIGHT,
            self.confidence.lower,
            self.confidence.upper,
            nominal,
        )
        if empty >= 0:
            raise AssumptionError(
                f"transitions of {knowledge.pairs.name(empty)}: expected bounds that "
                f"hold a distribution, found none"
            )
        nominal.flags.writeable = False
        self._nominal = nominal

    def mean_reward(self) -> FloatArray:
        """Return the likeliest mean reward of every pair."""
        lower, upper = self.confidence.reward_lower, self.confidence.reward_upper
        mean = self.evidence.mean_reward()
        return np.where(np.isnan(mean), 0.5 * (lower + upper), mean).clip(lower, upper)

    def mean_cost(self) -> FloatArray:
        """Return the likeliest mean costs of every pair, ``[K, pairs]``."""
        lower, upper = self.confidence.cost_lower, self.confidence.cost_upper
        mean = self.evidence.mean_cost()
        return np.where(np.isnan(mean), upper, mean).clip(lower, upper)

    def likeliest(self) -> CMDP:
        """Return the likeliest model as a problem."""
        knowledge = self.knowledge
        pairs = knowledge.pairs
        return CMDP.from_pairs(
            state_ptr=pairs.state_ptr,
            pair_action=pairs.pair_action,
            row_ptr=knowledge.row_ptr,
            successor=knowledge.successor,
            probability=self.nominal,
            reward=self.mean_reward(),
            cost=self.mean_cost(),
            n_actions=knowledge.n_actions,
            discount=knowledge.discount,
            budget=knowledge.budget,
            start=knowledge.start,
            reward_max=knowledge.reward_max,
            cost_max=knowledge.cost_max,
            state_names=knowledge.state_names,
            action_names=knowledge.action_names,
            coordinates=knowledge.coordinates,
        )


def _read(array: A) -> A:
    """Return a view to read: kernels are compiled once for each kind of argument."""
    return frozen(array.view())


def _refill(target: np.ndarray, arrays: Mapping[str, np.ndarray], name: str) -> None:
    """Copy an array into one of the same shape and kind, or refuse it."""
    array = arrays.get(name)
    if array is None or array.shape != target.shape or array.dtype != target.dtype:
        raise refusal(
            "state",
            f"{name} of {target.dtype}, shape {target.shape}",
            "none" if array is None else f"{array.dtype}, shape {array.shape}",
        )
    target[...] = array
