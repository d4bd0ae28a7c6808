"""Three states in a ring: the smallest world in which a budget binds.

Action ``move`` leads from state s to s + 1 modulo 3, earns s + 1 and costs 1; ``stay``
earns and costs nothing.  The start is drawn evenly.

The best policy waits in state 0, where the next move pays least.  Let m be the expected
discounted number of moves from state 0; states 1 and 2 are left at once, 1/3 + γ m and
1/3 + γ (1/3 + γ m) times.  These numbers add up to the budget d, so

.. math:: m = (d − (2 + γ) / 3) / (1 + γ + γ²),
    V = m (1 + 2γ + 3γ²) + 5/3 + γ,

as long as (2 + γ)/3 ≤ d ≤ 1/(1 − γ).  The multiplier λ = (1 + 2γ + 3γ²)/(1 + γ + γ²)
lies between 1 and 2, so with it moving is best in states 1 and 2 and earns just nothing
in state 0: the dual agrees.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from escapade.environments.episodes import episodic
from escapade.environments.knowledge_of import of_loop
from escapade.environments.world import World
from escapade.knowledge.knowledge import Knowledge
from escapade.model.arguments import read_count, read_discount
from escapade.model.cmdp import CMDP

__all__ = ["three_state_loop"]


def three_state_loop(
    *,
    discount: float = 0.9,
    budget: float | None = None,
    horizon: int | None = None,
) -> World:
    """Return three states in a ring, where every move earns and costs.

    Parameters
    ----------
    discount
        Discount factor, above 0 if there is a horizon.
    budget
        By default half of what it costs to move always.
    horizon
        Count this many steps, undiscounted, from one start; see
        :func:`escapade.environments.episodic`.

    Examples
    --------
    >>> import escapade as ep
    >>> round(ep.environments.three_state_loop().optimum, 4)
    10.3506
    >>> world = ep.environments.three_state_loop(horizon=6)
    >>> world.cmdp.budget, round(world.optimum, 4)
    (array([3.]), 6.6667)
    """
    discount = read_discount(discount)
    if horizon is None:
        most = 1.0 / (1.0 - discount)
    else:
        most = float(read_count("horizon", horizon, least=1))
    matrix = np.zeros((3, 2, 3))
    states = np.arange(3)
    matrix[states, 0, states] = 1.0
    matrix[states, 1, (states + 1) % 3] = 1.0
    angle = np.deg2rad(90.0 - 120.0 * states)
    cmdp = CMDP(
        matrix,
        [[0.0, 1.0], [0.0, 2.0], [0.0, 3.0]],
        [[0.0, 1.0]] * 3,
        discount=discount,
        budget=most / 2.0 if budget is None else budget,
        start=np.full(3, 1.0 / 3.0),
        action_names=("stay", "move"),
        coordinates=np.stack([np.cos(angle), np.sin(angle)], axis=1),
    )
    known: dict[str, Any] = {}
    d = float(cmdp.budget[0])
    told: Callable[[], Knowledge] | None = partial(of_loop, cmdp)
    if horizon is not None:
        episodes = episodic(cmdp, horizon)
        cmdp, told = episodes.cmdp, episodes.told
        if (horizon, d) == (6, 3.0):
            # Earning 6 from state 0, and 5 or 3 + 1 + 2 + 3 with fewer or more moves
            known = {
                "known_optimum": 20.0 / 3.0,
                "optimum_source": "the best distribution of nine moves over the starts",
            }
    elif (2.0 + discount) / 3.0 <= d <= most:
        moves = (d - (2.0 + discount) / 3.0) / (1.0 + discount + discount**2)
        earned = moves * (1.0 + 2.0 * discount + 3.0 * discount**2)
        known = {
            "known_optimum": earned + 5.0 / 3.0 + discount,
            "optimum_source": "closed form: wait in state 0 until the budget is met",
        }
    return World(
        name="three-state-loop",
        description="Three states in a ring; each move earns and costs.",
        cmdp=cmdp,
        told=told,
        **known,
    )
