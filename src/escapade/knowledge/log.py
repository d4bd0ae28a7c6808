"""Recorded steps: what a safe controller, or anybody, did in the plant before.

A log is five columns: state, action, reward, cost (one for each channel) and next
state.  Steps need not follow each other; a step is evidence wherever it stands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike

import numpy as np

from escapade.errors import InvalidInputError, refusal
from escapade.model.arguments import read_integers, read_numbers
from escapade.typing import ArrayLike, BoolArray, FloatArray, IntArray

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
        Whether it was recorded must not depend on its size.
    lines, source
        Where the steps were read, for messages: a line each, and of what.

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
    lines: IntArray | None
    source: str

    def __init__(
        self,
        *,
        states: ArrayLike,
        actions: ArrayLike,
        rewards: ArrayLike,
        costs: ArrayLike,
        next_states: ArrayLike,
        lines: ArrayLike | None = None,
        source: str = "",
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
        object.__setattr__(self, "costs", np.ascontiguousarray(cost))
        for name in ("states", "actions", "rewards", "costs", "next_states"):
            getattr(self, name).flags.writeable = False
        where = None if lines is None else read_integers("lines", lines)
        if where is not None and where.shape != (steps,):
            raise refusal("lines", f"{steps} steps", f"shape {where.shape}")
        object.__setattr__(self, "lines", where)
        object.__setattr__(self, "source", source)

    @classmethod
    def from_csv(
        cls,
        path: str | PathLike[str],
        *,
        columns: Mapping[str, str] | None = None,
        delimiter: str = ",",
        state_names: Sequence[str] | None = None,
        action_names: Sequence[str] | None = None,
    ) -> Log:
        """Read a log from a text file with a line of headings.

        Parameters
        ----------
        path
            The file, in UTF-8.
        columns
            What its columns are called, where that is not ``state``, ``action``,
            ``reward``, ``cost`` (or ``cost_0``, ``cost_1``, ... for several channels)
            and ``next_state``.  Other columns are left aside.
        delimiter
            What stands between columns.
        state_names, action_names
            Names by which the file calls states and actions; otherwise numbers.

        Notes
        -----
        A cell of a cost may be empty: that cost was not recorded.

        Raises
        ------
        InvalidInputError
            For the first line that cannot be read; the message names it.
        """
        from escapade.knowledge.log_files import read_csv

        table = read_csv(path, columns, delimiter)
        return table.as_log(cls, state_names, action_names)

    @classmethod
    def from_parquet(
        cls,
        path: str | PathLike[str],
        *,
        columns: Mapping[str, str] | None = None,
        state_names: Sequence[str] | None = None,
        action_names: Sequence[str] | None = None,
    ) -> Log:
        """Read a log from a Parquet file; parameters as for :meth:`from_csv`.

        Raises
        ------
        MissingExtraError
            If DuckDB is not installed, which reads the file.
        """
        from escapade.knowledge.log_files import read_parquet

        table = read_parquet(path, columns)
        return table.as_log(cls, state_names, action_names)

    def __len__(self) -> int:
        return self.states.size

    def __repr__(self) -> str:
        n, k = self.costs.shape
        return f"Log({n} steps, {k} cost{'s' if k > 1 else ''})"

    @property
    def n_costs(self) -> int:
        """Number of cost channels."""
        return int(self.costs.shape[1])

    def place(self, row: int) -> str:
        """Say in words where a step was recorded."""
        if self.lines is None:
            return f"row {row}"
        return f"line {self.lines[row]} of {self.source}"

    def refuse(self, expected: str, found: object, out: BoolArray) -> InvalidInputError:
        """Return the refusal of the first step that is marked."""
        return refusal("log", expected, found, self.place(int(np.argmax(out))))

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
                place = int(column[int(np.argmax(out))])
                raise self.refuse(f"a {name} in 0..{size - 1}", place, out)
        out = ~((self.rewards >= 0.0) & (self.rewards <= reward_max))
        if out.any():
            found = float(self.rewards[int(np.argmax(out))])
            raise self.refuse(f"a reward in [0, {reward_max:g}]", found, out)
        for k, column in enumerate(self.costs.T):
            out = ~(((column >= 0.0) & (column <= cost_max[k])) | np.isnan(column))
            if out.any():
                found = float(column[int(np.argmax(out))])
                raise self.refuse(f"a cost in [0, {cost_max[k]:g}]", found, out)
