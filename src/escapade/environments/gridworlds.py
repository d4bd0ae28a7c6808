"""Two small grids whose best policies are known: barriers, and a moat.

**Barriers.**  Six by six cells.  A move goes where it is meant to with probability .9,
and else in one of the four directions, drawn evenly; outside the grid lies nothing, so
the agent stays.  Reaching the cell in column 3 of row 2, both counted from 0 at the
south-west, ends the walk: the agent stays there and earns 1 a step.  South and north of
it two barriers span columns 1 to 4, in rows 1 and 3; every step begun in a barrier
costs 10 in a channel of its own, with a budget of 2 each.  The start is drawn evenly
among the cells that cost nothing, the goal among them.

**The moat.**  North is up::

    . . G .
    . P . P
    . P P P
    . . S .

Moves are sure, and stay where nothing lies ahead.  Every step earns −1, except those
from G, which earn nothing and lead back to S whatever is done; every step that ends in
P costs 1.  The way through the moat takes 3 steps and costs 1; the way round takes 7
and costs nothing.  With the step back to S, rounds take 4 and 8.  As rewards lie in
[0, r_max] here, 1 is added to each step, so that only the step from G pays; the world's
``value_offset`` takes it away again.

What is left is to choose the way at every visit of S.  Let m and n be the expected
discounted numbers of visits from which the way through and the way round are taken.
Then m + n = 1 + γ⁴ m + γ⁸ n, and m ≤ d as each way through costs 1 at once, so

.. math:: V = γ³ m + γ⁷ n,
    m = min(d, 1 / (1 − γ⁴)),
    n = (1 − (1 − γ⁴) m) / (1 − γ⁸).

In the long run a cost rate of ρ ≤ 1/4 affords the way through in a share 4ρ of the
time: on average 4ρ/4 + (1 − 4ρ)/8 of a visit of G a step, .225 at ρ = .2, which is
−.775 before 1 was added.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from escapade.environments.grids import ACTION_NAMES, Grid, stack_rows
from escapade.environments.knowledge_of import of_barriers, of_moat
from escapade.environments.world import World
from escapade.errors import refusal
from escapade.model.arguments import read_number
from escapade.model.cmdp import CMDP
from escapade.typing import ArrayLike

__all__ = ["barrier_grid", "moat_grid"]

_SIDE = 6
_GOAL = 15
_BARRIER_ROWS = (1, 3)
_BARRIER_COST = 10.0
_BARRIER_DEFAULTS = (0.1, 0.7, 2.0, 2.0)
_STEP = -1.0
_MOAT = ("..G.", ".P.P", ".PPP", "..S.")  # north first


def barrier_grid(
    *, slip: float = 0.1, discount: float = 0.7, budget: ArrayLike = (2.0, 2.0)
) -> World:
    """Return a walk to a goal between two barriers, each with a budget of its own.

    Parameters
    ----------
    slip
        Probability that a direction is drawn instead of taken.
    discount
        Discount factor.
    budget
        One for the southern barrier, one for the northern.

    Examples
    --------
    >>> import escapade as ep
    >>> world = ep.environments.barrier_grid()
    >>> world
    World('barrier-grid', 36 states, 4 actions, 144 pairs, 2 costs, ...)
    >>> round(world.optimum, 6)
    1.074838
    """
    slip = read_number("slip", slip)
    if not 0.0 <= slip <= 1.0:
        raise refusal("slip", "a number in [0, 1]", slip)
    grid = Grid(_SIDE, _SIDE)
    targets, _ = grid.moves(4)
    targets[_GOAL] = _GOAL
    drawn = [
        np.broadcast_to(cells[:, np.newaxis], (grid.size, 4)) for cells in targets.T
    ]
    matrix = stack_rows(
        [targets, *drawn],
        [np.full(targets.shape, w) for w in (1.0 - slip, *[slip / 4.0] * 4)],
        grid.size,
    )
    reward = np.zeros((grid.size, 4))
    reward[_GOAL] = 1.0
    barrier = np.array(
        [(grid.y == row) & (grid.x >= 1) & (grid.x <= 4) for row in _BARRIER_ROWS]
    )
    free = ~barrier.any(axis=0)
    cmdp = CMDP(
        matrix,
        reward,
        np.repeat(_BARRIER_COST * barrier[:, :, np.newaxis], 4, axis=2),
        discount=discount,
        budget=budget,
        start=free / free.sum(),
        action_names=ACTION_NAMES[:4],
        coordinates=grid.coordinates,
    )
    as_stated = (slip, cmdp.discount, *cmdp.budget) == _BARRIER_DEFAULTS
    return World(
        name="barrier-grid",
        description="Walk to a goal between two barriers, each with a budget.",
        cmdp=cmdp,
        known_optimum=1.0748375833535557 if as_stated else None,
        optimum_source="the occupation linear program" if as_stated else "",
        told=partial(of_barriers, cmdp, targets, slip=slip, goal=_GOAL),
    )


def moat_grid(*, discount: float = 0.99, budget: float = 20.0) -> World:
    """Return rounds from S to G, through a moat or the long way about.

    Parameters
    ----------
    discount
        Discount factor.
    budget
        Expected discounted number of steps into the moat.

    Examples
    --------
    >>> import escapade as ep
    >>> world = ep.environments.moat_grid()
    >>> round(world.optimum, 4), round(world.raw_optimum, 4)
    (21.9627, -78.0373)
    >>> round(world.raw_average_optimum, 4)
    -0.775
    """
    grid = Grid(len(_MOAT[0]), len(_MOAT))
    letter = np.array([list(row) for row in reversed(_MOAT)]).ravel()
    begin, goal = (int(np.flatnonzero(letter == name)[0]) for name in "SG")
    targets, _ = grid.moves(4)
    targets[goal] = begin
    cmdp = CMDP(
        stack_rows([targets], [np.ones(targets.shape)], grid.size),
        np.repeat((letter == "G")[:, np.newaxis], 4, axis=1),
        letter[targets] == "P",
        discount=discount,
        budget=budget,
        start=begin,
        state_names=[
            f"{name} at ({x + 1}, {y + 1})".replace(".", "cell")
            for name, x, y in zip(letter, grid.x, grid.y, strict=True)
        ],
        action_names=ACTION_NAMES[:4],
        coordinates=grid.coordinates,
    )
    gamma, d = cmdp.discount, float(cmdp.budget[0])
    through = min(d, 1.0 / (1.0 - gamma**4))
    around = (1.0 - (1.0 - gamma**4) * through) / (1.0 - gamma**8)
    return World(
        name="moat-grid",
        description="Rounds to a goal, through a moat at a cost or the long way.",
        cmdp=cmdp,
        known_optimum=gamma**3 * through + gamma**7 * around,
        optimum_source="closed form: through the moat as often as the budget allows",
        average_optimum=0.125 + 0.5 * min((1.0 - gamma) * d, 0.25),
        value_offset=_STEP / (1.0 - gamma),
        told=partial(of_moat, cmdp, targets, offset=_STEP),
    )
