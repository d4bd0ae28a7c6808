"""The worst case over balls of relative entropy, against fifty-digit arithmetic.

The reference solves f(ν) = ρ by bisection on the logarithm of ν − max z with Python's
decimal numbers, so it shares neither the method nor the rounding of the kernel.
"""

from __future__ import annotations

from decimal import Decimal, getcontext

import numpy as np
import pytest

from escapade.theory.concentration import relative_entropy
from escapade.uncertainty import KLBall
from escapade.uncertainty.rows import Rows

RADII = (0.0, 1e-12, 1e-6, 1e-3, 0.1, 1.0, 5.0, 40.0, np.inf)


def _exact_maximum(p, z, rho):
    """Return the maximum of ``q z`` over Σ p ln(p/q) ≤ rho."""
    getcontext().prec = 50
    best = Decimal(float(z.max()))
    if rho == np.inf:
        return float(best)
    seen = [(Decimal(float(a)), Decimal(float(b))) for a, b in zip(p, z, strict=True)]
    seen = [(a, b) for a, b in seen if a > 0]
    total = sum(a for a, _ in seen)
    gaps = [(a / total, best - b) for a, b in seen]
    mean = best - sum(a * g for a, g in gaps)
    if rho == 0 or mean >= best:
        return float(mean)
    radius = Decimal(float(rho))

    def entropy(x):
        logs = sum(a * (x + g).ln() for a, g in gaps)
        return logs + sum(a / (x + g) for a, g in gaps).ln()

    def value(x):
        return best + x - (sum(a * (x + g).ln() for a, g in gaps) - radius).exp()

    if min(g for _, g in gaps) > 0 and entropy(Decimal(0)) <= radius:
        return float(value(Decimal(0)))
    low, high = Decimal(10) ** -400, Decimal(10) ** 20
    if entropy(low) < radius:
        return float(best)
    while high > low * (1 + Decimal(10) ** -12):
        middle = (low * high).sqrt()
        if entropy(middle) > radius:
            low = middle
        else:
            high = middle
    return float(value(high))


@pytest.mark.parametrize("everywhere", [False, True])
def test_extremes_are_those_of_exact_arithmetic(make_rows, make_values, everywhere):
    rng = np.random.default_rng(7)
    for trial in range(2):
        rows = make_rows(
            rng,
            n_rows=9,
            lengths=(2, 1, 3, 5, 4, 2, 6, 3),
            n_states=7,
            everywhere=everywhere,
        )
        radius = np.roll(RADII, trial)
        ball = KLBall.around(rows, radius)
        v = make_values(rng, rows.n_states)
        scale = np.abs(v).max()
        for sense, sign in (("max", 1.0), ("min", -1.0)):
            extreme = sign * ball.worst(v, sense=sense)
            kernel = ball.worst_kernel(v, sense=sense)
            assert ball.contains(kernel, tolerance=1e-12).all()
            for row in range(rows.n_rows):
                own = slice(ball.row_ptr[row], ball.row_ptr[row + 1])
                z = sign * v[ball.successor[own]]
                exact = _exact_maximum(ball.nominal[own], z, radius[row])
                assert extreme[row] == pytest.approx(exact, abs=1e-10 * scale)
                assert extreme[row] >= exact - 1e-15 * scale  # it rounds outward
                assert kernel[own] @ z == pytest.approx(exact, abs=1e-9 * scale)


def test_closed_form_of_two_successors():
    """With p = ½ the entropy is −½ ln(4 q (1 − q)), so q = (1 + √(1 − e^{−2ρ}))/2."""
    rows = Rows(
        n_states=2,
        stored_ptr=np.array([0, 2]),
        stored=np.array([0, 1], dtype=np.int32),
        stored_nominal=np.array([0.5, 0.5]),
    )
    for rho in (0.0, 1e-10, 1e-4, 0.1, 2.0, 15.0):
        expected = 0.5 * (1.0 + np.sqrt(-np.expm1(-2.0 * rho)))
        ball = KLBall.around(rows, rho)
        assert ball.worst([0.0, 1.0])[0] == pytest.approx(expected, abs=1e-13)


def test_mass_that_was_never_seen_is_bounded():
    """A state with p = 0 gets 1 − e^{−ρ} at most; the rest keeps its proportions."""
    rows = Rows(
        n_states=3,
        stored_ptr=np.array([0, 3]),
        stored=np.arange(3, dtype=np.int32),
        stored_nominal=np.array([0.3, 0.7, 0.0]),
    )
    v = np.array([0.0, 0.0, 1.0])
    for rho in (0.01, 0.5, 3.0):
        ball = KLBall.around(rows, rho)
        assert ball.worst(v)[0] == pytest.approx(-np.expm1(-rho), abs=1e-13)
        kernel = ball.worst_kernel(v)
        expected = [0.3 * np.exp(-rho), 0.7 * np.exp(-rho), -np.expm1(-rho)]
        np.testing.assert_allclose(kernel, expected, atol=1e-13)


def test_members_never_beat_the_extreme_on_long_rows(make_rows, make_values):
    """Rows of up to 80 successors: random members, scaled to lie on the boundary."""
    rng = np.random.default_rng(3)
    rows = make_rows(rng, n_rows=28)
    radius = rng.choice([1e-3, 0.05, 0.7], 28)
    ball = KLBall.around(rows, radius)
    for _ in range(15):
        v = make_values(rng, rows.n_states)
        member = ball.sample(rng)
        entropy = relative_entropy(rows.nominal, member, rows.row_ptr)
        assert np.all(entropy <= radius + 1e-12)
        for sense, sign in (("max", 1.0), ("min", -1.0)):
            reached = np.add.reduceat(member * v[rows.successor], rows.row_ptr[:-1])
            beyond = sign * (reached - ball.worst(v, sense=sense))
            assert beyond.max() <= 1e-12 * np.abs(v).max()


def test_threads_give_the_same_bits(make_rows, make_values, monkeypatch):
    rng = np.random.default_rng(8)
    for everywhere in (False, True):
        rows = make_rows(rng, n_rows=42, everywhere=everywhere)
        ball = KLBall.around(rows, rng.choice(RADII, 42))
        v = make_values(rng, rows.n_states)
        gain = rng.random(42)
        with monkeypatch.context() as patch:
            alone = [ball.backup(v, gain, 0.9, sense=s) for s in ("max", "min")]
            patch.setattr("escapade.uncertainty.kl_ball.pieces_of_work", lambda _: 3)
            shared = [ball.backup(v, gain, 0.9, sense=s) for s in ("max", "min")]
        assert all(map(np.array_equal, alone, shared))
