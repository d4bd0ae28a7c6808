"""``escapade envs``: the worlds that come with Escapade, and how large they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from escapade.cli.options import Json
from escapade.cli.output import amount, print_json, say, show_table

if TYPE_CHECKING:
    from escapade.environments.world import World

__all__ = ["envs"]


def envs(json: Json = False) -> int:
    """List the worlds: problems whose true model is known.

    The numbers are those that a world has unless it is made with others.  In Python,
    escapade.environments.make(NAME) makes one.
    """
    from escapade import environments

    worlds = [environments.make(name) for name in environments.names()]
    if json:
        print_json(
            {
                "worlds": [
                    _describe(world, environments.parameters(world.name))
                    for world in worlds
                ]
            }
        )
        return 0
    show_table(
        ["name", "states", "actions", "discount", "budget", "optimum"],
        [_cells(world) for world in worlds],
        numbers=["states", "actions", "discount", "budget", "optimum"],
    )
    say()
    show_table(["name", "what it is"], [[w.name, w.description] for w in worlds])
    return 0


def _describe(world: World, parameters: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": world.name,
        "description": world.description,
        "states": world.cmdp.n_states,
        "actions": world.cmdp.n_actions,
        "pairs": world.cmdp.n_pairs,
        "discount": world.cmdp.discount,
        "budget": world.cmdp.budget,
        "known_optimum": world.known_optimum,
        "optimum_source": world.optimum_source,
        "parameters": parameters,
    }


def _cells(world: World) -> list[str]:
    """Return the row of a world; its optimum only where it need not be computed."""
    known = world.known_optimum
    return [
        world.name,
        str(world.cmdp.n_states),
        str(world.cmdp.n_actions),
        amount(world.cmdp.discount),
        ", ".join(map(amount, world.cmdp.budget)),
        "-" if known is None else amount(known),
    ]
