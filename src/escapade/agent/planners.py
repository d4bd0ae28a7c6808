"""The paper's four optimisers, as planners of the three policies.

======================  ===========================================================
``planner``             what plans
======================  ===========================================================
``auto``                whatever is best at hand; see the policy in question
``linear-program``      the occupation linear program; with a set, its robust form
``dual-linear-program``  the dual linear program, for the nominal model
``dynamic-programming``  Lagrangian robust dynamic programming
``policy-gradient``     the robust-constrained policy gradient (Algorithm 2)
``slack``               dynamic programming over states and promises, to exploit only
======================  ===========================================================

A planner may be named for all three policies, or for each by a mapping with the keys
``exploit``, ``explore`` and ``escape``.  What it returns is evaluated robustly before
it is used, and played only as far as the ledger allows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

from escapade.errors import refusal
from escapade.model.cmdp import CMDP
from escapade.planning.base import RobustSolver, Solver
from escapade.planning.dual_lp import DualLP
from escapade.planning.lagrangian_robust_dp import LagrangianRobustDP
from escapade.planning.occupation_lp import OccupationLP
from escapade.planning.policy_gradient import PolicyGradient
from escapade.planning.robust_lp import RobustLP
from escapade.planning.slack_dp import SlackDP
from escapade.planning.solution import Solution
from escapade.planning.solve import solve
from escapade.uncertainty.base import UncertaintySet

__all__ = [
    "PLANNED",
    "Planner",
    "Planners",
    "check_channels",
    "plan_with",
    "planner_of",
    "read_planners",
]

Planner = Literal[
    "auto",
    "linear-program",
    "dual-linear-program",
    "dynamic-programming",
    "policy-gradient",
    "slack",
]
"""How a policy is planned."""

Planned = Literal["exploit", "explore", "escape"]

Planners = Planner | Mapping[Planned, Planner]

PLANNED: tuple[Planned, ...] = get_args(Planned)

_ITERATIONS = 300
"""Steps of a policy gradient: a lifetime plans often, and the ledger forgives."""


def read_planners(value: object) -> dict[Planned, Planner]:
    """Return the planner of each policy."""
    names = get_args(Planner)
    if isinstance(value, str):
        if value not in names:
            raise refusal("planner", f"one of {list(names)}", repr(value))
        name: Planner = value  # type: ignore[assignment]  # as was just checked
        rest: Planner = "auto" if name == "slack" else name
        return {"exploit": name, "explore": rest, "escape": rest}
    if not isinstance(value, Mapping):
        raise refusal("planner", "a name, or a mapping", repr(value))
    for policy, name in value.items():
        if policy not in PLANNED:
            raise refusal("planner", f"keys out of {list(PLANNED)}", repr(policy))
        if name not in names:
            raise refusal(f"planner[{policy!r}]", f"one of {list(names)}", repr(name))
        if name == "slack" and policy != "exploit":
            raise refusal(
                f"planner[{policy!r}]", "a stationary policy's planner", repr(name)
            )
    return {policy: value.get(policy, "auto") for policy in PLANNED}


def check_channels(value: Planners, n_costs: int) -> None:
    """Refuse planners that are for one budget where there are several."""
    if n_costs > 1 and planner_of(value, "exploit") == "slack":
        raise refusal(
            "planner", f"one for {n_costs} budgets", "'slack', which is for one"
        )


def planner_of(value: Planners, policy: Planned) -> Planner:
    """Return the planner of one policy."""
    return read_planners(value)[policy]


def plan_with(planner: Planner, problem: CMDP, sets: UncertaintySet | None) -> Solution:
    """Solve a problem with the named planner; with its sets where it can use them."""
    if planner == "auto":
        return solve(problem)
    if planner == "dual-linear-program":
        return solve(problem, DualLP())
    if planner == "linear-program" and sets is None:
        return solve(problem, OccupationLP())
    return solve(problem, _robust(planner), uncertainty=sets)


def _robust(planner: Planner) -> Solver | RobustSolver:
    if planner == "linear-program":
        return RobustLP(refine=False)
    if planner == "dynamic-programming":
        return LagrangianRobustDP()
    if planner == "policy-gradient":
        return PolicyGradient(iterations=_ITERATIONS)
    return SlackDP()
