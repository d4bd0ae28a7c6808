"""Gymnasium's transition tables: ``table[state][action]`` lists the outcomes.

An outcome is ``(probability, next_state, reward, terminated)``.  Two things are missing
from such a table and have no default here.  Costs: an array, or a function of
``(state, action, next_state, reward)``.  And what comes after a terminal outcome, as a
CMDP lives for ever:

``"reset"``
    the next life begins at once: a terminal outcome leads to the start distribution;
``"absorb"``
    nothing more happens: the state that a terminal outcome enters keeps the agent, at
    no reward and no cost.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
import scipy.sparse as sp

from escapade.errors import refusal
from escapade.model.arguments import read_numbers, read_start
from escapade.model.cmdp import CMDP
from escapade.typing import ArrayLike, FloatArray

__all__ = ["CostFunction", "Table", "from_table"]

Table: TypeAlias = (
    Mapping[int, Mapping[int, Sequence[Any]]] | Sequence[Mapping[int, Sequence[Any]]]
)
CostFunction: TypeAlias = Callable[[int, int, int, float], float]


def from_table(
    table: Table,
    *,
    cost: CostFunction | ArrayLike,
    on_done: Literal["reset", "absorb"],
    discount: float,
    budget: ArrayLike,
    start: ArrayLike = 0,
    reward_max: float | None = None,
    cost_max: ArrayLike | None = None,
    state_names: Sequence[str] | None = None,
    action_names: Sequence[str] | None = None,
    coordinates: ArrayLike | None = None,
) -> CMDP:
    """Build a CMDP from a Gymnasium-style table such as ``env.unwrapped.P``.

    Parameters
    ----------
    table
        ``table[state][action]`` is a list of ``(probability, next_state, reward,
        terminated)``; states and actions are numbered from 0.  A state may lack
        actions; those are masked.
    cost
        Mean costs as arrays (as for :class:`CMDP`), or a function of ``(state, action,
        next_state, reward)`` that is averaged over the outcomes.
    on_done
        What a terminal outcome leads to; see the module's text.
    discount, budget, start, reward_max, cost_max
        As for :class:`CMDP`.
    state_names, action_names, coordinates
        As for :class:`CMDP`.
    """
    if on_done not in ("reset", "absorb"):
        raise refusal("on_done", "'reset' or 'absorb'", repr(on_done))
    outcomes, n_states, n_actions = _outcomes(table)
    state, action, probability, following, reward, done = outcomes
    begin = read_start(start, n_states)
    given = callable(cost)
    charged = np.zeros(len(state))
    if callable(cost):
        charged = np.array(
            [
                float(cost(int(s), int(a), int(n), float(r)))
                for s, a, n, r in zip(state, action, following, reward, strict=True)
            ]
        )
    row = state * n_actions + action
    n_rows = n_states * n_actions

    def averaged(values: FloatArray) -> FloatArray:
        means = np.bincount(row, weights=probability * values, minlength=n_rows)
        grid: FloatArray = means.astype(np.float64).reshape(n_states, n_actions)
        return grid

    rewards, costs = averaged(reward), averaged(charged)
    if on_done == "absorb":
        closing = _closing_states(state, following, done, begin)
        stays = closing[state]
        following = np.where(stays, state, following)
        rewards[closing] = 0.0
        costs[closing] = 0.0
        ends = np.zeros(len(state), dtype=np.bool_)
    else:
        ends = done
    matrix = sp.coo_array(
        (probability[~ends], (row[~ends], following[~ends])), shape=(n_rows, n_states)
    ).tocsr()
    if ends.any():
        ending = np.bincount(row[ends], weights=probability[ends], minlength=n_rows)
        restarting = sp.csr_array(ending[:, np.newaxis]) @ sp.csr_array(
            begin[np.newaxis]
        )
        matrix = sp.csr_array(matrix + restarting)
    available = np.zeros(n_rows, dtype=np.bool_)
    available[row] = True
    if not given:
        costs = read_numbers("cost", cost)  # type: ignore[arg-type]
        if on_done == "absorb" and costs.ndim >= 2:
            costs[..., closing, :] = 0.0
    return CMDP(
        sp.csr_array(matrix),
        rewards,
        costs,
        discount=discount,
        budget=budget,
        start=begin,
        reward_max=reward_max,
        cost_max=cost_max,
        available=available.reshape(n_states, n_actions),
        state_names=state_names,
        action_names=action_names,
        coordinates=coordinates,
    )


def _outcomes(table: Table) -> tuple[tuple[Any, ...], int, int]:
    """Return the columns of the table, and how many states and actions it has."""
    n_states = len(table)
    rows: list[tuple[int, int, float, int, float, bool]] = []
    n_actions = 0
    for state in range(n_states):
        try:
            actions = table[state]
        except (KeyError, IndexError):
            raise refusal(
                "table", f"states 0..{n_states - 1}", "none", f"state {state}"
            ) from None
        for action, outcomes in actions.items():
            where = f"state {state}, action {action}"
            if isinstance(action, bool) or not isinstance(action, int | np.integer):
                raise refusal("table", "actions numbered from 0", repr(action), where)
            n_actions = max(n_actions, int(action) + 1)
            for outcome in outcomes:
                if len(outcome) != 4:
                    raise refusal(
                        "table",
                        "outcomes (probability, next_state, reward, terminated)",
                        repr(outcome),
                        where,
                    )
                probability, following, reward, done = outcome
                if not 0 <= following < n_states:
                    raise refusal(
                        "table", f"next states 0..{n_states - 1}", following, where
                    )
                rows.append(
                    (
                        state,
                        int(action),
                        float(probability),
                        int(following),
                        float(reward),
                        bool(done),
                    )
                )
    if not rows:
        raise refusal("table", "at least one outcome", "none")
    columns = tuple(np.array(column) for column in zip(*rows, strict=True))
    return columns, n_states, n_actions


def _closing_states(state: Any, following: Any, done: Any, begin: FloatArray) -> Any:
    """Return the mask of states that absorb; refuse one that is also passed through."""
    closing = np.zeros(begin.size, dtype=np.bool_)
    closing[following[done]] = True
    through = ~done & closing[following] & ~closing[state]
    if through.any():
        place = int(np.argmax(through))
        raise refusal(
            "on_done",
            "'reset', as a state is entered both at the end and on the way",
            "'absorb'",
            f"state {following[place]}",
        )
    return closing
