"""An agent that answers lines of JSON, and a controller in shell that asks it."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import escapade as ep
from escapade.experiment import PlantRun, find_run
from escapade.experiment.serving import serve
from escapade.experiment.verification import verify

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def talk(tmp_path):
    world = ep.environments.wall_cycle(size=3)
    settings = ep.E4Settings(known_after=2)
    path = tmp_path / "plant.journal"

    def speak(*requests):
        answers = io.StringIO()
        lines = [r if isinstance(r, str) else json.dumps(r) for r in requests]
        with ep.open(
            path, knowledge=world.knowledge, settings=settings, durable=False
        ) as plant:
            serve(plant, io.StringIO("\n".join(lines) + "\n"), answers)
        return [json.loads(line) for line in answers.getvalue().splitlines()]

    return speak


def test_a_step_is_asked_and_told(talk, tmp_path):
    hello, decision, standing, end = talk(
        {"do": "ask", "state": 0},
        {"do": "tell", "decision": 0, "reward": 0, "cost": [0.0], "next_state": 0},
        {"do": "close"},
        {"do": "ask", "state": 0},
    )
    assert (hello["steps"], hello["pending"], hello["state"]) == (0, None, None)
    assert decision["decision"] == 0
    assert decision["phase"] in ("wander", "explore", "exploit", "escape", "wait")
    assert decision["promise"] == hello["promise"]
    assert (standing["steps"], standing["breaks"]) == (1, [])
    assert end["steps"] == 1
    assert PlantRun(tmp_path / "plant.journal").n_steps == 1


def test_a_decision_that_was_left_is_pending_and_can_be_forgotten(talk):
    talk({"do": "ask", "state": 0})
    hello, standing = talk({"do": "forget", "decision": 0, "next_state": 0})
    assert hello["pending"]["decision"] == 0
    assert (standing["steps"], standing["pending"]) == (1, None)


def test_operators_are_heard(talk, tmp_path):
    answers = talk(
        {"do": "ask", "state": 0},
        {"do": "override", "action": 4},
        {"do": "tell", "decision": 0, "reward": 0, "cost": None, "next_state": 0},
        {"do": "tell_cost", "decision": 0, "cost": 0.0},
        {"do": "freeze"},
        {"do": "thaw"},
        {"do": "budget", "budget": 11},
        {"do": "certificate"},
    )
    assert answers[2]["action"] == 4
    assert answers[2]["allowed"] is True
    assert answers[5]["learning"] is False
    assert answers[6]["learning"] is True
    assert answers[-1]["gap"] > 0.0
    assert not any("error" in answer for answer in answers)
    assert verify(find_run(tmp_path / "plant.journal")).holds


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ("nonsense", "line: expected a JSON object"),
        ("[1]", "line: expected a JSON object"),
        ({"do": "dance"}, "do: expected one of"),
        ({"do": ["ask"]}, "do: expected one of"),
        ({"do": "ask"}, "state: expected a value"),
        ({"do": "ask", "state": 0, "mood": 1}, "mood: expected names among"),
        ({"do": "ask", "state": "north"}, "state: expected a state in 0..8"),
        ({"do": "ask", "state": 99}, "state: expected a state in 0..8"),
        (
            {"do": "tell", "decision": 3, "reward": 0, "cost": 0, "next_state": 0},
            "decision: expected none",
        ),
        ({"do": "override", "action": 1}, "override: expected a decision"),
    ],
)
def test_what_is_wrong_is_one_line_and_changes_nothing(talk, request_, message):
    _, wrong, right = talk(request_, {"do": "ask", "state": 0})
    assert wrong["error"].startswith(message)
    assert right["decision"] == 0


def test_numbers_that_are_none_are_refused(talk):
    _, _, wrong, right = talk(
        {"do": "ask", "state": 0},
        {"do": "tell", "decision": 0, "reward": "a", "cost": 0, "next_state": 0},
        {"do": "tell", "decision": 0, "reward": 1, "cost": 0, "next_state": 0},
    )
    assert "error" in wrong
    assert right["steps"] == 1


@pytest.mark.skipif(shutil.which("bash") is None, reason="the example is in bash")
def test_the_controller_in_shell_runs_and_goes_on(tmp_path):
    program = tmp_path / "escapade"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m escapade "$@"\n')
    program.chmod(0o755)
    script = ROOT / "examples" / "controller.sh"
    assert len(script.read_text("utf-8").splitlines()) <= 30
    for steps in (6, 10):
        done = subprocess.run(
            ["bash", str(script), str(steps - (0 if steps == 6 else 6)), "here"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "ESCAPADE": str(program), "NUMBA_NUM_THREADS": "1"},
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith(f"{steps} steps; the promise stands at [")
    trace = PlantRun(tmp_path / "here").trace()
    assert len(trace) == 10
    assert (trace.states[1:] == (trace.states[:-1] + trace.actions) % 3).all()
    assert verify(find_run(tmp_path / "here")).holds
