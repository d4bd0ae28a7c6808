"""``escapade check``: can the budget be promised, what binds, and what mends it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from escapade.cli.options import Json, worlds
from escapade.cli.output import print_json, say, show_facts
from escapade.cli.run import pairs
from escapade.errors import refusal

if TYPE_CHECKING:
    from escapade.knowledge.knowledge import Knowledge
    from escapade.model.cmdp import CMDP

__all__ = ["check"]


def check(
    plant: Annotated[
        str,
        typer.Argument(
            metavar="FILE_OR_ENV",
            help="A plant or knowledge in .npz, a description in .toml or .json, or "
            "the name of a world.",
            autocompletion=worlds,
        ),
    ],
    budget: Annotated[
        list[float] | None,
        typer.Option(help="Ask for this budget instead; once for each cost."),
    ] = None,
    model: Annotated[
        bool,
        typer.Option(
            "--model", help="Of a world, examine the true model, not what is told."
        ),
    ] = False,
    parameter: Annotated[
        list[str] | None,
        typer.Option(
            "--set", "-p", metavar="KEY=VALUE", help="A parameter of the world."
        ),
    ] = None,
    epsilon: Annotated[float, typer.Option(help="Accuracy asked for.")] = 1.0,
    delta: Annotated[
        float, typer.Option(help="Probability with which the promise may break.")
    ] = 0.05,
    known_after: Annotated[
        int, typer.Option(help="Visits after which an agent calls a state known.")
    ] = 5,
    json: Json = False,
) -> int:
    """Say whether the budget can be promised, before anything is risked.

    Ends with 1 if it cannot, and says what would mend that.
    """
    problem, note = _read(plant, parameter or [], model=model)
    if budget is not None:
        wanted = problem.n_costs
        if len(budget) != wanted:
            raise refusal("--budget", f"{wanted} of them, one a cost", len(budget))
        problem = problem.replace(budget=budget)
    from escapade.preflight import preflight

    found = preflight(problem, epsilon=epsilon, delta=delta, known_after=known_after)
    if json:
        print_json({"plant": plant, "note": note, **found.describe()})
    else:
        say(f"{plant}: {problem!r}")
        if note:
            say(note)
        say()
        show_facts(found.facts())
        for title, sentences in (
            ("what would mend it", found.mend),
            ("warnings", found.warnings),
        ):
            if sentences:
                say()
                say(f"{title}:")
                for sentence in sentences:
                    say(f"- {sentence}")
    return 0 if found.promisable else 1


def _read(
    plant: str, parameters: list[str], *, model: bool
) -> tuple[Knowledge | CMDP, str]:
    """Return what is to be examined, and a sentence about it."""
    from escapade import environments

    if plant in environments.names():
        from escapade.experiment import RunSpec

        made = pairs("--set", parameters)
        world = RunSpec(world=plant, steps=1, parameters=made).make_world()
        return (world.cmdp if model else world.knowledge), world.description
    if parameters:
        raise refusal("--set", "no parameters beside a file", parameters[0])
    path = Path(plant)
    if not path.suffix:
        raise refusal(
            "FILE_OR_ENV",
            f"a file, or one of {', '.join(environments.names())}",
            repr(plant),
        )
    from escapade.cli.solve import read_plant
    from escapade.knowledge.files import holds_knowledge
    from escapade.knowledge.knowledge import Knowledge

    if path.suffix.lower() == ".npz" and holds_knowledge(path):
        return Knowledge.load(path), ""
    described = read_plant(path)
    return described.cmdp, described.about or ""
