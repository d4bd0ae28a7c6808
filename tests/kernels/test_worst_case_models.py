"""The worst of several candidate rows, enumerated."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from escapade.kernels.worst_case_models import (
    models_backup,
    models_backup_threads,
    models_choice,
)


def _instance(seed, n_models=4, n_rows=30, n_states=12):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 7, n_rows)
    row_ptr = np.concatenate([[0], np.cumsum(lengths)])
    successor = np.concatenate(
        [np.sort(rng.choice(n_states, n, replace=False)) for n in lengths]
    ).astype(np.int32)
    probability = np.concatenate(
        [rng.dirichlet(np.ones(n), n_models).T for n in lengths]
    )
    active = rng.random((n_rows, n_models)) < 0.7
    active[np.arange(n_rows), rng.integers(n_models, size=n_rows)] = True
    v = rng.standard_normal(n_states)
    return row_ptr, successor, probability, active, v


def _values(row_ptr, successor, probability, v):
    return np.array(
        [v[successor[a:b]] @ probability[a:b] for a, b in itertools.pairwise(row_ptr)]
    )


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_worst_is_the_best_of_the_active_models(sign):
    for seed in range(5):
        row_ptr, successor, probability, active, v = _instance(seed)
        values = _values(row_ptr, successor, probability, v)
        open_values = np.where(active, sign * values, -np.inf)
        gain = np.linspace(0.0, 1.0, active.shape[0])
        out, choice = np.empty(gain.size), np.empty(gain.size, dtype=np.int64)
        models_choice(row_ptr, successor, probability, active, v, sign, choice, out)
        np.testing.assert_allclose(sign * out, open_values.max(axis=1), atol=1e-14)
        assert active[np.arange(gain.size), choice].all()
        np.testing.assert_allclose(
            values[np.arange(gain.size), choice], out, atol=1e-14
        )
        again = np.empty(gain.size)
        models_backup(
            row_ptr, successor, probability, active, gain, 0.5, v, sign, again
        )
        np.testing.assert_allclose(again, gain + 0.5 * out, atol=1e-15)


def test_threads_give_the_same_bits():
    row_ptr, successor, probability, active, v = _instance(9)
    none = np.empty(0)
    alone, shared = np.empty(30), np.empty(30)
    models_backup(row_ptr, successor, probability, active, none, 1.0, v, 1.0, alone)
    for chunks in (2, 7):
        models_backup_threads(
            row_ptr, successor, probability, active, none, 1.0, v, 1.0, shared, chunks
        )
        assert np.array_equal(alone, shared)
