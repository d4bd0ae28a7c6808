"""What the tests of planning share: small problems, and the same answers another way.

``reference`` solves the occupation program with SciPy on dense matrices written down
here, so that nothing of the package's own linear programs is used.  ``inspect`` holds a
solution to its certificate: flow balance, budgets, weak and strong duality,
complementary slackness, each computed afresh with NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.optimize import linprog

import escapade as ep


@dataclass(frozen=True)
class Reference:
    """What SciPy says of a problem."""

    feasible: bool
    value: float
    visits: np.ndarray | None


def dense_flow(cmdp: ep.CMDP) -> np.ndarray:
    """Return ``E − γ P``, one row a pair, as a dense array."""
    own = np.zeros((cmdp.n_pairs, cmdp.n_states))
    own[np.arange(cmdp.n_pairs), cmdp.pair_state] = 1.0
    moved = np.zeros_like(own)
    for pair in range(cmdp.n_pairs):
        for entry in range(cmdp.row_ptr[pair], cmdp.row_ptr[pair + 1]):
            moved[pair, cmdp.successor[entry]] += cmdp.probability[entry]
    return own - cmdp.discount * moved


def best_by_scipy(cmdp: ep.CMDP, gain: np.ndarray) -> float:
    """Return the most that any policy can make of ``gain``, budgets set aside."""
    answer = linprog(
        -gain, A_eq=dense_flow(cmdp).T, b_eq=cmdp.start, bounds=(0.0, None)
    )
    assert answer.status == 0
    return -float(answer.fun)


def solve_by_scipy(cmdp: ep.CMDP) -> Reference:
    answer = linprog(
        -cmdp.reward,
        A_ub=cmdp.cost,
        b_ub=cmdp.budget,
        A_eq=dense_flow(cmdp).T,
        b_eq=cmdp.start,
        bounds=(0.0, None),
    )
    assert answer.status in (0, 2)
    if answer.status == 2:
        return Reference(False, np.nan, None)
    return Reference(True, -float(answer.fun), answer.x)


def check_certificate(cmdp: ep.CMDP, answer: ep.Solution, near: float = 1e-6) -> None:
    """Hold an optimal solution to everything that makes it one."""
    scale = 1.0 / (1.0 - cmdp.discount)
    assert isinstance(answer.policy, ep.Policy)
    flow = dense_flow(cmdp)
    weights = answer.policy.pair_weights(cmdp)
    # occupancy by a linear solve of its own
    chain = np.zeros((cmdp.n_states, cmdp.n_states))
    np.add.at(chain, cmdp.pair_state, weights[:, np.newaxis] * flow)
    f = np.linalg.solve(chain.T, cmdp.start)[cmdp.pair_state] * weights
    np.testing.assert_allclose(flow.T @ f, cmdp.start, atol=1e-9 * scale)
    assert (f >= -1e-12 * scale).all()
    assert f.sum() == pytest.approx(scale)
    # value and costs are those of the policy, and the budgets are kept
    assert f @ cmdp.reward == pytest.approx(answer.value, rel=1e-9, abs=1e-9)
    np.testing.assert_allclose(cmdp.cost @ f, answer.costs, rtol=1e-9, atol=1e-9)
    allowed = cmdp.budget + answer.residuals["budget"]
    assert (answer.costs <= allowed).all()
    assert answer.residuals["budget"] <= 1e-9 * scale * max(1.0, cmdp.cost_max.max())
    # weak duality at the stated prices, by an independent linear program
    prices = answer.multipliers
    assert (prices >= 0.0).all()
    priced = cmdp.reward - prices @ cmdp.cost
    dual = best_by_scipy(cmdp, priced) + prices @ cmdp.budget
    size = max(1.0, abs(answer.value))
    assert answer.upper == pytest.approx(dual, abs=near * size)
    assert answer.lower <= answer.value <= answer.upper + 1e-12 * size
    # strong duality and complementary slackness
    assert answer.status == "optimal"
    assert answer.gap <= 1e-8 * size
    assert dual - answer.value <= near * size
    slack = prices * (cmdp.budget - answer.costs)
    assert np.abs(slack).max() <= near * size
    assert f @ priced == pytest.approx(dual - prices @ cmdp.budget, abs=near * size)


@pytest.fixture(scope="session")
def reference() -> Callable[[ep.CMDP], Reference]:
    return solve_by_scipy


@pytest.fixture(scope="session")
def unconstrained() -> Callable[[ep.CMDP, np.ndarray], float]:
    return best_by_scipy


@pytest.fixture(scope="session")
def inspect() -> Callable[..., None]:
    return check_certificate


def draw_problem(seed: int, *, n_costs: int | None = None) -> ep.CMDP:
    """Draw a problem whose budgets are those of a random policy, so they bind or not.

    Some states absorb, some actions are missing, and starts are states or spread.
    """
    rng = np.random.default_rng(seed)
    n_states, n_actions = int(rng.integers(2, 9)), int(rng.integers(2, 5))
    k = int(rng.integers(1, 4)) if n_costs is None else n_costs
    grid = (n_states, n_actions)
    matrix = rng.dirichlet(np.ones(n_states), size=grid)
    matrix[0] = np.eye(n_states)[0]  # absorbing
    available = rng.random(grid) < 0.8
    available[:, 0] |= ~available.any(axis=1)
    cmdp = ep.CMDP(
        matrix,
        rng.random(grid),
        rng.random((k, *grid)),
        discount=float(rng.choice([0.3, 0.9, 0.99])),
        budget=np.zeros(k),
        start=int(rng.integers(1, n_states))
        if rng.random() < 0.5
        else rng.dirichlet(np.ones(n_states)),
        available=available,
    )
    weights = rng.random(cmdp.n_pairs)
    weights /= np.add.reduceat(weights, cmdp.state_ptr[:-1])[cmdp.pair_state]
    policy = ep.Policy.from_pair_weights(cmdp, weights)
    return cmdp.replace(budget=ep.evaluate(cmdp, policy).start_costs)


@pytest.fixture(scope="session")
def problem() -> Callable[..., ep.CMDP]:
    return draw_problem
