"""The budgets of the Escape Budget Lemma in a lifetime, and what keeps them apart.

d is what may ever be promised; d_s pays for the safe return, d'' for exploring and
exploiting in known states, l = d'' − ε for plans there (E27), and d' = b − γ d_s is
left for unknown states when one is entered.  As known states are added, the safe return
is proved anew for all of them (E19), and the budgets follow.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from escapade.agent.paper.settings import PaperSettings
from escapade.agent.safety import Safety
from escapade.errors import AssumptionError
from escapade.knowledge.belief import Belief
from escapade.planning.robust_hitting import robust_hitting_times
from escapade.theory.conditions import Condition, binding
from escapade.theory.escape_budget import escape_budget, escape_cost_bound
from escapade.theory.explore_or_exploit import known_state_plan_budget
from escapade.theory.horizons import horizon_time
from escapade.typing import BoolArray, FloatArray

__all__ = [
    "Budgets",
    "escape_steps",
    "failed_requirement",
    "lemma_budgets",
    "unfit",
]

_HITTING_PRECISION = 1e-4
_LEAST_COST = 1e-300
"""For channels that cost nothing: the lemma divides by c_max."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Budgets:
    """What may be spent where, for each of ``K`` channels.

    Attributes
    ----------
    epsilon
        ε of the present stage.
    horizon
        T.
    budget
        d, ``(K,)``: the most that is ever promised.
    known_budget
        d''.
    plan_budget
        l, what plans in known states may cost.
    return_budget
        d_s.
    escape_budget
        The largest d', ``d − γ d_s``.
    least_escape_budget
        d'_min of the lemma.
    escape_steps
        D, the expected steps of the longest escape that is counted on.
    cost_max, discount
        c_max and γ.
    discounted
        Whether the requirements are worked out with the real γ, or with γ = 1.
    """

    epsilon: float
    horizon: int
    budget: FloatArray
    known_budget: FloatArray
    plan_budget: FloatArray
    return_budget: FloatArray
    escape_budget: FloatArray
    least_escape_budget: FloatArray
    escape_steps: float
    cost_max: FloatArray
    discount: float
    discounted: bool

    @property
    def requirements(self) -> tuple[tuple[Condition, ...], ...]:
        """The lemma's, channel by channel."""
        return tuple(self._of_channel(k) for k in range(self.budget.size))

    def _of_channel(self, k: int) -> tuple[Condition, ...]:
        asked = escape_budget(
            budget=float(self.budget[k]),
            discount=self.discount,
            cost_max=float(self.cost_max[k]),
            epsilon=self.epsilon,
            safe_return_budget=float(self.return_budget[k]),
            escape_steps=counted_steps(
                self.escape_steps, self.discount, discounted=self.discounted
            ),
            known_budget=float(self.known_budget[k]),
        )
        first = Condition(
            name="a",
            left=_one_more(self.escape_steps, float(self.cost_max[k]), self.discount),
            right=asked.escape_budget,
            sentence="one step of wandering and the escape cost at most d'",
        )
        return (first, *(c for c in asked.requirements if c.name != "a"))

    @property
    def hold(self) -> bool:
        """Whether every requirement holds in every channel."""
        return all(
            condition.holds for channel in self.requirements for condition in channel
        )

    @property
    def binding(self) -> Condition:
        """The requirement with the least slack of all channels."""
        return binding(c for channel in self.requirements for c in channel)


def escape_steps(
    belief: Belief, known: BoolArray, settings: PaperSettings
) -> FloatArray:
    """Return the expected steps of escape at worst, ``[S]``; D is the largest of them.

    Known states have 0, and with ``diameter="reversible"`` so do unknown ones that no
    step from a known one may enter.
    """
    if known.all() or not known.any():
        return np.where(known, 0.0, np.inf)
    times = robust_hitting_times(
        belief.likeliest(),
        belief.sets,
        np.flatnonzero(known).tolist(),
        precision=_HITTING_PRECISION,
    )
    counted = ~known
    if settings.diameter == "reversible":
        knowledge = belief.knowledge
        inside = np.repeat(
            known[knowledge.pairs.pair_state], np.diff(knowledge.row_ptr)
        )
        entered = np.zeros(knowledge.n_states, dtype=np.bool_)
        entered[knowledge.successor[belief.reachable & inside]] = True
        counted &= entered
    return np.where(counted, times.upper, 0.0)


def return_cost(
    belief: Belief,
    safety: Safety,
    known: BoolArray,
    *,
    epsilon: float,
    steps: int,
    settings: PaperSettings,
) -> FloatArray:
    """Return d_s, ``(K,)``: what the safe return costs at worst from a known state.

    With the real discount that is the fallback's cost-to-go.  With γ = 1 it is its
    cost over ``steps`` steps, undiscounted, and ε for what comes after.
    """
    inside = known & safety.promisable
    if settings.return_budget is not None:
        return np.full(safety.cap.size, settings.return_budget)
    if not inside.any():
        return np.zeros(safety.cap.size)
    if settings.discounting == "real":
        return np.asarray(safety.w[:, inside].max(axis=1))
    spent = np.zeros_like(safety.w)
    most = belief.knowledge.cost_max / (1.0 - belief.knowledge.discount)
    for k, value in enumerate(spent):
        charge = belief.cost_upper[k][safety.pairs]
        for _ in range(steps):
            after = charge + belief.ahead(value)[safety.pairs]
            if np.array_equal(after, value):
                break
            value[:] = after
    worst = np.where(inside, spent, 0.0).max(axis=1)
    return np.asarray(worst + np.minimum(epsilon, most))


def lemma_budgets(
    belief: Belief,
    safety: Safety,
    known: BoolArray,
    *,
    epsilon: float,
    escape_steps: float,
    settings: PaperSettings,
) -> Budgets:
    """Return the budgets for the present known states."""
    knowledge = belief.knowledge
    gamma = knowledge.discount
    steps = settings.horizon or horizon_time(
        discount=gamma,
        epsilon=epsilon,
        reward_max=knowledge.reward_max,
        cost_max=float(knowledge.cost_max.max()),
    )
    most = np.maximum(knowledge.cost_max, _LEAST_COST)
    discounted = settings.discounting == "real"
    returning = return_cost(
        belief, safety, known, epsilon=epsilon, steps=steps, settings=settings
    )
    share = float(known.mean()) if settings.budget_split == "by-known-states" else 0.0
    inside, plan, least = [], [], []
    for k, budget in enumerate(safety.cap):
        asked = escape_budget(
            budget=float(budget),
            discount=gamma,
            cost_max=float(most[k]),
            epsilon=epsilon,
            safe_return_budget=float(returning[k]),
            escape_steps=counted_steps(escape_steps, gamma, discounted=discounted),
            known_budget=settings.known_budget,
        )
        rest = max(float(budget) - epsilon - asked.known_budget, 0.0)
        inside.append(asked.known_budget + share * rest)
        left = known_state_plan_budget(known_budget=inside[-1], epsilon=epsilon)
        plan.append(left if left > 0.0 else float(budget))
        least.append(asked.least_escape_budget)
    return Budgets(
        epsilon=epsilon,
        horizon=steps,
        budget=np.array(safety.cap),
        known_budget=np.array(inside),
        plan_budget=np.array(plan),
        return_budget=returning,
        escape_budget=safety.cap - gamma * returning,
        least_escape_budget=np.array(least),
        escape_steps=escape_steps,
        cost_max=most,
        discount=gamma,
        discounted=discounted,
    )


def counted_steps(escape_steps: float, discount: float, *, discounted: bool) -> float:
    """Return D as requirement (d) counts it.

    With γ = 1 a step of wandering and the escape cost ``(D + 1) c_max``; with the real
    γ they cost ``c_max (1 − γ^(D+1))/(1 − γ)``, and D is counted as if that were so.
    """
    if not discounted:
        return escape_steps
    return max(_one_more(escape_steps, 1.0, discount) - 1.0, 0.0)


def _one_more(escape_steps: float, cost_max: float, discount: float) -> float:
    """Bound the cost of one step of wandering and the escape after it (E20)."""
    if not np.isfinite(escape_steps):
        return cost_max / (1.0 - discount)
    return escape_cost_bound(
        escape_steps=escape_steps + 1.0, cost_max=cost_max, discount=discount
    )


def failed_requirement(budgets: Budgets, endless: str) -> str:
    """Say which requirement of the lemma fails worst; empty if all of them hold.

    ``endless`` says why no escape is sure to end, if D is infinite.
    """
    if budgets.hold:
        return ""
    if endless:
        return (
            f"an escape that surely ends, as the Escape Budget Lemma takes for "
            f"granted, found that {endless}"
        )
    failed = budgets.binding
    return (
        f"requirement ({failed.name}) of the Escape Budget Lemma, that "
        f"{failed.sentence}, found {failed.left:.6g} against {failed.right:.6g} with "
        f"D = {budgets.escape_steps:.6g}"
    )


def unfit(failed: str, *, reversible_helps: bool) -> AssumptionError:
    """Return the error for an agent that is not born, with the ways out."""
    ways_out = ["requirements='reported' goes on without it"]
    if reversible_helps:
        ways_out.insert(0, "PaperSettings(diameter='reversible') asks less")
    return AssumptionError(f"knowledge: expected {failed}; {', and '.join(ways_out)}")
