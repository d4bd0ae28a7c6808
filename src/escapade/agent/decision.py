"""What an agent says before a step, and what it is told after it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

from escapade.agent.phases import Phase
from escapade.errors import InvalidInputError, refusal

__all__ = [
    "Decision",
    "Told",
    "not_open",
    "number_of",
    "pack_opened",
    "unpack_opened",
    "unpack_told",
]

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


def number_of(decision: Decision) -> int:
    """Return the number of a decision; refuse what is none."""
    if not isinstance(decision, Decision):
        raise refusal("decision", "a Decision, as ask returned it", repr(decision))
    return decision.id


def not_open(
    number: int, opened: Decision | None, *, answered: int
) -> InvalidInputError:
    """Return the refusal of what is told of another decision than the open one.

    The first ``answered`` decisions were answered, the last of them otherwise.
    """
    if opened is not None:
        expected = f"{opened.id}, which is open"
    else:
        expected = "one that is open, as ask returns it"
    found = str(number)
    if number < answered - 1:
        found += ", which was answered already"
    elif number < answered:
        found += ", which was answered already, with another outcome"
    return refusal("decision", expected, found)


def pack_opened(opened: tuple[Decision, int] | None) -> dict[str, Any] | None:
    """Return an open decision and its pair as JSON can hold them."""
    return None if opened is None else {**asdict(opened[0]), "pair": opened[1]}


def unpack_opened(packed: Mapping[str, Any] | None) -> tuple[Decision, int] | None:
    """Return what :func:`pack_opened` was given."""
    if packed is None:
        return None
    kept = {key: value for key, value in packed.items() if key != "pair"}
    kept["phase"] = Phase(kept["phase"])
    kept["promise"] = tuple(kept["promise"])
    kept["reserved"] = tuple(kept["reserved"])
    return Decision(**kept), int(packed["pair"])


def unpack_told(packed: Sequence[Any] | None) -> Told | None:
    """Return what was told last, as JSON held it."""
    if packed is None:
        return None
    number, reward, paid, state = packed
    return number, reward, None if paid is None else tuple(paid), state
