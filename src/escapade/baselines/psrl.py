r"""PSRL for constrained problems: draw a model, do what is best in it, draw another.

At the start of an episode transitions, rewards and costs are drawn from a posterior.
The long-run linear program of the drawn model, with its costs a step held to the rates,
gives the policy of the episode.  An episode ends when the visits of a pair have doubled
or when it is longer than the one before (Ouyang, Gagrani, Nayyar and Jain 2017); with
constraints, Agarwal, Bai and Aggarwal 2022, and Provodin, Gajane, Pechenizkiy and
Kaptein 2023.  Costs are respected in the drawn model, and on average over time; nothing
is promised at any moment, and the first episodes spend freely.

*What it is told.*  Exact rows and known means are not drawn.  Other rows have a
Dirichlet prior over the possible successors, shaped by the action models where there
are any and even otherwise, worth half a visit for each successor.  Rewards and costs
have a Beta posterior with Jeffreys' prior; a sample x counts as x/max of a success.
Where a row or a mean is bounded beforehand, draws are brought within the bounds.
"""

from __future__ import annotations

import numpy as np

from escapade.baselines.base import EXPLOIT, Move
from escapade.baselines.learner import Learner
from escapade.baselines.long_run import Follower, long_run_policy
from escapade.knowledge.knowledge import Knowledge
from escapade.typing import FloatArray, IntArray

__all__ = ["PSRL"]

_FEWEST = 1e-3
"""Pseudo-visits of a successor that is possible, however unlikely."""

_NEGLIGIBLE = 1e-7
"""Probabilities drawn below this are 0: linear programs mind them, episodes do not."""


class PSRL(Learner):
    """Posterior sampling for constrained problems, average reward.

    Parameters
    ----------
    knowledge, seed
        As for every baseline.

    Examples
    --------
    >>> import escapade as ep
    >>> from escapade.baselines import PSRL
    >>> world = ep.environments.three_state_loop()
    >>> trace = ep.simulate(PSRL(world.knowledge), world.env, steps=1_000)
    >>> bool(trace.rewards.mean() > 0.9)
    True
    """

    def __init__(self, knowledge: Knowledge, *, seed: int | None = 0) -> None:
        super().__init__(knowledge, seed=seed)
        lengths = np.diff(knowledge.row_ptr)
        shape = self._leveled(self.belief.given.prior)
        self._prior = np.maximum(0.5 * np.repeat(lengths, lengths) * shape, _FEWEST)
        self._follower: Follower | None = None
        self._longest = 0

    def _choose(self, state: int) -> Move:
        if self._follower is None:
            self._refresh()
            self._follower = Follower(
                long_run_policy(
                    self._model(*self._drawn()), self.rates, self._here(state)
                )
            )
        first, last = self.knowledge.pairs.state_ptr[state : state + 2]
        pair = self._follower.pair(int(first), int(last), self.rng)
        return pair, EXPLOIT, "the best in the model that was drawn"

    def _learn(
        self, pair: int, reward: float, cost: FloatArray | None, next_state: int
    ) -> None:
        super()._learn(pair, reward, cost, next_state)
        if self._doubled(pair) or self._since_plan > self._longest:
            self._longest = self._since_plan
            self._follower = None

    def _drawn(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return probabilities, rewards and costs of a model, drawn."""
        belief, known = self.belief, self.belief.confidence
        evidence, bounds = belief.evidence, self.knowledge
        possible = belief.reachable
        drawn = self.rng.standard_gamma(self._prior + evidence.visits)
        rows = self._leveled(np.where(possible, drawn, 0.0))
        rows[rows < _NEGLIGIBLE] = 0.0
        exact = np.repeat(self.knowledge.exact_pairs, np.diff(self.knowledge.row_ptr))
        rows = np.where(exact, known.lower, rows)
        rows = self._leveled(np.clip(rows, bounds.lower, bounds.upper))
        reward = self._mean(
            evidence.reward_sum,
            evidence.pair_visits,
            bounds.reward_max,
            bounds.reward_lower,
            bounds.reward_upper,
        )
        costs = [
            self._mean(
                evidence.cost_sum[k],
                evidence.cost_count,
                float(bounds.cost_max[k]),
                bounds.cost_lower[k],
                bounds.cost_upper[k],
            )
            for k in range(bounds.n_costs)
        ]
        return rows, reward, np.array(costs)

    def _leveled(self, rows: FloatArray) -> FloatArray:
        """Return rows that sum to 1."""
        sums = np.add.reduceat(rows, self.knowledge.row_ptr[:-1])
        return np.asarray(rows / np.repeat(sums, np.diff(self.knowledge.row_ptr)))

    def _mean(
        self,
        total: FloatArray,
        n: IntArray,
        most: float,
        lower: FloatArray,
        upper: FloatArray,
    ) -> FloatArray:
        if most == 0.0:
            return np.zeros(total.size)
        won = np.clip(total / most, 0.0, n)
        drawn = most * self.rng.beta(0.5 + won, 0.5 + n - won)
        return np.asarray(np.clip(drawn, lower, upper))
