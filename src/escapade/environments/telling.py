"""What can be told of a model: its spaces, bounds and names, some rows, some costs."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from escapade.knowledge.knowledge import Knowledge
from escapade.model.cmdp import CMDP
from escapade.typing import BoolArray, FloatArray

__all__ = ["costs_of", "rows_of", "tell"]


def tell(cmdp: CMDP, **told: Any) -> Knowledge:
    """Return knowledge of the spaces, bounds and names of a model, and what is told."""
    available = np.zeros((cmdp.n_states, cmdp.n_actions), dtype=np.bool_)
    available[cmdp.pair_state, cmdp.pair_action] = True
    return Knowledge(
        cmdp.n_states,
        cmdp.n_actions,
        discount=cmdp.discount,
        budget=cmdp.budget,
        reward_max=cmdp.reward_max,
        cost_max=cmdp.cost_max,
        start=cmdp.start,
        available=available,
        state_names=cmdp.state_names,
        action_names=cmdp.action_names,
        coordinates=cmdp.coordinates,
        **told,
    )


def rows_of(cmdp: CMDP, chosen: BoolArray) -> sp.csr_array:
    """Return the rows of the chosen pairs, ``(S · A, S)``, the others empty."""
    kept = sp.diags_array(chosen.astype(np.float64)) @ cmdp.transition_matrix
    flat = cmdp.pair_state.astype(np.int64) * cmdp.n_actions + cmdp.pair_action
    rows = sp.coo_array(kept)
    shape = (cmdp.n_states * cmdp.n_actions, cmdp.n_states)
    placed = (flat[rows.row], rows.col)
    table = sp.csr_array(sp.coo_array((rows.data, placed), shape=shape))
    table.eliminate_zeros()
    return table


def costs_of(cmdp: CMDP, chosen: BoolArray | None = None) -> FloatArray:
    """Return the mean costs of the chosen pairs, ``(K, S, A)``, NaN elsewhere."""
    table = np.full((cmdp.n_costs, cmdp.n_states, cmdp.n_actions), np.nan)
    table[:, cmdp.pair_state, cmdp.pair_action] = np.where(
        np.ones(cmdp.n_pairs, dtype=np.bool_) if chosen is None else chosen,
        cmdp.cost,
        np.nan,
    )
    return table
