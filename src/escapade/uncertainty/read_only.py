"""Sets that come out of a pickle as they went in: with read-only arrays.

Pickling forgets that an array was read-only, and a kernel is compiled anew for arrays
that are not.  :class:`ReadOnly` makes them so again, those of parts included.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from escapade.uncertainty.base import UncertaintySet

__all__ = ["ReadOnly"]


class ReadOnly(UncertaintySet):
    """A set that is pickled attribute by attribute."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        _freeze(list(state.values()))


def _freeze(value: Any) -> None:
    if isinstance(value, np.ndarray):
        value.flags.writeable = False
    elif isinstance(value, list | tuple):
        for part in value:
            _freeze(part)
    elif is_dataclass(value):
        for field in fields(value):
            _freeze(getattr(value, field.name))
