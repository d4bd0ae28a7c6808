"""Recorded steps: what a safe controller, or anybody, did in the plant before.

A log is five columns: state, action, reward, cost (one for each channel) and next
state.  Steps need not follow each other; a step is evidence wherever it stands.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from escapade.errors import InvalidInputError, refusal
from escapade.model.arguments import read_integers, read_numbers
from escapade.typing import ArrayLike, FloatArray, IntArray

__all__ = ["Log"]


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class Log:
    """Steps that were taken, as arrays of equal length.

    Parameters
    ----------
    states, actions, next_states
        ``(n,)`` whole numbers.
    rewards
        ``(n,)``.
    costs
        ``(n,)`` for one channel or ``(n, K)``; NaN where a cost was not recorded.

    Examples
    --------
    >>> from escapade.knowledge import Log
    >>> Log(states=[0, 1], actions=[1, 0], rewards=[1, 0], costs=[0, 0],
    ...     next_states=[1, 1])
    Log(2 steps, 1 cost)
    """

    states: IntArray
    actions: IntArray
    rewards: FloatArray
    costs: FloatArray
    next_states: IntArray

    def __init__(
        self,
        *,
        states: ArrayLike,
        actions: ArrayLike,
        rewards: ArrayLike,
        costs: ArrayLike,
        next_states: ArrayLike,
    ) -> None:
        whole = {
            "states": read_integers("states", states),
            "actions": read_integers("actions", actions),
            "next_states": read_integers("next_states", next_states),
        }
        steps = whole["states"].size
        for name, column in whole.items():
            if column.shape != (steps,):
                raise refusal(name, f"{steps} steps", f"shape {column.shape}")
            object.__setattr__(self, name, column)
        reward = read_numbers("rewards", rewards)
        if reward.shape != (steps,):
            raise refusal("rewards", f"shape ({steps},)", f"shape {reward.shape}")
        cost = read_numbers("costs", costs)
        if cost.ndim == 1:
            cost = cost[:, np.newaxis]
        if cost.ndim != 2 or cost.shape[0] != steps or cost.shape[1] == 0:
            raise refusal("costs", f"shape ({steps}, K)", f"shape {cost.shape}")
        object.__setattr__(self, "rewards", reward)
        object.__setattr__(self, "costs", cost)
        for name in ("states", "actions", "rewards", "costs", "next_states"):
            getattr(self, name).flags.writeable = False

    def __len__(self) -> int:
        return self.states.size

    def __repr__(self) -> str:
        n, k = self.costs.shape
        return f"Log({n} steps, {k} cost{'s' if k > 1 else ''})"

    @property
    def n_costs(self) -> int:
        """Number of cost channels."""
        return int(self.costs.shape[1])

    def check(
        self,
        *,
        n_states: int,
        n_actions: int,
        reward_max: float,
        cost_max: FloatArray,
    ) -> None:
        """Refuse steps that cannot have happened in the world that is described."""
        if self.n_costs != cost_max.size:
            raise refusal("log", f"{cost_max.size} costs a step", self.n_costs)
        for name, column, size in (
            ("state", self.states, n_states),
            ("action", self.actions, n_actions),
            ("next state", self.next_states, n_states),
        ):
            out = (column < 0) | (column >= size)
            if out.any():
                raise _at(f"a {name} in 0..{size - 1}", column, out)
        out = ~((self.rewards >= 0.0) & (self.rewards <= reward_max))
        if out.any():
            raise _at(f"a reward in [0, {reward_max:g}]", self.rewards, out)
        for k, column in enumerate(self.costs.T):
            out = ~(((column >= 0.0) & (column <= cost_max[k])) | np.isnan(column))
            if out.any():
                raise _at(f"a cost in [0, {cost_max[k]:g}]", column, out)


def _at(
    expected: str, column: FloatArray | IntArray, out: np.ndarray
) -> InvalidInputError:
    """Return the refusal of the first bad row, counted from 0."""
    row = int(np.argmax(out))
    found = column[row].item()
    return refusal("log", expected, found, f"row {row}")
