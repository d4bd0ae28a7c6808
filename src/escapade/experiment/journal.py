"""The journal of a run: every decision, and what came of it.

Tables:

- ``steps``: one row a decision; see :mod:`escapade.experiment.rows`.
- ``events``: what else was decided or told, in order: plans, breaks, overrides.  It
  follows from the specification and ``steps``, or was told from outside.
- ``seals``: SHA-256 of the packed steps, block after block, each block's beginning
  with that of the one before; so a changed bit is noticed wherever it stands.  Events
  carry seals of their own.
- ``openings``, ``progress``: when the run was opened and how it got on, by the clock on
  the wall, with the versions that did it.
- ``about``: what the run is.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from escapade.errors import InvalidFileError
from escapade.experiment.rows import PendingRow, columns, pack, trace_of, values_of
from escapade.experiment.schema import canonical, connect, storing
from escapade.simulation.trace import Trace
from escapade.typing import FloatArray

__all__ = ["Event", "Journal"]

_BLOCK = 4096
"""Steps that one seal covers."""

_AT_ONCE = 20_000
"""Rows that are objects at the same time while they are read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that was decided or told.

    Attributes
    ----------
    step
        How many steps had been lived by then.
    kind
        ``plan``, ``break``, ``override`` and so on.
    content
        What there is to say.
    """

    step: int
    kind: str
    content: Mapping[str, Any]


class Journal:
    """A journal on disk, for one writer or any number of readers.

    Parameters
    ----------
    path
        Of the database.
    write
        Whether to write.  The caller holds the run's lock then.
    durable
        Whether a commit waits for the disk; else it survives the death of the process,
        but the last ones may be lost with the power.

    Attributes
    ----------
    about
        What the run is.
    n_steps
        Steps whose outcome is known.
    pending
        The decision whose outcome is not, if there is one.
    """

    def __init__(
        self, path: Path, *, write: bool = False, durable: bool = False
    ) -> None:
        self.path = path
        self._db = connect(path, write=write, durable=durable)
        try:
            self._open(write=write)
        except sqlite3.DatabaseError as error:
            self.close()
            raise InvalidFileError(
                f"journal: expected a journal at {path}, found that it cannot be read "
                f"({error})"
            ) from error
        except BaseException:
            self.close()
            raise

    def _open(self, *, write: bool) -> None:
        self.about: dict[str, Any] = {
            key: json.loads(value)
            for key, value in self._db.execute("SELECT key, value FROM about")
        }
        n_costs = int(self.about["n_costs"])
        self._budget: FloatArray = np.array(self.about["budget"], dtype=np.float64)
        self._discount = float(self.about["discount"])
        names = columns(n_costs)
        self._listed = ", ".join(names)
        self._insert = (
            f"INSERT INTO steps ({self._listed}) "  # noqa: S608  names are ours
            f"VALUES ({', '.join('?' * len(names))})"
        )
        self.refresh()
        if write:
            self._take_up_seals()

    def refresh(self) -> None:
        """See what a writer has added meanwhile."""
        (last,) = self._db.execute("SELECT max(step) FROM steps").fetchone()
        self.pending: PendingRow | None = None
        self.n_steps = 0 if last is None else last + 1
        if last is None:
            return
        found = self._db.execute(
            f"SELECT {self._listed} FROM steps WHERE step = ?",  # noqa: S608
            (last,),
        ).fetchone()
        row = dict(zip(columns(int(self.about["n_costs"])), found, strict=True))
        if row["next_state"] is None:
            more = range(1, self._budget.size)
            self.n_steps = last
            self.pending = PendingRow(
                **{k: row[k] for k in ("step", "state", "action", "phase", "reason")},
                promise=(row["promise"], *(row[f"promise_{k}"] for k in more)),
                reserved=(row["reserved"], *(row[f"reserved_{k}"] for k in more)),
            )

    def close(self) -> None:
        """Close the database; of a writer also fold the log into it."""
        self._db.close()

    def _rows(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return what a query finds; one line if the file cannot be read."""
        try:
            return self._db.execute(query, values).fetchall()
        except sqlite3.DatabaseError as error:
            raise self._unreadable(error) from error

    def _table(self, query: str, values: Sequence[Any]) -> FloatArray:
        """Return rows of numbers as a table, ``NULL`` as NaN."""
        width = len(columns(int(self.about["n_costs"])))
        parts: list[FloatArray] = [np.empty((0, width))]
        try:
            cursor = self._db.execute(query, values)
            while rows := cursor.fetchmany(_AT_ONCE):
                parts.append(np.array(rows, dtype=np.float64))
        except (sqlite3.DatabaseError, TypeError, ValueError) as error:
            raise self._unreadable(error) from error
        return np.concatenate(parts)

    def _unreadable(self, error: Exception) -> InvalidFileError:
        return InvalidFileError(
            f"journal: expected a journal at {self.path}, found that it cannot be read "
            f"({error})"
        )

    # -- reading -----------------------------------------------------------------------

    def read(
        self,
        first: int = 0,
        until: int | None = None,
        *,
        stopped: str = "",
        late: bool = False,
    ) -> Trace:
        """Return the steps ``first`` to ``until`` whose outcome is known.

        The costs are those that were told with the steps, which seals cover; with
        ``late`` also those that an event ``cost`` brought later.
        """
        stop = self.n_steps if until is None else min(until, self.n_steps)
        table = self._table(
            f"SELECT {self._listed} FROM steps "  # noqa: S608
            f"WHERE step >= ? AND step < ? ORDER BY step",
            (first, stop),
        )
        if len(table) != max(stop - first, 0):
            raise InvalidFileError(
                f"journal: expected steps {first}..{stop - 1} in {self.path}, found "
                f"{len(table)} of them"
            )
        gaps = np.flatnonzero(table[1:, 1] != table[:-1, 6]) + 1
        if gaps.size:
            gap = int(gaps[0])
            raise InvalidFileError(
                f"journal: expected step {first + gap} to begin in state "
                f"{table[gap - 1, 6]:g}, to which the one before led, found "
                f"{table[gap, 1]:g} in {self.path}"
            )
        plans = self._rows(
            "SELECT step FROM events WHERE kind = 'plan' AND step > ? AND step <= ? "
            "ORDER BY id",
            (first, stop),
        )
        found = trace_of(
            table,
            discount=self._discount,
            budget=self._budget,
            stopped=stopped,
            plans=[step - first for (step,) in plans],
            breaks=[
                str(event.content["what"])
                for event in self.events("break")
                if event.step <= stop
            ],
        )
        if late:
            for event in self.events("cost", first=first):
                row = int(event.content["decision"]) - first
                if 0 <= row < len(found):
                    told = found.costs[row]
                    told[:] = np.where(np.isnan(told), event.content["cost"], told)
        return found

    def events(self, *kinds: str, first: int = 0) -> list[Event]:
        """Return the events from a step on, of these kinds or of all."""
        rows = self._rows(
            "SELECT step, kind, content FROM events WHERE step >= ? ORDER BY id",
            (first,),
        )
        return [
            Event(step=step, kind=kind, content=json.loads(content))
            for step, kind, content in rows
            if not kinds or kind in kinds
        ]

    @property
    def n_events(self) -> int:
        """How many events there are."""
        return int(self._rows("SELECT count(*) FROM events")[0][0])

    def progress(self) -> list[dict[str, Any]]:
        """Return how the run got on, by the clock."""
        rows = self._rows("SELECT step, at, content FROM progress ORDER BY id")
        return [
            {"step": step, "at": at, **json.loads(content)}
            for step, at, content in rows
        ]

    def openings(self) -> list[dict[str, Any]]:
        """Return when the run was opened for writing, at which step, by what."""
        rows = self._rows("SELECT at, step, versions FROM openings ORDER BY id")
        return [
            {"at": at, "step": step, "versions": json.loads(versions)}
            for at, step, versions in rows
        ]

    # -- writing -----------------------------------------------------------------------

    def append(self, trace: Trace, events: Iterable[Event] = ()) -> None:
        """Add steps with their outcomes, and events, in one transaction."""
        with storing(self.path):
            self._db.execute("BEGIN IMMEDIATE")
            try:
                self._db.executemany(self._insert, values_of(trace, self.n_steps))
                for event in events:
                    self._note(event)
                self._seal(trace)
            except BaseException:
                self._undo()
                raise
            self._commit(len(trace))

    def decide(self, row: PendingRow, events: Iterable[Event] = ()) -> None:
        """Add a decision, whose outcome is not known yet."""
        more = [
            entry
            for b, w in zip(row.promise[1:], row.reserved[1:], strict=True)
            for entry in (None, b, w)
        ]
        values = [
            row.step,
            row.state,
            row.action,
            row.phase,
            None,
            None,
            None,
            row.promise[0],
            row.reserved[0],
            row.reason,
            *more,
        ]
        with storing(self.path):
            self._db.execute("BEGIN IMMEDIATE")
            try:
                for event in events:
                    self._note(event)
                self._db.execute(self._insert, values)
            except BaseException:
                self._undo()
                raise
            self._commit(0)
        self.pending = row

    def redecide(self, action: int, event: Event) -> None:
        """Put another action into the decision that is pending, and say why."""
        assert self.pending is not None
        with storing(self.path):
            self._db.execute("BEGIN IMMEDIATE")
            try:
                self._db.execute(
                    "UPDATE steps SET action = ? WHERE step = ?", (action, self.n_steps)
                )
                self._note(event)
            except BaseException:
                self._undo()
                raise
            self._commit(0)
        self.pending = replace(self.pending, action=action)

    def complete(self, trace: Trace, events: Iterable[Event] = ()) -> None:
        """Add what came of the decision that is pending: a trace of that one step."""
        (values,) = values_of(trace, self.n_steps)
        with storing(self.path):
            self._db.execute("BEGIN IMMEDIATE")
            try:
                self._db.execute("DELETE FROM steps WHERE step = ?", (self.n_steps,))
                self._db.execute(self._insert, values)
                for event in events:
                    self._note(event)
                self._seal(trace)
            except BaseException:
                self._undo()
                raise
            self._commit(1)
        self.pending = None

    def note(self, *events: Event) -> None:
        """Add events."""
        with storing(self.path):
            self._db.execute("BEGIN IMMEDIATE")
            try:
                for event in events:
                    self._note(event)
            except BaseException:
                self._undo()
                raise
            self._commit(0)

    def note_opening(self, versions: Mapping[str, str]) -> None:
        """Note that somebody goes on with the run."""
        with storing(self.path):
            self._db.execute(
                "INSERT INTO openings (at, step, versions) VALUES (?, ?, ?)",
                (time.time(), self.n_steps, canonical(dict(versions))),
            )

    def note_progress(self, content: Mapping[str, Any]) -> None:
        """Note how far the run has got, by the clock."""
        with storing(self.path):
            self._db.execute(
                "INSERT INTO progress (step, at, content) VALUES (?, ?, ?)",
                (self.n_steps, time.time(), canonical(dict(content))),
            )

    def fold(self) -> None:
        """Write the log into the database file, which then holds everything."""
        with storing(self.path):
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()

    def _undo(self) -> None:
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")
        self._take_up_seals()

    def _commit(self, steps: int) -> None:
        try:
            self._db.execute("COMMIT")
        except BaseException:
            self._undo()
            raise
        self.n_steps += steps

    # -- seals -------------------------------------------------------------------------

    def _take_up_seals(self) -> None:
        """Go on with the seal of the last block, once it is seen to be right."""
        self._hash = hashlib.sha256()
        begun = self.n_steps - self.n_steps % _BLOCK
        if begun:
            found = self._db.execute(
                "SELECT sha256 FROM seals WHERE first = ?", (begun - _BLOCK,)
            ).fetchone()
            self._hash.update((found[0] if found else "").encode())
        if self.n_steps > begun:
            self._hash.update(pack(self.read(begun), begun).tobytes())
            found = self._db.execute(
                "SELECT until, sha256 FROM seals WHERE first = ?", (begun,)
            ).fetchone()
            if found != (self.n_steps, self._hash.hexdigest()):
                raise InvalidFileError(
                    f"journal: expected steps {begun}..{self.n_steps - 1} in "
                    f"{self.path} as they were written, found others"
                )
        last = self._db.execute(
            "SELECT sha256 FROM events ORDER BY id DESC LIMIT 1"
        ).fetchone()
        self._event_seal: str = last[0] if last else ""

    def _note(self, event: Event) -> None:
        content = canonical(dict(event.content))
        self._event_seal = seal_of_event(
            self._event_seal, event.step, event.kind, content
        )
        self._db.execute(
            "INSERT INTO events (step, kind, content, sha256) VALUES (?, ?, ?, ?)",
            (event.step, event.kind, content, self._event_seal),
        )

    def _seal(self, trace: Trace) -> None:
        packed = pack(trace, self.n_steps)
        at, end = self.n_steps, self.n_steps + len(trace)
        while at < end:
            begun = at - at % _BLOCK
            until = min(begun + _BLOCK, end)
            self._hash.update(
                packed[at - self.n_steps : until - self.n_steps].tobytes()
            )
            digest = self._hash.hexdigest()
            self._db.execute(
                "INSERT OR REPLACE INTO seals VALUES (?, ?, ?)", (begun, until, digest)
            )
            at = until
            if until == begun + _BLOCK:
                self._hash = hashlib.sha256(digest.encode())

    def damage(self) -> list[str]:
        """Return what is wrong with the journal as it stands, in words."""
        try:
            (found,) = self._db.execute("PRAGMA integrity_check(1)").fetchone()
            if found != "ok":
                return [f"SQLite: {found.splitlines()[0]}"]
            return [*self._broken_seals(), *self._broken_events()]
        except InvalidFileError as error:
            return [str(error)]
        except (sqlite3.DatabaseError, ValueError, TypeError, OverflowError) as error:
            return [f"SQLite: {str(error).splitlines()[0]}"]

    def _broken_seals(self) -> list[str]:
        before = ""
        seals = self._db.execute(
            "SELECT first, until, sha256 FROM seals ORDER BY first"
        ).fetchall()
        at = 0
        for first, until, digest in seals:
            whole = until == first + _BLOCK or until == self.n_steps
            if first != at or not whole or not first < until <= self.n_steps:
                return [
                    f"seals: expected one from step {at} on, found {first}..{until}"
                ]
            packed = pack(self.read(first, until), first).tobytes()
            expected = hashlib.sha256(before.encode() + packed).hexdigest()
            if digest != expected:
                return [
                    f"steps {first}..{until - 1}: expected what was sealed, "
                    f"found others"
                ]
            at, before = until, digest
        if at != self.n_steps:
            return [f"seals: expected them up to step {self.n_steps}, found {at}"]
        return []

    def _broken_events(self) -> list[str]:
        before = ""
        for number, (step, kind, content, seal) in enumerate(
            self._db.execute(
                "SELECT step, kind, content, sha256 FROM events ORDER BY id"
            )
        ):
            if seal != seal_of_event(before, step, kind, content):
                return [f"event {number}: expected what was sealed, found another"]
            before = seal
        return []


def seal_of_event(before: str, step: int, kind: str, content: str) -> str:
    """Return the seal of an event that comes after the one sealed ``before``."""
    return hashlib.sha256(f"{before}|{step}|{kind}|{content}".encode()).hexdigest()
