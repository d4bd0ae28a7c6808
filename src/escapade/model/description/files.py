"""Descriptions in files, and what can be wrong with such a file."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO

from escapade.errors import InvalidFileError, InvalidInputError, refusal
from escapade.model.archives import write_atomically
from escapade.model.cmdp import CMDP
from escapade.model.description.reading import Description, parse_description
from escapade.model.description.writing import describe, render_json, render_toml

__all__ = ["read_description", "write_description"]


def read_description(path: str | PathLike[str]) -> Description:
    """Read a plant description from a file named ``.toml`` or ``.json``.

    Raises
    ------
    InvalidFileError
        If there is no such file, if it cannot be parsed, or if what it says is wrong;
        the message names the file, the key and the place.
    """
    file = Path(path)
    parse = _PARSERS.get(file.suffix.lower())
    if parse is None:
        raise InvalidFileError(
            f"{file}: expected a name that ends in .toml or .json, "
            f"found {file.suffix or 'no ending'}"
        )
    try:
        # Windows editors mark UTF-8 by three bytes of their own, which are no text
        document = parse(file.read_bytes().decode("utf-8-sig"))
        return parse_description(document)
    except FileNotFoundError:
        raise InvalidFileError(f"{file}: expected a file, found none") from None
    except OSError as error:
        raise InvalidFileError(
            f"{file}: expected a file that can be read, found: {error.strerror}"
        ) from None
    except UnicodeDecodeError as error:
        raise InvalidFileError(
            f"{file}: expected text in UTF-8, found byte {error.object[error.start]} "
            f"at position {error.start}"
        ) from None
    except RecursionError:
        raise InvalidFileError(
            f"{file}: expected a plant description, found nesting without end"
        ) from None
    except InvalidInputError as error:
        raise InvalidFileError(f"{file}: {error}") from None


def write_description(
    cmdp: CMDP,
    path: str | PathLike[str],
    *,
    cost_names: Sequence[str] | None = None,
    about: str = "",
) -> None:
    """Write a problem as a plant description, whole or not at all.

    Parameters
    ----------
    cmdp
        The problem.  Its names, if it has any, have to differ from each other.
    path
        Where to; a name that ends in ``.toml`` or ``.json``.
    cost_names
        Names for the cost channels.
    about
        A sentence for people.
    """
    file = Path(path)
    render = _WRITERS.get(file.suffix.lower())
    if render is None:
        raise refusal("path", "a name that ends in .toml or .json", repr(str(path)))
    text = render(describe(cmdp, cost_names=cost_names, about=about))

    def write(target: BinaryIO) -> None:
        target.write(text.encode())

    write_atomically(file, write)


def _parse_toml(text: str) -> Any:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise refusal("file", "TOML", _first_line(error)) from None
    except ValueError as error:  # a date or a whole number that Python cannot hold
        raise refusal("file", "TOML", _first_line(error)) from None


def _parse_json(text: str) -> Any:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        table = dict(pairs)
        if len(table) < len(pairs):
            keys = [key for key, _ in pairs]
            twice = next(key for key in keys if keys.count(key) > 1)
            raise refusal("file", "every key once in its table", f"{twice!r} twice")
        return table

    def constant(name: str) -> float:
        raise refusal("file", "finite numbers", name)

    try:
        return json.loads(text, object_pairs_hook=unique, parse_constant=constant)
    except InvalidInputError:
        raise
    except ValueError as error:
        raise refusal("file", "JSON", _first_line(error)) from None


_PARSERS = {".toml": _parse_toml, ".json": _parse_json}
_WRITERS = {".toml": render_toml, ".json": render_json}


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
