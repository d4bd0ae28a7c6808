"""Laws of rewards and costs around their means.

A CMDP holds means and bounds; a sample may follow any law with that mean inside the
bounds.  Three are offered, each settled by the mean ``m``, the bound ``M`` and at most
one uniform number ``u`` in [0, 1):

``deterministic``
    the mean itself; draws nothing;
``bernoulli``
    ``M`` if ``u < m / M``, else 0: the law of the largest variance within the bounds;
``uniform``
    ``m + h (2u − 1)`` with ``h = min(m, M − m)``: the widest uniform law around the
    mean that stays inside ``[0, M]``.

Given its mean a sample is independent of everything else.  Where the mean is that of
the model, it depends on the state and the action alone; an environment may be given the
means of costs by next state as well.
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from escapade.errors import refusal

__all__ = ["Noise", "draw_sample", "read_noise"]

Noise = Literal["deterministic", "bernoulli", "uniform"]
"""Names of the laws."""


def read_noise(argument: str, value: str) -> Noise:
    """Return the name of a law, or refuse it."""
    for name in get_args(Noise):
        if value == name:
            law: Noise = name
            return law
    raise refusal(argument, f"one of {list(get_args(Noise))}", repr(value))


def draw_sample(
    law: Noise, mean: float, maximum: float, rng: np.random.Generator
) -> float:
    """Draw one sample with this mean in ``[0, maximum]``."""
    if law == "deterministic":
        return mean
    u = float(rng.random())
    if law == "bernoulli":
        return maximum if u * maximum < mean else 0.0
    half_width = min(mean, maximum - mean)
    return min(max(mean + half_width * (2.0 * u - 1.0), 0.0), maximum)
