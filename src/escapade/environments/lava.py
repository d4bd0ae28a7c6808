"""A wall of lava with one gap: MiniGrid's LavaGap, every state numbered.

The field has walls around it; a column of lava divides it, with one cell missing.  The
agent stands in a cell and faces a direction; it turns left, turns right, or goes
forward, always for certain.  Going into lava costs 1 and leads back to the start, and
so does the goal, which earns 1.  The default is the layout that MiniGrid draws for
``MiniGrid-LavaGapS7-v0`` with seed 0.

An agent is told how turning works, and that going forward leads to the next cell, or
nowhere, or to the start.  The map it finds out: every first step into a cell may cost
1, which the budget has to pay for.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from escapade.environments.telling import rows_of, tell
from escapade.environments.world import World
from escapade.errors import refusal
from escapade.knowledge.knowledge import Knowledge
from escapade.model.arguments import check_room, read_count
from escapade.model.cmdp import CMDP
from escapade.typing import BoolArray

__all__ = ["lava_gap"]

_AHEAD = ((1, 0), (0, 1), (-1, 0), (0, -1))
_DIRECTIONS = ("east", "south", "west", "north")
_LEFT, _RIGHT, _FORWARD = range(3)


def lava_gap(
    size: int = 7,
    *,
    gap: tuple[int, int] = (4, 4),
    discount: float = 0.95,
    budget: float = 2.0,
) -> World:
    """Return a field divided by lava.

    Parameters
    ----------
    size
        Cells a side, walls included; at least 5.
    gap
        Column of the lava, and row of the cell without, counted from the corner.
    discount, budget
        Of the problem.

    Examples
    --------
    >>> import escapade as ep
    >>> ep.environments.lava_gap()
    World('lava-gap', 80 states, 3 actions, 240 pairs, 1 cost, discount 0.95, budget 2)
    """
    side = read_count("size", size, least=5)
    check_room("size", side, 3 * (4 * (side - 2) ** 2) ** 2)
    column, row = (read_count("gap", place) for place in gap)
    if not (2 <= column <= side - 3 and 1 <= row <= side - 2):
        raise refusal(
            "gap",
            f"a column in 2..{side - 3} and a row in 1..{side - 2}",
            (column, row),
        )
    lava = {(column, y) for y in range(1, side - 1) if y != row}
    goal = (side - 2, side - 2)
    cells = [
        (x, y)
        for y in range(1, side - 1)
        for x in range(1, side - 1)
        if (x, y) not in lava and (x, y) != goal
    ]
    # the goal is no state either: whoever reaches it is at the start again
    places = [(*cell, d) for cell in cells for d in range(4)]
    number = {place: k for k, place in enumerate(places)}
    n = len(places)
    target = np.zeros((n, 3), dtype=np.int64)
    reward, cost = np.zeros((n, 3)), np.zeros((n, 3))
    start = number[1, 1, 0]
    for k, (x, y, d) in enumerate(places):
        target[k, _LEFT] = number[x, y, (d - 1) % 4]
        target[k, _RIGHT] = number[x, y, (d + 1) % 4]
        ahead = (x + _AHEAD[d][0], y + _AHEAD[d][1])
        if ahead in lava or ahead == goal:
            target[k, _FORWARD] = start
            cost[k, _FORWARD] = float(ahead in lava)
            reward[k, _FORWARD] = float(ahead == goal)
        else:
            target[k, _FORWARD] = number.get((*ahead, d), k)
    cmdp = CMDP(
        np.eye(n)[target],
        reward,
        cost,
        discount=discount,
        budget=budget,
        start=start,
        reward_max=1.0,
        cost_max=1.0,
        action_names=["left", "right", "forward"],
        state_names=[f"({x}, {y}) {_DIRECTIONS[d]}" for x, y, d in places],
        coordinates=np.array([(x, -y) for x, y, _ in places], dtype=np.float64),
    )
    support = np.eye(n, dtype=np.bool_)[target]
    for k, (x, y, d) in enumerate(places):
        beyond = number.get((x + _AHEAD[d][0], y + _AHEAD[d][1], d), k)
        support[k, _FORWARD, [k, start, beyond]] = True
    return World(
        name="lava-gap",
        description="Find the goal beyond a wall of lava that has one gap.",
        cmdp=cmdp,
        told=partial(_told, cmdp, support),
    )


def _told(cmdp: CMDP, support: BoolArray) -> Knowledge:
    """Return how turning works, and where going forward may lead."""
    turning = cmdp.pair_action != _FORWARD
    free = np.ones((cmdp.n_states, 3), dtype=np.bool_)
    free[:, _FORWARD] = False
    return tell(
        cmdp,
        support=support,
        known_rows=rows_of(cmdp, turning),
        free=free,
        exact_rewards=True,
        exact_costs=True,
    )
