"""Reading the arguments of a model: what is accepted, in which shapes, and how refused.

Every reader returns a fresh array that the model may own, or raises the refusal that
names the argument and the first place at which it went wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from escapade.errors import refusal
from escapade.model.layout import Pairs, Transitions, read_array
from escapade.typing import ArrayLike, FloatArray, IntArray, Seed

MOST_INDEX = 2**31 - 1
"""The largest number that counts things here: indices are 32-bit integers."""

_ROOM = 2**28
"""Entries of the largest table that a world is built from: 2 GiB of them."""


def read_numbers(
    argument: str, value: ArrayLike, expected: str = "an array of numbers"
) -> FloatArray:
    """Return a fresh float array, or refuse what is not numbers."""
    array = read_array(argument, expected, value)
    if array.dtype.kind not in "fiub":
        found: object = f"dtype {array.dtype}"
        if array.ndim == 0:  # one thing, which can be shown
            found = repr(value)
        raise refusal(argument, expected, found)
    # adding 0 copies, and makes -0 the same as 0 for the fingerprint
    fresh: FloatArray = np.asarray(np.add(array, 0.0, dtype=np.float64))
    return fresh


def read_number(argument: str, value: Any, expected: str = "a number") -> float:
    """Return a single number."""
    array = read_numbers(argument, value, expected)
    if array.ndim != 0:
        raise refusal(argument, expected, f"shape {array.shape}")
    return float(array)


def read_count(
    argument: str, value: Any, least: int = 0, most: int | None = None
) -> int:
    """Return a whole number of at least ``least``, and at most ``most`` if given."""
    expected = f"a whole number of at least {least}"
    if isinstance(value, int) and not isinstance(value, bool):  # of any size
        if value < least:
            raise refusal(argument, expected, value)
    else:
        number = read_number(argument, value, expected)
        if not (np.isfinite(number) and number >= least and number == int(number)):
            raise refusal(argument, expected, number)
    count = int(value)
    if most is not None and count > most:
        raise refusal(argument, f"at most {most}", count)
    return count


def check_room(argument: str, value: object, entries: int) -> None:
    """Refuse a size that asks for tables of more entries than there is room for."""
    if entries > _ROOM:
        raise refusal(
            argument,
            f"a size whose tables have at most {_ROOM} entries",
            f"{value}, with {entries} of them",
        )


def read_generator(argument: str, value: Seed) -> np.random.Generator:
    """Return the generator that a seed stands for, or the generator itself."""
    try:
        return np.random.default_rng(value)
    except (TypeError, ValueError):
        raise refusal(
            argument,
            "a whole number of at least 0, a SeedSequence, a Generator or None",
            repr(value),
        ) from None


def read_rewards(value: ArrayLike, pairs: Pairs, argument: str = "R") -> FloatArray:
    """Return mean rewards, one a pair."""
    reward = read_numbers(argument, value)
    grid = (pairs.n_states, pairs.n_actions)
    if reward.shape == (pairs.n_pairs,):
        return reward
    if reward.shape != grid:
        raise refusal(
            argument, f"shape {grid} or ({pairs.n_pairs},)", f"shape {reward.shape}"
        )
    return reward[pairs.pair_state, pairs.pair_action]


def read_costs(
    value: ArrayLike,
    pairs: Pairs,
    budget: ArrayLike,
    argument: str = "C",
) -> FloatArray:
    """Return costs as ``(K, pairs)``; the budget settles what a flat array means."""
    cost = read_numbers(argument, value)
    n_states, n_actions, n_pairs = pairs.n_states, pairs.n_actions, pairs.n_pairs
    several = read_numbers("budget", budget, "one number a cost channel").size > 1
    if cost.shape == (n_pairs,):
        return cost[np.newaxis]
    if cost.ndim == 3 and cost.shape[1:] == (n_states, n_actions) and len(cost):
        return np.ascontiguousarray(cost[:, pairs.pair_state, pairs.pair_action])
    is_grid = cost.shape == (n_states, n_actions)
    is_pairs = cost.ndim == 2 and cost.shape[1] == n_pairs and len(cost) > 0
    if is_grid and not (is_pairs and several):
        return cost[pairs.pair_state, pairs.pair_action][np.newaxis]
    if is_pairs:
        return cost
    raise refusal(
        argument,
        f"shape ({n_states}, {n_actions}), (K, {n_states}, {n_actions}), "
        f"({n_pairs},) or (K, {n_pairs})",
        f"shape {cost.shape}",
    )


def check_range(argument: str, values: FloatArray, upper: float, pairs: Pairs) -> None:
    """Refuse values outside ``[0, upper]``, NaN among them."""
    bad = ~((values >= 0) & np.isfinite(values))
    if bad.any():
        pair = int(np.argmax(bad))
        raise refusal(
            argument,
            "finite numbers of at least 0",
            float(values[pair]),
            pairs.name(pair),
        )
    bad = values > upper
    if bad.any():
        pair = int(np.argmax(bad))
        raise refusal(
            argument,
            f"numbers in [0, {upper!r}]",
            repr(float(values[pair])),  # in full: it may differ in the last digit
            pairs.name(pair),
        )


def read_bound(argument: str, value: float, where: str | None = None) -> float:
    """Return a bound on samples: finite and at least 0."""
    if not (np.isfinite(value) and value >= 0):
        raise refusal(argument, "a finite number of at least 0", value, where)
    return value


def read_reward_map(scale: Any, offset: Any) -> tuple[float, float]:
    """Return how rewards become those first stated: a factor above 0, and a shift."""
    factor = read_number("reward_scale", scale, "a finite number above 0")
    if not (np.isfinite(factor) and factor > 0.0):
        raise refusal("reward_scale", "a finite number above 0", factor)
    shift = read_number("reward_offset", offset, "a finite number")
    if not np.isfinite(shift):
        raise refusal("reward_offset", "a finite number", shift)
    return factor, shift


def read_reward_max(value: float | None, reward: FloatArray) -> float:
    """Return the bound on rewards; the largest mean when none is given."""
    if value is not None:
        number = read_number("reward_max", value, "a finite number of at least 0")
        return read_bound("reward_max", number)
    finite = reward[np.isfinite(reward)]
    return max(float(finite.max(initial=0.0)), 0.0)


def read_cost_max(value: ArrayLike | None, cost: FloatArray) -> FloatArray:
    """Return the bound on costs of each channel."""
    if value is None:
        finite = np.where(np.isfinite(cost), cost, 0.0)
        bound: FloatArray = np.maximum(finite.max(axis=1, initial=0.0), 0.0)
        return bound
    bounds = read_numbers("cost_max", value)
    if bounds.ndim == 0:
        bounds = np.full(len(cost), float(bounds))
    if bounds.shape != (len(cost),):
        raise refusal(
            "cost_max", f"a number or shape ({len(cost)},)", f"shape {bounds.shape}"
        )
    for k, bound in enumerate(bounds):
        where = f"channel {k}" if len(cost) > 1 else None
        read_bound("cost_max", float(bound), where)
    return bounds


def read_discount(value: float) -> float:
    """Return the discount factor."""
    discount = read_number("discount", value, "a number in [0, 1)")
    if not 0.0 <= discount < 1.0:
        raise refusal("discount", "a number in [0, 1)", discount)
    return discount


def read_budget(value: ArrayLike, n_costs: int) -> FloatArray:
    """Return one budget a channel."""
    several = "one number" if n_costs == 1 else f"{n_costs} numbers"
    expected = f"{several}, one a cost channel"
    budget = read_numbers("budget", value, expected).reshape(-1)
    if np.ndim(value) > 1 or budget.size != n_costs:
        raise refusal("budget", expected, f"shape {np.shape(value)}")
    bad = ~(np.isfinite(budget) & (budget >= 0))
    if bad.any():
        k = int(np.argmax(bad))
        where = f"channel {k}" if n_costs > 1 else None
        raise refusal(
            "budget", "a finite number of at least 0", float(budget[k]), where
        )
    return budget


def read_start(value: ArrayLike, n_states: int) -> FloatArray:
    """Return the start as a distribution over the states."""
    raw = read_array("start", f"a state or shape ({n_states},)", value)
    if raw.ndim == 0:
        if raw.dtype.kind not in "iu" or not 0 <= int(raw) < n_states:
            raise refusal("start", f"a state in 0..{n_states - 1}", repr(raw.item()))
        start = np.zeros(n_states)
        start[int(raw)] = 1.0
        return start
    start = read_numbers("start", value)
    if start.shape != (n_states,):
        raise refusal(
            "start", f"a state or shape ({n_states},)", f"shape {start.shape}"
        )
    bad = ~(np.isfinite(start) & (start >= 0))
    if bad.any():
        state = int(np.argmax(bad))
        raise refusal(
            "start",
            "probabilities of at least 0",
            float(start[state]),
            f"state {state}",
        )
    total = float(start.sum())
    if abs(total - 1.0) > 1e-8:
        raise refusal("start", "probabilities that sum to 1", f"a sum of {total:.10g}")
    if abs(total - 1.0) > 1e-12:
        start /= total
    return start


def read_names(
    argument: str, value: Sequence[str] | None, length: int
) -> tuple[str, ...] | None:
    """Return names as a tuple, one for each thing named."""
    if value is None:
        return None
    if isinstance(value, str) or not isinstance(value, Sequence | np.ndarray):
        raise refusal(argument, f"{length} names", f"a single {type(value).__name__}")
    if len(value) != length:
        raise refusal(argument, f"{length} names", f"{len(value)}")
    for index, name in enumerate(value):
        if not isinstance(name, str):
            raise refusal(argument, "strings", repr(name), f"position {index}")
    return tuple(str(name) for name in value)


def read_coordinates(value: ArrayLike | None, n_states: int) -> FloatArray | None:
    """Return positions for pictures."""
    if value is None:
        return None
    coordinates = read_numbers("coordinates", value)
    if coordinates.ndim != 2 or len(coordinates) != n_states:
        raise refusal(
            "coordinates", f"shape ({n_states}, dim)", f"shape {coordinates.shape}"
        )
    finite = np.isfinite(coordinates)
    if not finite.all():
        state, axis = np.argwhere(~finite)[0]
        raise refusal(
            "coordinates",
            "finite numbers",
            float(coordinates[state, axis]),
            f"state {state}",
        )
    return coordinates


def read_integers(argument: str, value: ArrayLike) -> IntArray:
    """Return a fresh one-dimensional integer array."""
    expected = "a one-dimensional array of integers"
    array = read_array(argument, expected, value)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise refusal(argument, expected, f"dtype {array.dtype}, shape {array.shape}")
    return array.astype(np.int64)


def check_pointers(argument: str, pointers: IntArray, last: int) -> None:
    """Refuse row pointers that do not run from 0 to ``last``."""
    if pointers.size == 0 or pointers[0] != 0 or pointers[-1] != last:
        raise refusal(
            argument,
            f"pointers that begin at 0 and end at {last}",
            f"{pointers[:1].tolist()} .. {pointers[-1:].tolist()}",
        )
    steps = np.diff(pointers)
    if (steps < 0).any():
        index = int(np.argmax(steps < 0))
        raise refusal(
            argument,
            "pointers that never decrease",
            f"{pointers[index]} before {pointers[index + 1]}",
            f"position {index}",
        )


def read_pairs(state_ptr: ArrayLike, pair_action: ArrayLike, n_actions: int) -> Pairs:
    """Return the pairs that raw pointers and actions describe."""
    n_actions = read_count("n_actions", n_actions, least=1, most=MOST_INDEX)
    pointers = read_integers("state_ptr", state_ptr)
    actions = read_integers("pair_action", pair_action)
    check_pointers("state_ptr", pointers, actions.size)
    n_states = pointers.size - 1
    if n_states == 0:
        raise refusal("state_ptr", "at least one state", "none")
    per_state = np.diff(pointers)
    if not per_state.all():
        state = int(np.argmin(per_state > 0))
        raise refusal(
            "state_ptr", "at least one action in every state", "none", f"state {state}"
        )
    out = (actions < 0) | (actions >= n_actions)
    if out.any():
        pair = int(np.argmax(out))
        raise refusal(
            "pair_action",
            f"actions in 0..{n_actions - 1}",
            int(actions[pair]),
            f"pair {pair}",
        )
    pair_state = np.repeat(np.arange(n_states, dtype=np.int32), per_state)
    disordered = (np.diff(actions) <= 0) & (np.diff(pair_state) == 0)
    if disordered.any():
        pair = int(np.argmax(disordered)) + 1
        raise refusal(
            "pair_action",
            "actions in increasing order within a state",
            int(actions[pair]),
            f"pair {pair}",
        )
    return Pairs(
        n_states=n_states,
        n_actions=n_actions,
        state_ptr=pointers,
        pair_state=pair_state,
        pair_action=actions.astype(np.int32),
    )


def read_rows(
    row_ptr: ArrayLike, successor: ArrayLike, probability: ArrayLike, pairs: Pairs
) -> Transitions:
    """Return the rows that raw pointers, states and numbers describe."""
    pointers = read_integers("row_ptr", row_ptr)
    states = read_integers("successor", successor)
    numbers = read_numbers("probability", probability)
    if numbers.shape != states.shape:
        raise refusal("probability", f"shape {states.shape}", f"shape {numbers.shape}")
    if pointers.size != pairs.n_pairs + 1:
        raise refusal("row_ptr", f"{pairs.n_pairs + 1} pointers", f"{pointers.size}")
    check_pointers("row_ptr", pointers, states.size)
    bad = (states < 0) | (states >= pairs.n_states)
    if bad.any():  # before the narrowing below could wrap them round
        entry = int(np.argmax(bad))
        raise refusal(
            "successor",
            f"states in 0..{pairs.n_states - 1}",
            int(states[entry]),
            f"entry {entry}",
        )
    return Transitions(
        row_ptr=pointers, successor=states.astype(np.int32), probability=numbers
    )
