"""What the shell completes: asked as the scripts ask that the shells are given."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest


def ask(shell, words, **more):
    return subprocess.run(
        [sys.executable, "-m", "escapade"],
        env={**os.environ, "_ESCAPADE_COMPLETE": f"{shell}", **more},
        capture_output=True,
        text=True,
        check=False,
    )


def completed(line):
    words = line.split(" ")
    found = ask("complete_bash", words, COMP_WORDS=line, COMP_CWORD=str(len(words) - 1))
    assert found.stderr == ""
    return found.stdout.split()


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("escapade re", ["resume", "report"]),
        ("escapade run wall", ["wall-cycle"]),
        ("escapade compare b", ["barrier-grid", "battery"]),
        ("escapade check toll", ["toll-cycle"]),
        ("escapade audit queue --agent ps", ["psrl"]),
        ("escapade solve plant.toml --solver Occ", ["OccupationLP"]),
        ("escapade export walk --figure p", ["promise", "predicted"]),
        ("escapade export walk --lin", ["--linear"]),
    ],
)
def test_verbs_worlds_and_names_are_completed(line, found):
    assert completed(line) == found


@pytest.mark.parametrize(
    ("shell", "sign"),
    [("bash", "complete -o default -F"), ("zsh", "compdef"), ("fish", "complete")],
)
def test_each_shell_is_given_a_script(shell, sign):
    done = ask(f"source_{shell}", [])
    assert done.returncode == 0
    assert sign in done.stdout
    assert "escapade" in done.stdout
