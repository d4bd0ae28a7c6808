"""A small run, and what it looks like when nobody disturbs it."""

from __future__ import annotations

import numpy as np
import pytest

from escapade.experiment import Run, RunSpec, live

ARRAYS = (
    "states",
    "actions",
    "phases",
    "reasons",
    "rewards",
    "costs",
    "promise",
    "reserved",
    "plans",
)


def small(**changes):
    return RunSpec(
        **{
            "world": "wall-cycle",
            "parameters": {"size": 3},
            "settings": {"known_after": 5},
            "steps": 1200,
            "seed": 5,
            **changes,
        }
    )


def assert_same(one, other):
    assert len(one) == len(other)
    for name in ARRAYS:
        assert np.array_equal(getattr(one, name), getattr(other, name)), name


def derived(summary):
    """Return what a summary says of the run, not of its files."""
    return {key: value for key, value in summary.items() if key != "files"}


@pytest.fixture(scope="package")
def spec():
    return small()


@pytest.fixture(scope="package")
def undisturbed(spec, tmp_path_factory):
    run = Run.create(tmp_path_factory.mktemp("undisturbed") / "run", spec)
    assert live(run) is not None
    return run
