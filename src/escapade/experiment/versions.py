"""Which versions a run is made with; the same numbers come out only of the same."""

from __future__ import annotations

import platform
import sys
from importlib.metadata import version

__all__ = ["versions"]

_OF_NUMBERS = ("escapade", "numpy", "scipy", "numba", "highspy")


def versions() -> dict[str, str]:
    """Return the versions of what decides the bits of a run."""
    found = {name: version(name) for name in _OF_NUMBERS}
    python = ".".join(map(str, sys.version_info[:3]))
    return {**found, "python": python, "machine": platform.machine()}
