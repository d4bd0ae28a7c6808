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

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from escapade.kernels.backups import chain_residual
from escapade.model.cmdp import CMDP
from escapade.model.evaluation import occupancy
from escapade.model.policy import Policy
from escapade.planning.dynamic_programming import (
    chain_values,
    policy_iteration,
    rounding_allowance,
)
from escapade.typing import FloatArray, IntArray

__all__ = [
    "Column",
    "Oracle",
    "evaluation_precision",
    "lagrangian_bound",
    "mixed_visits",
]

_EPS = float(np.finfo(np.float64).eps)
_ROUNDS = 1e-13


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Column:
    """A deterministic policy as the constrained planners see it.

    Attributes
    ----------
    pairs
        The pair chosen in each state, ``(S,)``.
    value, costs
        What the policy earns and costs from the start distribution.
    value_error, cost_errors
        Certified: ``value`` and ``costs`` are right to within these.
    bound
        Certified: no policy has a priced value above this.
    """

    pairs: IntArray
    value: float
    costs: FloatArray
    value_error: float
    cost_errors: FloatArray
    bound: float


class Oracle:
    """Solves priced problems of one CMDP, each begun where the last one ended."""

    __slots__ = ("_costs", "_errors", "_pairs", "_value", "calls", "cmdp")

    def __init__(self, cmdp: CMDP) -> None:
        self.cmdp = cmdp
        self.calls = 0
        self._pairs: IntArray | None = None
        self._value = np.zeros(cmdp.n_states)
        self._costs = np.zeros((cmdp.n_costs, cmdp.n_states))
        self._errors = np.zeros(1 + cmdp.n_costs)

    def best(self, prices: FloatArray, *, reward_weight: float = 1.0) -> Column:
        """Return the best policy for ``reward_weight · r − prices · c``."""
        cmdp = self.cmdp
        gain = reward_weight * cmdp.reward - prices @ cmdp.cost
        begin = None
        if self._pairs is not None:
            begin = reward_weight * self._value - prices @ self._costs
        found = policy_iteration(cmdp, gain, pairs=self._pairs, value=begin)
        self.calls += 1
        if self._pairs is None or not np.array_equal(found.pairs, self._pairs):
            pairs = found.pairs.copy()
            errors = np.empty(1 + cmdp.n_costs)
            for k, cost in enumerate(cmdp.cost):
                self._costs[k], errors[1 + k] = self._chain(pairs, cost, self._costs[k])
            guess = self._value
            if reward_weight > 0.0:  # the priced value is known: undo the prices
                guess = (found.value + prices @ self._costs) / reward_weight
            self._value, errors[0] = self._chain(pairs, cmdp.reward, guess)
            self._pairs, self._errors = pairs, errors
        assert self._pairs is not None
        return Column(
            pairs=self._pairs,
            value=float(cmdp.start @ self._value),
            costs=self._costs @ cmdp.start,
            value_error=float(self._errors[0]),
            cost_errors=self._errors[1:],
            bound=float(cmdp.start @ found.value)
            + found.error
            + _sum_rounding(cmdp, found.value),
        )

    def visits(self, column: Column) -> FloatArray:
        """Return the occupancy of a column's policy, ``(pairs,)``."""
        cmdp = self.cmdp
        actions = cmdp.pair_action[column.pairs]
        policy = Policy.deterministic(actions, cmdp.n_actions)
        return occupancy(cmdp, policy, precision=evaluation_precision(cmdp))

    def _chain(
        self, pairs: IntArray, amount: FloatArray, guess: FloatArray
    ) -> tuple[FloatArray, float]:
        """Return what a policy sums of ``amount``, and how wrong that may be."""
        cmdp = self.cmdp
        gain = amount[pairs]
        if not gain.any():
            return np.zeros(cmdp.n_states), 0.0
        scale = float(gain.max()) / (1.0 - cmdp.discount)
        value = chain_values(cmdp, pairs, gain, guess, _ROUNDS * scale)
        low, high = chain_residual(
            pairs,
            cmdp.row_ptr,
            cmdp.successor,
            cmdp.probability,
            gain,
            cmdp.discount,
            value,
            np.empty(cmdp.n_states),
        )
        error = (
            max(-low, high, 0.0) / (1.0 - cmdp.discount)
            + rounding_allowance(cmdp, gain, value)
            + _sum_rounding(cmdp, value)
        )
        return value, error


def lagrangian_bound(oracle: Oracle, multipliers: FloatArray) -> tuple[float, Column]:
    """Return an upper bound on the constrained optimum, and the policy behind it.

    It holds for every ``multipliers >= 0`` and is least at the optimal ones.
    """
    column = oracle.best(multipliers)
    owed = float(multipliers @ oracle.cmdp.budget)
    rounding = (oracle.cmdp.n_costs + 1) * _EPS * (abs(column.bound) + owed)
    return column.bound + owed + rounding, column


def mixed_visits(
    oracle: Oracle, columns: Sequence[Column], weights: FloatArray
) -> FloatArray:
    """Return the occupancy of a mixture of policies, ``(pairs,)``.

    One policy is drawn at the start and kept.  The stationary policy with the same
    occupancy earns and costs the same.
    """
    total = np.zeros(oracle.cmdp.n_pairs)
    for column, weight in zip(columns, weights, strict=True):
        if weight > 0.0:
            total += weight * oracle.visits(column)
    return total


def evaluation_precision(cmdp: CMDP) -> float:
    """Return the sharpest precision that evaluation can be asked for with confidence.

    Rounding in a row of ``n`` entries limits a certified relative error to a few
    ``n ε / (1 − γ)``; a stochastic policy's row is the union of its actions' rows.
    """
    lengths = np.diff(cmdp.row_ptr[cmdp.state_ptr])
    longest = min(int(lengths.max()), cmdp.n_states)
    return max(1e-10, 16.0 * (longest + 4) * _EPS / (1.0 - cmdp.discount))


def _sum_rounding(cmdp: CMDP, value: FloatArray) -> float:
    """Bound the rounding in the mean of ``value`` over the start distribution."""
    terms = int(np.count_nonzero(cmdp.start))
    return (terms + 1) * _EPS * float(np.abs(value).max())
