"""Stretches of the life on the map of its world, with the fallback's arrows."""

from __future__ import annotations

from typing import Any

import numpy as np

from escapade.agent.e4 import E4
from escapade.agent.phases import Phase
from escapade.environments.rendering import Board
from escapade.report.figures import PHASES
from escapade.report.material import Material

__all__ = ["replay", "stretches"]

_LENGTH = 400
_BEFORE = 100
_MOST_STATES = 2_500


def stretches(material: Material) -> list[tuple[str, int]]:
    """Return what is shown, by name and first step."""
    trace = material.trace
    last = max(len(trace) - _LENGTH, 0)

    def around(step: int) -> int:
        return min(max(step - _BEFORE, 0), last)

    found = [("the first steps", 0)]
    for phase in (Phase.WANDER, Phase.ESCAPE):
        steps = np.flatnonzero(trace.phases == phase)
        if steps.size:
            found.append((f"around the first {phase.label}", around(int(steps[0]))))
    slack = (trace.promise - trace.reserved).min(axis=1)
    found.append(("around the least slack", around(int(np.argmin(slack)))))
    dearest = (material.to_go / trace.budget).max(axis=1)
    if np.isfinite(dearest).any():
        found.append(("around the dearest step", around(int(np.nanargmax(dearest)))))
    found.append(("the last steps", last))
    once: dict[int, str] = {}
    for name, first in found:
        once.setdefault(first, name)
    return [(name, first) for first, name in once.items()]


def replay(material: Material) -> dict[str, Any] | None:
    """Return what the page needs to replay; ``None`` where there is no map."""
    world = material.world
    if world is None or world.cmdp.coordinates is None:
        return None
    cmdp = world.cmdp
    if cmdp.n_states > _MOST_STATES:
        return None
    board = Board.of(cmdp)
    return {
        "height": board.height,
        "width": board.width,
        "row": board.row,
        "column": board.column,
        "costly": board.costly.astype(int),
        "rewarded": board.rewarded.astype(int),
        "goals": None if material.agent is None else _goals(material.agent),
        "states": cmdp.state_names,
        "actions": cmdp.action_names,
        "phases": [[phase.label, sign] for phase, _, sign in PHASES],
        "reasons": material.trace.reason_names,
        "stretches": [
            _stretch(material, name, first) for name, first in stretches(material)
        ],
    }


def _goals(agent: E4) -> list[int]:
    """Return where the last fallback most likely leads from each state; -1: nowhere.

    Nothing is promised from states outside the promisable ones, and no arrow drawn.
    """
    told, ledger = agent.knowledge, agent.planned.ledger
    goals = []
    for state in range(told.n_states):
        pair = int(ledger.fallback[state])
        row = slice(told.row_ptr[pair], told.row_ptr[pair + 1])
        if not np.isfinite(ledger.w[:, state]).all() or row.start == row.stop:
            goals.append(-1)
        else:
            likely = np.argmax(agent.belief.nominal[row])
            goals.append(int(told.successor[row][likely]))
    return goals


def _stretch(material: Material, name: str, first: int) -> dict[str, Any]:
    trace = material.trace
    some = slice(first, min(first + _LENGTH, len(trace)))
    return {
        "name": name,
        "first": first,
        "states": trace.states[some],
        "actions": trace.actions[some],
        "phases": trace.phases[some],
        "reasons": trace.reasons[some],
        "rewards": trace.rewards[some],
        "costs": trace.costs[some],
        "promise": trace.promise[some],
        "reserved": trace.reserved[some],
    }
