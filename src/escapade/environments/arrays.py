"""Arrays in the orders that people keep them in, by name.

===========  =========================================================================
convention   ``P`` is
===========  =========================================================================
``"sas"``    ``P[s, a, s']``; or one sparse ``(S · A, S)``; or a list of ``S`` sparse
             ``(A, S)`` matrices, one a state
``"ass"``    ``P[a, s, s']``; or a list of ``A`` sparse ``(S, S)`` matrices
``"s'sa"``   ``P[s', s, a]``; or a list of ``S`` sparse ``(S, A)`` matrices, one a next
             state
===========  =========================================================================

Nothing is guessed: where S equals A, shapes cannot tell one order from another, and
rows that happen to sum to 1 prove nothing.  Tables without a next state are always
``R[s, a]`` and ``C[s, a]`` or ``C[k, s, a]``.  With ``per_transition`` rewards and
costs depend on the next state too, and stand in the same order as ``P``, dense; several
channels of costs are stacked in front.

What an agent is told stands beside: either whole, as ``knowledge``, or in keywords of
:class:`escapade.Knowledge`, of which ``support`` and ``known_rows`` stand in the order
of ``P`` as well.
"""

from __future__ import annotations

from typing import Any, Literal, cast, get_args

import numpy as np
import scipy.sparse as sp

from escapade.environments.telling import check_keywords, check_told, tell
from escapade.environments.world import World
from escapade.errors import refusal
from escapade.knowledge.knowledge import Knowledge
from escapade.model.arguments import read_discount, read_numbers
from escapade.model.cmdp import CMDP
from escapade.typing import ArrayLike, FloatArray

__all__ = ["Convention", "from_arrays"]

Convention = Literal["sas", "ass", "s'sa"]
"""Names of the orders."""

_AXES = {"sas": (0, 1, 2), "ass": (1, 0, 2), "s'sa": (1, 2, 0)}
"""Where state, action and next state stand."""

_MODEL = (
    "start",
    "available",
    "reward_max",
    "cost_max",
    "state_names",
    "action_names",
    "coordinates",
)
"""Keywords of the model; all others are of what is known."""


def from_arrays(
    P: Any,
    R: ArrayLike,
    C: ArrayLike,
    *,
    convention: Convention,
    discount: float,
    budget: ArrayLike,
    per_transition: bool = False,
    name: str = "arrays",
    knowledge: Knowledge | None = None,
    **more: Any,
) -> World:
    """Return the world that arrays describe.

    Parameters
    ----------
    P, R, C
        Transitions, rewards and costs; see the module's text.
    convention
        In which order: ``"sas"``, ``"ass"`` or ``"s'sa"``.
    discount, budget
        As for :class:`escapade.CMDP`.
    per_transition
        Whether rewards and costs are given for each next state as well.
    name
        What to call the world.
    knowledge
        What an agent is told.
    more
        Further keywords of :class:`escapade.CMDP`: ``start``, ``available``,
        ``reward_max``, ``cost_max``, names.  And in place of ``knowledge`` those of
        :class:`escapade.Knowledge`: ``support``, ``known_rows`` (in the order of
        ``P``), ``costs``, ``free``, ``log``, ...  Without any an agent knows sizes and
        bounds; it is never told the arrays.

    Examples
    --------
    The same machine, its transitions kept one matrix an action.

    >>> import numpy as np
    >>> import escapade as ep
    >>> stay, swap = np.eye(2), np.eye(2)[::-1]
    >>> world = ep.environments.from_arrays(
    ...     [stay, swap], [[1, 0], [0, 0]], [[1, 0], [0, 0]],
    ...     convention="ass", discount=0.9, budget=2.0)
    >>> world.cmdp
    CMDP(2 states, 2 actions, 4 pairs, 1 cost, discount 0.9, budget 2)
    >>> world.knowledge
    Knowledge(2 states, 2 actions, 4 pairs, 1 cost, 0 rows known)
    """
    if convention not in get_args(Convention):
        raise refusal(
            "convention",
            f"one of {', '.join(map(repr, get_args(Convention)))}",
            repr(convention),
        )
    check_keywords(more, own=_MODEL)
    model = {name: more.pop(name) for name in _MODEL if name in more}
    matrix, n_states, n_actions = _flat("P", P, convention, R)
    if per_transition:
        model, R, C = _averaged(
            matrix, (n_states, n_actions), R, C, convention, dict(model)
        )
    _check_rewards(R, discount)
    cmdp = CMDP(matrix, R, C, discount=discount, budget=budget, **model)
    if knowledge is not None and more:
        raise refusal("knowledge", "none beside keywords of it", next(iter(more)))
    told = knowledge
    if told is None:
        for argument in ("support", "known_rows"):
            if more.get(argument) is not None:
                more[argument] = _flat(argument, more[argument], convention)[0]
        told = tell(cmdp, **more)
    check_told(cmdp, told)
    return World(
        name=name,
        description=f"{name}, as their arrays have it.",
        cmdp=cmdp,
        told=lambda: told,
    )


def _check_rewards(R: ArrayLike, discount: float) -> None:
    """Refuse rewards below 0, and say what to do about them."""
    least = float(np.min(read_numbers("R", R), initial=0.0))
    if least < 0.0 and np.isfinite(least):
        moved = -least / (1.0 - read_discount(discount))
        raise refusal(
            "R",
            "rewards of at least 0 (add a constant to all of them: the order of "
            f"policies stays, and {-least:g} moves every value by {moved:g})",
            least,
        )


def _flat(
    argument: str, P: Any, convention: Convention, R: Any = None
) -> tuple[sp.csr_array, int, int]:
    """Return rows as ``(S · A, S)``, and the sizes."""
    if np.ndim(R) == 1 and np.ndim(P) == 2 and len(R) == np.shape(P)[0]:
        raise refusal(
            argument,
            "every state and action (of rows Q[pair]: P = np.zeros((S, A, S)); "
            "P[s_indices, a_indices] = Q; R and C alike, and the mask available=)",
            f"{len(R)} pairs",
        )
    if sp.issparse(P):
        if convention != "sas":
            raise refusal(
                argument, f"a list of sparse matrices for {convention!r}", "one of them"
            )
        single = sp.csr_array(cast(Any, P))
        rows, n_states = single.shape
        if n_states == 0 or rows % n_states:
            raise refusal(argument, "shape (S · A, S)", f"shape {single.shape}")
        return single, n_states, rows // n_states
    if isinstance(P, list | tuple) and P and all(sp.issparse(part) for part in P):
        parts = [sp.coo_array(cast(Any, part)) for part in P]
        return _stacked(argument, parts, convention)
    dense = read_numbers(argument, P)
    if dense.ndim != 3:
        raise refusal(
            argument, "three axes, or sparse matrices", f"shape {dense.shape}"
        )
    state, action, after = _AXES[convention]
    ordered = dense.transpose(state, action, after)
    n_states, n_actions, n_after = ordered.shape
    if n_states != n_after:
        raise refusal(
            argument,
            f"as many next states as states in the order {convention!r}",
            f"{n_after} and {n_states}, shape {dense.shape}",
        )
    return (
        sp.csr_array(ordered.reshape(n_states * n_actions, n_states)),
        n_states,
        n_actions,
    )


def _stacked(
    argument: str, parts: list[sp.coo_array], convention: Convention
) -> tuple[sp.csr_array, int, int]:
    """Return a list of sparse matrices as one, rows ``s · A + a``."""
    first = parts[0].shape
    for k, part in enumerate(parts):
        if part.shape != first:
            raise refusal(
                argument, f"shape {first}", f"shape {part.shape}", f"matrix {k}"
            )
    of = np.repeat(np.arange(len(parts)), [part.nnz for part in parts])
    row = np.concatenate([part.row for part in parts]).astype(np.int64)
    column = np.concatenate([part.col for part in parts]).astype(np.int64)
    data = np.concatenate([part.data for part in parts])
    place = {
        "sas": (of, row, column),
        "ass": (row, of, column),
        "s'sa": (row, column, of),
    }
    sizes = {
        "sas": (len(parts), first[0], first[1]),
        "ass": (first[0], len(parts), first[1]),
        "s'sa": (first[0], first[1], len(parts)),
    }
    state, action, after = place[convention]
    n_states, n_actions, n_after = sizes[convention]
    if n_after != n_states:
        raise refusal(
            argument,
            f"as many next states as states in the order {convention!r}",
            f"{n_after} and {n_states}",
        )
    shape = (n_states * n_actions, n_states)
    table = sp.coo_array((data, (state * n_actions + action, after)), shape=shape)
    return sp.csr_array(table), n_states, n_actions


def _averaged(
    matrix: sp.csr_array,
    sizes: tuple[int, int],
    R: ArrayLike,
    C: ArrayLike,
    convention: Convention,
    model: dict[str, Any],
) -> tuple[dict[str, Any], FloatArray, FloatArray]:
    """Return means over the next states, and bounds that hold for every sample."""
    n_states, n_actions = sizes
    probability = matrix.toarray().reshape(n_states, n_actions, n_states)
    order = _AXES[convention]
    full = tuple(np.argsort(order))  # from (s, a, s') to the order that was named
    shape = tuple(probability.transpose(full).shape)
    rewards = read_numbers("R", R)
    if rewards.shape != shape:
        raise refusal("R", f"shape {shape}", f"shape {rewards.shape}")
    costs = read_numbers("C", C)
    if costs.shape == shape:
        costs = costs[np.newaxis]
    if costs.shape[1:] != shape:
        raise refusal("C", f"shape {shape}, or (K, *{shape})", f"shape {costs.shape}")
    possible = probability > 0.0
    earned = rewards.transpose(order)
    paid = np.array([channel.transpose(order) for channel in costs])
    bounds = {
        "reward_max": float(earned[possible].max(initial=0.0)),
        "cost_max": paid[:, possible].max(axis=1, initial=0.0),
    }
    for argument, values in (("R", earned), ("C", paid)):
        if (values[..., possible] < 0.0).any():
            least = float(values[..., possible].min())
            raise refusal(argument, "numbers of at least 0", least)
    mean_reward = (probability * earned).sum(axis=-1)
    mean_cost = (probability * paid).sum(axis=-1)
    return (
        {**bounds, **model},
        np.minimum(mean_reward, bounds["reward_max"]),
        np.minimum(mean_cost, bounds["cost_max"][:, np.newaxis, np.newaxis]),
    )
