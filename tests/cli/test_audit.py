"""``escapade audit``: what it prints, and how it ends."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from escapade.cli import app

SHORT = ("--lifetimes", 3, "--steps", 120)


def audit(*words):
    return CliRunner().invoke(app, ["audit", *map(str, words)])


def test_an_agent_that_keeps_its_promise():
    done = audit("three-state-loop", *SHORT, "--setting", "known_after=3")
    assert done.exit_code == 0
    assert done.stdout.startswith("3 lifetimes of 120 steps: no break was found")
    assert "\n  invariant w <= b <= d     broken at 0 steps\n" in done.stdout


def test_an_object_and_nothing_else():
    done = audit("three-state-loop", *SHORT, "--agent", "random", "--json")
    found = json.loads(done.stdout)
    assert found["agent"] == "random"
    assert found["worst_mean_excess"] is None
    assert done.stderr == ""


def test_a_baseline_that_spends_too_much_ends_with_1():
    words = ("--agent", "e3", "--lifetimes", 40, "--steps", 150)
    done = audit("three-state-loop", *words, "--set", "budget=2")
    assert done.exit_code == 1
    assert "broken, beyond doubt" in done.stdout


def test_a_budget_that_cannot_be_promised_ends_with_1():
    done = audit("barrier-grid", *SHORT)
    assert done.exit_code == 1
    assert "promised" in done.stderr


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("nowhere",), "nowhere"),
        (("three-state-loop", "--agent", "e5"), "--agent"),
        (("three-state-loop", "--agent", "psrl", "-s", "epsilon=1"), "--setting"),
        (("three-state-loop", "--lifetimes", 1), "lifetimes"),
        (("three-state-loop", "--jobs", 0), "jobs"),
        (("three-state-loop", "--set", "budget"), "KEY=VALUE"),
    ],
)
def test_wrong_input_ends_with_2(words, reason):
    done = audit(*words)
    assert done.exit_code == 2
    assert reason in done.stderr
    assert done.stderr.count("\n") == 1
