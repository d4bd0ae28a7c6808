"""For which prices, and which budgets, a fallback of several budgets is looked for.

One policy must keep all of them, and the one of least cost in proportion to the budgets
need not: it may pay too much in one channel to save in another.  Nor need it where it
keeps smaller budgets, for a larger one lets in states from which dearer ways are taken.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from escapade.model.cmdp import CMDP
from escapade.typing import FloatArray

__all__ = ["attempts", "priced"]

_EMPHASES = (4.0, 32.0, 1e6)  # on one of several channels
_SHARES = tuple(0.5**n for n in range(1, 9))  # of all of several budgets
_SHARES_OF_ONE = tuple(0.25**n for n in range(1, 5))


def attempts(cmdp: CMDP, limits: FloatArray) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Offer budgets, none above the limits, and prices: the likeliest first."""
    yield limits, priced(cmdp, limits)
    for emphasis in _EMPHASES:
        for k in range(limits.size):
            prices = priced(cmdp, limits)
            prices[k] *= emphasis
            yield limits, prices
    most = cmdp.cost_max / (1.0 - cmdp.discount)
    top = np.minimum(limits, most)
    for share in _SHARES:
        yield share * top, priced(cmdp, share * top)
    for share in _SHARES_OF_ONE:
        for k in range(limits.size):
            caps = top.copy()
            caps[k] *= share
            yield caps, priced(cmdp, caps)


def priced(cmdp: CMDP, limits: FloatArray) -> FloatArray:
    """Return one price a channel: 1 over its budget, or 1 if there is only one.

    A budget of 0 weighs a channel so heavily that no saving elsewhere can pay for it.
    """
    if limits.size == 1:
        return np.ones(1)
    most = cmdp.cost_max / (1.0 - cmdp.discount)
    floor = np.where(most > 0.0, 1e-6 * most, 1.0)
    prices: FloatArray = 1.0 / np.maximum(limits, floor)
    return prices
