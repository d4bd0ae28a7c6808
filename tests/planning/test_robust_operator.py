"""The robust operator: its certificate, its jumps, its restarts."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import escapade as ep
from escapade.planning import robust_operator
from escapade.planning.robust_operator import (
    RobustOperator,
    robust_control,
    robust_policy_value,
)
from escapade.testing import strategies
from escapade.uncertainty import Interval, L1Ball


def control(cmdp, sets, *, nature="max", select="min", gain=None, **keywords):
    return RobustOperator(
        sets,
        cmdp.state_ptr,
        cmdp.cost[0] if gain is None else gain,
        cmdp.discount,
        nature=nature,
        select=select,
        **keywords,
    )


def long_corridor(states: int, discount: float) -> ep.CMDP:
    """A walk that mixes slowly: the value must travel from one end to the other."""
    stay = np.eye(states)
    forth = 0.1 * stay + 0.9 * np.eye(states, k=1)
    back = 0.2 * stay + 0.8 * np.eye(states, k=-1)
    forth[-1, -1] = back[0, 0] = 1.0
    P = np.stack([forth, back], axis=1)
    cost = np.ones((states, 2))
    cost[-1] = 0.0
    return ep.CMDP(P, 1.0 - cost, cost, discount=discount, budget=1.0)


@st.composite
def problems(draw):
    cmdp = draw(strategies.cmdps(max_costs=1, discounts=(0.0, 0.5, 0.9, 0.99)))
    kind = draw(st.sampled_from(["l1", "interval"]))
    amount = draw(st.sampled_from([0.0, 0.1, 0.5, 2.0]))
    if kind == "l1":
        return cmdp, L1Ball(cmdp, radius=amount)
    return cmdp, Interval(cmdp, radius=amount / 2)


@settings(max_examples=30, deadline=None)
@given(problems(), st.sampled_from(["min", "max"]), st.integers(0, 10**6))
def test_the_bounds_hold_the_fixed_point_from_any_guess(problem, select, seed):
    cmdp, sets = problem
    nature = "max" if select == "min" else "min"
    operator = control(cmdp, sets, nature=nature, select=select)
    found = robust_control(operator, precision=1e-10)
    rng = np.random.default_rng(seed)
    guess = rng.uniform(-5.0, 5.0, cmdp.n_states)
    loose = robust_control(operator, precision=1.0, guess=guess, max_iterations=2)
    assert (loose.lower <= found.upper).all()
    assert (found.lower <= loose.upper).all()
    assert found.converged
    # the policy that is returned attains the bound: its own operator says so
    attained = robust_policy_value(operator.for_pairs(found.pairs), precision=1e-10)
    bound = found.upper if select == "min" else found.lower
    image = operator.for_pairs(found.pairs).apply(bound)
    if select == "min":
        assert (image.tx <= bound).all()
        assert (attained.lower <= found.upper).all()
    else:
        assert (image.tx >= bound).all()
        assert (attained.upper >= found.lower).all()


@settings(max_examples=20, deadline=None)
@given(problems())
def test_a_larger_set_is_worse(problem):
    cmdp, sets = problem
    smaller = sets.shrink(0.5)
    wide = robust_control(control(cmdp, sets), precision=1e-10)
    narrow = robust_control(control(cmdp, smaller), precision=1e-10)
    assert (narrow.lower <= wide.upper).all()


@settings(max_examples=20, deadline=None)
@given(problems())
def test_a_set_of_one_kernel_gives_ordinary_dynamic_programming(problem):
    cmdp, _ = problem
    exact = L1Ball(cmdp, radius=0.0)
    operator = control(cmdp, exact, nature="min", select="max", gain=cmdp.reward)
    found = robust_control(operator, precision=1e-10)
    optimum = ep.planning.value_iteration(cmdp, precision=1e-10)
    assert (found.lower <= optimum.value + optimum.error).all()
    assert (optimum.value - optimum.error <= found.upper).all()


def test_slow_mixing_calls_for_jumps_and_they_pay():
    cmdp = long_corridor(400, 0.999)
    sets = L1Ball(cmdp, radius=0.05)
    found = robust_control(control(cmdp, sets), precision=1e-8)
    assert found.converged
    assert found.method == "Newton's method"
    assert found.iterations < 100  # sweeps alone: over ten thousand
    policy = control(cmdp, sets).for_pairs(found.pairs)
    value = robust_policy_value(policy, precision=1e-8)
    assert value.converged
    assert value.method == "nature's policy iteration"
    assert value.iterations < 200
    assert (value.lower <= found.upper).all()
    assert (found.lower <= value.upper).all()


def test_where_newton_cycles_the_policy_is_evaluated_against_nature(monkeypatch):
    cmdp = long_corridor(400, 0.999)
    sets = L1Ball(cmdp, radius=0.05)
    quick = robust_control(control(cmdp, sets), precision=1e-8)
    calls = []

    def cycling(_operator, image, _aim, _limit):
        calls.append(image.width)
        return image, 1

    monkeypatch.setattr(robust_operator, "_newton", cycling)
    found = robust_control(control(cmdp, sets), precision=1e-8)
    assert len(calls) == 1  # it is not tried again
    assert found.converged
    assert found.method == "partial policy iteration"
    assert found.iterations < 500
    assert (found.lower <= quick.upper).all()
    assert (quick.lower <= found.upper).all()


def test_newton_gives_up_where_its_bounds_do_not_narrow(monkeypatch):
    cmdp = long_corridor(50, 0.99)
    operator = control(cmdp, L1Ball(cmdp, radius=0.05))
    image = operator.apply(np.zeros(cmdp.n_states))
    monkeypatch.setattr(
        RobustOperator, "nature_solved", lambda _self, x, _p, digits: 2.0 * x + digits
    )
    found, used = robust_operator._newton(operator, image, 1e-8, 1_000)
    assert used < 100
    assert found.width <= image.width
    _, used = robust_operator._newton(operator, image, 1e-8, 3)
    assert used < 10


def test_the_iteration_limit_is_said_and_the_bounds_hold_all_the_same():
    cmdp = long_corridor(50, 0.99)
    sets = L1Ball(cmdp, radius=0.1)
    stopped = robust_control(control(cmdp, sets), precision=1e-8, max_iterations=3)
    assert not stopped.converged
    finished = robust_control(control(cmdp, sets), precision=1e-8)
    assert (stopped.lower <= finished.upper).all()
    assert (finished.lower <= stopped.upper).all()
    assert stopped.width > finished.width


def test_a_guess_near_the_answer_saves_sweeps():
    cmdp = long_corridor(50, 0.95)
    sets = L1Ball(cmdp, radius=0.1)
    cold = robust_control(control(cmdp, sets), precision=1e-8)
    warm = robust_control(control(cmdp, sets), precision=1e-8, guess=cold.upper)
    assert warm.iterations < cold.iterations
    with pytest.raises(ep.errors.InvalidInputError, match="guess"):
        robust_control(control(cmdp, sets), precision=1e-8, guess=np.zeros(3))


def test_states_without_an_allowed_pair_are_left_out():
    cmdp = long_corridor(6, 0.9)
    sets = L1Ball(cmdp, radius=0.1)
    allowed = np.ones(cmdp.n_pairs, dtype=bool)
    allowed[cmdp.pair_state == 2] = False
    operator = control(cmdp, sets, allowed=allowed)
    found = robust_control(operator, precision=1e-8)
    assert operator.live.tolist() == [True, True, False, True, True, True]
    assert found.upper[2] == found.lower[2] == 0.0


def test_values_may_be_spread_over_entries_first():
    """A set over entries, each worth its successor, is the set over successors."""
    cmdp = long_corridor(5, 0.9)
    sets = L1Ball(cmdp, radius=0.2)
    entries = int(sets.row_ptr[-1])
    lifted = sets.lift(np.arange(cmdp.n_pairs), np.arange(entries), entries)
    spread = sp.csr_array(
        (np.ones(entries), sets.successor, np.arange(entries + 1)),
        shape=(entries, cmdp.n_states),
    )
    weights = np.full(cmdp.n_pairs, 0.5)
    keywords = {"nature": "max", "weights": weights}
    plain = RobustOperator(sets, cmdp.state_ptr, cmdp.cost[0], 0.9, **keywords)
    over = RobustOperator(
        lifted, cmdp.state_ptr, cmdp.cost[0], 0.9, spread=spread, **keywords
    )
    one = robust_policy_value(plain, precision=1e-9)
    two = robust_policy_value(over, precision=1e-9)
    np.testing.assert_allclose(one.upper, two.upper, atol=1e-7)
    x = plain.nature_solved(one.upper, 1e-10)
    np.testing.assert_allclose(x, over.nature_solved(one.upper, 1e-10), atol=1e-8)
    np.testing.assert_allclose(x, one.upper, atol=1e-7)
