r"""C-UCRL: think well of rewards and badly of costs (Zheng and Ratliff 2020).

Episode k lasts k steps, or until the visits of a pair have doubled.  At its start the
long-run linear program is solved for the likeliest transitions, with rewards and costs
both at their upper confidence bounds, mean plus

.. math:: \mathrm{max} \cdot \sqrt{\ln(2 F t^2 / δ) / (2 n)},

F the number of means that are not known and t the time.  So costs are overestimated,
and with high probability every policy that is played keeps the rates in the long run.
If that leaves no policy, the one of least overestimated costs is played, which takes
the part of their known safe policy.

*What it is told.*  The published algorithm assumes transitions to be known, and plays
the known safe policy for some episodes first.  Here transitions are the likeliest under
the belief, a point estimate: what is published about safety carries over only where
rows are exact.  That episodes end on doubling is added, as an estimate that was wrong
is otherwise followed to their end.  Known means and bounds replace confidence bounds.
"""

from __future__ import annotations

import math

import numpy as np

from escapade.baselines.base import EXPLOIT, Move
from escapade.baselines.learner import Learner
from escapade.baselines.long_run import Follower, long_run_policy
from escapade.knowledge.knowledge import Knowledge
from escapade.typing import FloatArray

__all__ = ["CUCRL"]


class CUCRL(Learner):
    """Optimistic rewards, pessimistic costs, average reward.

    Parameters
    ----------
    knowledge, seed
        As for every baseline.
    delta
        Probability with which a confidence bound may fail.

    Examples
    --------
    >>> import escapade as ep
    >>> from escapade.baselines import CUCRL
    >>> world = ep.environments.three_state_loop()
    >>> trace = ep.simulate(CUCRL(world.knowledge), world.env, steps=1_000)
    >>> bool(trace.rewards.mean() > 0.9)
    True
    """

    def __init__(
        self, knowledge: Knowledge, *, seed: int | None = 0, delta: float = 0.05
    ) -> None:
        super().__init__(knowledge, seed=seed, delta=delta)
        open_means = int((knowledge.reward_lower < knowledge.reward_upper).sum())
        open_means += int((knowledge.cost_lower < knowledge.cost_upper).sum())
        self._families = max(open_means, 1)
        self._follower: Follower | None = None

    def _choose(self, state: int) -> Move:
        if self._follower is None:
            self._refresh()
            reward, cost = self._upper_means()
            self._follower = Follower(
                long_run_policy(
                    self._model(self.belief.nominal, reward, cost),
                    self.rates,
                    self._here(state),
                )
            )
        first, last = self.knowledge.pairs.state_ptr[state : state + 2]
        pair = self._follower.pair(int(first), int(last), self.rng)
        return pair, EXPLOIT, "the best by rewards and costs that are overestimated"

    def _learn(
        self, pair: int, reward: float, cost: FloatArray | None, next_state: int
    ) -> None:
        super()._learn(pair, reward, cost, next_state)
        if self._doubled(pair) or self._since_plan >= self.plans:
            self._follower = None

    def _upper_means(self) -> tuple[FloatArray, FloatArray]:
        """Return rewards and costs at their upper confidence bounds."""
        known, evidence = self.knowledge, self.belief.evidence
        steps = max(int(evidence.pair_visits.sum()), 1)
        log = math.log(2.0 * self._families * steps**2 / self.delta)
        mean_reward = np.nan_to_num(evidence.mean_reward(), nan=known.reward_max)
        wide = np.sqrt(log / (2.0 * np.maximum(evidence.pair_visits, 1)))
        reward = np.clip(
            mean_reward + known.reward_max * wide,
            known.reward_lower,
            known.reward_upper,
        )
        most = known.cost_max[:, np.newaxis]
        mean_cost = evidence.mean_cost()
        mean_cost = np.where(np.isnan(mean_cost), most, mean_cost)
        wide = np.sqrt(log / (2.0 * np.maximum(evidence.cost_count, 1)))
        cost = np.clip(mean_cost + most * wide, known.cost_lower, known.cost_upper)
        return np.asarray(reward), np.asarray(cost)
