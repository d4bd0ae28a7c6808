"""Walking round a field with walls: the paper's Example 2, and a sibling with a toll.

The paper names states, actions, the failure probability and the best policy, but not
the reward, nor what a failed action does.  What is settled here:

- cells ``(x, y)`` with ``1 <= x, y <= size``; actions north, west, south, east, stay;
- a move means to reach a cell ``g``: the next one, or its own where a wall stands.  It
  succeeds with probability ``1 − τ``; else it fails and ends in a cell drawn evenly
  from ``N(g)``, all cells within Euclidean distance 2 of ``g``, ``g`` included.  So

      P(· | s, a) = (1 − τ) δ_g + τ Unif(N(g)),

  except that ``stay`` never fails;
- reward 1 for *meaning* to take the next step counter-clockwise along the boundary,
  whether it succeeds or not; 0 otherwise;
- cost 1 for meaning to walk into a wall and not failing, so ``1 − τ`` on average.  The
  environment charges it exactly then: a step that fails costs nothing, also where it
  happens to end in ``g``, so where a step ends says something about its cost.

The best policy walks round and round, and turns back to the boundary after a failure.
It never hits a wall: no budget binds, and safety is a matter of learning only.

In :func:`toll_cycle` each paid step is also charged ``toll``, the same every time, and
walking into a wall costs 1 whenever it ends in the cell it began in, by failure or not;
so the state, the action and the next state settle every cost.  Reward and cost then
stand in one ratio along the boundary and nothing else earns, so the best value within
budget ``d`` is ``d / toll`` as long as the unbounded walk would cost more.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import scipy.sparse as sp

from escapade.environments.grids import (
    ACTION_NAMES,
    EAST,
    NORTH,
    SOUTH,
    STAY,
    WEST,
    Grid,
    stack_rows,
)
from escapade.environments.knowledge_of import of_cycle
from escapade.environments.world import World
from escapade.errors import refusal
from escapade.model.arguments import check_room, read_count, read_number
from escapade.model.cmdp import CMDP
from escapade.typing import BoolArray, FloatArray, IntArray

__all__ = ["toll_cycle", "wall_cycle"]

_FAILURE = 0.05
_DISCOUNT = 0.99
_BUDGET = 10.0
_TOLL = 0.15
_NEIGHBOURHOOD = [
    (dx, dy) for dx in range(-2, 3) for dy in range(-2, 3) if dx**2 + dy**2 <= 4
]


def wall_cycle(
    size: int = 10,
    *,
    failure: float = _FAILURE,
    discount: float = _DISCOUNT,
    budget: float = _BUDGET,
) -> World:
    """Return Example 2 of the paper: a walk round a field that has walls.

    Parameters
    ----------
    size
        Cells a side, at least 2.
    failure
        Probability τ that a move fails.
    discount, budget
        As in the paper.

    Examples
    --------
    >>> import escapade as ep
    >>> world = ep.environments.wall_cycle()
    >>> world
    World('wall-cycle', 100 states, 5 actions, 500 pairs, 1 cost, ...)
    >>> round(world.optimum, 6)
    97.667935
    """
    cmdp, cost_given_next = _walk(size, failure, 0.0, discount, budget)
    numbers = (cmdp.n_states, float(failure), cmdp.discount)
    as_printed = numbers == (100, _FAILURE, _DISCOUNT)
    return World(
        name="wall-cycle",
        description="Walk round a field without hitting its walls (Example 2).",
        cmdp=cmdp,
        known_optimum=97.66793494051 if as_printed else None,
        optimum_source=(
            "the unconstrained optimum, which costs nothing: policy iteration, refined"
            if as_printed
            else ""
        ),
        cost_noise="bernoulli",
        cost_given_next=cost_given_next,
        told=partial(of_cycle, cmdp, cost_given_next, failure=failure, toll=False),
    )


def toll_cycle(
    size: int = 10,
    *,
    toll: float = _TOLL,
    failure: float = _FAILURE,
    discount: float = _DISCOUNT,
    budget: float = _BUDGET,
) -> World:
    """Return Example 2 with a toll on every paid step, so that the budget binds.

    With the default numbers the walk that ignores the budget costs 1.46 budgets.

    Parameters
    ----------
    size
        Cells a side, at least 2.
    toll
        Cost of a paid step.
    failure
        Probability τ that a move fails.
    discount, budget
        As in the paper.

    Examples
    --------
    >>> import escapade as ep
    >>> round(ep.environments.toll_cycle(size=5).optimum, 6)
    66.666667
    """
    toll = read_number("toll", toll)
    if not 0.0 < toll <= 1.0:
        raise refusal("toll", "a number in (0, 1]", toll)
    cmdp, cost_given_next = _walk(size, failure, toll, discount, budget)
    numbers = (toll, float(failure), cmdp.discount, float(cmdp.budget[0]))
    # A failed move ends within two cells of where it was meant to end, on a field of
    # any size: with these numbers the free walk earns about 97, far more than 66.67.
    binds = numbers == (_TOLL, _FAILURE, _DISCOUNT, _BUDGET)
    return World(
        name="toll-cycle",
        description="The walk of wall-cycle, where each paid step is charged a toll.",
        cmdp=cmdp,
        known_optimum=_BUDGET / _TOLL if binds else None,
        optimum_source=(
            "budget / toll: rewards and tolls stand in one ratio" if binds else ""
        ),
        cost_given_next=cost_given_next,
        told=partial(of_cycle, cmdp, cost_given_next, failure=failure, toll=True),
    )


def _walk(
    size: int, failure: float, toll: float, discount: float, budget: float
) -> tuple[CMDP, FloatArray]:
    """Return the model, and its mean costs given the next state."""
    size = read_count("size", size, least=2)
    check_room("size", size, 5 * 13 * size**2)  # up to 13 cells within 2
    failure = read_number("failure", failure)
    if not 0.0 <= failure < 1.0:
        raise refusal("failure", "a number in [0, 1)", failure)
    grid = Grid(size, size)
    targets, hits = grid.moves(5)
    along = _paid_steps(grid)
    rows = _transitions(grid, targets, failure)
    stays = rows[np.arange(grid.size * 5), targets.ravel()].reshape(targets.shape)
    # with a toll, a wall costs whenever the step ends before it; without, not if the
    # step failed and ended there by chance
    at_wall = stays if toll else np.full(targets.shape, 1.0 - failure)
    cmdp = CMDP(
        rows,
        along.astype(np.float64),
        np.where(hits, at_wall, np.where(along, toll, 0.0)),
        discount=discount,
        budget=budget,
        start=0,
        reward_max=1.0,
        cost_max=1.0,
        action_names=ACTION_NAMES,
        coordinates=grid.coordinates,
    )
    pair = np.repeat(np.arange(cmdp.n_pairs), np.diff(cmdp.row_ptr))
    own = cmdp.successor == targets.ravel()[pair]
    ended = np.where(own, cmdp.cost[0, pair] / cmdp.probability, 0.0)
    given_next = np.where(hits.ravel()[pair], ended, cmdp.cost[0, pair])
    given_next = np.minimum(given_next, 1.0)[np.newaxis]
    given_next.flags.writeable = False
    return cmdp, given_next


def _transitions(grid: Grid, targets: IntArray, failure: float) -> sp.csr_array:
    """Return ``(1 − τ) δ_g + τ Unif(N(g))`` for every pair, ``g`` its target."""
    fails = np.full(targets.shape, failure)
    fails[:, STAY] = 0.0
    around = [grid.shifted(targets, dx, dy) for dx, dy in _NEIGHBOURHOOD]
    share = fails / np.sum([exists for _, exists in around], axis=0)
    return stack_rows(
        [targets, *(cells for cells, _ in around)],
        [1.0 - fails, *(np.where(exists, share, 0.0) for _, exists in around)],
        grid.size,
    )


def _paid_steps(grid: Grid) -> BoolArray:
    """Mark the pairs that mean to go on counter-clockwise along the boundary."""
    x, y, right, top = grid.x, grid.y, grid.width - 1, grid.height - 1
    along = np.zeros((grid.size, 5), dtype=np.bool_)
    along[(y == 0) & (x < right), EAST] = True
    along[(x == right) & (y < top), NORTH] = True
    along[(y == top) & (x > 0), WEST] = True
    along[(x == 0) & (y > 0), SOUTH] = True
    return along
