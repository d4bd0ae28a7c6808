"""The L1 ball: rows within a distance of the nominal one.

``{q : Σ |q − p| ≤ ψ}``, the set of the paper's experiments.  A radius of 0 leaves the
nominal row alone, one of 2 allows every row on the support.  Its worst case moves ψ/2
of the mass from the worst successors to the best one, which costs a sort of the
successor values and no more (:mod:`escapade.kernels.worst_case_l1`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from escapade.kernels.compilation import pieces_of_work
from escapade.kernels.worst_case_l1 import l1_backup, l1_backup_threads, l1_kernel
from escapade.model.cmdp import CMDP
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
from escapade.uncertainty.from_counts import Bound, Claim, l1_radius
from escapade.uncertainty.posterior import dirichlet, l1_distance, read_samples
from escapade.uncertainty.row_set import RowSet
from escapade.uncertainty.rows import (
    Rows,
    frozen,
    read_per_pair,
    read_rows_of,
    row_sums,
)
from escapade.uncertainty.sliced import slice_rows

__all__ = ["L1Ball"]


class L1Ball(RowSet):
    """Rows within an L1 distance of the nominal row, each pair for itself.

    Parameters
    ----------
    cmdp
        The problem whose transitions are nominal.
    radius
        ψ in [0, 2]: a number, or one a pair as ``(S, A)`` or ``(pairs,)``.
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
    >>> ball = ep.uncertainty.L1Ball(cmdp, radius=0.4)
    >>> ball.worst([0.0, 1.0]).tolist()
    [0.7, 1.0]
    """

    def __init__(self, cmdp: CMDP, radius: ArrayLike, *, support: Any = None) -> None:
        rows = read_rows_of(cmdp, support)
        self._fill(rows, read_per_pair("radius", radius, rows, most=2.0))

    @classmethod
    def around(cls, rows: Rows, radius: ArrayLike) -> L1Ball:
        """Return the ball around rows that are not those of a problem."""
        ball = cls.__new__(cls)
        ball._fill(rows, read_per_pair("radius", radius, rows, most=2.0))
        return ball

    @classmethod
    def from_counts(
        cls,
        counts: Any,
        *,
        bound: Bound = "weissman",
        delta: float = 0.05,
        cmdp: CMDP | None = None,
        support: Any = None,
        anytime: bool = False,
        families: float | None = None,
        prior: float = 1.0,
        draws: int = 1000,
        seed: Seed = 0,
    ) -> L1Ball:
        """Return the set that holds the true kernel with confidence 1 − ``delta``.

        Parameters
        ----------
        counts
            How often each transition was seen: ``(S, A, S)``, or ``(S·A, S)``,
            ``(pairs, S)`` dense or sparse; with ``cmdp`` also one count a possible
            transition.
        bound
            ``"weissman"``, ``"hoeffding"``, ``"bernstein"``, ``"kt"`` or ``"bayes"``
            (see :mod:`escapade.uncertainty.from_counts`).
        delta
            Probability that any pair is outside.
        cmdp
            The problem whose pairs and possible transitions are meant.  Its
            probabilities are not read.  Without it every state may follow any pair.
        support
            Other possible successors than those of ``cmdp``.
        anytime
            Whether to hold for all numbers of visits at once; ``"kt"`` does anyway.
        families
            How many statements share ``delta``; by default those made here.
        prior
            Weight of each possible successor in the Dirichlet prior of ``"bayes"``.
        draws, seed
            How many draws of the posterior set the level of ``"bayes"``, and their
            seed.
        """
        claim = Claim(bound=bound, delta=delta, anytime=anytime, families=families)
        counted = read_counts(counts, cmdp, support)
        if bound == "bayes":
            posterior = dirichlet(counted, prior)
            radius = posterior.l1_radius(delta, draws, seed)
            return cls.around(posterior.rows, radius)
        return cls.around(counted.rows, l1_radius(counted, claim))

    @classmethod
    def from_posterior_samples(
        cls, samples: ArrayLike, *, delta: float = 0.05, cmdp: CMDP | None = None
    ) -> L1Ball:
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
        return cls.around(*drawn.ball(l1_distance, delta, 2.0))

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self).around, (self._rows, self._radius))

    def _fill(self, rows: Rows, radius: FloatArray) -> None:
        super().__init__(rows)
        self._radius = radius

    @property
    def radius(self) -> FloatArray:
        """``[pairs]``; ψ of each pair."""
        return self._radius

    @property
    def _moved(self) -> FloatArray:
        """``[pairs]``; how much mass may change its place."""
        return frozen(np.minimum(0.5 * self._radius, 1.0))

    @cached_property
    def _layout(self) -> tuple[Any, ...]:
        rows, moved = self._rows, self._moved
        slices = slice_rows(rows.seen_ptr, rows.seen, rows.seen_nominal)
        return (
            slices.start,
            slices.width,
            slices.row_of,
            slices.index,
            slices.mass,
            slices.per_slot(moved),
            slices.wide,
            frozen(moved[slices.wide]),
            rows.seen_ptr,
            rows.seen,
            rows.seen_nominal,
            rows.unseen_ptr,
            rows.unseen,
            rows.everywhere,
        )

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
        """Return ``immediate + discount · extreme over P of P · v``, ``[pairs]``."""
        value, gain, target = read_buffers(self, v, immediate, out)
        sign = read_sense(sense)
        chunks = pieces_of_work(self.n_states)
        run: Callable[..., None] = l1_backup if chunks == 1 else l1_backup_threads
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
        l1_kernel(row_ptr, successor, self.nominal, self._moved, v, sign, out)
        return out

    def _distance(self, probability: FloatArray) -> FloatArray:
        far = row_sums(np.abs(probability - self.nominal), self.row_ptr)
        excess: FloatArray = far - self._radius
        return excess

    def shrink(self, factor: float) -> L1Ball:
        """Return the ball whose radii are ``factor`` in [0, 1] times as large."""
        return L1Ball.around(self._rows, self._shrunk(factor) * self._radius)

    def lift(self, pairs: IntArray, target: IntArray, n_states: int) -> L1Ball:
        """Return the set over a product space; see the base class."""
        rows = self._rows.lift(pairs, target, n_states)
        return L1Ball.around(rows, self._radius[np.asarray(pairs)])
