"""A recorded lifetime, told again to an agent that was just born or loaded.

The agent decides anew at every step, and is then told what was recorded.  As it draws
from the same generator and sees the same things, it must take the decision that stands
in the record, and promise the same; where it does not, the record was altered, or was
made by another agent, other knowledge or another version.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from escapade.agent.e4 import E4
from escapade.kernels.life import IMPOSSIBLE
from escapade.kernels.lifetime import RECORD, Record
from escapade.kernels.parcels import Parcel
from escapade.kernels.replay import DIFFERS, live_again
from escapade.simulation.trace import Trace

__all__ = ["Divergence", "replay"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Divergence:
    """Where a record and the agent part.

    Attributes
    ----------
    step
        Of the record, from 0.
    message
        What the record says and what the agent does.
    """

    step: int
    message: str


def replay(
    agent: E4,
    trace: Trace,
    *,
    on_stretch: Callable[[int, int, bool], None] | None = None,
    on_plan: Callable[[int], None] | None = None,
) -> Divergence | None:
    """Tell an agent what was recorded; it ends where the recorded agent did.

    Parameters
    ----------
    agent
        As it was before the first recorded step.
    trace
        What was recorded.
    on_stretch
        Called with the first step and the one after the last of every stretch that was
        lived under one plan, while that plan is still in force, and with whether its
        last step was possible, so that the promise was settled.
    on_plan
        Called after each new plan, with the number of steps taken by then.

    Returns
    -------
    Divergence or None
        ``None`` if the agent agrees with everything.
    """
    layout = agent.knowledge.pairs
    wrong = _strange(trace, layout.n_states, layout.n_actions)
    if wrong is not None:
        return wrong
    if len(trace) and agent.state is not None and agent.state != trace.states[0]:
        return Divergence(
            step=0,
            message=f"expected state {agent.state}, found {trace.states[0]}",
        )
    seen = Record(
        states=np.ascontiguousarray(trace.states, dtype=np.int32),
        actions=np.ascontiguousarray(trace.actions, dtype=np.int32),
        phases=np.ascontiguousarray(trace.phases, dtype=np.int8),
        reasons=np.ascontiguousarray(trace.reasons, dtype=np.int8),
        rewards=np.ascontiguousarray(trace.rewards),
        costs=np.ascontiguousarray(trace.costs),
        promise=np.ascontiguousarray(trace.promise),
        reserved=np.ascontiguousarray(trace.reserved),
    )
    record = Parcel(RECORD, seen)
    t, steps = 0, len(trace)
    while t < steps:
        begun, plans = t, agent.plans
        life = agent.life()
        t, why, pair = live_again(
            life.table,
            record.table,
            life.content.ledger.channels,
            agent.rng,
            begun,
            steps,
            agent.learning,
        )
        if why == DIFFERS:
            return _explain(agent, trace, t)
        if why == IMPOSSIBLE:
            t += 1
        if on_stretch is not None:
            on_stretch(begun, t, why != IMPOSSIBLE)
        agent.decisions += t - begun - 1
        agent.finish_step(
            pair,
            int(seen.states[t]),
            why=why,
            reward=float(seen.rewards[t - 1]),
            cost=seen.costs[t - 1],
        )
        if agent.plans > plans and on_plan is not None:
            on_plan(t)
    return None


def _strange(trace: Trace, n_states: int, n_actions: int) -> Divergence | None:
    """Return the first number that stands for nothing."""
    for name, values, size in (
        ("state", trace.states, n_states),
        ("action", trace.actions, n_actions),
    ):
        bad = (values < 0) | (values >= size)
        if bad.any():
            step = int(np.argmax(bad))
            return Divergence(
                step=min(step, len(trace) - 1),
                message=f"expected {name}s in 0..{size - 1}, found {values[step]}",
            )
    return None


def _explain(agent: E4, trace: Trace, step: int) -> Divergence:
    """Say what a decision differs in, as far as it can still be told."""
    here = trace.states[step]
    for name, mine, theirs in (
        ("promise", agent.promise, trace.promise[step]),
        ("reserved", agent.planned.ledger.w[:, here], trace.reserved[step]),
    ):
        if not np.array_equal(mine, theirs):
            return Divergence(
                step=step,
                message=f"expected {name} {_numbers(mine)}, found {_numbers(theirs)}",
            )
    return Divergence(
        step=step,
        message=(
            f"expected what the agent decides in state {here}, found action "
            f"{trace.actions[step]}, phase {trace.phases[step]}, reason "
            f"{trace.reasons[step]}"
        ),
    )


def _numbers(values: np.ndarray) -> str:
    return ", ".join(repr(float(value)) for value in values)
