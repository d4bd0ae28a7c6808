"""Least expected hitting times: sweeps, certificates, and searches over targets.

The arrays describe a stochastic shortest-path problem in which waiting has been
eliminated: pair ``i`` of state ``s`` takes ``duration[i] >= 1`` expected steps to leave
``s`` and then moves to another state.  With h = 0 on the targets,

    (T h)(s) = min over usable pairs i of s of duration[i] + sum_j q[j] h(succ[j]).

For any h >= 0, if T h - h <= kappa * duration for the minimising pairs then
``h / (1 - kappa)`` is at least the hitting time of that greedy policy; and if
h - T h <= kappa * duration for every pair then ``h / (1 + kappa)`` is at most the least
hitting time.  A small *residual*, in steps, is thus a small *relative* error.

Naming: ``S`` states, ``N`` pairs, ``Z`` non-zeros.
"""

from __future__ import annotations

import numpy as np

from escapade.kernels.compilation import compiled
from escapade.typing import BoolArray, FloatArray, IndexArray, IntArray

__all__ = [
    "PRUNED",
    "SOLVED",
    "UNFINISHED",
    "approach",
    "certify",
    "distance_order",
    "extrapolate",
    "first_guess",
    "greedy_pairs",
    "make_proper",
    "search_targets",
    "surely_reaching",
    "sweep",
]

SOLVED = 0
"""The target's largest hitting time is known to the tolerance."""

PRUNED = 1
"""The target's largest hitting time is surely below another's."""

UNFINISHED = 2
"""The sweeps ran out before either."""


@compiled
def distance_order(
    source_ptr: IntArray,
    source: IndexArray,
    is_target: BoolArray,
    order: IndexArray,
    distance: IndexArray,
) -> int:
    """`source_ptr` [S+1], `source` [Z], `is_target` -> `order`, `distance` [S].

    Breadth-first search backwards from the targets along ``source`` (which states have
    a usable pair into each state).  ``order`` begins with the targets; the number of
    states that were reached is returned, ``distance`` is -1 for the others.
    """
    n_states = is_target.size
    count = 0
    for s in range(n_states):
        if is_target[s]:
            distance[s] = 0
            order[count] = s
            count += 1
        else:
            distance[s] = -1
    head = 0
    while head < count:
        s = order[head]
        head += 1
        for j in range(source_ptr[s], source_ptr[s + 1]):
            before = source[j]
            if distance[before] < 0:
                distance[before] = distance[s] + 1
                order[count] = before
                count += 1
    return count


@compiled
def surely_reaching(
    state_ptr: IntArray,
    row_ptr: IntArray,
    successor: IndexArray,
    is_target: BoolArray,
    inside: BoolArray,
    usable: BoolArray,
) -> int:
    """CSR over pairs, `is_target` [S] -> fills `inside` [S], `usable` [N]; counts them.

    ``inside`` becomes the greatest set of states from which some policy reaches the
    targets with probability 1, ``usable`` the pairs that cannot leave it.
    """
    n_states = is_target.size
    for s in range(n_states):
        inside[s] = True
    size = n_states
    reached = np.zeros(n_states, np.bool_)
    while True:
        for i in range(usable.size):
            usable[i] = True
            for j in range(row_ptr[i], row_ptr[i + 1]):
                if not inside[successor[j]]:
                    usable[i] = False
                    break
        for s in range(n_states):
            reached[s] = is_target[s]
        changed = True
        while changed:  # sweeps alternate in direction, so that long chains are quick
            changed = False
            for direction in range(2):
                for k in range(n_states):
                    s = k if direction == 0 else n_states - 1 - k
                    if reached[s] or not inside[s]:
                        continue
                    for i in range(state_ptr[s], state_ptr[s + 1]):
                        if not usable[i]:
                            continue
                        for j in range(row_ptr[i], row_ptr[i + 1]):
                            if reached[successor[j]]:
                                reached[s] = True
                                break
                        if reached[s]:
                            changed = True
                            break
        count = 0
        for s in range(n_states):
            inside[s] = reached[s]
            if reached[s]:
                count += 1
        if count == size:
            return count
        size = count


@compiled
def sweep(
    state_ptr: IntArray,
    row_ptr: IntArray,
    successor: IndexArray,
    probability: FloatArray,
    duration: FloatArray,
    usable: BoolArray,
    order: IndexArray,
    h: FloatArray,
) -> None:
    """One Gauss-Seidel sweep of T over the states of `order`; updates `h` [S]."""
    for k in range(order.size):
        s = order[k]
        best = np.inf
        for i in range(state_ptr[s], state_ptr[s + 1]):
            if usable[i]:
                value = duration[i]
                for j in range(row_ptr[i], row_ptr[i + 1]):
                    value += probability[j] * h[successor[j]]
                if value < best:
                    best = value
        h[s] = best


@compiled
def greedy_pairs(
    state_ptr: IntArray,
    row_ptr: IntArray,
    successor: IndexArray,
    probability: FloatArray,
    duration: FloatArray,
    usable: BoolArray,
    order: IndexArray,
    h: FloatArray,
    chosen: IntArray,
    margin: float,
) -> int:
    """`h` [S] -> improves `chosen` [S], the pair played in each state of `order`.

    A pair is replaced only by one that is better by more than ``margin`` relative to
    its value; returns the number of replacements.  A negative entry is always replaced.
    """
    replaced = 0
    for k in range(order.size):
        s = order[k]
        best, best_pair, present = np.inf, -1, np.inf
        for i in range(state_ptr[s], state_ptr[s + 1]):
            if usable[i]:
                value = duration[i]
                for j in range(row_ptr[i], row_ptr[i + 1]):
                    value += probability[j] * h[successor[j]]
                if value < best:
                    best, best_pair = value, i
                if i == chosen[s]:
                    present = value
        if chosen[s] < 0 or best < present * (1.0 - margin):
            chosen[s] = best_pair
            replaced += 1
    return replaced


@compiled
def certify(
    state_ptr: IntArray,
    row_ptr: IntArray,
    successor: IndexArray,
    probability: FloatArray,
    duration: FloatArray,
    usable: BoolArray,
    order: IndexArray,
    h: FloatArray,
) -> tuple[float, float, float, int]:
    """`h` [S] -> kappa_up, kappa_low, the largest h over `order`, and its state.

    ``kappa_up`` is that of the policy that :func:`greedy_pairs` takes from nothing.
    Both kappas allow for the rounding of the sums that they are computed from.
    """
    up, low, largest, where = 0.0, 0.0, -1.0, -1
    for k in range(order.size):
        s = order[k]
        best, above = np.inf, np.inf
        for i in range(state_ptr[s], state_ptr[s + 1]):
            if not usable[i]:
                continue
            value = duration[i]
            for j in range(row_ptr[i], row_ptr[i + 1]):
                value += probability[j] * h[successor[j]]
            entries = row_ptr[i + 1] - row_ptr[i]
            rounding = (entries + 4.0) * 2.3e-16 * (h[s] + value)
            below = (h[s] - value + rounding) / duration[i]
            if below > low:
                low = below
            # Of the pair that `greedy_pairs` takes, so that its policy is certified.
            if value < best:
                best, above = value, (value - h[s] + rounding) / duration[i]
        if above > up:
            up = above
        if h[s] > largest:
            largest, where = h[s], s
    return up, low, largest, where


@compiled
def first_guess(
    state_ptr: IntArray,
    row_ptr: IntArray,
    successor: IndexArray,
    probability: FloatArray,
    duration: FloatArray,
    usable: BoolArray,
    order: IndexArray,
    distance: IndexArray,
    h: FloatArray,
) -> None:
    """`order` and `distance` of a search -> fills `h` [S] with a first guess.

    As if every state tried one pair until that led closer to the targets: a guess
    whose greedy policy already moves the right way, also against a current.
    """
    for s in range(h.size):
        h[s] = 0.0
    for k in range(order.size):
        s = order[k]
        best = np.inf
        for i in range(state_ptr[s], state_ptr[s + 1]):
            if not usable[i]:
                continue
            value, closer = duration[i], 0.0
            for j in range(row_ptr[i], row_ptr[i + 1]):
                if distance[successor[j]] < distance[s]:
                    value += probability[j] * h[successor[j]]
                    closer += probability[j]
            if closer > 0.0 and value / closer < best:
                best = value / closer
        h[s] = best


@compiled
def extrapolate(
    older: FloatArray, old: FloatArray, h: FloatArray, order: IndexArray
) -> bool:
    """Three iterates [S] -> moves `h` to the limit of a geometric sequence.

    Only when the last two steps are nearly parallel, and shrink; tells whether.
    """
    ab, aa, bb = 0.0, 0.0, 0.0
    for k in range(order.size):
        s = order[k]
        a, b = old[s] - older[s], h[s] - old[s]
        ab += a * b
        aa += a * a
        bb += b * b
    if aa <= 0.0 or ab <= 0.0 or ab >= aa or ab * ab < 0.8 * aa * bb:
        return False
    factor = ab / (aa - ab)
    for k in range(order.size):
        s = order[k]
        h[s] = max(h[s] + factor * (h[s] - old[s]), 1.0)
    return True


@compiled
def approach(
    state_ptr: IntArray,
    row_ptr: IntArray,
    successor: IndexArray,
    probability: FloatArray,
    duration: FloatArray,
    usable: BoolArray,
    order: IndexArray,
    floor: float,
    tolerance: float,
    max_blocks: int,
    h: FloatArray,
    scratch: FloatArray,
) -> tuple[int, float, float, int]:
    """CSR, `order`, `scratch` [3, S] -> improves `h` [S]; status, lower, upper, where.

    Blocks of sweeps, each followed by a certificate and perhaps an extrapolation.
    ``lower`` and ``upper`` bound the largest least hitting time, attained at ``where``
    as far as one can tell.  With a negative ``floor`` nothing is pruned.
    """
    older, old, saved = scratch[0], scratch[1], scratch[2]
    lower, upper, farthest, status = 0.0, np.inf, -1, UNFINISHED
    last, jumped, quiet, pause = np.inf, False, 0, 1
    for block in range(max_blocks):
        for _ in range(2 if block == 0 else 4):
            for k in range(order.size):
                s = order[k]
                older[s] = old[s]
                old[s] = h[s]
            sweep(
                state_ptr, row_ptr, successor, probability, duration, usable, order, h
            )
        up, low, largest, where = certify(
            state_ptr, row_ptr, successor, probability, duration, usable, order, h
        )
        if largest / (1.0 + low) > lower:
            lower, farthest = largest / (1.0 + low), where
        if up < 1.0 and largest / (1.0 - up) < upper:
            upper = largest / (1.0 - up)
        if up < 1.0 and 1.0 + low <= (1.0 + tolerance) * (1.0 - up):
            status = SOLVED
            break
        if floor >= 0.0 and upper <= max(floor, lower) * (1.0 + tolerance):
            status = PRUNED
            break
        # A jump that did not pay is taken back, and the next one comes later.
        if jumped and up + low > last:
            for k in range(order.size):
                h[order[k]] = saved[order[k]]
            quiet, pause, jumped = pause, 2 * pause, False
            continue
        last, jumped = up + low, False
        if quiet > 0:
            quiet -= 1
        elif block > 0:
            for k in range(order.size):
                saved[order[k]] = h[order[k]]
            jumped = extrapolate(older, old, h, order)
    return status, lower, upper, farthest


@compiled
def search_targets(
    state_ptr: IntArray,
    row_ptr: IntArray,
    successor: IndexArray,
    probability: FloatArray,
    duration: FloatArray,
    usable: BoolArray,
    source_ptr: IntArray,
    source: IndexArray,
    targets: IntArray,
    floor: float,
    tolerance: float,
    max_blocks: int,
    lower: FloatArray,
    upper: FloatArray,
    farthest: IntArray,
    status: IntArray,
) -> float:
    """CSR, `targets` [n] -> fills `lower`, `upper`, `farthest`, `status` [n].

    For each target in turn: bounds on the largest of its hitting times, and from which
    state.  Every state must be able to reach every target.  A target is left as soon as
    its upper bound is at most ``floor * (1 + tolerance)``, where ``floor`` is the
    largest lower bound so far; that is returned.
    """
    n_states = state_ptr.size - 1
    is_target = np.zeros(n_states, np.bool_)
    order = np.empty(n_states, np.int32)
    distance = np.empty(n_states, np.int32)
    h = np.empty(n_states)
    scratch = np.zeros((3, n_states))
    for t in range(targets.size):
        target = targets[t]
        is_target[target] = True
        count = distance_order(source_ptr, source, is_target, order, distance)
        is_target[target] = False
        rest = order[1:count]
        first_guess(
            state_ptr,
            row_ptr,
            successor,
            probability,
            duration,
            usable,
            rest,
            distance,
            h,
        )
        status[t], lower[t], upper[t], farthest[t] = approach(
            state_ptr,
            row_ptr,
            successor,
            probability,
            duration,
            usable,
            rest,
            floor,
            tolerance,
            max_blocks,
            h,
            scratch,
        )
        floor = max(floor, lower[t])
    return floor


@compiled
def make_proper(
    state_ptr: IntArray,
    row_ptr: IntArray,
    successor: IndexArray,
    usable: BoolArray,
    is_target: BoolArray,
    order: IndexArray,
    chosen: IntArray,
) -> int:
    """`chosen` [S] -> mends it so that the targets are reached surely; counts changes.

    States from which the chosen pairs never reach a target take a pair that may lead to
    a state from which they do.
    """
    reached = is_target.copy()
    changes = 0
    growing = True
    mending = False
    left = 0
    for k in range(order.size):
        if not is_target[order[k]]:
            left += 1
    while left > 0:
        growing = False
        for k in range(order.size):
            s = order[k]
            if reached[s]:
                continue
            first, stop = state_ptr[s], state_ptr[s + 1]
            if not mending:
                first, stop = chosen[s], chosen[s] + 1
            for i in range(first, stop):
                if not usable[i]:
                    continue
                for j in range(row_ptr[i], row_ptr[i + 1]):
                    if reached[successor[j]]:
                        reached[s] = True
                        break
                if reached[s]:
                    if mending:
                        chosen[s] = i
                        changes += 1
                    growing = True
                    left -= 1
                    break
            if mending and growing:
                break
        if growing:
            mending = False
        elif mending:
            break
        else:
            mending = True
    return changes
