"""Values, costs and occupancies: against exact arithmetic, laws and each other."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from escapade.errors import SolverError
from escapade.model import CMDP, Policy, evaluate, evaluation, occupancy
from escapade.model.evaluation import discounted_sums
from escapade.testing import cmdps, kernels, policies, relabelled, relabelled_policy

METHODS = ("lu", "krylov", "sweeps")


@st.composite
def problems(draw, **choices):
    """A problem and a policy of it."""
    cmdp = draw(cmdps(**choices))
    return cmdp, draw(policies(cmdp))


def fractions(cmdp, policy):
    """The stored doubles as exact numbers: ``γ P_π`` and the means of reward, costs."""
    weights = [Fraction(w) for w in policy.pair_weights(cmdp).tolist()]
    discount = Fraction(cmdp.discount)
    matrix = [[Fraction(0)] * cmdp.n_states for _ in range(cmdp.n_states)]
    means = [[Fraction(0)] * (1 + cmdp.n_costs) for _ in range(cmdp.n_states)]
    rows = cmdp.transition_matrix.toarray().tolist()
    gains = np.vstack([cmdp.reward, cmdp.cost]).T.tolist()
    for pair, state in enumerate(cmdp.pair_state.tolist()):
        for column, gain in enumerate(gains[pair]):
            means[state][column] += weights[pair] * Fraction(gain)
        for following, chance in enumerate(rows[pair]):
            matrix[state][following] += discount * weights[pair] * Fraction(chance)
    return matrix, means


def solved(matrix, means):
    """Solve ``(I − matrix) x = means`` by elimination, exactly."""
    n = len(matrix)
    rows = [
        [Fraction(int(i == j)) - matrix[i][j] for j in range(n)] + means[i]
        for i in range(n)
    ]
    for column in range(n):
        pivot = next(i for i in range(column, n) if rows[i][column] != 0)
        rows[column], rows[pivot] = rows[pivot], rows[column]
        rows[column] = [entry / rows[column][column] for entry in rows[column]]
        for i in range(n):
            if i != column:
                factor = rows[i][column]
                rows[i] = [
                    a - factor * b for a, b in zip(rows[i], rows[column], strict=True)
                ]
    return [row[n:] for row in rows]


def true_error(result, exact):
    """The largest distance of a result from exact numbers, exactly."""
    found = np.vstack([result.value, result.costs]).T.tolist()
    return max(
        abs(Fraction(number) - truth)
        for row, truths in zip(found, exact, strict=True)
        for number, truth in zip(row, truths, strict=True)
    )


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=25)
@given(problems(max_states=4))
def test_the_certified_error_bounds_the_true_one(method, problem):
    cmdp, policy = problem
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evaluation, "_methods", lambda _matrix: iter([method]))
        result = evaluate(cmdp, policy)
    assert result.method == method
    assert true_error(result, solved(*fractions(cmdp, policy))) <= result.error
    assert result.error <= 1e-8 * max(1.0, result.value.max(), result.costs.max())


@pytest.mark.parametrize("off", [1e-3, 1e-9, 1e-14])
@settings(max_examples=25)
@given(problem=problems(max_states=4), data=st.data())
def test_whatever_the_guess_its_error_is_bounded(off, problem, data):
    cmdp, policy = problem
    weights = policy.pair_weights(cmdp)
    matrix = evaluation.policy_matrix(cmdp, weights)
    gain = np.add.reduceat(cmdp.reward * weights, cmdp.state_ptr[:-1])[:, np.newaxis]
    exact = [row[:1] for row in solved(*fractions(cmdp, policy))]
    direction = data.draw(
        st.lists(
            st.sampled_from([-1.0, 0.0, 1.0]),
            min_size=cmdp.n_states,
            max_size=cmdp.n_states,
        )
    )
    guess = np.array([[float(row[0])] for row in exact])
    guess += off * np.array(direction)[:, np.newaxis]
    system = evaluation._System(matrix, cmdp.discount, mixed=cmdp.n_actions)
    bound = system.error(gain, guess)
    worst = max(
        abs(Fraction(number) - row[0])
        for number, row in zip(guess[:, 0].tolist(), exact, strict=True)
    )
    assert worst <= bound


@settings(max_examples=25)
@given(problems(max_states=4), st.integers(0, 12))
def test_finite_horizons_are_exact_up_to_the_error_given(problem, horizon):
    cmdp, policy = problem
    matrix, means = fractions(cmdp, policy)
    values = [[Fraction(0)] * (1 + cmdp.n_costs) for _ in matrix]
    for _ in range(horizon):
        values = [
            [
                mean + sum(m * v[k] for m, v in zip(row, values, strict=True))
                for k, mean in enumerate(own)
            ]
            for row, own in zip(matrix, means, strict=True)
        ]
    result = evaluate(cmdp, policy, horizon=horizon)
    assert result.method == "finite"
    assert true_error(result, values) <= result.error < 1e-11


@settings(max_examples=40)
@given(problems(), st.integers(0, 30))
def test_the_t_step_lemma(problem, horizon):
    """What comes after T steps is worth at most ``γ^T r_max / (1 − γ)``."""
    cmdp, policy = problem
    whole = evaluate(cmdp, policy)
    begun = evaluate(cmdp, policy, horizon=horizon)
    left = cmdp.discount**horizon / (1.0 - cmdp.discount)
    rounding = whole.error + begun.error
    missing = whole.value - begun.value
    assert (missing >= -rounding).all()
    assert (missing <= left * cmdp.reward_max + rounding).all()
    missing_costs = whole.costs - begun.costs
    assert (missing_costs >= -rounding).all()
    assert (missing_costs.max(axis=1) <= left * cmdp.cost_max + rounding).all()


def test_a_horizon_of_nothing_and_of_one():
    cmdp = CMDP(np.ones((1, 2, 1)), [[1.0, 0.0]], [[0.0, 0.5]], discount=0.9, budget=1)
    policy = Policy([[0.25, 0.75]])
    nothing = evaluate(cmdp, policy, horizon=0)
    assert nothing.start_value == 0.0
    assert nothing.error == 0.0
    one = evaluate(cmdp, policy, horizon=1)
    assert one.start_value == 0.25
    assert one.start_costs.tolist() == [0.375]


def test_horizons_beyond_all_rounding_end_early():
    cmdp = CMDP(np.ones((1, 1, 1)), [[1.0]], [[0.5]], discount=0.5, budget=1.0)
    policy = Policy([[1.0]])
    assert evaluate(cmdp, policy, horizon=10**9).start_value == 2.0


def test_a_single_state_by_hand():
    cmdp = CMDP(np.ones((1, 1, 1)), [[1.0]], [[0.5]], discount=0.99, budget=1.0)
    result = evaluate(cmdp, Policy([[1.0]]))
    assert result.start_value == pytest.approx(100.0, abs=1e-9)
    assert result.start_costs == pytest.approx([50.0], abs=1e-9)
    assert not result.value.flags.writeable


@settings(max_examples=40)
@given(problems(), st.data())
def test_relabelling_states_changes_nothing(problem, data):
    cmdp, policy = problem
    order = data.draw(st.permutations(range(cmdp.n_states)))
    before = evaluate(cmdp, policy)
    after = evaluate(relabelled(cmdp, order), relabelled_policy(policy, order))
    apart = before.error + after.error
    np.testing.assert_allclose(after.value, before.value[order], atol=apart, rtol=0)
    np.testing.assert_allclose(after.costs, before.costs[:, order], atol=apart, rtol=0)
    assert after.start_value == pytest.approx(before.start_value, abs=2 * apart)


@settings(max_examples=40)
@given(problems(), st.sampled_from([0.25, 3.0]))
def test_scaling_rewards_scales_values(problem, factor):
    cmdp, policy = problem
    scaled = cmdp.replace(
        reward=factor * cmdp.reward, reward_max=factor * cmdp.reward_max
    )
    before, after = evaluate(cmdp, policy), evaluate(scaled, policy)
    apart = factor * before.error + after.error
    np.testing.assert_allclose(after.value, factor * before.value, atol=apart, rtol=0)
    np.testing.assert_allclose(
        after.costs, before.costs, atol=before.error + after.error, rtol=0
    )


@settings(max_examples=40)
@given(problems(), st.sampled_from([0.1, 0.5]), st.data())
def test_the_simulation_lemma(problem, radius, data):
    """Rows that differ by ψ in 1-norm move values by ``γ ψ/2 · r_max / (1 − γ)²``."""
    cmdp, policy = problem
    near = data.draw(kernels(cmdp, radius=radius))
    distance = np.abs((near.transition_matrix - cmdp.transition_matrix).toarray()).sum(
        axis=1
    )
    assert distance.max() <= radius + 1e-12
    one, other = evaluate(cmdp, policy), evaluate(near, policy)
    gamma = cmdp.discount
    factor = gamma * distance.max() / 2.0 / (1.0 - gamma) ** 2
    rounding = one.error + other.error
    apart = np.abs(one.value - other.value).max()
    assert apart <= factor * cmdp.reward_max + rounding
    for channel in range(cmdp.n_costs):
        apart = np.abs(one.costs[channel] - other.costs[channel]).max()
        assert apart <= factor * cmdp.cost_max[channel] + rounding
    # and over T steps: each step misplaces a share ψ/2 of what is still to come
    bound = 0.0
    steps = 6
    for t in range(1, steps + 1):
        to_come = cmdp.reward_max * sum(gamma**k for k in range(t - 1))
        bound = gamma * bound + gamma * distance.max() / 2.0 * to_come
    one, other = (evaluate(m, policy, horizon=steps) for m in (cmdp, near))
    apart = np.abs(one.value - other.value).max()
    assert apart <= bound + one.error + other.error


@settings(max_examples=40)
@given(problems())
def test_the_laws_of_occupancies(problem):
    cmdp, policy = problem
    visits = occupancy(cmdp, policy)
    apart = 1e-7 / (1.0 - cmdp.discount)
    assert (visits >= -apart).all()
    assert visits.sum() == pytest.approx(1.0 / (1.0 - cmdp.discount), abs=apart)
    by_state = np.add.reduceat(visits, cmdp.state_ptr[:-1])
    arriving = cmdp.start + cmdp.discount * (cmdp.transition_matrix.T @ visits)
    np.testing.assert_allclose(by_state, arriving, atol=apart)
    np.testing.assert_allclose(
        visits, by_state[cmdp.pair_state] * policy.pair_weights(cmdp), atol=apart
    )
    result = evaluate(cmdp, policy)
    most = max(cmdp.reward_max, *cmdp.cost_max)
    np.testing.assert_allclose(
        visits @ cmdp.reward, result.start_value, atol=apart * most, rtol=1e-9
    )
    np.testing.assert_allclose(
        cmdp.cost @ visits, result.start_costs, atol=apart * most, rtol=1e-9
    )


def field(side, discount=0.9):
    """A walk on a grid: large enough for the methods of large models."""
    n = side * side
    line = sp.diags_array(
        [np.ones(side - 1), np.ones(side - 1)], offsets=[-1, 1], shape=(side, side)
    )
    grid = sp.kron(line, sp.eye_array(side)) + sp.kron(sp.eye_array(side), line)
    walk = sp.csr_array(grid / grid.sum(axis=1)[:, np.newaxis])
    rng = np.random.default_rng(3)
    reward, cost = rng.random((n, 2)), rng.random((n, 2))
    return CMDP([walk, sp.eye_array(n)], reward, cost, discount=discount, budget=1.0)


def test_on_larger_models_every_method_agrees(monkeypatch):
    cmdp = field(26)
    policy = Policy.uniform(cmdp)
    chosen = evaluate(cmdp, policy)
    assert chosen.method == "krylov"
    for method in METHODS:
        monkeypatch.setattr(evaluation, "_methods", lambda _matrix, m=method: iter([m]))
        other = evaluate(cmdp, policy)
        apart = chosen.error + other.error
        np.testing.assert_allclose(other.value, chosen.value, atol=apart, rtol=0)
        np.testing.assert_allclose(other.costs, chosen.costs, atol=apart, rtol=0)
        visits = occupancy(cmdp, policy)
        assert visits @ cmdp.reward == pytest.approx(chosen.start_value, abs=1e-6)


def test_when_the_krylov_method_fails_the_next_one_is_tried(monkeypatch):
    cmdp = field(26)
    policy = Policy.uniform(cmdp)
    monkeypatch.setattr(evaluation, "_KRYLOV_ITERATIONS", 1)
    by_lu = evaluate(cmdp, policy)
    assert by_lu.method == "lu"
    monkeypatch.setattr(evaluation, "_LU_UP_TO_WORK", 0.0)
    by_sweeps = evaluate(cmdp, policy)
    assert by_sweeps.method == "sweeps"
    apart = by_lu.error + by_sweeps.error
    np.testing.assert_allclose(by_sweeps.value, by_lu.value, atol=apart, rtol=0)
    monkeypatch.setitem(
        evaluation._METHODS, "krylov", lambda _s, gain, _p: np.full_like(gain, np.nan)
    )
    assert evaluate(cmdp, policy).method == "sweeps"


def test_a_precision_out_of_reach_is_said_to_be():
    cmdp = CMDP(np.ones((1, 1, 1)), [[1.0]], [[0.5]], discount=0.99, budget=1.0)
    policy = Policy([[1.0]])
    with pytest.raises(SolverError, match="precision: expected an error of at most"):
        evaluate(cmdp, policy, precision=1e-30)
    matrix = sp.csr_array(np.ones((1, 1)))
    gain = np.ones((1, 1))
    answer, error, _ = discounted_sums(matrix, gain, 0.99, 1e-30, strict=False)
    assert abs(answer[0, 0] - 100.0) <= error < 1e-9


def test_a_discount_lost_in_rounding_is_refused():
    swap = np.zeros((2, 1, 2))
    swap[0, 0, 1] = swap[1, 0, 0] = 1.0
    near_one = np.nextafter(1.0, 0.0)
    cmdp = CMDP(swap, [[1.0], [0.0]], [[0.0], [0.0]], discount=near_one, budget=1.0)
    with pytest.raises(SolverError, match="one that double arithmetic can tell from 1"):
        evaluate(cmdp, Policy.uniform(cmdp))
    assert np.isfinite(evaluate(cmdp, Policy.uniform(cmdp), horizon=5).error)


def test_a_factorisation_that_breaks_down_is_no_answer(monkeypatch):
    def singular(_matrix):
        raise RuntimeError("Factor is exactly singular")

    cmdp = CMDP(np.ones((1, 1, 1)), [[1.0]], [[0.5]], discount=0.5, budget=1.0)
    monkeypatch.setattr(evaluation.spla, "splu", singular)
    with pytest.raises(
        SolverError, match=r"found 0\.5; a smaller one can be evaluated"
    ):
        evaluate(cmdp, Policy([[1.0]]))


def test_no_look_ahead():
    cmdp = CMDP(np.ones((1, 1, 1)), [[1.0]], [[0.5]], discount=0.0, budget=1.0)
    policy = Policy([[1.0]])
    assert evaluate(cmdp, policy).start_value == 1.0
    assert occupancy(cmdp, policy).tolist() == [1.0]
