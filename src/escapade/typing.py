"""Names for the shapes of data that cross the boundaries between layers."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = [
    "ArrayLike",
    "BoolArray",
    "CodeArray",
    "FloatArray",
    "IndexArray",
    "IntArray",
    "Seed",
]

FloatArray: TypeAlias = NDArray[np.float64]
"""Values, probabilities, costs."""

IntArray: TypeAlias = NDArray[np.int64]
"""Row pointers and counts."""

IndexArray: TypeAlias = NDArray[np.int32]
"""State, action and pair indices inside compiled kernels."""

CodeArray: TypeAlias = NDArray[np.int8]
"""Phases, reasons and other small codes, one a step."""

BoolArray: TypeAlias = NDArray[np.bool_]
"""Masks."""

Seed: TypeAlias = int | np.random.SeedSequence | np.random.Generator | None
"""Anything :func:`numpy.random.default_rng` takes as a seed."""

JSON: TypeAlias = dict[str, Any]
"""A JSON object."""
