"""What can be told of a model: its spaces, bounds and names, some rows, some costs."""

from __future__ import annotations

import inspect
from collections.abc import Collection
from typing import Any

import numpy as np
import scipy.sparse as sp

from escapade.errors import check_kind, did_you_mean, refusal
from escapade.knowledge.knowledge import Knowledge
from escapade.model.cmdp import CMDP
from escapade.typing import BoolArray, FloatArray

__all__ = ["check_keywords", "check_told", "costs_of", "rows_of", "tell"]

_KEYWORDS = frozenset(inspect.signature(Knowledge).parameters)
_SIZES = frozenset({"n_states", "n_actions"})


def check_keywords(
    found: Collection[str], *, own: Collection[str] = (), settled: Collection[str] = ()
) -> None:
    """Refuse a keyword that is neither one's own nor one of ``Knowledge``.

    Of the latter sizes are settled, and what else is.
    """
    words = sorted((_KEYWORDS | set(own)) - _SIZES - set(settled))
    for word in found:
        if word not in words:
            raise refusal(
                "keyword",
                "one of this function, or of Knowledge where it is not settled here",
                f"{word}={did_you_mean(word, words)}",
            )


def check_told(cmdp: CMDP, knowledge: Knowledge) -> None:
    """Refuse knowledge of another problem than this world's.

    Bounds on samples may be wider than the world's; the rest has to be the same.
    """
    check_kind("knowledge", knowledge, Knowledge)
    for name, theirs, ours in (
        ("states", knowledge.n_states, cmdp.n_states),
        ("actions", knowledge.n_actions, cmdp.n_actions),
        ("pairs", knowledge.n_pairs, cmdp.n_pairs),
        ("costs", knowledge.n_costs, cmdp.n_costs),
    ):
        if theirs != ours:
            raise refusal("knowledge", f"the world's {ours} {name}", theirs)
    pairs = (knowledge.pairs.pair_state, knowledge.pairs.pair_action)
    if not np.array_equal(pairs, (cmdp.pair_state, cmdp.pair_action)):
        raise refusal("knowledge", "the actions that the world offers", "others")
    if knowledge.discount != cmdp.discount:
        raise refusal(
            "knowledge", f"the world's discount, {cmdp.discount:g}", knowledge.discount
        )
    for name, told, true, fits in (
        ("budget", knowledge.budget, cmdp.budget, np.equal),
        ("cost_max", knowledge.cost_max, cmdp.cost_max, np.greater_equal),
        ("reward_max", [knowledge.reward_max], [cmdp.reward_max], np.greater_equal),
    ):
        for k, (mine, its) in enumerate(zip(told, true, strict=True)):
            if not fits(mine, its):
                least = "" if fits is np.equal else "at least "
                raise refusal(
                    "knowledge",
                    f"{least}the world's {name}, {its:g}",
                    float(mine),
                    f"channel {k}" if len(told) > 1 else None,
                )


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
