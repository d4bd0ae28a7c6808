"""``escapade sweep SPEC``: many runs, on all cores or on a cluster."""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from escapade.cli.options import Json
from escapade.cli.output import (
    amount,
    complain,
    plural,
    print_json,
    say,
    show_facts,
    show_table,
)
from escapade.cli.run import INTERRUPTED

if TYPE_CHECKING:
    from escapade.cli.screen import Ticker
    from escapade.experiment.sweeps import Standing, Sweep
    from escapade.experiment.sweeps.combinations import Combination

__all__ = ["sweep"]

_MOST_LINES = 30
_MEASURES = {
    "reward a step": "reward_per_step",
    "gap": "gap",
    "value at least": "value_lower",
    "known": "known_states",
}


def sweep(
    spec: Annotated[
        Path, typer.Argument(metavar="SPEC", help="What the sweep is, in TOML.")
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Where it is kept.  [default: sweeps/<name of SPEC>]"
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(help="Runs that are lived at once.  [default: one a core]"),
    ] = None,
    engine: Annotated[
        str,
        typer.Option(help="`joblib` on this machine, `ray` on a cluster."),
    ] = "joblib",
    address: Annotated[
        str | None,
        typer.Option(help="Of a Ray cluster; without it one is started here."),
    ] = None,
    retries: Annotated[
        int,
        typer.Option(help="How often a run goes on after the death of its worker."),
    ] = 3,
    json: Json = False,
) -> int:
    """Live many runs: worlds, settings and seeds, crossed.

    Runs that are finished are not lived again, and those that were interrupted go on,
    so the same command takes a sweep up again.  Ends with 0 if every run was lived
    within promise, and with 1 if one failed or did not keep its promise.  Ctrl-C sets
    the runs aside.
    """
    from escapade.cli.screen import Ticker
    from escapade.experiment import Interruption, load_sweep
    from escapade.experiment import sweep as live_all
    from escapade.report import write_sweep_page

    what = load_sweep(spec)
    place = out or Path("sweeps") / spec.stem
    how: dict[str, Any] = {
        "engine": engine,
        "workers": workers,
        "address": address,
        "retries": retries,
    }
    with Interruption().listening() as stop, Ticker(1, quiet=json) as tell:
        found = live_all(what, place, stop=stop, watch=partial(_show, tell), **how)
    page = write_sweep_page(found) if found.rows() else None
    rows = found.rows()
    failed = found.failures()
    kept = sum(1 for row in rows if row["promise_kept"])
    if json:
        print_json(_described(found, kept=kept, page=page))
    if len(rows) < len(what.runs):
        given = "".join(
            f" --{key} {value}"
            for key, value in how.items()
            if value not in (None, "joblib") and key != "retries"
        )
        complain(
            f"set aside with {len(rows):,} of {plural(len(what.runs), 'run')} ended; "
            f"go on with: escapade sweep {spec} --out {place}{given}"
        )
        return INTERRUPTED
    if not json:
        _tell_end(found, kept=kept, page=page)
    return 0 if kept == len(rows) and not failed else 1


def _described(found: Sweep, *, kept: int, page: Path | None) -> dict[str, Any]:
    from escapade.experiment.sweeps.combinations import combinations

    rows = found.rows()
    return {
        "directory": str(found.directory),
        "table": str(found.results_path),
        "runs": len(found.spec.runs),
        "ended": len(rows),
        "promise_kept": kept,
        "report": None if page is None else str(page),
        "failures": found.failures(),
        "combinations": [
            {
                "world": c.world,
                "choices": c.choices,
                "runs": len(c.rows),
                "failed": c.failed,
                **{name: _spread(c, name) for name in _MEASURES.values()},
            }
            for c in combinations(rows)
        ],
    }


def _spread(c: Combination, name: str) -> dict[str, float] | None:
    spread = c.spread(name)
    if spread is None:
        return None
    return {"mean": spread.mean, "least": spread.least, "most": spread.most}


def _tell_end(found: Sweep, *, kept: int, page: Path | None) -> None:
    from escapade.experiment.sweeps.combinations import combinations

    rows, failed = found.rows(), found.failures()
    groups = combinations(rows)
    axes = list(groups[0].choices)
    header = ["world", *(axis.partition(".")[2] for axis in axes), "runs", *_MEASURES]
    cells = [
        [
            c.world,
            *("-" if c.choices[a] is None else str(c.choices[a]) for a in axes),
            str(len(c.rows)) + (f", {c.failed} failed" if c.failed else ""),
            *(_cell(c, name) for name in _MEASURES.values()),
        ]
        for c in groups[:_MOST_LINES]
    ]
    show_table(header, cells, numbers=[*header[1:]])
    if len(groups) > _MOST_LINES:
        say(f"and {len(groups) - _MOST_LINES:,} more; all are in the table")
    say()
    for reason, count in Counter(failed.values()).most_common():
        first = next(name for name, why in failed.items() if why == reason)
        which = first if count == 1 else f"{count:,} runs, {first} the first of them,"
        said = reason.replace("escapade.preflight(knowledge)", "`escapade check WORLD`")
        complain(f"{which} failed: {said}")
    show_facts(
        {
            "runs": f"{len(rows):,}, {len(failed):,} of them failed",
            "promise": f"kept in {kept:,} of {plural(len(rows) - len(failed), 'run')}",
            "the table": str(found.results_path),
            "kept in": str(found.directory),
            **({} if page is None else {"the report": str(page)}),
        }
    )


def _cell(c: Combination, name: str) -> str:
    """Return mean and ends, if the seeds differ."""
    spread = c.spread(name)
    if spread is None:
        return "-"
    if spread.least == spread.most:
        return amount(spread.mean)
    return f"{spread.mean:.4g} ({spread.least:.4g} to {spread.most:.4g})"


def _show(tell: Ticker, standing: Standing) -> None:
    """Show how far a sweep is, and what happened."""
    for news in standing.news:
        tell.say(news)
    failed = f", {standing.failed:,} failed" if standing.failed else ""
    first = (
        f"{standing.ended:,} of {plural(standing.runs, 'run')} ended{failed}, "
        f"{standing.in_hand:,} in hand; "
    )
    tell(standing.done, standing.steps, first=first)
