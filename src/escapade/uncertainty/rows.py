"""The rows of a set: which successors are possible, and what is nominal.

All sets that allow every pair its own row stand on the same arrays: for each pair the
possible successors in increasing order, with the nominal probability of each, which may
be 0.  When *every* state is a possible successor, that list would have S entries a
pair; then only the entries of positive nominal probability are stored, and
``everywhere`` stands for the rest.  A worst case needs the others through one number
alone, the best value of all; the whole list is written out only for those who ask.

What may be possible is said by ``support``:

``None``
    the transitions of the problem, and no others;
``"everywhere"``
    any state after any pair;
a mask
    boolean ``(S, A, S)``, or a sparse ``(S·A, S)`` or ``(pairs, S)`` matrix whose
    stored entries are the possible ones.  It must hold the problem's transitions.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp

from escapade.errors import check_kind, refusal
from escapade.model.arguments import read_numbers
from escapade.model.cmdp import CMDP
from escapade.model.layout import read_array
from escapade.typing import ArrayLike, BoolArray, FloatArray, IndexArray, IntArray
from escapade.uncertainty.tables import Frame, read_table

__all__ = [
    "Rows",
    "as_input",
    "frozen",
    "gather_rows",
    "improper",
    "read_per_pair",
    "read_rows_of",
    "row_sums",
]

_ROW_TOLERANCE = 1e-8

A = TypeVar("A", bound=np.ndarray[Any, Any])


def frozen(array: A) -> A:
    """Return the array, made read-only."""
    array.flags.writeable = False
    return array


def as_input(values: ArrayLike) -> FloatArray:
    """Return numbers as kernels take them: contiguous doubles, a read-only view.

    A kernel is compiled once for each kind of argument; one kind is enough.
    """
    view = np.ascontiguousarray(values, dtype=np.float64).view()
    return frozen(view)


def row_sums(values: FloatArray, row_ptr: IntArray) -> FloatArray:
    """Return the sum of each row, 0 for empty rows: ``[entries]`` to ``[rows]``."""
    ends = np.concatenate([values, [0.0]])  # so that an empty last row has a place
    sums: FloatArray = np.add.reduceat(ends, row_ptr[:-1])
    sums[np.diff(row_ptr) == 0] = 0.0
    return sums


def gather_rows(row_ptr: IntArray, rows: IntArray) -> tuple[IntArray, IntArray]:
    """Return the pointers of the chosen rows, and the entries that they consist of."""
    first = row_ptr[:-1][rows]
    lengths = row_ptr[1:][rows] - first
    pointers = np.zeros(lengths.size + 1, dtype=np.int64)
    np.cumsum(lengths, out=pointers[1:])
    entries = np.arange(pointers[-1]) + np.repeat(first - pointers[:-1], lengths)
    return pointers, entries


def improper(probability: FloatArray, row_ptr: IntArray) -> FloatArray:
    """Return how far each row is from being a distribution, ``[rows]``."""
    gap = np.abs(row_sums(probability, row_ptr) - 1.0)
    below = row_sums(np.maximum(-probability, 0.0), row_ptr)
    far: FloatArray = np.maximum(gap, below)
    return far


@dataclass(frozen=True, kw_only=True, eq=False)
class Rows:
    """Possible successors and nominal probabilities, row by row.

    Attributes
    ----------
    n_states
        ``S``.
    stored_ptr, stored, stored_nominal
        The entries that are kept in memory.
    everywhere
        Whether all other states are possible as well, with nominal probability 0;
        the stored entries are then those of positive probability.
    pair_state, pair_action
        Names of the rows, where they are pairs of a problem.
    """

    n_states: int
    stored_ptr: IntArray
    stored: IndexArray
    stored_nominal: FloatArray
    everywhere: bool = False
    pair_state: IndexArray | None = None
    pair_action: IndexArray | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.stored_ptr.size - 1

    @cached_property
    def row_ptr(self) -> IntArray:
        """``[rows + 1]``; where the possible successors of each row begin."""
        if self.everywhere:
            return frozen(np.arange(self.n_rows + 1, dtype=np.int64) * self.n_states)
        return self.stored_ptr

    @cached_property
    def successor(self) -> IndexArray:
        """``[entries]``; every possible successor."""
        if self.everywhere:
            states = np.arange(self.n_states, dtype=np.int32)
            return frozen(np.tile(states, self.n_rows))
        return self.stored

    @cached_property
    def nominal(self) -> FloatArray:
        """``[entries]``; nominal probabilities, zeros included."""
        if self.everywhere:
            return frozen(self.spread(self.stored_nominal))
        return self.stored_nominal

    @cached_property
    def support_size(self) -> IntArray:
        """``[rows]``; how many successors are possible."""
        return frozen(np.diff(self.row_ptr))

    @cached_property
    def _seen(self) -> tuple[IntArray, IndexArray, FloatArray]:
        positive = self.stored_nominal > 0.0
        if positive.all():
            return self.stored_ptr, self.stored, self.stored_nominal
        return (
            frozen(_pointers(positive, self.stored_ptr)),
            frozen(self.stored[positive]),
            frozen(self.stored_nominal[positive]),
        )

    @property
    def seen_ptr(self) -> IntArray:
        """``[rows + 1]``; where the entries of positive nominal probability begin."""
        return self._seen[0]

    @property
    def seen(self) -> IndexArray:
        """Successors of positive nominal probability."""
        return self._seen[1]

    @property
    def seen_nominal(self) -> FloatArray:
        """Probabilities of :attr:`seen`, all positive."""
        return self._seen[2]

    @cached_property
    def _unseen(self) -> tuple[IntArray, IndexArray]:
        zero = self.stored_nominal == 0.0
        if not zero.any():
            return frozen(np.empty(0, np.int64)), frozen(np.empty(0, np.int32))
        return frozen(_pointers(zero, self.stored_ptr)), frozen(self.stored[zero])

    @property
    def unseen_ptr(self) -> IntArray:
        """``[rows + 1]`` where stored entries of probability 0 begin; ``[0]`` if none.

        Entries that only ``everywhere`` stands for are not among them.
        """
        return self._unseen[0]

    @property
    def unseen(self) -> IndexArray:
        """Possible successors of nominal probability 0 that are stored."""
        return self._unseen[1]

    def name(self, row: int) -> str:
        """Say in words which row this is."""
        if self.pair_state is None or self.pair_action is None:
            return f"pair {row}"
        return f"state {self.pair_state[row]}, action {self.pair_action[row]}"

    def row_of_entry(self) -> IntArray:
        """``[entries]``; the row of every possible successor."""
        return np.repeat(np.arange(self.n_rows), np.diff(self.row_ptr))

    def spread(self, stored: FloatArray) -> FloatArray:
        """Return numbers on the stored entries as numbers on all, 0 elsewhere."""
        if not self.everywhere:
            return stored
        full = np.zeros(self.n_rows * self.n_states)
        rows = np.repeat(np.arange(self.n_rows), np.diff(self.stored_ptr))
        full[rows * self.n_states + self.stored] = stored
        return full

    def read_kernel(self, probability: ArrayLike) -> FloatArray:
        """Return a kernel on the entries; rows need not be distributions."""
        array = read_numbers("probability", probability)
        size = int(self.row_ptr[-1])
        if array.shape != (size,):
            raise refusal("probability", f"shape ({size},)", f"shape {array.shape}")
        bad = ~np.isfinite(array)
        if bad.any():
            entry = int(np.argmax(bad))
            row = int(np.searchsorted(self.row_ptr, entry, side="right")) - 1
            raise refusal(
                "probability", "finite numbers", float(array[entry]), self.name(row)
            )
        return array

    def entries_of(self, matrix: sp.csr_array) -> IntArray:
        """Return where the stored entries of a ``(rows, S)`` matrix stand among all.

        −1 for those that are not possible.  The matrix must be in canonical form.
        """
        rows = np.repeat(np.arange(self.n_rows), np.diff(matrix.indptr))
        wanted = rows * self.n_states + matrix.indices
        if self.everywhere:
            return wanted
        keys = self.row_of_entry() * self.n_states + self.successor
        place = np.searchsorted(keys, wanted)
        inside = place < keys.size
        inside[inside] = keys[place[inside]] == wanted[inside]
        found: IntArray = np.where(inside, place, -1)
        return found

    def with_nominal(self, nominal: FloatArray) -> Rows:
        """Return the same entries with other nominal probabilities, ``[entries]``."""
        return Rows(
            n_states=self.n_states,
            stored_ptr=self.row_ptr,
            stored=self.successor,
            stored_nominal=frozen(nominal),
            pair_state=self.pair_state,
            pair_action=self.pair_action,
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the stored arrays alone, to be read-only again when they come back."""
        arrays = (self.stored_ptr, self.stored, self.stored_nominal)
        names = (self.pair_state, self.pair_action)
        return (_rebuilt, (self.n_states, arrays, self.everywhere, names))

    def lift(self, pairs: IntArray, target: IntArray, n_states: int) -> Rows:
        """Return copies of chosen rows with new successors; see the sets' ``lift``."""
        chosen = np.asarray(pairs)
        if chosen.ndim != 1 or chosen.dtype.kind not in "iu":
            raise refusal("pairs", "a one-dimensional array of integers", chosen.dtype)
        if chosen.size and not 0 <= chosen.min() <= chosen.max() < self.n_rows:
            bad = chosen[(chosen < 0) | (chosen >= self.n_rows)]
            raise refusal("pairs", f"pairs in 0..{self.n_rows - 1}", int(bad[0]))
        pointers, entries = gather_rows(self.row_ptr, chosen)
        labels = np.asarray(target)
        if labels.shape != (entries.size,):
            raise refusal("target", f"{entries.size} states", f"shape {labels.shape}")
        check_labels(labels, pointers, n_states)
        return Rows(
            n_states=int(n_states),
            stored_ptr=frozen(pointers),
            stored=frozen(labels.astype(np.int32)),
            stored_nominal=frozen(self.nominal[entries]),
        )


def _rebuilt(
    n_states: int, arrays: tuple[Any, ...], everywhere: bool, names: tuple[Any, ...]
) -> Rows:
    for array in (*arrays, *names):
        if array is not None:
            frozen(array)
    stored_ptr, stored, stored_nominal = arrays
    return Rows(
        n_states=n_states,
        stored_ptr=stored_ptr,
        stored=stored,
        stored_nominal=stored_nominal,
        everywhere=everywhere,
        pair_state=names[0],
        pair_action=names[1],
    )


def check_labels(labels: IntArray, row_ptr: IntArray, n_states: int) -> None:
    """Refuse new successors that leave the states or do not increase in a row."""
    if labels.size and not 0 <= labels.min() <= labels.max() < n_states:
        bad = labels[(labels < 0) | (labels >= n_states)]
        raise refusal("target", f"states in 0..{n_states - 1}", int(bad[0]))
    falling = np.diff(labels) <= 0
    starts = row_ptr[1:-1]
    falling[starts[(starts > 0) & (starts < labels.size)] - 1] = False
    if falling.any():
        entry = int(np.argmax(falling)) + 1
        row = int(np.searchsorted(row_ptr, entry, side="right")) - 1
        raise refusal(
            "target",
            "states that increase within a row",
            f"{labels[entry]} after {labels[entry - 1]}",
            f"row {row}",
        )


def read_rows_of(cmdp: CMDP, support: Any = None) -> Rows:
    """Return the rows of a problem on the given support (see the module's text)."""
    check_kind("cmdp", cmdp, CMDP)
    if support is None or isinstance(support, str):
        if support not in (None, "everywhere"):
            raise refusal("support", "None, 'everywhere' or a mask", repr(support))
        return Rows(
            n_states=cmdp.n_states,
            stored_ptr=cmdp.row_ptr,
            stored=cmdp.successor,
            stored_nominal=cmdp.probability,
            everywhere=support is not None,
            pair_state=cmdp.pair_state,
            pair_action=cmdp.pair_action,
        )
    mask = _read_mask(support, cmdp)
    rows = Rows(
        n_states=cmdp.n_states,
        stored_ptr=frozen(mask.indptr.astype(np.int64)),
        stored=frozen(mask.indices.astype(np.int32)),
        stored_nominal=np.zeros(mask.nnz),
        pair_state=cmdp.pair_state,
        pair_action=cmdp.pair_action,
    )
    place = rows.entries_of(cmdp.transition_matrix)
    if (place < 0).any():
        entry = int(np.argmax(place < 0))
        row = int(np.searchsorted(cmdp.row_ptr, entry, side="right")) - 1
        raise refusal(
            "support",
            "a mask that holds every transition of the problem",
            f"none for next state {cmdp.successor[entry]}",
            rows.name(row),
        )
    nominal = np.zeros(mask.nnz)
    nominal[place] = cmdp.probability
    return rows.with_nominal(nominal)


def read_per_pair(
    argument: str, value: ArrayLike, rows: Rows, *, most: float = np.inf
) -> FloatArray:
    """Return one number of at least 0 a row: from a scalar, ``(S, A)`` or ``(rows,)``.

    Numbers above ``most`` are refused, NaN always, infinity where ``most`` is finite.
    """
    array = read_numbers(argument, value)
    n_rows = rows.n_rows
    if array.ndim == 0:
        array = np.full(n_rows, float(array))
    elif array.ndim == 2 and rows.pair_state is not None:
        grid = (rows.n_states, 1 + int(rows.pair_action.max()))  # type: ignore[union-attr]
        if array.shape[0] != grid[0] or array.shape[1] < grid[1]:
            raise refusal(
                argument, f"a number, shape {grid} or ({n_rows},)", array.shape
            )
        array = array[rows.pair_state, rows.pair_action]
    if array.shape != (n_rows,):
        raise refusal(
            argument,
            f"a number, shape (S, A) or ({n_rows},)",
            f"shape {array.shape}",
        )
    bad = ~((array >= 0.0) & (array <= most))
    if bad.any():
        row = int(np.argmax(bad))
        expected = (
            "numbers of at least 0" if most == np.inf else f"numbers in [0, {most:g}]"
        )
        raise refusal(argument, expected, float(array[row]), rows.name(row))
    return frozen(array)


def _pointers(chosen: BoolArray, row_ptr: IntArray) -> IntArray:
    """Return where each row begins when only the chosen entries are kept."""
    before = np.zeros(chosen.size + 1, dtype=np.int64)
    np.cumsum(chosen, out=before[1:])
    return before[row_ptr]


def _read_mask(support: Any, cmdp: CMDP) -> sp.csr_array:
    """Return a support as a canonical ``(pairs, S)`` matrix."""
    if not sp.issparse(support):
        mask = read_array("support", "a boolean array", support)
        if mask.dtype != np.bool_:
            raise refusal(
                "support",
                "a boolean array (a sparse matrix counts every stored entry)",
                f"dtype {mask.dtype}",
            )
    return read_table("support", support, Frame.of(cmdp))
