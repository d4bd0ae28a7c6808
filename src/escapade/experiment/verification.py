"""Is a run what it says it is?  Everything is derived again from what stands in it.

The agent is born again of the same knowledge, and told what the journal says that came
of each decision; it must decide and promise the same, bit for bit, at every step.  On
the way the ledger's inequalities are checked by other code
(:mod:`escapade.experiment.inequalities`); at the end the certificate and the summary
are derived anew.  Of a finished run every file is compared with its digest as well, so
a flipped bit is found wherever it is.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from escapade.agent.e4 import E4
from escapade.errors import AssumptionError, EscapadeError, InvalidFileError
from escapade.experiment.checkpoint import Checkpoint, load_checkpoint
from escapade.experiment.events import DERIVED, Watcher
from escapade.experiment.inequalities import broken_inequality
from escapade.experiment.journal import Event, Journal
from escapade.experiment.retelling import Retelling
from escapade.experiment.schema import canonical
from escapade.experiment.store import SPEC, PlantRun, Run
from escapade.experiment.summary import digest_of, summarise
from escapade.experiment.versions import versions
from escapade.simulation.replay import replay

__all__ = ["Check", "Verification", "verify"]

_AT_ONCE = 200_000
"""Steps that are held in memory and lived again at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that was checked.

    Attributes
    ----------
    name
        What should hold.
    holds
        Whether it does.
    found
        What was found, in words.
    """

    name: str
    holds: bool
    found: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """What became of every check.

    Attributes
    ----------
    checks
        In the order in which they were made; after one that fails, those that rest on
        it are not made.
    steps
        Steps that were lived again.
    """

    checks: tuple[Check, ...]
    steps: int

    @property
    def holds(self) -> bool:
        """Whether all checks held."""
        return all(check.holds for check in self.checks)


class _Failed(Exception):  # noqa: N818  not an error: the answer is no
    """A check failed on which all others rest."""


class _Checks:
    """Checks as they are made."""

    def __init__(self) -> None:
        self.made: list[Check] = []

    def note(self, name: str, wrong: str | None, right: str) -> None:
        """Note a check; ``wrong`` is what is wrong, if anything is."""
        found = right if wrong is None else wrong
        self.made.append(Check(name=name, holds=wrong is None, found=found))
        if wrong is not None:
            raise _Failed


def verify(
    run: Run, *, on_progress: Callable[[int, int], None] | None = None
) -> Verification:
    """Derive a run again from its journal.

    Parameters
    ----------
    run
        Finished or not; nothing in it is changed.
    on_progress
        Called with the steps that were lived again, and how many there are.
    """
    checks = _Checks()
    steps = 0
    try:
        _check_files(run, checks)
        journal = _open(run, checks)
        try:
            steps = _check_journal(run, journal, checks, on_progress)
        finally:
            journal.close()
    except _Failed:
        pass
    return Verification(checks=tuple(checks.made), steps=steps)


def _check_files(run: Run, checks: _Checks) -> None:
    wrong = None
    try:
        if (run.directory / SPEC).read_bytes() != run.spec_text().encode():
            wrong = "it is not as it was written"
    except EscapadeError as error:
        wrong = str(error)
    checks.note("specification", wrong, "as it was written")
    try:
        summary = run.summary
    except InvalidFileError as error:
        checks.note("files", str(error), "")
        return
    if summary is None:
        return
    for name, digest in summary["files"].items():
        path = run.directory / name
        if not path.is_file() or digest_of(path) != digest:
            checks.note("files", f"{name} is not as it was when the run ended", "")
    checks.note("files", None, f"{len(summary['files'])} files are as they were")


def _open(run: Run, checks: _Checks) -> Journal:
    try:
        journal = run.journal()
    except InvalidFileError as error:
        checks.note("journal", str(error), "")
        raise _Failed from error
    wrong = journal.damage()
    if not wrong and journal.about.get("spec") != run.digest:
        wrong = ["it is the journal of another run"]
    try:
        checks.note(
            "journal",
            wrong[0] if wrong else None,
            f"{journal.n_steps:,} steps, as they were sealed",
        )
    except _Failed:
        journal.close()
        raise
    return journal


def _check_journal(
    run: Run,
    journal: Journal,
    checks: _Checks,
    on_progress: Callable[[int, int], None] | None,
) -> int:
    try:
        checkpoint = load_checkpoint(run.directory)
    except InvalidFileError as error:
        checks.note("checkpoint", str(error), "")
        return 0
    try:
        agent = run.born()
    except (AssumptionError, InvalidFileError) as error:
        checks.note("decisions", str(error), "")
        return 0
    if isinstance(run, PlantRun):
        return _check_plant(agent, journal, checks, checkpoint)
    told = _Again(agent, journal, checkpoint)
    told.to_the_end(on_progress)
    elsewhere = _other_versions(journal)
    checks.note(
        "decisions",
        told.divergence and f"{told.divergence}{elsewhere}",
        f"{journal.n_steps:,} decisions and promises come about again, bit for bit",
    )
    checks.note(
        "ledger", told.broken, "every step keeps the inequalities of the ledger"
    )
    checks.note(
        "events", _other_events(told.events, journal), f"{len(told.events)} as recorded"
    )
    if checkpoint is not None:
        wrong = told.checkpoint_differs
        if checkpoint.step > journal.n_steps:
            wrong = f"it is of step {checkpoint.step}, which the journal does not have"
        checks.note("checkpoint", wrong, f"the agent after step {checkpoint.step}")
    summary = run.summary
    if summary is not None:
        _check_summary(agent, journal, summary, checks)
    return told.steps


def _check_plant(
    agent: E4, journal: Journal, checks: _Checks, checkpoint: Checkpoint | None
) -> int:
    """Tell an agent again what was told beside a plant."""
    told = Retelling(agent, journal, first=0)
    told.to_the_end()
    wrong = told.wrong and f"{told.wrong}{_other_versions(journal)}"
    checks.note(
        "decisions",
        wrong,
        f"{told.steps:,} decisions and promises come about again, bit for bit",
    )
    if checkpoint is not None and checkpoint.step == journal.n_steps:
        wrong = None
        if journal.pending is None and checkpoint.world is not None:
            same = checkpoint.world.get("events") == journal.n_events
            wrong = _difference(agent, checkpoint.agent) if same else None
        checks.note("checkpoint", wrong, f"the agent after step {checkpoint.step}")
    return told.steps


def _check_summary(
    agent: E4, journal: Journal, summary: dict[str, Any], checks: _Checks
) -> None:
    trace = replace(journal.read(), stopped=str(summary["stopped"]))
    derived = json.loads(canonical(summarise(agent, trace)))
    for name in ("certificate", "verdict"):
        wrong = None
        if derived[name] != summary.get(name):
            wrong = f"expected {derived[name]}, found {summary.get(name)}"
        checks.note(name, wrong, str(derived[name] if name == "verdict" else "again"))
    other = [k for k, value in derived.items() if summary.get(k) != value]
    wrong = f"expected {derived[other[0]]} for {other[0]}" if other else None
    checks.note("summary", wrong, "derived again")


class _Again:
    """A journal, told to an agent that was just born."""

    def __init__(
        self, agent: E4, journal: Journal, checkpoint: Checkpoint | None
    ) -> None:
        self._agent, self._journal, self._checkpoint = agent, journal, checkpoint
        self._watch = Watcher(agent)
        self.steps = 0
        self.divergence: str | None = None
        self.broken: str | None = None
        self.checkpoint_differs: str | None = None
        self.events: list[Event] = []

    def to_the_end(self, on_progress: Callable[[int, int], None] | None) -> None:
        """Tell the agent everything, or as much as it agrees with."""
        until = self._journal.n_steps
        kept = self._checkpoint
        while self.steps < until and self.divergence is None:
            stop = min(self.steps + _AT_ONCE, until)
            if kept is not None and self.steps < kept.step < stop:
                stop = kept.step
            self._tell(stop)
            if kept is not None and self.steps == kept.step:
                self.checkpoint_differs = _difference(self._agent, kept.agent)
            if on_progress is not None:
                on_progress(self.steps, until)
        self.events = self._watch.take()

    def _tell(self, until: int) -> None:
        first = self.steps
        trace = self._journal.read(first, until)

        def look(begin: int, end: int, settled: bool) -> None:
            if self.broken is None:
                self.broken = broken_inequality(
                    self._agent, trace, begin, end, settled=settled, number=first
                )

        found = replay(
            self._agent,
            trace,
            on_stretch=look,
            on_plan=lambda done: self._watch.planned(first + done),
        )
        if found is None:
            self.steps = until
        else:
            self.steps = first + found.step
            self.divergence = f"step {self.steps}: {found.message}"


def _difference(agent: E4, kept: E4) -> str | None:
    """Return in which of its parts one agent differs from another."""
    for part, mine, theirs in (
        ("belief", agent.belief.state(), kept.belief.state()),
        ("fallback", agent.safety.state(), kept.safety.state()),
        ("plan", agent.planned.plan._asdict(), kept.planned.plan._asdict()),
        ("promise", {"promise": agent.promise}, {"promise": kept.promise}),
    ):
        for name, array in mine.items():
            if not np.array_equal(array, theirs[name], equal_nan=True):
                return f"its {part} ({name}) is not what the steps lead to"
    if agent.rng.bit_generator.state != kept.rng.bit_generator.state:
        return "its generator is not where the steps lead to"
    return None


def _other_events(derived: list[Event], journal: Journal) -> str | None:
    recorded = journal.events(*DERIVED)
    for number, event in enumerate(recorded):
        if number >= len(derived) or derived[number] != event:
            return f"{event.kind} after step {event.step} does not come about again"
    if len(derived) > len(recorded):
        missing = derived[len(recorded)]
        return f"{missing.kind} after step {missing.step} is not recorded"
    return None


def _other_versions(journal: Journal) -> str:
    """Return, if something else is installed than wrote the journal, what it is."""
    now = versions()
    for opening in journal.openings():
        for name, version in opening["versions"].items():
            if now.get(name) != version:
                return f" (written with {name} {version}, read with {now.get(name)})"
    return ""
