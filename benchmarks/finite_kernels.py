"""Finite robust problems as published: five kernels, one of them true throughout.

    python benchmarks/finite_kernels.py [--seeds 20] [--greedy cost-1] [--json FILE]

15 states, 5 actions, γ = .99; the rows of each kernel and the start are drawn from
Dirichlet laws (.05 and .1), cost 0 of every pair is 0 or 1 with equal chances, and cost
1 is what cost 0 leaves to 1.  Cost 0 is to be small and cost 1 within a budget, both
under the worst of the five kernels, one at a time.  The budget is 1.05 times the
worst-case cost 1 of the mean of the policies that are greedy for either cost in one of
the kernels, ten in all, as in the published experiments; with ``--greedy cost-1``, of
the five that are greedy for cost 1, which leaves little room: then the uniform policy
is far outside the budget, and no ratio to it means much.

Since both costs add up to 1 in every step, making cost 0 small makes cost 1 large: the
budget binds, and 1/(1 − γ) less the budget bounds cost 0 from below.

The table gives the worst-case cost 0 as bounds, the seconds, and the ratio to that of
the uniform policy, which need not keep the budget.  Every policy is evaluated again
under each kernel by itself; the exit code is 1 if one breaks its budget or its bounds.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

import escapade as ep
from escapade.uncertainty import Models

STATES, ACTIONS, KERNELS, DISCOUNT = 15, 5, 5, 0.99
TOLERANCE = 1e-6


def problem(
    seed: int,
    *,
    states: int = STATES,
    actions: int = ACTIONS,
    kernels: int = KERNELS,
    discount: float = DISCOUNT,
    greedy: str = "both",
) -> tuple[ep.CMDP, Models]:
    """Return the problem and its kernels; reward is 1 less cost 0, the cost is cost 1.

    The same for the same seed.  ``greedy`` names the policies that set the budget.
    """
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.full(states, 0.05), (kernels, states, actions))
    start = rng.dirichlet(np.full(states, 0.1))
    first = (rng.random((states, actions)) < 0.5).astype(float)
    second = 1.0 - first
    worlds = [
        ep.CMDP(
            kernel,
            1.0 - first,
            second,
            discount=discount,
            budget=1.0,
            start=start,
            reward_max=1.0,
            cost_max=1.0,
        )
        for kernel in P
    ]
    costs = (first.ravel(), second.ravel()) if greedy == "both" else (second.ravel(),)
    policies = [
        ep.planning.policy_iteration(world, -cost).policy(world)
        for world in worlds
        for cost in costs
    ]
    mean = ep.Policy(np.mean([policy.probabilities for policy in policies], axis=0))
    most = max(float(ep.evaluate(world, mean).start_costs[0]) for world in worlds)
    cmdp = worlds[0].replace(budget=1.05 * most)
    members = [world.replace(budget=cmdp.budget) for world in worlds]
    return cmdp, Models(cmdp, members, throughout=True)


@dataclass(frozen=True, kw_only=True)
class Row:
    """What one problem shows, in cost 0; ``broken`` names the laws that did not hold.

    ``lower`` and ``upper`` bound the least worst-case cost 0 within the budget;
    ``upper`` is that of the policy found.
    """

    seed: int
    status: str
    lower: float
    upper: float
    budget: float
    cost: float
    uniform: float
    seconds: float
    broken: tuple[str, ...]

    @property
    def ratio(self) -> float:
        """Worst-case cost 0 of the policy found over that of the uniform policy."""
        return self.upper / self.uniform


def measure(seed: int, *, greedy: str = "both") -> Row:
    """Solve one problem and evaluate the answer under every kernel."""
    cmdp, family = problem(seed, greedy=greedy)
    answer = ep.solve(cmdp, ep.RobustLP(), uncertainty=family, objective="worst")
    most = 1.0 / (1.0 - cmdp.discount)
    uniform = ep.robust_evaluate(cmdp, ep.Policy.uniform(cmdp), family)
    broken = []
    cost = np.inf
    if answer.policy is None:
        broken.append(f"no policy: {answer.message}")
    else:
        alone = [ep.evaluate(model, answer.policy) for model in family.members(cmdp)]
        cost = max(float(found.start_costs[0]) for found in alone)
        worth = min(found.start_value for found in alone)
        if cost > cmdp.budget[0] + TOLERANCE:
            broken.append("the budget is exceeded")
        if not answer.lower - TOLERANCE <= worth <= answer.upper + TOLERANCE:
            broken.append("the worth lies outside the bounds")
    return Row(
        seed=seed,
        status=answer.status,
        lower=most - answer.upper,
        upper=most - answer.lower,
        budget=float(cmdp.budget[0]),
        cost=cost,
        uniform=most - uniform.start_value_lower,
        seconds=answer.seconds,
        broken=tuple(broken),
    )


def main() -> int:
    """Print one row for each problem, and the mean ratio."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--greedy", choices=("both", "cost-1"), default="both")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    measure(0)  # compiles
    print(
        f"{'seed':>4}{'budget':>9}{'cost 1':>9}{'cost 0 at least':>17}{'found':>9}"
        f"{'uniform':>9}{'ratio':>7}{'seconds':>9}  status"
    )
    rows = []
    for seed in range(options.seeds):
        row = measure(seed, greedy=options.greedy)
        rows.append(row)
        print(
            f"{seed:>4}{row.budget:>9.3f}{row.cost:>9.3f}{row.lower:>17.3f}"
            f"{row.upper:>9.3f}{row.uniform:>9.3f}{row.ratio:>7.3f}"
            f"{row.seconds:>9.2f}  {row.status}",
            flush=True,
        )
        for law in row.broken:
            print(f"     broken: {law}")
    ratios = [row.ratio for row in rows]
    print(
        f"\nmean ratio {np.mean(ratios):.3f} (of the lower bounds "
        f"{np.mean([row.lower / row.uniform for row in rows]):.3f}), "
        f"largest {max(ratios):.3f}; median "
        f"{np.median([row.seconds for row in rows]):.2f} s"
    )
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows]), "utf-8")
    return int(any(row.broken for row in rows))


if __name__ == "__main__":
    sys.exit(main())
