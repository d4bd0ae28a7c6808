"""Options that several commands share, and what the shell completes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, TypeAlias

import typer

__all__ = ["Json", "one_of", "worlds"]

Json: TypeAlias = Annotated[
    bool,
    typer.Option("--json", help="Print one JSON object and nothing else."),
]


def worlds(incomplete: str) -> list[str]:
    """Complete the name of a world in the shell."""
    from escapade.environments import names

    return [name for name in names() if name.startswith(incomplete)]


def one_of(*words: str) -> Callable[[str], list[str]]:
    """Return what completes one of some words in the shell."""

    def complete(incomplete: str) -> list[str]:
        return [word for word in words if word.startswith(incomplete)]

    return complete
