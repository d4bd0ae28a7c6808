"""Run directories: where runs are kept, and how they are read.

::

    runs/<world>-<hash>-<seed>/
        spec.toml          what the run is
        journal.sqlite     every decision, and what came of it
        checkpoint.npz     the agent, set aside now and then
        checkpoint.json    after which step that was, and where the world stood
        summary.json       how it ended, once it has

Reading never disturbs a run that is being written.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, Literal

from escapade.agent.e4 import E4
from escapade.environments.world import World
from escapade.errors import InvalidFileError, refusal
from escapade.experiment.checkpoint import load_checkpoint, read_sealed
from escapade.experiment.journal import Event, Journal
from escapade.experiment.schema import create, storing
from escapade.experiment.spec import RunSpec, load_spec
from escapade.model.archives import write_atomically
from escapade.simulation.trace import Trace

__all__ = ["Run", "RunStore", "Status"]

Status = Literal["new", "begun", "finished"]

SPEC, JOURNAL, SUMMARY = "spec.toml", "journal.sqlite", "summary.json"
FILES = (SPEC, JOURNAL, "checkpoint.npz", "checkpoint.json")
"""What a summary names the digests of."""


class Run:
    """A run in a directory, to be read.

    Parameters
    ----------
    directory
        Of the run.

    Attributes
    ----------
    directory
        As given.
    """

    def __init__(self, directory: str | PathLike[str]) -> None:
        self.directory = Path(directory)
        if not (self.directory / SPEC).is_file():
            raise refusal("run", f"a directory with a {SPEC}", str(directory))

    @classmethod
    def create(cls, directory: str | PathLike[str], spec: RunSpec) -> Run:
        """Make the directory of a new run; it must be empty or not exist."""
        place = Path(directory)
        with storing(place):
            place.mkdir(parents=True, exist_ok=True)
            if any(place.iterdir()):
                raise refusal("run", "a directory that is empty or new", str(place))
            spec.make_world()  # refuses parameters that it cannot be made with
            text = spec.to_toml().encode()
            write_atomically(place / SPEC, lambda file: file.write(text))
        return cls(place)

    def __repr__(self) -> str:
        return f"Run({str(self.directory)!r})"

    # -- what it is --------------------------------------------------------------------

    @cached_property
    def spec(self) -> RunSpec:
        """The specification."""
        return load_spec(self.directory / SPEC)

    @cached_property
    def world(self) -> World:
        """The world, with its truth."""
        return self.spec.make_world()

    @property
    def status(self) -> Status:
        """``new`` before the first step, ``begun``, or ``finished``."""
        if (self.directory / SUMMARY).exists():
            return "finished"
        return "begun" if (self.directory / JOURNAL).exists() else "new"

    # -- what happened -----------------------------------------------------------------

    def journal(self, *, write: bool = False) -> Journal:
        """Open the journal; a writer makes it if there is none, and holds the lock."""
        path = self.directory / JOURNAL
        if write and not path.exists():
            cmdp = self.world.cmdp
            create(
                path,
                about={
                    "kind": "simulated",
                    "run": self.spec.name,
                    "spec": self.spec.digest,
                    "n_costs": cmdp.n_costs,
                    "discount": cmdp.discount,
                    "budget": cmdp.budget.tolist(),
                },
            )
        return Journal(path, write=write, durable=write and self.spec.durable)

    @property
    def n_steps(self) -> int:
        """Steps that stand in the journal."""
        if self.status == "new":
            return 0
        journal = self.journal()
        try:
            return journal.n_steps
        finally:
            journal.close()

    def trace(self, first: int = 0, until: int | None = None) -> Trace:
        """Return the steps ``first`` to ``until``, all that were lived by default."""
        summary = self.summary
        stopped = "not finished" if summary is None else str(summary["stopped"])
        journal = self.journal()
        try:
            return journal.read(first, until, stopped=stopped)
        finally:
            journal.close()

    def events(self, *kinds: str) -> list[Event]:
        """Return plans, breaks and what was told, in order; of some kinds or of all."""
        journal = self.journal()
        try:
            return journal.events(*kinds)
        finally:
            journal.close()

    def progress(self) -> list[dict[str, Any]]:
        """Return how the run got on, by the clock."""
        journal = self.journal()
        try:
            return journal.progress()
        finally:
            journal.close()

    def openings(self) -> list[dict[str, Any]]:
        """Return when the run was begun or taken up, and by which versions."""
        journal = self.journal()
        try:
            return journal.openings()
        finally:
            journal.close()

    @property
    def summary(self) -> dict[str, Any] | None:
        """How the run ended; ``None`` as long as it has not."""
        path = self.directory / SUMMARY
        return read_sealed(path) if path.exists() else None

    def agent(self) -> E4:
        """Return the agent as it was last set aside, at the end of a finished run."""
        found = load_checkpoint(self.directory)
        if found is None:
            raise InvalidFileError(
                f"run: expected a checkpoint in {self.directory}, found none yet"
            )
        return found.agent


class RunStore:
    """A folder of runs.

    Parameters
    ----------
    root
        The folder; it need not exist.

    Examples
    --------
    >>> RunStore("runs").path_of(RunSpec(world="wall-cycle", steps=10)).as_posix()
    'runs/wall-cycle-...-0'
    """

    def __init__(self, root: str | PathLike[str] = "runs") -> None:
        self.root = Path(root)

    def path_of(self, spec: RunSpec) -> Path:
        """Return where a run has its place, whether it was begun or not."""
        return self.root / spec.name

    def __contains__(self, spec: object) -> bool:
        return isinstance(spec, RunSpec) and (self.path_of(spec) / SPEC).is_file()

    def __getitem__(self, name: str | RunSpec) -> Run:
        if isinstance(name, RunSpec):
            name = name.name
        return Run(self.root / name)

    def __iter__(self) -> Iterator[Run]:
        if self.root.is_dir():
            for place in sorted(self.root.iterdir()):
                if (place / SPEC).is_file():
                    yield Run(place)

    def create(self, spec: RunSpec) -> Run:
        """Make the directory of a new run."""
        return Run.create(self.path_of(spec), spec)

    def take(self, spec: RunSpec) -> Run:
        """Return the run with this specification, made if there is none."""
        return self[spec] if spec in self else self.create(spec)
