"""Constrained Markov decision processes: the problem, its policies, their values.

Nothing here plans or learns.  A :class:`~escapade.model.cmdp.CMDP` is data that has
been checked; everything above may trust it.
"""

from escapade.model.cmdp import CMDP
from escapade.model.policy import Policy

__all__ = ["CMDP", "Policy"]
