"""Malformed input of every kind: one line that names it, and nothing is lost."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import escapade as ep
from escapade.environments import from_arrays, from_gymnasium
from escapade.errors import EscapadeError

P = np.array([[[0.5, 0.5], [1.0, 0.0]], [[0.0, 1.0], [1.0, 0.0]]])
R = np.array([[1.0, 0.0], [0.0, 0.0]])
C = np.array([[0.5, 0.0], [1.0, 0.0]])
HEAD = "state,action,reward,cost,next_state\n"


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


def damaged():
    path = Path("plant.npz")
    model().save(path)
    path.write_bytes(path.read_bytes()[:200])
    return ep.CMDP.load(path)


def lake(**changes):
    given = {"cost": "cost", "discount": 0.9, "budget": 1.0, **changes}
    return from_gymnasium("FrozenLake-v1", **given)


def one_step(world):
    world.env.reset(seed=0)
    world.env.step(0)


KINDS = {
    "transitions of a wrong shape": (lambda: model(P=P[0]), "^P: "),
    "rewards of a wrong shape": (lambda: model(R=R[:1]), "^R: "),
    "NaN among probabilities": (
        lambda: model(P=changed(P, (0, 0, 1), np.nan)),
        "state 0, action 0",
    ),
    "a negative probability": (
        lambda: model(P=changed(P, (1, 0), [1.5, -0.5])),
        "state 1, action 0",
    ),
    "a row that does not sum to 1": (
        lambda: model(P=changed(P, (1, 1, 0), 0.97)),
        r"sum.*1.*state 1, action 1",
    ),
    "an infinite reward": (lambda: model(R=changed(R, (0, 1), np.inf)), "^R: "),
    "a negative cost": (lambda: model(C=changed(C, (1, 0), -0.1)), "^C: .*state 1"),
    "costs above their bound": (lambda: model(cost_max=0.6), "cost_max|^C: "),
    "a discount of 1": (lambda: model(discount=1.0), r"^discount: .*\[0, 1\)"),
    "a discount that is NaN": (lambda: model(discount=np.nan), "^discount: "),
    "a negative budget": (lambda: model(budget=-1.0), "^budget: .*-1"),
    "too many budgets": (lambda: model(budget=[1.0, 2.0]), "^(budget|C): "),
    "a state without an action": (
        lambda: model(available=[[True, True], [False, False]]),
        "^available: .*state 1",
    ),
    "a start that is no state": (lambda: model(start=2), "^start: "),
    "a start that is no distribution": (lambda: model(start=[0.5, 0.4]), "^start: "),
    "arrays in an order that is not named": (
        lambda: from_arrays(P, R, C, convention="sa", discount=0.9, budget=1.0),
        "^convention: ",
    ),
    "an action that does not exist": (lambda: model().pair(0, 2), "^action: .*found 2"),
    "a file cut short": (damaged, "^path: expected an Escapade CMDP file"),
    "a log without a line": (lambda: logged(""), "steps.csv"),
    "a log of another world": (
        lambda: logged(HEAD + "0,0,1,0.5,0\n7,0,1,0.5,0\n"),
        r"^log: expected a state in 0..1, found 7 at line 3 of",
    ),
    "a log that does what is impossible": (
        lambda: logged(HEAD + "0,1,0,0,1\n"),
        "^log: expected a possible successor .* at line 2 of",
    ),
    "a log with a cost above its bound": (
        lambda: logged(HEAD + "0,0,1,1.5,0\n"),
        r"^log: expected a cost in \[0, 1\], found 1.5 at line 2 of",
    ),
    "a log that charges for what is free": (
        lambda: logged(
            HEAD + "0,0,1,0.5,0\n", costs=None, free=[[True, False], [False, False]]
        ),
        "^log: expected no cost .* at line 2 of",
    ),
    "a log with a word for a number": (
        lambda: logged(HEAD + "0,zero,1,0.5,0\n"),
        "line 2 of",
    ),
    "a log without a column": (
        lambda: logged("state,action,reward,next_state\n0,0,1,0\n"),
        "^columns: .*cost",
    ),
    "a support without a successor": (
        lambda: knowledge(support=np.zeros((2, 2, 2), dtype=bool)),
        "^support: .*state 0, action 0",
    ),
    "a start from which nothing can be promised": (
        lambda: ep.E4(knowledge(support=None, costs=None)),
        "^knowledge: .*cannot be promised",
    ),
    "a world that nobody knows": (
        lambda: ep.environments.make("wal-cycle"),
        r"^name: .*did you mean 'wall-cycle'",
    ),
    "an environment that does not say what costs": (
        lambda: lake(cost=None),
        "^cost: .*nothing is assumed to be free",
    ),
    "a step that lacks its cost": (lambda: one_step(lake()), r"^info\['cost'\]: "),
    "an end that means nothing": (lambda: lake(on_done="stop"), "^on_done: "),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_malformed_input_is_one_line_that_names_it(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    call, reason = KINDS[kind]
    with pytest.raises(EscapadeError, match=reason) as caught:
        call()
    assert str(caught.value)
    assert "\n" not in str(caught.value)


OUTCOMES = {
    "a cost above its bound": ({"cost": 1.5}, "cost: .*1.5"),
    "a cost that is NaN": ({"cost": np.nan}, "cost: "),
    "a cost that is no number": ({"cost": "much"}, "cost: .*'much'"),
    "too many costs": ({"cost": [0.1, 0.1]}, "cost: "),
    "a reward above its bound": ({"reward": 2.0}, "reward: .*2"),
    "a reward that is no number": ({"reward": "much"}, "reward: "),
    "a state that does not exist": ({"next_state": 5}, "next_state: .*5"),
    "a state that is no number": ({"next_state": 0.5}, "next_state: "),
}


@pytest.mark.parametrize("kind", OUTCOMES)
def test_a_malformed_outcome_is_refused_and_nothing_is_lost(kind):
    wrong, reason = OUTCOMES[kind]
    agent, twin = ep.E4(_lively()), ep.E4(_lively())
    for one in (agent, twin):
        one.tell(one.ask(0), reward=0.0, cost=0.0, next_state=0)
    decision, same = agent.ask(0), twin.ask(0)
    right = {"reward": 0.0, "cost": 0.0, "next_state": 0}
    with pytest.raises(EscapadeError, match=reason) as caught:
        agent.tell(decision, **{**right, **wrong})
    assert "\n" not in str(caught.value)
    assert agent.decisions == 1
    agent.tell(decision, **right)  # the same decision is still open
    twin.tell(same, **right)
    assert agent.breaks == twin.breaks == []
    np.testing.assert_array_equal(agent.promise, twin.promise)
    assert agent.ask(0) == twin.ask(0)


def _lively():
    return knowledge(known_rows=P.reshape(4, 2))
