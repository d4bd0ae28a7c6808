"""What a directory on the command line holds: a run, a comparison or a sweep."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from escapade.errors import refusal

if TYPE_CHECKING:
    from escapade.experiment import Comparison, Run, Sweep

__all__ = ["kept_in"]


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
            "DIR", "the directory of a run, a comparison or a sweep", str(directory)
        )
    return find_run(directory)
