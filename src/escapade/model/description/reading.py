"""From a parsed description to the problem that it describes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from escapade.errors import refusal
from escapade.model.cmdp import CMDP
from escapade.model.description.values import (
    check_keys,
    read_amount,
    read_number,
    read_table,
    show,
    show_key,
)
from escapade.model.description.words import (
    Channels,
    Row,
    Things,
    read_budget,
    read_things,
)

__all__ = ["Description", "parse_description"]

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
_REST = "rest"
_TOLERANCE = 1e-8  # of a sum of probabilities, as everywhere in the model


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
        raise refusal("file", "a table of keys", show(document))
    check_keys("", document, _KEYS, required=("discount", "budget", "transitions"))
    about = document.get("about", "")
    if not isinstance(about, str):
        raise refusal("about", "a string", show(about))
    discount = read_amount("discount", document["discount"])
    if discount >= 1.0:
        raise refusal("discount", "a number in [0, 1)", discount)
    channels, budget = read_budget(document["budget"])
    defaults = read_table("defaults", document.get("defaults", {}))
    check_keys("defaults.", defaults, ("reward", "cost"))
    nothing = [0.0] * channels.count
    reward_max = document.get("reward_max")
    cost_max = document.get("cost_max")
    rows = _read_rows(document["transitions"])
    reader = _Reader(
        states=read_things("state", document.get("states"), rows),
        actions=read_things("action", document.get("actions"), rows),
        channels=channels,
        default_reward=read_amount("defaults.reward", defaults.get("reward", 0)),
        default_cost=(
            channels.read("defaults.cost", defaults["cost"], nothing)
            if "cost" in defaults
            else nothing
        ),
        reward_max=None
        if reward_max is None
        else read_amount("reward_max", reward_max),
        cost_max=None if cost_max is None else channels.bounds("cost_max", cost_max),
    )
    states = reader.states
    if states.count > len(rows):  # before anything of that size is made
        states.check_complete(row.find_state(states) for row in rows)
    pairs = _read_pairs(rows, reader)
    owners = [pair.state for pair in pairs]
    lengths = [len(pair.chances) for pair in pairs]
    entries = [entry for pair in pairs for entry in sorted(pair.chances.items())]
    start = document.get("start", states.names[0] if states.names else 0)
    cmdp = CMDP.from_pairs(
        state_ptr=np.searchsorted(owners, np.arange(states.count + 1)),
        pair_action=np.array([pair.action for pair in pairs]),
        row_ptr=np.concatenate([[0], np.cumsum(lengths)]),
        successor=np.array([state for state, _ in entries]),
        probability=np.array([chance for _, chance in entries]),
        reward=np.array([pair.reward for pair in pairs]),
        cost=np.array([pair.cost for pair in pairs]).T,
        n_actions=reader.actions.count,
        discount=discount,
        budget=budget,
        start=_read_start(start, states),
        reward_max=reader.reward_max,
        cost_max=reader.cost_max,
        state_names=states.names,
        action_names=reader.actions.names,
        coordinates=_read_coordinates(document.get("coordinates"), states),
    )
    return Description(cmdp=cmdp, cost_names=channels.names, about=about)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pair:
    """What one row says about its pair, in numbers."""

    state: int
    action: int
    chances: dict[int, float]
    reward: float
    cost: list[float]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reader:
    """What the rest of the file says about how a row is to be read."""

    states: Things
    actions: Things
    channels: Channels
    default_reward: float
    default_cost: list[float]
    reward_max: float | None
    cost_max: list[float] | None

    def read(self, row: Row) -> _Pair:
        reward, cost = self.default_reward, self.default_cost
        state = row.find_state(self.states)
        action = self.actions.find(f"{row.key}.action", row.action)
        chances = _read_chances(f"{row.key}.next", row.next, self.states)
        if row.reward is not None:
            reward = read_amount(f"{row.key}.reward", row.reward)
        if row.cost is not None:
            cost = self.channels.read(f"{row.key}.cost", row.cost, cost)
        if self.reward_max is not None and reward > self.reward_max:
            raise refusal(
                f"{row.key}.reward", f"at most reward_max = {self.reward_max}", reward
            )
        names = self.channels.names
        for k, bound in enumerate(self.cost_max or []):
            if cost[k] > bound:
                label = f" of cost {names[k]}" if names else ""
                raise refusal(
                    f"{row.key}.cost", f"at most cost_max = {bound}{label}", cost[k]
                )
        return _Pair(
            state=state, action=action, chances=chances, reward=reward, cost=cost
        )


def _read_rows(value: Any) -> list[Row]:
    if not isinstance(value, list):
        raise refusal("transitions", "a list of rows", show(value))
    if not value:
        raise refusal("transitions", "at least one row", "an empty list")
    rows = []
    for index, row in enumerate(value):
        key = f"transitions[{index}]"
        if isinstance(row, Mapping):
            check_keys(f"{key}.", row, _ROW, required=_ROW[:3])
            fields: dict[str, Any] = dict(row)
        elif isinstance(row, list) and 3 <= len(row) <= 5:
            fields = dict(zip(_ROW, row, strict=False))
        else:
            raise refusal(
                key, "[state, action, next, reward, cost] or a table", show(row)
            )
        rows.append(Row(key=key, **fields))
    return rows


def _read_pairs(rows: list[Row], reader: _Reader) -> list[_Pair]:
    """Return what the rows say, by state and action; each pair once."""
    pairs: dict[tuple[int, int], _Pair] = {}
    first: dict[tuple[int, int], str] = {}
    for row in rows:
        pair = reader.read(row)
        place = pair.state, pair.action
        if place in pairs:
            raise refusal(
                row.key,
                "one row for each action in a state",
                f"{show(row.state)}, {show(row.action)} again, after {first[place]}",
            )
        pairs[place] = pair
        first[place] = row.key
    reader.states.check_complete(state for state, _ in pairs)
    return [pairs[place] for place in sorted(pairs)]


def _read_chances(key: str, value: Any, states: Things) -> dict[int, float]:
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
            chances[state] = read_amount(f"{key}.{show_key(name)}", number)
    total = math.fsum(chances.values())
    if rest is not None and total <= 1.0 + _TOLERANCE:
        chances[rest] = max(1.0 - total, 0.0)
    elif rest is not None or abs(total - 1.0) > _TOLERANCE:
        expected = "at most 1" if rest is not None else "1"
        raise refusal(
            key, f"probabilities that sum to {expected}", f"a sum of {total:.10g}"
        )
    return chances


def _read_start(value: Any, states: Things) -> list[float]:
    start = [0.0] * states.count
    for state, chance in _read_chances("start", value, states).items():
        start[state] = chance
    return start


def _read_coordinates(value: Any, states: Things) -> list[list[float]] | None:
    if value is None:
        return None
    if isinstance(value, Mapping):
        places = {
            states.find("coordinates", name, as_key=True): (
                f"coordinates.{show_key(name)}",
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
        raise refusal("coordinates", f"one a state, {states.count}", show(value))
    result = []
    for key, point in listed:
        if not isinstance(point, list) or len(point) != len(listed[0][1]):
            raise refusal(key, "a list of numbers, of one length", show(point))
        result.append([read_number(f"{key}[{k}]", v) for k, v in enumerate(point)])
    return result
