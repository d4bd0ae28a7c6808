"""Specifications as text: written in one way only, and read with lines to point at."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from escapade.errors import InvalidFileError

__all__ = ["line_of", "parse_toml", "read_text", "toml_lines", "toml_value"]

_HEADER = re.compile(r"\s*(\[\[?)\s*([\w.-]+)\s*\]")
_KEY = re.compile(r"\s*[\"']?([\w-]+)[\"']?\s*=")


def read_text(path: Path) -> str:
    """Return the text of a file that should hold a specification."""
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidFileError(
            f"{path}: expected a specification in TOML, found that it cannot be read "
            f"({error})"
        ) from None


def parse_toml(text: str, *, source: str) -> dict[str, Any]:
    """Return what a text in TOML holds."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidFileError(f"{source}: expected TOML, found {error}") from None


def toml_lines(table: Mapping[str, Any]) -> list[str]:
    """Return a table as lines; TOML has no null, so what is ``None`` is left out."""
    return [
        f"{key} = {toml_value(value)}"
        for key, value in table.items()
        if value is not None
    ]


def toml_value(value: Any) -> str:
    """Return a value as it stands behind its key."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, Mapping):
        return f"{{ {', '.join(toml_lines(value))} }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml_value, value))}]"
    return repr(value)


def line_of(text: str, path: tuple[str, ...]) -> int:
    """Return the line in which a key stands, 0 if that is not plain to see.

    Parameters
    ----------
    text
        In TOML.
    path
        Names of tables and the key; the number of a table among several of one name
        stands behind it, as in ``("worlds", "0", "name")``.  A key inside an inline
        table is found where that begins.

    Examples
    --------
    >>> line_of("steps = 10", ("steps",))
    1
    """
    places = dict(_keys(text))
    while path:
        if path in places:
            return places[path]
        path = path[:-1]
    return 0


def _keys(text: str) -> Iterator[tuple[tuple[str, ...], int]]:
    """Yield every table and every key that begins a line, with its line."""
    here: tuple[str, ...] = ()
    seen: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if head := _HEADER.match(line):
            first, *rest = head[2].split(".")
            if head[1] == "[[":
                seen[first] = seen.get(first, -1) + 1
            index = (str(seen[first]),) if first in seen else ()
            here = (first, *index, *rest)
            yield here, number
        elif key := _KEY.match(line):
            yield (*here, key[1]), number
