"""What an audit found: numbers over time, the worst of them, and a verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from escapade.typing import FloatArray, IntArray

__all__ = ["Audit", "PhaseAccount"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PhaseAccount:
    """Averages over all steps of a phase, in all lifetimes.

    Attributes
    ----------
    share
        Of all steps, how many were in this phase.
    cost
        ``(K,)``; paid in a step.
    cost_to_go, promise, excess
        ``(K,)``; what was paid from there on, what was promised, and what was paid
        beyond that.
    """

    share: float
    cost: FloatArray
    cost_to_go: FloatArray
    promise: FloatArray
    excess: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Audit:
    """An account of many lifetimes; see :mod:`escapade.simulation.audit`.

    Arrays run over the steps t that were audited, or over blocks of them, and over the
    ``K`` channels.

    Attributes
    ----------
    lifetimes, steps
        How many, and how long.
    discount, budget
        Of the world; the budget is ``(K,)``.
    confidence
        Probability with which ``block_upper`` holds everywhere; the same for the two
        lower bounds.
    promises
        Whether the agent promises anything.
    reward_per_step
        Average over all lifetimes.
    invariant_breaks
        Steps, of all lifetimes, at which ``w <= b <= d`` did not hold.
    assumption_breaks
        How often, in all lifetimes, an agent said that an assumption broke.
    mean_cost_to_go, standard_error
        ``(t, K)``; the mean over lifetimes of the realised cost-to-go, and its error.
    mean_excess
        ``(t, K)``; the mean of what was realised beyond the promise; NaN without one.
    over
        ``(t, K)``; share of lifetimes whose realised cost-to-go was above the budget.
    block_starts
        ``(B,)``; where blocks begin.
    block_upper
        ``(B, K)``; above the mean cost-to-go at every step of the block.
    block_lower, block_excess_lower
        ``(B, K)``; below the means at the start of the block.
    per_phase
        :class:`PhaseAccount` by name.
    """

    lifetimes: int
    steps: int
    discount: float
    budget: FloatArray
    confidence: float
    promises: bool
    reward_per_step: float
    invariant_breaks: int
    assumption_breaks: int
    mean_cost_to_go: FloatArray
    standard_error: FloatArray
    mean_excess: FloatArray
    over: FloatArray
    block_starts: IntArray
    block_upper: FloatArray
    block_lower: FloatArray
    block_excess_lower: FloatArray
    per_phase: Mapping[str, PhaseAccount]

    @property
    def channel(self) -> int:
        """The channel whose worst mean cost-to-go lies nearest its budget, or over."""
        return int(np.argmin(self.budget - self.mean_cost_to_go.max(axis=0)))

    @property
    def worst_mean_cost_to_go(self) -> float:
        """The largest mean cost-to-go over all steps, in :attr:`channel`."""
        return float(self.mean_cost_to_go[:, self.channel].max())

    @property
    def worst_step(self) -> int:
        """The step at which it is that large."""
        return int(self.mean_cost_to_go[:, self.channel].argmax())

    @property
    def upper_confidence(self) -> float:
        """What the mean cost-to-go stays below at all steps, in :attr:`channel`."""
        return float(self.block_upper[:, self.channel].max())

    @property
    def worst_mean_excess(self) -> float:
        """The largest mean of what was realised beyond the promise; NaN without one."""
        return float(self.mean_excess.max())

    @property
    def fraction_over(self) -> float:
        """The largest share of lifetimes whose cost-to-go from a step is over budget.

        A promise about an expectation allows single lifetimes to cost more.
        """
        return float(self.over.max())

    @property
    def broken(self) -> bool:
        """Whether the invariant broke, or a mean is above its bound beyond doubt.

        An assumption that proved false is no break of the promise, which rested on it;
        :attr:`message` says so first of all.
        """
        too_much = (self.block_lower > self.budget).any()
        unpromised = (self.block_excess_lower > 0.0).any()  # NaN is not
        return bool(self.invariant_breaks or too_much or unpromised)

    @property
    def proved(self) -> bool:
        """Whether the means are within every budget with the stated confidence."""
        return bool((self.block_upper <= self.budget).all())

    @property
    def message(self) -> str:
        """The outcome in a sentence."""
        said = self._outcome()
        if not self.assumption_breaks:
            return said
        times = "time" if self.assumption_breaks == 1 else "times"
        return (
            f"what the agent was told proved false {self.assumption_breaks} {times}, "
            f"and the promise rests on it; apart from that, {said}"
        )

    def _outcome(self) -> str:
        """Return what was found of the promise, as far as it could be kept."""
        if self.invariant_breaks:
            return f"the invariant broke at {self.invariant_breaks} steps"
        if self.broken:
            return "the promise was broken, beyond doubt"
        if self.proved:
            return "the mean cost-to-go stays within the budget at all steps"
        if self.worst_mean_cost_to_go <= self.budget[self.channel]:
            return (
                "no break was found; more lifetimes are needed to be sure of the means"
            )
        return "the mean cost-to-go exceeds the budget, which may be chance"

    def summary(self) -> dict[str, Any]:
        """Return the account in a few numbers, fit for JSON."""
        return {
            "lifetimes": self.lifetimes,
            "steps": self.steps,
            "budget": self.budget.tolist(),
            "channel": self.channel,
            "worst_mean_cost_to_go": self.worst_mean_cost_to_go,
            "worst_step": self.worst_step,
            "confidence": self.confidence,
            "upper_confidence": self.upper_confidence,
            "worst_mean_excess": _finite(self.worst_mean_excess),
            "fraction_over": self.fraction_over,
            "invariant_breaks": self.invariant_breaks,
            "assumption_breaks": self.assumption_breaks,
            "reward_per_step": self.reward_per_step,
            "broken": self.broken,
            "proved": self.proved,
            "message": self.message,
            "per_phase": {
                name: {
                    "share": account.share,
                    "cost": account.cost.tolist(),
                    "cost_to_go": account.cost_to_go.tolist(),
                    "promise": [_finite(x) for x in account.promise.tolist()],
                    "excess": [_finite(x) for x in account.excess.tolist()],
                }
                for name, account in self.per_phase.items()
            },
        }

    def __str__(self) -> str:
        k = self.channel
        budget = f"{self.budget[k]:.6g}"
        where = f" (channel {k})" if self.budget.size > 1 else ""
        lines = [
            f"{self.lifetimes} lifetimes of {self.steps} steps: {self.message}",
            f"  mean cost-to-go at worst  {self.worst_mean_cost_to_go:.4f} at step "
            f"{self.worst_step}, budget {budget}{where}",
            f"  with {100 * self.confidence:g} % confidence   at most "
            f"{self.upper_confidence:.4f}, at every step",
            f"  lifetimes over budget     at most {100 * self.fraction_over:.1f} % "
            f"at any step",
        ]
        if self.promises:
            lines[3:3] = [
                f"  beyond the promise        {self.worst_mean_excess:+.4f} on "
                f"average, at worst",
                f"  invariant w <= b <= d     broken at {self.invariant_breaks} steps",
            ]
        lines.append("  phase     share     cost  cost-to-go   promise   beyond it")
        for name, account in self.per_phase.items():
            lines.append(
                f"  {name:<8}{100 * account.share:6.1f} %{account.cost[k]:9.4f}"
                f"{account.cost_to_go[k]:12.4f}{account.promise[k]:10.4f}"
                f"{account.excess[k]:12.4f}"
            )
        return "\n".join(lines)

    def __repr__(self) -> str:
        return (
            f"Audit({self.lifetimes} lifetimes of {self.steps} steps, {self.message})"
        )


def _finite(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
