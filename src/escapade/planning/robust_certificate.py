"""What a robust plan is worth, judged apart from the solver that made it.

The :class:`Judge` of a robust problem evaluates any policy under the worst kernel of
the set, one cost at a time, and its objective under the nominal or the worst kernel.
It knows a valid relaxation as well, which bounds what *any* policy can do:

- a policy that keeps the budgets under every kernel keeps them under any one of them,
  so the ordinary constrained problem at the nominal kernel, or at any other member,
  bounds the optimum from above (for the worst-case objective too, as its worst case is
  no better);
- where even the least worst-case cost exceeds a budget, nobody can keep it.

A solver brings candidates; the best that surely keeps every budget is the answer, with
``lower`` its own worst-case worth and ``upper`` the least relaxation.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from escapade.errors import SolverError, refusal
from escapade.model.cmdp import CMDP
from escapade.model.evaluation import evaluate
from escapade.model.memory_policy import MemoryPolicy
from escapade.model.policy import Policy
from escapade.planning.base import Objective, check_robust
from escapade.planning.column_generation import ColumnGeneration
from escapade.planning.feasibility import least_costs
from escapade.planning.oracle import Oracle, evaluation_precision
from escapade.planning.robust_evaluation import (
    Build,
    operators_of,
    per_state,
    start_mean,
)
from escapade.planning.robust_operator import (
    RobustOperator,
    robust_control,
    robust_policy_value,
)
from escapade.planning.solution import STATUS_ADVICE, Solution, Status
from escapade.typing import FloatArray
from escapade.uncertainty.base import UncertaintySet

__all__ = ["Judge", "Judged", "Relaxation"]

_EPS = float(np.finfo(np.float64).eps)
_MEMBER = 1e-7  # how far outside rounding may put a kernel
_ROUNDING = 1e-6  # relative: how far below the truth rounding may put a bound


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Judged:
    """A policy and what it is certain to do.

    Attributes
    ----------
    policy
        The policy.
    value
        Its objective from the start, as computed.
    error
        Certified: the objective is at least ``value − error``.
    costs
        Upper bounds ``(K,)`` on its worst-case costs from the start.
    cost_to_go
        The same from every state, ``(K, S)``.
    """

    policy: Policy | MemoryPolicy
    value: float
    error: float
    costs: FloatArray
    cost_to_go: FloatArray

    @property
    def lower(self) -> float:
        """What the objective is at least."""
        return self.value - self.error


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Relaxation:
    """What no policy can exceed.

    ``upper`` bounds the objective, ``multipliers`` are the prices of the budgets there;
    ``infeasible`` says why the budgets cannot be kept, or is empty.  ``policy`` is the
    best of the relaxed problem, if there is one.
    """

    upper: float
    multipliers: FloatArray
    policy: Policy | None
    infeasible: str = ""


class Judge:
    """Evaluates policies of one robust problem, and bounds what any can do.

    Attributes
    ----------
    cmdp, sets, objective
        The problem.
    precision
        Of the evaluations, relative to the largest value.
    models
        The members of a family of which one model holds throughout; empty for sets
        that are rectangular.
    nominal
        ``[entries]``; the problem's own kernel on the entries of a rectangular set.
    """

    def __init__(
        self,
        cmdp: CMDP,
        sets: UncertaintySet,
        objective: Objective,
        *,
        precision: float | None = None,
    ) -> None:
        check_robust(cmdp, sets, objective)
        self.cmdp, self.sets = cmdp, sets
        self.objective: Objective = objective
        self.precision = precision or evaluation_precision(cmdp)
        self.models: tuple[CMDP, ...] = ()
        if sets.rectangular:
            self.nominal = _on_entries(cmdp, sets)
            _check_member(cmdp, sets, self.nominal)
        else:
            self.models = tuple(sets.members(cmdp))
            self.nominal = np.empty(0)

    # -- policies ----------------------------------------------------------------------

    def judge(
        self, policy: Policy | MemoryPolicy, guess: FloatArray | None = None
    ) -> Judged:
        """Evaluate a policy; ``guess`` is a ``(K, S)`` cost-to-go to begin from."""
        if self.models:
            return self._judge_family(policy)
        cmdp = self.cmdp
        build = operators_of(cmdp, policy, self.sets)
        cost_to_go = self._cost_to_go(policy, build, guess)
        if self.objective == "nominal":
            found = evaluate(cmdp, policy, precision=self.precision)
            value, error = found.start_value, found.error
        else:
            point = robust_policy_value(
                build(cmdp.reward, "min"), precision=self.precision
            )
            lower = per_state(policy, np.maximum(point.lower, 0.0), "min")
            value, error = float(start_mean(cmdp, lower, "min")), 0.0
        return Judged(
            policy=policy,
            value=value,
            error=error + _sum_rounding(cmdp, value),
            costs=start_mean(cmdp, cost_to_go, "max"),
            cost_to_go=cost_to_go,
        )

    def within(self, policy: Policy, guess: FloatArray | None = None) -> bool:
        """Tell whether a policy surely keeps every budget, its worth aside."""
        if self.models:
            return self.keeps(self._judge_family(policy))
        build = operators_of(self.cmdp, policy, self.sets)
        costs = start_mean(self.cmdp, self._cost_to_go(policy, build, guess), "max")
        return bool((costs <= self.cmdp.budget).all())

    def _cost_to_go(
        self, policy: Policy | MemoryPolicy, build: Build, guess: FloatArray | None
    ) -> FloatArray:
        """Return upper bounds on the worst-case costs from every state, ``(K, S)``."""
        begin = guess if isinstance(policy, Policy) else None
        points = [
            robust_policy_value(
                build(channel, "max"),
                precision=self.precision,
                guess=None if begin is None else begin[k],
            )
            for k, channel in enumerate(self.cmdp.cost)
        ]
        bounds = np.array([np.maximum(point.upper, 0.0) for point in points])
        return per_state(policy, bounds, "max")

    def _judge_family(self, policy: Policy | MemoryPolicy) -> Judged:
        cmdp = self.cmdp
        found = [evaluate(m, policy, precision=self.precision) for m in self.models]
        cost_to_go = np.array([f.costs + f.error for f in found])
        costs = np.array([start_mean(cmdp, c, "max") for c in cost_to_go]).max(axis=0)
        if self.objective == "nominal":
            own = evaluate(cmdp, policy, precision=self.precision)
            value, error = own.start_value, own.error
        else:
            worst = min(found, key=lambda f: f.start_value - f.error)
            value, error = worst.start_value, worst.error
        return Judged(
            policy=policy,
            value=value,
            error=error + _sum_rounding(cmdp, value),
            costs=costs,
            cost_to_go=cost_to_go.max(axis=0),
        )

    def keeps(self, judged: Judged) -> bool:
        """Tell whether a policy surely keeps every budget."""
        return bool((judged.costs <= self.cmdp.budget).all())

    def best(self, candidates: Iterable[Judged]) -> Judged | None:
        """Return the best candidate that keeps every budget, if one does."""
        kept = [judged for judged in candidates if self.keeps(judged)]
        return max(kept, key=lambda judged: judged.lower, default=None)

    # -- bounds ------------------------------------------------------------------------

    def relaxation(self, precision: float) -> Relaxation:
        """Bound the optimum by ordinary problems at members of the set."""
        if not self.models:
            return self._relaxed(self.cmdp, precision)
        own = [self._relaxed(model, precision) for model in self.models]
        for relaxed in own:
            if relaxed.infeasible:
                return relaxed
        if self.objective == "worst":
            return min(own, key=lambda relaxed: relaxed.upper)
        if any(_same_kernel(self.cmdp, model) for model in self.models):
            return self._relaxed(self.cmdp, precision)
        # the nominal kernel is no member: the budgets ask nothing of it
        most = (self.cmdp.cost_max + 1.0) / (1.0 - self.cmdp.discount)
        return self._relaxed(self.cmdp.replace(budget=most), precision)

    def at_kernel(self, kernel: FloatArray, precision: float) -> Relaxation:
        """Bound the worst-case objective by the ordinary problem at one member.

        The worst kernels of a set that is not ``exact`` need not be members.
        """
        positive = kernel > 0.0
        ends = np.concatenate([[0], np.cumsum(positive)])
        model = self.cmdp.replace(
            row_ptr=ends[self.sets.row_ptr],
            successor=self.sets.successor[positive],
            probability=kernel[positive],
        )
        return self._relaxed(model, precision)

    def _relaxed(self, model: CMDP, precision: float) -> Relaxation:
        found = ColumnGeneration(precision=precision).solve(model)
        reason = ""
        if found.status == "infeasible":
            reason = "even one kernel of the set, known for sure, is too much"
            least, _ = least_costs(Oracle(model))
            if (over := least > model.budget).any():
                k = int(np.argmax(over))
                reason += (
                    f": the least cost{_channel(model, k)} under it is "
                    f"{least[k]:.8g}, the budget is {model.budget[k]:.8g}"
                )
        return Relaxation(
            upper=found.upper,
            multipliers=found.multipliers,
            policy=found.policy if isinstance(found.policy, Policy) else None,
            infeasible=reason,
        )

    def least_costs(self, precision: float = 1e-8) -> tuple[FloatArray, FloatArray]:
        """Return bounds, below and above, on the least worst-case cost of each channel.

        Each channel by itself, from the start distribution; both ``(K,)``.  For a
        family they are those of its worst model.
        """
        cmdp = self.cmdp
        if self.models:
            own = np.array([least_costs(Oracle(model)) for model in self.models])
            lower, upper = own.max(axis=0)
            return lower, upper
        lower, upper = np.empty(cmdp.n_costs), np.empty(cmdp.n_costs)
        for k, channel in enumerate(cmdp.cost):
            operator = RobustOperator(
                self.sets,
                cmdp.state_ptr,
                channel,
                cmdp.discount,
                nature="max",
                select="min",
            )
            point = robust_control(operator, precision=precision)
            lower[k] = start_mean(cmdp, np.maximum(point.lower, 0.0), "min")
            upper[k] = start_mean(cmdp, point.upper, "max")
        return lower, upper

    def out_of_reach(self, relaxation: Relaxation) -> str:
        """Say why no policy keeps the budgets, or nothing if that is not proved."""
        if relaxation.infeasible:
            return relaxation.infeasible
        if self.models or not self.sets.exact:  # what is too much may be no member
            return ""
        lower, _ = self.least_costs()
        over = np.flatnonzero(lower > self.cmdp.budget)
        return "; ".join(
            f"the least worst-case cost{_channel(self.cmdp, int(k))} is "
            f"{lower[k]:.8g}, its budget is {self.cmdp.budget[k]:.8g}"
            for k in over
        )

    # -- answers -----------------------------------------------------------------------

    def infeasible(self, reason: str, *, solver: str, began: float) -> Solution:
        """Return the result for budgets that nobody can keep."""
        return self._without(
            "infeasible", reason, float("-inf"), solver=solver, began=began
        )

    def unresolved(
        self, reason: str, upper: float, *, solver: str, began: float
    ) -> Solution:
        """Return the result when no policy was found and none was ruled out."""
        return self._without("unresolved", reason, upper, solver=solver, began=began)

    def _without(
        self, status: Status, reason: str, upper: float, *, solver: str, began: float
    ) -> Solution:
        missing = np.full(self.cmdp.n_costs, np.nan)
        return Solution(
            policy=None,
            value=float("nan"),
            costs=missing,
            lower=float("-inf"),
            upper=upper,
            status=status,
            message=f"{STATUS_ADVICE[status]} Here {reason}.",
            multipliers=missing,
            iterations=0,
            seconds=time.perf_counter() - began,
            solver=solver,
            least_costs=self.least_costs()[1],
        )

    def answer(
        self,
        judged: Judged,
        *,
        upper: float,
        multipliers: FloatArray,
        iterations: int,
        precision: float,
        solver: str,
        began: float,
        note: str = "",
        stopped: Status | None = None,
        residuals: Mapping[str, float] | None = None,
    ) -> Solution:
        """Return the solution that a judged policy amounts to."""
        # rounding alone can put a bound below what is surely earned, but not by much
        room = _ROUNDING * max(1.0, abs(judged.value)) / (1.0 - self.cmdp.discount)
        if judged.lower > upper + room:
            raise SolverError(
                f"upper: expected a bound on what {solver} found, at least "
                f"{judged.lower:.8g}, found {upper:.8g}; please report this"
            )
        upper = max(upper, judged.lower)
        gap = upper - judged.lower
        status: Status = stopped or "feasible"
        if gap <= precision * max(1.0, abs(judged.value)):
            status = "optimal"
        return Solution(
            policy=judged.policy,
            value=judged.value,
            costs=judged.costs,
            lower=judged.lower,
            upper=upper,
            status=status,
            message=" ".join(filter(None, [STATUS_ADVICE[status], note])),
            multipliers=multipliers,
            iterations=iterations,
            seconds=time.perf_counter() - began,
            solver=solver,
            residuals={
                "budget": float(np.maximum(judged.costs - self.cmdp.budget, 0.0).max()),
                "evaluation": judged.error,
                "gap": gap,
                **(residuals or {}),
            },
        )


def _channel(cmdp: CMDP, k: int) -> str:
    return f" of channel {k}" if cmdp.n_costs > 1 else ""


def _sum_rounding(cmdp: CMDP, value: float) -> float:
    """Bound the rounding in a mean over the start distribution."""
    terms = int(np.count_nonzero(cmdp.start))
    return 0.0 if terms == 1 else (terms + 2) * _EPS * abs(value)


def _same_kernel(one: CMDP, other: CMDP) -> bool:
    """Tell whether two problems have the same transitions, up to rounding."""
    apart = abs(one.transition_matrix - other.transition_matrix)
    return bool(apart.nnz == 0 or apart.max() <= _MEMBER)


def _on_entries(cmdp: CMDP, sets: UncertaintySet) -> FloatArray:
    """Return the problem's own kernel on the entries of a set."""
    n_states = cmdp.n_states
    rows = np.repeat(np.arange(cmdp.n_pairs), np.diff(sets.row_ptr))
    keys = rows * n_states + sets.successor
    own = np.repeat(np.arange(cmdp.n_pairs), np.diff(cmdp.row_ptr))
    wanted = own * n_states + cmdp.successor
    place = np.minimum(np.searchsorted(keys, wanted), keys.size - 1)
    missing = keys[place] != wanted
    if missing.any():
        entry = int(np.argmax(missing))
        raise refusal(
            "uncertainty",
            "a set that holds the problem's own transitions",
            f"none to state {int(cmdp.successor[entry])}",
            cmdp.describe_pair(int(own[entry])),
        )
    kernel = np.zeros(keys.size)
    kernel[place] = cmdp.probability
    return kernel


def _check_member(cmdp: CMDP, sets: UncertaintySet, kernel: FloatArray) -> None:
    excess = sets.excess(kernel)
    if (excess > _MEMBER).any():
        pair = int(np.argmax(excess > _MEMBER))
        raise refusal(
            "uncertainty",
            "a set that holds the problem's own transitions",
            f"one that they miss by {excess[pair]:.3g}",
            cmdp.describe_pair(pair),
        )
