"""One budget: column generation beside HiGHS, on the same instance, in one run.

``ColumnGeneration`` is timed whole, with its proof of feasibility and its certificate;
HiGHS is timed on the occupation program alone, which is handed to it ready made, and
with the feasibility tolerance at which its answer has about the precision of the other.
The budget lies halfway between the least cost and the cost of the best policy without a
budget, so that it binds.  The values are compared before the times.

Absolute figures drift with the machine; the ratios, taken within one run, hold.
"""

from __future__ import annotations

import argparse
import platform
import time
from importlib.metadata import version

import numpy as np

import escapade as ep
from escapade.planning.feasibility import least_costs
from escapade.planning.highs import maximise
from escapade.planning.occupation_lp import occupation_program
from escapade.planning.oracle import Oracle
from instances import KINDS, make

DISCOUNT = 0.99
ROUNDS = 5
METHODS = ("simplex", "interior_point")


def problem(kind: str, n_states: int) -> ep.CMDP:
    """Return an instance whose budget binds."""
    cmdp = make(kind, n_states).cmdp(discount=DISCOUNT)
    oracle = Oracle(cmdp)
    least = least_costs(oracle)[0]
    free = oracle.best(np.zeros(1)).costs[0]
    return cmdp.replace(budget=0.5 * (least + free))


def by_columns(cmdp: ep.CMDP) -> tuple[float, ep.Solution]:
    """Return the seconds of the best round, and the answer."""
    best = float("inf")
    for _ in range(ROUNDS):
        began = time.perf_counter()
        answer = ep.ColumnGeneration().solve(cmdp)
        best = min(best, time.perf_counter() - began)
    return best, answer


def by_highs(cmdp: ep.CMDP, method: str, limit: float) -> tuple[float, float | None]:
    """Return the seconds, and the value unless time ran out."""
    program = occupation_program(cmdp)
    began = time.perf_counter()
    answer = maximise(program, method=method, time_limit=limit)
    took = time.perf_counter() - began
    if answer.outcome != "optimal":
        return took, None
    return took, float(answer.x @ cmdp.reward)


def main() -> None:
    """Print one row for each instance."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 2_500])
    parser.add_argument("--limit", type=float, default=300.0, help="seconds a program")
    arguments = parser.parse_args()
    print(
        f"escapade {version('escapade')}, highspy {version('highspy')}; "
        f"Python {platform.python_version()}, {platform.machine()}, one thread"
    )
    print("seconds; in brackets: times as long as column generation\n")
    heads = "".join(f"{'HiGHS ' + method:>27}" for method in METHODS)
    print(f"{'instance':<10}{'S':>8}{'columns':>10}{'calls':>7}{'gap':>10}{heads}")
    for kind in KINDS:
        for n_states in arguments.sizes:
            cmdp = problem(kind, n_states)
            by_columns(cmdp)  # compiles
            seconds, answer = by_columns(cmdp)
            if answer.status != "optimal":
                raise SystemExit(f"column generation ended {answer.status}")
            row = (
                f"{kind:<10}{n_states:>8}{seconds:>10.3f}{answer.iterations:>7}"
                f"{answer.gap:>10.1e}"
            )
            for method in METHODS:
                took, value = by_highs(cmdp, method, arguments.limit)
                mark = "" if value is not None else ">"
                if value is not None:
                    np.testing.assert_allclose(value, answer.value, rtol=1e-6)
                row += (
                    f"{mark + format(took, '.2f'):>17} {f'({took / seconds:.0f})':>9}"
                )
            print(row, flush=True)


if __name__ == "__main__":
    main()
