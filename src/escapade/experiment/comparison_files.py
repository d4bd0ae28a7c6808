"""Comparisons on disk: all of one as sealed JSON, and its tables for other tools.

``comparison.json`` holds what :meth:`Comparison.describe` returns, with ``null`` where
there is no number, and the digest of all that it says; a file that was altered is
refused.  Its tables are ``agents``, one row an agent, and ``curves``, one row a part of
an agent's lives and what it is about.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from escapade.errors import InvalidFileError
from escapade.experiment.checkpoint import read_sealed, seal_text
from escapade.experiment.comparison import Comparison, Contestant
from escapade.experiment.schema import storing
from escapade.model.archives import write_atomically
from escapade.typing import IntArray

__all__ = ["COMPARISON", "comparison_text", "load", "parts", "rows_of", "save"]

COMPARISON = "comparison.json"
"""The file by which a directory is known to hold a comparison."""

_FORMAT = 1
_NUMBERS = ("reward", "share", "over", "steps_over", "seconds")


def comparison_text(found: Comparison) -> str:
    """Return what stands in the file; the same comparison gives the same text."""
    return seal_text({"format": _FORMAT, **_plain(found.describe())})


def save(found: Comparison, directory: Path) -> Path:
    """Write a comparison into a directory, which is made if there is none."""
    place = directory / COMPARISON
    text = comparison_text(found).encode()
    with storing(place):
        directory.mkdir(parents=True, exist_ok=True)
        write_atomically(place, lambda file: file.write(text))
    return place


def load(directory: Path) -> Comparison:
    """Read a comparison; refuse what was altered, or written by a newer version."""
    told = read_sealed(directory / COMPARISON)
    if told.pop("format", None) != _FORMAT:
        raise InvalidFileError(
            f"{COMPARISON}: expected version {_FORMAT} of its format, found another; "
            f"another version of Escapade wrote it"
        )
    try:
        budget = np.array(told.pop("budget"), dtype=np.float64)
        if budget.ndim != 1:
            raise ValueError("no list of budgets")
        contestants = tuple(
            Contestant(**{k: _read(k, v, budget.size) for k, v in entry.items()})
            for entry in told.pop("contestants")
        )
        return Comparison(**told, budget=budget, contestants=contestants)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InvalidFileError(
            f"{COMPARISON}: expected what a comparison came to, found something else "
            f"({str(error).splitlines()[0]})"
        ) from None


def _read(key: str, value: Any, n_budgets: int) -> Any:
    """Return a field of a contestant as it was before it was written."""
    if key == "costs":
        return np.array(value, dtype=np.float64).reshape(-1, n_budgets)
    if key in ("rewards", "worst_cost"):
        return np.array(value, dtype=np.float64)
    if key in _NUMBERS:
        return np.nan if value is None else float(value)
    return value


def _plain(value: Any) -> Any:
    """Return a value as JSON holds it; what is no number is null."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    return value


def rows_of(found: Comparison, table: str) -> Iterator[tuple[Any, ...]]:
    """Yield the names of a table's columns, and then its rows.

    What is not known is ``None``.
    """
    ends = ["" if k == 0 else f"_{k}" for k in range(found.budget.size)]
    if table == "curves":
        yield ("agent", "what", "first_step", "last_step", "mean")
        for c in found.contestants:
            curves = [("reward", c.rewards, found.steps)]
            for channel, end in enumerate(ends):
                curves.append((f"cost{end}", c.costs[:, channel], found.judged))
            for what, means, steps in curves:
                first = parts(steps, means.size).tolist()
                after = [*first[1:], steps]
                for k, mean in enumerate(means.tolist()):
                    yield (c.name, what, first[k], after[k] - 1, _plain(mean))
        return
    single = ("reward", "share", "over", "steps_over", "steps_to_oracle", "seconds")
    yield ("agent", *single, *(f"worst_cost{end}" for end in ends), "note")
    for c in found.contestants:
        values = _plain([*(getattr(c, name) for name in single), *c.worst_cost])
        yield (c.name, *values, c.note or None)


def parts(steps: int, count: int) -> IntArray:
    """Return the first step of each of ``count`` parts of a life, near equal."""
    if count == 0:
        return np.zeros(0, dtype=np.int64)
    each, more = divmod(steps, count)  # as numpy.array_split has it
    first: IntArray = np.arange(count) * each + np.minimum(np.arange(count), more)
    return first
