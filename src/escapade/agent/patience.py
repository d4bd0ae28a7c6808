"""When to leave off exploring for a while: what is wanted is hardly had any more.

A pair may be affordable from a full promise, and yet not from what the way there leaves
of it; or chance leads there once in a very long time.  Then the agent goes out, comes
home, waits, and goes out again.  Patience is a clock that runs while something is
wanted, and is set back by every visit that was.  When it has run out, exploring rests
and the agent earns; then it tries again.  Every rest is twice as long as the last, so
that of a life without success ever less is spent on trying.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from escapade.knowledge.knowledge import Knowledge
from escapade.typing import BoolArray, IntArray

__all__ = ["Patience", "patience_of"]

_HORIZONS = 20
"""Horizons, 1/(1 − γ), without success; to save up a whole promise takes a few."""

_A_VISIT = 1
"""Horizons by which a visit that was wanted sets the clock back."""


def patience_of(knowledge: Knowledge) -> int:
    """Return how many steps without success are too many."""
    return int(_HORIZONS / (1.0 - knowledge.discount)) + knowledge.n_states


class Patience:
    """Watches, from plan to plan, whether exploring still brings what is wanted."""

    def __init__(self) -> None:
        self._wanted: BoolArray | None = None
        self._had = 0
        self._since = 0
        self._until = 0
        self._rest = 0

    def rests(self, knowledge: Knowledge, visits: IntArray, wanted: BoolArray) -> bool:
        """Return whether to earn instead; ``visits``, ``wanted``: ``[pairs]``."""
        now = int(visits.sum())
        if now < self._until:
            return True
        before = self._wanted
        if (
            before is None
            or self._until > 0
            or now < self._since
            or (wanted & ~before).any()
        ):
            self._since, self._until = now, 0
        else:
            had = int(visits[before].sum()) - self._had
            set_back = int(_A_VISIT * had / (1.0 - knowledge.discount))
            self._since = min(now, self._since + set_back)
        self._wanted, self._had = wanted.copy(), int(visits[wanted].sum())
        enough = patience_of(knowledge)
        if not wanted.any() or now - self._since < enough:
            return False
        self._rest = max(2 * self._rest, enough)
        self._until = now + self._rest
        return True

    def look_in(self, knowledge: Knowledge, visits: IntArray) -> int | None:
        """Return after how many steps at most to ask again; ``None`` if never.

        As rests grow, so do the times between two looks.
        """
        left = self._until - int(visits.sum())
        if left > 0:
            return left // 4 + 1
        if self._wanted is None or not self._wanted.any():
            return None
        return patience_of(knowledge) // 2

    def tries(self, knowledge: Knowledge) -> float:
        """Return 1, and more after every rest: each try may go further out."""
        return 1.0 + self._rest / patience_of(knowledge)

    def state(self) -> dict[str, np.ndarray]:
        """Return what the next answer rests on, as arrays by name."""
        if self._wanted is None:
            return {}
        numbers = [self._had, self._since, self._until, self._rest]
        return {"sought": np.array(self._wanted), "patience": np.array(numbers)}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Go back to what :meth:`state` returned."""
        self._wanted = arrays.get("sought")
        if self._wanted is not None:
            numbers = (int(number) for number in arrays["patience"])
            self._had, self._since, self._until, self._rest = numbers
