"""The journal of a life beside a plant, told to the agent again, step by step.

What was told from outside is told again at the same place: costs that came late,
overrides, changes of the budget, and whether to learn.  The agent must decide as it
did.
"""

from __future__ import annotations

import numpy as np

from escapade.agent.e4 import E4, Decision
from escapade.agent.operators import freeze, overrule, thaw
from escapade.errors import EscapadeError
from escapade.experiment.events import DERIVED, Watcher
from escapade.experiment.journal import Event, Journal
from escapade.experiment.rows import PendingRow
from escapade.simulation.trace import Trace

__all__ = ["Retelling"]

_AT_ONCE = 10_000


class Retelling:
    """Tells an agent what stands in a journal.

    Parameters
    ----------
    agent
        As it was after step ``first`` and the first ``before`` events.
    journal
        To be told.

    Attributes
    ----------
    wrong
        What the agent does not agree with, if there is anything.
    steps
        Steps that it was told, those before ``first`` included.
    watch
        Watches the agent; what follows is noted there too.
    """

    def __init__(
        self, agent: E4, journal: Journal, *, first: int, before: int = 0
    ) -> None:
        self.watch = Watcher(agent)
        self.wrong: str | None = None
        self.steps = first
        self.derived: list[Event] = []
        events = journal.events()[before:]
        self._recorded = [event for event in events if event.kind in DERIVED]
        self._told: dict[tuple[int, bool], list[Event]] = {}
        for event in events:
            if event.kind not in DERIVED:
                place = (event.step, bool(event.content["open"]))
                self._told.setdefault(place, []).append(event)
        self._agent, self._journal = agent, journal

    def to_the_end(self) -> None:
        """Tell everything, the decision that is pending included."""
        journal = self._journal
        while self.steps < journal.n_steps and self.wrong is None:
            part = journal.read(self.steps, self.steps + _AT_ONCE)
            for i in range(len(part)):
                self._guarded(part, i)
                if self.wrong is not None:
                    return
                self.steps += 1
        if self.wrong is None:
            self._guarded(None, 0)
        self.derived += self.watch.take()
        if self.wrong is None:
            self._compare()

    def new_events(self) -> list[Event]:
        """Return the plans and breaks that the journal does not have yet."""
        return self.derived[len(self._recorded) :]

    def _compare(self) -> None:
        for mine, theirs in zip(self.derived, self._recorded, strict=False):
            if mine != theirs:
                self.wrong = (
                    f"{theirs.kind} after step {theirs.step} does not come about again"
                )
                return
        if len(self.derived) < len(self._recorded):
            missing = self._recorded[len(self.derived)]
            self.wrong = f"{missing.kind} after step {missing.step} does not come about"

    def _guarded(self, part: Trace | None, i: int) -> None:
        try:
            if part is None:
                self._tell_pending()
            else:
                self._tell_step(part, i)
        except EscapadeError as error:
            self.wrong = f"step {self.steps}: {error}"

    def _tell_pending(self) -> None:
        self._apply(opened=False)
        row = self._journal.pending
        if row is not None:
            decision = self._agent.ask(row.state)
            self._check(decision, row)
            self._apply(opened=True)

    def _tell_step(self, part: Trace, i: int) -> None:
        agent = self._agent
        self._apply(opened=False)
        decision = agent.ask(int(part.states[i]))
        self._check(
            decision,
            PendingRow(
                step=self.steps,
                state=int(part.states[i]),
                action=int(part.actions[i]),
                phase=int(part.phases[i]),
                reason=int(part.reasons[i]),
                promise=tuple(part.promise[i].tolist()),
                reserved=tuple(part.reserved[i].tolist()),
            ),
        )
        self._apply(opened=True)
        plans, after = agent.plans, int(part.states[i + 1])
        opened = agent.open_decision
        assert opened is not None
        if np.isnan(part.rewards[i]):
            agent.forget(opened, next_state=after)
        else:
            cost = None if np.isnan(part.costs[i]).any() else part.costs[i]
            agent.tell(
                opened, reward=float(part.rewards[i]), cost=cost, next_state=after
            )
        if agent.plans > plans:
            self.watch.planned(agent.decisions)

    def _check(self, decision: Decision, row: PendingRow) -> None:
        """Compare a decision with the row; an override stands in the row already."""
        action = row.action
        for event in self._told.get((self.steps, True), []):
            if event.kind == "override":
                action = int(event.content["instead_of"])
                break
        mine = (
            decision.id,
            decision.action,
            int(decision.phase),
            decision.reason_code,
            decision.promise,
            decision.reserved,
        )
        theirs = (row.step, action, row.phase, row.reason, row.promise, row.reserved)
        if mine != theirs:
            self.wrong = (
                f"step {self.steps}: expected the decision {mine}, found {theirs}"
            )

    def _apply(self, *, opened: bool) -> None:
        """Tell again what was told from outside at this place."""
        agent = self._agent
        for event in self._told.get((self.steps, opened), []):
            content, plans = event.content, agent.plans
            if event.kind == "cost":
                agent.tell_cost(int(content["decision"]), content["cost"])
            elif event.kind == "override":
                overrule(agent, int(content["action"]))
            elif event.kind == "budget":
                agent.change_budget(content["budget"])
            elif event.kind == "freeze":
                freeze(agent)
            elif event.kind == "thaw":
                thaw(agent)
            if agent.plans > plans:
                self.watch.planned(agent.decisions)
