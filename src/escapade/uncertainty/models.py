"""Finitely many models, one of which is true.

Two readings, which are different sets:

*rectangular* (the default)
    nature may take the row of each pair from a different model.  The worst case is the
    worst of M dot products on one gather (:mod:`escapade.kernels.worst_case_models`);
*throughout*
    one model holds for a whole lifetime.  Its worst case is that of whole models, and
    every policy is evaluated under each of them.  The worst row of each pair would
    describe the wider, rectangular set, so it is not offered under this name:
    :meth:`Models.hull` returns that set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from escapade.errors import refusal
from escapade.kernels.compilation import pieces_of_work
from escapade.kernels.worst_case_models import (
    models_backup,
    models_backup_threads,
    models_choice,
)
from escapade.model.cmdp import CMDP
from escapade.model.layout import read_array
from escapade.typing import ArrayLike, BoolArray, FloatArray, IndexArray, IntArray
from escapade.uncertainty.base import Sense, UncertaintySet
from escapade.uncertainty.buffers import read_buffers, read_sense, read_values
from escapade.uncertainty.rows import Rows, as_input, frozen, gather_rows, improper
from escapade.uncertainty.tables import (
    Frame,
    check_entries,
    read_table,
)

__all__ = ["Models"]

_SAME = 1e-9


class Models(UncertaintySet):
    """A finite family of kernels.

    Parameters
    ----------
    cmdp
        The problem; its transitions are nominal, and must be in the family.
    kernels
        The family: problems, or transition probabilities as a dense ``(S, A, S)``
        array or a sparse ``(S·A, S)`` or ``(pairs, S)`` matrix.
    throughout
        Whether one kernel holds for a whole lifetime, so that rows of different
        kernels are never mixed.

    Examples
    --------
    >>> import escapade as ep
    >>> def plant(fails):
    ...     return ep.CMDP(
    ...         [[[1 - fails, fails]], [[0.0, 1.0]]],
    ...         [[1.0], [0.0]],
    ...         [[0.0], [1.0]],
    ...         discount=0.9,
    ...         budget=5.0,
    ...     )
    >>> family = [plant(0.1), plant(0.3)]
    >>> ep.uncertainty.Models(family[0], family).worst([0.0, 1.0]).tolist()
    [0.3, 1.0]
    """

    def __init__(
        self, cmdp: CMDP, kernels: Sequence[Any], *, throughout: bool = False
    ) -> None:
        frame = Frame.of(cmdp)
        if isinstance(kernels, CMDP) or sp.issparse(kernels) or len(kernels) == 0:
            raise refusal("kernels", "a sequence of at least one kernel", kernels)
        tables = [
            _read_kernel(f"kernels[{m}]", kernel, cmdp, frame)
            for m, kernel in enumerate(kernels)
        ]
        rows, probability = _side_by_side(cmdp, tables)
        self._fill(rows, probability, None, throughout=throughout)
        far = self.excess(self.nominal)
        if (far > _SAME).any():
            pair = int(np.argmax(far > _SAME))
            raise refusal(
                "kernels",
                "a family that holds the problem's own transitions",
                f"none that is nearer than {far[pair]:.3g}",
                frame.name(pair),
            )

    def _fill(
        self,
        rows: Rows,
        probability: FloatArray,
        active: BoolArray | None,
        *,
        throughout: bool,
    ) -> None:
        self._rows = rows
        self.n_states = rows.n_states
        self.rectangular = not throughout
        self._probability = frozen(np.ascontiguousarray(probability))
        if active is None:
            active = np.ones((rows.n_rows, probability.shape[1]), dtype=np.bool_)
        self._active = frozen(active)

    @classmethod
    def _of(
        cls,
        rows: Rows,
        probability: FloatArray,
        active: BoolArray | None,
        *,
        throughout: bool = False,
    ) -> Models:
        family = cls.__new__(cls)
        family._fill(rows, probability, active, throughout=throughout)
        return family

    def __reduce__(self) -> tuple[Any, ...]:
        arrays = (self._rows, self._probability, self._active)
        return (_rebuilt, (*arrays, not self.rectangular))

    # -- what is in the family -----------------------------------------------------

    @property
    def n_models(self) -> int:
        """Number of models, those put aside by :meth:`keep` included."""
        return int(self._probability.shape[1])

    @property
    def active(self) -> BoolArray:
        """``(pairs, M)``; which models are still possible for each pair."""
        return self._active

    @property
    def model_rows(self) -> FloatArray:
        """``[entries, M]``; the kernel of every model, side by side."""
        return self._probability

    @property
    def row_ptr(self) -> IntArray:
        """``[pairs + 1]``; where the entries of each pair begin."""
        return self._rows.row_ptr

    @property
    def successor(self) -> IndexArray:
        """``[entries]``; the possible successors, increasing within a pair."""
        return self._rows.successor

    @property
    def nominal(self) -> FloatArray:
        """``[entries]``; the nominal kernel, a member of the set."""
        return self._rows.nominal

    @property
    def reachable(self) -> BoolArray:
        """``[entries]``; whether some member gives the entry a positive probability."""
        still = np.repeat(self._active, np.diff(self.row_ptr), axis=0)
        possible: BoolArray = (self._probability > 0.0) & still
        reached: BoolArray = np.logical_or.reduce(possible, axis=1)
        return reached

    def members(self, cmdp: CMDP) -> Iterator[CMDP]:
        """Iterate over the models of a family of which one holds throughout."""
        self.check_matches(cmdp)
        if self.rectangular:
            raise refusal(
                "sets",
                "a family of which one model holds throughout",
                "one whose pairs may mix the models",
            )
        for m in np.flatnonzero(self._active.all(axis=0)):
            column = self._probability[:, m]
            positive = column > 0.0
            before = np.concatenate([[0], np.cumsum(positive)])
            yield cmdp.replace(
                row_ptr=before[self.row_ptr],
                successor=self.successor[positive],
                probability=column[positive],
            )

    # -- extremes ------------------------------------------------------------------

    def _refuse_pairs(self) -> None:
        if not self.rectangular:
            raise refusal(
                "sets",
                "a set that is rectangular over pairs",
                "one model throughout, which has no worst row; see Models.hull",
            )

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
        self._refuse_pairs()
        value, gain, target = read_buffers(self, v, immediate, out)
        sign = read_sense(sense)
        chunks = pieces_of_work(self.n_states)
        run: Callable[..., None] = (
            models_backup if chunks == 1 else models_backup_threads
        )
        extra = () if chunks == 1 else (chunks,)
        layout = (self.row_ptr, self.successor, self._probability, self._active)
        run(*layout, gain, discount, value, sign, target, *extra)
        return target

    def worst_kernel(self, v: FloatArray, *, sense: Sense = "max") -> FloatArray:
        """Return a member that attains :meth:`worst`, ``[entries]``."""
        self._refuse_pairs()
        choice = np.empty(self.n_pairs, dtype=np.int64)
        choose: Callable[..., None] = models_choice
        choose(
            self.row_ptr,
            self.successor,
            self._probability,
            self._active,
            read_values(self, v),
            read_sense(sense),
            choice,
            np.empty(self.n_pairs),
        )
        return self._rows_of_models(choice)

    def _rows_of_models(self, choice: IntArray) -> FloatArray:
        chosen = np.repeat(choice, np.diff(self.row_ptr))
        rows: FloatArray = self._probability[np.arange(chosen.size), chosen]
        return rows

    # -- members -------------------------------------------------------------------

    def name(self, pair: int) -> str:
        """Say in words which pair this is."""
        return self._rows.name(pair)

    def excess(self, probability: FloatArray) -> FloatArray:
        """Return how far each row lies outside the set, ``[pairs]``.

        The largest difference of an entry from the nearest model: for each pair apart,
        or, where one model holds throughout, from the model nearest over all pairs.
        """
        array = self._rows.read_kernel(probability)
        starts = self.row_ptr[:-1]
        off = np.abs(self._probability - array[:, np.newaxis])
        far = np.maximum.reduceat(off, starts, axis=0)
        far[~self._active] = np.inf
        if self.rectangular:
            nearest = far.min(axis=1)
        else:
            nearest = far[:, int(np.argmin(far.max(axis=0)))]
        gap = improper(array, self.row_ptr)
        excess: FloatArray = np.where(gap > _SAME, np.maximum(nearest, gap), nearest)
        return excess

    def sample(self, rng: np.random.Generator) -> FloatArray:
        """Draw a member at random, ``[entries]``.

        Any model that is still possible is equally likely, for each pair apart or for
        all pairs at once.
        """
        ticket = rng.random(self._active.shape)
        if not self.rectangular:
            ticket = np.broadcast_to(ticket[:1], ticket.shape)
            possible = np.broadcast_to(self._active.all(axis=0), ticket.shape)
        else:
            possible = self._active
        return self._rows_of_models(np.where(possible, ticket, -1.0).argmax(axis=1))

    # -- derived sets --------------------------------------------------------------

    def hull(self) -> Models:
        """Return the smallest rectangular set that holds the family."""
        return Models._of(self._rows, self._probability, self._active)

    def keep(self, models: ArrayLike) -> Models:
        """Return the family without the models that evidence has ruled out.

        ``models`` is a mask, ``(M,)`` or, where pairs may differ, ``(pairs, M)``.  If
        the nominal row of a pair falls out, the first model that is left takes its
        place.
        """
        mask = read_array("models", "a boolean mask", models)
        shapes: list[tuple[int, ...]] = [(self.n_models,)]
        if self.rectangular:
            shapes.append((self.n_pairs, self.n_models))
        if mask.dtype != np.bool_ or mask.shape not in shapes:
            raise refusal(
                "models",
                f"a boolean mask of shape {' or '.join(map(str, shapes))}",
                f"{mask.dtype} of shape {mask.shape}",
            )
        active = self._active & mask
        empty = ~active.any(axis=1)
        if empty.any():
            pair = int(np.argmax(empty))
            raise refusal(
                "models", "at least one model for every pair", "none", self.name(pair)
            )
        smaller = Models._of(
            self._rows, self._probability, active, throughout=not self.rectangular
        )
        lost = smaller.excess(self.nominal) > _SAME
        if not lost.any():
            return smaller
        if not self.rectangular:
            lost[:] = True
        first = smaller._rows_of_models(active.argmax(axis=1))
        replaced = np.repeat(lost, np.diff(self.row_ptr))
        rows = self._rows.with_nominal(np.where(replaced, first, self.nominal))
        return Models._of(
            rows, self._probability, active, throughout=not self.rectangular
        )

    def lift(self, pairs: IntArray, target: IntArray, n_states: int) -> Models:
        """Return the set over a product space; see the base class."""
        rows = self._rows.lift(pairs, target, n_states)
        _, entries = gather_rows(self.row_ptr, np.asarray(pairs))
        active = self._active[np.asarray(pairs)]
        return Models._of(rows, self._probability[entries], active)

    # -- from posterior samples ----------------------------------------------------

    @classmethod
    def from_posterior_samples(
        cls, samples: ArrayLike, *, cmdp: CMDP | None = None, throughout: bool = True
    ) -> Models:
        """Return the family of all samples; the most central one is nominal.

        Parameters
        ----------
        samples
            ``(samples, S, A, S)``, ``(samples, S·A, S)`` or ``(samples, pairs, S)``.
        cmdp
            The problem whose pairs are meant; needed where actions are masked.
        throughout
            Whether one sample holds for a whole lifetime.
        """
        from escapade.uncertainty.posterior import read_samples

        drawn = read_samples(samples, cmdp)
        centre = drawn.probability.mean(axis=1)
        distance = np.abs(drawn.probability - centre[:, np.newaxis]).sum(axis=0)
        nominal = drawn.probability[:, int(np.argmin(distance))]
        rows = drawn.rows.with_nominal(as_input(nominal))
        return cls._of(rows, drawn.probability, None, throughout=throughout)


def _rebuilt(
    rows: Rows, probability: FloatArray, active: BoolArray, throughout: bool
) -> Models:
    return Models._of(rows, probability, active, throughout=throughout)


def _read_kernel(argument: str, kernel: Any, cmdp: CMDP, frame: Frame) -> sp.csr_array:
    """Return one kernel as a ``(pairs, S)`` matrix of distributions."""
    if isinstance(kernel, CMDP):
        same = (
            kernel.n_states == cmdp.n_states
            and np.array_equal(kernel.state_ptr, cmdp.state_ptr)
            and np.array_equal(kernel.pair_action, cmdp.pair_action)
        )
        if not same:
            raise refusal(argument, "a problem with the same pairs", kernel)
        return kernel.transition_matrix
    table = read_table(argument, kernel, frame)
    check_entries(argument, table.data, table, frame)
    sums = np.asarray(table.sum(axis=1)).reshape(-1)
    off = np.abs(sums - 1.0) > 1e-8
    if off.any():
        pair = int(np.argmax(off))
        raise refusal(
            argument,
            "rows that sum to 1",
            f"a sum of {sums[pair]:.10g}",
            frame.name(pair),
        )
    table.data /= np.repeat(sums, np.diff(table.indptr))
    table.eliminate_zeros()
    return table


def _side_by_side(
    cmdp: CMDP, tables: Sequence[sp.csr_array]
) -> tuple[Rows, FloatArray]:
    """Return the union of all supports, and each kernel on it, ``[entries, M]``."""
    union = cmdp.transition_matrix
    for table in tables:
        union = sp.csr_array(union + table)  # probabilities: nothing cancels
    union.sum_duplicates()
    rows = Rows(
        n_states=cmdp.n_states,
        stored_ptr=frozen(union.indptr.astype(np.int64)),
        stored=frozen(union.indices.astype(np.int32)),
        stored_nominal=np.zeros(union.nnz),
        pair_state=cmdp.pair_state,
        pair_action=cmdp.pair_action,
    )
    nominal = np.zeros(union.nnz)
    nominal[rows.entries_of(cmdp.transition_matrix)] = cmdp.probability
    probability = np.zeros((union.nnz, len(tables)))
    for m, table in enumerate(tables):
        probability[rows.entries_of(table), m] = table.data
    return rows.with_nominal(nominal), probability
