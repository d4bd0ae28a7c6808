r"""Least expected hitting times, with bounds that are certified.

How many steps does the best policy need, on average, from every state to a set of
targets?  The answer is the least non-negative solution of

.. math:: h(s) = \min_a \Big[ 1 + \sum_{s'} P_{sa}(s') h(s') \Big],
          \qquad h = 0 \text{ on the targets},

an undiscounted shortest path in expectation: the inner part of the diameter.  It is
finite exactly where some policy reaches the targets surely, which a search on the graph
decides first (the greatest set of states that can reach the targets without ever
risking to leave the set).

Time spent waiting in a state is eliminated beforehand.  Then Gauss-Seidel sweeps in the
order of distance from the targets, extrapolated, and if they are slow (random walks)
policy iteration with a direct solve.  Neither is trusted: with T the operator above,
any h ≥ 0 with :math:`-\kappa_1 \le T h - h \le \kappa_2 < 1` satisfies

.. math:: \frac{h}{1 + \kappa_1} \;\le\; h^* \;\le\; \frac{h}{1 - \kappa_2},

the right side because :math:`h/(1-\kappa_2)` is a supersolution of its greedy policy,
the left because :math:`h/(1+\kappa_1)` is a subsolution of every policy.  A residual in
steps is thus a relative error, however long the times are.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spla

from escapade.errors import refusal
from escapade.kernels import hitting
from escapade.model.cmdp import CMDP
from escapade.theory.arguments import read_positive
from escapade.typing import BoolArray, FloatArray, IndexArray, IntArray

__all__ = ["HittingTimes", "ShortestPath", "hitting_times"]

_DENSE_UP_TO_STATES = 200
_DENSE_WITHIN_STATES = 5_000
_FILL_TO_GO_DENSE = 0.15
_SWEEP_BLOCKS = 250
_POLICY_ITERATIONS = 60
_IMPROVEMENT_MARGIN = 1e-13


@dataclass(frozen=True, slots=True, kw_only=True)
class HittingTimes:
    """Least expected steps from every state to the targets, between two bounds.

    Attributes
    ----------
    lower, upper
        Certified bounds ``(S,)``; infinite where no policy reaches the targets surely.
    finite
        Mask ``(S,)`` of the states from which some policy does.
    actions
        Action ``(S,)`` of a policy whose expected times are at most ``upper``; -1 on
        the targets and where the time is infinite.
    tolerance
        Relative width that was asked for.
    """

    lower: FloatArray
    upper: FloatArray
    finite: BoolArray
    actions: IntArray
    tolerance: float

    @property
    def certified(self) -> bool:
        """Whether the bounds are within the tolerance of each other."""
        low, high = self.lower[self.finite], self.upper[self.finite]
        return bool((high <= low * (1.0 + self.tolerance)).all())


class ShortestPath:
    """A CMDP's transitions with all waiting eliminated, ready for the kernels.

    A pair that stays where it is with probability p is left after 1/(1−p) steps on
    average; it becomes a pair of that duration which surely moves.  Pairs that never
    move are not usable.
    """

    __slots__ = (
        "_dense",
        "duration",
        "n_states",
        "probability",
        "row_ptr",
        "source",
        "source_ptr",
        "state_ptr",
        "successor",
        "usable",
    )

    def __init__(self, cmdp: CMDP) -> None:
        n_states, n_pairs = cmdp.n_states, cmdp.n_pairs
        row = np.repeat(np.arange(n_pairs), np.diff(cmdp.row_ptr))
        moving = cmdp.successor != cmdp.pair_state[row]
        row, successor = row[moving], cmdp.successor[moving]
        weight = cmdp.probability[moving]
        # 1 - p is summed from the moves, as the difference would lose its digits.
        leaving = np.bincount(row, weight, minlength=n_pairs)
        self.n_states = n_states
        self.state_ptr: IntArray = np.array(cmdp.state_ptr)
        self.row_ptr: IntArray = np.zeros(n_pairs + 1, dtype=np.int64)
        np.cumsum(np.bincount(row, minlength=n_pairs), out=self.row_ptr[1:])
        self.successor: IndexArray = np.array(successor)
        self.probability: FloatArray = weight / leaving[row]
        self.usable: BoolArray = leaving > 0.0
        self.duration: FloatArray = np.ones(n_pairs)
        self.duration[self.usable] = 1.0 / leaving[self.usable]
        links = sp.csr_array(
            (np.ones(row.size, dtype=np.int8), (successor, cmdp.pair_state[row])),
            shape=(n_states, n_states),
        )
        links.sum_duplicates()
        self.source_ptr: IntArray = links.indptr.astype(np.int64)
        self.source: IndexArray = links.indices.astype(np.int32)
        self._dense = n_states <= _DENSE_UP_TO_STATES

    def rows(
        self,
    ) -> tuple[IntArray, IntArray, IndexArray, FloatArray, FloatArray]:
        """Return the arrays that kernels take first."""
        return (
            self.state_ptr,
            self.row_ptr,
            self.successor,
            self.probability,
            self.duration,
        )

    def search(self, is_target: BoolArray) -> tuple[IndexArray, IndexArray]:
        """Return the other states in order of distance, and all distances."""
        order = np.empty(self.n_states, dtype=np.int32)
        distance = np.empty(self.n_states, dtype=np.int32)
        count = hitting.distance_order(
            self.source_ptr, self.source, is_target, order, distance
        )
        return order[int(is_target.sum()) : count], distance

    def solve(
        self,
        is_target: BoolArray,
        usable: BoolArray,
        order: IndexArray,
        distance: IndexArray,
        *,
        tolerance: float,
        blocks: int,
    ) -> tuple[FloatArray, float, float]:
        """Return h, κ_up and κ_low on ``order``; sweeps first, then exact solves."""
        h = np.zeros(self.n_states)
        if order.size == 0:
            return h, 0.0, 0.0
        rows = self.rows()
        hitting.first_guess(*rows, usable, order, distance, h)
        status, *_ = hitting.approach(
            *rows,
            usable,
            order,
            -1.0,
            tolerance,
            blocks,
            h,
            np.zeros((3, self.n_states)),
        )
        if status != hitting.SOLVED:
            h = self._iterate_policies(is_target, usable, order, h, tolerance)
        up, low, _, _ = hitting.certify(*rows, usable, order, h)
        return h, float(up), float(low)

    def _iterate_policies(
        self,
        is_target: BoolArray,
        usable: BoolArray,
        order: IndexArray,
        h: FloatArray,
        tolerance: float,
    ) -> FloatArray:
        """Policy iteration from the greedy policy of h, made to reach the targets."""
        rows = self.rows()
        chosen = np.full(self.n_states, -1, dtype=np.int64)
        hitting.greedy_pairs(*rows, usable, order, h, chosen, 0.0)
        hitting.make_proper(
            self.state_ptr,
            self.row_ptr,
            self.successor,
            usable,
            is_target,
            order,
            chosen,
        )
        best, best_width = h, self._width(usable, order, h)
        for _ in range(_POLICY_ITERATIONS):
            solved = self._policy_times(order, chosen)
            if solved is None:
                break
            width = self._width(usable, order, solved)
            if width < best_width:
                best, best_width = solved, width
            if best_width <= 0.5 * tolerance:
                break
            improved = hitting.greedy_pairs(
                *rows, usable, order, solved, chosen, _IMPROVEMENT_MARGIN
            )
            if not improved:
                break
        return best

    def _width(self, usable: BoolArray, order: IndexArray, h: FloatArray) -> float:
        up, low, _, _ = hitting.certify(*self.rows(), usable, order, h)
        return float(up + low)

    def _policy_times(self, order: IndexArray, chosen: IntArray) -> FloatArray | None:
        """Solve h = duration + Q h for the chosen pairs; None if it breaks down."""
        size = order.size
        place = np.full(self.n_states, -1, dtype=np.int64)
        place[order] = np.arange(size)
        pairs = chosen[order]
        lengths = self.row_ptr[pairs + 1] - self.row_ptr[pairs]
        starts = np.repeat(self.row_ptr[pairs] - _before(lengths), lengths)
        entries = starts + np.arange(int(lengths.sum()))
        row = np.repeat(np.arange(size), lengths)
        column = place[self.successor[entries]]
        inside = column >= 0
        matrix = sp.csc_array(
            (-self.probability[entries[inside]], (row[inside], column[inside])),
            shape=(size, size),
        ) + sp.eye_array(size, format="csc")
        times = self._linear_solve(sp.csc_array(matrix), self.duration[pairs])
        if times is None or not (np.isfinite(times).all() and (times > 0.0).all()):
            return None
        h = np.zeros(self.n_states)
        h[order] = times
        return h

    def _linear_solve(
        self, matrix: sp.csc_array, right: FloatArray
    ) -> FloatArray | None:
        size = right.size
        try:
            if self._dense:
                dense: FloatArray = np.linalg.solve(matrix.toarray(), right)
                return dense
            factors = spla.splu(matrix)
        except (np.linalg.LinAlgError, RuntimeError):  # singular to working precision
            return None
        filled = factors.L.nnz + factors.U.nnz
        if size <= _DENSE_WITHIN_STATES and filled > _FILL_TO_GO_DENSE * size**2:
            self._dense = True  # for the targets to come
        solution: FloatArray = factors.solve(right)
        return solution


def _before(lengths: IntArray) -> IntArray:
    """Return where each of some consecutive runs begins."""
    starts: IntArray = np.cumsum(lengths) - lengths
    return starts


def hitting_times(
    cmdp: CMDP, targets: int | Iterable[int], *, tolerance: float = 1e-9
) -> HittingTimes:
    """Return the least expected number of steps from every state to the targets.

    Parameters
    ----------
    cmdp
        The model; only its transitions matter.
    targets
        A state, or several of which any will do.
    tolerance
        Relative width of the bounds.

    Examples
    --------
    >>> import numpy as np
    >>> stay_or_move = np.array([[[1.0, 0.0], [0.5, 0.5]], [[0.0, 1.0], [0.0, 1.0]]])
    >>> coin = CMDP(
    ...     stay_or_move, np.zeros((2, 2)), np.zeros((2, 2)), discount=0.9, budget=1.0
    ... )
    >>> times = hitting_times(coin, 1)
    >>> times.upper.round(6).tolist(), times.actions.tolist()
    ([2.0, 0.0], [1, -1])
    >>> hitting_times(coin, 0).upper.tolist()
    [0.0, inf]
    """
    width = read_positive("tolerance", tolerance)
    is_target = _read_targets(targets, cmdp.n_states)
    problem = ShortestPath(cmdp)
    finite = np.zeros(cmdp.n_states, dtype=np.bool_)
    usable = np.zeros(cmdp.n_pairs, dtype=np.bool_)
    hitting.surely_reaching(
        problem.state_ptr,
        problem.row_ptr,
        problem.successor,
        is_target,
        finite,
        usable,
    )
    usable &= problem.usable
    order, distance = _search_within(problem, is_target, usable)
    h, up, low = problem.solve(
        is_target, usable, order, distance, tolerance=width, blocks=_SWEEP_BLOCKS
    )
    actions = np.full(cmdp.n_states, -1, dtype=np.int64)
    if order.size:
        chosen = np.full(cmdp.n_states, -1, dtype=np.int64)
        hitting.greedy_pairs(*problem.rows(), usable, order, h, chosen, 0.0)
        actions[order] = cmdp.pair_action[chosen[order]]
    lower = np.full(cmdp.n_states, np.inf)
    upper = np.full(cmdp.n_states, np.inf)
    lower[finite] = h[finite] / (1.0 + low)
    upper[finite] = h[finite] / (1.0 - up) if up < 1.0 else np.inf
    upper[is_target] = 0.0
    for array in (lower, upper, finite, actions):
        array.flags.writeable = False
    return HittingTimes(
        lower=lower, upper=upper, finite=finite, actions=actions, tolerance=width
    )


def _search_within(
    problem: ShortestPath, is_target: BoolArray, usable: BoolArray
) -> tuple[IndexArray, IndexArray]:
    """Search backwards along usable pairs only."""
    pair_state = np.repeat(np.arange(problem.n_states), np.diff(problem.state_ptr))
    row = np.repeat(np.arange(usable.size), np.diff(problem.row_ptr))
    kept = usable[row]
    links = sp.csr_array(
        (
            np.ones(int(kept.sum()), dtype=np.int8),
            (problem.successor[kept], pair_state[row[kept]]),
        ),
        shape=(problem.n_states, problem.n_states),
    )
    links.sum_duplicates()
    order = np.empty(problem.n_states, dtype=np.int32)
    distance = np.empty(problem.n_states, dtype=np.int32)
    count = hitting.distance_order(
        links.indptr.astype(np.int64),
        links.indices.astype(np.int32),
        is_target,
        order,
        distance,
    )
    return order[int(is_target.sum()) : count], distance


def _read_targets(targets: int | Iterable[int], n_states: int) -> BoolArray:
    array = np.atleast_1d(
        np.asarray(
            targets
            if isinstance(targets, (int, np.integer, np.ndarray))
            else list(targets)
        )
    )
    if array.dtype.kind not in "iu" or array.ndim != 1 or array.size == 0:
        raise refusal("targets", "a state, or some states", repr(targets))
    out = (array < 0) | (array >= n_states)
    if out.any():
        raise refusal(
            "targets", f"states in 0..{n_states - 1}", int(array[int(np.argmax(out))])
        )
    is_target = np.zeros(n_states, dtype=np.bool_)
    is_target[array] = True
    return is_target
