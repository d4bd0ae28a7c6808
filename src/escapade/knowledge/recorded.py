"""Steps that were recorded before, held to what else is known.

A record is evidence for what is not known, so it must not contradict what is: a step to
an impossible successor, or a cost where there is none, means that one of the two is
wrong, and nobody but whoever told them can say which.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from escapade.errors import refusal
from escapade.knowledge.counts import Counts, Tally
from escapade.knowledge.log import Log
from escapade.typing import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from escapade.knowledge.knowledge import Knowledge

__all__ = ["allowed_samples", "check_log", "read_tally"]

_SAME = 1e-9
"""By how much samples may differ that are said to be the same."""


def allowed_samples(
    lower: FloatArray, upper: FloatArray, exact: BoolArray, most: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return between what single samples surely lie, infinite where nothing is sure.

    A mean at the edge of what is possible allows one value alone; so does a mean that
    every sample is said to equal.
    """
    sure = exact | (upper == 0.0) | (lower == most)
    room = _SAME * most
    return (
        np.where(sure, lower - room, -np.inf),
        np.where(sure, upper + room, np.inf),
    )


def check_log(known: Knowledge, log: Log) -> None:
    """Refuse steps that contradict what else is known, naming the first."""
    if not isinstance(log, Log):
        raise refusal("log", "a Log, such as Log.from_csv returns", repr(log))
    log.check(
        n_states=known.n_states,
        n_actions=known.n_actions,
        reward_max=known.reward_max,
        cost_max=known.cost_max,
    )
    pairs = known.pairs_of(log.states, log.actions)
    out = _entries(known, pairs, log.next_states) < 0
    if out.any():
        row = int(np.argmax(out))
        raise log.refuse(
            f"a possible successor of state {log.states[row]}, action "
            f"{log.actions[row]}",
            f"state {log.next_states[row]}",
            out,
        )
    out = known.free[pairs] & (log.costs > 0.0).any(axis=1)
    if out.any():
        row = int(np.argmax(out))
        raise log.refuse(
            f"no cost in state {log.states[row]}, action {log.actions[row]}, as it "
            f"is free",
            float(np.nanmax(log.costs[row])),
            out,
        )
    for told, column in zip(_means(known), (log.rewards, *log.costs.T), strict=True):
        _check_column(known, log, pairs, told, column)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Told:
    """What is known of the means of reward, or of one channel of cost, ``[pairs]``."""

    name: str
    exact: BoolArray
    lower: FloatArray
    upper: FloatArray
    most: float

    def samples(self) -> tuple[FloatArray, FloatArray]:
        return allowed_samples(
            self.lower, self.upper, self.exact, np.asarray(self.most)
        )

    def words(self, pair: int) -> str:
        low, high = self.lower[pair], self.upper[pair]
        return f"{low:g}" if low == high else f"[{low:g}, {high:g}]"


def _means(known: Knowledge) -> Iterator[_Told]:
    yield _Told(
        name="reward",
        exact=known.exact_rewards,
        lower=known.reward_lower,
        upper=known.reward_upper,
        most=known.reward_max,
    )
    for k, most in enumerate(known.cost_max):
        yield _Told(
            name="cost" if known.n_costs == 1 else f"cost {k}",
            exact=known.exact_costs,
            lower=known.cost_lower[k],
            upper=known.cost_upper[k],
            most=float(most),
        )


def _check_column(
    known: Knowledge, log: Log, pairs: IntArray, told: _Told, column: FloatArray
) -> None:
    """Refuse samples that their means rule out, or that should be equal and differ."""
    least, most = told.samples()
    out = (column < least[pairs]) | (column > most[pairs])  # never true of NaN
    if out.any():
        row = int(np.argmax(out))
        pair = int(pairs[row])
        raise log.refuse(
            f"{told.name} to be {told.words(pair)} in {known.pairs.name(pair)}, as is "
            f"told",
            float(column[row]),
            out,
        )
    seen = np.flatnonzero(told.exact[pairs] & ~np.isnan(column))
    mine = pairs[seen]
    _, first = np.unique(mine, return_index=True)
    means = np.full(known.n_pairs, np.nan)
    means[mine[first]] = column[seen[first]]
    differs = np.zeros(len(log), dtype=np.bool_)
    slack = _SAME * np.maximum(1.0, np.abs(means[mine]))
    differs[seen] = np.abs(column[seen] - means[mine]) > slack
    if differs.any():
        row = int(np.argmax(differs))
        raise log.refuse(
            f"the same {told.name} of {means[pairs[row]]:g} each time in "
            f"{known.pairs.name(int(pairs[row]))}",
            float(column[row]),
            differs,
        )


def read_tally(known: Knowledge, counts: Counts) -> Tally:
    """Return counts over the pairs; refuse those that contradict what else is known."""
    if not isinstance(counts, Counts):
        raise refusal("counts", "a Counts", repr(counts))
    tally = counts.read(
        known.pairs, reward_max=known.reward_max, cost_max=known.cost_max
    )
    pairs = np.repeat(np.arange(known.n_pairs), np.diff(tally.row_ptr))
    out = _entries(known, pairs, tally.successor) < 0
    if out.any():
        entry = int(np.argmax(out))
        raise refusal(
            "counts",
            "steps to possible successors",
            f"{tally.visits[entry]} to state {tally.successor[entry]}",
            known.pairs.name(int(pairs[entry])),
        )
    paid = known.free & (tally.costs > 0.0).any(axis=0)
    if paid.any():
        pair = int(np.argmax(paid))
        raise refusal(
            "counts",
            "no costs where it is free",
            float(tally.costs[:, pair].max()),
            known.pairs.name(pair),
        )
    visits = np.bincount(pairs, tally.visits, minlength=known.n_pairs).astype(np.int64)
    sums = zip((tally.rewards, *tally.costs), _means(known), strict=True)
    for k, (total, told) in enumerate(sums):
        _check_sum(known, total, visits if k == 0 else tally.cost_steps, told)
    return tally


def _check_sum(
    known: Knowledge, total: FloatArray, steps: IntArray, told: _Told
) -> None:
    """Refuse sums that samples within their means cannot have."""
    taken = steps > 0
    least, most = told.samples()
    out = np.zeros(taken.size, dtype=np.bool_)
    out[taken] = (total[taken] < steps[taken] * least[taken]) | (
        total[taken] > steps[taken] * most[taken]
    )
    if out.any():
        pair = int(np.argmax(out))
        raise refusal(
            "counts",
            f"{steps[pair]} times {told.words(pair)} as the sum of {told.name}, as is "
            f"told",
            float(total[pair]),
            known.pairs.name(pair),
        )


def _entries(known: Knowledge, pairs: IntArray, states: IntArray) -> IntArray:
    """Return where successors stand among the entries, −1 for impossible ones."""
    keys = np.repeat(np.arange(known.n_pairs), np.diff(known.row_ptr))
    keys = keys * known.n_states + known.successor
    wanted = pairs * known.n_states + states
    place: IntArray = np.minimum(np.searchsorted(keys, wanted), keys.size - 1)
    impossible = (keys[place] != wanted) | (known.upper[place] == 0.0)
    place[impossible] = -1
    return place
