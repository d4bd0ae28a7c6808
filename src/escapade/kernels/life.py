"""One step of a life: what it reads and writes, how it is decided and concluded.

Asking and telling, the compiled lifetime and the replay of a record take their steps by
:func:`escapade.kernels.paper.choose` and :func:`conclude`, and differ in where the
outcome comes from.  What they read and write between two plans is a :class:`Life`; it
is handed to compiled code as one (:mod:`escapade.kernels.parcels`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from escapade.kernels.compilation import inlined, natural, uncounted
from escapade.kernels.evidence import count, find_entry
from escapade.kernels.ledger import Ledger, Pending, Plan
from escapade.kernels.paper import CORRECTED, Course, Rules, choose, settle_step
from escapade.kernels.parcels import (
    CHANNELS,
    FLAG,
    INDICES,
    INTEGER,
    INTEGERS,
    MASK,
    NUMBER,
    NUMBERS,
    TABLE,
    Layout,
)
from escapade.typing import BoolArray, FloatArray, IndexArray, IntArray

__all__ = [
    "COST",
    "GOES_ON",
    "IMPOSSIBLE",
    "LIFE",
    "NOTHING",
    "PLAN_AGAIN",
    "REWARD",
    "SURPRISING",
    "Counts",
    "Life",
    "answer",
    "conclude",
    "hear",
    "life_in",
    "select",
]

GOES_ON, PLAN_AGAIN, IMPOSSIBLE, SURPRISING = range(4)
"""What a step leaves to be done."""

NOTHING, COST, REWARD = range(3)
"""What is missing of an outcome, and all before it."""


class Counts(NamedTuple):
    """The agent's evidence, in its own numbering, and when to plan again.

    Shapes as in :func:`escapade.kernels.evidence.record`; ``changed`` is ``[pairs]``,
    which pairs were visited since the last plan; ``wish`` is ``[1]``, and at 1 another
    plan is made.  What single samples may surely be is between ``least_reward`` and
    ``most_reward``, ``[pairs]``, and ``least_cost`` and ``most_cost``, ``[K, pairs]``.
    """

    row_ptr: IntArray
    successor: IndexArray
    visits: IntArray
    pair_visits: IntArray
    reward_sum: FloatArray
    cost_count: IntArray
    cost_sum: FloatArray
    cost_square: FloatArray
    changed: BoolArray
    wish: FloatArray
    least_reward: FloatArray
    most_reward: FloatArray
    least_cost: FloatArray
    most_cost: FloatArray


class Life(NamedTuple):
    """All that an agent reads and writes between two plans.

    ``action`` is ``[pairs]``, ``promise`` ``[K]``, ``memory`` ``[1]``.  Of the step
    that is being concluded ``paid`` ``[K]`` is the cost that is charged, and
    ``missing`` ``[1]`` says what of its outcome was not seen: nothing, the cost, or
    the reward as well.
    """

    ledger: Ledger
    plan: Plan
    rules: Rules
    counts: Counts
    action: IndexArray
    promise: FloatArray
    memory: IntArray
    course: Course
    pending: Pending
    paid: FloatArray
    missing: IntArray


LIFE = Layout(
    Life,
    ledger=Layout(
        Ledger,
        channels=CHANNELS,
        state_ptr=INTEGERS,
        w=TABLE,
        q=TABLE,
        ahead=TABLE,
        reach=TABLE,
        allowed=MASK,
        fallback=INTEGERS,
        cap=NUMBERS,
        cost_max=NUMBERS,
        gamma=NUMBER,
    ),
    plan=Layout(
        Plan,
        known=MASK,
        home=MASK,
        goal=INTEGERS,
        score=NUMBERS,
        exploring=MASK,
        node_ptr=INTEGERS,
        level=NUMBERS,
        share=NUMBERS,
        grid=TABLE,
        weight=TABLE,
        reserve=NUMBERS,
        turn_home=NUMBERS,
        turn_back=NUMBERS,
        recharge=NUMBERS,
        by_level=FLAG,
        watch=INTEGERS,
        urgency=NUMBERS,
    ),
    rules=Layout(
        Rules,
        on=FLAG,
        test=INTEGER,
        known=MASK,
        explores=MASK,
        enough=INTEGERS,
        explore=TABLE,
        exploit=TABLE,
        escape=TABLE,
        worst=TABLE,
        mean=TABLE,
        ahead=TABLE,
        reserve=NUMBERS,
        room=NUMBERS,
        rested=NUMBERS,
        nothing=NUMBERS,
        horizon=INTEGER,
        rest=INTEGER,
        always_rests=FLAG,
        plans_escape=FLAG,
    ),
    counts=Layout(
        Counts,
        row_ptr=INTEGERS,
        successor=INDICES,
        visits=INTEGERS,
        pair_visits=INTEGERS,
        reward_sum=NUMBERS,
        cost_count=INTEGERS,
        cost_sum=TABLE,
        cost_square=TABLE,
        changed=MASK,
        wish=NUMBERS,
        least_reward=NUMBERS,
        most_reward=NUMBERS,
        least_cost=TABLE,
        most_cost=TABLE,
    ),
    action=INDICES,
    promise=NUMBERS,
    memory=INTEGERS,
    course=Layout(
        Course,
        counters=INTEGERS,
        budget=NUMBERS,
        spent=NUMBERS,
        power=NUMBERS,
        earned=NUMBERS,
        paid=TABLE,
    ),
    pending=Layout(
        Pending, rule=INTEGERS, q=NUMBERS, ahead=NUMBERS, reach=NUMBERS, shift=NUMBERS
    ),
    paid=NUMBERS,
    missing=INTEGERS,
)

life_in = LIFE.reader()


@inlined
def _strays(ledger: Ledger, state: int, next_state: int) -> bool:
    """Tell whether a step left the promisable states, which the ledger rules out."""
    return bool(ledger.w[0, state] < np.inf and ledger.w[0, next_state] == np.inf)


@inlined
def _surprising(life: Life, pair: int, reward: float, missing: int) -> bool:
    """Tell whether what was told at birth rules out a sample that was seen."""
    counts = life.counts
    fits = True
    if missing < REWARD:
        fits = counts.least_reward[pair] <= reward <= counts.most_reward[pair]
    if missing < COST:
        for k in range(len(life.ledger.channels)):
            least, most = counts.least_cost[k, pair], counts.most_cost[k, pair]
            fits = fits and least <= life.paid[k] <= most
    return not fits


@inlined
def conclude(
    life: Life,
    pair: int,
    entry: int,
    state: int,
    next_state: int,
    reward: float,
    learns: bool,
) -> int:
    """Count a step and settle the promise; return what is to be done then.

    ``entry`` is that of ``next_state`` in the row of ``pair``, −1 if it has none; the
    cost that is charged is ``life.paid``.  A successor that is impossible, or leaves
    the promisable states, is not counted, and the promise not settled.
    """
    counts, channels = life.counts, life.ledger.channels
    missing = life.missing[0]
    if entry < 0:
        return IMPOSSIBLE
    if life.rules.test == CORRECTED and _strays(life.ledger, state, next_state):
        return IMPOSSIBLE
    if learns:
        count(
            counts.visits,
            counts.pair_visits,
            counts.reward_sum,
            counts.cost_count,
            counts.cost_sum,
            counts.cost_square,
            entry,
            pair,
            reward,
            life.paid,
            missing < COST,
            channels,
        )
        counts.changed[pair] = True
    counts.wish[0] += settle_step(
        life.ledger,
        life.plan,
        life.rules,
        counts.pair_visits,
        life.pending,
        life.course,
        life.promise,
        reward,
        life.paid,
        pair,
        state,
        next_state,
    )
    if _surprising(life, pair, reward, missing):
        return SURPRISING
    return PLAN_AGAIN if counts.wish[0] >= 1.0 else GOES_ON


@inlined
def select(life: Life, state: int, u: float) -> tuple[int, int, int]:
    """Return pair, phase and reason; ``u`` is one uniform number in [0, 1)."""
    return choose(
        life.ledger,
        life.plan,
        life.rules,
        life.counts.pair_visits,
        life.promise,
        life.memory,
        life.course,
        state,
        u,
        life.pending,
    )


@uncounted
def answer(
    table: Any, channels: tuple[int, ...], state: int, u: float
) -> tuple[int, int, int]:
    """Return pair, phase and reason in the life that ``table`` holds."""
    return select(life_in(table, channels), natural(state), u)


@uncounted
def hear(
    table: Any,
    channels: tuple[int, ...],
    pair: int,
    state: int,
    next_state: int,
    reward: float,
    learns: bool,
) -> int:
    """Conclude a step in the life that ``table`` holds; see :func:`conclude`."""
    life = life_in(table, channels)
    entry = find_entry(life.counts.row_ptr, life.counts.successor, pair, next_state)
    return conclude(
        life,
        natural(pair),
        entry,
        natural(state),
        natural(next_state),
        reward,
        learns,
    )
