"""What a directory on the command line holds: a run, a comparison or a sweep."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from escapade.errors import refusal

if TYPE_CHECKING:
    from escapade.experiment import Comparison, Run, Sweep

__all__ = ["kept_in", "run_in"]


def kept_in(directory: Path) -> Run | Comparison | Sweep:
    """Return what was kept in a directory."""
    from escapade.experiment import Comparison, Sweep, find_run
    from escapade.experiment.comparison_files import COMPARISON

    if (directory / COMPARISON).exists():
        return Comparison.load(directory)
    if Sweep.exists(directory):
        return Sweep(directory)
    if not directory.is_dir():
        raise refusal(
            "DIR",
            "the directory of a run, a comparison or a sweep",
            f"{directory}, {_no_directory(directory)}",
        )
    return find_run(directory)


def run_in(directory: Path, *, simulated: bool = False) -> Run:
    """Return the run in a directory, or say what else is there, and what it is for.

    With ``simulated`` a life beside a plant is refused too, as only its plant knows
    how it goes on.
    """
    from escapade.experiment import PlantRun, Sweep, find_run
    from escapade.experiment.comparison_files import COMPARISON

    found = ""
    if not directory.is_dir():
        found = f"{directory}, {_no_directory(directory)}"
    elif (directory / COMPARISON).exists():
        found = (
            f"the comparison in {directory}, of which no journals are kept; show it "
            f"by: escapade report {directory}"
        )
    elif Sweep.exists(directory):
        found = f"the sweep in {directory}; its runs are in {directory / 'runs'}" + (
            f", and it goes on by: escapade sweep {directory / 'sweep.toml'} "
            f"--out {directory}"
        )
    else:
        run = find_run(directory)
        if not (simulated and isinstance(run, PlantRun)):
            return run
        found = (
            f"a life beside a plant; go on with it by escapade.open or: escapade "
            f"serve {directory} --stdio"
        )
    raise refusal("DIR", "the directory of a run", found)


def _no_directory(path: Path) -> str:
    return "which is a file" if path.exists() else "which does not exist"
