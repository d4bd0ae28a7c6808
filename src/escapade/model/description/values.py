"""Single values of a description, and the words in which a wrong one is refused.

Every reader here is told the key under which the value stands, such as
``transitions[3].next``, and names it when it refuses.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from escapade.errors import did_you_mean, refusal

__all__ = [
    "check_keys",
    "hint",
    "is_whole",
    "read_amount",
    "read_number",
    "read_table",
    "show",
    "show_key",
    "toml_string",
]

_FRACTION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*/\s*(\d+(?:\.\d+)?)\s*")
_PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]+")


def check_keys(
    prefix: str,
    table: Mapping[str, Any],
    known: Sequence[str],
    required: Sequence[str] = (),
) -> None:
    """Refuse a key that nothing reads, or the lack of one that is needed."""
    for key in table:
        if key not in known:
            raise refusal(
                f"{prefix}{show_key(key)}",
                f"one of the keys {', '.join(known)}",
                "a key of that name" + hint(key, known),
            )
    for key in required:
        if key not in table:
            raise refusal(f"{prefix}{key}", "to be given", "nothing")


def show_key(name: Any) -> str:
    """Return a key as TOML has it: in quotes if it is not plain."""
    return str(name) if _PLAIN_KEY.fullmatch(str(name)) else toml_string(str(name))


def toml_string(text: str) -> str:
    """Return a string as TOML has it."""
    # JSON's escapes are TOML's, but for one character that JSON leaves as it is
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def read_table(key: str, value: Any) -> Mapping[str, Any]:
    """Return a table."""
    if not isinstance(value, Mapping):
        raise refusal(key, "a table", show(value))
    return value


def is_whole(value: Any) -> bool:
    """Whether this is a whole number, which true and false are not."""
    return isinstance(value, int) and not isinstance(value, bool)


def read_number(key: str, value: Any) -> float:
    """Return a finite number, which may be written as a fraction in a string."""
    number = math.nan
    if isinstance(value, str) and (parts := _FRACTION.fullmatch(value)):
        below = float(parts[2])
        number = float(parts[1]) / below if below else math.nan
    elif isinstance(value, float) or (
        is_whole(value) and abs(value) <= 10**300  # beyond, float would overflow
    ):
        number = float(value)
    if not math.isfinite(number):
        raise refusal(key, 'a finite number, or a fraction like "1/3"', show(value))
    return number


def read_amount(key: str, value: Any) -> float:
    """Return a number of at least 0."""
    number = read_number(key, value)
    if number < 0.0:
        raise refusal(key, "a number of at least 0", number)
    return number


def show(value: Any) -> str:
    """Say what was found, in one short line and in the words of the file."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "null"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    if isinstance(value, Mapping):
        return f"a table of {len(value)}"
    if isinstance(value, int) and abs(value) > 10**300:
        return "a number too large to hold"
    text = repr(value) if isinstance(value, str | int | float) else str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def hint(value: Any, known: Iterable[str]) -> str:
    """Name what may have been meant instead, if anything is close."""
    return did_you_mean(value, known) if isinstance(value, str) else ""
