"""A world that changes: what is noticed of it, and what is held of it then.

With ``drift_window`` set, whatever was learned of a pair is tested, window after window
of its visits (:mod:`escapade.learning.drift`).  A pair that has moved is *reopened*:
what was seen there is forgotten, and what was held of it at birth is held again.  Where
even that cannot explain the window, what was told at birth is wrong, and a break.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from escapade.knowledge.belief import Belief
from escapade.learning.drift import DriftTest
from escapade.typing import FloatArray, IntArray

__all__ = ["Drift", "promise_anew"]


class Drift:
    """The change test of one life.

    Parameters
    ----------
    belief
        What is held possible; made with ``reopens``.
    delta, window
        See :class:`escapade.agent.settings.E4Settings`.
    """

    def __init__(self, belief: Belief, *, delta: float, window: int) -> None:
        self._test = DriftTest(belief.evidence, delta=delta, window=window)

    def look(self, belief: Belief, pairs: IntArray) -> tuple[IntArray, str]:
        """Return which of ``pairs`` have moved, and what was told at birth in vain."""
        moved = self._find(belief, pairs)
        if moved.size == 0:
            return moved, ""
        lost = self._find(belief, moved, told=True)
        if lost.size == 0:
            return moved, ""
        return moved, (
            f"{belief.knowledge.pairs.name(int(lost[0]))}: expected what was told at "
            f"birth to hold, found that it does not explain what was seen of late"
        )

    def _find(self, belief: Belief, pairs: IntArray, *, told: bool = False) -> IntArray:
        knowledge = belief.knowledge
        return self._test.look(
            belief.evidence,
            belief.prior if told else belief.confidence,
            pairs[~knowledge.varying[pairs]],  # the others may change as they like
            reward_max=knowledge.reward_max,
            cost_max=knowledge.cost_max,
        )

    def go_on(self, belief: Belief, pairs: IntArray, moved: IntArray) -> None:
        """Begin new windows where they are full, and where pairs were reopened."""
        full = self._test.full(belief.evidence, pairs)
        self._test.begin(belief.evidence, np.union1d(full, moved))

    def state(self) -> dict[str, np.ndarray]:
        """Return the windows as arrays by name."""
        return self._test.state()

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Go back to what :meth:`state` returned."""
        self._test.restore(arrays)


def promise_anew(promise: FloatArray, needed: FloatArray) -> str:
    """Raise the promise, in place, to what a wider belief needs; say what became of it.

    ``promise`` and ``needed``, what the fallback costs from here, are ``[K]``.
    """
    what = "changed, and is reopened"
    before = promise.tolist()
    np.maximum(promise, needed, out=promise)
    if not np.isfinite(needed).all():
        return f"{what}; nothing can be promised here any more"
    if promise.tolist() != before:
        return (
            f"{what}; the promise of {before} is broken, it is {promise.tolist()} from "
            f"now on"
        )
    return f"{what}; the promise is kept"
