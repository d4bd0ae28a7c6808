"""The ledger's inequalities, checked over a stretch of steps by arithmetic of its own.

For every step, in every channel: the fallback can be afforded, ``w(s) <= b <= d``; what
was played leads only to promisable states and costs at worst ``Q <= b``; and the next
promise is at most what the rule in force gives and at least ``w(s')``.  The code is not
that of the kernels, so that a mistake there does not confirm itself.

A step whose action was drawn is held to the mean ``Q`` of what it was drawn from, and
goes on from ``b − mean Q + Q(s, a)``, which is ``b`` on average over the draw.
"""

from __future__ import annotations

import numpy as np

from escapade.agent.e4 import E4
from escapade.agent.phases import Phase
from escapade.kernels.ledger import AS_PLANNED, Ledger, Plan
from escapade.simulation.trace import Trace
from escapade.typing import FloatArray, IndexArray, IntArray

__all__ = ["broken_inequality"]

_MARGIN = 1.0 + 2.0**-40
"""What R1 and R2 are chosen with, above rounding."""

_SPARE = 2.0**-40
"""The same, where an action was drawn, relative to the promise and what it lacks."""

_ROUNDING = 1e-9
"""Relative; what sums of other order may differ in."""


def broken_inequality(
    agent: E4, trace: Trace, first: int, last: int, *, settled: bool, number: int = 0
) -> str | None:
    """Return the first inequality that steps ``first`` to ``last`` break, in words.

    Parameters
    ----------
    agent
        After those steps, with the plan still in force under which they were lived.
    trace
        The steps.
    settled
        Whether the last step's promise was settled.
    number
        What the first step of ``trace`` is called.
    """
    if agent.breaks:
        return None  # nothing is promised any more
    held = agent.planned.ledger
    states = trace.states[first:last].astype(np.int64)
    after = trace.states[first + 1 : last + 1]
    pairs = _pairs(agent, states, trace.actions[first:last])
    promise = trace.promise[first:last].T
    w, cap = held.w[:, states], held.cap[:, np.newaxis]
    slack = _ROUNDING * (1.0 + cap)
    q = _means(agent, trace, first, states, pairs)
    for words, holds in (
        ("w(s) is what was reserved", w == trace.reserved[first:last].T),
        ("w(s) <= b", w <= promise),
        ("b <= d", promise <= cap),
        ("possible successors are promisable", held.allowed[pairs][np.newaxis]),
        ("Q(s, a) <= b", q <= promise + slack),
    ):
        if not holds.all():
            return _where(words, holds, number + first)
    following = np.concatenate([trace.promise[first + 1 : last], [agent.promise]]).T
    many = last - first if settled else last - first - 1
    cost = trace.costs[first:last].T
    cost = np.where(np.isnan(cost), held.cost_max[:, np.newaxis], cost)
    most = _next_promise(held, pairs, promise, cost, q, held.w[:, after])
    for words, holds in (
        ("b' <= what the rule gives", following <= most + slack),
        ("w(s') <= b'", following >= held.w[:, after]),
    ):
        if not holds[:, :many].all():
            return _where(words, holds[:, :many], number + first)
    return None


def _where(words: str, holds: np.ndarray, first: int) -> str:
    """Say which inequality is broken, and at which step first."""
    return f"step {first + int(np.argmin(holds.all(axis=0)))}: {words} does not hold"


def _next_promise(
    held: Ledger,
    pairs: IntArray,
    promise: FloatArray,
    cost: FloatArray,
    mean: FloatArray,
    w_after: FloatArray,
) -> FloatArray:
    """Return what may be promised next; the rule is chosen before the cost is seen."""
    cap, charge = held.cap[:, np.newaxis], held.cost_max[:, np.newaxis]
    if held.gamma == 0.0:
        return np.broadcast_to(cap, promise.shape)
    lacks = mean - held.q[:, pairs]
    own = promise - lacks
    spare = np.where(lacks == 0.0, 0.0, _SPARE * (promise + np.abs(lacks)))
    ahead, reach = held.ahead[:, pairs], held.reach[:, pairs]
    in_expectation = w_after + np.maximum(promise - mean, 0.0) / held.gamma
    refund = w_after + (own - cost - ahead) / held.gamma
    pathwise = (own - cost) / held.gamma
    given = np.where(
        promise >= (charge + reach) * _MARGIN + lacks + spare,
        pathwise,
        np.where(
            promise >= (charge + ahead) * _MARGIN + lacks + spare,
            refund,
            in_expectation,
        ),
    )
    return np.minimum(given, cap)


def _means(
    agent: E4, trace: Trace, first: int, states: IntArray, pairs: IntArray
) -> FloatArray:
    """Return the mean ``Q`` of what each step's action was drawn from, ``(K, n)``."""
    held, plan = agent.planned.ledger, agent.planned.plan
    mean = held.q[:, pairs]
    reasons = trace.reasons[first : first + states.size]
    _mix_escapes(agent, trace, first, states, mean)
    for i in np.flatnonzero(
        (reasons == AS_PLANNED) & (np.diff(plan.node_ptr)[states] > 0)
    ):
        node = _node_in_force(plan, trace.promise[first + i], states[i])
        some = slice(held.state_ptr[states[i]], held.state_ptr[states[i] + 1])
        chance = plan.weight[node, : some.stop - some.start]
        if chance[pairs[i] - some.start] < 1.0:
            mean[:, i] = _mean(held, some, chance)
    return mean


def _node_in_force(plan: Plan, promise: FloatArray, state: int) -> int:
    """Return the node of a state that a promise leads to."""
    low, high = plan.node_ptr[state], plan.node_ptr[state + 1]
    if high - low == 1:
        return int(low)
    if plan.grid.size:
        places = [
            max(int(np.searchsorted(levels, b, side="right")) - 1, 0)
            for levels, b in zip(plan.grid, promise, strict=True)
        ]
        shape = (plan.grid.shape[1],) * len(places)
        return int(low + np.ravel_multi_index(places, shape))
    levels = plan.level[low:high]
    place = np.searchsorted(levels, float(plan.share @ promise), side="right") - 1
    return int(low + max(int(place), 0))


def _mean(held: Ledger, some: slice, chance: FloatArray) -> FloatArray:
    """Return the mean ``Q`` of pairs drawn with these chances, ``[K]``."""
    played = np.flatnonzero(chance > 0.0)
    drawn = chance[played]
    drawn[-1] += 1.0 - drawn.sum()  # as it is drawn
    return np.asarray(held.q[:, some][:, played] @ drawn)


def _mix_escapes(
    agent: E4, trace: Trace, first: int, states: IntArray, mean: FloatArray
) -> None:
    """Put the means of mixtures, in place, where an escape was planned and afforded."""
    held, rules = agent.planned.ledger, agent.planned.rules
    if rules.on or not rules.plans_escape:
        return
    escaped = trace.phases[first : first + states.size] == Phase.ESCAPE
    for state in np.unique(states[escaped]):
        some = slice(held.state_ptr[state], held.state_ptr[state + 1])
        chance = rules.escape[state, : some.stop - some.start]
        played = np.flatnonzero(chance > 0.0)
        if not played.size or not held.allowed[some][played].all():
            continue
        mixed = _mean(held, some, chance)
        here = np.flatnonzero(escaped & (states == state))
        here = here[(mixed <= trace.promise[first + here]).all(axis=1)]
        mean[:, here] = mixed[:, np.newaxis]


def _pairs(agent: E4, states: IntArray, actions: IndexArray) -> IntArray:
    layout = agent.knowledge.pairs
    table = np.full((layout.n_states, layout.n_actions), -1, dtype=np.int64)
    table[layout.pair_state, layout.pair_action] = np.arange(layout.n_pairs)
    return np.asarray(table[states, actions])
