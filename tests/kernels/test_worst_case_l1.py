"""The worst case over L1 balls: a linear program says the same, row by row."""

from __future__ import annotations

import numpy as np
import pytest

from escapade.uncertainty import L1Ball

RADII = (0.0, 1e-9, 0.05, 0.3, 1.0, 1.7, 2.0)


@pytest.mark.parametrize("everywhere", [False, True])
def test_extremes_are_those_of_a_linear_program(
    make_rows, make_values, l1_optimum, expectation, everywhere
):
    rng = np.random.default_rng(11)
    for seed in range(3):
        rows = make_rows(rng, everywhere=everywhere)
        radius = np.resize(np.roll(RADII, seed), rows.n_rows)
        ball = L1Ball.around(rows, radius)
        v = make_values(rng, rows.n_states)
        scale = np.abs(v).max()
        most, least = ball.worst(v), ball.worst(v, sense="min")
        for row in range(rows.n_rows):
            own = slice(ball.row_ptr[row], ball.row_ptr[row + 1])
            p, z = ball.nominal[own], v[ball.successor[own]]
            up = l1_optimum(p, z, radius[row])
            down = -l1_optimum(p, -z, radius[row])
            assert most[row] == pytest.approx(up, abs=1e-9 * scale)
            assert least[row] == pytest.approx(down, abs=1e-9 * scale)
        for sense, extreme in (("max", most), ("min", least)):
            kernel = ball.worst_kernel(v, sense=sense)
            assert ball.contains(kernel, tolerance=1e-12).all()
            attained = expectation(ball.row_ptr, ball.successor, kernel, v)
            np.testing.assert_allclose(attained, extreme, rtol=0, atol=1e-12 * scale)


def test_radius_zero_is_the_plain_expectation(make_rows, make_values, expectation):
    rng = np.random.default_rng(5)
    rows = make_rows(rng, n_rows=60)
    v = make_values(rng, rows.n_states)
    plain = expectation(rows.row_ptr, rows.successor, rows.nominal, v)
    ball = L1Ball.around(rows, 0.0)
    for sense in ("max", "min"):
        np.testing.assert_allclose(
            ball.worst(v, sense=sense), plain, rtol=0, atol=1e-13 * np.abs(v).max()
        )


def test_radius_two_reaches_the_best_successor(make_rows, make_values):
    rng = np.random.default_rng(6)
    for everywhere in (False, True):
        rows = make_rows(rng, n_rows=60, everywhere=everywhere)
        v = make_values(rng, rows.n_states)
        ball = L1Ball.around(rows, 2.0)
        best = np.maximum.reduceat(v[ball.successor], ball.row_ptr[:-1])
        assert np.array_equal(ball.worst(v), best)


def test_closed_form_of_two_successors():
    """Mass ψ/2 moves from the state worth 0 to the one worth 1, as far as there is."""
    from escapade.uncertainty.rows import Rows

    for p in (0.0, 0.25, 0.9, 1.0):
        rows = Rows(
            n_states=2,
            stored_ptr=np.array([0, 2]),
            stored=np.array([0, 1], dtype=np.int32),
            stored_nominal=np.array([1.0 - p, p]),
        )
        for radius in RADII:
            ball = L1Ball.around(rows, radius)
            worth = np.array([0.0, 1.0])
            up, down = ball.worst(worth)[0], ball.worst(worth, sense="min")[0]
            assert up == pytest.approx(min(1.0, p + radius / 2), abs=1e-15)
            assert down == pytest.approx(max(0.0, p - radius / 2), abs=1e-15)


@pytest.mark.parametrize("everywhere", [False, True])
def test_threads_give_the_same_bits(make_rows, make_values, monkeypatch, everywhere):
    rng = np.random.default_rng(8)
    rows = make_rows(rng, n_rows=210, everywhere=everywhere)
    ball = L1Ball.around(rows, rng.choice(RADII, 210))
    v = make_values(rng, rows.n_states)
    gain = rng.random(210)
    alone = [ball.backup(v, g, 0.9, sense=s) for g in (None, gain) for s in SENSES]
    for chunks in (2, 5):
        monkeypatch.setattr(
            "escapade.uncertainty.l1_ball.pieces_of_work", lambda _, c=chunks: c
        )
        shared = [ball.backup(v, g, 0.9, sense=s) for g in (None, gain) for s in SENSES]
        assert all(map(np.array_equal, alone, shared))


SENSES = ("max", "min")
