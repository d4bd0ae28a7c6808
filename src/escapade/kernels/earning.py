"""Earning under a promise: what to do where, for how much of it is left.

States are pairs (s, b) of a state and a promise on a grid of levels.  An action may be
taken where the ledger lets it; the promise then moves as the ledger moves it, by the
rule that holds there.  Costs that vary are taken to be all or nothing: the law with the
largest spread, since near the cap good luck is lost on the promise and bad luck is not.
Values between levels are interpolated, and a level stands for every promise from itself
up to the next.

Levels lie densely below the cap, ever more sparsely away from it: their distance grows
by a constant factor.  A promise that is used as it grows stays near the cap, and there
it matters most when to use it: above the cap it grows no more, and the less of it is
held the less it grows.
"""

from __future__ import annotations

import math

from escapade.kernels.compilation import compiled
from escapade.kernels.ledger import Ledger, affordable
from escapade.typing import BoolArray, FloatArray, IndexArray, IntArray

__all__ = ["earn", "level_at"]

_DENSE = 0.02
"""Share of the cap within which levels lie about evenly below it."""


@compiled
def level_at(g: int, n_levels: int, cap: float) -> float:
    """Return the promise at level ``g``."""
    reach = math.log1p(1.0 / _DENSE) * (1.0 - g / (n_levels - 1))
    level: float = cap * (1.0 - _DENSE * math.expm1(reach))
    return max(level, 0.0)


@compiled
def _place(promise: float, n_levels: int, cap: float) -> tuple[int, float]:
    """Return the level at or below a promise, and the share of the way to the next."""
    below = max(1.0 - promise / cap, 0.0) if cap > 0.0 else 0.0
    reach = math.log1p(below / _DENSE) / math.log1p(1.0 / _DENSE)
    place = (n_levels - 1) * (1.0 - reach)
    low = int(min(max(place, 0.0), n_levels - 2.0))
    return low, min(max(place - low, 0.0), 1.0)


@compiled
def _continue(
    ledger: Ledger,
    row_ptr: IntArray,
    successor: IndexArray,
    probability: FloatArray,
    pair: int,
    promise: float,
    cost: float,
    value: FloatArray,
) -> float:
    """Return what follows ``pair`` if it costs ``cost``, on average over successors."""
    cap = ledger.cap[0]
    n_levels = value.shape[1]
    total = 0.0
    if promise >= ledger.cost_max[0] + ledger.reach[0, pair]:
        # pathwise: the next promise is the same wherever the step leads
        after = min((promise - cost) / ledger.gamma, cap)
        low, part = _place(after, n_levels, cap)
        for entry in range(row_ptr[pair], row_ptr[pair + 1]):
            row = value[successor[entry]]
            between = (1.0 - part) * row[low] + part * row[low + 1]
            total += probability[entry] * between
        return total
    shared = promise - ledger.q[0, pair]
    if promise >= ledger.cost_max[0] + ledger.ahead[0, pair]:
        shared = promise - cost - ledger.ahead[0, pair]
    for entry in range(row_ptr[pair], row_ptr[pair + 1]):
        if probability[entry] == 0.0:
            continue
        s = successor[entry]
        w = ledger.w[0, s]
        after = min(max(w + shared / ledger.gamma, w), cap)
        low, part = _place(after, n_levels, cap)
        between = (1.0 - part) * value[s, low] + part * value[s, low + 1]
        total += probability[entry] * between
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
    tolerance: float,
    rounds: int,
    between: int,
    value: FloatArray,
    scratch: FloatArray,
    best: IntArray,
) -> int:
    """Improve ``value`` ``[S, G]`` in place until all entries change alike.

    ``reward``, ``cost``: ``[pairs]``, means; ``exact``: ``[pairs]``, whether a cost is
    always its mean; ``best``: ``[S, G]``, the pair to take at each of the levels;
    ``gamma`` discounts rewards here.  One budget only.

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
                b = max(level_at(g, n_levels, ledger.cap[0]), w)
                if g + 1 < n_levels and level_at(g + 1, n_levels, ledger.cap[0]) <= w:
                    continue
                found = -1e300
                if choosing:
                    here[0] = b
                    for pair in range(ledger.state_ptr[s], ledger.state_ptr[s + 1]):
                        if pair != ledger.fallback[s] and not (
                            playable[pair]
                            and affordable(ledger, pair, here, reserve, s)
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
