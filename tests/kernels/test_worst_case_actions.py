"""The worst of action models: threads, pointers, and what is not active."""

from __future__ import annotations

import numpy as np
import pytest

from escapade.kernels.action_evidence import propagate_models
from escapade.kernels.worst_case_actions import (
    actions_backup,
    actions_backup_threads,
    actions_kernel,
    actions_reachable,
)


def instance(seed, n_rows=40, n_states=12, channels=0):
    """Random branches, in the order in which the kernels take them."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 4, n_rows)
    ptr = np.concatenate([[0], np.cumsum(sizes)])
    n = int(ptr[-1])
    active = rng.random(n) < 0.7
    active[ptr[:-1]] |= ~np.logical_or.reduceat(active, ptr[:-1])
    n_near = 6
    lengths = rng.integers(1, 6, n_near)
    near = np.concatenate([rng.choice(n_states, k, replace=False) for k in lengths])
    around = rng.integers(-1, n_near, n)
    low = np.where(around < 0, 0.0, rng.choice([0.0, 0.1, 0.5], n))
    high = np.where(around < 0, 0.0, low + rng.choice([0.0, 0.2, 0.5], n))
    return (
        ptr,
        active,
        rng.integers(n_states, size=n).astype(np.int32),
        around,
        low,
        high,
        np.concatenate([[0], np.cumsum(lengths)]),
        near.astype(np.int32),
        rng.random(n_near) < 0.5,
        rng.choice([-0.5, 0.0, 0.3], (channels, n)),
        rng.choice([-0.5, 0.0, 0.3], (channels, n)),
    )


def slowly(arrays, row, gamma, v, sign):
    """The best over a fine grid of rates, and over the ends of every interval."""
    ptr, active, target, around, low, high, near_ptr, near, uniform, works, fails = (
        arrays
    )
    best = -np.inf
    for b in range(ptr[row], ptr[row + 1]):
        if not active[b]:
            continue
        z = sign * v[target[b]]
        miss = z
        if around[b] >= 0:
            h = around[b]
            others = sign * v[near[near_ptr[h] : near_ptr[h + 1]]]
            miss = others.mean() if uniform[h] else others.max()
        bends = [
            a / (a - m)
            for a, m in zip(works[:, b], fails[:, b], strict=True)
            if (a < 0) != (m < 0)
        ]
        rates = [low[b], high[b], *(t for t in bends if low[b] < t < high[b])]
        rates += np.linspace(low[b], high[b], 101).tolist()
        for tau in rates:
            off = np.minimum((1 - tau) * works[:, b] + tau * fails[:, b], 0.0).sum()
            best = max(best, gamma * ((1 - tau) * z + tau * miss) + off)
    return sign * best


@pytest.mark.parametrize("channels", [0, 1, 2])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_worst_is_the_best_over_branches_and_rates(sign, channels):
    arrays = instance(channels, channels=channels)
    v = np.random.default_rng(9).normal(size=12)
    gain = np.linspace(0.0, 1.0, arrays[0].size - 1)
    out = np.empty(gain.size)
    actions_backup(*arrays, gain, 0.9, v, sign, out)
    expected = [g + slowly(arrays, i, 0.9, v, sign) for i, g in enumerate(gain)]
    np.testing.assert_allclose(out, expected, atol=1e-12)
    alone = np.empty(gain.size)
    actions_backup(*arrays, np.empty(0), 0.9, v, sign, alone)
    np.testing.assert_allclose(alone + gain, out, atol=1e-15)


def test_threads_give_the_same_bits():
    arrays = instance(5, n_rows=200, channels=1)
    v, gain = np.random.default_rng(1).normal(size=12), np.ones(200)
    one, several = np.empty(200), np.empty(200)
    actions_backup(*arrays, gain, 0.9, v, 1.0, one)
    for chunks in (1, 3, 7):
        several[:] = np.nan
        actions_backup_threads(*arrays, gain, 0.9, v, 1.0, several, chunks)
        np.testing.assert_array_equal(one, several)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_kernel_attains_the_worst_within_reach(sign):
    arrays = instance(3)
    n_rows, v = arrays[0].size - 1, np.random.default_rng(2).normal(size=12)
    row_ptr = np.arange(n_rows + 1) * 12
    successor = np.tile(np.arange(12, dtype=np.int32), n_rows)
    kernel, taken = np.full(successor.size, np.nan), np.empty(n_rows)
    actions_kernel(*arrays, row_ptr, successor, 1.0, v, sign, kernel, taken)
    out = np.empty(n_rows)
    actions_backup(*arrays, np.empty(0), 1.0, v, sign, out)
    rows = kernel.reshape(n_rows, 12)
    np.testing.assert_allclose(rows @ v, out, atol=1e-14)
    np.testing.assert_allclose(rows.sum(axis=1), 1.0)
    np.testing.assert_array_equal(taken, 0.0)
    reach = np.zeros(successor.size, dtype=bool)
    actions_reachable(np.arange(n_rows), *arrays[:8], row_ptr, successor, 12, reach)
    assert not kernel[~reach].any()
    untouched = np.zeros(successor.size, dtype=bool)
    actions_reachable(np.array([4]), *arrays[:8], row_ptr, successor, 12, untouched)
    np.testing.assert_array_equal(untouched[48:60], reach[48:60])
    assert not untouched[:48].any()


@pytest.mark.parametrize("seed", range(20))
def test_propagation_agrees_with_deleting_until_nothing_changes(seed):
    rng = np.random.default_rng(seed)
    groups, models, n_links = 6, 3, 7
    possible = rng.random((2, models, models)) < 0.6
    ends = np.array([rng.permutation(groups)[:2] for _ in range(n_links)])
    rules = rng.integers(2, size=n_links)
    domain = rng.random((groups, models)) < 0.8
    table = sorted(
        [(a, b, r, False) for (a, b), r in zip(ends, rules, strict=True)]
        + [(b, a, r, True) for (a, b), r in zip(ends, rules, strict=True)]
    )
    first = np.array([row[0] for row in table])
    found = domain.copy()
    empty = propagate_models(
        np.arange(groups),
        np.searchsorted(first, np.arange(groups + 1)),
        np.array([row[1] for row in table]),
        np.array([row[2] for row in table]),
        np.array([row[3] for row in table]),
        possible,
        found,
    )
    expected = domain.copy()
    while True:
        before = expected.copy()
        for a, b, r, backward in table:
            relation = possible[r].T if backward else possible[r]
            expected[b] &= relation[expected[a]].any(axis=0)
        if (before == expected).all():
            break
    linked = np.unique(ends)
    if expected[linked].any(axis=1).all():
        assert empty == -1
        np.testing.assert_array_equal(found, expected)
    else:
        assert not expected[empty].any()
