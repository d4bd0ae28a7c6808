"""Draws by inversion, against NumPy's search."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from escapade.kernels.sampling import draw, fill_cumulative, rollout

LENGTHS = (
    1,
    2,
    3,
    15,
    16,
    17,
    18,
    64,
    200,
)  # short rows are walked, long ones bisected


def rows(seed=0, zeros=0.0):
    rng = np.random.default_rng(seed)
    row_ptr = np.concatenate([[0], np.cumsum(LENGTHS)])
    weight = rng.random(row_ptr[-1])
    weight[rng.random(weight.size) < zeros] = 0.0
    weight[row_ptr[:-1]] += 1e-3  # no row without weight
    sums = np.add.reduceat(weight, row_ptr[:-1])
    weight /= np.repeat(sums, LENGTHS)
    cumulative = np.empty_like(weight)
    fill_cumulative(row_ptr, weight, cumulative)
    return row_ptr, weight, cumulative


def test_sums_are_those_of_the_row_and_end_at_one():
    row_ptr, weight, cumulative = rows()
    for low, high in itertools.pairwise(row_ptr):
        np.testing.assert_allclose(cumulative[low:high], np.cumsum(weight[low:high]))
        assert cumulative[high - 1] == 1.0


def test_a_row_that_ends_in_zeros_never_draws_them():
    weight = np.array([0.5, 0.5 - 1e-12, 0.0, 0.0])
    cumulative = np.empty(4)
    fill_cumulative(np.array([0, 4]), weight, cumulative)
    assert cumulative.tolist() == [0.5, 1.0, 1.0, 1.0]
    last = np.nextafter(1.0, 0.0)
    assert draw(np.array([0, 4]), cumulative, 0, last) == 1


@pytest.mark.parametrize("zeros", [0.0, 0.6])
def test_a_draw_is_the_first_entry_that_exceeds_the_number(zeros):
    row_ptr, weight, cumulative = rows(1, zeros)
    rng = np.random.default_rng(2)
    for row, (low, high) in enumerate(itertools.pairwise(row_ptr)):
        inner = cumulative[low : high - 1]
        edges = [*inner, *np.nextafter(inner, 0.0), 0.0, np.nextafter(1.0, 0.0)]
        for u in [*edges, *rng.random(50)]:
            if not 0.0 <= u < 1.0:
                continue
            entry = draw(row_ptr, cumulative, row, u)
            expected = low + np.searchsorted(cumulative[low:high], u, side="right")
            assert entry == expected
            assert weight[entry] > 0.0


def test_a_path_uses_two_numbers_a_step():
    state_ptr = np.array([0, 2, 3])
    row_ptr = np.array([0, 1, 2, 4])
    successor = np.array([0, 1, 0, 1], dtype=np.int32)
    actions, cumulative = np.empty(3), np.empty(4)
    fill_cumulative(state_ptr, np.array([0.5, 0.5, 1.0]), actions)
    fill_cumulative(row_ptr, np.array([1.0, 1.0, 0.25, 0.75]), cumulative)
    states, pairs = np.empty(51, dtype=np.int32), np.empty(50, dtype=np.int32)
    rollout(
        state_ptr,
        actions,
        row_ptr,
        successor,
        cumulative,
        0,
        np.random.default_rng(8),
        states,
        pairs,
    )
    numbers = np.random.default_rng(8).random(100)
    assert states[0] == 0
    for t in range(50):
        pair = draw(state_ptr, actions, states[t], numbers[2 * t])
        entry = draw(row_ptr, cumulative, pair, numbers[2 * t + 1])
        assert pairs[t] == pair
        assert states[t + 1] == successor[entry]
