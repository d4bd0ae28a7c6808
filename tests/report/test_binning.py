"""Few numbers that hide no extreme."""

from __future__ import annotations

import numpy as np
import pytest

from escapade.report.binning import Bins


@pytest.mark.parametrize("steps", [1, 2, 19, 20, 21, 1000, 2_000_000])
def test_bins_hold_every_step_once(steps):
    bins = Bins.over(steps, each_way=10)
    assert bins.first[0] == 0
    assert (np.diff(bins.first) > 0).all()
    assert bins.lengths.sum() == steps
    assert len(bins) <= 20
    assert bins.downsampled == (steps > 20)


def test_one_excess_among_a_million_steps_is_shown():
    values = np.zeros(1_000_000)
    values[777_777] = 3.0
    bins = Bins.over(values.size)
    assert bins.highest(values).max() == 3.0
    assert bins.lowest(-values).min() == -3.0
    assert bins.count(values > 0).sum() == 1
    assert bins.total(values).sum() == 3.0


def test_what_is_not_known_is_passed_over():
    bins = Bins.over(4)
    values = np.array([1.0, np.nan, 2.0, np.nan])
    assert np.nanmax(bins.highest(values)) == 2.0
    assert bins.total(values).tolist() == [1.0, 0.0, 2.0, 0.0]


def test_least_values_among_some_steps():
    rng = np.random.default_rng(3)
    values, mask = rng.random(500), rng.random(500) < 0.1
    bins = Bins.over(500, each_way=8)
    at, least = bins.lowest_where(values, mask)
    expected = []
    for first, length in zip(bins.first, bins.lengths, strict=True):
        some = np.arange(first, first + length)
        some = some[mask[some]]
        if some.size:
            expected.append((some[0], values[some].min()))
    assert list(zip(at, least, strict=True)) == expected
    none, _ = bins.lowest_where(values, np.zeros(500, dtype=bool))
    assert none.size == 0


@pytest.mark.parametrize("steps", [5, 500])
def test_the_step_of_the_least_value_is_the_first_of_equals(steps):
    rng = np.random.default_rng(4)
    values = rng.integers(0, 4, steps).astype(float)
    values[rng.random(steps) < 0.2] = np.nan
    bins = Bins.over(steps, each_way=8)
    expected = [
        first + int(np.argmin(np.nan_to_num(values[first : first + length], nan=9)))
        for first, length in zip(bins.first, bins.lengths, strict=True)
    ]
    assert bins.place_of_lowest(values).tolist() == expected
