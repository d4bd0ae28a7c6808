"""Factors found in a kernel: non-negative matrix factorisation, with its error.

A kernel ``P`` with ``pairs`` rows is approximated by ``U W`` with ``r`` factors.  The
factorisation of scikit-learn minimises squared errors and knows nothing of
probabilities; its factors are scaled to sum to 1, and the weights of each pair after
them.  What is lost is reported row by row, as an L1 distance: a
:class:`~escapade.uncertainty.FactorMatrix` built on the factors says nothing about the
part of a kernel that no mixture of factors can express.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from escapade.errors import MissingExtraError, refusal
from escapade.model.arguments import read_count
from escapade.model.cmdp import CMDP
from escapade.typing import ArrayLike, FloatArray
from escapade.uncertainty.factor_matrix import FactorMatrix
from escapade.uncertainty.rows import frozen

__all__ = ["FactorEstimate", "estimate_factors"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FactorEstimate:
    """Factors and weights that approximate a kernel.

    Attributes
    ----------
    coefficients
        ``(pairs, r)``; weights that sum to 1 for each pair.
    factors
        ``(r, S)``; distributions.
    error
        ``(pairs,)``; L1 distance of each row from its approximation, in [0, 2].
    converged
        Whether the factorisation came to rest within the iterations.
    iterations
        How many it took.
    """

    coefficients: FloatArray
    factors: FloatArray
    error: FloatArray
    converged: bool
    iterations: int

    @property
    def message(self) -> str:
        """One sentence on what was found."""
        text = (
            f"{len(self.factors)} factors explain {self.error.size} rows within an L1 "
            f"distance of {self.error.max():.3g}, {self.error.mean():.3g} on average"
        )
        if not self.converged:
            text += f"; not at rest after {self.iterations} iterations"
        return text

    def around(self, radius: ArrayLike) -> FactorMatrix:
        """Return the set whose factors lie within an L1 radius of those found."""
        return FactorMatrix(self.coefficients, self.factors, radius=radius)


def estimate_factors(
    cmdp: CMDP,
    n_factors: int,
    *,
    seed: int = 0,
    max_iterations: int = 500,
    tolerance: float = 1e-6,
) -> FactorEstimate:
    """Approximate the kernel of a problem by mixtures of a few factors.

    Parameters
    ----------
    cmdp
        The problem, such as an empirical model.
    n_factors
        ``r``, at most the number of pairs and of states.
    seed
        Seed of the factorisation's first guess.
    max_iterations, tolerance
        When the factorisation stops.

    Notes
    -----
    Needs scikit-learn: ``pip install "escapade[factors]"``.
    """
    try:
        from sklearn.decomposition import NMF
        from sklearn.exceptions import ConvergenceWarning
    except ImportError as missing:
        raise MissingExtraError("scikit-learn", "factors") from missing
    count = read_count("n_factors", n_factors, least=1)
    most = min(cmdp.n_pairs, cmdp.n_states)
    if count > most:
        raise refusal("n_factors", f"a number in 1..{most}", count)
    kernel = cmdp.transition_matrix.toarray()
    search = NMF(
        n_components=count,
        init="nndsvda",
        max_iter=read_count("max_iterations", max_iterations, least=1),
        tol=tolerance,
        random_state=seed,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # reported as `converged`
        weights = np.asarray(search.fit_transform(kernel), dtype=np.float64)
    factors = np.asarray(search.components_, dtype=np.float64)
    scale = factors.sum(axis=1)
    used = scale > 0.0
    factors, weights = factors[used] / scale[used, np.newaxis], weights[:, used]
    weights = weights * scale[used]
    silent = weights.sum(axis=1) == 0.0  # no factor at all: the one that is nearest
    if silent.any():
        far = np.abs(kernel[silent, np.newaxis] - factors).sum(axis=2)
        weights[np.flatnonzero(silent), far.argmin(axis=1)] = 1.0
    weights /= weights.sum(axis=1, keepdims=True)
    error = np.abs(weights @ factors - kernel).sum(axis=1)
    return FactorEstimate(
        coefficients=frozen(weights),
        factors=frozen(factors),
        error=frozen(error),
        converged=bool(search.n_iter_ < max_iterations),
        iterations=int(search.n_iter_),
    )
