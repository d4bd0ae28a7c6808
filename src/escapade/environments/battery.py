"""A battery with two budgets: one for heat, one for running low.

Charge and temperature each have a few levels.  Delivering power hard earns 1 and gently
.5; it draws charge, and heats.  Resting cools, charging fills, and neither earns.  A
step that begins hot (in the upper two levels) costs 1 of the first budget, one that
begins nearly empty (the lower two levels of charge) 1 of the second: heat and deep
discharge both age the cells.  An empty battery delivers nothing, whatever is asked.

An agent is told what is costly, and how resting and charging work, which the maker has
measured.  Of delivering it knows only where it may lead: it draws up to two levels, and
heats by one at most.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from escapade.environments.telling import costs_of, rows_of, tell
from escapade.environments.world import World
from escapade.knowledge.knowledge import Knowledge
from escapade.model.arguments import check_room, read_count
from escapade.model.cmdp import CMDP
from escapade.typing import ArrayLike, BoolArray

__all__ = ["battery"]

_ACTIONS = ("hard", "gently", "rest", "charge")
_MEASURED = (2, 3)
# Chances of changes in charge, and in temperature, by action
_CHARGE = (
    {-1: 0.8, -2: 0.2},
    {0: 0.5, -1: 0.5},
    {0: 1.0},
    {1: 0.9, 0: 0.1},
)
_HEAT = (
    {1: 0.6, 0: 0.4},
    {1: 0.2, 0: 0.6, -1: 0.2},
    {0: 0.4, -1: 0.6},
    {1: 0.1, 0: 0.6, -1: 0.3},
)
_DELIVERS = (1.0, 0.5, 0.0, 0.0)


def battery(
    levels: int = 6,
    *,
    heat_levels: int = 5,
    discount: float = 0.95,
    budget: ArrayLike = (2.0, 2.0),
) -> World:
    """Return a battery with budgets for heat and for deep discharge.

    Parameters
    ----------
    levels, heat_levels
        Levels of charge and of temperature, at least 3.
    discount, budget
        Of the problem; two budgets.

    Examples
    --------
    >>> import escapade as ep
    >>> ep.environments.battery()
    World('battery', 30 states, 4 actions, 120 pairs, 2 costs, discount 0.95, ...)
    """
    levels = read_count("levels", levels, least=3)
    heat_levels = read_count("heat_levels", heat_levels, least=3)
    n = levels * heat_levels
    check_room("levels", f"{levels} by {heat_levels}", 4 * n * n)
    charge, heat = np.divmod(np.arange(n), heat_levels)
    rows = np.zeros((n, 4, n))
    support = np.zeros((n, 4, n), dtype=np.bool_)
    reward = np.zeros((n, 4))
    for state in range(n):
        for action in range(4):
            reward[state, action] = _DELIVERS[action] * (charge[state] > 0)
            for drawn, p in _CHARGE[action].items():
                for warmed, q in _HEAT[action].items():
                    left = int(np.clip(charge[state] + drawn, 0, levels - 1))
                    warm = int(np.clip(heat[state] + warmed, 0, heat_levels - 1))
                    rows[state, action, left * heat_levels + warm] += p * q
            low = slice(max(charge[state] - 2, 0), charge[state] + 1)
            near = slice(max(heat[state] - 1, 0), min(heat[state] + 2, heat_levels))
            grid = support[state, action].reshape(levels, heat_levels)
            grid[low, near] = True
    costs = np.stack([heat >= heat_levels - 2, charge <= 1]).astype(np.float64)
    cmdp = CMDP(
        rows,
        reward,
        np.repeat(costs[:, :, np.newaxis], 4, axis=2),
        discount=discount,
        budget=budget,
        start=(levels - 1) * heat_levels,
        reward_max=1.0,
        cost_max=1.0,
        state_names=[
            f"charge {c}, heat {h}" for c, h in zip(charge, heat, strict=True)
        ],
        action_names=_ACTIONS,
        coordinates=np.column_stack([charge, heat]).astype(np.float64),
    )
    return World(
        name="battery",
        description="Deliver power without too much heat, or too little charge.",
        cmdp=cmdp,
        told=partial(_told, cmdp, support),
    )


def _told(cmdp: CMDP, support: BoolArray) -> Knowledge:
    """Return the costs, what the maker measured, and where delivering may lead."""
    measured = np.isin(cmdp.pair_action, _MEASURED)
    possible = support.copy()
    possible[:, _MEASURED] = False
    rows = rows_of(cmdp, measured)
    known = rows.toarray().reshape(possible.shape) > 0.0
    return tell(
        cmdp,
        support=possible | known,
        known_rows=rows,
        costs=costs_of(cmdp),
        exact_rewards=True,
        exact_costs=True,
    )
