"""One server and a queue that should stay short.

In every step somebody arrives with probability ``arrivals``, unless the queue is full;
the server is off, slow or fast, and serves one with a probability that goes with that.
Being off earns 1, slow ``.6``, fast 0: speed is dear.  A step with ``overload`` or more
in the queue costs 1.

An agent is told what is costly, that the queue moves by one at most, and bounds on the
two rates that matter for safety: somebody arrives with a chance of at most .4, and a
fast server serves with one of at least .85.  How fast people come, and how good a
slow server is, it finds out.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from escapade.environments.telling import costs_of, tell
from escapade.environments.world import World
from escapade.errors import refusal
from escapade.knowledge.knowledge import Knowledge
from escapade.model.arguments import check_room, read_count, read_number
from escapade.model.cmdp import CMDP
from escapade.typing import FloatArray
from escapade.uncertainty.interval import Interval

__all__ = ["queue"]

_SPEEDS = ("off", "slow", "fast")
_EARNS = (1.0, 0.6, 0.0)
_SERVES = (0.0, 0.5, 0.9)
_MOST_ARRIVALS = 0.4
_LEAST_FAST = 0.85


def queue(
    length: int = 10,
    *,
    overload: int = 9,
    arrivals: float = 0.3,
    discount: float = 0.98,
    budget: float = 6.0,
) -> World:
    """Return a single-server queue whose overload is charged.

    Parameters
    ----------
    length
        The most that can wait.
    overload
        From how many on a step costs 1.
    arrivals
        Chance that somebody arrives in a step, at most .4.
    discount, budget
        Of the problem.

    Examples
    --------
    >>> import escapade as ep
    >>> ep.environments.queue()
    World('queue', 11 states, 3 actions, 33 pairs, 1 cost, discount 0.98, budget 6)
    """
    length = read_count("length", length, least=1)
    check_room("length", length, 3 * (length + 1) ** 2)
    overload = read_count("overload", overload, least=1)
    chance = read_number("arrivals", arrivals)
    if not 0.0 <= chance <= _MOST_ARRIVALS:
        raise refusal("arrivals", f"a number in [0, {_MOST_ARRIVALS}]", chance)
    n = length + 1
    rows = np.zeros((n, 3, n))
    for waiting in range(n):
        for speed, served in enumerate(_SERVES):
            rows[waiting, speed] = _row(waiting, length, chance, served)
    cmdp = CMDP(
        rows,
        np.tile(_EARNS, (n, 1)),
        np.repeat(np.arange(n) >= overload, 3).reshape(n, 3).astype(np.float64),
        discount=discount,
        budget=budget,
        start=0,
        reward_max=1.0,
        cost_max=1.0,
        state_names=[f"{waiting} waiting" for waiting in range(n)],
        action_names=_SPEEDS,
        coordinates=np.arange(n, dtype=np.float64)[:, np.newaxis],
    )
    return World(
        name="queue",
        description="Serve a queue with as little effort as overload allows.",
        cmdp=cmdp,
        told=partial(_told, cmdp, length),
    )


def _row(waiting: int, length: int, comes: float, served: float) -> FloatArray:
    """Return where a queue is after a step."""
    row = np.zeros(length + 1)
    come = comes if waiting < length else 0.0
    go = served if waiting > 0 else 0.0
    up, down = come * (1.0 - go), go * (1.0 - come)
    row[min(waiting + 1, length)] += up
    row[max(waiting - 1, 0)] += down
    row[waiting] += 1.0 - up - down
    return row


def _told(cmdp: CMDP, length: int) -> Knowledge:
    """Return what is costly, and bounds on the rates."""
    lower = np.zeros_like(cmdp.probability)
    upper = np.ones_like(cmdp.probability)
    served = {0: (0.0, 0.0), 1: (0.0, 1.0), 2: (_LEAST_FAST, 1.0)}
    for pair in range(cmdp.n_pairs):
        waiting, speed = int(cmdp.pair_state[pair]), int(cmdp.pair_action[pair])
        corners = np.array(
            [
                _row(waiting, length, comes, serves)
                for comes in (0.0, _MOST_ARRIVALS)
                for serves in served[speed]
            ]
        )
        entries = slice(cmdp.row_ptr[pair], cmdp.row_ptr[pair + 1])
        # every entry is linear in each rate, so its extremes stand in the corners
        lower[entries] = corners.min(axis=0)[cmdp.successor[entries]]
        upper[entries] = corners.max(axis=0)[cmdp.successor[entries]]
    return tell(
        cmdp,
        models=Interval(cmdp, lower=lower, upper=upper),
        costs=costs_of(cmdp),
        exact_costs=True,
    )
