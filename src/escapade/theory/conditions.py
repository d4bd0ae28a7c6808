"""A condition of a lemma, with the two numbers that it compares.

Lemmas of this theory hold under lists of inequalities.  A condition keeps both sides,
so that a reader sees not only whether it holds but by how much, and which one of a
list binds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["Condition", "binding"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """One inequality ``left <= right``.

    Attributes
    ----------
    name
        Short name, such as ``"a"`` for requirement (a) of the Escape Budget Lemma.
    left, right
        The two sides.
    sentence
        What the inequality says, in words.
    scale
        Size of the numbers that the sides were worked out from: sides that differ by
        1e-12 of that are equal but for rounding.
    """

    name: str
    left: float
    right: float
    sentence: str
    scale: float = 0.0

    @property
    def holds(self) -> bool:
        """Whether the left side is at most the right side, up to rounding."""
        if self.left <= self.right:
            return True
        scale = max(abs(self.left), abs(self.right), self.scale)
        return math.isfinite(scale) and self.left - self.right <= 1e-12 * scale

    @property
    def slack(self) -> float:
        """How far the left side is below the right side (0 for equal infinities)."""
        return 0.0 if self.left == self.right else self.right - self.left


def binding(conditions: Iterable[Condition]) -> Condition:
    """Return the condition with the least slack, the first among equals."""
    return min(conditions, key=lambda condition: condition.slack)
