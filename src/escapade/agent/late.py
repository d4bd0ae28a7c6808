r"""Costs that come late: what is kept of a decision until its cost is told.

A decision whose cost is not known is charged ``c_max``, by the rule that was chosen
before the outcome.  If the cost ``c`` is told later, R1 and R2 would have promised
``(c_max − c)/γ`` more after that step, had it been told at once, and all that came
after would have carried the difference on, divided by γ at each step and cut off
wherever the cap was met.  That, and no more, is given back:

.. math:: \min\left( \frac{c_{max} − c}{\gamma^{n}},\;
    \min_{m \le n} \frac{d − b_m}{\gamma^{n − m}} \right),

``n`` steps after the decision, with ``b_m`` the promise that stood after ``m`` of them.
R0 had not looked at the cost, so it gives nothing back.

Why that is sound: think of a bystander who is told every cost at once and keeps the
ledger by the same rules.  The agent's choices are as good as his, for he promises at
least as much, so they pass his check as well; therefore ``J <= d`` at all times given
all that *he* knows, and so on average over what the agent does not know yet.  When the
cost is told, the agent promises what he does.  Until then the promise that it states
may be exceeded by what is given back later, and the budget may not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from escapade.kernels.ledger import IN_EXPECTATION
from escapade.typing import FloatArray, IntArray

__all__ = ["LateCost", "LateCosts"]

_MOST = 1_000
"""Decisions that are remembered at most; of older ones nothing is given back."""

_DOWN = 1.0 - 2.0**-50
_FAR = 1e300


@dataclass(slots=True)
class LateCost:
    """One decision whose cost is awaited.

    ``pair`` is what was played, ``room`` the most that can be given back, ``[K]``, and
    ``growth`` the power of 1/γ that a cost of that step has grown by.
    """

    pair: int
    room: FloatArray
    growth: float


class LateCosts:
    """Decisions whose costs are awaited, by number."""

    def __init__(self, discount: float) -> None:
        self._discount = discount
        self._awaited: dict[int, LateCost] = {}
        self._at = 0

    def __contains__(self, decision: int) -> bool:
        return decision in self._awaited

    def __len__(self) -> int:
        return len(self._awaited)

    def carry_on(self, decisions: int, promise: FloatArray, cap: FloatArray) -> None:
        """Account for one more step, after which ``promise`` holds.

        ``decisions`` were made by now.  If more than one was made since the last call,
        how far the promise had been from the cap is not known, and nothing is left to
        be given back.
        """
        missed = decisions != self._at + 1
        self._at = decisions
        for late in self._awaited.values():
            if missed or self._discount == 0.0:
                late.room[:] = 0.0
            elif late.room.any():
                late.growth = min(late.growth / self._discount, _FAR)
                np.minimum(late.room / self._discount, cap - promise, out=late.room)
                np.maximum(late.room * _DOWN, 0.0, out=late.room)

    def expect(
        self,
        decision: int,
        pair: int,
        rule: IntArray,
        promise: FloatArray,
        cap: FloatArray,
    ) -> None:
        """Remember a decision that was just charged ``c_max``."""
        room = np.where(rule == IN_EXPECTATION, 0.0, np.maximum(cap - promise, 0.0))
        growth = 0.0 if self._discount == 0.0 else 1.0 / self._discount
        self._awaited[decision] = LateCost(pair, room, growth)
        while len(self._awaited) > _MOST:
            del self._awaited[next(iter(self._awaited))]

    def settle(
        self, decision: int, saved: FloatArray, promise: FloatArray
    ) -> tuple[int, FloatArray]:
        """Take a decision off the list; return its pair and the promise from now on.

        ``saved`` is ``c_max`` less what the step cost, ``[K]``.
        """
        late = self._awaited.pop(decision)
        back = np.minimum(saved * late.growth * _DOWN, late.room) * _DOWN
        raised: FloatArray = promise + back
        for other in self._awaited.values():
            np.maximum(other.room - back, 0.0, out=other.room)
        return late.pair, raised

    def give_up(self) -> None:
        """Give nothing back any more; what is told late is only learned from."""
        for late in self._awaited.values():
            late.room[:] = 0.0

    # -- files -------------------------------------------------------------------------

    def state(self) -> list[Any]:
        """Return everything as JSON can hold it."""
        awaited = [
            [number, int(late.pair), late.room.tolist(), float(late.growth)]
            for number, late in self._awaited.items()
        ]
        return [self._at, awaited]

    def restore(self, state: Sequence[Any]) -> None:
        """Go back to what :meth:`state` returned."""
        at, awaited = state
        self._at = int(at)
        self._awaited = {
            int(number): LateCost(int(pair), np.array(room, dtype=float), float(growth))
            for number, pair, room, growth in awaited
        }
