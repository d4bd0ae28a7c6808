"""Two budgets, each of which binds in turn; and one that cannot be promised at all.

**Two shifts.**  A plant alternates between day and night; a shift goes on with
probability .1.  Working earns 1, and costs 1 in the first channel by day and in the
second by night; resting earns and costs nothing.  Costs are known, and how shifts
change when resting; how they change when working, and what work earns, is not.  Three
settings of the budgets make the first bind, the second, and both in turn, day by day.
The best stationary policy and what E4 earns stand beside each other, and the audit's
worst mean cost-to-go beside each budget.

**Nothing to promise.**  The same plant, whose costs are not known: nothing is known
to be cheap, so no budget below c_max/(1 − γ) can be promised, and the agent refuses to
be born.
"""

from __future__ import annotations

import argparse

import numpy as np

import escapade as ep
from escapade.errors import AssumptionError

DISCOUNT = 0.95
BUDGETS = ((3.0, 20.0), (20.0, 3.0), (4.0, 4.0))
LINGERS = 0.1
DAY, NIGHT = range(2)
REST, WORK = range(2)


def shifts(
    budget: tuple[float, float], *, costs_known: bool = True
) -> ep.environments.World:
    """Return the plant with these budgets."""
    matrix = np.empty((2, 2, 2))
    matrix[DAY] = LINGERS, 1.0 - LINGERS
    matrix[NIGHT] = 1.0 - LINGERS, LINGERS
    reward = np.zeros((2, 2))
    reward[:, WORK] = 1.0
    cost = np.zeros((2, 2, 2))
    cost[0, DAY, WORK] = cost[1, NIGHT, WORK] = 1.0
    cmdp = ep.CMDP(matrix, reward, cost, discount=DISCOUNT, budget=budget, start=DAY)
    known = matrix.copy()
    known[:, WORK] = 0.0

    def told() -> ep.Knowledge:
        return ep.Knowledge(
            2,
            2,
            discount=DISCOUNT,
            budget=budget,
            reward_max=1.0,
            cost_max=[1.0, 1.0],
            start=DAY,
            known_rows=known.reshape(4, 2),
            costs=cost if costs_known else None,
        )

    return ep.environments.World(
        name="two-shifts",
        description="A plant with a budget by day and another by night.",
        cmdp=cmdp,
        told=told,
    )


def agent(knowledge: ep.Knowledge, seed: int) -> ep.E4:
    """Return the agent that is measured."""
    return ep.E4(knowledge, ep.E4Settings(seed=seed, known_after=5, turn_home=0.7))


def rows(lifetimes: int = 100, steps: int = 1_000) -> list[dict[str, object]]:
    """Return one row for each setting of the budgets, and one for the refusal."""
    table: list[dict[str, object]] = []
    settled = slice(steps // 2, 3 * steps // 4)
    for budget in BUDGETS:
        world = shifts(budget)
        best = ep.solve(world.cmdp)
        binding = np.flatnonzero(best.costs >= np.array(budget) - 1e-6)
        found = ep.audit(agent, world, lifetimes, steps)
        life = ep.simulate(agent(world.knowledge, 0), world.make_env(), steps)
        worst = found.mean_cost_to_go.max(axis=0)
        table.append(
            {
                "budgets": f"{budget[0]:g} and {budget[1]:g}",
                "binding": " and ".join(("day", "night")[k] for k in binding),
                "worst mean cost-to-go": f"{worst[0]:.3f} and {worst[1]:.3f}",
                "invariant": found.invariant_breaks,
                "earned, once settled": f"{life.value_to_go()[settled].mean():.2f}",
                "best stationary": f"{best.value:.2f}",
            }
        )
    try:
        agent(shifts(BUDGETS[0], costs_known=False).knowledge, 0)
    except AssumptionError as refused:
        table.append(
            {"budgets": "3 and 20, costs not known", "binding": f"refused: {refused}"}
        )
    return table


def main() -> None:
    """Print the rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lifetimes", type=int, default=100)
    for line in rows(parser.parse_args().lifetimes):
        print(line)


if __name__ == "__main__":
    main()
