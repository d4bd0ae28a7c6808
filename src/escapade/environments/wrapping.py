"""What stands around a foreign environment: limits to take off, wrappers to mistrust.

A time limit says nothing about the state, so every ``TimeLimit`` is taken off, wherever
it stands among the wrappers.

A table ``env.unwrapped.P`` speaks of the environment within.  A wrapper around it may
change actions, observations or rewards, and then the table is of another world.  Of the
wrappers in :data:`FAITHFUL` it is known that they change neither; of all others it is
not, however harmless they may be.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gymnasium
from gymnasium import wrappers

from escapade.environments.recorder import Recorder

__all__ = ["FAITHFUL", "altering", "without_time_limits"]

FAITHFUL: frozenset[type] = frozenset(
    {
        Recorder,
        wrappers.HumanRendering,
        wrappers.OrderEnforcing,
        wrappers.PassiveEnvChecker,
        wrappers.RecordEpisodeStatistics,
        wrappers.RecordVideo,
        wrappers.RenderCollection,
        wrappers.TimeLimit,
    }
)
"""Wrappers that leave states, actions, rewards and their laws alone."""


def without_time_limits(env: gymnasium.Env[Any, Any]) -> gymnasium.Env[Any, Any]:
    """Return an environment less its time limits, the wrappers around them kept."""
    while type(env) is wrappers.TimeLimit:  # one of a class that adds to it may do more
        env = env.env
    for wrapper in _chain(env):
        while type(wrapper.env) is wrappers.TimeLimit:
            wrapper.env = wrapper.env.env
    return env


def altering(env: gymnasium.Env[Any, Any]) -> str | None:
    """Return the name of a wrapper that may change the world; ``None`` without any."""
    for wrapper in _chain(env):
        if type(wrapper) not in FAITHFUL:
            return type(wrapper).__name__
    return None


def _chain(
    env: gymnasium.Env[Any, Any],
) -> Iterator[gymnasium.Wrapper[Any, Any, Any, Any]]:
    """Return the wrappers around an environment, the outermost first."""
    while isinstance(env, gymnasium.Wrapper):
        yield env
        env = env.env
