"""A run's tables for other tools: CSV, or Parquet by the extra ``analysis``."""

from __future__ import annotations

import csv
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from escapade.agent.phases import Phase
from escapade.errors import MissingExtraError, refusal
from escapade.experiment.journal import Journal
from escapade.experiment.rows import columns, values_of
from escapade.experiment.schema import canonical, storing
from escapade.experiment.store import Run

__all__ = ["Table", "export"]

Table = Literal["steps", "events"]
"""What can be written."""

_AT_ONCE = 50_000


def export(run: Run, path: Path, *, table: Table = "steps") -> int:
    """Write a table of a run to ``path``; the ending says how.

    Parameters
    ----------
    run
        Finished or not.
    path
        A name that ends in ``.csv`` or ``.parquet``.
    table
        ``steps``, with phases by name, or ``events``.

    Returns
    -------
    int
        Rows written.
    """
    if path.suffix not in (".csv", ".parquet"):
        raise refusal("path", "a name that ends in .csv or .parquet", str(path))
    if table not in ("steps", "events"):
        raise refusal("table", "'steps' or 'events'", repr(table))
    journal = run.journal()
    try:
        if path.suffix == ".csv":
            return _write_csv(journal, path, table)
        return _write_parquet(journal, path, table)
    finally:
        journal.close()


def _write_csv(journal: Journal, path: Path, table: Table) -> int:
    count = 0
    with storing(path), path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        for row in _rows(journal, table):
            writer.writerow(row)
            count += 1
    return count - 1  # the first are the names


def _rows(journal: Journal, table: Table) -> Iterator[tuple[Any, ...]]:
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
        part = journal.read(first, first + _AT_ONCE)
        for row in values_of(part, first):
            # a number that is not known leaves its cell empty
            kept = [None if value != value else value for value in row]
            kept[phase] = labels[row[phase]]
            yield tuple(kept)


def _write_parquet(journal: Journal, path: Path, table: Table) -> int:
    try:
        import duckdb
    except ImportError:
        raise MissingExtraError("duckdb", "analysis") from None
    with tempfile.TemporaryDirectory() as folder:
        middle = Path(folder) / "table.csv"
        count = _write_csv(journal, middle, table)
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
