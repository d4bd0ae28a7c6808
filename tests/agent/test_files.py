"""An agent on disk: whatever it was doing, it goes on bit for bit."""

from __future__ import annotations

import zipfile

import numpy as np
import pytest
from tests.simulation.worlds import LIVES, two_budgets, workshop

from escapade.agent import E4, E4Settings
from escapade.errors import InvalidFileError
from escapade.model.archives import read_archive, write_archive
from escapade.simulation import simulate


def saved(agent: E4, folder) -> E4:
    agent.save(folder / "agent.npz")
    return E4.load(folder / "agent.npz")


def assert_same_future(agent: E4, other: E4, env, steps: int):
    """Let both live on in the same world, and compare every decision."""
    twin = type(env)(
        env.cmdp,
        reward_noise=env.reward_noise,
        cost_noise=env.cost_noise,
        cost_given_next=env.cost_given_next,
    )
    twin.reset(seed=0)
    twin.place(env.state)
    twin.np_random.bit_generator.state = env.np_random.bit_generator.state
    one, its = simulate(agent, env, steps), simulate(other, twin, steps)
    for name in ("states", "actions", "phases", "reasons", "promise", "plans", "costs"):
        np.testing.assert_array_equal(getattr(one, name), getattr(its, name), name)
    assert agent.journal()["breaks"] == other.journal()["breaks"]
    assert agent.decisions == other.decisions
    assert agent.rng.bit_generator.state == other.rng.bit_generator.state


@pytest.mark.parametrize("life", [name for name in LIVES if name != "gamble"])
def test_a_loaded_agent_goes_on_bit_for_bit(life, tmp_path):
    build, settings, steps = LIVES[life]
    world = build()
    agent, env = E4(world.knowledge, E4Settings(seed=5, **settings)), world.make_env()
    simulate(agent, env, steps // 2)
    assert_same_future(agent, saved(agent, tmp_path), env, steps // 2)


def test_a_plan_by_levels_of_the_promise_is_kept(tmp_path):
    build, settings, _ = LIVES["loop"]
    world = build()
    agent, env = E4(world.knowledge, E4Settings(**settings)), world.make_env()
    simulate(agent, env, 100)
    assert agent.planned.plan.by_level
    assert agent.planned.earning.pairs.shape == (3, agent.planned.earning.levels.size)
    assert_same_future(agent, saved(agent, tmp_path), env, 50)


def test_before_the_first_step_nothing_is_lost_either(tmp_path):
    world = two_budgets()
    agent, env = E4(world.knowledge, E4Settings(seed=None)), world.make_env()
    other = saved(agent, tmp_path)
    assert other.state is None
    env.reset(seed=3)
    agent.state = other.state = env.state
    assert_same_future(agent, other, env, 80)


def test_an_open_decision_stays_open(tmp_path):
    world = workshop()
    agent, env = E4(world.knowledge, E4Settings(known_after=5)), world.make_env()
    simulate(agent, env, 20)
    decision = agent.ask(env.state)
    other = saved(agent, tmp_path)
    with pytest.raises(
        ValueError, match="ask: expected what came of the last decision"
    ):
        other.ask(env.state)
    state, reward, *_, info = env.step(decision.action)
    for life in (agent, other):
        for _ in range(2):  # and telling it twice does nothing the second time
            life.tell(decision, reward=reward, cost=info["cost"], next_state=state)
    assert agent.journal() == other.journal()
    again = saved(agent, tmp_path)
    again.tell(decision, reward=reward, cost=info["cost"], next_state=state)
    assert again.decisions == agent.decisions
    assert_same_future(agent, other, env, 60)


def test_a_break_is_not_forgotten(tmp_path):
    agent = E4(workshop().knowledge, E4Settings(known_after=3))
    state = 0
    while not agent.breaks:
        decision = agent.ask(state)
        state = 3 if decision.action == 2 else state
        agent.tell(decision, reward=0.0, cost=None, next_state=state)
    other = saved(agent, tmp_path)
    assert other.breaks == agent.breaks
    for _ in range(10):
        mine, its = agent.ask(3), other.ask(3)
        assert mine == its
        for life, decision in ((agent, mine), (other, its)):
            life.tell(decision, reward=0.0, cost=None, next_state=3)


def test_saving_changes_nothing(tmp_path):
    world = workshop()
    agents = [E4(world.knowledge, E4Settings(known_after=4)) for _ in range(2)]
    env = world.make_env()
    simulate(agents[0], env, 30)
    simulate(agents[1], world.make_env(), 30)
    agents[0].save(tmp_path / "one.npz")
    assert_same_future(*agents, env, 50)


def test_files_that_are_no_agents_are_refused(tmp_path):
    path = tmp_path / "agent.npz"
    agent = E4(workshop().knowledge)
    agent.save(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InvalidFileError, match="path: expected"):
        E4.load(path)
    workshop().cmdp.save(path)
    with pytest.raises(InvalidFileError, match="expected format 'escapade-agent' in"):
        E4.load(path)
    with pytest.raises(InvalidFileError, match="path: expected a file, found none at"):
        E4.load(tmp_path / "nowhere.npz")


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("own.promise", np.zeros(3)),
        ("belief.evidence.visits", None),
        ("belief.bounds.lower", np.zeros(1)),
        ("plan.by_level", None),
        ("safety.w", None),
    ],
)
def test_parts_that_do_not_fit_together_are_refused(tmp_path, name, array):
    path = tmp_path / "agent.npz"
    E4(workshop().knowledge).save(path)
    content, arrays = read_archive(path, kind="escapade-agent", version=2, what="it")
    del arrays[name]
    if array is not None:
        arrays[name] = array
    write_archive(
        path, kind="escapade-agent", version=2, content=content, arrays=arrays
    )
    with pytest.raises(InvalidFileError, match="path: expected a valid agent in"):
        E4.load(path)


def test_a_file_that_was_altered_is_refused(tmp_path):
    path = tmp_path / "agent.npz"
    E4(workshop().knowledge).save(path)
    with np.load(path) as archive:
        arrays = dict(archive)
    arrays["own.promise"] = arrays["own.promise"] + 1.0
    np.savez(path, **arrays)
    with pytest.raises(InvalidFileError, match="altered after it was written"):
        E4.load(path)


def test_nothing_is_pickled(tmp_path):
    path = tmp_path / "agent.npz"
    E4(two_budgets().knowledge).save(path)
    with np.load(path, allow_pickle=False) as archive:
        assert all(archive[name].dtype != object for name in archive.files)
    assert zipfile.is_zipfile(path)
