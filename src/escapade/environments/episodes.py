"""A finite horizon inside a discounted problem: states (state, step).

A CMDP of this library discounts for ever.  A problem that counts H steps, undiscounted,
is one too, exactly: let the state hold the step, and pay at step t

.. math:: r_t(s, a) = γ^{-t} r(s, a),
    c_t(s, a) = γ^{-t} c(s, a),

so that the discount takes back what the scale adds and every step counts alike.  The
bounds on samples grow with them, to γ^{-(H−1)} r_max.  What comes after the
last step has to be said:

``"stop"``
    a state ``end`` that keeps the agent, at no reward and no cost.  Values are then
    sums over H steps, and the budget is that of H steps, bit for bit what was given;
``"restart"``
    the next episode, from the start distribution at step 0, for a lifetime without
    resets.  All episodes are alike, so a policy worth V_H and costing C_H in one
    episode is worth V_H / (1 − γ^H) and costs C_H / (1 − γ^H).  The
    budget is d / (1 − γ^H): it is kept exactly when one episode keeps d.

State ``(s, t)`` has the number ``t · S + s``; ``end`` is the last.

The scale costs accuracy: planners certify values to a precision relative to the largest
value, and what is left to earn at step t has been scaled up by γ^{-t}.  A scale of more
than a million is refused; a discount nearer to 1 makes it small and changes no value.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import scipy.sparse as sp

from escapade.environments.knowledge_of import of_episodes
from escapade.environments.world import World
from escapade.errors import refusal
from escapade.model.arguments import check_room, read_count
from escapade.model.cmdp import CMDP
from escapade.typing import FloatArray

__all__ = ["episodic"]

_LARGEST_SCALE = 1e6


def episodic(
    cmdp: CMDP, horizon: int, *, then: str = "stop", discounted: bool = False
) -> World:
    """Return the problem of living in ``cmdp`` for ``horizon`` steps.

    Parameters
    ----------
    cmdp
        The problem.  Its budgets are those of one episode, and its discount becomes
        that of the new problem.
    horizon
        Steps in an episode, at least 1.
    then
        What follows the last step: ``"stop"`` or ``"restart"``; see the module's text.
    discounted
        Whether the steps of an episode are discounted as in ``cmdp`` (the paper's
        T-step values) rather than counted alike.

    Returns
    -------
    World
        Its ``raw_value`` turns a value into the reward of one episode.

    Examples
    --------
    >>> import escapade as ep
    >>> shop = ep.CMDP([[[1.0], [1.0]]], [[0.0, 2.0]], [[0.0, 1.0]], discount=0.9,
    ...                budget=3.0)
    >>> day = ep.environments.episodic(shop, 10)
    >>> day.cmdp
    CMDP(11 states, 2 actions, 22 pairs, 1 cost, discount 0.9, budget 3)
    >>> always = ep.Policy.deterministic([1] * 11, n_actions=2)
    >>> result = ep.evaluate(day.cmdp, always)
    >>> round(result.start_value, 6), round(float(result.start_costs[0]), 6)
    (20.0, 10.0)
    """
    if not isinstance(cmdp, CMDP):
        raise refusal("cmdp", "a CMDP", type(cmdp).__name__)
    horizon = read_count("horizon", horizon, least=1)
    check_room("horizon", horizon, horizon * max(cmdp.nnz, cmdp.cost.size))
    if then not in ("stop", "restart"):
        raise refusal("then", "'stop' or 'restart'", repr(then))
    scale = np.ones(horizon)
    if not discounted:
        scale = _scale(cmdp.discount, horizon)
    restart = then == "restart"
    n, pairs = cmdp.n_states, cmdp.n_pairs
    n_states = n * horizon + (not restart)

    # Row blocks by step; the last leads to the start, or to the end.
    inner = cmdp.transition_matrix
    if restart:
        begin = sp.csr_array(cmdp.start[np.newaxis])
        final = _widened(sp.csr_array(np.ones((pairs, 1))) @ begin, n_states)
    else:
        final = _points_to(n_states - 1, pairs, n_states)
    blocks = [final]
    if horizon > 1:
        steps = sp.kron(sp.eye_array(horizon - 1), inner, format="csr")
        ahead = sp.csr_array((pairs * (horizon - 1), n))
        passing = sp.csr_array(sp.hstack([ahead, steps], format="csr"))
        blocks.insert(0, _widened(passing, n_states))
    counts = np.tile(np.diff(cmdp.state_ptr), horizon)
    action = np.tile(cmdp.pair_action, horizon)
    reward = np.outer(scale, cmdp.reward).ravel()
    cost = (cmdp.cost[:, np.newaxis] * scale[:, np.newaxis]).reshape(cmdp.n_costs, -1)
    if not restart:
        # every action stays at the end, so that no action need be masked there
        blocks.append(_points_to(n_states - 1, cmdp.n_actions, n_states))
        counts = np.append(counts, cmdp.n_actions)
        action = np.append(action, np.arange(cmdp.n_actions))
        reward = np.append(reward, np.zeros(cmdp.n_actions))
        cost = np.hstack([cost, np.zeros((cmdp.n_costs, cmdp.n_actions))])
    rows = sp.csr_array(sp.vstack(blocks, format="csr"))
    rows.sort_indices()
    start = np.zeros(n_states)
    start[:n] = cmdp.start
    episodes = 1.0 / (1.0 - cmdp.discount**horizon) if restart else 1.0
    problem = CMDP.from_pairs(
        state_ptr=np.concatenate([[0], np.cumsum(counts)]),
        pair_action=action,
        row_ptr=rows.indptr,
        successor=rows.indices,
        probability=rows.data,
        reward=reward,
        cost=cost,
        n_actions=cmdp.n_actions,
        discount=cmdp.discount,
        budget=cmdp.budget * episodes,
        start=start,
        reward_max=cmdp.reward_max * float(scale[-1]),
        cost_max=cmdp.cost_max * float(scale[-1]),
        state_names=_names(cmdp, horizon, end=not restart),
        action_names=cmdp.action_names,
        coordinates=_coordinates(cmdp, horizon, end=not restart),
    )
    return World(
        name="episodic",
        description=f"Episodes of {horizon} steps of another problem.",
        cmdp=problem,
        value_scale=1.0 / episodes,
        told=partial(of_episodes, problem, cmdp, horizon),
    )


def _scale(discount: float, horizon: int) -> FloatArray:
    """Return ``γ^{-t}`` for every step, or refuse a discount that makes it huge."""
    if discount == 0.0 and horizon > 1:
        raise refusal("discount", "a number above 0, to count later steps", discount)
    largest = -np.log(discount) * (horizon - 1) if horizon > 1 else 0.0
    if largest > np.log(_LARGEST_SCALE):
        least = _LARGEST_SCALE ** (-1.0 / (horizon - 1))
        raise refusal(
            "discount",
            f"at least {np.ceil(least * 1e6) / 1e6:g} for {horizon} steps, as every "
            f"step is scaled by its inverse",
            discount,
        )
    scale: FloatArray = discount ** -np.arange(horizon, dtype=np.float64)
    return scale


def _widened(rows: sp.csr_array, n_states: int) -> sp.csr_array:
    """Return the same rows over more states, which they never reach."""
    parts = (rows.data, rows.indices, rows.indptr)
    return sp.csr_array(parts, shape=(rows.shape[0], n_states))


def _points_to(state: int, rows: int, n_states: int) -> sp.csr_array:
    """Return rows that all lead to one state."""
    where = (np.arange(rows), np.full(rows, state))
    return sp.csr_array((np.ones(rows), where), shape=(rows, n_states))


def _names(cmdp: CMDP, horizon: int, *, end: bool) -> list[str]:
    inner = cmdp.state_names or [str(state) for state in range(cmdp.n_states)]
    names = [f"{name} at step {t}" for t in range(horizon) for name in inner]
    return [*names, "end"] if end else names


def _coordinates(cmdp: CMDP, horizon: int, *, end: bool) -> FloatArray:
    """Unroll time to the right, or keep the places that ``cmdp`` has."""
    steps = np.repeat(np.arange(horizon, dtype=np.float64), cmdp.n_states)
    if cmdp.coordinates is None:
        below = np.tile(-np.arange(cmdp.n_states, dtype=np.float64), horizon)
        places = np.stack([steps, below], axis=1)
        last = np.array([float(horizon), 0.0])
    else:
        inner = np.tile(cmdp.coordinates, (horizon, 1))
        places = np.column_stack([inner, steps])
        last = np.append(cmdp.coordinates.max(axis=0), float(horizon))
        last[0] += 1.0
    return np.vstack([places, last]) if end else places
