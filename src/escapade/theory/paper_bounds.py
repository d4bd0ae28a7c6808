"""All of the paper's numbers for one problem, at once.

Each number of the theory is a function of a few others: the size of the problem, its
discount, its budget, and the accuracy and certainty that are asked for.
:func:`bounds` takes those and returns every number that follows from them, corrected
and as the paper prints it, in rows that can be shown as a table.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from escapade.errors import refusal
from escapade.theory import (
    accuracy,
    attempts,
    budget_recursion,
    explore_or_exploit,
    horizons,
    known_states,
    paths,
    radii,
)
from escapade.theory import escape_budget as escape
from escapade.theory.arguments import (
    read_amount,
    read_amounts,
    read_count,
    read_discount,
    read_positive,
    read_probability,
    read_steps,
)
from escapade.theory.conditions import Condition

__all__ = ["Bounds", "BoundsRow", "Form", "bounds"]

Form = Literal["corrected", "paper", "both"]
"""Whether a number is the corrected one, the printed one, or both at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundsRow:
    """One number of the theory.

    Attributes
    ----------
    group
        Part of the theory that it belongs to; rows of a group stand together.
    name
        What it is, in a few words.
    symbol
        What the paper calls it.
    value
        The number: an ``int`` where it counts something (it may have thirty digits),
        otherwise a ``float``, which may be infinite.
    form
        ``"corrected"``; ``"paper"`` for the number as printed; ``"both"`` where the
        paper is right.
    meaning
        What it says, in a sentence.
    erratum
        The erratum that corrects the paper, such as ``"E22"``, or ``""``.
    """

    group: str
    name: str
    symbol: str
    value: float
    form: Form
    meaning: str
    erratum: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Every number of the theory for one problem.

    Attributes
    ----------
    inputs
        What the numbers follow from, as ``(name, value)``.
    numbers
        The numbers.
    requirements
        The requirements of the Escape Budget Lemma, with both sides.
    """

    inputs: tuple[tuple[str, float], ...]
    numbers: tuple[BoundsRow, ...]
    requirements: tuple[Condition, ...]

    @property
    def holds(self) -> bool:
        """Whether every requirement of the Escape Budget Lemma holds."""
        return all(requirement.holds for requirement in self.requirements)

    @property
    def binding(self) -> Condition:
        """The requirement with the least slack."""
        return min(self.requirements, key=lambda requirement: requirement.slack)

    def rows(self, form: Form | None = None) -> tuple[BoundsRow, ...]:
        """Return the numbers, in the order of the paper.

        Parameters
        ----------
        form
            ``"corrected"`` or ``"paper"`` leaves out the rows of the other form;
            ``"both"`` leaves only those on which the two agree.
        """
        if form is None:
            return self.numbers
        if form not in ("corrected", "paper", "both"):
            raise refusal("form", '"corrected", "paper" or "both"', repr(form))
        return tuple(row for row in self.numbers if row.form in (form, "both"))

    def value(self, symbol: str, form: Form = "corrected") -> float:
        """Return the number that the paper calls ``symbol``, in one of its forms."""
        for row in self.rows(form):
            if row.symbol == symbol:
                return row.value
        symbols = sorted({row.symbol for row in self.rows(form)})
        raise refusal("symbol", f"one of {symbols}", repr(symbol))


class _Table:
    """Rows as they are collected."""

    def __init__(self) -> None:
        self.rows: list[BoundsRow] = []
        self.group = ""

    def add(
        self,
        symbol: str,
        value: float,
        name: str,
        meaning: str,
        *,
        form: Form = "corrected",
        erratum: str = "",
    ) -> None:
        self.rows.append(
            BoundsRow(
                group=self.group,
                name=name,
                symbol=symbol,
                value=value,
                form=form,
                meaning=meaning,
                erratum=erratum,
            )
        )


def bounds(
    *,
    n_states: int,
    n_actions: int,
    discount: float,
    budget: float,
    epsilon: float = 1.0,
    delta: float = 0.05,
    reward_max: float = 1.0,
    cost_max: float = 1.0,
    n_costs: int = 1,
    escape_steps: float = 1.0,
    safe_return_budget: float = 0.0,
    known_budget: float | None = None,
    costs: Iterable[float] = (),
    variance: float | None = None,
    visits: int | None = None,
    deviations: float = 3.0,
    optimisation_operations: float = 1.0,
) -> Bounds:
    """Return every number of the theory that follows from the given ones.

    Parameters
    ----------
    n_states, n_actions, discount, budget
        S, A, γ and d.
    epsilon, delta
        Accuracy ε, and the probability δ with which it may be missed.
    reward_max, cost_max
        Largest reward and largest cost of one step, both above 0.
    n_costs
        K, the number of cost channels.
    escape_steps
        D, the expected steps of the best escape, or the diameter.
    safe_return_budget
        d_s, what a safe return may cost.
    known_budget
        d'', the budget within the known states; by default the largest that the Escape
        Budget Lemma allows.
    costs
        Costs of the path in the known states up to the first unknown one.
    variance
        Largest variance of a reward, a cost, or the indicator of a transition; by
        default what their ranges allow, a quarter of the square.
    visits
        A number of visits of each pair, for the radii and the sample complexity; by
        default the m_known of the theory.
    deviations
        k, the standard deviations that a single path keeps away from the budget.
    optimisation_operations
        Operations of one offline optimisation, the paper's Opt.

    Returns
    -------
    Bounds
        Rows of ``group, name, symbol, value, form, meaning, erratum``, and the
        requirements of the Escape Budget Lemma with the one that binds.

    Examples
    --------
    >>> found = bounds(n_states=100, n_actions=5, discount=0.99, budget=10.0)
    >>> found.value("T")
    461
    >>> f"{found.value('m_known', 'paper'):.1e}"
    '8.6e+31'
    >>> found.holds, found.binding.name
    (True, 'b')
    """
    eps = read_positive("epsilon", epsilon)
    read_probability("delta", delta)
    rewards = read_positive("reward_max", reward_max)
    per_step = read_positive("cost_max", cost_max)
    largest = max(rewards, per_step)
    spread = (
        max(largest, 1.0) ** 2 / 4.0
        if variance is None
        else read_amount("variance", variance)
    )
    path = tuple(float(cost) for cost in read_amounts("costs", costs))
    inputs: list[tuple[str, float]] = [
        ("n_states", read_count("n_states", n_states)),
        ("n_actions", read_count("n_actions", n_actions)),
        ("discount", read_discount(discount)),
        ("budget", read_amount("budget", budget)),
        ("epsilon", eps),
        ("delta", delta),
        ("reward_max", rewards),
        ("cost_max", per_step),
        ("n_costs", read_count("n_costs", n_costs)),
        ("escape_steps", read_steps("escape_steps", escape_steps)),
        ("safe_return_budget", read_amount("safe_return_budget", safe_return_budget)),
        ("variance", spread),
        ("deviations", read_amount("deviations", deviations)),
    ]
    if known_budget is not None:
        inputs.append(("known_budget", read_amount("known_budget", known_budget)))
    if visits is not None:
        inputs.append(("visits", read_count("visits", visits)))
    table = _Table()
    _add_horizons(table, discount, eps, rewards, per_step)
    known = _add_known_states(
        table,
        n_states=n_states,
        n_actions=n_actions,
        discount=discount,
        epsilon=eps,
        delta=delta,
        reward_max=rewards,
        cost_max=per_step,
        n_costs=n_costs,
        variance=spread,
    )
    report = escape.escape_budget(
        budget=budget,
        discount=discount,
        cost_max=per_step,
        epsilon=eps,
        safe_return_budget=safe_return_budget,
        escape_steps=escape_steps,
        known_budget=known_budget,
        costs=path,
    )
    _add_budgets(table, report, discount, per_step, eps, path)
    _add_complexity(
        table,
        n_states=n_states,
        n_actions=n_actions,
        discount=discount,
        epsilon=eps,
        delta=delta,
        reward_max=rewards,
        cost_max=per_step,
        n_costs=n_costs,
        visits=visits,
        escape_steps=escape_steps,
        operations=optimisation_operations,
    )
    _add_radii(
        table,
        n_states,
        n_states * n_actions,
        known if visits is None else visits,
        delta,
    )
    _add_paths(table, budget, per_step, discount, deviations)
    return Bounds(
        inputs=tuple(inputs),
        numbers=tuple(table.rows),
        requirements=report.requirements,
    )


def _add_horizons(
    table: _Table, discount: float, epsilon: float, reward_max: float, cost_max: float
) -> None:
    table.group = "Horizon"
    horizon = horizons.horizon_time(
        discount=discount, epsilon=epsilon, reward_max=reward_max, cost_max=cost_max
    )
    table.add(
        "T",
        horizon,
        "ε-horizon time",
        "steps after which at most ε of a discounted sum is left",
        erratum="E6",
    )
    table.add(
        "T",
        horizons.horizon_time_as_printed(
            discount=discount, epsilon=epsilon, reward_max=reward_max, cost_max=cost_max
        ),
        "ε-horizon time, without the ceiling",
        "the same, not rounded up to whole steps",
        form="paper",
        erratum="E6",
    )
    table.add(
        "T(least)",
        horizons.least_horizon(
            discount=discount, epsilon=epsilon, maximum=max(reward_max, cost_max)
        ),
        "least horizon",
        "the least number of steps for which that is true",
    )
    for symbol, maximum, what in (
        ("G^r(T)", reward_max, "reward"),
        ("G^c(T)", cost_max, "cost"),
    ):
        table.add(
            symbol,
            horizons.value_bound(discount=discount, maximum=maximum, horizon=horizon),
            f"largest T-step {what}",
            f"no path of T steps has a larger discounted {what}",
            erratum="E4",
        )
        table.add(
            symbol,
            horizons.value_bound_as_printed(discount=discount, maximum=maximum),
            f"largest {what}",
            "the infinite sum, whatever T is",
            form="paper",
            erratum="E4",
        )


def _add_known_states(
    table: _Table,
    *,
    n_states: int,
    n_actions: int,
    discount: float,
    epsilon: float,
    delta: float,
    reward_max: float,
    cost_max: float,
    n_costs: int,
    variance: float,
) -> int:
    table.group = "Known states"
    needed = accuracy.required_accuracy(
        n_states=n_states,
        discount=discount,
        epsilon=epsilon,
        reward_max=reward_max,
        cost_max=cost_max,
    )
    table.add(
        "K_1",
        accuracy.ACCURACY_CONSTANT,
        "constant of the accuracy",
        "alpha = K_1 (ε / (S T G))²",
        form="both",
    )
    table.add(
        "alpha",
        needed.accuracy,
        "accuracy of the model",
        "with every number of the model this close, all values are within ε",
        erratum="E10",
    )
    hoeffding = known_states.known_visits(
        n_states=n_states,
        n_actions=n_actions,
        discount=discount,
        epsilon=epsilon,
        delta=delta,
        reward_max=reward_max,
        cost_max=cost_max,
        n_costs=n_costs,
    )
    table.add(
        "m_known",
        hoeffding,
        "visits of a known pair (Hoeffding)",
        "after so many visits of each pair the model is that close",
        erratum="E10",
    )
    table.add(
        "m_known",
        known_states.known_visits_as_printed(
            n_states=n_states,
            n_actions=n_actions,
            discount=discount,
            epsilon=epsilon,
            delta=delta,
            reward_max=reward_max,
            cost_max=cost_max,
        ),
        "visits of a known state (Hoeffding)",
        "the formula for practice, per state",
        form="paper",
        erratum="E10",
    )
    table.add(
        "m_known(Bernstein)",
        known_states.known_visits_bernstein(
            n_states=n_states,
            n_actions=n_actions,
            discount=discount,
            epsilon=epsilon,
            delta=delta,
            reward_max=reward_max,
            cost_max=cost_max,
            n_costs=n_costs,
            variance=variance,
        ),
        "visits of a known pair (Bernstein)",
        "fewer, if every variance is small",
        erratum="E11",
    )
    table.add(
        "m_known(Bernstein)",
        known_states.known_visits_bernstein_as_printed(
            n_states=n_states,
            n_actions=n_actions,
            discount=discount,
            epsilon=epsilon,
            delta=delta,
            reward_max=reward_max,
            cost_max=cost_max,
            variance=variance,
            accuracy=needed.accuracy,
        ),
        "visits of a known state (Bernstein)",
        "counts alpha twice, and is negative for every delta below one half",
        form="paper",
        erratum="E11",
    )
    table.add(
        "m_known(deterministic)",
        known_states.known_visits_deterministic(
            n_states=n_states,
            n_actions=n_actions,
            discount=discount,
            epsilon=epsilon,
            delta=delta,
            reward_max=reward_max,
            cost_max=cost_max,
        ),
        "visits of a known pair (deterministic rewards and costs)",
        "when only the transitions must be estimated",
        erratum="E10",
    )
    table.add(
        "m_known(deterministic)",
        known_states.known_visits_deterministic_as_printed(
            n_states=n_states,
            n_actions=n_actions,
            discount=discount,
            epsilon=epsilon,
            delta=delta,
            reward_max=reward_max,
            cost_max=cost_max,
        ),
        "visits of a known state (deterministic rewards and costs)",
        "the same, per state",
        form="paper",
        erratum="E10",
    )
    return hoeffding


def _add_budgets(
    table: _Table,
    report: escape.EscapeBudget,
    discount: float,
    cost_max: float,
    epsilon: float,
    path: tuple[float, ...],
) -> None:
    table.group = "Budgets"
    reserve = report.safe_return_budget
    table.add(
        "d''",
        report.known_budget,
        "known-state budget",
        "what exploring and exploiting may cost within the known states",
        form="both",
    )
    table.add(
        "l",
        explore_or_exploit.known_state_plan_budget(
            known_budget=report.known_budget, epsilon=epsilon
        ),
        "budget to plan with",
        "one ε below d'', for a planner that bounds the infinite sum",
        erratum="E27",
    )
    table.add(
        "l",
        report.plan_budget,
        "budget to plan with",
        "two ε below d'', for a planner that bounds T steps",
        form="paper",
        erratum="E27",
    )
    table.add(
        "d_s(most)",
        report.requirement("d").right,
        "largest safe-return budget",
        "requirement (d) allows no larger d_s",
        form="both",
    )
    table.add(
        "L",
        report.running_budget,
        "running budget",
        "what the path so far leaves of d, by the recursion",
        erratum="E18",
    )
    table.add(
        "C(p)",
        budget_recursion.path_cost(path, discount=discount),
        "cost of the path",
        "discounted cost of the path in the known states",
        form="both",
    )
    table.add(
        "d'",
        report.escape_budget,
        "escape budget",
        "what may be spent in unknown states before the known ones are reached again",
        form="both",
    )
    table.add(
        "d'_min",
        report.least_escape_budget,
        "least escape budget",
        "what the lemma counts on after the costliest path",
        form="both",
        erratum="E17",
    )
    table.add(
        "T'",
        report.spending_steps,
        "steps that spend d'",
        "steps of largest cost until d' is spent; bounds no loop when infinite",
        erratum="E22",
    )
    table.add(
        "T'",
        escape.spending_steps_as_in_algorithm(
            budget=report.escape_budget, cost_max=cost_max, discount=discount
        ),
        "steps that spend d', as in Algorithm 1",
        "one step fewer, from a sum that runs to T",
        form="paper",
        erratum="E22",
    )
    table.add(
        "T_min",
        report.least_spending_steps,
        "steps that spend d'_min",
        "steps of largest cost until d'_min is spent",
        form="both",
    )
    table.add(
        "C(escape)",
        escape.escape_cost_bound(
            escape_steps=report.escape_steps, cost_max=cost_max, discount=discount
        ),
        "cost of an escape",
        "an escape of D expected steps costs no more on average",
        erratum="E20",
    )
    table.add(
        "d(least)",
        escape.feasible_budget(
            safe_return_budget=reserve,
            escape_steps=report.escape_steps,
            cost_max=cost_max,
            epsilon=epsilon,
        ),
        "least budget that the lemma can use",
        "below it no budget is left to plan with in the known states",
        erratum="E18",
    )
    for requirement in report.requirements:
        table.add(
            f"({requirement.name})",
            requirement.slack,
            f"slack of requirement ({requirement.name})",
            requirement.sentence + (" (holds)" if requirement.holds else " (fails)"),
            form="both" if requirement.name in "bcdk" else "corrected",
            erratum={"a": "E20", "l": "E18"}.get(requirement.name, ""),
        )
    table.add(
        "(a)",
        report.least_spending_steps - report.escape_steps_plus,
        "slack of requirement (a), in steps",
        "D⁺ ≤ T_min ≤ T'"
        + (" (holds)" if report.printed_diameter_requirement else " (fails)"),
        form="paper",
        erratum="E20",
    )


def _add_complexity(
    table: _Table,
    *,
    n_states: int,
    n_actions: int,
    discount: float,
    epsilon: float,
    delta: float,
    reward_max: float,
    cost_max: float,
    n_costs: int,
    visits: int | None,
    escape_steps: float,
    operations: float,
) -> None:
    table.group = "Complexity"
    samples = attempts.sample_complexity(
        n_states=n_states,
        n_actions=n_actions,
        discount=discount,
        epsilon=epsilon,
        delta=delta,
        reward_max=reward_max,
        cost_max=cost_max,
        n_costs=n_costs,
        visits=visits,
        escape_steps=escape_steps,
    )
    table.add(
        "p",
        samples.success_probability,
        "chance that an attempt succeeds",
        "an exploration attempt reaches an unknown state at least so often",
        erratum="E31",
    )
    table.add(
        "N",
        samples.attempts,
        "exploration attempts",
        "so many make every state known",
        erratum="E32",
    )
    printed = attempts.sample_complexity_as_printed(
        n_states=n_states,
        n_actions=n_actions,
        discount=discount,
        epsilon=epsilon,
        delta=delta,
        reward_max=reward_max,
        cost_max=cost_max,
    )
    table.add(
        "actions",
        samples.actions,
        "sample complexity",
        "actions before a nearly optimal policy is returned, escapes and returns too",
        erratum="E31",
    )
    table.add(
        "actions",
        printed,
        "sample complexity",
        "the argument of the O(·) of Theorem 1",
        form="paper",
        erratum="E32",
    )
    table.add(
        "operations",
        attempts.time_complexity(samples, optimisation_operations=operations),
        "time complexity",
        "three optimisations for each attempt, and the actions",
    )
    table.add(
        "operations",
        attempts.time_complexity_as_printed(
            printed, optimisation_operations=operations
        ),
        "time complexity",
        "one optimisation for each action",
        form="paper",
    )


def _add_radii(
    table: _Table, n_states: int, n_pairs: int, visits: int, delta: float
) -> None:
    table.group = "Confidence radii"
    count = float(visits)
    table.add(
        "psi",
        float(
            radii.weissman_radius(
                count, n_states=n_states, n_pairs=n_pairs, delta=delta
            )
        ),
        "L1 radius",
        "rows of the kernel are this close after the visits given, or m_known",
        erratum="E30",
    )
    table.add(
        "psi",
        float(
            radii.weissman_radius_as_printed(
                count, n_states=n_states, n_pairs=n_pairs, delta=delta
            )
        ),
        "L1 radius",
        "with 1 − δ for δ: smaller the more certain it should be",
        form="paper",
        erratum="E30",
    )


def _add_paths(
    table: _Table, budget: float, cost_max: float, discount: float, deviations: float
) -> None:
    table.group = "Single paths"
    found = paths.path_constraint(
        budget=budget, cost_max=cost_max, discount=discount, deviations=deviations
    )
    table.add(
        "S_C",
        found.deviation,
        "deviation of a path's cost",
        "no path cost has a larger standard deviation",
        erratum="E33",
    )
    table.add(
        "S_C",
        paths.path_deviation_bound_as_printed(
            cost_variance=cost_max**2 / 4.0, discount=discount
        ),
        "deviation of a path's cost",
        "from the variance of one step alone, here the largest possible",
        form="paper",
        erratum="E33",
    )
    table.add(
        "d_p",
        found.path_budget,
        "budget for single paths",
        "k deviations below d; useless when not above 2 c_max",
        form="both",
    )
    table.add(
        "P(C > d)",
        found.failure,
        "chance of a path over budget",
        "whatever the distribution (Cantelli)",
        form="both",
    )
    table.add(
        "P(C > d, normal)",
        found.normal_failure,
        "chance of a path over budget, if normal",
        "the tail of a normal distribution beyond k deviations",
        form="both",
        erratum="E33",
    )
