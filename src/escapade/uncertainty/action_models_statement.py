"""What the expert said, as arrays: shared by all sets that evidence makes of it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from escapade.errors import AssumptionError, refusal
from escapade.kernels.action_evidence import sum_by_group
from escapade.model.arguments import read_number, read_numbers
from escapade.model.cmdp import CMDP
from escapade.model.layout import Pairs
from escapade.typing import ArrayLike, BoolArray, FloatArray, IntArray
from escapade.uncertainty.action_models_branches import Branches
from escapade.uncertainty.action_models_description import (
    ActionModel,
    Failures,
    Spaces,
    Transfer,
    build_branches,
    read_gains,
)
from escapade.uncertainty.action_models_links import (
    Groups,
    Links,
    link_groups,
    read_groups,
)
from escapade.uncertainty.rows import Rows, frozen

__all__ = ["Statement", "read_statement", "settle"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Statement:
    """What the expert said; shared by all sets that evidence makes of it.

    ``kind`` of a branch is ``model · ways + way``.  ``gains`` are least and most when a
    step works, least and most when it fails, ``(4, channels, branches)`` as shares of
    ``bound``, and ``mean_range`` the least and the most of the means that follow; the
    costs stand first, then the reward if the models speak of it.
    ``contested`` are the groups that had a choice of models before anything was seen.
    """

    spaces: Pairs
    names: tuple[str, ...]
    n_ways: int
    rows: Rows
    branches: Branches
    pair: IntArray
    kind: IntArray
    groups: Groups
    links: Links
    gains: FloatArray
    mean_range: FloatArray
    bound: FloatArray
    n_costs: int
    error: float
    contested: BoolArray

    @property
    def n_kinds(self) -> int:
        """Number of models times ways of failing."""
        return len(self.names) * self.n_ways

    @property
    def threshold(self) -> float:
        """What evidence must reach to rule a model out where there is a choice."""
        choices = int(self.contested.sum())
        if self.error == 0.0 or choices == 0:
            return math.inf
        return math.log(choices / self.error)

    def name(self, pair: int) -> str:
        """Say in words which pair this is."""
        return self.rows.name(pair)

    @property
    def ties_rewards(self) -> bool:
        """Whether the models speak of rewards."""
        return self.bound.size > self.n_costs

    def sums(self, evidence: FloatArray, groups: IntArray) -> FloatArray:
        """Return the evidence of groups against each kind, ``[groups, kinds]``.

        Infinite for kinds that some pair of the group does not have.
        """
        total = np.empty((groups.size, self.n_kinds))
        sum_by_group(
            groups,
            self.groups.ptr,
            self.groups.members,
            self.branches.ptr,
            self.kind,
            evidence,
            total,
        )
        return total


def read_statement(
    spaces: Spaces,
    models: Mapping[str, ActionModel],
    failures: Failures | Sequence[Failures],
    groups: ArrayLike | None,
    transfers: Transfer | Sequence[Transfer],
    error: float,
    cost_max: ArrayLike | None,
    reward_max: float | None,
) -> tuple[Statement, BoolArray]:
    """Return what the expert said, and what may be true, ``[groups, kinds]``."""
    if not models:
        raise refusal("models", "at least one model", "none")
    ways = [failures] if isinstance(failures, Failures) else list(failures)
    if not ways:
        raise refusal("failures", "at least one way of failing", "none")
    rules = [transfers] if isinstance(transfers, Transfer) else list(transfers)
    delta = read_number("error", error)
    if not 0.0 <= delta < 1.0:
        raise refusal("error", "a number in [0, 1)", delta)
    rows, branches, kind = build_branches(spaces, models, ways)
    pair = branches.pair
    gains, bound, n_costs = _read_gains(
        spaces, models, cost_max, reward_max, pair, kind // len(ways)
    )
    grouped = read_groups(groups, spaces)
    statement = Statement(
        spaces=_pairs_of(spaces),
        names=tuple(models),
        n_ways=len(ways),
        rows=rows,
        branches=branches,
        pair=frozen(pair),
        kind=frozen(kind),
        groups=grouped,
        links=link_groups(rules, grouped, len(models), spaces),
        gains=frozen(gains),
        mean_range=frozen(_mean_range(branches, gains)),
        bound=frozen(bound),
        n_costs=n_costs,
        error=delta,
        contested=np.zeros(grouped.size, dtype=np.bool_),
    )
    left = _at_first(statement)
    contested = frozen(left.sum(axis=1) > 1)
    return replace(statement, contested=contested), left


def _mean_range(branches: Branches, gains: FloatArray) -> FloatArray:
    """Return the least and the most that means can be, ``(2, channels, branches)``.

    Both are linear in the rate: they are attained at its ends.
    """
    low, high = branches.low, branches.high
    works_low, works_high, fails_low, fails_high = gains
    least = np.minimum(
        (1.0 - low) * works_low + low * fails_low,
        (1.0 - high) * works_low + high * fails_low,
    )
    most = np.maximum(
        (1.0 - low) * works_high + low * fails_high,
        (1.0 - high) * works_high + high * fails_high,
    )
    return np.stack([least, most])


def _pairs_of(spaces: Spaces) -> Pairs:
    if isinstance(spaces, Pairs):
        return spaces
    return Pairs(
        n_states=spaces.n_states,
        n_actions=spaces.n_actions,
        state_ptr=spaces.state_ptr,
        pair_state=spaces.pair_state,
        pair_action=spaces.pair_action,
    )


def _read_gains(
    spaces: Spaces,
    models: Mapping[str, ActionModel],
    cost_max: ArrayLike | None,
    reward_max: float | None,
    pair: IntArray,
    model: IntArray,
) -> tuple[FloatArray, FloatArray, int]:
    """Return gains of branches as shares of their bounds, the bounds, and the costs."""
    parts, bounds = [], []
    whats: tuple[tuple[Literal["cost", "reward"], Any, str], ...] = (
        ("cost", cost_max, "cost_max"),
        ("reward", reward_max, "reward_max"),
    )
    for what, given, argument in whats:
        own = getattr(spaces, argument) if isinstance(spaces, CMDP) else None
        value = own if given is None else given
        silent = value is None
        limit = np.atleast_1d(read_numbers(argument, 1.0 if value is None else value))
        if limit.ndim != 1 or not (np.isfinite(limit) & (limit >= 0.0)).all():
            raise refusal(argument, "finite numbers of at least 0", limit.tolist())
        if isinstance(spaces, CMDP) and what == "cost" and limit.size == 1:
            limit = np.repeat(limit, spaces.n_costs)
        gains = read_gains(spaces, models, what, limit)
        if gains is None:
            continue
        if silent:
            raise refusal(argument, f"a bound, as models speak of {what}s", "none")
        scale = np.where(limit > 0.0, limit, 1.0)[:, np.newaxis]
        parts.append(gains[:, :, model, pair] / scale)
        bounds.append((what, limit))
    n_costs = sum(limit.size for what, limit in bounds if what == "cost")
    nothing = np.empty((4, 0, pair.size))
    gains = np.concatenate([nothing, *parts], axis=1)
    limits = np.concatenate([np.empty(0), *(limit for _, limit in bounds)])
    return gains, limits, n_costs


def _at_first(statement: Statement) -> BoolArray:
    """Return what may be true before anything was seen, ``[groups, kinds]``."""
    groups = statement.groups
    present = np.zeros((groups.size, statement.n_kinds), dtype=np.int64)
    np.add.at(present, (groups.of[statement.pair], statement.kind), 1)
    left: BoolArray = present == np.diff(groups.ptr)[:, np.newaxis]
    empty = ~left.any(axis=1)
    if empty.any():
        pair = int(groups.members[groups.ptr[int(np.argmax(empty))]])
        raise refusal(
            "groups",
            "a model that all pairs of a group can have",
            "none",
            statement.name(pair),
        )
    everything = np.arange(groups.size)
    pair = _rules_out(statement, left, everything)
    if pair >= 0:
        raise refusal(
            "transfers",
            "rules that leave a model for every pair",
            "none",
            statement.name(pair),
        )
    return left


def settle(statement: Statement, left: BoolArray, shrunk: IntArray) -> None:
    """Rule out what follows, in place; stop if nothing is left for some pair."""
    empty = shrunk[~left[shrunk].any(axis=1)]
    pair = (
        int(statement.groups.members[statement.groups.ptr[empty[0]]])
        if empty.size
        else -1
    )
    if pair < 0 and shrunk.size:
        pair = _rules_out(statement, left, shrunk)
    if pair >= 0:
        raise AssumptionError(
            f"models: expected one that explains what was seen at "
            f"{statement.name(pair)}, found none"
        )


def _rules_out(statement: Statement, left: BoolArray, changed: IntArray) -> int:
    """Apply the rules in place; return a pair without a model, or −1."""
    shape = (statement.groups.size, len(statement.names), statement.n_ways)
    models: BoolArray = np.logical_or.reduce(left.reshape(shape), axis=2)
    group = statement.links.propagate(changed, models)
    if group >= 0:
        return int(statement.groups.members[statement.groups.ptr[group]])
    left &= np.repeat(models, statement.n_ways, axis=1)
    return -1
