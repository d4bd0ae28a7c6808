r"""Promises as memory: the grid they are planned on, and the policy that keeps them.

A promise ``b`` made in state ``s`` bounds what may still be spent, in expectation under
the worst kernels, from there on.  It can be kept by action ``a`` and promises ``b'`` in
the states that may come if

.. math:: c(s,a) + \gamma \max_{P \in \mathcal{P}_{sa}} \sum_{s'} P(s') \, b'(s')
          \le b, \qquad w \le b',

with ``w`` the fallback's cost-to-go, the least promise that can be made.  Two kinds of
budget are offered:

*at all times*: no promise may exceed ``d``, so the cost to come stays within the budget
from every moment on; plans live on the promisable states ``X``;
*from the start*: only the first promise is ``d``; what is not spent early may be
promised later.

Plans draw lots between two promises where one between them would be wanted: the mean is
kept, and what can be earned becomes concave in the promise.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from escapade.errors import refusal
from escapade.kernels.promise import between_nodes
from escapade.model.memory_policy import MemoryPolicy
from escapade.model.policy import Policy
from escapade.planning.fallback import fallback
from escapade.planning.robust_certificate import Judge, Judged
from escapade.planning.robust_evaluation import start_mean
from escapade.planning.robust_operator import RobustOperator, robust_control
from escapade.planning.solution import Solution
from escapade.typing import BoolArray, FloatArray, IntArray
from escapade.uncertainty.l1_ball import L1Ball
from escapade.uncertainty.rows import gather_rows

__all__ = [
    "NoPromise",
    "Nodes",
    "PromiseGrid",
    "best_plan",
    "memory_policy",
    "open_grid",
    "start_promises",
    "without",
]

_MARGIN = 1e-9  # of the budget, kept back for rounding


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PromiseGrid:
    """Where promises can be made, and what is known of each state.

    Attributes
    ----------
    judge
        Of the robust problem.
    inside
        Mask ``(S,)`` of the states where promises are made.
    allowed
        Mask ``(pairs,)`` of the actions that stay inside whatever happens.
    least
        ``(S,)``; the least promise, the fallback's cost-to-go; 0 outside.
    cap
        The largest promise that may be made.
    fallback
        The fallback's policy.
    fallback_pairs
        ``(S,)``; its pairs.
    beyond
        ``(S,)``; what the fallback costs where nothing is promised.
    best_value, best_pairs
        ``(S,)``; the objective, and the policy, of a plan that need not save.
    """

    judge: Judge
    inside: BoolArray
    allowed: BoolArray
    least: FloatArray
    cap: float
    fallback: Policy
    fallback_pairs: IntArray
    beyond: FloatArray
    best_value: FloatArray
    best_pairs: IntArray

    def pair_costs(self, promise: FloatArray) -> FloatArray:
        """Return what each pair costs if it leads to ``promise`` in every state."""
        cmdp = self.judge.cmdp
        return self.judge.sets.backup(promise, cmdp.cost[0], cmdp.discount, sense="max")


@dataclass(frozen=True, slots=True, kw_only=True)
class NoPromise:
    """Why the start cannot be promised the budget; ``certain`` if nobody could."""

    reason: str
    certain: bool


def open_grid(judge: Judge, *, at_all_times: bool) -> PromiseGrid | NoPromise:
    """Find what can be promised, or why nothing can from the start."""
    cmdp = judge.cmdp
    if cmdp.n_costs > 1:
        raise refusal(
            "problem", "a single budget; RobustLP takes several", cmdp.n_costs
        )
    if judge.models:
        raise refusal(
            "uncertainty",
            "a set that is rectangular over pairs, which promises need",
            "one model throughout; take its rectangular hull, or RobustLP",
        )
    budget = float(cmdp.budget[0])
    most = float(cmdp.cost_max[0]) / (1.0 - cmdp.discount)
    limit = budget if at_all_times else 2.0 * (most + 1.0)
    found = fallback(cmdp, judge.sets, budget=limit, precision=judge.precision)
    least = np.where(found.promisable, found.cost_to_go[0], 0.0)
    if not found.covers(cmdp.start):
        # with a little more, would it be enough?  then rounding may be to blame
        more = limit + 1e-6 * (limit + float(cmdp.cost_max[0]))
        again = fallback(cmdp, judge.sets, budget=more, precision=judge.precision)
        state = int(np.flatnonzero((cmdp.start > 0.0) & ~found.promisable)[0])
        reason = found.why(state)
        if at_all_times:
            reason += (
                "; from the start alone the budget may be kept (at_all_times=False)"
            )
        return NoPromise(
            reason=reason,
            certain=judge.sets.exact and not again.covers(cmdp.start),
        )
    expected = float(cmdp.start @ least)
    if not at_all_times and expected > budget:
        return NoPromise(
            reason=f"the least worst-case cost from the start is {expected:.8g}, the "
            f"budget is {budget:.8g}",
            certain=judge.sets.exact
            and expected - found.width > budget * (1.0 + 1e-12),
        )
    actions = found.policy.actions
    pairs = cmdp.state_ptr[:-1] + np.array(
        [
            np.searchsorted(cmdp.pair_action[a:b], action)
            for a, b, action in zip(
                cmdp.state_ptr[:-1], cmdp.state_ptr[1:], actions, strict=True
            )
        ],
        dtype=np.int64,
    )
    worst = judge.objective == "worst"
    unbudgeted = robust_control(
        RobustOperator(
            judge.sets if worst else L1Ball(cmdp, radius=0.0),
            cmdp.state_ptr,
            cmdp.reward,
            cmdp.discount,
            nature="min",
            select="max",
            allowed=found.allowed,
        ),
        precision=1e-9,
    )
    assert unbudgeted.pairs is not None
    return PromiseGrid(
        judge=judge,
        inside=found.promisable,
        allowed=found.allowed,
        least=least,
        cap=budget - _MARGIN * budget if at_all_times else most,
        fallback=found.policy,
        fallback_pairs=pairs,
        beyond=np.where(found.promisable, 0.0, found.unrestricted_cost[0]),
        best_value=unbudgeted.lower,
        best_pairs=unbudgeted.pairs,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Nodes:
    """A plan: nodes by state, rising in their promise, and what each of them does.

    Attributes
    ----------
    ptr
        ``[S + 1]``; the nodes of each state; none where nothing is promised.
    promise
        ``[M]``.
    row_node, row_pair, row_weight
        ``[R]``; for each node the pairs it may take, by action, and how often.
    target
        Promises to be made in the successors, one an entry of the set's row of
        ``row_pair``, row after row.
    """

    ptr: IntArray
    promise: FloatArray
    row_node: IntArray
    row_pair: IntArray
    row_weight: FloatArray
    target: FloatArray


def memory_policy(
    grid: PromiseGrid, nodes: Nodes, first_promise: FloatArray, name: str
) -> MemoryPolicy:
    """Return the policy that carries out a plan.

    ``first_promise`` is what a lifetime that begins in each state is promised.  States
    where nothing can be promised get one node, which plays the fallback.
    """
    cmdp, sets = grid.judge.cmdp, grid.judge.sets
    outside = np.flatnonzero(~grid.inside)
    counts = np.diff(nodes.ptr) + ~grid.inside
    ptr = np.concatenate([[0], np.cumsum(counts)])
    node_state = np.repeat(np.arange(cmdp.n_states), counts)
    moved = ptr[:-1] - nodes.ptr[:-1]  # how far the nodes of a state have moved
    own_state = np.repeat(np.arange(cmdp.n_states), np.diff(nodes.ptr))
    promise = np.empty(node_state.size)
    promise[np.arange(nodes.promise.size) + moved[own_state]] = nodes.promise
    promise[ptr[:-1][outside]] = grid.beyond[outside]

    row_node = np.concatenate(
        [nodes.row_node + moved[own_state[nodes.row_node]], ptr[:-1][outside]]
    )
    row_pair = np.concatenate([nodes.row_pair, grid.fallback_pairs[outside]])
    weight = np.concatenate([nodes.row_weight, np.ones(outside.size)])
    _, entries = gather_rows(sets.row_ptr, row_pair)
    target = np.concatenate([nodes.target, np.zeros(entries.size - nodes.target.size)])
    order = np.lexsort((cmdp.pair_action[row_pair], row_node))
    # the entries of the rows in their new order
    starts, _ = gather_rows(sets.row_ptr, row_pair)
    _, shuffled = gather_rows(starts, order)
    entries, target = entries[shuffled], target[shuffled]
    row_node, row_pair, weight = row_node[order], row_pair[order], weight[order]

    kept = sets.reachable[entries]
    lengths = np.diff(sets.row_ptr)[row_pair]
    row = np.repeat(np.arange(row_pair.size), lengths)[kept]
    successor = sets.successor[entries[kept]]
    choice = np.zeros((node_state.size, cmdp.n_actions))
    choice[row_node, cmdp.pair_action[row_pair]] = weight
    return MemoryPolicy(
        n_states=cmdp.n_states,
        node_state=node_state,
        choice=Policy(choice),
        initial=_drawn(np.arange(cmdp.n_states), first_promise, ptr, promise),
        pairs=row_pair,
        row_ptr=np.searchsorted(row, np.arange(row_pair.size + 1)),
        successor=successor.astype(np.int64),
        split=_drawn(successor.astype(np.int64), target[kept], ptr, promise),
        memory=promise[:, np.newaxis],
        memory_name=name,
    )


def _drawn(
    state: IntArray, promise: FloatArray, ptr: IntArray, node_promise: FloatArray
) -> sp.csr_array:
    """Return the lots that keep promises on average, ``(entries, nodes)``."""
    below = np.empty(state.size, dtype=np.int64)
    share = np.empty(state.size)
    between_nodes(state.astype(np.int32), promise, ptr, node_promise, below, share)
    split = share > 0.0
    rows = np.arange(state.size)
    return sp.csr_array(
        (
            np.concatenate([1.0 - share, share[split]]),
            (
                np.concatenate([rows, rows[split]]),
                np.concatenate([below, below[split] + 1]),
            ),
        ),
        shape=(state.size, node_promise.size),
    )


def best_plan(grid: PromiseGrid, policies: Iterable[MemoryPolicy]) -> Judged:
    """Return the best of some plans and the fallback, within the budget for sure."""
    judge = grid.judge
    budget = judge.cmdp.budget
    own = judge.judge(grid.fallback)
    # no state's cost-to-go is over the budget, so neither is the mean
    certified = start_mean(judge.cmdp, grid.least[np.newaxis], "max")
    own = replace(own, costs=np.minimum(np.minimum(own.costs, certified), budget))
    best = judge.best([own, *(judge.judge(policy) for policy in policies)])
    assert best is not None
    return best


def without(judge: Judge, none: NoPromise, *, solver: str, began: float) -> Solution:
    """Return the result when the start cannot be promised the budget."""
    if none.certain:
        return judge.infeasible(none.reason, solver=solver, began=began)
    upper = judge.relaxation(1e-8).upper
    return judge.unresolved(none.reason, upper, solver=solver, began=began)


def start_promises(
    grid: PromiseGrid, ptr: IntArray, promise: FloatArray, worth: FloatArray
) -> FloatArray:
    """Return the first promise of each state, ``(S,)``.

    At all times it is the whole budget everywhere.  From the start only their mean is
    bounded: the budget goes where a unit of it earns most, along the concave worth of
    the nodes.
    """
    cmdp = grid.judge.cmdp
    budget = float(cmdp.budget[0]) * (1.0 - _MARGIN)
    first: FloatArray = np.full(cmdp.n_states, min(budget, grid.cap))
    starts = np.flatnonzero(cmdp.start > 0.0)
    if grid.cap <= budget or starts.size == 1:
        return first
    first[starts] = grid.least[starts]
    left = budget - float(cmdp.start @ grid.least)
    segments = []
    for s in starts:
        for node in range(ptr[s], ptr[s + 1] - 1):
            width = promise[node + 1] - promise[node]
            segments.append(((worth[node + 1] - worth[node]) / width, s, width))
    # concave: the segments of a state come in order
    for _, s, width in sorted(segments, key=lambda segment: -segment[0]):
        taken = min(width, max(left, 0.0) / cmdp.start[s])
        first[s] += taken
        left -= taken * cmdp.start[s]
    return first
