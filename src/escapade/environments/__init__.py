"""Worlds: problems whose truth is known, and the environments to live in them.

A :class:`World` holds a true model, a Gymnasium environment over it, and the best
value with its source.  Adapters bring other people's environments in.  Nothing here
learns, and nothing that learns may import this.
"""

from escapade.environments.arrays import from_arrays
from escapade.environments.battery import battery
from escapade.environments.brought import Brought, BroughtEnv
from escapade.environments.cmdp_env import CMDPEnv
from escapade.environments.costs_of import SIX_TUPLE
from escapade.environments.cycles import toll_cycle, wall_cycle
from escapade.environments.discretizer import Abstraction, Discretizer
from escapade.environments.episodes import episodic
from escapade.environments.flattening import Flattening
from escapade.environments.gamble import WanderingGamble, wandering_gamble
from escapade.environments.garnets import garnet
from escapade.environments.gridworlds import barrier_grid, moat_grid
from escapade.environments.gymnasium_adapter import from_gymnasium
from escapade.environments.inventory import inventory
from escapade.environments.lakes import cliff_walk, frozen_lake
from escapade.environments.lava import lava_gap
from escapade.environments.loop import three_state_loop
from escapade.environments.minigrid_adapter import from_minigrid
from escapade.environments.pendulum import pendulum
from escapade.environments.prism import from_prism
from escapade.environments.queueing import queue
from escapade.environments.recorder import Recorder
from escapade.environments.registry import make, names, parameters
from escapade.environments.world import World

__all__ = [
    "SIX_TUPLE",
    "Abstraction",
    "Brought",
    "BroughtEnv",
    "CMDPEnv",
    "Discretizer",
    "Flattening",
    "Recorder",
    "WanderingGamble",
    "World",
    "barrier_grid",
    "battery",
    "cliff_walk",
    "episodic",
    "from_arrays",
    "from_gymnasium",
    "from_minigrid",
    "from_prism",
    "frozen_lake",
    "garnet",
    "inventory",
    "lava_gap",
    "make",
    "moat_grid",
    "names",
    "parameters",
    "pendulum",
    "queue",
    "three_state_loop",
    "toll_cycle",
    "wall_cycle",
    "wandering_gamble",
]
