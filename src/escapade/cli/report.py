"""``escapade report DIR``: the page that shows a run, a comparison or a sweep."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from escapade.cli.kept import kept_in
from escapade.cli.options import Json
from escapade.cli.output import print_json, say

__all__ = ["report"]


def report(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="Of a run, a comparison or a sweep.")
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

    Of a comparison it shows who earned how much, and who kept within the budget; of a
    sweep what came of every combination, with its spread over seeds.  The page is one
    file that loads nothing from anywhere.
    """
    from escapade.experiment import Comparison, Sweep
    from escapade.report import write_comparison_page, write_page, write_sweep_page

    found = kept_in(directory)
    if isinstance(found, Comparison):
        page = write_comparison_page(found, out or directory / "report.html")
    elif isinstance(found, Sweep):
        page = write_sweep_page(found, out)
    else:
        page = write_page(found, out)
    size = page.stat().st_size
    if json:
        print_json({"directory": str(directory), "file": str(page), "bytes": size})
    else:
        say(f"{page}: {size / 1e6:.1f} MB")
    return 0
