"""A plant in plain words: CMDPs in TOML or JSON files that a person can write.

A description names what there is and lists one row for each action in each state::

    discount = 0.9
    budget = 1.0

    transitions = [
      # state     action    next                          reward  cost
      ["working", "hard",   {working = 0.8, broken = 0.2}, 1.0],
      ["working", "gently", "working",                     0.4],
      ["broken",  "wait",   {working = "1/3", broken = "rest"}, 0.0, 1.0],
    ]

A row is such a list, or a table with the keys ``state``, ``action``, ``next``,
``reward`` and ``cost``.  ``next`` is a state, or a table of probabilities; in it a
fraction may be written as a string, and one state may take the ``"rest"``.  Everything
else has a default:

- ``states`` and ``actions``: names in the order wanted, or a number of them, which are
  then called 0, 1, ...; by default what the rows name, in order of appearance;
- ``start``: a state or a table of probabilities; by default the first state;
- ``defaults``: a table with the ``reward`` and ``cost`` of rows that give none; 0;
- ``budget``: a number; for several costs a list, or a table that names them.  Costs in
  rows are then lists or tables too;
- ``reward_max``, ``cost_max``, ``coordinates``: as in :class:`~escapade.model.CMDP`;
- ``about``: a sentence for people.

What is wrong is refused by its key and place: ``transitions[3].next: expected
probabilities that sum to 1, found a sum of 0.9``.  A key that does not exist is wrong
too, as it is more likely misspelt than meant for somebody else.  What
:func:`write_description` writes, :func:`read_description` reads back equal, bit for
bit.
"""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from escapade.errors import InvalidFileError, InvalidInputError, refusal
from escapade.model.cmdp import CMDP
from escapade.model.files import write_atomically

__all__ = [
    "Description",
    "describe",
    "parse_description",
    "read_description",
    "write_description",
]

_KEYS = (
    "about",
    "discount",
    "budget",
    "states",
    "actions",
    "start",
    "reward_max",
    "cost_max",
    "coordinates",
    "defaults",
    "transitions",
)
_ROW = ("state", "action", "next", "reward", "cost")
_FRACTION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*/\s*(\d+(?:\.\d+)?)\s*")
_WHOLE = re.compile(r"0|[1-9][0-9]{0,9}")
_PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]+")
_REST = "rest"
_TOLERANCE = 1e-8  # of a sum of probabilities, as everywhere in the model
_MOST = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """A CMDP with the words that came with it.

    Attributes
    ----------
    cmdp
        The problem.
    cost_names
        Names of the cost channels, if the budget names them.
    about
        What the plant is, in a sentence; may be empty.
    """

    cmdp: CMDP
    cost_names: tuple[str, ...] | None = None
    about: str = ""


# -- files ---------------------------------------------------------------------------


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


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


# -- reading -------------------------------------------------------------------------


def parse_description(document: Mapping[str, Any]) -> Description:
    """Read a plant description that has been parsed: tables, lists, strings, numbers.

    Examples
    --------
    >>> parse_description(
    ...     {
    ...         "discount": 0.9,
    ...         "budget": 1.0,
    ...         "transitions": [["here", "wait", "here", 0.5, 0.1]],
    ...     }
    ... ).cmdp
    CMDP(1 states, 1 actions, 1 pairs, 1 cost, discount 0.9, budget 1)
    """
    if not isinstance(document, Mapping):
        raise refusal("file", "a table of keys", _show(document))
    _check_keys("", document, _KEYS, required=("discount", "budget", "transitions"))
    about = document.get("about", "")
    if not isinstance(about, str):
        raise refusal("about", "a string", _show(about))
    discount = _amount("discount", document["discount"])
    if discount >= 1.0:
        raise refusal("discount", "a number in [0, 1)", discount)
    channels, budget = _read_budget(document["budget"])
    defaults = _table("defaults", document.get("defaults", {}))
    _check_keys("defaults.", defaults, ("reward", "cost"))
    otherwise = _Defaults(
        reward=_amount("defaults.reward", defaults.get("reward", 0)),
        cost=(
            channels.read("defaults.cost", defaults["cost"], [0.0] * channels.count)
            if "cost" in defaults
            else [0.0] * channels.count
        ),
    )
    rows = _read_rows(document["transitions"])
    states = _things("state", document.get("states"), rows)
    actions = _things("action", document.get("actions"), rows)
    if states.count > len(rows):  # before anything of that size is made
        states.check_complete(row.find_state(states) for row in rows)
    pairs = _sorted_pairs(rows, states, actions)
    reward_max = document.get("reward_max")
    cost_max = document.get("cost_max")
    arrays = _Arrays(
        reward_max=None if reward_max is None else _amount("reward_max", reward_max),
        cost_max=None if cost_max is None else channels.bounds("cost_max", cost_max),
    )
    for pair in pairs:
        arrays.add(pair, states, channels, otherwise)
    start = document.get("start", states.names[0] if states.names else 0)
    first_pairs = [pair.state for pair in pairs]
    cmdp = CMDP.from_pairs(
        state_ptr=np.searchsorted(first_pairs, np.arange(states.count + 1)),
        pair_action=np.array([pair.action for pair in pairs]),
        row_ptr=np.array(arrays.row_ptr),
        successor=np.array(arrays.successor),
        probability=np.array(arrays.probability),
        reward=np.array(arrays.reward),
        cost=np.array(arrays.cost).T,
        n_actions=actions.count,
        discount=discount,
        budget=budget,
        start=_read_start(start, states),
        reward_max=arrays.reward_max,
        cost_max=arrays.cost_max,
        state_names=states.names,
        action_names=actions.names,
        coordinates=_read_coordinates(document.get("coordinates"), states),
    )
    return Description(cmdp=cmdp, cost_names=channels.names, about=about)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """A row as it stands in the file; ``None`` where it says nothing."""

    key: str
    state: Any
    action: Any
    next: Any
    reward: Any = None
    cost: Any = None

    def find_state(self, states: _Things) -> int:
        return states.find(f"{self.key}.state", self.state)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pair:
    state: int
    action: int
    row: _Row


@dataclass(frozen=True, slots=True, kw_only=True)
class _Defaults:
    reward: float
    cost: list[float]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Things:
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
            if _is_whole(value) and 0 <= value < self.count:
                return int(value)
            raise refusal(key, f"{self._a} in 0..{self.count - 1}", _show(value))
        if isinstance(value, str) and value in self.index:
            return self.index[value]
        expected = f"{self._a} that `{self.kind}s` names"
        if not self.declared:
            expected = f"{self._a} that has a row of its own"
        raise refusal(key, expected, _show(value) + _hint(value, self.index))

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
class _Channels:
    """The costs: how many, and what they are called."""

    count: int
    names: tuple[str, ...] | None
    plain: bool

    def read(self, key: str, value: Any, otherwise: list[float]) -> list[float]:
        """Return one amount a channel; a table may leave some to ``otherwise``."""
        if isinstance(value, Mapping) and self.names is not None:
            _check_keys(f"{key}.", value, self.names)
            return [
                _amount(f"{key}.{_key(name)}", value[name]) if name in value else usual
                for name, usual in zip(self.names, otherwise, strict=True)
            ]
        if isinstance(value, list) and not self.plain:
            if len(value) != self.count:
                raise refusal(key, f"{self.count} numbers, one a budget", _show(value))
            return [_amount(f"{key}[{k}]", v) for k, v in enumerate(value)]
        if self.count == 1 and not isinstance(value, Mapping | list):
            return [_amount(key, value)]
        expected = "a number" if self.count == 1 else f"a list of {self.count} numbers"
        if self.names is not None:
            expected += f" or a table with the keys {', '.join(self.names)}"
        raise refusal(key, expected, _show(value))

    def bounds(self, key: str, value: Any) -> list[float]:
        """Return one bound a channel; a number is meant for all."""
        if not isinstance(value, Mapping | list):
            return [_amount(key, value)] * self.count
        if isinstance(value, Mapping) and self.names is not None:
            _check_keys(f"{key}.", value, self.names, required=self.names)
        return self.read(key, value, [0.0] * self.count)


class _Arrays:
    """What a CMDP is built from, as it grows pair by pair."""

    def __init__(
        self, *, reward_max: float | None, cost_max: list[float] | None
    ) -> None:
        self.reward_max = reward_max
        self.cost_max = cost_max
        self.row_ptr = [0]
        self.successor: list[int] = []
        self.probability: list[float] = []
        self.reward: list[float] = []
        self.cost: list[list[float]] = []

    def add(
        self, pair: _Pair, states: _Things, channels: _Channels, otherwise: _Defaults
    ) -> None:
        row = pair.row
        chances = _read_chances(f"{row.key}.next", row.next, states)
        reward, cost = otherwise.reward, otherwise.cost
        if row.reward is not None:
            reward = _amount(f"{row.key}.reward", row.reward)
        if row.cost is not None:
            cost = channels.read(f"{row.key}.cost", row.cost, otherwise.cost)
        if self.reward_max is not None and reward > self.reward_max:
            raise refusal(
                f"{row.key}.reward", f"at most reward_max = {self.reward_max}", reward
            )
        for k, bound in enumerate(self.cost_max or []):
            if cost[k] > bound:
                label = f" of cost {channels.names[k]}" if channels.names else ""
                raise refusal(
                    f"{row.key}.cost", f"at most cost_max = {bound}{label}", cost[k]
                )
        for state in sorted(chances):
            self.successor.append(state)
            self.probability.append(chances[state])
        self.row_ptr.append(len(self.successor))
        self.reward.append(reward)
        self.cost.append(cost)


def _read_budget(value: Any) -> tuple[_Channels, list[float]]:
    if isinstance(value, Mapping):
        if not value:
            raise refusal("budget", "at least one cost", "an empty table")
        channels = _Channels(count=len(value), names=tuple(value), plain=False)
        return channels, [
            _amount(f"budget.{_key(name)}", v) for name, v in value.items()
        ]
    if isinstance(value, list):
        if not value:
            raise refusal("budget", "at least one number", "an empty list")
        channels = _Channels(count=len(value), names=None, plain=False)
        return channels, [_amount(f"budget[{k}]", v) for k, v in enumerate(value)]
    return _Channels(count=1, names=None, plain=True), [_amount("budget", value)]


def _read_rows(value: Any) -> list[_Row]:
    if not isinstance(value, list):
        raise refusal("transitions", "a list of rows", _show(value))
    if not value:
        raise refusal("transitions", "at least one row", "an empty list")
    rows = []
    for index, row in enumerate(value):
        key = f"transitions[{index}]"
        if isinstance(row, Mapping):
            _check_keys(f"{key}.", row, _ROW, required=_ROW[:3])
            fields: dict[str, Any] = dict(row)
        elif isinstance(row, list) and 3 <= len(row) <= 5:
            fields = dict(zip(_ROW, row, strict=False))
        else:
            raise refusal(
                key, "[state, action, next, reward, cost] or a table", _show(row)
            )
        rows.append(_Row(key=key, **fields))
    return rows


def _things(kind: str, value: Any, rows: list[_Row]) -> _Things:
    """Read ``states`` or ``actions``, or gather them from the rows."""
    key = f"{kind}s"
    if value is None:
        return _gathered(kind, rows)
    if _is_whole(value):
        if not 1 <= value <= _MOST:
            raise refusal(key, f"a number in 1..{_MOST}", _show(value))
        return _Things(kind=kind, count=int(value), names=None, index={}, declared=True)
    if not isinstance(value, list) or not value:
        raise refusal(key, "a list of names, or how many there are", _show(value))
    index: dict[str, int] = {}
    for k, name in enumerate(value):
        if not isinstance(name, str):
            raise refusal(f"{key}[{k}]", "a name (a string)", _show(name))
        if name in index:
            raise refusal(
                f"{key}[{k}]", "different names", f"{name!r}, as {key}[{index[name]}]"
            )
        index[name] = k
    return _Things(
        kind=kind, count=len(index), names=tuple(index), index=index, declared=True
    )


def _gathered(kind: str, rows: list[_Row]) -> _Things:
    numbered = _is_whole(getattr(rows[0], kind))
    wanted = "a whole number, as in the first row" if numbered else "a name (a string)"
    index: dict[str, int] = {}
    highest = 0
    for row in rows:
        value = getattr(row, kind)
        right = _is_whole(value) if numbered else isinstance(value, str)
        if not right or (numbered and not 0 <= value < _MOST):
            raise refusal(f"{row.key}.{kind}", wanted, _show(value))
        if numbered:
            highest = max(highest, int(value))
        else:
            index.setdefault(value, len(index))
    return _Things(
        kind=kind,
        count=highest + 1 if numbered else len(index),
        names=None if numbered else tuple(index),
        index=index,
        declared=False,
    )


def _sorted_pairs(rows: list[_Row], states: _Things, actions: _Things) -> list[_Pair]:
    """Return the rows in the order of their states and actions, each pair once."""
    places: dict[tuple[int, int], _Row] = {}
    for row in rows:
        place = (
            row.find_state(states),
            actions.find(f"{row.key}.action", row.action),
        )
        if place in places:
            raise refusal(
                row.key,
                "one row for each action in a state",
                f"{_show(row.state)}, {_show(row.action)} again, "
                f"after {places[place].key}",
            )
        places[place] = row
    states.check_complete(state for state, _ in places)
    return [
        _Pair(state=state, action=action, row=places[state, action])
        for state, action in sorted(places)
    ]


def _read_chances(key: str, value: Any, states: _Things) -> dict[int, float]:
    """Return the probability of each state in a table, or of the one state named."""
    if not isinstance(value, Mapping):
        return {states.find(key, value): 1.0}
    chances: dict[int, float] = {}
    rest = None
    for name, number in value.items():
        state = states.find(key, name, as_key=True)
        if number == _REST:
            if rest is not None:
                raise refusal(key, 'one "rest"', "two")
            rest = state
        else:
            chances[state] = _amount(f"{key}.{_key(name)}", number)
    total = math.fsum(chances.values())
    if rest is not None and total <= 1.0 + _TOLERANCE:
        chances[rest] = max(1.0 - total, 0.0)
    elif rest is not None or abs(total - 1.0) > _TOLERANCE:
        expected = "at most 1" if rest is not None else "1"
        raise refusal(
            key, f"probabilities that sum to {expected}", f"a sum of {total:.10g}"
        )
    return chances


def _read_start(value: Any, states: _Things) -> list[float]:
    start = [0.0] * states.count
    for state, chance in _read_chances("start", value, states).items():
        start[state] = chance
    return start


def _read_coordinates(value: Any, states: _Things) -> list[list[float]] | None:
    if value is None:
        return None
    if isinstance(value, Mapping):
        places = {
            states.find("coordinates", name, as_key=True): (
                f"coordinates.{_key(name)}",
                v,
            )
            for name, v in value.items()
        }
        if len(places) != states.count:
            raise refusal(
                "coordinates", f"all {states.count} states", f"{len(places)} of them"
            )
        listed = [places[state] for state in range(states.count)]
    elif isinstance(value, list) and len(value) == states.count:
        listed = [(f"coordinates[{k}]", v) for k, v in enumerate(value)]
    else:
        raise refusal("coordinates", f"one a state, {states.count}", _show(value))
    result = []
    for key, point in listed:
        if not isinstance(point, list) or len(point) != len(listed[0][1]):
            raise refusal(key, "a list of numbers, of one length", _show(point))
        result.append([_number(f"{key}[{k}]", v) for k, v in enumerate(point)])
    return result


# -- single values -------------------------------------------------------------------


def _check_keys(
    prefix: str,
    table: Mapping[str, Any],
    known: Sequence[str],
    required: Sequence[str] = (),
) -> None:
    for key in table:
        if key not in known:
            raise refusal(
                f"{prefix}{_key(key)}",
                f"one of the keys {', '.join(known)}",
                "a key of that name" + _hint(key, known),
            )
    for key in required:
        if key not in table:
            raise refusal(f"{prefix}{key}", "to be given", "nothing")


def _key(name: Any) -> str:
    """Return a key as TOML has it: in quotes if it is not plain."""
    return str(name) if _PLAIN_KEY.fullmatch(str(name)) else _toml(str(name))


def _table(key: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise refusal(key, "a table", _show(value))
    return value


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _number(key: str, value: Any) -> float:
    """Return a finite number, which may be written as a fraction in a string."""
    number = math.nan
    if isinstance(value, str) and (parts := _FRACTION.fullmatch(value)):
        below = float(parts[2])
        number = float(parts[1]) / below if below else math.nan
    elif isinstance(value, float) or (
        _is_whole(value) and abs(value) <= 10**300  # beyond, float would overflow
    ):
        number = float(value)
    if not math.isfinite(number):
        raise refusal(key, 'a finite number, or a fraction like "1/3"', _show(value))
    return number


def _amount(key: str, value: Any) -> float:
    number = _number(key, value)
    if number < 0.0:
        raise refusal(key, "a number of at least 0", number)
    return number


def _show(value: Any) -> str:
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


def _hint(value: Any, known: Iterable[str]) -> str:
    close = get_close_matches(value, list(known), n=1) if isinstance(value, str) else []
    return f" (did you mean {close[0]!r}?)" if close else ""


# -- writing -------------------------------------------------------------------------


def describe(
    cmdp: CMDP, *, cost_names: Sequence[str] | None = None, about: str = ""
) -> dict[str, Any]:
    """Return the description of a problem, as tables, lists, strings and numbers.

    Parameters
    ----------
    cmdp, cost_names, about
        As in :func:`write_description`.
    """
    states = _written_names("state_names", cmdp.state_names, cmdp.n_states)
    actions = _written_names("action_names", cmdp.action_names, cmdp.n_actions)
    if cost_names is not None:
        if len(cost_names) != cmdp.n_costs:
            raise refusal("cost_names", f"{cmdp.n_costs} names", f"{len(cost_names)}")
        cost_names = _written_names("cost_names", cost_names, cmdp.n_costs)

    def amounts(values: Any) -> Any:
        if cost_names is not None:
            return dict(zip(cost_names, values.tolist(), strict=True))
        return values.tolist() if cmdp.n_costs > 1 else float(values[0])

    def chances(found: Any, probability: Any) -> Any:
        if len(found) == 1 and probability[0] == 1.0:
            return states[found[0]]
        return {
            str(states[state]): float(p)
            for state, p in zip(found, probability, strict=True)
        }

    document: dict[str, Any] = {"about": _encodable("about", about)} if about else {}
    document["discount"] = cmdp.discount
    document["budget"] = amounts(cmdp.budget)
    document["states"] = states if cmdp.state_names else cmdp.n_states
    document["actions"] = actions if cmdp.action_names else cmdp.n_actions
    possible = np.flatnonzero(cmdp.start)
    document["start"] = chances(possible, cmdp.start[possible])
    document["reward_max"] = cmdp.reward_max
    document["cost_max"] = amounts(cmdp.cost_max)
    if cmdp.coordinates is not None:
        document["coordinates"] = cmdp.coordinates.tolist()
    document["transitions"] = [
        [
            states[cmdp.pair_state[pair]],
            actions[cmdp.pair_action[pair]],
            chances(
                cmdp.successor[cmdp.row_ptr[pair] : cmdp.row_ptr[pair + 1]],
                cmdp.probability[cmdp.row_ptr[pair] : cmdp.row_ptr[pair + 1]],
            ),
            float(cmdp.reward[pair]),
            amounts(cmdp.cost[:, pair]),
        ]
        for pair in range(cmdp.n_pairs)
    ]
    return document


def _written_names(argument: str, names: Sequence[str] | None, count: int) -> list[Any]:
    """Return what the file calls them: their names, or their numbers."""
    if names is None:
        return list(range(count))
    seen: dict[str, int] = {}
    for k, name in enumerate(names):
        if _encodable(argument, name) in seen:
            raise refusal(argument, "different names", f"{name!r} twice", f"{k}")
        seen[name] = k
    return list(names)


def _encodable(argument: str, text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise refusal(argument, "text that UTF-8 can hold", repr(text)) from None
    return text


def _render(document: Mapping[str, Any], line: str, value: Any) -> list[str]:
    """Write each key on a line of its own, and each row of a list of rows too."""
    lines = []
    for key, entry in document.items():
        text = value(entry)
        if isinstance(entry, list) and entry and isinstance(entry[0], list):
            inner = ",\n".join(f"  {value(row)}" for row in entry)
            text = f"[\n{inner}\n]"
        lines.append(line.format(key=key, text=text))
    return lines


def _write_json(document: Mapping[str, Any]) -> str:
    def value(entry: Any) -> str:
        return json.dumps(entry, ensure_ascii=False, allow_nan=False)

    lines = _render(document, '"{key}": {text}', value)
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _write_toml(document: Mapping[str, Any]) -> str:
    return "\n".join(_render(document, "{key} = {text}", _toml)) + "\n"


def _toml(entry: Any) -> str:
    if isinstance(entry, str):
        # JSON's escapes are TOML's, but for one character that JSON leaves as it is
        return json.dumps(entry, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(entry, list):
        return f"[{', '.join(map(_toml, entry))}]"
    if isinstance(entry, Mapping):
        inner = ", ".join(f"{_key(k)} = {_toml(v)}" for k, v in entry.items())
        return f"{{{inner}}}"
    return repr(entry)


_WRITERS = {".toml": _write_toml, ".json": _write_json}
