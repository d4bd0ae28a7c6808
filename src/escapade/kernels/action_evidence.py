"""What was seen of action models, and what one pair's model says about another's.

:func:`tally_branches` reduces the counts of a pair to what the likelihood of each of
its branches needs, and :func:`weigh_branches` weighs each against the others.
:func:`propagate_models` rules out models that contradict what is left elsewhere: arc
consistency with a queue (the third algorithm of that name), which costs as much as what
changes, not as much as there is.
"""

from __future__ import annotations

import math

import numpy as np

from escapade.kernels.compilation import compiled, inlined
from escapade.typing import BoolArray, FloatArray, IndexArray, IntArray

__all__ = ["propagate_models", "sum_by_group", "tally_branches", "weigh_branches"]

_LOG_TWO = math.log(2.0)


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


@inlined
def _both(a: float, b: float) -> float:
    """Return ``ln(e^a + e^b)``."""
    if a == b:
        return a + _LOG_TWO
    most, least = (a, b) if a > b else (b, a)
    return most + math.log1p(math.exp(least - most))


@inlined
def _log_likelihood(hits: float, missed: float, t: float) -> float:
    """Return ``hits ln(1 − t) + missed ln t``, with ``0 ln 0 = 0``."""
    total = 0.0
    if hits > 0.0:
        total += hits * math.log1p(-t) if t < 1.0 else -np.inf
    if missed > 0.0:
        total += missed * math.log(t) if t > 0.0 else -np.inf
    return total


@inlined
def _free_law(row_ptr: IntArray, counts: FloatArray, row: int) -> float:
    """Return the log-likelihood under a Dirichlet(½) on all successors of a pair."""
    total, terms = 0.0, 0.0
    for k in range(row_ptr[row], row_ptr[row + 1]):
        if counts[k] > 0.0:
            total += counts[k]
            terms += math.lgamma(counts[k] + 0.5) - math.lgamma(0.5)
    half = 0.5 * (row_ptr[row + 1] - row_ptr[row])
    return math.lgamma(half) - math.lgamma(total + half) + terms


@compiled
def weigh_branches(
    pairs: IntArray,
    branch_ptr: IntArray,
    around: IntArray,
    low: FloatArray,
    high: FloatArray,
    near_ptr: IntArray,
    uniform: BoolArray,
    row_ptr: IntArray,
    counts: FloatArray,
    tallies: FloatArray,
    nodes: FloatArray,
    log_weights: FloatArray,
    against: FloatArray,
    log_fit: FloatArray,
    rate: FloatArray,
) -> None:
    """Weigh the branches of ``pairs``; outputs `[branches of pairs]`, in their order.

    ``tallies``: ``[6, branches of pairs]``, what :func:`tally_branches` wrote;
    ``nodes``, ``log_weights``: a quadrature over [0, 1].  See
    :func:`escapade.uncertainty.action_models_evidence.transition_evidence`.
    """
    hits, missed, outside, size, fit, spread = tallies
    mixed = np.empty(against.size)
    at = 0
    for row in pairs:
        n = branch_ptr[row + 1] - branch_ptr[row]
        for i in range(at, at + n):
            b = branch_ptr[row] + i - at
            h = around[b]
            everywhere = near_ptr[h + 1] - near_ptr[h] if h >= 0 else 0
            even = h >= 0 and uniform[h]
            hidden = everywhere > size[i]  # a miss may land on the typical state itself
            # t: probability of ending elsewhere, between least and most
            share = size[i] / max(everywhere, 1) if even and hidden else 1.0
            most = high[b] * share if size[i] > 0.0 else 0.0
            least = min(0.0 if hidden and not even else low[b] * share, most)
            visits = hits[i] + missed[i]
            t = min(max(missed[i] / max(visits, 1.0), least), most)
            law, prior = fit[i], 0.0
            if even:
                law = prior = -missed[i] * math.log(max(size[i], 1.0))
            else:
                half = 0.5 * max(size[i], 1.0)
                prior = math.lgamma(half) - math.lgamma(missed[i] + half) + spread[i]
            log_fit[i] = mixed[i] = -np.inf
            if outside[i] <= 0.0:
                log_fit[i] = _log_likelihood(hits[i], missed[i], t) + law
                for k in range(nodes.size):
                    t = least + (most - least) * nodes[k]
                    term = _log_likelihood(hits[i], missed[i], t) + log_weights[k]
                    mixed[i] = _both(mixed[i], term)
                mixed[i] += prior
            middle = 0.5 * (low[b] + high[b])
            apart = missed[i] / share if share > 0.0 else 0.0
            rate[i] = min(max((apart + middle) / (visits + 1.0), low[b]), high[b])
        free = _free_law(row_ptr, counts, row)
        for i in range(at, at + n):  # against the even mixture of all others
            others = -np.inf
            for j in range(at, at + n):
                if j != i:
                    others = _both(others, mixed[j])
            others = _both(others, free) - math.log(n)
            against[i] = np.inf if log_fit[i] == -np.inf else others - log_fit[i]
        at += n


@compiled
def sum_by_group(
    groups: IntArray,
    group_ptr: IntArray,
    members: IntArray,
    branch_ptr: IntArray,
    kind: IntArray,
    evidence: FloatArray,
    total: FloatArray,
) -> None:
    """``total``: ``[groups, kinds]``; evidence against kinds, summed over members.

    Infinite for kinds that some member does not have.
    """
    for i in range(groups.size):
        first, last = group_ptr[groups[i]], group_ptr[groups[i] + 1]
        present = np.zeros(total.shape[1], np.int64)
        total[i] = 0.0
        for k in range(first, last):
            for b in range(branch_ptr[members[k]], branch_ptr[members[k] + 1]):
                total[i, kind[b]] += evidence[b]
                present[kind[b]] += 1
        for j in range(total.shape[1]):
            if present[j] < last - first:
                total[i, j] = np.inf


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
