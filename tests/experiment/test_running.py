"""Runs: as the simulation lives them, however they are written down or interrupted."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from tests.experiment.conftest import assert_same, derived, small

import escapade as ep
from escapade.errors import AssumptionError, InvalidFileError, InvalidInputError
from escapade.experiment import Run, RunStore, Silent, live
from escapade.experiment.locking import RunLock


def test_a_run_is_the_simulation_written_down(undisturbed, spec):
    world = spec.make_world()
    agent = ep.E4(world.knowledge, spec.make_settings())
    trace = ep.simulate(agent, world.make_env(), spec.steps)
    assert_same(undisturbed.trace(), trace)
    summary = undisturbed.summary
    assert {k: summary[k] for k in trace.summary()} == trace.summary()
    assert summary["promise_kept"]
    certificate = agent.certificate()
    assert summary["certificate"]["gap"] == certificate.gap
    assert summary["certificate"]["cost_upper"] == certificate.cost_upper.tolist()
    assert undisturbed.agent().promise.tolist() == agent.promise.tolist()


def test_the_reading_side_tells_plans_known_states_and_parts(undisturbed, spec):
    trace = undisturbed.trace()
    plans = undisturbed.events("plan")
    assert [event.step for event in plans] == trace.plans.tolist()
    known = sum(len(event.content["newly_known"]) for event in plans)
    assert plans[-1].content["known"] >= known > 0
    part = undisturbed.trace(100, 130)
    assert part.states.tolist() == trace.states[100:131].tolist()
    assert part.plans.tolist() == [
        p - 100 for p in trace.plans.tolist() if 100 < p <= 130
    ]
    assert undisturbed.n_steps == spec.steps
    assert undisturbed.status == "finished"
    assert [row["step"] for row in undisturbed.openings()] == [0]
    assert undisturbed.progress()[-1]["step"] == spec.steps


def test_block_length_and_checkpoints_decide_nothing(tmp_path, spec, undisturbed):
    run = Run.create(tmp_path / "run", spec)
    summary = live(run, block=37, checkpoint_seconds=0.0)
    assert_same(run.trace(), undisturbed.trace())
    assert derived(summary) == derived(undisturbed.summary)
    assert run.events() == undisturbed.events()
    assert run.journal().damage() == []


def test_a_run_is_the_same_when_every_step_waits_for_the_disk(tmp_path):
    short = small(steps=120, settings={"known_after": 2})
    runs = [
        Run.create(
            tmp_path / str(durable), short.model_copy(update={"durable": durable})
        )
        for durable in (False, True)
    ]
    grouped, durable = (live(run, block=50) for run in runs)
    assert derived(durable) == derived(grouped)
    assert_same(runs[1].trace(), runs[0].trace())
    assert runs[1].events() == runs[0].events() != []


def test_a_run_that_is_stopped_goes_on(tmp_path, spec, undisturbed):
    run = Run.create(tmp_path / "run", spec)
    asked = iter([False, False, True])
    assert live(run, block=100, stop=lambda: next(asked)) is None
    assert (run.status, run.n_steps) == ("begun", 300)
    assert run.summary is None
    assert len(run.trace()) == 300
    summary = live(run)
    assert derived(summary) == derived(undisturbed.summary)
    assert_same(run.trace(), undisturbed.trace())
    assert run.events() == undisturbed.events()
    assert [row["step"] for row in run.openings()] == [0, 300]


def test_a_finished_run_is_not_touched(undisturbed):
    before = {p.name: p.stat().st_mtime_ns for p in undisturbed.directory.glob("*.*")}
    assert live(undisturbed) == undisturbed.summary
    after = {p.name: p.stat().st_mtime_ns for p in undisturbed.directory.glob("*.*")}
    assert {n: t for n, t in after.items() if not n.endswith(("-shm", "-wal"))} == {
        n: t for n, t in before.items() if not n.endswith(("-shm", "-wal"))
    }


def test_a_run_can_end_when_it_is_certified(tmp_path):
    spec = small(
        until="certified", settings={"epsilon": 40.0, "known_after": 5}, steps=3000
    )
    run = Run.create(tmp_path / "run", spec)
    summary = live(run, block=100)
    assert summary["stopped"] == "certified"
    assert summary["steps"] < 3000
    assert summary["certificate"]["gap"] <= 40.0


def test_callbacks_are_told_every_step_once_and_every_plan(tmp_path, spec):
    class Notes(Silent):
        def __init__(self):
            self.steps, self.plans, self.ends = [], [], []

        def on_step(self, moment):
            assert moment.steps == moment.first + len(moment.trace)
            self.steps += range(moment.first, moment.steps)

        def on_replan(self, step, content):
            self.plans.append((step, content["known"]))

        def on_end(self, summary):
            self.ends.append(summary["steps"])

    notes = Notes()
    run = Run.create(tmp_path / "run", spec)
    asked = iter([False, True])
    live(run, block=250, callbacks=[notes], stop=lambda: next(asked))
    live(run, block=250, callbacks=[notes])
    assert notes.steps == list(range(spec.steps))
    assert notes.plans == [(e.step, e.content["known"]) for e in run.events("plan")]
    assert notes.ends == [spec.steps]


def test_an_agent_that_cannot_promise_is_not_born(tmp_path):
    run = Run.create(tmp_path / "run", small())
    world = ep.environments.wall_cycle(size=3)
    told = world.knowledge
    run.__dict__["world"] = dataclasses.replace(
        world,
        cmdp=world.cmdp.replace(budget=0.01),
        known_optimum=None,
        told=lambda: ep.Knowledge(
            told.n_states,
            told.n_actions,
            discount=told.discount,
            budget=0.01,
            reward_max=1.0,
            cost_max=1.0,
            start=0,
        ),
    )
    with pytest.raises(AssumptionError, match="promised from the start"):
        live(run)
    assert run.status == "new"


# -- two at once, and other mistakes ---------------------------------------------------


def test_a_second_writer_is_refused(tmp_path, spec):
    run = Run.create(tmp_path / "run", spec)
    with (
        RunLock(run.directory),
        pytest.raises(InvalidInputError, match="nobody else is writing"),
    ):
        live(run)
    assert live(run) is not None


def test_a_directory_in_use_is_refused(undisturbed, spec):
    with pytest.raises(InvalidInputError, match="empty or new"):
        Run.create(undisturbed.directory, spec)
    with pytest.raises(InvalidInputError, match=r"a directory with a spec\.toml"):
        Run(undisturbed.directory.parent)


def test_a_journal_of_another_run_is_refused(tmp_path, spec, undisturbed):
    run = Run.create(tmp_path / "run", small(steps=1300))
    journal = (undisturbed.directory / "journal.sqlite").read_bytes()
    (run.directory / "journal.sqlite").write_bytes(journal)
    with pytest.raises(InvalidFileError, match=r"that spec\.toml describes"):
        live(run)


def test_the_store_finds_runs_by_name_and_by_specification(tmp_path, spec):
    store = RunStore(tmp_path / "runs")
    assert list(store) == []
    assert spec not in store
    run = store.take(spec)
    assert run.status == "new"
    assert run.n_steps == 0
    assert store.take(spec).directory == run.directory == store[spec.name].directory
    assert spec in store
    assert store[spec].spec == spec
    assert [found.directory for found in store] == [run.directory]
    with pytest.raises(InvalidFileError, match="none yet"):
        run.agent()


def test_a_summary_knows_what_was_paid(undisturbed):
    trace = undisturbed.trace()
    to_go = trace.cost_to_go()
    by_hand = np.zeros(trace.costs.shape[1])
    for t in range(len(trace) - 1, -1, -1):
        by_hand = trace.costs[t] + trace.discount * by_hand
    assert to_go[0] == pytest.approx(by_hand)
    realised = undisturbed.summary["realised"]
    assert realised["largest_cost_to_go"] == to_go.max(axis=0).tolist()
    assert realised["steps_over_budget"] == int((to_go > 10.0).any(axis=1).sum())
