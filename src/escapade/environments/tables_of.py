"""The table of an environment that has one, as a model.

Gymnasium's small environments keep ``P[state][action]``, a list of ``(probability,
next state, reward, terminated)``.  It is read for oracles and audits alone; an agent is
never told.  Rewards are shifted and ends turned as in
:mod:`escapade.environments.brought`; the rest is :meth:`escapade.CMDP.from_table`.

A table is believed where nothing around the environment may change what it says, and
where some steps of the environment agree with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np

from escapade.environments.brought import OnDone
from escapade.environments.costs_of import Costs
from escapade.environments.flattening import Flattening
from escapade.environments.rewards_of import RewardMap
from escapade.environments.wrapping import altering
from escapade.errors import refusal
from escapade.model.cmdp import CMDP
from escapade.typing import FloatArray

__all__ = ["Outcomes", "own_table", "read_outcomes", "to_model"]

_TRIED = 100
"""Steps of the environment that are held to its table."""

Outcomes = list[list[list[tuple[float, int, float, bool]]]]
"""Every outcome of every action of every state."""


def own_table(
    env: gymnasium.Env[Any, Any], observations: Flattening, actions: Flattening
) -> tuple[Outcomes | None, str]:
    """Return the environment's own table over these very numbers, or why there is none.

    The environment is reset and lives some steps, if it has one.
    """
    table = getattr(env.unwrapped, "P", None)
    plain = all(
        isinstance(space, gymnasium.spaces.Discrete) and int(space.start) == 0
        for space in (observations.space, actions.space)
    )
    same = (
        env.observation_space == env.unwrapped.observation_space
        and env.action_space == env.unwrapped.action_space
    )
    if table is None or not plain or not same:
        return None, "the environment has no table"
    wrapper = altering(env)
    if wrapper is not None:
        return None, f"its table may not be what {wrapper} makes of it"
    outcomes = read_outcomes(table, n_states=observations.n, n_actions=actions.n)
    # past the wrappers, which may record; and not where each step is shown to a person
    shown = env.unwrapped.render_mode == "human"
    stray = None if shown else _first_stray(env.unwrapped, outcomes)
    if stray is not None:
        return None, f"its table does not hold what it does: {stray}"
    return outcomes, ""


def _first_stray(env: gymnasium.Env[Any, Any], outcomes: Outcomes) -> str | None:
    """Return the first step of some that the table does not hold, in words."""
    rng = np.random.default_rng(0)
    state = int(env.reset(seed=0)[0])
    for _ in range(_TRIED):
        if not 0 <= state < len(outcomes):
            return f"state {state} is not in it"
        action = int(rng.integers(len(outcomes[state])))
        observation, earned, *_, done, cut, _ = env.step(action)
        after, earned = int(observation), float(earned)
        if not any(
            p > 0.0 and (to, ends) == (after, done) and np.isclose(reward, earned)
            for p, to, reward, ends in outcomes[state][action]
        ):
            return (
                f"action {action} in state {state} led to state {after} and earned "
                f"{earned:g}"
            )
        state = int(env.reset()[0]) if done or cut else after
    return None


def read_outcomes(table: Any, *, n_states: int, n_actions: int) -> Outcomes:
    """Return ``P[state][action]``, checked to have a list for each."""
    outcomes: Outcomes = []
    for state in range(n_states):
        outcomes.append([])
        for action in range(n_actions):
            where = f"state {state}, action {action}"
            try:
                lines = [
                    (float(p), int(after), float(reward), bool(done))
                    for p, after, reward, done in table[state][action]
                ]
            except (KeyError, IndexError, TypeError, ValueError):
                raise refusal(
                    "P",
                    "outcomes (probability, next state, reward, terminated) for each "
                    f"of {n_states} states and {n_actions} actions",
                    "others",
                    where,
                ) from None
            outcomes[-1].append(lines)
    return outcomes


def to_model(
    outcomes: Outcomes,
    *,
    costs: Costs,
    rewards: RewardMap,
    start: FloatArray,
    on_done: OnDone,
    discount: float,
    budget: Any,
    names: Mapping[str, Any],
) -> CMDP:
    """Return the model in which life goes on after every end.

    Costs are functions of state, action, next state and an empty ``info``.
    """
    n, size = len(outcomes), len(outcomes) + (on_done == "absorb")
    mean = np.zeros((costs.n, size, len(outcomes[0])))
    table: dict[int, dict[int, list[tuple[float, int, float, bool]]]] = {}
    for s, actions in enumerate(outcomes):
        table[s] = {}
        for a, lines in enumerate(actions):
            table[s][a] = []
            for p, after, reward, done in lines:
                mean[:, s, a] += p * costs.of_step(s, a, after, {})
                ends = done and on_done == "absorb"
                table[s][a].append(
                    (
                        p,
                        n if ends else after,
                        rewards.shifted(reward, 0),
                        done and not ends,
                    )
                )
    for end in range(n, size):  # it leads to itself, and nothing is earned there
        rest = [(1.0, end, rewards.shifted(0.0, 0), False)]
        table[end] = dict.fromkeys(range(mean.shape[2]), rest)
    top = costs.cost_max[:, np.newaxis, np.newaxis]
    return CMDP.from_table(
        table,
        cost=np.minimum(mean, top),
        on_done="reset",
        discount=discount,
        budget=budget,
        start=np.append(start, np.zeros(size - n)),
        reward_max=rewards.reward_max,
        cost_max=costs.cost_max,
        **names,
    )
