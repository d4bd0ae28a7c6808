"""Verifying a run: what is as it was lived holds, and one bit that is not is found."""

from __future__ import annotations

import contextlib
import json
import shutil
import sqlite3
from dataclasses import replace

import numpy as np
import pytest
from tests.experiment.conftest import small

import escapade as ep
from escapade.experiment import Run, live
from escapade.experiment.checkpoint import seal_text
from escapade.experiment.inequalities import broken_inequality
from escapade.experiment.verification import verify
from escapade.simulation import replay

FILES = (
    "spec.toml",
    "journal.sqlite",
    "checkpoint.npz",
    "checkpoint.json",
    "summary.json",
)


@pytest.fixture
def copy(tmp_path, undisturbed):
    shutil.copytree(undisturbed.directory, tmp_path / "copy")
    return Run(tmp_path / "copy")


@pytest.fixture
def unfinished(copy):
    (copy.directory / "summary.json").unlink()
    return copy


def wrong(run):
    outcome = verify(run)
    assert not outcome.holds
    assert [check.holds for check in outcome.checks[:-1]] == [True] * (
        len(outcome.checks) - 1
    )
    return outcome.checks[-1]


def execute(path, statement):
    with contextlib.closing(sqlite3.connect(path)) as db:
        assert db.execute(statement).rowcount == 1
        db.commit()


def test_a_run_holds_and_is_not_touched(undisturbed):
    seen = []
    before = {name: (undisturbed.directory / name).read_bytes() for name in FILES}
    outcome = verify(undisturbed, on_progress=lambda *at: seen.append(at))
    assert outcome.holds, outcome
    assert outcome.steps == 1200
    assert seen[-1] == (1200, 1200)
    assert [check.name for check in outcome.checks] == [
        "specification",
        "files",
        "journal",
        "decisions",
        "ledger",
        "events",
        "checkpoint",
        "certificate",
        "verdict",
        "summary",
    ]
    for name in FILES:
        assert (undisturbed.directory / name).read_bytes() == before[name]


@pytest.mark.parametrize(
    ("world", "parameters", "settings"),
    [
        ("toll-cycle", {"size": 3, "budget": 4.0}, {"known_after": 3}),
        pytest.param(
            "garnet",
            {"n_states": 5, "n_costs": 2},
            {"known_after": 2, "planner": "linear-program"},
            marks=pytest.mark.compiled,
        ),
        ("three-state-loop", {}, {"known_after": 2, "planner": "slack"}),
    ],
)
def test_runs_with_mixed_actions_and_several_budgets_hold(
    tmp_path, world, parameters, settings
):
    spec = small(world=world, parameters=parameters, settings=settings, steps=250)
    run = Run.create(tmp_path / "run", spec)
    live(run)
    outcome = verify(run)
    assert outcome.holds, outcome


def test_a_run_that_is_set_aside_holds(tmp_path, spec):
    run = Run.create(tmp_path / "run", spec)
    asked = iter([False, True])
    live(run, block=400, checkpoint_seconds=0.0, stop=lambda: next(asked))
    outcome = verify(run)
    assert outcome.holds, outcome
    assert outcome.steps == 800


@pytest.mark.parametrize("name", FILES)
def test_one_flipped_bit_is_found(copy, name):
    path = copy.directory / name
    whole = path.read_bytes()
    rng = np.random.default_rng(1)
    for place in rng.integers(8 * len(whole), size=12 if name != "spec.toml" else 40):
        changed = bytearray(whole)
        changed[place // 8] ^= 1 << (place % 8)
        path.write_bytes(changed)
        assert not verify(Run(copy.directory)).holds, place
    path.write_bytes(whole)
    assert verify(Run(copy.directory)).holds


@pytest.mark.parametrize(
    "column",
    ["state", "action", "phase", "reward", "cost", "next_state", "promise", "reason"],
)
def test_a_changed_number_is_found_in_a_run_that_is_not_finished(unfinished, column):
    path = unfinished.directory / "journal.sqlite"
    execute(path, f"UPDATE steps SET {column} = {column} + 1 WHERE step = 777")
    check = wrong(unfinished)
    assert check.name == "journal"
    assert "steps 0..1199" in check.found or "step 77" in check.found


def reseal(run):
    """Write the seals anew, as somebody would who wants to deceive."""
    reader = run.journal()
    trace, events = reader.read(), reader.events()
    about = reader.about
    reader.close()
    from escapade.experiment.journal import Journal
    from escapade.experiment.schema import create

    (run.directory / "journal.sqlite").unlink()
    create(run.directory / "journal.sqlite", about=about)
    writer = Journal(run.directory / "journal.sqlite", write=True)
    writer.append(trace, events)
    writer.close()


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ("UPDATE steps SET promise = promise + 1e-12 WHERE step = 777", "decisions"),
        ("UPDATE steps SET action = (action + 1) % 5 WHERE step = 777", "decisions"),
        ("UPDATE events SET step = step + 1 WHERE id = 1", "events"),
        ("DELETE FROM events WHERE id = 2", "events"),
        ("UPDATE steps SET reward = 1 - reward WHERE step = 1100", "checkpoint"),
    ],
)
def test_a_changed_number_under_a_new_seal_is_found(unfinished, change, name):
    execute(unfinished.directory / "journal.sqlite", change)
    reseal(unfinished)
    check = wrong(unfinished)
    assert check.name in (name, "decisions")


def test_a_certificate_that_does_not_follow_is_found(copy):
    path = copy.directory / "summary.json"
    summary = copy.summary
    summary["certificate"]["gap"] -= 0.5
    path.write_text(seal_text(summary), "utf-8")
    assert wrong(copy).name == "certificate"
    summary = json.loads(path.read_text("utf-8"))


def test_a_lost_checkpoint_is_told(unfinished):
    (unfinished.directory / "checkpoint.npz").unlink()
    check = wrong(unfinished)
    assert (check.name, "found another or none" in check.found) == ("checkpoint", True)


# -- the inequalities, by other code ---------------------------------------------------


def stretches(world, settings, trace):
    """Live a trace again; yield the agent at the end of every stretch."""
    agent, found = ep.E4(world.knowledge, settings), []

    def look(first, last, settled):
        found.append(broken_inequality(agent, look.trace, first, last, settled=settled))

    look.trace = trace
    return agent, look, found


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("promise", 1.5, "b' <= what the rule gives"),
        ("promise", 100.0, "b <= d"),
        ("promise", -50.0, "w(s) <= b"),
        ("reserved", 0.5, "w(s) is what was reserved"),
        ("costs", 1.0, "b' <= what the rule gives"),
    ],
)
def test_each_inequality_is_looked_at(undisturbed, spec, name, change, words):
    world, settings = spec.make_world(), spec.make_settings()
    trace = undisturbed.trace()
    array = np.array(getattr(trace, name))
    # a step in which the promise stands between, and falls with what is paid
    free = np.flatnonzero(
        (trace.promise[:-1, 0] < 8.0)
        & (trace.promise[:-1, 0] > 2.0)
        & (trace.costs[:-1, 0] == 0.0)
    )
    free = np.setdiff1d(free, trace.plans)
    at = int(free[len(free) // 2])
    array[at] += change
    agent, look, found = stretches(world, settings, trace)
    look.trace = replace(trace, **{name: array})
    assert replay(agent, trace, on_stretch=look) is None
    said = [text for text in found if text]
    assert any(words in text for text in said), said


def test_an_action_that_the_ledger_forbids_is_noticed():
    world = ep.environments.toll_cycle(size=3, budget=3.0)
    settings = ep.E4Settings(known_after=5, turn_home=0.3)
    trace = ep.simulate(ep.E4(world.knowledge, settings), world.make_env(), 1000)
    agent, look, found = stretches(world, settings, trace)
    looked = []

    def forbid(first, last, settled):
        held, terms = agent.planned.ledger, agent.knowledge.pairs
        for t in range(first, last):
            state = int(trace.states[t])
            pairs = range(held.state_ptr[state], held.state_ptr[state + 1])
            for pair in pairs:
                if held.q[0, pair] > trace.promise[t, 0] + 1e-3:
                    actions, reasons = np.array(trace.actions), np.array(trace.reasons)
                    actions[t], reasons[t] = terms.pair_action[pair], 1
                    look.trace = replace(trace, actions=actions, reasons=reasons)
                    look(first, last, settled)
                    looked.append(found[-1])
                    return

    assert replay(agent, trace, on_stretch=forbid) is None
    assert looked
    assert all(text and ("Q(s, a)" in text or "promisable" in text) for text in looked)
