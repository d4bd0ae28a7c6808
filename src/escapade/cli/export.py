"""``escapade export DIR``: tables for other tools, figures for papers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from escapade.cli.kept import kept_in
from escapade.cli.options import Json, one_of
from escapade.cli.output import plural, print_json, say
from escapade.errors import refusal

if TYPE_CHECKING:
    from escapade.experiment import Comparison, Run, Sweep

__all__ = ["export"]

_ALL = "all"
_OF_RUN = ("promise", "known", "earned", "value", "predicted")
_OF_COMPARISON = ("tradeoff", "rewards", "costs")


def export(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="Of a run, a comparison or a sweep.")
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            metavar="PATH",
            help="Ends in .csv or .parquet (by duckdb) for a table, in .svg or .pdf "
            "for a figure; a directory for several figures.",
        ),
    ],
    table: Annotated[
        str | None,
        typer.Option(
            help="Of a run `steps`, one row a decision, or `events`; of a comparison "
            "`agents` or `curves`; of a sweep `results`.  [default: the first]",
            autocompletion=one_of("steps", "events", "agents", "curves", "results"),
        ),
    ] = None,
    figure: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="`promise`, `known`, `earned`, `value` or `predicted` of a run, "
            "`tradeoff`, `rewards` or `costs` of a comparison, or `all`.",
            autocompletion=one_of(*_OF_RUN, *_OF_COMPARISON, _ALL),
        ),
    ] = None,
    width: Annotated[
        float | None,
        typer.Option(help="Of a figure, in inches.  [default: 5.5]"),
    ] = None,
    linear: Annotated[
        bool,
        typer.Option("--linear", help="Steps by their number, not their logarithm."),
    ] = False,
    json: Json = False,
) -> int:
    """Write a table as CSV or Parquet, or figures for a paper as SVG and PDF.

    Figures are drawn by Matplotlib, which the extra `figures` brings.
    """
    drawn = figure is not None or out.suffix in (".svg", ".pdf")
    if not drawn:
        if out.suffix not in (".csv", ".parquet"):
            raise refusal(
                "--out",
                "a name that ends in .csv or .parquet, or for a figure .svg or .pdf",
                str(out),
            )
        for option, given in (("--width", width is not None), ("--linear", linear)):
            if given:
                raise refusal(option, "none for a table, or --figure", str(out))
    elif table is not None:
        raise refusal("--table", "none for a figure", repr(table))
    found = kept_in(directory)
    told = (
        _figures(found, out, figure, 5.5 if width is None else width, linear)
        if drawn
        else _table(found, out, table)
    )
    if json:
        print_json(told)
    elif drawn:
        for file in told["files"]:
            say(file)
    else:
        say(f"{out}: {plural(told['rows'], 'row')} of {told['table']}")
    return 0


def _table(
    found: Run | Comparison | Sweep, out: Path, table: str | None
) -> dict[str, Any]:
    from escapade.experiment import Comparison, Run
    from escapade.experiment.export import export as write

    first = "steps" if isinstance(found, Run) else "results"
    kind: Any = table or ("agents" if isinstance(found, Comparison) else first)
    return {"file": str(out), "table": kind, "rows": write(found, out, table=kind)}


def _figures(
    found: Run | Comparison | Sweep,
    out: Path,
    figure: str | None,
    width: float,
    linear: bool,
) -> dict[str, Any]:
    from escapade.experiment import Sweep
    from escapade.report import write_figures

    if isinstance(found, Sweep):
        raise refusal(
            "--figure", "none of a sweep: its figures stand on its page", str(out)
        )

    files = write_figures(
        found,
        out,
        None if figure in (None, _ALL) else [str(figure)],
        width=width,
        logarithmic=False if linear else None,
    )
    return {"files": [str(file) for file in files]}
