"""The ball of relative entropy: rows that explain what was seen nearly as well.

``{q : Σ p ln(p/q) ≤ ρ}``.  With counts as ``p`` and ρ the anytime radius of the
theory layer (``bound="kt"``) this is the smallest of the confidence sets here: it is a
level set of the likelihood, so it is narrow where probabilities are near 0 or 1, where
an L1 ball is not.  An entry of nominal probability 0 may be given mass, and one of
positive probability never loses all of it.  The worst case is a search in one variable
(:mod:`escapade.kernels.worst_case_kl`), twenty to sixty times the work of an L1 ball.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from escapade.kernels.compilation import pieces_of_work
from escapade.kernels.worst_case_kl import kl_backup, kl_backup_threads, kl_kernel
from escapade.model.cmdp import CMDP
from escapade.theory.concentration import relative_entropy
from escapade.typing import (
    ArrayLike,
    BoolArray,
    FloatArray,
    IndexArray,
    IntArray,
    Seed,
)
from escapade.uncertainty.base import Sense
from escapade.uncertainty.buffers import read_buffers, read_sense
from escapade.uncertainty.evidence import read_counts
from escapade.uncertainty.from_counts import Bound, Claim, kl_radius
from escapade.uncertainty.posterior import dirichlet, entropy_distance, read_samples
from escapade.uncertainty.row_set import RowSet
from escapade.uncertainty.rows import Rows, frozen, read_per_pair, read_rows_of

__all__ = ["KLBall"]


class KLBall(RowSet):
    """Rows of bounded relative entropy from the nominal row, each pair for itself.

    Parameters
    ----------
    cmdp
        The problem whose transitions are nominal.
    radius
        ρ of at least 0, infinity for "any row on the support": a number, or one a pair
        as ``(S, A)`` or ``(pairs,)``.
    support
        Successors that are possible: the problem's own by default, ``"everywhere"``,
        or a mask (see :mod:`escapade.uncertainty.rows`).

    Examples
    --------
    >>> import escapade as ep
    >>> cmdp = ep.CMDP(
    ...     [[[0.5, 0.5]], [[0.0, 1.0]]],
    ...     [[1.0], [0.0]],
    ...     [[0.0], [1.0]],
    ...     discount=0.9,
    ...     budget=5.0,
    ... )
    >>> ball = ep.uncertainty.KLBall(cmdp, radius=0.1)
    >>> ball.worst([0.0, 1.0]).round(4).tolist()
    [0.7129, 1.0]
    """

    def __init__(self, cmdp: CMDP, radius: ArrayLike, *, support: Any = None) -> None:
        self._fill(read_rows_of(cmdp, support), radius)

    @classmethod
    def around(cls, rows: Rows, radius: ArrayLike) -> KLBall:
        """Return the ball around rows that are not those of a problem."""
        ball = cls.__new__(cls)
        ball._fill(rows, radius)
        return ball

    @classmethod
    def from_counts(
        cls,
        counts: Any,
        *,
        bound: Bound = "kt",
        delta: float = 0.05,
        cmdp: CMDP | None = None,
        support: Any = None,
        families: float | None = None,
        prior: float = 1.0,
        draws: int = 1000,
        seed: Seed = 0,
    ) -> KLBall:
        """Return the set that holds the true kernel with confidence 1 − ``delta``.

        Parameters
        ----------
        counts
            How often each transition was seen: ``(S, A, S)``, or ``(S·A, S)``,
            ``(pairs, S)`` dense or sparse; with ``cmdp`` also one count a possible
            transition.
        bound
            ``"kt"`` or ``"bayes"`` (see
            :mod:`escapade.uncertainty.from_counts`).
        delta
            Probability that any pair is outside.
        cmdp
            The problem whose pairs and possible transitions are meant.  Its
            probabilities are not read.  Without it every state may follow any pair.
        support
            Other possible successors than those of ``cmdp``.
        families
            How many statements share ``delta``; by default those made here.
        prior
            Weight of each possible successor in the Dirichlet prior of ``"bayes"``.
        draws, seed
            How many draws of the posterior set the level of ``"bayes"``, and their
            seed.
        """
        claim = Claim(bound=bound, delta=delta, families=families)
        counted = read_counts(counts, cmdp, support)
        if bound == "bayes":
            posterior = dirichlet(counted, prior)
            radius = posterior.kl_radius(delta, draws, seed)
            return cls.around(posterior.rows, radius)
        return cls.around(counted.rows, kl_radius(counted, claim))

    @classmethod
    def from_posterior_samples(
        cls, samples: ArrayLike, *, delta: float = 0.05, cmdp: CMDP | None = None
    ) -> KLBall:
        """Return a joint credible region: balls around the mean of posterior samples.

        Parameters
        ----------
        samples
            ``(samples, S, A, S)``, ``(samples, S·A, S)`` or ``(samples, pairs, S)``.
        delta
            Posterior probability that any pair is outside.
        cmdp
            The problem whose pairs are meant; needed where actions are masked.
        """
        drawn = read_samples(samples, cmdp)
        return cls.around(*drawn.ball(entropy_distance, delta, np.inf))

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self).around, (self._rows, self._radius))

    def _fill(self, rows: Rows, radius: ArrayLike) -> None:
        super().__init__(rows)
        self._radius = read_per_pair("radius", radius, rows)
        self._layout = (
            rows.seen_ptr,
            rows.seen,
            rows.seen_nominal,
            rows.unseen_ptr,
            rows.unseen,
            rows.everywhere,
            self._radius,
        )

    @property
    def radius(self) -> FloatArray:
        """``[pairs]``; ρ of each pair."""
        return self._radius

    @property
    def reachable(self) -> BoolArray:
        """``[entries]``; whether some member gives the entry a positive probability."""
        free = np.repeat(self._radius > 0.0, np.diff(self.row_ptr))
        reached: BoolArray = (self.nominal > 0.0) | free
        return reached

    def backup(
        self,
        v: FloatArray,
        immediate: FloatArray | None,
        discount: float,
        *,
        sense: Sense = "max",
        out: FloatArray | None = None,
    ) -> FloatArray:
        """Return ``immediate + discount · extreme over P of P · v``, ``[pairs]``.

        The extremes are rounded outward, so they bound every member.
        """
        value, gain, target = read_buffers(self, v, immediate, out)
        sign = read_sense(sense)
        chunks = pieces_of_work(self.n_states)
        run: Callable[..., None] = kl_backup if chunks == 1 else kl_backup_threads
        extra = () if chunks == 1 else (chunks,)
        run(*self._layout, gain, discount, value, sign, target, *extra)
        return target

    def _extreme_rows(
        self,
        row_ptr: IntArray,
        successor: IndexArray,
        v: FloatArray,
        sign: float,
    ) -> FloatArray:
        out = np.empty(successor.size)
        kl_kernel(row_ptr, successor, self.nominal, self._radius, v, sign, out)
        return out

    def _distance(self, probability: FloatArray) -> FloatArray:
        positive = np.maximum(probability, 0.0)
        entropy = relative_entropy(self.nominal, positive, self.row_ptr)
        bounded = np.isfinite(self._radius)
        finite = np.where(bounded, self._radius, 0.0)
        excess: FloatArray = np.where(bounded, entropy - finite, -np.inf)
        return excess

    def shrink(self, factor: float) -> KLBall:
        """Return the ball whose radii are ``factor`` in [0, 1] times as large."""
        share = self._shrunk(factor)
        radius = share * self._radius if share > 0.0 else np.zeros(self.n_pairs)
        return KLBall.around(self._rows, radius)

    def lift(self, pairs: IntArray, target: IntArray, n_states: int) -> KLBall:
        """Return the set over a product space; see the base class."""
        rows = self._rows.lift(pairs, target, n_states)
        return KLBall.around(rows, frozen(self._radius[np.asarray(pairs)]))
