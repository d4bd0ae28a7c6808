"""Interval robust value iteration beside Storm's, at the same certified precision.

    python benchmarks/interval_storm.py [--sizes 1000 10000] [--json FILE]

The problem is the least worst-case discounted cost, γ = .99, on the instances of
``instances.py``; each probability may be off by 0.05.  Storm knows no discount, so it
is given a reachability problem: every step ends, with probability 1 − γ, in ``good``
with the cost as chance and in ``bad`` otherwise; the chance to reach ``good`` is 1 − γ
times the cost.  Intervals stay clear of 0, which Storm asks for.

Both answers are to be within 1e-6 of the truth.  Escapade stops on certified bounds;
Storm, whose value iteration stops on a step size, is given the step that contraction by
γ turns into that precision.  Building Storm's model is not counted.  The libraries take
turns, the best of several rounds counts, and the values are compared.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import numpy as np
import stormpy
from stormpy.datastructures import SparseMatrixBuilder
from stormpy.environments import MinMaxMethod
from stormpy.models import SparseMdp, SparseModelComponents, StateLabeling

from escapade.planning.robust_operator import RobustOperator, robust_control
from escapade.uncertainty import Interval
from instances import KINDS, N_ACTIONS, Instance, make

DISCOUNT, HALF_WIDTH, PRECISION = 0.99, 0.05, 1e-6
LEAST = 1e-9
ROUNDS = 3


def bounds_of(instance: Instance) -> tuple[np.ndarray, np.ndarray]:
    """Return the least and the greatest probability of every entry."""
    p = instance.transitions.data
    return np.maximum(p - HALF_WIDTH, LEAST), np.minimum(p + HALF_WIDTH, 1.0)


def storm_model(instance: Instance, lower: np.ndarray, upper: np.ndarray) -> SparseMdp:
    """Return the reachability problem; ``good`` and ``bad`` are the last two states."""
    states, pairs = instance.n_states, instance.n_states * N_ACTIONS
    entries = np.diff(instance.transitions.indptr)
    ends = (1.0 - DISCOUNT) * instance.cost.ravel()
    every = np.arange(pairs)
    row = np.concatenate([np.repeat(every, entries), every, every, [pairs, pairs + 1]])
    column = np.concatenate(
        [
            instance.transitions.indices,
            np.full(pairs, states),
            np.full(pairs, states + 1),
            [states, states + 1],
        ]
    )
    fixed = np.concatenate([ends, (1.0 - DISCOUNT) - ends, [1.0, 1.0]])
    low = np.concatenate([DISCOUNT * lower, fixed])
    high = np.concatenate([DISCOUNT * upper, fixed])
    order = np.lexsort((column, row))
    builder = SparseMatrixBuilder[stormpy.Interval](
        rows=pairs + 2,
        columns=states + 2,
        entries=order.size,
        has_custom_row_grouping=True,
        row_groups=states + 2,
    )
    builder.add_next_values(
        row[order].tolist(),
        column[order].tolist(),
        [stormpy.Interval(a, b) for a, b in zip(low[order], high[order], strict=True)],
        [*range(0, pairs, N_ACTIONS), pairs, pairs + 1],
    )
    labels = StateLabeling(states + 2)
    for label, state in (("init", 0), ("good", states)):
        labels.add_label(label)
        labels.add_label_to_state(label, state)
    components = SparseModelComponents[stormpy.Interval](
        transition_matrix=builder.build(), state_labeling=labels
    )
    return SparseMdp[stormpy.Interval](components)


def storm_solver(model: SparseMdp, states: int) -> Callable[[], np.ndarray]:
    """Return a solve; its result is the discounted cost of every state."""
    formula = stormpy.parse_properties('Pmin=? [F "good"]')[0]
    environment = stormpy.Environment()
    settings = environment.solver().min_max()
    settings.method = MinMaxMethod.VALUE_ITERATION
    step = PRECISION * (1.0 - DISCOUNT) * (1.0 - DISCOUNT) / DISCOUNT
    settings.precision = stormpy.Rational(step)
    settings.relative_termination_criterion = False
    settings.maximal_number_of_iterations = 1_000_000

    def solve() -> np.ndarray:
        result = stormpy.model_checking(
            model,
            formula,
            environment=environment,
            uncertainty_resolution_mode=stormpy.UncertaintyResolutionMode.ROBUST,
        )
        found = [result.get_value(state) for state in range(states)]
        return np.array(found) / (1.0 - DISCOUNT)

    return solve


def own_solver(
    instance: Instance, lower: np.ndarray, upper: np.ndarray
) -> Callable[[], np.ndarray]:
    """Return a solve that ends with bounds no further apart than the precision."""
    cmdp = instance.cmdp(discount=DISCOUNT)
    sets = Interval(cmdp, lower=lower, upper=upper)
    most = float(cmdp.cost.max()) / (1.0 - DISCOUNT)

    def solve() -> np.ndarray:
        operator = RobustOperator(
            sets, cmdp.state_ptr, cmdp.cost[0], DISCOUNT, nature="max", select="min"
        )
        found = robust_control(operator, precision=PRECISION / most)
        if found.width > 2 * PRECISION:
            raise SystemExit(f"the precision was not reached: {found.width:g}")
        return 0.5 * (found.lower + found.upper)

    return solve


def main() -> int:
    """Print one row for each instance."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000])
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    print(f"escapade {version('escapade')}, stormpy {version('stormpy')}, one thread\n")
    print(
        f"{'instance':<9}{'S':>7}{'escapade, s':>13}{'Storm, s':>10}{'ratio':>7}"
        f"{'apart':>10}"
    )
    rows = []
    for kind in KINDS:
        for n_states in options.sizes:
            instance = make(kind, n_states)
            lower, upper = bounds_of(instance)
            # where the nominal itself is less than the least that Storm takes
            lower = np.minimum(lower, instance.transitions.data)
            solvers = {
                "escapade": own_solver(instance, lower, upper),
                "storm": storm_solver(storm_model(instance, lower, upper), n_states),
            }
            best = dict.fromkeys(solvers, np.inf)
            values: dict[str, np.ndarray] = {}
            solvers["escapade"]()  # compiles
            for _ in range(ROUNDS):
                for name, solve in solvers.items():
                    began = time.perf_counter()
                    values[name] = solve()
                    best[name] = min(best[name], time.perf_counter() - began)
            apart = float(np.abs(values["escapade"] - values["storm"]).max())
            if apart > 2 * PRECISION:
                raise SystemExit(f"the answers are {apart:.3g} apart")
            print(
                f"{kind:<9}{n_states:>7}{best['escapade']:>13.4f}{best['storm']:>10.3f}"
                f"{best['storm'] / best['escapade']:>7.0f}{apart:>10.1e}",
                flush=True,
            )
            rows.append({"kind": kind, "states": n_states, "apart": apart, **best})
    if options.json:
        options.json.write_text(json.dumps(rows, indent=2), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
