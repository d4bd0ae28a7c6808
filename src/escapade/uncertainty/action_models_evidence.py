r"""Ruling out models by what was seen, at any time and with a stated error.

Let a pair have been visited ``n`` times, with ``N_k`` visits that led to state ``k``.
Under a branch with typical state ``g``, rate τ and law ``q`` the likelihood is a
product over visits.  For each branch ``i`` compare

    ``E_i = L_other / max_{τ, q} L_i(τ, q)``,

where ``L_other`` is a mixture, fixed beforehand, of the other branches of that pair
(rates uniform in their interval; laws uniform, or Dirichlet(½) where any may hold) and
of a law on all successors with a Dirichlet(½) prior.  If branch ``i`` is the true one,
the denominator is at least the true likelihood, and ``L_other / L_true`` is a
martingale that starts at 1.  By Ville's inequality ``E_i`` then *ever* reaches ``1/δ``
with probability at most δ, however the agent chose what to visit and when it looked.
An outcome that is impossible under a branch makes ``E_i`` infinite at once.

Costs speak as well.  If the mean of samples in [0, M] lies in ``[l, u]`` under branch
``i``, then with ``x`` the sum of ``n`` samples over M,

    ``B(x + ½, n − x + ½) / B(½, ½) / max_{l/M <= p <= u/M} p^x (1 − p)^{n − x}``

is at most a mixture of nonnegative supermartingales (each factor is convex in the
sample, so the chord bounds it).  The mean of the two kinds of evidence is again such a
bound, whatever costs have to do with next states; it costs a factor of their number.

Where pairs are said to share their model, their evidence is multiplied: it is gathered
visit by visit, and each visit multiplies by a factor whose mean given the past is at
most 1.  With δ shared among ``G`` groups of pairs that have a choice, a true model is
*ever* ruled out anywhere with probability at most δ: each group has one true model.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import betaln, xlog1py, xlogy

from escapade.kernels.action_evidence import tally_branches, weigh_branches
from escapade.typing import FloatArray, IntArray
from escapade.uncertainty.action_models_branches import Branches
from escapade.uncertainty.rows import Rows

__all__ = ["Seen", "gain_evidence", "transition_evidence"]

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(12)
_NODES, _LOG_WEIGHTS = 0.5 * (_NODES + 1.0), np.log(0.5 * _WEIGHTS)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Seen:
    """What transitions say about the branches of some pairs, one number a branch.

    ``log_evidence`` against the branch, ``log_fit`` the largest log-likelihood that it
    allows, and ``rate``, a rate that comes near it.
    """

    log_evidence: FloatArray
    log_fit: FloatArray
    rate: FloatArray


def transition_evidence(
    rows: Rows, branches: Branches, pairs: IntArray, counts: FloatArray
) -> Seen:
    """Weigh the branches of ``pairs`` by the counts, ``[entries]`` of all pairs."""
    size = int((branches.ptr[1:][pairs] - branches.ptr[:-1][pairs]).sum())
    tallies, found = np.empty((6, size)), np.empty((3, size))
    tally: Callable[..., None] = tally_branches
    tally(
        pairs,
        branches.ptr,
        branches.target,
        branches.around,
        branches.near_ptr,
        branches.near,
        rows.row_ptr,
        rows.successor,
        rows.n_states,
        counts,
        *tallies,
    )
    weigh: Callable[..., None] = weigh_branches
    weigh(
        pairs,
        branches.ptr,
        branches.around,
        branches.low,
        branches.high,
        branches.near_ptr,
        branches.uniform,
        rows.row_ptr,
        counts,
        tallies,
        _NODES,
        _LOG_WEIGHTS,
        *found,
    )
    return Seen(log_evidence=found[0], log_fit=found[1], rate=found[2])


def gain_evidence(
    low: FloatArray, high: FloatArray, total: FloatArray, visits: FloatArray
) -> FloatArray:
    """Weigh branches by samples in [0, 1] whose mean they put in ``[low, high]``.

    All arguments have one shape; so has the log-evidence against the branches.
    """
    rest = visits - total
    p = np.clip(total / np.maximum(visits, 1.0), low, high)
    with np.errstate(divide="ignore"):
        best = xlogy(total, p) + xlog1py(rest, -p)
    free = betaln(total + 0.5, rest + 0.5) - betaln(0.5, 0.5)
    against: FloatArray = np.where(np.isneginf(best), np.inf, free - best)
    return against
