"""From a problem to its description, and the text of one in TOML or JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from escapade.errors import refusal
from escapade.model.cmdp import CMDP
from escapade.model.description.values import show_key, toml_string

__all__ = ["describe", "render_json", "render_toml"]


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
    indent = line[: len(line) - len(line.lstrip())]
    for key, entry in document.items():
        text = value(entry)
        if isinstance(entry, list) and entry and isinstance(entry[0], list):
            inner = ",\n".join(f"{indent}  {value(row)}" for row in entry)
            text = f"[\n{inner}\n{indent}]"
        lines.append(line.format(key=key, text=text))
    return lines


def render_json(document: Mapping[str, Any]) -> str:
    """Return the text of a description in JSON."""

    def value(entry: Any) -> str:
        return json.dumps(entry, ensure_ascii=False, allow_nan=False)

    lines = _render(document, '  "{key}": {text}', value)
    return "{\n" + ",\n".join(lines) + "\n}\n"


def render_toml(document: Mapping[str, Any]) -> str:
    """Return the text of a description in TOML."""
    return "\n".join(_render(document, "{key} = {text}", _toml)) + "\n"


def _toml(entry: Any) -> str:
    if isinstance(entry, str):
        return toml_string(entry)
    if isinstance(entry, list):
        return f"[{', '.join(map(_toml, entry))}]"
    if isinstance(entry, Mapping):
        inner = ", ".join(f"{show_key(k)} = {_toml(v)}" for k, v in entry.items())
        return f"{{{inner}}}"
    return repr(entry)
