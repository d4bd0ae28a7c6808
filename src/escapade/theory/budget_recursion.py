r"""What past costs leave for the future: one number instead of a loop over the past.

Requirement (b) of the Escape Budget Lemma asks, for *every* recent time t, that the
budget d of that time covers the cost since then and what is still to come.  Arriving
at an unknown state with :math:`T_k` steps behind it since t,

.. math:: d' \le \gamma^{-T_k} \left( d - \gamma^{T_k+1} d_s - C(p_{t:}) \right),

and requirement (c) adds :math:`d' \le d - \gamma d_s`.  The least of all these bounds
is a recursion (E18).  With :math:`L = d` at birth and after every step of cost c

.. math:: L \leftarrow \min\left(d, \frac{L - c}{\gamma}\right),

the bounds together say exactly :math:`d' \le L - \gamma d_s`.  Both forms are here;
the loop is the paper's, the recursion is what runs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from escapade.errors import refusal
from escapade.theory.arguments import (
    read_amount,
    read_amounts,
    read_discount,
    read_real,
)

__all__ = [
    "escape_budget_by_loop",
    "escape_budget_by_recursion",
    "next_running_budget",
    "path_cost",
    "path_costs",
    "running_budget",
]


def path_cost(costs: Iterable[float], *, discount: float) -> float:
    """Return C(p), the discounted cost of a path."""
    gamma = read_discount(discount)
    total = 0.0
    for cost in read_amounts("costs", costs)[::-1]:
        total = float(cost) + gamma * total
    return total


def path_costs(costs: Iterable[float], *, discount: float) -> tuple[float, ...]:
    """Return the discounted cost from each time of a path to its end."""
    gamma = read_discount(discount)
    totals: list[float] = []
    total = 0.0
    for cost in read_amounts("costs", costs)[::-1]:
        total = float(cost) + gamma * total
        totals.append(total)
    return tuple(reversed(totals))


def next_running_budget(
    running: float, cost: float, *, discount: float, budget: float
) -> float:
    """Return min(d, (L − c)/γ), what is left for the future after one step.

    Parameters
    ----------
    running
        L before the step.
    cost
        Cost of the step.
    discount, budget
        γ and d.
    """
    gamma = read_discount(discount)
    cap = read_amount("budget", budget)
    expected = f"a number of at most budget = {cap:g}"
    before = read_real("running", running, expected)
    if before > cap:
        raise refusal("running", expected, before)
    left = before - read_amount("cost", cost)
    if gamma == 0.0:  # nothing but the present counts
        return cap if left >= 0.0 else -math.inf
    return min(cap, left / gamma)


def running_budget(
    costs: Iterable[float], *, discount: float, budget: float
) -> tuple[float, ...]:
    """Return L at every time of a path: the budget d first, then after each cost.

    Examples
    --------
    >>> running_budget([1.0, 0.0], discount=0.5, budget=4.0)
    (4.0, 4.0, 4.0)
    >>> running_budget([3.0, 0.5], discount=0.5, budget=4.0)
    (4.0, 2.0, 3.0)
    """
    path = [read_amount("budget", budget)]
    for cost in read_amounts("costs", costs):
        path.append(
            next_running_budget(path[-1], float(cost), discount=discount, budget=budget)
        )
    return tuple(path)


def escape_budget_by_recursion(
    costs: Iterable[float],
    *,
    discount: float,
    budget: float,
    safe_return_budget: float,
) -> float:
    """Return d' = L − γ d_s, the most that (b) and (c) allow after a path.

    Parameters
    ----------
    costs
        Costs of the path in the known states, oldest first.
    discount, budget
        γ and d.
    safe_return_budget
        d_s.
    """
    reserve = read_amount("safe_return_budget", safe_return_budget)
    last = running_budget(costs, discount=discount, budget=budget)[-1]
    return last - read_discount(discount) * reserve


def escape_budget_by_loop(
    costs: Iterable[float],
    *,
    discount: float,
    budget: float,
    safe_return_budget: float,
) -> tuple[float, ...]:
    """Return the bound on d' from every past time: (b) for each, then (c).

    The least of them is :func:`escape_budget_by_recursion`.  Takes a discount above 0.
    """
    gamma = read_discount(discount)
    if gamma == 0.0:
        raise refusal("discount", "a number in (0, 1)", gamma)
    cap = read_amount("budget", budget)
    reserve = read_amount("safe_return_budget", safe_return_budget)
    totals = path_costs(costs, discount=gamma)
    bounds = []
    for start, total in enumerate(totals):
        steps = len(totals) - start
        left = cap - gamma ** (steps + 1) * reserve - total
        scale = gamma**steps
        bounds.append(left / scale if scale > 0.0 else math.copysign(math.inf, left))
    bounds.append(cap - gamma * reserve)
    return tuple(bounds)
