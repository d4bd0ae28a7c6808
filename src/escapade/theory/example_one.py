"""Example 1 of the paper, as printed and as its own formulas give it (E23).

The example follows one costly path through the known states and works out the escape
budget that it leaves.  Its list of path costs was computed with a discount of 0.9
instead of 0.98, 49.05 is G(T) without the ε that is added in the text, T_min and T'
are counted too low, and the d' printed has one step too few in T_k.
"""

from __future__ import annotations

from dataclasses import dataclass

from escapade.theory.budget_recursion import escape_budget_by_loop, path_costs
from escapade.theory.escape_budget import EscapeBudget, escape_budget
from escapade.theory.horizons import horizon_time, value_bound

__all__ = ["ExampleOne", "example_one", "example_one_as_printed"]

_DISCOUNT = 0.98
_EPSILON = 1.0
_COST_MAX = 1.0
_BUDGET = 25.0
_SAFE_RETURN_BUDGET = 5.0
_DIAMETER = 3
_KNOWN_BUDGET = 12.0
_COSTS = (0.0, 1.0, 0.0, 0.0, 1.0, 0.5, 1.0, 1.0, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExampleOne:
    """The numbers of Example 1.

    Attributes
    ----------
    horizon
        T.
    cost_bound
        The number that the paper calls G^c(T) + ε.
    known_budget
        d''.
    least_spending_steps, spending_steps
        T_min and T'.
    path_costs
        C_p, the discounted cost from each time to the end of the path.
    binding_time
        t at which d' is least.
    escape_budget
        d'.
    unknown_requirement_slack
        Right side of requirement (c), d − γ d_s; ``None`` where the paper gives none.
    """

    horizon: int
    cost_bound: float
    known_budget: float
    least_spending_steps: float
    spending_steps: float
    path_costs: tuple[float, ...]
    binding_time: int
    escape_budget: float
    unknown_requirement_slack: float | None


def example_one() -> tuple[ExampleOne, EscapeBudget]:
    """Compute Example 1, and the report of the lemma on it."""
    report = escape_budget(
        budget=_BUDGET,
        discount=_DISCOUNT,
        cost_max=_COST_MAX,
        epsilon=_EPSILON,
        safe_return_budget=_SAFE_RETURN_BUDGET,
        escape_steps=_DIAMETER,
        known_budget=_KNOWN_BUDGET,
        costs=_COSTS,
    )
    horizon = horizon_time(
        discount=_DISCOUNT, epsilon=_EPSILON, reward_max=0.0, cost_max=_COST_MAX
    )
    bounds = escape_budget_by_loop(
        _COSTS,
        discount=_DISCOUNT,
        budget=_BUDGET,
        safe_return_budget=_SAFE_RETURN_BUDGET,
    )
    bound = value_bound(discount=_DISCOUNT, maximum=_COST_MAX, horizon=horizon)
    numbers = ExampleOne(
        horizon=horizon,
        cost_bound=bound + _EPSILON,
        known_budget=report.known_budget,
        least_spending_steps=report.least_spending_steps,
        spending_steps=report.spending_steps,
        path_costs=path_costs(_COSTS, discount=_DISCOUNT),
        binding_time=bounds.index(min(bounds)),
        escape_budget=report.escape_budget,
        unknown_requirement_slack=report.requirement("c").right,
    )
    return numbers, report


def example_one_as_printed() -> ExampleOne:
    """Return the numbers of Example 1 as the paper prints them."""
    return ExampleOne(
        horizon=196,
        cost_bound=49.05,
        known_budget=12.0,
        least_spending_steps=3,
        spending_steps=21,
        path_costs=(3.29, 3.66, 2.95, 3.28, 3.65, 2.94, 2.71, 1.9, 1.0),
        binding_time=4,
        escape_budget=17.53,
        unknown_requirement_slack=None,
    )
