"""Is it a solver?  What every planner has to get right, whatever its method.

:func:`check_solver` runs a solver over problems whose optima are known and judges each
answer by its own evaluation of the policy and by the occupation LP of
:mod:`escapade.testing.reference`, never by what the solver says of itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import FrozenInstanceError, fields, is_dataclass
from typing import Any

import numpy as np

from escapade.model.cmdp import CMDP
from escapade.model.evaluation import evaluate
from escapade.planning.solution import STATUS_ADVICE, Solution
from escapade.planning.solve import solve
from escapade.testing.known_optima import Instance, instances
from escapade.testing.laws import require
from escapade.testing.reference import least_weighted_cost, reference_optimum
from escapade.testing.relabelling import relabelled

__all__ = ["check_solution", "check_solver"]

_NO_BETTER_THAN = 1e-7  # digits of the reference
_NO_ANSWER = ("infeasible", "unresolved")


def check_solver(
    solver: Any,
    *,
    on: Iterable[Instance] | None = None,
    precision: float = 1e-6,
    uncertainty: Callable[[CMDP], Any] | None = None,
) -> None:
    """Hold a solver to the laws of planning.

    It has to be a frozen value that says whether it is robust, give the same answer
    when asked again, and satisfy :func:`check_solution` on every instance.  An exact
    solver must moreover not mind how states are numbered, and its value must scale
    with the rewards.

    Parameters
    ----------
    solver
        The solver.
    on
        The instances; those of :func:`~escapade.testing.known_optima.instances` by
        default.
    precision
        How exact an answer has to be that calls itself optimal, relative to its value
        (absolute below 1).
    uncertainty
        For a robust solver: the set to plan under, given a problem.  It must hold that
        problem's own transitions and no others; by default an L1 ball of radius 0.

    Raises
    ------
    AssertionError
        With the law, the instance and the numbers.

    Examples
    --------
    >>> import escapade as ep
    >>> check_solver(ep.OccupationLP())
    """
    name = type(solver).__name__
    robust = getattr(solver, "robust", None)
    require(isinstance(robust, bool), "says whether it is robust", name, robust)
    require(_is_frozen(solver), "is a frozen value", name, "an attribute could be set")
    for instance in instances() if on is None else on:
        place = f"{name} on {instance.name!r}"
        sets = _sets(instance.cmdp, uncertainty) if robust else None
        first = solve(instance.cmdp, solver, uncertainty=sets)
        check_solution(first, instance, precision=precision, exact=not robust)
        again = solve(instance.cmdp, solver, uncertainty=sets)
        same = first.value == again.value or math.isnan(first.value)
        require(
            same and first.status == again.status,
            "gives the same answer when asked again",
            place,
            f"{first.status} {first.value!r}, then {again.status} {again.value!r}",
        )
        if not robust:
            _check_relabelling(solver, first, instance, precision, place)
            _check_scaling(solver, first, instance, precision, place)


def check_solution(
    answer: Solution,
    instance: Instance,
    *,
    precision: float = 1e-6,
    exact: bool = True,
) -> None:
    """Hold one answer to what is known about its instance.

    Parameters
    ----------
    answer
        The answer.
    instance
        The problem that was asked, with its optimum.
    precision
        As in :func:`check_solver`.
    exact
        Whether a policy has to be found wherever there is one.  Robust solvers may
        promise more than the instance asks for, such as a budget kept at all times,
        and find no policy that does it.
    """
    cmdp = instance.cmdp
    place = f"{answer.solver} on {instance.name!r}"
    known = reference_optimum(cmdp)
    if instance.optimum is None:
        require(
            not known.feasible, "instance: infeasible as stated", place, known.value
        )
    else:
        off = abs(known.value - instance.optimum)
        require(
            off <= _NO_BETTER_THAN * max(1.0, abs(instance.optimum)),
            "instance: optimum as stated",
            place,
            f"{known.value!r} by LP, {instance.optimum!r} stated",
        )
    require(answer.status in STATUS_ADVICE, "has a status", place, answer.status)
    require(bool(answer.message), "says what to do", place, repr(answer.message))
    if instance.optimum is None or (not exact and answer.status in _NO_ANSWER):
        _check_refusal(answer, cmdp, place, exact=exact)
        return
    _check_policy(answer, cmdp, precision, place)
    _check_bounds(answer, instance.optimum, precision, place)


def _check_refusal(answer: Solution, cmdp: CMDP, place: str, *, exact: bool) -> None:
    """Hold the answer that there is no policy to the reasons it gives."""
    found = (answer.policy, answer.value, answer.lower)
    expected = ("infeasible",) if exact else _NO_ANSWER
    require(answer.status in expected, "finds it infeasible", place, answer.status)
    require(answer.policy is None, "infeasible: no policy", place, found)
    require(math.isnan(answer.value), "infeasible: value NaN", place, found)
    require(answer.lower == -math.inf, "infeasible: lower −inf", place, found)
    if not exact or answer.status != "infeasible":
        return
    require(answer.upper == -math.inf, "infeasible: upper −inf", place, answer.upper)
    known = reference_optimum(cmdp)
    least = np.full(cmdp.n_costs, np.nan)
    if answer.least_costs is not None:
        least = answer.least_costs
    require(
        bool(np.allclose(least, known.least_costs, rtol=1e-6, atol=1e-6)),
        "infeasible: least costs",
        place,
        f"{answer.least_costs} given, {known.least_costs} by LP",
    )
    weights = answer.multipliers
    reached = least_weighted_cost(cmdp, weights)
    allowed = float(weights @ cmdp.budget)
    require(
        bool((weights >= 0.0).all()) and reached > allowed,
        "infeasible: the multipliers prove it",
        place,
        f"weights {weights}: at least {reached:.8g}, budgets {allowed:.8g}",
    )


def _check_policy(answer: Solution, cmdp: CMDP, precision: float, place: str) -> None:
    """Evaluate the policy afresh and compare."""
    policy = answer.policy
    if policy is None:
        require(False, "finds a policy", place, answer.status)
        return
    judged = evaluate(cmdp, policy)
    scale = max(1.0, abs(judged.start_value))
    require(
        abs(judged.start_value - answer.value) <= precision * scale,
        "value is that of the policy",
        place,
        f"{answer.value!r} given, {judged.start_value!r} evaluated",
    )
    sizes = np.maximum(1.0, np.abs(judged.start_costs))
    require(
        bool((np.abs(judged.start_costs - answer.costs) <= precision * sizes).all()),
        "costs are those of the policy",
        place,
        f"{answer.costs} given, {judged.start_costs} evaluated",
    )
    over = judged.start_costs - cmdp.budget
    require(
        bool((over <= precision * np.maximum(1.0, cmdp.budget)).all()),
        "keeps every budget",
        place,
        f"costs {judged.start_costs}, budgets {cmdp.budget}",
    )


def _check_bounds(
    answer: Solution, optimum: float, precision: float, place: str
) -> None:
    scale = max(1.0, abs(optimum))
    slack = _NO_BETTER_THAN * scale
    numbers = f"[{answer.lower!r}, {answer.upper!r}] around {optimum!r}"
    require(answer.lower <= optimum + slack, "lower bound holds", place, numbers)
    require(answer.upper >= optimum - slack, "upper bound holds", place, numbers)
    require(
        answer.lower <= answer.value,
        "lower bound is what the policy earns",
        place,
        f"{answer.lower!r} above {answer.value!r}",
    )
    require(
        bool((answer.multipliers >= 0.0).all()),
        "multipliers are at least 0",
        place,
        answer.multipliers,
    )
    if answer.status == "optimal":
        wide = answer.upper - answer.lower
        require(wide <= precision * scale, "optimal: the bounds meet", place, numbers)
        require(
            abs(answer.value - optimum) <= precision * scale,
            "optimal: the value is the optimum",
            place,
            f"{answer.value!r} for {optimum!r}",
        )


def _check_relabelling(
    solver: Any, first: Solution, instance: Instance, precision: float, place: str
) -> None:
    order = np.arange(instance.cmdp.n_states)[::-1]
    other = solve(relabelled(instance.cmdp, order), solver)
    _check_same(first.value, other.value, precision, "minds no relabelling", place)


def _check_scaling(
    solver: Any, first: Solution, instance: Instance, precision: float, place: str
) -> None:
    cmdp = instance.cmdp
    bigger = cmdp.replace(reward=4.0 * cmdp.reward, reward_max=4.0 * cmdp.reward_max)
    other = solve(bigger, solver)
    _check_same(
        4.0 * first.value, other.value, precision, "scales with the rewards", place
    )


def _check_same(
    expected: float, found: float, precision: float, law: str, place: str
) -> None:
    both_none = math.isnan(expected) and math.isnan(found)
    near = abs(expected - found) <= 2.0 * precision * max(1.0, abs(expected))
    require(both_none or near, law, place, f"{expected!r} expected, {found!r} found")


def _is_frozen(solver: Any) -> bool:
    if not is_dataclass(solver):
        return False
    names = [field.name for field in fields(solver)] or ["robust"]
    try:
        setattr(solver, names[0], getattr(solver, names[0]))
    except (FrozenInstanceError, AttributeError, TypeError):
        return True
    return False


def _sets(cmdp: CMDP, uncertainty: Callable[[CMDP], Any] | None) -> Any:
    if uncertainty is not None:
        return uncertainty(cmdp)
    from escapade.uncertainty.l1_ball import L1Ball

    return L1Ball(cmdp, radius=0.0)
