r"""Horizons: how many steps settle a discounted sum, and how large it can get.

A discounted sum of rewards in :math:`[0, r_{\max}]` is at most

.. math:: G(T) = r_{\max} \frac{1 - \gamma^T}{1 - \gamma}

over T steps, and what comes later adds at most :math:`\gamma^T r_{\max}/(1-\gamma)`.
The *ε-horizon time* is the paper's T at which that remainder is no more than ε
(Constrained T-step Estimation Lemma):

.. math:: T = \left\lceil \frac{1}{1-\gamma}
          \ln \frac{\max(r_{\max}, c_{\max})}{\epsilon (1-\gamma)} \right\rceil .

The paper leaves out the ceiling and turns the condition of its proof round (E6), and
calls the infinite sum :math:`G_{\max}(T)` (E4); both of its forms stand here under
names that end in ``as_printed``.
"""

from __future__ import annotations

import math

from escapade.errors import refusal
from escapade.theory.arguments import (
    finite_ceiling,
    read_amount,
    read_count,
    read_discount,
    read_positive,
)

__all__ = [
    "horizon_time",
    "horizon_time_as_printed",
    "least_horizon",
    "simulation_horizon",
    "truncation_error",
    "value_bound",
    "value_bound_as_printed",
]


def _largest(reward_max: float, cost_max: float) -> float:
    largest = max(
        read_amount("reward_max", reward_max), read_amount("cost_max", cost_max)
    )
    if largest == 0.0:
        raise refusal("reward_max", "a reward_max or cost_max above 0", largest)
    return largest


def horizon_time_as_printed(
    *, discount: float, epsilon: float, reward_max: float, cost_max: float
) -> float:
    """Return the paper's ε-horizon time, a real number that may even be negative.

    Parameters
    ----------
    discount
        Discount factor in [0, 1).
    epsilon
        Accuracy.
    reward_max, cost_max
        Largest reward and largest cost of one step; with several cost channels, the
        largest of them.
    """
    gamma = read_discount(discount)
    eps = read_positive("epsilon", epsilon)
    largest = _largest(reward_max, cost_max)
    return math.log(largest / (eps * (1.0 - gamma))) / (1.0 - gamma)


def horizon_time(
    *, discount: float, epsilon: float, reward_max: float, cost_max: float
) -> int:
    """Return the ε-horizon time T, a whole number of at least 1.

    Cutting any policy's discounted sum off after T steps loses at most ``epsilon``,
    for rewards and for costs.  (At least 1, as later formulas divide by T.)

    Examples
    --------
    >>> horizon_time(discount=0.98, epsilon=1.0, reward_max=0.0, cost_max=1.0)
    196
    """
    steps = horizon_time_as_printed(
        discount=discount, epsilon=epsilon, reward_max=reward_max, cost_max=cost_max
    )
    return max(finite_ceiling("epsilon", steps), 1)


def simulation_horizon(
    *, discount: float, epsilon: float, reward_max: float, cost_max: float
) -> int:
    """Return the horizon that the Constrained Simulation Lemma really needs.

    Its proof spends ε/2 on the accuracy of T-step sums and ε/2 on what comes after T,
    so T is the (ε/2)-horizon time.
    """
    half = read_positive("epsilon", epsilon) / 2.0
    return horizon_time(
        discount=discount, epsilon=half, reward_max=reward_max, cost_max=cost_max
    )


def least_horizon(*, discount: float, epsilon: float, maximum: float) -> int:
    """Return the least T with ``truncation_error`` at most ``epsilon``.

    Never longer than :func:`horizon_time`, which replaces ln(1/γ) by 1−γ.
    """
    gamma = read_discount(discount)
    eps = read_positive("epsilon", epsilon)
    top = read_amount("maximum", maximum)
    if top <= eps * (1.0 - gamma):
        return 0
    if gamma == 0.0:
        return 1
    ratio = top / (eps * (1.0 - gamma))
    steps = finite_ceiling("epsilon", math.log(ratio) / -math.log(gamma))
    # The logarithms round; the definition decides.
    while truncation_error(discount=gamma, maximum=top, horizon=steps) > eps:
        steps += 1
    while (
        steps > 0
        and truncation_error(discount=gamma, maximum=top, horizon=steps - 1) <= eps
    ):
        steps -= 1
    return steps


def value_bound(
    *, discount: float, maximum: float, horizon: float | None = None
) -> float:
    """Return G(T), the largest discounted sum of T steps.

    Parameters
    ----------
    discount
        Discount factor in [0, 1).
    maximum
        Largest reward, or cost, of one step.
    horizon
        Number of steps; ``None`` or infinity for the infinite sum.
    """
    gamma = read_discount(discount)
    top = read_amount("maximum", maximum)
    if horizon is None or horizon == math.inf:
        return top / (1.0 - gamma)
    steps = read_count("horizon", horizon, least=0)
    if steps == 0 or gamma == 0.0:
        return top if steps else 0.0
    return top * -math.expm1(steps * math.log(gamma)) / (1.0 - gamma)


def value_bound_as_printed(*, discount: float, maximum: float) -> float:
    """Return the paper's ``G_max(T)``: the infinite sum, whatever T is (E4)."""
    return value_bound(discount=discount, maximum=maximum)


def truncation_error(*, discount: float, maximum: float, horizon: int) -> float:
    """Return the most that steps from ``horizon`` on can add: γ^T max / (1−γ).

    This is the gap of the Constrained T-step Estimation Lemma:
    ``V(s, T) <= V(s) <= V(s, T) + truncation_error``.
    """
    gamma = read_discount(discount)
    top = read_amount("maximum", maximum)
    steps = read_count("horizon", horizon, least=0)
    return gamma**steps * top / (1.0 - gamma)
