"""What an agent says before a step, and what it is told after it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from escapade.agent.phases import Phase

__all__ = ["Decision", "Told"]

Told: TypeAlias = tuple[int, float | None, tuple[float, ...] | None, int]
"""Decision, reward, costs and next state; what was not seen is ``None``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What to do, and what it rests on.

    Attributes
    ----------
    id
        Number of the decision, from 0.
    state, action
        Where it was made, and what it is.
    phase, reason
        What the agent is doing, and why, in words.
    promise
        ``(K,)``; what the expected discounted cost from now on stays within.  While
        costs are awaited, what they may give back comes on top
        (:meth:`E4.tell_cost`); the budget is not exceeded by it.
    reserved
        ``(K,)``; how much of that the fallback needs from here.
    """

    id: int
    state: int
    action: int
    phase: Phase
    reason: str
    promise: tuple[float, ...]
    reserved: tuple[float, ...]
    reason_code: int = 0
