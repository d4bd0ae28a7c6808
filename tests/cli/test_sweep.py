"""``escapade sweep``: what it prints, and how it ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.experiment.conftest import Hands
from typer.testing import CliRunner

from escapade.cli import app
from escapade.experiment import Sweep

SPEC = """\
steps = 60
seeds = 2
worlds = ["queue"]

[settings]
known_after = [2, 4]
"""
BROKE = "worlds = [{ name = 'barrier-grid', parameters = { budget = [[0.1, 0.1]] } }]"


@pytest.fixture
def run():
    return lambda *words: CliRunner().invoke(app, list(words))


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    from escapade.cli import screen
    from escapade.experiment.sweeps import sweeping

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sweeping, "_engine", Hands().made)
    monkeypatch.setattr(screen, "_A_LINE_EVERY", 0.0)
    Path("quotas.toml").write_text(SPEC, "utf-8")


def test_a_sweep_ends_with_a_line_a_combination(run):
    done = run("sweep", "quotas.toml")
    assert done.exit_code == 0
    header, first, second, *rest = done.stdout.splitlines()
    assert header.split()[:3] == ["world", "known_after", "runs"]
    assert first.split()[:3] == ["queue", "2", "2"]
    assert second.split()[:3] == ["queue", "4", "2"]
    assert "promise     kept in 4 of 4 runs" in rest
    assert f"the table   {Path('sweeps/quotas/results.csv')}" in rest
    lines = done.stderr.splitlines()
    assert lines[0] == "0 of 4 runs ended, 1 in hand; step 0 of 240 (0%)"
    assert lines[-1].startswith("4 of 4 runs ended, 0 in hand; step 240 of 240 (100%)")


def test_the_object_has_every_combination(run):
    done = run("sweep", "quotas.toml", "--out", "here", "--json")
    assert (done.exit_code, done.stderr) == (0, "")
    answer = json.loads(done.stdout)
    assert (answer["runs"], answer["ended"], answer["promise_kept"]) == (4, 4, 4)
    assert answer["failures"] == {}
    found = Sweep("here")
    assert answer["table"] == str(found.results_path)
    first = answer["combinations"][0]
    assert first["choices"] == {"settings.known_after": 2}
    rewards = [row["reward_per_step"] for row in found.rows()[:2]]
    assert first["reward_per_step"]["mean"] == pytest.approx(sum(rewards) / 2)


def test_a_run_that_fails_is_told_and_ends_with_1(run):
    Path("broke.toml").write_text(f"steps = 60\nseeds = 1\n{BROKE}\n", "utf-8")
    done = run("sweep", "broke.toml")
    assert done.exit_code == 1
    assert "runs        1, 1 of them failed" in done.stdout
    assert "promised from the start" in done.stderr.splitlines()[-1]
    assert "`escapade check WORLD` tells" in done.stderr.splitlines()[-1]
    assert done.stderr.count("tells the least budget") == 1
    done = run("sweep", "broke.toml", "--json")
    assert done.exit_code == 1
    assert len(json.loads(done.stdout)["failures"]) == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("none.toml",), "none.toml: expected a specification in TOML"),
        (("bad.toml",), "bad.toml, line 2: seeds: expected"),
        (("quotas.toml", "--engine", "spark"), "engine: expected one of"),
        (("quotas.toml", "--workers", "0"), "workers: expected"),
        (("quotas.toml", "--out", "."), "sweep: expected a directory that is empty"),
    ],
)
def test_what_is_wrong_is_one_line(run, words, said):
    Path("bad.toml").write_text(SPEC.replace("seeds = 2", "seeds = 0"), "utf-8")
    done = run("sweep", *words)
    assert (done.exit_code, done.stdout) == (2, "")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
