"""The ledger's inequalities, checked over a stretch of steps by arithmetic of its own.

For every step, in every channel: the fallback can be afforded, ``w(s) <= b <= d``; what
was played leads only to promisable states and costs at worst ``Q <= b``; and the next
promise is at most what the rule in force gives and at least ``w(s')``.  The code is not
that of the kernels, so that a mistake there does not confirm itself.

A step whose action was drawn counts with the terms of the mixture it was drawn from.
"""

from __future__ import annotations

import numpy as np

from escapade.agent.e4 import E4
from escapade.agent.phases import Phase
from escapade.kernels.ledger import AS_PLANNED, Ledger
from escapade.simulation.trace import Trace
from escapade.typing import FloatArray, IndexArray, IntArray

__all__ = ["broken_inequality"]

_MARGIN = 1.0 + 2.0**-40
"""What R1 and R2 are chosen with, above rounding."""

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
    q, ahead, reach = _terms(agent, trace, first, states, pairs)
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
    most = _next_promise(held, promise, cost, q, ahead, reach, held.w[:, after])
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
    promise: FloatArray,
    cost: FloatArray,
    q: FloatArray,
    ahead: FloatArray,
    reach: FloatArray,
    w_after: FloatArray,
) -> FloatArray:
    """Return what may be promised next; the rule is chosen before the cost is seen."""
    cap, charge = held.cap[:, np.newaxis], held.cost_max[:, np.newaxis]
    if held.gamma == 0.0:
        return np.broadcast_to(cap, promise.shape)
    in_expectation = w_after + np.maximum(promise - q, 0.0) / held.gamma
    refund = w_after + (promise - cost - ahead) / held.gamma
    pathwise = (promise - cost) / held.gamma
    given = np.where(
        promise >= (charge + reach) * _MARGIN,
        pathwise,
        np.where(promise >= (charge + ahead) * _MARGIN, refund, in_expectation),
    )
    return np.minimum(given, cap)


def _terms(
    agent: E4, trace: Trace, first: int, states: IntArray, pairs: IntArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return ``Q``, ``γ max P·w`` and ``γ max w`` of what was played, ``(K, n)``."""
    held, plan = agent.planned.ledger, agent.planned.plan
    q, ahead, reach = held.q[:, pairs], held.ahead[:, pairs], held.reach[:, pairs]
    reasons = trace.reasons[first : first + states.size]
    drawn = np.flatnonzero(
        (reasons == AS_PLANNED) & (np.diff(plan.node_ptr)[states] > 0)
    )
    _mix_escapes(agent, trace, first, states, (q, ahead, reach))
    if not drawn.size:
        return q, ahead, reach
    nodes = plan.node_ptr[states[drawn]]
    for i in np.flatnonzero(np.diff(plan.node_ptr)[states[drawn]] > 1):
        low, high = plan.node_ptr[states[drawn[i]]], plan.node_ptr[states[drawn[i]] + 1]
        promise = trace.promise[first + drawn[i], 0]
        place = np.searchsorted(plan.level[low:high], promise, side="right") - 1
        nodes[i] = low + max(int(place), 0)
    local = pairs[drawn] - held.state_ptr[states[drawn]]
    mixed = plan.weight[nodes, local] < 1.0
    for node in np.unique(nodes[mixed]):
        here = drawn[mixed & (nodes == node)]
        begin, end = (
            held.state_ptr[states[here[0]]],
            held.state_ptr[states[here[0]] + 1],
        )
        chance = plan.weight[node, : end - begin].copy()
        played = np.flatnonzero(chance > 0.0)
        chance[played[-1]] += 1.0 - chance.sum()  # as it is drawn
        some = slice(begin, end)
        for part, source in ((q, held.q), (ahead, held.ahead)):
            part[:, here] = (source[:, some][:, played] @ chance[played])[:, np.newaxis]
        worst = held.reach[:, some][:, played].max(axis=1)
        reach[:, here] = worst[:, np.newaxis]
    return q, ahead, reach


def _mix_escapes(
    agent: E4,
    trace: Trace,
    first: int,
    states: IntArray,
    terms: tuple[FloatArray, FloatArray, FloatArray],
) -> None:
    """Put the terms of mixtures, in place, where an escape was planned and afforded."""
    held, rules = agent.planned.ledger, agent.planned.rules
    if rules.on or not rules.plans_escape:
        return
    escaped = trace.phases[first : first + states.size] == Phase.ESCAPE
    for state in np.unique(states[escaped]):
        some = slice(held.state_ptr[state], held.state_ptr[state + 1])
        chance = rules.escape[state, : some.stop - some.start].copy()
        played = np.flatnonzero(chance > 0.0)
        if not played.size or not held.allowed[some][played].all():
            continue
        chance[played[-1]] += 1.0 - chance.sum()  # as it is drawn
        mean = held.q[:, some][:, played] @ chance[played]
        here = np.flatnonzero(escaped & (states == state))
        promise = trace.promise[first + here]
        here = here[(mean <= promise).all(axis=1)]
        terms[0][:, here] = mean[:, np.newaxis]
        ahead = held.ahead[:, some][:, played] @ chance[played]
        terms[1][:, here] = ahead[:, np.newaxis]
        terms[2][:, here] = held.reach[:, some][:, played].max(axis=1)[:, np.newaxis]


def _pairs(agent: E4, states: IntArray, actions: IndexArray) -> IntArray:
    layout = agent.knowledge.pairs
    table = np.full((layout.n_states, layout.n_actions), -1, dtype=np.int64)
    table[layout.pair_state, layout.pair_action] = np.arange(layout.n_pairs)
    return np.asarray(table[states, actions])
