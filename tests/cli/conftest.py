"""Commands under test say what they found, and nothing on the way there."""

from __future__ import annotations

import math

import pytest

from escapade.cli import screen


@pytest.fixture(autouse=True)
def no_lines_of_progress(monkeypatch):
    """Whether a line is due depends on the machine; a test asks for them by itself."""
    monkeypatch.setattr(screen, "_A_LINE_EVERY", math.inf)
