"""What every baseline shares: it is asked, acts, and is told, like any agent.

A baseline promises nothing, so its promise and its reserve are NaN.  It checks what it
is told as :class:`escapade.E4` does, refuses calls in the wrong order, and does nothing
when it is told the same thing twice.  A cost that is not known counts as ``cost_max``,
and nothing is learned from it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import SupportsIndex

import numpy as np

from escapade.errors import refusal
from escapade.kernels.ledger import EXPLOIT, EXPLORE, WANDER
from escapade.knowledge.knowledge import Knowledge
from escapade.knowledge.observations import read_cost, read_reward, read_state
from escapade.model.arguments import read_count
from escapade.typing import ArrayLike, FloatArray

__all__ = ["EXPLOIT", "EXPLORE", "WANDER", "Baseline", "Choice", "Move", "draw_pair"]

Move = tuple[int, int, str]
"""A pair, the phase it belongs to, and the reason in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What a baseline wants to do; see :class:`escapade.typing.Decision`."""

    id: int
    state: int
    action: int
    phase: int
    reason: str
    promise: tuple[float, ...]
    reserved: tuple[float, ...]


class Baseline(ABC):
    """An agent without a promise.

    Parameters
    ----------
    knowledge
        All that it is told about its world.
    seed
        Of its own draws.

    Attributes
    ----------
    state
        Where the last step led.
    plans, decisions
        How often it has planned and decided.
    """

    def __init__(self, knowledge: Knowledge, *, seed: int | None = 0) -> None:
        self.knowledge = knowledge
        self.seed = None if seed is None else read_count("seed", seed)
        self.rng = np.random.default_rng(self.seed)
        self.state: int | None = None
        self.plans = self.decisions = 0
        self._nothing = (math.nan,) * knowledge.n_costs
        self._open: tuple[Choice, int] | None = None
        self._last: tuple[int, float, tuple[float, ...] | None, int] | None = None

    def ask(self, state: SupportsIndex) -> Choice:
        """Return what to do in ``state``, which the last step was told to lead to."""
        if self._open is not None:
            raise refusal(
                "ask", "what came of the last decision first", self._open[0].id
            )
        here = read_state(self.knowledge, "state", state)
        if self.state is not None and here != self.state:
            raise refusal("state", f"the state told last, {self.state}", here)
        pair, phase, reason = self._choose(here)
        choice = Choice(
            id=self.decisions,
            state=here,
            action=int(self.knowledge.pairs.pair_action[pair]),
            phase=phase,
            reason=reason,
            promise=self._nothing,
            reserved=self._nothing,
        )
        self._open = (choice, pair)
        return choice

    def tell(
        self,
        decision: Choice,
        *,
        reward: float,
        cost: ArrayLike | None,
        next_state: SupportsIndex,
    ) -> None:
        """Say what came of a decision; the second time it does nothing."""
        if not isinstance(decision, Choice):
            raise refusal("decision", "a Choice, as ask returned it", repr(decision))
        knowledge = self.knowledge
        after = read_state(knowledge, "next_state", next_state)
        earned = read_reward(knowledge, reward)
        paid = None if cost is None else read_cost(knowledge, cost)
        told = (decision.id, earned, None if paid is None else tuple(paid), after)
        if self._open is None or decision.id != self._open[0].id:
            if told == self._last:
                return
            expected = "no decision" if self._open is None else self._open[0].id
            raise refusal("decision", f"{expected}, which is open", decision.id)
        pair = self._open[1]
        self._learn(pair, earned, paid, after)
        self._open, self._last = None, told
        self.state = after
        self.decisions += 1

    @abstractmethod
    def _choose(self, state: int) -> Move:
        """Return what to do in ``state``."""

    @abstractmethod
    def _learn(
        self, pair: int, reward: float, cost: FloatArray | None, next_state: int
    ) -> None:
        """Take in what came of a step."""


def draw_pair(
    weights: FloatArray, first: int, last: int, rng: np.random.Generator
) -> int:
    """Draw one of the pairs ``first`` to ``last`` by its weight ``[pairs]``."""
    ends = np.cumsum(weights[first:last])
    found = int(np.searchsorted(ends, rng.random() * ends[-1], side="right"))
    return first + min(found, last - first - 1)
