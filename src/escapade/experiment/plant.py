"""Beside a real system: ask, act, tell, and nothing is ever lost.

``plant.journal`` is a directory with the files of a run, and ``knowledge.npz``, what
the agent was told at birth.  A decision is on disk before it is returned, what came of
it before the next one.  After a crash the agent is told again what the journal holds,
and stands where it stood; a decision that was returned, and of which nothing was heard,
is :attr:`Plant.pending`.  Say what came of it, or ask on: then it is charged the most
that it can have cost, and nothing is learned from it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, SupportsIndex

import numpy as np

from escapade.agent.certificate import Certificate
from escapade.agent.e4 import E4, Decision
from escapade.agent.operators import Override, freeze, overrule, thaw
from escapade.agent.settings import E4Settings
from escapade.errors import InvalidFileError, StorageError, refusal
from escapade.experiment.checkpoint import load_checkpoint, save_checkpoint, tidy
from escapade.experiment.journal import Event, Journal
from escapade.experiment.locking import RunLock
from escapade.experiment.retelling import Retelling
from escapade.experiment.rows import one_step, pending_row
from escapade.experiment.schema import create
from escapade.experiment.store import PlantRun
from escapade.experiment.versions import versions
from escapade.knowledge.knowledge import Knowledge
from escapade.typing import ArrayLike, FloatArray

__all__ = ["Plant", "open_plant"]

_CHECKPOINT_STEPS = 500
"""Steps between two checkpoints; as many are told again after a crash."""


def open_plant(
    path: str | PathLike[str],
    *,
    knowledge: Knowledge | None = None,
    settings: E4Settings | None = None,
    durable: bool = True,
) -> Plant:
    """Open the journal of an agent that lives beside a plant; see :class:`Plant`.

    Parameters
    ----------
    path
        A directory; if there is none, a life begins, and knowledge has to be given.
    knowledge, settings
        What the agent is told.  For a life that has begun they may be left out; if
        they are given, they have to be those that it began with.
    durable
        Whether each commit waits for the disk.  Without it nothing is lost when the
        process dies, but the last steps may be when the power fails.
    """
    return Plant(Path(path), knowledge, settings, durable=durable)


class Plant:
    """An agent beside a plant, and its journal; a context manager.

    Made by :func:`escapade.open`.

    Attributes
    ----------
    directory
        Where everything is kept; :class:`escapade.experiment.PlantRun` reads it.
    """

    def __init__(
        self,
        directory: Path,
        knowledge: Knowledge | None,
        settings: E4Settings | None,
        *,
        durable: bool,
    ) -> None:
        self.directory = directory
        if not PlantRun.exists(directory):
            if knowledge is None:
                raise refusal(
                    "path",
                    "the journal of a life, or knowledge to begin one with",
                    f"no journal at {directory}",
                )
            settings = settings or E4Settings()
            E4(knowledge, settings)  # one that cannot promise is not begun
            PlantRun.begin(directory, knowledge, settings)
        self._run = PlantRun(directory)
        self._run.check(knowledge, settings)
        self._lock = RunLock(directory)
        try:
            tidy(directory)
            self._journal = self._take_up(durable=durable)
        except BaseException:
            self._lock.close()
            raise

    def _take_up(self, *, durable: bool) -> Journal:
        """Bring the agent to where the journal ends."""
        path = self._run.journal_path
        if not path.exists():
            knowledge = self._run.knowledge
            create(
                path,
                about={
                    "kind": "plant",
                    "spec": self._run.digest,
                    "n_costs": knowledge.n_costs,
                    "discount": knowledge.discount,
                    "budget": knowledge.budget.tolist(),
                },
            )
        journal = Journal(path, write=True, durable=durable)
        try:
            if journal.about.get("spec") != self._run.digest:
                raise InvalidFileError(
                    f"journal: expected one that was begun with {self.directory}/"
                    f"spec.toml, found another"
                )
            found = load_checkpoint(self.directory)
            step, agent = (found.step, found.agent) if found else (0, self._run.born())
            before = int(found.world["events"]) if found and found.world else 0
            if step > journal.n_steps:
                raise InvalidFileError(
                    f"journal: expected {step} steps or more, as the checkpoint has, "
                    f"found {journal.n_steps}; the journal lost steps, which nobody "
                    f"can live again"
                )
            told = Retelling(agent, journal, first=step, before=before)
            told.to_the_end()
            if told.wrong:
                raise InvalidFileError(f"journal: {told.wrong}")
            self._agent, self._watch = agent, told.watch
            journal.note_opening(versions())
            new = told.new_events()
            if new:  # a crash came between a step and the plan that followed it
                journal.note(*new)
        except BaseException:
            journal.close()
            raise
        self._pending_from_before = agent.open_decision is not None
        self._saved = step
        self._failed = ""
        return journal

    # -- ask and tell ------------------------------------------------------------------

    def ask(self, state: SupportsIndex) -> Decision:
        """Return what to do in ``state``; it is on disk by then.

        If nothing was heard of a decision that was made before the plant was opened, it
        is taken to have led here, and charged the most that it can have cost.
        """
        self._check()
        if self._pending_from_before:
            assert self._agent.open_decision is not None
            self.forget(self._agent.open_decision, next_state=state)
        decision = self._agent.ask(state)
        with self._writing():
            self._journal.decide(pending_row(decision), self._watch.take())
        return decision

    def tell(
        self,
        decision: Decision,
        *,
        reward: float,
        cost: ArrayLike | None,
        next_state: SupportsIndex,
    ) -> None:
        """Say what came of a decision; see :meth:`escapade.E4.tell`."""
        self._check()
        opened, before = self._agent.open_decision, self._standing()
        self._agent.tell(decision, reward=reward, cost=cost, next_state=next_state)
        self._close(opened, before, reward=float(reward), cost=cost)

    def forget(self, decision: Decision, *, next_state: SupportsIndex) -> None:
        """Say that what came of a decision is not known, but for where it led.

        The most that it can have cost is charged, and nothing is learned.
        """
        self._check()
        opened, before = self._agent.open_decision, self._standing()
        self._agent.forget(decision, next_state=next_state)
        self._close(opened, before, reward=float("nan"), cost=None)

    def _standing(self) -> tuple[int, int]:
        return self._agent.decisions, self._agent.plans

    def _close(
        self,
        opened: Decision | None,
        before: tuple[int, int],
        *,
        reward: float,
        cost: ArrayLike | None,
    ) -> None:
        """Write what came of a decision, and what the agent made of it."""
        agent = self._agent
        decisions, plans = before
        if opened is None or agent.decisions == decisions:
            return  # told before
        self._pending_from_before = False
        if agent.plans > plans:
            self._watch.planned(agent.decisions)
        assert agent.state is not None
        with self._writing():
            self._journal.complete(
                one_step(
                    opened,
                    reward=reward,
                    cost=cost,
                    next_state=agent.state,
                    discount=agent.knowledge.discount,
                    budget=agent.knowledge.budget,
                ),
                self._watch.take(),
            )
        if agent.decisions - self._saved >= _CHECKPOINT_STEPS:
            self.save()

    def tell_cost(self, decision: Decision | int, cost: ArrayLike) -> None:
        """Bring a cost that was not known; see :meth:`escapade.E4.tell_cost`."""
        self._check()
        number = decision.id if isinstance(decision, Decision) else decision
        self._agent.tell_cost(number, cost)
        paid = np.atleast_1d(np.array(cost, dtype=np.float64)).tolist()
        self._note("cost", {"decision": int(number), "cost": paid})

    # -- operators ---------------------------------------------------------------------

    def override(self, action: int) -> Override:
        """Do something else than what was decided; it is charged to the ledger.

        Between :meth:`ask` and :meth:`tell`; the latter then takes the decision that is
        returned.
        """
        self._check()
        made = overrule(self._agent, action)
        content = {
            "action": made.decision.action,
            "instead_of": made.instead_of,
            "beyond": [b if np.isfinite(b) else None for b in made.beyond],
        }
        event = self._event("override", content)
        with self._writing():
            self._journal.redecide(made.decision.action, event)
        return made

    def freeze(self) -> None:
        """Learn and explore nothing from now on, but earn within the promise."""
        self._check()
        freeze(self._agent)
        self._note("freeze", {})

    def thaw(self) -> None:
        """Learn and explore again."""
        self._check()
        plans = self._agent.plans
        thaw(self._agent)
        if self._agent.plans > plans:
            self._watch.planned(self._agent.decisions)
        self._note("thaw", {})

    def change_budget(self, budget: ArrayLike) -> None:
        """Live within another budget; see :meth:`escapade.E4.change_budget`."""
        self._check()
        self._agent.change_budget(budget)
        self._note("budget", {"budget": self._agent.knowledge.budget.tolist()})

    def note(self, text: str) -> None:
        """Write a remark into the journal."""
        self._check()
        self._note("remark", {"text": text})

    # -- looking -----------------------------------------------------------------------

    @property
    def pending(self) -> Decision | None:
        """The decision of which nothing was heard yet, if there is one."""
        return self._agent.open_decision

    @property
    def steps(self) -> int:
        """Steps whose outcome is known."""
        return self._agent.decisions

    @property
    def promise(self) -> FloatArray:
        """``(K,)``; the present promise."""
        return self._agent.promise.copy()

    @property
    def breaks(self) -> tuple[str, ...]:
        """What the plant did against the assumptions, in words."""
        return tuple(self._agent.breaks)

    @property
    def learning(self) -> bool:
        """Whether the agent learns."""
        return self._agent.learning

    @property
    def state(self) -> int | None:
        """Where the last step led."""
        return self._agent.state

    def certificate(self) -> Certificate:
        """Return what is certain about the policy that the agent thinks best.

        It is asked of a copy, so that asking changes nothing.
        """
        self._check()
        if self.pending is not None:
            raise refusal(
                "certificate", "what came of the last decision first", self.pending.id
            )
        self.save()
        found = load_checkpoint(self.directory)
        assert found is not None
        return found.agent.certificate()

    # -- closing -----------------------------------------------------------------------

    def save(self) -> None:
        """Set the agent aside, so that less has to be told again after a crash."""
        if self._agent.open_decision is None:
            save_checkpoint(
                self.directory,
                self._agent,
                step=self._agent.decisions,
                world={"events": self._journal.n_events},
            )
            self._saved = self._agent.decisions

    def close(self) -> None:
        """Set the agent aside, and let go of the journal."""
        if self._lock.held:
            try:
                if not self._failed:
                    self.save()
                    self._journal.fold()
            finally:
                self._journal.close()
                self._lock.close()

    def __enter__(self) -> Plant:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # -- writing -----------------------------------------------------------------------

    def _check(self) -> None:
        if not self._lock.held:
            raise refusal("plant", "one that is open", "one that was closed")
        if self._failed:
            raise StorageError(
                f"plant: expected to be opened again, for the journal could not be "
                f"written ({self._failed})"
            )

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Answer nothing any more if writing fails: memory is ahead of the disk."""
        try:
            yield
        except BaseException as error:
            self._failed = str(error) or type(error).__name__
            raise

    def _event(self, kind: str, content: Mapping[str, Any]) -> Event:
        kept = {**content, "open": self._agent.open_decision is not None}
        return Event(step=self._agent.decisions, kind=kind, content=kept)

    def _note(self, kind: str, content: Mapping[str, Any]) -> None:
        with self._writing():
            self._journal.note(self._event(kind, content), *self._watch.take())
