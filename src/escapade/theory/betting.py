r"""How large the mean of bounded samples may be, found by betting against it.

Let X lie in [0, M].  Whoever doubts that its mean is m or more stakes a share ℓ of a
capital of 1 on every sample, at the odds

.. math:: K_n(m, ℓ) = \prod_{i \le n} \Bigl(1 + ℓ \frac{m - X_i}{M - m}\Bigr),
    \qquad 0 \le ℓ \le 1.

If the mean is at least m this is a non-negative supermartingale that begins at 1, and
so is any average of it over shares ℓ that were fixed beforehand.  By Markov's
inequality it ends at 1/δ or more with probability at most δ.  It grows with m, so with
probability at least 1 − δ the mean lies below the m at which it first reaches 1/δ.

No law of large numbers is used, and no variance is assumed: where the samples vary
little the bound is close to an empirical Bernstein bound, and where they do not vary at
all it is about :math:`M - (M - X) δ^{1/n}`, as it must be: with probability δ, a
thing that happens to a share of :math:`1 - δ^{1/n}` has not happened in n samples.

The shares here are 1, 1/4, 1/16, ..., each with half the weight of the one before, so
that whatever share would have been best loses little.
"""

from __future__ import annotations

import math

import numpy as np

from escapade.errors import refusal
from escapade.model.arguments import read_number, read_numbers
from escapade.typing import ArrayLike, FloatArray

__all__ = ["upper_mean_bound"]

_SHARES = 0.25 ** np.arange(12)
_LOG_WEIGHTS = -math.log(2.0) * np.append(np.arange(1, 12), 11)
_HALVINGS = 40


def upper_mean_bound(
    samples: ArrayLike, *, low: float, high: float, delta: float
) -> FloatArray:
    """Return what the mean stays below with probability at least ``1 − delta``.

    Parameters
    ----------
    samples
        ``(n, ...)``; independent along the first axis, each column on its own.
    low, high
        What every sample is certain to lie between.
    delta
        Probability with which the bound of a column may fail.

    Returns
    -------
    ndarray
        One bound a column, shape ``samples.shape[1:]``.

    Examples
    --------
    >>> tossed = [0.0, 1.0] * 100
    >>> round(float(upper_mean_bound(tossed, low=0.0, high=1.0, delta=0.05)), 3)
    0.61
    """
    x = read_numbers("samples", samples)
    if x.ndim == 0 or len(x) == 0:
        raise refusal("samples", "at least one", f"shape {x.shape}")
    low, high = read_number("low", low), read_number("high", high)
    if not low < high:
        raise refusal("high", f"a number above {low:g}", high)
    if not 0.0 < read_number("delta", delta) < 1.0:
        raise refusal("delta", "a number in (0, 1)", delta)
    outside = (x < low) | (x > high)
    if outside.any():
        place = tuple(int(i) for i in np.argwhere(outside)[0])
        raise refusal(
            "samples", f"numbers in [{low:g}, {high:g}]", float(x[place]), f"{place}"
        )
    scaled = (x.reshape(len(x), -1) - low) / (high - low)
    below, above = scaled.mean(axis=0), np.ones(scaled.shape[1])
    for _ in range(_HALVINGS):
        middle = 0.5 * (below + above)
        lost = _log_capital(scaled, middle) < -math.log(delta)
        below = np.where(lost, middle, below)
        above = np.where(lost, above, middle)
    bound: FloatArray = (low + (high - low) * above).reshape(x.shape[1:])
    return bound


def _log_capital(x: FloatArray, m: FloatArray) -> FloatArray:
    """Return the logarithm of the capital against each mean ``m`` in (0, 1)."""
    with np.errstate(divide="ignore", invalid="ignore"):  # all may be lost at ℓ = 1
        odds = np.where(m < 1.0, (m - x) / (1.0 - m), np.inf)
        each = [np.log1p(share * odds).sum(axis=0) for share in _SHARES]
    total: FloatArray = np.logaddexp.reduce(
        [log + weight for log, weight in zip(each, _LOG_WEIGHTS, strict=True)]
    )
    return total
