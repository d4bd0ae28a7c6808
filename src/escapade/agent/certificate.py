"""What can be said for certain about the policy at hand, and about all others.

Everything here holds at all times, for all policies and all states at once, with the
probability that the agent's confidence promises:

- ``value_lower <= V(s) <= value_upper`` and ``C(s) <= cost_upper`` for the policy that
  is certified, by robust evaluation;
- no policy within the budgets earns more than ``upper_bound`` from here.

So if ``safe`` and ``gap <= ε``, the policy is ε-optimal among all that keep the budgets
when they start here with the whole of them.  It is a statement about that policy, alone
and from a fresh start: as long as the ledger may overrule it, the agent can earn less.

All of it rests on what the agent was told.  Once the world has broken that, nothing is
left but what the bounds on single samples say (:func:`nothing_certain`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from escapade.agent.planning import Planned
from escapade.knowledge.belief import Belief
from escapade.knowledge.knowledge import Knowledge
from escapade.model.policy import Policy
from escapade.planning.optimistic import Optimism, optimistic_bound
from escapade.planning.robust_lp import RobustLP
from escapade.planning.robust_operator import RobustOperator, robust_policy_value
from escapade.typing import FloatArray, IntArray
from escapade.uncertainty.base import Sense

__all__ = ["Certificate", "certify", "nothing_certain"]

_SEARCHES = 20
"""Linear programs to solve for a policy that is certain to keep the budget."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Certificate:
    """Bounds on a policy from one state, and on every other policy.

    Attributes
    ----------
    state
        Where life goes on.
    policy
        The stationary policy that is certified.
    value_lower, value_upper
        What it earns from here.
    cost_upper
        ``(K,)``; what it costs at most.
    upper_bound
        What any policy within the budgets earns at most.
    gap
        ``upper_bound − value_lower``.
    safe
        Whether ``cost_upper`` is within every budget; ``False`` after a break.
    exposure
        Probability that any of this is wrong; 1 after a break.
    unreachable
        States that want visits that cannot be had within the promise.
    message
        The outcome in a sentence.
    optimism
        The optimistic policy behind ``upper_bound``.
    """

    state: int
    policy: Policy
    value_lower: float
    value_upper: float
    cost_upper: FloatArray
    upper_bound: float
    gap: float
    safe: bool
    exposure: float
    unreachable: IntArray
    message: str
    optimism: Optimism

    def __repr__(self) -> str:
        cost = ", ".join(f"{c:.4g}" for c in self.cost_upper)
        return (
            f"Certificate(value in [{self.value_lower:.6g}, {self.value_upper:.6g}], "
            f"cost at most {cost}, others at most {self.upper_bound:.6g}, "
            f"gap {self.gap:.4g}, {'safe' if self.safe else 'not certified safe'})"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bounds:
    value_lower: float
    value_upper: float
    costs: FloatArray


def certify(
    belief: Belief,
    planned: Planned,
    weights: FloatArray,
    *,
    state: int,
    epsilon: float,
    precision: float = 1e-6,
    search: bool = True,
) -> Certificate:
    """Certify a stationary policy from ``state``.

    Parameters
    ----------
    belief, planned
        What is held possible, and what is planned.
    weights
        ``[pairs]``; the policy.
    state
        Where life goes on with the whole budget.
    epsilon
        How near the best the policy should be.
    precision
        How tightly each value is bounded, relative to its size.
    search
        If the policy is not certain to keep the budget: whether to look for the best
        one that is.
    """
    knowledge = belief.knowledge
    layout = knowledge.pairs
    confidence = belief.confidence
    bounds = _bounds(belief, weights, state, precision)
    safe = bool((bounds.costs <= knowledge.budget).all())
    if not safe and search:
        found = _kept_for_certain(belief, state, precision)
        if found is not None:
            weights = found
            bounds = _bounds(belief, weights, state, precision)
            safe = bool((bounds.costs <= knowledge.budget).all())
    optimism = optimistic_bound(
        belief.sets,
        layout.state_ptr,
        reward=confidence.reward_upper,
        cost=confidence.cost_lower,
        budget=knowledge.budget,
        discount=knowledge.discount,
        state=state,
        precision=precision,
    )
    most = knowledge.reward_max / (1.0 - knowledge.discount)
    best, lower = min(optimism.bound, most), max(bounds.value_lower, 0.0)
    table = np.zeros((knowledge.n_states, knowledge.n_actions))
    table[layout.pair_state, layout.pair_action] = weights
    unreachable = np.flatnonzero(planned.out_of_reach)
    return Certificate(
        state=state,
        policy=Policy(table),
        value_lower=lower,
        value_upper=min(bounds.value_upper, most),
        cost_upper=bounds.costs,
        upper_bound=best,
        gap=best - lower,
        safe=safe,
        exposure=belief.failure_probability,
        unreachable=unreachable,
        message=_message(
            best - lower, epsilon, safe, unreachable.size, knowledge.reward_scale
        ),
        optimism=optimism,
    )


def nothing_certain(
    found: Certificate, knowledge: Knowledge, broken: str
) -> Certificate:
    """Return what is left of a certificate after an assumption broke.

    Parameters
    ----------
    found
        As it would stand, had nothing been broken.
    knowledge
        What was told; the bounds on single samples are all that is still used of it.
    broken
        The first break, in words.
    """
    horizon = 1.0 / (1.0 - knowledge.discount)
    most = knowledge.reward_max * horizon
    return replace(
        found,
        value_lower=0.0,
        value_upper=most,
        cost_upper=knowledge.cost_max * horizon,
        upper_bound=most,
        gap=most,
        safe=False,
        exposure=1.0,
        message=f"nothing is certified any more, for an assumption broke: {broken}",
    )


def _bounds(
    belief: Belief, weights: FloatArray, state: int, precision: float
) -> _Bounds:
    """Bound what a policy earns and costs from ``state``, whatever the model."""
    knowledge, confidence = belief.knowledge, belief.confidence

    def extreme(gain: FloatArray, nature: Sense) -> float:
        operator = RobustOperator(
            belief.sets,
            knowledge.pairs.state_ptr,
            gain,
            knowledge.discount,
            nature=nature,
            weights=weights,
        )
        point = robust_policy_value(operator, precision=precision)
        return float((point.upper if nature == "max" else point.lower)[state])

    return _Bounds(
        value_lower=extreme(confidence.reward_lower, "min"),
        value_upper=extreme(confidence.reward_upper, "max"),
        costs=np.array([extreme(cost, "max") for cost in confidence.cost_upper]),
    )


def _kept_for_certain(
    belief: Belief, state: int, precision: float
) -> FloatArray | None:
    """Return the best stationary policy found that is certain to keep the budget.

    It is held to a little less, so that the bound on what it costs, which is rounded
    up, keeps the budget too.
    """
    knowledge = belief.knowledge
    start = np.zeros(knowledge.n_states)
    start[state] = 1.0
    problem = belief.likeliest().replace(
        cost=belief.cost_upper,
        start=start,
        budget=knowledge.budget * (1.0 - 4.0 * precision),
    )
    found = RobustLP(max_iterations=_SEARCHES).solve(problem, uncertainty=belief.sets)
    if not isinstance(found.policy, Policy):
        return None
    return found.policy.pair_weights(problem)


def _message(
    gap: float, epsilon: float, safe: bool, unreachable: int, scale: float
) -> str:
    """Return the outcome, with the gap as the problem itself counts."""
    found, asked = f"{scale * gap:.4g}", f"{scale * epsilon:.6g}"
    units = ""
    if scale != 1.0:
        units = f" (in the problem's own units, {scale:.4g} to the agent's 1)"
    if not safe:
        text = "the policy is not certified to keep the budget from here"
    elif gap <= epsilon:
        text = f"the policy is within {found} of the best that keeps the budget{units}"
    else:
        text = (
            f"the policy keeps the budget; how far from the best it is, is known to "
            f"within {found} only, more than the {asked} asked for{units}"
        )
    if unreachable:
        text += (
            f"; {unreachable} states want visits that cannot be had within the promise"
        )
    return text
