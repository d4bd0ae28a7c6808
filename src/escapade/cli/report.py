"""``escapade report DIR``: the page that shows a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from escapade.cli.options import Json
from escapade.cli.output import print_json, say

__all__ = ["report"]


def report(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="The directory of a run.")
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="Where the page goes.  [default: DIR/report.html]",
        ),
    ] = None,
    json: Json = False,
) -> int:
    """Write one page that shows a run: a verdict, figures, a replay, the conditions.

    The page is one file that loads nothing from anywhere.
    """
    from escapade.experiment import find_run
    from escapade.report import write_page

    page = write_page(find_run(directory), out)
    size = page.stat().st_size
    if json:
        print_json({"directory": str(directory), "file": str(page), "bytes": size})
    else:
        say(f"{page}: {size / 1e6:.1f} MB")
    return 0
