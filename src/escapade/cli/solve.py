"""``escapade solve FILE``: the best policy for a plant in a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from escapade.cli.options import Json
from escapade.cli.output import print_json, say
from escapade.errors import InvalidFileError, refusal

if TYPE_CHECKING:
    from escapade.model.cmdp import CMDP
    from escapade.model.description import Description

__all__ = ["read_plant", "solve", "solver_names"]

_ROBUST = "RobustLP"


def _solvers(incomplete: str) -> list[str]:
    """Complete the name of a solver in the shell."""
    known = {*solver_names(robust=False), *solver_names(robust=True)}
    return sorted(name for name in known if name.startswith(incomplete))


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
    l1_radius: Annotated[
        float | None,
        typer.Option(
            help="Keep the budgets for all transitions within this L1 distance of the "
            "file's, row by row, among the successors that it names."
        ),
    ] = None,
    solver: Annotated[
        str | None,
        typer.Option(
            autocompletion=_solvers,
            help="Name of a solver.  By default one is chosen by size; RobustLP, whose "
            "policies need no memory, with an L1 radius.",
        ),
    ] = None,
    json: Json = False,
) -> int:
    """Find the best policy that keeps every budget.

    Ends with 1 if no policy does; then the least costs that can be reached are printed.
    With an L1 radius costs are the worst possible ones, and value and bounds those of
    the transitions in the file.
    """
    robust = l1_radius is not None
    if robust and solver is None:
        solver = _ROBUST
    chosen = None if solver is None else _solver(solver, robust=robust)
    plant = read_plant(file)
    cmdp = plant.cmdp if budget is None else _with_budget(plant.cmdp, budget)
    from escapade import planning, uncertainty
    from escapade.cli.plans import describe_plan, show_plan

    sets = None
    if l1_radius is not None:
        sets = uncertainty.L1Ball(cmdp, radius=l1_radius)
    found = planning.solve(cmdp, chosen, uncertainty=sets)
    if json:
        answer = describe_plan(cmdp, found, cost_names=plant.cost_names)
        about = {"file": str(file), "about": plant.about, "l1_radius": l1_radius}
        print_json({**about, **answer})
    else:
        say(f"{file}: {cmdp!r}")
        if plant.about:
            say(plant.about)
        if sets is not None:
            say(f"Costs are the worst within L1 distance {l1_radius:g} of each row.")
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


def solver_names(*, robust: bool) -> list[str]:
    """Return the solvers that can be named, with or without an uncertainty set."""
    from escapade import planning

    kinds: dict[str, Any] = {name: getattr(planning, name) for name in planning.__all__}
    return [
        name
        for name, kind in kinds.items()
        if isinstance(kind, type) and _is_solver(kind, robust=robust)
    ]


def _is_solver(kind: Any, *, robust: bool) -> bool:
    """Whether a class solves problems with a set, or without one."""
    takes_a_set = getattr(kind, "robust", None)
    if robust or takes_a_set is None:
        return bool(takes_a_set)
    return not takes_a_set or bool(getattr(kind, "nominal", False))


def _with_budget(cmdp: CMDP, budget: list[float]) -> CMDP:
    if len(budget) != cmdp.n_costs:
        raise refusal("--budget", f"{cmdp.n_costs} of them, one a cost", len(budget))
    return cmdp.replace(budget=budget)


def _solver(name: str, *, robust: bool) -> Any:
    from escapade import planning

    known = solver_names(robust=robust)
    if name in known:
        return getattr(planning, name)()
    with_or_without = "with" if robust else "without"
    raise refusal(
        "--solver", f"one of {', '.join(known)} {with_or_without} --l1-radius", name
    )
