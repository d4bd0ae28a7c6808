"""``escapade serve DIR``: an agent beside a plant, asked in lines of JSON."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from escapade.cli.run import pairs
from escapade.errors import refusal

if TYPE_CHECKING:
    from escapade.agent.settings import E4Settings
    from escapade.knowledge.knowledge import Knowledge

__all__ = ["serve"]


def serve(
    directory: Annotated[
        Path,
        typer.Argument(metavar="DIR", help="The journal of the life; begun if new."),
    ],
    stdio: Annotated[
        bool,
        typer.Option("--stdio", help="Read requests from standard input.  Required."),
    ] = False,
    knowledge: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="What the agent is told, for a new life."),
    ] = None,
    env: Annotated[
        str | None,
        typer.Option(help="Instead: what is told of this world."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Of a new life.  [default: 0]")
    ] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option(
            "--setting",
            "-s",
            metavar="KEY=VALUE",
            help="A setting of the agent, for a new life.",
        ),
    ] = None,
) -> int:
    """Answer a controller, line by line, and write everything down.

    Each line of standard input is a JSON object such as {"do": "ask", "state": 3}; each
    is answered by one line.  A decision is on disk before it is answered.  All answers
    are JSON, so there is no --json.
    """
    from escapade.experiment.plant import open_plant
    from escapade.experiment.serving import serve as answer

    if not stdio:
        raise refusal("--stdio", "to be given, for there is no other way", "nothing")
    told = _knowledge(knowledge, env)
    settings = _settings(directory, told, seed, pairs("--setting", setting or []))
    with open_plant(directory, knowledge=told, settings=settings) as plant:
        answer(plant, sys.stdin, sys.stdout)
    return 0


def _settings(
    directory: Path, told: Knowledge | None, seed: int | None, given: dict[str, Any]
) -> E4Settings | None:
    """Return the settings of a new life, or those that are held against an old one."""
    from escapade.experiment.spec import settings_of
    from escapade.experiment.store import PlantRun

    if not PlantRun.exists(directory):
        if told is None:
            raise refusal(
                "DIR",
                "the journal of a life, or --knowledge or --env to begin one with",
                f"no journal at {directory}",
            )
        return settings_of(given, seed=0 if seed is None else seed)
    if seed is None and not given:
        return None
    began = PlantRun(directory).plant_spec
    return settings_of(
        {**began.settings, **given}, seed=began.seed if seed is None else seed
    )


def _knowledge(file: Path | None, env: str | None) -> Knowledge | None:
    from escapade.environments import make
    from escapade.knowledge.knowledge import Knowledge

    if file is not None and env is not None:
        raise refusal("--env", "nothing beside --knowledge", env)
    if env is not None:
        return make(env).knowledge
    return None if file is None else Knowledge.load(file)
