"""What the agent could do at birth, and what no evidence could ever make possible."""

from __future__ import annotations

import numpy as np

from escapade.planning.fallback import Fallback
from escapade.planning.robust_operator import RobustOperator, robust_control
from escapade.preflight.plant import Plant
from escapade.typing import BoolArray

__all__ = ["beyond_help", "open_pairs"]


def open_pairs(plant: Plant, found: Fallback) -> BoolArray:
    """Return the pairs that a full promise pays for at birth, ``[pairs]``.

    Their worst cost with the fallback after it is within every cap, and they stay
    within the promisable states whatever happens.
    """
    pairs = found.allowed.copy()
    for k, alone in enumerate(np.eye(plant.cap.size)):
        sets, gain = plant.sets.charged(plant.cost, alone, plant.model.discount)
        w = np.where(found.promisable, found.cost_to_go[k], 0.0)
        q = sets.backup(w, gain, plant.model.discount)
        pairs &= q <= plant.cap[k]
    return pairs


def beyond_help(plant: Plant) -> BoolArray:
    """Return the states whose least cost exceeds a budget whatever is true, ``[S]``.

    The kernel that is kindest among the possible ones, and the least costs that are
    possible: no evidence can do better, so no agent can ever promise these states.
    """
    model, belief = plant.model, plant.belief
    least = model.cost if belief is None else belief.confidence.cost_lower
    hopeless = np.zeros(model.n_states, dtype=np.bool_)
    for k, alone in enumerate(np.eye(plant.cap.size)):
        sets, gain = plant.sets.charged(least, alone, model.discount, sense="min")
        operator = RobustOperator(
            sets,
            model.state_ptr,
            gain,
            model.discount,
            nature="min",
            select="min",
        )
        hopeless |= robust_control(operator, precision=1e-9).lower > plant.cap[k]
    return hopeless
