"""Earning under a promise: what to do where, for how much of it is left.

States are pairs (s, b) of a state and a promise on a grid of levels.  An action may be
taken where the ledger lets it; the promise then moves as the ledger moves it, by the
rule that holds there.  Costs that vary are taken to be all or nothing: the law with the
largest spread, since near the cap good luck is lost on the promise and bad luck is not.
Values between levels are interpolated, and a level stands for every promise from itself
up to the next.
"""

from __future__ import annotations

from escapade.kernels.compilation import compiled
from escapade.kernels.ledger import Ledger, affordable
from escapade.typing import BoolArray, FloatArray, IndexArray, IntArray

__all__ = ["earn"]


@compiled
def _at(place: float, row: FloatArray) -> float:
    """``row``: ``[G]``, values at the levels; the value at ``place`` between them."""
    last = row.size - 1
    low = int(min(max(place, 0.0), last - 1.0))
    part = min(max(place - low, 0.0), 1.0)
    value: float = (1.0 - part) * row[low] + part * row[low + 1]
    return value


@compiled
def _continue(
    ledger: Ledger,
    row_ptr: IntArray,
    successor: IndexArray,
    probability: FloatArray,
    pair: int,
    promise: float,
    cost: float,
    level_step: float,
    value: FloatArray,
) -> float:
    """Return what follows ``pair`` if it costs ``cost``, on average over successors."""
    carried = promise < ledger.cost_max[0] + ledger.reach[0, pair]
    shared = promise - cost
    if carried:
        if promise < ledger.cost_max[0] + ledger.ahead[0, pair]:
            shared = promise - ledger.q[0, pair]
        else:
            shared -= ledger.ahead[0, pair]
    total = 0.0
    for entry in range(row_ptr[pair], row_ptr[pair + 1]):
        if probability[entry] == 0.0:
            continue
        s = successor[entry]
        w = ledger.w[0, s]
        after = shared / ledger.gamma
        if carried:
            after += w
        after = min(max(after, w), ledger.cap[0])
        total += probability[entry] * _at(after / level_step, value[s])
    return total


@compiled
def _worth(
    ledger: Ledger,
    row_ptr: IntArray,
    successor: IndexArray,
    probability: FloatArray,
    reward: FloatArray,
    cost: FloatArray,
    exact: BoolArray,
    gamma: float,
    level_step: float,
    pair: int,
    promise: float,
    value: FloatArray,
) -> float:
    """Return what ``pair`` earns and what follows it, on average."""
    most = ledger.cost_max[0]
    share, paid = 0.0, cost[pair]
    if most > 0.0 and not exact[pair]:
        share, paid = min(cost[pair] / most, 1.0), 0.0
    follows = (1.0 - share) * _continue(
        ledger,
        row_ptr,
        successor,
        probability,
        pair,
        promise,
        paid,
        level_step,
        value,
    )
    if share > 0.0:
        follows += share * _continue(
            ledger,
            row_ptr,
            successor,
            probability,
            pair,
            promise,
            most,
            level_step,
            value,
        )
    worth: float = reward[pair] + gamma * follows
    return worth


@compiled
def earn(
    ledger: Ledger,
    reserve: FloatArray,
    playable: BoolArray,
    row_ptr: IntArray,
    successor: IndexArray,
    probability: FloatArray,
    reward: FloatArray,
    cost: FloatArray,
    exact: BoolArray,
    gamma: float,
    level_step: float,
    tolerance: float,
    rounds: int,
    between: int,
    value: FloatArray,
    scratch: FloatArray,
    best: IntArray,
) -> int:
    """Improve ``value`` ``[S, G]`` in place until all entries change alike.

    ``reward``, ``cost``: ``[pairs]``, means; ``exact``: ``[pairs]``, whether a cost is
    always its mean; level ``g`` is a promise of ``g · level_step``; ``best``:
    ``[S, G]``, the pair to take; ``gamma`` discounts rewards here.  One budget only.

    A round chooses pairs anew; ``between`` two of them the choice is held.  What all
    entries change by is added at once, with all that would follow from it: that is
    exact, as the operator passes a constant on times ``gamma``.  Returns the rounds.
    """
    n_states, n_levels = value.shape
    here = reserve * 0.0
    made = 0
    for sweep in range(rounds * (between + 1)):
        choosing = sweep % (between + 1) == 0
        lowest, highest = 1e300, -1e300
        for s in range(n_states):
            w = ledger.w[0, s]
            if w > ledger.cap[0]:
                continue
            for g in range(n_levels):
                b = max(g * level_step, w)
                if (g + 1) * level_step <= w:
                    continue
                found = -1e300
                if choosing:
                    here[0] = b
                    for pair in range(ledger.state_ptr[s], ledger.state_ptr[s + 1]):
                        if pair != ledger.fallback[s] and not (
                            playable[pair] and affordable(ledger, pair, here, reserve)
                        ):
                            continue
                        total = _worth(
                            ledger,
                            row_ptr,
                            successor,
                            probability,
                            reward,
                            cost,
                            exact,
                            gamma,
                            level_step,
                            pair,
                            b,
                            value,
                        )
                        if total > found:
                            found = total
                            best[s, g] = pair
                else:
                    found = _worth(
                        ledger,
                        row_ptr,
                        successor,
                        probability,
                        reward,
                        cost,
                        exact,
                        gamma,
                        level_step,
                        best[s, g],
                        b,
                        value,
                    )
                change = found - value[s, g]
                lowest, highest = min(lowest, change), max(highest, change)
                scratch[s, g] = found
        value[:] = scratch + gamma / (1.0 - gamma) * 0.5 * (lowest + highest)
        if choosing:
            made += 1
            if highest - lowest <= tolerance:
                break
    return made
