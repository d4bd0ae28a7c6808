"""Runs to be shown."""

from __future__ import annotations

import pytest

from escapade.experiment import Run, RunSpec, live
from escapade.report import build_page


def lived(directory, **changes):
    spec = RunSpec(
        **{
            "world": "wall-cycle",
            "parameters": {"size": 3},
            "settings": {"known_after": 5},
            "steps": 1200,
            "seed": 5,
            **changes,
        }
    )
    run = Run.create(directory, spec)
    assert live(run) is not None
    return run


@pytest.fixture(scope="package")
def run(tmp_path_factory):
    return lived(tmp_path_factory.mktemp("shown") / "run")


@pytest.fixture(scope="package")
def page(run):
    return build_page(run)
