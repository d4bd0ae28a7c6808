"""The bound on a mean by betting: it covers, and what it costs is known."""

from __future__ import annotations

import numpy as np
import pytest

from escapade.errors import InvalidInputError
from escapade.theory.betting import upper_mean_bound

LAWS = {
    "coin": (lambda rng, size: rng.random(size) < 0.05, 0.05),
    "rare": (lambda rng, size: rng.random(size) < 0.004, 0.004),
    "even": (lambda rng, size: rng.random(size), 0.5),
    "narrow": (lambda rng, size: rng.uniform(0.3, 0.302, size), 0.301),
}


@pytest.mark.statistical  # each false with probability below 1e-6 (exact binomial tail)
@pytest.mark.parametrize("law", LAWS)
def test_the_mean_lies_above_at_most_as_often_as_stated(law):
    draw, mean = LAWS[law]
    rng = np.random.default_rng(7)
    trials, delta = 4_000, 0.05
    samples = np.asarray(draw(rng, (60, trials)), dtype=float)
    bound = upper_mean_bound(samples, low=0.0, high=1.0, delta=delta)
    failures = int((bound < mean).sum())
    assert failures <= 200 + 66  # 4.79 standard deviations of Binomial(4000, .05)


def test_samples_that_do_not_vary_cost_what_cannot_be_seen():
    n, delta = 300, 0.01
    bound = float(upper_mean_bound(np.zeros(n), low=0.0, high=1.0, delta=delta))
    unseen = 1.0 - delta ** (1.0 / n)
    assert unseen < bound < 1.0 - (delta / 2.0) ** (1.0 / n) + 1e-9


def test_more_samples_and_less_confidence_narrow_it():
    x = np.random.default_rng(3).beta(2.0, 8.0, 4_000)
    bounds = [
        float(upper_mean_bound(x[:n], low=0.0, high=1.0, delta=0.05))
        for n in (50, 400, 4_000)
    ]
    assert bounds[0] > bounds[1] > bounds[2] > x.mean()
    assert bounds[2] < x.mean() + 4.0 * x.std() / np.sqrt(4_000)
    surer = float(upper_mean_bound(x, low=0.0, high=1.0, delta=1e-6))
    assert surer > bounds[2]


def test_units_do_not_matter_and_columns_stand_alone():
    x = np.random.default_rng(4).random((30, 2, 3))
    plain = upper_mean_bound(x, low=0.0, high=1.0, delta=0.1)
    moved = upper_mean_bound(10.0 * x - 4.0, low=-4.0, high=6.0, delta=0.1)
    assert plain.shape == (2, 3)
    np.testing.assert_allclose(moved, 10.0 * plain - 4.0, atol=1e-8)
    single = upper_mean_bound(x[:, 1, 2], low=0.0, high=1.0, delta=0.1)
    np.testing.assert_allclose(single, plain[1, 2], atol=1e-12)


def test_nothing_can_be_above_the_bound_of_the_samples():
    assert upper_mean_bound(np.ones(9), low=0.0, high=1.0, delta=0.1) == 1.0


@pytest.mark.parametrize(
    ("samples", "low", "high", "delta", "name"),
    [
        ([], 0.0, 1.0, 0.1, "samples"),
        ([0.2, 1.2], 0.0, 1.0, 0.1, r"samples.*1\.2 at \(1,\)"),
        ([0.2], 1.0, 1.0, 0.1, "high"),
        ([0.2], 0.0, 1.0, 1.0, "delta"),
    ],
)
def test_bad_numbers_are_refused(samples, low, high, delta, name):
    with pytest.raises(InvalidInputError, match=name):
        upper_mean_bound(samples, low=low, high=high, delta=delta)
