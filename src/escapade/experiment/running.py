"""Living a run: from its specification, or from where it was left, to its end.

A simulated run is a function of its specification.  So what a crash took is lived
again: from the last checkpoint on the agent meets the same world, whose generator was
set aside with it, and takes the same decisions; those that still stand in the journal
are compared with them.  Steps are lived and written in blocks, one transaction each.
How long blocks are, and when checkpoints are written, decides nothing.

With ``durable`` every decision is on disk before it is acted on, and what came of it
before the next decision, as it is beside a plant.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from escapade.agent.e4 import E4, Decision
from escapade.errors import InvalidFileError
from escapade.experiment.callbacks import Callback, Moment
from escapade.experiment.checkpoint import (
    load_checkpoint,
    restore_world,
    save_checkpoint,
    seal_text,
    tidy,
    world_state,
)
from escapade.experiment.events import Watcher
from escapade.experiment.journal import Event
from escapade.experiment.locking import RunLock
from escapade.experiment.rows import one_step, pack, pending_row
from escapade.experiment.schema import storing
from escapade.experiment.store import FILES, SUMMARY, Run
from escapade.experiment.summary import digest_of, summarise
from escapade.experiment.versions import versions
from escapade.model.archives import write_atomically
from escapade.simulation.simulate import begin, live_through
from escapade.simulation.trace import Trace

__all__ = ["Interruption", "live"]

_BLOCK_SECONDS = 0.25
_FIRST_BLOCK, _LONGEST_BLOCK = 1000, 200_000
_CHECKPOINT_SECONDS = 10.0
_NOT_DONE = "all steps taken"


class Interruption:
    """Whether somebody asked the run to stop, which it then does after the block.

    As a context it takes Ctrl-C and the request to terminate; a second one is no longer
    held back.
    """

    def __init__(self) -> None:
        self.asked = False

    def __call__(self) -> bool:
        """Return whether to stop."""
        return self.asked

    @contextmanager
    def listening(self) -> Iterator[Interruption]:
        """Take the signals, as long as the context lasts."""
        if threading.current_thread() is not threading.main_thread():
            yield self
            return

        def note(number: int, _frame: object) -> None:
            self.asked = True
            signal.signal(number, before[signal.Signals(number)])

        before = {n: signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)}
        for number in before:
            signal.signal(number, note)
        try:
            yield self
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def live(
    run: Run,
    *,
    callbacks: Sequence[Callback] = (),
    stop: Callable[[], bool] = lambda: False,
    block: int | None = None,
    checkpoint_seconds: float = _CHECKPOINT_SECONDS,
) -> dict[str, Any] | None:
    """Live a run to its end, from its beginning or from where it was left.

    Parameters
    ----------
    run
        Which; nobody else may be living it.
    callbacks
        Who is told how it gets on.
    stop
        Asked after every block; if it says yes, the run is set aside.
    block
        Steps written at once; by default as many as take a quarter of a second.
    checkpoint_seconds
        How long to live between checkpoints.

    Returns
    -------
    dict or None
        The summary of a finished run, ``None`` if it was stopped.

    Raises
    ------
    AssumptionError
        If the budget cannot be promised from the start.
    InvalidFileError
        If what was written does not come about again.
    StorageError
        If the disk is full or cannot be written to; the run can be resumed.
    """
    finished = run.summary
    if finished is not None:
        return finished
    with RunLock(run.directory):
        _tidy(run)
        lived = _Life(run, callbacks, block=block, every=checkpoint_seconds)
        try:
            return lived.to_the_end(stop)
        finally:
            lived.journal.close()


class _Life:
    """A run that is being lived."""

    def __init__(
        self,
        run: Run,
        callbacks: Sequence[Callback],
        *,
        block: int | None,
        every: float,
    ) -> None:
        self.run, self.spec = run, run.spec
        self._callbacks, self._block, self._every = callbacks, block, every
        self.env = run.world.make_env()
        self.lost = ""
        # an agent that cannot promise the budget is never born, and leaves no journal
        self.agent, self.step = self._take_up()
        self.journal = run.journal(write=True)
        try:
            self._check_run()
            if self.step > self.journal.n_steps:
                # the journal lost its last steps, with the power: live them again
                self.lost = f"the journal ends before step {self.step}"
                self.env = run.world.make_env()
                self.agent, self.step = self._born()
            self._watch = Watcher(self.agent)
            self._catch_up()
            self.journal.note_opening(versions())
            if self.lost:
                self.journal.note_progress({"checkpoint_lost": self.lost})
        except BaseException:
            self.journal.close()
            raise

    # -- taking up ---------------------------------------------------------------------

    def _take_up(self) -> tuple[E4, int]:
        try:
            found = load_checkpoint(self.run.directory)
        except InvalidFileError as error:
            self.lost = str(error)  # everything can be lived again without it
            found = None
        if found is None or found.world is None:
            return self._born()
        restore_world(self.env, found.world)
        return found.agent, found.step

    def _born(self) -> tuple[E4, int]:
        return E4(self.run.world.knowledge, self.spec.make_settings()), 0

    def _check_run(self) -> None:
        expected, found = self.spec.digest, self.journal.about.get("spec")
        if found != expected:
            raise InvalidFileError(
                f"journal: expected one of the run that spec.toml describes, with "
                f"digest {expected[:10]}, found {str(found)[:10]}"
            )

    def _catch_up(self) -> None:
        """Live again what the journal holds beyond the checkpoint, and compare."""
        while self.step < self.journal.n_steps:
            until = min(self.journal.n_steps, self.step + _LONGEST_BLOCK)
            recorded = self.journal.read(self.step, until)
            trace = self._simulate(until - self.step)
            at = _first_difference(trace, recorded)
            if at is not None:
                raise InvalidFileError(
                    f"journal: expected step {self.step + at} as it comes about again, "
                    f"found another; it was altered, or written by other versions than "
                    f"those installed"
                )
            self._watch.take()  # they stand in the journal already
            self.step = until

    # -- living ------------------------------------------------------------------------

    def to_the_end(self, stop: Callable[[], bool]) -> dict[str, Any] | None:
        """Live on until the end, or until somebody says stop."""
        size = self._block or _FIRST_BLOCK
        saved = time.monotonic()
        # a run that was killed at its very end has nothing left to live
        stopped = "certified" if self._is_certified() else _NOT_DONE
        while self.step < self.spec.steps and stopped != "certified":
            begun = time.monotonic()
            trace = self._live_block(min(size, self.spec.steps - self.step))
            stopped = trace.stopped
            if stop():
                self._save()
                return None
            now = time.monotonic()
            if now - saved >= self._every:
                self._save()
                saved = now
            if self._block is None:
                pace = len(trace) / max(time.monotonic() - begun, 1e-6)
                size = int(np.clip(pace * _BLOCK_SECONDS, 1, _LONGEST_BLOCK))
        self._save()
        return self._finish(stopped)

    def _is_certified(self) -> bool:
        return self.spec.until == "certified" and self.agent.certified

    def _live_block(self, steps: int) -> Trace:
        first = self.step
        if self.spec.durable:
            trace = self._live_durably(steps)
        else:
            trace = self._simulate(steps)
            events = self._watch.take()
            self.journal.append(trace, events)
            self._tell_replans(events)
        self.step = first + len(trace)
        moment = Moment(first=first, steps=self.step, trace=trace, agent=self.agent)
        for callback in self._callbacks:
            callback.on_step(moment)
        return trace

    def _simulate(self, steps: int) -> Trace:
        begun = self.step
        return live_through(
            self.agent,
            self.env,
            steps,
            until=self.spec.until,
            on_plan=lambda done: self._watch.planned(begun + done),
        )

    def _live_durably(self, steps: int) -> Trace:
        """Live step by step; each is on disk before the next."""
        agent, journal, terms = self.agent, self.journal, self.agent.knowledge
        first, stopped = self.step, _NOT_DONE
        state = begin(agent, self.env)
        for t in range(first, first + steps):
            plans = agent.plans
            decision = agent.ask(state)
            self._write_decision(decision)
            after, reward, _, _, info = self.env.step(decision.action)
            state, cost = int(after), info["cost"]
            agent.tell(decision, reward=reward, cost=cost, next_state=state)
            if agent.plans > plans:
                self._watch.planned(t + 1)
            events = self._watch.take()
            told = one_step(
                decision,
                reward=reward,
                cost=cost,
                next_state=state,
                discount=terms.discount,
                budget=terms.budget,
            )
            journal.complete(told, events)
            self._tell_replans(events)
            if self._is_certified():
                stopped = "certified"
                break
        return journal.read(first, stopped=stopped)

    def _write_decision(self, decision: Decision) -> None:
        """Write a decision, unless it is the one that a crash left pending."""
        row = pending_row(decision)
        if self.journal.pending is None:
            self.journal.decide(row)
        elif self.journal.pending != row:
            raise InvalidFileError(
                f"journal: expected step {row.step} as it comes about again, found "
                f"another; it was altered, or written by other versions than those "
                f"installed"
            )

    def _tell_replans(self, events: list[Event]) -> None:
        for event in events:
            if event.kind == "plan":
                for callback in self._callbacks:
                    callback.on_replan(event.step, event.content)

    # -- setting aside -----------------------------------------------------------------

    def _save(self) -> None:
        agent = self.agent
        self.journal.note_progress(
            {
                "known": int(agent.planned.plan.known.sum()),
                "gap": agent.gap,
                "plans": agent.plans,
            }
        )
        save_checkpoint(
            self.run.directory,
            agent,
            step=self.step,
            world=world_state(self.env),
        )

    def _finish(self, stopped: str) -> dict[str, Any]:
        """Write how the run ended, once everything else is on disk."""
        journal, place = self.journal, self.run.directory
        trace = replace(journal.read(), stopped=stopped)
        summary = {
            "run": self.spec.name,
            "world": self.spec.world,
            "seed": self.spec.seed,
            **summarise(self.run.agent(), trace),
        }
        journal.fold()
        journal.close()
        with storing(place):
            summary["files"] = {name: digest_of(place / name) for name in FILES}
            summary["versions"] = versions()
            text = seal_text(summary)
            write_atomically(place / SUMMARY, lambda file: file.write(text.encode()))
        for callback in self._callbacks:
            callback.on_end(summary)
        return summary


def _first_difference(trace: Trace, recorded: Trace) -> int | None:
    """Return the first step in which two traces differ by a bit."""
    mine, theirs = pack(trace, 0), pack(recorded, 0)
    if len(mine) != len(theirs):
        return min(len(mine), len(theirs))
    width = mine.dtype.itemsize
    differs = (
        mine.view(np.uint8).reshape(-1, width)
        != theirs.view(np.uint8).reshape(-1, width)
    ).any(axis=1)
    return int(np.argmax(differs)) if differs.any() else None


def _tidy(run: Run) -> None:
    tidy(run.directory)
    with storing(run.directory):
        for left in run.directory.glob(f".{SUMMARY}.*"):
            left.unlink()
