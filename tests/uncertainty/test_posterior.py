"""Credible regions: what a posterior believes, from a Dirichlet or from samples."""

from __future__ import annotations

import numpy as np
import pytest

import escapade as ep
from escapade.errors import InvalidInputError
from escapade.testing import check_uncertainty_set
from escapade.uncertainty import Interval, KLBall, L1Ball, Models
from escapade.uncertainty.posterior import credible_factor, in_scales, radii

ALPHA = np.array(
    [
        [[1.5, 4.0, 0.5], [30.0, 2.0, 8.0]],
        [[0.5, 0.5, 0.5], [100.0, 1.0, 1.0]],
        [[9.0, 9.0, 9.0], [2.0, 0.3, 70.0]],
    ]
)
BALLS = (L1Ball, Interval, KLBall)


def _draws(count, seed=0):
    rng = np.random.default_rng(seed)
    weights = rng.standard_gamma(np.broadcast_to(ALPHA, (count, *ALPHA.shape)))
    return weights / weights.sum(axis=-1, keepdims=True)


def _cmdp(P, **keywords):
    flat = np.zeros(P.shape[:2])
    return ep.CMDP(P, flat, flat, discount=0.9, budget=1.0, **keywords)


def test_the_factor_is_an_order_statistic():
    largest = np.random.default_rng(0).permutation(np.arange(1.0, 100.0))
    assert credible_factor(largest, 0.05) == 95.0
    assert credible_factor(largest, 0.01) == 99.0
    assert credible_factor(np.arange(1.0, 20.0), 0.05) == 19.0
    with pytest.raises(InvalidInputError, match="draws: expected at least 199"):
        credible_factor(largest, 0.005)


def test_scales_of_nothing():
    assert in_scales(np.array([0.0, 1e-16, 2.0]), np.array([0.0, 0.0, 4.0])) == 0.5
    assert in_scales(np.zeros(2), np.zeros(2)) == 0.0
    assert radii(np.array([0.0, 1.0, 3.0]), np.inf, 2.0).tolist() == [0.0, 2.0, 2.0]


@pytest.mark.parametrize("cls", BALLS)
def test_sets_from_samples_obey_the_laws(cls):
    sets = cls.from_posterior_samples(_draws(200))
    check_uncertainty_set(sets, _cmdp(ALPHA / ALPHA.sum(-1, keepdims=True)), draws=5)
    assert sets.contains(sets.nominal).all()


@pytest.mark.statistical
@pytest.mark.parametrize("cls", BALLS)
def test_the_joint_level_from_samples_is_kept(cls):
    """δ = .1 by 999 of 1,999 draws and judged by 1,500 more.

    The level of a fresh draw is Beta(900, 100): .9 ± .0095, and judging adds ± .0077.
    Six standard deviations either way: fails by chance with probability below 1e-8.
    """
    sets = cls.from_posterior_samples(_draws(1999), delta=0.1)
    fresh = _draws(1500, seed=1).reshape(1500, -1)
    inside = np.mean([sets.contains(draw).all() for draw in fresh])
    assert inside == pytest.approx(0.9, abs=6 * np.hypot(0.0095, 0.0077))


@pytest.mark.statistical
@pytest.mark.parametrize("cls", BALLS)
def test_the_joint_level_of_a_dirichlet_is_kept(cls):
    """As above; intervals use a union bound and may hold more."""
    options = {} if cls is Interval else {"draws": 999}
    sets = cls.from_counts(
        ALPHA - 0.25, bound="bayes", prior=0.25, delta=0.1, **options
    )
    fresh = _draws(1500, seed=2).reshape(1500, -1)
    inside = np.mean([sets.contains(draw).all() for draw in fresh])
    assert inside >= 0.9 - 6 * np.hypot(0.0095, 0.0077)
    assert inside <= (0.99 if cls is Interval else 0.9 + 6 * np.hypot(0.0095, 0.0077))


def test_the_mean_is_that_of_the_posterior():
    mean = ALPHA / ALPHA.sum(axis=-1, keepdims=True)
    exact = L1Ball.from_counts(ALPHA - 0.25, bound="bayes", prior=0.25)
    np.testing.assert_allclose(exact.nominal, mean.ravel())
    sampled = L1Ball.from_posterior_samples(_draws(4000))
    np.testing.assert_allclose(sampled.nominal, mean.ravel(), atol=0.03)


def test_what_no_sample_reaches_is_impossible():
    draws = _draws(50)
    draws[:, 0, 0] = [0.0, 1.0, 0.0]
    for cls in BALLS:
        sets = cls.from_posterior_samples(draws)
        assert sets.successor[: sets.row_ptr[1]].tolist() == [1]
        assert sets.worst(np.array([9.0, 1.0, 9.0]))[0] == 1.0


def test_samples_of_a_problem_that_lacks_actions():
    available = np.array([[True, False], [True, True], [True, True]])
    cmdp = _cmdp(ALPHA / ALPHA.sum(-1, keepdims=True), available=available)
    draws = _draws(60)
    whole = L1Ball.from_posterior_samples(draws, cmdp=cmdp)
    assert whole.n_pairs == 5
    by_pair = draws[:, cmdp.pair_state, cmdp.pair_action]
    flat = L1Ball.from_posterior_samples(draws.reshape(60, 6, 3), cmdp=cmdp)
    for same in (L1Ball.from_posterior_samples(by_pair, cmdp=cmdp), flat):
        assert np.array_equal(same.radius, whole.radius)


def test_single_precision_samples_are_taken():
    sets = L1Ball.from_posterior_samples(_draws(60).astype(np.float32))
    assert sets.contains(sets.nominal, tolerance=1e-12).all()


def test_a_family_of_samples_is_centred_on_one_of_them():
    draws = _draws(40)
    models = Models.from_posterior_samples(draws)
    assert models.n_models == 40
    assert not models.rectangular
    assert any(np.allclose(models.nominal, draw.ravel(), atol=1e-15) for draw in draws)
    mixed = Models.from_posterior_samples(draws, throughout=False)
    v = np.array([1.0, -2.0, 5.0])
    np.testing.assert_allclose(mixed.worst(v), (draws @ v).max(axis=0).ravel())


@pytest.mark.parametrize(
    ("samples", "message"),
    [
        (np.ones((5, 3)), "samples: expected an array of shape (samples, S, A, S)"),
        (np.full((5, 3, 2, 3), "x"), "samples: expected an array of shape"),
        (np.ones((0, 3, 2, 3)), "samples: expected an array of shape"),
        (np.ones((5, 2, 2, 3)), "samples: expected shape (S, A, S)"),
        (np.ones((5, 3, 2, 3)), "rows that sum to 1, found a sum of 3 at sample 0"),
        (-_draws(5), "samples: expected finite probabilities of at least 0"),
        (_draws(3), "samples: expected at least 4 draws, found 3"),
        (_draws(20), "draws: expected at least 19 to set a level of 0.95, found 10"),
    ],
)
def test_bad_samples_are_refused(samples, message):
    with pytest.raises(InvalidInputError) as caught:
        L1Ball.from_posterior_samples(samples)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("samples", "message"),
    [
        (np.full((5, 4, 2, 4), 0.25), "samples: expected 3 states"),
        (np.full((5, 5, 3), 1 / 3), "samples: expected 6 pairs"),
        (np.full((5, 3, 3), 1 / 3), "samples: expected 6 pairs"),
    ],
)
def test_samples_of_another_problem_are_refused(samples, message):
    cmdp = _cmdp(ALPHA / ALPHA.sum(-1, keepdims=True))
    with pytest.raises(InvalidInputError) as caught:
        L1Ball.from_posterior_samples(samples, cmdp=cmdp)
    assert message in str(caught.value)
