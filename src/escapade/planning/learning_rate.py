"""Learning rates that change as the iterations go by.

A rate begins at ``initial`` and follows one of four schedules, with ``k`` the iteration
and ``n`` how many there will be:

========== ====================================
constant   ``initial``
sqrt       ``initial / sqrt(1 + k / half)``
inverse    ``initial / (1 + k / half)``
cosine     ``initial (1 + cos(π k / n)) / 2``
========== ====================================
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

from escapade.errors import refusal

__all__ = ["LearningRate", "Schedule", "read_rate"]

Schedule: TypeAlias = Literal["constant", "sqrt", "inverse", "cosine"]


@dataclass(frozen=True, slots=True)
class LearningRate:
    """A learning rate with its schedule.

    Parameters
    ----------
    initial
        The rate of the first iteration, above 0.
    schedule
        ``"constant"``, ``"sqrt"``, ``"inverse"`` or ``"cosine"``.
    half
        The scale of ``"sqrt"`` and ``"inverse"`` in iterations: after so many the
        inverse schedule has come down to one half.

    Examples
    --------
    >>> from escapade.planning import LearningRate
    >>> rate = LearningRate(0.5, schedule="inverse", half=100)
    >>> rate.at(0, 1_000), rate.at(100, 1_000)
    (0.5, 0.25)
    """

    initial: float
    schedule: Schedule = "constant"
    half: float = 1_000.0

    def __post_init__(self) -> None:
        if not 0.0 < self.initial < math.inf:
            raise refusal("initial", "a rate above 0", self.initial)
        if self.schedule not in ("constant", "sqrt", "inverse", "cosine"):
            raise refusal(
                "schedule",
                "'constant', 'sqrt', 'inverse' or 'cosine'",
                repr(self.schedule),
            )
        if not 0.0 < self.half < math.inf:
            raise refusal("half", "a number of iterations above 0", self.half)

    def at(self, iteration: int, iterations: int) -> float:
        """Return the rate of an iteration, counted from 0, out of ``iterations``."""
        if self.schedule == "sqrt":
            return self.initial / math.sqrt(1.0 + iteration / self.half)
        if self.schedule == "inverse":
            return self.initial / (1.0 + iteration / self.half)
        if self.schedule == "cosine":
            share = min(iteration / iterations, 1.0)
            return 0.5 * self.initial * (1.0 + math.cos(math.pi * share))
        return self.initial


def read_rate(argument: str, value: float | LearningRate) -> LearningRate:
    """Return ``value`` as a learning rate; a number is a constant one."""
    if isinstance(value, LearningRate):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise refusal(argument, "a number or a LearningRate", repr(value))
    if not 0.0 < value < math.inf:
        raise refusal(argument, "a rate above 0", float(value))
    return LearningRate(float(value))
