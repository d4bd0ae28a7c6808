"""``escapade export DIR``: a run's tables for other tools."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from escapade.cli.options import Json
from escapade.cli.output import plural, print_json, say

__all__ = ["export"]


def export(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="The directory of a run.")
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--out", "-o", metavar="FILE", help="Ends in .csv or .parquet (by duckdb)."
        ),
    ],
    table: Annotated[
        str, typer.Option(help="`steps`, one row a decision, or `events`.")
    ] = "steps",
    json: Json = False,
) -> int:
    """Write a run's steps or events as CSV or Parquet."""
    from escapade.experiment import find_run
    from escapade.experiment.export import export as write

    kind: Any = table
    count = write(find_run(directory), out, table=kind)
    if json:
        print_json({"file": str(out), "table": table, "rows": count})
    else:
        say(f"{out}: {plural(count, 'row')} of {table}")
    return 0
