"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

__all__ = ["Json"]

Json: TypeAlias = Annotated[
    bool,
    typer.Option("--json", help="Print one JSON object and nothing else."),
]
