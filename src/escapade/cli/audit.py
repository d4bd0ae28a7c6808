"""``escapade audit ENV``: many lifetimes, held to what was promised."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from escapade.cli.options import Json, worlds
from escapade.cli.output import complain, print_json, say
from escapade.cli.run import pairs
from escapade.errors import AssumptionError, did_you_mean, refusal

if TYPE_CHECKING:
    from escapade.agent.settings import E4Settings
    from escapade.knowledge.knowledge import Knowledge
    from escapade.typing import Agent

__all__ = ["audit"]

_OWN = "e4"


def _agents(incomplete: str) -> list[str]:
    """Complete the name of an agent in the shell."""
    from escapade.baselines import names

    return [name for name in (_OWN, *names()) if name.startswith(incomplete)]


def audit(
    env: Annotated[
        str,
        typer.Argument(
            metavar="ENV",
            help="Name of a world; `escapade envs` lists them.",
            autocompletion=worlds,
        ),
    ],
    lifetimes: Annotated[int, typer.Option(help="How many lives.")] = 200,
    steps: Annotated[int, typer.Option(help="How long each life is.")] = 10_000,
    seed: Annotated[int, typer.Option(help="Of all lives.")] = 0,
    jobs: Annotated[
        int, typer.Option(help="Processes; the result does not depend on it.")
    ] = 1,
    agent: Annotated[
        str,
        typer.Option(help="`e4`, or the name of a baseline.", autocompletion=_agents),
    ] = _OWN,
    parameter: Annotated[
        list[str] | None,
        typer.Option(
            "--set", "-p", metavar="KEY=VALUE", help="A parameter of the world."
        ),
    ] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option(
            "--setting",
            "-s",
            metavar="KEY=VALUE",
            help="A setting of the agent, such as known_after=5.",
        ),
    ] = None,
    json: Json = False,
) -> int:
    """Live many lifetimes, and hold the agent to its promise at every step.

    Ends with 1 if the promise was broken beyond doubt, if an assumption broke, or if
    the budget cannot be promised at all.
    """
    from escapade.cli.screen import Ticker
    from escapade.experiment import RunSpec
    from escapade.simulation.audit import audit as hold_to_account

    what = RunSpec(
        world=env,
        steps=steps,
        seed=seed,
        parameters=pairs("--set", parameter or []),
        settings=pairs("--setting", setting or []),
    )
    if agent not in _agents(""):
        hint = did_you_mean(agent, _agents(""))
        raise refusal("--agent", f"one of {_agents('')}", f"{agent!r}{hint}")
    if agent == _OWN:
        make_agent = partial(_make_e4, what.make_settings())
    elif setting:
        raise refusal("--setting", f"none for {agent}, which has its own", setting[0])
    else:
        make_agent = partial(_make_baseline, agent)
    try:
        with Ticker(lifetimes, unit="life", quiet=json) as tell:
            found = hold_to_account(
                make_agent,
                what.make_world(),
                lifetimes,
                steps,
                seed=seed,
                jobs=jobs,
                on_life=tell,
            )
    except AssumptionError as error:
        complain(str(error))
        if json:
            print_json({"world": what.world, "error": str(error)})
        return 1
    if json:
        print_json({"world": what.world, "agent": agent, **found.summary()})
    else:
        for line in str(found).splitlines():
            say(line)
    return 1 if found.broken or found.assumption_breaks else 0


def _make_e4(settings: E4Settings, knowledge: Knowledge, seed: int) -> Agent:
    from escapade.agent.e4 import E4

    return E4(knowledge, replace(settings, seed=seed))


def _make_baseline(name: str, knowledge: Knowledge, seed: int) -> Agent:
    from escapade.baselines import make

    return make(name, knowledge, seed=seed)
