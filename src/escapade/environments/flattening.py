"""Numbers for what discrete spaces hold: flattened, and given back.

``Discrete``, ``MultiDiscrete``, ``MultiBinary``, a ``Box`` of whole numbers between
bounds, and ``Tuple`` and ``Dict`` of these, nested as they may be, have finitely many
members.  They are numbered like the digits of
a number with mixed bases, the last part running fastest; the parts of a ``Dict`` are
taken in the order that Gymnasium keeps them in.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np

from escapade.errors import AssumptionError, refusal

__all__ = ["Flattening"]

_MOST = 2**31 - 1


class Flattening:
    """Numbers ``0 .. n - 1`` for the members of a discrete space.

    Parameters
    ----------
    space
        The space.
    argument
        What to call it in messages.

    Examples
    --------
    >>> from gymnasium.spaces import Discrete, Tuple
    >>> from escapade.environments import Flattening
    >>> hand = Flattening(Tuple((Discrete(3), Discrete(2, start=1))))
    >>> hand.n, hand.number((2, 1)), hand.member(4)
    (6, 4, (2, 1))
    """

    def __init__(self, space: gymnasium.Space[Any], *, argument: str = "space") -> None:
        self.space = space
        self.argument = argument
        self.n = self._count(space, argument)
        if self.n > _MOST:
            many = self.n if self.n < 10**30 else "far more"
            raise refusal(argument, f"at most {_MOST} members", many)

    def _count(self, space: gymnasium.Space[Any], where: str) -> int:
        spaces = gymnasium.spaces
        if isinstance(space, spaces.Discrete):
            return int(space.n)
        if isinstance(space, spaces.MultiDiscrete):
            return math.prod(int(n) for n in space.nvec.flat)
        if isinstance(space, spaces.MultiBinary):
            return int(2 ** math.prod(space.shape))
        if _is_whole(space):
            return math.prod(_digits_of(space)[0])
        if isinstance(space, spaces.Tuple):
            return math.prod(
                self._count(part, f"{where}[{i}]")
                for i, part in enumerate(space.spaces)
            )
        if isinstance(space, spaces.Dict):
            return math.prod(
                self._count(part, f"{where}[{key!r}]")
                for key, part in space.spaces.items()
            )
        hint = " (see Discretizer)" if isinstance(space, spaces.Box) else ""
        raise refusal(
            self.argument,
            "Discrete, MultiDiscrete, MultiBinary, a Box of whole numbers between "
            f"bounds, or a Tuple or Dict of these{hint}",
            type(space).__name__,
            None if where == self.argument else where,
        )

    def number(self, member: Any) -> int:
        """Return the number of a member.

        Raises
        ------
        AssumptionError
            If the space does not hold it.
        """
        found = _number(self.space, member)
        if found < 0:
            raise AssumptionError(
                f"{self.argument}: expected a member of {self.space}, found {member!r}"
            )
        return found

    def member(self, number: int) -> Any:
        """Return the member with a number, as the space itself holds it."""
        if not 0 <= operator.index(number) < self.n:
            raise refusal(self.argument, f"a number in 0..{self.n - 1}", number)
        return _member(self.space, int(number))


def _is_whole(space: gymnasium.Space[Any]) -> bool:
    """Tell whether a space is a box of whole numbers, which are finitely many."""
    return isinstance(space, gymnasium.spaces.Box) and space.dtype.kind in "iu"


def _parts(space: gymnasium.Space[Any]) -> list[gymnasium.Space[Any]]:
    held: Any = space
    return list(held.values() if isinstance(held, gymnasium.spaces.Dict) else held)


def _size(space: gymnasium.Space[Any]) -> int:
    return Flattening(space).n


def _number(space: gymnasium.Space[Any], member: Any) -> int:
    """Return the number of a member; −1 if there is none."""
    spaces = gymnasium.spaces
    if isinstance(space, spaces.Discrete):
        return _digit(member, int(space.start), int(space.n))
    if isinstance(space, spaces.MultiDiscrete | spaces.MultiBinary) or _is_whole(space):
        bases, starts = _digits_of(space)
        array = np.asarray(member)
        if array.shape != space.shape or array.dtype.kind not in "iub":
            return -1
        total = 0
        for digit, base, start in zip(array.flat, bases, starts, strict=True):
            own = int(digit) - start
            if not 0 <= own < base:
                return -1
            total = total * base + own
        return total
    total = 0
    if isinstance(space, spaces.Dict):
        if not isinstance(member, Mapping) or set(member) != set(space.spaces):
            return -1
        values = [member[key] for key in space.spaces]
    else:
        if not isinstance(member, tuple | list) or len(member) != len(_parts(space)):
            return -1
        values = list(member)
    for part, value in zip(_parts(space), values, strict=True):
        own = _number(part, value)
        if own < 0:
            return -1
        total = total * _size(part) + own
    return total


def _digit(member: Any, start: int, n: int) -> int:
    if isinstance(member, np.ndarray) and member.shape == ():
        member = member[()]
    try:
        own = operator.index(member) - start
    except TypeError:
        return -1
    return own if 0 <= own < n else -1


def _digits_of(space: gymnasium.Space[Any]) -> tuple[list[int], list[int]]:
    """Return the base and the first number of each digit of an array space."""
    if isinstance(space, gymnasium.spaces.MultiBinary):
        size = math.prod(space.shape)
        return [2] * size, [0] * size
    if isinstance(space, gymnasium.spaces.Box):
        ends = zip(space.low.flat, space.high.flat, strict=True)
        bases = [int(high) - int(low) + 1 for low, high in ends]
        return bases, [int(low) for low in space.low.flat]
    assert isinstance(space, gymnasium.spaces.MultiDiscrete)
    starts = np.broadcast_to(space.start, space.nvec.shape)
    return [int(n) for n in space.nvec.flat], [int(n) for n in starts.flat]


def _member(space: gymnasium.Space[Any], number: int) -> Any:
    spaces = gymnasium.spaces
    if isinstance(space, spaces.Discrete):
        return int(space.start) + number
    if isinstance(space, spaces.MultiDiscrete | spaces.MultiBinary) or _is_whole(space):
        bases, starts = _digits_of(space)
        digits = _split(number, bases)
        flat = [digit + start for digit, start in zip(digits, starts, strict=True)]
        return np.array(flat, dtype=space.dtype).reshape(space.shape)
    parts = _parts(space)
    digits = _split(number, [_size(part) for part in parts])
    members = [_member(part, digit) for part, digit in zip(parts, digits, strict=True)]
    if isinstance(space, spaces.Dict):
        return dict(zip(space.spaces, members, strict=True))
    return tuple(members)


def _split(number: int, bases: list[int]) -> list[int]:
    """Return the digits of a number with mixed bases, the last one fastest."""
    digits = []
    for base in reversed(bases):
        number, digit = divmod(number, base)
        digits.append(digit)
    return digits[::-1]
