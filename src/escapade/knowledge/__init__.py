"""What an agent may know before its life begins.

:class:`~escapade.knowledge.knowledge.Knowledge` says which world it is about, and what
is certain or recorded about it; :class:`~escapade.knowledge.log.Log` holds recorded
steps, :class:`~escapade.knowledge.counts.Counts` their sums.
"""

from escapade.knowledge.counts import Counts
from escapade.knowledge.knowledge import Knowledge
from escapade.knowledge.log import Log

__all__ = ["Counts", "Knowledge", "Log"]
