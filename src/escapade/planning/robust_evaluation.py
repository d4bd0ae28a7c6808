"""What a policy earns and costs under the best and the worst kernel of a set.

Values and costs are bounded one at a time: the kernel that is worst for one cost need
not be worst for another, nor for the reward.  Where the set is a finite family of whole
models ("one model throughout"), each model is evaluated by itself; taking the worst
pair by pair would be a wider, different set.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from escapade.errors import refusal
from escapade.model.cmdp import CMDP
from escapade.model.evaluation import evaluate
from escapade.model.policy import Policy
from escapade.planning.robust_operator import (
    FixedPoint,
    RobustOperator,
    robust_policy_value,
)
from escapade.typing import FloatArray
from escapade.uncertainty.base import Sense, UncertaintySet

__all__ = ["RobustEvaluation", "robust_evaluate"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RobustEvaluation:
    """Bounds on value and costs that hold for every kernel of the set.

    ``value_lower`` and ``value_upper`` are ``(S,)``, ``costs_lower`` and
    ``costs_upper`` are ``(K, S)``.  Each bound is certified: rounded outward, and
    valid whether or not the precision was reached (``converged``); ``width`` is the
    largest distance from the extreme that it bounds.
    """

    value_lower: FloatArray
    value_upper: FloatArray
    costs_lower: FloatArray
    costs_upper: FloatArray
    start: FloatArray
    converged: bool
    width: float
    message: str

    @property
    def start_value_lower(self) -> float:
        """Least value from the start distribution, a lower bound."""
        return float(self.start @ self.value_lower)

    @property
    def start_value_upper(self) -> float:
        """Greatest value from the start distribution, an upper bound."""
        return float(self.start @ self.value_upper)

    @property
    def start_costs_lower(self) -> FloatArray:
        """Least costs from the start distribution, ``(K,)``."""
        least: FloatArray = self.costs_lower @ self.start
        return least

    @property
    def start_costs_upper(self) -> FloatArray:
        """Greatest costs from the start distribution, ``(K,)``."""
        greatest: FloatArray = self.costs_upper @ self.start
        return greatest


def robust_evaluate(
    cmdp: CMDP,
    policy: Policy,
    sets: UncertaintySet,
    *,
    precision: float = 1e-8,
    max_iterations: int = 100_000,
) -> RobustEvaluation:
    """Bound value and costs of a policy over an uncertainty set.

    Parameters
    ----------
    cmdp
        The problem; its rewards and costs are used, its kernel only through ``sets``.
    policy
        A stationary policy.
    sets
        The kernels that are possible.
    precision
        Largest distance between certified bounds, relative to the largest value.
    max_iterations
        Applications of the operator after which to stop; the bounds hold anyway.
    """
    sets.check_matches(cmdp)
    if not precision > 0:
        raise refusal("precision", "a number above 0", precision)
    weights = policy.pair_weights(cmdp)
    if not sets.rectangular:
        return _over_members(cmdp, policy, sets, precision)

    def extreme(gain: FloatArray, nature: Sense, most: float) -> FixedPoint:
        operator = RobustOperator(
            sets, cmdp.state_ptr, gain, cmdp.discount, nature=nature, weights=weights
        )
        point = robust_policy_value(
            operator, precision=precision, max_iterations=max_iterations
        )
        ceiling = np.nextafter(most / (1.0 - cmdp.discount), np.inf)
        return FixedPoint(
            lower=np.maximum(point.lower, 0.0),
            upper=np.minimum(point.upper, ceiling),
            converged=point.converged,
            iterations=point.iterations,
            method=point.method,
        )

    least = extreme(cmdp.reward, "min", float(cmdp.reward.max()))
    most = extreme(cmdp.reward, "max", float(cmdp.reward.max()))
    cheap = [extreme(c, "min", float(c.max())) for c in cmdp.cost]
    dear = [extreme(c, "max", float(c.max())) for c in cmdp.cost]
    points = [least, most, *cheap, *dear]
    converged = all(point.converged for point in points)
    width = max(point.width for point in points)
    methods = ", ".join(sorted({point.method for point in points}))
    message = f"bounds within {width:.2g} of the extremes, by {methods}"
    if not converged:
        message += (
            f"; precision {precision:g} was not reached: the bounds hold, allow more "
            f"iterations for tighter ones"
        )
    return RobustEvaluation(
        value_lower=least.lower,
        value_upper=most.upper,
        costs_lower=np.array([point.lower for point in cheap]),
        costs_upper=np.array([point.upper for point in dear]),
        start=cmdp.start,
        converged=converged,
        width=width,
        message=message,
    )


def _over_members(
    cmdp: CMDP, policy: Policy, sets: UncertaintySet, precision: float
) -> RobustEvaluation:
    """Evaluate under every member of a finite family, and take the extremes."""
    results = [
        evaluate(model, policy, precision=precision) for model in sets.members(cmdp)
    ]
    values = np.array([result.value for result in results])
    costs = np.array([result.costs for result in results])
    errors = np.array([result.error for result in results])
    low, high = errors[:, None], errors[:, None, None]
    return RobustEvaluation(
        value_lower=np.maximum((values - low).min(axis=0), 0.0),
        value_upper=(values + low).max(axis=0),
        costs_lower=np.maximum((costs - high).min(axis=0), 0.0),
        costs_upper=(costs + high).max(axis=0),
        start=cmdp.start,
        converged=True,
        width=2.0 * float(errors.max()),
        message=f"each of {len(results)} models evaluated by itself",
    )
