"""Rows of all kinds for the worst-case kernels, and worst cases as linear programs.

The linear programs are written down here from the definition of each set and solved by
SciPy; nothing of the package is used in them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest
from scipy.optimize import linprog

from escapade.uncertainty.rows import Rows

ROW_LENGTHS = (1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 33, 64, 65, 80)


def random_rows(
    rng: np.random.Generator,
    *,
    n_rows: int = 14,
    lengths: tuple[int, ...] = ROW_LENGTHS,
    n_states: int = 90,
    zeros: float = 0.3,
    everywhere: bool = False,
) -> Rows:
    """Return rows of the given lengths in turn, some entries of probability 0.

    With ``everywhere`` every other state is possible as well, and all stored entries
    are positive.
    """
    pointers, successors, nominal = [0], [], []
    for row in range(n_rows):
        length = lengths[row % len(lengths)]
        p = rng.dirichlet(np.full(length, 0.7))
        if not everywhere:
            p[rng.random(length) < zeros] = 0.0
            if not p.any():
                p[rng.integers(length)] = 1.0
        p = np.maximum(p, 1e-12) if everywhere else p
        successors.append(np.sort(rng.choice(n_states, length, replace=False)))
        nominal.append(p / p.sum())
        pointers.append(pointers[-1] + length)
    return Rows(
        n_states=n_states,
        stored_ptr=np.array(pointers),
        stored=np.concatenate(successors).astype(np.int32),
        stored_nominal=np.concatenate(nominal),
        everywhere=everywhere,
    )


def random_values(rng: np.random.Generator, n_states: int) -> np.ndarray:
    """Return values of very different sizes, sometimes with many ties."""
    v = rng.standard_normal(n_states) * 10.0 ** rng.integers(-2, 4)
    if rng.random() < 0.4:
        v = np.round(v * 2.0 / np.abs(v).max()) / 2.0
    return v


def lp_over_l1_ball(p: np.ndarray, z: np.ndarray, radius: float) -> float:
    """Return the most that ``q z`` can be: variables q and the distances t."""
    n = p.size
    eye = np.eye(n)
    answer = linprog(
        np.concatenate([-z, np.zeros(n)]),
        A_ub=np.block([[eye, -eye], [-eye, -eye], [np.zeros((1, n)), np.ones((1, n))]]),
        b_ub=np.concatenate([p, -p, [radius]]),
        A_eq=np.concatenate([np.ones(n), np.zeros(n)])[np.newaxis],
        b_eq=[1.0],
        bounds=(0.0, None),
    )
    assert answer.status == 0
    return -float(answer.fun)


def lp_over_box(low: np.ndarray, high: np.ndarray, z: np.ndarray) -> float:
    """Return the most that ``q z`` can be with ``low <= q <= high``."""
    answer = linprog(
        -z,
        A_eq=np.ones((1, z.size)),
        b_eq=[1.0],
        bounds=np.stack([low, high], axis=1),
    )
    assert answer.status == 0
    return -float(answer.fun)


@pytest.fixture
def make_rows() -> Callable[..., Rows]:
    return random_rows


@pytest.fixture
def make_values() -> Callable[..., np.ndarray]:
    return random_values


@pytest.fixture
def l1_optimum() -> Callable[..., float]:
    return lp_over_l1_ball


@pytest.fixture
def box_optimum() -> Callable[..., float]:
    return lp_over_box


@pytest.fixture
def expectation() -> Callable[..., np.ndarray]:
    """Return ``P · v`` of every row, one row after the other."""

    def sums(row_ptr, successor, probability, v):
        return np.array(
            [
                float(probability[a:b] @ v[successor[a:b]])
                for a, b in itertools.pairwise(row_ptr)
            ]
        )

    return sums
