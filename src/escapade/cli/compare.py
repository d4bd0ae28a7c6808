"""``escapade compare ENV``: E⁴, the baselines and the oracle in one world."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from escapade.cli.options import Json, worlds
from escapade.cli.output import amount, print_json, say, show_table
from escapade.cli.run import pairs
from escapade.errors import refusal

if TYPE_CHECKING:
    from escapade.experiment.comparison import Comparison, Contestant

__all__ = ["compare"]

_COLUMNS = (
    "agent",
    "reward",
    "of oracle",
    "worst cost",
    "steps over",
    "lives over",
    "to 90 %",
    "seconds",
)


def compare(
    env: Annotated[
        str,
        typer.Argument(
            metavar="ENV",
            help="Name of a world; `escapade envs` lists them.",
            autocompletion=worlds,
        ),
    ],
    steps: Annotated[int, typer.Option(help="Steps in a life.")] = 10_000,
    lifetimes: Annotated[int, typer.Option(help="Lives of each agent.")] = 5,
    seed: Annotated[int, typer.Option(help="Seed of everything.")] = 0,
    parameter: Annotated[
        list[str] | None,
        typer.Option(
            "--set", "-p", metavar="KEY=VALUE", help="A parameter of the world."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="DIR",
            help="Keep it there, with a page that shows it.",
        ),
    ] = None,
    json: Json = False,
) -> int:
    """Let E⁴ in both modes, every baseline and the oracle live in one world.

    All are told the same and live as long, but the oracle, which knows the truth.
    """
    from escapade.cli.screen import Ticker
    from escapade.experiment import RunSpec
    from escapade.experiment.comparison import compare as compare_agents

    what = RunSpec(
        world=env, steps=steps, seed=seed, parameters=pairs("--set", parameter or [])
    )
    if out is not None and out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise refusal("--out", "a directory that is empty or new", str(out))
    world = what.make_world()
    with Ticker(1, unit="life", quiet=json) as tell:
        found = compare_agents(
            world, steps=steps, lifetimes=lifetimes, seed=seed, on_life=tell
        )
    page = None if out is None else _keep(found, out)
    if json:
        kept = {} if page is None else {"directory": str(out), "report": str(page)}
        print_json({**kept, **found.describe()})
        return 0
    say(
        f"{world.name}: {_lives(lifetimes)} of {steps} steps, budget "
        f"{', '.join(map(amount, found.budget))}"
    )
    say()
    show_table(_COLUMNS, [_cells(c) for c in found.contestants], numbers=_COLUMNS[1:])
    notes = [f"{c.name}: {c.note}" for c in found.contestants if c.note]
    if notes:
        say()
    for note in notes:
        say(note)
    say()
    say(
        "worst cost: the largest mean cost-to-go at any step; steps over: how often "
        "that mean, lives over: how often a single life, was above the budget."
    )
    if page is not None:
        say(f"the report: {page}")
    return 0


def _keep(found: Comparison, directory: Path) -> Path:
    """Write a comparison, and the page that shows it."""
    from escapade.report import write_comparison_page

    found.save(directory)
    return write_comparison_page(found, directory / "report.html")


def _lives(count: int) -> str:
    return "1 life" if count == 1 else f"{count} lives"


def _cells(c: Contestant) -> list[str]:
    return [
        c.name,
        _number(c.reward),
        _percent(c.share),
        ", ".join(_number(float(cost)) for cost in c.worst_cost),
        _percent(c.steps_over),
        _percent(c.over),
        "-" if c.steps_to_oracle is None else str(c.steps_to_oracle),
        "-" if math.isnan(c.seconds) else f"{c.seconds:.2f}",
    ]


def _number(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.4g}"


def _percent(value: float) -> str:
    return "-" if math.isnan(value) else f"{100.0 * value:.1f} %"
