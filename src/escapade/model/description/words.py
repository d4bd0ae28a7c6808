"""What a description calls things: its states and actions, and its costs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from escapade.errors import refusal
from escapade.model.description.values import (
    check_keys,
    hint,
    is_whole,
    read_amount,
    show,
    show_key,
)

__all__ = ["Channels", "Row", "Things", "read_budget", "read_things"]

_MOST = 2**31 - 1  # indices are 32-bit integers
_WHOLE = re.compile(r"0|[1-9][0-9]{0,9}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A row as it stands in the file; ``None`` where it says nothing."""

    key: str
    state: Any
    action: Any
    next: Any
    reward: Any = None
    cost: Any = None

    def find_state(self, states: Things) -> int:
        """Return the number of the row's state."""
        return states.find(f"{self.key}.state", self.state)


@dataclass(frozen=True, slots=True, kw_only=True)
class Things:
    """The states, or the actions: in which order, and what they are called."""

    kind: str
    count: int
    names: tuple[str, ...] | None
    index: Mapping[str, int]
    declared: bool

    def find(self, key: str, value: Any, *, as_key: bool = False) -> int:
        """Return the number of a state or action that the file refers to."""
        if self.names is None:
            if as_key and _WHOLE.fullmatch(str(value)):
                value = int(value)
            if is_whole(value) and 0 <= value < self.count:
                return int(value)
            raise refusal(key, f"{self._a} in 0..{self.count - 1}", show(value))
        if isinstance(value, str) and value in self.index:
            return self.index[value]
        expected = f"{self._a} that `{self.kind}s` names"
        if not self.declared:
            expected = f"{self._a} that has a row of its own"
        raise refusal(key, expected, show(value) + hint(value, self.index))

    def check_complete(self, found: Iterable[int]) -> None:
        """Refuse if one of them is not among ``found``."""
        seen = set(found)
        if len(seen) < self.count:
            lost = next(k for k in range(self.count) if k not in seen)
            name = repr(self.names[lost]) if self.names else str(lost)
            raise refusal(
                "transitions", f"a row for every {self.kind}", f"none for {name}"
            )

    @property
    def _a(self) -> str:
        return "a state" if self.kind == "state" else "an action"


@dataclass(frozen=True, slots=True, kw_only=True)
class Channels:
    """The costs: how many, and what they are called."""

    count: int
    names: tuple[str, ...] | None
    plain: bool

    def read(self, key: str, value: Any, otherwise: list[float]) -> list[float]:
        """Return one amount a channel; a table may leave some to ``otherwise``."""
        if isinstance(value, Mapping) and self.names is not None:
            check_keys(f"{key}.", value, self.names)
            return [
                read_amount(f"{key}.{show_key(name)}", value[name])
                if name in value
                else usual
                for name, usual in zip(self.names, otherwise, strict=True)
            ]
        if isinstance(value, list) and not self.plain:
            if len(value) != self.count:
                raise refusal(key, f"{self.count} numbers, one a budget", show(value))
            return [read_amount(f"{key}[{k}]", v) for k, v in enumerate(value)]
        if self.count == 1 and not isinstance(value, Mapping | list):
            return [read_amount(key, value)]
        expected = "a number" if self.count == 1 else f"a list of {self.count} numbers"
        if self.names is not None:
            expected += f" or a table with the keys {', '.join(self.names)}"
        raise refusal(key, expected, show(value))

    def bounds(self, key: str, value: Any) -> list[float]:
        """Return one bound a channel; a number is meant for all."""
        if not isinstance(value, Mapping | list):
            return [read_amount(key, value)] * self.count
        if isinstance(value, Mapping) and self.names is not None:
            check_keys(f"{key}.", value, self.names, required=self.names)
        return self.read(key, value, [0.0] * self.count)


def read_budget(value: Any) -> tuple[Channels, list[float]]:
    """Return the costs that the budget tells of, and the budget of each."""
    if isinstance(value, Mapping):
        if not value:
            raise refusal("budget", "at least one cost", "an empty table")
        channels = Channels(count=len(value), names=tuple(value), plain=False)
        return channels, [
            read_amount(f"budget.{show_key(name)}", v) for name, v in value.items()
        ]
    if isinstance(value, list):
        if not value:
            raise refusal("budget", "at least one number", "an empty list")
        channels = Channels(count=len(value), names=None, plain=False)
        return channels, [read_amount(f"budget[{k}]", v) for k, v in enumerate(value)]
    return Channels(count=1, names=None, plain=True), [read_amount("budget", value)]


def read_things(kind: str, value: Any, rows: list[Row]) -> Things:
    """Read ``states`` or ``actions``, or gather them from the rows."""
    key = f"{kind}s"
    if value is None:
        return _gathered(kind, rows)
    if is_whole(value):
        if not 1 <= value <= _MOST:
            raise refusal(key, f"a number in 1..{_MOST}", show(value))
        return Things(kind=kind, count=int(value), names=None, index={}, declared=True)
    if not isinstance(value, list) or not value:
        raise refusal(key, "a list of names, or how many there are", show(value))
    index: dict[str, int] = {}
    for k, name in enumerate(value):
        if not isinstance(name, str):
            raise refusal(f"{key}[{k}]", "a name (a string)", show(name))
        if name in index:
            raise refusal(
                f"{key}[{k}]", "different names", f"{name!r}, as {key}[{index[name]}]"
            )
        index[name] = k
    return Things(
        kind=kind, count=len(index), names=tuple(index), index=index, declared=True
    )


def _gathered(kind: str, rows: list[Row]) -> Things:
    numbered = is_whole(getattr(rows[0], kind))
    wanted = "a whole number, as in the first row" if numbered else "a name (a string)"
    index: dict[str, int] = {}
    highest = 0
    for row in rows:
        value = getattr(row, kind)
        right = is_whole(value) if numbered else isinstance(value, str)
        if not right or (numbered and not 0 <= value < _MOST):
            raise refusal(f"{row.key}.{kind}", wanted, show(value))
        if numbered:
            highest = max(highest, int(value))
        else:
            index.setdefault(value, len(index))
    return Things(
        kind=kind,
        count=highest + 1 if numbered else len(index),
        names=None if numbered else tuple(index),
        index=index,
        declared=False,
    )
