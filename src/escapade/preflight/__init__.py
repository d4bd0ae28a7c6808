"""Before a life begins: can the budget be promised, what binds, and what mends it.

:func:`~escapade.preflight.examine.preflight` examines what is known of a plant, or a
model of it, and returns a :class:`~escapade.preflight.findings.Preflight`.  The package
itself can be called and does the same: ``ep.preflight(knowledge)``.
"""

from __future__ import annotations

import sys
from types import ModuleType

from escapade.preflight.examine import budget_binds, preflight
from escapade.preflight.findings import Preflight

__all__ = ["Preflight", "budget_binds", "preflight"]


class _Examination(ModuleType):
    """The type of this package, so that it can be called like its verb."""

    __call__ = staticmethod(preflight)


sys.modules[__name__].__class__ = _Examination
