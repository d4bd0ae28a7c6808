"""Walls at unknown places: the expert knowledge of the paper's Example 2.

Moves lead from cell to cell, unless a wall is hit.  ``free`` is the model in which a
move leads on; for each direction there is one model, with its name, in which that move
leads nowhere and costs something, the others saying nothing.  Where a move would leave
all cells there is certainly a wall; elsewhere there may be one, unless it would stand
too close to the wall on the opposite side.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy.spatial import cKDTree

from escapade.errors import refusal
from escapade.model.arguments import (
    read_coordinates,
    read_count,
    read_names,
    read_number,
    read_numbers,
)
from escapade.model.cmdp import CMDP
from escapade.typing import ArrayLike, FloatArray, IntArray
from escapade.uncertainty.action_models import ActionModels
from escapade.uncertainty.action_models_description import (
    ActionModel,
    Failures,
    Range,
    Spaces,
    Transfer,
    read_pair_numbers,
    within,
)

__all__ = ["unknown_walls"]

_SAME_PLACE = 1e-6


def unknown_walls(
    spaces: Spaces,
    moves: ArrayLike,
    *,
    coordinates: ArrayLike | None = None,
    names: tuple[str, ...] | list[str] | None = None,
    apart: int = 0,
    straight: bool = False,
    rate: Range = (0.0, 0.1),
    reach: float = 2.0,
    law: Literal["uniform", "any"] = "any",
    hit_cost: float = 1.0,
    missed_cost: Range | None = None,
    stay_cost: Range = 0.0,
    error: float = 0.0,
    cost_max: ArrayLike | None = None,
) -> ActionModels:
    """Return what is known of a field whose walls may stand anywhere.

    Parameters
    ----------
    spaces
        What says which states, actions and pairs there are; see
        :class:`~escapade.uncertainty.ActionModels`.
    moves
        ``(A, dim)``: by how much each action moves; 0 for staying, which never fails.
    coordinates
        ``(S, dim)`` places of the cells; those of the problem by default.
    names
        Names of the actions, and so of the walls that they run into; those of the
        problem by default.
    apart
        Opposite walls are at least this many steps apart: from the cell that runs into
        one of them it takes so many to get to a cell that runs into the other.
    straight
        Whether walls run straight across: then a wall is hit either by all cells of a
        row or by none.
    rate, reach, law
        How moves fail: with a probability in this range, ending somewhere within a
        (Euclidean) distance of where they meant to lead, by the ``"uniform"`` or by
        ``"any"`` law.
    hit_cost, missed_cost
        Mean cost of a hit, and of a move that fails: anything from 0 to that of a hit
        by default, as a move that fails may hit a wall.
    stay_cost
        Mean cost of an action that does not move, such as ``(0.0, 1.0)`` where that is
        not known to be free.
    error
        Probability with which a true model may ever be ruled out by mistake.
    cost_max
        Bound on costs; that of the problem by default.

    Notes
    -----
    Say where walls are known with :meth:`~escapade.uncertainty.ActionModels.establish`,
    and where there are none with ``rule_out``; what follows for other places, such as
    how near the opposite wall can be, is worked out.
    """
    places = _read_places(coordinates, spaces)
    steps = read_numbers("moves", moves)
    shape = (spaces.n_actions, places.shape[1])
    if steps.shape != shape:
        raise refusal("moves", f"shape {shape}", f"shape {steps.shape}")
    apart = read_count("apart", apart, least=0)
    known = spaces.action_names if isinstance(spaces, CMDP) else None
    labels = read_names("names", known if names is None else names, spaces.n_actions)
    if labels is None:
        raise refusal("names", "a name for each action", "none")
    if "free" in labels:
        raise refusal("names", "names other than that of the model 'free'", "'free'")
    cost = read_number("hit_cost", hit_cost)
    missed = (0.0, cost) if missed_cost is None else missed_cost

    ahead = _cells_ahead(places, steps)
    own = np.arange(spaces.n_states)[:, np.newaxis]
    still = ~np.any(steps, axis=1)
    staying = stay_cost if isinstance(stay_cost, tuple) else (stay_cost, stay_cost)
    least, most = (
        read_pair_numbers("stay_cost", end, spaces) * still[spaces.pair_action]
        for end in staying
    )
    models = {
        "free": ActionModel(typical=ahead, cost=(least, most), missed_cost=missed)
    }
    directions = np.flatnonzero(~still)
    for action in directions:
        stopped = np.full(ahead.shape, -1, dtype=np.int64)
        stopped[:, action] = own[:, 0]
        models[labels[action]] = ActionModel(
            typical=stopped, cost=cost, missed_cost=missed
        )
    number = np.full((spaces.n_states, spaces.n_actions), -1, dtype=np.int64)
    number[spaces.pair_state, spaces.pair_action] = np.arange(spaces.n_pairs)
    moving = ~still[spaces.pair_action]
    ends = rate if isinstance(rate, tuple) else (rate, rate)
    low, high = (read_pair_numbers("rate", end, spaces) * moving for end in ends)
    opposite = [
        (int(a), int(b))
        for a in directions
        for b in directions
        if a < b and np.allclose(steps[a], -steps[b])
    ]
    order = {int(action): 1 + i for i, action in enumerate(directions)}
    return ActionModels(
        spaces,
        models,
        failures=Failures(around=within(places, reach), rate=(low, high), law=law),
        groups=_across(places, steps, number) if straight else None,
        transfers=[
            _too_close(a, b, order, apart, ahead, number) for a, b in opposite if apart
        ],
        error=error,
        cost_max=cost_max,
    )


def _read_places(coordinates: ArrayLike | None, spaces: Spaces) -> FloatArray:
    own = spaces.coordinates if isinstance(spaces, CMDP) else None
    places = read_coordinates(
        own if coordinates is None else coordinates, spaces.n_states
    )
    if places is None:
        raise refusal("coordinates", "a place for each state", "none")
    return places


def _cells_ahead(places: FloatArray, steps: FloatArray) -> IntArray:
    """Return the cell to which each move leads, ``(S, A)``; −1 where there is none."""
    tree = cKDTree(places)
    goals = places[:, np.newaxis] + steps
    _, found = tree.query(goals, distance_upper_bound=_SAME_PLACE)
    ahead: IntArray = np.where(found < len(places), found, -1).astype(np.int64)
    return ahead


def _across(places: FloatArray, steps: FloatArray, number: IntArray) -> IntArray:
    """Return one label for all pairs that run into the same straight wall."""
    labels = np.full(int(number.max()) + 1, -1, dtype=np.int64)
    count = 0
    for action in np.flatnonzero(np.any(steps, axis=1)):
        rows = np.flatnonzero(number[:, action] >= 0)
        along = np.round(places[rows] @ steps[action], 6)
        levels, level = np.unique(along, return_inverse=True)
        labels[number[rows, action]] = count + level
        count += levels.size
    return labels


def _too_close(
    one: int,
    other: int,
    order: dict[int, int],
    apart: int,
    ahead: IntArray,
    number: IntArray,
) -> Transfer:
    """Return the rule that two opposite walls are not fewer steps apart."""
    sources, targets = [], []
    cell = np.arange(len(ahead))
    walk = cell.copy()  # k steps away from the wall that ``one`` runs into
    for _ in range(apart):
        both = (number[cell, one] >= 0) & (number[walk, other] >= 0)
        sources.append(number[cell, one][both])
        targets.append(number[walk, other][both])
        onward = ahead[walk, other]
        cell, walk = cell[onward >= 0], onward[onward >= 0]
    rho = np.ones((len(order) + 1, len(order) + 1))
    rho[order[one], order[other]] = 0.0
    return Transfer(
        source=np.concatenate(sources), target=np.concatenate(targets), rho=rho
    )
