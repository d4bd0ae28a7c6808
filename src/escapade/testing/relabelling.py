"""The same problem under other numbers: no answer may depend on them."""

from __future__ import annotations

import numpy as np

from escapade.errors import refusal
from escapade.model.cmdp import CMDP
from escapade.model.policy import Policy
from escapade.typing import ArrayLike

__all__ = ["relabelled", "relabelled_policy"]


def relabelled(cmdp: CMDP, order: ArrayLike) -> CMDP:
    """Return the problem in which state ``i`` is what was state ``order[i]``.

    Parameters
    ----------
    cmdp
        The problem.
    order
        Every state once.

    Examples
    --------
    >>> import escapade as ep
    >>> chain = ep.CMDP(
    ...     [[[0.0, 1.0]], [[0.0, 1.0]]], [[0.0], [1.0]], [[0.0], [0.0]],
    ...     discount=0.5, budget=0.0,
    ... )
    >>> relabelled(chain, [1, 0]).reward.tolist()
    [1.0, 0.0]
    """
    states = np.asarray(order)
    if not np.array_equal(np.sort(states), np.arange(cmdp.n_states)):
        raise refusal("order", f"the states 0..{cmdp.n_states - 1}, each once", order)
    renumber = np.empty(cmdp.n_states, dtype=np.int64)
    renumber[states] = np.arange(cmdp.n_states)
    counts = np.diff(cmdp.state_ptr)[states]
    state_ptr = np.concatenate([[0], np.cumsum(counts)])
    # the pairs of the old states, in the order of the new ones
    pairs = np.repeat(cmdp.state_ptr[:-1][states] - state_ptr[:-1], counts)
    pairs = pairs + np.arange(cmdp.n_pairs)
    rows = cmdp.transition_matrix[pairs]
    names, places = cmdp.state_names, cmdp.coordinates
    return cmdp.replace(
        state_ptr=state_ptr,
        pair_action=cmdp.pair_action[pairs],
        row_ptr=rows.indptr,
        successor=renumber[rows.indices],
        probability=rows.data,
        reward=cmdp.reward[pairs],
        cost=cmdp.cost[:, pairs],
        start=cmdp.start[states],
        state_names=None if names is None else [names[state] for state in states],
        coordinates=None if places is None else places[states],
    )


def relabelled_policy(policy: Policy, order: ArrayLike) -> Policy:
    """Return the policy that fits :func:`relabelled` with the same order."""
    return Policy(policy.probabilities[np.asarray(order)])
