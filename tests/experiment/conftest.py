"""A small run, and what it looks like when nobody disturbs it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from escapade.experiment import Run, RunSpec, live
from escapade.experiment.sweeps.engines import Ended
from escapade.experiment.sweeps.work import work

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


class Hands:
    """An engine in this very process, which does as it is told.

    Parameters
    ----------
    room
        How many runs it takes at once; they end last come, first served.
    before
        Called with a run before it is lived; may return how it ends instead.
    """

    def __init__(self, room=1, before=lambda run: None):
        self._most, self._before = room, before
        self.hands, self.lived = [], []

    def made(self, name, found, *, workers, address):
        self.root, self.stop = found.runs.root, found.directory / ".stop"
        return self

    def __enter__(self):
        return self

    def __exit__(self, *how):
        self.hands.clear()

    @property
    def room(self):
        return self._most - len(self.hands)

    @property
    def in_hand(self):
        return tuple(self.hands)

    def hand_over(self, run):
        self.hands.append(run)

    def wait(self, seconds):
        run = self.hands.pop()
        self.lived.append(run.name)
        other = self._before(run)
        if other is not None:
            return [replace(other, run=run)]
        outcome = work(str(self.root), run.to_toml(), str(self.stop))
        return [Ended(run=run, outcome=outcome)]


@pytest.fixture(scope="package")
def spec():
    return small()


@pytest.fixture(scope="package")
def undisturbed(spec, tmp_path_factory):
    run = Run.create(tmp_path_factory.mktemp("undisturbed") / "run", spec)
    assert live(run) is not None
    return run
