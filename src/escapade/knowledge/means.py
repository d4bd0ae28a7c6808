"""Which means are known, and within what bounds: read and checked."""

from __future__ import annotations

import numpy as np

from escapade.errors import refusal
from escapade.model.arguments import read_bound, read_numbers
from escapade.model.layout import Pairs, read_array
from escapade.typing import ArrayLike, BoolArray, FloatArray
from escapade.uncertainty.rows import frozen

__all__ = ["read_cost_max", "read_costs", "read_mask", "read_rewards", "read_states"]


def read_mask(
    argument: str, value: ArrayLike | None, shape: tuple[int, int], *, default: bool
) -> BoolArray:
    """Return a mask ``(S, A)`` from one boolean or one a pair."""
    if value is None:
        return np.full(shape, default)
    mask = read_array(argument, "a boolean, or a mask (S, A)", value)
    if mask.dtype != np.bool_:
        raise refusal(argument, "a boolean, or a mask (S, A)", f"dtype {mask.dtype}")
    if mask.shape not in ((), shape):
        raise refusal(argument, f"shape {shape}", f"shape {mask.shape}")
    return np.broadcast_to(mask, shape).copy()


def read_states(value: ArrayLike | None, n_states: int) -> BoolArray:
    """Return a mask ``(S,)`` from a mask or a list of states."""
    mask = np.zeros(n_states, dtype=np.bool_)
    if value is None:
        return frozen(mask)
    expected = "a mask or a list of states"
    given = read_array("known_states", expected, value)
    if given.dtype == np.bool_ and given.shape == mask.shape:
        return frozen(given.copy())
    if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
        raise refusal("known_states", expected, repr(value))
    out = (given < 0) | (given >= n_states)
    if out.any():
        place = int(np.argmax(out))
        raise refusal(
            "known_states",
            f"states in 0..{n_states - 1}",
            int(given[place]),
            f"position {place}",
        )
    mask[given.astype(np.int64)] = True
    return frozen(mask)


def read_cost_max(value: ArrayLike, n_costs: int) -> FloatArray:
    """Return the bound on the samples of each channel, ``(K,)``."""
    bounds = read_numbers("cost_max", value)
    if n_costs == 1 and bounds.ndim == 1 and bounds.size > 1:
        raise refusal("budget", f"{bounds.size} numbers, as many as in cost_max", "one")
    if bounds.shape not in ((), (n_costs,)):
        raise refusal("cost_max", f"a number, or {n_costs}", f"shape {bounds.shape}")
    each = np.broadcast_to(bounds, (n_costs,)).copy()
    for k, bound in enumerate(each):
        read_bound("cost_max", float(bound), f"channel {k}")
    return frozen(each)


def read_rewards(
    rewards: ArrayLike | None, most: float, pairs: Pairs
) -> tuple[FloatArray, FloatArray]:
    """Return bounds on the mean rewards, ``[pairs]``."""
    grid = (pairs.n_states, pairs.n_actions)
    table = _table("rewards", rewards, grid, pairs)
    known = ~np.isnan(table)
    _check_between("rewards", table, known, np.array(most), pairs)
    return (
        frozen(np.where(known, table, 0.0)),
        frozen(np.where(known, table, most)),
    )


def read_costs(
    costs: ArrayLike | None,
    cost_bounds: ArrayLike | None,
    free: BoolArray,
    most: FloatArray,
    pairs: Pairs,
) -> tuple[FloatArray, FloatArray]:
    """Return bounds on the mean costs, ``[K, pairs]``; ``free`` is ``[pairs]``."""
    shape = (most.size, pairs.n_states, pairs.n_actions)
    top = most[:, np.newaxis]
    table = _table("costs", costs, shape, pairs)
    known = ~np.isnan(table)
    _check_between("costs", table, known, top, pairs)
    bound = _table("cost_bounds", cost_bounds, shape, pairs)
    bounded = ~np.isnan(bound)
    _check_between("cost_bounds", bound, bounded, top, pairs)
    over = known & bounded & (table > bound)
    if over.any():
        k, pair = (int(n) for n in np.argwhere(over)[0])
        raise refusal(
            "cost_bounds",
            f"at least the cost that is known, {table[k, pair]:g}",
            float(bound[k, pair]),
            pairs.name(pair),
        )
    upper = np.where(bounded, bound, np.broadcast_to(top, bound.shape))
    upper = np.where(known, table, upper)
    lower = np.where(known, table, 0.0)
    clash = free & (lower > 0.0).any(axis=0)
    if clash.any():
        pair = int(np.argmax(clash))
        raise refusal(
            "free",
            "pairs whose known costs are 0",
            float(lower[:, pair].max()),
            pairs.name(pair),
        )
    upper[:, free] = 0.0
    return frozen(lower), frozen(upper)


def _table(
    argument: str, value: ArrayLike | None, shape: tuple[int, ...], pairs: Pairs
) -> FloatArray:
    """Return one number a pair (and channel), NaN where none was given."""
    if value is None:
        table = np.full(shape, np.nan)
    else:
        table = read_numbers(argument, value)
        if len(shape) == 3 and shape[0] == 1 and table.shape == shape[1:]:
            table = table[np.newaxis]
        if table.shape != shape:
            raise refusal(argument, f"shape {shape}", f"shape {table.shape}")
    return np.ascontiguousarray(table[..., pairs.pair_state, pairs.pair_action])


def _check_between(
    argument: str, values: FloatArray, given: BoolArray, top: FloatArray, pairs: Pairs
) -> None:
    bad = given & ~((values >= 0.0) & (values <= top))
    if bad.any():
        place = tuple(np.argwhere(bad)[0])
        most = float(np.broadcast_to(top, values.shape)[place])
        raise refusal(
            argument,
            f"numbers in [0, {most:g}], or NaN",
            float(values[place]),
            pairs.name(int(place[-1])),
        )
