"""Rewards of a foreign environment, moved into ``[0, r_max]``, and the way back.

Agents and planners here take rewards from 0 on.  A constant is added to each, the same
at every step, so that the order of policies stays what it was in a life that goes on:
a value moves by ``offset / (1 − γ)``, and nothing else changes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from escapade.errors import AssumptionError, refusal

__all__ = ["RewardMap"]

_SLACK = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardMap:
    """``reward − low``, for rewards between two bounds.

    Attributes
    ----------
    low, high
        Bounds on the rewards as the environment gives them.
    """

    low: float
    high: float

    @classmethod
    def between(cls, low: Any, high: Any, *, argument: str) -> RewardMap:
        """Return the map for rewards within bounds; no shift where none is below 0."""
        bounds = (float(low), float(high))
        if not (all(map(math.isfinite, bounds)) and bounds[0] <= bounds[1]):
            raise refusal(argument, "two finite numbers, the lower first", bounds)
        return cls(low=min(bounds[0], 0.0), high=max(bounds[1], 0.0))

    @property
    def reward_max(self) -> float:
        """The largest reward after the shift."""
        return self.high - self.low

    def shifted(self, reward: Any, step: int) -> float:
        """Return a reward as agents see it.

        Raises
        ------
        AssumptionError
            If it is no number, or outside the bounds.
        """
        expected = f"a number in [{self.low:g}, {self.high:g}]"
        try:
            number = float(reward)
        except (TypeError, ValueError):
            raise AssumptionError(
                f"reward: expected {expected}, found {reward!r} at step {step}"
            ) from None
        slack = _SLACK * (1.0 + self.reward_max)
        if not self.low - slack <= number <= self.high + slack:
            raise AssumptionError(
                f"reward: expected {expected}, found {number:.10g} at step {step}"
            )
        return min(max(number - self.low, 0.0), self.reward_max)

    def raw(self, reward: float) -> float:
        """Return a reward as the environment gave it."""
        return reward + self.low

    def __str__(self) -> str:
        if self.low == 0.0:
            return f"rewards in [0, {self.high:g}], as they are"
        return (
            f"rewards in [{self.low:g}, {self.high:g}], seen as reward "
            f"{'+' if self.low < 0 else '-'} {abs(self.low):g}"
        )
