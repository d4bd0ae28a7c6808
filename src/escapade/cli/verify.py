"""``escapade verify DIR``: a run derived again from its journal."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from escapade.cli.kept import run_in
from escapade.cli.options import Json
from escapade.cli.output import print_json, say, show_table

__all__ = ["verify"]


def verify(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="The directory of a run.")
    ],
    json: Json = False,
) -> int:
    """Derive every decision, every promise and the certificate of a run again.

    Ends with 1 if anything is not as it was written, or does not follow from what the
    journal holds.
    """
    from escapade.cli.screen import Ticker
    from escapade.experiment.verification import verify as derive

    found = run_in(directory)
    with Ticker(1, quiet=json) as tell:
        outcome = derive(found, on_progress=tell)
    if json:
        print_json(
            {
                "directory": str(directory),
                "holds": outcome.holds,
                "steps": outcome.steps,
                "checks": [
                    {"name": c.name, "holds": c.holds, "found": c.found}
                    for c in outcome.checks
                ],
            }
        )
    else:
        show_table(
            ["check", "holds", "found"],
            [[c.name, "yes" if c.holds else "NO", c.found] for c in outcome.checks],
        )
        say()
        if outcome.holds:
            say("The run is what it says it is.")
        else:
            say("The run is not what it says it is.")
    return 0 if outcome.holds else 1
