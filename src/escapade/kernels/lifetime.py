"""A lifetime between two plans, compiled: decide, act, see, conclude.

The loop calls the kernels that ask and tell call, and draws from the two generators in
the order in which they do: one number for the decision; then from the world's, one for
the next state and one for each reward and cost that is not deterministic.  So it takes
the same decisions, bit for bit.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from escapade.kernels.compilation import compiled, inlined, natural, uncounted
from escapade.kernels.life import GOES_ON, IMPOSSIBLE, conclude, life_in, select
from escapade.kernels.parcels import (
    CODES,
    INDICES,
    INTEGER,
    INTEGERS,
    NUMBER,
    NUMBERS,
    TABLE,
    Layout,
)
from escapade.kernels.sampling import draw
from escapade.typing import CodeArray, FloatArray, IndexArray, IntArray

__all__ = ["RECORD", "WORLD", "Record", "World", "live", "record_in"]

DETERMINISTIC, BERNOULLI, UNIFORM = range(3)
"""Laws of samples, in the order of :mod:`escapade.environments.noise`."""


class World(NamedTuple):
    """The true model as the loop samples it.

    ``pair_of``: ``[agent's pairs]``, the world's number of each; ``row_ptr``,
    ``successor``, ``cumulative``: its transitions; ``entry_of``: ``[entries]``, the
    agent's number of each, or −1 where the agent holds it impossible; ``reward``:
    ``[pairs]``; ``cost``: ``[K, entries]``, means given the next state.
    """

    pair_of: IntArray
    row_ptr: IntArray
    successor: IndexArray
    cumulative: FloatArray
    entry_of: IntArray
    reward: FloatArray
    reward_max: float
    reward_law: int
    cost: FloatArray
    cost_max: FloatArray
    cost_law: int


WORLD = Layout(
    World,
    pair_of=INTEGERS,
    row_ptr=INTEGERS,
    successor=INDICES,
    cumulative=NUMBERS,
    entry_of=INTEGERS,
    reward=NUMBERS,
    reward_max=NUMBER,
    reward_law=INTEGER,
    cost=TABLE,
    cost_max=NUMBERS,
    cost_law=INTEGER,
)


class Record(NamedTuple):
    """What is written: ``states`` ``[T + 1]``, all else ``[T]`` or ``[T, K]``."""

    states: IndexArray
    actions: IndexArray
    phases: CodeArray
    reasons: CodeArray
    rewards: FloatArray
    costs: FloatArray
    promise: FloatArray
    reserved: FloatArray


RECORD = Layout(
    Record,
    states=INDICES,
    actions=INDICES,
    phases=CODES,
    reasons=CODES,
    rewards=NUMBERS,
    costs=TABLE,
    promise=TABLE,
    reserved=TABLE,
)

world_in = WORLD.reader()
record_in = RECORD.reader()


@inlined
def _sample(law: int, mean: float, maximum: float, rng: Any) -> float:
    """Draw one sample; the twin of :func:`escapade.environments.noise.draw_sample`."""
    if law == DETERMINISTIC:
        return mean
    u: float = rng.random()
    if law == BERNOULLI:
        return maximum if u * maximum < mean else 0.0
    half_width = min(mean, maximum - mean)
    return min(max(mean + half_width * (2.0 * u - 1.0), 0.0), maximum)


@uncounted
def _live(
    life_table: Any,
    world_table: Any,
    record_table: Any,
    channels: tuple[int, ...],
    rng: Any,
    world_rng: Any,
    first: int,
    last: int,
    learns: bool,
) -> tuple[int, int, int]:
    """See :func:`live`."""
    life = life_in(life_table, channels)
    world = world_in(world_table, channels)
    trace = record_in(record_table, channels)
    pair = -1
    state = natural(np.int64(trace.states[first]))
    for step in range(first, last):
        t = natural(step)
        pair, phase, reason = select(life, state, rng.random())
        pair = natural(pair)
        trace.actions[t] = life.action[pair]
        trace.phases[t] = phase
        trace.reasons[t] = reason
        for k in range(len(channels)):
            trace.promise[t, k] = life.promise[k]
            trace.reserved[t, k] = life.ledger.w[k, state]
        true_pair = natural(world.pair_of[pair])
        u = world_rng.random()
        drawn = natural(draw(world.row_ptr, world.cumulative, true_pair, u))
        next_state = natural(np.int64(world.successor[drawn]))
        reward = _sample(
            world.reward_law, world.reward[true_pair], world.reward_max, world_rng
        )
        for k in range(len(channels)):
            life.paid[k] = _sample(
                world.cost_law, world.cost[k, drawn], world.cost_max[k], world_rng
            )
            trace.costs[t, k] = life.paid[k]
        trace.rewards[t] = reward
        trace.states[t + 1] = next_state
        why = conclude(
            life,
            pair,
            world.entry_of[drawn],
            state,
            next_state,
            reward,
            learns,
        )
        if why != GOES_ON:
            return (t if why == IMPOSSIBLE else t + 1), why, pair
        state = next_state
    return last, GOES_ON, pair


@compiled
def live(
    life_table: Any,
    world_table: Any,
    record_table: Any,
    channels: tuple[int, ...],
    rng: Any,
    world_rng: Any,
    first: int,
    last: int,
    learns: bool,
) -> tuple[int, int, int]:
    """Live steps ``first`` to ``last``; where it stopped, why, and with which pair.

    The tables are those of parcels of a :class:`~escapade.kernels.life.Life`, a
    :class:`World` and a :class:`Record`, whose ``states[first]`` is where the loop
    begins.  Stopping to plan again comes after the step that calls for it, and so does
    stopping at a sample that surely contradicts what was told at birth; an impossible
    successor, or one that leaves the promisable states, is not counted, and its step
    not taken to be over.
    """
    return _live(
        life_table,
        world_table,
        record_table,
        channels,
        rng,
        world_rng,
        first,
        last,
        learns,
    )
