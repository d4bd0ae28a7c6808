"""What was given at birth, less what evidence has ruled out since.

The expert's side of a belief: the uncertainty sets of ``knowledge.models``, one or
several that hold at once.  Action models among them are narrowed by what is seen; the
others stay as they are.  What they all allow of single entries, and of means, is passed
on to the bounds of the belief.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from escapade.kernels.belief import bound_by_branches
from escapade.knowledge.knowledge import Knowledge
from escapade.learning.confidence import Bounds
from escapade.learning.evidence import Evidence
from escapade.typing import BoolArray, FloatArray, IntArray
from escapade.uncertainty.action_models import ActionModels, Weighed
from escapade.uncertainty.base import UncertaintySet
from escapade.uncertainty.intersection import Intersection
from escapade.uncertainty.interval import Interval

__all__ = ["Given"]

_WEIGHED = ("evidence", "fit", "rate")

_UP = 1.0 + 1e-12
"""More than rounding can do to a mean."""


class Given:
    """The sets of ``knowledge.models``, part by part.

    Parameters
    ----------
    knowledge
        What is known at birth.
    error
        Probability with which a true model may ever be ruled out by mistake, in all.

    Attributes
    ----------
    parts
        The sets, each of which holds the truth; none where no models were given.
    spent
        How much of ``error`` is needed: 0 where there is nothing to rule out.
    """

    parts: list[UncertaintySet]
    spent: float

    def __init__(self, knowledge: Knowledge, *, error: float) -> None:
        self._knowledge = knowledge
        models = knowledge.models
        if models is None:
            self.parts = []
        elif isinstance(models, Intersection):
            self.parts = models.given
        else:
            self.parts = [models]
        self._places = [self._place(part) for part in self.parts]
        self._contested = [_contested(part) & ~knowledge.varying for part in self.parts]
        learners = [i for i, mask in enumerate(self._contested) if mask.any()]
        self.spent = error if learners else 0.0
        for i in learners:
            part = self.parts[i]
            assert isinstance(part, ActionModels)
            self.parts[i] = part.with_error(error / len(learners))
        self._at_birth = list(self.parts)
        self._error = error / max(len(learners), 1)

    def _place(self, part: UncertaintySet) -> IntArray | None:
        """Return where the entries of a part stand; ``None`` if all stand alike."""
        knowledge = self._knowledge
        same = np.array_equal(part.row_ptr, knowledge.row_ptr)
        if same and np.array_equal(part.successor, knowledge.successor):
            return None
        keys, mine = (
            np.repeat(np.arange(rows.n_pairs), np.diff(rows.row_ptr)) * rows.n_states
            + rows.successor
            for rows in (knowledge, part)
        )
        place: IntArray = np.searchsorted(keys, mine)
        place[place == keys.size] = 0
        place[keys[place] != mine] = -1  # another part rules these entries out
        return place

    def of_part(self, i: int, values: FloatArray | IntArray) -> FloatArray | IntArray:
        """Return numbers on the entries of the belief as those of a part."""
        place = self._places[i]
        if place is None:
            return values
        return np.where(place >= 0, values[place], 0)

    def _on_all(self, i: int, values: FloatArray, fill: float) -> FloatArray:
        """Return numbers on the entries of a part as numbers on those of the belief."""
        place = self._places[i]
        if place is None:
            return values
        spread = np.full(self._knowledge.successor.size, fill)
        spread[place[place >= 0]] = values[place >= 0]
        return spread

    @property
    def alone(self) -> UncertaintySet | None:
        """The only part, if its entries are those of the belief."""
        single = len(self.parts) == 1 and self._places[0] is None
        return self.parts[0] if single else None

    @property
    def prior(self) -> FloatArray:
        """``[entries]``; what the first part thinks likely, or even rows without one.

        Rows are to be read as weights: entries that another part rules out are missing.
        """
        if self.parts:
            return self._on_all(0, self.parts[0].nominal, 0.0)
        lengths = np.diff(self._knowledge.row_ptr)
        even: FloatArray = np.repeat(1.0 / lengths, lengths)
        return even

    # -- learning ----------------------------------------------------------------------

    def rule_out(self, evidence: Evidence, pairs: IntArray) -> IntArray:
        """Rule models out by what was seen; return the pairs that have fewer now.

        Raises
        ------
        AssumptionError
            If no model is left for some pair.
        """
        moved = [pairs[:0]]
        for i, contested in enumerate(self._contested):
            watched = pairs[contested[pairs]]
            before = self.parts[i]
            if watched.size == 0 or not isinstance(before, ActionModels):
                continue
            after = before.observe(
                self.of_part(i, evidence.visits),
                costs=evidence.cost_sum if before.ties_costs else None,
                cost_visits=evidence.cost_count if before.ties_costs else None,
                rewards=evidence.reward_sum if before.ties_rewards else None,
                pairs=watched,
            )
            self.parts[i] = after
            gone = np.flatnonzero(before.active & ~after.active)
            owners = np.searchsorted(before.branches.ptr, gone, side="right") - 1
            moved.append(np.unique(owners))
        return np.unique(np.concatenate(moved))

    def share_error(self, reopened: int) -> None:
        """Let models be ruled out with the share of the error that is left by then.

        The j-th time, from 0, it is ``1 / ((j + 1)(j + 2))`` of all.
        """
        share = self._error / ((reopened + 1) * (reopened + 2))
        for i, contested in enumerate(self._contested):
            part = self.parts[i]
            if contested.any() and isinstance(part, ActionModels):
                self.parts[i] = part.with_error(share)

    def reopen(self, pairs: IntArray, reopened: int) -> IntArray:
        """Bring back what was ruled out where ``pairs`` had a say.

        Returns all pairs that this concerns.
        """
        concerned = [pairs]
        for i, contested in enumerate(self._contested):
            if contested[pairs].any():
                self.parts[i] = self._at_birth[i]
                concerned.append(np.flatnonzero(contested))
        self.share_error(reopened)
        return np.unique(np.concatenate(concerned))

    def narrow(self, bounds: Bounds, pairs: IntArray) -> None:
        """Narrow bounds on entries and means of ``pairs`` to what the parts allow."""
        knowledge = self._knowledge
        for i, part in enumerate(self.parts):
            if isinstance(part, ActionModels):
                _bound_entries(part, knowledge, bounds, pairs)
                self._bound_means(part, bounds)
            else:
                possible = self._on_all(i, part.reachable.astype(np.float64), 0.0)
                bounds.upper[possible == 0.0] = 0.0
            if isinstance(part, Interval):
                np.maximum(
                    bounds.lower, self._on_all(i, part.lower, 0.0), out=bounds.lower
                )
                np.minimum(
                    bounds.upper, self._on_all(i, part.upper, 0.0), out=bounds.upper
                )

    def _bound_means(self, part: ActionModels, bounds: Bounds) -> None:
        if part.ties_costs:
            for k in range(self._knowledge.n_costs):
                least, most = part.cost_bounds(k)
                _narrow(bounds.cost_lower[k], bounds.cost_upper[k], least, most)
        if part.ties_rewards:
            least, most = part.reward_bounds()
            _narrow(bounds.reward_lower, bounds.reward_upper, least, most)

    # -- files -------------------------------------------------------------------------

    def state(self) -> dict[str, FloatArray | BoolArray]:
        """Return what has been ruled out, and why, as arrays by name."""
        arrays: dict[str, FloatArray | BoolArray] = {}
        for i, part in enumerate(self.parts):
            if isinstance(part, ActionModels):
                arrays[f"models.{i}.left"] = part.left_in_groups
                for name in _WEIGHED:
                    arrays[f"models.{i}.{name}"] = getattr(part.weighed, name)
        return arrays

    def restore(self, arrays: Mapping[str, Any]) -> None:
        """Go back to what :meth:`state` returned, over the same knowledge."""
        for i, part in enumerate(self.parts):
            if isinstance(part, ActionModels):
                self.parts[i] = ActionModels.restored(
                    part.statement,
                    np.array(arrays[f"models.{i}.left"]),
                    Weighed(
                        **{
                            name: np.array(arrays[f"models.{i}.{name}"])
                            for name in _WEIGHED
                        }
                    ),
                )


def _contested(part: UncertaintySet) -> BoolArray:
    """Return the pairs of a part that have more than one model or way of failing."""
    if not isinstance(part, ActionModels):
        return np.zeros(part.n_pairs, dtype=np.bool_)
    starts = part.branches.ptr[:-1]
    several: BoolArray = np.add.reduceat(part.active, starts, dtype=np.int64) > 1
    return several


def _bound_entries(
    part: ActionModels, knowledge: Knowledge, bounds: Bounds, pairs: IntArray
) -> None:
    branches = part.branches
    bound_by_branches(
        pairs,
        branches.ptr,
        part.active,
        branches.target,
        branches.around,
        branches.low,
        branches.high,
        branches.near_ptr,
        branches.near,
        branches.uniform,
        knowledge.row_ptr,
        knowledge.successor,
        bounds.lower,
        bounds.upper,
    )


def _narrow(
    lower: FloatArray, upper: FloatArray, least: FloatArray, most: FloatArray
) -> None:
    """Narrow means in place, rounded outward."""
    np.maximum(lower, least / _UP, out=lower)
    np.minimum(upper, most * _UP, out=upper)
