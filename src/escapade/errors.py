"""Every error that Escapade raises on purpose, in one tree.

::

    EscapadeError
    ├── InvalidInputError (ValueError)   an argument was refused; nothing was changed
    │   └── InvalidFileError             a file is truncated, foreign or tampered with
    ├── SolverError (RuntimeError)       an outside solver broke down; not "infeasible"
    ├── AssumptionError (RuntimeError)   the world broke an assumption at run time
    ├── StorageError (RuntimeError)      the disk refused a run; what it held is kept
    └── MissingExtraError (ImportError)  an optional dependency is not installed

Infeasibility is not here: it is a result (see :class:`escapade.Solution`).

A message is one line and says four things: which argument, what was expected, what
was found, and where it was found first.  :func:`refusal` writes it.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

__all__ = [
    "AssumptionError",
    "BrokenAssumptionWarning",
    "EscapadeError",
    "InvalidFileError",
    "InvalidInputError",
    "MissingExtraError",
    "SolverError",
    "StorageError",
    "check_kind",
    "did_you_mean",
    "refusal",
]


_LONGEST = 300  # characters of what was found


class EscapadeError(Exception):
    """Base of all errors that Escapade raises on purpose."""


class InvalidInputError(EscapadeError, ValueError):
    """An argument was refused before anything was changed."""


class InvalidFileError(InvalidInputError):
    """A file is truncated, foreign, tampered with, or from a newer version."""


class SolverError(EscapadeError, RuntimeError):
    """A numerical solver broke down; says nothing about feasibility."""


class AssumptionError(EscapadeError, RuntimeError):
    """The world did what the stated assumptions rule out."""


class BrokenAssumptionWarning(UserWarning):
    """A lifetime went on with its fallback, after an assumption proved false."""


class StorageError(EscapadeError, RuntimeError):
    """The disk is full or cannot be written to; what was stored before is intact."""


class MissingExtraError(EscapadeError, ImportError):
    """An optional dependency is missing; the message has the line that installs it."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(
            f"{package} is not installed; it comes with: "
            f'pip install "escapade[{extra}]"'
        )


def refusal(
    argument: str, expected: str, found: object, where: str | None = None
) -> InvalidInputError:
    """Return the error for a refused argument, in the one wording used everywhere.

    Parameters
    ----------
    argument
        Name of the argument, as the user wrote it.
    expected
        What would have been accepted.
    found
        What was passed instead.
    where
        First place at which it was found, such as ``"state 3, action 1"``.

    Examples
    --------
    >>> print(refusal("discount", "a number in [0, 1)", 1.5))
    discount: expected a number in [0, 1), found 1.5
    """
    place = f" at {where}" if where else ""
    if isinstance(found, float):  # NumPy's scalars print their type otherwise
        found = f"{float(found):.10g}"
    shown = str(found)
    if len(shown) > _LONGEST:
        shown = f"{shown[:_LONGEST]} ..."
    message = f"{argument}: expected {expected}, found {shown}{place}"
    return InvalidInputError("".join(map(_printable, message)))


def did_you_mean(word: object, words: Iterable[str]) -> str:
    """Return a question about the nearest of some words; empty if none is near.

    Examples
    --------
    >>> did_you_mean("supports", ["support", "costs"])
    " (did you mean 'support'?)"
    """
    near = get_close_matches(str(word), list(words), n=1)
    return f" (did you mean {near[0]!r}?)" if near else ""


def check_kind(argument: str, value: object, *kinds: type) -> None:
    """Refuse a value that is of none of these classes; say where in it one stands.

    Examples
    --------
    >>> check_kind("discount", 0.9, float)
    >>> check_kind("policy", [0.5, 0.5], dict, tuple)
    Traceback (most recent call last):
    escapade.errors.InvalidInputError: policy: expected a dict or a tuple, found a list
    """
    if not isinstance(value, kinds):
        names = " or ".join(f"a {kind.__name__}" for kind in kinds)
        parts = [kind.__name__.lower() for kind in kinds]
        held = [f"; give its .{part}" for part in parts if part in dir(value)]
        found = f"a {type(value).__name__}{held[0] if held else ''}"
        raise refusal(argument, names, found)


def _printable(character: str) -> str:
    """Return a character, or its escape: names of states may hold line breaks."""
    return character if character.isprintable() else repr(character)[1:-1]
