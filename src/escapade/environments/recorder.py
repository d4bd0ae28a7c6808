"""Recording a life: a wrapper that writes what :meth:`escapade.Log.from_csv` reads.

A safe controller that runs anyway is the cheapest source of knowledge.  Put a
:class:`Recorder` around its environment, and hand the file to an agent later.  Every
step is written before the next one is taken, so that a crash loses the last line at
most.  Every line also names the plant, which :meth:`escapade.Log.from_csv` leaves
aside: a file that is there is gone on with if it is of the same one.
"""

from __future__ import annotations

import csv
from os import PathLike
from pathlib import Path
from typing import Any, SupportsFloat

import gymnasium
import numpy as np

from escapade.errors import AssumptionError, refusal

__all__ = ["Recorder"]


class Recorder(gymnasium.Wrapper[int, int, int, int]):
    """An environment whose every step is written to a CSV file.

    Parameters
    ----------
    env
        An environment with discrete spaces and ``info["cost"]``: one of this library's,
        or one that was brought in.
    path
        The file; it is gone on with if it is there, and of the same plant.
    n_costs
        Number of cost channels.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import escapade as ep
    >>> world = ep.environments.three_state_loop()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "steps.csv"
    ...     with ep.environments.Recorder(world.make_env(), path) as env:
    ...         state, _ = env.reset(seed=0)
    ...         for _ in range(5):
    ...             state, *_ = env.step(0)
    ...     print(ep.Log.from_csv(path))
    Log(5 steps, 1 cost)
    """

    def __init__(
        self,
        env: gymnasium.Env[int, int],
        path: str | PathLike[str],
        *,
        n_costs: int = 1,
    ) -> None:
        super().__init__(env)
        for argument, space in (
            ("observation_space", env.observation_space),
            ("action_space", env.action_space),
        ):
            if not isinstance(space, gymnasium.spaces.Discrete):
                raise refusal(
                    argument,
                    "Discrete (from_gymnasium numbers others)",
                    type(space).__name__,
                )
        self.n_costs = n_costs
        costs = ["cost"] if n_costs == 1 else [f"cost_{k}" for k in range(n_costs)]
        head = ["state", "action", "reward", *costs, "next_state", "plant"]
        self._plant = _plant_of(env)
        file = Path(path)
        begun = file.exists() and file.stat().st_size > 0
        if begun:
            with file.open(newline="", encoding="utf-8") as old:
                reader = csv.reader(old)
                found = next(reader, [])
                first = next(reader, [self._plant])
            if found != head:
                raise refusal("path", f"a log with the headings {head}", found)
            if first[-1] != self._plant:
                raise refusal(
                    "path", f"a log of {self._plant}", f"one of {first[-1]} in {file}"
                )
        self._file = file.open("a", newline="", encoding="utf-8")
        self._writer = csv.writer(self._file, lineterminator="\n")
        if not begun:
            self._write(head)
        self._state: int | None = None

    def _write(self, row: list[Any]) -> None:
        self._writer.writerow(row)
        self._file.flush()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[int, dict[str, Any]]:
        """Begin anew; nothing is written."""
        state, info = super().reset(seed=seed, options=options)
        self._state = int(state)
        return state, info

    def step(
        self, action: int
    ) -> tuple[int, SupportsFloat, bool, bool, dict[str, Any]]:
        """Take a step and write it down."""
        if self._state is None:
            raise refusal("env", "a call of reset first", "an environment not reset")
        after, reward, done, cut, info = super().step(action)
        if "cost" not in info:
            raise AssumptionError(
                "info['cost']: expected a cost at every step, found none; around "
                "another's environment, bring it in first (from_gymnasium) and wrap "
                "the env that this returns"
            )
        paid = np.atleast_1d(np.asarray(info["cost"], dtype=np.float64))
        if paid.shape != (self.n_costs,):
            raise AssumptionError(
                f"info['cost']: expected {self.n_costs} of them, found {paid.size}"
            )
        # adding 0 makes -0 the same as 0
        costs = [repr(float(cost) + 0.0) for cost in paid]
        earned = repr(float(reward) + 0.0)
        row = [self._state, int(action), earned, *costs, int(after), self._plant]
        self._write(row)
        self._state = int(after)
        return after, reward, done, cut, info

    def close(self) -> None:
        """Close the file and the environment."""
        self._file.close()
        super().close()


def _plant_of(env: gymnasium.Env[Any, Any]) -> str:
    """Return what a plant is called in its logs."""
    inner: Any = env.unwrapped
    named = getattr(inner, "plant", None)
    if named is None:
        named = type(inner).__name__ if env.spec is None else env.spec.id
    states, actions = env.observation_space, env.action_space
    assert isinstance(states, gymnasium.spaces.Discrete)
    assert isinstance(actions, gymnasium.spaces.Discrete)
    return f"{named} ({states.n} states and {actions.n} actions)"
