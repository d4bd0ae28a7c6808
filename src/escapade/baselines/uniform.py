"""Uniform random: every available action with the same chance, for ever.

The floor of every comparison.  It uses nothing that it is told but which actions there
are, and learns nothing.
"""

from __future__ import annotations

from escapade.baselines.base import WANDER, Baseline, Move
from escapade.typing import FloatArray

__all__ = ["UniformRandom"]


class UniformRandom(Baseline):
    """Takes every available action with the same chance.

    Examples
    --------
    >>> import escapade as ep
    >>> from escapade.baselines import UniformRandom
    >>> world = ep.environments.three_state_loop()
    >>> trace = ep.simulate(UniformRandom(world.knowledge), world.env, steps=1_000)
    >>> bool(0.4 < trace.costs.mean() < 0.6)
    True
    """

    def _choose(self, state: int) -> Move:
        first, last = self.knowledge.pairs.state_ptr[state : state + 2]
        return int(self.rng.integers(first, last)), WANDER, "any action will do"

    def _learn(
        self, pair: int, reward: float, cost: FloatArray | None, next_state: int
    ) -> None:
        pass
