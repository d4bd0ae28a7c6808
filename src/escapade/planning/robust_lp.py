r"""Linear programs for worst-case budgets: shrunk, for an escape, and inflated.

The occupation program knows one kernel.  Three ways make it respect a set of them.

``"inflation"``
    Charge each step for what nature may add.  With ``h`` a worst-case cost-to-go,

    .. math:: c_h(s,a) = c(s,a) + \gamma \Big( \max_{P \in \mathcal{P}_{sa}} P \cdot h
              - \hat P_{sa} \cdot h \Big).

    For ``h`` the worst-case cost-to-go of a policy, its nominal cost under ``c_h`` *is*
    its worst-case cost, so the program at its own ``h`` contains it.  Solving, taking
    the new policy's ``h`` and solving again looks for a fixed point, which keeps the
    budgets exactly.
``"shrunk"``
    The paper's form: the nominal program with a budget made smaller by the error of the
    model.  The error that matters is measured instead of bounded: the largest budget
    whose policy keeps the true one under the worst kernel is found by bisection.
``"escape"``
    The paper's form for unknown states, ``f · c_max <= d'``: nothing is known of the
    costs, so each step is charged the most that a step can cost, save where no cost can
    come again (beyond the exits of an escape problem).  Shrunk likewise.

None of them is exact: worst-case budgets make the problem non-convex.  The policy of
least worst-case cost is always a candidate, whatever breaks a budget is mixed with it,
and the best candidate is refined (:mod:`escapade.planning.robust_search`).  The bounds
come from :mod:`escapade.planning.robust_certificate`.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

import numpy as np

from escapade.errors import refusal
from escapade.model.cmdp import CMDP
from escapade.model.policy import Policy
from escapade.planning.base import Objective, check_limits
from escapade.planning.column_generation import ColumnGeneration
from escapade.planning.robust_certificate import Judge
from escapade.planning.robust_search import Search, worst_value
from escapade.planning.solution import Solution
from escapade.typing import FloatArray
from escapade.uncertainty.base import UncertaintySet

__all__ = ["RobustForm", "RobustLP"]

RobustForm: TypeAlias = Literal["inflation", "shrunk", "escape"]
"""How a linear program is made to respect worst-case budgets."""

_FORMS = ("inflation", "shrunk", "escape")
_SETTLED = 1e-9
_QUIET = 6  # rounds without a better policy that end the search


@dataclass(frozen=True, slots=True, kw_only=True)
class RobustLP:
    """Finds a stationary policy within worst-case budgets by linear programs.

    Parameters
    ----------
    form
        ``"inflation"``, ``"shrunk"`` or ``"escape"``; see the module's text.  For a
        family of which one model holds throughout, ``"inflation"`` has no meaning and
        the budget is shrunk.
    refine
        Whether the best candidate is improved to a local optimum.
    precision
        Largest gap, relative to the value (absolute below 1), to call optimal.
    max_iterations
        Linear programs of the first stage, before any refinement.

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
    >>> answer = ep.solve(machine, ep.RobustLP(), uncertainty=ball)
    >>> answer.status, bool(answer.costs <= 0.8), answer.lower <= answer.upper
    ('feasible', True, True)
    """

    form: RobustForm = "inflation"
    refine: bool = True
    precision: float = 1e-8
    max_iterations: int = 30

    robust: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.form not in _FORMS:
            raise refusal("form", f"one of {list(_FORMS)}", repr(self.form))
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
        relaxation = judge.relaxation(self.precision)
        reason = judge.out_of_reach(relaxation)
        if reason:
            return judge.infeasible(reason, solver="RobustLP", began=began)
        search = Search(judge)
        search.consider_safest()
        if relaxation.policy is not None:
            search.consider(relaxation.policy)
        if self.form == "inflation" and not judge.models:
            _inflate(search, self.max_iterations)
        else:
            charged = problem.cost
            if self.form == "escape":
                charged = _most(problem)
            _shrink(search, charged, self.max_iterations)
        if self.refine:
            search.refine()
        if search.best is None:
            assert search.safest is not None
            return judge.unresolved(
                "the policy that comes closest exceeds a budget by "
                f"{search.excess(search.safest):.3g} of the most that it can cost",
                relaxation.upper,
                solver="RobustLP",
                began=began,
            )
        upper = relaxation.upper
        if objective == "worst" and not judge.models and uncertainty.exact:
            upper = min(upper, _at_the_worst(search, self.precision))
        return judge.answer(
            search.best,
            upper=upper,
            multipliers=relaxation.multipliers,
            iterations=search.programs,
            precision=self.precision,
            solver="RobustLP",
            began=began,
        )


def _inflate(search: Search, rounds: int) -> None:
    """Look for a fixed point of the inflated program, from the safe side and not."""
    assert search.safest is not None
    judge = search.judge
    h = search.safest.cost_to_go
    damping = 1.0
    last = np.inf
    reward, reward_max = judge.cmdp.reward, judge.cmdp.reward_max
    best, quiet = search.best, 0
    for _ in range(rounds):
        quiet = 0 if search.best is not best else quiet + 1
        best = search.best
        if quiet > _QUIET:
            break
        if judge.objective == "worst" and search.best is not None:
            assert isinstance(search.best.policy, Policy)
            reward = _deflated(judge, search.best.policy)
            reward_max = float(reward.max())
        charged = _inflated(judge, h)
        search.programs += 1
        found = ColumnGeneration().solve(
            judge.cmdp.replace(
                cost=charged,
                cost_max=np.maximum(charged.max(axis=1), judge.cmdp.cost_max),
                reward=reward,
                reward_max=reward_max,
            )
        )
        if not isinstance(found.policy, Policy):
            # too dear for every policy: come back towards one that is known to fit
            anchor = search.best or search.safest
            h = 0.5 * (h + anchor.cost_to_go)
            damping = 0.5
            continue
        judged = search.consider(found.policy, guess=h)
        move = float(np.abs(judged.cost_to_go - h).max())
        if move <= _SETTLED * max(1.0, float(np.abs(h).max())):
            break
        if move >= last:
            damping = max(0.5 * damping, 0.1)
        last = move
        h = (1.0 - damping) * h + damping * judged.cost_to_go


def _inflated(judge: Judge, h: FloatArray) -> FloatArray:
    """Return ``c_h``, one row a channel."""
    cmdp, sets = judge.cmdp, judge.sets
    charged = np.empty_like(cmdp.cost)
    for k, values in enumerate(h):
        worst = sets.worst(values, sense="max")
        expected = np.add.reduceat(
            judge.nominal * values[sets.successor], sets.row_ptr[:-1]
        )
        charged[k] = cmdp.cost[k] + cmdp.discount * np.maximum(worst - expected, 0.0)
    return charged


def _deflated(judge: Judge, policy: Policy) -> FloatArray:
    """Return the reward less what nature may take, moved up to start at 0.

    Moving all rewards by the same amount moves all values by the same amount.
    """
    cmdp, sets = judge.cmdp, judge.sets
    value = worst_value(judge, policy, cmdp.reward, "min")
    worst = sets.worst(value, sense="min")
    expected = np.add.reduceat(judge.nominal * value[sets.successor], sets.row_ptr[:-1])
    reward = cmdp.reward + cmdp.discount * np.minimum(worst - expected, 0.0)
    moved: FloatArray = reward - min(float(reward.min()), 0.0)
    return moved


def _most(cmdp: CMDP) -> FloatArray:
    """Return the largest cost for every step that is not surely the last to cost."""
    links = cmdp.transition_matrix
    free = np.ones(cmdp.n_states, dtype=np.bool_)
    free[cmdp.pair_state[cmdp.cost.any(axis=0)]] = False
    while True:  # the greatest set of states where nothing costs and nothing leads out
        out = np.asarray(links @ (~free).astype(np.float64)) > 0.0
        out &= free[cmdp.pair_state]
        if not out.any():
            break
        free[cmdp.pair_state[out]] = False
    charged: FloatArray = np.where(
        free[cmdp.pair_state], 0.0, cmdp.cost_max[:, np.newaxis]
    )
    return charged


def _shrink(search: Search, charged: FloatArray, rounds: int) -> None:
    """Bisect on the share of the budgets that the nominal program is given."""
    judge = search.judge
    low, high = 0.0, 1.0  # keeps the budgets, or may not
    for _ in range(rounds):
        share = 0.5 * (low + high)
        search.programs += 1
        found = ColumnGeneration().solve(
            judge.cmdp.replace(
                cost=charged,
                cost_max=np.maximum(charged.max(axis=1), judge.cmdp.cost_max),
                budget=share * judge.cmdp.budget,
            )
        )
        if not isinstance(found.policy, Policy):
            low = share
            continue
        if judge.keeps(search.consider(found.policy)):
            low = share
        else:
            high = share
        if high - low <= 1e-4:
            break


def _at_the_worst(search: Search, precision: float) -> float:
    """Bound the worst-case objective at the kernels that hurt the best policy most."""
    judge, best = search.judge, search.best
    assert best is not None
    assert isinstance(best.policy, Policy)
    value = worst_value(judge, best.policy, judge.cmdp.reward, "min")
    bounds = [judge.at_kernel(judge.sets.worst_kernel(value, sense="min"), precision)]
    bounds += [
        judge.at_kernel(judge.sets.worst_kernel(h, sense="max"), precision)
        for h in best.cost_to_go
    ]
    return min(
        (bound.upper for bound in bounds if not bound.infeasible), default=np.inf
    )
