"""What an agent may know at birth: spaces, bounds, rows, logs, models of actions.

:class:`~escapade.knowledge.knowledge.Knowledge` is all that an agent is ever told about
its world beforehand; :class:`~escapade.knowledge.log.Log` is a recording of steps that
were taken in it.
"""

from escapade.knowledge.knowledge import Knowledge
from escapade.knowledge.log import Log

__all__ = ["Knowledge", "Log"]
