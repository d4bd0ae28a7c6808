"""The budgets of the Escape Budget Lemma in a lifetime, and what keeps them from fitting.

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

__all__ = ["Budgets", "check_budgets", "escape_steps", "lemma_budgets"]

_HITTING_PRECISION = 1e-6


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
    requirements
        The lemma's, channel by channel.
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
    requirements: tuple[tuple[Condition, ...], ...]

    @property
    def hold(self) -> bool:
        """Whether every requirement holds in every channel."""
        return all(condition.holds for channel in self.requirements for condition in channel)

    @property
    def binding(self) -> Condition:
        """The requirement with the least slack of all channels."""
        return binding(c for channel in self.requirements for c in channel)


def escape_steps(
    belief: Belief, known: BoolArray, settings: PaperSettings
) -> float:
    """Return D: the expected steps of escape at worst, 0 if nothing is unknown.

    With ``diameter="reversible"`` only the unknown states count that a step from a
    known one may enter.
    """
    if known.all():
        return 0.0
    if not known.any():
        return float("inf")
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
    return float(times.upper[counted].max(initial=0.0))


def return_cost(
    belief: Belief, safety: Safety, known: BoolArray, *, epsilon: float, steps: int,
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
    gamma = belief.knowledge.discount
    spent = np.zeros_like(safety.w)
    for k, value in enumerate(spent):
        charge = belief.cost_upper[k][safety.pairs]
        for _ in range(steps):
            after = charge + belief.ahead(value)[safety.pairs]
            if np.array_equal(after, value):
                break
            value[:] = after
    # after T steps whatever comes costs at most ε of today's
    most = belief.knowledge.cost_max / (1.0 - gamma)
    worst = np.where(inside, spent, 0.0).max(axis=1)
    return np.asarray(np.where(worst > 0.0, worst, 0.0) + np.minimum(epsilon, most))


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
    returning = return_cost(
        belief, safety, known, epsilon=epsilon, steps=steps, settings=settings
    )
    share = float(known.mean())
    inside, plan, least, conditions = [], [], [], []
    for k, (budget, most) in enumerate(
        zip(safety.cap, np.maximum(knowledge.cost_max, 1e-300), strict=True)
    ):
        longest = most / (1.0 - gamma)
        one_more = longest
        if np.isfinite(escape_steps):
            one_more = escape_cost_bound(
                escape_steps=escape_steps + 1.0, cost_max=float(most), discount=gamma
            )
        steps_counted = escape_steps
        if settings.discounting == "real":  # D⁺ c_max as it is, discounted
            steps_counted = max(one_more / most - 1.0, 0.0)
        asked = escape_budget(
            budget=float(budget),
            discount=gamma,
            cost_max=float(most),
            epsilon=epsilon,
            safe_return_budget=float(returning[k]),
            escape_steps=steps_counted,
            known_budget=settings.known_budget,
        )
        known_budget = asked.known_budget
        if settings.budget_split == "by-known-states":
            known_budget += share * (max(budget - epsilon, known_budget) - known_budget)
        inside.append(known_budget)
        left = known_state_plan_budget(known_budget=known_budget, epsilon=epsilon)
        plan.append(left if asked.holds and left >= 0.0 else _of_all(left, budget))
        least.append(asked.least_escape_budget)
        requirement_a = Condition(
            name="a",
            left=float(one_more),
            right=asked.escape_budget,
            sentence="one step of wandering and the escape cost at most d'",
        )
        conditions.append(
            (requirement_a, *(c for c in asked.requirements if c.name != "a"))
        )
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
        requirements=tuple(conditions),
    )


def _of_all(left: float, budget: float) -> float:
    """Return what plans may cost where the lemma leaves less than nothing."""
    return left if left > 0.0 else float(budget)


def check_budgets(budgets: Budgets) -> None:
    """Refuse to be born where a requirement of the lemma fails, naming the worst."""
    if budgets.hold:
        return
    failed = budgets.binding
    raise AssumptionError(
        f"knowledge: expected requirement ({failed.name}) of the Escape Budget Lemma, "
        f"that {failed.sentence}, found {failed.left:.6g} against {failed.right:.6g} "
        f"with D = {budgets.escape_steps:.6g}; "
        f"PaperSettings(diameter='reversible') asks less, and "
        f"requirements='reported' goes on without it"
    )
