"""The worst case over intervals, alone or cut by an L1 ball: as linear programs say."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

from escapade.kernels.worst_case_interval import boxed_worst
from escapade.uncertainty import Interval
from escapade.uncertainty.rows import row_sums


def _bounds(rng, rows):
    """Bounds around the nominal: tight, loose, one-sided and closed ones."""
    entries = rows.nominal.size
    down = rng.choice([0.0, 0.02, 0.3, 1.0], entries) * rng.random(entries)
    up = rng.choice([0.0, 0.02, 0.3, 1.0], entries) * rng.random(entries)
    return np.maximum(rows.nominal - down, 0.0), np.minimum(rows.nominal + up, 1.0)


def test_extremes_are_those_of_a_linear_program(
    make_rows, make_values, box_optimum, expectation
):
    rng = np.random.default_rng(1)
    for _ in range(4):
        rows = make_rows(rng)
        bounds = Interval.around(rows, *_bounds(rng, rows))
        v = make_values(rng, rows.n_states)
        scale = np.abs(v).max()
        most, least = bounds.worst(v), bounds.worst(v, sense="min")
        for row in range(rows.n_rows):
            own = slice(rows.row_ptr[row], rows.row_ptr[row + 1])
            low, high = bounds.lower[own], bounds.upper[own]
            z = v[rows.successor[own]]
            up, down = box_optimum(low, high, z), -box_optimum(low, high, -z)
            assert most[row] == pytest.approx(up, abs=1e-9 * scale)
            assert least[row] == pytest.approx(down, abs=1e-9 * scale)
        for sense, extreme in (("max", most), ("min", least)):
            kernel = bounds.worst_kernel(v, sense=sense)
            assert bounds.contains(kernel, tolerance=1e-12).all()
            attained = expectation(rows.row_ptr, rows.successor, kernel, v)
            np.testing.assert_allclose(attained, extreme, rtol=0, atol=1e-12 * scale)


def test_closed_bounds_leave_the_nominal_row(make_rows, make_values, expectation):
    rng = np.random.default_rng(2)
    rows = make_rows(rng, n_rows=40)
    v = make_values(rng, rows.n_states)
    bounds = Interval.around(rows, rows.nominal, rows.nominal)
    plain = expectation(rows.row_ptr, rows.successor, rows.nominal, v)
    for sense in ("max", "min"):
        np.testing.assert_allclose(
            bounds.worst(v, sense=sense), plain, rtol=0, atol=1e-13 * np.abs(v).max()
        )
        np.testing.assert_allclose(
            bounds.worst_kernel(v, sense=sense), rows.nominal, rtol=0, atol=1e-15
        )


def test_open_bounds_reach_the_best_successor(make_rows, make_values):
    rng = np.random.default_rng(3)
    rows = make_rows(rng, n_rows=40)
    v = make_values(rng, rows.n_states)
    bounds = Interval.around(
        rows, np.zeros_like(rows.nominal), np.ones_like(rows.nominal)
    )
    best = np.maximum.reduceat(v[rows.successor], rows.row_ptr[:-1])
    assert np.array_equal(bounds.worst(v), best)


def test_threads_give_the_same_bits(make_rows, make_values, monkeypatch):
    rng = np.random.default_rng(8)
    rows = make_rows(rng, n_rows=210)
    bounds = Interval.around(rows, *_bounds(rng, rows))
    v = make_values(rng, rows.n_states)
    alone = [bounds.backup(v, None, 0.9, sense=sense) for sense in ("max", "min")]
    monkeypatch.setattr("escapade.uncertainty.interval.pieces_of_work", lambda _: 3)
    shared = [bounds.backup(v, None, 0.9, sense=sense) for sense in ("max", "min")]
    assert all(map(np.array_equal, alone, shared))


def _lp_boxed(p, low, high, radius, z):
    """Return the most that ``q z`` can be in the box and in the L1 ball around p."""
    n = p.size
    eye = np.eye(n)
    return linprog(
        np.concatenate([-z, np.zeros(n)]),
        A_ub=np.block([[eye, -eye], [-eye, -eye], [np.zeros((1, n)), np.ones((1, n))]]),
        b_ub=np.concatenate([p, -p, [radius]]),
        A_eq=np.concatenate([np.ones(n), np.zeros(n)])[np.newaxis],
        b_eq=[1.0],
        bounds=[*zip(low, high, strict=True), *([(0.0, None)] * n)],
    )


def test_box_and_ball_together_are_a_linear_program(make_rows, make_values):
    """The nominal may lie outside the box, as long as the ball meets it."""
    rng = np.random.default_rng(4)
    seen_outside = 0
    for _ in range(12):
        rows = make_rows(rng, n_rows=8, lengths=(1, 2, 3, 5, 8, 20), zeros=0.2)
        centre = rows.nominal
        other = make_rows(rng, n_rows=8, lengths=(1, 2, 3, 5, 8, 20)).nominal
        share = rng.random()
        inside = (1 - share) * centre + share * other  # the box holds this row
        low = np.maximum(inside - 0.2 * rng.random(inside.size), 0.0)
        high = np.minimum(inside + 0.2 * rng.random(inside.size), 1.0)
        clipped = np.clip(centre, low, high)
        seen_outside += int((clipped != centre).any())
        used = row_sums(np.abs(centre - clipped), rows.row_ptr)
        surplus = row_sums(clipped, rows.row_ptr) - 1.0
        radius = used + np.abs(surplus) + rng.choice([0.0, 0.1, 2.0], 8)
        v = make_values(rng, rows.n_states)
        scale = np.abs(v).max()
        for sign in (1.0, -1.0):
            kernel, out = np.empty(centre.size), np.empty(8)
            boxed_worst(
                rows.row_ptr,
                rows.successor,
                clipped,
                low,
                high,
                surplus,
                radius - used,
                v,
                sign,
                kernel,
                out,
            )
            silent = np.empty(8)
            boxed_worst(
                rows.row_ptr,
                rows.successor,
                clipped,
                low,
                high,
                surplus,
                radius - used,
                v,
                sign,
                np.empty(0),
                silent,
            )
            assert np.array_equal(out, silent)
            assert np.all(kernel >= low - 1e-12)
            assert np.all(kernel <= high + 1e-12)
            far = row_sums(np.abs(kernel - centre), rows.row_ptr)
            assert np.all(far <= radius + 1e-12)
            for row in range(8):
                own = slice(rows.row_ptr[row], rows.row_ptr[row + 1])
                z = sign * v[rows.successor[own]]
                # HiGHS needs a hair of room where the ball only touches the box
                answer = _lp_boxed(
                    centre[own], low[own], high[own], radius[row] + 1e-12, z
                )
                assert answer.status == 0
                assert sign * out[row] == pytest.approx(-answer.fun, abs=1e-9 * scale)
    assert seen_outside > 5
