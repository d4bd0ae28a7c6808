r"""What no plan can earn within a worst-case budget: the outer bound of promises.

``U(s, b)``, the best that can be earned from ``s`` under promise ``b``, is concave in
``b``, so lines bound it from above: with ``W(s, μ) = max_b U(s, b) − μ b``,

.. math:: U(s,b) \le \min_i \big[ W(s, \mu_i) + \mu_i b \big].

For any members ``P`` (of reward) and ``P'`` (of cost) that nature may commit to, pair
by pair and price by price, letting the planner see them first can only help it:

.. math:: W(s,\mu) \le \max_a \Big[ r - \mu c + \gamma \sum_{s'} \max_{b'} \big(
          P(s') \, U(s', b') - \mu P'(s') \, b' \big) \Big],

with ``U`` replaced by its lines.  The right side is monotone in ``W`` and contracts by
``γ``, so sweeps from anywhere and MacQueen's bound end in a certificate.  With
``P' = \hat P`` everywhere this is the Lagrangian bound of the ordinary problem at the
nominal kernel; the better nature's kernels, the closer it comes to the optimum over all
plans that remember their past, against a nature that may choose each step anew.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from escapade.kernels.promise import relaxed_values
from escapade.planning.promise_nodes import PromiseGrid
from escapade.planning.robust_operator import RobustOperator, robust_control
from escapade.typing import FloatArray, IntArray

__all__ = ["OuterBound", "outer_bound"]

_EPS = float(np.finfo(np.float64).eps)
_SWEEPS = 3_000
_FINER = 4  # prices between two prices


@dataclass(frozen=True, slots=True, kw_only=True)
class OuterBound:
    """An upper bound on what can be earned from the start, and its multiplier."""

    upper: float
    multiplier: float


def outer_bound(
    grid: PromiseGrid,
    prices: FloatArray,
    earning: FloatArray,
    spending: FloatArray,
    precision: float = 1e-6,
) -> OuterBound:
    """Bound the worth of every plan from the start.

    ``prices`` rise from 0; ``earning`` and ``spending`` are kernels on the entries of
    the rows (allowed pair, price).
    """
    judge = grid.judge
    cmdp, sets = judge.cmdp, judge.sets
    # promises below the certified lower bound on the least cost cannot be kept
    control = robust_control(
        RobustOperator(
            sets,
            cmdp.state_ptr,
            cmdp.cost[0],
            cmdp.discount,
            nature="max",
            select="min",
            allowed=grid.allowed,
        ),
        precision=judge.precision,
    )
    low = np.where(grid.inside, np.maximum(control.lower, 0.0), 0.0)
    budget = float(cmdp.budget[0])
    cap = np.full(cmdp.n_states, max(grid.cap, budget))
    pairs = np.flatnonzero(grid.allowed)
    length = np.diff(sets.row_ptr)[pairs]
    row_ptr = np.concatenate([[0], np.cumsum(length)])
    entries = np.arange(int(row_ptr[-1])) + np.repeat(
        sets.row_ptr[:-1][pairs] - row_ptr[:-1], length
    )
    successor = np.ascontiguousarray(sets.successor[entries])
    earning, _ = _refined(prices, row_ptr, earning)
    spending, prices = _refined(prices, row_ptr, spending)
    w = (
        np.where(grid.inside, grid.best_value, 0.0)[:, np.newaxis]
        - prices * low[:, None]
    )
    out = np.empty_like(w)
    factor = cmdp.discount / (1.0 - cmdp.discount)
    bound = np.full(w.shape, np.inf)
    for _ in range(_SWEEPS):
        relaxed_values(
            row_ptr,
            successor,
            np.ones(pairs.size, dtype=np.bool_),
            cmdp.pair_state[pairs],
            cmdp.reward[pairs],
            cmdp.cost[0][pairs],
            cmdp.discount,
            prices,
            earning,
            spending,
            low,
            cap,
            w,
            out,
        )
        out[~grid.inside] = 0.0
        change = (out - w)[grid.inside]
        low_change, high_change = float(change.min()), float(change.max())
        size = float(np.abs(out).max() + np.abs(w).max() + prices[-1] * cap.max())
        rounding = (sets.longest_row + 8) * _EPS * size / (1.0 - cmdp.discount)
        bound = out + factor * max(high_change, 0.0) + rounding
        if factor * (high_change - low_change) <= precision * max(1.0, size):
            bound = out + factor * high_change + rounding
            break
        w = out + 0.5 * factor * (low_change + high_change)
        w[~grid.inside] = 0.0
        out = np.empty_like(w)
    lines = cmdp.start @ np.where(grid.inside[:, np.newaxis], bound, 0.0)
    worth = lines + prices * budget
    best = int(np.argmin(worth))
    return OuterBound(
        upper=float(worth[best] * (1.0 + 4.0 * cmdp.n_states * _EPS)),
        multiplier=float(prices[best]),
    )


def _refined(
    prices: FloatArray, row_ptr: IntArray, kernel: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Put prices between the prices, with the kernels between the kernels.

    A mixture of two members lies in the convex hull of the set, which is all that
    bounds depend on.
    """
    n = prices.size
    fine = np.interp(np.arange((n - 1) * _FINER + 1) / _FINER, np.arange(n), prices)
    pieces = []
    for first, last in itertools.pairwise(row_ptr.tolist()):
        table = kernel[first * n : last * n].reshape(n, last - first)
        mixed = [
            (1.0 - t) * table[:-1] + t * table[1:] for t in np.arange(_FINER) / _FINER
        ]
        between = np.stack(mixed, axis=1).reshape(-1, last - first)
        pieces.append(np.vstack([between, table[-1:]]).ravel())
    return np.concatenate(pieces), fine
