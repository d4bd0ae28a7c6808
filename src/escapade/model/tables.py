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

A table says what every outcome pays, not only what is paid on average, so
``reward_max`` and ``cost_max`` default to the largest *sample* here, and each sample
has to be at least 0.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import scipy.sparse as sp

from escapade.errors import InvalidInputError, refusal
from escapade.model.arguments import (
    check_range,
    read_costs,
    read_number,
    read_start,
)
from escapade.model.cmdp import CMDP
from escapade.model.layout import Pairs, Transitions, check_transitions
from escapade.typing import ArrayLike, BoolArray, FloatArray, IntArray

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
        As for :class:`CMDP`, but for the defaults of the maxima.
    state_names, action_names, coordinates
        As for :class:`CMDP`.
    """
    if on_done not in ("reset", "absorb"):
        raise refusal("on_done", "'reset' or 'absorb'", repr(on_done))
    told = _read(table)
    begin = read_start(start, told.n_states)
    pairs = Pairs.from_mask(told.available)
    charged = told.charge(cost) if callable(cost) else None
    following, going_on = told.following, ~told.done
    lively: FloatArray = np.ones(pairs.n_pairs)
    if on_done == "absorb":
        closing = _closing_states(told, begin)
        following = np.where(closing[told.state], told.state, following)
        going_on = np.ones(told.state.size, dtype=np.bool_)
        lively = np.where(closing[pairs.pair_state], 0.0, 1.0)
    row = pairs.state_ptr[told.state] + _place(told)
    matrix = sp.csr_array(
        sp.coo_array(
            (told.probability[going_on], (row[going_on], following[going_on])),
            shape=(pairs.n_pairs, told.n_states),
        )
    )
    if not going_on.all():
        ending = np.bincount(
            row[~going_on], weights=told.probability[~going_on], minlength=pairs.n_pairs
        )
        restarting = sp.csr_array(ending[:, np.newaxis]) @ sp.csr_array(
            begin[np.newaxis]
        )
        matrix = sp.csr_array(matrix + restarting)
    rows = check_transitions(
        pairs,
        Transitions(
            row_ptr=matrix.indptr.astype(np.int64),
            successor=matrix.indices.astype(np.int32),
            probability=np.asarray(matrix.data, dtype=np.float64),
        ),
        argument="table",
    )

    def averaged(samples: FloatArray) -> FloatArray:
        weights = told.probability * samples
        means = np.bincount(row, weights=weights, minlength=pairs.n_pairs)
        return np.asarray(means * lively, dtype=np.float64)

    if charged is None:
        costs = read_costs(cost, pairs, budget, "cost")  # type: ignore[arg-type]
        for channel in costs:
            check_range("cost", channel, np.inf, pairs)
        costs = costs * lively
    else:
        costs = averaged(charged)[np.newaxis]
        if cost_max is None:  # rounding may lift a mean above the largest sample
            cost_max = max(_largest(told, charged), float(costs.max()))
    rewards = averaged(told.reward)
    if reward_max is None:
        reward_max = max(_largest(told, told.reward), float(rewards.max()))
    return CMDP.from_pairs(
        state_ptr=pairs.state_ptr,
        pair_action=pairs.pair_action,
        row_ptr=rows.row_ptr,
        successor=rows.successor,
        probability=rows.probability,
        reward=rewards,
        cost=costs,
        n_actions=pairs.n_actions,
        discount=discount,
        budget=budget,
        start=begin,
        reward_max=reward_max,
        cost_max=cost_max,
        state_names=state_names,
        action_names=action_names,
        coordinates=coordinates,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Told:
    """What a table tells, one entry an outcome."""

    state: IntArray
    action: IntArray
    probability: FloatArray
    following: IntArray
    reward: FloatArray
    done: BoolArray
    n_states: int
    n_actions: int

    @property
    def available(self) -> BoolArray:
        mask = np.zeros((self.n_states, self.n_actions), dtype=np.bool_)
        mask[self.state, self.action] = True
        return mask

    def name(self, outcome: int) -> str:
        return (
            f"state {self.state[outcome]}, action {self.action[outcome]}, "
            f"next state {self.following[outcome]}"
        )

    def charge(self, cost: CostFunction) -> FloatArray:
        """Return the cost of every outcome."""
        expected = "a function of (state, action, next_state, reward)"
        try:
            inspect.signature(cost).bind(0, 0, 0, 0.0)
        except ValueError:
            pass  # a builtin does not say what it takes: calling it will
        except TypeError as error:
            raise refusal("cost", expected, f"another ({error})") from None
        charged = np.empty(self.state.size)
        for outcome in range(self.state.size):
            amount = cost(
                int(self.state[outcome]),
                int(self.action[outcome]),
                int(self.following[outcome]),
                float(self.reward[outcome]),
            )
            try:
                charged[outcome] = read_number("cost", amount)
            except InvalidInputError:
                raise refusal(
                    "cost",
                    "a function that returns a number",
                    repr(amount),
                    self.name(outcome),
                ) from None
        self.check_amounts("cost", charged)
        return charged

    def check_amounts(self, argument: str, amounts: FloatArray) -> None:
        bad = ~((amounts >= 0.0) & np.isfinite(amounts))
        if bad.any():
            outcome = int(np.argmax(bad))
            raise refusal(
                argument,
                "finite amounts of at least 0",
                float(amounts[outcome]),
                self.name(outcome),
            )


def _largest(told: _Told, samples: FloatArray) -> float:
    return float(samples[told.probability > 0.0].max(initial=0.0))


def _place(told: _Told) -> IntArray:
    """Return the place of each outcome's action among those of its state."""
    order = np.cumsum(told.available, axis=1) - 1
    place: IntArray = order[told.state, told.action]
    return place


def _read(table: Table) -> _Told:
    try:
        n_states = len(table)
    except TypeError:
        raise refusal(
            "table", "table[state][action]", f"a {type(table).__name__}"
        ) from None
    rows: list[tuple[int, int, float, int, float, bool]] = []
    n_actions = 0
    for state in range(n_states):
        try:
            actions: Any = table[state]
        except (KeyError, IndexError):
            raise refusal(
                "table", f"states 0..{n_states - 1}", "none", f"state {state}"
            ) from None
        if not isinstance(actions, Mapping | list | tuple):
            raise refusal(
                "table",
                "a dictionary of actions",
                f"a {type(actions).__name__}",
                f"state {state}",
            )
        listed = actions.items() if isinstance(actions, Mapping) else enumerate(actions)
        for action, outcomes in listed:
            where = f"state {state}, action {action}"
            whole = isinstance(action, int | np.integer) and not isinstance(
                action, bool
            )
            if not whole or action < 0:
                raise refusal("table", "actions numbered from 0", repr(action), where)
            n_actions = max(n_actions, int(action) + 1)
            if isinstance(outcomes, str) or not isinstance(outcomes, Iterable):
                raise refusal("table", "a list of outcomes", repr(outcomes), where)
            rows += [
                (state, int(action), *_read_outcome(outcome, n_states, where))
                for outcome in outcomes
            ]
        if not rows or rows[-1][0] != state:
            raise refusal("table", "at least one outcome", "none", f"state {state}")
    if not rows:
        raise refusal("table", "at least one state", "none")
    states, acts, probabilities, following, rewards, done = zip(*rows, strict=True)
    told = _Told(
        state=np.array(states),
        action=np.array(acts),
        probability=np.array(probabilities),
        following=np.array(following),
        reward=np.array(rewards),
        done=np.array(done),
        n_states=n_states,
        n_actions=n_actions,
    )
    told.check_amounts("table (probability)", told.probability)
    told.check_amounts("table (reward)", told.reward)
    return told


def _read_outcome(
    outcome: Any, n_states: int, where: str
) -> tuple[float, int, float, bool]:
    expected = "outcomes (probability, next_state, reward, terminated)"
    try:
        probability, following, reward, done = outcome
        chance, target, pay = float(probability), int(following), float(reward)
    except (TypeError, ValueError, OverflowError):
        raise refusal("table", expected, repr(outcome), where) from None
    if target != following or not 0 <= target < n_states:
        raise refusal("table", f"next states 0..{n_states - 1}", following, where)
    return chance, target, pay, bool(done)


def _closing_states(told: _Told, begin: FloatArray) -> BoolArray:
    """Return the mask of states that absorb; refuse one that is also passed through."""
    possible = told.probability > 0.0
    closing = np.zeros(begin.size, dtype=np.bool_)
    closing[told.following[told.done & possible]] = True
    through = possible & ~told.done & closing[told.following] & ~closing[told.state]
    if through.any():
        raise refusal(
            "on_done",
            "'reset', as a state is entered both at the end and on the way",
            "'absorb'",
            f"state {told.following[np.argmax(through)]}",
        )
    return closing
