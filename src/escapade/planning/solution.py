"""What a planner hands back: a policy, what it is worth, and how far that is certain.

``value``, ``lower`` and ``upper`` refer to the objective that was asked for, from the
start distribution.  ``lower`` is what the returned policy was evaluated to earn, less
the certified error of that evaluation; ``upper`` is a Lagrangian bound,
``max_π V_π − λ (C_π − d)`` for multipliers ``λ >= 0``, which holds for every ``λ`` and
is computed by dynamic programming, not taken from the solver.  So the optimum lies in
``[lower, upper]`` even if the solver was wrong about everything.

Under an uncertainty set ``costs`` are the worst-case costs, ``lower`` is what a robust
evaluation of the policy guarantees, and ``upper`` bounds what any policy within the
worst-case budgets can do.

Infeasibility is a result: status ``"infeasible"``, no policy, value NaN, bounds
``(−inf, −inf)``, and the least cost that each channel can reach.  Where a robust solver
found no policy within the budgets and has no proof that there is none, the status is
``"unresolved"``: no policy, value NaN, and bounds ``(−inf, upper)``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, TypeAlias

import numpy as np

from escapade.errors import refusal
from escapade.model.memory_policy import MemoryPolicy
from escapade.model.policy import Policy
from escapade.typing import ArrayLike, FloatArray

__all__ = ["STATUS_ADVICE", "Solution", "Status"]

Status: TypeAlias = Literal[
    "optimal",
    "feasible",
    "imprecise",
    "infeasible",
    "unresolved",
    "iteration_limit",
    "time_limit",
]

STATUS_ADVICE: Mapping[str, str] = MappingProxyType(
    {
        "optimal": "The policy is optimal within the stated bounds; use it.",
        "feasible": (
            "The policy keeps every budget; how much better another could be is the "
            "distance from lower to upper."
        ),
        "imprecise": (
            "The policy keeps every budget and the bounds hold, but they are wider "
            "than asked for; try another solver, or a smaller discount."
        ),
        "infeasible": (
            "No policy keeps every budget; raise the budgets to the least costs "
            "given, or change the model."
        ),
        "unresolved": (
            "No policy that keeps every budget was found, and none was proved not to "
            "exist; raise the budgets, or shrink the uncertainty set."
        ),
        "iteration_limit": (
            "The iterations ran out; the bounds hold, but a larger max_iterations may "
            "find a better policy."
        ),
        "time_limit": (
            "The time ran out; the bounds hold, but a larger time_limit or "
            "ColumnGeneration may find a better policy."
        ),
    }
)
"""Every status, with the sentence that says what to do about it."""


def _frozen(value: ArrayLike) -> FloatArray:
    array = np.array(value, dtype=np.float64)
    array.flags.writeable = False
    return array


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Solution:
    """The answer to a planning problem, with its certificate.

    Attributes
    ----------
    policy
        The policy found, stationary or, from some robust solvers, with a memory;
        ``None`` when no policy keeps the budgets, or none was found that does.
    value
        What the policy earns from the start distribution, as evaluated afresh.
    costs
        What it costs there, one entry a channel.
    lower, upper
        Bounds on the optimum; ``lower`` is earned by ``policy`` itself.
    status
        One of ``"optimal"``, ``"feasible"``, ``"imprecise"``, ``"infeasible"``,
        ``"unresolved"``, ``"iteration_limit"``, ``"time_limit"``.
    message
        What the status means here and what to do about it.
    multipliers
        How much the optimum would rise per unit of each budget, ``(K,)``.  For an
        infeasible problem: weights whose weighted least cost exceeds the weighted
        budgets, which proves that no policy can do it.
    residuals
        Named numbers that should be small: how far the budgets are exceeded, the
        error of the evaluation, the failure of complementary slackness, the gap.
    iterations
        Iterations of the solver, as it counts them.
    seconds
        Wall time.
    solver
        Name of the solver.
    least_costs
        The least cost each channel can reach on its own, ``(K,)``; given when the
        problem is infeasible, else ``None``.
    """

    policy: Policy | MemoryPolicy | None
    value: float
    costs: FloatArray
    lower: float
    upper: float
    status: Status
    message: str
    multipliers: FloatArray
    iterations: int
    seconds: float
    solver: str
    residuals: Mapping[str, float] = field(default_factory=dict)
    least_costs: FloatArray | None = None

    def __post_init__(self) -> None:
        if self.status not in STATUS_ADVICE:
            raise refusal("status", f"one of {sorted(STATUS_ADVICE)}", self.status)
        object.__setattr__(self, "costs", _frozen(self.costs))
        object.__setattr__(self, "multipliers", _frozen(self.multipliers))
        object.__setattr__(self, "residuals", MappingProxyType(dict(self.residuals)))
        if self.least_costs is not None:
            object.__setattr__(self, "least_costs", _frozen(self.least_costs))

    @property
    def gap(self) -> float:
        """Distance from ``lower`` to ``upper``; NaN without a policy."""
        return self.upper - self.lower if self.policy is not None else float("nan")

    @property
    def is_feasible(self) -> bool:
        """Whether a policy that keeps the budgets was found."""
        return self.policy is not None

    @property
    def is_optimal(self) -> bool:
        """Whether the bounds meet to the precision asked for."""
        return self.status == "optimal"

    def __repr__(self) -> str:
        costs = ", ".join(f"{c:.6g}" for c in self.costs)
        return (
            f"Solution({self.status}, value {self.value:.8g} in "
            f"[{self.lower:.8g}, {self.upper:.8g}], costs ({costs}), "
            f"{self.solver}, {self.seconds:.2g} s)"
        )
