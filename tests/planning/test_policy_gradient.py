"""The policy gradient: never above the optimum, never over budget, resumable."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import escapade as ep
from escapade.errors import InvalidFileError, InvalidInputError, SolverError
from escapade.kernels.policy_gradient import add_trajectories
from escapade.kernels.sampling import fill_cumulative
from escapade.planning import LearningRate, iterate_mixture
from escapade.planning.base import RobustSolver
from escapade.planning.gradient_run import default_horizon
from escapade.planning.highs import LinearAnswer
from escapade.planning.learning_rate import read_rate
from escapade.planning.saddle_game import SaddleGame
from escapade.testing import cmdps


def small(seed: int = 0, *, n_costs: int = 1, budget=None) -> ep.CMDP:
    rng = np.random.default_rng(seed)
    cmdp = ep.CMDP(
        rng.dirichlet(np.ones(4), size=(4, 3)),
        rng.random((4, 3)),
        rng.random((n_costs, 4, 3)),
        discount=0.7,
        budget=np.zeros(n_costs),
    )
    if budget is None:
        budget = 0.9 * ep.evaluate(cmdp, ep.Policy.uniform(cmdp)).start_costs
    return cmdp.replace(budget=budget)


QUICK = {"iterations": 60, "trajectories": 8, "judge_every": 20, "horizon": 12}


# -- what must hold of the answer ------------------------------------------------------


@pytest.mark.parametrize("seed", [0, 1])
def test_near_the_optimum_of_the_barrier_grid(seed) -> None:
    cmdp = ep.environments.barrier_grid().cmdp
    answer = ep.solve(
        cmdp, ep.PolicyGradient(iterations=600, trajectories=16, seed=seed)
    )
    optimum = 1.0748375833535557
    assert answer.status == "feasible"
    assert (ep.evaluate(cmdp, answer.policy).start_costs <= cmdp.budget).all()
    assert 0.98 * optimum <= answer.value <= optimum + 1e-9
    assert answer.lower <= answer.value <= answer.upper
    assert answer.upper >= optimum - 1e-9


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [{}, {"discount": 0.99, "budget": 50.0}, {"horizon": 6}],
    ids=["loop", "patient", "six-steps"],
)
def test_near_the_optimum_of_the_three_state_loop(arguments) -> None:
    world = ep.environments.three_state_loop(**arguments)
    answer = ep.solve(world.cmdp, ep.PolicyGradient())
    result = ep.evaluate(world.cmdp, answer.policy)
    assert result.start_costs[0] <= world.cmdp.budget[0] + result.error
    assert 0.98 * world.optimum <= answer.value <= world.optimum * (1.0 + 1e-9)
    assert answer.status == "feasible"


@given(
    cmdp=cmdps(max_states=4, feasible=True, discounts=(0.5, 0.0)), seed=st.integers()
)
@settings(max_examples=12)
def test_it_never_beats_the_linear_program(cmdp, seed) -> None:
    solver = ep.PolicyGradient(
        iterations=12, trajectories=4, judge_every=4, seed=seed % 1000
    )
    best = ep.solve(cmdp, ep.OccupationLP())
    answer = ep.solve(cmdp, solver)
    scale = max(1.0, best.value)
    assert answer.status == "feasible"
    assert answer.value <= best.upper + 1e-7 * scale
    assert answer.lower <= answer.value
    assert answer.upper >= best.value - 1e-7 * scale
    over = answer.costs - cmdp.budget
    assert (over <= answer.residuals["budget"] + 1e-12).all()
    assert (answer.multipliers >= 0.0).all()


def test_optimality_is_never_claimed() -> None:
    """Not even where there is but one policy."""
    cmdp = ep.CMDP([[[1.0]]], [[1.0]], [[0.5]], discount=0.5, budget=2.0)
    answer = ep.solve(cmdp, ep.PolicyGradient(**QUICK))
    assert answer.value == pytest.approx(2.0)
    assert answer.gap == pytest.approx(0.0, abs=1e-9)
    assert answer.status == "feasible"
    sets = ep.uncertainty.L1Ball(cmdp, radius=0.1)
    assert (
        ep.solve(cmdp, ep.PolicyGradient(**QUICK), uncertainty=sets).status
        == "feasible"
    )


def test_out_of_reach_is_proved() -> None:
    cmdp = small(budget=[1e-3])
    answer = ep.solve(cmdp, ep.PolicyGradient(**QUICK))
    assert answer.status == "infeasible"
    assert answer.policy is None
    assert answer.least_costs[0] > 1e-3


def test_the_same_seed_gives_the_same_answer() -> None:
    cmdp = small(n_costs=2)
    one = ep.solve(cmdp, ep.PolicyGradient(**QUICK, seed=3))
    two = ep.solve(cmdp, ep.PolicyGradient(**QUICK, seed=3))
    other = ep.solve(cmdp, ep.PolicyGradient(**QUICK, seed=4))
    assert one.policy == two.policy
    assert one.value == two.value
    assert one.policy != other.policy


@pytest.mark.parametrize("baseline", ["none", "average", "state"])
@pytest.mark.parametrize("per_visit", [True, False])
def test_every_variant_learns(baseline, per_visit) -> None:
    """More than half of what is gained over drawing evenly is found in a short run."""
    cmdp = small(2, budget=[10.0])
    begin = ep.evaluate(cmdp, ep.Policy.uniform(cmdp)).start_value
    best = ep.solve(cmdp).value
    answer = ep.solve(
        cmdp,
        ep.PolicyGradient(
            iterations=120,
            trajectories=8,
            baseline=baseline,
            per_visit=per_visit,
            policy_rate=LearningRate(5.0, "cosine"),
        ),
    )
    assert answer.value > begin + 0.5 * (best - begin)


# -- the gradient itself ---------------------------------------------------------------


def test_the_score_is_the_gradient_of_a_bandit() -> None:
    """With one step the mean score is π(a) (r(a) − b), which evenly spaced numbers get
    right to within one over their count.
    """
    n = 1_000
    weights = np.array([0.5, 0.2, 0.3])
    gain = np.array([[0.25, 1.0, 0.5], [1.0, 0.0, 0.25]])
    signs = np.array([1.0, -2.0])
    uniforms = np.full((n, 3), 0.5)
    uniforms[:, 1] = (np.arange(n) + 0.5) / n
    cumulative = np.empty(3)
    fill_cumulative(np.array([0, 3]), weights, cumulative)
    score, visits, totals = np.zeros(3), np.zeros(3), np.zeros(2)
    to_go, counts = np.zeros(1), np.zeros(1)
    add_trajectories(
        np.array([0, 3]),
        cumulative,
        np.arange(4),
        np.zeros(3, dtype=np.int32),
        np.ones(3),
        np.ones(1),
        gain,
        signs,
        0.9,
        np.array([0.125]),
        uniforms,
        score,
        visits,
        to_go,
        counts,
        totals,
    )
    priced = signs @ gain
    np.testing.assert_allclose(score / n, weights * (priced - 0.125), atol=2e-3)
    np.testing.assert_allclose(visits / n, weights, atol=1e-3)
    np.testing.assert_allclose(totals / n, gain @ weights, atol=2e-3)
    assert to_go[0] / n == pytest.approx(priced @ weights, abs=2e-3)
    assert counts[0] == n


def test_trajectories_against_plain_python() -> None:
    cmdp = small(1, n_costs=2)
    rng = np.random.default_rng(5)
    uniforms = rng.random((6, 2 * 9 + 1))
    weights = np.full(cmdp.n_pairs, 1.0 / 3.0)
    signs = np.array([1.0, -0.5, -2.0])
    gains = np.vstack([cmdp.reward, cmdp.cost])
    baseline = rng.random(4)
    actions, rows = np.empty(cmdp.n_pairs), np.empty(cmdp.nnz)
    fill_cumulative(cmdp.state_ptr, weights, actions)
    fill_cumulative(cmdp.row_ptr, cmdp.probability, rows)
    found = [np.zeros(12), np.zeros(12), np.zeros(4), np.zeros(4), np.zeros(3)]
    add_trajectories(
        cmdp.state_ptr,
        actions,
        cmdp.row_ptr,
        cmdp.successor,
        rows,
        np.cumsum(cmdp.start),
        gains,
        signs,
        cmdp.discount,
        baseline,
        uniforms,
        *found,
    )
    wanted = [np.zeros(12), np.zeros(12), np.zeros(4), np.zeros(4), np.zeros(3)]
    gamma, matrix = cmdp.discount, cmdp.transition_matrix.toarray()
    for numbers in uniforms:
        state, path = 0, []
        for t in range(9):
            action = int(np.searchsorted([1 / 3, 2 / 3, 1.0], numbers[2 * t + 1]))
            pair = 3 * state + action
            path.append((state, pair))
            state = int(np.searchsorted(np.cumsum(matrix[pair]), numbers[2 * t + 2]))
        for t, (state, pair) in enumerate(path):
            ahead = [
                sum(gamma**i * gain[later] for i, (_, later) in enumerate(path[t:]))
                for gain in gains
            ]
            wanted[0][pair] += gamma**t * (signs @ ahead - baseline[state])
            wanted[1][pair] += gamma**t
            wanted[2][state] += signs @ ahead
            wanted[3][state] += 1.0
            if t == 0:
                wanted[4] += ahead
    for got, expected in zip(found, wanted, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-14)


def test_the_price_of_a_budget_that_is_exceeded_rises() -> None:
    """One action only, which costs more than is allowed in one channel of two."""
    cmdp = ep.CMDP(
        np.ones((1, 2, 1)),
        [[1.0, 0.0]],
        [[[1.0, 0.0]], [[0.0, 1.0]]],
        discount=0.5,
        budget=[0.5, 2.0],
    )
    heard = []
    ep.solve(cmdp, ep.PolicyGradient(**QUICK, progress=heard.append))
    first, second = heard[0], heard[1]
    assert (first.iteration, second.iteration) == (0, 20)
    np.testing.assert_array_equal(first.multipliers, 0.0)
    assert second.multipliers[0] > 0.0
    assert all(update.multipliers[1] == 0.0 for update in heard)
    assert heard[-1].iteration == heard[-1].iterations == 60
    bests = [update.best for update in heard if update.best is not None]
    assert bests == sorted(bests)
    assert all(update.seconds >= 0.0 for update in heard)


def test_horizons_carry_nearly_all_the_weight() -> None:
    for discount in (0.0, 0.5, 0.9, 0.999):
        horizon = default_horizon(discount)
        assert discount**horizon <= 1e-3
        assert horizon == 1 or discount ** (horizon - 1) > 1e-3


# -- under a set -----------------------------------------------------------------------


@pytest.mark.parametrize("objective", ["nominal", "worst"])
def test_worst_case_budgets_are_kept(objective) -> None:
    cmdp = small(3, n_costs=2)
    cmdp = cmdp.replace(budget=1.2 * cmdp.budget)
    sets = ep.uncertainty.L1Ball(cmdp, radius=0.2)
    answer = ep.solve(
        cmdp, ep.PolicyGradient(**QUICK), uncertainty=sets, objective=objective
    )
    assert answer.status == "feasible"
    bounds = ep.planning.robust_evaluate(cmdp, answer.policy, sets)
    assert (bounds.start_costs_upper <= cmdp.budget + 1e-7).all()
    np.testing.assert_allclose(answer.costs, bounds.start_costs_upper, atol=1e-6)
    nominal = ep.solve(cmdp)
    assert answer.lower <= answer.value <= answer.upper <= nominal.upper + 1e-7
    if objective == "worst":
        assert answer.value == pytest.approx(bounds.start_value_lower, abs=1e-6)
    else:
        own = ep.evaluate(cmdp, answer.policy).start_value
        assert answer.value == pytest.approx(own, abs=1e-8)


def test_each_cost_has_a_worst_kernel_of_its_own() -> None:
    cmdp = small(4, n_costs=2)
    sets = ep.uncertainty.L1Ball(cmdp, radius=0.3)
    uniform = ep.Policy.uniform(cmdp)
    for objective in ("nominal", "worst"):
        game = SaddleGame(cmdp, sets, objective)
        scenes = game.scenes(uniform)
        assert [scene.gains.tolist() for scene in scenes] == [[0], [1], [2]]
        bounds = ep.planning.robust_evaluate(cmdp, uniform, sets)
        for number, scene in enumerate(scenes):
            model = cmdp.replace(
                row_ptr=scene.row_ptr,
                successor=scene.successor,
                probability=scene.probability,
            )
            result = ep.evaluate(model, uniform)
            if number == 0 and objective == "nominal":
                assert model == cmdp
            elif number == 0:
                assert result.start_value == pytest.approx(
                    bounds.start_value_lower, abs=1e-5
                )
            else:
                assert result.start_costs[number - 1] == pytest.approx(
                    bounds.start_costs_upper[number - 1], abs=1e-5
                )


def test_one_model_throughout_a_lifetime() -> None:
    cmdp = small(5)
    rng = np.random.default_rng(0)
    others = [
        cmdp.replace(probability=row)
        for row in rng.dirichlet(np.ones(4), size=(3, 12)).reshape(3, -1)
    ]
    family = ep.uncertainty.Models(cmdp, [cmdp, *others], throughout=True)
    for objective in ("nominal", "worst"):
        answer = ep.solve(
            cmdp, ep.PolicyGradient(**QUICK), uncertainty=family, objective=objective
        )
        results = [ep.evaluate(model, answer.policy) for model in [cmdp, *others]]
        assert max(r.start_costs[0] for r in results) <= cmdp.budget[0] + 1e-9
        if objective == "worst":
            worst = min(r.start_value for r in results)
            assert answer.value == pytest.approx(worst, abs=1e-7)


def test_worst_case_budgets_out_of_reach() -> None:
    cmdp = small(6)
    sets = ep.uncertainty.L1Ball(cmdp, radius=1.0)
    tight = cmdp.replace(budget=ep.solve(cmdp.replace(budget=0.0)).least_costs * 1.05)
    assert ep.solve(tight).is_feasible
    answer = ep.solve(tight, ep.PolicyGradient(**QUICK), uncertainty=sets)
    assert answer.status == "infeasible"
    assert (answer.least_costs > tight.budget).all()


def test_worst_case_budgets_that_nothing_decides() -> None:
    """The kernel alone would allow it (2/3 each, half and half), and each channel could
    be kept by itself at worst (.467); that both cannot (.8 each) is not proved.
    """
    cmdp = ep.CMDP(
        [[[0.5, 0.25, 0.25], [0.5, 0.25, 0.25]], [[0, 1, 0]] * 2, [[0, 0, 1]] * 2],
        np.zeros((3, 2)),
        [
            [[0.5, 0.0], [1.0, 1.0], [0.0, 0.0]],
            [[0.0, 0.5], [0.0, 0.0], [1.0, 1.0]],
        ],
        discount=0.5,
        budget=[0.75, 0.75],
    )
    sets = ep.uncertainty.L1Ball(cmdp, radius=0.2)
    answer = ep.solve(cmdp, ep.PolicyGradient(**QUICK), uncertainty=sets)
    assert answer.policy is None
    assert answer.status == "unresolved"
    np.testing.assert_allclose(answer.least_costs, 0.35 / 0.75, atol=1e-6)
    assert "nor the one of least worst-case cost" in answer.message
    assert answer.iterations == 60


# -- limits, progress, checkpoints -----------------------------------------------------


def test_time_runs_out() -> None:
    answer = ep.solve(small(), ep.PolicyGradient(time_limit=1e-9))
    assert answer.status == "time_limit"
    assert answer.is_feasible
    assert answer.iterations == 0


class InterruptionError(Exception):
    """Stands for a crash."""


def interrupt_at(iteration: int):
    def heard(update) -> None:
        if update.iteration >= iteration:
            raise InterruptionError

    return heard


@pytest.mark.parametrize("kind", ["nominal", "ball", "models"])
def test_a_run_goes_on_where_it_was_interrupted(tmp_path, kind) -> None:
    cmdp = small(7, n_costs=2)
    other = cmdp.replace(
        probability=np.random.default_rng(1).dirichlet(np.ones(4), size=12).ravel()
    )
    sets = {
        "nominal": None,
        "ball": ep.uncertainty.L1Ball(cmdp, radius=0.1),
        "models": ep.uncertainty.Models(cmdp, [cmdp, other], throughout=True),
    }[kind]
    file = tmp_path / "run.npz"
    kept = {**QUICK, "checkpoint": file, "checkpoint_every": 7, "refresh_every": 15}
    whole = ep.solve(
        cmdp, ep.PolicyGradient(**QUICK, refresh_every=15), uncertainty=sets
    )
    with pytest.raises(InterruptionError):
        ep.solve(
            cmdp,
            ep.PolicyGradient(**kept, progress=interrupt_at(40)),
            uncertainty=sets,
        )
    assert file.exists()
    resumed = ep.solve(cmdp, ep.PolicyGradient(**kept), uncertainty=sets)
    assert resumed.policy == whole.policy
    assert resumed.value == whole.value
    np.testing.assert_array_equal(resumed.multipliers, whole.multipliers)
    # a finished run is answered from the file
    again = ep.solve(cmdp, ep.PolicyGradient(**kept), uncertainty=sets)
    assert again.policy == whole.policy
    assert again.iterations == whole.iterations == 60


def test_a_checkpoint_is_of_one_run_alone(tmp_path) -> None:
    cmdp = small()
    file = tmp_path / "run.npz"
    ep.solve(cmdp, ep.PolicyGradient(**QUICK, checkpoint=file))
    with pytest.raises(InvalidFileError, match="checkpoint: expected seed 1, found 0"):
        ep.solve(cmdp, ep.PolicyGradient(**QUICK, checkpoint=file, seed=1))
    with pytest.raises(InvalidFileError, match="checkpoint: expected problem"):
        ep.solve(small(1), ep.PolicyGradient(**QUICK, checkpoint=file))
    for radius in (0.1, 0.2):
        sets = ep.uncertainty.L1Ball(cmdp, radius=radius)
        with pytest.raises(InvalidFileError, match="checkpoint: expected uncertainty"):
            ep.solve(
                cmdp, ep.PolicyGradient(**QUICK, checkpoint=file), uncertainty=sets
            )


def test_a_damaged_checkpoint_is_refused(tmp_path) -> None:
    cmdp = small()
    file = tmp_path / "run.npz"
    solver = ep.PolicyGradient(**QUICK, checkpoint=file)
    ep.solve(cmdp, solver)
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InvalidFileError, match="checkpoint: expected a whole file"):
        ep.solve(cmdp, solver)
    np.savez(file, theta=np.zeros(3))
    with pytest.raises(InvalidFileError, match="checkpoint: expected a whole file"):
        ep.solve(cmdp, solver)
    header = {"format": "else", "version": 9, "fingerprint": "", "content": {}}
    np.savez(file, header=np.frombuffer(json.dumps(header).encode(), dtype=np.uint8))
    with pytest.raises(
        InvalidFileError, match=r"checkpoint: expected format .*, found 'else'"
    ):
        ep.solve(cmdp, solver)


# -- settings --------------------------------------------------------------------------


def test_bad_settings_are_refused() -> None:
    for name in ("iterations", "trajectories", "judge_every", "horizon"):
        with pytest.raises(InvalidInputError, match=f"{name}: expected a whole number"):
            ep.PolicyGradient(**{name: 0})
    with pytest.raises(InvalidInputError, match="iterations: expected a whole number"):
        ep.PolicyGradient(iterations=True)
    with pytest.raises(InvalidInputError, match="baseline: expected 'none'"):
        ep.PolicyGradient(baseline="critic")
    with pytest.raises(InvalidInputError, match="policy_rate: expected a rate above"):
        ep.PolicyGradient(policy_rate=-1.0)
    with pytest.raises(InvalidInputError, match="multiplier_rate: expected a number"):
        ep.PolicyGradient(multiplier_rate="fast")
    with pytest.raises(InvalidInputError, match="time_limit: expected"):
        ep.PolicyGradient(time_limit=-1.0)
    assert isinstance(ep.PolicyGradient(), RobustSolver)


def test_schedules() -> None:
    assert LearningRate(2.0).at(500, 1_000) == 2.0
    assert LearningRate(2.0, "sqrt", 100.0).at(300, 1_000) == 1.0
    assert LearningRate(2.0, "inverse", 100.0).at(300, 1_000) == 0.5
    cosine = LearningRate(2.0, "cosine")
    assert [cosine.at(k, 10) for k in (0, 5, 10, 20)] == pytest.approx([2, 1, 0, 0])
    assert read_rate("rate", 3) == LearningRate(3.0)
    with pytest.raises(InvalidInputError, match="initial: expected a rate above 0"):
        LearningRate(0.0)
    with pytest.raises(InvalidInputError, match="schedule: expected 'constant'"):
        LearningRate(1.0, "linear")
    with pytest.raises(InvalidInputError, match="half: expected a number of"):
        LearningRate(1.0, "sqrt", 0.0)


def test_a_mixture_that_highs_cannot_find_is_an_error(monkeypatch) -> None:
    monkeypatch.setattr(
        iterate_mixture,
        "maximise",
        lambda *_, **__: LinearAnswer(
            outcome="imprecise", x=None, prices=None, iterations=0
        ),
    )
    with pytest.raises(SolverError, match="could not mix 1 policies"):
        ep.solve(small(), ep.PolicyGradient(**QUICK))
