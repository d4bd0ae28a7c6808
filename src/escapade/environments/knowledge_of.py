"""What an agent is told about each shipped world: assumptions, one world at a time.

Nothing here is learned, and nothing is read off the true model but what is stated: a
log is drawn from it with a fixed seed, as a careful operator would have recorded it.

**The walk** (:func:`of_cycle`).  The cells and their coordinates are known, and

- ``stay`` never fails; it is free in the known cells, and elsewhere its cost is not
  known;
- a move typically leads to the next cell, and fails with a probability of at most .1
  (or twice the true one where that is more), by any law on the cells within two of
  where it was meant to end;
- a wall stands south of the first row and one west of the first column.  One stands
  somewhere in the north and one in the east, both straight, each at least five cells
  (or the whole field, if that is less) from the opposite one, and none lies beyond the
  field.  A move that meets a wall leads nowhere;
- meeting a wall costs 1 when the move does not fail, a move that fails may cost
  anything, and nothing else costs: so a free move costs at most .1 on average;
- with a toll, steps along the place of a wall, or of a possible one, in the direction
  of the walk may cost anything up to 1 as well, and not always the same;
- the cells of the first row but the last are known: each of their actions has been
  taken 2,000 times.

**The loop** (:func:`of_loop`).  What steps cost is known, so ``stay`` is known to be
free; where they lead and what they earn is not.

**The moat** (:func:`of_moat`).  Moves work as meant, and those from G lead back to S,
but for a probability of at most .05, in which case they end, by any law, at most one
cell away from where they were meant to.  The bottom row is known exactly, costs
included; elsewhere a step may cost anything up to 1.

**The barriers** (:func:`of_barriers`).  A map shows the barriers and the goal: costs
are known, and so is the goal's row.  Moves work as meant but for a probability of at
most .1 (or ``slip`` where that is more), and then end, by any law, at most one cell
away from their origin.  Beside a barrier every move may slip into it, at a cost of 10:
within the budgets of 2 nothing can be promised at every moment there, whatever is
known, and an agent says so.  Budgets of 13 can be promised everywhere.

**Garnets** (:func:`of_garnet`).  A cautious controller is known exactly: the rows and
the costs of the policy that costs least in sum.  Of all other pairs only the possible
successors are known.

**The gamble** (:func:`of_gamble`).  Rows and costs are known; rewards are not.

**Episodes** (:func:`of_episodes`).  The clock is known, and so are the costs: step t
leads to step t + 1, and the last one to the end or to a new start.  Where steps lead
within that, and what they earn, is not known.
"""

from __future__ import annotations

import math

import numpy as np
import scipy.sparse as sp

from escapade.environments.grids import EAST, NORTH, SOUTH, STAY, WEST, Grid
from escapade.environments.telling import costs_of, rows_of, tell
from escapade.knowledge.knowledge import Knowledge
from escapade.knowledge.log import Log
from escapade.model.cmdp import CMDP
from escapade.model.layout import Pairs
from escapade.planning.dynamic_programming import policy_iteration
from escapade.typing import BoolArray, FloatArray, IntArray
from escapade.uncertainty.action_models import ActionModels
from escapade.uncertainty.action_models_description import (
    ActionModel,
    Failures,
    Transfer,
    within,
)

__all__ = [
    "of_barriers",
    "of_cycle",
    "of_episodes",
    "of_gamble",
    "of_garnet",
    "of_loop",
    "of_moat",
    "recorded",
]

_SAMPLES = 2_000
_SEED = 20_220_101
_RATE = 0.1
_APART = 5
_REACH = 2.0
_MOAT_RATE = 0.05
_BARRIER_RATE = 0.1
_WALL_MODELS = {
    "north wall": NORTH,
    "west wall": WEST,
    "south wall": SOUTH,
    "east wall": EAST,
}


def of_loop(cmdp: CMDP) -> Knowledge:
    """Return what is known of ``three_state_loop``; see the module."""
    return tell(cmdp, costs=costs_of(cmdp))


def of_moat(cmdp: CMDP, targets: IntArray, *, offset: float) -> Knowledge:
    """Return what is known of ``moat_grid``; see the module."""
    assert cmdp.coordinates is not None
    bottom = cmdp.coordinates[cmdp.pair_state, 1] == cmdp.coordinates[:, 1].min()
    models = ActionModels(
        cmdp,
        {"moves": ActionModel(typical=targets)},
        failures=Failures(
            around=within(cmdp.coordinates, 1.0), rate=(0.0, _MOAT_RATE), law="any"
        ),
    )
    return tell(
        cmdp,
        models=models,
        known_rows=rows_of(cmdp, bottom),
        costs=costs_of(cmdp, bottom),
        reward_offset=offset,
    )


def of_barriers(cmdp: CMDP, targets: IntArray, *, slip: float, goal: int) -> Knowledge:
    """Return what is known of ``barrier_grid``; see the module."""
    assert cmdp.coordinates is not None
    one_away = within(cmdp.coordinates, 1.0)
    models = ActionModels(
        cmdp,
        {"moves": ActionModel(typical=targets)},
        failures=Failures(
            around=one_away[cmdp.pair_state],
            rate=(0.0, max(_BARRIER_RATE, slip)),
            law="any",
        ),
    )
    return tell(
        cmdp,
        models=models,
        known_rows=rows_of(cmdp, cmdp.pair_state == goal),
        costs=costs_of(cmdp),
    )


def of_garnet(cmdp: CMDP) -> Knowledge:
    """Return what is known of ``garnet``; see the module."""
    cautious = np.zeros(cmdp.n_pairs, dtype=np.bool_)
    cautious[policy_iteration(cmdp, -cmdp.cost.sum(axis=0)).pairs] = True
    return tell(
        cmdp,
        support=cmdp.transition_matrix,
        known_rows=rows_of(cmdp, cautious),
        costs=costs_of(cmdp, cautious),
    )


def of_gamble(cmdp: CMDP, known: BoolArray) -> Knowledge:
    """Return what is known of ``wandering_gamble``; see the module."""
    return tell(
        cmdp,
        known_rows=cmdp.transition_matrix,
        costs=costs_of(cmdp),
        known_states=known,
    )


def of_episodes(cmdp: CMDP, inner: CMDP, horizon: int) -> Knowledge:
    """Return what is known of ``episodic``, ``cmdp`` over ``inner``; see the module."""
    n = inner.n_states
    step = cmdp.pair_state // n
    last = step >= horizon - 1  # and the end, where there is one
    after = np.arange(n) + n * (step[~last] + 1)[:, np.newaxis]
    pair = np.repeat(np.flatnonzero(~last), n)
    flat = cmdp.pair_state.astype(np.int64) * cmdp.n_actions + cmdp.pair_action
    shape = (cmdp.n_states * cmdp.n_actions, cmdp.n_states)
    support = sp.csr_array(
        (np.ones(pair.size), (flat[pair], after.ravel())), shape=shape
    )
    return tell(
        cmdp,
        support=support,
        known_rows=rows_of(cmdp, last),
        costs=costs_of(cmdp),
    )


def recorded(
    cmdp: CMDP,
    cost_given_next: FloatArray | None,
    states: IntArray,
    samples: int,
    *,
    varied: bool = True,
) -> Log:
    """Return ``samples`` steps of every action of these states, drawn from the truth.

    Rewards are the means of the model.  Costs have the mean that the model gives them
    after the next state that was drawn; they are 0 or their bound if ``varied``, else
    that mean itself.
    """
    rng = np.random.default_rng(_SEED)
    chosen = np.isin(cmdp.pair_state, states)
    pairs = np.repeat(np.flatnonzero(chosen), samples)
    ends = np.cumsum(cmdp.probability)
    begun = np.append(0.0, ends)[cmdp.row_ptr[:-1]]
    last = cmdp.row_ptr[1:] - 1
    drawn = begun[pairs] + rng.random(pairs.size) * (ends[last] - begun)[pairs]
    entry = np.minimum(np.searchsorted(ends, drawn, side="right"), last[pairs])
    mean = cmdp.cost[:, pairs]
    if cost_given_next is not None:
        mean = cost_given_next[:, entry]
    top = cmdp.cost_max[:, np.newaxis]
    costs = mean
    if varied:
        costs = np.where(rng.random(mean.shape) * top < mean, top, 0.0)
    return Log(
        states=cmdp.pair_state[pairs],
        actions=cmdp.pair_action[pairs],
        rewards=cmdp.reward[pairs],
        costs=costs.T,
        next_states=cmdp.successor[entry],
    )


def of_cycle(
    cmdp: CMDP,
    cost_given_next: FloatArray,
    *,
    failure: float,
    toll: bool,
) -> Knowledge:
    """Return what is known of ``wall_cycle`` and ``toll_cycle``; see the module."""
    size = math.isqrt(cmdp.n_states)
    grid = Grid(size, size)
    known = np.arange(size - 1)
    models = _walls(grid, rate=max(_RATE, min(2.0 * failure, 1.0)), toll=toll)
    free = np.zeros((grid.size, 5), dtype=np.bool_)
    free[known, STAY] = True
    return tell(
        cmdp,
        models=models,
        free=free,
        log=recorded(cmdp, cost_given_next, known, _SAMPLES, varied=not toll),
    )


def _walls(grid: Grid, *, rate: float, toll: bool) -> ActionModels:
    """Return the models of a free move and of the four walls."""
    targets, outside = grid.moves(5)
    cells = np.arange(grid.size)
    shape = targets.shape
    x, y, last = grid.x, grid.y, grid.width - 1
    apart = min(_APART, last)
    # where each wall may stand, one mask of cells a direction
    near = {NORTH: y >= apart, EAST: x >= apart, WEST: x == 0, SOUTH: y == 0}
    costs = np.zeros(shape)
    if toll:
        costs[near[SOUTH] & (x < last), EAST] = 1.0
        costs[near[EAST] & (y < last), NORTH] = 1.0
        costs[near[NORTH] & (x > 0), WEST] = 1.0
        costs[near[WEST] & (y > 0), SOUTH] = 1.0
    costs[:, STAY] = 1.0
    models = {
        "free": ActionModel(
            typical=np.where(outside, -1, targets), cost=(np.zeros(shape), costs)
        )
    }
    for name, action in _WALL_MODELS.items():
        typical = np.full(shape, -1)
        typical[:, action] = np.where(_possible(near, outside, action), cells, -1)
        models[name] = ActionModel(typical=typical, cost=1.0)
    rates = np.full(shape, rate)
    rates[:, STAY] = 0.0
    return ActionModels(
        Pairs.from_mask(np.ones(shape, dtype=np.bool_)),
        models,
        failures=Failures(
            around=within(grid.coordinates, _REACH),
            rate=(np.zeros(shape), rates),
            law="any",
        ),
        groups=_groups(grid, apart),
        transfers=_transfers(grid, apart, list(models)),
        cost_max=1.0,
    )


def _possible(near: dict[int, BoolArray], outside: BoolArray, action: int) -> BoolArray:
    """Return the cells in which a wall may stop a move: those near it, and the rim."""
    stopped: BoolArray = near[action] | outside[:, action]
    return stopped


def _groups(grid: Grid, apart: int) -> IntArray:
    """Return labels of the moves that meet one straight wall, or do not, together."""
    labels = np.full((grid.size, 5), -1, dtype=np.int64)
    x, y, last = grid.x, grid.y, grid.width - 1
    labels[:, NORTH] = np.where((y >= apart) & (y < last), y, -1)
    labels[:, EAST] = np.where((x >= apart) & (x < last), grid.width + x, -1)
    return labels


def _transfers(grid: Grid, apart: int, names: list[str]) -> tuple[Transfer, ...]:
    """Return the rules: where a wall stands, nothing beyond it is free."""
    between = np.arange(apart, grid.width - 2)
    rules = []
    for name, action, step in (
        ("north wall", NORTH, grid.width),
        ("east wall", EAST, 1),
    ):
        rho = np.zeros((len(names), len(names)))
        free, wall = names.index("free"), names.index(name)
        rho[free, [free, wall]] = 0.5
        rho[wall, wall] = 1.0
        cells = between * step
        rules.append(
            Transfer(
                source=cells * 5 + action, target=(cells + step) * 5 + action, rho=rho
            )
        )
    return tuple(rules)
