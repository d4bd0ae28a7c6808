"""The rows of a set: which successors are possible, and what is nominal.

All sets that allow every pair its own row stand on the same arrays: for each pair the
possible successors in increasing order, with the nominal probability of each, which may
be 0.  When *every* state is a possible successor, that list would have S entries a
pair; then only the entries of positive nominal probability are stored, and
``everywhere`` stands for the rest.  A worst case needs the others through one number
alone, the best value of all.

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
from typing import Any

import numpy as np
import scipy.sparse as sp

from escapade.errors import refusal
from escapade.model.arguments import read_numbers
from escapade.model.cmdp import CMDP
from escapade.typing import ArrayLike, BoolArray, FloatArray, IndexArray, IntArray

__all__ = [
    "Rows",
    "frozen",
    "gather_rows",
    "read_per_pair",
    "read_rows_of",
    "row_sums",
]

_ROW_TOLERANCE = 1e-8


def frozen[T: np.ndarray[Any, Any]](array: T) -> T:
    """Return the array, made read-only."""
    array.flags.writeable = False
    return array
