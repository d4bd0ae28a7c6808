"""``escapade compare ENV``: E⁴, the baselines and the oracle in one world."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated

import typer

from escapade.cli.options import Json
from escapade.cli.output import amount, print_json, say, show_table

if TYPE_CHECKING:
    from escapade.experiment.comparison import Contestant

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
    env: Annotated[str, typer.Argument(metavar="ENV", help="The name of a world.")],
    steps: Annotated[int, typer.Option(help="Steps in a life.")] = 10_000,
    lifetimes: Annotated[int, typer.Option(help="Lives of each agent.")] = 5,
    seed: Annotated[int, typer.Option(help="Seed of everything.")] = 0,
    json: Json = False,
) -> int:
    """Let E⁴ in both modes, every baseline and the oracle live in one world.

    All are told the same and live as long, but the oracle, which knows the truth.
    """
    from escapade import environments
    from escapade.experiment.comparison import compare as compare_agents

    world = environments.make(env)
    found = compare_agents(world, steps=steps, lifetimes=lifetimes, seed=seed)
    if json:
        print_json(found.describe())
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
    return 0


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
