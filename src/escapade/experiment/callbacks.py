"""Who wants to be told how a run gets on: a screen, a file, an experiment tracker.

A callback is any object with the three methods of :class:`Callback`.  The run knows
nothing else of it, and no callback can change what the run does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from escapade.agent.e4 import E4
from escapade.simulation.trace import Trace

__all__ = ["Callback", "Moment", "Silent"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """How far a run is.

    Attributes
    ----------
    first, steps
        Number of the first step of ``trace``, and of all steps lived so far.
    trace
        The steps that were lived since the last moment; they are in the journal.
    agent
        To be looked at, not to be touched.
    """

    first: int
    steps: int
    trace: Trace
    agent: E4


@runtime_checkable
class Callback(Protocol):
    """Whoever is told how a run gets on.

    Steps are told in order, in blocks where the run lives in blocks: each step once,
    soon after it stands in the journal.
    """

    def on_step(self, moment: Moment, /) -> None:
        """Hear that steps were lived and written down."""
        ...

    def on_replan(self, step: int, content: Mapping[str, Any], /) -> None:
        """Hear that the agent planned again; ``content`` as in the event."""
        ...

    def on_end(self, summary: Mapping[str, Any], /) -> None:
        """Hear that the run is finished."""
        ...


class Silent:
    """A callback that does nothing; others may inherit what they do not need."""

    def on_step(self, moment: Moment, /) -> None:
        """Do nothing."""

    def on_replan(self, step: int, content: Mapping[str, Any], /) -> None:
        """Do nothing."""

    def on_end(self, summary: Mapping[str, Any], /) -> None:
        """Do nothing."""
