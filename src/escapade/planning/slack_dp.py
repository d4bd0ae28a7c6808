r"""Slack-DP: dynamic programming over the state and what is left above the fallback.

The promise ledger's rule R0, planned ahead.  The memory is the slack
``σ = b − w(s)``, what the present promise leaves above the fallback's cost-to-go.
Action ``a`` may be played if it fits,

.. math:: \delta(s,a) = c(s,a) + \gamma \max_{P \in \mathcal{P}_{sa}} P \cdot w - w(s)
          \;\le\; \sigma,

and the slack that is left, :math:`\sigma' = (\sigma - \delta(s,a)) / \gamma`, is the
same whatever state comes next.  So the plan is an ordinary discounted problem on pairs
``(s, σ)``: no inner optimisation, a large model in seconds.

The slack is planned on a grid that ends, in every state, where more of it would buy
nothing.  A slack between two points is split by lots, which keeps its mean; never
rounded.  The answer is the best plan of its class on that grid, and each of its nodes
keeps its promise under every kernel.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy.sparse as sp

from escapade.kernels.promise import concave_envelope, value_of_promises
from escapade.model.arguments import read_count
from escapade.model.cmdp import CMDP
from escapade.planning.base import Objective, check_limits
from escapade.planning.promise_nodes import (
    Nodes,
    NoPromise,
    PromiseGrid,
    best_plan,
    memory_policy,
    open_grid,
    start_promises,
    without,
)
from escapade.planning.robust_certificate import Judge
from escapade.planning.solution import Solution, Status
from escapade.typing import BoolArray, FloatArray, IntArray
from escapade.uncertainty.base import UncertaintySet
from escapade.uncertainty.rows import gather_rows

__all__ = ["SlackDP", "SlackPlan", "plan_slack"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SlackDP:
    """Plans on states and slack; fast, and safe at every node of its memory.

    Parameters
    ----------
    points
        Grid points of the slack in each state.
    at_all_times
        Whether the cost to come must stay within the budget from every moment on, or
        from the start alone.
    precision
        Largest gap, relative to the value (absolute below 1), to call optimal.
    max_iterations
        Sweeps after which to stop.

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
    >>> answer = ep.solve(machine, ep.SlackDP(), uncertainty=ball)
    >>> answer.status, bool(answer.costs <= 1.5), answer.lower <= answer.upper
    ('feasible', True, True)
    """

    points: int = 65
    at_all_times: bool = True
    precision: float = 1e-8
    max_iterations: int = 20_000

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
        """Return the best plan of its class within the worst-case budget."""
        began = time.perf_counter()
        judge = Judge(problem, uncertainty, objective)
        grid = open_grid(judge, at_all_times=self.at_all_times)
        if isinstance(grid, NoPromise):
            return without(judge, grid, solver="SlackDP", began=began)
        plan = plan_slack(grid, self.points, self.max_iterations)
        policy = memory_policy(
            grid,
            plan.nodes,
            start_promises(grid, plan.nodes.ptr, plan.nodes.promise, plan.worth),
            "promise",
        )
        relaxation = judge.relaxation(self.precision)
        stopped: Status | None = None if plan.converged else "iteration_limit"
        return judge.answer(
            best_plan(grid, [policy]),
            upper=relaxation.upper,
            multipliers=relaxation.multipliers,
            iterations=plan.sweeps,
            precision=self.precision,
            solver="SlackDP",
            began=began,
            stopped=stopped,
            note=f"The memory has {policy.n_nodes} nodes.",
        )


def check_points(points: int) -> None:
    """Refuse a grid that no promise fits on."""
    read_count("points", points, least=2)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SlackPlan:
    """A plan on states and slack.

    Attributes
    ----------
    top
        ``(S,)``; the largest slack that is of use.
    u
        ``(S, G)``; what can be earned at the grid's slacks.
    nodes, worth
        The nodes of the plan and what they earn, ``[M]``.
    converged, sweeps
        Whether and when the sweeps settled.
    """

    top: FloatArray
    u: FloatArray
    nodes: Nodes
    worth: FloatArray
    converged: bool
    sweeps: int


def plan_slack(
    grid: PromiseGrid, points: int, max_sweeps: int, tolerance: float = 1e-7
) -> SlackPlan:
    """Sweep until the worth of slack has settled, then read off the plan."""
    problem = _SlackProblem.on(grid, points)
    cmdp = grid.judge.cmdp
    u = np.where(grid.inside, grid.best_value, 0.0)[:, np.newaxis] * np.ones(points)
    vertex = np.zeros(u.shape, dtype=np.bool_)
    factor = cmdp.discount / (1.0 - cmdp.discount)
    inside = grid.inside
    converged, sweeps = False, 0
    new = np.empty_like(u)
    while not converged and sweeps < max_sweeps:
        q = problem.pair_values(u)
        best = np.maximum.reduceat(q, cmdp.state_ptr[:-1], axis=0)
        best[~inside] = 0.0
        concave_envelope(best, new, vertex)
        sweeps += 1
        change = (new - u)[inside]
        low, high = float(change.min()), float(change.max())
        u = new + 0.5 * factor * (low + high)
        u[~inside] = 0.0
        scale = max(1.0, float(np.abs(u).max()))
        converged = factor * (high - low) <= tolerance * scale
    q = problem.pair_values(u)
    best = np.maximum.reduceat(q, cmdp.state_ptr[:-1], axis=0)
    best[~inside] = 0.0
    concave_envelope(best, new, vertex)
    vertex[~inside] = False
    nodes = problem.nodes(q, best, vertex)
    return SlackPlan(
        top=problem.top,
        u=new,
        nodes=nodes,
        worth=new[vertex],
        converged=converged,
        sweeps=sweeps,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _SlackProblem:
    """The discounted problem on states and slack."""

    grid: PromiseGrid
    points: int
    top: FloatArray
    fits: BoolArray  # (pairs, G)
    target: FloatArray  # promises, entry by entry of the rows (pair, j)
    place: IntArray
    share: FloatArray
    lifted: UncertaintySet | None
    expect: sp.csr_array | None

    @classmethod
    def on(cls, grid: PromiseGrid, points: int) -> _SlackProblem:
        judge = grid.judge
        cmdp, sets = judge.cmdp, judge.sets
        excess = np.maximum(
            grid.pair_costs(grid.least) - grid.least[cmdp.pair_state], 0.0
        )
        top = np.minimum(useful_slack(grid, excess), grid.cap - grid.least)
        top = np.where(grid.inside, np.maximum(top, 0.0), 0.0)
        ladder = np.arange(points) / (points - 1)
        slack = top[cmdp.pair_state, np.newaxis] * ladder  # (pairs, G)
        fits = grid.allowed[:, np.newaxis] & (excess[:, np.newaxis] <= slack)
        left = np.maximum(slack - excess[:, np.newaxis], 0.0)
        if cmdp.discount > 0.0:
            left = left / cmdp.discount
        rows = np.repeat(np.arange(cmdp.n_pairs), points)
        pointers, entries = gather_rows(sets.row_ptr, rows)
        state = sets.successor[entries]
        slack_after = np.repeat(left.ravel(), np.diff(pointers))
        target = grid.least[state] + np.minimum(slack_after, top[state])
        place = np.empty(state.size, dtype=np.int64)
        share = np.empty(state.size)
        value_of_promises(
            state,
            target,
            grid.least,
            top / (points - 1),
            np.zeros((cmdp.n_states, points)),
            place,
            share,
            np.empty(state.size),
        )
        lifted: UncertaintySet | None = None
        expect: sp.csr_array | None = None
        if judge.objective == "worst":
            lifted = sets.lift(rows, np.arange(entries.size), entries.size)
        else:
            expect = sp.csr_array(
                (
                    cmdp.discount * judge.nominal[entries],
                    np.arange(entries.size),
                    pointers,
                ),
                shape=(rows.size, entries.size),
            )
        return cls(
            grid=grid,
            points=points,
            top=top,
            fits=fits,
            target=target,
            place=place,
            share=share,
            lifted=lifted,
            expect=expect,
        )

    def pair_values(self, u: FloatArray) -> FloatArray:
        """Return what each pair earns at each slack, ``(pairs, G)``; −inf if not."""
        cmdp = self.grid.judge.cmdp
        flat = u.ravel()
        after = np.minimum(self.place + 1, flat.size - 1)
        value = flat[self.place] + self.share * (flat[after] - flat[self.place])
        if self.expect is not None:
            q = (self.expect @ value).reshape(cmdp.n_pairs, self.points)
            q += cmdp.reward[:, np.newaxis]
        else:
            assert self.lifted is not None
            q = self.lifted.backup(
                value,
                np.repeat(cmdp.reward, self.points),
                cmdp.discount,
                sense="min",
            ).reshape(cmdp.n_pairs, self.points)
        q[~self.fits] = -np.inf
        return q

    def nodes(self, q: FloatArray, best: FloatArray, vertex: BoolArray) -> Nodes:
        """Return the plan whose nodes are the vertices, each with its best pair."""
        cmdp, sets = self.grid.judge.cmdp, self.grid.judge.sets
        state, point = np.nonzero(vertex)
        hits = q == best[cmdp.pair_state]
        index = np.where(hits, np.arange(cmdp.n_pairs)[:, np.newaxis], cmdp.n_pairs)
        pair = np.minimum.reduceat(index, cmdp.state_ptr[:-1], axis=0)[state, point]
        rows = np.repeat(np.arange(cmdp.n_pairs), self.points)
        pointers, _ = gather_rows(sets.row_ptr, rows)
        _, entries = gather_rows(pointers, pair * self.points + point)
        share = point / (self.points - 1)
        return Nodes(
            ptr=np.concatenate([[0], np.cumsum(vertex.sum(axis=1))]),
            promise=self.grid.least[state] + self.top[state] * share,
            row_node=np.arange(state.size),
            row_pair=pair,
            row_weight=np.ones(state.size),
            target=self.target[entries],
        )


def useful_slack(grid: PromiseGrid, excess: FloatArray) -> FloatArray:
    """Return for each state the slack that pays for the unbudgeted plan for ever.

    The largest total of discounted excesses along any path: nature may pick it.
    """
    judge = grid.judge
    cmdp, sets = judge.cmdp, judge.sets
    pairs = grid.best_pairs
    own = np.where(grid.inside, excess[pairs], 0.0)
    pointers, entries = gather_rows(sets.row_ptr, pairs)
    state = sets.successor[entries]
    counted = sets.reachable[entries] & grid.inside[state]
    most = float(own.max(initial=0.0)) / (1.0 - cmdp.discount)
    z = np.zeros(cmdp.n_states)
    for _ in range(10_000):
        onward = np.maximum.reduceat(np.where(counted, z[state], 0.0), pointers[:-1])
        new = own + cmdp.discount * onward
        if (new <= z + 1e-12 * max(1.0, most)).all():
            break
        z = new
    return np.where(grid.inside, np.minimum(z * (1.0 + 1e-9) + 1e-12, most), 0.0)
