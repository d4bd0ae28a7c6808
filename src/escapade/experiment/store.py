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
from dataclasses import fields
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, Literal

from escapade.agent.e4 import E4
from escapade.agent.settings import E4Settings
from escapade.environments.world import World
from escapade.errors import InvalidFileError, refusal
from escapade.experiment.checkpoint import load_checkpoint, read_sealed
from escapade.experiment.journal import Event, Journal
from escapade.experiment.locking import LOCK, RunLock, is_held
from escapade.experiment.schema import create, storing
from escapade.experiment.spec import PlantSpec, RunSpec, load_spec
from escapade.knowledge.files import first_difference
from escapade.knowledge.knowledge import Knowledge
from escapade.model.archives import write_atomically
from escapade.simulation.trace import Trace

__all__ = ["PlantRun", "Run", "RunStore", "Status", "find_run"]

Status = Literal["new", "begun", "finished"]

SPEC, JOURNAL, SUMMARY = "spec.toml", "journal.sqlite", "summary.json"
KNOWLEDGE = "knowledge.npz"
FILES = (SPEC, JOURNAL, "checkpoint.npz", "checkpoint.json")
"""What a summary names the digests of."""

_LIVED = (*FILES[1:], SUMMARY)


def _left(name: str) -> bool:
    """Whether a file is what a death in the midst of making a run may leave."""
    return name in (LOCK, SPEC) or name.startswith(f".{SPEC}.")


def _may_begin(place: Path) -> bool:
    """Whether a directory holds nothing, or no more than a run that was not lived."""
    if any(not _left(entry.name) for entry in place.iterdir()):
        return False
    path = place / SPEC
    if not path.exists():
        return True
    RunLock(place).close()  # refused while somebody begins to live it
    # what somebody wrote by hand is not replaced
    return load_spec(path).to_toml() == path.read_text("utf-8")


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
        """Make the directory of a new run.

        It must be empty or not exist, or hold a run of which nothing was lived, such as
        one whose budget could not be promised; that one is replaced.
        """
        place = Path(directory)
        spec.make_world()  # refuses parameters that it cannot be made with
        with storing(place):
            place.mkdir(parents=True, exist_ok=True)
            if not _may_begin(place):
                raise refusal("run", "a directory that is empty or new", str(place))
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

    @property
    def digest(self) -> str:
        """SHA-256 of what the run is."""
        return self.spec.digest

    def spec_text(self) -> str:
        """Return what has to stand in ``spec.toml``."""
        return self.spec.to_toml()

    def born(self) -> E4:
        """Return the agent as it was born."""
        return E4(self.world.knowledge, self.spec.make_settings())

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
        if not write and self._untouched():
            raise refusal("run", "one that has begun", self._nothing_lived())
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

    def _untouched(self) -> bool:
        """Whether there is nothing yet but what the run is; it may have been killed."""
        return not any((self.directory / name).exists() for name in _LIVED)

    def withdraw(self) -> None:
        """Remove a run of which nothing was lived; one that has begun is left alone."""
        entries = list(self.directory.iterdir())
        if all(_left(entry.name) for entry in entries) and not is_held(self.directory):
            with storing(self.directory):
                for entry in entries:
                    entry.unlink()
                self.directory.rmdir()

    def _nothing_lived(self) -> str:
        return (
            f"one of which nothing was lived yet; go on with: escapade resume "
            f"{self.directory}"
        )

    @property
    def journal_path(self) -> Path:
        """Of the database."""
        return self.directory / JOURNAL

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
        """Return the steps ``first`` to ``until``, all that were lived by default.

        Costs that were brought later stand at the steps that they are of.
        """
        summary = self.summary
        stopped = "not finished" if summary is None else str(summary["stopped"])
        journal = self.journal()
        try:
            return journal.read(first, until, stopped=stopped, late=True)
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


class PlantRun(Run):
    """What an agent beside a plant has written, to be read; see :func:`escapade.open`.

    There is no world in it, and no end.
    """

    def __repr__(self) -> str:
        return f"PlantRun({str(self.directory)!r})"

    @staticmethod
    def exists(directory: Path) -> bool:
        """Whether a life was begun there."""
        return (directory / SPEC).is_file()

    @classmethod
    def begin(
        cls, directory: Path, knowledge: Knowledge, settings: E4Settings
    ) -> PlantRun:
        """Make the directory of a life that begins."""
        spec = PlantSpec.of(knowledge, settings)
        with storing(directory):
            directory.mkdir(parents=True, exist_ok=True)
            if any(directory.iterdir()):
                raise refusal("path", "a directory that is empty or new", directory)
            knowledge.save(directory / KNOWLEDGE)
            text = spec.to_toml().encode()
            write_atomically(directory / SPEC, lambda file: file.write(text))
        return cls(directory)

    @cached_property
    def plant_spec(self) -> PlantSpec:
        """What the agent was told, by digest, and its settings."""
        return PlantSpec.from_toml(
            (self.directory / SPEC).read_text("utf-8"), source=SPEC
        )

    @cached_property
    def knowledge(self) -> Knowledge:
        """What the agent was told at birth."""
        found = Knowledge.load(self.directory / KNOWLEDGE)
        if found.fingerprint != self.plant_spec.knowledge:
            raise InvalidFileError(
                f"{KNOWLEDGE}: expected the knowledge with which the life began, found "
                f"other"
            )
        return found

    def check(self, knowledge: Knowledge | None, settings: E4Settings | None) -> None:
        """Refuse knowledge or settings other than those that the life began with."""
        spec = self.plant_spec
        began = f"what the life in {self.directory} began with"
        if knowledge is not None and knowledge.fingerprint != spec.knowledge:
            differs = first_difference(knowledge, self.knowledge)
            raise refusal("knowledge", began, differs or "other")
        if settings is None:
            return
        for field in fields(E4Settings):
            found = getattr(settings, field.name)
            told = getattr(spec.make_settings(), field.name)
            if found != told:
                differs = f"{field.name} {found!r} instead of {told!r}"
                raise refusal("settings", began, differs)

    def _nothing_lived(self) -> str:
        return f"{self.directory}, where nothing was asked yet"

    @property
    def digest(self) -> str:
        """SHA-256 of what the life began with."""
        return self.plant_spec.digest

    def spec_text(self) -> str:
        """Return what has to stand in ``spec.toml``."""
        return self.plant_spec.to_toml()

    def born(self) -> E4:
        """Return the agent as it was born."""
        return E4(self.knowledge, self.plant_spec.make_settings())

    @property
    def status(self) -> Status:
        """``new`` before the journal is begun, ``begun`` ever after."""
        return "begun" if self.journal_path.exists() else "new"

    @property
    def summary(self) -> dict[str, Any] | None:
        """``None``: a life beside a plant does not end by itself."""
        return None


def find_run(directory: str | PathLike[str]) -> Run:
    """Return the run in a directory, simulated or beside a plant."""
    if (Path(directory) / KNOWLEDGE).exists():
        return PlantRun(directory)
    return Run(directory)


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
