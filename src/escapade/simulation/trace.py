"""What happened in a lifetime, step by step."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from escapade.kernels.discounting import discount_back
from escapade.typing import CodeArray, FloatArray, IndexArray, IntArray

__all__ = ["Trace"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Trace:
    """A lifetime, as arrays over its ``T`` steps.

    Attributes
    ----------
    states
        ``(T + 1,)``.
    actions, phases, reasons
        ``(T,)``; phases and reasons by number, with their names in ``phase_names`` and
        ``reason_names``.
    rewards
        ``(T,)``.
    costs, promise, reserved
        ``(T, K)``; what was paid, what was promised before it, and how much of that
        the fallback needed.
    plans
        ``(P,)``; the steps before which the agent planned again.
    discount
        Discount factor of the world.
    budget
        ``(K,)``; what may never be promised to be exceeded.
    stopped
        Why the lifetime ended, in words.
    breaks
        Assumptions that were seen to be false in the agent's life by then.  From the
        first one on it keeps to its fallback, and its promise is no longer sure to
        hold.
    """

    states: IndexArray
    actions: IndexArray
    phases: CodeArray
    reasons: CodeArray
    rewards: FloatArray
    costs: FloatArray
    promise: FloatArray
    reserved: FloatArray
    plans: IntArray
    discount: float
    budget: FloatArray
    stopped: str
    phase_names: tuple[str, ...] = ()
    reason_names: dict[int, str] = field(default_factory=dict)
    breaks: tuple[str, ...] = ()

    def __len__(self) -> int:
        return self.actions.size

    def __repr__(self) -> str:
        broken = f", broken: {self.breaks[0]}" if self.breaks else ""
        return f"Trace({len(self)} steps, {self.stopped}{broken})"

    def cost_to_go(self) -> FloatArray:
        """Return the realised discounted cost from every step on, ``(T, K)``.

        What comes after the last step is not in it: see :attr:`Trace.tail`.
        """
        return discounted_from(self.costs, self.discount)

    def value_to_go(self) -> FloatArray:
        """Return the realised discounted reward from every step on, ``(T,)``."""
        return discounted_from(self.rewards[:, np.newaxis], self.discount)[:, 0]

    def summary(self) -> dict[str, Any]:
        """Return the lifetime in a few numbers, fit for JSON."""
        steps = len(self)
        names = self.phase_names or tuple(str(i) for i in range(6))
        counts = np.bincount(self.phases, minlength=len(names))
        to_go = self.cost_to_go()
        slack = self.promise - self.reserved
        return {
            "steps": steps,
            "stopped": self.stopped,
            "states_visited": int(np.unique(self.states).size),
            "plans": int(self.plans.size),
            "phases": {
                name: int(count) for name, count in zip(names, counts, strict=False)
            },
            "reward_per_step": float(self.rewards.mean()) if steps else 0.0,
            "cost_per_step": self.costs.mean(axis=0).tolist() if steps else [],
            "largest_cost_to_go": to_go.max(axis=0).tolist() if steps else [],
            "least_promise": self.promise.min(axis=0).tolist() if steps else [],
            "least_slack": slack.min(axis=0).tolist() if steps else [],
            "budget": self.budget.tolist(),
            "breaks": list(self.breaks),
        }


def discounted_from(values: FloatArray, discount: float) -> FloatArray:
    """Return the discounted sum of ``(T, K)`` values from every step on."""
    sums = np.empty_like(values)
    discount_back(values, discount, sums)
    return sums
