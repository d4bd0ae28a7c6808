"""A lifetime between two plans, compiled: decide, act, see, count, settle.

The loop calls the kernels that ask and tell call, and draws from the two generators in
the order in which they do: one number for the decision; then from the world's, one for
the next state and one for each reward and cost that is not deterministic.  So it takes
the same decisions, bit for bit.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from escapade.kernels.compilation import compiled, inlined, uncounted
from escapade.kernels.evidence import record
from escapade.kernels.ledger import (
    Ledger,
    Pending,
    Plan,
    decide,
    settle,
    wish_to_plan,
)
from escapade.kernels.paper import CORRECTED, Course, Rules, choose, settle_step
from escapade.kernels.sampling import draw
from escapade.typing import BoolArray, CodeArray, FloatArray, IndexArray, IntArray

__all__ = [
    "ALL_STEPS",
    "IMPOSSIBLE",
    "PLAN_AGAIN",
    "SURPRISING",
    "Counts",
    "Record",
    "World",
    "live",
    "strays",
    "surprising",
]

ALL_STEPS, PLAN_AGAIN, IMPOSSIBLE, SURPRISING = range(4)
"""Why the loop stopped."""

DETERMINISTIC, BERNOULLI, UNIFORM = range(3)
"""Laws of samples, in the order of :mod:`escapade.environments.noise`."""


class World(NamedTuple):
    """The true model as the loop samples it.

    ``pair_of``: ``[agent's pairs]``, the world's number of each; ``row_ptr``,
    ``successor``, ``cumulative``: its transitions; ``reward``: ``[pairs]``; ``cost``:
    ``[K, entries]``, means given the next state.
    """

    pair_of: IntArray
    row_ptr: IntArray
    successor: IndexArray
    cumulative: FloatArray
    reward: FloatArray
    reward_max: float
    reward_law: int
    cost: FloatArray
    cost_max: FloatArray
    cost_law: int


class Counts(NamedTuple):
    """The agent's evidence, in its own numbering, and when to plan again.

    Shapes as in :func:`escapade.kernels.evidence.record`; ``changed`` is ``[pairs]``,
    which pairs were visited since the last plan; ``wish`` is ``[1]``, and at 1 another
    plan is made.  What single samples may surely be is between ``least_reward`` and
    ``most_reward``, ``[pairs]``, and ``least_cost`` and ``most_cost``, ``[K, pairs]``.
    """

    row_ptr: IntArray
    successor: IndexArray
    visits: IntArray
    pair_visits: IntArray
    reward_sum: FloatArray
    cost_count: IntArray
    cost_sum: FloatArray
    cost_square: FloatArray
    changed: BoolArray
    wish: FloatArray
    least_reward: FloatArray
    most_reward: FloatArray
    least_cost: FloatArray
    most_cost: FloatArray


class Record(NamedTuple):
    """What is written: ``states`` ``[T + 1]``, all else ``[T]`` or ``[T, K]``."""

    states: IndexArray
    pairs: IndexArray
    phases: CodeArray
    reasons: CodeArray
    rewards: FloatArray
    costs: FloatArray
    promise: FloatArray
    reserved: FloatArray


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


@inlined
def surprising(counts: Counts, pair: int, reward: float, cost: FloatArray) -> bool:
    """``cost``: ``[K]``; whether a sample is ruled out by what was told at birth."""
    fits = counts.least_reward[pair] <= reward <= counts.most_reward[pair]
    for k in range(cost.size):
        low, high = counts.least_cost[k, pair], counts.most_cost[k, pair]
        fits = fits and low <= cost[k] <= high
    return not fits


@inlined
def strays(ledger: Ledger, state: int, next_state: int) -> bool:
    """Tell whether a step left the promisable states, which the ledger rules out."""
    return bool(ledger.w[0, state] < np.inf and ledger.w[0, next_state] == np.inf)


@uncounted
def _live(
    ledger: Ledger,
    plan: Plan,
    rules: Rules,
    counts: Counts,
    promise: FloatArray,
    memory: IntArray,
    course: Course,
    pending: Pending,
    rng: Any,
    world: World,
    world_rng: Any,
    trace: Record,
    first: int,
    last: int,
    cost: FloatArray,
) -> tuple[int, int]:
    """``cost``: ``[K]`` of scratch; see :func:`live`."""
    # what the paper's rules take along is many arrays: only where they are in force
    by_ledger = not (rules.on or rules.plans_escape)
    guarded = rules.test == CORRECTED
    for t in range(first, last):
        state = trace.states[t]
        if by_ledger:
            pair, phase, reason = decide(
                ledger,
                plan,
                counts.pair_visits,
                promise,
                memory,
                state,
                rng.random(),
                pending,
            )
        else:
            pair, phase, reason = choose(
                ledger,
                plan,
                rules,
                counts.pair_visits,
                promise,
                memory,
                course,
                state,
                rng.random(),
                pending,
            )
        trace.pairs[t] = pair
        trace.phases[t] = phase
        trace.reasons[t] = reason
        for k in range(len(ledger.channels)):
            trace.promise[t, k] = promise[k]
            trace.reserved[t, k] = ledger.w[k, state]
        true_pair = world.pair_of[pair]
        entry = draw(world.row_ptr, world.cumulative, true_pair, world_rng.random())
        next_state = world.successor[entry]
        reward = _sample(
            world.reward_law, world.reward[true_pair], world.reward_max, world_rng
        )
        for k in range(len(ledger.channels)):
            cost[k] = _sample(
                world.cost_law, world.cost[k, entry], world.cost_max[k], world_rng
            )
            trace.costs[t, k] = cost[k]
        trace.rewards[t] = reward
        trace.states[t + 1] = next_state
        if guarded and strays(ledger, state, next_state):
            return t, IMPOSSIBLE
        counted = record(
            counts.row_ptr,
            counts.successor,
            counts.visits,
            counts.pair_visits,
            counts.reward_sum,
            counts.cost_count,
            counts.cost_sum,
            counts.cost_square,
            pair,
            next_state,
            reward,
            cost,
            True,
        )
        if not counted:
            return t, IMPOSSIBLE
        counts.changed[pair] = True
        visits = counts.pair_visits
        if by_ledger:
            settle(ledger, pending, cost, next_state, promise)
            counts.wish[0] += wish_to_plan(ledger, plan, visits, pair, state)
        else:
            counts.wish[0] += settle_step(
                ledger,
                plan,
                rules,
                visits,
                pending,
                course,
                promise,
                reward,
                cost,
                pair,
                state,
                next_state,
            )
        if surprising(counts, pair, reward, cost):
            return t + 1, SURPRISING
        if counts.wish[0] >= 1.0:
            return t + 1, PLAN_AGAIN
    return last, ALL_STEPS


@compiled
def live(
    ledger: Ledger,
    plan: Plan,
    rules: Rules,
    counts: Counts,
    promise: FloatArray,
    memory: IntArray,
    course: Course,
    pending: Pending,
    rng: Any,
    world: World,
    world_rng: Any,
    trace: Record,
    first: int,
    last: int,
) -> tuple[int, int]:
    """Live steps ``first`` to ``last`` of ``trace``; where it stopped, and why.

    ``trace.states[first]`` is where the loop begins.  Stopping to plan again comes
    after the step that calls for it, and so does stopping at a sample that surely
    contradicts what was told at birth; an impossible successor, or one that leaves the
    promisable states, is not counted, and its step not taken to be over.
    """
    return _live(
        ledger,
        plan,
        rules,
        counts,
        promise,
        memory,
        course,
        pending,
        rng,
        world,
        world_rng,
        trace,
        first,
        last,
        np.empty(promise.size),
    )
