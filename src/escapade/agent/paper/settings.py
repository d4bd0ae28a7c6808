"""Settings of the paper's algorithm: its tests, its budgets, its relaxations.

The defaults are Algorithm 1 and the Escape Budget Lemma with their errors mended.  Each
of the paper's relaxations ("From worst-case to practical assumptions") is a field with
a name for the worst case and a name for the relaxation; ``docs/paper-mode.md`` says of
each what it gives up and what it keeps.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal, get_args

from escapade.errors import refusal
from escapade.model.arguments import read_count, read_number

__all__ = ["PaperSettings"]

Test = Literal["corrected", "in-expectation", "as-printed"]
Requirements = Literal["strict", "reported"]
Start = Literal["given", "random-known"]
ValueBound = Literal["worst", "empirical"]
EscapeCost = Literal["worst", "confidence", "standard-error"]
Sampling = Literal["quota", "adaptive"]
SafeReturn = Literal["after-escape", "always", "when-needed"]
Stop = Literal["when-unlikely", "when-certified", "when-all-known"]
Diameter = Literal["worst", "reversible"]
Discounting = Literal["one", "real"]
Split = Literal["fixed", "by-known-states"]
Accuracy = Literal["fixed", "falling"]

_CHOICES = {
    "test": get_args(Test),
    "requirements": get_args(Requirements),
    "start": get_args(Start),
    "value_bound": get_args(ValueBound),
    "escape_cost": get_args(EscapeCost),
    "sampling": get_args(Sampling),
    "safe_return": get_args(SafeReturn),
    "stop": get_args(Stop),
    "diameter": get_args(Diameter),
    "discounting": get_args(Discounting),
    "budget_split": get_args(Split),
    "epsilon": get_args(Accuracy),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperSettings:
    """Settings of :class:`escapade.E4` in ``mode="paper"``.

    Attributes
    ----------
    test
        Which test lets the agent wander: ``"corrected"`` looks at the worst next state,
        and the ledger stands behind it.  ``"in-expectation"`` and ``"as-printed"`` are
        the paper's, alone; they overdraw the promise, and
        :attr:`escapade.agent.paper.report.PaperReport.overdrawn` counts how often.
    requirements
        ``"strict"``: if a requirement of the Escape Budget Lemma fails, no agent is
        born, and the error says which and by how much.  ``"reported"``: the agent
        plans with the whole budget where the lemma leaves none; the ledger still
        decides, so the promise stands, but that a step of wandering is always left
        does not.
    start
        ``"given"``, or ``"random-known"``: :func:`escapade.simulate` begins in a known
        state drawn evenly, as Algorithm 1 does.
    known_budget, return_budget
        d'' and d_s; by default the largest that the lemma allows, and what the safe
        return costs at worst.
    horizon
        T, the steps of a trajectory and of a safe return; by default the ε-horizon.
    value_bound
        G: r_max (1 − γ^T)/(1 − γ), or the largest return of any trajectory so far.
    escape_cost
        What a step in an unknown state is charged: c_max, the confidence bound on its
        mean, or its mean and a standard error, as printed.
    sampling
        ``"quota"``: every pair ``known_after`` times.  ``"adaptive"``: at most so
        often, and no more once ``accuracy`` is reached.
    accuracy
        Widths that are narrow enough, as shares of what is possible: one number for
        all, or three: for transitions, rewards and costs.
    safe_return
        The T-step return follows every escape; or every trajectory, as printed; or it
        ends as soon as the promise has recovered (``recharge`` of the settings).
    stop
        Exploration ends once the chance to reach an unknown state within T steps is at
        most ε/G; or once the policy is certified to be within ε of the best; or only
        when nothing unknown can be reached.
    diameter
        D: how long the escape takes from the farthest unknown state, or from those
        that can be entered from known ones.
    discounting
        Whether requirements and d_s are worked out with γ = 1, or with the real one.
    budget_split
        d'' as the lemma has it, or moved towards d as more states are known.
    epsilon
        ε as in the settings, or falling to it from the largest that makes sense.
    """

    test: Test = "corrected"
    requirements: Requirements = "strict"
    start: Start = "given"
    known_budget: float | None = None
    return_budget: float | None = None
    horizon: int | None = None
    value_bound: ValueBound = "worst"
    escape_cost: EscapeCost = "worst"
    sampling: Sampling = "quota"
    accuracy: float | tuple[float, float, float] = 0.25
    safe_return: SafeReturn = "after-escape"
    stop: Stop = "when-unlikely"
    diameter: Diameter = "worst"
    discounting: Discounting = "one"
    budget_split: Split = "fixed"
    epsilon: Accuracy = "fixed"

    def __post_init__(self) -> None:
        for name, allowed in _CHOICES.items():
            if getattr(self, name) not in allowed:
                raise refusal(
                    name, f"one of {list(allowed)}", repr(getattr(self, name))
                )
        for name in ("known_budget", "return_budget"):
            value = getattr(self, name)
            if value is not None and not read_number(name, value) >= 0.0:
                raise refusal(name, "a number of at least 0", value)
        if self.horizon is not None:
            read_count("horizon", self.horizon, least=1)
        widths = self.accuracy
        given = widths if isinstance(widths, (tuple, list)) else (widths,) * 3
        if len(given) != 3:
            raise refusal("accuracy", "one number, or three", repr(widths))
        for width in given:
            if not 0.0 <= read_number("accuracy", width) <= 1.0:
                raise refusal("accuracy", "numbers in [0, 1]", width)
        if isinstance(widths, list):  # as it comes from a file
            object.__setattr__(self, "accuracy", tuple(widths))

    @property
    def accuracies(self) -> tuple[float, float, float]:
        """Widths that are narrow enough, for transitions, rewards and costs."""
        widths = self.accuracy
        if isinstance(widths, tuple):
            return widths
        return (widths, widths, widths)

    @property
    def relaxed(self) -> tuple[str, ...]:
        """Names of the settings that are not the worst case's, in order."""
        plain = PaperSettings()
        return tuple(
            field.name
            for field in fields(self)
            if getattr(self, field.name) != getattr(plain, field.name)
        )
