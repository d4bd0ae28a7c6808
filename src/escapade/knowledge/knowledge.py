"""Everything that an agent is told about its world before it lives in it.

Spaces, bounds and the budget have to be told.  The rest is optional, and each piece is
an assumption that the promise then rests on:

- ``support``: which successors are possible at all;
- ``known_rows``: rows of the kernel that are known exactly;
- ``models``: an uncertainty set that surely holds the kernel, such as the action models
  of an expert;
- ``rewards``, ``costs``: means that are known; ``cost_bounds``, bounds on those that
  are not; ``free``, pairs that are known to cost nothing;
- ``exact_rewards``, ``exact_costs``: that a sample is the mean;
- that every pair has one law, but for those that are ``varying``;
- ``log``, ``counts``: steps that were recorded before, one by one or summed up.

The true model is not among them, and cannot be.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from os import PathLike
from typing import Any

import numpy as np

from escapade.errors import refusal
from escapade.knowledge.counts import Counts, Tally
from escapade.knowledge.log import Log
from escapade.knowledge.means import (
    read_cost_max,
    read_costs,
    read_mask,
    read_rewards,
    read_states,
)
from escapade.knowledge.recorded import check_log, read_tally
from escapade.knowledge.rows import (
    read_known_rows,
    read_models,
    read_support,
    row_bounds,
)
from escapade.model.arguments import (
    MOST_INDEX,
    read_bound,
    read_budget,
    read_coordinates,
    read_count,
    read_discount,
    read_names,
    read_number,
    read_numbers,
    read_reward_map,
    read_start,
)
from escapade.model.layout import Pairs
from escapade.typing import ArrayLike, BoolArray, FloatArray, IntArray
from escapade.uncertainty.base import UncertaintySet
from escapade.uncertainty.rows import frozen

__all__ = ["Knowledge"]


class Knowledge:
    """What an agent knows at birth.

    Parameters
    ----------
    n_states, n_actions
        Sizes of the spaces.
    discount, budget
        Discount factor in [0, 1), and what the expected discounted cost may be: a
        number, or one for each of ``K`` channels.
    reward_max, cost_max
        Bounds on every sample of reward and cost; ``cost_max`` may differ by channel.
    start
        A state, or a distribution over the states, in which life begins.
    available
        Mask ``(S, A)`` of the actions that exist in each state; all by default.
    support
        Which successors are possible: booleans ``(S, A, S)``, or a sparse
        ``(S * A, S)`` matrix, row ``s * A + a``, whose stored entries are the possible
        ones, or a list of ``A`` sparse ``(S, S)``.  By default those of ``models``, or
        every state.  Pairs with a known row need none.  No shape tells states from
        actions where there are as many: then see to the order yourself.
    known_rows
        Probabilities in one of these shapes: the rows that sum to 1 are known exactly,
        rows without entries are not known.
    models
        An uncertainty set over the pairs that surely holds the true kernel.
    rewards, costs
        Known means, ``(S, A)`` and ``(S, A)`` or ``(K, S, A)``; NaN where not known.
    cost_bounds
        Upper bounds on the mean costs, in the shape of ``costs``.
    free
        Mask ``(S, A)`` of pairs that are known to cost nothing in any channel.
    exact_rewards, exact_costs
        Whether a sample is the mean: ``True``, or a mask ``(S, A)``.
    varying
        Pairs whose law may be another at every visit, within what is known beforehand:
        ``True``, or a mask ``(S, A)``.  However often they are visited, frequencies
        narrow nothing that is held possible there; they guide plans alone.
    log, counts
        Steps that were recorded before; where both are given they are different steps.
    known_states
        States that count as known from the start.  By default those whose every pair
        has an exact row, or as many recorded steps as the agent asks for.
    state_names, action_names, coordinates
        For people and pictures.
    reward_scale, reward_offset
        For people, too: ``reward_scale · r + reward_offset`` is the reward as the
        problem first stated it, where it was moved into [0, ``reward_max``].

    Examples
    --------
    A machine with an exact idle action, and one risky action of which only the possible
    successors are known.

    >>> import numpy as np
    >>> import escapade as ep
    >>> support = np.array([[[1, 0], [1, 1]], [[1, 0], [1, 0]]], dtype=bool)
    >>> ep.Knowledge(2, 2, discount=0.9, budget=2.0, reward_max=1.0, cost_max=1.0,
    ...              support=support, free=[[True, False], [False, False]])
    Knowledge(2 states, 2 actions, 4 pairs, 1 cost, 3 rows known)
    """

    def __init__(
        self,
        n_states: int,
        n_actions: int,
        *,
        discount: float,
        budget: ArrayLike,
        reward_max: float,
        cost_max: ArrayLike,
        start: ArrayLike = 0,
        available: ArrayLike | None = None,
        support: Any = None,
        known_rows: Any = None,
        models: UncertaintySet | None = None,
        rewards: ArrayLike | None = None,
        costs: ArrayLike | None = None,
        cost_bounds: ArrayLike | None = None,
        free: ArrayLike | None = None,
        exact_rewards: ArrayLike = False,
        exact_costs: ArrayLike = False,
        varying: ArrayLike = False,
        log: Log | None = None,
        counts: Counts | None = None,
        known_states: ArrayLike | None = None,
        state_names: Sequence[str] | None = None,
        action_names: Sequence[str] | None = None,
        coordinates: ArrayLike | None = None,
        reward_scale: float = 1.0,
        reward_offset: float = 0.0,
    ) -> None:
        self._given = {
            name: value
            for name, value in locals().items()
            if name not in ("self", "__class__")
        }
        self.n_states = read_count("n_states", n_states, least=1, most=MOST_INDEX)
        self.n_actions = read_count(
            "n_actions", n_actions, least=1, most=MOST_INDEX // self.n_states
        )
        self.discount = read_discount(discount)
        size = np.atleast_1d(read_numbers("budget", budget)).size
        self.budget = frozen(read_budget(budget, size))
        self.reward_max = read_bound(
            "reward_max", read_number("reward_max", reward_max)
        )
        self.cost_max = read_cost_max(cost_max, size)
        self.start = frozen(read_start(start, self.n_states))
        grid = (self.n_states, self.n_actions)
        self.state_names = read_names("state_names", state_names, self.n_states)
        self.action_names = read_names("action_names", action_names, self.n_actions)
        self.pairs = replace(
            Pairs.from_mask(read_mask("available", available, grid, default=True)),
            state_names=self.state_names,
            action_names=self.action_names,
        )
        self.coordinates = read_coordinates(coordinates, self.n_states)
        self.reward_scale, self.reward_offset = read_reward_map(
            reward_scale, reward_offset
        )
        self.models = None if models is None else read_models(models, self.pairs)
        exact = read_known_rows(known_rows, self.pairs)
        self.row_ptr, self.successor = read_support(
            support, exact, self.models, self.pairs
        )
        self.lower, self.upper = row_bounds(
            exact, self.row_ptr, self.successor, self.n_states
        )
        self.free = self._per_pair("free", free)
        self.exact_rewards = self._per_pair("exact_rewards", exact_rewards)
        self.exact_costs = self._per_pair("exact_costs", exact_costs)
        self.varying = self._per_pair("varying", varying)
        self.reward_lower, self.reward_upper = read_rewards(
            rewards, self.reward_max, self.pairs
        )
        self.cost_lower, self.cost_upper = read_costs(
            costs, cost_bounds, self.free, self.cost_max, self.pairs
        )
        self.known_states = read_states(known_states, self.n_states)
        self.log = log
        if log is not None:
            check_log(self, log)
        self.counts = counts
        self.tally: Tally | None = None
        if counts is not None:
            self.tally = read_tally(self, counts)

    # -- sizes -------------------------------------------------------------------------

    @property
    def n_costs(self) -> int:
        """Number of cost channels."""
        return self.budget.size

    @property
    def n_pairs(self) -> int:
        """Number of available pairs."""
        return self.pairs.n_pairs

    @property
    def exact_pairs(self) -> BoolArray:
        """Mask ``(pairs,)`` of the pairs whose row is known exactly."""
        open_ = np.add.reduceat(self.lower < self.upper, self.row_ptr[:-1], dtype=int)
        return np.asarray(open_ == 0)

    def pair(self, state: int, action: int) -> int:
        """Return the number of the pair ``(state, action)``."""
        if not 0 <= state < self.n_states:
            raise refusal("state", f"a state in 0..{self.n_states - 1}", state)
        low, high = self.pairs.state_ptr[state], self.pairs.state_ptr[state + 1]
        actions = self.pairs.pair_action[low:high]
        found = int(np.searchsorted(actions, action))
        if found == actions.size or actions[found] != action:
            raise refusal(
                "action", f"one of {actions.tolist()} in state {state}", action
            )
        return int(low) + found

    def pairs_of(self, states: IntArray, actions: IntArray) -> IntArray:
        """Return the number of each pair of a log; refuse actions that do not exist."""
        number = np.full((self.n_states, self.n_actions), -1, dtype=np.int64)
        number[self.pairs.pair_state, self.pairs.pair_action] = np.arange(self.n_pairs)
        found: IntArray = number[states, actions]
        missing = found < 0
        if missing.any():
            row = int(np.argmax(missing))
            place = f"row {row}" if self.log is None else self.log.place(row)
            raise refusal(
                "log",
                f"actions that are available in state {states[row]}",
                f"action {actions[row]}",
                place,
            )
        return found

    def replace(self, **changes: Any) -> Knowledge:
        """Return knowledge that differs in the named keywords of the constructor."""
        unknown = sorted(set(changes) - set(self._given))
        if unknown:
            raise refusal("replace", f"names among {sorted(self._given)}", unknown[0])
        return Knowledge(**{**self._given, **changes})

    def with_budget(self, budget: FloatArray) -> Knowledge:
        """Return the same with other budgets, ``(K,)``, and nothing read anew."""
        other = copy(self)
        other.budget = frozen(np.array(budget))
        other._given = {**self._given, "budget": other.budget}
        return other

    # -- the problem's own units -------------------------------------------------------

    @property
    def rescaled(self) -> bool:
        """Whether rewards are others here than the problem first stated."""
        return (self.reward_scale, self.reward_offset) != (1.0, 0.0)

    @property
    def reward_map(self) -> str:
        """How to turn rewards and values here into those, in words; else empty."""
        if not self.rescaled:
            return ""

        def told(letter: str, offset: float) -> str:
            scaled = (
                letter
                if self.reward_scale == 1.0
                else f"{self.reward_scale:g} {letter}"
            )
            shift = f" {'-' if offset < 0.0 else '+'} {abs(offset):g}" if offset else ""
            return scaled + shift

        return (
            f"a reward r of the agent's is {told('r', self.raw_reward(0.0))}, "
            f"a value v is {told('v', self.raw_value(0.0))}"
        )

    def raw_reward(self, reward: float) -> float:
        """Return a reward as the problem first stated it."""
        return self.reward_scale * reward + self.reward_offset

    def raw_value(self, value: float) -> float:
        """Return a discounted value as the problem first stated it."""
        return self.reward_scale * value + self.reward_offset / (1.0 - self.discount)

    # -- files -------------------------------------------------------------------------

    def save(self, path: str | PathLike[str]) -> None:
        """Write all of it to a file: arrays and plain words, no pickle."""
        from escapade.knowledge.files import save_knowledge

        save_knowledge(self, path)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Knowledge:
        """Read what :meth:`save` wrote, bit for bit.

        Raises
        ------
        InvalidFileError
            If the file is truncated, foreign, altered, or from a newer version.
        """
        from escapade.knowledge.files import load_knowledge

        return load_knowledge(path)

    @property
    def fingerprint(self) -> str:
        """SHA-256 of everything that is known; equal for equal knowledge."""
        from escapade.knowledge.files import fingerprint_of

        return fingerprint_of(self)

    def __repr__(self) -> str:
        k = self.n_costs
        text = (
            f"Knowledge({self.n_states} states, {self.n_actions} actions, "
            f"{self.n_pairs} pairs, {k} cost{'s' if k > 1 else ''}, "
            f"{int(self.exact_pairs.sum())} rows known"
        )
        if self.models is not None:
            text += f", {type(self.models).__name__}"
        if self.log is not None:
            text += f", {len(self.log)} steps recorded"
        if self.tally is not None:
            text += f", {int(self.tally.visits.sum())} steps counted"
        return text + ")"

    # -- reading -----------------------------------------------------------------------

    def _per_pair(self, argument: str, value: ArrayLike | None) -> BoolArray:
        grid = (self.n_states, self.n_actions)
        table = read_mask(argument, value, grid, default=False)
        picked: BoolArray = table[self.pairs.pair_state, self.pairs.pair_action]
        return frozen(np.ascontiguousarray(picked))
