"""An agent on disk: everything that it knows, has seen, promised and planned.

A loaded agent goes on as the saved one would have, bit for bit: the file holds what was
known at birth, the evidence, the fallback, the plan in force, the promise, an open
decision, and the state of the generator.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from escapade.agent.earning import Earning
from escapade.agent.exploration import Frontier
from escapade.agent.planning import Planned
from escapade.agent.settings import E4Settings
from escapade.errors import EscapadeError, InvalidFileError
from escapade.kernels.ledger import Ledger, Plan
from escapade.kernels.paper import Rules
from escapade.knowledge.files import pack_knowledge, unpack_knowledge
from escapade.knowledge.knowledge import Knowledge
from escapade.model.archives import first_line, read_archive, write_archive

if TYPE_CHECKING:
    from escapade.agent.e4 import E4

__all__ = ["load_agent", "save_agent"]

_FORMAT = "escapade-agent"
_VERSION = 2
_OWN = ("promise", "memory", "changed", "wish")


def save_agent(agent: E4, path: str | PathLike[str]) -> None:
    """Write an agent to ``path`` in one atomic step."""
    told, known = pack_knowledge(agent.born_with)
    arrays = {f"knowledge.{name}": array for name, array in known.items()}
    for name, array in agent.belief.state().items():
        arrays[f"belief.{name}"] = array
    for name, array in agent.safety.state().items():
        arrays[f"safety.{name}"] = array
    for name, array in agent.planning.state().items():
        arrays[f"planning.{name}"] = array
    if agent.drift is not None:
        for name, array in agent.drift.state().items():
            arrays[f"drift.{name}"] = array
    for name in _OWN:
        arrays[f"own.{name}"] = getattr(agent, name)
    for name, value in agent.pending._asdict().items():
        arrays[f"pending.{name}"] = np.asarray(value)
    for name, value in agent.course._asdict().items():
        arrays[f"course.{name}"] = np.asarray(value)
    arrays.update(_pack_planned(agent.planned))
    content = {
        "settings": asdict(agent.settings),
        "knowledge": told,
        "generator": agent.rng.bit_generator.state,
        **agent.journal(),
    }
    write_archive(path, kind=_FORMAT, version=_VERSION, content=content, arrays=arrays)


def load_agent(path: str | PathLike[str]) -> E4:
    """Read the agent that :func:`save_agent` wrote to ``path``."""
    from escapade.agent.e4 import E4

    content, arrays = read_archive(
        path, kind=_FORMAT, version=_VERSION, what="an Escapade agent"
    )
    try:
        agent = E4(_knowledge(content, arrays), E4Settings(**content["settings"]))
        agent.belief.restore(part_of(arrays, "belief"))
        agent.safety.restore(part_of(arrays, "safety"))
        agent.planning.restore(part_of(arrays, "planning"))
        if agent.drift is not None:
            agent.drift.restore(part_of(arrays, "drift"))
        for name in _OWN:
            getattr(agent, name)[:] = arrays[f"own.{name}"]
        for name, value in agent.pending._asdict().items():
            value[:] = arrays[f"pending.{name}"]
        for name, value in agent.course._asdict().items():
            value[:] = arrays[f"course.{name}"]
        agent.restore_journal(content)
        agent.planned = _unpack_planned(agent, arrays)
        agent.rng.bit_generator.state = content["generator"]
    except (EscapadeError, KeyError, TypeError, ValueError, IndexError) as error:
        raise InvalidFileError(
            f"path: expected a valid agent in {path}, found {first_line(error)}"
        ) from error
    return agent


def _knowledge(
    content: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
) -> Knowledge:
    return unpack_knowledge(content["knowledge"], part_of(arrays, "knowledge"))


def part_of(arrays: Mapping[str, np.ndarray], name: str) -> dict[str, np.ndarray]:
    """Return the arrays whose names begin with a part's, without it."""
    start = f"{name}."
    return {
        key[len(start) :]: value
        for key, value in arrays.items()
        if key.startswith(start)
    }


def _pack_planned(planned: Planned) -> dict[str, np.ndarray]:
    """Return the plan in force; the ledger's own arrays are those of the safety."""
    arrays = {f"plan.{n}": np.asarray(v) for n, v in planned.plan._asdict().items()}
    for n, v in planned.rules._asdict().items():
        arrays[f"rules.{n}"] = np.asarray(v)
    for field in fields(Frontier):
        arrays[f"frontier.{field.name}"] = getattr(planned.frontier, field.name)
    arrays["planned.playable"] = planned.playable
    arrays["planned.out_of_reach"] = planned.out_of_reach
    arrays["planned.no_refund"] = planned.no_refund
    if planned.earning is not None:
        for field in fields(Earning):
            value = getattr(planned.earning, field.name)
            if value is not None:
                arrays[f"earning.{field.name}"] = np.asarray(value)
    return arrays


def _unpack_planned(agent: E4, arrays: Mapping[str, np.ndarray]) -> Planned:
    plan = part_of(arrays, "plan")
    earning = part_of(arrays, "earning")
    by_level = bool(plan.pop("by_level"))
    found: Earning | None = None
    if earning:
        found = Earning(
            weights=earning["weights"],
            levels=earning.get("levels"),
            pairs=earning.get("pairs"),
            share=earning.get("share"),
            grid=earning.get("grid"),
            drawn=earning.get("drawn"),
            part=earning.get("part"),
            binds=bool(earning["binds"]),
        )
    no_refund = arrays["planned.no_refund"]
    ledger: Ledger = agent.planning.ledger(agent.belief, agent.safety, no_refund)
    return Planned(
        ledger=ledger,
        plan=Plan(by_level=by_level, **plan),
        rules=Rules(**{n: _plain(v) for n, v in part_of(arrays, "rules").items()}),
        frontier=Frontier(**part_of(arrays, "frontier")),
        earning=found,
        **part_of(arrays, "planned"),
    )


def _plain(value: np.ndarray) -> Any:
    """Return a number where an array holds nothing else."""
    return value.item() if value.ndim == 0 else value
