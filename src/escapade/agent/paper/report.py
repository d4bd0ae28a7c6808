"""What a life by Algorithm 1 came to, in numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from escapade.agent.paper.budgets import Budgets
from escapade.agent.paper.planning import PaperPlanning
from escapade.errors import refusal
from escapade.kernels.paper import ATTEMPTS, ENTRIES, OVERDRAWN, REFUSALS
from escapade.theory.known_states import known_visits

if TYPE_CHECKING:
    from escapade.agent.e4 import E4

__all__ = ["PaperReport", "known_after_by_lemma", "paper_report"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PaperReport:
    """How Algorithm 1 fared so far.

    Attributes
    ----------
    budgets
        Those in force, with the lemma's requirements.
    epsilon
        ε of the present stage.
    least_chance
        ε/G, the chance to reach something unknown above which exploring goes on.
    known, worth_entering
        How many states are known, and in how many others something may be learned.
    attempts, entries
        How often a trajectory set out to explore, and an unknown state was entered.
    refusals
        How often the ledger overruled a plan.
    overdrawn
        After how many steps the promise could no longer be kept: 0 under the corrected
        test, always.
    relaxed
        Settings that are not the worst case's.
    known_after, known_after_by_lemma
        Visits that make a state known here, and those that the Known State Lemma asks
        for (Hoeffding, corrected).
    guarded
        Whether the ledger stands behind every step.
    lapsed
        Which requirement of the lemma failed first, at how many known states; empty as
        long as all of them hold.
    """

    budgets: Budgets
    epsilon: float
    least_chance: float
    known: int
    worth_entering: int
    attempts: int
    entries: int
    refusals: int
    overdrawn: int
    relaxed: tuple[str, ...]
    known_after: int
    known_after_by_lemma: int
    guarded: bool
    lapsed: str


def known_after_by_lemma(agent: E4) -> int:
    """Return m_known, the visits that the Known State Lemma asks for."""
    knowledge, settings = agent.knowledge, agent.settings
    return known_visits(
        n_states=knowledge.n_states,
        n_actions=knowledge.n_actions,
        discount=knowledge.discount,
        epsilon=settings.epsilon,
        delta=settings.delta,
        reward_max=knowledge.reward_max,
        cost_max=float(knowledge.cost_max.max()),
        n_costs=knowledge.n_costs,
    )


def paper_report(agent: E4) -> PaperReport:
    """Return how Algorithm 1 fared so far; only for ``mode="paper"``."""
    planning, settings = agent.planning, agent.settings
    if not isinstance(planning, PaperPlanning):
        raise refusal("mode", "'paper'", repr(settings.mode))
    paper = settings.paper_settings
    counters = agent.course.counters
    return PaperReport(
        budgets=planning.budgets,
        epsilon=planning.epsilon,
        least_chance=planning.least_chance(agent.belief),
        known=int(planning.known.sum()),
        worth_entering=int(np.sum(agent.planned.frontier.wanted)),
        attempts=int(counters[ATTEMPTS]),
        entries=int(counters[ENTRIES]),
        refusals=int(counters[REFUSALS]),
        overdrawn=int(counters[OVERDRAWN]),
        relaxed=paper.relaxed,
        known_after=settings.known_after,
        known_after_by_lemma=known_after_by_lemma(agent),
        guarded=paper.test == "corrected",
        lapsed=planning.lapsed,
    )
