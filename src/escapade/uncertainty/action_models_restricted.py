"""Action models that may reach certain successors only.

Where a branch may miss by any law, the law is confined to what is left of its
neighbourhood.  A uniform law needs all of it: otherwise nothing may be missed, and if
something must be, the branch is impossible.  So it is if its typical state is gone,
unless everything may be missed.
"""

from __future__ import annotations

import numpy as np

from escapade.errors import AssumptionError
from escapade.typing import IntArray
from escapade.uncertainty.action_models_branches import Branches, BranchSet
from escapade.uncertainty.rows import Rows, frozen, gather_rows

__all__ = ["empty_at", "restrict_branches", "rows_of_keys"]


def empty_at(place: str) -> AssumptionError:
    """Return the error for a pair of which no row is in all sets."""
    return AssumptionError(
        f"parts: expected a row that is in all of them for {place}, found none"
    )


def rows_of_keys(
    keys: IntArray, n_pairs: int, n_states: int, *, named: Rows | None = None
) -> Rows:
    """Return rows of the entries ``pair · S + successor``, nominally all 0.

    ``named`` are rows of the same pairs, which these are named after.
    """
    pointers = np.searchsorted(keys, np.arange(n_pairs + 1) * n_states)
    return Rows(
        n_states=n_states,
        stored_ptr=frozen(pointers.astype(np.int64)),
        stored=frozen((keys % n_states).astype(np.int32)),
        stored_nominal=frozen(np.zeros(keys.size)),
        pair_state=None if named is None else named.pair_state,
        pair_action=None if named is None else named.pair_action,
    )


def restrict_branches(sets: BranchSet, keys: IntArray) -> BranchSet:
    """Return the members of a set that reach only these entries, as a set on them.

    ``keys`` are ``pair · S + successor``, increasing.  The nominal row of a pair is
    that of its first branch, with the least misses.
    """
    old, n_states = sets.branches, sets.n_states
    pair = old.pair
    has = old.around >= 0
    ptr, members = gather_rows(old.near_ptr, old.around[has])
    owner = np.repeat(np.flatnonzero(has), np.diff(ptr))
    state = old.near[members].astype(np.int64)
    inside = _among(pair[owner] * n_states + state, keys)
    at_target = _among(pair * n_states + old.target, keys)
    size = np.bincount(owner, minlength=old.size)
    left = np.bincount(owner, inside, minlength=old.size).astype(np.int64)
    uniform = np.zeros(old.size, dtype=np.bool_)
    uniform[has] = old.uniform[old.around[has]]

    low, high = old.low.copy(), old.high.copy()
    broken = has & ((left == 0) | (uniform & (left < size)))
    active = sets.active & ~(broken & (low > 0.0)) & (at_target | (high == 1.0))
    active &= ~(broken & ~at_target)
    high[broken] = 0.0
    all_missed = ~at_target & has & ~broken
    low[all_missed] = high[all_missed]
    if not np.logical_or.reduceat(active, old.ptr[:-1]).all():
        alive = np.logical_or.reduceat(active, old.ptr[:-1])
        raise empty_at(sets.name(int(np.argmin(alive))))
    # branches that lost a state get a neighbourhood of their own
    changed = has & ~broken & (left < size)
    kept = inside & changed[owner]
    fresh = np.flatnonzero(changed)
    around = np.where(broken, -1, old.around)
    around[fresh] = old.uniform.size + np.arange(fresh.size)
    ends = old.near_ptr[-1] + np.cumsum(left[fresh])
    target = old.target.copy()
    first = np.full(old.size, -1, dtype=np.int64)
    first[owner[inside][::-1]] = state[inside][::-1]
    target[all_missed] = first[all_missed]  # no mass is left there: any will do
    branches = Branches(
        ptr=old.ptr,
        target=frozen(target),
        around=frozen(around),
        low=frozen(low),
        high=frozen(high),
        near_ptr=frozen(np.concatenate([old.near_ptr, ends]).astype(np.int64)),
        near=frozen(np.concatenate([old.near, state[kept]]).astype(np.int32)),
        uniform=frozen(np.concatenate([old.uniform, np.zeros(fresh.size, np.bool_)])),
    )
    rows = rows_of_keys(keys, sets.n_pairs, n_states, named=sets.rows)
    bare = BranchSet(rows, branches, frozen(active))
    return BranchSet(
        rows.with_nominal(bare.first_rows()),
        branches,
        frozen(active),
    )


def _among(
    wanted: IntArray, keys: IntArray
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    place = np.minimum(np.searchsorted(keys, wanted), keys.size - 1)
    return np.asarray(keys[place] == wanted, dtype=np.bool_)
