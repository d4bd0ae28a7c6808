"""``escapade run``, ``resume``, ``verify`` and ``demo``."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

import escapade as ep
from escapade.cli import app
from escapade.experiment import Run, RunSpec

SHORT = ("wall-cycle", "--set", "size=3", "--setting", "known_after=5", "--steps")


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def invoke(*words):
        return CliRunner().invoke(app, list(words))

    return invoke


def test_a_run_is_lived_told_verified_and_not_lived_twice(run, tmp_path):
    done = run("run", *SHORT, "800", "--seed", "2", "--out", "here")
    assert (done.exit_code, done.stderr) == (0, "")
    assert "800 (all steps taken)" in done.stdout
    assert "800 steps within promise" in done.stdout
    assert "kept in        here" in done.stdout
    assert Run("here").spec.seed == 2

    again = run("resume", "here")
    assert again.exit_code == 0
    assert "here: finished already" in again.stdout

    checked = run("verify", "here")
    assert checked.exit_code == 0
    assert checked.stdout.endswith("The run is what it says it is.\n")

    refused = run("run", *SHORT, "800", "--seed", "2", "--out", "here")
    assert refused.exit_code == 2
    assert "found this run, which is finished, in here" in refused.stderr
    assert refused.stderr.count("\n") == 1
    other = run("run", *SHORT, "900", "--seed", "2", "--out", "here")
    assert other.exit_code == 2
    assert "found another, which is finished, in here" in other.stderr
    assert "look at it by: escapade report here" in other.stderr


@pytest.mark.compiled
def test_a_run_is_told_in_the_problem_s_own_units(run):
    done = run("run", "moat-grid", "--steps", "40", "--json", "--out", "here")
    answer = json.loads(done.stdout, parse_constant=pytest.fail)
    own, found = answer["own_units"], answer["certificate"]
    assert own["map"] == "a reward r of the agent's is r - 1, a value v is v - 100"
    assert own["value_lower"] == pytest.approx(found["value_lower"] - 100.0)
    assert own["reward_per_step"] == pytest.approx(answer["reward_per_step"] - 1.0)
    assert own["gap"] == found["gap"]

    told = run("resume", "here").stdout
    assert "in units where a reward r of the agent's is r - 1" in " ".join(told.split())
    assert f"{own['reward_per_step']:.4f}" in told
    assert run("verify", "here").exit_code == 0


def test_runs_go_by_their_specification(run, tmp_path):
    done = run("run", *SHORT, "50", "--json")
    answer = json.loads(done.stdout, parse_constant=pytest.fail)
    assert done.exit_code == 0
    (place,) = (tmp_path / "runs").iterdir()
    assert answer["directory"] == f"runs/{place.name}"
    assert answer["promise_kept"] is True
    text = (place / "spec.toml").read_text("utf-8")
    (tmp_path / "spec.toml").write_text(text, "utf-8")
    by_file = run("run", "--spec", "spec.toml", "--out", "other", "--json")
    other = json.loads(by_file.stdout)
    assert other["run"] == answer["run"] == place.name
    assert Run("other").trace().states.tolist() == Run(place).trace().states.tolist()
    verified = json.loads(run("verify", "other", "--json").stdout)
    assert verified["holds"] is True
    assert verified["steps"] == 50


def test_a_flipped_bit_ends_with_1(run, tmp_path):
    run("run", *SHORT, "50", "--out", "here")
    path = tmp_path / "here" / "journal.sqlite"
    whole = bytearray(path.read_bytes())
    whole[len(whole) // 2] ^= 4
    path.write_bytes(whole)
    done = run("verify", "here")
    assert done.exit_code == 1
    assert "NO" in done.stdout
    assert done.stdout.endswith("The run is not what it says it is.\n")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("run",), "ENV: expected the name of a world, or --spec"),
        (("run", "wall-cycl"), "world: expected a world among"),
        (("run", "wall_cycle"), "(did you mean 'wall-cycle'?), found 'wall_cycle'"),
        (
            ("run", "green.toml"),
            "found the file green.toml; what a run is goes by --sp",
        ),
        (("run", "wall-cycle", "--steps", "0"), "steps: expected greater than"),
        (("run", "wall-cycle", "-p", "siz=3"), "parameters.siz: expected a name"),
        (("run", "wall-cycle", "-p", "siz=3"), "'siz' (did you mean 'size'?)"),
        (("run", "queue", "-s", "epsilo=3"), "'epsilo' (did you mean 'epsilon'?)"),
        (("run", "queue", "--until", "certify"), "(did you mean 'certified'?)"),
        (("audit", "queue", "--agent", "psr"), "'psr' (did you mean 'psrl'?)"),
        (("run", "wall-cycle", "-p", "size"), "--set: expected KEY=VALUE"),
        (("run", "wall-cycle", "-p", "size=1"), "parameters.size: expected"),
        (("run", "wall-cycle", "-s", "epsilon=a"), "settings.epsilon: expected"),
        (("run", "wall-cycle", "--spec", "x.toml"), "--spec: expected no other"),
        (("run", "--spec", "x.toml"), "x.toml: expected a specification"),
        (("resume", "nowhere"), "found nowhere, which does not exist"),
        (
            ("verify", "nowhere"),
            "DIR: expected the directory of a run, found nowhere, ",
        ),
        (("report", "nowhere"), "found nowhere, which does not exist"),
        (("serve", "new", "--stdio"), "--knowledge or --env to begin one with, found"),
    ],
)
def test_what_is_wrong_is_one_line(run, words, message):
    done = run(*words)
    assert done.exit_code == 2
    assert done.stderr.count("\n") == 1
    assert message in done.stderr
    assert done.stdout == ""


def test_a_budget_that_cannot_be_promised_ends_with_1(run):
    # with less the first step out of what is known cannot be paid for
    words = ("run", "barrier-grid", "--steps", "10", "--out", "here", "--set")
    done = run(*words, "budget=[0.01, 0.01]")
    assert done.exit_code == 1
    assert "promised from the start" in done.stderr
    assert done.stderr.count("\n") == 1
    assert "`escapade check barrier-grid -p 'budget=[0.01, 0.01]'` tells" in done.stderr
    assert not Path("here").exists()
    asked = run("check", "barrier-grid", "-p", "budget=[0.01, 0.01]")
    assert asked.exit_code == 1
    assert "what would mend it" in asked.stdout
    told = run(*words, "budget=[0.01, 0.01]", "--json")
    assert list(json.loads(told.stdout)) == ["error"]


def test_a_run_that_was_not_lived_is_replaced(run):
    Run.create("here", RunSpec(world="queue", steps=5))
    assert run("run", *SHORT, "20", "--out", "here").exit_code == 0
    assert Run("here").spec.world == "wall-cycle"
    Path("mine").mkdir()
    Path("mine/spec.toml").write_text('world = "queue"\nsteps = 5  # mine\n', "utf-8")
    refused = run("run", *SHORT, "20", "--out", "mine")
    assert refused.exit_code == 2
    assert "# mine" in Path("mine/spec.toml").read_text("utf-8")


def command(*words, cwd, **how):
    return subprocess.Popen(
        [sys.executable, "-m", "escapade", *words],
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "NUMBA_NUM_THREADS": "1"},
        **how,
    )


def test_ctrl_c_sets_the_run_aside_and_says_how_to_go_on(tmp_path):
    steps = "3000000"
    process = command("run", *SHORT, steps, "--out", "here", cwd=tmp_path)
    journal = tmp_path / "here" / "journal.sqlite"
    while not journal.exists() and process.poll() is None:
        time.sleep(0.02)
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate()
    assert process.returncode == 130
    assert errors.splitlines()[-1].endswith("go on with: escapade resume here")
    assert Run(tmp_path / "here").status == "begun"
    done = Run(tmp_path / "here").n_steps
    assert 0 < done < 3_000_000


def test_what_is_done_once_is_forgotten_in_the_rate(monkeypatch):
    from escapade.cli import screen

    now = [0.0]
    monkeypatch.setattr(screen.time, "monotonic", lambda: now[0])
    progress = screen.Progress(1_000)
    assert progress.at(0) == "step 0 of 1,000 (0%)"
    now[0] = 20.0  # compiling
    assert progress.at(100) == "step 100 of 1,000 (10%), 5/s, 3 min 00 s left"
    for done in (300, 500, 700):
        now[0] += 4.0
        words = progress.at(done)
    assert words == "step 700 of 1,000 (70%), 50/s, 6 s left"


def test_plain_lines_tell_rate_and_remaining_time(monkeypatch, capsys, tmp_path):
    from tests.experiment.conftest import small

    from escapade.cli import screen
    from escapade.experiment import RunStore, live

    monkeypatch.setattr(screen, "_A_LINE_EVERY", 0.0)
    monkeypatch.chdir(tmp_path)
    run = RunStore().create(small(steps=600))
    with screen.Screen("small", 600) as shown:
        live(run, callbacks=[shown], block=200)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3
    assert lines[0].startswith("step 200 of 600 (33%); phase ")
    for words in ("/s, ", " left; phase ", "known states", "reward a step", "promise"):
        assert words in lines[1]
    assert "realised at most" in lines[1]
    assert "the bound holds at all times with probability 0.95" in lines[1]


def test_what_was_paid_before_a_resume_is_counted_in(monkeypatch, capsys, tmp_path):
    from tests.experiment.conftest import small

    from escapade.cli import screen
    from escapade.experiment import RunStore, live

    monkeypatch.setattr(screen, "_A_LINE_EVERY", 0.0)
    monkeypatch.setattr(screen, "_AT_ONCE", 150)
    whole, halved = (
        RunStore(tmp_path / name).create(small(steps=2_400)) for name in "ab"
    )

    def realised(run, stop):
        with screen.Screen("small", 2_400, run=run) as shown:
            live(run, callbacks=[shown], stop=stop, block=800)
        said = capsys.readouterr().err.splitlines()[-1]
        return said[said.index("realised") : said.index("; certificate")]

    asked = iter((False, True))
    first = realised(halved, lambda: next(asked))
    assert halved.n_steps == 1_600
    at_once = realised(whole, lambda: False)
    assert realised(halved, lambda: False) == at_once
    assert "realised at most 0 of" not in first


def test_a_run_that_was_killed_before_its_first_step(run, tmp_path):
    from tests.experiment.conftest import small

    from escapade.experiment import PlantRun

    Run.create("here", small(steps=20))
    for words in (("verify", "here"), ("export", "here", "--out", "steps.csv")):
        done = run(*words)
        assert done.exit_code == 2
        assert done.stderr.endswith(
            "nothing was lived yet; go on with: escapade resume here\n"
        )
        assert done.stdout == ""
    assert run("resume", "here").exit_code == 0
    assert run("verify", "here").exit_code == 0
    (tmp_path / "here" / "journal.sqlite").unlink()  # and that is something else
    assert run("verify", "here").exit_code == 1

    PlantRun.begin(
        tmp_path / "plant", ep.environments.wall_cycle(3).knowledge, ep.E4Settings()
    )
    assert "plant, where nothing was asked yet" in run("verify", "plant").stderr


def test_what_a_directory_holds_instead_of_a_run_is_said(run, tmp_path):
    from escapade.experiment import PlantRun

    told = ep.environments.wall_cycle(3).knowledge
    PlantRun.begin(tmp_path / "plant", told, ep.E4Settings())
    Run.create(tmp_path / "alone", RunSpec(world="three-state-loop", steps=9))
    (tmp_path / "many").mkdir()
    (tmp_path / "many" / "sweep.toml").touch()
    (tmp_path / "side").mkdir()
    (tmp_path / "side" / "comparison.json").touch()
    (tmp_path / "empty").mkdir()
    for words, message in (
        (("resume", "plant"), "by escapade.open or: escapade serve plant --stdio"),
        (("resume", "many"), "by: escapade sweep many/sweep.toml --out many"),
        (("verify", "many"), "found the sweep in many; its runs are in many/runs"),
        (("verify", "side"), "found the comparison in side, of which no journals"),
        (("resume", "side"), "show it by: escapade report side"),
        (("resume", "empty"), "run: expected a directory with a spec.toml, found"),
        (("serve", "alone", "--stdio"), "found a simulated run, which goes on by"),
        (("serve", "plant", "--stdio", "--seed", "2"), "seed 2 instead of 0"),
        (
            ("serve", "plant", "--stdio", "-s", "known_after=7"),
            "found known_after 7 instead of 5",
        ),
    ):
        done = run(*words)
        assert (done.exit_code, done.stdout) == (2, "")
        assert message in done.stderr
        assert done.stderr.count("\n") == 1


def test_a_life_is_served_with_settings(run, tmp_path):
    from escapade.experiment import PlantRun

    words = ("serve", "plant", "--stdio", "--env", "wall-cycle")
    assert "epsilon: expected" in run(*words, "-s", "epsilon=-1").stderr
    assert run(*words, "-s", "known_after=7", "--seed", "3").exit_code == 0
    settings = PlantRun(tmp_path / "plant").plant_spec.make_settings()
    assert (settings.known_after, settings.seed) == (7, 3)
    assert run("serve", "plant", "--stdio", "-s", "known_after=7").exit_code == 0


def test_times_are_said_as_people_say_them():
    from escapade.cli.screen import duration

    assert [duration(s) for s in (3.4, 61, 7322)] == ["3 s", "1 min 01 s", "2 h 02 min"]


def test_a_run_is_exported(run, tmp_path):
    run("run", *SHORT, "40", "--out", "here")
    done = run("export", "here", "--out", "steps.csv")
    assert (done.exit_code, done.stdout) == (0, "steps.csv: 40 rows of steps\n")
    assert len((tmp_path / "steps.csv").read_text("utf-8").splitlines()) == 41
    done = run("export", "here", "-o", "events.csv", "--table", "events", "--json")
    assert json.loads(done.stdout)["rows"] == len(Run("here").events())
    assert run("export", "here", "-o", "steps.doc").exit_code == 2


# -- the demo --------------------------------------------------------------------------


def test_the_demo_lives_until_it_is_certified(run, tmp_path):
    words = ("demo", "--size", "3", "--epsilon", "30", "--out", "demo")
    done = run(*words)
    assert (done.exit_code, done.stderr) == (0, "")
    assert "wall-cycle: Walk round a field" in done.stdout
    assert "(certified)" in done.stdout
    assert "of the best that keeps the budget." in done.stdout.splitlines()[-1]
    summary = Run("demo").summary
    assert summary["certificate"]["gap"] <= 30.0
    # an earlier demo is replaced, nothing else is
    again = json.loads(run(*words, "--seed", "1", "--json").stdout)
    assert again["seed"] == 1
    assert Run("demo").spec.seed == 1
    run("run", *SHORT, "20", "--out", "mine")
    refused = run("demo", "--out", "mine")
    assert refused.exit_code == 2
    assert "or an earlier demo" in refused.stderr
    assert Run("mine").n_steps == 20


@pytest.mark.slow
def test_the_demo_as_it_comes(run):
    done = run("demo")
    assert done.exit_code == 0
    summary = Run("runs/demo").summary
    assert summary["stopped"] == "certified"
    assert summary["promise_kept"]
    world = ep.environments.wall_cycle()
    certificate = summary["certificate"]
    assert certificate["upper_bound"] >= world.optimum - 1.0
    assert certificate["gap"] <= 4.0
