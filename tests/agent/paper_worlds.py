"""Small worlds with a known set to set out from, for the paper's algorithm."""

from __future__ import annotations

from typing import Any

import numpy as np
from tests.simulation.worlds import told

from escapade.agent import E4, E4Settings, PaperSettings
from escapade.environments import World
from escapade.model import CMDP

__all__ = ["born", "harbour", "two_channels"]


def born(world: World, *, seed: int = 0, known_after: int = 4, **paper: Any) -> E4:
    """Return an agent by Algorithm 1; further settings are those of the algorithm."""
    return E4(
        world.knowledge,
        E4Settings(
            mode="paper",
            seed=seed,
            known_after=known_after,
            epsilon=0.4,
            paper=PaperSettings(**paper),
        ),
    )


def harbour(budget: float = 8.0, *, known: int = 1, reward_max: float = 1.0) -> World:
    """Return a line of five cells; life begins in the first, which is known.

    ``back`` never fails.  ``on`` may slip by up to two cells, and beyond the first cell
    a step costs something that is not known; resting in the first cell is free.
    """
    n = 5
    rows = np.zeros((n, 3, n))
    for s in range(n):
        rows[s, 0, s] = 1.0  # rest
        rows[s, 1, max(s - 1, 0)] = 1.0  # back
        rows[s, 2, min(s + 1, n - 1)] += 0.8  # on
        rows[s, 2, min(s + 2, n - 1)] += 0.2
    reward = np.zeros((n, 3))
    reward[0, 0] = 0.1
    reward[n - 1, 0] = 1.0
    cost = np.zeros((n, 3))
    cost[1:] = 0.7
    cost[3] = 0.9
    cmdp = CMDP(
        rows,
        reward,
        cost,
        discount=0.9,
        budget=budget,
        reward_max=reward_max,
        cost_max=1.0,
    )
    sure = np.zeros((n, 3), dtype=np.bool_)
    sure[:, 1] = True
    sure[:known] = True
    exact = np.where(sure[..., np.newaxis], rows, 0.0).reshape(3 * n, n)
    free = np.zeros((n, 3), dtype=np.bool_)
    free[0] = True
    states = np.arange(n) < known
    knowledge = told(
        cmdp, support=rows > 0.0, known_rows=exact, free=free, known_states=states
    )
    return World(
        name="harbour",
        description="A line of cells to set out along, and to come back.",
        cmdp=cmdp,
        reward_noise="bernoulli",
        cost_noise="bernoulli",
        told=lambda: knowledge,
    )


def two_channels() -> World:
    """Return the harbour with a second budget, charged for every step away."""
    plain = harbour().cmdp
    away = (plain.pair_state > 0).astype(np.float64)
    cmdp = plain.replace(
        cost=np.vstack([plain.cost, 0.3 * away]),
        budget=[8.0, 7.0],
        cost_max=[1.0, 1.0],
    )
    given = harbour().knowledge
    rows = np.zeros((15, 5))
    for pair in np.flatnonzero(given.exact_pairs):
        rows[pair] = plain.transition_matrix[[pair]].toarray()
    free = np.zeros((5, 3), dtype=np.bool_)
    free[0] = True
    knowledge = told(
        cmdp,
        support=plain.transition_matrix > 0.0,
        known_rows=rows,
        free=free,
        known_states=np.arange(5) == 0,
    )
    return World(
        name="two-channels",
        description="The harbour with two budgets.",
        cmdp=cmdp,
        cost_noise="bernoulli",
        told=lambda: knowledge,
    )
