"""Two small grids whose best policies are known: barriers, and a moat.

**Barriers.**  Six by six cells.  A move goes where it is meant to with probability .9,
and else in one of the four directions, drawn evenly; outside the grid lies nothing, so
the agent stays.  Reaching cell (3, 2), counted from 0 at the south-west, ends the walk:
the agent stays there and earns 1 a step.  North and south of it two barriers span
x = 1..4, in rows 1 and 3; every step in a barrier costs 10 in a channel of its own, with
a budget of 2 each.  The start is drawn evenly among the cells that cost nothing.

**The moat.**  ::

    . . G .
    . P . P
    . P P P
    . . S .

Moves are sure.  Every step earns −1, except those from G, which earn 0 and lead back to
S whatever is done; entering P costs 1.  The walk round the moat costs nothing and takes
six steps, as G lies over its far end; the way through takes fewer.  At a cost rate of at
most .2 the best average reward is −.775.

As rewards lie in [0, r_max] here, 1 is added to each step of the moat; the world's
``value_offset`` takes it away.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from escapade.environments.grids import ACTION_NAMES, Grid, stack_rows
from escapade.environments.world import World
from escapade.errors import refusal
from escapade.model.arguments import read_discount, read_number
from escapade.model.cmdp import CMDP
from escapade.typing import ArrayLike

__all__ = ["barrier_grid", "moat_grid"]

_MOAT = ("..G.", ".P.P", ".PPP", "..S.")
