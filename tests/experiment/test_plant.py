"""Beside a plant: what was told is on disk, and after a crash nothing is lost."""

from __future__ import annotations

import csv
import os
import shutil
import signal
import sqlite3

import numpy as np
import pytest

import escapade as ep
from escapade.errors import AssumptionError, InvalidFileError, InvalidInputError
from escapade.experiment import PlantRun, find_run
from escapade.experiment.export import export
from escapade.experiment.verification import verify
from escapade.knowledge.files import first_difference

SETTINGS = ep.E4Settings(known_after=2, seed=3)


class World:
    """A plant of which the test holds the truth."""

    def __init__(self, seed=0, budget=10.0):
        self.world = ep.environments.wall_cycle(size=3, budget=budget)
        self.knowledge = self.world.knowledge
        self.env = self.world.make_env()
        self.state, _ = self.env.reset(seed=seed)

    def live(self, agent, steps):
        for _ in range(steps):
            decision = agent.ask(self.state)
            self.act(agent, decision)

    def act(self, agent, decision):
        self.state, reward, _, _, info = self.env.step(decision.action)
        agent.tell(decision, reward=reward, cost=info["cost"], next_state=self.state)


@pytest.fixture
def plant():
    return World()


def begin(path, plant):
    return ep.open(path, knowledge=plant.knowledge, settings=SETTINGS, durable=False)


def crash(path, to):
    """Return a directory as a crash would leave it."""
    shutil.copytree(path, to)
    (to / ".lock").unlink()
    return to


def assert_agrees(path):
    outcome = verify(find_run(path))
    assert outcome.holds, outcome
    return outcome


def test_beside_a_plant_the_agent_decides_as_it_does_elsewhere(tmp_path, plant):
    path = tmp_path / "plant.journal"
    with begin(path, plant) as agent:
        plant.live(agent, 300)
        assert agent.steps == 300
        assert agent.learning
        assert agent.breaks == ()
        assert agent.promise.shape == (1,)
        assert agent.certificate().exposure > 0.0
    other = World()
    alone = ep.E4(other.knowledge, SETTINGS)
    other.live(alone, 300)
    run = PlantRun(path)
    trace = run.trace()
    assert trace.states[-1] == alone.state
    assert run.agent().promise.tolist() == alone.promise.tolist()
    assert run.events("plan")
    assert run.summary is None
    assert assert_agrees(path).steps == 300


def test_opened_again_the_agent_goes_on(tmp_path, plant):
    path = tmp_path / "plant.journal"
    for _ in range(4):
        with begin(path, plant) as agent:
            assert agent.pending is None
            plant.live(agent, 50)
    with ep.open(path) as agent:  # what it was told stands there
        assert agent.steps == 200
        assert agent.state == plant.state
    other = World()
    alone = ep.E4(other.knowledge, SETTINGS)
    other.live(alone, 200)
    assert PlantRun(path).agent().promise.tolist() == alone.promise.tolist()
    assert_agrees(path)


def test_a_decision_of_which_nothing_is_heard_can_be_told_or_is_charged(
    tmp_path, plant
):
    path = tmp_path / "plant.journal"
    with begin(path, plant) as agent:
        plant.live(agent, 60)
        decision = agent.ask(plant.state)
        told, charged = (crash(path, tmp_path / name) for name in ("told", "charged"))
    with ep.open(told) as agent:
        assert agent.pending == decision
        World.act(plant, agent, agent.pending)
        assert agent.pending is None
        plant.live(agent, 20)
    assert_agrees(told)
    with ep.open(charged) as agent:
        before = float(agent.promise[0])
        here = PlantRun(charged).trace().states[-1]
        agent.ask(int(here))
        assert agent.steps == 61
        assert float(agent.promise[0]) <= min(before / 0.99, 9.95)
    assert assert_agrees(charged).steps == 61
    with sqlite3.connect(charged / "journal.sqlite") as db:
        rows = db.execute("SELECT reward, cost FROM steps WHERE step = 60").fetchall()
    db.close()
    assert rows == [(None, None)]


def test_within_one_opening_no_decision_is_passed_over(tmp_path, plant):
    with begin(tmp_path / "plant.journal", plant) as agent:
        agent.ask(plant.state)
        with pytest.raises(InvalidInputError, match="the last decision first"):
            agent.ask(plant.state)


def test_telling_twice_changes_nothing(tmp_path, plant):
    path = tmp_path / "plant.journal"
    with begin(path, plant) as agent:
        decision = agent.ask(plant.state)
        told = {"reward": 0.0, "cost": 0.0, "next_state": plant.state}
        agent.tell(decision, **told)
        agent.tell(decision, **told)
        following = agent.ask(plant.state)
        agent.tell(decision, **told)
        assert agent.pending == following
        assert agent.steps == 1
    assert PlantRun(path).n_steps == 1


def test_what_is_out_of_bounds_is_refused_and_can_be_told_right(tmp_path, plant):
    path = tmp_path / "plant.journal"
    with begin(path, plant) as agent:
        decision = agent.ask(plant.state)
        with pytest.raises(AssumptionError, match="reward: expected"):
            agent.tell(decision, reward=7.0, cost=0.0, next_state=plant.state)
        plant.act(agent, decision)
        plant.live(agent, 5)
    assert_agrees(path)


# -- operators -------------------------------------------------------------------------


def test_an_override_is_charged_to_the_ledger_and_told_again(tmp_path, plant):
    path = tmp_path / "plant.journal"
    with begin(path, plant) as agent:
        plant.live(agent, 40)
        decision = agent.ask(plant.state)
        action = (decision.action + 1) % 5
        made = agent.override(action)
        assert made.instead_of == decision.action
        assert made.decision.action == action
        assert made.allowed == (max(made.beyond) <= 0.0)
        pending = crash(path, tmp_path / "pending")
        plant.act(agent, made.decision)
        plant.live(agent, 30)
        with pytest.raises(InvalidInputError, match="a decision that is open"):
            agent.override(0)
    trace = PlantRun(path).trace()
    assert trace.actions[40] == action
    (event,) = PlantRun(path).events("override")
    assert event.content["instead_of"] == decision.action
    assert_agrees(path)
    with ep.open(pending) as agent:
        assert agent.pending.action == action
    assert_agrees(pending)


def test_an_override_beyond_the_ledger_says_by_how_much(tmp_path):
    world = ep.environments.toll_cycle(size=3, budget=3.0)
    with ep.open(
        tmp_path / "p", knowledge=world.knowledge, settings=SETTINGS, durable=False
    ) as agent:
        env = world.make_env()
        state, _ = env.reset(seed=1)
        beyond = []
        for _ in range(150):
            decision = agent.ask(state)
            made = agent.override(0)  # north, whatever comes
            beyond.append(max(made.beyond))
            assert made.allowed == (beyond[-1] <= 0.0)
            state, reward, _, _, info = env.step(made.decision.action)
            agent.tell(
                made.decision, reward=reward, cost=info["cost"], next_state=state
            )
            if agent.breaks:
                break
            assert decision.id == made.decision.id
    assert max(beyond) > 0.0
    assert_agrees(tmp_path / "p")


def test_a_frozen_agent_learns_and_explores_nothing(tmp_path, plant):
    path = tmp_path / "plant.journal"
    with begin(path, plant) as agent:
        plant.live(agent, 80)
        agent.freeze()
        assert not agent.learning
        plant.live(agent, 60)
        crashed = crash(path, tmp_path / "crashed")
        agent.thaw()
        plant.live(agent, 30)
    trace = PlantRun(path).trace()
    phases = trace.phases[80:140]
    assert set(phases.tolist()) <= {0, 3, 4, 5}  # neither explores nor wanders
    assert [e.kind for e in PlantRun(path).events("freeze", "thaw")] == [
        "freeze",
        "thaw",
    ]
    assert not any(80 < step < 140 for step in trace.plans.tolist())
    visits = PlantRun(path).agent().belief.evidence.pair_visits.sum()
    log = plant.knowledge.log
    recorded = 0 if log is None else len(log.states)
    assert visits == recorded + 110
    assert_agrees(path)
    with ep.open(crashed) as agent:
        assert not agent.learning
        assert agent.steps == 140


def test_costs_that_come_late_and_budgets_that_change_are_told_again(tmp_path, plant):
    path = tmp_path / "plant.journal"
    with begin(path, plant) as agent:
        plant.live(agent, 30)
        decision = agent.ask(plant.state)
        state, reward, _, _, info = plant.env.step(decision.action)
        plant.state = state
        agent.tell(decision, reward=reward, cost=None, next_state=state)
        following = agent.ask(state)
        assert np.isnan(PlantRun(path).trace().costs[30, 0])
        agent.tell_cost(decision, info["cost"])
        paid = float(np.sum(info["cost"]))
        plant.act(agent, following)
        agent.change_budget(11.0)
        agent.note("the valve was exchanged")
        crashed = crash(path, tmp_path / "crashed")
        plant.live(agent, 20)
    for place in (path, crashed):
        assert_agrees(place)
        with ep.open(place) as agent:
            run = PlantRun(place)
            assert run.trace().costs[30, 0] == run.trace(30, 31).costs[0, 0] == paid
            assert run.trace(29, 30).costs[0, 0] == run.trace().costs[29, 0]
            assert export(run, tmp_path / "steps.csv") == agent.steps
            with (tmp_path / "steps.csv").open() as file:
                assert [r["cost"] for r in csv.DictReader(file)][30] == str(paid)
    kinds = [e.kind for e in PlantRun(path).events("cost", "budget", "remark")]
    assert kinds == ["cost", "budget", "remark"]


def test_a_late_cost_that_breaks_an_assumption_names_its_decision(tmp_path, plant):
    path = tmp_path / "plant.journal"
    pairs, pair_is_free = plant.knowledge.pairs, np.zeros((9, 5), dtype=bool)
    pair_is_free[pairs.pair_state, pairs.pair_action] = plant.knowledge.free
    assert pair_is_free.any()
    with begin(path, plant) as agent:
        while True:
            decision = agent.ask(plant.state)
            if pair_is_free[decision.state, decision.action]:
                break
            plant.act(agent, decision)
        plant.state, reward, *_ = plant.env.step(decision.action)
        agent.tell(decision, reward=reward, cost=None, next_state=plant.state)
        plant.live(agent, 3)
        last, pending = agent.steps - 1, agent.ask(plant.state)
        agent.tell_cost(decision, 0.25)
        assert agent.breaks[0].startswith(
            f"decision {decision.id}, whose cost came after decision {last}: cost: "
        )
        plant.act(agent, pending)
        plant.live(agent, 5)
        crashed = crash(path, tmp_path / "crashed")
    assert [event.step for event in PlantRun(path).events("break")] == [last + 1]
    assert_agrees(path)
    with ep.open(crashed) as agent:
        assert agent.breaks[0].startswith(f"decision {decision.id}, ")
    assert_agrees(crashed)


# -- mistakes --------------------------------------------------------------------------


def test_other_knowledge_or_settings_are_refused(tmp_path, plant):
    path = tmp_path / "plant.journal"
    with begin(path, plant) as agent:
        plant.live(agent, 3)
    other = ep.environments.wall_cycle(size=3, budget=9.0).knowledge
    with pytest.raises(
        InvalidInputError, match=r"life in .*, found budget 9.0 instead of 10.0"
    ):
        ep.open(path, knowledge=other)
    with pytest.raises(
        InvalidInputError, match=r"settings: expected what the .*, found known_after"
    ):
        ep.open(path, settings=ep.E4Settings(seed=4))
    unnamed = ep.environments.wall_cycle(size=3, budget=10.0)
    assert first_difference(unnamed.knowledge, plant.knowledge) is None
    mends = ep.environments.wall_cycle(size=4).knowledge
    assert first_difference(mends, plant.knowledge) == "n_states 16 instead of 9"
    with pytest.raises(
        InvalidInputError, match=r"path: .* knowledge to begin .* no journal at .*new"
    ):
        ep.open(tmp_path / "new")
    with pytest.raises(InvalidInputError, match="a seed"):
        ep.open(
            tmp_path / "new",
            knowledge=plant.knowledge,
            settings=ep.E4Settings(seed=None),
        )
    assert not (tmp_path / "new").exists()


def test_two_at_once_are_refused_and_a_closed_one_answers_nothing(tmp_path, plant):
    path = tmp_path / "plant.journal"
    with (
        begin(path, plant) as agent,
        pytest.raises(InvalidInputError, match="nobody else is writing"),
    ):
        ep.open(path)
    agent.close()
    with pytest.raises(InvalidInputError, match="one that was closed"):
        agent.ask(plant.state)


def test_an_altered_journal_is_not_opened(tmp_path, plant):
    path = tmp_path / "plant.journal"
    with begin(path, plant) as agent:
        plant.live(agent, 30)
    with sqlite3.connect(path / "journal.sqlite") as db:
        db.execute("UPDATE steps SET reward = 0.5 WHERE step = 3")
    db.close()
    with pytest.raises(InvalidFileError, match="as they were written"):
        ep.open(path)
    assert not verify(find_run(path)).holds


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills by POSIX signals")
def test_killed_between_any_two_calls_the_agent_goes_on_as_if_it_had_not_been(tmp_path):
    path = tmp_path / "plant.journal"
    other = World()
    alone = ep.E4(other.knowledge, SETTINGS)
    other.live(alone, 40)
    expected = alone.promise.tolist()
    for moment in range(0, 80, 9):  # asks and tells, in turn
        shutil.rmtree(path, ignore_errors=True)
        plant = World()
        pid = os.fork()
        if not pid:
            calls = 0
            agent = ep.open(path, knowledge=plant.knowledge, settings=SETTINGS)
            while True:
                decision = agent.ask(plant.state)
                calls += 1
                if calls > moment:
                    os.kill(os.getpid(), signal.SIGKILL)
                plant.act(agent, decision)
                calls += 1
                if calls > moment:
                    os.kill(os.getpid(), signal.SIGKILL)
        os.waitpid(pid, 0)
        plant = World()
        with ep.open(path) as agent:
            # the plant is where it was, for it did not die
            for t in range(agent.steps):
                plant.state = plant.env.step(int(PlantRun(path).trace().actions[t]))[0]
            if agent.pending is not None:
                plant.act(agent, agent.pending)
            plant.live(agent, 40 - agent.steps)
            assert agent.promise.tolist() == expected
