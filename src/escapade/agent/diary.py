"""What an agent keeps beside its arrays, as JSON can hold it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from escapade.agent.budget_change import live_with
from escapade.agent.decision import pack_opened, unpack_opened, unpack_told

if TYPE_CHECKING:
    from escapade.agent.e4 import E4

__all__ = ["read", "write"]


def write(agent: E4) -> dict[str, Any]:
    """Return counters, breaks, what is open and what is awaited."""
    return {
        "plans": agent.plans,
        "certified": agent.certified,
        "gap": agent.gap,
        "look_at": agent._look_at,
        "renew_at": agent._renew_at,
        "decisions": agent.decisions,
        "breaks": list(agent.breaks),
        "drifts": list(agent.drifts),
        "state": agent.state,
        "open": pack_opened(agent._open),
        "last": agent._last,
        "late": agent.late.state(),
        "learning": agent.learning,
        "budget": agent.knowledge.budget.tolist(),
    }


def read(agent: E4, journal: Mapping[str, Any]) -> None:
    """Go back to what :func:`write` returned."""
    agent.plans = int(journal["plans"])
    agent.certified = bool(journal["certified"])
    agent.gap = journal["gap"]
    agent._look_at = int(journal["look_at"])
    agent._renew_at = int(journal["renew_at"])
    agent.decisions = int(journal["decisions"])
    agent.breaks = [str(what) for what in journal["breaks"]]
    agent._broken = {said.partition(": ")[2] for said in agent.breaks}
    agent.drifts = [str(what) for what in journal["drifts"]]
    agent.state = journal["state"]
    agent._open = unpack_opened(journal["open"])
    agent._last = unpack_told(journal["last"])
    agent.late.restore(journal["late"])
    agent.learning = bool(journal["learning"])
    budget = np.array(journal["budget"], dtype=np.float64)
    if not np.array_equal(budget, agent.knowledge.budget):
        agent.cap = budget - agent._kept
        agent.safety.cap = agent.cap
        live_with(agent, budget)
