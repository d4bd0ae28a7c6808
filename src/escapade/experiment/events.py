"""What an agent does besides deciding: it plans, certifies, and sees assumptions break.

These events follow from what the agent knew and saw; so when steps are lived again,
after a crash or to verify a run, the same events come about.
"""

from __future__ import annotations

import re

import numpy as np

from escapade.agent.e4 import E4
from escapade.experiment.journal import Event
from escapade.typing import BoolArray

__all__ = ["DERIVED", "Watcher"]

DERIVED = ("plan", "break", "drift")
"""Kinds of events that follow from the steps; all others were told."""

_STEP_OF_BREAK = re.compile(
    r"(?:decision \d+, whose cost came after )?decision (\d+): "
)


class Watcher:
    """Notes what an agent does besides deciding.

    Parameters
    ----------
    agent
        To be watched from now on.
    """

    def __init__(self, agent: E4) -> None:
        self._agent = agent
        self._known: BoolArray = np.array(agent.planned.plan.known)
        self._said = {"break": len(agent.breaks), "drift": len(agent.drifts)}
        self._seen: list[Event] = []

    def planned(self, step: int) -> None:
        """Note that the agent planned again after so many steps."""
        agent = self._agent
        known = agent.planned.plan.known
        event = Event(
            step=step,
            kind="plan",
            content={
                "known": int(known.sum()),
                "newly_known": np.flatnonzero(known & ~self._known).tolist(),
                "certified": agent.certified,
                "gap": agent.gap,
            },
        )
        self._known = np.array(known)
        self._seen.append(event)
        self._note_breaks()

    def _note_breaks(self) -> None:
        agent = self._agent
        for kind, said in (("drift", agent.drifts), ("break", agent.breaks)):
            for what in said[self._said[kind] :]:
                found = _STEP_OF_BREAK.match(what)
                step = int(found[1]) + 1 if found else agent.decisions
                self._seen.append(Event(step=step, kind=kind, content={"what": what}))
            self._said[kind] = len(said)

    def take(self) -> list[Event]:
        """Return what was noted since the last time."""
        self._note_breaks()
        seen, self._seen = self._seen, []
        return seen
