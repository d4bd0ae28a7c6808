"""Kernels of plans: levels of the promise, earning by them, where life can lead."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from escapade.kernels.earning import earn, level_at
from escapade.kernels.exploration import reach_values, spread
from escapade.kernels.ledger import Ledger


@given(st.integers(2, 80), st.floats(1e-3, 1e6))
def test_levels_rise_from_nothing_to_the_cap_and_lie_densely_below_it(n, cap):
    levels = np.array([level_at(g, n, cap) for g in range(n)])
    assert levels[-1] == cap
    assert levels[0] == pytest.approx(0.0, abs=1e-9 * cap)
    gaps = np.diff(levels)
    assert (gaps >= 0.0).all()
    assert (np.diff(gaps) <= 1e-9 * cap).all()


def one_state(gamma: float, toll: float, cap: float) -> Ledger:
    """Return a state with a free rest, the fallback, and a step that costs ``toll``."""
    return Ledger(
        channels=(0,),
        state_ptr=np.array([0, 2]),
        w=np.zeros((1, 1)),
        q=np.array([[0.0, toll]]),
        ahead=np.zeros((1, 2)),
        reach=np.zeros((1, 2)),
        allowed=np.ones(2, dtype=np.bool_),
        fallback=np.zeros(1, dtype=np.int64),
        cap=np.array([cap]),
        cost_max=np.array([toll]),
        gamma=gamma,
    )


def lived(ledger: Ledger, levels: np.ndarray, best: np.ndarray, steps: int) -> float:
    """Return how often the step is paid if the promise moves as in the ledger."""
    promise, paid = float(ledger.cap[0]), 0
    for _ in range(steps):
        level = int(np.searchsorted(levels, promise, side="right")) - 1
        step = best[0, level] == 1 and ledger.q[0, 1] <= promise
        paid += step
        left = promise - ledger.cost_max[0] if step else promise
        promise = min(left / ledger.gamma, float(ledger.cap[0]))
    return paid / steps


@pytest.mark.parametrize(("gamma", "toll"), [(0.95, 1.0), (0.9, 0.3)])
def test_a_promise_is_spent_as_fast_as_it_grows_at_the_cap(gamma, toll):
    """No plan pays more often than (1 − γ) cap / toll; this one nearly does."""
    cap, n_levels = 3.0, 50
    ledger = one_state(gamma, toll, cap)
    value = np.zeros((1, n_levels))
    best = np.zeros((1, n_levels), dtype=np.int64)
    made = earn(
        ledger, np.zeros(1), np.ones(2, dtype=np.bool_), np.array([0, 1, 2]),
        np.zeros(2, dtype=np.int32), np.ones(2), np.array([0.0, 1.0]),
        np.array([0.0, toll]), np.ones(2, dtype=np.bool_), 1.0 - 0.6 * (1.0 - gamma),
        1e-3, 100, 9, value, np.zeros((1, n_levels)), best,
    )  # fmt: skip
    assert 0 < made <= 100
    levels = np.array([level_at(g, n_levels, cap) for g in range(n_levels)])
    assert best[0, 0] == 0
    assert best[0, -1] == 1
    most = (1.0 - gamma) * cap / toll
    often = lived(ledger, levels, best, 4_000)
    assert 0.8 * most <= often <= most + 0.01
    assert (np.diff(value[0]) >= -1e-2).all()  # more promise is never worth less


def ring(n: int) -> tuple[np.ndarray, ...]:
    """Return a ring on which the first action goes on and the second stays."""
    state_ptr = 2 * np.arange(n + 1)
    row_ptr = np.arange(2 * n + 1)
    successor = np.empty(2 * n, dtype=np.int32)
    successor[0::2] = (np.arange(n) + 1) % n
    successor[1::2] = np.arange(n)
    return state_ptr, row_ptr, successor


def test_life_spreads_over_playable_pairs_and_possible_successors_alone():
    state_ptr, row_ptr, successor = ring(6)
    chance, playable = np.ones(12), np.ones(12, dtype=np.bool_)
    playable[6] = False  # no way on from 3
    reached = np.zeros(6, dtype=np.bool_)
    reached[1] = True
    spread(state_ptr, row_ptr, successor, chance, playable, reached)
    assert reached.tolist() == [False, True, True, True, False, False]
    playable[6], chance[8] = True, 0.0  # nor, for certain, from 4
    spread(state_ptr, row_ptr, successor, chance, playable, reached)
    assert reached.tolist() == [False, True, True, True, True, False]


def test_reaching_is_worth_the_discount_to_the_power_of_the_way():
    state_ptr, row_ptr, successor = ring(5)
    wanted = np.array([False, False, False, True, False])
    value, score = np.empty(5), np.empty(10)
    best = np.empty(5, dtype=np.int64)
    made = reach_values(
        state_ptr, row_ptr, successor, np.ones(10), np.ones(10, dtype=np.bool_),
        np.zeros(10), wanted, 0.9, 1e-9, 100, value, score, best,
    )  # fmt: skip
    assert made < 100
    np.testing.assert_allclose(value, 0.9 ** np.array([3, 2, 1, 0, 4]))
    assert best.tolist() == [0, 2, 4, -1, 8]
    np.testing.assert_allclose(score[0::2], 0.9 * value[[1, 2, 3, 4, 0]])
