"""Another budget in mid-life; what that means for the promise.

A larger one lets the promise grow, step by step.  A smaller one cuts it at once, and is
taken only if the fallback can follow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from escapade.agent.paper.planning import PaperPlanning
from escapade.errors import refusal
from escapade.model.arguments import read_budget
from escapade.typing import ArrayLike, FloatArray

if TYPE_CHECKING:
    from escapade.agent.e4 import E4

__all__ = ["change_budget", "live_with"]


def change_budget(agent: E4, budget: ArrayLike) -> None:
    """Let an agent live within another budget; see :meth:`escapade.E4.change_budget`.

    It is taken whole or refused, and then nothing is changed.
    """
    size = agent.knowledge.n_costs
    wanted = read_budget(budget, size)
    if agent._open is not None:
        raise refusal(
            "budget", "what came of the last decision first", agent._open[0].id
        )
    if isinstance(agent.planning, PaperPlanning):
        raise refusal("budget", "the mode 'ledger'", "paper")
    if agent.breaks:
        raise refusal("budget", "a life without breaks", agent.breaks[-1])
    cap = wanted - agent._kept
    states, promise = np.flatnonzero(agent.knowledge.start), cap
    if agent.state is not None:
        states, promise = np.array([agent.state]), np.minimum(agent.promise, cap)
    why = agent.safety.change_cap(agent.belief, cap, states, promise)
    if why:
        raise refusal("budget", "one that the promise can follow", f"that {why}")
    agent.cap = cap
    agent.promise[:] = promise
    live_with(agent, wanted)
    agent._renew_at = 0
    agent.planned = agent.planning.plan(agent.belief, agent.safety, agent.state)


def live_with(agent: E4, budget: FloatArray) -> None:
    """Put another budget into what is known; all else stays as it was."""
    agent.knowledge = agent.belief.knowledge = agent.knowledge.with_budget(budget)
