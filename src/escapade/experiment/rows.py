"""Rows of the journal's table ``steps``, as arrays and as bytes.

A row is one decision.  With one budget its columns are those of :data:`COLUMNS`; each
further channel ``k`` adds ``cost_k``, ``promise_k`` and ``reserved_k``.  A number that
is not known stands as ``NULL`` in the table and as NaN here.

Packed, a lifetime is one string of bytes, row after row, however it was cut into blocks
when it was written; seals are taken of that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from escapade.agent.e4 import Decision
from escapade.agent.phases import REASONS, Phase
from escapade.simulation.trace import Trace
from escapade.typing import ArrayLike, FloatArray

__all__ = [
    "COLUMNS",
    "PendingRow",
    "columns",
    "one_step",
    "pack",
    "pending_row",
    "trace_of",
    "values_of",
]

COLUMNS = (
    "step",
    "state",
    "action",
    "phase",
    "reward",
    "cost",
    "next_state",
    "promise",
    "reserved",
    "reason",
)
_PER_CHANNEL = ("cost", "promise", "reserved")
_WHOLE = ("step", "state", "action", "phase", "next_state", "reason")


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingRow:
    """A decision whose outcome is not known yet."""

    step: int
    state: int
    action: int
    phase: int
    reason: int
    promise: tuple[float, ...]
    reserved: tuple[float, ...]


def columns(n_costs: int) -> tuple[str, ...]:
    """Return the names of the columns, in order."""
    more = [f"{name}_{k}" for k in range(1, n_costs) for name in _PER_CHANNEL]
    return (*COLUMNS, *more)


def values_of(trace: Trace, first: int) -> Iterator[tuple[Any, ...]]:
    """Return the rows of a trace whose first step has the number ``first``."""
    further = [
        _numbers(array[:, k])
        for k in range(1, trace.costs.shape[1])
        for array in (trace.costs, trace.promise, trace.reserved)
    ]
    return zip(
        range(first, first + len(trace)),
        trace.states[:-1].tolist(),
        trace.actions.tolist(),
        trace.phases.tolist(),
        _numbers(trace.rewards),
        _numbers(trace.costs[:, 0]),
        trace.states[1:].tolist(),
        _numbers(trace.promise[:, 0]),
        _numbers(trace.reserved[:, 0]),
        trace.reasons.tolist(),
        *further,
        strict=True,
    )


def _numbers(values: FloatArray) -> list[float | None]:
    # SQLite takes NaN for NULL by itself
    found: list[float | None] = values.tolist()
    return found


def trace_of(
    table: FloatArray,
    *,
    discount: float,
    budget: FloatArray,
    stopped: str,
    plans: Sequence[int] = (),
    breaks: Sequence[str] = (),
) -> Trace:
    """Return rows whose outcome is known, numbers in the order of the columns."""
    n_costs = budget.size
    further = table[:, len(COLUMNS) :].reshape(len(table), n_costs - 1, 3)
    channels = np.concatenate([table[:, np.newaxis, [5, 7, 8]], further], axis=1)
    states = np.append(table[:, 1], table[-1:, 6])
    return Trace(
        states=states.astype(np.int32),
        actions=table[:, 2].astype(np.int32),
        phases=table[:, 3].astype(np.int8),
        reasons=table[:, 9].astype(np.int8),
        rewards=np.ascontiguousarray(table[:, 4]),
        costs=np.ascontiguousarray(channels[:, :, 0]),
        promise=np.ascontiguousarray(channels[:, :, 1]),
        reserved=np.ascontiguousarray(channels[:, :, 2]),
        plans=np.array(plans, dtype=np.int64),
        discount=discount,
        budget=budget,
        stopped=stopped,
        phase_names=tuple(phase.label for phase in Phase),
        reason_names=dict(REASONS),
        breaks=tuple(breaks),
    )


def one_step(
    decision: Decision,
    *,
    reward: float,
    cost: ArrayLike | None,
    next_state: int,
    discount: float,
    budget: FloatArray,
) -> Trace:
    """Return a decision with what came of it as a trace of one step."""
    paid = np.full(budget.size, np.nan)
    if cost is not None:
        paid[:] = cost
    return Trace(
        states=np.array([decision.state, next_state], dtype=np.int32),
        actions=np.array([decision.action], dtype=np.int32),
        phases=np.array([decision.phase], dtype=np.int8),
        reasons=np.array([decision.reason_code], dtype=np.int8),
        rewards=np.array([reward], dtype=np.float64),
        costs=paid[np.newaxis],
        promise=np.array([decision.promise]),
        reserved=np.array([decision.reserved]),
        plans=np.zeros(0, dtype=np.int64),
        discount=discount,
        budget=budget,
        stopped="",
    )


def pack(trace: Trace, first: int) -> np.ndarray:
    """Return the rows of a trace as a record array, the same bytes on every machine."""
    n_costs = trace.costs.shape[1]
    packed = np.zeros(
        len(trace),
        dtype=[
            ("whole", "<i8", (len(_WHOLE),)),
            ("reward", "<f8"),
            ("channels", "<f8", (n_costs, 3)),
        ],
    )
    whole = (
        np.arange(first, first + len(trace)),
        trace.states[:-1],
        trace.actions,
        trace.phases,
        trace.states[1:],
        trace.reasons,
    )
    packed["whole"] = np.stack(whole, axis=1)
    packed["reward"] = _one_nan(trace.rewards)
    channels = (trace.costs, trace.promise, trace.reserved)
    packed["channels"] = np.stack([_one_nan(c) for c in channels], axis=2)
    return packed


def _one_nan(values: FloatArray) -> FloatArray:
    """Return values with one and the same NaN, and no zero but the positive one."""
    return np.where(np.isnan(values), np.nan, values + 0.0)


def pending_row(decision: Decision) -> PendingRow:
    """Return a decision as the journal holds it before its outcome is known."""
    return PendingRow(
        step=decision.id,
        state=decision.state,
        action=decision.action,
        phase=int(decision.phase),
        reason=decision.reason_code,
        promise=decision.promise,
        reserved=decision.reserved,
    )
