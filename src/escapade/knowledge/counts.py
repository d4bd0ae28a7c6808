"""What was seen, summed up: counts of transitions, and sums of rewards and costs.

Where a plant's history is long, or only its sums were kept, counts say all that a log
would: evidence does not hang on the order of steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import scipy.sparse as sp

from escapade.errors import refusal
from escapade.knowledge.rows import flat_pairs
from escapade.model.arguments import read_numbers
from escapade.model.layout import Pairs, read_array
from escapade.typing import ArrayLike, FloatArray, IntArray

__all__ = ["Counts", "Tally"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Counts:
    """Counts of transitions, and sums of what was earned and paid.

    Parameters
    ----------
    transitions
        How often each state followed each pair: ``(S, A, S)``, or ``(S * A, S)``,
        perhaps sparse.
    rewards
        ``(S, A)`` sums of the rewards of all these steps.
    costs
        ``(S, A)`` or ``(K, S, A)`` sums of the costs that were recorded.
    cost_steps
        ``(S, A)``; of how many steps the costs were recorded, by default of all.
        Whether one was must not depend on its size.

    Examples
    --------
    >>> from escapade.knowledge import Counts
    >>> Counts(transitions=[[[3, 1]], [[0, 2]]], rewards=[[4.0], [0.0]],
    ...        costs=[[0.0], [0.0]])
    Counts(6 steps)
    """

    transitions: Any
    rewards: ArrayLike
    costs: ArrayLike
    cost_steps: ArrayLike | None = None

    def __repr__(self) -> str:
        return f"Counts({int(_read_table(self.transitions).sum())} steps)"

    def read(self, pairs: Pairs, *, reward_max: float, cost_max: FloatArray) -> Tally:
        """Return the counts over the pairs of a problem, checked."""
        full = (pairs.n_states * pairs.n_actions, pairs.n_states)
        table = _read_table(self.transitions)
        if table.shape != full:
            raise refusal("counts", f"transitions {full}", f"shape {table.shape}")
        bad = ~((table.data >= 0) & (table.data == np.round(table.data)))
        if bad.any():
            entry = int(np.argmax(bad))
            row = int(np.searchsorted(table.indptr, entry, side="right")) - 1
            raise refusal(
                "counts",
                "whole numbers of at least 0",
                float(table.data[entry]),
                f"state {row // pairs.n_actions}, action {row % pairs.n_actions}, "
                f"next state {table.indices[entry]}",
            )
        flat = flat_pairs(pairs)
        sums = np.asarray(table.sum(axis=1)).ravel()
        missing = np.setdiff1d(np.flatnonzero(sums), flat)
        if missing.size:
            state, action = divmod(int(missing[0]), pairs.n_actions)
            raise refusal(
                "counts",
                "steps of actions that are available",
                f"{sums[missing[0]]:g}",
                f"state {state}, action {action}",
            )
        steps = sums[flat].astype(np.int64)
        grid = (pairs.n_states, pairs.n_actions)
        known = steps
        if self.cost_steps is not None:
            given = _per_pair("cost_steps", self.cost_steps, grid, pairs)
            off = ~((given >= 0) & (given <= steps) & (given == np.round(given)))
            if off.any():
                pair = int(np.argmax(off))
                raise refusal(
                    "cost_steps",
                    f"whole numbers in 0..{steps[pair]}",
                    float(given[pair]),
                    pairs.name(pair),
                )
            known = given.astype(np.int64)
        reward = _per_pair("rewards", self.rewards, grid, pairs)
        _check_sums("rewards", reward, steps, reward_max, pairs)
        cost = read_numbers("costs", self.costs)
        if cost.shape == grid:
            cost = cost[np.newaxis]
        if cost.shape != (cost_max.size, *grid):
            raise refusal(
                "costs", f"shape {(cost_max.size, *grid)}", f"shape {cost.shape}"
            )
        paid = np.ascontiguousarray(cost[:, pairs.pair_state, pairs.pair_action])
        for k, channel in enumerate(paid):
            _check_sums("costs", channel, known, float(cost_max[k]), pairs)
        rows = sp.csr_array(table[flat])
        return Tally(
            row_ptr=rows.indptr.astype(np.int64),
            successor=rows.indices.astype(np.int64),
            visits=rows.data.astype(np.int64),
            rewards=reward,
            costs=paid,
            cost_steps=known,
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tally:
    """Counts over the available pairs: ``[pairs]``, and rows of successors."""

    row_ptr: IntArray
    successor: IntArray
    visits: IntArray
    rewards: FloatArray
    costs: FloatArray
    cost_steps: IntArray


def _read_table(transitions: Any) -> sp.csr_array:
    if sp.issparse(transitions):
        table: sp.csr_array = sp.csr_array(cast(Any, transitions)).astype(np.float64)
    else:
        dense = read_array("counts", "transitions (S, A, S) or (S * A, S)", transitions)
        if dense.dtype.kind not in "fiu" or dense.ndim not in (2, 3):
            raise refusal(
                "counts",
                "transitions (S, A, S) or (S * A, S)",
                f"dtype {dense.dtype}, shape {dense.shape}",
            )
        table = sp.csr_array(dense.reshape(-1, dense.shape[-1]).astype(np.float64))
    table.sum_duplicates()
    table.eliminate_zeros()
    return table


def _per_pair(
    argument: str, value: ArrayLike, grid: tuple[int, int], pairs: Pairs
) -> FloatArray:
    table = read_numbers(argument, value)
    if table.shape != grid:
        raise refusal(argument, f"shape {grid}", f"shape {table.shape}")
    return np.ascontiguousarray(table[pairs.pair_state, pairs.pair_action])


def _check_sums(
    argument: str, total: FloatArray, steps: IntArray, most: float, pairs: Pairs
) -> None:
    bad = ~((total >= 0.0) & (total <= steps * most * (1.0 + 1e-9)))
    if bad.any():
        pair = int(np.argmax(bad))
        raise refusal(
            argument,
            f"a sum of {steps[pair]} samples in [0, {most:g}]",
            float(total[pair]),
            pairs.name(pair),
        )
