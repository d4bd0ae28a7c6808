"""Optima by SciPy's linear programming: a route that shares no code with ours."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import linprog


def _flow(cmdp, discount):
    """Return the matrix of ``Σ_a f(s, a) − γ Σ f P``, rows states, columns pairs."""
    pairs = np.arange(cmdp.n_pairs)
    leaves = sp.csr_array(
        (np.ones(cmdp.n_pairs), (cmdp.pair_state, pairs)),
        shape=(cmdp.n_states, cmdp.n_pairs),
    )
    rows = np.repeat(pairs, np.diff(cmdp.row_ptr))
    enters = sp.csr_array(
        (cmdp.probability, (cmdp.successor, rows)), shape=leaves.shape
    )
    return leaves - discount * enters


@pytest.fixture
def lp_optimum():
    """Return a function that gives the best discounted value and its costs."""

    def optimum(cmdp):
        done = linprog(
            -cmdp.reward,
            A_ub=cmdp.cost,
            b_ub=cmdp.budget,
            A_eq=_flow(cmdp, cmdp.discount),
            b_eq=cmdp.start,
            method="highs",
        )
        assert done.status == 0, done.message
        return -done.fun, cmdp.cost @ done.x

    return optimum


@pytest.fixture
def lp_average():
    """Return a function that gives the best average reward within cost rates."""

    def optimum(cmdp, rates):
        done = linprog(
            -cmdp.reward,
            A_ub=cmdp.cost,
            b_ub=rates,
            A_eq=sp.vstack([_flow(cmdp, 1.0), np.ones((1, cmdp.n_pairs))]),
            b_eq=np.append(np.zeros(cmdp.n_states), 1.0),
            method="highs",
        )
        assert done.status == 0, done.message
        return -done.fun, cmdp.cost @ done.x

    return optimum
