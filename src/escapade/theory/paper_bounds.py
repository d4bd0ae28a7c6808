"""All of the paper's numbers for one problem, at once.

Each number of the theory is a function of a few others: the size of the problem, its
discount, its budget, and the accuracy and certainty that are asked for.
:func:`bounds` takes those and returns every number that follows from them, corrected
and as the paper prints it, in rows that can be shown as a table.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from escapade.errors import refusal
from escapade.theory.arguments import (
    read_amount,
    read_count,
    read_discount,
    read_positive,
    read_probability,
    read_steps,
)
from escapade.theory.conditions import Condition, binding
from escapade.theory.escape_budget import escape_budget
from escapade.theory.paper_rows import (
    BoundsRow,
    Form,
    Problem,
    budget_rows,
    complexity_rows,
    horizon_rows,
    known_state_rows,
    path_rows,
    radius_rows,
)
from escapade.theory.paths import path_constraint

__all__ = ["Bounds", "BoundsRow", "Form", "bounds"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Every number of the theory for one problem.

    Attributes
    ----------
    inputs
        What the numbers follow from, as ``(name, value)``, defaults filled in.
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
        return binding(self.requirements)

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
    (True, 'c')
    """
    problem = Problem(
        n_states=read_count("n_states", n_states),
        n_actions=read_count("n_actions", n_actions),
        discount=read_discount(discount),
        epsilon=read_positive("epsilon", epsilon),
        delta=read_probability("delta", delta),
        reward_max=read_positive("reward_max", reward_max),
        cost_max=read_positive("cost_max", cost_max),
    )
    steps = read_steps("escape_steps", escape_steps)
    channels = read_count("n_costs", n_costs)
    spread = (
        max(problem["reward_max"], problem["cost_max"], 1.0) ** 2 / 4.0
        if variance is None
        else read_amount("variance", variance)
    )
    report = escape_budget(
        budget=budget,
        discount=problem["discount"],
        cost_max=problem["cost_max"],
        epsilon=problem["epsilon"],
        safe_return_budget=safe_return_budget,
        escape_steps=steps,
        known_budget=known_budget,
        costs=costs,
    )
    known = tuple(known_state_rows(problem, n_costs=channels, variance=spread))
    needed = next(int(row.value) for row in known if row.symbol == "m_known")
    numbers = (
        *horizon_rows(problem),
        *known,
        *budget_rows(
            report,
            discount=problem["discount"],
            cost_max=problem["cost_max"],
            epsilon=problem["epsilon"],
        ),
        *complexity_rows(
            problem,
            n_costs=channels,
            visits=visits,
            escape_steps=steps,
            optimisation_operations=optimisation_operations,
        ),
        *radius_rows(problem, visits=needed if visits is None else visits),
        *path_rows(
            path_constraint(
                budget=budget,
                cost_max=problem["cost_max"],
                discount=problem["discount"],
                deviations=deviations,
            ),
            cost_max=problem["cost_max"],
            discount=problem["discount"],
        ),
    )
    inputs: list[tuple[str, float]] = [
        ("n_states", problem["n_states"]),
        ("n_actions", problem["n_actions"]),
        ("n_costs", channels),
        ("discount", problem["discount"]),
        ("budget", report.budget),
        ("epsilon", problem["epsilon"]),
        ("delta", problem["delta"]),
        ("reward_max", problem["reward_max"]),
        ("cost_max", problem["cost_max"]),
        ("variance", spread),
        ("escape_steps", steps),
        ("safe_return_budget", report.safe_return_budget),
        ("known_budget", report.known_budget),
        ("visits", needed if visits is None else visits),
        ("deviations", float(deviations)),
    ]
    return Bounds(
        inputs=tuple(inputs), numbers=numbers, requirements=report.requirements
    )
