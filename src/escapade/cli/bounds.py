"""``escapade bounds``: the paper's formulas with given numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from escapade.cli.options import Json
from escapade.cli.output import amount, print_json, say, show_table

if TYPE_CHECKING:
    from escapade.theory.conditions import Condition
    from escapade.theory.paper_bounds import Bounds, BoundsRow

__all__ = ["bounds"]

_PROBLEM, _ESCAPE = "The problem", "Escape and safe return"


def bounds(
    states: Annotated[
        int,
        typer.Option("--states", help="S, states.", rich_help_panel=_PROBLEM),
    ],
    actions: Annotated[
        int,
        typer.Option("--actions", help="A, actions.", rich_help_panel=_PROBLEM),
    ],
    discount: Annotated[
        float,
        typer.Option(help="Discount factor γ, in [0, 1).", rich_help_panel=_PROBLEM),
    ],
    budget: Annotated[
        float,
        typer.Option(
            help="d, what the discounted cost may be.", rich_help_panel=_PROBLEM
        ),
    ],
    epsilon: Annotated[float, typer.Option(help="Accuracy ε asked for.")] = 1.0,
    delta: Annotated[
        float, typer.Option(help="Probability δ with which it may be missed.")
    ] = 0.05,
    reward_max: Annotated[
        float,
        typer.Option(help="Largest reward of one step.", rich_help_panel=_PROBLEM),
    ] = 1.0,
    cost_max: Annotated[
        float,
        typer.Option(help="Largest cost of one step.", rich_help_panel=_PROBLEM),
    ] = 1.0,
    costs: Annotated[
        int,
        typer.Option(
            "--costs", help="K, costs with a budget each.", rich_help_panel=_PROBLEM
        ),
    ] = 1,
    escape_steps: Annotated[
        float,
        typer.Option(
            help="D, expected steps of the best escape from the unknown states.",
            rich_help_panel=_ESCAPE,
        ),
    ] = 1.0,
    safe_return_budget: Annotated[
        float,
        typer.Option(help="d_s, what a safe return may cost.", rich_help_panel=_ESCAPE),
    ] = 0.0,
    known_budget: Annotated[
        float | None,
        typer.Option(
            help="d'', for the known states; by default the largest allowed.",
            rich_help_panel=_ESCAPE,
        ),
    ] = None,
    spent: Annotated[
        list[float] | None,
        typer.Option(
            help="Cost of a step in the known states so far; repeat it for each step.",
            rich_help_panel=_ESCAPE,
        ),
    ] = None,
    variance: Annotated[
        float | None,
        typer.Option(
            help="Largest variance of a sample; by default what the range allows."
        ),
    ] = None,
    visits: Annotated[
        int | None,
        typer.Option(help="Visits of each pair; by default the paper's m_known."),
    ] = None,
    json: Json = False,
) -> int:
    """Compute the paper's numbers, corrected and as printed.

    Horizons, accuracies, how many visits make a state known, the budgets of the Escape
    Budget Lemma and which of its requirements binds, confidence radii, and how many
    attempts and steps all of it takes.
    """
    from escapade import theory

    found = theory.bounds(
        n_states=states,
        n_actions=actions,
        discount=discount,
        budget=budget,
        epsilon=epsilon,
        delta=delta,
        reward_max=reward_max,
        cost_max=cost_max,
        n_costs=costs,
        escape_steps=escape_steps,
        safe_return_budget=safe_return_budget,
        known_budget=known_budget,
        costs=spent or (),
        variance=variance,
        visits=visits,
    )
    if json:
        print_json(_answer(found))
    else:
        _show(found)
    return 0


def _answer(found: Bounds) -> dict[str, Any]:
    return {
        "inputs": dict(found.inputs),
        "numbers": [
            {
                "group": row.group,
                "symbol": row.symbol,
                "form": row.form,
                "value": row.value,
                "name": row.name,
                "meaning": row.meaning,
                "erratum": row.erratum or None,
            }
            for row in found.numbers
        ],
        "requirements": [
            {
                "name": requirement.name,
                "holds": requirement.holds,
                "left": requirement.left,
                "right": requirement.right,
                "slack": requirement.slack,
                "sentence": requirement.sentence,
            }
            for requirement in found.requirements
        ],
        "holds": found.holds,
        "binding": found.binding.name,
    }


def _show(found: Bounds) -> None:
    for group in dict.fromkeys(row.group for row in found.numbers):
        say(group)
        show_table(
            ["symbol", "value", "form", "erratum", "what it is"],
            [_cells(row) for row in found.numbers if row.group == group],
            numbers=["value"],
        )
        say()
    say("Requirements of the Escape Budget Lemma")
    show_table(
        ["", "holds", "left", "right", "what it says"],
        [_requirement(requirement) for requirement in found.requirements],
        numbers=["left", "right"],
    )
    say(f"The one with the least slack is ({found.binding.name}).")


def _cells(row: BoundsRow) -> list[str]:
    return [row.symbol, amount(row.value), row.form, row.erratum, row.name]


def _requirement(requirement: Condition) -> list[str]:
    return [
        f"({requirement.name})",
        "yes" if requirement.holds else "no",
        amount(requirement.left),
        amount(requirement.right),
        requirement.sentence,
    ]
