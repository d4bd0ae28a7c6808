r"""Lagrangian Q-learning: a price on costs that rises while too much is spent.

Tables :math:`Q_r(s, a)` and :math:`Q_c(s, a)`, one for each channel, are learned from
single steps, with the next action greedy for :math:`Q_r - λ \cdot Q_c`.  The prices
follow the cost of every step against the rate that the budget allows,

.. math:: λ_k \leftarrow [λ_k + η (c_k - (1 - γ) d_k)]_+.

Actions are greedy but for a chance of :math:`\max(ε, n(s)^{-1/2})`, n(s) the visits of
the state; the learning rate of a pair is :math:`n(s, a)^{-.6}`.  This is the
primal-dual scheme in its simplest form (Borkar 2005): asymptotic, discounted, and blind
to every cost until it has been paid.

*What it is told.*  Spaces and bounds.  It has no model in which more could be said.
"""

from __future__ import annotations

import numpy as np

from escapade.baselines.base import EXPLOIT, EXPLORE, Baseline, Move
from escapade.errors import refusal
from escapade.knowledge.knowledge import Knowledge
from escapade.model.arguments import read_number
from escapade.typing import FloatArray, IntArray

__all__ = ["LagrangianQLearning"]

_RATE = 0.6


class LagrangianQLearning(Baseline):
    """Q-learning with a price on costs.

    Parameters
    ----------
    knowledge, seed
        As for every baseline.
    price_rate
        η, how fast prices move.
    epsilon
        Least chance of an action drawn evenly.

    Attributes
    ----------
    prices
        ``(K,)``; λ.

    Examples
    --------
    >>> import escapade as ep
    >>> from escapade.baselines import LagrangianQLearning
    >>> world = ep.environments.three_state_loop()
    >>> agent = LagrangianQLearning(world.knowledge)
    >>> trace = ep.simulate(agent, world.env, steps=5_000)
    >>> bool(0.4 < trace.costs[-2_000:].mean() < 0.6)
    True
    """

    def __init__(
        self,
        knowledge: Knowledge,
        *,
        seed: int | None = 0,
        price_rate: float = 0.02,
        epsilon: float = 0.02,
    ) -> None:
        super().__init__(knowledge, seed=seed)
        self.price_rate = read_number("price_rate", price_rate)
        if not self.price_rate > 0.0:
            raise refusal("price_rate", "a number above 0", self.price_rate)
        self.epsilon = read_number("epsilon", epsilon)
        if not 0.0 <= self.epsilon <= 1.0:
            raise refusal("epsilon", "a number in [0, 1]", self.epsilon)
        n, k = knowledge.n_pairs, knowledge.n_costs
        self._rewards: FloatArray = np.zeros(n)
        self._costs: FloatArray = np.zeros((k, n))
        self._visits: IntArray = np.zeros(n, dtype=np.int64)
        self.prices: FloatArray = np.zeros(k)

    def _greedy(self, state: int) -> int:
        first, last = self.knowledge.pairs.state_ptr[state : state + 2]
        worth = self._rewards[first:last] - self.prices @ self._costs[:, first:last]
        return int(first + np.argmax(worth))

    def _choose(self, state: int) -> Move:
        first, last = self.knowledge.pairs.state_ptr[state : state + 2]
        seen = int(self._visits[first:last].sum())
        if self.rng.random() < max(self.epsilon, 1.0 / np.sqrt(seen + 1.0)):
            return int(self.rng.integers(first, last)), EXPLORE, "any action, to learn"
        return self._greedy(state), EXPLOIT, "the best by prices"

    def _learn(
        self, pair: int, reward: float, cost: FloatArray | None, next_state: int
    ) -> None:
        known = self.knowledge
        paid = known.cost_max if cost is None else cost
        allowed = (1.0 - known.discount) * known.budget
        self.prices = np.maximum(self.prices + self.price_rate * (paid - allowed), 0.0)
        if cost is None:
            return
        self._visits[pair] += 1
        step = float(self._visits[pair]) ** -_RATE
        after = self._greedy(next_state)
        gamma = known.discount
        self._rewards[pair] += step * (
            reward + gamma * self._rewards[after] - self._rewards[pair]
        )
        self._costs[:, pair] += step * (
            cost + gamma * self._costs[:, after] - self._costs[:, pair]
        )
