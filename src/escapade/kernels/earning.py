"""Earning under a promise: what to do where, for how much of it is left.

States are pairs (s, b) of a state and a promise on a grid of levels.  An action may be
taken where the ledger lets it; the promise then moves as the ledger moves it, at the
mean cost, by the rule that holds there.  Values between levels are interpolated, and a
level stands for every promise down to itself from the next one.
"""

from __future__ import annotations

from escapade.kernels.compilation import compiled
from escapade.kernels.ledger import Ledger, affordable
from escapade.typing import BoolArray, FloatArray, IndexArray, IntArray

__all__ = ["earn"]


@compiled
def _after(level_step: float, top: int, promise: float, row: FloatArray) -> float:
    """Return the value at a promise, between its two neighbouring levels."""
    place = promise / level_step
    if place >= top:
        return row[top]
    if place <= 0.0:
        return row[0]
    low = int(place)
    part = place - low
    return (1.0 - part) * row[low] + part * row[low + 1]


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
    level_step: float,
    tolerance: float,
    sweeps: int,
    value: FloatArray,
    best: IntArray,
) -> int:
    """Improve ``value`` ``[S, G]`` in place until no entry changes by ``tolerance``.

    ``reward``, ``cost``: ``[pairs]``, means; level ``g`` is a promise of
    ``g · level_step``; ``best``: ``[S, G]``, the pair to take.  One budget only.
    Returns the sweeps made.
    """
    n_states, n_levels = value.shape
    top = n_levels - 1
    gamma, cap = ledger.gamma, ledger.cap[0]
    most = ledger.cost_max[0]
    here = reserve * 0.0
    made = 0
    for sweep in range(sweeps):
        made = sweep + 1
        largest = 0.0
        for turn in range(n_states):
            s = turn if sweep % 2 == 0 else n_states - 1 - turn
            w = ledger.w[0, s]
            if w > cap:
                continue
            for g in range(n_levels):
                b = max(g * level_step, w)
                if b > w and (g + 1) * level_step <= w:
                    continue
                here[0] = b
                found = -1e300
                chosen = ledger.fallback[s]
                for pair in range(ledger.state_ptr[s], ledger.state_ptr[s + 1]):
                    own = pair == ledger.fallback[s]
                    if not own and not (
                        playable[pair] and affordable(ledger, pair, here, reserve)
                    ):
                        continue
                    shared = b - cost[pair]
                    carried = False
                    if b < most + ledger.reach[0, pair]:
                        carried = True
                        if b < most + ledger.ahead[0, pair]:
                            shared = b - ledger.q[0, pair]
                        else:
                            shared -= ledger.ahead[0, pair]
                    total = 0.0
                    for entry in range(row_ptr[pair], row_ptr[pair + 1]):
                        if probability[entry] == 0.0:
                            continue
                        t = successor[entry]
                        after = shared / gamma
                        if carried:
                            after += ledger.w[0, t]
                        after = min(max(after, ledger.w[0, t]), cap)
                        total += probability[entry] * _after(
                            level_step, top, after, value[t]
                        )
                    total = reward[pair] + gamma * total
                    if total > found:
                        found, chosen = total, pair
                largest = max(largest, abs(found - value[s, g]))
                value[s, g] = found
                best[s, g] = chosen
        if largest <= tolerance:
            break
    return made
