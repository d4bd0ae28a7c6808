"""The game behind the policy gradient: its players, and how a policy is judged.

For a policy ``π`` and prices ``λ >= 0`` the paper's Algorithm 2 seeks the saddle point

    min over λ of max over π of  V_π − Σ_k λ_k (C_kπ − d_k),

where nature, given an uncertainty set, makes each cost as large as it can.  The kernel
that is worst for a cost bounds nothing else (errata E26): the reward is earned under
the nominal transitions, or, if the worst reward is the objective, under the kernel that
is worst for it; each cost is paid under a kernel of its own.  So there are up to
``1 + K`` *scenes*, each a kernel with the gains that are summed under it; without a set
one scene holds them all.

A scene's kernel is found for the policy at hand and then held while trajectories are
drawn, for the gradient of a maximum is the gradient at its maximiser.  What is handed
back does not rest on that: every policy that is kept was evaluated, robustly if there
is a set, and keeps the budgets by that evaluation.

Rewards and costs are scaled so that a lifetime sums to at most 1; rates then mean the
same for every problem.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from escapade.kernels.sampling import fill_cumulative
from escapade.model.cmdp import CMDP
from escapade.model.evaluation import evaluate, occupancy
from escapade.model.policy import Policy
from escapade.planning.base import Objective
from escapade.planning.certificate import Claim, certified, infeasible
from escapade.planning.column_generation import ColumnGeneration
from escapade.planning.dynamic_programming import policy_iteration
from escapade.planning.feasibility import closest_to_budgets, cost_scales
from escapade.planning.oracle import Oracle, evaluation_precision
from escapade.planning.robust_evaluation import robust_evaluate
from escapade.planning.robust_operator import (
    RobustOperator,
    robust_control,
    robust_policy_value,
)
from escapade.planning.solution import STATUS_ADVICE, Solution, Status
from escapade.typing import FloatArray, IndexArray, IntArray
from escapade.uncertainty.base import Sense, UncertaintySet

__all__ = ["SaddleGame", "Scene", "Verdict", "make_scene"]

_ROUGH = 1e-6  # precision of the values that choose a kernel
_FINE = 1e-8  # precision of the evaluations that answers rest on


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scene:
    """A kernel to draw trajectories from, and the gains that are summed under it.

    ``gains`` names rows of :attr:`SaddleGame.gains`: 0 is the reward, ``1 + k`` cost k.
    """

    row_ptr: IntArray
    successor: IndexArray
    probability: FloatArray
    cumulative: FloatArray
    gains: IntArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Verdict:
    """What a policy is certain to earn, and at most to cost.

    ``value`` is its objective as evaluated, ``lower`` less the error of that;
    ``costs`` are upper bounds, over the set if there is one.
    """

    policy: Policy
    value: float
    lower: float
    costs: FloatArray
    within: bool


class SaddleGame:
    """A problem, perhaps with a set, as the policy gradient plays it."""

    def __init__(
        self, problem: CMDP, sets: UncertaintySet | None, objective: Objective
    ) -> None:
        self.problem = problem
        self.sets = sets
        self.objective = objective
        patience = 1.0 - problem.discount
        reward_max = problem.reward_max
        self.reward_scale = patience / reward_max if reward_max > 0.0 else 1.0
        self.cost_scales: FloatArray = 1.0 / cost_scales(problem)
        self.gains = np.vstack(
            [
                problem.reward * self.reward_scale,
                problem.cost * self.cost_scales[:, np.newaxis],
            ]
        )
        self.budgets: FloatArray = problem.budget * self.cost_scales
        self.nominal_scene = make_scene(
            problem.row_ptr,
            problem.successor,
            problem.probability,
            range(1 + problem.n_costs),
        )

    def prices(self, multipliers: FloatArray) -> FloatArray:
        """Return multipliers of the scaled game in the units of the problem."""
        priced: FloatArray = multipliers * self.cost_scales / self.reward_scale
        return priced

    # -- nature ------------------------------------------------------------------------

    def scenes(self, policy: Policy) -> list[Scene]:
        """Return the scenes in which nature answers ``policy``."""
        if self.sets is None:
            return [self.nominal_scene]
        if self.objective == "nominal":
            first = replace(self.nominal_scene, gains=np.zeros(1, dtype=np.int64))
        else:
            first = self._worst(policy, self.problem.reward, "min", 0)
        costs = [
            self._worst(policy, cost, "max", 1 + k)
            for k, cost in enumerate(self.problem.cost)
        ]
        return [first, *costs]

    def _worst(
        self, policy: Policy, gain: FloatArray, nature: Sense, index: int
    ) -> Scene:
        problem, sets = self.problem, self.sets
        assert sets is not None
        if not sets.rectangular:
            return self._worst_member(policy, nature, index)
        operator = RobustOperator(
            sets,
            problem.state_ptr,
            gain,
            problem.discount,
            nature=nature,
            weights=policy.pair_weights(problem),
        )
        point = robust_policy_value(operator, precision=_ROUGH)
        middle = 0.5 * (point.lower + point.upper)
        kernel = sets.worst_kernel(middle, sense=nature)
        return make_scene(sets.row_ptr, sets.successor, kernel, [index])

    def _worst_member(self, policy: Policy, nature: Sense, index: int) -> Scene:
        assert self.sets is not None
        sign = 1.0 if nature == "max" else -1.0
        chosen, most = self.problem, -np.inf
        for model in self.sets.members(self.problem):
            result = evaluate(model, policy, precision=_ROUGH)
            sums = [result.start_value, *result.start_costs]
            if sign * sums[index] > most:
                chosen, most = model, sign * sums[index]
        return make_scene(chosen.row_ptr, chosen.successor, chosen.probability, [index])

    # -- judgement ---------------------------------------------------------------------

    def judge(self, policy: Policy) -> Verdict:
        """Evaluate a policy, robustly if there is a set."""
        problem = self.problem
        if self.sets is None:
            found = evaluate(problem, policy, precision=evaluation_precision(problem))
            value, lower = found.start_value, found.start_value - found.error
            costs = found.start_costs + found.error
        else:
            bounds = robust_evaluate(problem, policy, self.sets, precision=_FINE)
            costs = bounds.start_costs_upper
            if self.objective == "worst":
                value = lower = bounds.start_value_lower
            else:
                found = evaluate(problem, policy, precision=_FINE)
                value, lower = found.start_value, found.start_value - found.error
        return Verdict(
            policy=policy,
            value=value,
            lower=lower,
            costs=costs,
            within=bool((costs <= problem.budget).all()),
        )

    # -- the answer --------------------------------------------------------------------

    def solution(
        self,
        best: Verdict | None,
        others: Sequence[Policy],
        multipliers: FloatArray,
        *,
        solver: str,
        iterations: int,
        stopped: Status | None,
        began: float,
    ) -> Solution:
        """Return the answer that a finished run amounts to; optimality is not claimed.

        Parameters
        ----------
        best
            The best policy within the budgets that the run came by, if any.
        others
            Further candidates, not yet judged.
        multipliers
            Averaged prices, in the units of the problem.
        solver, iterations, stopped, began
            As in :class:`~escapade.planning.certificate.Claim`.
        """
        finish = self._solve_exact if self.sets is None else self._solve_robust
        answer = finish(
            best,
            others,
            Claim(
                visits=None,
                multipliers=multipliers,
                iterations=iterations,
                stopped=stopped,
            ),
            solver,
            began,
        )
        return replace(answer, iterations=iterations)

    def _solve_exact(
        self,
        best: Verdict | None,
        others: Sequence[Policy],
        claim: Claim,
        solver: str,
        began: float,
    ) -> Solution:
        """Certify the candidates; where one exceeds a budget, it is moved inside."""
        problem = self.problem
        oracle = Oracle(problem)
        closest = closest_to_budgets(oracle)
        if closest.proof is not None:
            return infeasible(oracle, closest, solver=solver, began=began)
        candidates = [*others] if best is None else [best.policy, *others]
        answers = [
            certified(
                oracle,
                replace(
                    claim,
                    visits=occupancy(
                        problem, policy, precision=evaluation_precision(problem)
                    ),
                ),
                closest,
                solver=solver,
                precision=_FINE,
                began=began,
            )
            for policy in candidates
        ]
        answer = max(answers, key=lambda one: one.lower)
        status = claim.stopped or "feasible"
        return replace(answer, status=status, message=STATUS_ADVICE[status])

    def _solve_robust(
        self,
        best: Verdict | None,
        others: Sequence[Policy],
        claim: Claim,
        solver: str,
        began: float,
    ) -> Solution:
        """Judge the candidates, the safest known policy among them, and bound them."""
        problem = self.problem
        upper, nominal = self._upper()
        if nominal is not None and not nominal.is_feasible:  # nor is it at worst
            seconds = time.perf_counter() - began
            return replace(nominal, solver=solver, seconds=seconds)
        verdicts = [self.judge(policy) for policy in (*others, self._safest())]
        if best is not None:
            verdicts.append(best)
        within = [verdict for verdict in verdicts if verdict.within]
        common: dict[str, Any] = {
            "upper": upper,
            "iterations": claim.iterations,
            "seconds": time.perf_counter() - began,
            "solver": solver,
        }
        if not within:
            return _nothing(problem, claim, common, self._least())
        found = max(within, key=lambda verdict: verdict.lower)
        status: Status = claim.stopped or "feasible"
        residuals = {
            "budget": 0.0,
            "evaluation": found.value - found.lower,
            "slackness": float(
                np.abs(claim.multipliers * (problem.budget - found.costs)).max()
            ),
            "gap": upper - found.lower,
        }
        return Solution(
            policy=found.policy,
            value=found.value,
            costs=found.costs,
            lower=found.lower,
            status=status,
            message=STATUS_ADVICE[status],
            multipliers=claim.multipliers,
            residuals=residuals,
            **common,
        )

    def _safest(self) -> Policy:
        """Return the policy of least worst-case cost, over the budgets, all in one."""
        problem, sets = self.problem, self.sets
        assert sets is not None
        if not sets.rectangular:
            oracle = Oracle(problem)
            column = oracle.best(self._price_of_room(), reward_weight=0.0)
            pairs = column.pairs
        else:
            operator = RobustOperator(
                sets,
                problem.state_ptr,
                self._price_of_room() @ problem.cost,
                problem.discount,
                nature="max",
                select="min",
            )
            chosen = robust_control(operator, precision=_FINE).pairs
            assert chosen is not None
            pairs = chosen
        return Policy.deterministic(problem.pair_action[pairs], problem.n_actions)

    def _price_of_room(self) -> FloatArray:
        """Weigh each cost by its budget, or heavily where there is none."""
        floor = 1e-6 / self.cost_scales
        weights: FloatArray = 1.0 / np.maximum(self.problem.budget, floor)
        return weights / float(weights.max())

    def _least(self) -> FloatArray:
        """Return lower bounds on the least worst-case cost of each channel."""
        problem, sets = self.problem, self.sets
        assert sets is not None
        least = np.zeros(problem.n_costs)
        for k, cost in enumerate(problem.cost):
            if not sets.rectangular:
                for model in sets.members(problem):
                    found = policy_iteration(model, -cost)
                    bound = -float(model.start @ found.value) - found.error
                    least[k] = max(least[k], bound)
            elif sets.exact:
                operator = RobustOperator(
                    sets,
                    problem.state_ptr,
                    cost,
                    problem.discount,
                    nature="max",
                    select="min",
                )
                point = robust_control(operator, precision=_FINE)
                least[k] = float(problem.start @ point.lower)
        return least

    def _upper(self) -> tuple[float, Solution | None]:
        """Bound what any policy within the worst-case budgets can do, and say how.

        The nominal kernel is in the set, so such a policy keeps the budgets under it,
        and its worst reward is no more than its nominal one.
        """
        problem, sets = self.problem, self.sets
        assert sets is not None
        nominal = problem.replace(
            row_ptr=sets.row_ptr, successor=sets.successor, probability=sets.nominal
        )
        same = nominal.nnz == problem.nnz and bool(
            np.array_equal(nominal.successor, problem.successor)
            and np.allclose(nominal.probability, problem.probability, atol=1e-12)
        )
        if not same and self.objective == "nominal":  # nominal is another kernel here
            found = policy_iteration(problem)
            return float(problem.start @ found.value) + found.error, None
        bound = ColumnGeneration().solve(nominal)
        return bound.upper, bound


def _nothing(
    problem: CMDP, claim: Claim, common: Mapping[str, Any], least: FloatArray
) -> Solution:
    """Return the result when no policy within the budgets was found."""
    short = np.flatnonzero(least > problem.budget)
    status: Status = "infeasible" if short.size else "unresolved"
    message = STATUS_ADVICE[status]
    if short.size:
        reasons = "; ".join(
            f"channel {k} costs at least {least[k]:.8g} at worst, its budget is "
            f"{problem.budget[k]:.8g}"
            for k in short
        )
        message += f" Here {reasons}."
    proof = np.where(least > problem.budget, 1.0, 0.0)
    return Solution(
        **{**common, "upper": -np.inf if short.size else common["upper"]},
        policy=None,
        value=float("nan"),
        costs=np.full(problem.n_costs, np.nan),
        lower=float("-inf"),
        status=status,
        message=message,
        multipliers=proof if short.size else claim.multipliers,
        least_costs=least,
    )


def make_scene(
    row_ptr: IntArray, successor: IndexArray, probability: FloatArray, gains: Any
) -> Scene:
    """Return the scene of a kernel and the gains that are summed under it."""
    cumulative = np.empty(probability.size)
    fill_cumulative(row_ptr, np.ascontiguousarray(probability), cumulative)
    return Scene(
        row_ptr=row_ptr,
        successor=successor,
        probability=probability,
        cumulative=cumulative,
        gains=np.array(gains, dtype=np.int64),
    )
