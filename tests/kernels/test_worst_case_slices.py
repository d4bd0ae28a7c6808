"""Slices: the layout, the sorting networks, and the greedy hand-out of mass.

A network of comparators sorts everything if it sorts all rows of zeros and ones, which
settles widths 2, 4 and 8 for good.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from escapade.kernels.worst_case_slices import (
    LANES,
    WIDEST,
    fill_from_top,
    fill_slice,
    gather_slice,
)
from escapade.uncertainty.sliced import slice_rows


def _hand_out(z, mass, amount):
    """Give ``amount`` to the largest values first: what every route must agree with."""
    total, left = 0.0, amount
    for k in np.argsort(-z, kind="stable"):
        x = min(mass[k], left)
        total += x * z[k]
        left -= x
    return total


def _fill(values, masses, amounts):
    """Run the kernel on up to 64 rows, ``[rows, width]``."""
    rows, width = values.shape
    z = np.zeros(WIDEST * LANES)
    mass = np.zeros(width * LANES)
    amount = np.zeros(LANES)
    for k in range(width):
        z[k * LANES : k * LANES + rows] = values[:, k]
        mass[k * LANES : k * LANES + rows] = masses[:, k]
    amount[:rows] = amounts
    fill, top = np.empty(LANES), np.empty(LANES)
    scratch = np.empty(WIDEST * LANES)
    fill_slice(z, mass, 0, width, amount, 0, scratch, fill, top)
    return fill[:rows], top[:rows]


def _zeros_and_ones(width):
    if width <= 8:
        return np.array(list(product([0.0, 1.0], repeat=width)))
    rng = np.random.default_rng(width)
    sorted_ones = np.tril(np.ones((width, width)))
    shuffled = rng.permuted(np.concatenate([sorted_ones] * 3), axis=1)
    return np.concatenate([sorted_ones, sorted_ones[:, ::-1], shuffled])


@pytest.mark.parametrize("width", [1, 2, 4, 8, 16, 32, 64])
def test_networks_sort_zeros_and_ones(width):
    every = _zeros_and_ones(width)
    every = every[:: max(1, len(every) // 512)]
    for first in range(0, len(every), LANES):
        rows = every[first : first + LANES]
        masses = np.full(rows.shape, 1.0)
        # as much mass as there are ones finds ones only, if and only if sorted
        ones = rows.sum(axis=1)
        fill, top = _fill(rows, masses, ones)
        assert np.array_equal(fill, ones)
        assert np.array_equal(top, rows.max(axis=1))
        fill, _ = _fill(rows, masses, ones + 0.5)
        assert np.array_equal(fill, ones)


@pytest.mark.parametrize("width", [1, 2, 4, 8, 16, 32, 64])
def test_fill_slice_is_the_greedy_hand_out(width):
    rng = np.random.default_rng(width)
    values = rng.standard_normal((LANES, width))
    values[::3] = np.round(values[::3])  # ties
    masses = rng.random((LANES, width)) * (rng.random((LANES, width)) < 0.7)
    amounts = masses.sum(axis=1) * rng.choice([0.0, 0.3, 0.9, 1.0, 1.5], LANES)
    fill, top = _fill(values, masses, amounts)
    expected = [
        _hand_out(z, p, a) for z, p, a in zip(values, masses, amounts, strict=True)
    ]
    np.testing.assert_allclose(fill, expected, rtol=0, atol=1e-12 * width)
    assert np.array_equal(top, values.max(axis=1))


def test_fill_from_top_is_the_greedy_hand_out():
    rng = np.random.default_rng(0)
    for _ in range(300):
        n = int(rng.integers(1, 40))
        z = rng.standard_normal(n)
        if rng.random() < 0.5:
            z = np.round(z)
        p = rng.random(n) * (rng.random(n) < 0.8)
        amount = float(rng.choice([0.0, 0.4, 1.0, 2.0])) * p.sum()
        expected = _hand_out(z, p, amount)
        pairs = sorted(zip(z, p, strict=True))
        found = fill_from_top(z, p, n, amount)
        assert found == pytest.approx(expected, abs=1e-12 * n)
        # the arrays are reordered, never changed
        assert sorted(zip(z, p, strict=True)) == pairs


def test_fill_from_top_of_nothing_is_nothing():
    assert fill_from_top(np.empty(0), np.empty(0), 0, 1.0) == 0.0


def test_gather_multiplies_by_the_sign():
    index = np.zeros(2 * LANES, dtype=np.int32)
    index[LANES:] = 1
    z = np.empty(2 * LANES)
    gather_slice(index, 0, 2, np.array([3.0, -5.0]), -1.0, z)
    assert set(z[:LANES]) == {-3.0}
    assert set(z[LANES:]) == {5.0}


def test_every_row_is_laid_out_once_with_its_own_entries(make_rows):
    rng = np.random.default_rng(2)
    rows = make_rows(rng, n_rows=150)
    slices = slice_rows(rows.row_ptr, rows.successor, rows.nominal)
    lengths = np.diff(rows.row_ptr)
    placed = slices.row_of[slices.row_of >= 0]
    assert sorted([*placed, *slices.wide]) == list(range(150))
    assert set(lengths[slices.wide]) == {65, 80}
    for slot in np.flatnonzero(slices.row_of >= 0):
        row = slices.row_of[slot]
        part, lane = divmod(int(slot), LANES)
        width = slices.width[part]
        at = slices.start[part] + lane + LANES * np.arange(width)
        own = slice(rows.row_ptr[row], rows.row_ptr[row + 1])
        n = lengths[row]
        assert width / 2 < n <= width
        assert np.array_equal(slices.index[at[:n]], rows.successor[own])
        assert np.array_equal(slices.mass[at[:n]], rows.nominal[own])
        assert np.all(slices.index[at[n:]] == rows.successor[own][0])
        assert not slices.mass[at[n:]].any()


def test_per_slot_and_per_entry_follow_the_rows(make_rows):
    rng = np.random.default_rng(3)
    rows = make_rows(rng, n_rows=100, lengths=(3, 8, 70))
    slices = slice_rows(rows.row_ptr, rows.successor, rows.nominal)
    lanes = slices.per_slot(np.arange(100.0), fill=-7.0)
    taken = slices.row_of >= 0
    assert np.array_equal(lanes[taken], slices.row_of[taken])
    assert set(lanes[~taken]) == {-7.0}
    again = slices.per_entry(rows.row_ptr, rows.successor, rows.nominal)
    assert np.array_equal(again, slices.mass)
    assert not np.array_equal(
        slices.per_entry(rows.row_ptr, rows.successor, 1.0 - rows.nominal), slices.mass
    )
