"""Robust solves to a certified 1e-6, beside robust value iteration in NumPy.

    python benchmarks/robust_solve.py [--largest 100000] [--json FILE]

The problem is the least worst-case cost over an L1 ball of radius 0.2, γ = .99, on the
instances of ``instances.py``.  The NumPy program is vectorised over all pairs and sorts
once a sweep; it stops by the same rule, when ``γ/(1 − γ)`` times the largest change is
at most 1e-6.  Both answers are compared.  At 100,000 states NumPy's time is its time
a sweep, measured, times the sweeps that contraction by γ asks for from where it stands.

The target is 20 times NumPy at 10,000 states; the exit code is 1 where it is missed.
The warm fallback of 100 states, the agent's daily work, is timed as well.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np

import escapade as ep
from escapade.planning.robust_operator import RobustOperator, robust_control
from escapade.uncertainty import L1Ball
from instances import KINDS, N_ACTIONS, N_SUCCESSORS, make

DISCOUNT, RADIUS, PRECISION = 0.99, 0.2, 1e-6
SIZES = (1_000, 10_000, 100_000)
WHOLE_UP_TO = 10_000
TARGET = 20.0


class NumPySolver:
    """Robust value iteration, vectorised: one sort a sweep, all pairs at once."""

    def __init__(self, cmdp: ep.CMDP) -> None:
        shape = (cmdp.n_pairs, N_SUCCESSORS)
        self.successor = cmdp.successor.reshape(shape)
        self.probability = cmdp.probability.reshape(shape)
        self.cost = cmdp.cost[0]
        self.n_states = cmdp.n_states

    def sweep(self, v: np.ndarray) -> np.ndarray:
        """Return ``T v``: mass RADIUS/2 goes from the lowest values to the highest."""
        z = v[self.successor]
        order = np.argsort(z, axis=1)
        z = np.take_along_axis(z, order, axis=1)
        p = np.take_along_axis(self.probability, order, axis=1)
        taken = np.minimum(np.cumsum(p, axis=1), RADIUS / 2)
        drained = np.diff(taken, axis=1, prepend=0.0)
        q = ((p - drained) * z).sum(axis=1) + drained.sum(axis=1) * z[:, -1]
        return (self.cost + DISCOUNT * q).reshape(-1, N_ACTIONS).min(axis=1)

    def solve(self, sweeps: int) -> tuple[np.ndarray, int, float]:
        """Sweep until certified, or so often; the values, the sweeps, the seconds."""
        began = time.perf_counter()
        v = np.zeros(self.n_states)
        for done in range(1, sweeps + 1):
            new = self.sweep(v)
            change = float(np.abs(new - v).max())
            v = new
            if DISCOUNT / (1 - DISCOUNT) * change <= PRECISION:
                return v, done, time.perf_counter() - began
        took = time.perf_counter() - began
        left = np.log(PRECISION * (1 - DISCOUNT) / DISCOUNT / change) / np.log(DISCOUNT)
        total = done + max(int(np.ceil(left)), 0)
        return v, total, took / done * total


def escapade_solve(cmdp: ep.CMDP, sets: L1Ball) -> tuple[np.ndarray, str, float]:
    """Return the middle of the certified bounds, how they were found, the seconds."""
    best = np.inf
    for _ in range(3):
        began = time.perf_counter()
        operator = RobustOperator(
            sets,
            cmdp.state_ptr,
            cmdp.cost[0],
            DISCOUNT,
            nature="max",
            select="min",
        )
        # relative to the largest value, as everywhere in the library
        found = robust_control(operator, precision=PRECISION / 50.0)
        best = min(best, time.perf_counter() - began)
    assert found.width <= 2 * PRECISION, found.width
    return (found.lower + found.upper) / 2, f"{found.iterations} {found.method}", best


def warm_fallback() -> dict[str, float]:
    """Return the seconds of a fallback of 100 states: cold, and from a warm start."""
    rng = np.random.default_rng(0)
    P = np.zeros((100, N_ACTIONS, 100))
    for s in range(100):
        for a in range(N_ACTIONS):
            P[s, a, rng.choice(100, N_SUCCESSORS, replace=False)] = rng.dirichlet(
                np.ones(N_SUCCESSORS)
            )
    cmdp = ep.CMDP(
        P, rng.random((100, 5)), rng.random((100, 5)), discount=0.95, budget=15.0
    )
    sets = L1Ball(cmdp, radius=RADIUS)
    before = ep.fallback(cmdp, sets)
    after = sets.shrink(0.99)
    times = {}
    for name, keywords in {
        "cold": {},
        "warm": {"warm": before},
        "warm, to 1e-6": {"warm": before, "precision": 1e-6},
    }.items():
        best = np.inf
        for _ in range(50):
            began = time.perf_counter()
            ep.fallback(cmdp, after, **keywords)
            best = min(best, time.perf_counter() - began)
        times[name] = best
    return times


def main() -> int:
    """Print one row for each instance; tell whether the target was met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--largest", type=int, default=SIZES[-1])
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    print(
        f"{'instance':<9}{'S':>7}{'escapade, s':>13}{'NumPy, s':>11}{'ratio':>8}  how"
    )
    rows, missed = [], False
    for kind in KINDS:
        for n_states in (size for size in SIZES if size <= options.largest):
            cmdp = make(kind, n_states).cmdp(discount=DISCOUNT)
            sets = L1Ball(cmdp, radius=RADIUS)
            value, how, own = escapade_solve(cmdp, sets)
            limit = 10_000 if n_states <= WHOLE_UP_TO else 20
            other, sweeps, took = NumPySolver(cmdp).solve(limit)
            if n_states <= WHOLE_UP_TO:
                np.testing.assert_allclose(value, other, atol=3 * PRECISION)
            ratio = took / own
            missed |= n_states == 10_000 and ratio < TARGET
            print(
                f"{kind:<9}{n_states:>7}{own:>13.4f}{took:>11.2f}{ratio:>8.0f}  "
                f"{how}; NumPy {sweeps} sweeps",
                flush=True,
            )
            rows.append(
                {"kind": kind, "states": n_states, "seconds": own, "numpy": took}
            )
    times = warm_fallback()
    cells = ", ".join(f"{name} {1e3 * t:.2f} ms" for name, t in times.items())
    print(f"\nfallback of 100 states: {cells}")
    if options.json:
        options.json.write_text(json.dumps({"rows": rows, "fallback": times}, indent=2))
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
