"""Tables of runs, comparisons and sweeps: CSV, or Parquet by the extra ``analysis``."""

from __future__ import annotations

import csv
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal

from escapade.agent.phases import Phase
from escapade.errors import MissingExtraError, refusal
from escapade.experiment.comparison import Comparison
from escapade.experiment.comparison_files import rows_of
from escapade.experiment.journal import Journal
from escapade.experiment.rows import columns, values_of
from escapade.experiment.schema import canonical, storing
from escapade.experiment.store import Run
from escapade.experiment.sweeps.store import Sweep
from escapade.experiment.sweeps.table import cells_of

__all__ = ["Table", "export"]

Table = Literal["steps", "events", "agents", "curves", "results"]
"""What can be written: two of a run, two of a comparison, and one of a sweep."""

_AT_ONCE = 50_000
_OF_RUN, _OF_COMPARISON = ("steps", "events"), ("agents", "curves")
_OF_SWEEP = ("results",)


def export(
    found: Run | Comparison | Sweep, path: Path, *, table: Table | None = None
) -> int:
    """Write a table of a run, a comparison or a sweep; the ending of its name says how.

    Parameters
    ----------
    found
        A run or a sweep, finished or not, or a comparison.
    path
        A name that ends in ``.csv`` or ``.parquet``.
    table
        Of a run ``steps``, with phases by name, or ``events``; of a comparison
        ``agents`` or ``curves``; of a sweep ``results``.  The first if not given.

    Returns
    -------
    int
        Rows written.
    """
    if path.suffix not in (".csv", ".parquet"):
        raise refusal("path", "a name that ends in .csv or .parquet", str(path))
    known: tuple[str, ...] = _OF_COMPARISON
    if not isinstance(found, Comparison):
        known = _OF_RUN if isinstance(found, Run) else _OF_SWEEP
    chosen = known[0] if table is None else table
    if chosen not in known:
        raise refusal("table", " or ".join(map(repr, known)), repr(table))
    write = _write_csv if path.suffix == ".csv" else _write_parquet
    if isinstance(found, Comparison):
        return write(rows_of(found, chosen), path)
    if isinstance(found, Sweep):
        return write(cells_of(found.results_path), path)
    journal = found.journal()
    try:
        return write(_rows(journal, chosen), path)
    finally:
        journal.close()


def _write_csv(rows: Iterable[tuple[Any, ...]], path: Path) -> int:
    count = 0
    with storing(path), path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        for row in rows:
            writer.writerow(row)
            count += 1
    return count - 1  # the first are the names


def _rows(journal: Journal, table: str) -> Iterator[tuple[Any, ...]]:
    """Yield the names of the columns, and then the rows."""
    if table == "events":
        yield ("step", "kind", "content")
        for event in journal.events():
            yield (event.step, event.kind, canonical(dict(event.content)))
        return
    names = columns(int(journal.about["n_costs"]))
    yield names
    phase = names.index("phase")
    labels = [p.label for p in Phase]
    for first in range(0, journal.n_steps, _AT_ONCE):
        part = journal.read(first, first + _AT_ONCE, late=True)
        for row in values_of(part, first):
            # a number that is not known leaves its cell empty
            kept = [None if value != value else value for value in row]
            kept[phase] = labels[row[phase]]
            yield tuple(kept)


def _write_parquet(rows: Iterable[tuple[Any, ...]], path: Path) -> int:
    try:
        import duckdb
    except ImportError:
        raise MissingExtraError("duckdb", "analysis") from None
    with tempfile.TemporaryDirectory() as folder:
        middle = Path(folder) / "table.csv"
        count = _write_csv(rows, middle)
        source, target = (str(p).replace("'", "''") for p in (middle, path))
        with storing(path), duckdb.connect() as db:
            try:
                db.execute(
                    f"COPY (SELECT * FROM read_csv('{source}', header = true, "  # noqa: S608
                    f"sample_size = -1)) TO '{target}' (FORMAT parquet)"
                )
            except duckdb.IOException as error:
                raise OSError(str(error).splitlines()[0]) from None
    return count
