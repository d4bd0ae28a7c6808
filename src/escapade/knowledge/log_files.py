"""Logs in files: text with separators, and Parquet.

Text is read with the standard library, Parquet with DuckDB, which is the lightest
package that reads it; it is optional.  Either way a :class:`Table` of named columns
comes out, and one place turns it into a log, so that both refuse the same things.
"""

from __future__ import annotations

import csv
import glob
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from escapade.errors import InvalidFileError, MissingExtraError, refusal
from escapade.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from escapade.knowledge.log import Log

__all__ = ["Table", "read_csv", "read_parquet"]

_SINGLE = ("state", "action", "reward", "next_state")
_MISSING = ("", "nan", "na", "null")


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Columns of a file, cell by cell, under the names that a log knows.

    ``cost`` holds one column a channel; a cell is text, a number, or ``None``.
    ``lines`` says where each row stood.
    """

    single: Mapping[str, Sequence[Any]]
    cost: Sequence[Sequence[Any]]
    lines: IntArray
    source: str

    def as_log(
        self,
        kind: type[Log],
        state_names: Sequence[str] | None,
        action_names: Sequence[str] | None,
    ) -> Log:
        """Return the log, or refuse the first cell that is neither name nor number."""
        return kind(
            states=self._places("state", state_names),
            actions=self._places("action", action_names),
            rewards=self._numbers("reward", self.single["reward"]),
            costs=np.stack(
                [
                    self._numbers(f"cost_{k}", cells, missing=True)
                    for k, cells in enumerate(self.cost)
                ],
                axis=1,
            ),
            next_states=self._places("next_state", state_names),
            lines=self.lines,
            source=self.source,
        )

    def _refuse(self, column: str, expected: str, cell: object, row: int) -> Exception:
        where = f"line {self.lines[row]} of {self.source}"
        return refusal(column, expected, repr(cell), where)

    def _places(self, column: str, names: Sequence[str] | None) -> IntArray:
        """Return whole numbers, or the places of names in their list."""
        cells = self.single[column]
        if names is not None:
            number = {name: place for place, name in enumerate(names)}
            places = [number.get(str(cell).strip(), -1) for cell in cells]
            if -1 in places:
                row = places.index(-1)
                raise self._refuse(
                    column, f"one of the {len(names)} names", cells[row], row
                )
            return np.array(places, dtype=np.int64)
        numbers = self._numbers(column, cells)
        broken = ~(np.isfinite(numbers) & (numbers == np.round(numbers)))
        broken |= np.abs(numbers) > 2**53
        if broken.any():
            row = int(np.argmax(broken))
            raise self._refuse(column, "a whole number", cells[row], row)
        return numbers.astype(np.int64)

    def _numbers(
        self, column: str, cells: Sequence[Any], *, missing: bool = False
    ) -> FloatArray:
        """Return numbers; NaN where a cell may be, and is, empty."""
        numbers = np.empty(len(cells))
        for row, cell in enumerate(cells):
            empty = cell is None or str(cell).strip().lower() in _MISSING
            if empty and not missing:
                raise self._refuse(column, "a number", cell, row)
            try:
                numbers[row] = np.nan if empty else float(cell)
            except (TypeError, ValueError):
                raise self._refuse(column, "a number", cell, row) from None
        return numbers


def read_csv(
    path: str | PathLike[str], columns: Mapping[str, str] | None, delimiter: str
) -> Table:
    """Read the columns of a log from a text file with headings."""
    source = Path(path).name
    try:
        with Path(path).open(newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file, delimiter=delimiter, strict=True)
            headings = [name.strip() for name in next(reader, [])]
            rows, lines = [], []
            for row in reader:
                if not row:  # an empty line
                    continue
                if len(row) != len(headings):
                    raise refusal(
                        "path",
                        f"{len(headings)} cells, as in the headings",
                        len(row),
                        f"line {reader.line_num} of {source}",
                    )
                rows.append(row)
                lines.append(reader.line_num)
    except FileNotFoundError:
        raise InvalidFileError(f"path: expected a file, found none at {path}") from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InvalidFileError(
            f"path: expected a text file with columns, found {path} which cannot be "
            f"read as one ({error})"
        ) from error
    except TypeError as error:
        raise refusal("delimiter", "one character", repr(delimiter)) from error
    single, cost = _which(headings, columns, source)
    cells = list(zip(*rows, strict=True)) if rows else [()] * len(headings)
    return Table(
        single={name: cells[place] for name, place in single.items()},
        cost=[cells[place] for place in cost],
        lines=np.array(lines, dtype=np.int64),
        source=source,
    )


def read_parquet(path: str | PathLike[str], columns: Mapping[str, str] | None) -> Table:
    """Read the columns of a log from a Parquet file."""
    try:
        import duckdb
    except ImportError as missing:
        raise MissingExtraError("duckdb", "analysis") from missing
    if not Path(path).is_file():
        raise InvalidFileError(f"path: expected a file, found none at {path}")
    source = Path(path).name
    try:
        with duckdb.connect() as connection:
            found = connection.execute(
                "SELECT * FROM read_parquet(?)",
                [glob.escape(str(path))],  # one file, whatever its name
            ).fetchnumpy()
    except duckdb.Error as error:
        raise InvalidFileError(
            f"path: expected a Parquet file, found {path} which cannot be read as one "
            f"({str(error).splitlines()[0]})"
        ) from error
    headings = list(found)
    single, cost = _which(headings, columns, source)
    cells = [_unmasked(found[name]) for name in headings]
    return Table(
        single={name: cells[place] for name, place in single.items()},
        cost=[cells[place] for place in cost],
        lines=np.arange(1, len(cells[0]) + 1),
        source=source,
    )


def _unmasked(column: Any) -> list[Any]:
    """Return the cells of a column, ``None`` where there is none."""
    cells: list[Any] = np.ma.asarray(column).tolist()
    return cells


def _which(
    headings: Sequence[str], columns: Mapping[str, str] | None, source: str
) -> tuple[dict[str, int], list[int]]:
    """Return which column is what: one place a name, and one a channel of costs."""
    renamed = dict(columns or {})
    allowed = renamed.keys() - {*_SINGLE, "cost"}
    strange = sorted(key for key in allowed if not key.startswith("cost_"))
    if strange:
        raise refusal("columns", f"names among {[*_SINGLE, 'cost']}", strange[0])
    repeated = sorted({name for name in headings if headings.count(name) > 1})
    if repeated:
        raise refusal(
            "path", "headings that differ", f"{repeated[0]!r} twice", f"{source}"
        )

    for name, called in renamed.items():
        if called not in headings:
            raise refusal(
                "columns",
                f"a column {called!r} for {name!r}",
                list(headings),
                f"the headings of {source}",
            )

    def place(name: str) -> int | None:
        called = renamed.get(name, name)
        return headings.index(called) if called in headings else None

    single = {}
    for name in _SINGLE:
        found = place(name)
        if found is None:
            raise refusal(
                "columns",
                f"a column {renamed.get(name, name)!r}",
                list(headings),
                f"the headings of {source}",
            )
        single[name] = found
    cost = [place("cost")]
    if cost == [None]:
        cost = []
        while (next_one := place(f"cost_{len(cost)}")) is not None:
            cost.append(next_one)
    channels = [found for found in cost if found is not None]
    if not channels:
        raise refusal(
            "columns",
            "a column 'cost', or 'cost_0' and so on",
            list(headings),
            f"the headings of {source}",
        )
    return single, channels
