"""From what a solver claims to what is certain: policy, bounds, residuals.

A solver of the constrained problem ends with two claims, an occupancy ``f`` and
multipliers ``λ``.  Neither is believed.

- ``f`` implies the policy ``π(a | s) = f(s, a) / Σ_b f(s, b)`` (where ``f`` never goes,
  the pair that is best at the prices ``λ``), and the policy is evaluated afresh.  Pairs
  that cost anything where a budget is 0 are left out: no weight on them is too small.
- Where the policy is not certain to keep a budget, it is mixed, as an occupancy, with
  one that keeps every budget with room to spare: just enough for the certificate.  The
  partner is the policy that is best at a multiple of the prices, since the mixture then
  loses no more than that multiple of what it saves; if that has no room, the policy
  that :mod:`escapade.planning.feasibility` found.  Without any room (the budget is the
  least that can be reached) the excess is stated as a residual, and its price
  ``λ · excess`` is taken off the lower bound.
- ``λ`` bounds the optimum from above by dynamic programming (weak duality).

However wrong the solver was, the answer is a policy within the budgets and an interval
around the optimum; a good solver only makes it narrow.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from escapade.model.cmdp import CMDP
from escapade.model.evaluation import discounted_sums, occupancy, policy_matrix
from escapade.model.policy import Policy
from escapade.planning.feasibility import Closest, cost_scales, least_costs
from escapade.planning.oracle import (
    Oracle,
    evaluation_precision,
    lagrangian_bound,
)
from escapade.planning.solution import STATUS_ADVICE, Solution, Status
from escapade.typing import FloatArray, IntArray

__all__ = ["Claim", "certified", "infeasible"]

_TRACE = 1e-12  # share of all visits below which a solver's number is noise
_ROUNDING = 1e-9  # excess, relative to the largest cost, that passes for rounding
_REPAIRS = 4  # mixtures to try with each partner, the share fourfold each time
_PRICIER = (2.0, 32.0)  # multiples of the prices at which partners are sought


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
    value_error: float
    cost_errors: FloatArray
    excess: FloatArray  # certified: no budget is exceeded by more than this


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Partner:
    """What to mix a policy with that exceeds a budget."""

    visits: FloatArray
    costs: FloatArray
    cost_errors: FloatArray


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
    judged = _within_budgets(oracle, claim.visits, closest, multipliers, column.pairs)
    excess = np.maximum(judged.excess, 0.0)
    lower = judged.value - judged.value_error - float(multipliers @ excess)
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
            "evaluation": max(judged.value_error, float(judged.cost_errors.max())),
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
    lower, least = least_costs(oracle)
    short = np.flatnonzero(lower > cmdp.budget)
    if short.size:
        reasons = "; ".join(
            f"channel {k} costs at least {lower[k]:.8g}, its budget is "
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
    multipliers: FloatArray,
    elsewhere: IntArray,
) -> _Judged:
    """Return the policy of ``visits``, moved as far as its certificate demands."""
    cmdp = oracle.cmdp
    if visits is None:
        visits = closest.visits(oracle)
    judged = first = _judge(cmdp, visits, elsewhere)
    if not (judged.excess > 0.0).any():
        return judged
    own = occupancy(cmdp, first.policy, precision=evaluation_precision(cmdp))
    for partner in _partners(oracle, closest, multipliers, first.excess > 0.0):
        # the mixture will be evaluated with errors like those of these two
        errors = first.cost_errors + partner.cost_errors
        room = cmdp.budget - partner.costs - 2.0 * errors
        over = first.excess > 0.0
        if (room[over] <= 0.0).any():
            continue
        needed = first.excess[over] + first.cost_errors[over]
        for attempt in range(_REPAIRS):
            share = float((4**attempt * needed / (needed + room[over])).max())
            if share > 1.0:
                break
            mixture = (1.0 - share) * own + share * partner.visits
            judged = _judge(cmdp, mixture, elsewhere)
            if not (judged.excess > 0.0).any():
                return judged
    if (first.excess <= _ROUNDING * cost_scales(cmdp)).all():
        return first
    return _judge(cmdp, closest.visits(oracle), elsewhere)


def _partners(
    oracle: Oracle,
    closest: Closest,
    multipliers: FloatArray,
    over: np.ndarray[tuple[int], np.dtype[np.bool_]],
) -> Iterator[_Partner]:
    """Offer policies to mix with: cheap to give way to first, sure to do last."""
    cmdp = oracle.cmdp
    scales = cost_scales(cmdp) * (1.0 - cmdp.discount)
    for factor in _PRICIER:
        # a price that was 0 becomes one that little but ties can feel
        least = np.where(over, 1e-6 * factor * cmdp.reward_max / scales, 0.0)
        column = oracle.best(np.maximum(factor * multipliers, least))
        yield _Partner(
            visits=oracle.visits(column),
            costs=column.costs,
            cost_errors=column.cost_errors,
        )
    yield _Partner(
        visits=closest.visits(oracle),
        costs=closest.costs,
        cost_errors=np.max([column.cost_errors for column in closest.columns], axis=0),
    )


def _judge(cmdp: CMDP, visits: FloatArray, elsewhere: IntArray) -> _Judged:
    """Evaluate the policy of ``visits``, with an error for each number."""
    policy = _policy(cmdp, visits, elsewhere)
    weights = policy.pair_weights(cmdp)
    matrix = policy_matrix(cmdp, weights)
    gains = np.vstack([cmdp.reward, cmdp.cost]) * weights
    sums, errors = np.empty(len(gains)), np.empty(len(gains))
    for i, gain in enumerate(np.add.reduceat(gains, cmdp.state_ptr[:-1], axis=1)):
        solution, errors[i], _ = discounted_sums(
            matrix,
            gain[:, np.newaxis],
            cmdp.discount,
            evaluation_precision(cmdp),
            strict=False,  # the answer is judged by the error that it has
            mixed=cmdp.n_actions,
        )
        sums[i] = cmdp.start @ solution[:, 0]
    return _Judged(
        policy=policy,
        value=float(sums[0]),
        costs=sums[1:],
        value_error=float(errors[0]),
        cost_errors=errors[1:],
        excess=sums[1:] + errors[1:] - cmdp.budget,
    )


def _policy(cmdp: CMDP, visits: FloatArray, elsewhere: IntArray) -> Policy:
    """Return the policy of an occupancy; ``elsewhere`` where it never goes."""
    least = _TRACE / (1.0 - cmdp.discount)
    kept = np.where(visits > least, visits, 0.0)
    kept[(cmdp.cost[cmdp.budget == 0.0] > 0.0).any(axis=0)] = 0.0
    totals = np.add.reduceat(kept, cmdp.state_ptr[:-1])
    seen = totals > 0.0
    weights = kept / np.where(seen, totals, 1.0)[cmdp.pair_state]
    weights[elsewhere[~seen]] = 1.0
    return Policy.from_pair_weights(cmdp, weights)
