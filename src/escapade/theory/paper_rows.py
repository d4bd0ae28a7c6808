"""The rows of numbers that :func:`~escapade.theory.paper_bounds.bounds` collects.

One function a part of the theory; each works its numbers out with the module that the
part belongs to, and puts the corrected number above the printed one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypedDict

from escapade.theory import (
    accuracy,
    attempts,
    explore_or_exploit,
    horizons,
    known_states,
    paths,
    radii,
)
from escapade.theory import escape_budget as escape

__all__ = [
    "BoundsRow",
    "Form",
    "Problem",
    "budget_rows",
    "complexity_rows",
    "horizon_rows",
    "known_state_rows",
    "path_rows",
    "radius_rows",
]

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


class Problem(TypedDict):
    """What most formulas take: the size of the problem and what is asked of it."""

    n_states: int
    n_actions: int
    discount: float
    epsilon: float
    delta: float
    reward_max: float
    cost_max: float


class _Group:
    """Makes the rows of one group."""

    def __init__(self, group: str) -> None:
        self.group = group

    def row(
        self,
        form: Form,
        symbol: str,
        value: float,
        name: str,
        meaning: str,
        erratum: str = "",
    ) -> BoundsRow:
        return BoundsRow(
            group=self.group,
            name=name,
            symbol=symbol,
            value=value,
            form=form,
            meaning=meaning,
            erratum=erratum,
        )

    def pair(
        self,
        symbol: str,
        corrected: float,
        printed: float,
        name: str,
        meaning: str,
        printed_meaning: str,
        erratum: str,
    ) -> Iterator[BoundsRow]:
        yield self.row("corrected", symbol, corrected, name, meaning, erratum)
        yield self.row("paper", symbol, printed, name, printed_meaning, erratum)


def horizon_rows(problem: Problem) -> Iterator[BoundsRow]:
    """Yield T and G(T)."""
    gamma, eps = problem["discount"], problem["epsilon"]
    rewards, costs = problem["reward_max"], problem["cost_max"]
    group = _Group("Horizon")
    horizon = horizons.horizon_time(
        discount=gamma, epsilon=eps, reward_max=rewards, cost_max=costs
    )
    yield from group.pair(
        "T",
        horizon,
        horizons.horizon_time_as_printed(
            discount=gamma, epsilon=eps, reward_max=rewards, cost_max=costs
        ),
        "ε-horizon time",
        "steps after which at most ε of a discounted sum is left",
        "the same, not rounded up to whole steps",
        "E6",
    )
    yield group.row(
        "corrected",
        "T(least)",
        horizons.least_horizon(
            discount=gamma, epsilon=eps, maximum=max(rewards, costs)
        ),
        "least horizon",
        "the least number of steps for which that is true",
    )
    for symbol, most, what in (("G^r(T)", rewards, "value"), ("G^c(T)", costs, "cost")):
        yield from group.pair(
            symbol,
            horizons.value_bound(discount=gamma, maximum=most, horizon=horizon),
            horizons.value_bound_as_printed(discount=gamma, maximum=most),
            f"largest T-step {what}",
            f"no path of T steps has a larger discounted {what}",
            "the infinite sum, whatever T is",
            "E4",
        )


def known_state_rows(
    problem: Problem, *, n_costs: int, variance: float
) -> Iterator[BoundsRow]:
    """Yield α and m_known."""
    group = _Group("Known states")
    needed = accuracy.required_accuracy(
        n_states=problem["n_states"],
        discount=problem["discount"],
        epsilon=problem["epsilon"],
        reward_max=problem["reward_max"],
        cost_max=problem["cost_max"],
    )
    yield group.row(
        "both",
        "K_1",
        accuracy.ACCURACY_CONSTANT,
        "constant of the accuracy",
        "alpha is K_1 (ε / (S T G))²",
    )
    yield group.row(
        "corrected",
        "alpha",
        needed.accuracy,
        "accuracy of the model",
        "with every number of the model this close, all values are within ε",
        "E10",
    )
    yield from group.pair(
        "m_known",
        known_states.known_visits(**problem, n_costs=n_costs),
        known_states.known_visits_as_printed(**problem),
        "visits that make known (Hoeffding)",
        "after so many visits of each pair the model is that close",
        "the formula for practice, per state",
        "E10",
    )
    yield from group.pair(
        "m_known(Bernstein)",
        known_states.known_visits_bernstein(
            **problem, n_costs=n_costs, variance=variance
        ),
        known_states.known_visits_bernstein_as_printed(
            **problem, variance=variance, accuracy=needed.accuracy
        ),
        "visits that make known (Bernstein)",
        "fewer, if every variance is small",
        "counts alpha twice, and is negative for every delta below one half",
        "E11",
    )
    yield from group.pair(
        "m_known(deterministic)",
        known_states.known_visits_deterministic(**problem),
        known_states.known_visits_deterministic_as_printed(**problem),
        "visits that make known (deterministic rewards and costs)",
        "when only the transitions must be estimated",
        "the same, per state",
        "E10",
    )


def budget_rows(
    report: escape.EscapeBudget, *, discount: float, cost_max: float, epsilon: float
) -> Iterator[BoundsRow]:
    """Yield the budgets of the Escape Budget Lemma and the slack of its parts."""
    group = _Group("Budgets")
    yield group.row(
        "both",
        "d''",
        report.known_budget,
        "known-state budget",
        "what exploring and exploiting may cost within the known states",
    )
    yield from group.pair(
        "l",
        explore_or_exploit.known_state_plan_budget(
            known_budget=report.known_budget, epsilon=epsilon
        ),
        report.plan_budget,
        "budget to plan with",
        "one ε below d'', for a planner that bounds the infinite sum",
        "two ε below d'', for a planner that bounds T steps",
        "E27",
    )
    yield group.row(
        "both",
        "d_s(most)",
        report.requirement("d").right,
        "largest safe-return budget",
        "requirement (d) allows no larger d_s",
    )
    yield group.row(
        "corrected",
        "L",
        report.running_budget,
        "running budget",
        "what the path so far leaves of d, by the recursion",
        "E18",
    )
    yield group.row(
        "both",
        "d'",
        report.escape_budget,
        "escape budget",
        "what may be spent in unknown states before known ones are reached again",
    )
    yield group.row(
        "both",
        "d'_min",
        report.least_escape_budget,
        "least escape budget",
        "what the lemma counts on after a path that cost d''; others may cost more",
        "E17",
    )
    yield from group.pair(
        "T'",
        report.spending_steps,
        escape.spending_steps_as_in_algorithm(
            budget=report.escape_budget, cost_max=cost_max, discount=discount
        ),
        "steps that spend d'",
        "steps of largest cost until d' is spent; bounds no loop when infinite",
        "one step fewer, from a sum that runs to T (Algorithm 1)",
        "E22",
    )
    yield group.row(
        "both",
        "T_min",
        report.least_spending_steps,
        "steps that spend d'_min",
        "steps of largest cost until d'_min is spent",
    )
    yield group.row(
        "corrected",
        "C(escape)",
        escape.escape_cost_bound(
            escape_steps=report.escape_steps, cost_max=cost_max, discount=discount
        ),
        "cost of an escape",
        "an escape of D expected steps costs no more on average",
        "E20",
    )
    yield group.row(
        "corrected",
        "d(least)",
        escape.feasible_budget(
            safe_return_budget=report.safe_return_budget,
            escape_steps=report.escape_steps,
            cost_max=cost_max,
            epsilon=epsilon,
        ),
        "least budget that the lemma can use",
        "below it no budget is left to plan with in the known states",
        "E18",
    )
    for requirement in report.requirements:
        yield group.row(
            "corrected" if requirement.name in "al" else "both",
            f"({requirement.name})",
            requirement.slack,
            f"slack of requirement ({requirement.name})",
            f"{requirement.sentence}: {'holds' if requirement.holds else 'fails'}",
            {"a": "E20", "l": "E18"}.get(requirement.name, ""),
        )
    left, right = report.escape_steps_plus, report.least_spending_steps
    yield group.row(
        "paper",
        "(a)",
        0.0 if left == right else right - left,
        "slack of requirement (a), in steps",
        "D⁺ ≤ T_min ≤ T': "
        + ("holds" if report.printed_diameter_requirement else "fails"),
        "E20",
    )


def complexity_rows(
    problem: Problem,
    *,
    n_costs: int,
    visits: int | None,
    escape_steps: float,
    optimisation_operations: float,
) -> Iterator[BoundsRow]:
    """Yield attempts, actions and operations of Theorem 1."""
    group = _Group("Complexity")
    samples = attempts.sample_complexity(
        **problem, n_costs=n_costs, visits=visits, escape_steps=escape_steps
    )
    printed = attempts.sample_complexity_as_printed(**problem)
    yield group.row(
        "corrected",
        "p",
        samples.success_probability,
        "chance that an attempt succeeds",
        "an exploration attempt reaches an unknown state at least so often",
        "E31",
    )
    yield from group.pair(
        "N",
        samples.attempts,
        attempts.exploration_attempts_as_printed(
            visits=samples.successes,
            probability=samples.success_probability,
            n_states=1,
            delta=problem["delta"] / 4.0,
        ),
        "exploration attempts",
        "so many make every state known",
        "half as many, which fails too often",
        "E32",
    )
    yield from group.pair(
        "actions",
        samples.actions,
        printed,
        "sample complexity",
        "actions before a nearly optimal policy is returned, with escapes and returns",
        "the argument of the O(·) of Theorem 1",
        "E31",
    )
    yield from group.pair(
        "operations",
        attempts.time_complexity(
            samples, optimisation_operations=optimisation_operations
        ),
        attempts.time_complexity_as_printed(
            printed, optimisation_operations=optimisation_operations
        ),
        "time complexity",
        "three optimisations for each attempt, and the actions",
        "one optimisation for each action",
        "E31",
    )


def radius_rows(problem: Problem, *, visits: int) -> Iterator[BoundsRow]:
    """Yield the L1 radius after ``visits`` visits."""
    n_states, delta = problem["n_states"], problem["delta"]
    n_pairs, count = n_states * problem["n_actions"], float(visits)
    yield from _Group("Confidence radii").pair(
        "psi",
        float(
            radii.weissman_radius(
                count, n_states=n_states, n_pairs=n_pairs, delta=delta
            )
        ),
        float(
            radii.weissman_radius_as_printed(
                count, n_states=n_states, n_pairs=n_pairs, delta=delta
            )
        ),
        "L1 radius",
        "rows of the kernel are this close after the visits given, or m_known",
        "with 1 − δ for δ: smaller the more certain it should be",
        "E30",
    )


def path_rows(
    found: paths.PathConstraint, *, cost_max: float, discount: float
) -> Iterator[BoundsRow]:
    """Yield what holds for single paths."""
    group = _Group("Single paths")
    yield from group.pair(
        "S_C",
        found.deviation,
        paths.path_deviation_bound_as_printed(
            cost_variance=cost_max**2 / 4.0, discount=discount
        ),
        "deviation of a path's cost",
        "no path cost has a larger standard deviation",
        "from the variance of one step alone, here the largest possible",
        "E33",
    )
    yield group.row(
        "both",
        "d_p",
        found.path_budget,
        "budget for single paths",
        "k deviations below d; useless when not above 2 c_max",
    )
    yield group.row(
        "both",
        "P(C > d)",
        found.failure,
        "chance of a path over budget",
        "whatever the distribution (Cantelli)",
    )
    yield group.row(
        "both",
        "P(C > d, normal)",
        found.normal_failure,
        "chance of a path over budget, if normal",
        "the tail of a normal distribution beyond k deviations",
        "E33",
    )
