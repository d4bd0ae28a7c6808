"""What a worker does: live one run in its directory, and say what came of it.

A worker is a process with one thread, on this machine or on another that sees the same
files.  It is told by a file to set its run aside, and it may die at any moment: the run
goes on in another.
"""

from __future__ import annotations

import os
import platform
import signal
import threading
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from escapade.errors import EscapadeError, InvalidFileError, refusal
from escapade.experiment.callbacks import Moment, Silent
from escapade.experiment.locking import is_held
from escapade.experiment.running import live
from escapade.experiment.schema import storing
from escapade.experiment.spec import RunSpec
from escapade.experiment.store import RunStore
from escapade.experiment.sweeps.table import results
from escapade.experiment.versions import versions

__all__ = ["ONE_THREAD", "Outcome", "attend", "greet", "steps_so_far", "work"]

ONE_THREAD: Mapping[str, str] = dict.fromkeys(
    [
        "NUMBA_NUM_THREADS",
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "MKL_NUM_THREADS",
        "BLIS_NUM_THREADS",
        "VECLIB_MAXIMUM_THREADS",
    ],
    "1",
)
"""What keeps a process to one thread; it has to be there when the process starts."""

_BEAT, _BEAT_EVERY = ".beat", 1.0
_PATIENCE = 60.0
"""Seconds for which a run may still be held by a worker that was given up."""

_LOOK_EVERY = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of a run in a worker.

    Attributes
    ----------
    results
        What its row will hold; empty if it did not end.
    error, details
        Why it failed, in a line; and where in the code, if that was not foreseen.
    seconds, where
        How long it took, and the machine and process.
    """

    results: Mapping[str, Any] = field(default_factory=dict)
    error: str = ""
    details: str = ""
    seconds: float
    where: str

    @property
    def set_aside(self) -> bool:
        """Whether it was asked to stop."""
        return not (self.results or self.error)


def work(root: str, specification: str, stop_file: str) -> Outcome:
    """Live a run to its end, or until the file appears that says stop.

    Parameters
    ----------
    root
        The folder of the runs.
    specification
        Of the run, in TOML.
    stop_file
        Its path.
    """
    begun = time.monotonic()
    stop = Path(stop_file)
    found: Mapping[str, Any] = {}
    error = details = ""
    try:
        if not Path(root).is_dir():
            where = f"none at {root} on {platform.node()}"
            raise refusal("directory", "one that every machine sees", where)
        spec = RunSpec.from_toml(specification)
        place = RunStore(root).path_of(spec)
        _wait_for(place)
        run = RunStore(root).take(spec)
        if (run.spec.digest, run.spec.seed) != (spec.digest, spec.seed):
            raise InvalidFileError(f"run: expected {spec.name} in {place}, found other")
        beat = _Beat(place)
        summary = live(run, callbacks=[beat], stop=stop.exists)
        if summary is not None:
            found = results(summary)
            beat.end()
    except EscapadeError as foreseen:
        error = str(foreseen)
    except Exception as unforeseen:  # noqa: BLE001  it goes into the table and the log
        error = f"{type(unforeseen).__name__}: {unforeseen}"
        details = traceback.format_exc()
    return Outcome(
        results=found,
        error=" ".join(error.split()),
        details=details,
        seconds=time.monotonic() - begun,
        where=f"{platform.node()}:{os.getpid()}",
    )


def _wait_for(place: Path) -> None:
    """Wait for a worker that was given up, and may not know yet, to let go of a run."""
    until = time.monotonic() + _PATIENCE
    while is_held(place) and time.monotonic() < until:
        time.sleep(0.2)


class _Beat(Silent):
    """Leaves word in a small file how far a run is, once a second."""

    def __init__(self, place: Path) -> None:
        self._file = place / _BEAT
        self._last = 0.0

    def on_step(self, moment: Moment) -> None:
        """Leave word, unless that was done just now."""
        now = time.monotonic()
        if now - self._last >= _BEAT_EVERY:
            self._last = now
            with storing(self._file):
                self._file.write_text(f"{moment.steps}\n", "ascii")

    def end(self) -> None:
        """Take the file away."""
        with storing(self._file):
            self._file.unlink(missing_ok=True)


def steps_so_far(place: Path) -> int:
    """Return how far the run in a directory is, as its worker last said."""
    try:
        said = (place / _BEAT).read_text("ascii")
    except OSError:
        return 0  # it has not said anything yet
    return int(said) if said.endswith("\n") else 0  # it is just saying it


# -- before the first run --------------------------------------------------------------


def attend() -> None:
    """Make this process a worker: deaf to Ctrl-C, and gone when its parent is."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = os.getppid()

    def look() -> None:
        while os.getppid() == parent:
            time.sleep(_LOOK_EVERY)
        os._exit(1)  # a run in hand is resumed by whoever takes the sweep up again

    threading.Thread(target=look, daemon=True).start()


def greet(probe: str = "") -> dict[str, Any]:
    """Compile what runs need, or load it, and say what is to be seen from here.

    Parameters
    ----------
    probe
        A file, of which the text is told if it is there.
    """
    from escapade.agent.e4 import E4
    from escapade.agent.settings import E4Settings
    from escapade.environments.cycles import wall_cycle
    from escapade.simulation.simulate import live_through

    world = wall_cycle(size=3)
    agent = E4(world.knowledge, E4Settings(known_after=2))
    live_through(agent, world.make_env(), 300)
    agent.certificate()
    seen = Path(probe).read_text("ascii") if probe and Path(probe).exists() else None
    return {"seen": seen, "node": platform.node(), "versions": versions()}
