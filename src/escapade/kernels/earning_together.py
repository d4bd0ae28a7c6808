"""Earning under several promises: what to do where, for how much of each is left.

As :mod:`escapade.kernels.earning`, but with a level for every promise: states are
(s, b_1, ..., b_K), on the product of the channels' levels.  One promise may run out
while another is full, and the plan foresees it.

At every node one pair is played, or two are drawn from, in shares out of a few.  Dear
pairs then use a promise up as it grows, instead of all at once: what is paid at once
must be saved up again, below the cap, where promises grow less.  What follows the pair
that is drawn goes on from its own part of the promise
(:func:`escapade.kernels.ledger.choose_rules`), so the coin by itself moves no promise.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from escapade.kernels.compilation import compiled, inlined
from escapade.kernels.ledger import PATHWISE, REFUND, Ledger
from escapade.typing import BoolArray, FloatArray, IndexArray, IntArray

__all__ = ["Outlook", "earn_together"]

_HALVINGS = 3
"""How often a share is refined, by an eighth at first."""


class Outlook(NamedTuple):
    """What is expected of every pair, and the levels; nothing here is written to.

    ``grid``: ``[K, G]``, the levels of each promise, rising; ``row_ptr``,
    ``successor``, ``probability``: transitions; ``reward``: ``[pairs]``; ``cost``,
    ``steady``: ``[K, pairs]``, means, and whether a cost is always its mean; ``gamma``
    discounts rewards here; ``reserve``: ``[K]``, what ventures leave; ``usable``:
    ``[pairs]``; ``shares``: those in which two pairs are drawn from at first.
    """

    grid: FloatArray
    row_ptr: IntArray
    successor: IndexArray
    probability: FloatArray
    reward: FloatArray
    cost: FloatArray
    steady: BoolArray
    gamma: float
    reserve: FloatArray
    usable: BoolArray
    shares: FloatArray


class _Scratch(NamedTuple):
    """Promises at a node, what a mixture leaves, and a pair's own part, ``[K]`` all.

    Then what is charged, and for each channel the rule, the level and the share of the
    way to the next.
    """

    here: FloatArray
    left: FloatArray
    has: FloatArray
    paid: FloatArray
    rule: IntArray
    low: IntArray
    part: FloatArray


@inlined
def _place(grid: FloatArray, k: int, promise: float, scratch: _Scratch) -> None:
    """Note the level at or below a promise, and the share of the way to the next."""
    low, high = 0, grid.shape[1] - 1
    while high - low > 1:
        middle = (low + high) >> 1
        if grid[k, middle] <= promise:
            low = middle
        else:
            high = middle
    width = grid[k, high] - grid[k, low]
    part = (promise - grid[k, low]) / width if width > 0.0 else 1.0
    scratch.low[k], scratch.part[k] = low, min(max(part, 0.0), 1.0)


@inlined
def _follows(
    ledger: Ledger, outlook: Outlook, pair: int, value: FloatArray, scratch: _Scratch
) -> float:
    """Return what follows ``pair`` at the cost that was noted, over its successors."""
    channels, n_levels = len(ledger.channels), outlook.grid.shape[1]
    has, paid, rule = scratch.has, scratch.paid, scratch.rule
    for k in range(channels):
        most = ledger.cost_max[k]
        rule[k] = 0
        if has[k] >= most + ledger.reach[k, pair]:
            rule[k] = PATHWISE
            after = min((has[k] - paid[k]) / ledger.gamma, ledger.cap[k])
            _place(outlook.grid, k, after, scratch)
        elif has[k] >= most + ledger.ahead[k, pair]:
            rule[k] = REFUND
    total = 0.0
    for entry in range(outlook.row_ptr[pair], outlook.row_ptr[pair + 1]):
        chance = outlook.probability[entry]
        if chance == 0.0:
            continue
        s = outlook.successor[entry]
        for k in range(channels):
            if rule[k] == PATHWISE:
                continue
            spent = ledger.q[k, pair]
            if rule[k] == REFUND:
                spent = paid[k] + ledger.ahead[k, pair]
            after = ledger.w[k, s] + max(has[k] - spent, 0.0) / ledger.gamma
            _place(outlook.grid, k, min(after, ledger.cap[k]), scratch)
        for corner in range(1 << channels):
            weight, node = chance, 0
            for k in range(channels):
                upper = (corner >> k) & 1
                weight *= scratch.part[k] if upper == 1 else 1.0 - scratch.part[k]
                node = node * n_levels + scratch.low[k] + upper
            if weight > 0.0:
                total += weight * value[s, node]
    return total


@inlined
def _worth(
    ledger: Ledger, outlook: Outlook, pair: int, value: FloatArray, scratch: _Scratch
) -> float:
    """Return what ``pair`` earns and what follows, over what it may cost."""
    channels = len(ledger.channels)
    follows = 0.0
    for outcome in range(1 << channels):
        chance = 1.0
        for k in range(channels):
            dear = (outcome >> k) & 1
            most = ledger.cost_max[k]
            if outlook.steady[k, pair] or most <= 0.0:
                scratch.paid[k] = outlook.cost[k, pair]
                chance *= 1.0 - dear
            else:
                share = min(outlook.cost[k, pair] / most, 1.0)
                scratch.paid[k] = most * dear
                chance *= share if dear == 1 else 1.0 - share
        if chance > 0.0:
            follows += chance * _follows(ledger, outlook, pair, value, scratch)
    worth: float = outlook.reward[pair] + outlook.gamma * follows
    return worth


@inlined
def _drawn(
    ledger: Ledger,
    outlook: Outlook,
    s: int,
    first: int,
    second: int,
    share: float,
    value: FloatArray,
    scratch: _Scratch,
) -> float:
    """Return what it is worth to draw from two pairs, ``share`` of the first.

    −inf if that cannot be afforded; the fallback alone always can.
    """
    for k in range(len(ledger.channels)):
        q = share * ledger.q[k, first] + (1.0 - share) * ledger.q[k, second]
        scratch.left[k] = scratch.here[k] - q
        if not (
            q + outlook.reserve[k] <= scratch.here[k]
            or q <= ledger.w[k, s]
            or first == second == ledger.fallback[s]
        ):
            return -np.inf
    total = 0.0
    for turn in range(2):
        chance = 1.0 - share if turn == 1 else share
        if chance > 0.0:
            pair = second if turn == 1 else first
            for k in range(len(ledger.channels)):
                scratch.has[k] = scratch.left[k] + ledger.q[k, pair]
            total += chance * _worth(ledger, outlook, pair, value, scratch)
    return total


@inlined
def _stands(
    ledger: Ledger, grid: FloatArray, s: int, node: int, scratch: _Scratch
) -> bool:
    """Note the promises at a node; False if it stands for none that may be held."""
    n_levels = grid.shape[1]
    rest, stands = node, True
    for turn in range(len(ledger.channels)):
        k = len(ledger.channels) - 1 - turn
        g = rest % n_levels
        rest //= n_levels
        w = ledger.w[k, s]
        stands = stands and not (g + 1 < n_levels and grid[k, g + 1] <= w)
        scratch.here[k] = max(grid[k, g], w)
    return stands


@inlined
def _choose(
    ledger: Ledger,
    outlook: Outlook,
    s: int,
    value: FloatArray,
    scratch: _Scratch,
    chosen: IntArray,
) -> tuple[float, float]:
    """Write the two pairs into ``chosen`` ``[2]``; return their worth and the share.

    First every pair alone; then two, one of them the fallback's, or the one that is
    best alone; then the share of those that are best together is halved in on.
    """
    rest, first = ledger.fallback[s], ledger.state_ptr[s]
    many = ledger.state_ptr[s + 1] - first
    mixtures = many * outlook.shares.size
    found, share, alone, middle = -np.inf, 1.0, rest, 1.0
    for step in range(many + 2 * mixtures + 2 * _HALVINGS):
        if step < many:
            pair = partner = first + step
            chance = 1.0
            if pair != rest and not outlook.usable[pair]:
                continue
        elif step < many + 2 * mixtures:
            if step == many:
                alone = chosen[0]
            place = step - many
            partner = rest if place < mixtures else alone
            if place >= mixtures and alone == rest:
                continue
            pair = first + place % many
            chance = outlook.shares[place % mixtures // many]
            if pair == partner or not outlook.usable[pair]:
                continue
        else:
            place = step - many - 2 * mixtures
            if place % 2 == 0:
                middle = share
            if share == 1.0:
                break
            width = 0.25 / (2 << (place // 2))
            chance = middle - width if place % 2 == 0 else middle + width
            if not 0.0 < chance < 1.0:
                continue
            pair, partner = chosen[0], chosen[1]
        worth = _drawn(ledger, outlook, s, pair, partner, chance, value, scratch)
        if worth > found:
            found, share = worth, chance
            chosen[0], chosen[1] = pair, partner
    return found, share


@compiled
def earn_together(
    ledger: Ledger,
    outlook: Outlook,
    tolerance: float,
    rounds: int,
    between: int,
    value: FloatArray,
    pairs: IntArray,
    share: FloatArray,
) -> int:
    """Improve ``value`` ``[S, N]`` in place until all entries change alike.

    ``N`` is ``G**K``, the last channel's level changing fastest; ``pairs``:
    ``[S, N, 2]`` and ``share``: ``[S, N]``, what to draw from at each node, and the
    share of the first.  Rounds and what all entries change by are as in
    :func:`escapade.kernels.earning.earn`.
    """
    n_states, n_nodes = value.shape
    k = len(ledger.channels)
    scratch = _Scratch(
        np.zeros(k),
        np.zeros(k),
        np.zeros(k),
        np.zeros(k),
        np.zeros(k, np.int64),
        np.zeros(k, np.int64),
        np.zeros(k),
    )
    improved = np.zeros(value.shape)
    made = 0
    for sweep in range(rounds * (between + 1)):
        choosing = sweep % (between + 1) == 0
        lowest, highest = np.inf, -np.inf
        for s in range(n_states):
            if not ledger.w[0, s] < np.inf:
                continue
            for node in range(n_nodes):
                if not _stands(ledger, outlook.grid, s, node, scratch):
                    continue
                chosen = pairs[s, node]
                if choosing:
                    found, share[s, node] = _choose(
                        ledger, outlook, s, value, scratch, chosen
                    )
                else:
                    found = _drawn(
                        ledger,
                        outlook,
                        s,
                        chosen[0],
                        chosen[1],
                        share[s, node],
                        value,
                        scratch,
                    )
                change = found - value[s, node]
                lowest, highest = min(lowest, change), max(highest, change)
                improved[s, node] = found
        value[:] = improved + outlook.gamma / (1.0 - outlook.gamma) * 0.5 * (
            lowest + highest
        )
        if choosing:
            made += 1
            if highest - lowest <= tolerance:
                break
    return made
