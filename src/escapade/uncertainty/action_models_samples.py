"""What was seen, read beside the rows of action models."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from escapade.errors import AssumptionError, refusal
from escapade.typing import ArrayLike, FloatArray, IntArray
from escapade.uncertainty.action_models_statement import Statement
from escapade.uncertainty.rows import gather_rows, row_sums
from escapade.uncertainty.tables import Frame, check_entries, read_table

__all__ = ["Samples"]


class Samples:
    """Reads counts and sums for the pairs of a statement; refuses what is amiss."""

    def __init__(self, statement: Statement) -> None:
        self._statement = statement
        self._rows = statement.rows

    def read_pairs(self, pairs: ArrayLike | None) -> IntArray:
        """Return the pairs that changed, increasing; all of them by default."""
        if pairs is None:
            return np.arange(self._rows.n_rows)
        chosen = np.unique(np.asarray(pairs))
        if chosen.size and chosen.dtype.kind not in "iu":
            raise refusal("pairs", "an array of pairs", f"dtype {chosen.dtype}")
        if chosen.size and not 0 <= chosen[0] <= chosen[-1] < self._rows.n_rows:
            bad = chosen[0] if chosen[0] < 0 else chosen[-1]
            raise refusal("pairs", f"pairs in 0..{self._rows.n_rows - 1}", int(bad))
        return chosen.astype(np.int64)

    def read_counts(self, counts: Any, pairs: IntArray) -> FloatArray:
        """Return counts beside the entries; those of ``pairs`` are checked."""
        if sp.issparse(counts) or np.ndim(counts) != 1:
            return self._read_table(counts)
        numbers = np.ascontiguousarray(counts, dtype=np.float64)
        if numbers.shape != self._rows.successor.shape:
            raise refusal(
                "counts",
                f"shape {self._rows.successor.shape}",
                f"shape {numbers.shape}",
            )
        _, entries = gather_rows(self._rows.row_ptr, pairs)
        bad = ~((numbers[entries] >= 0.0) & np.isfinite(numbers[entries]))
        if bad.any():
            entry = int(entries[int(np.argmax(bad))])
            pair = int(np.searchsorted(self._rows.row_ptr, entry, side="right")) - 1
            raise refusal(
                "counts",
                "finite numbers of at least 0",
                float(numbers[entry]),
                f"{self._rows.name(pair)}, next state {self._rows.successor[entry]}",
            )
        return numbers

    def _read_table(self, counts: Any) -> FloatArray:
        rows, spaces = self._rows, self._statement.spaces
        frame = Frame(self._rows.n_states, spaces.pair_state, spaces.pair_action)
        table = read_table("counts", counts, frame)
        check_entries("counts", table.data, table, frame)
        table.eliminate_zeros()
        place = rows.entries_of(table)
        if (place < 0).any():
            entry = int(np.argmax(place < 0))
            pair = int(np.searchsorted(table.indptr, entry, side="right")) - 1
            raise AssumptionError(
                f"support: expected a successor that some model allows for "
                f"{rows.name(pair)}, found state {table.indices[entry]}"
            )
        numbers = np.zeros(self._rows.successor.size)
        numbers[place] = table.data
        return numbers

    def read_sums(
        self,
        costs: ArrayLike | None,
        cost_visits: ArrayLike | None,
        rewards: ArrayLike | None,
        reward_visits: ArrayLike | None,
        counts: FloatArray,
        pairs: IntArray,
    ) -> list[tuple[FloatArray, FloatArray]]:
        """Return sums as shares of their bounds, and their numbers, for ``pairs``."""
        statement = self._statement
        n_costs, n_pairs = statement.n_costs, self._rows.n_rows
        n_rewards = statement.bound.size - n_costs
        ptr, entries = gather_rows(self._rows.row_ptr, pairs)
        visits = row_sums(counts[entries], ptr)
        pieces = []
        for argument, value, number, channels in (
            ("costs", costs, cost_visits, n_costs),
            ("rewards", rewards, reward_visits, n_rewards),
        ):
            if channels == 0 or value is None:
                nothing = np.zeros(pairs.size)
                pieces += [(nothing, nothing)] * channels
                continue
            totals = np.asarray(value, dtype=np.float64).reshape(-1, n_pairs)
            if len(totals) != channels:
                raise refusal(argument, f"{channels} sums a pair", len(totals))
            numbers = np.broadcast_to(visits, (channels, pairs.size))
            if number is not None:
                given = np.asarray(number, dtype=np.float64)
                numbers = np.broadcast_to(given, (channels, n_pairs))[:, pairs]
            for k, total in enumerate(totals[:, pairs]):
                bound = statement.bound[k if argument == "costs" else n_costs]
                share = total / bound if bound > 0.0 else total
                n = numbers[k]
                bad = ~((share >= 0.0) & (share <= n * (1.0 + 1e-9) + 1e-9))
                if bad.any():
                    at = int(np.argmax(bad))
                    raise refusal(
                        argument,
                        f"sums of {n[at]:g} samples in [0, {bound:g}]",
                        float(total[at]),
                        self._statement.name(int(pairs[at])),
                    )
                pieces.append((np.minimum(share, n), n))
        return pieces
