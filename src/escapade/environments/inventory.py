"""A store that must not run dry: order today, sell what is asked for, keep the rest.

In the morning ``stock`` units lie in the store, and some are ordered; they arrive at
once, as far as there is room for them.  Then ``0 .. most`` units are asked for, with
binomial chances.  A unit sold earns ``price``; keeping one overnight takes ``keeping``
and ordering one ``ordering`` off that.  The reward is the profit, scaled into [0, 1].

A day on which somebody goes away with nothing is a shortage, and costs 1.

An agent is told how stock follows from order and demand, and that nobody ever asks for
more than ``most``: so it knows which orders cannot run short, and orders up there
whenever it has no better reason.  How much is asked for it finds out.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy.special import comb

from escapade.environments.telling import tell
from escapade.environments.world import World
from escapade.errors import refusal
from escapade.knowledge.knowledge import Knowledge
from escapade.model.arguments import check_room, read_count, read_number
from escapade.model.cmdp import CMDP
from escapade.typing import BoolArray

__all__ = ["inventory"]


def inventory(
    room: int = 8,
    *,
    most: int = 6,
    demand: float = 0.4,
    price: float = 1.0,
    keeping: float = 0.3,
    ordering: float = 0.2,
    discount: float = 0.95,
    budget: float = 2.0,
) -> World:
    """Return a store with a budget for shortages.

    Parameters
    ----------
    room
        Units that the store can hold.
    most
        The most that is ever asked for on a day, at most ``room``.
    demand
        Share of that which is asked for on average.
    price, keeping, ordering
        What a unit earns when sold, and costs to keep and to order.
    discount, budget
        Of the problem.

    Examples
    --------
    >>> import escapade as ep
    >>> ep.environments.inventory()
    World('inventory', 9 states, 9 actions, 81 pairs, 1 cost, discount 0.95, budget 2)
    """
    room = read_count("room", room, least=1)
    check_room("room", room, (room + 1) ** 3)
    most = read_count("most", most, least=1)
    if most > room:
        raise refusal("most", f"at most {room}, what there is room for", most)
    share = read_number("demand", demand)
    if not 0.0 <= share <= 1.0:
        raise refusal("demand", "a number in [0, 1]", share)
    prices = {"price": price, "keeping": keeping, "ordering": ordering}
    for name, value in prices.items():
        if not 0.0 <= read_number(name, value) < np.inf:
            raise refusal(name, "a finite number of at least 0", value)
    asked = np.arange(most + 1)
    chances = comb(most, asked) * share**asked * (1.0 - share) ** (most - asked)
    n = room + 1
    rows, support = np.zeros((n, n, n)), np.zeros((n, n, n), dtype=np.bool_)
    profit, short = np.zeros((n, n)), np.zeros((n, n))
    for stock, order in np.ndindex(n, n):
        full = min(stock + order, room)
        left = np.maximum(full - asked, 0)
        np.add.at(rows[stock, order], left, chances)
        support[stock, order, left] = True
        sold = np.minimum(asked, full)
        profit[stock, order] = chances @ (price * sold - keeping * left)
        profit[stock, order] -= ordering * (full - stock)
        short[stock, order] = chances[asked > full].sum()
    worst, best = -(keeping + ordering) * room, price * most
    scale = max(best - worst, 1e-300)
    cmdp = CMDP(
        rows,
        (profit - worst) / scale,
        short,
        discount=discount,
        budget=budget,
        start=room,
        reward_max=1.0,
        cost_max=1.0,
        state_names=[f"{stock} in stock" for stock in range(n)],
        action_names=[f"order {order}" for order in range(n)],
    )
    return World(
        name="inventory",
        description="Order for a store that should not run short.",
        cmdp=cmdp,
        cost_noise="bernoulli",
        value_scale=scale,
        value_offset=worst / (1.0 - cmdp.discount),
        told=partial(_told, cmdp, support, most, reward_map=(scale, worst)),
    )


def _told(
    cmdp: CMDP, support: BoolArray, most: int, *, reward_map: tuple[float, float]
) -> Knowledge:
    """Return how stock moves, and the most that is ever asked for."""
    n = cmdp.n_states
    full = np.add.outer(np.arange(n), np.arange(n))
    scale, offset = reward_map
    return tell(
        cmdp,
        support=support,
        free=np.minimum(full, n - 1) >= most,
        reward_scale=scale,
        reward_offset=offset,
    )
