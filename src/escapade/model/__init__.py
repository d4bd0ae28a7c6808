"""Constrained Markov decision processes: the problem, its policies, their values.

Nothing here plans or learns.  A :class:`~escapade.model.cmdp.CMDP` is data that has
been checked; everything above may trust it.
"""

from escapade.model.cmdp import CMDP
from escapade.model.description import (
    Description,
    read_description,
    write_description,
)
from escapade.model.evaluation import Evaluation, evaluate, occupancy
from escapade.model.induced import (
    InducedCMDP,
    escape_cmdp,
    exploration_cmdp,
    known_state_cmdp,
    safe_return_cmdp,
)
from escapade.model.memory_policy import MemoryPolicy
from escapade.model.policy import Policy
from escapade.model.sampling import Rollout, Sampler

__all__ = [
    "CMDP",
    "Description",
    "Evaluation",
    "InducedCMDP",
    "MemoryPolicy",
    "Policy",
    "Rollout",
    "Sampler",
    "escape_cmdp",
    "evaluate",
    "exploration_cmdp",
    "known_state_cmdp",
    "occupancy",
    "read_description",
    "safe_return_cmdp",
    "write_description",
]
