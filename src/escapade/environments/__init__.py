"""Worlds: problems whose truth is known, and the environments to live in them.

A :class:`World` holds a true model, a Gymnasium environment over it, and the best
value with its source.  Nothing here learns, and nothing that learns may import this.
"""

from escapade.environments.cmdp_env import CMDPEnv
from escapade.environments.cycles import toll_cycle, wall_cycle
from escapade.environments.episodes import episodic
from escapade.environments.gamble import WanderingGamble, wandering_gamble
from escapade.environments.garnets import garnet
from escapade.environments.gridworlds import barrier_grid, moat_grid
from escapade.environments.loop import three_state_loop
from escapade.environments.registry import make, names, parameters
from escapade.environments.world import World

__all__ = [
    "CMDPEnv",
    "WanderingGamble",
    "World",
    "barrier_grid",
    "episodic",
    "garnet",
    "make",
    "moat_grid",
    "names",
    "parameters",
    "three_state_loop",
    "toll_cycle",
    "wall_cycle",
    "wandering_gamble",
]
