"""The oracle: the best stationary policy of the true model, by a linear program.

It is told the truth, which no agent is, and learns nothing.  It is the ceiling of a
comparison, with two horizons:

``"discounted"``
    the occupation linear program from the start distribution: the best expected
    discounted reward with the expected discounted cost from the start within budget;
``"average"``
    the best average reward a step with the costs a step within (1 − γ) d.

Its cost is held to the budget on average from the start; from a later moment it may be
above, so even the oracle can break what E⁴ promises.
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from escapade.baselines.base import EXPLOIT, Baseline, Move
from escapade.baselines.long_run import Follower, LongRun, long_run_policy
from escapade.errors import refusal
from escapade.knowledge.knowledge import Knowledge
from escapade.model.cmdp import CMDP
from escapade.model.policy import Policy
from escapade.planning.solve import solve
from escapade.typing import FloatArray

__all__ = ["Horizon", "OracleLP"]

Horizon = Literal["discounted", "average"]
"""What the oracle maximises."""


class OracleLP(Baseline):
    """The best stationary policy of the true model.

    Parameters
    ----------
    knowledge, seed
        As for every baseline; of what is known only the terms are used.
    cmdp
        The truth.
    horizon
        ``"discounted"`` or ``"average"``.

    Examples
    --------
    >>> import escapade as ep
    >>> from escapade.baselines import OracleLP
    >>> world = ep.environments.moat_grid()
    >>> agent = OracleLP(world.knowledge, cmdp=world.cmdp, horizon="average")
    >>> trace = ep.simulate(agent, world.env, steps=20_000)
    >>> round(float(trace.rewards.mean()), 2), round(float(trace.costs.mean()), 1)
    (0.22, 0.2)
    """

    def __init__(
        self,
        knowledge: Knowledge,
        *,
        cmdp: CMDP,
        seed: int | None = 0,
        horizon: Horizon = "discounted",
    ) -> None:
        super().__init__(knowledge, seed=seed)
        layout = knowledge.pairs
        same = np.array_equal(layout.state_ptr, cmdp.state_ptr)
        if not same or not np.array_equal(layout.pair_action, cmdp.pair_action):
            raise refusal("cmdp", "the pairs of the knowledge", f"{cmdp.n_pairs} pairs")
        if horizon not in get_args(Horizon):
            raise refusal("horizon", f"one of {list(get_args(Horizon))}", repr(horizon))
        self._follower = Follower(
            _discounted(cmdp) if horizon == "discounted" else _average(cmdp)
        )
        self.plans = 1

    def _choose(self, state: int) -> Move:
        first, last = self.knowledge.pairs.state_ptr[state : state + 2]
        pair = self._follower.pair(int(first), int(last), self.rng)
        return pair, EXPLOIT, "the best in the true model"

    def _learn(
        self, pair: int, reward: float, cost: FloatArray | None, next_state: int
    ) -> None:
        pass


def _discounted(cmdp: CMDP) -> LongRun:
    found = solve(cmdp)
    if not isinstance(found.policy, Policy):
        raise refusal("cmdp", "budgets that can be kept", found.message)
    return LongRun(
        weights=found.policy.pair_weights(cmdp)[np.newaxis],
        shares=np.ones(1),
        gain=(1.0 - cmdp.discount) * found.value,
        rates=(1.0 - cmdp.discount) * found.costs,
        feasible=True,
    )


def _average(cmdp: CMDP) -> LongRun:
    found = long_run_policy(cmdp, (1.0 - cmdp.discount) * cmdp.budget, cmdp.start)
    if not found.feasible:
        raise refusal("cmdp", "rates that can be kept", f"at least {found.rates}")
    return found
