"""The conformance suite of environments passes worlds and catches what is none."""

from __future__ import annotations

import numpy as np
import pytest

from escapade.environments import CMDPEnv, three_state_loop
from escapade.errors import InvalidInputError
from escapade.model import CMDP
from escapade.testing import check_env


def model(**changes):
    given = {
        "P": [[[0.5, 0.5], [1.0, 0.0]], [[0.25, 0.75], [0.0, 1.0]]],
        "R": [[1.0, 0.5], [0.25, 0.0]],
        "C": [[[0.0, 0.5], [1.0, 0.0]], [[0.5, 0.0], [0.0, 0.25]]],
        "discount": 0.9,
        "budget": [1.0, 1.0],
        "available": [[True, True], [True, False]],
        **changes,
    }
    return CMDP(given.pop("P"), given.pop("R"), given.pop("C"), **given)


@pytest.mark.parametrize("noise", ["deterministic", "bernoulli", "uniform"])
def test_true_worlds_pass(noise):
    check_env(CMDPEnv(model(), reward_noise=noise, cost_noise=noise), steps=500)
    check_env(three_state_loop().env)


class Spoilt:
    """A true environment whose words are changed on their way out."""

    def __init__(self, *, step=None, reset=None, cmdp=None):
        self._inner = CMDPEnv(model())
        self._step, self._reset = step, reset
        self.observation_space = self._inner.observation_space
        self.action_space = self._inner.action_space
        if cmdp is not None:
            self.cmdp = cmdp

    def reset(self, *, seed=None):
        told = self._inner.reset(seed=seed)
        return self._reset(*told) if self._reset else told

    def step(self, action):
        told = self._inner.step(action)
        return self._step(*told) if self._step else told


def without(key):
    return lambda s, r, end, cut, info: (
        s,
        r,
        end,
        cut,
        {name: value for name, value in info.items() if name != key},
    )


def told(**changes):
    def change(s, r, end, cut, info):
        answer = {"s": s, "r": r, "end": end, "cut": cut, "info": info}
        for name, value in changes.items():
            if name in answer:
                answer[name] = value
            else:
                answer["info"] = {**answer["info"], name: value}
        return tuple(answer.values())

    return change


BROKEN = {
    "ends": (told(end=True), "never ends"),
    "is cut short": (told(cut=True), "never ends"),
    "pays NaN": (told(r=np.nan), "pays a finite float"),
    "pays in words": (told(r="much"), "pays a finite float"),
    "tells no cost": (without("cost"), r'tells info\["cost"\]'),
    "charges too few": (told(cost=1.0), "charges 2 finite costs"),
    "charges infinitely": (told(cost=[np.inf, 0.0]), "charges 2 finite costs"),
    "observes nothing known": (told(s=7), "observes a state of its space"),
    "tells no mask": (without("action_mask"), r'tells info\["action_mask"\]'),
    "masks something else": (told(action_mask=[1]), "masks every action"),
    "offers nothing": (told(action_mask=[0, 0]), "offers an action"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_an_environment_that_breaks_a_law_is_caught(name):
    step, law = BROKEN[name]
    with pytest.raises(AssertionError, match=law):
        check_env(Spoilt(step=step), cmdp=model())


def test_a_reset_has_to_tell_as_much():
    with pytest.raises(AssertionError, match=r"reset: observes a state of its space"):
        check_env(Spoilt(reset=lambda _state, info: (-1, info)))
    with pytest.raises(AssertionError, match=r'tells info\["action_mask"\]'):
        check_env(Spoilt(reset=lambda state, _info: (state, {})))


def test_without_a_model_the_conventions_are_checked_alone():
    check_env(Spoilt(), steps=50)


def test_a_life_that_cannot_be_lived_again_is_caught():
    rng = np.random.default_rng()

    def noisy(s, r, end, cut, info):
        return s, float(rng.random()), end, cut, info

    with pytest.raises(AssertionError, match="lives the same life from the same seed"):
        check_env(Spoilt(step=noisy))


WORLDS = {
    "other transitions": (
        {"P": [[[0.0, 1.0], [1.0, 0.0]], [[0.25, 0.75], [0.0, 1.0]]]},
        "goes where the model allows",
    ),
    "other frequencies": (
        {"P": [[[0.05, 0.95], [1.0, 0.0]], [[0.25, 0.75], [0.0, 1.0]]]},
        "goes as often as the model says",
    ),
    "other rewards": (
        {"R": [[0.5, 1.0], [0.25, 0.0]]},
        "pays and charges on average what the model says",
    ),
    "narrower bounds": (
        {"R": [[0.5, 0.5], [0.25, 0.0]]},
        r"samples lie in \[0, reward_max\]",
    ),
    "other actions": (
        {"available": [[True, True], [True, True]]},
        "offers the actions of the model",
    ),
}


@pytest.mark.parametrize("name", WORLDS)
def test_a_world_that_is_not_its_model_is_caught(name):
    changes, law = WORLDS[name]
    with pytest.raises(AssertionError, match=law):
        check_env(CMDPEnv(model()), cmdp=model(**changes), steps=500)
    with pytest.raises(AssertionError, match=law):
        check_env(Spoilt(cmdp=model(**changes)), steps=500)


def test_no_steps_show_nothing():
    with pytest.raises(InvalidInputError, match="steps: expected a number of at least"):
        check_env(CMDPEnv(model()), steps=0)
