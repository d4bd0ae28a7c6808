"""How an expert writes action models down, and how that is read.

A model says where an action typically leads and what it costs.  How actions fail is
said apart, as most of it is shared: around which states a failure may end, at which
rates, by which law.  Several ways of failing may be given; a pair then has one branch
for each model and way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

import numpy as np
import scipy.sparse as sp
from scipy.spatial import cKDTree

from escapade.errors import refusal
from escapade.model.arguments import read_coordinates, read_numbers
from escapade.model.cmdp import CMDP
from escapade.model.layout import Pairs, read_array
from escapade.typing import ArrayLike, BoolArray, FloatArray, IntArray
from escapade.uncertainty.action_models_branches import Branches
from escapade.uncertainty.rows import Rows, frozen, gather_rows

__all__ = [
    "ActionModel",
    "Failures",
    "Range",
    "Spaces",
    "Transfer",
    "build_branches",
    "read_gains",
    "read_pair_numbers",
    "read_pairs_mask",
    "within",
]

Spaces: TypeAlias = CMDP | Pairs
"""What says which states, actions and pairs there are; numbers are not read off it."""

Range: TypeAlias = ArrayLike | tuple[ArrayLike, ArrayLike]
"""A number or one a pair, known exactly; or a tuple of two of them, a range."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ActionModel:
    """What one model says: where actions typically lead, and what they cost.

    Parameters
    ----------
    typical
        The typical next state of each pair, ``(S, A)`` or ``(pairs,)``; −1 where the
        model says nothing, so that it cannot be the true one there.
    where
        Mask of the states ``(S,)`` or pairs ``(S, A)`` or ``(pairs,)`` in which the
        model may be the true one; everywhere by default.
    cost, missed_cost
        Mean cost of a step that works, and of one that fails: a number, or an array
        ``(S, A)``, ``(pairs,)``, or with a channel in front; or a tuple of two, the
        least and the most that it may be.  Anything from 0 to the bound on costs by
        default.
    reward, missed_reward
        The same for the reward.
    """

    typical: ArrayLike
    where: ArrayLike | None = None
    cost: Range | None = None
    missed_cost: Range | None = None
    reward: Range | None = None
    missed_reward: Range | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Failures:
    """A way in which actions fail: how often, around what, and by which law.

    Parameters
    ----------
    around
        Where a failed action may end: a boolean or sparse ``(S, S)`` matrix whose row
        ``g`` marks the neighbourhood of the typical state ``g``, or ``(pairs, S)`` for
        neighbourhoods of pairs (refused where both shapes are the same; then it is read
        as the first).  See :func:`within`.
    rate
        The probability τ of failing: a number, or one a pair ``(S, A)``, ``(pairs,)``;
        or a tuple of two, its least and its most.
    law
        ``"uniform"`` on the neighbourhood, or ``"any"`` law on it.
    """

    around: Any
    rate: Range
    law: Literal["uniform", "any"] = "uniform"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Transfer:
    """What the model of one pair says about that of another: the rule ρ.

    Parameters
    ----------
    source, target
        Pairs ``(n,)`` that belong together, one by one.
    rho
        ``(M, M)``: how probable model ``j`` is at the target if ``i`` is true at the
        source.  Only whether it is 0 counts, as what is merely improbable is not ruled
        out by it.  The rule works backwards as well: if all models that ``j`` could
        follow are ruled out at the source, then so is ``j`` at the target, and a model
        ``i`` that allows none of those left at the target is ruled out at the source.
    """

    source: ArrayLike
    target: ArrayLike
    rho: ArrayLike


def within(coordinates: ArrayLike, distance: float, *, norm: float = 2.0) -> Any:
    """Return which states lie within a distance of each other, sparse ``(S, S)``.

    Parameters
    ----------
    coordinates
        ``(S, dim)`` positions.
    distance
        Largest distance, the states themselves included.
    norm
        Order of the norm: 2 for Euclidean distance, 1 for steps, ``numpy.inf``.
    """
    points = np.atleast_1d(np.asarray(coordinates, dtype=np.float64))
    read_coordinates(points, len(points))
    if not distance >= 0.0:
        raise refusal("distance", "a number of at least 0", distance)
    if not norm >= 1.0:
        raise refusal("norm", "a number of at least 1", norm)
    tree = cKDTree(points)
    couples = tree.query_pairs(distance * (1.0 + 1e-12), p=norm, output_type="ndarray")
    own = np.arange(len(points))
    row = np.concatenate([couples[:, 0], couples[:, 1], own])
    column = np.concatenate([couples[:, 1], couples[:, 0], own])
    shape = (len(points), len(points))
    return sp.csr_array((np.ones(row.size, dtype=np.bool_), (row, column)), shape=shape)


def read_pairs_mask(
    argument: str, value: ArrayLike | None, spaces: Spaces
) -> BoolArray:
    """Return a mask of pairs from ``(S,)``, ``(S, A)`` or ``(pairs,)``."""
    if value is None:
        return np.ones(spaces.n_pairs, dtype=np.bool_)
    mask = read_array(argument, "a boolean array", value)
    if mask.dtype != np.bool_:
        raise refusal(argument, "a boolean array", f"dtype {mask.dtype}")
    if mask.shape == (spaces.n_states,):
        by_state: BoolArray = mask[spaces.pair_state]
        return by_state
    by_pair: BoolArray = _per_pair(argument, mask, spaces)
    return by_pair


def read_pair_numbers(argument: str, value: ArrayLike, spaces: Spaces) -> FloatArray:
    """Return one number a pair from a number, ``(S, A)`` or ``(pairs,)``."""
    array = read_numbers(argument, value)
    if array.ndim == 0:
        return np.full(spaces.n_pairs, float(array))
    by_pair: FloatArray = _per_pair(argument, array, spaces)
    return by_pair


def _per_pair(argument: str, array: Any, spaces: Spaces) -> Any:
    grid = (spaces.n_states, spaces.n_actions)
    if array.shape == grid:
        return array[spaces.pair_state, spaces.pair_action]
    if array.shape != (spaces.n_pairs,):
        raise refusal(
            argument, f"shape {grid} or ({spaces.n_pairs},)", f"shape {array.shape}"
        )
    return array


def _name(spaces: Spaces, pair: int) -> str:
    return f"state {spaces.pair_state[pair]}, action {spaces.pair_action[pair]}"


def _read_rate(
    label: str, rate: Range, spaces: Spaces
) -> tuple[FloatArray, FloatArray]:
    ends = rate if isinstance(rate, tuple) else (rate, rate)
    if len(ends) != 2:
        raise refusal(label, "a number, or a tuple of two", f"a tuple of {len(ends)}")
    low, high = (read_pair_numbers(label, end, spaces) for end in ends)
    bad = ~((low >= 0.0) & (low <= high) & (high <= 1.0))
    if bad.any():
        pair = int(np.argmax(bad))
        raise refusal(
            label,
            "rates in [0, 1], the least before the most",
            f"{low[pair]:g} to {high[pair]:g}",
            _name(spaces, pair),
        )
    return low, high


def _read_around(label: str, around: Any, spaces: Spaces) -> tuple[sp.csr_array, bool]:
    """Return the neighbourhoods, and whether they belong to typical states."""
    if sp.issparse(around):
        matrix = sp.csr_array(cast(Any, around)).astype(np.bool_)
        matrix.eliminate_zeros()
    else:
        mask = read_array(label, "a boolean matrix", around)
        if mask.dtype != np.bool_ or mask.ndim != 2:
            raise refusal(
                label, "a boolean matrix", f"dtype {mask.dtype}, shape {mask.shape}"
            )
        matrix = sp.csr_array(mask)
    matrix.sum_duplicates()
    n_states, n_pairs = spaces.n_states, spaces.n_pairs
    if matrix.shape not in ((n_states, n_states), (n_pairs, n_states)):
        raise refusal(
            label,
            f"shape ({n_states}, {n_states}) or ({n_pairs}, {n_states})",
            f"shape {matrix.shape}",
        )
    return matrix, matrix.shape[0] == n_states


def _read_typical(label: str, model: ActionModel, spaces: Spaces) -> IntArray:
    array = read_array(label, "an array of states", model.typical)
    if array.dtype.kind not in "iu":
        raise refusal(label, "an array of states", f"dtype {array.dtype}")
    states: IntArray = np.array(_per_pair(label, array, spaces), dtype=np.int64)
    bad = (states < -1) | (states >= spaces.n_states)
    if bad.any():
        pair = int(np.argmax(bad))
        raise refusal(
            label,
            f"states in 0..{spaces.n_states - 1}, or -1",
            int(states[pair]),
            _name(spaces, pair),
        )
    states[~read_pairs_mask("where", model.where, spaces)] = -1
    return states


def build_branches(
    spaces: Spaces, models: Mapping[str, ActionModel], failures: Sequence[Failures]
) -> tuple[Rows, Branches, IntArray]:
    """Return the rows, the branches, and the kind of each: model · ways + way.

    The nominal row of each pair is that of its first branch in the middle of the
    rates, missed uniformly; it is filled in by the caller.
    """
    n_pairs, n_states, n_ways = spaces.n_pairs, spaces.n_states, len(failures)
    typical = np.stack(
        [_read_typical(f"typical of {name!r}", m, spaces) for name, m in models.items()]
    )
    silent = (typical < 0).all(axis=0)
    if silent.any():
        place = _name(spaces, int(np.argmax(silent)))
        raise refusal("models", "a model for every pair", "none", place)
    speaks = np.repeat((typical >= 0).T[:, :, np.newaxis], n_ways, axis=2)
    pair, model, way = np.nonzero(speaks)
    target = typical[model, pair]
    low, high = np.empty(pair.size), np.empty(pair.size)
    around = np.full(pair.size, -1, dtype=np.int64)
    uniform, near, near_sizes = [], [], []
    n_near = 0
    for f, failure in enumerate(failures):
        label = "failures" if n_ways == 1 else f"failures[{f}]"
        if failure.law not in ("uniform", "any"):
            raise refusal(f"{label}.law", "'uniform' or 'any'", repr(failure.law))
        least, most = _read_rate(f"{label}.rate", failure.rate, spaces)
        matrix, by_state = _read_around(f"{label}.around", failure.around, spaces)
        mine = np.flatnonzero(way == f)
        low[mine], high[mine] = least[pair[mine]], most[pair[mine]]
        missed = mine[high[mine] > 0.0]
        centre = target[missed] if by_state else pair[missed]
        used, number = np.unique(centre, return_inverse=True)
        pointers, members = gather_rows(matrix.indptr.astype(np.int64), used)
        empty = np.diff(pointers) == 0
        if empty.any():
            what = "typical state" if by_state else "pair"
            raise refusal(
                f"{label}.around",
                "at least one state in each neighbourhood",
                "none",
                f"{what} {used[int(np.argmax(empty))]}",
            )
        around[missed] = n_near + number
        n_near += used.size
        near_sizes.append(np.diff(pointers))
        near.append(matrix.indices[members])
        uniform.append(np.full(used.size, failure.law == "uniform"))
    near_ptr = np.concatenate([[0], np.cumsum(np.concatenate(near_sizes))])
    branches = Branches(
        ptr=frozen(np.searchsorted(pair, np.arange(n_pairs + 1))),
        target=frozen(target.astype(np.int32)),
        around=frozen(around),
        low=frozen(low),
        high=frozen(high),
        near_ptr=frozen(near_ptr.astype(np.int64)),
        near=frozen(np.concatenate(near).astype(np.int32)),
        uniform=frozen(np.concatenate(uniform)),
    )
    # every state that some branch of a pair can reach
    has_near = around >= 0
    pointers, members = gather_rows(branches.near_ptr, around[has_near])
    row = np.concatenate([pair, np.repeat(pair[has_near], np.diff(pointers))])
    column = np.concatenate([target, branches.near[members]])
    keys = np.unique(row * n_states + column)
    rows = Rows(
        n_states=n_states,
        stored_ptr=frozen(
            np.searchsorted(keys, np.arange(n_pairs + 1) * n_states).astype(np.int64)
        ),
        stored=frozen((keys % n_states).astype(np.int32)),
        stored_nominal=np.zeros(keys.size),
        pair_state=spaces.pair_state,
        pair_action=spaces.pair_action,
    )
    return rows, branches, model * n_ways + way


def read_gains(
    spaces: Spaces,
    models: Mapping[str, ActionModel],
    what: Literal["cost", "reward"],
    bound: FloatArray,
) -> FloatArray | None:
    """Return what the models say of costs or rewards, ``(4, K, M, pairs)``.

    Along the first axis: least and most when a step works, least and most when it
    fails.  ``None`` where no model says anything; ``bound`` is ``(K,)``.
    """
    missed = f"missed_{what}"
    given = [
        getattr(m, name) is not None for m in models.values() for name in (what, missed)
    ]
    if not any(given):
        return None
    gains = np.empty((4, bound.size, len(models), spaces.n_pairs))
    for i, (label, model) in enumerate(models.items()):
        for at, name in ((0, what), (2, missed)):
            value = getattr(model, name)
            ends = (0.0, bound) if value is None else value
            ends = ends if isinstance(ends, tuple) else (ends, ends)
            argument = f"{name} of {label!r}"
            if len(ends) != 2:
                raise refusal(
                    argument, "an array, or a tuple of two", f"a tuple of {len(ends)}"
                )
            for side, end in enumerate(ends):
                gains[at + side, :, i] = _read_channels(
                    argument, end, spaces, bound, own=value is None
                )
            low, high = gains[at, :, i], gains[at + 1, :, i]
            bad = ~((low >= 0.0) & (low <= high) & (high <= bound[:, np.newaxis]))
            if bad.any():
                k, pair = (int(n) for n in np.argwhere(bad)[0])
                raise refusal(
                    argument,
                    f"numbers in [0, {bound[k]:g}], the least before the most",
                    f"{low[k, pair]:g} to {high[k, pair]:g}",
                    _name(spaces, pair),
                )
    return gains


def _read_channels(
    argument: str, value: ArrayLike, spaces: Spaces, bound: FloatArray, *, own: bool
) -> FloatArray:
    """Return ``(K, pairs)`` from a number, an array a pair, or one a channel."""
    if own:
        ends = np.broadcast_to(np.asarray(value, dtype=np.float64), bound.shape)
        repeated: FloatArray = np.repeat(ends[:, np.newaxis], spaces.n_pairs, axis=1)
        return repeated
    array = read_numbers(argument, value)
    per_channel = array.ndim >= 2 and len(array) == bound.size
    grid = (bound.size, spaces.n_states, spaces.n_actions)
    if per_channel and array.shape in (grid, (bound.size, spaces.n_pairs)):
        return np.stack([_per_pair(argument, one, spaces) for one in array])
    single = read_pair_numbers(argument, array, spaces)
    return np.repeat(single[np.newaxis], bound.size, axis=0)
