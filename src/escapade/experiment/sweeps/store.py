"""Sweep directories: where a sweep is kept, and how it is read.

::

    sweeps/<name>/
        sweep.toml         what the sweep is
        results.csv        one row a run, appended as runs end
        log.jsonl          who lived what, how long it took, and what went wrong
        runs/              one directory a run, as ``escapade run`` makes them
        report.html        the page that shows it, written by the command

Reading never disturbs a sweep that goes on.
"""

from __future__ import annotations

import json
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

from escapade.errors import refusal
from escapade.experiment.schema import storing
from escapade.experiment.store import JOURNAL, RunStore
from escapade.experiment.sweeps.spec import SweepSpec, load_sweep
from escapade.experiment.sweeps.table import Row, read_table
from escapade.model.archives import write_atomically

__all__ = ["LOG", "RESULTS_FILE", "SPEC_FILE", "STOP_FILE", "Sweep"]

SPEC_FILE, RESULTS_FILE, LOG = "sweep.toml", "results.csv", "log.jsonl"
STOP_FILE = ".stop"
"""As long as it is there, workers set their runs aside."""


class Sweep:
    """A sweep in a directory, to be read.

    Parameters
    ----------
    directory
        Of the sweep.

    Attributes
    ----------
    directory
        As given.
    """

    def __init__(self, directory: str | PathLike[str]) -> None:
        self.directory = Path(directory)
        if not self.exists(self.directory):
            raise refusal("sweep", f"a directory with a {SPEC_FILE}", str(directory))

    def __repr__(self) -> str:
        return f"Sweep({str(self.directory)!r})"

    @staticmethod
    def exists(directory: str | PathLike[str]) -> bool:
        """Whether there is a sweep in a directory."""
        return (Path(directory) / SPEC_FILE).is_file()

    @classmethod
    def take(cls, directory: str | PathLike[str], spec: SweepSpec) -> Sweep:
        """Return the sweep in a directory, made or changed to be this one.

        Runs that are there already stay, and a sweep may grow: more combinations, and
        other seeds.  One that would lose combinations which were lived is refused.
        """
        place = Path(directory)
        with storing(place):
            if place.is_dir() and any(place.iterdir()) and not cls.exists(place):
                raise refusal("sweep", "a directory that is empty or new", str(place))
            if cls.exists(place):
                cls(place)._refuse_to_lose(spec)
            place.mkdir(parents=True, exist_ok=True)
            text = spec.to_toml().encode()
            write_atomically(place / SPEC_FILE, lambda file: file.write(text))
        return cls(place)

    def _refuse_to_lose(self, spec: SweepSpec) -> None:
        """Refuse a specification without combinations that were lived here."""
        asked = {run.digest for run in spec.runs}
        missing = [run for run in self.spec.runs if run.digest not in asked]
        if not missing:
            return
        rows = self.rows() if self.results_path.exists() else []
        lived = {row["run"] for row in rows if not row["error"]}
        for run in missing:
            if run.name in lived or (self.runs.path_of(run) / JOURNAL).exists():
                raise refusal(
                    "sweep",
                    f"a specification that has all combinations of the sweep in "
                    f"{self.directory}, or another directory (--out)",
                    f"one without its {run.world} for {run.steps:,} steps, as in "
                    f"{run.name}",
                )

    @cached_property
    def spec(self) -> SweepSpec:
        """The specification."""
        return load_sweep(self.directory / SPEC_FILE)

    @property
    def runs(self) -> RunStore:
        """Where the runs are kept."""
        return RunStore(self.directory / "runs")

    @property
    def results_path(self) -> Path:
        """Of the table."""
        return self.directory / RESULTS_FILE

    # -- what came of it ---------------------------------------------------------------

    def rows(self) -> list[Row]:
        """Return what ended so far, a dict a run, in the order of the specification."""
        found = {row["run"]: row for row in read_table(self.results_path)}
        return [found[run.name] for run in self.spec.runs if run.name in found]

    @property
    def finished(self) -> bool:
        """Whether every run has ended, in one way or the other."""
        return len(self.rows()) == len(self.spec.runs)

    def failures(self) -> dict[str, str]:
        """Return the runs that ended with an error, and which."""
        return {row["run"]: row["error"] for row in self.rows() if row["error"]}

    def log(self) -> list[dict[str, Any]]:
        """Return what happened, in order."""
        path = self.directory / LOG
        if not path.exists():
            return []
        whole, _, _ = path.read_text("utf-8").rpartition("\n")
        return [json.loads(line) for line in whole.splitlines()]
