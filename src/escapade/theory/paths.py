r"""Constraints on single paths rather than on expectations.

A path may cost more than d though its expectation does not.  With :math:`S_C` the
standard deviation of a path's cost, planning with :math:`d_p = d - k S_C` (the paper
takes k = 3) makes that rare: with probability below 1/(1 + k²) whatever the
distribution (Cantelli), and about .135 % for k = 3 if it is normal.

A path's cost lies in :math:`[0, c_{\max}/(1-\gamma)]`, so :math:`S_C \le c_{\max} /
(2(1-\gamma))` by Popoviciu's inequality.  The paper's bound,
:math:`\sqrt{\mathrm{Var}^c_{\max}}/(1-\gamma)`, leaves out that the path itself is
random (E33): it is 0 for deterministic costs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy.special import ndtr

from escapade.theory.arguments import read_amount, read_discount, read_positive

__all__ = [
    "PathConstraint",
    "cantelli_tail",
    "normal_tail",
    "path_constraint",
    "path_deviation_bound",
    "path_deviation_bound_as_printed",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class PathConstraint:
    """A budget under which single paths rarely cost more than d.

    Attributes
    ----------
    budget
        d.
    deviation
        S_C, a bound on the standard deviation of a path's cost.
    path_budget
        d_p = d − k S_C, the expectation to plan for.
    failure
        Bound on the probability of a path over d, whatever the distribution.
    normal_failure
        That probability if path costs were normal.
    usable
        Whether d_p is above 2 c_max, as the paper asks.
    """

    budget: float
    deviation: float
    path_budget: float
    failure: float
    normal_failure: float
    usable: bool


def path_deviation_bound(*, cost_max: float, discount: float) -> float:
    """Return c_max / (2 (1−γ)), the largest standard deviation of a path's cost."""
    gamma = read_discount(discount)
    return read_amount("cost_max", cost_max) / (2.0 * (1.0 - gamma))


def path_deviation_bound_as_printed(*, cost_variance: float, discount: float) -> float:
    """Return √Var/(1−γ), which ignores that paths are random (E33)."""
    gamma = read_discount(discount)
    return math.sqrt(read_amount("cost_variance", cost_variance)) / (1.0 - gamma)


def cantelli_tail(*, deviations: float) -> float:
    """Bound the chance to exceed the mean by k standard deviations: 1/(1+k²)."""
    k = read_amount("deviations", deviations)
    return 1.0 / (1.0 + k * k)


def normal_tail(*, deviations: float) -> float:
    """Return that chance for a normal distribution.

    Examples
    --------
    >>> round(100 * normal_tail(deviations=3.0), 3)
    0.135
    """
    return float(ndtr(-read_amount("deviations", deviations)))


def path_constraint(
    *,
    budget: float,
    cost_max: float,
    discount: float,
    deviation: float | None = None,
    deviations: float = 3.0,
) -> PathConstraint:
    """Return the budget d_p to plan with, and what it promises about single paths.

    Parameters
    ----------
    budget
        d.
    cost_max, discount
        c_max and γ.
    deviation
        S_C, if known; by default the bound c_max / (2 (1−γ)).
    deviations
        k.
    """
    whole = read_amount("budget", budget)
    top = read_positive("cost_max", cost_max)
    spread = (
        path_deviation_bound(cost_max=top, discount=discount)
        if deviation is None
        else read_amount("deviation", deviation)
    )
    planned = whole - read_amount("deviations", deviations) * spread
    return PathConstraint(
        budget=whole,
        deviation=spread,
        path_budget=planned,
        failure=cantelli_tail(deviations=deviations),
        normal_failure=normal_tail(deviations=deviations),
        usable=planned > 2.0 * top,
    )
