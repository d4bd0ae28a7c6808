r"""The most that any policy could earn, over every model that is still possible.

For rectangular sets 𝒫, rewards up to :math:`\bar r` and costs from :math:`\underline c`
on, the best value within the budgets d, over all policies *and* all models, is at most

.. math:: \min_{λ \ge 0} \; U_λ(s) + λ · d, \qquad
    U_λ(s) = \max_a \bar r - λ · \underline c + γ \max_{P \in 𝒫_{sa}} P U_λ .

Every λ gives a bound, by weak duality, and each :math:`U_λ` is a fixed point of the
optimistic Bellman operator, bounded from above by its own residual.  For convex sets
the least of them is what the linear program in q(s, a, s') has for a value; here it is
found by a search over λ, and any λ at which the search stops is valid.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from escapade.planning.robust_operator import RobustOperator, robust_control
from escapade.typing import FloatArray, IntArray
from escapade.uncertainty.base import UncertaintySet

__all__ = ["Optimism", "optimistic_bound"]

_GOLDEN = 0.5 * (np.sqrt(5.0) - 1.0)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Optimism:
    """An upper bound on every value, and the policy that comes near it.

    Attributes
    ----------
    bound
        No policy within the budgets earns more from the state asked about.
    value
        ``[S]``; :math:`U_λ` at the multipliers found, from above.
    pairs
        ``[S]``; the pair that is best under the model that suits it best.
    multipliers
        ``(K,)``.
    """

    bound: float
    value: FloatArray
    pairs: IntArray
    multipliers: FloatArray


def optimistic_bound(
    sets: UncertaintySet,
    state_ptr: IntArray,
    *,
    reward: FloatArray,
    cost: FloatArray,
    budget: FloatArray,
    discount: float,
    state: int,
    precision: float = 1e-6,
    guess: FloatArray | None = None,
    searches: int = 12,
) -> Optimism:
    """Bound what any policy within the budgets can earn from ``state``.

    Parameters
    ----------
    sets
        The kernels that are possible, over all pairs.
    state_ptr
        ``[S + 1]``; the pairs of each state.
    reward
        ``[pairs]``; upper bounds on the mean rewards.
    cost
        ``[K, pairs]``; lower bounds on the mean costs.
    budget
        ``(K,)``.
    discount
        Discount factor.
    state
        Where life goes on with the whole budget.
    precision
        How tightly each fixed point is bounded, relative to its size.
    guess
        ``[S]``; values to begin with.
    searches
        Multipliers to try for each channel, when 0 is not the best.
    """
    values = guess

    def at(multipliers: FloatArray) -> Optimism:
        nonlocal values
        operator = RobustOperator(
            sets,
            state_ptr,
            reward - multipliers @ cost,
            discount,
            nature="max",
            select="max",
        )
        point = robust_control(operator, precision=precision, guess=values)
        values = 0.5 * (point.lower + point.upper)
        assert point.pairs is not None
        return Optimism(
            bound=float(point.upper[state] + multipliers @ budget),
            value=point.upper,
            pairs=point.pairs,
            multipliers=multipliers,
        )

    best = at(np.zeros(budget.size))
    largest = float(reward.max(initial=0.0)) / (1.0 - discount)
    for k in range(budget.size):
        if not cost[k].any() or budget[k] <= 0.0:
            continue

        held = best.multipliers

        def along(price: float, k: int = k, held: FloatArray = held) -> Optimism:
            multipliers = held.copy()
            multipliers[k] = price
            return at(multipliers)

        # beyond this price the bound is no less than at 0
        low, high = 0.0, largest / float(budget[k])
        trial = along(1e-3 * high)
        if trial.bound >= best.bound:
            continue
        best = trial
        for _ in range(searches):
            left = along(high - _GOLDEN * (high - low))
            right = along(low + _GOLDEN * (high - low))
            if left.bound <= right.bound:
                high = right.multipliers[k]
            else:
                low = left.multipliers[k]
            best = min(best, left, right, key=lambda found: found.bound)
    return best
