"""What was seen of action models, and what one pair's model says about another's.

:func:`tally_branches` reduces the counts of a pair to what the likelihood of each of
its branches needs.  :func:`propagate_models` rules out models that contradict what is
left elsewhere: arc consistency with a queue (the third algorithm of that name), which
costs as much as what changes, not as much as there is.
"""

from __future__ import annotations

import math

import numpy as np

from escapade.kernels.compilation import compiled
from escapade.typing import BoolArray, FloatArray, IndexArray, IntArray

__all__ = ["propagate_models", "tally_branches"]


@compiled
def tally_branches(
    pairs: IntArray,
    branch_ptr: IntArray,
    target: IndexArray,
    around: IntArray,
    near_ptr: IntArray,
    near: IndexArray,
    row_ptr: IntArray,
    successor: IndexArray,
    n_states: int,
    counts: FloatArray,
    at_target: FloatArray,
    missed: FloatArray,
    outside: FloatArray,
    size: FloatArray,
    fit: FloatArray,
    spread: FloatArray,
) -> None:
    """Reduce `counts` `[nnz]`; outputs `[branches of pairs]`, in the order of `pairs`.

    Of the visits, ``at_target`` ended in the typical state, ``missed`` elsewhere in the
    neighbourhood, ``outside`` in neither.  ``size``: states of the neighbourhood other
    than the typical one; ``fit``: ``Σ N ln(N / missed)`` over them, the best that a law
    on them can do; ``spread``: ``Σ [lnΓ(N + ½) − lnΓ(½)]``.
    """
    seen = np.zeros(n_states)
    half = math.lgamma(0.5)
    at = 0
    for row in pairs:
        total = 0.0
        for k in range(row_ptr[row], row_ptr[row + 1]):
            seen[successor[k]] = counts[k]
            total += counts[k]
        for b in range(branch_ptr[row], branch_ptr[row + 1]):
            x = target[b]
            n = 0
            elsewhere = 0.0
            best = 0.0
            mixed = 0.0
            if around[b] >= 0:
                for k in range(near_ptr[around[b]], near_ptr[around[b] + 1]):
                    if near[k] != x:
                        n += 1
                        c = seen[near[k]]
                        elsewhere += c
                        if c > 0.0:
                            best += c * math.log(c)
                            mixed += math.lgamma(c + 0.5) - half
            if elsewhere > 0.0:
                best -= elsewhere * math.log(elsewhere)
            at_target[at] = seen[x]
            missed[at] = elsewhere
            outside[at] = total - seen[x] - elsewhere
            size[at] = n
            fit[at] = best
            spread[at] = mixed
            at += 1
        for k in range(row_ptr[row], row_ptr[row + 1]):
            seen[successor[k]] = 0.0


@compiled
def propagate_models(
    changed: IntArray,
    link_ptr: IntArray,
    linked: IntArray,
    rule: IntArray,
    backward: BoolArray,
    possible: BoolArray,
    domain: BoolArray,
) -> int:
    """`domain`: `[G, M]` models left, reduced in place; returns −1, or an empty group.

    `changed`: groups to begin with; group `g` is linked to `linked[link_ptr[g]:…]` by
    the relation `possible[rule[k]]`: `[R, M, M]`, transposed where `backward[k]`.
    """
    groups, models = domain.shape
    waiting = np.zeros(groups, np.bool_)
    queue = np.empty(groups, np.int64)
    head = 0
    count = 0
    for g in changed:
        if not waiting[g]:
            waiting[g] = True
            queue[(head + count) % groups] = g
            count += 1
    while count:
        g = queue[head]
        head = (head + 1) % groups
        count -= 1
        waiting[g] = False
        for k in range(link_ptr[g], link_ptr[g + 1]):
            other: int = linked[k]
            relation = possible[rule[k]]
            shrank = False
            left = False
            for j in range(models):
                if not domain[other, j]:
                    continue
                held = False
                for i in range(models):
                    if domain[g, i]:
                        allowed = relation[j, i] if backward[k] else relation[i, j]
                        if allowed:
                            held = True
                            break
                if held:
                    left = True
                else:
                    domain[other, j] = False
                    shrank = True
            if not left:
                return other
            if shrank and not waiting[other]:
                waiting[other] = True
                queue[(head + count) % groups] = other
                count += 1
    return -1
