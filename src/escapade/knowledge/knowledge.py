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
- ``log``: steps that were recorded before.

The true model is not among them, and cannot be.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from escapade.errors import refusal
from escapade.knowledge.log import Log
from escapade.model.arguments import (
    read_bound,
    read_budget,
    read_coordinates,
    read_count,
    read_discount,
    read_names,
    read_number,
    read_numbers,
    read_start,
)
from escapade.model.layout import Pairs, read_array
from escapade.typing import ArrayLike, BoolArray, FloatArray, IndexArray, IntArray
from escapade.uncertainty.base import UncertaintySet

__all__ = ["Knowledge"]

_ROW_TOLERANCE = 1e-8
_MOST_ENTRIES = 100_000_000


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
        Which successors are possible: a boolean ``(S, A, S)`` or a sparse
        ``(S * A, S)`` matrix whose stored entries are the possible ones.  By default
        those of ``models``, or every state.  Pairs with a known row need none.
    known_rows
        Sparse or dense ``(S * A, S)``: the rows that sum to 1 are known exactly, rows
        without entries are not known.
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
    log
        Steps that were recorded before.
    known_states
        States that count as known from the start.  By default those whose every pair
        has an exact row, or as many recorded steps as the agent asks for.
    state_names, action_names, coordinates
        For people and pictures.

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
        log: Log | None = None,
        known_states: ArrayLike | None = None,
        state_names: Sequence[str] | None = None,
        action_names: Sequence[str] | None = None,
        coordinates: ArrayLike | None = None,
    ) -> None:
        self._given = {
            name: value
            for name, value in locals().items()
            if name not in ("self", "__class__")
        }
        self.n_states = read_count("n_states", n_states, least=1)
        self.n_actions = read_count("n_actions", n_actions, least=1)
        self.discount = read_discount(discount)
        size = np.atleast_1d(read_numbers("budget", budget)).size
        self.budget = _frozen(read_budget(budget, size))
        self.reward_max = read_bound(
            "reward_max", read_number("reward_max", reward_max)
        )
        self.cost_max = _read_cost_max(cost_max, size)
        self.start = _frozen(read_start(start, self.n_states))
        self.pairs = Pairs.from_mask(self._mask("available", available, default=True))
        self.state_names = read_names("state_names", state_names, self.n_states)
        self.action_names = read_names("action_names", action_names, self.n_actions)
        self.coordinates = read_coordinates(coordinates, self.n_states)
        self.models = models
        exact = self._read_rows(known_rows)
        self.row_ptr, self.successor = self._read_support(support, exact)
        self.lower, self.upper = self._bounds(exact)
        self.free = self._per_pair(self._mask("free", free))
        self.exact_rewards = self._per_pair(self._mask("exact_rewards", exact_rewards))
        self.exact_costs = self._per_pair(self._mask("exact_costs", exact_costs))
        self._read_means(rewards, costs, cost_bounds)
        self.known_states = self._read_known(known_states)
        if log is not None:
            log.check(
                n_states=self.n_states,
                n_actions=self.n_actions,
                reward_max=self.reward_max,
                cost_max=self.cost_max,
            )
        self.log = log

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
            raise refusal(
                "log",
                f"actions that are available in state {states[row]}",
                f"action {actions[row]}",
                f"row {row}",
            )
        return found

    def replace(self, **changes: Any) -> Knowledge:
        """Return knowledge that differs in the named keywords of the constructor."""
        unknown = sorted(set(changes) - set(self._given))
        if unknown:
            raise refusal("replace", f"names among {sorted(self._given)}", unknown[0])
        return Knowledge(**{**self._given, **changes})

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
        return text + ")"

    # -- reading -----------------------------------------------------------------------

    def _mask(
        self, argument: str, value: ArrayLike | None, *, default: bool = False
    ) -> BoolArray:
        shape = (self.n_states, self.n_actions)
        if value is None:
            return np.full(shape, default)
        mask = read_array(argument, "a boolean, or a mask (S, A)", value)
        if mask.dtype != np.bool_:
            raise refusal(
                argument, "a boolean, or a mask (S, A)", f"dtype {mask.dtype}"
            )
        if mask.shape not in ((), shape):
            raise refusal(argument, f"shape {shape}", f"shape {mask.shape}")
        return np.broadcast_to(mask, shape).copy()

    def _per_pair(self, table: np.ndarray) -> Any:
        picked = table[..., self.pairs.pair_state, self.pairs.pair_action]
        return _frozen(np.ascontiguousarray(picked))

    def _read_rows(self, known_rows: Any) -> sp.csr_array | None:
        """Return known rows over the available pairs, ``(pairs, S)``; others empty."""
        if known_rows is None:
            return None
        shape = (self.n_states * self.n_actions, self.n_states)
        if not sp.issparse(known_rows):
            dense = read_numbers("known_rows", known_rows)
            known_rows = dense.reshape(shape) if dense.size == np.prod(shape) else dense
        matrix = sp.csr_array(known_rows).astype(np.float64)
        if matrix.shape != shape:
            raise refusal("known_rows", f"shape {shape}", f"shape {matrix.shape}")
        chosen = self._flat_pairs()
        rows = sp.csr_array(matrix[chosen])
        rows.sum_duplicates()
        rows.eliminate_zeros()
        bad = ~(np.isfinite(rows.data) & (rows.data > 0.0))
        if bad.any():
            entry = int(np.argmax(bad))
            pair = int(np.searchsorted(rows.indptr, entry, side="right")) - 1
            raise refusal(
                "known_rows",
                "finite numbers of at least 0",
                float(rows.data[entry]),
                self.pairs.name(pair),
            )
        sums = np.asarray(rows.sum(axis=1)).ravel()
        off = (np.diff(rows.indptr) > 0) & (np.abs(sums - 1.0) > _ROW_TOLERANCE)
        if off.any():
            pair = int(np.argmax(off))
            raise refusal(
                "known_rows",
                "rows that are empty or sum to 1",
                f"a sum of {sums[pair]:.10g}",
                self.pairs.name(pair),
            )
        rows.data /= np.repeat(np.where(sums > 0, sums, 1.0), np.diff(rows.indptr))
        return rows

    def _flat_pairs(self) -> IntArray:
        return (
            self.pairs.pair_state.astype(np.int64) * self.n_actions
            + self.pairs.pair_action
        )

    def _read_support(
        self, support: Any, exact: sp.csr_array | None
    ) -> tuple[IntArray, IndexArray]:
        """Return the possible successors of every pair."""
        if self.models is not None:
            if support is not None:
                raise refusal(
                    "support", "none beside models, which have their own", "one"
                )
            if (self.models.n_states, self.models.n_pairs) != (
                self.n_states,
                self.n_pairs,
            ):
                raise refusal(
                    "models",
                    f"a set over {self.n_states} states and {self.n_pairs} pairs",
                    f"{self.models.n_states} states and {self.models.n_pairs} pairs",
                )
            self._check_exact(
                exact, self.models.row_ptr, self.models.successor, "models"
            )
            return self.models.row_ptr, self.models.successor
        shape = (self.n_pairs, self.n_states)
        if support is None:
            if shape[0] * shape[1] > _MOST_ENTRIES:
                raise refusal(
                    "support",
                    f"the possible successors, for a problem with {shape[0]} pairs and "
                    f"{shape[1]} states",
                    "none",
                )
            mask = sp.csr_array(np.ones(shape))
        else:
            full = (self.n_states * self.n_actions, self.n_states)
            if sp.issparse(support):
                mask = sp.csr_array(support).copy()
                mask.data = np.ones(mask.nnz)  # a stored zero is a possible successor
            else:
                given = read_array("support", "a boolean array (S, A, S)", support)
                if given.dtype != np.bool_ or given.size != full[0] * full[1]:
                    raise refusal(
                        "support",
                        f"booleans of shape ({self.n_states}, {self.n_actions}, "
                        f"{self.n_states})",
                        f"dtype {given.dtype}, shape {given.shape}",
                    )
                mask = sp.csr_array(given.reshape(full).astype(np.float64))
            if mask.shape != full:
                raise refusal("support", f"shape {full}", f"shape {mask.shape}")
            mask = sp.csr_array(mask[self._flat_pairs()])
            mask.sum_duplicates()
        if exact is not None:
            self._check_exact(
                exact, mask.indptr.astype(np.int64), mask.indices, "support"
            )
            # where a row is known, nothing else is possible
            unknown = sp.diags_array((np.diff(exact.indptr) == 0).astype(np.float64))
            known = exact.copy()
            known.data = np.ones(known.nnz)
            mask = sp.csr_array(unknown @ mask + known)
            mask.eliminate_zeros()
        mask.sort_indices()
        empty = np.diff(mask.indptr) == 0
        if empty.any():
            pair = int(np.argmax(empty))
            raise refusal(
                "support",
                "at least one possible successor",
                "none",
                self.pairs.name(pair),
            )
        return (
            _frozen(mask.indptr.astype(np.int64)),
            _frozen(mask.indices.astype(np.int32)),
        )

    def _check_exact(
        self,
        exact: sp.csr_array | None,
        row_ptr: IntArray,
        successor: IndexArray,
        argument: str,
    ) -> None:
        """Refuse exact rows that go where nothing is said to be possible."""
        if exact is None:
            return
        for pair in np.flatnonzero(np.diff(exact.indptr)):
            inside = successor[row_ptr[pair] : row_ptr[pair + 1]]
            if inside.size == 0:  # the row itself says what is possible
                continue
            wanted = exact.indices[exact.indptr[pair] : exact.indptr[pair + 1]]
            stray = np.setdiff1d(wanted, inside)
            if stray.size:
                raise refusal(
                    "known_rows",
                    f"successors that {argument} allows",
                    f"state {stray[0]}",
                    self.pairs.name(int(pair)),
                )

    def _bounds(self, exact: sp.csr_array | None) -> tuple[FloatArray, FloatArray]:
        """Return what is known of every transition probability."""
        lengths = np.diff(self.row_ptr)
        lower = np.zeros(self.successor.size)
        upper = np.ones(self.successor.size)
        lower[self.row_ptr[:-1][lengths == 1]] = 1.0
        if exact is not None:
            for pair in np.flatnonzero(np.diff(exact.indptr)):
                row = slice(self.row_ptr[pair], self.row_ptr[pair + 1])
                known = slice(exact.indptr[pair], exact.indptr[pair + 1])
                values = np.zeros(lengths[pair])
                place = np.searchsorted(self.successor[row], exact.indices[known])
                values[place] = exact.data[known]
                lower[row] = upper[row] = values
        return _frozen(lower), _frozen(upper)

    def _read_means(
        self,
        rewards: ArrayLike | None,
        costs: ArrayLike | None,
        cost_bounds: ArrayLike | None,
    ) -> None:
        grid = (self.n_states, self.n_actions)
        top = self.cost_max[:, np.newaxis]
        reward = self._table("rewards", rewards, grid)
        known = ~np.isnan(reward)
        self._check_between("rewards", reward, known, np.array(self.reward_max))
        self.reward_lower = _frozen(np.where(known, reward, 0.0))
        self.reward_upper = _frozen(np.where(known, reward, self.reward_max))
        cost = self._table("costs", costs, (self.n_costs, *grid))
        known = ~np.isnan(cost)
        self._check_between("costs", cost, known, top)
        bound = self._table("cost_bounds", cost_bounds, (self.n_costs, *grid))
        bounded = ~np.isnan(bound)
        self._check_between("cost_bounds", bound, bounded, top)
        upper = np.where(bounded, bound, np.broadcast_to(top, bound.shape))
        upper = np.where(known, cost, upper)
        lower = np.where(known, cost, 0.0)
        clash = self.free & (lower > 0.0).any(axis=0)
        if clash.any():
            pair = int(np.argmax(clash))
            raise refusal(
                "free",
                "pairs whose known costs are 0",
                float(lower[:, pair].max()),
                self.pairs.name(pair),
            )
        upper[:, self.free] = 0.0
        self.cost_lower, self.cost_upper = _frozen(lower), _frozen(upper)

    def _table(
        self, argument: str, value: ArrayLike | None, shape: tuple[int, ...]
    ) -> FloatArray:
        """Return one number a pair (and channel), NaN where none was given."""
        if value is None:
            table = np.full(shape, np.nan)
        else:
            table = read_numbers(argument, value)
            if len(shape) == 3 and shape[0] == 1 and table.shape == shape[1:]:
                table = table[np.newaxis]
            if table.shape != shape:
                raise refusal(argument, f"shape {shape}", f"shape {table.shape}")
        return np.ascontiguousarray(
            table[..., self.pairs.pair_state, self.pairs.pair_action]
        )

    def _check_between(
        self, argument: str, values: FloatArray, given: BoolArray, top: FloatArray
    ) -> None:
        bad = given & ~((values >= 0.0) & (values <= top))
        if bad.any():
            place = tuple(np.argwhere(bad)[0])
            most = float(np.broadcast_to(top, values.shape)[place])
            raise refusal(
                argument,
                f"numbers in [0, {most:g}], or NaN",
                float(values[place]),
                self.pairs.name(int(place[-1])),
            )

    def _read_known(self, known_states: ArrayLike | None) -> BoolArray:
        mask = np.zeros(self.n_states, dtype=np.bool_)
        if known_states is None:
            return _frozen(mask)
        given = read_array("known_states", "a mask or a list of states", known_states)
        if given.dtype == np.bool_ and given.shape == mask.shape:
            return _frozen(given.copy())
        if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
            raise refusal(
                "known_states", "a mask or a list of states", repr(known_states)
            )
        out = (given < 0) | (given >= self.n_states)
        if out.any():
            place = int(np.argmax(out))
            raise refusal(
                "known_states",
                f"states in 0..{self.n_states - 1}",
                int(given[place]),
                f"position {place}",
            )
        mask[given.astype(np.int64)] = True
        return _frozen(mask)


def _frozen(array: Any) -> Any:
    array.flags.writeable = False
    return array


def _read_cost_max(value: ArrayLike, n_costs: int) -> FloatArray:
    bounds = read_numbers("cost_max", value)
    if bounds.shape not in ((), (n_costs,)):
        raise refusal("cost_max", f"a number, or {n_costs}", f"shape {bounds.shape}")
    bounds = np.broadcast_to(bounds, (n_costs,)).copy()
    for k, bound in enumerate(bounds):
        read_bound("cost_max", float(bound), f"channel {k}")
    return np.asarray(_frozen(bounds))
