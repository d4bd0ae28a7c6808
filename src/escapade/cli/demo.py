"""``escapade demo``: a whole lifetime in the paper's Example 2."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from escapade.cli.options import Json
from escapade.cli.output import say
from escapade.errors import refusal

if TYPE_CHECKING:
    from escapade.experiment import Run, RunSpec

__all__ = ["demo"]

_STEPS = 5_000_000
_EPSILON = 4.0
_MARK = ".demo"
"""Stands in a directory that the next demo may replace."""


def demo(
    out: Annotated[
        Path,
        typer.Option(
            metavar="DIR", help="Where the run is kept; an earlier demo is replaced."
        ),
    ] = Path("runs/demo"),
    epsilon: Annotated[
        float, typer.Option(help="How near the best it should get, of about 97.7.")
    ] = _EPSILON,
    size: Annotated[int, typer.Option(help="Cells a side of the field.")] = 10,
    seed: Annotated[int, typer.Option(help="Of agent and world.")] = 0,
    json: Json = False,
) -> int:
    """Watch an agent learn the paper's Example 2 in one lifetime, safe from the start.

    It walks round a field with walls along its outside: each step along the boundary
    earns 1, each hit of a wall costs 1, and a move fails now and then.  The agent is
    told how moves work, how often they fail at most, and what somebody recorded in one
    corner; not where the rewards are, nor on which side there are walls.  It lives
    without a reset until the policy it has found is certain to be within EPSILON of the
    best, and at no step promises to cost more than the budget.
    """
    from escapade.cli.run import live_and_tell
    from escapade.experiment import RunSpec

    spec = RunSpec(
        world="wall-cycle",
        parameters={"size": size},
        steps=_STEPS,
        seed=seed,
        until="certified",
        settings={"epsilon": epsilon},
    )
    found = _begin(out, spec)
    if not json:
        world = found.world
        say(f"{world.name}: {world.description}")
        say(f"Until it is certain to be within {epsilon:g} of the best.")
        say()
    return live_and_tell(found, json=json, title="The ledger")


def _begin(place: Path, spec: RunSpec) -> Run:
    """Make the run anew; nothing but an earlier demo is replaced."""
    from escapade.experiment import Run
    from escapade.experiment.locking import RunLock

    if (place / _MARK).exists():
        RunLock(place).close()  # refused while it is being lived
        shutil.rmtree(place)
    elif (place / "spec.toml").exists():
        raise refusal("--out", "a new directory, or an earlier demo", str(place))
    made = Run.create(place, spec)
    (place / _MARK).touch()
    return made
