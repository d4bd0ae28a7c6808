"""What a :class:`Discretizer` is given: limits, actions, constants; read and shown."""

from __future__ import annotations

import itertools
from typing import Any

import gymnasium
import numpy as np

from escapade.errors import refusal
from escapade.model.arguments import check_room, read_count, read_numbers
from escapade.typing import ArrayLike, FloatArray

__all__ = [
    "named",
    "per_axis",
    "reach",
    "read_choices",
    "read_limits",
    "read_rates",
    "shown",
]


def read_limits(argument: str, given: ArrayLike | None, own: FloatArray) -> FloatArray:
    """Return finite limits, those of the space where none are given."""
    limits = (
        own
        if given is None
        else np.broadcast_to(np.asarray(given, dtype=np.float64), own.shape).copy()
    )
    if not np.isfinite(limits).all() or (np.abs(limits) > 1e30).any():
        k = int(np.argmax(~np.isfinite(limits) | (np.abs(limits) > 1e30)))
        raise refusal(
            argument,
            "finite numbers, as the space has no bounds",
            float(limits[k]),
            f"axis {k}",
        )
    return np.array(limits)


def per_axis(argument: str, value: ArrayLike, dim: int) -> FloatArray:
    """Return one number of at least 0 a coordinate."""
    numbers = np.asarray(value, dtype=np.float64)
    if numbers.shape not in ((), (dim,)):
        raise refusal(argument, f"a number, or {dim}", f"shape {numbers.shape}")
    if not (np.isfinite(numbers) & (numbers >= 0.0)).all():
        raise refusal(argument, "finite numbers of at least 0", numbers.tolist())
    return np.broadcast_to(numbers, (dim,)).copy()


def read_rates(lipschitz: ArrayLike, dim: int) -> FloatArray:
    """Return the constants, one a coordinate or ``(dim, dim)``."""
    rates = read_numbers("lipschitz", lipschitz)
    if rates.shape not in ((), (dim,), (dim, dim)):
        raise refusal(
            "lipschitz", f"a number, {dim}, or {(dim, dim)}", f"shape {rates.shape}"
        )
    if not (np.isfinite(rates) & (rates >= 0.0)).all():
        raise refusal("lipschitz", "finite numbers of at least 0", rates.tolist())
    return rates if rates.ndim else np.full(dim, float(rates))


def reach(rates: FloatArray, away: FloatArray) -> FloatArray:
    """Return how far, ``(dim,)``, the next point may vary between two points.

    ``away`` ``(dim,)`` is how far these are from each other.
    """
    return rates @ away if rates.ndim == 2 else rates * away.max()


def named(values: ArrayLike) -> str:
    """Return numbers in words: one if all are the same."""
    numbers = np.asarray(values, dtype=np.float64)
    if (numbers == numbers.flat[0]).all():
        return f"{numbers.flat[0]:g}"
    if numbers.ndim == 2:
        return "(" + ", ".join(map(_named_each, numbers)) + ")"
    return _named_each(numbers)


def _named_each(values: FloatArray) -> str:
    return "(" + ", ".join(f"{value:g}" for value in values) + ")"


def shown(point: ArrayLike) -> str:
    """Return a point in words."""
    numbers = np.asarray(point, dtype=np.float64).ravel()
    return "[" + ", ".join(f"{value:.6g}" for value in numbers) + "]"


def read_choices(space: gymnasium.Space[Any], actions: Any) -> list[Any]:
    """Return the actions to offer, as the environment takes them."""
    if isinstance(space, gymnasium.spaces.Discrete):
        if actions is not None:
            raise refusal("actions", "None, as they are discrete", actions)
        return [int(space.start) + k for k in range(int(space.n))]
    if not isinstance(space, gymnasium.spaces.Box) or len(space.shape) != 1:
        raise refusal("action_space", "Discrete, or a Box of one axis", str(space))
    if actions is None:
        raise refusal("actions", "some, or how many, as they are continuous", None)
    if np.ndim(actions) == 0:
        count = read_count("actions", actions, least=1)
        check_room("actions", count, count ** max(space.shape[0], 1))
        low = read_limits("action_space", None, np.asarray(space.low, dtype=np.float64))
        high = read_limits(
            "action_space", None, np.asarray(space.high, dtype=np.float64)
        )
        grids = [np.linspace(a, b, count) for a, b in zip(low, high, strict=True)]
        given = np.array(list(itertools.product(*grids)))
    else:
        given = np.asarray(actions, dtype=np.float64)
    if given.ndim != 2 or given.shape[1:] != space.shape:
        raise refusal("actions", f"shape (A, {space.shape[0]})", f"shape {given.shape}")
    chosen = given.astype(space.dtype)
    for k, action in enumerate(chosen):
        if not space.contains(action):
            raise refusal("actions", f"members of {space}", action.tolist(), f"row {k}")
    return list(chosen)
