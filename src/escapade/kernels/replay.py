"""A recorded lifetime lived again, between two plans: decide, compare, conclude.

The kernels are those of the lifetime itself (:mod:`escapade.kernels.lifetime`), but the
outcome of each step is read from the record instead of drawn from a world.  So an agent
comes to where the recorded one was, or it is seen at which step the record says
something that the agent would not have said.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from escapade.kernels.compilation import compiled, natural, uncounted
from escapade.kernels.evidence import find_entry
from escapade.kernels.life import GOES_ON, IMPOSSIBLE, conclude, life_in, select
from escapade.kernels.lifetime import record_in

__all__ = ["DIFFERS", "live_again"]

DIFFERS = 4
"""Why the loop stopped, beside what a step leaves to be done."""


@uncounted
def _live_again(
    life_table: Any,
    record_table: Any,
    channels: tuple[int, ...],
    rng: Any,
    first: int,
    last: int,
    learns: bool,
) -> tuple[int, int, int]:
    """See :func:`live_again`."""
    life = life_in(life_table, channels)
    seen = record_in(record_table, channels)
    pair = -1
    for step in range(first, last):
        t = natural(step)
        state = natural(np.int64(seen.states[t]))
        next_state = natural(np.int64(seen.states[t + 1]))
        pair, phase, reason = select(life, state, rng.random())
        same = (
            life.action[pair] == seen.actions[t]
            and phase == seen.phases[t]
            and reason == seen.reasons[t]
        )
        for k in range(len(channels)):
            same = same and life.promise[k] == seen.promise[t, k]
            same = same and life.ledger.w[k, state] == seen.reserved[t, k]
            life.paid[k] = seen.costs[t, k]
        if not same:
            return t, DIFFERS, pair
        why = conclude(
            life,
            pair,
            find_entry(life.counts.row_ptr, life.counts.successor, pair, next_state),
            state,
            next_state,
            seen.rewards[t],
            learns,
        )
        if why != GOES_ON:
            return (t if why == IMPOSSIBLE else t + 1), why, pair
    return last, GOES_ON, pair


@compiled
def live_again(
    life_table: Any,
    record_table: Any,
    channels: tuple[int, ...],
    rng: Any,
    first: int,
    last: int,
    learns: bool,
) -> tuple[int, int, int]:
    """Live recorded steps ``first`` to ``last``; where it stopped, why, which pair.

    At a step that differs the agent has drawn its number and decided, and nothing more.
    """
    return _live_again(life_table, record_table, channels, rng, first, last, learns)
