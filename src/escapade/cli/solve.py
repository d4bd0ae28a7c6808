"""``escapade solve FILE``: the best policy for a plant in a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from escapade.cli.options import Json
from escapade.cli.output import print_json, say
from escapade.errors import InvalidFileError, refusal

if TYPE_CHECKING:
    from escapade.model.cmdp import CMDP
    from escapade.model.description import Description
    from escapade.planning.base import Solver

__all__ = ["read_plant", "solve"]

_EXACT = ("OccupationLP", "DualLP", "ColumnGeneration")


def solve(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="A plant: .npz, or a description in .toml or .json."
        ),
    ],
    budget: Annotated[
        list[float] | None,
        typer.Option(
            help="Ask for this budget instead of the file's; once for each cost."
        ),
    ] = None,
    solver: Annotated[
        str | None,
        typer.Option(
            help=f"{', '.join(_EXACT[:-1])} or {_EXACT[-1]}; by default by size."
        ),
    ] = None,
    json: Json = False,
) -> int:
    """Find the best policy that keeps every budget.

    Ends with 1 if no policy does; then the least costs that can be reached are printed.
    """
    chosen = None if solver is None else _solver(solver)
    plant = read_plant(file)
    cmdp = plant.cmdp if budget is None else _with_budget(plant.cmdp, budget)
    from escapade import planning
    from escapade.cli.plans import describe_plan, show_plan

    found = planning.solve(cmdp, chosen)
    if json:
        answer = describe_plan(cmdp, found, cost_names=plant.cost_names)
        print_json({"file": str(file), "about": plant.about, **answer})
    else:
        say(f"{file}: {cmdp!r}")
        if plant.about:
            say(plant.about)
        say()
        show_plan(cmdp, found, cost_names=plant.cost_names)
    return 0 if found.is_feasible else 1


def read_plant(file: Path) -> Description:
    """Read a plant from an npz file or a description, by the ending of its name."""
    from escapade.model.cmdp import CMDP
    from escapade.model.description import Description, read_description

    ending = file.suffix.lower()
    if ending == ".npz":
        return Description(cmdp=CMDP.load(file))
    if ending in (".toml", ".json"):
        return read_description(file)
    raise InvalidFileError(
        f"{file}: expected a name that ends in .npz, .toml or .json, "
        f"found {ending or 'no ending'}"
    )


def _with_budget(cmdp: CMDP, budget: list[float]) -> CMDP:
    if len(budget) != cmdp.n_costs:
        raise refusal("--budget", f"{cmdp.n_costs} of them, one a cost", len(budget))
    return cmdp.replace(budget=budget)


def _solver(name: str) -> Solver:
    from escapade import planning

    if name not in _EXACT:
        raise refusal("--solver", f"one of {', '.join(_EXACT)}", repr(name))
    made: Solver = getattr(planning, name)()
    return made
