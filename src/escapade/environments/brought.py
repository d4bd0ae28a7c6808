"""An environment of somebody else's, brought in: to live in, to know, and to judge by.

:class:`BroughtEnv` is a Gymnasium environment over numbered states and actions in which
life goes on for ever.  What the foreign environment calls the end of an episode becomes
part of the dynamics:

- ``on_done="reset"``: the step that ends an episode leads to the next start, so the
  initial distribution joins the transitions;
- ``on_done="absorb"``: it leads to one more state, the end, in which nothing is earned
  (a reward of 0 before the shift), nothing is paid, and nothing changes.

A time limit is not an end: it says nothing about the state.  Every ``TimeLimit`` is
taken off (:mod:`escapade.environments.wrapping`); an environment that still cuts
episodes is refused at the step at which it does.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, SupportsIndex

import gymnasium
import numpy as np

from escapade.environments.costs_of import Costs
from escapade.environments.flattening import Flattening
from escapade.environments.rewards_of import RewardMap
from escapade.environments.world import World
from escapade.errors import AssumptionError, refusal
from escapade.knowledge.knowledge import Knowledge
from escapade.model.cmdp import CMDP

__all__ = ["Brought", "BroughtEnv", "OnDone"]

OnDone = Literal["reset", "absorb"]


class BroughtEnv(gymnasium.Env[int, int]):
    """A foreign environment over numbered states and actions, without an end.

    Parameters
    ----------
    env
        The environment, without a time limit.
    costs, rewards
        Where costs stand, and how rewards are shifted.
    observations, actions
        How states and actions are numbered.
    on_done
        What the end of an episode becomes.

    Notes
    -----
    ``info["cost"]`` is a number for one channel and an array for several;
    ``info["raw_reward"]`` the reward as the environment gave it.  What else the
    environment told stands there too.
    """

    metadata: dict[str, Any]

    def __init__(
        self,
        env: gymnasium.Env[Any, Any],
        *,
        costs: Costs,
        rewards: RewardMap,
        observations: Flattening,
        actions: Flattening,
        on_done: OnDone,
    ) -> None:
        self.inner = env
        self.costs = costs
        self.rewards = rewards
        self.observations = observations
        self.actions = actions
        self.on_done: OnDone = on_done
        self.n_states = observations.n + (on_done == "absorb")
        self.observation_space: gymnasium.Space[Any] = gymnasium.spaces.Discrete(
            self.n_states
        )
        self.action_space: gymnasium.Space[Any] = gymnasium.spaces.Discrete(actions.n)
        self.metadata = dict(env.metadata)
        self.render_mode = env.render_mode
        self.steps = 0
        self._state: int | None = None

    @property
    def state(self) -> int:
        """The state the world is in; refused before the first reset."""
        if self._state is None:
            raise refusal("env", "a call of reset first", "an environment not reset")
        return self._state

    @property
    def plant(self) -> str:
        """What logs of it call it: its name, and how its rewards are shifted."""
        spec = self.inner.spec
        name = type(self.inner.unwrapped).__name__ if spec is None else spec.id
        return f"{name}; {self.rewards}"

    @property
    def ended(self) -> bool:
        """Whether the world is in the end state."""
        return self.on_done == "absorb" and self._state == self.n_states - 1

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[int, dict[str, Any]]:
        """Begin anew; a seed also seeds the action spaces."""
        super().reset(seed=seed)
        if seed is not None:
            self.action_space.seed(seed)
            self.inner.action_space.seed(seed)
        observation, info = self.inner.reset(seed=seed, options=options)
        self._state = self.observations.number(observation)
        return self._state, dict(info)

    def step(
        self, action: SupportsIndex
    ) -> tuple[int, float, bool, bool, dict[str, Any]]:
        """Take an action, by its number."""
        state = self.state
        if self.ended:
            return self._rest()
        number = int(action)
        answer = self.inner.step(self.actions.member(number))
        observation, reward, told, done, cut, info = self._read(answer)
        after = self.observations.number(observation)
        cost = self.costs.of_step(
            state, number, after, info, told=told, step=self.steps
        )
        earned = self.rewards.shifted(reward, self.steps)
        if cut and not done:
            raise AssumptionError(
                f"truncated: expected an environment without a time limit, found one "
                f"that cuts at step {self.steps}; a time limit is no end, and this one "
                f"is no TimeLimit of Gymnasium's, which would be taken off: give "
                f"env.unwrapped, or turn it off where the environment is made"
            )
        if done and self.on_done == "absorb":
            after = self.n_states - 1
        elif done:
            begun, _ = self.inner.reset()
            after = self.observations.number(begun)
        self._state = after
        self.steps += 1
        said = {
            **info,
            "cost": float(cost[0]) if cost.size == 1 else cost,
            "raw_reward": float(reward),
            "ended": bool(done),
        }
        return after, earned, False, False, said

    def try_out(self) -> None:
        """Take one step, so that what a step lacks is an error now, and forget it."""
        self.reset(seed=0)
        self.step(0)
        self._state, self.steps = None, 0

    def _rest(self) -> tuple[int, float, bool, bool, dict[str, Any]]:
        """Stay at the end, where nothing is earned or paid."""
        self.steps += 1
        cost = 0.0 if self.costs.n == 1 else np.zeros(self.costs.n)
        said = {"cost": cost, "raw_reward": 0.0, "ended": False}
        return self.state, self.rewards.shifted(0.0, self.steps), False, False, said

    def _read(self, answer: Any) -> tuple[Any, Any, Any, bool, bool, Mapping[str, Any]]:
        size = 6 if self.costs.needs_six else 5
        if not isinstance(answer, tuple) or len(answer) != size:
            found = len(answer) if isinstance(answer, tuple) else type(answer).__name__
            raise AssumptionError(
                f"step: expected {size} values, found {found} at step {self.steps}"
            )
        if size == 6:
            observation, reward, told, done, cut, info = answer
        else:
            (observation, reward, done, cut, info), told = answer, None
        return observation, reward, told, bool(done), bool(cut), info

    def render(self) -> Any:
        """Return the environment's own picture."""
        return self.inner.render()

    def close(self) -> None:
        """Close the environment."""
        self.inner.close()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Brought:
    """What :func:`from_gymnasium` and its like return.

    Attributes
    ----------
    name
        What to call it.
    env
        The environment, without an end, over numbered states and actions.
    knowledge
        What an agent is told.
    cmdp
        The true model, where the environment has a table of it; for oracles and audits
        alone.  Else ``None``.
    model_source
        Where the model came from, or why there is none.
    rewards
        How rewards were shifted; ``print`` shows it.
    """

    name: str
    env: BroughtEnv
    knowledge: Knowledge
    cmdp: CMDP | None
    model_source: str
    rewards: RewardMap

    def make_env(self) -> BroughtEnv:
        """Return another environment of the same kind, as audits need them."""
        return copy.deepcopy(self.env)

    def raw_value(self, value: float) -> float:
        """Return a value in the units of the environment."""
        return self.knowledge.raw_value(value)

    @property
    def world(self) -> World:
        """The model as a world, in which thousands of lives take seconds.

        Its costs are drawn as 0 or ``cost_max`` with the right means, and rewards are
        their means; the environment itself may tie both to the next state.
        """
        if self.cmdp is None:
            raise refusal("cmdp", "an environment with a table", self.model_source)
        return World(
            name=self.name,
            description=f"{self.name}, as its table has it.",
            cmdp=self.cmdp,
            cost_noise="bernoulli",
            value_offset=self.rewards.low / (1.0 - self.cmdp.discount),
            told=lambda: self.knowledge,
        )

    def __repr__(self) -> str:
        return (
            f"Brought({self.name!r}, {self.knowledge.n_states} states, "
            f"{self.knowledge.n_actions} actions, {self.rewards}, "
            f"model: {self.model_source})"
        )
