"""Promises on a grid: envelopes, places between nodes, and the price of a promise.

A promise ``b`` in state ``s`` lies on an even grid, ``low[s] + j · step[s]``.  What it
can earn, ``U(s, b)``, is kept concave and rising in ``b``, since a plan may draw lots
between two promises and may leave a part of one unspent.

Naming: ``S`` states, ``G`` grid points, ``E`` entries, ``M`` nodes, ``N`` points.
"""

from __future__ import annotations

import numpy as np

from escapade.kernels.compilation import compiled
from escapade.typing import BoolArray, FloatArray, IndexArray, IntArray

__all__ = [
    "between_nodes",
    "concave_envelope",
    "mixtures",
    "priced_promises",
    "relaxed_values",
    "value_of_promises",
]


@compiled
def concave_envelope(y: FloatArray, u: FloatArray, vertex: BoolArray) -> None:
    """`y` [S, G] -> `u` [S, G] the least concave rising bound, `vertex` [S, G].

    Vertices are the points that lots are drawn between; behind the last one ``u`` is
    flat.
    """
    n_states, n_points = y.shape
    stack = np.empty(n_points, np.int64)
    for s in range(n_states):
        top = 0
        for j in range(n_points):
            vertex[s, j] = False
            if y[s, j] > y[s, top]:
                top = j
        size = 0
        for j in range(top + 1):
            if y[s, j] == -np.inf:
                continue
            while size >= 2:
                a, b = stack[size - 2], stack[size - 1]
                if (y[s, b] - y[s, a]) * (j - b) <= (y[s, j] - y[s, b]) * (b - a):
                    size -= 1
                else:
                    break
            stack[size] = j
            size += 1
        for k in range(size):
            vertex[s, stack[k]] = True
            u[s, stack[k]] = y[s, stack[k]]
            if k:
                a, b = stack[k - 1], stack[k]
                for j in range(a + 1, b):
                    u[s, j] = y[s, a] + (y[s, b] - y[s, a]) * (j - a) / (b - a)
        for j in range(top + 1, n_points):
            u[s, j] = y[s, top]


@compiled
def value_of_promises(
    state: IndexArray,
    promise: FloatArray,
    low: FloatArray,
    step: FloatArray,
    u: FloatArray,
    place: IntArray,
    share: FloatArray,
    value: FloatArray,
) -> None:
    """`state`, `promise` [E], `u` [S, G] -> `value` [E], interpolated.

    Also `place` [E], the grid point below, and `share` [E], how far towards the next.
    """
    last = u.shape[1] - 1
    for e in range(state.size):
        s = state[e]
        j, t = 0, 0.0
        if step[s] > 0.0 and promise[e] > low[s]:
            x = (promise[e] - low[s]) / step[s]
            j = min(int(x), last)
            t = min(x - j, 1.0) if j < last else 0.0
        place[e] = s * (last + 1) + j
        share[e] = t
        value[e] = u[s, j] + (t * (u[s, j + 1] - u[s, j]) if t > 0.0 else 0.0)


@compiled
def priced_promises(
    state: IndexArray,
    price: FloatArray,
    low: FloatArray,
    step: FloatArray,
    u: FloatArray,
    promise: FloatArray,
) -> None:
    """`price` [E] -> `promise` [E], a grid point that is best for ``U − price · b``."""
    n_points = u.shape[1]
    for e in range(state.size):
        s = state[e]
        first, last = 0, n_points - 1
        if step[s] > 0.0:
            # slopes fall: the first one that is below the price ends the climb
            while first < last:
                middle = (first + last) // 2
                if u[s, middle + 1] - u[s, middle] > price[e] * step[s]:
                    first = middle + 1
                else:
                    last = middle
        else:
            first = 0
        promise[e] = low[s] + first * step[s]


@compiled
def between_nodes(
    state: IndexArray,
    promise: FloatArray,
    node_ptr: IntArray,
    node_promise: FloatArray,
    below: IntArray,
    share: FloatArray,
) -> None:
    """`state`, `promise` [E]; nodes by state, rising -> `below` [E], `share` [E].

    The promise is kept on average by entering ``below + 1`` with chance ``share``, else
    ``below``.  A promise above the last node enters that one.
    """
    for e in range(state.size):
        first, stop = node_ptr[state[e]], node_ptr[state[e] + 1]
        low, high = first, stop - 1
        while low < high:  # the last node that is not above the promise
            middle = (low + high + 1) // 2
            if node_promise[middle] <= promise[e]:
                low = middle
            else:
                high = middle - 1
        below[e] = low
        share[e] = 0.0
        if low + 1 < stop and promise[e] > node_promise[low]:
            width = node_promise[low + 1] - node_promise[low]
            share[e] = (promise[e] - node_promise[low]) / width


@compiled
def mixtures(
    point_ptr: IntArray,
    cost: FloatArray,
    value: FloatArray,
    low: FloatArray,
    step: FloatArray,
    first: IntArray,
    second: IntArray,
    share: FloatArray,
    u: FloatArray,
) -> None:
    """Points by state, in order of cost -> the best mixture of two at each grid point.

    `point_ptr` [S+1], `cost`, `value` [N] -> `first`, `second`, `share` (of the second)
    and `u`, all [S, G].  The first point of a state must cost no more than its lowest
    promise.
    """
    n_points = u.shape[1]
    for s in range(low.size):
        start, stop = point_ptr[s], point_ptr[s + 1]
        stack = np.empty(stop - start, np.int64)
        size = 0
        for i in range(start, stop):
            if size and value[i] <= value[stack[size - 1]]:
                continue  # dearer and no better
            while size and cost[i] <= cost[stack[size - 1]]:
                size -= 1
            while size >= 2:
                a, b = stack[size - 2], stack[size - 1]
                if (value[b] - value[a]) * (cost[i] - cost[b]) <= (
                    value[i] - value[b]
                ) * (cost[b] - cost[a]):
                    size -= 1
                else:
                    break
            stack[size] = i
            size += 1
        k = 0
        for j in range(n_points):
            b = low[s] + j * step[s]
            while k + 1 < size and cost[stack[k + 1]] <= b:
                k += 1
            here = stack[k]
            first[s, j] = second[s, j] = here
            share[s, j] = 0.0
            u[s, j] = value[here]
            if k + 1 < size and b > cost[here]:
                after = stack[k + 1]
                t = (b - cost[here]) / (cost[after] - cost[here])
                second[s, j] = after
                share[s, j] = t
                u[s, j] = value[here] + t * (value[after] - value[here])


@compiled
def relaxed_values(
    row_ptr: IntArray,
    successor: IndexArray,
    allowed: BoolArray,
    pair_state: IndexArray,
    reward: FloatArray,
    cost: FloatArray,
    gamma: float,
    prices: FloatArray,
    earning: FloatArray,
    spending: FloatArray,
    low: FloatArray,
    cap: FloatArray,
    w: FloatArray,
    out: FloatArray,
) -> None:
    """One sweep of the outer bound: `w`, `out` [S, G] for `prices` [G], rising from 0.

    ``w[s, i]`` bounds ``max_b U(s, b) − prices[i] · b`` over ``low[s] <= b <= cap[s]``.
    `earning`, `spending`: [pairs·G rows' entries], kernels for reward and for cost, row
    ``(pair, i)`` after row; `row_ptr` [pairs+1] and `successor` are those of a pair.
    """
    n_prices = prices.size
    out[:] = -np.inf
    for pair in range(pair_state.size):
        if not allowed[pair]:
            continue
        s = pair_state[pair]
        length = row_ptr[pair + 1] - row_ptr[pair]
        for i in range(n_prices):
            base = row_ptr[pair] * n_prices + i * length
            total = 0.0
            for k in range(length):
                to = successor[row_ptr[pair] + k]
                p, q = earning[base + k], prices[i] * spending[base + k]
                if p <= 0.0:
                    total -= q * low[to]
                    continue
                price = q / p
                # the two lines of U's outer bound between which this price lies
                m = int(np.searchsorted(prices, price, side="right")) - 1
                if m >= n_prices - 1:
                    b = low[to]
                    best = w[to, n_prices - 1] + (prices[n_prices - 1] - price) * b
                else:
                    b = (w[to, m] - w[to, m + 1]) / (prices[m + 1] - prices[m])
                    b = min(max(b, low[to]), cap[to])
                    best = min(
                        w[to, m] + (prices[m] - price) * b,
                        w[to, m + 1] + (prices[m + 1] - price) * b,
                    )
                total += p * best
            value = reward[pair] - prices[i] * cost[pair] + gamma * total
            if value > out[s, i]:
                out[s, i] = value
