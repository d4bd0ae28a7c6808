"""Living a sweep: handing out its runs, keeping the table, and minding who dies.

A run that a dead worker had in hand is handed out again and goes on from its journal.
So does one that an earlier call left.  A run that fails with an error is recorded with
the reason, and the others go on; the next call tries it again.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from textwrap import shorten
from typing import Any, Literal, get_args

from escapade.errors import InvalidFileError, check_kind, refusal
from escapade.experiment.locking import RunLock
from escapade.experiment.schema import canonical, storing
from escapade.experiment.spec import RunSpec
from escapade.experiment.sweeps.engines import Ended, Engine
from escapade.experiment.sweeps.on_this_machine import OnThisMachine
from escapade.experiment.sweeps.spec import SweepSpec
from escapade.experiment.sweeps.store import LOG, STOP_FILE, Sweep
from escapade.experiment.sweeps.table import (
    Row,
    TableWriter,
    columns,
    results,
    row_of,
)
from escapade.experiment.sweeps.work import Outcome, steps_so_far
from escapade.model.arguments import read_count

__all__ = ["Standing", "sweep"]

EngineName = Literal["joblib", "ray"]

_LOOK_EVERY = 0.5
_GRACE = 60.0
_NEWS_WIDTH = 110
"""Seconds for which workers may set their runs aside before they are ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How far a sweep is.

    Attributes
    ----------
    runs, ended, failed, in_hand
        All runs, those that have ended, of these those with an error, and those that
        are being lived.
    steps, done
        Steps of all runs, and of those how many are done; a run that ended has none
        left.
    news
        What happened since the last time, in sentences.
    """

    runs: int
    ended: int
    failed: int
    in_hand: int
    steps: int
    done: int
    news: tuple[str, ...] = ()


def sweep(
    spec: SweepSpec,
    directory: str | PathLike[str],
    *,
    engine: EngineName = "joblib",
    workers: int | None = None,
    address: str | None = None,
    retries: int = 3,
    stop: Callable[[], bool] = lambda: False,
    watch: Callable[[Standing], object] | None = None,
) -> Sweep:
    """Live every run of a sweep that has not ended yet.

    Parameters
    ----------
    spec
        What the sweep is.
    directory
        Where it is kept.  Runs that are there already are not lived again.
    engine
        ``"joblib"`` for processes on this machine, ``"ray"`` for those of a cluster,
        by the extra ``ray``; then the directory has to be one that all machines see.
    workers
        How many runs are lived at once; as many as there are cores if not said.
    address
        Of a Ray cluster; one is started on this machine if not said.
    retries
        How often a run is taken up again after its worker died.
    stop
        Asked twice a second; if it says yes, runs are set aside, and the next call
        goes on with them.
    watch
        Told about as often how far the sweep is.

    Returns
    -------
    Sweep
        Its table has a row for every run that ended; ``finished`` says whether that is
        every one.

    Raises
    ------
    StorageError
        If the table cannot be written.
    """
    if isinstance(spec, str | Path):
        raise refusal("spec", "a SweepSpec, as load_sweep reads it", repr(str(spec)))
    check_kind("spec", spec, SweepSpec)
    if engine not in get_args(EngineName):
        raise refusal("engine", f"one of {list(get_args(EngineName))}", repr(engine))
    if workers is not None:
        workers = read_count("workers", workers, least=1)
    if address is not None and engine != "ray":
        raise refusal("address", "None unless engine='ray'", repr(address))
    retries = read_count("retries", retries)
    found = Sweep.take(directory, spec)
    with RunLock(found.directory, what="sweep"):
        conductor = _Conductor(found, retries=retries, watch=watch)
        if conductor.todo:
            hands = _engine(engine, found, workers=workers, address=address)
            with hands:
                conductor.to_the_end(hands, stop)
        conductor.close()
    return found


def _engine(
    name: str, found: Sweep, *, workers: int | None, address: str | None
) -> Engine:
    root, stop_file = (
        path.resolve() for path in (found.runs.root, found.directory / STOP_FILE)
    )
    if name == "joblib":
        return OnThisMachine(root, stop_file, workers=workers)
    from escapade.experiment.sweeps.on_ray import OnRay

    return OnRay(root, stop_file, workers=workers, address=address)


class _Conductor:
    """Hands out runs, and writes down what comes of them."""

    def __init__(
        self, found: Sweep, *, retries: int, watch: Callable[[Standing], object] | None
    ) -> None:
        self._sweep, self._retries, self._watch = found, retries, watch
        self._names = columns(found.spec)
        self._rows: dict[str, Row] = {}
        self._deaths: Counter[str] = Counter()
        self._news: list[str] = []
        self.todo: deque[RunSpec] = deque()
        for run in found.spec.runs:
            ended = self._ended_before(run)
            if ended is None:
                self.todo.append(run)
            else:
                self._rows[run.name] = row_of(run, self._names, ended)
        with storing(found.directory):
            self._stop_file.unlink(missing_ok=True)
            found.runs.root.mkdir(exist_ok=True)
        self._table = TableWriter(found.results_path, self._names)
        self._table.replace_all(self._rows.values())

    @property
    def _stop_file(self) -> Path:
        return self._sweep.directory / STOP_FILE

    def _ended_before(self, run: RunSpec) -> dict[str, Any] | None:
        """Return what a run came to that is finished already."""
        if run not in self._sweep.runs:
            return None
        try:
            summary = self._sweep.runs[run].summary
        except InvalidFileError:
            return None  # damaged: whoever takes the run up says how
        return None if summary is None else results(summary)

    # -- handing out -------------------------------------------------------------------

    def to_the_end(self, engine: Engine, stop: Callable[[], bool]) -> None:
        """Hand out all runs, until the last has ended or somebody says stop."""
        asked: float | None = None
        while engine.in_hand or (self.todo and asked is None):
            if asked is None and stop():
                asked = time.monotonic()
                with storing(self._stop_file):
                    self._stop_file.touch()
            if asked is not None and time.monotonic() - asked > _GRACE:
                break  # leaving the engine's context ends its workers
            while asked is None and self.todo and engine.room:
                run = self.todo.popleft()
                self._note("began", run)
                engine.hand_over(run)
            self._tell(engine)
            for ended in engine.wait(_LOOK_EVERY):
                self._take_in(ended)
        self._tell(engine)
        with storing(self._stop_file):
            self._stop_file.unlink(missing_ok=True)

    def close(self) -> None:
        """Write the table in the order of the specification."""
        order = [run.name for run in self._sweep.spec.runs]
        self._table.replace_all(self._rows[k] for k in order if k in self._rows)

    # -- taking in ---------------------------------------------------------------------

    def _take_in(self, ended: Ended) -> None:
        run, outcome = ended.run, ended.outcome
        if outcome is None:
            self._bury(run, ended.death)
        elif outcome.set_aside:
            self._note("set aside", run, where=outcome.where)
        else:
            self._record(run, outcome)

    def _bury(self, run: RunSpec, death: str) -> None:
        """Hand a run out again whose worker died, unless that was too often."""
        self._deaths[run.name] += 1
        count = self._deaths[run.name]
        self._note("died", run, death=death, times=count)
        if count <= self._retries:
            self._news.append(f"{run.name}: {death}; it goes on in another")
            self.todo.appendleft(run)
            return
        often = "once" if count == 1 else f"{count} times"
        self._add(run, {"error": f"its worker died {often}; at last: {death}"})

    def _record(self, run: RunSpec, outcome: Outcome) -> None:
        self._note(
            "failed" if outcome.error else "finished",
            run,
            seconds=round(outcome.seconds, 3),
            where=outcome.where,
            **({"details": outcome.details} if outcome.details else {}),
        )
        found = {"error": outcome.error} if outcome.error else outcome.results
        self._add(run, found)

    def _add(self, run: RunSpec, found: Any) -> None:
        row = row_of(run, self._names, found)
        self._rows[run.name] = row
        self._table.append([row])
        if row["error"]:
            # in full it stands in the table, and the command tells it at the end
            said = shorten(str(row["error"]), _NEWS_WIDTH, placeholder=" ...")
            self._news.append(f"{run.name} failed: {said}")

    def _note(self, what: str, run: RunSpec, **more: Any) -> None:
        line = canonical({"at": time.time(), "what": what, "run": run.name, **more})
        path = self._sweep.directory / LOG
        with storing(path), path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")

    # -- telling -----------------------------------------------------------------------

    def _tell(self, engine: Engine) -> None:
        if self._watch is None:
            return
        spec, runs = self._sweep.spec, self._sweep.runs
        begun = sum(steps_so_far(runs.path_of(run)) for run in engine.in_hand)
        self._watch(
            Standing(
                runs=len(spec.runs),
                ended=len(self._rows),
                failed=sum(1 for row in self._rows.values() if row["error"]),
                in_hand=len(engine.in_hand),
                steps=spec.steps * len(spec.runs),
                done=spec.steps * len(self._rows) + begun,
                news=tuple(self._news),
            )
        )
        self._news.clear()
