"""One sweep of the plain Bellman operator, beside QuantEcon.py and pymdptoolbox.

Every library gets the same instance and the same values, and their results are
compared before they are timed.  Escapade writes ``T v`` and the greedy pairs and
returns the spread of ``T v − v``; QuantEcon writes ``T v`` alone, which is the least it
can be asked for; pymdptoolbox returns ``T v`` and the greedy actions (its check of the
input, which fills an ``(S, S)`` array with today's NumPy, is left out).  Building a
model from a sparse matrix, with all its checks, is timed too.

The libraries take turns, round by round, and the best round of each counts: that is the
one that other work on the machine disturbed least.
Absolute figures drift with the machine; the ratios, taken within one run, hold.
"""

from __future__ import annotations

import platform
import time
import unittest.mock
from collections.abc import Callable
from importlib.metadata import version

import numpy as np
import scipy.sparse as sp
from mdptoolbox.mdp import MDP
from quantecon.markov import DiscreteDP

from escapade.kernels.backups import bellman_backup
from instances import KINDS, N_ACTIONS, SIZES, Instance, make

DISCOUNT = 0.99
ROUNDS = 7
SECONDS_A_ROUND = 0.1


def escapade_sweep(instance: Instance, value: np.ndarray) -> Callable[[], np.ndarray]:
    """Return a sweep into a buffer."""
    cmdp = instance.cmdp(discount=DISCOUNT)
    out = np.empty_like(value)
    best = np.empty(value.size, dtype=np.int64)

    def sweep() -> np.ndarray:
        bellman_backup(
            cmdp.state_ptr,
            cmdp.row_ptr,
            cmdp.successor,
            cmdp.probability,
            cmdp.reward,
            DISCOUNT,
            value,
            out,
            best,
        )
        return out

    return sweep


def quantecon_sweep(instance: Instance, value: np.ndarray) -> Callable[[], np.ndarray]:
    """Return a sweep into a buffer, without the greedy policy."""
    states, actions = np.divmod(np.arange(instance.reward.size), N_ACTIONS)
    problem = DiscreteDP(
        instance.reward.ravel(), instance.transitions, DISCOUNT, states, actions
    )
    out = np.empty_like(value)
    return lambda: problem.bellman_operator(value, Tv=out)


def mdptoolbox_sweep(instance: Instance, value: np.ndarray) -> Callable[[], np.ndarray]:
    """Return a sweep; one matrix an action, as the library keeps them."""
    by_action = [
        sp.csr_matrix(instance.transitions[action::N_ACTIONS])
        for action in range(N_ACTIONS)
    ]
    with unittest.mock.patch("mdptoolbox.mdp._util.check"):
        problem = MDP(by_action, instance.reward, DISCOUNT, None, None)
    return lambda: problem._bellmanOperator(value)[1]


LIBRARIES = {
    "escapade": escapade_sweep,
    "quantecon": quantecon_sweep,
    "pymdptoolbox": mdptoolbox_sweep,
}


def race(calls: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Return the seconds a call of each takes in its best round, taking turns."""
    repeats = {}
    for name, call in calls.items():
        call()
        began = time.perf_counter()
        call()
        once = max(time.perf_counter() - began, 1e-9)
        repeats[name] = max(1, round(SECONDS_A_ROUND / once))
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(ROUNDS):
        for name, call in calls.items():
            began = time.perf_counter()
            for _ in range(repeats[name]):
                call()
            took = (time.perf_counter() - began) / repeats[name]
            best[name] = min(best[name], took)
    return best


def main() -> None:
    """Print one row for each instance."""
    names = list(LIBRARIES)
    versions = ", ".join(f"{name} {version(name)}" for name in names)
    print(f"{versions}; Python {platform.python_version()}, {platform.machine()}")
    print("ns a pair for one backup; in brackets: times as long as escapade\n")
    columns = "".join(f"{name:>20}" for name in names)
    print(f"{'instance':<10}{'S':>8}{columns}{'build, s':>12}")
    for kind in KINDS:
        for n_states in SIZES:
            instance = make(kind, n_states)
            value = np.random.default_rng(1).random(n_states)
            sweeps = {name: make_(instance, value) for name, make_ in LIBRARIES.items()}
            results = {name: np.array(sweep()) for name, sweep in sweeps.items()}
            for name in names[1:]:
                np.testing.assert_allclose(results[name], results["escapade"])
            pairs = n_states * N_ACTIONS
            took = {name: s / pairs * 1e9 for name, s in race(sweeps).items()}
            cells = f"{took['escapade']:>20.1f}"
            for name in names[1:]:
                ratio = f"({took[name] / took['escapade']:.1f})"
                cells += f"{took[name]:>12.1f} {ratio:>7}"
            began = time.perf_counter()
            instance.cmdp(discount=DISCOUNT)
            built = time.perf_counter() - began
            print(f"{kind:<10}{n_states:>8}{cells}{built:>12.3f}", flush=True)


if __name__ == "__main__":
    main()
