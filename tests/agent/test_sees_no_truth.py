"""The agent never sees the true model: whoever tries to cheat fails."""

from __future__ import annotations

import gc
import subprocess
import sys
from types import FunctionType, MethodType, ModuleType

import numpy as np
import pytest
from tests.simulation.worlds import LIVES, workshop

from escapade.agent import E4, E4Settings
from escapade.environments import CMDPEnv, World, moat_grid, wall_cycle
from escapade.errors import InvalidInputError
from escapade.model import CMDP
from escapade.simulation import simulate


def test_the_agent_does_not_even_import_what_holds_the_truth():
    """Nor does anything that it imports; a fresh interpreter tells."""
    program = (
        "import sys, escapade.agent, escapade.agent.files\n"
        "held = ('environments', 'simulation', 'baselines', 'experiment', 'cli')\n"
        "print([m for m in sys.modules if m.split('.')[1:2] and m.split('.')[0] == "
        "'escapade' and m.split('.')[1] in held])"
    )
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == "[]"


def held_by(agent: E4) -> list[object]:
    """Return all objects that the agent can get at through references of its own."""
    seen: dict[int, object] = {}
    waiting: list[object] = [agent]
    while waiting:
        thing = waiting.pop()
        if id(thing) in seen or isinstance(thing, ModuleType | type):
            continue
        seen[id(thing)] = thing
        if isinstance(thing, FunctionType):  # its globals are modules' own
            waiting += [*(thing.__closure__ or ()), *(thing.__defaults__ or ())]
        elif isinstance(thing, MethodType):
            waiting += [thing.__self__]
        else:
            waiting += gc.get_referents(thing)
    return list(seen.values())


@pytest.mark.parametrize("life", [*LIVES, "known moat"])
def test_nothing_that_the_agent_holds_leads_to_the_truth(life):
    build, settings, _ = LIVES.get(life, (moat_grid, {}, 0))
    world = build()
    agent, env = E4(world.knowledge, E4Settings(**settings)), world.make_env()
    simulate(agent, env, 30)
    simulate(agent, env, 5, compiled=False)
    truth = world.cmdp
    for thing in held_by(agent):
        assert thing is not truth
        assert not isinstance(thing, World | CMDPEnv)
        if isinstance(thing, np.ndarray):
            for secret in (truth.probability, truth.reward, truth.cost):
                assert not np.shares_memory(thing, secret)


class Spy(E4):
    """An agent that looks at whatever it is handed for a true model."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.handed = []

    def ask(self, state):
        self.handed.append(state)
        return super().ask(state)

    def tell(self, decision, **told):
        self.handed += told.values()
        super().tell(decision, **told)


def test_the_loop_hands_over_numbers_and_nothing_else():
    world = workshop()
    spy = Spy(world.knowledge)
    simulate(spy, world.make_env(), 50, compiled=False)
    assert len(spy.handed) == 4 * 50
    assert {type(thing) for thing in spy.handed} == {int, float}
    with pytest.raises(TypeError):  # there is no door for more
        spy.tell(spy.ask(spy.state), reward=0.0, cost=0.0, next_state=0, world=world)
    with pytest.raises(InvalidInputError, match="knowledge: expected a Knowledge"):
        E4(world)


def replayed(agent: E4, trace) -> list[tuple]:
    """Tell an agent without any world what happened in a life, step by step."""
    decisions = []
    for t in range(len(trace)):
        decision = agent.ask(int(trace.states[t]))
        if decision.action != trace.actions[t]:
            return decisions
        decisions.append((decision.action, decision.phase, decision.promise))
        agent.tell(
            decision,
            reward=float(trace.rewards[t]),
            cost=trace.costs[t],
            next_state=int(trace.states[t + 1]),
        )
    return decisions


@pytest.mark.parametrize("life", ["walls", "workshop", "two budgets"])
def test_what_was_told_settles_what_is_done(life):
    """Knowledge, settings and observations: there is no other input."""
    build, settings, steps = LIVES[life]
    world = build()
    knowledge = world.knowledge
    trace = simulate(
        E4(knowledge, E4Settings(**settings)), world.make_env(), steps, seed=11
    )
    decisions = replayed(E4(knowledge, E4Settings(**settings)), trace)
    assert [d[0] for d in decisions] == trace.actions.tolist()
    assert [d[1] for d in decisions] == trace.phases.tolist()
    np.testing.assert_array_equal([d[2] for d in decisions], trace.promise)


def test_two_worlds_of_which_the_same_is_known_get_the_same_first_decisions():
    """Only what comes back may set lives apart, even where the truths differ."""
    knowledge = workshop().knowledge
    truth = workshop().cmdp
    rows = truth.transition_matrix.toarray().reshape(4, 3, 4)
    rows[:, 2] = rows[:, 2] ** 0.5 / (rows[:, 2] ** 0.5).sum(1, keepdims=True)
    other = CMDP(
        rows,
        1.0 - truth.reward.reshape(4, 3),
        truth.cost.reshape(4, 3),
        discount=truth.discount,
        budget=truth.budget,
        reward_max=1.0,
        cost_max=1.0,
    )
    agents = [E4(knowledge, E4Settings(known_after=5)) for _ in range(2)]
    traces = [
        simulate(agent, CMDPEnv(cmdp), 300, seed=4)
        for agent, cmdp in zip(agents, (truth, other), strict=True)
    ]
    observed = [
        np.column_stack([t.states[1:], t.rewards, t.costs[:, 0]]) for t in traces
    ]
    apart = int(np.argmax((observed[0] != observed[1]).any(axis=1)))
    np.testing.assert_array_equal(
        traces[0].actions[: apart + 1], traces[1].actions[: apart + 1]
    )
    assert not np.array_equal(traces[0].actions, traces[1].actions)


def test_knowledge_of_the_walk_does_not_tell_where_the_far_walls_stand():
    """A wall may stand at any row or column at least five from the opposite one."""
    models = wall_cycle(10).knowledge.models
    (north, east) = (
        [models.active_at(cell)[action] for cell in cells]
        for action, cells in ((0, range(4, 100, 10)), (3, range(40, 50)))
    )
    for names, wall in ((north, "north wall"), (east, "east wall")):
        assert names[:5] == [("free",)] * 5
        assert [set(n) for n in names[5:9]] == [{"free", wall}] * 4
        assert names[9] == (wall,)  # beyond lies no cell
