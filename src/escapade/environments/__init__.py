"""Worlds: problems whose truth is known, and the environments to live in them.

A :class:`World` holds a true model, a Gymnasium environment over it, and the best
value with its source.  Nothing here learns, and nothing that learns may import this.
"""

from escapade.environments.cmdp_env import CMDPEnv
from escapade.environments.cycles import toll_cycle, wall_cycle
from escapade.environments.world import World

__all__ = [
    "CMDPEnv",
    "World",
    "toll_cycle",
    "wall_cycle",
]
