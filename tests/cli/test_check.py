"""``escapade check``: of worlds, of plants, of knowledge."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

import escapade as ep
from escapade.cli import app


def check(*words):
    return CliRunner().invoke(app, ["check", *map(str, words)])


def test_a_world_that_can_be_promised():
    done = check("three-state-loop")
    assert done.exit_code == 0
    assert "promisable" in done.stdout


@pytest.mark.compiled
def test_a_world_that_cannot():
    done = check("barrier-grid", "--model", "--json")
    assert done.exit_code == 1
    found = json.loads(done.stdout)
    assert found["promisable"] is False
    assert found["examined"] == "model"
    assert "raise the budget" in found["mend"][0]
    assert check("barrier-grid", "--budget", 13, "--budget", 13).exit_code == 0


def test_files_of_each_kind(tmp_path):
    world = ep.environments.three_state_loop()
    world.cmdp.save(tmp_path / "plant.npz")
    world.knowledge.save(tmp_path / "told.npz")
    (tmp_path / "plant.toml").write_text(
        'discount = 0.5\nbudget = 1\ntransitions = [["a", "go", "a", 1.0, 0.75]]\n'
    )
    kinds = {}
    for name, code in (("plant.npz", 0), ("told.npz", 0), ("plant.toml", 1)):
        done = check(tmp_path / name, "--json")
        assert done.exit_code == code
        kinds[name] = json.loads(done.stdout)["examined"]
    assert kinds == {
        "plant.npz": "model",
        "told.npz": "knowledge",
        "plant.toml": "model",
    }
    done = check(tmp_path / "plant.toml")
    assert "- raise the budget to at least 1.51" in done.stdout


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("nowhere",), "one of barrier-grid"),
        (("nowhere.npz",), "found none"),
        (("nowhere.txt",), "ends in .npz"),
        (("wall-cycle", "--budget", 1, "--budget", 2), "--budget: expected 1"),
        (("three-state-loop", "--epsilon", 0), "epsilon: expected"),
    ],
)
def test_wrong_input_is_one_line(words, reason):
    done = check(*words)
    assert done.exit_code == 2
    assert reason in done.stderr
    assert done.stderr.count("\n") == 1
