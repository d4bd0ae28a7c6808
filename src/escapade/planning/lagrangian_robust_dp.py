r"""Robust dynamic programming on the Lagrangian MDP, with the multiplier by bisection.

A price ``λ`` a unit of cost turns the budget into part of the reward, ``r − λ c``, and
robust dynamic programming solves what is left.  Which kernel is the worst depends on
what it is worst for:

``"both"``
    nature spoils the Lagrangian ``V − λ C`` itself, one kernel for reward and cost:

    .. math:: L(s) = \max_a \Big[ r - \lambda c + \gamma
              \min_{P \in \mathcal{P}_{sa}} P \cdot L \Big],

    an ordinary robust Bellman equation, solved to a certified residual;
``"cost"``, ``"reward"``
    nature spoils the cost alone, or the reward alone, and the other is nominal.  The
    two values then live under different kernels, so no single Bellman equation holds;
    the policy is improved against both values, each evaluated to precision, until none
    is better.

The larger ``λ``, the cheaper the policy.  Bisection brackets the budget between a
policy that keeps it and one that does not, and mixes the two.  A robust constrained
problem has a duality gap, so this is a candidate and not the optimum; the value and the
costs of the answer are judged apart, as ``V`` under the kernel that is worst for the
cost bounds nothing (errata E26).
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

import numpy as np

from escapade.errors import refusal
from escapade.model.cmdp import CMDP
from escapade.model.evaluation import discounted_sums, policy_matrix
from escapade.model.policy import Policy
from escapade.planning.base import Objective, check_limits
from escapade.planning.dynamic_programming import policy_iteration
from escapade.planning.robust_certificate import Judge
from escapade.planning.robust_operator import RobustOperator, robust_control
from escapade.planning.robust_search import Search, worst_value
from escapade.planning.solution import Solution
from escapade.typing import FloatArray
from escapade.uncertainty.base import Sense, UncertaintySet

__all__ = ["LagrangianRobustDP", "WorstFor"]

WorstFor: TypeAlias = Literal["both", "cost", "reward"]
"""What nature spoils."""

_WORST_FOR = ("both", "cost", "reward")
_IMPROVEMENTS = 30
_CLOSE = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class LagrangianRobustDP:
    """Prices the budget, and solves the priced problem by robust dynamic programming.

    Several budgets share one multiplier, each cost divided by its budget.

    Parameters
    ----------
    worst_for
        What nature spoils: ``"cost"``, ``"reward"`` or ``"both"`` at once.
    refine
        Whether the best candidate is improved to a local optimum.
    precision
        Largest gap, relative to the value (absolute below 1), to call optimal.
    max_iterations
        Multipliers to try.

    Examples
    --------
    >>> import escapade as ep
    >>> machine = ep.CMDP(
    ...     [[[0.8, 0.2], [1.0, 0.0]], [[1.0, 0.0], [1.0, 0.0]]],
    ...     [[1.0, 0.4], [0.0, 0.0]],
    ...     [[0.0, 0.0], [1.0, 1.0]],
    ...     discount=0.9,
    ...     budget=0.8,
    ... )
    >>> ball = ep.uncertainty.L1Ball(machine, radius=0.1)
    >>> answer = ep.solve(machine, ep.LagrangianRobustDP(), uncertainty=ball)
    >>> answer.status, bool(answer.costs <= 0.8), answer.lower <= answer.upper
    ('feasible', True, True)
    """

    worst_for: WorstFor = "cost"
    refine: bool = False
    precision: float = 1e-8
    max_iterations: int = 40

    robust: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.worst_for not in _WORST_FOR:
            raise refusal(
                "worst_for", f"one of {list(_WORST_FOR)}", repr(self.worst_for)
            )
        check_limits(precision=self.precision, max_iterations=self.max_iterations)

    def solve(
        self,
        problem: CMDP,
        *,
        uncertainty: UncertaintySet,
        objective: Objective = "nominal",
    ) -> Solution:
        """Return the best policy found within the worst-case budgets, with bounds."""
        began = time.perf_counter()
        judge = Judge(problem, uncertainty, objective)
        if judge.models:
            raise refusal(
                "uncertainty",
                "a set that is rectangular over pairs, which dynamic programming needs",
                "one model throughout; take its rectangular hull, or RobustLP",
            )
        relaxation = judge.relaxation(self.precision)
        reason = judge.out_of_reach(relaxation)
        if reason:
            return judge.infeasible(reason, solver="LagrangianRobustDP", began=began)
        search = Search(judge)
        search.consider_safest()
        priced = _Priced(judge, self.worst_for)
        multiplier = _bisect(search, priced, self.max_iterations)
        if self.refine:
            search.refine()
        if search.best is None:
            assert search.safest is not None
            return judge.unresolved(
                "the policy that comes closest exceeds a budget by "
                f"{search.excess(search.safest):.3g} of the most that it can cost",
                relaxation.upper,
                solver="LagrangianRobustDP",
                began=began,
            )
        return judge.answer(
            search.best,
            upper=relaxation.upper,
            multipliers=multiplier * priced.prices,
            iterations=priced.calls,
            precision=self.precision,
            solver="LagrangianRobustDP",
            began=began,
        )


class _Priced:
    """The Lagrangian MDP: the best policy at a price, against the nature chosen."""

    def __init__(self, judge: Judge, worst_for: WorstFor) -> None:
        self.judge, self.worst_for = judge, worst_for
        cmdp = judge.cmdp
        most = cmdp.cost_max / (1.0 - cmdp.discount)
        floor = np.maximum(1e-6 * most, 1e-300)
        self.prices: FloatArray = 1.0 / np.maximum(cmdp.budget, floor)
        self.cost: FloatArray = self.prices @ cmdp.cost
        self.calls = 0
        self._guess: FloatArray | None = None

    def best(self, multiplier: float, begin: Policy) -> Policy:
        """Return the best policy found at a multiplier."""
        self.calls += 1
        if self.worst_for == "both":
            return self._robust(multiplier)
        return self._improved(multiplier, begin)

    def _robust(self, multiplier: float) -> Policy:
        """Solve the robust Bellman equation of the Lagrangian."""
        judge, cmdp = self.judge, self.judge.cmdp
        operator = RobustOperator(
            judge.sets,
            cmdp.state_ptr,
            cmdp.reward - multiplier * self.cost,
            cmdp.discount,
            nature="min",
            select="max",
        )
        found = robust_control(operator, precision=1e-9, guess=self._guess)
        self._guess = found.upper
        assert found.pairs is not None
        return Policy.deterministic(cmdp.pair_action[found.pairs], cmdp.n_actions)

    def _improved(self, multiplier: float, policy: Policy) -> Policy:
        """Improve a policy against both its values until nothing is better."""
        cmdp = self.judge.cmdp
        seen: set[bytes] = set()
        best, best_worth = policy, -np.inf
        for _ in range(_IMPROVEMENTS):
            earned, q = self._values(policy, cmdp.reward, "min")
            spent, d = self._values(policy, self.cost, "max")
            worth = float(cmdp.start @ (earned - multiplier * spent))
            if worth > best_worth:
                best, best_worth = policy, worth
            gain = q - multiplier * d
            top = np.maximum.reduceat(gain, cmdp.state_ptr[:-1])
            hits = gain >= top[cmdp.pair_state] - 1e-12 * np.abs(top[cmdp.pair_state])
            index = np.where(hits, np.arange(gain.size), gain.size)
            pairs = np.minimum.reduceat(index, cmdp.state_ptr[:-1])
            key = pairs.tobytes()
            if key in seen:
                break
            seen.add(key)
            policy = Policy.deterministic(cmdp.pair_action[pairs], cmdp.n_actions)
        return best

    def _values(
        self, policy: Policy, gain: FloatArray, sense: Sense
    ) -> tuple[FloatArray, FloatArray]:
        """Return a policy's values, and those of the pairs, under nominal or worst."""
        judge, cmdp = self.judge, self.judge.cmdp
        spoiled = (sense == "max") == (self.worst_for == "cost")
        if spoiled:
            value = worst_value(judge, policy, gain, sense)
            return value, judge.sets.backup(value, gain, cmdp.discount, sense=sense)
        value = nominal_value(cmdp, policy, gain)
        return value, gain + cmdp.discount * (cmdp.transition_matrix @ value)


def nominal_value(cmdp: CMDP, policy: Policy, gain: FloatArray) -> FloatArray:
    """Return what a policy collects of ``gain`` under the problem's own kernel."""
    weights = policy.pair_weights(cmdp)
    own = np.add.reduceat(weights * gain, cmdp.state_ptr[:-1])
    found, _, _ = discounted_sums(
        policy_matrix(cmdp, weights),
        own[:, np.newaxis],
        cmdp.discount,
        1e-10,
        strict=False,
    )
    value: FloatArray = found[:, 0]
    return value


def _bisect(search: Search, priced: _Priced, tries: int) -> float:
    """Bracket the budgets between two multipliers; return the one that keeps them."""
    cmdp = search.judge.cmdp
    begin = policy_iteration(cmdp, cmdp.reward).policy(cmdp)
    judged = search.consider(priced.best(0.0, begin))
    if search.judge.keeps(judged):
        return 0.0
    low, high = 0.0, max(1.0, cmdp.reward_max)
    found = np.inf
    for _ in range(tries):
        price = high if found == np.inf else 0.5 * (low + high)
        judged = search.consider(priced.best(price, begin))
        if isinstance(judged.policy, Policy):
            begin = judged.policy
        if search.judge.keeps(judged):
            found = high = price
        else:
            low = price
            if found == np.inf:
                high = 4.0 * price
        if high - low <= _CLOSE * high:
            break
    return high
