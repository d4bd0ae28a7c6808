"""What an agent is told of a step, held to what was told at birth."""

from __future__ import annotations

import operator
from typing import SupportsIndex

import numpy as np

from escapade.errors import AssumptionError, refusal
from escapade.knowledge.knowledge import Knowledge
from escapade.knowledge.recorded import allowed_samples
from escapade.typing import ArrayLike, FloatArray

__all__ = ["Surely", "read_cost", "read_reward", "read_state"]


def read_state(knowledge: Knowledge, argument: str, value: SupportsIndex) -> int:
    """Return a state that exists."""
    if type(value) is int and 0 <= value < knowledge.n_states:
        return value
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
    most = knowledge.reward_max
    try:
        reward = float(value)
    except (TypeError, ValueError):
        raise refusal("reward", f"a number in [0, {most:g}]", repr(value)) from None
    if not 0.0 <= reward <= most:
        raise AssumptionError(
            f"reward: expected a number in [0, {most:g}], found {reward:g}"
        )
    return reward


def read_cost(knowledge: Knowledge, value: ArrayLike) -> FloatArray:
    """Return the costs of all channels, each within its bound."""
    most = knowledge.cost_max
    if type(value) is float and most.size == 1 and 0.0 <= value <= most[0]:
        return np.array([value])
    try:
        cost = np.atleast_1d(np.array(value, dtype=np.float64))
    except (TypeError, ValueError):
        raise refusal("cost", f"{most.size} numbers", repr(value)) from None
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


class Surely:
    """What single samples may be, by what was told at birth.

    A mean at the edge of what is possible, such as that of a free pair, allows one
    value alone; so does a mean that every sample is said to equal.  Of all other pairs
    a sample may be anything within the bounds, and these are infinite.

    Attributes
    ----------
    least_reward, most_reward
        ``[pairs]``.
    least_cost, most_cost
        ``[K, pairs]``.
    """

    def __init__(self, knowledge: Knowledge) -> None:
        self._knowledge = knowledge
        self.least_reward, self.most_reward = allowed_samples(
            knowledge.reward_lower,
            knowledge.reward_upper,
            knowledge.exact_rewards,
            np.asarray(knowledge.reward_max),
        )
        self.least_cost, self.most_cost = allowed_samples(
            knowledge.cost_lower,
            knowledge.cost_upper,
            knowledge.exact_costs,
            knowledge.cost_max[:, np.newaxis],
        )

    def contradicted(
        self, pair: int, reward: float | None, cost: FloatArray | None
    ) -> str:
        """Say what a sample surely rules out of what was told, if anything."""
        least, most = self.least_reward[pair], self.most_reward[pair]
        known = self._knowledge
        if reward is not None and not least <= reward <= most:
            lower, upper = known.reward_lower[pair], known.reward_upper[pair]
            return self._told("reward", pair, lower, upper, reward)
        if cost is None:
            return ""
        for k, found in enumerate(cost):
            if not self.least_cost[k, pair] <= found <= self.most_cost[k, pair]:
                what = "cost" if cost.size == 1 else f"cost {k}"
                lower, upper = known.cost_lower[k, pair], known.cost_upper[k, pair]
                return self._told(what, pair, lower, upper, found)
        return ""

    def _told(
        self, what: str, pair: int, lower: float, upper: float, found: float
    ) -> str:
        known = f"{lower:g}" if lower == upper else f"[{lower:g}, {upper:g}]"
        return (
            f"{what}: expected {known} in {self._knowledge.pairs.name(pair)}, as was "
            f"told at birth, found {found:g}"
        )
