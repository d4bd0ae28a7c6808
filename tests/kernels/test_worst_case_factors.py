"""Mixtures of factors, row by row."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from escapade.kernels.worst_case_factors import factors_backup, mixed_rows


def test_a_backup_is_the_mixture_of_the_factors_worst():
    rng = np.random.default_rng(0)
    weights = sp.random_array((20, 5), density=0.5, rng=rng, format="csr")
    arrays = (
        weights.indptr.astype(np.int64),
        weights.indices.astype(np.int32),
        weights.data,
    )
    worst, gain = rng.normal(size=5), rng.normal(size=20)
    out = np.empty(20)
    factors_backup(*arrays, worst, gain, 0.9, out)
    np.testing.assert_allclose(out, gain + 0.9 * (weights @ worst), atol=1e-15)
    factors_backup(*arrays, worst, np.empty(0), 0.9, out)
    np.testing.assert_allclose(out, 0.9 * (weights @ worst), atol=1e-15)


def test_mixed_rows_are_the_product_of_the_matrices():
    rng = np.random.default_rng(1)
    weights = sp.random_array((20, 5), density=0.5, rng=rng, format="csr")
    factors = sp.random_array((5, 9), density=0.6, rng=rng, format="csr")
    product = sp.csr_array(weights @ factors)
    product.sort_indices()
    out = np.empty(product.nnz)
    mixed_rows(
        weights.indptr.astype(np.int64),
        weights.indices.astype(np.int32),
        weights.data,
        factors.indptr.astype(np.int64),
        factors.indices.astype(np.int32),
        factors.data,
        product.indptr.astype(np.int64),
        product.indices.astype(np.int32),
        9,
        out,
    )
    np.testing.assert_allclose(out, product.data, atol=1e-15)
