"""Malformed input of every kind: one line that names it, and nothing is lost.

Each kind meets a life in mid-step: an agent that has been asked and not yet told, the
world that it lives in, and a plant in a file.  After the refusal all of that is as it
was, and the agent goes on as its twin does, which nothing befell.
"""

from __future__ import annotations

from pathlib import Path

import gymnasium
import numpy as np
import pytest

import escapade as ep
from escapade.environments import from_arrays, from_gymnasium
from escapade.errors import EscapadeError

P = np.array([[[0.5, 0.5], [1.0, 0.0]], [[0.0, 1.0], [1.0, 0.0]]])
R = np.array([[1.0, 0.0], [0.0, 0.0]])
C = np.array([[0.5, 0.0], [1.0, 0.0]])
HEAD = "state,action,reward,cost,next_state\n"
RIGHT = {"reward": 0.0, "cost": 0.0, "next_state": 0}
HUGE = 10**30


def model(**changes):
    given = {"P": P, "R": R, "C": C, "discount": 0.9, "budget": 4.0, **changes}
    return ep.CMDP(given.pop("P"), given.pop("R"), given.pop("C"), **given)


def changed(array, place, value):
    other = array.copy()
    other[place] = value
    return other


def knowledge(**changes):
    given = {
        "discount": 0.9,
        "budget": 4.0,
        "reward_max": 1.0,
        "cost_max": 1.0,
        "support": P > 0.0,
        "costs": C[np.newaxis],
        **changes,
    }
    return ep.Knowledge(2, 2, **given)


def logged(text, **changes):
    path = Path("steps.csv")
    path.write_text(text, "utf-8")
    return knowledge(log=ep.Log.from_csv(path), **changes)


def lively():
    return knowledge(known_rows=P.reshape(4, 2))


def damaged():
    path = Path("plant.npz")
    model().save(path)
    path.write_bytes(path.read_bytes()[:200])
    return ep.CMDP.load(path)


def lake(**changes):
    given = {"cost": "cost", "discount": 0.9, "budget": 1.0, **changes}
    return from_gymnasium("FrozenLake-v1", **given)


class Foreign(gymnasium.Env):
    """Somebody's environment, which steps as it is told to."""

    observation_space = gymnasium.spaces.Discrete(2)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, *, after=0, reward=0.0, **info):
        self.answer = (after, reward, False, False, info)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return 0, {}

    def step(self, action):
        return self.answer


def one_step(action=0, **answer):
    brought = from_gymnasium(
        Foreign(**answer),
        cost="cost",
        discount=0.9,
        budget=1.0,
        reward_range=(0, 1),
        start=0,
    )
    brought.env.reset(seed=0)
    brought.env.step(action)


def told(life, **wrong):
    life.agent.tell(life.decision, **{**RIGHT, **wrong})


class Life:
    """An agent that was asked, with a twin, a world and a file."""

    def __init__(self):
        self.arrays = (P, R, C)
        model().save("kept.npz")
        self.env = ep.environments.three_state_loop().make_env()
        self.env.reset(seed=0)
        self.agent, self.twin = ep.E4(lively()), ep.E4(lively())
        for one in (self.agent, self.twin):
            one.tell(one.ask(0), **RIGHT)
        self.decision, self.same = self.agent.ask(0), self.twin.ask(0)

    def standing(self):
        return (
            [array.tobytes() for array in self.arrays],
            Path("kept.npz").read_bytes(),
            self.env.state,
            self.env.np_random.bit_generator.state,
            self.agent.decisions,
            self.agent.promise.tolist(),
            self.agent.open_decision,
        )

    def goes_on(self):
        self.agent.tell(self.decision, **RIGHT)
        self.twin.tell(self.same, **RIGHT)
        assert self.agent.breaks == self.twin.breaks == []
        np.testing.assert_array_equal(self.agent.promise, self.twin.promise)
        assert self.agent.ask(0) == self.twin.ask(0)


@pytest.fixture
def life(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return Life()


KINDS = {
    "transitions of a wrong shape": (lambda _: model(P=P[0]), "^P: "),
    "rewards of a wrong shape": (lambda _: model(R=R[:1]), "^R: "),
    "NaN among probabilities": (
        lambda _: model(P=changed(P, (0, 0, 1), np.nan)),
        "state 0, action 0",
    ),
    "a negative probability": (
        lambda _: model(P=changed(P, (1, 0), [1.5, -0.5])),
        "state 1, action 0",
    ),
    "a row that does not sum to 1": (
        lambda _: model(P=changed(P, (1, 1, 0), 0.97)),
        r"sum.*1.*state 1, action 1",
    ),
    "an infinite reward": (lambda _: model(R=changed(R, (0, 1), np.inf)), "^R: "),
    "a negative cost": (lambda _: model(C=changed(C, (1, 0), -0.1)), "^C: .*state 1"),
    "costs above their bound": (lambda _: model(cost_max=0.6), "cost_max|^C: "),
    "a discount of 1": (lambda _: model(discount=1.0), r"^discount: .*\[0, 1\)"),
    "a discount that is NaN": (lambda _: model(discount=np.nan), "^discount: "),
    "a negative budget": (lambda _: model(budget=-1.0), "^budget: .*-1"),
    "too many budgets": (lambda _: model(budget=[1.0, 2.0]), "^(budget|C): "),
    "a state without an action": (
        lambda _: model(available=[[True, True], [False, False]]),
        "^available: .*state 1",
    ),
    "a start that is no state": (lambda _: model(start=2), "^start: "),
    "a start that is no distribution": (lambda _: model(start=[0.5, 0.4]), "^start: "),
    "arrays in an order that is not named": (
        lambda _: from_arrays(P, R, C, convention="sa", discount=0.9, budget=1.0),
        "^convention: ",
    ),
    "an action that does not exist": (
        lambda _: model().pair(0, 2),
        "^action: .*found 2",
    ),
    "a file cut short": (lambda _: damaged(), "^path: expected an Escapade CMDP file"),
    "a log without a line": (lambda _: logged(""), "steps.csv"),
    "a log of another world": (
        lambda _: logged(HEAD + "0,0,1,0.5,0\n7,0,1,0.5,0\n"),
        r"^log: expected a state in 0..1, found 7 at line 3 of",
    ),
    "a log that does what is impossible": (
        lambda _: logged(HEAD + "0,1,0,0,1\n"),
        "^log: expected a possible successor .* at line 2 of",
    ),
    "a log with a cost above its bound": (
        lambda _: logged(HEAD + "0,0,1,1.5,0\n"),
        r"^log: expected a cost in \[0, 1\], found 1.5 at line 2 of",
    ),
    "a log that charges for what is free": (
        lambda _: logged(
            HEAD + "0,0,1,0.5,0\n", costs=None, free=[[True, False], [False, False]]
        ),
        "^log: expected no cost .* at line 2 of",
    ),
    "a log with a word for a number": (
        lambda _: logged(HEAD + "0,zero,1,0.5,0\n"),
        "line 2 of",
    ),
    "a log without a column": (
        lambda _: logged("state,action,reward,next_state\n0,0,1,0\n"),
        "^columns: .*cost",
    ),
    "a support without a successor": (
        lambda _: knowledge(support=np.zeros((2, 2, 2), dtype=bool)),
        "^support: .*state 0, action 0",
    ),
    "a start from which nothing can be promised": (
        lambda _: ep.E4(knowledge(support=None, costs=None)),
        "^knowledge: .*cannot be promised",
    ),
    "a world that nobody knows": (
        lambda _: ep.environments.make("wal-cycle"),
        r"^name: .*did you mean 'wall-cycle'",
    ),
    "an environment that does not say what costs": (
        lambda _: lake(cost=None),
        "^cost: .*nothing is assumed to be free",
    ),
    "a step that lacks its cost": (lambda _: one_step(), r"^info\['cost'\]: "),
    "a step whose cost is above its bound": (
        lambda _: one_step(cost=1.5),
        r"cost.*\[0, 1\], found 1.5",
    ),
    "a step whose reward is outside its range": (
        lambda _: one_step(cost=0.0, reward=2.0),
        r"^reward: .*\[0, 1\], found 2",
    ),
    "an observation outside the space": (
        lambda _: one_step(cost=0.0, after=7),
        "^observation: .*found 7",
    ),
    "an action outside the space": (
        lambda _: one_step(cost=0.0, action=7),
        "^action: .*found 7",
    ),
    "an action that the world does not have": (
        lambda life: life.env.step(9),
        "^action: .*9",
    ),
    "a log with an action that is not offered": (
        lambda _: logged(
            HEAD + "0,0,1,0.5,0\n1,1,0,0,0\n",
            available=[[True, True], [True, False]],
            support=None,
            costs=None,
        ),
        "^log: .*action 1 at line 3 of",
    ),
    "a mask without an action": (
        lambda _: knowledge(available=np.zeros((2, 2), dtype=bool)),
        "^available: .*state 0",
    ),
    "a world too large for any memory": (
        lambda _: ep.environments.make("battery", levels=HUGE),
        "^levels: expected a size whose tables",
    ),
    "knowledge too large for any memory": (
        lambda _: ep.Knowledge(
            HUGE, 2, discount=0.9, budget=1.0, reward_max=1.0, cost_max=1.0
        ),
        "^n_states: expected at most",
    ),
    "a life longer than any": (
        lambda life: ep.simulate(life.twin, life.env, HUGE),
        "^steps: expected at most",
    ),
    "an end that means nothing": (lambda _: lake(on_done="stop"), "^on_done: "),
    "a cost above its bound": (lambda life: told(life, cost=1.5), "^cost: .*1.5"),
    "a cost that is NaN": (lambda life: told(life, cost=np.nan), "^cost: "),
    "a cost that is no number": (
        lambda life: told(life, cost="much"),
        "^cost: .*'much'",
    ),
    "too many costs": (lambda life: told(life, cost=[0.1, 0.1]), "^cost: "),
    "a reward above its bound": (lambda life: told(life, reward=2.0), "^reward: .*2"),
    "a reward that is no number": (lambda life: told(life, reward="much"), "^reward: "),
    "a state that does not exist": (
        lambda life: told(life, next_state=5),
        "^next_state: .*5",
    ),
    "a state that is no number": (
        lambda life: told(life, next_state=0.5),
        "^next_state: ",
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_malformed_input_is_one_line_and_nothing_is_lost(kind, life):
    call, reason = KINDS[kind]
    before = life.standing()
    with pytest.raises(EscapadeError, match=reason) as caught:
        call(life)
    assert "\n" not in str(caught.value)
    assert life.standing() == before
    life.goes_on()
