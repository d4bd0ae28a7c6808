"""The tables of a journal, and how SQLite is opened for it.

SQLite's write-ahead log makes a commit whole or nothing, also when the process is
killed in the midst of it.  Where each commit has to survive a loss of power as well,
``durable`` waits for the disk every time.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from escapade.errors import InvalidFileError, StorageError
from escapade.experiment.rows import columns

__all__ = ["VERSION", "canonical", "connect", "create", "storing"]

VERSION = 1
"""Of the tables; a journal with a higher one is refused."""

_APPLICATION = 0x45345C01
"""Says to SQLite, and to the command ``file``, whose database this is."""

_WHOLE = ("step", "state", "action", "phase", "next_state", "reason")
_OPEN = ("reward", "cost", "next_state")
"""Columns that are empty as long as the outcome is not known."""

_TABLES = (
    "CREATE TABLE about (key TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE events (id INTEGER PRIMARY KEY, step INTEGER NOT NULL, "
    "kind TEXT NOT NULL, content TEXT NOT NULL, sha256 TEXT NOT NULL)",
    "CREATE TABLE seals (first INTEGER PRIMARY KEY, until INTEGER NOT NULL, "
    "sha256 TEXT NOT NULL)",
    "CREATE TABLE openings (id INTEGER PRIMARY KEY, at REAL NOT NULL, "
    "step INTEGER NOT NULL, versions TEXT NOT NULL)",
    "CREATE TABLE progress (id INTEGER PRIMARY KEY, step INTEGER NOT NULL, "
    "at REAL NOT NULL, content TEXT NOT NULL)",
)


def canonical(value: Any) -> str:
    """Return a value as JSON, in the one way in which it can be written."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def _steps_table(n_costs: int) -> str:
    fields = []
    for name in columns(n_costs):
        kind = "INTEGER" if name in _WHOLE else "REAL"
        may_be_open = name in _OPEN or name.startswith("cost_")
        if name == "step":
            fields.append("step INTEGER PRIMARY KEY")
        else:
            fields.append(f"{name} {kind}{'' if may_be_open else ' NOT NULL'}")
    return f"CREATE TABLE steps ({', '.join(fields)})"


def create(path: Path, *, about: Mapping[str, Any]) -> None:
    """Write an empty journal, which appears under its name only once it is whole.

    ``about`` says what the run is; it has ``n_costs``, ``discount`` and ``budget``.
    """
    new = path.with_name(f".{path.name}.new")
    with storing(path):
        new.unlink(missing_ok=True)
        db = sqlite3.connect(new, isolation_level=None)
        try:
            _prepare(db, durable=True)
            db.execute("BEGIN IMMEDIATE")
            for statement in (*_TABLES, _steps_table(int(about["n_costs"]))):
                db.execute(statement)
            db.executemany(
                "INSERT INTO about VALUES (?, ?)",
                [(key, canonical(value)) for key, value in about.items()],
            )
            db.execute(f"PRAGMA application_id = {_APPLICATION}")
            db.execute(f"PRAGMA user_version = {VERSION}")
            db.execute("COMMIT")
        finally:
            db.close()
        new.replace(path)


def connect(path: Path, *, write: bool, durable: bool = False) -> sqlite3.Connection:
    """Open a journal, or say why it is none."""
    if not path.is_file():
        raise InvalidFileError(f"journal: expected a file, found none at {path}")
    if write:
        with storing(path):
            db = sqlite3.connect(path, isolation_level=None)
            _check(db, path)
            _prepare(db, durable=durable)
        return db
    place = f"file:{quote(str(path.resolve()))}"
    log = path.with_name(f"{path.name}-wal")
    db = sqlite3.connect(f"{place}?mode=ro", uri=True, isolation_level=None)
    try:
        db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.OperationalError:
        db.close()
        if log.exists() and log.stat().st_size:
            raise InvalidFileError(
                f"journal: expected a directory that can be written to, for {log.name} "
                f"still has to be read into the journal, found one that cannot; copy "
                f"the run elsewhere"
            ) from None
        # nobody can be writing in a directory that cannot be written to
        db = sqlite3.connect(f"{place}?immutable=1", uri=True, isolation_level=None)
    except sqlite3.DatabaseError:
        pass  # what is wrong with it is told next
    _check(db, path)
    return db


def _check(db: sqlite3.Connection, path: Path) -> None:
    try:
        (application,) = db.execute("PRAGMA application_id").fetchone()
        (version,) = db.execute("PRAGMA user_version").fetchone()
    except sqlite3.DatabaseError as error:
        db.close()
        raise InvalidFileError(
            f"journal: expected a journal at {path}, found that it cannot be read "
            f"({error})"
        ) from None
    if application != _APPLICATION:
        db.close()
        raise InvalidFileError(
            f"journal: expected a journal of Escapade, found another file at {path}"
        )
    if version > VERSION:
        db.close()
        raise InvalidFileError(
            f"journal: expected version {VERSION} or less, found {version} in {path}; "
            f"a newer Escapade wrote it"
        )


def _prepare(db: sqlite3.Connection, *, durable: bool) -> None:
    db.execute("PRAGMA journal_mode = WAL")
    db.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")


@contextmanager
def storing(path: Path) -> Iterator[None]:
    """Turn what the disk or SQLite refuses into one line."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        raise StorageError(f"journal: cannot be written at {path} ({error})") from error
    except OSError as error:
        reason = error.strerror or str(error)
        raise StorageError(f"run: cannot be written at {path} ({reason})") from error
