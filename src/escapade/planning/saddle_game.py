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

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from escapade.kernels.sampling import fill_cumulative
from escapade.model.cmdp import CMDP
from escapade.model.evaluation import evaluate, occupancy
from escapade.model.policy import Policy
from escapade.planning.base import Objective
from escapade.planning.certificate import Claim, certified, infeasible
from escapade.planning.feasibility import closest_to_budgets, cost_scales
from escapade.planning.oracle import Oracle, evaluation_precision
from escapade.planning.robust_certificate import Judge
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
_PRECISION = 1e-8  # of the bounds


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
        self.objective: Objective = objective
        self.robust = None if sets is None else Judge(problem, sets, objective)
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
        if self.robust is not None:
            judged = self.robust.judge(policy)
            value, lower, costs = judged.value, judged.lower, judged.costs
        else:
            found = evaluate(problem, policy, precision=evaluation_precision(problem))
            value, lower = found.start_value, found.start_value - found.error
            costs = found.start_costs + found.error
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
        candidates = [*others] if best is None else [best.policy, *others]
        claim = Claim(
            visits=None,
            multipliers=multipliers,
            iterations=iterations,
            stopped=stopped,
        )
        if self.robust is None:
            answer = self._solve_exact(candidates, claim, solver, began)
        else:
            answer = self._solve_robust(self.robust, candidates, claim, solver, began)
        if answer.policy is None:
            return replace(answer, iterations=iterations)
        status: Status = stopped or "feasible"
        return replace(answer, status=status, message=STATUS_ADVICE[status])

    def _solve_exact(
        self, candidates: Sequence[Policy], claim: Claim, solver: str, began: float
    ) -> Solution:
        """Certify the candidates; where one exceeds a budget, it is moved inside."""
        problem = self.problem
        oracle = Oracle(problem)
        closest = closest_to_budgets(oracle)
        if closest.proof is not None:
            return infeasible(oracle, closest, solver=solver, began=began)
        precision = evaluation_precision(problem)
        answers = [
            certified(
                oracle,
                replace(claim, visits=occupancy(problem, policy, precision=precision)),
                closest,
                solver=solver,
                precision=_PRECISION,
                began=began,
            )
            for policy in candidates
        ]
        return max(answers, key=lambda answer: answer.lower)

    def _solve_robust(
        self,
        judge: Judge,
        candidates: Sequence[Policy],
        claim: Claim,
        solver: str,
        began: float,
    ) -> Solution:
        """Judge the candidates, the safest known policy among them, and bound them."""
        relaxation = judge.relaxation(_PRECISION)
        reason = judge.out_of_reach(relaxation)
        if reason:
            return judge.infeasible(reason, solver=solver, began=began)
        found = judge.best(map(judge.judge, [*candidates, self._safest()]))
        if found is None:
            return judge.unresolved(
                "neither the policies on the way nor the one of least worst-case cost "
                "keep every budget",
                relaxation.upper,
                solver=solver,
                began=began,
            )
        return judge.answer(
            found,
            upper=relaxation.upper,
            multipliers=claim.multipliers,
            iterations=claim.iterations,
            precision=_PRECISION,
            solver=solver,
            began=began,
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
            chosen = robust_control(operator, precision=_PRECISION).pairs
            assert chosen is not None
            pairs = chosen
        return Policy.deterministic(problem.pair_action[pairs], problem.n_actions)

    def _price_of_room(self) -> FloatArray:
        """Weigh each cost by its budget, or heavily where there is none."""
        floor = 1e-6 / self.cost_scales
        weights: FloatArray = 1.0 / np.maximum(self.problem.budget, floor)
        return weights / float(weights.max())


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
