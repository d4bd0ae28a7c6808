"""The conformance suite of solvers passes what is right and catches what is not."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest

from escapade.errors import InvalidInputError, SolverError
from escapade.model import CMDP, Policy, evaluate, occupancy
from escapade.planning import (
    ColumnGeneration,
    DualLP,
    LagrangianRobustDP,
    OccupationLP,
    PolicyGradient,
    PromiseDP,
    RobustLP,
    SlackDP,
)
from escapade.testing import (
    Instance,
    check_solution,
    check_solver,
    instances,
    reference,
    reference_optimum,
    relabelled,
    relabelled_policy,
)
from escapade.testing.laws import require

BINDS, _, _, _, OUT_OF_REACH, TWO, *_ = instances()


@pytest.mark.parametrize("instance", instances(), ids=lambda i: i.name)
def test_the_stated_optima_are_those_of_the_linear_program(instance):
    known = reference_optimum(instance.cmdp)
    assert known.feasible == (instance.optimum is not None)
    if known.feasible:
        assert known.value == pytest.approx(instance.optimum, abs=1e-9)
        cmdp = instance.cmdp
        assert (known.costs <= cmdp.budget + 1e-9).all()
        slack = known.multipliers * (cmdp.budget - known.costs)
        np.testing.assert_allclose(slack, 0.0, atol=1e-9)
    assert instance.source


def test_names_differ():
    names = [instance.name for instance in instances()]
    assert len(set(names)) == len(names)


def test_the_reference_knows_the_least_costs():
    known = reference_optimum(OUT_OF_REACH.cmdp)
    assert known.least_costs == pytest.approx([1.0])
    assert math.isnan(known.value)
    assert known.visits is None
    both = reference.least_weighted_cost(TWO.cmdp, np.array([1.0, 1.0]))
    assert both == pytest.approx(0.0)


def test_the_reference_s_flow_is_the_occupancy_of_its_policy():
    for instance in instances():
        known = reference_optimum(instance.cmdp)
        if known.visits is None:
            continue
        cmdp = instance.cmdp
        by_state = np.add.reduceat(known.visits, cmdp.state_ptr[:-1])
        seen = by_state[cmdp.pair_state] > 1e-9
        weights = np.zeros(cmdp.n_pairs)
        weights[seen] = known.visits[seen] / by_state[cmdp.pair_state][seen]
        unseen = by_state <= 1e-9
        weights[cmdp.state_ptr[:-1][unseen]] = 1.0
        policy = Policy.from_pair_weights(cmdp, weights)
        np.testing.assert_allclose(
            occupancy(cmdp, policy), known.visits, atol=1e-7 / (1 - cmdp.discount)
        )


def test_a_reference_that_does_not_balance_is_no_reference(monkeypatch):
    honest = reference.linprog

    def crooked(*args, **keywords):
        answer = honest(*args, **keywords)
        answer.x = answer.x + 1.0
        return answer

    def broken(*args, **keywords):
        answer = honest(*args, **keywords)
        answer.status, answer.message = 4, "numerical difficulties"
        return answer

    monkeypatch.setattr(reference, "linprog", crooked)
    with pytest.raises(SolverError, match="expected a flow that balances"):
        reference_optimum(BINDS.cmdp)
    monkeypatch.setattr(reference, "linprog", broken)
    with pytest.raises(SolverError, match="found: numerical difficulties"):
        reference_optimum(BINDS.cmdp)


@pytest.mark.parametrize("solver", [OccupationLP(), DualLP(), ColumnGeneration()])
def test_solvers_of_this_library_conform(solver):
    check_solver(solver)


ONE_BUDGET = [instance for instance in instances() if instance.cmdp.n_costs == 1]


@pytest.mark.parametrize("solver", [SlackDP(), PromiseDP()])
def test_robust_solvers_of_one_budget_conform(solver):
    check_solver(solver, on=ONE_BUDGET)


@pytest.mark.slow
@pytest.mark.parametrize("solver", [RobustLP(), LagrangianRobustDP()])
def test_robust_solvers_of_many_budgets_conform(solver):
    check_solver(solver)


@pytest.mark.slow
def test_the_policy_gradient_conforms():
    check_solver(PolicyGradient(), on=[BINDS, OUT_OF_REACH, instances()[-1]])


@dataclass(frozen=True, slots=True, kw_only=True)
class Robust:
    """An exact solver that calls itself robust: it takes the set as it comes."""

    robust: ClassVar[bool] = True

    def solve(self, problem, *, uncertainty, objective):
        assert uncertainty.n_pairs == problem.n_pairs
        answer = OccupationLP().solve(problem)
        if answer.policy is None:
            return replace(answer, status="unresolved", upper=math.inf)
        return replace(answer, status="feasible")


def test_a_robust_solver_may_leave_a_problem_unresolved():
    check_solver(Robust())
    asked = []

    def sets(cmdp):
        from escapade.uncertainty import L1Ball

        asked.append(cmdp)
        return L1Ball(cmdp, radius=0.0)

    check_solver(Robust(), on=[BINDS], uncertainty=sets)
    assert asked == [BINDS.cmdp]


def spoil(change):
    """A solver whose answers are changed on their way out."""

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Spoilt:
        robust: ClassVar[bool] = False

        def solve(self, problem):
            return change(OccupationLP().solve(problem), problem)

    return Spoilt()


def only(which, /, **changes):
    def change(answer, _problem):
        return replace(answer, **changes) if answer.status == which else answer

    return change


def greedy(answer, problem):
    """Play the dearest action and call it what it was."""
    if answer.policy is None:
        return answer
    best = problem.state_ptr[:-1] + np.array(
        [
            problem.reward[low:high].argmax()
            for low, high in zip(
                problem.state_ptr[:-1], problem.state_ptr[1:], strict=True
            )
        ]
    )
    policy = Policy.deterministic(problem.pair_action[best], problem.n_actions)
    result = evaluate(problem, policy)
    return replace(
        answer, policy=policy, value=result.start_value, costs=result.start_costs
    )


def lazy(answer, problem):
    """Answer every problem as if its rewards were small."""
    if answer.policy is None or problem.reward_max < 2.0:
        return answer
    return replace(
        answer, value=answer.value / 2, lower=answer.lower / 2, status="feasible"
    )


def numbered(answer, problem):
    """Depend on how the states are numbered."""
    if answer.policy is None or problem.start[0] > 0:
        return answer
    return replace(answer, value=answer.value + 1.0)


BROKEN = {
    "a value that the policy does not earn": (
        only("optimal", value=1.4),
        "value is that of the policy",
    ),
    "costs that are not those of the policy": (
        only("optimal", costs=np.array([0.5])),
        "costs are those of the policy",
    ),
    "a budget that is not kept": (greedy, "keeps every budget"),
    "a lower bound that is too high": (only("optimal", lower=1.6), "lower bound holds"),
    "an upper bound that is too low": (only("optimal", upper=1.4), "upper bound holds"),
    "a lower bound above the value": (
        only("optimal", lower=1.5 + 5e-8),
        "lower bound is what the policy earns",
    ),
    "bounds that do not meet": (
        only("optimal", upper=1.6),
        "optimal: the bounds meet",
    ),
    "a negative multiplier": (
        only("optimal", multipliers=np.array([-0.5])),
        "multipliers are at least 0",
    ),
    "no policy where there is one": (
        only("optimal", policy=None),
        "finds a policy",
    ),
    "no word of advice": (only("optimal", message=""), "says what to do"),
}
BROKEN_REFUSALS = {
    "feasible where nothing is": (
        only("infeasible", status="feasible"),
        "finds it infeasible",
    ),
    "a policy where there is none": (
        only("infeasible", policy=Policy([[1.0, 0.0]])),
        "infeasible: no policy",
    ),
    "a value of nothing": (only("infeasible", value=0.0), "infeasible: value NaN"),
    "a lower bound of nothing": (only("infeasible", lower=0.0), "infeasible: lower"),
    "an upper bound of nothing": (only("infeasible", upper=0.0), "infeasible: upper"),
    "no least costs": (only("infeasible", least_costs=None), "infeasible: least costs"),
    "wrong least costs": (
        only("infeasible", least_costs=np.array([0.5])),
        "infeasible: least costs",
    ),
    "multipliers that prove nothing": (
        only("infeasible", multipliers=np.array([0.0])),
        "infeasible: the multipliers prove it",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_wrong_answer_is_caught(name):
    change, law = BROKEN[name]
    with pytest.raises(AssertionError, match=law) as caught:
        check_solver(spoil(change), on=[BINDS])
    assert "'a budget that binds'" in str(caught.value)


@pytest.mark.parametrize("name", BROKEN_REFUSALS)
def test_a_wrong_refusal_is_caught(name):
    change, law = BROKEN_REFUSALS[name]
    with pytest.raises(AssertionError, match=law):
        check_solver(spoil(change), on=[OUT_OF_REACH])


def test_a_policy_that_is_not_optimal_is_caught():
    def modest(answer, problem):
        policy = Policy.deterministic([1], 2)
        result = evaluate(problem, policy)
        return replace(
            answer,
            policy=policy,
            value=result.start_value,
            costs=result.start_costs,
            lower=1.5,
        )

    with pytest.raises(AssertionError, match="lower bound is what the policy earns"):
        check_solver(spoil(modest), on=[BINDS])


def test_laws_between_answers_are_held():
    with pytest.raises(AssertionError, match="scales with the rewards"):
        check_solver(spoil(lazy), on=[BINDS])
    gate = instances()[-1]
    with pytest.raises(AssertionError, match="minds no relabelling"):
        check_solver(spoil(numbered), on=[gate])
    count = iter(range(10))

    def moody(answer, _problem):
        return replace(answer, value=answer.value + 1e-9 * next(count))

    with pytest.raises(AssertionError, match="gives the same answer when asked again"):
        check_solver(spoil(moody), on=[BINDS])


def test_a_solver_is_a_frozen_value_that_says_what_it_is():
    class Loose:
        robust = False

        def solve(self, problem):
            return OccupationLP().solve(problem)

    @dataclass
    class Open(Loose):
        depth: int = 3

    class Silent:
        pass

    for solver in (Loose(), Open()):
        with pytest.raises(AssertionError, match="is a frozen value"):
            check_solver(solver)
    with pytest.raises(AssertionError, match="says whether it is robust"):
        check_solver(Silent())


def test_an_instance_that_is_wrong_about_itself_is_caught():
    answer = OccupationLP().solve(BINDS.cmdp)
    wrong = replace(BINDS, optimum=1.25)
    with pytest.raises(AssertionError, match="instance: optimum as stated"):
        check_solution(answer, wrong)
    with pytest.raises(AssertionError, match="instance: infeasible as stated"):
        check_solution(answer, replace(BINDS, optimum=None))
    own = Instance(name="own", cmdp=BINDS.cmdp, optimum=1.5, source="by hand")
    check_solution(answer, own)


def test_a_law_that_holds_is_silent():
    require(True, "adds up", "here", 2)
    with pytest.raises(AssertionError, match=r"^here: adds up: 2$"):
        require(False, "adds up", "here", 2)


def test_relabelling_moves_everything_with_its_state():
    cmdp = CMDP(
        [[[0.0, 1.0]], [[0.0, 1.0]]],
        [[0.25], [1.0]],
        [[0.5], [0.0]],
        discount=0.5,
        budget=1.0,
        state_names=["in", "out"],
        coordinates=[[0.0], [1.0]],
    )
    there = relabelled(cmdp, [1, 0])
    assert there.state_names == ("out", "in")
    assert there.coordinates.tolist() == [[1.0], [0.0]]
    assert there.start.tolist() == [0.0, 1.0]
    assert there.successors(1, 0)[0].tolist() == [0]
    policy = Policy.uniform(cmdp)
    assert evaluate(there, relabelled_policy(policy, [1, 0])).start_value == (
        evaluate(cmdp, policy).start_value
    )
    with pytest.raises(InvalidInputError, match=r"order: expected the states 0\.\.1"):
        relabelled(cmdp, [0, 0])
