"""From what a solver claims to what is certain: policy, bounds, residuals.

A solver of the constrained problem ends with two claims, an occupancy ``f`` and
multipliers ``λ``.  Neither is believed.

- ``f`` implies the policy ``π(a | s) = f(s, a) / Σ_b f(s, b)`` (where ``f`` never goes,
  the pair that is best at the prices ``λ``), and the policy is evaluated afresh.
- Where it is not certain to keep a budget, it is mixed, as an occupancy, with the
  policy that :mod:`escapade.planning.feasibility` found to keep every budget with room
  to spare: just enough for the certificate, which costs about as much value as the
  evaluation is uncertain.  Without such room (the budget is the least that can be
  reached) the excess is stated as a residual, and its price ``λ · excess`` is taken off
  the lower bound.
- ``λ`` bounds the optimum from above by dynamic programming (weak duality).

However wrong the solver was, the answer is a policy within the budgets and an interval
around the optimum; a good solver only makes it narrow.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from escapade.model.cmdp import CMDP
from escapade.model.evaluation import evaluate, occupancy
from escapade.model.policy import Policy
from escapade.planning.feasibility import Closest, cost_scales, least_costs
from escapade.planning.oracle import Oracle, evaluation_precision, lagrangian_bound
from escapade.planning.solution import STATUS_ADVICE, Solution, Status
from escapade.typing import FloatArray, IntArray

__all__ = ["Claim", "certified", "infeasible"]

_TRACE = 1e-12  # share of all visits below which a solver's number is noise
_ROUNDING = 1e-9  # excess, relative to the largest cost, that passes for rounding
_REPAIRS = 5


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Claim:
    """What a solver ended with.

    Attributes
    ----------
    visits
        Occupancy, ``(pairs,)``; ``None`` when it has nothing better than the policy
        that comes closest to the budgets.
    multipliers
        Prices of the budgets, ``(K,)``; negative entries are read as 0.
    iterations
        As the solver counts them.
    stopped
        The limit that ended it early, if one did.
    """

    visits: FloatArray | None
    multipliers: FloatArray
    iterations: int
    stopped: Status | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Judged:
    policy: Policy
    value: float
    costs: FloatArray
    error: float
    excess: FloatArray  # certified: no budget is exceeded by more than this


def certified(
    oracle: Oracle,
    claim: Claim,
    closest: Closest,
    *,
    solver: str,
    precision: float,
    began: float,
) -> Solution:
    """Return the solution that a claim amounts to; ``began`` is a clock reading."""
    cmdp = oracle.cmdp
    multipliers = np.maximum(claim.multipliers, 0.0)
    upper, column = lagrangian_bound(oracle, multipliers)
    judged = _within_budgets(oracle, claim.visits, closest, column.pairs)
    excess = np.maximum(judged.excess, 0.0)
    lower = judged.value - judged.error - float(multipliers @ excess)
    gap = upper - lower
    status: Status
    if gap <= precision * max(1.0, abs(judged.value)):
        status = "optimal"
    else:
        status = claim.stopped or "imprecise"
    message = STATUS_ADVICE[status]
    if excess.any():
        message += (
            f" There is no room within the budgets: they are kept to within "
            f"{excess.max():.2g}, which is as much as double arithmetic can certify."
        )
    return Solution(
        policy=judged.policy,
        value=judged.value,
        costs=judged.costs,
        lower=lower,
        upper=upper,
        status=status,
        message=message,
        multipliers=multipliers,
        iterations=claim.iterations,
        seconds=time.perf_counter() - began,
        solver=solver,
        residuals={
            "budget": float(excess.max()),
            "evaluation": judged.error,
            "slackness": float(
                np.abs(multipliers * (cmdp.budget - judged.costs)).max()
            ),
            "gap": gap,
        },
    )


def infeasible(
    oracle: Oracle, closest: Closest, *, solver: str, began: float
) -> Solution:
    """Return the result for budgets that are proved out of reach."""
    cmdp = oracle.cmdp
    assert closest.proof is not None
    least = least_costs(oracle)
    short = np.flatnonzero(least > cmdp.budget)
    if short.size:
        reasons = "; ".join(
            f"channel {k} costs at least {least[k]:.8g}, its budget is "
            f"{cmdp.budget[k]:.8g}"
            for k in short
        )
    else:
        reasons = "each budget can be kept by itself, but not all of them together"
    return Solution(
        policy=None,
        value=float("nan"),
        costs=np.full(cmdp.n_costs, np.nan),
        lower=float("-inf"),
        upper=float("-inf"),
        status="infeasible",
        message=f"{STATUS_ADVICE['infeasible']} Here {reasons}.",
        multipliers=closest.proof,
        iterations=oracle.calls,
        seconds=time.perf_counter() - began,
        solver=solver,
        least_costs=least,
    )


def _within_budgets(
    oracle: Oracle,
    visits: FloatArray | None,
    closest: Closest,
    elsewhere: IntArray,
) -> _Judged:
    """Return the policy of ``visits``, moved as far as its certificate demands."""
    cmdp = oracle.cmdp
    safe: FloatArray | None = None
    if visits is None:
        visits = safe = closest.visits(oracle)
    judged = _judge(cmdp, visits, elsewhere)
    margin = max(column.error for column in closest.columns)
    # the mixture will be evaluated with an error like that of this policy
    room = cmdp.budget - closest.costs - 2.0 * (margin + judged.error)
    for _ in range(_REPAIRS):
        over = judged.excess > 0.0
        if not over.any():
            return judged
        if (room[over] <= 0.0).any():
            break
        if safe is None:
            safe = closest.visits(oracle)
        needed = judged.excess[over] + judged.error
        share = min(1.0, float((needed / (needed + room[over])).max()))
        own = occupancy(cmdp, judged.policy, precision=evaluation_precision(cmdp))
        judged = _judge(cmdp, (1.0 - share) * own + share * safe, elsewhere)
    if (judged.excess <= _ROUNDING * cost_scales(cmdp)).all():
        return judged
    return _judge(cmdp, closest.visits(oracle), elsewhere)


def _judge(cmdp: CMDP, visits: FloatArray, elsewhere: IntArray) -> _Judged:
    policy = _policy(cmdp, visits, elsewhere)
    found = evaluate(cmdp, policy, precision=evaluation_precision(cmdp))
    costs = found.start_costs
    return _Judged(
        policy=policy,
        value=found.start_value,
        costs=costs,
        error=found.error,
        excess=costs + found.error - cmdp.budget,
    )


def _policy(cmdp: CMDP, visits: FloatArray, elsewhere: IntArray) -> Policy:
    """Return the policy of an occupancy; ``elsewhere`` where it never goes."""
    least = _TRACE / (1.0 - cmdp.discount)
    kept = np.where(visits > least, visits, 0.0)
    totals = np.add.reduceat(kept, cmdp.state_ptr[:-1])
    seen = totals > 0.0
    weights = kept / np.where(seen, totals, 1.0)[cmdp.pair_state]
    weights[elsewhere[~seen]] = 1.0
    return Policy.from_pair_weights(cmdp, weights)
