"""What an agent is told of a step, held to what was told at birth."""

from __future__ import annotations

import operator
from typing import SupportsIndex

import numpy as np

from escapade.errors import AssumptionError, refusal
from escapade.knowledge.knowledge import Knowledge
from escapade.typing import ArrayLike, FloatArray

__all__ = ["read_cost", "read_reward", "read_state"]


def read_state(knowledge: Knowledge, argument: str, value: SupportsIndex) -> int:
    """Return a state that exists."""
    last = knowledge.n_states - 1
    try:
        state = operator.index(value)
    except TypeError:
        raise refusal(argument, f"a state in 0..{last}", repr(value)) from None
    if not 0 <= state <= last:
        raise AssumptionError(
            f"{argument}: expected a state in 0..{last}, found {state}"
        )
    return state


def read_reward(knowledge: Knowledge, value: float) -> float:
    """Return a reward within its bound."""
    reward, most = float(value), knowledge.reward_max
    if not 0.0 <= reward <= most:
        raise AssumptionError(
            f"reward: expected a number in [0, {most:g}], found {reward:g}"
        )
    return reward


def read_cost(knowledge: Knowledge, value: ArrayLike) -> FloatArray:
    """Return the costs of all channels, each within its bound."""
    most = knowledge.cost_max
    cost = np.atleast_1d(np.array(value, dtype=np.float64))
    if cost.shape != most.shape:
        raise refusal("cost", f"{most.size} numbers", f"shape {cost.shape}")
    bad = ~((cost >= 0.0) & (cost <= most))
    if bad.any():
        k = int(np.argmax(bad))
        raise AssumptionError(
            f"cost: expected a number in [0, {most[k]:g}], found {cost[k]:g}"
            + (f" in channel {k}" if most.size > 1 else "")
        )
    return cost
