r"""Policy iteration on states and promises, the work of Promise-DP.

A plan says for each state and each promise of its grid which *points* it mixes: a
pair, and promises for the states that may come.  Each round collects points, takes the
best mixture of two at every promise, and evaluates the plan that results exactly.  See
:mod:`escapade.planning.promise_dp` for the game that finds the points.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from escapade.kernels.promise import (
    concave_envelope,
    mixtures,
    priced_promises,
    value_of_promises,
)
from escapade.model.evaluation import discounted_sums
from escapade.planning.promise_nodes import Nodes, PromiseGrid
from escapade.planning.robust_operator import RobustOperator, robust_policy_value
from escapade.planning.slack_dp import SlackPlan
from escapade.typing import BoolArray, FloatArray, IndexArray, IntArray
from escapade.uncertainty.rows import gather_rows

__all__ = ["Rounds"]

_NATURES_MOVES = 16
_SMALLEST_MOVE = 0.02
_SETTLED = 1e-5  # an improvement, relative to the worth, that ends the rounds


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Points:
    """Ways to act in a state: a pair, and promises for what may come.

    ``target`` holds one promise an entry of the set's row of ``pair``.
    """

    pair: IntArray
    cost: FloatArray
    target: FloatArray


class Rounds:
    """Policy iteration on states and promises.

    ``earning`` and ``spending`` are the kernels of the last game, for reward and cost,
    on the entries of the rows (pair, price); ``prices`` rise from 0.
    """

    def __init__(self, grid: PromiseGrid, points: int, slack: SlackPlan) -> None:
        self.grid, self.points = grid, points
        judge = grid.judge
        self.cmdp, self.sets = judge.cmdp, judge.sets
        self.worst = judge.objective == "worst"
        self.low = grid.least
        self.step = self._useful() / (points - 1)
        self.high = self.low + self.step * (points - 1)
        self.rows = np.repeat(np.flatnonzero(grid.allowed), points)
        self.ptr, self.entries = gather_rows(self.sets.row_ptr, self.rows)
        self.state = np.ascontiguousarray(self.sets.successor[self.entries])
        self.lifted = self.sets.lift(
            self.rows, np.arange(self.entries.size), self.entries.size
        )
        self.nominal = judge.nominal[self.entries]
        self.earning: FloatArray = self.nominal.copy()
        self.spending: FloatArray = self.lifted.worst_kernel(
            self.low[self.state], sense="max"
        )
        self.u = self._from_slack(slack)
        self.prices = self._prices()
        self.moves = 0
        self.kept = self._slack_points()
        self.mix: tuple[IntArray, IntArray, FloatArray] | None = None
        self.pool: Points | None = None

    # -- the grid ----------------------------------------------------------------------

    def _useful(self) -> FloatArray:
        """Return how far promises are of use above the least."""
        grid, cmdp = self.grid, self.cmdp
        weights = np.zeros(cmdp.n_pairs)
        weights[grid.best_pairs] = 1.0
        operator = RobustOperator(
            self.sets,
            cmdp.state_ptr,
            cmdp.cost[0],
            cmdp.discount,
            nature="max",
            weights=weights,
            live=grid.inside,
        )
        spent = robust_policy_value(operator, precision=1e-9).upper
        most = np.minimum(spent * (1.0 + 1e-9), grid.cap) - grid.least
        return np.where(grid.inside, np.maximum(most, 0.0), 0.0)

    def _from_slack(self, slack: SlackPlan) -> FloatArray:
        """Read the worth of the slack plan at the promises of this grid."""
        u = np.zeros((self.cmdp.n_states, self.points))
        ladder = np.arange(self.points)
        for s in np.flatnonzero(self.grid.inside):
            own = np.linspace(0.0, slack.top[s], slack.u.shape[1])
            u[s] = np.interp(ladder * self.step[s], own, slack.u[s])
        return u

    def _prices(self) -> FloatArray:
        """Return prices from 0 to where nothing but the least promise is worth it."""
        moving = self.step > 0.0
        slopes = np.diff(self.u[moving], axis=1) / self.step[moving, np.newaxis]
        scale = (self.cmdp.reward_max or 1.0) / (float(self.cmdp.cost_max[0]) or 1.0)
        positive = slopes[slopes > 1e-6 * scale]
        least, most = 1e-3 * scale, scale
        if positive.size:
            least = min(least, float(np.quantile(positive, 0.02)))
            most = max(float(positive.max()), 2.0 * least)
        spread = np.geomspace(least, 4.0 * most, self.points - 1)
        return np.concatenate([[0.0], spread])

    def _value_at(self, state: IndexArray, target: FloatArray) -> FloatArray:
        value = np.empty(state.size)
        value_of_promises(
            state,
            target,
            self.low,
            self.step,
            self.u,
            np.empty(state.size, dtype=np.int64),
            np.empty(state.size),
            value,
        )
        return value

    # -- points ------------------------------------------------------------------------

    def _slack_points(self) -> Points:
        """Return the ways of acting that leave the same slack everywhere (rule R0)."""
        grid, cmdp = self.grid, self.cmdp
        excess = np.maximum(
            grid.pair_costs(grid.least) - grid.least[cmdp.pair_state], 0.0
        )[self.rows]
        ladder = np.tile(np.arange(self.points), self.rows.size // self.points)
        slack = self.step[cmdp.pair_state[self.rows]] * ladder
        fits = excess <= slack
        left = np.maximum(slack - excess, 0.0)
        if cmdp.discount > 0.0:
            left = left / cmdp.discount
        per_entry = np.repeat(left, np.diff(self.ptr))
        target = np.minimum(self.low[self.state] + per_entry, self.high[self.state])
        return self._chosen(np.flatnonzero(fits), target)

    def _chosen(self, rows: IntArray, target: FloatArray) -> Points:
        """Return the points of some rows, with what they cost at worst."""
        cost = self.lifted.backup(
            target, self.cmdp.cost[0][self.rows], self.cmdp.discount, sense="max"
        )
        _, entries = gather_rows(self.ptr, rows)
        return Points(pair=self.rows[rows], cost=cost[rows], target=target[entries])

    def _play(self) -> tuple[FloatArray, FloatArray]:
        """Let planner and nature answer each other; return the planner's promises.

        The last ones, and their average.
        """
        price = np.tile(self.prices, self.rows.size // self.points)
        per_entry = np.repeat(price, np.diff(self.ptr))
        average = np.zeros(self.state.size)
        promise = np.empty(self.state.size)
        total = 0.0
        for move in range(1, _NATURES_MOVES + 1):
            with np.errstate(divide="ignore", invalid="ignore"):
                asked = np.where(
                    self.earning > 0.0,
                    per_entry * self.spending / self.earning,
                    np.inf,
                )
            priced_promises(self.state, asked, self.low, self.step, self.u, promise)
            total += move
            average += (move / total) * (promise - average)
            # each round begins where nature stood: small steps, never none
            self.moves += 1
            step = max(2.0 / (self.moves + 2.0), _SMALLEST_MOVE)
            answer = self.lifted.worst_kernel(promise, sense="max")
            self.spending += step * (answer - self.spending)
            if self.worst:
                earned = self._value_at(self.state, promise)
                spoiled = self.lifted.worst_kernel(earned, sense="min")
                self.earning += step * (spoiled - self.earning)
        return promise, average

    # -- a round -----------------------------------------------------------------------

    def improve(self) -> bool:
        """Improve the plan once; tell whether that was worth it."""
        last, average = self._play()
        every = np.arange(self.rows.size)
        pool = _joined(
            [self.kept, self._chosen(every, average), self._chosen(every, last)]
        )
        before = self._worth()
        self._mix(pool)
        self.u = self._evaluated()
        after = self._worth()
        return after - before > _SETTLED * max(1.0, abs(after))

    def _worth(self) -> float:
        """Return what the plan earns when each start is promised the whole budget."""
        starts = np.flatnonzero(self.cmdp.start > 0.0).astype(np.int32)
        promise = np.full(starts.size, float(self.cmdp.budget[0]))
        return float(self.cmdp.start[starts] @ self._value_at(starts, promise))

    def _mix(self, pool: Points) -> None:
        """Take the best mixture of two points at each promise; keep what is used."""
        cmdp, sets = self.cmdp, self.sets
        ptr, entries = gather_rows(sets.row_ptr, pool.pair)
        value = self._point_values(pool, ptr, entries)
        state = cmdp.pair_state[pool.pair]
        # the fallback costs no more than the least promise, rounding aside
        cost = np.maximum(pool.cost, self.low[state])
        order = np.lexsort((-value, cost, state))
        shape = (cmdp.n_states, self.points)
        first, second = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        share, u = np.zeros(shape), np.zeros(shape)
        point_ptr = np.searchsorted(state[order], np.arange(cmdp.n_states + 1))
        inside = np.flatnonzero(self.grid.inside)
        mixed = [np.zeros((inside.size, self.points), np.int64) for _ in range(2)]
        part, worth = np.zeros(mixed[0].shape), np.zeros(mixed[0].shape)
        bounds = np.append(point_ptr[:-1][inside], point_ptr[-1])
        mixtures(
            bounds,
            cost[order],
            value[order],
            self.low[inside],
            self.step[inside],
            mixed[0],
            mixed[1],
            part,
            worth,
        )
        used = np.unique(np.concatenate([order[mixed[0]], order[mixed[1]]]))
        renumber = np.zeros(order.size, dtype=np.int64)
        renumber[used] = np.arange(used.size)
        first[inside] = renumber[order[mixed[0]]]
        second[inside] = renumber[order[mixed[1]]]
        share[inside], u[inside] = part, worth
        _, kept = gather_rows(ptr, used)
        self.kept = Points(
            pair=pool.pair[used], cost=pool.cost[used], target=pool.target[kept]
        )
        self.mix = (first, second, share)

    def _point_values(
        self, pool: Points, ptr: IntArray, entries: IntArray
    ) -> FloatArray:
        """Return what each point earns, promises valued by the present plan."""
        cmdp = self.cmdp
        state = np.ascontiguousarray(self.sets.successor[entries])
        after = self._value_at(state, pool.target)
        reward = cmdp.reward[pool.pair]
        if self.worst:
            lifted = self.sets.lift(pool.pair, np.arange(entries.size), entries.size)
            return lifted.backup(after, reward, cmdp.discount, sense="min")
        expected = np.add.reduceat(self.grid.judge.nominal[entries] * after, ptr[:-1])
        earned: FloatArray = reward + cmdp.discount * expected
        return earned

    def _evaluated(self) -> FloatArray:
        """Return what the plan earns, exactly, from every promise of the grid."""
        assert self.mix is not None
        cmdp, sets, kept = self.cmdp, self.sets, self.kept
        first, second, share = self.mix
        ptr, entries = gather_rows(sets.row_ptr, kept.pair)
        state = np.ascontiguousarray(sets.successor[entries])
        place = np.empty(state.size, dtype=np.int64)
        part = np.empty(state.size)
        value_of_promises(
            state,
            kept.target,
            self.low,
            self.step,
            self.u,
            place,
            part,
            np.empty(state.size),
        )
        n = self.u.size
        rows = np.arange(state.size)
        spread = sp.csr_array(
            (
                np.concatenate([1.0 - part, part]),
                (
                    np.concatenate([rows, rows]),
                    np.concatenate([place, np.minimum(place + 1, n - 1)]),
                ),
            ),
            shape=(state.size, n),
        )
        inside = np.repeat(self.grid.inside, self.points)
        chosen = np.concatenate([first.ravel(), second.ravel()])
        weight = np.concatenate([1.0 - share.ravel(), share.ravel()])
        weight = weight * np.tile(inside, 2)
        choice = sp.csr_array(
            (weight, (np.tile(np.arange(n), 2), chosen)), shape=(n, kept.pair.size)
        )
        if self.worst:
            worth = self._robust_worth(choice, spread, inside)
        else:
            kernel = sp.csr_array(
                (self.grid.judge.nominal[entries], rows, ptr),
                shape=(kept.pair.size, state.size),
            )
            chain = sp.csr_array(choice @ (kernel @ spread))
            gain: FloatArray = np.asarray(choice @ cmdp.reward[kept.pair])
            found, _, _ = discounted_sums(
                chain, gain[:, np.newaxis], cmdp.discount, 1e-9, strict=False
            )
            worth = found[:, 0]
        u = np.zeros_like(self.u)
        concave_envelope(
            worth.reshape(self.u.shape), u, np.zeros(u.shape, dtype=np.bool_)
        )
        u[~self.grid.inside] = 0.0
        return u

    def _robust_worth(
        self,
        choice: sp.csr_array,
        spread: sp.csr_array,
        inside: BoolArray,
    ) -> FloatArray:
        """Evaluate the plan under the kernel that is worst for its reward."""
        cmdp, kept = self.cmdp, self.kept
        choice.sum_duplicates()
        # one row for each node and point: the operator averages over a node's rows
        node_rows = sp.csr_array(choice)
        used = node_rows.indices.astype(np.int64)
        lengths = np.diff(self.sets.row_ptr)[kept.pair]
        starts = np.concatenate([[0], np.cumsum(lengths)])
        _, spots = gather_rows(starts, used)
        lifted = self.sets.lift(kept.pair[used], np.arange(spots.size), spots.size)
        live = np.diff(node_rows.indptr) > 0
        live &= inside
        operator = RobustOperator(
            lifted,
            node_rows.indptr.astype(np.int64),
            cmdp.reward[kept.pair[used]],
            cmdp.discount,
            nature="min",
            weights=node_rows.data,
            live=live,
            spread=sp.csr_array(spread[spots]),
        )
        return robust_policy_value(operator, precision=1e-8).lower

    # -- the plan ----------------------------------------------------------------------

    def plan(self) -> tuple[Nodes, FloatArray]:
        """Return the plan as nodes, with what they earn."""
        assert self.mix is not None
        first, second, share = self.mix
        kept, sets, cmdp = self.kept, self.sets, self.cmdp
        vertex = np.zeros(self.u.shape, dtype=np.bool_)
        concave_envelope(self.u.copy(), np.empty_like(self.u), vertex)
        vertex[~self.grid.inside] = False
        state, point = np.nonzero(vertex)
        one, two = first[state, point], second[state, point]
        part = share[state, point]
        merged = (kept.pair[one] == kept.pair[two]) & (part > 0.0)
        starts, _ = gather_rows(sets.row_ptr, kept.pair)
        lengths = np.diff(starts)
        node = np.arange(state.size)
        apart = np.flatnonzero((part > 0.0) & ~merged)
        row_node = np.concatenate([node, apart])
        row_point = np.concatenate([one, two[apart]])
        weight = np.concatenate([np.where(merged, 1.0, 1.0 - part), part[apart]])
        _, entries = gather_rows(starts, row_point)
        target = kept.target[entries]
        # one action, two promises: their mean costs no more and earns no less
        other = np.concatenate([two, two[apart]])
        lean = np.concatenate([np.where(merged, part, 0.0), np.zeros(apart.size)])
        other = np.where(lean > 0.0, other, row_point)
        _, others = gather_rows(starts, other)
        mean = np.repeat(lean, lengths[row_point])
        target = (1.0 - mean) * target + mean * kept.target[others]
        order = np.lexsort((cmdp.pair_action[kept.pair[row_point]], row_node))
        pointers = np.concatenate([[0], np.cumsum(lengths[row_point])])
        _, shuffled = gather_rows(pointers, order)
        nodes = Nodes(
            ptr=np.concatenate([[0], np.cumsum(vertex.sum(axis=1))]),
            promise=self.low[state] + self.step[state] * point,
            row_node=row_node[order],
            row_pair=kept.pair[row_point][order],
            row_weight=weight[order],
            target=target[shuffled],
        )
        return nodes, self.u[state, point]


def _joined(parts: list[Points]) -> Points:
    return Points(
        pair=np.concatenate([part.pair for part in parts]),
        cost=np.concatenate([part.cost for part in parts]),
        target=np.concatenate([part.target for part in parts]),
    )
