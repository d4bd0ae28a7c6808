"""A recorded lifetime lived again, between two plans: decide, compare, count, settle.

The kernels are those of the lifetime itself (:mod:`escapade.kernels.lifetime`), but the
outcome of each step is read from the record instead of drawn from a world.  So an agent
comes to where the recorded one was, or it is seen at which step the record says
something that the agent would not have said.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from escapade.kernels.compilation import compiled, uncounted
from escapade.kernels.evidence import record
from escapade.kernels.ledger import Ledger, Pending, Plan
from escapade.kernels.lifetime import (
    ALL_STEPS,
    IMPOSSIBLE,
    PLAN_AGAIN,
    SURPRISING,
    Counts,
    Record,
    strays,
    surprising,
)
from escapade.kernels.paper import CORRECTED, Course, Rules, choose, settle_step
from escapade.typing import FloatArray, IntArray

__all__ = ["DIFFERS", "live_again"]

DIFFERS = 4
"""Why the loop stopped, beside the reasons of a lifetime."""


@uncounted
def _live_again(
    ledger: Ledger,
    plan: Plan,
    rules: Rules,
    counts: Counts,
    promise: FloatArray,
    memory: IntArray,
    course: Course,
    pending: Pending,
    rng: Any,
    seen: Record,
    first: int,
    last: int,
    cost: FloatArray,
) -> tuple[int, int]:
    """``cost``: ``[K]`` of scratch; see :func:`live_again`."""
    for t in range(first, last):
        state = seen.states[t]
        next_state = seen.states[t + 1]
        pair, phase, reason = choose(
            ledger,
            plan,
            rules,
            counts.pair_visits,
            promise,
            memory,
            course,
            state,
            rng.random(),
            pending,
        )
        same = (
            pair == seen.pairs[t]
            and phase == seen.phases[t]
            and reason == seen.reasons[t]
        )
        for k in range(len(ledger.channels)):
            same = same and promise[k] == seen.promise[t, k]
            same = same and ledger.w[k, state] == seen.reserved[t, k]
            cost[k] = seen.costs[t, k]
        if not same:
            return t, DIFFERS
        if rules.test == CORRECTED and strays(ledger, state, next_state):
            return t, IMPOSSIBLE
        counted = record(
            counts.row_ptr,
            counts.successor,
            counts.visits,
            counts.pair_visits,
            counts.reward_sum,
            counts.cost_count,
            counts.cost_sum,
            counts.cost_square,
            pair,
            next_state,
            seen.rewards[t],
            cost,
            True,
        )
        if not counted:
            return t, IMPOSSIBLE
        counts.changed[pair] = True
        counts.wish[0] += settle_step(
            ledger,
            plan,
            rules,
            counts.pair_visits,
            pending,
            course,
            promise,
            seen.rewards[t],
            cost,
            pair,
            state,
            next_state,
        )
        if surprising(counts, pair, seen.rewards[t], cost):
            return t + 1, SURPRISING
        if counts.wish[0] >= 1.0:
            return t + 1, PLAN_AGAIN
    return last, ALL_STEPS


@compiled
def live_again(
    ledger: Ledger,
    plan: Plan,
    rules: Rules,
    counts: Counts,
    promise: FloatArray,
    memory: IntArray,
    course: Course,
    pending: Pending,
    rng: Any,
    seen: Record,
    first: int,
    last: int,
) -> tuple[int, int]:
    """Live steps ``first`` to ``last`` of ``seen``; where it stopped, and why.

    At a step that differs the agent has drawn its number and decided, and nothing more.
    """
    return _live_again(
        ledger,
        plan,
        rules,
        counts,
        promise,
        memory,
        course,
        pending,
        rng,
        seen,
        first,
        last,
        np.empty(promise.size),
    )
