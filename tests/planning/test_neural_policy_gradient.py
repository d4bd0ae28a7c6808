"""The policy gradient with a neural network."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import escapade as ep
from escapade.errors import InvalidInputError, MissingExtraError
from escapade.planning import NeuralPolicyGradient


def quick(**changes) -> NeuralPolicyGradient:
    fields = {"iterations": 60, "trajectories": 8, "judge_every": 20, "layers": (8,)}
    return NeuralPolicyGradient(**{**fields, **changes})


@pytest.fixture
def grid() -> ep.CMDP:
    return ep.environments.barrier_grid().cmdp


def test_without_pytorch_the_error_says_what_to_install(monkeypatch, grid) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match=r'pip install "escapade\[torch\]"'):
        ep.solve(grid, quick())


def test_bad_settings_are_refused(grid) -> None:
    with pytest.raises(InvalidInputError, match="layers: expected a whole number"):
        quick(layers=(8, 0))
    with pytest.raises(InvalidInputError, match="features: expected 'state'"):
        quick(features="pixels")
    with pytest.raises(InvalidInputError, match="iterations: expected a whole number"):
        quick(iterations=0)
    with pytest.raises(InvalidInputError, match=r"features: expected shape \(36, n\)"):
        ep.solve(grid, quick(features=np.zeros((3, 2))))
    with pytest.raises(InvalidInputError, match="the problem has no coordinates"):
        ep.solve(grid.replace(coordinates=None), quick(features="coordinates"))
    assert NeuralPolicyGradient.robust
    assert NeuralPolicyGradient.nominal


@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "features"),
    [("barrier_grid", "coordinates"), ("three_state_loop", "state")],
)
def test_near_the_optimum(name, features) -> None:
    world = getattr(ep.environments, name)()
    cmdp = world.cmdp
    answer = ep.solve(cmdp, NeuralPolicyGradient(features=features))
    optimum = ep.solve(cmdp).value
    assert answer.status == "feasible"
    result = ep.evaluate(cmdp, answer.policy)
    assert (result.start_costs <= cmdp.budget + result.error).all()
    assert 0.98 * optimum <= answer.value <= optimum * (1.0 + 1e-9)
    assert answer.lower <= answer.value <= answer.upper


@pytest.mark.torch
def test_the_same_seed_gives_the_same_answer(grid) -> None:
    one = ep.solve(grid, quick(seed=2))
    two = ep.solve(grid, quick(seed=2))
    assert one.policy == two.policy
    assert one.status == "feasible"


@pytest.mark.torch
def test_features_of_ones_own_and_masks(grid) -> None:
    rng = np.random.default_rng(0)
    available = np.ones((4, 3), dtype=bool)
    available[1:, 2] = False
    cmdp = ep.CMDP(
        rng.dirichlet(np.ones(4), size=(4, 3)),
        rng.random((4, 3)),
        rng.random((4, 3)),
        discount=0.7,
        budget=2.0,
        available=available,
    )
    features = rng.standard_normal((4, 5))
    answer = ep.solve(cmdp, quick(features=features))
    assert (answer.policy.probabilities[~available] == 0.0).all()
    assert answer.value <= ep.solve(cmdp).upper + 1e-9
    solver = quick(features=features)
    features[:] = np.nan  # the solver keeps a copy of its own
    assert ep.solve(cmdp, solver).policy == answer.policy
    with pytest.raises(InvalidInputError, match="features: expected finite numbers"):
        quick(features=features)


@pytest.mark.torch
def test_under_a_set(grid) -> None:
    sets = ep.uncertainty.L1Ball(grid, radius=0.05)
    answer = ep.solve(grid, quick(), uncertainty=sets)
    bounds = ep.planning.robust_evaluate(grid, answer.policy, sets)
    assert (bounds.start_costs_upper <= grid.budget + 1e-7).all()
    assert answer.lower <= answer.value <= answer.upper


@pytest.mark.torch
def test_a_run_goes_on_where_it_was_interrupted(grid, tmp_path) -> None:
    class InterruptionError(Exception):
        pass

    def stop(update) -> None:
        if update.iteration >= 40:
            raise InterruptionError

    file = tmp_path / "run.npz"
    whole = ep.solve(grid, quick())
    kept = {"checkpoint": file, "checkpoint_every": 9}
    with pytest.raises(InterruptionError):
        ep.solve(grid, quick(**kept, progress=stop))
    resumed = ep.solve(grid, quick(**kept))
    assert resumed.policy == whole.policy
    assert resumed.value == whole.value


@pytest.mark.torch
def test_the_number_of_threads_is_left_alone(grid) -> None:
    import torch

    before = torch.get_num_threads()
    ep.solve(grid, quick(iterations=2))
    assert torch.get_num_threads() == before
