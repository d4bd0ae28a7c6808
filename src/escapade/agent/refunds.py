"""Which costs are accounted for in expectation, though a refund could be had.

R0 takes from the promise what a step is thought to cost at worst, R1 and R2 what it
cost.  Where the worst is far from the mean, refunds are what a promise lives on.  Where
it is near, they only make the promise swing: what good luck brings above the cap is
lost, and bad luck is not.  So where what R0 charges, ``Q − γ P·w``, is nearly the mean
cost, the ledger is told of no refund: R0 holds then at any promise.

With one budget refunds are always taken.
"""

from __future__ import annotations

import numpy as np

from escapade.agent.safety import Safety
from escapade.knowledge.belief import Belief
from escapade.typing import BoolArray

__all__ = ["without_refund"]

_NEARLY = 0.5
"""Share of what R0 charges that may be lost by it."""

_ENOUGH = 5
"""Samples after which a mean is believed."""


def without_refund(belief: Belief, safety: Safety) -> BoolArray:
    """Return where costs are accounted for in expectation, ``[K, pairs]``."""
    knowledge, evidence = belief.knowledge, belief.evidence
    if knowledge.n_costs == 1:
        return np.zeros(safety.q.shape, dtype=np.bool_)
    w = np.where(safety.promisable, safety.w, 0.0)
    weighed = belief.nominal * w[:, knowledge.successor]
    ahead = knowledge.discount * np.add.reduceat(
        weighed, knowledge.row_ptr[:-1], axis=1
    )
    charged = safety.q - ahead
    known = belief.cost_upper == belief.confidence.cost_lower
    known |= evidence.cost_count >= _ENOUGH
    known &= knowledge.exact_pairs | (evidence.pair_visits >= _ENOUGH)
    near: BoolArray = charged - belief.mean_cost() <= _NEARLY * charged
    found: BoolArray = near & known & safety.allowed
    return found
