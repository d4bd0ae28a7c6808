"""Laws of samples: their bounds, their means, their distributions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from escapade.environments.noise import draw_sample, read_noise
from escapade.errors import InvalidInputError

LAWS = ("deterministic", "bernoulli", "uniform")


class Fixed:
    """A generator that gives the numbers it was made with, and counts them."""

    def __init__(self, *numbers):
        self.numbers = list(numbers)

    def random(self):
        return self.numbers.pop(0)


@st.composite
def means_and_bounds(draw):
    maximum = draw(st.floats(0.0, 1e6))
    return draw(st.floats(0.0, maximum)), maximum


@given(means_and_bounds(), st.floats(0.0, 1.0, exclude_max=True))
def test_samples_keep_their_bounds(pair, u):
    mean, maximum = pair
    for law in LAWS:
        assert 0.0 <= draw_sample(law, mean, maximum, Fixed(u)) <= maximum


@given(means_and_bounds())
def test_what_each_law_draws(pair):
    mean, maximum = pair
    still = Fixed()
    assert draw_sample("deterministic", mean, maximum, still) == mean
    for law in ("bernoulli", "uniform"):
        one = Fixed(0.25, 0.5)
        draw_sample(law, mean, maximum, one)
        assert one.numbers == [0.5]


@pytest.mark.parametrize("mean", [0.0, 0.3, 1.0, 1.7, 2.0])
def test_the_mean_over_an_even_grid_of_draws_is_the_mean(mean):
    n = 10_000
    numbers = (np.arange(n) + 0.5) / n
    for law in LAWS:
        samples = [draw_sample(law, mean, 2.0, Fixed(u)) for u in numbers]
        assert np.mean(samples) == pytest.approx(mean, abs=2e-4)


def test_laws_at_their_edges():
    assert draw_sample("bernoulli", 0.0, 1.0, Fixed(0.0)) == 0.0
    assert draw_sample("bernoulli", 1.0, 1.0, Fixed(np.nextafter(1.0, 0.0))) == 1.0
    assert draw_sample("bernoulli", 0.0, 0.0, Fixed(0.0)) == 0.0
    assert draw_sample("uniform", 0.25, 1.0, Fixed(0.0)) == 0.0
    assert draw_sample("uniform", 0.75, 1.0, Fixed(0.0)) == 0.5


def test_an_unknown_law_is_refused():
    with pytest.raises(
        InvalidInputError, match=r"cost_noise: expected one of .*'gauss'"
    ):
        read_noise("cost_noise", "gauss")
