"""How far robust plans are from the best possible: fifty random problems, one table.

    python benchmarks/robust_gaps.py [--problems 50] [--restarts 50] [--json FILE]

Each problem has 5 to 30 states and one budget between the least worst-case cost and the
worst-case cost of the best policy without a budget; the set is an L1 ball of radius
0.25 or intervals of half that.  The reward is nominal, the cost is the worst, and the
budget is for the start.  A gap is how far a plan's certified worth stays below the
least upper bound that any solver proved, as a share of that bound.

Nothing is taken on a solver's word: every plan is evaluated again with
``robust_evaluate`` and ``evaluate``.  On problems of at most 10 states a search over
stationary policies is begun at 50 random ones; the best that keeps the budget is
compared with PromiseDP, whose stated error is its own gap.  The exit code is 1 if a
bound is broken, a budget exceeded, or a stationary policy better than that error says.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

import escapade as ep
from escapade.planning.robust_certificate import Judge
from escapade.planning.robust_search import Search
from escapade.uncertainty import Interval, L1Ball, UncertaintySet

SOLVERS = {
    "RobustLP": ep.RobustLP(max_iterations=10),
    "LagrangianRobustDP": ep.LagrangianRobustDP(),
    "SlackDP": ep.SlackDP(points=33, at_all_times=False),
    "PromiseDP": ep.PromiseDP(points=21, max_iterations=12, at_all_times=False),
}
FEW_STATES = 10
TOLERANCE = 1e-7


def random_problem(
    seed: int,
    states: int | None = None,
    actions: int | None = None,
    discount: float = 0.9,
    tight: float = 0.35,
) -> tuple[ep.CMDP, UncertaintySet]:
    """Return a problem whose budget binds, and a set; the same for the same seed."""
    rng = np.random.default_rng(seed)
    states = states or int(rng.integers(5, 31))
    actions = actions or int(rng.integers(2, 5))
    P = np.zeros((states, actions, states))
    for s in range(states):
        for a in range(actions):
            to = rng.choice(states, min(4, states), replace=False)
            P[s, a, to] = rng.dirichlet(np.ones(to.size))
    R = rng.random((states, actions))
    C = np.clip(R + 0.5 * rng.standard_normal(R.shape), 0.0, 1.0)
    cmdp = ep.CMDP(P, R, C, discount=discount, budget=1e3, reward_max=1.0, cost_max=1.0)
    sets: UncertaintySet
    if seed % 2:
        sets = Interval(cmdp, radius=0.125)
    else:
        sets = L1Ball(cmdp, radius=0.25)
    least = ep.fallback(cmdp, sets).cost_to_go[0, 0]
    greedy = ep.planning.policy_iteration(cmdp).policy(cmdp)
    most = ep.robust_evaluate(cmdp, greedy, sets).costs_upper[0, 0]
    return cmdp.replace(budget=least + tight * max(most - least, 0.05)), sets


@dataclass(kw_only=True)
class Row:
    """What one problem shows; ``broken`` names the laws that did not hold."""

    seed: int
    states: int
    actions: int
    upper: float
    lower: dict[str, float] = field(default_factory=dict)
    own_upper: dict[str, float] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    stationary: float = float("nan")
    broken: list[str] = field(default_factory=list)

    def gap(self, name: str) -> float:
        """Return how far a solver stays below the bound, as a share of it."""
        return (self.upper - self.lower[name]) / self.upper


def measure(seed: int, *, restarts: int = 50) -> Row:
    """Solve one problem by every solver, and check what they say."""
    states = 5 + seed % 6 if seed % 5 == 0 else None
    cmdp, sets = random_problem(seed, states)
    row = Row(seed=seed, states=cmdp.n_states, actions=cmdp.n_actions, upper=np.inf)
    for name, solver in SOLVERS.items():
        began = time.perf_counter()
        answer = ep.solve(cmdp, solver, uncertainty=sets)
        row.seconds[name] = time.perf_counter() - began
        if answer.policy is None:
            row.broken.append(f"{name} found no policy")
            continue
        row.lower[name], row.own_upper[name] = answer.lower, answer.upper
        row.upper = min(row.upper, answer.upper)
        bounds = ep.robust_evaluate(cmdp, answer.policy, sets)
        worth = ep.evaluate(cmdp, answer.policy).start_value
        if not answer.lower <= answer.upper:
            row.broken.append(f"{name}: lower is above upper")
        if bounds.start_costs_upper[0] > cmdp.budget[0] + TOLERANCE:
            row.broken.append(f"{name} exceeds the budget")
        if worth < answer.lower - TOLERANCE:
            row.broken.append(f"{name} earns less than its lower bound")
    for name, lower in row.lower.items():
        if lower > row.upper + TOLERANCE:
            row.broken.append(f"{name} earns more than a bound allows")
    if cmdp.n_states <= FEW_STATES:
        found = best_of_restarts(cmdp, sets, restarts, seed)
        row.stationary = max(found, row.lower["RobustLP"])
        if row.stationary > row.own_upper["PromiseDP"] + TOLERANCE:
            row.broken.append("a stationary policy is better than PromiseDP's error")
    return row


def best_of_restarts(
    cmdp: ep.CMDP, sets: UncertaintySet, restarts: int, seed: int
) -> float:
    """Return the best worth of a stationary policy, climbed to from random ones."""
    judge = Judge(cmdp, sets, "nominal")
    rng = np.random.default_rng(seed)
    best = -np.inf
    for _ in range(restarts):
        search = Search(judge)
        weights = rng.dirichlet(np.full(cmdp.n_actions, 0.3), cmdp.n_states)
        search.consider(ep.Policy(weights), mend=False)
        search.refine(steps=25)
        if search.best is not None:
            best = max(best, search.best.lower)
    return best


def main() -> int:
    """Print one row for each problem, and what they amount to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", type=int, default=50)
    parser.add_argument("--restarts", type=int, default=50)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    heads = "".join(f"{name:>20}" for name in SOLVERS)
    print("gap to the least upper bound, in per cent of it\n")
    print(f"{'seed':>4}{'S':>4}{'A':>3}{'set':>10}{heads}{'stationary':>12}")
    rows = []
    for seed in range(options.problems):
        row = measure(seed, restarts=options.restarts)
        rows.append(row)
        cells = "".join(
            f"{100 * row.gap(name):>20.2f}" if name in row.lower else f"{'none':>20}"
            for name in SOLVERS
        )
        searched = ""
        if not np.isnan(row.stationary):
            searched = f"{100 * (row.upper - row.stationary) / row.upper:.2f}"
        kind = "Interval" if seed % 2 else "L1Ball"
        print(
            f"{seed:>4}{row.states:>4}{row.actions:>3}{kind:>10}{cells}{searched:>12}",
            flush=True,
        )
        for law in row.broken:
            print(f"     broken: {law}")
    print()
    for label, share in (("median", 0.5), ("largest", 1.0)):
        gaps = [
            100 * np.quantile([row.gap(name) for row in rows], share)
            for name in SOLVERS
        ]
        print(f"{label:<21}" + "".join(f"{gap:>20.2f}" for gap in gaps))
    times = [np.median([row.seconds[name] for row in rows]) for name in SOLVERS]
    print(f"{'median seconds':<21}" + "".join(f"{time_:>20.2f}" for time_ in times))
    searched_rows = [row for row in rows if not np.isnan(row.stationary)]
    ahead = [row.lower["PromiseDP"] - row.stationary for row in searched_rows]
    within = not any("stationary" in law for row in rows for law in row.broken)
    print(
        f"\nPromiseDP earns at least as much as every stationary policy found in "
        f"{sum(a >= -TOLERANCE for a in ahead)} of {len(ahead)} problems searched; "
        f"at worst {max(0.0, -min(ahead, default=0.0)):.4f} less, within its stated "
        f"error everywhere: {within}"
    )
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows]), "utf-8")
    return int(any(row.broken for row in rows))


if __name__ == "__main__":
    sys.exit(main())
