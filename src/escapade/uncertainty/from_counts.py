r"""How large a set must be to hold the truth, given how often each pair was tried.

With probability at least 1 − δ the true row of *every* pair lies in its set:

============= ============================================ ==========================
``bound``     rests on                                     holds
============= ============================================ ==========================
``weissman``  the L1 deviation of an empirical row         for visits fixed beforehand
``hoeffding`` the deviation of each probability            for visits fixed beforehand
``bernstein`` the same, with the variance that was seen    for visits fixed beforehand
``kt``        a mixture martingale and Ville's inequality  at all times at once
``bayes``     a Dirichlet posterior                        as Bayesian credibility
============= ============================================ ==========================

The first three hold at all times at once with ``anytime=True``, which gives the n-th
visit the share δ/(n(n+1)).  ``bayes`` says something else than the others: given the
prior, the truth is in the set with posterior probability 1 − δ; it does not promise
coverage for every true row (E30).

δ is shared by the families that can fail: the rows (or, bound by bound, their entries)
with more than one possible successor.  ``families`` overrides their number, for δ that
is shared with other statements, or counts only part of a problem.

A bound on rows of one shape gives sets of another: an entry is off by at most half the
L1 distance; an L1 distance is at most the sum over the entries, and at most
:math:`\sqrt{2\,\mathrm{KL}}` (Pinsker).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from escapade.errors import refusal
from escapade.theory.concentration import (
    bernoulli_kl_bounds,
    empirical_bernstein_radius,
    entry_radius,
    kt_budget,
    row_radius,
    spread_over_time,
)
from escapade.typing import FloatArray
from escapade.uncertainty.evidence import Counted
from escapade.uncertainty.rows import row_sums

__all__ = ["Bound", "Claim", "entry_bounds", "kl_radius", "l1_radius"]

Bound = Literal["weissman", "bayes", "kt", "hoeffding", "bernstein"]
"""Names of the bounds; not every set has all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What a set built from evidence is to guarantee."""

    bound: Bound
    delta: float
    anytime: bool = False
    families: float | None = None

    def __post_init__(self) -> None:
        if not 0.0 < self.delta < 1.0:
            raise refusal("delta", "a number in (0, 1)", self.delta)
        if self.families is not None and not self.families >= 1:
            raise refusal("families", "a number of at least 1", self.families)
        if self.anytime and self.bound == "bayes":
            raise refusal(
                "anytime",
                "False with bound='bayes', whose credibility is given what was seen",
                self.anytime,
            )
        if self.families is not None and self.bound == "bayes":
            raise refusal(
                "families",
                "None with bound='bayes', whose credibility is joint",
                self.families,
            )

    def share(self, visits: FloatArray) -> FloatArray:
        """Return the δ that each number of visits may use, before it is shared."""
        if self.anytime:
            return spread_over_time(self.delta, visits)
        return np.full(visits.shape, self.delta)

    def only(self, *bounds: Bound, sets: str) -> None:
        """Refuse bounds that are not among these."""
        if self.bound not in bounds:
            names = " | ".join(repr(bound) for bound in bounds)
            raise refusal("bound", f"{names} for {sets}", repr(self.bound))


def l1_radius(counted: Counted, claim: Claim) -> FloatArray:
    """Return the L1 radius of each row, at most 2."""
    claim.only("weissman", "hoeffding", "bernstein", "kt", "bayes", sets="an L1 ball")
    size = counted.rows.support_size
    if claim.bound == "weissman":
        return row_radius(
            counted.visits,
            size,
            delta=claim.share(counted.visits),
            families=_rows_that_can_fail(counted, claim),
        )
    if claim.bound == "kt":
        entropy = np.minimum(kl_radius(counted, claim), 2.0)  # before it overflows
        radius = np.sqrt(2.0 * entropy)
    else:
        around = _entry_radius(counted, claim)
        radius = row_sums(around, counted.rows.row_ptr)
    result: FloatArray = np.where(size > 1, np.minimum(radius, 2.0), 0.0)
    return result


def entry_bounds(counted: Counted, claim: Claim) -> tuple[FloatArray, FloatArray]:
    """Return the least and the largest probability of every possible successor."""
    claim.only("hoeffding", "bernstein", "kt", "weissman", "bayes", sets="intervals")
    rows = counted.rows
    if claim.bound == "weissman":
        half = np.repeat(0.5 * l1_radius(counted, claim), rows.support_size)
        return rows.nominal - half, rows.nominal + half
    if claim.bound == "kt":
        return _kt_bounds(counted, claim)
    around = _entry_radius(counted, claim)
    return rows.nominal - around, rows.nominal + around


def kl_radius(counted: Counted, claim: Claim) -> FloatArray:
    """Return the relative entropy of each row, infinite without visits."""
    claim.only("kt", "bayes", sets="a KL ball")
    rows, visits = counted.rows, counted.visits
    budget = kt_budget(
        counted.counts,
        rows.stored_ptr,
        support_size=rows.support_size,
        delta=claim.delta,
        families=_rows_that_can_fail(counted, claim),
    )
    radius = np.where(visits > 0.0, budget / np.maximum(visits, 1e-300), np.inf)
    result: FloatArray = np.where(rows.support_size > 1, radius, 0.0)
    return result


def _rows_that_can_fail(counted: Counted, claim: Claim) -> float:
    if claim.families is not None:
        return claim.families
    return max(float((counted.rows.support_size > 1).sum()), 1.0)


def entries_that_can_fail(counted: Counted, families: float | None) -> float:
    """Return how many probabilities share δ: two that sum to 1 are one."""
    if families is not None:
        return families
    size = counted.rows.support_size
    return max(float(size[size > 2].sum() + (size == 2).sum()), 1.0)


def _entry_radius(counted: Counted, claim: Claim) -> FloatArray:
    """Return how far each probability may be from what was seen, ``[entries]``."""
    rows = counted.rows
    families = entries_that_can_fail(counted, claim.families)
    visits = np.repeat(counted.visits, rows.support_size)
    share = claim.share(visits)
    if claim.bound == "hoeffding":
        radius = entry_radius(visits, delta=share, families=families)
    else:
        p = rows.nominal
        spread = p * (1.0 - p) * visits / np.maximum(visits - 1.0, 1.0)
        radius = empirical_bernstein_radius(
            visits, np.maximum(spread, 0.0), delta=share, families=families
        )
    certain = np.repeat(rows.support_size == 1, rows.support_size)
    result: FloatArray = np.where(certain, 0.0, radius)
    return result


def _kt_bounds(counted: Counted, claim: Claim) -> tuple[FloatArray, FloatArray]:
    """Return bounds from one mixture martingale an entry: seen it, or not."""
    rows = counted.rows
    visits = np.repeat(counted.visits, rows.support_size)
    seen = rows.spread(counted.counts)
    coins = np.stack([seen, np.maximum(visits - seen, 0.0)], axis=1).reshape(-1)
    budget = kt_budget(
        coins,
        np.arange(seen.size + 1, dtype=np.int64) * 2,
        support_size=2,
        delta=claim.delta,
        families=entries_that_can_fail(counted, claim.families),
    )
    mean = np.clip(seen / np.maximum(visits, 1e-300), 0.0, 1.0)
    radius = np.where(visits > 0.0, budget / np.maximum(visits, 1e-300), np.inf)
    lower, upper = bernoulli_kl_bounds(mean, radius)
    certain = np.repeat(rows.support_size == 1, rows.support_size)
    return (
        np.where(certain, 1.0, np.minimum(lower, rows.nominal)),
        np.where(certain, 1.0, np.maximum(upper, rows.nominal)),
    )
