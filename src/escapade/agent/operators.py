"""What an operator beside the plant may do: overrule a decision, and stop the learning.

An override is charged to the ledger like any other action.  Where the ledger would not
have allowed it, the promise that stood at that moment is no longer kept by the agent,
and :class:`Override` says by how much it may be exceeded; afterwards the agent promises
what the fallback costs from wherever the override led, and keeps that.

A frozen agent learns nothing and explores nothing: it follows the policy that it thinks
best, within the ledger, until it is told to learn again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from escapade.agent.e4 import E4, Decision
from escapade.agent.paper.planning import PaperPlanning
from escapade.errors import refusal
from escapade.kernels.ledger import choose_rules, note_pair

__all__ = ["Override", "freeze", "overrule", "thaw"]

_BY_HAND = "an operator's choice"


@dataclass(frozen=True, slots=True, kw_only=True)
class Override:
    """A decision that an operator made instead of the agent.

    Attributes
    ----------
    decision
        With the operator's action.
    instead_of
        What the agent would have done.
    beyond
        ``(K,)``; by how much the worst cost of the action and of the fallback after it
        exceeds the promise: 0 if the ledger allows it, infinite if the action may lead
        to where nothing can be promised.
    """

    decision: Decision
    instead_of: int
    beyond: tuple[float, ...]

    @property
    def allowed(self) -> bool:
        """Whether the ledger allows the action."""
        return max(self.beyond) <= 0.0


def overrule(agent: E4, action: int) -> Override:
    """Take ``action`` instead of the one that the open decision names."""
    opened = agent.open_decision
    if opened is None:
        raise refusal("override", "a decision that is open", "none")
    if isinstance(agent.planning, PaperPlanning):
        raise refusal("override", "the mode 'ledger'", "paper")
    pair = agent.knowledge.pair(opened.state, action)
    ledger, pending = agent.planned.ledger, agent.pending
    note_pair(ledger, pair, pending)
    choose_rules(ledger, agent.promise, pending)
    beyond = np.maximum(ledger.q[:, pair] - agent.promise, 0.0)
    if not ledger.allowed[pair]:
        beyond[:] = np.inf
    decision = replace(opened, action=int(action), reason=_BY_HAND)
    agent.take_instead(decision, pair)
    return Override(
        decision=decision,
        instead_of=opened.action,
        beyond=tuple(beyond.tolist()),
    )


def freeze(agent: E4) -> None:
    """Stop learning and exploring; only between a step and the next decision."""
    _check(agent)
    agent.learning = False
    if not agent.breaks:
        agent.planned = agent.planning.only_earning(
            agent.belief, agent.safety, agent.planned
        )


def thaw(agent: E4) -> None:
    """Learn and explore again."""
    _check(agent)
    agent.learning = True
    agent.replan()


def _check(agent: E4) -> None:
    if agent.open_decision is not None:
        raise refusal(
            "learning", "what came of the last decision first", agent.open_decision.id
        )
    if isinstance(agent.planning, PaperPlanning):
        raise refusal("learning", "the mode 'ledger'", "paper")
