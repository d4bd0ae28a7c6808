"""Commands under test say what they found, and nothing on the way there."""

from __future__ import annotations

import math
from importlib import import_module

import pytest


@pytest.fixture(autouse=True)
def no_lines_of_progress(monkeypatch):
    """Whether a line is due depends on the machine; a test asks for them by itself."""
    for name in ("audit", "screen", "verify"):
        module = import_module(f"escapade.cli.{name}")
        monkeypatch.setattr(module, "_A_LINE_EVERY", math.inf)
