r"""How much may be spent in unknown states: the Escape Budget Lemma.

The agent explores known states at expected cost d'', falls into unknown states where
it may spend d', escapes, and rests on a safe return that costs at most d_s.  The lemma
lists four requirements under which every cost-to-go stays within d:

(a) the diameter leaves time to wander one step and escape within d';
(b) d' is covered by the budget of every recent time
    (:mod:`escapade.theory.budget_recursion`);
(c) :math:`d' \le d - \gamma d_s`;
(d) :math:`d_s \le \frac12 (d + \epsilon - d'' - D^+ c_{\max})`, :math:`D^+ = D + 1`.

Three corrections go in.  (a) is asked in costs, :math:`c_{\max}(1-\gamma^{D^+})/
(1-\gamma) \le d'`, by Jensen's inequality with D the expected time of escape (E20): the
printed :math:`D^+ \le T_{\min} \le T'` rounds up to whole steps, and D(M) need not
bound the escape.  T' itself is infinite once :math:`d' \ge c_{\max}/(1-\gamma)`, so it
bounds no loop (E12), and it sums to T − 1 everywhere (E22).  A budget to plan with,
:math:`l = d'' - 2\epsilon \ge 0`, exists only if :math:`d \ge 2 d_s + D^+ c_{\max} +
\epsilon` (E18); the report carries that as requirement (l).

The lemma bounds d'' in expectation and (b) by what was really spent; a path may spend
more than d'' and leave less than (a) needs (E17).  The report says so for the path
given.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from escapade.errors import refusal
from escapade.theory.arguments import (
    read_amount,
    read_amounts,
    read_discount,
    read_positive,
    read_steps,
)
from escapade.theory.budget_recursion import running_budget
from escapade.theory.conditions import Condition, binding
from escapade.theory.horizons import value_bound

__all__ = [
    "EscapeBudget",
    "escape_budget",
    "escape_cost_bound",
    "feasible_budget",
    "largest_known_budget",
    "least_escape_budget",
    "safe_return_budget_limit",
    "spending_steps",
    "spending_steps_as_in_algorithm",
    "uncounted_cost",
]

_ROUNDING = 1.0 + 1e-12  # a budget that is a sum of costs up to rounding counts as one


@dataclass(frozen=True, slots=True, kw_only=True)
class EscapeBudget:
    """The budgets of the Escape Budget Lemma, and which of its requirements hold.

    Attributes
    ----------
    budget
        d, for every cost-to-go of the whole CMDP.
    known_budget
        d'', in the known-state CMDP.
    plan_budget
        l = d'' − 2ε, to plan with (T-step costs).
    safe_return_budget
        d_s.
    escape_budget
        d', in the unknown states.
    least_escape_budget
        d'_min = d − d'' − 2 d_s + ε.
    escape_steps, escape_steps_plus
        D, the expected steps of the best escape, and D⁺ = D + 1.
    least_spending_steps, spending_steps
        T_min and T': steps of cost c_max that spend d'_min and d'.
    running_budget
        L, what the path so far leaves of d.
    requirements
        (a), (b), (c), (d), the hypothesis d'' ≤ d − ε as (k), and l ≥ 0 as (l), each
        with both sides in units of cost.
    printed_diameter_requirement
        (a) as printed, D⁺ ≤ T_min ≤ T'.
    """

    budget: float
    known_budget: float
    plan_budget: float
    safe_return_budget: float
    escape_budget: float
    least_escape_budget: float
    escape_steps: float
    escape_steps_plus: float
    least_spending_steps: float
    spending_steps: float
    running_budget: float
    requirements: tuple[Condition, ...]
    printed_diameter_requirement: bool

    @property
    def holds(self) -> bool:
        """Whether all requirements hold."""
        return all(requirement.holds for requirement in self.requirements)

    @property
    def binding(self) -> Condition:
        """The requirement with the least slack: the one to mend first."""
        return binding(self.requirements)

    def requirement(self, name: str) -> Condition:
        """Return one requirement by its letter."""
        for requirement in self.requirements:
            if requirement.name == name:
                return requirement
        letters = [requirement.name for requirement in self.requirements]
        raise refusal("name", f"one of {letters}", repr(name))


def spending_steps(*, budget: float, cost_max: float, discount: float) -> float:
    """Return the least T with Σ_{t<T} γ^t c_max ≥ budget; infinite if there is none.

    T' for the budget d', T_min for d'_min.

    Examples
    --------
    >>> spending_steps(budget=4.0, cost_max=1.0, discount=0.98)
    5
    >>> spending_steps(budget=50.0, cost_max=1.0, discount=0.98)
    inf
    """
    goal = read_amount("budget", budget)
    top = read_positive("cost_max", cost_max)
    gamma = read_discount(discount)
    if goal == 0.0:
        return 0
    if gamma == 0.0:
        return 1 if goal <= top else math.inf
    if 1.0 - goal * (1.0 - gamma) / top <= 1e-15:  # c_max / (1 - gamma), or as good
        return math.inf
    left = 1.0 - goal / _ROUNDING * (1.0 - gamma) / top
    steps = max(math.ceil(math.log(left) / math.log(gamma)), 1)
    # The logarithms round; the definition decides.
    while _spent(steps, gamma, top) < goal:
        steps += 1
    while steps > 1 and _spent(steps - 1, gamma, top) >= goal:
        steps -= 1
    return steps


def _past_bound(running: float, cost: float, gamma: float) -> float:
    """Return what all past times leave, before the cap at d."""
    if gamma > 0.0:
        return (running - cost) / gamma
    return math.inf if running >= cost else -math.inf


def _spent(steps: int, gamma: float, top: float) -> float:
    return value_bound(discount=gamma, maximum=top, horizon=steps) * _ROUNDING


def spending_steps_as_in_algorithm(
    *, budget: float, cost_max: float, discount: float
) -> float:
    """Return T' as Algorithm 1 prints it, with a sum to T: one step fewer (E22)."""
    steps = spending_steps(budget=budget, cost_max=cost_max, discount=discount)
    return max(steps - 1, 0)


def uncounted_cost(*, steps: int, cost_max: float, discount: float) -> float:
    """Return what a T-step cost leaves out when nobody escapes: γ^T c_max/(1−γ) (E12).

    A policy that never escapes has T'-step cost at most d' (up to one step) for every
    d', so a T'-step bound, or a 2T'-step one, does not bound its cost.
    """
    gamma = read_discount(discount)
    count = read_steps("steps", steps)
    return float(gamma**count * read_positive("cost_max", cost_max) / (1.0 - gamma))


def escape_cost_bound(
    *, escape_steps: float, cost_max: float, discount: float
) -> float:
    """Bound the discounted cost of an escape of D expected steps (E20).

    c_max (1 − γ^D) / (1 − γ), by Jensen's inequality, as 1 − γ^t is concave in t.
    """
    steps = read_steps("escape_steps", escape_steps)
    top = read_positive("cost_max", cost_max)
    gamma = read_discount(discount)
    if steps == 0.0:
        return 0.0
    if gamma == 0.0:
        # 1 - gamma^t is 1 from the first step on, and E[min(W, 1)] <= min(D, 1).
        return top * min(steps, 1.0)
    return top * -math.expm1(steps * math.log(gamma)) / (1.0 - gamma)


def least_escape_budget(
    *, budget: float, known_budget: float, safe_return_budget: float, epsilon: float
) -> float:
    """Return d'_min = d − d'' − 2 d_s + ε, what the lemma counts on in the worst case.

    It bounds d' from below only while no path spends more than d'' (E17).
    """
    return (
        read_amount("budget", budget)
        - read_amount("known_budget", known_budget)
        - 2.0 * read_amount("safe_return_budget", safe_return_budget)
        + read_positive("epsilon", epsilon)
    )


def largest_known_budget(
    *,
    budget: float,
    safe_return_budget: float,
    escape_steps: float,
    cost_max: float,
    epsilon: float,
) -> float:
    """Return the largest d'' that (d) and d'' ≤ d − ε allow; negative if none does."""
    whole = read_amount("budget", budget)
    eps = read_positive("epsilon", epsilon)
    reserve = read_amount("safe_return_budget", safe_return_budget)
    plus = read_steps("escape_steps", escape_steps) + 1.0
    by_d = whole + eps - 2.0 * reserve - plus * read_positive("cost_max", cost_max)
    return min(by_d, whole - eps)


def safe_return_budget_limit(
    *,
    budget: float,
    known_budget: float,
    escape_steps: float,
    cost_max: float,
    epsilon: float,
) -> float:
    """Return the right side of (d): ½ (d + ε − d'' − D⁺ c_max)."""
    plus = read_steps("escape_steps", escape_steps) + 1.0
    return 0.5 * (
        read_amount("budget", budget)
        + read_positive("epsilon", epsilon)
        - read_amount("known_budget", known_budget)
        - plus * read_positive("cost_max", cost_max)
    )


def feasible_budget(
    *,
    safe_return_budget: float,
    escape_steps: float,
    cost_max: float,
    epsilon: float,
) -> float:
    """Return the least d with l = d'' − 2ε ≥ 0: 2 d_s + D⁺ c_max + ε (E18).

    Also at least 3ε, for l = d'' − 2ε ≥ 0 and d'' ≤ d − ε together.

    Examples
    --------
    Example 2 has D = 17.936 (corner to corner, where slips of two cells help a little)
    and d = 10; even with nothing for the return and hardly any error it would need

    >>> needed = feasible_budget(
    ...     safe_return_budget=0.0, escape_steps=17.936, cost_max=1.0, epsilon=1e-6
    ... )
    >>> round(needed, 3)
    18.936
    """
    eps = read_positive("epsilon", epsilon)
    plus = read_steps("escape_steps", escape_steps) + 1.0
    by_d = (
        2.0 * read_amount("safe_return_budget", safe_return_budget)
        + plus * read_positive("cost_max", cost_max)
        + eps
    )
    return max(by_d, 3.0 * eps)


def escape_budget(
    *,
    budget: float,
    discount: float,
    cost_max: float,
    epsilon: float,
    safe_return_budget: float,
    escape_steps: float,
    known_budget: float | None = None,
    costs: Iterable[float] = (),
    requested: float | None = None,
) -> EscapeBudget:
    """Work out the budgets of the lemma and say which requirement holds.

    Parameters
    ----------
    budget, discount, cost_max
        d, γ and c_max.
    epsilon
        ε.
    safe_return_budget
        d_s.
    escape_steps
        D, an upper bound on the expected steps of the best escape; the diameter D(M) if
        it bounds that.
    known_budget
        d''; by default the largest that (d) allows, or 0 if that is negative.
    costs
        Costs in the known states up to the first unknown one, oldest first.
    requested
        d'; by default the largest that (b) and (c) allow, or 0 if that is negative.
    """
    whole = read_amount("budget", budget)
    gamma = read_discount(discount)
    top = read_positive("cost_max", cost_max)
    eps = read_positive("epsilon", epsilon)
    reserve = read_amount("safe_return_budget", safe_return_budget)
    steps = read_steps("escape_steps", escape_steps)
    inside = (
        max(
            largest_known_budget(
                budget=whole,
                safe_return_budget=reserve,
                escape_steps=steps,
                cost_max=top,
                epsilon=eps,
            ),
            0.0,
        )
        if known_budget is None
        else read_amount("known_budget", known_budget)
    )
    path = read_amounts("costs", costs)
    running = running_budget(path, discount=gamma, budget=whole)
    # (c) is the bound of the present time; (b) is that of the past, where there is one.
    past = _past_bound(running[-2], float(path[-1]), gamma) if path.size else math.inf
    by_b = past - gamma * reserve
    by_c = whole - gamma * reserve
    spend = (
        max(min(by_b, by_c), 0.0)
        if requested is None
        else read_amount("requested", requested)
    )
    least = least_escape_budget(
        budget=whole, known_budget=inside, safe_return_budget=reserve, epsilon=eps
    )
    least_steps = spending_steps(budget=max(least, 0.0), cost_max=top, discount=gamma)
    spend_steps = spending_steps(budget=spend, cost_max=top, discount=gamma)
    scale = whole + eps + inside + 2.0 * reserve
    requirements = (
        Condition(
            name="a",
            left=escape_cost_bound(
                escape_steps=steps + 1.0, cost_max=top, discount=gamma
            ),
            right=spend,
            sentence="one step of wandering and the escape cost at most d'",
            scale=scale,
        ),
        Condition(
            name="b",
            left=spend,
            right=by_b,
            sentence="d' fits into what every past time still allows",
            scale=scale,
        ),
        Condition(
            name="c",
            left=spend,
            right=by_c,
            sentence="d' and the safe return fit into d",
            scale=scale,
        ),
        Condition(
            name="d",
            left=reserve,
            right=safe_return_budget_limit(
                budget=whole,
                known_budget=inside,
                escape_steps=steps,
                cost_max=top,
                epsilon=eps,
            ),
            sentence="two safe returns, d'' and the escape fit into d + epsilon",
            scale=scale,
        ),
        Condition(
            name="k",
            left=inside,
            right=whole - eps,
            sentence="d'' is at most d - epsilon, as the lemma supposes",
            scale=scale,
        ),
        Condition(
            name="l",
            left=2.0 * eps,
            right=inside,
            sentence="a budget l = d'' - 2 epsilon >= 0 is left to plan with",
            scale=scale,
        ),
    )
    return EscapeBudget(
        budget=whole,
        known_budget=inside,
        plan_budget=inside - 2.0 * eps,
        safe_return_budget=reserve,
        escape_budget=spend,
        least_escape_budget=least,
        escape_steps=steps,
        escape_steps_plus=steps + 1.0,
        least_spending_steps=least_steps,
        spending_steps=spend_steps,
        running_budget=running[-1],
        requirements=requirements,
        printed_diameter_requirement=steps + 1.0 <= least_steps <= spend_steps,
    )
