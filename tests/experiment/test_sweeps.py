"""Sweeps: the same table whoever lives the runs, and whatever happens to them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from tests.experiment.conftest import Hands, derived, small

from escapade.errors import InvalidFileError, InvalidInputError
from escapade.experiment import Run, Sweep, SweepSpec, live, sweep
from escapade.experiment.locking import RunLock
from escapade.experiment.sweeps import sweeping
from escapade.experiment.sweeps.combinations import combinations
from escapade.experiment.sweeps.engines import Ended
from escapade.experiment.sweeps.on_this_machine import OnThisMachine
from escapade.experiment.sweeps.table import read_table
from escapade.experiment.sweeps.work import ONE_THREAD, Outcome, greet, work

STEPS = 300


def asked(**changes):
    return SweepSpec(
        **{
            "worlds": [{"name": "wall-cycle", "parameters": {"size": 3}}],
            "settings": {"known_after": [2, 4]},
            "seeds": 2,
            "steps": STEPS,
            **changes,
        }
    )


DEATH = Ended(run=small(), outcome=None, death="its worker died, SIGKILL(-9)")


@pytest.fixture
def by(monkeypatch):
    def use(hands):
        monkeypatch.setattr(sweeping, "_engine", hands.made)
        return hands

    return use


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """Return the table of a sweep whose runs were lived here, one after the other."""
    before = sweeping._engine
    sweeping._engine = Hands().made
    try:
        return sweep(asked(), tmp_path_factory.mktemp("sweeps") / "undisturbed")
    finally:
        sweeping._engine = before


def table(found):
    return found.results_path.read_bytes()


# -- what comes of it ------------------------------------------------------------------


def test_a_row_is_what_the_run_came_to(undisturbed, tmp_path):
    spec = undisturbed.spec
    assert undisturbed.finished
    rows = undisturbed.rows()
    assert [row["run"] for row in rows] == [run.name for run in spec.runs]
    alone = Run.create(tmp_path / "run", spec.runs[3])
    summary = live(alone)
    row = rows[3]
    assert (row["settings.known_after"], row["seed"]) == (4, 1)
    assert row["world"] == "wall-cycle"
    assert row["reward_per_step"] == summary["reward_per_step"]
    assert row["gap"] == summary["certificate"]["gap"]
    assert row["cost_upper"] == summary["certificate"]["cost_upper"][0]
    assert row["promise_kept"] is True
    assert row["error"] is None
    # the axes that were named, varied or not, and nothing that hangs on the clock
    assert [name for name in row if "." in name] == [
        "parameters.size",
        "settings.known_after",
    ]
    assert not {"seconds", "where"} & set(row)
    assert derived(undisturbed.runs[spec.runs[3]].summary) == derived(summary)


def test_the_table_is_the_same_in_whatever_order_runs_end(undisturbed, tmp_path, by):
    hands = by(Hands(room=3))
    found = sweep(asked(), tmp_path / "sweep")
    assert hands.lived != [run.name for run in asked().runs]
    assert table(found) == table(undisturbed)


def test_two_processes_make_the_same_table(undisturbed, tmp_path):
    heard = []
    found = sweep(asked(), tmp_path / "sweep", workers=2, watch=heard.append)
    assert table(found) == table(undisturbed)
    where = {line["where"] for line in found.log() if "where" in line}
    assert len(where) == 2
    assert str(os.getpid()) not in {place.partition(":")[2] for place in where}
    last = heard[-1]
    assert (last.runs, last.ended, last.failed, last.in_hand) == (4, 4, 0, 0)
    assert last.done == last.steps == 4 * STEPS


def test_more_budgets_have_columns_of_their_own(tmp_path, by):
    by(Hands())
    garnet = {"name": "garnet", "parameters": {"n_states": 6, "n_costs": 2, "seed": 5}}
    spec = asked(worlds=["queue", garnet], settings={}, steps=50, seeds=1)
    found = sweep(spec, tmp_path / "sweep")
    queue, drawn = found.rows()
    assert drawn["budget_1"] is not None
    assert queue["budget_1"] is None
    assert (drawn["seed"], drawn["parameters.seed"]) == (0, 5)
    assert queue["budget"] is not None


def test_rows_are_there_as_soon_as_runs_end(tmp_path, by):
    counts = []
    path = tmp_path / "sweep" / "results.csv"
    by(Hands(before=lambda run: counts.append(len(read_table(path)))))
    found = sweep(asked(), tmp_path / "sweep")
    assert counts == [0, 1, 2, 3]
    # a row that is in the writing is not read
    path.write_bytes(table(found)[:-10])
    assert len(found.rows()) == 3
    assert not found.finished


# -- going on --------------------------------------------------------------------------


def test_what_is_finished_is_not_lived_again(undisturbed, tmp_path, by):
    hands = by(Hands())
    sweep(asked(seeds=[1]), tmp_path / "sweep")
    assert len(hands.lived) == 2
    found = sweep(asked(), tmp_path / "sweep")  # more seeds, in the same place
    assert len(hands.lived) == 4
    assert table(found) == table(undisturbed)
    found.results_path.unlink()
    sweep(asked(), tmp_path / "sweep")
    assert len(hands.lived) == 4
    assert table(found) == table(undisturbed)
    assert len(sweep(asked(seeds=[0]), tmp_path / "sweep").rows()) == 2


def test_another_sweep_does_not_take_its_place(tmp_path, by):
    by(Hands())
    place = tmp_path / "sweep"
    found = sweep(asked(seeds=1), place)
    before = table(found), (place / "sweep.toml").read_bytes()
    for other in ({"worlds": ["queue"]}, {"settings": {}}, {"steps": STEPS + 1}):
        with pytest.raises(InvalidInputError, match=r"another directory \(--out\)"):
            sweep(asked(seeds=1, **other), place)
    assert (table(found), (place / "sweep.toml").read_bytes()) == before
    grown = sweep(asked(seeds=1, settings={"known_after": [2, 3, 4]}), place)
    assert len(grown.rows()) == 3
    # what never was lived is nobody's loss
    Sweep.take(tmp_path / "new", asked())
    assert Sweep.take(tmp_path / "new", asked(worlds=["queue"])).spec.n_costs == 1


def test_a_sweep_that_is_stopped_goes_on(undisturbed, tmp_path, by):
    place = tmp_path / "sweep"
    by(Hands(room=2))
    answers = iter([False, False, True])
    found = sweep(asked(), place, stop=lambda: next(answers, True))
    assert not found.finished
    assert len(found.rows()) == 2
    assert [line["what"] for line in found.log()].count("set aside") == 1
    assert not (place / ".stop").exists()
    assert sweep(asked(), place).finished
    assert table(found) == table(undisturbed)


def test_two_at_once_are_refused(tmp_path, by):
    by(Hands())
    found = Sweep.take(tmp_path / "sweep", asked())
    with (
        RunLock(found.directory),
        pytest.raises(InvalidInputError, match="a sweep that nobody else is writing"),
    ):
        sweep(asked(), tmp_path / "sweep")


# -- what goes wrong -------------------------------------------------------------------


def test_a_run_that_fails_does_not_stop_the_others(tmp_path, by):
    hands = by(Hands())
    cheap = {"name": "barrier-grid", "parameters": {"budget": [[0.01, 0.01]]}}
    heard = []
    spec = asked(worlds=[cheap, "queue"], settings={}, seeds=1, steps=50)
    found = sweep(spec, tmp_path / "sweep", watch=heard.append)
    assert found.finished
    failed, lived = found.rows()
    assert "promised from the start" in failed["error"]
    assert failed["steps"] is None
    assert lived["steps"] == 50
    assert found.failures() == {failed["run"]: failed["error"]}
    assert any("failed: knowledge" in news for s in heard for news in s.news)
    (entry,) = [line for line in found.log() if line["what"] == "failed"]
    assert entry["run"] == failed["run"]
    sweep(spec, tmp_path / "sweep")  # it may have been the disk: it is tried again
    assert hands.lived.count(failed["run"]) == 2
    assert hands.lived.count(lived["run"]) == 1


def test_a_fault_of_ours_is_recorded_with_where_it_was(tmp_path, by, monkeypatch):
    by(Hands())

    def breakdown(run, **how):
        raise ZeroDivisionError("oh\nno")

    monkeypatch.setattr("escapade.experiment.sweeps.work.live", breakdown)
    found = sweep(asked(seeds=1, settings={}), tmp_path / "sweep")
    assert found.rows()[0]["error"] == "ZeroDivisionError: oh no"
    assert "breakdown" in found.log()[-1]["details"]


def test_a_damaged_summary_is_told(tmp_path, by):
    by(Hands())
    found = sweep(asked(seeds=1, settings={}), tmp_path / "sweep")
    (run,) = found.spec.runs
    path = found.runs.path_of(run) / "summary.json"
    path.write_text(path.read_text("utf-8").replace("true", "null"), "utf-8")
    again = sweep(asked(seeds=1, settings={}), tmp_path / "sweep")
    assert "summary.json: expected it as it was written" in again.rows()[0]["error"]


def test_after_a_death_a_run_is_handed_out_again(undisturbed, tmp_path, by):
    deaths = iter([DEATH, None, DEATH, DEATH])
    heard = []
    by(Hands(before=lambda run: next(deaths, None)))
    found = sweep(asked(), tmp_path / "sweep", retries=2, watch=heard.append)
    assert table(found) == table(undisturbed)
    died = [line for line in found.log() if line["what"] == "died"]
    assert [line["times"] for line in died] == [1, 1, 2]
    assert any("it goes on in another" in news for s in heard for news in s.news)


def test_a_run_whose_workers_always_die_is_given_up(tmp_path, by):
    victim = asked().runs[1].name
    hands = by(Hands(before=lambda run: DEATH if run.name == victim else None))
    found = sweep(asked(), tmp_path / "sweep", retries=2)
    assert hands.lived.count(victim) == 3
    assert found.failures() == {
        victim: "its worker died 3 times; at last: its worker died, SIGKILL(-9)"
    }
    assert len(found.rows()) == 4


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"engine": "spark"}, "engine: expected one of"),
        ({"workers": 0}, "workers: expected"),
        ({"retries": -1}, "retries: expected"),
        ({"address": "auto"}, "address: expected None unless engine='ray'"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path, how, said):
    with pytest.raises(InvalidInputError, match=said):
        sweep(asked(), tmp_path / "sweep", **how)
    assert not (tmp_path / "sweep").exists()


def test_a_directory_of_something_else_is_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("", "utf-8")
    with pytest.raises(InvalidInputError, match="sweep: expected a directory that is"):
        sweep(asked(), tmp_path)
    with pytest.raises(InvalidInputError, match="a directory with a sweep"):
        Sweep(tmp_path)
    found = Sweep.take(tmp_path / "new", asked())
    with pytest.raises(InvalidFileError, match="the table of a sweep"):
        found.rows()
    assert found.log() == []


# -- workers ---------------------------------------------------------------------------


def test_a_worker_waits_for_one_that_was_given_up(tmp_path, monkeypatch):
    (run,) = asked(seeds=1, settings={}).runs
    place = tmp_path / run.name
    place.mkdir()
    monkeypatch.setattr("escapade.experiment.sweeps.work._PATIENCE", 0.3)
    with RunLock(place):
        held = work(str(tmp_path), run.to_toml(), str(tmp_path / ".stop"))
    assert "a run that nobody else is writing" in held.error
    assert held.seconds >= 0.3
    assert work(str(tmp_path), run.to_toml(), str(tmp_path / ".stop")).results


def test_a_machine_that_does_not_see_the_runs_says_so(tmp_path):
    (run,) = asked(seeds=1, settings={}).runs
    away = tmp_path / "elsewhere"
    outcome = work(str(away), run.to_toml(), str(tmp_path / ".stop"))
    assert outcome.error.startswith("directory: expected one that every machine sees")
    assert not away.exists()


def test_a_run_in_another_s_place_is_not_taken(tmp_path):
    one, other = asked(seeds=1).runs
    Run.create(tmp_path / one.name, other)
    outcome = work(str(tmp_path), one.to_toml(), str(tmp_path / ".stop"))
    assert outcome.error.startswith(f"run: expected {one.name}")


def test_a_worker_tells_what_it_sees(tmp_path):
    assert greet()["seen"] is None
    assert greet(str(tmp_path / "none"))["seen"] is None
    (tmp_path / "probe").write_text("token", "ascii")
    assert greet(str(tmp_path / "probe"))["seen"] == "token"
    assert set(ONE_THREAD.values()) == {"1"}
    assert Outcome(seconds=0.0, where="").set_aside


needs_posix = pytest.mark.skipif(
    not hasattr(os, "fork"), reason="processes are killed by POSIX signals"
)


def holder(place):
    """Return the process that lives a run, once it has lived some of it."""
    return int((place / ".lock").read_text("ascii"))


@needs_posix
@pytest.mark.compiled
def test_a_worker_that_is_killed_costs_nothing_but_time(tmp_path):
    spec = asked(steps=1_000_000, seeds=2, settings={"known_after": 4})
    killed = []

    def kill(standing):
        place = tmp_path / "sweep" / "runs" / spec.runs[0].name
        if not killed and (place / ".beat").exists():
            killed.append(holder(place))
            os.kill(killed[0], signal.SIGKILL)

    found = sweep(spec, tmp_path / "sweep", workers=2, watch=kill)
    assert found.finished
    assert found.failures() == {}
    log = found.log()
    died = [line for line in log if line["what"] == "died"]
    assert [line["run"] for line in died] == [spec.runs[0].name]
    assert "SIGKILL" in died[0]["death"]
    # the other did not notice, and the victim went on from what stood in its journal
    steps = [
        [opening["step"] for opening in found.runs[run].openings()] for run in spec.runs
    ]
    assert len(steps[0]) == 2
    assert steps[1] == [0]
    alone = Run.create(tmp_path / "alone", spec.runs[0])
    assert found.rows()[0]["gap"] == live(alone)["certificate"]["gap"]


@needs_posix
def test_a_worker_that_dies_with_nothing_in_hand_is_replaced(tmp_path):
    (run,) = asked(seeds=1, settings={}).runs
    with OnThisMachine(tmp_path, tmp_path / ".stop", workers=1) as hands:
        (pool,) = hands._idle
        (process,) = pool._processes.values()
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        wait_until(lambda: pool._flags.broken is not None)
        hands.hand_over(run)
        assert (hands.room, hands.in_hand) == (0, (run,))
        (ended,) = hands.wait(300.0)
    assert ended.run == run
    assert ended.outcome.results["steps"] == STEPS


def test_what_stops_a_warm_up_ends_the_workers(tmp_path, monkeypatch):
    hands = OnThisMachine(tmp_path, tmp_path / ".stop", workers=1)

    def interrupted(seconds):
        raise KeyboardInterrupt

    monkeypatch.setattr(hands, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        hands.__enter__()
    assert (hands.room, hands.in_hand) == (0, ())


def command(*words, cwd):
    return subprocess.Popen(
        [sys.executable, "-m", "escapade", "sweep", *words],
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


@pytest.fixture
def long(tmp_path):
    spec = asked(steps=50_000_000, settings={})
    path = tmp_path / "long.toml"
    path.write_text(spec.to_toml(), "utf-8")
    return tmp_path / "sweeps" / "long" / "runs", [run.name for run in spec.runs]


def wait_until(holds):
    until = time.monotonic() + 300.0
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.05)


@needs_posix
@pytest.mark.compiled
def test_ctrl_c_sets_all_aside_and_says_how_to_go_on(tmp_path, long):
    runs, names = long
    process = command("long.toml", "--workers", "2", "--json", cwd=tmp_path)
    wait_until(lambda: all((runs / name / ".beat").exists() for name in names))
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all of them
    out, errors = process.communicate()
    assert process.returncode == 130
    assert errors == (
        "escapade: set aside with 0 of 2 runs ended; go on with: "
        "escapade sweep long.toml --out sweeps/long --workers 2\n"
    )
    assert json.loads(out)["ended"] == 0
    for name in names:
        run = Run(runs / name)
        assert run.n_steps > 0
        assert (runs / name / "checkpoint.json").exists()


@needs_posix
@pytest.mark.compiled
def test_workers_do_not_outlive_the_sweep(tmp_path, long):
    runs, names = long
    process = command("long.toml", "--workers", "1", cwd=tmp_path)
    place = runs / names[0]
    wait_until((place / ".beat").exists)
    process.kill()
    process.communicate()

    def let_go():
        try:
            RunLock(place).close()
        except InvalidInputError:
            return False
        return True

    wait_until(let_go)


def test_combinations_tell_mean_and_ends_over_seeds(undisturbed):
    first, second = combinations(undisturbed.rows())
    assert first.choices == {"settings.known_after": 2}
    assert second.choices == {"settings.known_after": 4}
    rewards = [row["reward_per_step"] for row in first.rows]
    spread = first.spread("reward_per_step")
    assert (spread.least, spread.most) == (min(rewards), max(rewards))
    assert spread.mean == pytest.approx(sum(rewards) / 2)
    assert first.spread("error") is None
    assert (first.failed, combinations([])) == (0, [])
