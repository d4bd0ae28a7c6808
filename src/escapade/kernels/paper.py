"""Algorithm 1, corrected: explore or exploit, wander, escape, return; in that order.

The course of a life has four stages.  In known states a *trajectory* of T steps follows
the exploring or the exploiting policy.  An unknown state ends it: there the agent
*wanders*, taking the action it took least, as long as the test below lets it; then it
*escapes*, and does so until a known state is reached.  After that it *rests*: T steps
of safe return.

The test is asked before every wandering action, of that action.  With d' left to spend
and ``Ĉ`` the worst-case cost of escape, 0 in known states,

====================  ==============================================================
test                  the action is taken if
====================  ==============================================================
corrected             ``c_max + γ max Ĉ(s') <= d'`` over every possible successor
in expectation        ``c_max + γ max_P P·Ĉ <= d'``; unsafe
as printed            ``C(p_t) + γ^t max_a max_P P·Ĉ < d' − c_max`` after the first
                      step, with d' as it was on entering; unsafe
====================  ==============================================================

On entering, ``d' = b − γ d_s`` where b is the promise, which is the paper's minimum
over all past times wherever costs can be bounded path by path; after a step of cost c
it is ``min(d − γ d_s, (d' − c)/γ)``.

Under the corrected test nothing is played that the ledger would not allow; where it
refuses, the fallback is played, and counted as a refusal.  The other two tests stand
alone, so that what they do can be seen.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from escapade.kernels.compilation import inlined, uncounted
from escapade.kernels.ledger import (
    AS_PLANNED,
    ESCAPE,
    EXPLOIT,
    EXPLORE,
    LEAST_VISITED,
    NOT_AFFORDABLE,
    PATHWISE,
    RETURN,
    WANDER,
    Ledger,
    Pending,
    Plan,
    choose_rules,
    decide,
    note_pair,
    pairs_of,
    play_mixture,
    settle,
    wish_to_plan,
)
from escapade.typing import BoolArray, FloatArray, IntArray

__all__ = [
    "AS_PRINTED",
    "ATTEMPTS",
    "CORRECTED",
    "ENTRIES",
    "FINISHED",
    "IN_EXPECTATION_ONLY",
    "NO_RULES",
    "OVERDRAWN",
    "REFUSALS",
    "Course",
    "Rules",
    "begin",
    "choose",
    "settle_step",
]

CORRECTED, IN_EXPECTATION_ONLY, AS_PRINTED = range(3)
"""Tests of wandering."""

TRAJECTORY, WANDERING, ESCAPING, RESTING = range(4)
"""Stages."""

(
    STAGE,
    LEFT,
    EXPLORING,
    ATTEMPTS,
    ENTRIES,
    REFUSALS,
    OVERDRAWN,
    FINISHED,
    OWED,
) = range(9)
"""Places among the counters."""

N_COUNTERS = 9

ESCAPES, RESTS = 5, 6
"""Reasons, beside those of the ledger; :mod:`escapade.agent.phases` has the words."""


class Rules(NamedTuple):
    """What Algorithm 1 reads between two plans; nothing here is written to.

    ``on`` says whether the algorithm is in force at all, ``test`` which test lets it
    wander.  ``known``, ``explores`` are masks ``[S]``: the known states, and those from
    which a trajectory explores.  ``enough`` is ``[pairs]``, the visits after which a
    pair was sampled enough.  ``explore``, ``exploit`` and ``escape`` are
    ``[S, pairs of a state]``, the chances of each pair.

    ``worst`` and ``mean`` are ``[K, pairs]``, the left sides of the first two tests,
    and ``ahead`` ``[K, S]`` is ``max_a max_P P·Ĉ``.  ``reserve``, ``room`` and
    ``rested`` are ``[K]``: ``γ d_s``, the largest d', and the promise that ends a
    return early; ``nothing`` is ``[K]`` zeros.

    ``horizon`` and ``rest`` are the steps of a trajectory and of a return;
    ``always_rests`` makes a return follow every trajectory.  Where the algorithm is not
    on, ``plans_escape`` says that ``escape`` is played in place of the fallback, in
    unknown states and where the ledger allows it.
    """

    on: bool
    test: int
    known: BoolArray
    explores: BoolArray
    enough: IntArray
    explore: FloatArray
    exploit: FloatArray
    escape: FloatArray
    worst: FloatArray
    mean: FloatArray
    ahead: FloatArray
    reserve: FloatArray
    room: FloatArray
    rested: FloatArray
    nothing: FloatArray
    horizon: int
    rest: int
    always_rests: bool
    plans_escape: bool


_MASK: BoolArray = np.zeros(0, dtype=np.bool_)
_NUMBERS: FloatArray = np.zeros(0)
_TABLE: FloatArray = np.zeros((0, 0))

NO_RULES = Rules(
    on=False,
    test=CORRECTED,
    known=_MASK,
    explores=_MASK,
    enough=np.zeros(0, dtype=np.int64),
    explore=_TABLE,
    exploit=_TABLE,
    escape=_TABLE,
    worst=_TABLE,
    mean=_TABLE,
    ahead=_TABLE,
    reserve=_NUMBERS,
    room=_NUMBERS,
    rested=_NUMBERS,
    nothing=_NUMBERS,
    horizon=0,
    rest=0,
    always_rests=False,
    plans_escape=False,
)
"""Where Algorithm 1 is not in force."""


class Course(NamedTuple):
    """Where a life stands in Algorithm 1; written at every step.

    ``counters`` is ``[9]``: the stage, the steps that are left of it, whether
    the trajectory explores; then how many explorations were begun, unknown states
    entered, plans refused by the ledger, promises overdrawn, trajectories finished; and
    whether the present return must not end early, as a refusal began it.

    ``budget`` and ``spent`` are ``[K]``: d' and the discounted cost since unknown
    states were entered.  ``power`` is ``[2]``: the discount since then, and since the
    trajectory began.  ``earned`` is ``[2]`` and ``paid`` ``[2, K]``: the discounted
    sums of this trajectory, and the largest of any that was finished.
    """

    counters: IntArray
    budget: FloatArray
    spent: FloatArray
    power: FloatArray
    earned: FloatArray
    paid: FloatArray


def begin(n_costs: int) -> Course:
    """Return the course of a life that has not begun."""
    return Course(
        counters=np.zeros(N_COUNTERS, dtype=np.int64),
        budget=np.zeros(n_costs),
        spent=np.zeros(n_costs),
        power=np.ones(2),
        earned=np.zeros(2),
        paid=np.zeros((2, n_costs)),
    )


@uncounted
def _rested(ledger: Ledger, rules: Rules, promise: FloatArray) -> bool:
    """Tell whether the promise is such that a return may end early."""
    rested = True
    for k in range(len(ledger.channels)):
        rested = rested and promise[k] >= rules.rested[k]
    return rested


@uncounted
def _begins(
    ledger: Ledger, rules: Rules, promise: FloatArray, course: Course, state: int
) -> bool:
    """Tell whether a trajectory begins in ``state``."""
    if not rules.known[state]:
        return False
    stage = course.counters[STAGE]
    left = course.counters[LEFT]
    if stage == TRAJECTORY:
        return bool(left == 0 and not (rules.always_rests and rules.rest > 0))
    if stage == RESTING and left == 0:
        return True
    if stage == RESTING and course.counters[OWED] == 1:
        return False
    return rules.rest == 0 or _rested(ledger, rules, promise)


@uncounted
def _move_on(
    ledger: Ledger, rules: Rules, promise: FloatArray, course: Course, state: int
) -> None:
    """Go over to the stage that ``state`` calls for."""
    counters = course.counters
    stage = counters[STAGE]
    if not rules.known[state]:
        if stage not in (WANDERING, ESCAPING):
            counters[STAGE] = WANDERING
            counters[LEFT] = 0
            counters[OWED] = 0
            counters[ENTRIES] += 1
            course.power[0] = 1.0
            for k in range(len(ledger.channels)):
                course.spent[k] = 0.0
                course.budget[k] = min(promise[k] - rules.reserve[k], rules.room[k])
        return
    if _begins(ledger, rules, promise, course, state):
        counters[STAGE] = TRAJECTORY
        counters[OWED] = 0
        counters[LEFT] = rules.horizon
        counters[EXPLORING] = 1 if rules.explores[state] else 0
        counters[ATTEMPTS] += counters[EXPLORING]
        course.power[1] = 1.0
        course.earned[0] = 0.0
        for k in range(len(ledger.channels)):
            course.paid[0, k] = 0.0
    elif stage in (WANDERING, ESCAPING) or (
        stage == TRAJECTORY and counters[LEFT] == 0
    ):
        counters[STAGE] = RESTING
        counters[LEFT] = rules.rest


@uncounted
def _may_wander(
    ledger: Ledger, rules: Rules, promise: FloatArray, course: Course, pair: int
) -> bool:
    """Ask the test, and under the corrected one the ledger, of a wandering action."""
    terms = rules.worst if rules.test == CORRECTED else rules.mean
    within = True
    for k in range(len(ledger.channels)):
        within = within and terms[k, pair] <= course.budget[k]
    if rules.test == CORRECTED:
        for k in range(len(ledger.channels)):
            within = within and ledger.q[k, pair] <= promise[k]
        within = within and ledger.allowed[pair]
    return bool(within)


@uncounted
def _goes_on_as_printed(
    ledger: Ledger, rules: Rules, course: Course, state: int
) -> bool:
    """Ask the printed test, which is left out before the first step."""
    if course.power[0] == 1.0:
        return True
    within = True
    for k in range(len(ledger.channels)):
        ahead = course.spent[k] + course.power[0] * rules.ahead[k, state]
        within = within and ahead < course.budget[k] - ledger.cost_max[k]
    return bool(within)


@uncounted
def _wander_on(
    ledger: Ledger,
    rules: Rules,
    visits: IntArray,
    promise: FloatArray,
    course: Course,
    state: int,
) -> int:
    """Return the least visited pair that the test lets pass, or −1."""
    printed = rules.test == AS_PRINTED
    if printed and not _goes_on_as_printed(ledger, rules, course, state):
        return -1
    best = -1
    first, last = pairs_of(ledger, state)
    for pair in range(first, last):
        if best >= 0 and visits[pair] >= visits[best]:
            continue
        if not printed:
            if visits[pair] >= rules.enough[pair]:
                continue
            if not _may_wander(ledger, rules, promise, course, pair):
                continue
        best = pair
    return best


@uncounted
def _draw(
    ledger: Ledger,
    rules: Rules,
    weight: FloatArray,
    promise: FloatArray,
    state: int,
    u: float,
    pending: Pending,
) -> int:
    """Return the pair that a policy draws; −1 if the ledger refuses the policy here."""
    if rules.test == CORRECTED:
        return play_mixture(ledger, weight, rules.nothing, promise, state, u, pending)
    drawn, total = -1, 0.0
    first, last = pairs_of(ledger, state)
    for pair in range(first, last):
        chance = weight[pair - first]
        if chance > 0.0:
            drawn = pair
            total += chance
            if u < total:
                break
    if drawn >= 0:
        note_pair(ledger, drawn, pending)
    return drawn


@uncounted
def _fix_rules(
    ledger: Ledger, rules: Rules, promise: FloatArray, pending: Pending
) -> None:
    """Choose how the promise goes on; without the ledger's check, path by path."""
    choose_rules(ledger, promise, pending)
    if rules.test != CORRECTED:
        for k in range(len(ledger.channels)):
            pending.rule[k] = PATHWISE


@uncounted
def _decide(
    ledger: Ledger,
    rules: Rules,
    visits: IntArray,
    promise: FloatArray,
    course: Course,
    state: int,
    u: float,
    pending: Pending,
) -> tuple[int, int, int]:
    """Return pair, phase and reason by Algorithm 1."""
    counters = course.counters
    _move_on(ledger, rules, promise, course, state)
    if counters[STAGE] == WANDERING:
        pair = _wander_on(ledger, rules, visits, promise, course, state)
        if pair >= 0:
            note_pair(ledger, pair, pending)
            _fix_rules(ledger, rules, promise, pending)
            return pair, WANDER, LEAST_VISITED
        counters[STAGE] = ESCAPING
    pair, phase, reason = -1, ESCAPE, ESCAPES
    if counters[STAGE] == ESCAPING:
        weight = rules.escape[state]
        pair = _draw(ledger, rules, weight, promise, state, u, pending)
    elif counters[STAGE] == TRAJECTORY:
        phase, reason = EXPLOIT, AS_PLANNED
        weight = rules.exploit[state]
        if counters[EXPLORING] == 1:
            phase, weight = EXPLORE, rules.explore[state]
        pair = _draw(ledger, rules, weight, promise, state, u, pending)
    if pair >= 0:
        _fix_rules(ledger, rules, promise, pending)
        return pair, phase, reason
    phase, reason = RETURN, RESTS
    if counters[STAGE] != RESTING:
        reason = NOT_AFFORDABLE
        counters[REFUSALS] += 1
        phase = ESCAPE
        if counters[STAGE] == TRAJECTORY:
            phase = RETURN
            counters[STAGE] = RESTING
            counters[LEFT] = max(rules.rest, 1)
            counters[OWED] = 1
    pair = ledger.fallback[state]
    note_pair(ledger, pair, pending)
    _fix_rules(ledger, rules, promise, pending)
    return pair, phase, reason


@uncounted
def _escape_instead(
    ledger: Ledger,
    rules: Rules,
    promise: FloatArray,
    state: int,
    u: float,
    pending: Pending,
    pair: int,
) -> int:
    """Return the pair that the planned escape draws, or ``pair`` if it is refused."""
    weight = rules.escape[state]
    drawn = play_mixture(ledger, weight, rules.nothing, promise, state, u, pending)
    if drawn < 0:
        drawn = pair
        note_pair(ledger, pair, pending)
    choose_rules(ledger, promise, pending)
    return drawn


@inlined
def choose(
    ledger: Ledger,
    plan: Plan,
    rules: Rules,
    visits: IntArray,
    promise: FloatArray,
    memory: IntArray,
    course: Course,
    state: int,
    u: float,
    pending: Pending,
) -> tuple[int, int, int]:
    """Return pair, phase and reason, by Algorithm 1 if it is on, else as planned.

    Arguments as for :func:`escapade.kernels.ledger.decide`.
    """
    if rules.on:
        return _decide(ledger, rules, visits, promise, course, state, u, pending)
    pair, phase, reason = decide(
        ledger, plan, visits, promise, memory, state, u, pending
    )
    if rules.plans_escape and phase == ESCAPE:
        pair = _escape_instead(ledger, rules, promise, state, u, pending, pair)
    return pair, phase, reason


@uncounted
def _note_overdraft(
    ledger: Ledger,
    course: Course,
    promise: FloatArray,
    cost: FloatArray,
    next_state: int,
) -> None:
    """Count a step after which the promise cannot be kept; before it is settled."""
    for k in range(len(ledger.channels)):
        if promise[k] - cost[k] < ledger.gamma * ledger.w[k, next_state]:
            course.counters[OVERDRAWN] += 1
            return


@uncounted
def _finish(ledger: Ledger, course: Course) -> None:
    """Keep the sums of a trajectory that ends here, if they are the largest."""
    course.counters[FINISHED] += 1
    course.earned[1] = max(course.earned[1], course.earned[0])
    for k in range(len(ledger.channels)):
        course.paid[1, k] = max(course.paid[1, k], course.paid[0, k])


@uncounted
def _follow_course(
    ledger: Ledger,
    rules: Rules,
    visits: IntArray,
    course: Course,
    promise: FloatArray,
    reward: float,
    cost: FloatArray,
    state: int,
    next_state: int,
) -> float:
    """Note what a step earned and cost; return the wish for a plan that it raises.

    ``promise`` is the one after the step, ``[K]``.  A plan is due where a trajectory
    begins, and as soon as a state has become known.
    """
    counters = course.counters
    stage = counters[STAGE]
    if stage in (WANDERING, ESCAPING):
        for k in range(len(ledger.channels)):
            course.spent[k] += course.power[0] * cost[k]
            if rules.test != AS_PRINTED:
                after = (course.budget[k] - cost[k]) / max(ledger.gamma, 1e-300)
                course.budget[k] = min(after, rules.room[k])
        course.power[0] *= ledger.gamma
    else:
        counters[LEFT] -= 1
    if stage == TRAJECTORY:
        course.earned[0] += course.power[1] * reward
        for k in range(len(ledger.channels)):
            course.paid[0, k] += course.power[1] * cost[k]
        course.power[1] *= ledger.gamma
        if counters[LEFT] == 0:
            _finish(ledger, course)
    if not rules.known[state]:
        sampled = True
        first, last = pairs_of(ledger, state)
        for pair in range(first, last):
            sampled = sampled and visits[pair] >= rules.enough[pair]
        if sampled:
            return 1.0
    return 1.0 if _begins(ledger, rules, promise, course, next_state) else 0.0


@inlined
def settle_step(
    ledger: Ledger,
    plan: Plan,
    rules: Rules,
    visits: IntArray,
    pending: Pending,
    course: Course,
    promise: FloatArray,
    reward: float,
    cost: FloatArray,
    pair: int,
    state: int,
    next_state: int,
) -> float:
    """Settle the promise and the course after a step; return the wish for a plan.

    ``visits``: ``[pairs]``, the step included; ``cost``: ``[K]``, as charged.
    """
    if rules.on and rules.test != CORRECTED:
        _note_overdraft(ledger, course, promise, cost, next_state)
    settle(ledger, pending, cost, next_state, promise)
    wish = wish_to_plan(ledger, plan, visits, pair, state)
    if rules.on:
        wish += _follow_course(
            ledger, rules, visits, course, promise, reward, cost, state, next_state
        )
    return wish
