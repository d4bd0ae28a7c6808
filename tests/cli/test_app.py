"""The contract of all commands: help, codes, one line for what is wrong, one object."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import escapade
from escapade.cli import app, main
from escapade.cli.options import Json
from escapade.errors import MissingExtraError, SolverError

COMMANDS = (
    "audit",
    "bounds",
    "check",
    "compare",
    "demo",
    "envs",
    "export",
    "report",
    "resume",
    "run",
    "serve",
    "solve",
    "sweep",
    "verify",
)


@pytest.fixture
def run():
    def invoke(*words):
        return CliRunner().invoke(app, list(words))

    return invoke


def only_object(text):
    """Return the one JSON object that a text is, by the strict rules of JSON."""

    def refuse(name):
        raise AssertionError(f"{name} is no JSON")

    value = json.loads(text, parse_constant=refuse)
    assert isinstance(value, dict)
    return value


def test_every_command_is_there():
    names = {command.name for command in app.registered_commands}
    assert names == set(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_and_json(run, command):
    done = run(command, "--help")
    assert done.exit_code == 0
    assert done.stderr == ""
    assert "--json" in done.stdout
    assert f"escapade {command}" in done.stdout


def test_no_command_is_a_question_for_help(run):
    alone, asked = run(), run("--help")
    assert alone.exit_code == asked.exit_code == 0
    assert alone.stdout == asked.stdout
    for command in COMMANDS:
        assert command in alone.stdout


def test_the_version_is_printed(run):
    done = run("--version")
    assert (done.exit_code, done.stdout) == (0, f"escapade {escapade.__version__}\n")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_can_complete(run, shell):
    variable = "_ESCAPADE_COMPLETE"
    done = CliRunner().invoke(
        app, [], env={variable: f"source_{shell}"}, prog_name="escapade"
    )
    assert done.exit_code == 0
    assert variable in done.stdout


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["frob"], "no such command 'frob'; see escapade --help"),
        (["demo", "--frob"], "no such option: --frob; see escapade demo --help"),
        (["demo", "frob"], "escapade demo --help"),
        (["solve"], "missing argument 'FILE'; see escapade solve --help"),
        (["solve", "no-such-plant.npz"], "no-such-plant.npz"),
        (["solve", "a\nb.npz"], r"a\nb.npz"),
        (["bounds", "--states", "2"], "missing option '--actions'"),
        (["run", "battery", "--set", f"levels={10**30}"], "levels: expected a size"),
    ],
)
def test_wrong_input_ends_with_2_and_one_line(run, words, reason):
    done = run(*words)
    assert done.exit_code == 2
    assert done.stdout == ""
    assert done.stderr.startswith("escapade: ")
    assert done.stderr.endswith("\n")
    assert len(done.stderr.splitlines()) == 1
    assert reason in done.stderr


@pytest.mark.parametrize(
    "words", [["frob"], ["solve"], ["solve", "no-such-plant.npz"], ["demo", "--frob"]]
)
def test_wrong_input_is_an_object_too_when_asked_for(run, words):
    done = run(*words, "--json")
    assert done.exit_code == 2
    answer = only_object(done.stdout)
    assert done.stderr == f"escapade: {answer['error']}\n"


@pytest.fixture
def broken(monkeypatch, run):
    """Let ``escapade demo`` raise what it is told to."""

    def invoke(error, *words):
        def breakdown():
            raise error

        (command,) = (c for c in app.registered_commands if c.name == "demo")

        def demo(json: Json = False) -> int:
            return breakdown()

        monkeypatch.setattr(command, "callback", demo)
        return run("demo", *words)

    return invoke


def test_a_solver_that_breaks_down_is_no_answer(broken):
    done = broken(SolverError("HiGHS gave up"))
    assert (done.exit_code, done.stdout) == (3, "")
    assert done.stderr == "escapade: HiGHS gave up\n"
    done = broken(SolverError("HiGHS gave up"), "--json")
    assert done.exit_code == 3
    assert only_object(done.stdout) == {"error": "HiGHS gave up"}


def test_a_missing_extra_names_the_line_that_installs_it(broken):
    done = broken(MissingExtraError("PyTorch", "torch"))
    assert done.exit_code == 2
    assert done.stderr.count("\n") == 1
    assert 'pip install "escapade[torch]"' in done.stderr


def test_too_little_memory_is_one_line(broken):
    done = broken(MemoryError("unable to allocate 8 TiB"))
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == (
        "escapade: memory: expected sizes that fit: unable to allocate 8 TiB\n"
    )


def test_a_fault_of_ours_keeps_its_traceback_and_does_not_say_no(broken):
    done = broken(ZeroDivisionError("oh"), "--json")
    assert done.exit_code == 3
    assert "Traceback" in done.stderr
    assert only_object(done.stdout) == {"error": "ZeroDivisionError: oh"}


def test_an_interrupt_ends_as_shells_expect(broken):
    done = broken(KeyboardInterrupt())
    assert (done.exit_code, done.stdout) == (130, "")


@pytest.fixture
def command():
    return str(Path(sys.executable).parent / "escapade")


def test_the_command_and_the_module_are_the_same(command):
    for start in ([sys.executable, "-m", "escapade"], [command]):
        done = subprocess.run(
            [*start, "solve", "plant"], capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith("escapade: plant: expected a name that ends in")
        assert len(done.stderr.splitlines()) == 1


def test_a_reader_that_goes_away_ends_the_command_without_a_word(command):
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [command, "--help"], stdout=writing, stderr=subprocess.PIPE, check=False
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (-signal.SIGPIPE, b"")


def test_main_returns_the_code(capsys):
    assert main(["--version"]) == 0
    assert main(["frob"]) == 2
    assert capsys.readouterr().out == f"escapade {escapade.__version__}\n"
