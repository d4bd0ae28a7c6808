"""Small worlds to live in, and what is known of each."""

from __future__ import annotations

from typing import Any

import numpy as np

from escapade.environments import (
    World,
    garnet,
    moat_grid,
    three_state_loop,
    toll_cycle,
    wall_cycle,
    wandering_gamble,
)
from escapade.knowledge import Knowledge
from escapade.model import CMDP

__all__ = ["LIVES", "told", "two_budgets", "workshop"]


def told(cmdp: CMDP, **more: Any) -> Knowledge:
    """Return the spaces and bounds of a model, and whatever else is told."""
    return Knowledge(
        cmdp.n_states,
        cmdp.n_actions,
        discount=cmdp.discount,
        budget=cmdp.budget,
        reward_max=cmdp.reward_max,
        cost_max=cmdp.cost_max,
        start=cmdp.start,
        **more,
    )


def two_budgets() -> World:
    """Return a world where each of two budgets keeps the other's action company.

    Rest is free; the other two actions earn the same, and each is charged to its own
    budget, so the best stationary policy mixes all three.
    """
    cmdp = CMDP(
        np.array([[[0.7, 0.3]] * 3, [[0.4, 0.6]] * 3]),
        np.array([[0.1, 1.0, 0.9], [0.0, 0.8, 1.0]]),
        np.array([[[0.0, 0.8, 0.0]] * 2, [[0.0, 0.0, 0.8]] * 2]),
        discount=0.9,
        budget=[2.0, 3.0],
        reward_max=1.0,
        cost_max=1.0,
    )
    knowledge = told(cmdp, known_rows=cmdp.transition_matrix, costs=_table(cmdp))
    return World(
        name="two-budgets",
        description="Each of two ways to earn is charged to its own budget.",
        cmdp=cmdp,
        cost_noise="bernoulli",
        reward_noise="uniform",
        told=lambda: knowledge,
    )


def workshop() -> World:
    """Return a line of four cells; the last is worth reaching, the third costs.

    A step on may slip back; resting in the first cell is free.
    """
    rows = np.zeros((4, 3, 4))
    for s in range(4):
        rows[s, 0, s] = 1.0  # rest
        rows[s, 1, max(s - 1, 0)] = 1.0  # back
        rows[s, 2, min(s + 1, 3)] += 0.9  # on
        rows[s, 2, max(s - 1, 0)] += 0.1
    reward = np.zeros((4, 3))
    reward[3] = [1.0, 0.0, 0.2]
    cost = np.zeros((4, 3))
    cost[2] = 0.5
    cost[3, 0] = 0.2
    cmdp = CMDP(
        rows,
        reward,
        cost,
        discount=0.9,
        budget=4.0,
        reward_max=1.0,
        cost_max=1.0,
    )
    known = np.zeros((4, 3), dtype=np.bool_)
    known[:, :2] = True  # to rest and to go back never fail
    rates = np.where(known[..., np.newaxis], rows, 0.0).reshape(12, 4)
    free = np.zeros((4, 3), dtype=np.bool_)
    free[:2] = True
    knowledge = told(cmdp, support=rows > 0.0, known_rows=rates, free=free)
    return World(
        name="workshop",
        description="A line of cells with a good end behind a dear one.",
        cmdp=cmdp,
        reward_noise="bernoulli",
        cost_noise="uniform",
        told=lambda: knowledge,
    )


def _table(cmdp: CMDP) -> np.ndarray:
    return cmdp.cost.reshape(cmdp.n_costs, cmdp.n_states, cmdp.n_actions).copy()


LIVES = {
    "walls": (lambda: wall_cycle(3), {"known_after": 3}, 600),
    "toll": (lambda: toll_cycle(2), {"known_after": 4}, 250),
    "loop": (three_state_loop, {"known_after": 3}, 150),
    "garnet": (garnet, {"known_after": 2}, 400),
    "two garnets": (lambda: garnet(8, 3, 2, n_costs=2), {"known_after": 2}, 300),
    "moat": (moat_grid, {"known_after": 2, "refine": False}, 300),
    "gamble": (wandering_gamble, {"known_after": 2, "refine": False}, 6),
    "draws": (
        two_budgets,
        {"known_after": 5, "planner": {"exploit": "linear-program"}},
        400,
    ),
    "two budgets": (two_budgets, {"known_after": 5}, 400),
    "workshop": (workshop, {"known_after": 10}, 400),
}
"""A world, settings and a number of steps, by name."""
