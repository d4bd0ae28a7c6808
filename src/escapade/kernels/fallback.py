"""Keeping what the fallback costs at worst up to date, where something changed.

What a pair costs at worst depends on what is held possible of it, and on what the
fallback costs at its successors.  So after news only those pairs are looked at again
that the news are about, and then those that lead to a state whose cost has changed.
Every number is what looking at all pairs again would have given.

Naming: ``w`` bounds what the fallback costs from a state on; ``into`` lists, for each
state, the pairs that may lead there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from escapade.kernels.belief import Held, worst_steps
from escapade.kernels.compilation import compiled
from escapade.typing import BoolArray, FloatArray, IndexArray, IntArray

__all__ = ["Standing", "enclose", "fill_into", "improve", "keep_up"]


class Standing(NamedTuple):
    """Where the fallback stands, as arrays that are improved in place.

    ``w`` ``[K, S]``, ``fallback``, ``promisable`` ``[S]``; of pairs ``allowed``
    ``[pairs]`` and ``q``, ``ahead``, ``reach`` ``[K, pairs]``, as
    :class:`escapade.agent.safety.Safety` describes them.
    """

    w: FloatArray
    fallback: IntArray
    promisable: BoolArray
    allowed: BoolArray
    q: FloatArray
    ahead: FloatArray
    reach: FloatArray


@compiled
def fill_into(
    row_ptr: IntArray, successor: IndexArray, into_ptr: IntArray, into: IndexArray
) -> None:
    """``into_ptr``: ``[S + 1]``, zeros, ``into``: ``[entries]``; pairs by state."""
    n_states = into_ptr.size - 1
    for entry in range(successor.size):
        into_ptr[successor[entry] + 1] += 1
    for s in range(n_states):
        into_ptr[s + 1] += into_ptr[s]
    place = into_ptr[:-1].copy()
    for pair in range(row_ptr.size - 1):
        for entry in range(row_ptr[pair], row_ptr[pair + 1]):
            s = successor[entry]
            into[place[s]] = pair
            place[s] += 1


@compiled
def enclose(
    pairs: IntArray,
    row_ptr: IntArray,
    successor: IndexArray,
    upper: FloatArray,
    gamma: float,
    standing: Standing,
) -> None:
    """Say of ``pairs`` whether they stay where promises are kept, and what they reach.

    ``q``, ``ahead`` and ``reach`` become infinite where they do not.
    """
    w, _, promisable, allowed, q, ahead, reach = standing
    for pair in pairs:
        inside = True
        for entry in range(row_ptr[pair], row_ptr[pair + 1]):
            if upper[entry] > 0.0 and not promisable[successor[entry]]:
                inside = False
        allowed[pair] = inside
        for k in range(w.shape[0]):
            if not inside:
                q[k, pair] = ahead[k, pair] = reach[k, pair] = np.inf
                continue
            most = 0.0
            for entry in range(row_ptr[pair], row_ptr[pair + 1]):
                if upper[entry] > 0.0:
                    most = max(most, w[k, successor[entry]])
            reach[k, pair] = gamma * most


@compiled
def improve(
    state_ptr: IntArray, cap: FloatArray, up: float, standing: Standing
) -> tuple[float, float]:
    """Take what pairs offer, one sweep; return the largest gain and the least ``w``.

    With one budget the best pair, by whose worst cost ``w`` falls and states join;
    with several the same fallback, which is bounded again.  What is offered is rounded
    ``up``.
    """
    w, fallback, promisable, _, q, _, _ = standing
    n_costs, n_states = w.shape
    gain, least = 0.0, np.inf
    for s in range(n_states):
        if n_costs == 1:
            best, first = np.inf, -1
            for pair in range(state_ptr[s], state_ptr[s + 1]):
                if q[0, pair] < best:
                    best, first = q[0, pair], pair
            offered = best * up
            if offered < w[0, s] and offered <= cap[0]:
                gain = max(gain, w[0, s] - offered)
                w[0, s] = offered
                fallback[s] = first
                promisable[s] = True
        else:
            held = promisable[s]
            for k in range(n_costs):
                held = held and np.isfinite(q[k, fallback[s]] * up)
            if held:
                for k in range(n_costs):
                    offered = q[k, fallback[s]] * up
                    if offered < w[k, s]:
                        gain = max(gain, w[k, s] - offered)
                        w[k, s] = offered
        for k in range(n_costs):
            least = min(least, w[k, s])
    return gain, least


@compiled
def _look_again(
    held: Held,
    standing: Standing,
    into_ptr: IntArray,
    into: IndexArray,
    news: BoolArray,
    w_then: FloatArray,
    promisable_then: BoolArray,
) -> None:
    """Look again at pairs with ``news``, and at those that lead to what changed.

    ``w_then``, ``promisable_then``: what it all was when pairs were looked at last.
    """
    w, _, promisable, _, q, ahead, _ = standing
    n_costs, n_states = w.shape
    for s in range(n_states):
        same = promisable[s] == promisable_then[s]
        for k in range(n_costs):
            same = same and w[k, s] == w_then[k, s]
        if not same:
            promisable_then[s] = promisable[s]
            for k in range(n_costs):
                w_then[k, s] = w[k, s]
            for i in range(into_ptr[s], into_ptr[s + 1]):
                news[into[i]] = True
    pairs = np.flatnonzero(news)
    if pairs.size == 0:
        return
    news[:] = False
    v = np.empty(n_states)
    for k in range(n_costs):
        for s in range(n_states):  # what lies outside, allowed pairs never reach
            v[s] = w[k, s] if promisable[s] else 0.0
        worst_steps(pairs, held, k, v, q[k], ahead[k])
    enclose(pairs, held.row_ptr, held.successor, held.upper, held.gamma, standing)


@compiled
def keep_up(
    sweeps: int,
    precision: float,
    state_ptr: IntArray,
    cap: FloatArray,
    up: float,
    held: Held,
    standing: Standing,
    into_ptr: IntArray,
    into: IndexArray,
    news: BoolArray,
    w_then: FloatArray,
    promisable_then: BoolArray,
) -> int:
    """Improve ``standing`` until it gains little; return the sweeps made.

    ``news``: ``[pairs]``, cleared on the way; ``w_then``, ``promisable_then``: what
    the pairs without news stand for.
    """
    made = 0
    for sweep in range(sweeps):
        made = sweep + 1
        _look_again(held, standing, into_ptr, into, news, w_then, promisable_then)
        gain, least = improve(state_ptr, cap, up, standing)
        if not gain > precision * (1.0 + least):
            break
    _look_again(held, standing, into_ptr, into, news, w_then, promisable_then)
    return made
