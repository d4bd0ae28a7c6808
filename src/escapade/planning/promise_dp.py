r"""Promise-DP: the best plan that remembers a promise, up to its grid.

With ``b`` the promise in force, what can be earned from ``s`` is the greatest solution
of

.. math:: U(s,b) = \max_{\alpha, b'} \sum_a \alpha_a \Big[ r(s,a) + \gamma \sum_{s'}
          \hat P(s') \, U(s', b'_a(s')) \Big] \quad \text{s.t.} \quad
          \sum_a \alpha_a \Big[ c(s,a) + \gamma \max_{P} P \cdot b'_a \Big] \le b,
          \quad w \le b',

over everything that a plan may do with its past, since the promise is all of the past
that matters.  (For the worst-case objective the first sum is under its own worst
kernel.)  ``U`` is concave in ``b`` and is kept on a grid, from below.

*Improving.*  At a price ``μ`` of promises, the inner problem is a game,

.. math:: \max_{b'} \min_{P} \sum_{s'} \big[ \hat P(s') U(s', b'(s'))
          - \mu P(s') b'(s') \big],

in which the planner's answer to ``P`` is read off ``U``'s slopes and nature's answer to
``b'`` is the set's worst kernel.  Nature moves by steps of Frank and Wolfe, all pairs
and prices at once, and the planner's answers are averaged.  Every ``b'`` that comes up
is a point (what it costs, what it earns); the best mixture of two points of a state at
each promise is the improved plan.  Then the plan is evaluated exactly, and improved
again: policy iteration, begun at the plan of :mod:`escapade.planning.slack_dp`.

*Bounding.*  Nature's last answers bound every such plan from above
(:mod:`escapade.planning.promise_bound`); with the plan's own worth from below they
state the error of the approximation.  ``upper`` bounds the problem's optimum, where the
budget is for the start; if the plan must keep it at all times, the sharper bound for
such plans is told in the message and in ``residuals["outer"]``.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from escapade.model.cmdp import CMDP
from escapade.planning.base import Objective, check_limits
from escapade.planning.promise_bound import outer_bound
from escapade.planning.promise_nodes import (
    NoPromise,
    best_plan,
    memory_policy,
    open_grid,
    start_promises,
    without,
)
from escapade.planning.promise_rounds import Rounds
from escapade.planning.robust_certificate import Judge
from escapade.planning.slack_dp import check_points, plan_slack
from escapade.planning.solution import Solution
from escapade.uncertainty.base import UncertaintySet

__all__ = ["PromiseDP"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PromiseDP:
    """Plans on states and promises; the reference for problems of some fifty states.

    Parameters
    ----------
    points
        Grid points of the promise in each state, and prices of promises.
    at_all_times
        Whether the cost to come must stay within the budget from every moment on, or
        from the start alone.
    precision
        Largest gap, relative to the value (absolute below 1), to call optimal.
    max_iterations
        Rounds of improvement.

    Examples
    --------
    >>> import escapade as ep
    >>> machine = ep.CMDP(
    ...     [[[0.8, 0.2], [1.0, 0.0]], [[1.0, 0.0], [1.0, 0.0]]],
    ...     [[1.0, 0.4], [0.0, 0.0]],
    ...     [[0.0, 0.0], [1.0, 1.0]],
    ...     discount=0.9,
    ...     budget=1.5,
    ... )
    >>> ball = ep.uncertainty.L1Ball(machine, radius=0.1)
    >>> answer = ep.solve(machine, ep.PromiseDP(), uncertainty=ball)
    >>> answer.status, bool(answer.costs <= 1.5), answer.lower <= answer.upper
    ('feasible', True, True)
    """

    points: int = 41
    at_all_times: bool = True
    precision: float = 1e-8
    max_iterations: int = 40

    robust: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_limits(precision=self.precision, max_iterations=self.max_iterations)
        check_points(self.points)

    def solve(
        self,
        problem: CMDP,
        *,
        uncertainty: UncertaintySet,
        objective: Objective = "nominal",
    ) -> Solution:
        """Return the best plan found within the worst-case budget, with bounds."""
        began = time.perf_counter()
        judge = Judge(problem, uncertainty, objective)
        grid = open_grid(judge, at_all_times=self.at_all_times)
        if isinstance(grid, NoPromise):
            return without(judge, grid, solver="PromiseDP", began=began)
        slack = plan_slack(grid, self.points, 20_000)
        rounds = Rounds(grid, self.points, slack)
        made = 0
        while made < self.max_iterations and rounds.improve():
            made += 1
        plans = []
        for nodes, worth in (rounds.plan(), (slack.nodes, slack.worth)):
            first = start_promises(grid, nodes.ptr, nodes.promise, worth)
            plans.append(memory_policy(grid, nodes, first, "promise"))
        best = best_plan(grid, plans)
        relaxation = judge.relaxation(self.precision)
        upper, multipliers = relaxation.upper, relaxation.multipliers
        residuals = {"relaxation": relaxation.upper}
        note = ""
        if uncertainty.exact:  # else nature's answers may be no members: no bound
            outer = outer_bound(grid, rounds.prices, rounds.earning, rounds.spending)
            multipliers = np.array([outer.multiplier])
            residuals["outer"] = outer.upper
            if self.at_all_times:
                note = (
                    f"No plan that keeps the budget at all times earns more than "
                    f"{outer.upper:.8g}; ``upper`` bounds those as well that keep it "
                    f"from the start alone."
                )
            else:
                upper = min(upper, outer.upper)
        return judge.answer(
            best,
            upper=upper,
            multipliers=multipliers,
            iterations=made,
            precision=self.precision,
            solver="PromiseDP",
            began=began,
            note=note,
            stopped="iteration_limit" if made == self.max_iterations else None,
            residuals=residuals,
        )
