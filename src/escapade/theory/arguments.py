"""Reading the numbers of a formula: what is accepted, and how it is refused.

The formulas of this layer take plain numbers by keyword.  Each is read by one of the
functions below, so that a wrong one is refused in the same words everywhere, before
anything is computed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from numbers import Integral, Real

import numpy as np

from escapade.errors import refusal
from escapade.model.arguments import read_numbers
from escapade.typing import ArrayLike, BoolArray, FloatArray

__all__ = [
    "LARGEST_AMOUNT",
    "check_each",
    "finite_ceiling",
    "read_amount",
    "read_amounts",
    "read_count",
    "read_discount",
    "read_positive",
    "read_probability",
    "read_real",
    "read_steps",
    "read_visits",
]

_LARGEST_COUNT = 1e150
LARGEST_AMOUNT = 1e100  # the square of a sum of such still fits a float


def read_real(argument: str, value: object, expected: str) -> float:
    """Read a number that is not NaN; infinities are the caller's to judge."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
        raise refusal(argument, expected, repr(value))
    try:
        number = float(value)
    except OverflowError:
        raise refusal(argument, expected, "one beyond every double") from None
    if math.isnan(number):
        raise refusal(argument, expected, number)
    return number


def read_discount(value: object) -> float:
    """Read a discount factor in [0, 1)."""
    number = read_real("discount", value, "a number in [0, 1)")
    if not 0.0 <= number < 1.0:
        raise refusal("discount", "a number in [0, 1)", number)
    return number


def read_positive(argument: str, value: object) -> float:
    """Read a finite number above 0."""
    number = read_real(argument, value, "a finite number above 0")
    if not 0.0 < number < math.inf:
        raise refusal(argument, "a finite number above 0", number)
    return _read_size(argument, number)


def read_amount(argument: str, value: object) -> float:
    """Read a finite number of at least 0: a cost, a budget, a variance."""
    number = read_real(argument, value, "a finite number of at least 0")
    if not 0.0 <= number < math.inf:
        raise refusal(argument, "a finite number of at least 0", number)
    return _read_size(argument, number)


def _read_size(argument: str, number: float) -> float:
    if number > LARGEST_AMOUNT:
        raise refusal(argument, f"a number of at most {LARGEST_AMOUNT:g}", number)
    return number


def read_amounts(argument: str, values: Iterable[float]) -> FloatArray:
    """Read a sequence of finite numbers of at least 0."""
    try:
        array = np.array(list(values), dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise refusal(
            argument, "a sequence of finite numbers of at least 0", repr(values)
        ) from None
    if array.ndim != 1:
        raise refusal(argument, "one row of numbers", f"{array.ndim} dimensions")
    bad = ~((array >= 0.0) & (array <= LARGEST_AMOUNT))
    if bad.any():
        first = int(np.argmax(bad))
        raise refusal(
            argument,
            f"numbers in [0, {LARGEST_AMOUNT:g}]",
            float(array[first]),
            f"position {first}",
        )
    return array


def read_visits(visits: ArrayLike) -> FloatArray:
    """Read numbers of visits, of any shape: finite and at least 0."""
    expected = "finite counts of at least 0"
    counts = read_numbers("visits", visits, expected)
    check_each("visits", counts, expected, (counts >= 0.0) & np.isfinite(counts))
    fewer = f"counts of at most {_LARGEST_COUNT:g}"
    return check_each("visits", counts, fewer, counts <= _LARGEST_COUNT)


def check_each(
    argument: str, values: FloatArray, expected: str, good: BoolArray
) -> FloatArray:
    """Return ``values`` if all are good; refuse the first that is not."""
    bad = ~good.reshape(-1)
    if bad.any():
        first = int(np.argmax(bad))
        found = float(values.reshape(-1)[first])
        raise refusal(argument, expected, found, f"position {first}")
    return values


def read_probability(argument: str, value: object) -> float:
    """Read a probability strictly between 0 and 1."""
    number = read_real(argument, value, "a number in (0, 1)")
    if not 0.0 < number < 1.0:
        raise refusal(argument, "a number in (0, 1)", number)
    return number


def read_count(argument: str, value: object, *, least: int = 1) -> int:
    """Read a whole number of at least ``least``."""
    expected = f"a whole number of at least {least}"
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Integral):
        raise refusal(argument, expected, repr(value))
    count = int(value)
    if count < least:
        raise refusal(argument, expected, count)
    if count > _LARGEST_COUNT:
        raise refusal(argument, "a whole number of at most 1e150", "a larger one")
    return count


def read_steps(argument: str, value: object) -> float:
    """Read an expected number of steps: at least 0, infinity allowed."""
    number = read_real(argument, value, "a number of at least 0, or infinity")
    if number < 0.0:
        raise refusal(argument, "a number of at least 0, or infinity", number)
    return number


def finite_ceiling(argument: str, value: float) -> int:
    """Return the least whole number that is not below ``value``.

    Counts of this theory reach 1e30 and more, so they are Python integers, which have
    no largest.  A value beyond 1e150, whose square no float holds, is refused by the
    name of the argument that made it so.
    """
    if not value <= _LARGEST_COUNT:
        raise refusal(argument, "a value whose result is at most 1e150", "an overflow")
    return math.ceil(value)
