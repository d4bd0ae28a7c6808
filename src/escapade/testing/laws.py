"""How a broken law is told: which one, on what, and with which numbers."""

from __future__ import annotations

__all__ = ["require"]


def require(holds: bool, law: str, place: str, found: object) -> None:
    """Raise :class:`AssertionError` unless the law holds.

    Raised by hand, so that ``python -O`` does not take the check away.

    Examples
    --------
    >>> require(1 + 1 == 3, "adds up", "Adder on 'one and one'", 2)
    Traceback (most recent call last):
    AssertionError: Adder on 'one and one': adds up: 2
    """
    if not holds:
        raise AssertionError(f"{place}: {law}: {found}")
