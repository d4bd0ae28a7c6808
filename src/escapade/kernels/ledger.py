"""The promise ledger: one check before every action, one new promise after it.

``b_k`` is the promise of channel ``k``: the expected discounted cost from now on, given
all that was seen, stays within it.  For a pair, or a mixture of pairs, let

- ``q``      bound the expected cost of this step and of the fallback after it,
- ``ahead``  bound ``γ max_P P·w``, the fallback's share of that,
- ``reach``  be ``γ max w`` over every successor that is possible.

A pair may be played if all its possible successors are promisable and ``q <= b``.  What
is promised next follows one of three rules, chosen *before* cost and successor are
seen, channel by channel:

====  ==================  ============================  ===========================
rule  name                needs                         next promise
====  ==================  ============================  ===========================
R2    pathwise            ``b >= c_max + reach``        ``(b − c) / γ``
R1    cost refund         ``b >= c_max + ahead``        ``w(s') + (b − c − ahead)/γ``
R0    in expectation      nothing                       ``w(s') + (b − q) / γ``
====  ==================  ============================  ===========================

Each satisfies ``E[c + γ b'] <= b`` under every kernel of the set and ``b' >= w(s')``,
so the promise can be kept for ever; the cap ``d`` only lowers it.  In floating point
the next promise is rounded down, and R1 and R2 are chosen with a margin above rounding,
so that ``w(s') <= b' <= d`` holds exactly.

Where actions are drawn, ``q`` of the check and of R0 is the mixture's.  The coin's own
luck is no matter of the promise: to the action ``a`` that is drawn belongs
``b_a = b − q + q_a``, and as that is ``b`` on average, and at least ``q_a``, R1 and R2
may go on from it.  What it lacks of ``b`` is called ``shift``.

:func:`decide` settles what to do, and nothing else does: the interpreted loop, ask/tell
and the compiled lifetime all call it.
"""

from __future__ import annotations

from typing import NamedTuple

from escapade.kernels.compilation import inlined, natural
from escapade.typing import BoolArray, FloatArray, IntArray

__all__ = [
    "ESCAPE",
    "EXPLOIT",
    "EXPLORE",
    "IN_EXPECTATION",
    "PATHWISE",
    "REFUND",
    "RETURN",
    "WAIT",
    "WANDER",
    "Ledger",
    "Pending",
    "Plan",
    "decide",
    "note_pair",
    "pairs_of",
    "play_mixture",
    "settle",
    "wish_to_plan",
]

EXPLOIT, EXPLORE, WANDER, ESCAPE, RETURN, WAIT = range(6)
"""Phases."""

IN_EXPECTATION, REFUND, PATHWISE = range(3)
"""Rules R0, R1 and R2."""

(
    AS_PLANNED,
    LEAST_VISITED,
    RECHARGING,
    NOT_AFFORDABLE,
    NOTHING_TO_DO,
) = range(5)
"""Reasons; :mod:`escapade.agent.phases` puts them into words."""

SETTING_OUT, HOME, VENTURING = range(3)
"""What is remembered from one decision to the next.

Setting out ends with earning, or with a wanted visit at which the promise is not low.
"""

_ROUNDING = 2.0**-50
"""Above what one subtraction, division or short sum can lose, relative to its terms."""

_MARGIN = 1.0 + 2.0**-40

_SPARE = 2.0**-40
"""What R1 and R2 leave besides, relative to the terms, where an action was drawn."""

_TINY = 1e-290
"""What is not handed on: near the least doubles, shares no longer cover rounding."""


class Ledger(NamedTuple):
    """What holds between two plans; nothing here is written to.

    ``state_ptr`` is ``[S + 1]``; ``w`` is ``[K, S]``, infinite outside the promisable
    states; ``q``, ``ahead`` and ``reach`` are ``[K, pairs]``; ``allowed`` is a mask of
    the pairs whose every possible successor is promisable; ``fallback`` is the pair of
    the fallback policy in each state; ``cap`` and ``cost_max`` are ``[K]``.

    ``channels`` is ``(0, ..., K − 1)``: a tuple's length is known when kernels are
    compiled, so that loops over it cost nothing.
    """

    channels: tuple[int, ...]
    state_ptr: IntArray
    w: FloatArray
    q: FloatArray
    ahead: FloatArray
    reach: FloatArray
    allowed: BoolArray
    fallback: IntArray
    cap: FloatArray
    cost_max: FloatArray
    gamma: float


class Plan(NamedTuple):
    """Where to go; nothing here can break a promise.

    ``known`` and ``home`` are masks of the states that are known, and of those where
    the fallback may be waited out; ``goal`` is ``[pairs]``, the visits that each pair
    should get; ``score`` is ``[pairs]`` and breaks ties among pairs visited equally
    often; ``exploring`` marks the states in which following the policy is exploration.

    The policy has nodes: those of state ``s`` are ``node_ptr[s]`` to ``node_ptr[s+1]``,
    each with a ``level``, in rising order; the last node whose level is at most the sum
    of the promises, each times its ``share`` ``[K]``, is in force, and
    ``weight[node, i]`` is the chance of the state's ``i``-th pair.  A stationary policy
    has one node a state.  If ``grid`` ``[K, G]`` has levels, in rising order for each
    promise, a state with more than one node has one for every combination of them, the
    last channel's changing fastest, and the levels at or below the promises decide.

    ``reserve``, ``turn_home``, ``turn_back`` and ``recharge`` are ``[K]``: what actions
    other than the fallback's must leave of the promise, the promise below which to turn
    home, the one below which to turn back before anything wanted was had, and the one
    up to which to wait at home.  A promise that is spent on the way alone buys nothing:
    without the second limit, what lies too far out would be set out for again and
    again, and never be reached.  What was reached on a low promise is made use of down
    to the second limit as well.  ``by_level`` says that where nothing is explored the
    policy minds the promise itself; there the agent neither turns home nor waits.

    ``watch`` is ``[pairs]``, the visits at which evidence has grown enough to matter;
    ``urgency`` is ``[2]``: what a state that wants no more visits, and what a pair that
    reached its watch, add to the wish for another plan.
    """

    known: BoolArray
    home: BoolArray
    goal: IntArray
    score: FloatArray
    exploring: BoolArray
    node_ptr: IntArray
    level: FloatArray
    share: FloatArray
    grid: FloatArray
    weight: FloatArray
    reserve: FloatArray
    turn_home: FloatArray
    turn_back: FloatArray
    recharge: FloatArray
    by_level: bool
    watch: IntArray
    urgency: FloatArray


class Pending(NamedTuple):
    """What a decision fixes for the promise after it, before its outcome is seen.

    The ``rule`` of each channel; ``q`` of what is played, that of the mixture if
    actions are drawn; ``ahead`` and ``reach`` of the pair, and ``shift``, by how much
    its own ``q`` is less than the mixture's, 0 if nothing is drawn.  All ``[K]``.
    """

    rule: IntArray
    q: FloatArray
    ahead: FloatArray
    reach: FloatArray
    shift: FloatArray


@inlined
def _leaves(
    ledger: Ledger, k: int, q: float, promise: FloatArray, left: FloatArray, state: int
) -> bool:
    """Tell whether ``q`` leaves enough of one promise.

    With several promises, one that is low keeps the agent only from what costs more of
    it than the fallback does.
    """
    enough = q + left[k] <= promise[k]
    if len(ledger.channels) > 1:
        enough = enough or q <= ledger.w[k, state]
    return bool(enough)


@inlined
def pairs_of(ledger: Ledger, state: int) -> tuple[int, int]:
    """Return the first pair of a state, and the one after its last."""
    return natural(ledger.state_ptr[state]), natural(ledger.state_ptr[state + 1])


@inlined
def affordable(
    ledger: Ledger, pair: int, promise: FloatArray, left: FloatArray, state: int
) -> bool:
    """``promise``, ``left``: ``[K]``; whether ``pair`` may be played and leave that."""
    within = ledger.allowed[pair]
    for k in range(len(ledger.channels)):
        within = within and _leaves(ledger, k, ledger.q[k, pair], promise, left, state)
    return bool(within)


@inlined
def note_pair(ledger: Ledger, pair: int, pending: Pending) -> None:
    """Write down the terms of a single pair."""
    for k in range(len(ledger.channels)):
        pending.q[k] = ledger.q[k, pair]
        pending.ahead[k] = ledger.ahead[k, pair]
        pending.reach[k] = ledger.reach[k, pair]
        pending.shift[k] = 0.0


@inlined
def _note_drawn(ledger: Ledger, pair: int, pending: Pending) -> None:
    """Write down the terms of the pair that was drawn, beside the mixture's ``q``."""
    for k in range(len(ledger.channels)):
        mean, own = pending.q[k], ledger.q[k, pair]
        pending.ahead[k] = ledger.ahead[k, pair]
        pending.reach[k] = ledger.reach[k, pair]
        pending.shift[k] = 0.0
        if mean != own:
            pending.shift[k] = mean - own + (mean + own) * _ROUNDING


@inlined
def _note_mixture(
    ledger: Ledger, first: int, last: int, weight: FloatArray, pending: Pending
) -> bool:
    """``weight``: the chance of each pair; False if one of them is not allowed.

    Writes down the mixture's ``q``.  The last pair that may be drawn gets whatever the
    others leave of 1, as it does when one is drawn; what rounding may have lost in the
    sum is added.
    """
    for k in range(len(ledger.channels)):
        pending.q[k] = 0.0
    final, left, terms = -1, 1.0, 0
    for place in range(natural(last - first)):
        chance = weight[natural(place)]
        pair = natural(first + place)
        if chance > 0.0:
            if not ledger.allowed[pair]:
                return False
            final, left, terms = pair, left - chance, terms + 1
            for k in range(len(ledger.channels)):
                pending.q[k] += chance * ledger.q[k, pair]
    if final < 0:
        return False
    if terms == 1 and left == 0.0:
        return True
    left = max(left, 0.0)
    up = 1.0 + (terms + 1) * _ROUNDING
    for k in range(len(ledger.channels)):
        pending.q[k] = (pending.q[k] + left * ledger.q[k, final]) * up
    return True


@inlined
def choose_rules(ledger: Ledger, promise: FloatArray, pending: Pending) -> None:
    """Fix the rule of every channel from what is known before the outcome."""
    for k in range(len(ledger.channels)):
        b, most, more = promise[k], ledger.cost_max[k], pending.shift[k]
        if more != 0.0:
            more += (b + abs(more)) * _SPARE
        if b >= (most + pending.reach[k]) * _MARGIN + more:
            pending.rule[k] = PATHWISE
        elif b >= (most + pending.ahead[k]) * _MARGIN + more:
            pending.rule[k] = REFUND
        else:
            pending.rule[k] = IN_EXPECTATION


@inlined
def settle(
    ledger: Ledger,
    pending: Pending,
    cost: FloatArray,
    next_state: int,
    promise: FloatArray,
) -> None:
    """``cost``: ``[K]`` as charged; turns ``promise`` into the next one, in place."""
    for k in range(len(ledger.channels)):
        b, w = promise[k], ledger.w[k, next_state]
        if ledger.gamma == 0.0:  # what comes later weighs nothing
            promise[k] = ledger.cap[k]
            continue
        spent, kept = pending.q[k], w
        if pending.rule[k] == REFUND:
            spent = cost[k] + pending.ahead[k] + pending.shift[k]
        elif pending.rule[k] == PATHWISE:
            spent, kept = cost[k] + pending.shift[k], 0.0
        spare = max(b * (1.0 - _ROUNDING) - spent - _TINY, 0.0)
        after = kept + spare / ledger.gamma * (1.0 - _ROUNDING)
        promise[k] = max(min(after, ledger.cap[k]), w)


@inlined
def _wander(
    ledger: Ledger, plan: Plan, visits: IntArray, promise: FloatArray, state: int
) -> int:
    """Return the least visited pair that wants visits and is affordable, or −1."""
    best = -1
    first, last = pairs_of(ledger, state)
    for each in range(first, last):
        pair = natural(each)
        if visits[pair] >= plan.goal[pair]:
            continue
        if not affordable(ledger, pair, promise, plan.reserve, state):
            continue
        if (
            best < 0
            or visits[pair] < visits[best]
            or (visits[pair] == visits[best] and plan.score[pair] > plan.score[best])
        ):
            best = pair
    return best


@inlined
def _onward(ledger: Ledger, plan: Plan, promise: FloatArray, state: int) -> int:
    """Return the pair that leads on soonest from a state with no plan, or −1."""
    best = -1
    if not plan.exploring[state]:
        return best
    first, last = pairs_of(ledger, state)
    for each in range(first, last):
        pair = natural(each)
        score = plan.score[pair]
        better = score > 0.0 if best < 0 else score > plan.score[best]
        if better and affordable(ledger, pair, promise, plan.reserve, state):
            best = pair
    return best


@inlined
def play_mixture(
    ledger: Ledger,
    weight: FloatArray,
    reserve: FloatArray,
    promise: FloatArray,
    state: int,
    u: float,
    pending: Pending,
) -> int:
    """``weight``: the chance of each pair of ``state``; return the one that is drawn.

    −1 if the mixture is not allowed, or would not leave ``reserve`` of the promise.
    """
    first, last = pairs_of(ledger, state)
    if not _note_mixture(ledger, first, last, weight, pending):
        return -1
    for k in range(len(ledger.channels)):
        if not _leaves(ledger, k, pending.q[k], promise, reserve, state):
            return -1
    drawn, total = -1, 0.0
    for place in range(natural(last - first)):
        chance = weight[natural(place)]
        pair = natural(first + place)
        if chance > 0.0:
            drawn = pair
            total += chance
            if u < total:
                break
    _note_drawn(ledger, natural(drawn), pending)
    return drawn


@inlined
def _node_of(ledger: Ledger, plan: Plan, promise: FloatArray, state: int) -> int:
    """Return the node in force in a state that has some."""
    node, end = natural(plan.node_ptr[state]), natural(plan.node_ptr[state + 1])
    n_levels = plan.grid.shape[1]
    if end - node > 1 and n_levels > 0:
        place = 0
        for k in range(len(ledger.channels)):
            low, high = 0, n_levels
            while high - low > 1:
                middle = (low + high) >> 1
                if plan.grid[k, middle] <= promise[k]:
                    low = middle
                else:
                    high = middle
            place = place * n_levels + low
        node += place
    elif end - node > 1:
        has = 0.0
        for k in range(len(ledger.channels)):
            has += plan.share[k] * promise[k]
        while end - node > 1:
            middle = (node + end) >> 1
            if plan.level[middle] <= has:
                node = middle
            else:
                end = middle
    found: int = natural(node)
    return found


@inlined
def _follow(
    ledger: Ledger,
    plan: Plan,
    promise: FloatArray,
    state: int,
    u: float,
    pending: Pending,
) -> int:
    """Return the pair that the policy draws, or −1 if it cannot be afforded here."""
    if plan.node_ptr[state] == plan.node_ptr[state + 1]:
        pair = _onward(ledger, plan, promise, state)
        if pair >= 0:
            note_pair(ledger, pair, pending)
        return pair
    node = _node_of(ledger, plan, promise, state)
    return play_mixture(
        ledger, plan.weight[node], plan.reserve, promise, state, u, pending
    )


@inlined
def wish_to_plan(
    ledger: Ledger, plan: Plan, visits: IntArray, pair: int, state: int
) -> float:
    """``visits``: ``[pairs]``; what a step with ``pair`` adds to the wish for a plan.

    A state that was wanted and is so no more counts at every step that is made there,
    as the plan knows no way on from it.
    """
    wish = 0.0
    if plan.exploring[state] and plan.node_ptr[state] == plan.node_ptr[state + 1]:
        wanted = False
        first, last = pairs_of(ledger, state)
        for each in range(first, last):
            other = natural(each)
            wanted = wanted or visits[other] < plan.goal[other]
        if not wanted:
            wish += plan.urgency[0]
    beyond = visits[pair] - plan.watch[pair]
    if beyond >= 0 and beyond % (plan.watch[pair] // 4 + 1) == 0:
        wish += plan.urgency[1]
    return wish


@inlined
def decide(
    ledger: Ledger,
    plan: Plan,
    visits: IntArray,
    promise: FloatArray,
    memory: IntArray,
    state: int,
    u: float,
    pending: Pending,
) -> tuple[int, int, int]:
    """Return pair, phase and reason; ``u`` is one uniform number in [0, 1).

    ``visits``: ``[pairs]``, ``promise``: ``[K]``, ``memory``: ``[1]``.  Writes what the
    next promise rests on into ``pending``, and whether to recharge into ``memory``.
    """
    low, lowest, full = False, False, True
    for k in range(len(ledger.channels)):
        low = low or promise[k] < plan.turn_home[k]
        lowest = lowest or promise[k] < plan.turn_back[k]
        full = full and promise[k] >= plan.recharge[k]
    if full or (plan.by_level and not plan.exploring[state]):
        memory[0] = SETTING_OUT
    elif lowest or (low and memory[0] == VENTURING):
        memory[0] = HOME
    reason = RECHARGING
    if memory[0] != HOME:
        pair = _wander(ledger, plan, visits, promise, state)
        if pair >= 0:
            if not low:
                memory[0] = VENTURING
            note_pair(ledger, pair, pending)
            choose_rules(ledger, promise, pending)
            return pair, (EXPLORE if plan.known[state] else WANDER), LEAST_VISITED
        pair = _follow(ledger, plan, promise, state, u, pending)
        if pair >= 0:
            choose_rules(ledger, promise, pending)
            if plan.exploring[state]:
                return pair, EXPLORE, AS_PLANNED
            memory[0] = VENTURING
            return pair, EXPLOIT, AS_PLANNED
        reason = NOT_AFFORDABLE
        if plan.node_ptr[state] == plan.node_ptr[state + 1]:
            reason = NOTHING_TO_DO
    pair = natural(ledger.fallback[state])
    note_pair(ledger, pair, pending)
    choose_rules(ledger, promise, pending)
    if not plan.known[state]:
        return pair, ESCAPE, reason
    return pair, (WAIT if plan.home[state] else RETURN), reason
