"""The one table of a sweep: a row a run, as CSV.

Rows are appended as runs end, in whatever order that is; at the end the table is
written again in the order of the specification.  All that stands in it follows from the
specification alone, so the same sweep has the same table, byte by byte, whoever lived
it, in what order, and however often it was interrupted.  A table cut short by a crash
is no loss: it is written again from the runs.

Columns are the run, its world and seed; ``parameters.*`` and ``settings.*``, those
that the specification names; and :data:`RESULTS`.  Each further budget ``k`` has
``budget_k`` and so on, as in a journal.  A cell that does not apply is empty.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from escapade.errors import InvalidFileError
from escapade.experiment.schema import storing
from escapade.experiment.spec import RunSpec
from escapade.experiment.sweeps.spec import SweepSpec
from escapade.model.archives import write_atomically

__all__ = [
    "PER_BUDGET",
    "RESULTS",
    "TableWriter",
    "cells_of",
    "columns",
    "read_table",
    "results",
    "row_of",
]

Row = dict[str, Any]

RESULTS = (
    "steps",
    "stopped",
    "reward_per_step",
    "promise_kept",
    "certified",
    "gap",
    "value_lower",
    "value_upper",
    "upper_bound",
    "known_states",
    "states",
    "states_visited",
    "plans",
    "steps_over_budget",
)
"""What a run came to; ``error`` stands last, and says in a line why it did not."""

PER_BUDGET = ("budget", "cost_upper", "cost_per_step", "largest_cost_to_go")
"""What a run came to, once for each budget."""

_TEXT = frozenset({"run", "world", "stopped", "error"})


def columns(spec: SweepSpec) -> tuple[str, ...]:
    """Return the names of the columns, in order."""
    further = [
        name if k == 0 else f"{name}_{k}"
        for k in range(spec.n_costs)
        for name in PER_BUDGET
    ]
    return ("run", "world", "seed", *spec.axes, *RESULTS, *further, "error")


def results(summary: Mapping[str, Any]) -> Row:
    """Return what a run came to, from its summary."""
    certificate, realised = summary["certificate"], summary["realised"]
    found = {name: summary[name] for name in RESULTS if name in summary}
    found |= {name: certificate[name] for name in RESULTS if name in certificate}
    found["steps_over_budget"] = realised["steps_over_budget"]
    channels = {
        "budget": summary["budget"],
        "cost_upper": certificate["cost_upper"],
        "cost_per_step": summary["cost_per_step"],
        "largest_cost_to_go": summary["largest_cost_to_go"],
    }
    for name, values in channels.items():
        for k, value in enumerate(values):
            found[name if k == 0 else f"{name}_{k}"] = value
    return found


def row_of(run: RunSpec, names: Sequence[str], found: Mapping[str, Any]) -> Row:
    """Return the row of a run that came to what was found."""
    row: Row = dict.fromkeys(names)
    row |= {"run": run.name, "world": run.world, "seed": run.seed}
    for name in names:
        table, dot, key = name.partition(".")
        if dot:
            row[name] = getattr(run, table).get(key)
    row |= {key: value for key, value in found.items() if key in row}
    return row


# -- text ------------------------------------------------------------------------------


def _cell(value: Any) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, str):
        return value
    return json.dumps(value, sort_keys=True)


def _value(name: str, cell: str) -> Any:
    if cell == "":
        return None
    if name in _TEXT:
        return cell
    try:
        return json.loads(cell)
    except json.JSONDecodeError:
        return cell  # a parameter or setting that is a word


def _line(cells: Iterable[str]) -> str:
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerow(cells)
    return file.getvalue()


class TableWriter:
    """Appends rows to the table; one process does, for all workers.

    Parameters
    ----------
    path
        Of the table; what stands there is replaced.
    names
        Of the columns.
    """

    def __init__(self, path: Path, names: Sequence[str]) -> None:
        self.path, self._names = path, names
        self.replace_all([])

    def replace_all(self, rows: Iterable[Row]) -> None:
        """Write the table anew, with these rows."""
        lines = [_line(self._names)]
        lines += [_line(_cell(row[name]) for name in self._names) for row in rows]
        text = "".join(lines).encode()
        with storing(self.path):
            write_atomically(self.path, lambda file: file.write(text))

    def append(self, rows: Iterable[Row]) -> None:
        """Add rows, so that whoever looks at the table sees them."""
        lines = [_line(_cell(row[name]) for name in self._names) for row in rows]
        with storing(self.path), self.path.open("a", encoding="utf-8") as file:
            file.write("".join(lines))


def cells_of(path: Path) -> list[tuple[str, ...]]:
    """Return the names of a table's columns and the text of its rows."""
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidFileError(
            f"{path}: expected the table of a sweep, found that it cannot be read "
            f"({error})"
        ) from None
    whole = text[: text.rfind("\n") + 1]  # a last line may be in the writing
    return [tuple(cells) for cells in csv.reader(io.StringIO(whole))]


def read_table(path: Path) -> list[Row]:
    """Return the rows of a table, also of one that is being written."""
    names, *rows = cells_of(path) or [()]
    return [
        {name: _value(name, cell) for name, cell in zip(names, cells, strict=True)}
        for cells in rows
    ]
