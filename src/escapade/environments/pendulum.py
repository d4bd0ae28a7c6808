"""An inverted pendulum in a band of angles, cut into cells.

The angle θ from upright and the speed ω obey

    ω' = ω + dt (g sin θ + u) + noise,    θ' = θ + dt ω',

with a torque u of −1, 0 or 1 times ``torque``.  Angle and speed are cut into cells;
what a cell leads to is averaged over points within it and over the noise.  The world is
the averaged one, exactly; how far that is from a real pendulum is another question.

Leaving the band costs 1, and the
pendulum is put upright again.  Leaning to the right earns: the reward rises from 0 at
the left end of the band to 1 at the right one.

An agent is told the rows of a controller that holds the pendulum up, measured long ago.
Of other torques it has a simulator, which is off: each of its probabilities, that of
leaving the band included, is within a share ``doubt`` of itself of the true one.  That
is enough to plan by, so every state counts as known; what life shows narrows it down.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from escapade.environments.telling import costs_of, rows_of, tell
from escapade.environments.world import World
from escapade.errors import refusal
from escapade.knowledge.knowledge import Knowledge
from escapade.model.arguments import check_room, read_count, read_number
from escapade.model.cmdp import CMDP
from escapade.planning.dynamic_programming import policy_iteration
from escapade.typing import FloatArray, IntArray
from escapade.uncertainty.interval import Interval

__all__ = ["pendulum"]

_GRAVITY = 2.0
_DT = 0.2
_MOST_SPEED = 1.2
_WITHIN = 4
_SEED = 20_000
_KICKS = ((-0.25, 0.25), (0.0, 0.5), (0.25, 0.25))


def pendulum(
    cells: int = 9,
    *,
    band: float = 0.45,
    torque: float = 2.0,
    doubt: float = 0.1,
    discount: float = 0.98,
    budget: float = 2.5,
) -> World:
    """Return a pendulum that should stay within a band of angles.

    Parameters
    ----------
    cells
        Cells of angle and of speed, an odd number of at least 5.
    band
        Largest angle, in radians.
    torque
        Largest torque.
    doubt
        By which share of itself a probability of the simulator may be off, below 1.
    discount, budget
        Of the problem.

    Examples
    --------
    >>> import escapade as ep
    >>> ep.environments.pendulum()
    World('pendulum', 81 states, 3 actions, 243 pairs, 1 cost, discount 0.98, ...)
    """
    cells = read_count("cells", cells, least=5)
    if cells % 2 == 0:
        raise refusal("cells", "an odd number, so that one of them is upright", cells)
    check_room("cells", cells, 3 * cells**4)
    width = read_number("band", band)
    force = read_number("torque", torque)
    for name, value in (("band", width), ("torque", force)):
        if not 0.0 < value < np.inf:
            raise refusal(name, "a finite number above 0", value)
    unsure = read_number("doubt", doubt)
    if not 0.0 <= unsure < 1.0:
        raise refusal("doubt", "a number in [0, 1)", unsure)
    angle_edges = np.linspace(-width, width, cells + 1)
    speed_edges = np.linspace(-_MOST_SPEED, _MOST_SPEED, cells + 1)
    n = cells * cells
    upright = (cells // 2) * cells + cells // 2
    rows, falls = np.zeros((n, 3, n)), np.zeros((n, 3))
    for state in range(n):
        angle, speed = _points(state, cells, angle_edges, speed_edges)
        for action, push in enumerate((-force, 0.0, force)):
            for kick, chance in _KICKS:
                faster = speed + _DT * (_GRAVITY * np.sin(angle) + push) + kick
                after = angle + _DT * faster
                fallen = np.abs(after) >= width
                cell = _cell(after, angle_edges) * cells + _cell(faster, speed_edges)
                share = chance / angle.size
                np.add.at(rows[state, action], np.where(fallen, upright, cell), share)
                falls[state, action] += share * fallen.sum()
    lean = (np.arange(n) // cells) / (cells - 1.0)
    angles = 0.5 * (angle_edges[1:] + angle_edges[:-1])
    speeds = 0.5 * (speed_edges[1:] + speed_edges[:-1])
    cmdp = CMDP(
        rows / rows.sum(axis=-1, keepdims=True),
        np.repeat(lean[:, np.newaxis], 3, axis=1),
        np.clip(falls, 0.0, 1.0),
        discount=discount,
        budget=budget,
        start=upright,
        reward_max=1.0,
        cost_max=1.0,
        action_names=["push left", "let go", "push right"],
        coordinates=np.array([(a, s) for a in angles for s in speeds]),
    )
    return World(
        name="pendulum",
        description="Lean a pendulum to the right, but not out of its band.",
        cmdp=cmdp,
        cost_noise="bernoulli",
        told=partial(_told, cmdp, unsure),
    )


def _points(
    state: int, cells: int, angle_edges: FloatArray, speed_edges: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return points spread over a cell: their angles and their speeds."""
    i, j = divmod(state, cells)
    inside = (np.arange(_WITHIN) + 0.5) / _WITHIN
    angles = angle_edges[i] + inside * (angle_edges[i + 1] - angle_edges[i])
    speeds = speed_edges[j] + inside * (speed_edges[j + 1] - speed_edges[j])
    angle, speed = np.meshgrid(angles, speeds)
    return angle.ravel(), speed.ravel()


def _cell(values: FloatArray, edges: FloatArray) -> IntArray:
    found = np.searchsorted(edges, values, side="right") - 1
    return np.clip(found, 0, edges.size - 2).astype(np.int64)


def _told(cmdp: CMDP, doubt: float) -> Knowledge:
    """Return the rows of the controller that falls least, and those of a simulator."""
    careful = np.zeros(cmdp.n_pairs, dtype=np.bool_)
    careful[policy_iteration(cmdp, -cmdp.cost.sum(axis=0)).pairs] = True
    rng = np.random.default_rng(_SEED)
    # off by a third of what is told, and again by as much when rows are scaled to 1,
    # which leaves the truth within the share
    off = 1.0 + doubt / 3.0 * rng.uniform(-1.0, 1.0, cmdp.nnz)
    exact = np.repeat(careful, np.diff(cmdp.row_ptr))
    simulated = cmdp.probability * np.where(exact, 1.0, off)
    sums = np.add.reduceat(simulated, cmdp.row_ptr[:-1])
    simulated /= np.repeat(sums, np.diff(cmdp.row_ptr))
    bounds = np.full((cmdp.n_states, cmdp.n_actions), np.nan)
    bounds[cmdp.pair_state, cmdp.pair_action] = np.where(
        careful, np.nan, np.minimum((1.0 + doubt) * cmdp.cost[0], 1.0)
    )
    return tell(
        cmdp,
        models=Interval(
            cmdp.replace(probability=simulated),
            lower=(1.0 - doubt) * simulated,
            upper=np.minimum((1.0 + doubt) * simulated, 1.0),
        ),
        known_rows=rows_of(cmdp, careful),
        costs=costs_of(cmdp, careful),
        cost_bounds=bounds,
        exact_rewards=True,
        known_states=np.arange(cmdp.n_states),
    )
