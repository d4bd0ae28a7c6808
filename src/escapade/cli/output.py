"""What the commands print: lines for people, one object for programs.

On a terminal tables and colours are drawn by Rich; into a pipe or a file go plain lines
without boxes, wrapping or escape codes.  Names come from files that anybody may have
written, so control characters in them are shown, never sent.

JSON has no numbers for what is not one.  NaN, "there is none", becomes ``null``;
infinities become the strings ``"Infinity"`` and ``"-Infinity"``, which ``float`` of
Python and ``Number`` of JavaScript read back.
"""

from __future__ import annotations

import json
import math
import shutil
import sys
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, TextIO

__all__ = [
    "amount",
    "complain",
    "is_terminal",
    "one_line",
    "plural",
    "print_json",
    "say",
    "show_facts",
    "show_table",
    "takes",
    "wrapped",
]


# -- for programs --------------------------------------------------------------------


def print_json(answer: Mapping[str, Any]) -> None:
    """Print one JSON object, in ASCII, on standard output."""
    json.dump(_plain(answer), sys.stdout, allow_nan=False, indent=2)
    sys.stdout.write("\n")


def _plain(value: Any) -> Any:
    """Return a value as JSON can hold it: NumPy's types and infinities turned."""
    if hasattr(value, "tolist"):  # NumPy's arrays and scalars
        value = value.tolist()
    if isinstance(value, float) and not math.isfinite(value):
        if math.isnan(value):
            return None
        return "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(entry) for entry in value]
    return value


# -- for people ----------------------------------------------------------------------


def is_terminal() -> bool:
    """Whether a person watches standard output."""
    return sys.stdout.isatty()


def takes(text: str) -> bool:
    """Whether standard output has an encoding for a text."""
    return _encodable(text, sys.stdout) == text


def one_line(text: str) -> str:
    """Return a text with its control characters shown, line ends among them."""
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode() for c in text
    )


def say(text: str = "") -> None:
    """Print one line on standard output, on a narrow terminal wrapped at words."""
    line = _encodable(one_line(text), sys.stdout)
    if is_terminal():
        line = wrapped(line, shutil.get_terminal_size().columns)
    sys.stdout.write(line + "\n")


def wrapped(line: str, width: int, *, hanging: int = 0) -> str:
    """Return a line broken between words where it is too wide.

    Parameters
    ----------
    line
        One line; it is not touched if it fits.
    width
        Columns that there are.
    hanging
        By how much all but the first of the lines stand in.
    """
    if len(line) <= width:
        return line
    return "\n".join(
        textwrap.wrap(
            line,
            width,
            subsequent_indent=" " * hanging,
            drop_whitespace=True,
            break_on_hyphens=False,
            break_long_words=False,
        )
    )


def complain(text: str) -> None:
    """Print one line on standard error, under the name of the command."""
    sys.stderr.write(_encodable(f"escapade: {one_line(text)}", sys.stderr) + "\n")


def show_facts(facts: Mapping[str, str]) -> None:
    """Print names and what stands for them, below each other."""
    width = max(map(len, facts)) + 2
    for name, fact in facts.items():
        line = _encodable(one_line(f"{name:<{width}}{fact}"), sys.stdout)
        if is_terminal():
            line = wrapped(line, shutil.get_terminal_size().columns, hanging=width)
        sys.stdout.write(line + "\n")


def show_table(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    numbers: Sequence[str] = (),
) -> None:
    """Print a table.

    Parameters
    ----------
    header
        Names of the columns.
    rows
        One text a cell.
    numbers
        Names of the columns that stand flush right.
    """
    right = [name in numbers for name in header]
    cells = [[_encodable(one_line(c), sys.stdout) for c in row] for row in rows]
    if is_terminal():
        _draw_table(header, cells, right)
        return
    widths = [max(map(len, column)) for column in zip(header, *cells, strict=True)]
    for row in [header, *cells]:
        line = "  ".join(
            f"{cell:>{width}}" if flush else f"{cell:<{width}}"
            for cell, width, flush in zip(row, widths, right, strict=True)
        )
        say(line.rstrip())


def _draw_table(
    header: Sequence[str], cells: Sequence[Sequence[str]], right: Sequence[bool]
) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name, flush in zip(header, right, strict=True):
        table.add_column(name, justify="right" if flush else "left")
    for row in cells:
        table.add_row(*map(Text, row))  # no markup: a name may hold brackets
    Console(file=sys.stdout).print(table)


def amount(number: float) -> str:
    """Return a number as people read it."""
    return f"{number:.6g}"


def plural(count: int, thing: str) -> str:
    """Return a count with its noun."""
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"


def _encodable(text: str, stream: TextIO) -> str:
    encoding = getattr(stream, "encoding", None) or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)
