"""Parts of an intersection, made as small as what they are allows.

Intervals merge into one.  Action models that evidence made of the same statement merge
into what is left in all of them.  Balls keep their shape, but need not reach where
another part does not: their rows are cut to what all parts reach, and to what is
nominal.  A part that then says no more than which successors are possible is dropped.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from escapade.typing import FloatArray, IntArray
from escapade.uncertainty.action_models import ActionModels
from escapade.uncertainty.action_models_branches import BranchSet
from escapade.uncertainty.action_models_restricted import (
    empty_at,
    restrict_branches,
    rows_of_keys,
)
from escapade.uncertainty.base import UncertaintySet
from escapade.uncertainty.interval import Interval
from escapade.uncertainty.kl_ball import KLBall
from escapade.uncertainty.l1_ball import L1Ball
from escapade.uncertainty.rows import Rows, row_sums

__all__ = ["keys_of", "merged", "point_in_box"]

_ROUNDING = 1e-12


def keys_of(sets: UncertaintySet) -> IntArray:
    """Return ``pair · S + successor`` of every entry, increasing."""
    pair = np.repeat(np.arange(sets.n_pairs), np.diff(sets.row_ptr))
    keys: IntArray = pair * sets.n_states + sets.successor
    return keys


def merged(parts: Sequence[UncertaintySet]) -> list[UncertaintySet]:
    """Return as few and as small parts as have the same intersection."""
    smaller = _merge_models(parts)
    if len(smaller) == 1:
        return smaller
    common = _common(smaller)
    if common is not None:
        smaller = [_cut(part, common) for part in smaller]
    boxes = [part for part in smaller if isinstance(part, Interval)]
    others = [part for part in smaller if not isinstance(part, Interval)]
    if boxes:
        box = boxes[0] if len(boxes) == 1 else _merge_intervals(boxes)
        says_no_more = bool((box.lower == 0.0).all() and (box.upper == 1.0).all())
        if not (others and says_no_more and all(_inside(o, box) for o in others)):
            others.append(box)
    return others


def _merge_models(parts: Sequence[UncertaintySet]) -> list[UncertaintySet]:
    kept: list[UncertaintySet] = []
    for part in parts:
        for i, other in enumerate(kept):
            if (
                isinstance(part, ActionModels)
                and isinstance(other, ActionModels)
                and part.same_statement(other)
            ):
                kept[i] = part.keep(other.left)
                break
        else:
            kept.append(part)
    return kept


def _common(parts: Sequence[UncertaintySet]) -> IntArray | None:
    """Return the entries that all parts reach; ``None`` where all states may follow."""
    common: IntArray | None = None
    for part in parts:
        if _reaches_everywhere(part):
            continue
        keys = keys_of(part)[part.reachable]
        common = keys if common is None else np.intersect1d(common, keys, True)
    return common


def _reaches_everywhere(part: UncertaintySet) -> bool:
    if not isinstance(part, L1Ball | KLBall | Interval) or not part.rows.everywhere:
        return False
    if isinstance(part, Interval):
        return bool((part.upper > 0.0).all())
    return bool((part.radius > 0.0).all())


def _cut(part: UncertaintySet, common: IntArray) -> UncertaintySet:
    """Return the part on the entries that all reach, and its own nominal ones."""
    n_pairs, n_states = part.n_pairs, part.n_states
    if isinstance(part, L1Ball | KLBall):
        rows = part.rows
        own = np.repeat(np.arange(n_pairs), np.diff(rows.seen_ptr)) * n_states
        keys = np.union1d(common, own + rows.seen)
        nominal = np.zeros(keys.size)
        nominal[np.searchsorted(keys, own + rows.seen)] = rows.seen_nominal
        bare = rows_of_keys(keys, n_pairs, n_states, named=rows)
        cut = bare.with_nominal(nominal)
        return part.around(cut, part.radius)
    if isinstance(part, Interval):
        keys = keys_of(part)
        place = np.searchsorted(keys, common)
        lower, upper = part.lower[place], part.upper[place]
        lost = part.lower.copy()
        lost[place] = 0.0
        if (lost > _ROUNDING).any():
            entry = int(np.argmax(lost > _ROUNDING))
            raise empty_at(part.name(int(keys[entry] // n_states)))
        return _box(common, part.rows, lower, upper, part.nominal[place])
    if isinstance(part, BranchSet) and keys_of(part).size > common.size:
        return restrict_branches(part, common)
    return part


def _box(
    keys: IntArray, named: Rows, lower: FloatArray, upper: FloatArray, wish: FloatArray
) -> Interval:
    rows = rows_of_keys(keys, named.n_rows, named.n_states, named=named)
    point, missed = point_in_box(lower, upper, wish, rows.row_ptr)
    bad = (missed > _ROUNDING * np.maximum(np.diff(rows.row_ptr), 1)) | (
        np.diff(rows.row_ptr) == 0
    )
    if bad.any():
        raise empty_at(named.name(int(np.argmax(bad))))
    return Interval.around(rows.with_nominal(point), lower, upper)


def _merge_intervals(boxes: Sequence[Interval]) -> Interval:
    keys = keys_of(boxes[0])
    for box in boxes[1:]:
        keys = np.intersect1d(keys, keys_of(box), assume_unique=True)
    cut = [_cut(box, keys) for box in boxes]
    lower = np.max([box.lower for box in cut if isinstance(box, Interval)], axis=0)
    upper = np.min([box.upper for box in cut if isinstance(box, Interval)], axis=0)
    wish = np.mean([box.nominal for box in cut], axis=0)
    crossed = lower > upper + _ROUNDING
    if crossed.any():
        pair = int(keys[int(np.argmax(crossed))] // boxes[0].n_states)
        raise empty_at(boxes[0].name(pair))
    lower = np.minimum(lower, upper)
    return _box(keys, boxes[0].rows, lower, upper, wish)


def point_in_box(
    lower: FloatArray, upper: FloatArray, wish: FloatArray, row_ptr: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Return distributions between bounds, near ``wish``, and by how much that fails.

    What is missing from a sum of 1 is shared in proportion to the room that is left.
    """
    inside = np.clip(wish, lower, upper)
    missing = 1.0 - row_sums(inside, row_ptr)
    lengths = np.diff(row_ptr)
    room = np.where(np.repeat(missing, lengths) > 0.0, upper - inside, inside - lower)
    total = row_sums(room, row_ptr)
    share = np.divide(missing, total, out=np.zeros_like(total), where=total > 0.0)
    point = inside + np.repeat(np.clip(share, -1.0, 1.0), lengths) * room
    failed: FloatArray = np.maximum(np.abs(missing) - total, 0.0)
    return point, failed


def _inside(part: UncertaintySet, box: Interval) -> bool:
    """Tell whether every successor that a part reaches is one of the box."""
    reached = keys_of(part)[part.reachable]
    return bool(np.isin(reached, keys_of(box), assume_unique=True).all())
