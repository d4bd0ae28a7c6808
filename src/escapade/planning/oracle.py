"""The unconstrained oracle of the constrained planners: best policy for given prices.

Prices ``λ`` on the costs turn a constrained problem into an ordinary one with the
reward ``w r − Σ_k λ_k c_k`` a pair.  The oracle solves it by policy iteration, begun at
the policy and the values of the call before, and returns a :class:`Column`: one
deterministic policy with its own value and costs, and a certified bound on what *any*
policy can reach at these prices.  Two facts make it the heart of this package:

- for ``λ >= 0`` and ``w = 1``, ``bound + λ·d`` is at least the constrained optimum;
- for ``λ >= 0`` and ``w = 0``, a negative ``bound + λ·d`` proves that no policy keeps
  the budgets ``d``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from escapade.model.cmdp import CMDP
from escapade.model.evaluation import occupancy
from escapade.model.policy import Policy
from escapade.planning.dynamic_programming import chain_values, policy_iteration
from escapade.typing import FloatArray, IntArray

__all__ = ["Column", "Oracle"]

_ROUNDS = 1e-13


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Column:
    """A deterministic policy as the constrained planners see it.

    ``value`` and ``costs`` are from the start distribution; ``bound`` is at least the
    best priced value of any policy; ``priced`` is the
    priced optimum, ``(S,)``.
    """

    pairs: IntArray
    value: float
    costs: FloatArray
    bound: float
    priced: FloatArray


class Oracle:
    """Solves priced problems of one CMDP, each begun where the last one ended."""

    __slots__ = ("_costs", "_pairs", "_value", "calls", "cmdp")

    def __init__(self, cmdp: CMDP) -> None:
        self.cmdp = cmdp
        self.calls = 0
        self._pairs: IntArray | None = None
        self._value = np.zeros(cmdp.n_states)
        self._costs = np.zeros((cmdp.n_costs, cmdp.n_states))

    def best(self, prices: FloatArray, *, reward_weight: float = 1.0) -> Column:
        """Return the best policy for ``reward_weight · r − prices · c``."""
        cmdp = self.cmdp
        gain = reward_weight * cmdp.reward - prices @ cmdp.cost
        begin = None
        if self._pairs is not None:
            begin = reward_weight * self._value - prices @ self._costs
        found = policy_iteration(cmdp, gain, pairs=self._pairs, value=begin)
        self.calls += 1
        moved = self._pairs is None or not np.array_equal(found.pairs, self._pairs)
        if moved:
            self._value = self._chain(found.pairs, cmdp.reward, self._value)
            for k, cost in enumerate(cmdp.cost):
                self._costs[k] = self._chain(found.pairs, cost, self._costs[k])
            self._pairs = found.pairs.copy()
        return Column(
            pairs=found.pairs,
            value=float(cmdp.start @ self._value),
            costs=self._costs @ cmdp.start,
            bound=float(cmdp.start @ found.value) + found.error,
            priced=found.value,
        )

    def visits(self, column: Column) -> FloatArray:
        """Return the occupancy of a column's policy, ``(pairs,)``."""
        cmdp = self.cmdp
        actions = cmdp.pair_action[column.pairs]
        policy = Policy.deterministic(actions, cmdp.n_actions)
        return occupancy(cmdp, policy, precision=occupancy_precision(cmdp))

    def _chain(
        self, pairs: IntArray, amount: FloatArray, guess: FloatArray
    ) -> FloatArray:
        scale = float(np.abs(amount).max()) / (1.0 - self.cmdp.discount)
        if scale == 0.0:
            return np.zeros(self.cmdp.n_states)
        return chain_values(self.cmdp, pairs, amount[pairs], guess, _ROUNDS * scale)


def occupancy_precision(cmdp: CMDP) -> float:
    """Return a precision that double arithmetic can certify for this problem."""
    return max(1e-10, evaluation_precision(cmdp))


def evaluation_precision(cmdp: CMDP) -> float:
    """Return the sharpest precision that evaluation can be asked for with confidence.

    Rounding in a row of ``n`` entries limits a certified relative error to a few
    ``n ε / (1 − γ)``; a stochastic policy's row is the union of its actions' rows.
    """
    lengths = np.diff(cmdp.row_ptr[cmdp.state_ptr])
    longest = min(int(lengths.max()), cmdp.n_states)
    eps = float(np.finfo(np.float64).eps)
    return max(1e-10, 16.0 * (longest + 4) * eps / (1.0 - cmdp.discount))
