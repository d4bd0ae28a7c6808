"""Discounted sums from every step of a lifetime on."""

from __future__ import annotations

from escapade.kernels.compilation import compiled
from escapade.typing import FloatArray

__all__ = ["discount_back"]


@compiled
def discount_back(values: FloatArray, gamma: float, out: FloatArray) -> None:
    """``values``, ``out``: ``[T, K]``; ``out[t] = values[t] + γ out[t + 1]``."""
    steps, channels = values.shape
    for k in range(channels):
        after = 0.0
        for t in range(steps - 1, -1, -1):
            after = values[t, k] + gamma * after
            out[t, k] = after
