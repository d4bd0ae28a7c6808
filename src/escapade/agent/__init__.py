"""The agent: one lifetime, safe from the first step.

It is told what :class:`~escapade.knowledge.Knowledge` holds and what it sees, and
nothing else; the true model lives in :mod:`escapade.environments`, which no module here
may import.
"""

from escapade.agent.e4 import E4, Decision
from escapade.agent.paper.settings import PaperSettings
from escapade.agent.phases import Phase
from escapade.agent.settings import E4Settings

__all__ = ["E4", "Decision", "E4Settings", "PaperSettings", "Phase"]
