"""Functions that make agents, and what is refused in their place.

Whoever lives many lives needs a new agent for each: not an agent, and not its class,
but a function of what is told and of a seed.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from escapade.agent.e4 import E4
from escapade.errors import refusal
from escapade.typing import Agent

if TYPE_CHECKING:
    from escapade.knowledge.knowledge import Knowledge

__all__ = ["MakeAgent", "check_maker"]

MakeAgent: TypeAlias = "Callable[[Knowledge, int], Agent]"


def check_maker(argument: str, make: object) -> None:
    """Refuse what is no function of knowledge and seed.

    Examples
    --------
    >>> check_maker("make_agent", lambda knowledge, seed: None)
    >>> check_maker("make_agent", lambda knowledge: None)
    Traceback (most recent call last):
    escapade.errors.InvalidInputError: make_agent: expected a function of (knowledge, \
seed), ...
    """
    expected = "a function of (knowledge, seed)"
    if make is E4:
        raise refusal(
            argument,
            f"{expected}, as lambda knowledge, seed: "
            f"E4(knowledge, E4Settings(seed=seed))",
            "the class E4",
        )
    if not callable(make):
        raise refusal(argument, expected, f"a {type(make).__name__}")
    try:
        signature = inspect.signature(make)
    except ValueError:
        return  # written in C; what it takes shows when it is called
    try:
        signature.bind(None, 0)
    except TypeError:
        name = getattr(make, "__name__", type(make).__name__)
        raise refusal(argument, expected, f"{name}{signature}") from None
