"""The table of an environment that has one, as a model.

Gymnasium's small environments keep ``P[state][action]``, a list of ``(probability,
next state, reward, terminated)``.  It is read for oracles and audits alone; an agent is
never told.  Ends are turned as in :mod:`escapade.environments.brought`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from escapade.environments.brought import OnDone
from escapade.environments.costs_of import Costs
from escapade.environments.rewards_of import RewardMap
from escapade.errors import refusal
from escapade.model.cmdp import CMDP
from escapade.typing import FloatArray, IntArray

__all__ = ["Entries", "read_entries", "to_model"]


class Entries:
    """The lines of a table: one array a column.

    Attributes
    ----------
    state, action, after, probability, reward, ended
        One entry a line, of equal length.
    n_states, n_actions
        Sizes.
    """

    def __init__(
        self, rows: Sequence[tuple[Any, ...]], *, n_states: int, n_actions: int
    ) -> None:
        columns = list(zip(*rows, strict=True))
        self.state = np.array(columns[0], dtype=np.int64)
        self.action = np.array(columns[1], dtype=np.int64)
        self.probability = np.array(columns[2], dtype=np.float64)
        self.after = np.array(columns[3], dtype=np.int64)
        self.reward = np.array(columns[4], dtype=np.float64)
        self.ended = np.array(columns[5], dtype=np.bool_)
        self.n_states = n_states
        self.n_actions = n_actions


def read_entries(table: Any, *, n_states: int, n_actions: int) -> Entries:
    """Return the lines of ``P[state][action]``, checked for their shape."""
    rows = []
    for state in range(n_states):
        for action in range(n_actions):
            try:
                lines = table[state][action]
            except (KeyError, IndexError, TypeError):
                raise refusal(
                    "P",
                    f"a list for each of {n_states} states and {n_actions} actions",
                    "none",
                    f"state {state}, action {action}",
                ) from None
            for line in lines:
                if not isinstance(line, tuple | list) or len(line) != 4:
                    raise refusal(
                        "P",
                        "lines (probability, next state, reward, terminated)",
                        repr(line),
                        f"state {state}, action {action}",
                    )
                if not 0 <= int(line[1]) < n_states:
                    raise refusal(
                        "P",
                        f"next states in 0..{n_states - 1}",
                        int(line[1]),
                        f"state {state}, action {action}",
                    )
                rows.append((state, action, *line))
    return Entries(rows, n_states=n_states, n_actions=n_actions)


def to_model(
    entries: Entries,
    *,
    costs: Costs,
    rewards: RewardMap,
    start: FloatArray,
    on_done: OnDone,
    discount: float,
    budget: Any,
    names: Mapping[str, Any] | None = None,
) -> CMDP:
    """Return the model in which life goes on after every end.

    Costs are functions of state, action, next state and an empty ``info``.
    """
    n, a = entries.n_states, entries.n_actions
    end = int(on_done == "absorb")
    size = n + end
    paid = np.array(
        [
            costs.of_step(s, act, t, {}, step=i)
            for i, (s, act, t) in enumerate(
                zip(
                    entries.state.tolist(),
                    entries.action.tolist(),
                    entries.after.tolist(),
                    strict=True,
                )
            )
        ]
    )
    earned = entries.reward - rewards.low
    row = entries.state * a + entries.action
    going, ending = ~entries.ended, entries.ended
    shape = (size * a, size)
    table = sp.csr_array(
        sp.coo_array(
            (entries.probability[going], (row[going], entries.after[going])),
            shape=shape,
        )
    )
    mass = _sums(row[ending], entries.probability[ending], size * a)
    if end:
        mass[n * a :] = 1.0  # the end leads to itself
        first = sp.csr_array(([1.0], ([0], [n])), shape=(1, size))
    else:
        first = sp.csr_array(start[np.newaxis])
    table = sp.csr_array(table + sp.csr_array(mass[:, np.newaxis]) @ first)

    def mean(values: FloatArray) -> FloatArray:
        return _sums(row, entries.probability * values, size * a).reshape(size, a)

    reward = mean(earned)
    reward[n:] = -rewards.low
    cost = np.array([mean(channel) for channel in paid.T])
    return CMDP(
        table,
        np.clip(reward, 0.0, rewards.reward_max),
        np.clip(cost, 0.0, costs.cost_max[:, np.newaxis, np.newaxis]),
        discount=discount,
        budget=budget,
        start=np.append(start, np.zeros(end)),
        reward_max=rewards.reward_max,
        cost_max=costs.cost_max,
        **dict(names or {}),
    )


def _sums(row: IntArray, values: FloatArray, rows: int) -> FloatArray:
    """Return the sum of the values of each row."""
    total = np.zeros(rows)
    np.add.at(total, row, values)
    return total
