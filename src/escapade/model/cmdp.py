"""The constrained Markov decision process, checked once and then trusted.

A CMDP is the tuple (S, A, P, r, c, d, γ) of the paper's second section, with three
extensions that practice asks for: states may have different actions, there may be
``K >= 1`` cost channels with a budget each, and the start may be a distribution.
Rewards lie in ``[0, reward_max]`` and costs of channel ``k`` in ``[0, cost_max[k]]``;
anything else is refused, for every bound in this library rests on it.

Transitions are sparse over state-action pairs; :mod:`escapade.model.layout` describes
the arrays.  A CMDP never changes: its arrays are read-only, and :meth:`CMDP.replace`
returns a new one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from operator import index
from os import PathLike
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import scipy.sparse as sp

from escapade.errors import refusal
from escapade.model.arguments import (
    check_range,
    read_budget,
    read_coordinates,
    read_cost_max,
    read_costs,
    read_discount,
    read_names,
    read_pairs,
    read_reward_max,
    read_rewards,
    read_rows,
    read_start,
)
from escapade.model.layout import (
    Pairs,
    Transitions,
    check_transitions,
    read_transitions,
)
from escapade.typing import ArrayLike, BoolArray, FloatArray, IndexArray, IntArray

if TYPE_CHECKING:
    from escapade.model.tables import Table

__all__ = ["CMDP"]


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class CMDP:
    """A constrained Markov decision process.

    Parameters
    ----------
    P
        Transition probabilities: dense ``(S, A, S)``, a list of ``A`` sparse
        ``(S, S)`` matrices, or one sparse ``(S * A, S)`` matrix whose row
        ``s * A + a`` belongs to action ``a`` in state ``s``.
    R
        Mean rewards, ``(S, A)`` or one per available pair.
    C
        Mean costs, ``(S, A)`` for one budget, ``(K, S, A)`` or ``(K, pairs)`` for
        ``K`` budgets.
    discount
        Discount factor in ``[0, 1)``, the same for rewards and costs.
    budget
        What the expected discounted cost may be: a number, or one for each channel.
    start
        A state, or a distribution over the states.
    reward_max, cost_max
        Bounds on every *sample* of reward and cost, not only on the means; by default
        the largest mean.  Give them when samples are noisy.
    available
        Mask ``(S, A)`` of the actions that exist in each state; all by default.
        Entries of ``P``, ``R`` and ``C`` for other pairs are not read.
    state_names, action_names
        Names for people.
    coordinates
        ``(S, dim)`` positions for pictures.

    Examples
    --------
    A machine that may be run hard or gently; running hard may break it.

    >>> import escapade as ep
    >>> machine = ep.CMDP(
    ...     [[[0.8, 0.2], [1.0, 0.0]], [[1.0, 0.0], [1.0, 0.0]]],
    ...     [[1.0, 0.4], [0.0, 0.0]],
    ...     [[0.0, 0.0], [1.0, 1.0]],
    ...     discount=0.9,
    ...     budget=1.0,
    ... )
    >>> machine
    CMDP(2 states, 2 actions, 4 pairs, 1 cost, discount 0.9, budget 1)
    """

    n_states: int
    n_actions: int
    state_ptr: IntArray
    pair_state: IndexArray
    pair_action: IndexArray
    row_ptr: IntArray
    successor: IndexArray
    probability: FloatArray
    reward: FloatArray
    cost: FloatArray
    discount: float
    budget: FloatArray
    start: FloatArray
    reward_max: float
    cost_max: FloatArray
    state_names: tuple[str, ...] | None
    action_names: tuple[str, ...] | None
    coordinates: FloatArray | None
    _fingerprint: list[str]

    def __init__(
        self,
        P: Any,
        R: ArrayLike,
        C: ArrayLike,
        *,
        discount: float,
        budget: ArrayLike,
        start: ArrayLike = 0,
        reward_max: float | None = None,
        cost_max: ArrayLike | None = None,
        available: ArrayLike | None = None,
        state_names: Sequence[str] | None = None,
        action_names: Sequence[str] | None = None,
        coordinates: ArrayLike | None = None,
    ) -> None:
        pairs, rows = read_transitions(P, available)
        self._fill(
            pairs,
            rows,
            read_rewards(R, pairs),
            read_costs(C, pairs, budget),
            ("R", "C"),
            discount=discount,
            budget=budget,
            start=start,
            reward_max=reward_max,
            cost_max=cost_max,
            state_names=state_names,
            action_names=action_names,
            coordinates=coordinates,
        )

    @classmethod
    def from_pairs(
        cls,
        *,
        state_ptr: ArrayLike,
        pair_action: ArrayLike,
        row_ptr: ArrayLike,
        successor: ArrayLike,
        probability: ArrayLike,
        reward: ArrayLike,
        cost: ArrayLike,
        n_actions: int,
        discount: float,
        budget: ArrayLike,
        start: ArrayLike = 0,
        reward_max: float | None = None,
        cost_max: ArrayLike | None = None,
        state_names: Sequence[str] | None = None,
        action_names: Sequence[str] | None = None,
        coordinates: ArrayLike | None = None,
    ) -> Self:
        """Build a CMDP from the arrays of its own sparse layout.

        ``state_ptr`` is ``[S + 1]``, ``pair_action`` and ``reward`` are ``[pairs]``,
        ``cost`` is ``[pairs]`` or ``[K, pairs]`` (grids over states and actions are
        read too), ``row_ptr`` is ``[pairs + 1]``, ``successor`` and ``probability``
        hold one entry a transition.
        """
        pairs = read_pairs(state_ptr, pair_action, n_actions)
        rows = read_rows(row_ptr, successor, probability, pairs)
        self = cls.__new__(cls)
        self._fill(
            pairs,
            check_transitions(pairs, rows, argument="probability"),
            read_rewards(reward, pairs, "reward"),
            read_costs(cost, pairs, budget, argument="cost"),
            ("reward", "cost"),
            discount=discount,
            budget=budget,
            start=start,
            reward_max=reward_max,
            cost_max=cost_max,
            state_names=state_names,
            action_names=action_names,
            coordinates=coordinates,
        )
        return self

    @classmethod
    def from_table(cls, table: Table, **keywords: Any) -> CMDP:
        """Build a CMDP from a Gymnasium-style table ``table[state][action]``.

        See :func:`escapade.model.tables.from_table` for the keywords; ``cost`` and
        ``on_done`` have no default.
        """
        from escapade.model.tables import from_table

        return from_table(table, **keywords)

    def _fill(
        self,
        pairs: Pairs,
        rows: Transitions,
        reward: FloatArray,
        cost: FloatArray,
        called: tuple[str, str],
        *,
        discount: float,
        budget: ArrayLike,
        start: ArrayLike,
        reward_max: float | None,
        cost_max: ArrayLike | None,
        state_names: Sequence[str] | None,
        action_names: Sequence[str] | None,
        coordinates: ArrayLike | None,
    ) -> None:
        """Check what the transitions do not settle, then own everything."""
        reward_bound = read_reward_max(reward_max, reward)
        cost_bound = read_cost_max(cost_max, cost)
        check_range(called[0], reward, reward_bound, pairs)
        for k, channel in enumerate(cost):
            label = called[1] if len(cost) == 1 else f"{called[1]}[{k}]"
            check_range(label, channel, float(cost_bound[k]), pairs)

        def own(name: str, value: Any) -> None:
            if isinstance(value, np.ndarray):  # fresh: the readers copy
                value.flags.writeable = False
            object.__setattr__(self, name, value)

        own("n_states", pairs.n_states)
        own("n_actions", pairs.n_actions)
        own("state_ptr", pairs.state_ptr)
        own("pair_state", pairs.pair_state)
        own("pair_action", pairs.pair_action)
        own("row_ptr", rows.row_ptr)
        own("successor", rows.successor)
        own("probability", rows.probability)
        own("reward", reward)
        own("cost", cost)
        own("discount", read_discount(discount))
        own("budget", read_budget(budget, len(cost)))
        own("start", read_start(start, pairs.n_states))
        own("reward_max", reward_bound)
        own("cost_max", cost_bound)
        own("state_names", read_names("state_names", state_names, pairs.n_states))
        own("action_names", read_names("action_names", action_names, pairs.n_actions))
        own("coordinates", read_coordinates(coordinates, pairs.n_states))
        own("_fingerprint", [])

    # -- sizes ---------------------------------------------------------------------

    @property
    def n_pairs(self) -> int:
        """Number of available state-action pairs."""
        return self.pair_state.size

    @property
    def n_costs(self) -> int:
        """Number of cost channels, each with its budget."""
        return len(self.cost)

    @property
    def nnz(self) -> int:
        """Number of transitions with positive probability."""
        return self.successor.size

    # -- views ---------------------------------------------------------------------

    @property
    def available(self) -> BoolArray:
        """Mask ``(S, A)`` of the available pairs."""
        mask = np.zeros((self.n_states, self.n_actions), dtype=np.bool_)
        mask[self.pair_state, self.pair_action] = True
        return mask

    @property
    def transition_matrix(self) -> sp.csr_array:
        """Transition probabilities as a sparse ``(pairs, S)`` matrix (a copy)."""
        return sp.csr_array(
            (self.probability.copy(), self.successor.copy(), self.row_ptr.copy()),
            shape=(self.n_pairs, self.n_states),
        )

    def pair(self, state: int, action: int) -> int:
        """Return the number of the pair ``(state, action)``."""
        try:
            state, action = index(state), index(action)
        except TypeError:
            raise refusal(
                "state, action", "two whole numbers", f"{state!r}, {action!r}"
            ) from None
        if not 0 <= state < self.n_states:
            raise refusal("state", f"a state in 0..{self.n_states - 1}", state)
        low, high = self.state_ptr[state], self.state_ptr[state + 1]
        actions = self.pair_action[low:high]
        found = int(np.searchsorted(actions, action))
        if found == actions.size or actions[found] != action:
            raise refusal(
                "action", f"one of {actions.tolist()} in state {state}", action
            )
        return int(low) + found

    def successors(self, state: int, action: int) -> tuple[IndexArray, FloatArray]:
        """Return the possible next states and their probabilities."""
        pair = self.pair(state, action)
        row = slice(self.row_ptr[pair], self.row_ptr[pair + 1])
        return self.successor[row], self.probability[row]

    def describe_pair(self, pair: int) -> str:
        """Name a pair for messages: its state and action, with names if it has any."""
        state, action = int(self.pair_state[pair]), int(self.pair_action[pair])
        state_name = f" ({self.state_names[state]})" if self.state_names else ""
        action_name = f" ({self.action_names[action]})" if self.action_names else ""
        return f"state {state}{state_name}, action {action}{action_name}"

    # -- copies and identity ---------------------------------------------------------

    def replace(self, **changes: Any) -> CMDP:
        """Return a CMDP that differs in the named fields, checked anew.

        Any keyword of :meth:`from_pairs` may be given, and ``P``, ``R`` and ``C`` as
        the constructor takes them, over the same pairs.
        """
        if "P" in changes:
            _, rows = read_transitions(changes.pop("P"), self.available)
            changes = {**{name: getattr(rows, name) for name in _ROWS}, **changes}
        for short, name in (("R", "reward"), ("C", "cost")):
            if short in changes:
                if name in changes:
                    raise refusal("replace", f"{short} or {name}", "both")
                changes[name] = changes.pop(short)
        fields: dict[str, Any] = {
            "state_ptr": self.state_ptr,
            "pair_action": self.pair_action,
            "row_ptr": self.row_ptr,
            "successor": self.successor,
            "probability": self.probability,
            "reward": self.reward,
            "cost": self.cost,
            "n_actions": self.n_actions,
            "discount": self.discount,
            "budget": self.budget,
            "start": self.start,
            "reward_max": self.reward_max,
            "cost_max": self.cost_max,
            "state_names": self.state_names,
            "action_names": self.action_names,
            "coordinates": self.coordinates,
        }
        unknown = sorted(set(changes) - set(fields))
        if unknown:
            taken = ["P", "R", "C", *sorted(fields)]
            raise refusal("replace", f"names among {taken}", unknown[0])
        return CMDP.from_pairs(**{**fields, **changes})

    @property
    def fingerprint(self) -> str:
        """SHA-256 of everything that this CMDP holds; equal for equal problems."""
        if not self._fingerprint:
            digest = hashlib.sha256()
            for name in _HASHED_ARRAYS:
                array = np.ascontiguousarray(getattr(self, name))
                digest.update(f"{name}{array.dtype.str}{array.shape}".encode())
                digest.update(array.data)
            scalars = (self.n_actions, float(self.discount), float(self.reward_max))
            names = (self.state_names, self.action_names)
            digest.update(repr((scalars, names)).encode())
            if self.coordinates is not None:
                digest.update(repr(self.coordinates.shape).encode())
                digest.update(np.ascontiguousarray(self.coordinates).data)
            self._fingerprint.append(digest.hexdigest())
        return self._fingerprint[0]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CMDP):
            return NotImplemented
        return self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __repr__(self) -> str:
        costs = "1 cost" if self.n_costs == 1 else f"{self.n_costs} costs"
        budget = ", ".join(f"{b:g}" for b in self.budget)
        if self.n_costs > 1:
            budget = f"({budget})"
        return (
            f"CMDP({self.n_states} states, {self.n_actions} actions, "
            f"{self.n_pairs} pairs, {costs}, discount {self.discount:g}, "
            f"budget {budget})"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        fields = {name: getattr(self, name) for name in _PICKLED}
        return (_rebuild, (fields,))

    # -- files -----------------------------------------------------------------------

    def save(self, path: str | PathLike[str]) -> None:
        """Write the problem to an npz file, whole or not at all."""
        from escapade.model.files import save_cmdp

        save_cmdp(self, path)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> CMDP:
        """Read a problem that :meth:`save` wrote; never runs code from the file."""
        from escapade.model.files import load_cmdp

        return load_cmdp(path)


_HASHED_ARRAYS = (
    "state_ptr",
    "pair_action",
    "row_ptr",
    "successor",
    "probability",
    "reward",
    "cost",
    "budget",
    "start",
    "cost_max",
)

_ROWS = ("row_ptr", "successor", "probability")

_PICKLED = (
    *_HASHED_ARRAYS,
    "n_actions",
    "discount",
    "reward_max",
    "state_names",
    "action_names",
    "coordinates",
)


def _rebuild(fields: dict[str, Any]) -> CMDP:
    """Rebuild a CMDP that travelled to another process."""
    return CMDP.from_pairs(**fields)
