"""Two budgets, each of which binds in turn; and one that cannot be promised at all.

**Two shifts.**  A plant alternates between day and night; a shift goes on with
probability .1.  Working earns 1, and costs 1 in the first channel by day and in the
second by night; resting earns and costs nothing.  Costs are known, and how shifts
change when resting; how they change when working, and what work earns, is not.  Three
settings of the budgets make the first bind, the second, and both in turn, day by day.

**A greenhouse.**  Humidity and warmth make plants grow; what is wet gets mouldy, what
is hot is scorched, and each has its budget.  Six levels of humidity and four of warmth;
idling and venting are known, with their costs; of watering and heating only where they
may lead.  What grows, and what is lost to mould and heat, is 0 or 1 by chance.

What E4 earns stands beside what it earns if it is told everything, and beside the best
stationary policy, which keeps the budgets from the start alone and not, as E4 does,
from every moment on.  The worst mean cost-to-go is the largest of the means at all the
steps, each over the audit's lifetimes, so a budget that is used up may be exceeded by
chance.

**Nothing to promise.**  The same plant, whose costs are not known: nothing is known
to be cheap, so no budget below c_max/(1 − γ) can be promised, and the agent refuses to
be born.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np

import escapade as ep
from escapade.errors import AssumptionError

DISCOUNT = 0.95
WET, HOT = 6, 4
IDLE, VENT, WATER, HEAT = range(4)
HOUSE_BUDGETS = ((6.0, 2.5), (4.0, 4.0))
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


def greenhouse(budget: tuple[float, float]) -> ep.environments.World:
    """Return the greenhouse with these budgets."""
    n = WET * HOT
    # chances of a change in humidity, and in warmth, by action
    changes = {
        IDLE: ({-1: 0.3, 0: 0.7}, {-1: 0.2, 0: 0.8}),
        VENT: ({-1: 0.8, 0: 0.2}, {-1: 0.7, 0: 0.3}),
        WATER: ({1: 0.8, 0: 0.2}, {-1: 0.1, 0: 0.9}),
        HEAT: ({-1: 0.2, 0: 0.8}, {1: 0.7, 0: 0.3}),
    }
    rows = np.zeros((n, 4, n))
    wet, hot = np.divmod(np.arange(n), HOT)
    for action, (wetter, hotter) in changes.items():
        for more, p in wetter.items():
            for warmer, q in hotter.items():
                after = np.clip(wet + more, 0, WET - 1) * HOT
                after += np.clip(hot + warmer, 0, HOT - 1)
                np.add.at(rows, (np.arange(n), action, after), p * q)
    grows = np.array([0.0, 0.2, 0.5, 0.8, 1.0, 1.0])[wet]
    grows *= np.array([0.1, 0.5, 0.9, 1.0])[hot]
    loss = np.stack(
        [
            np.array([0.0, 0.0, 0.0, 0.1, 0.5, 1.0])[wet],
            np.array([0.0, 0.0, 0.2, 1.0])[hot],
        ]
    )
    cost = np.repeat(loss[:, :, np.newaxis], 4, axis=2)
    cmdp = ep.CMDP(
        rows,
        np.repeat(grows[:, np.newaxis], 4, axis=1),
        cost,
        discount=DISCOUNT,
        budget=budget,
        start=0,
        reward_max=1.0,
        cost_max=1.0,
    )
    known, bounds = rows.copy(), cost.copy()
    known[:, [WATER, HEAT]] = 0.0
    bounds[:, :, [WATER, HEAT]] = 1.0

    def told() -> ep.Knowledge:
        return ep.Knowledge(
            n,
            4,
            discount=DISCOUNT,
            budget=budget,
            reward_max=1.0,
            cost_max=[1.0, 1.0],
            start=0,
            support=rows > 0.0,
            known_rows=known.reshape(4 * n, n),
            cost_bounds=bounds,
        )

    return ep.environments.World(
        name="greenhouse",
        description="Plants that must be neither too wet nor too hot.",
        cmdp=cmdp,
        told=told,
        reward_noise="bernoulli",
        cost_noise="bernoulli",
    )


def everything(world: ep.environments.World) -> ep.Knowledge:
    """Return the whole truth about a world."""
    cmdp = world.cmdp
    shape = cmdp.n_states, cmdp.n_actions
    return ep.Knowledge(
        *shape,
        discount=cmdp.discount,
        budget=cmdp.budget,
        reward_max=cmdp.reward_max,
        cost_max=cmdp.cost_max,
        start=cmdp.start,
        known_rows=cmdp.transition_matrix.toarray(),
        rewards=cmdp.reward.reshape(shape).copy(),
        costs=cmdp.cost.reshape(2, *shape).copy(),
    )


def agent(knowledge: ep.Knowledge, seed: int) -> ep.E4:
    """Return the agent that is measured."""
    return ep.E4(knowledge, ep.E4Settings(seed=seed, known_after=5, turn_home=0.7))


def house_agent(knowledge: ep.Knowledge, seed: int) -> ep.E4:
    """Return the agent in the greenhouse."""
    return ep.E4(knowledge, ep.E4Settings(seed=seed))


def row(
    name: str,
    world: ep.environments.World,
    make: Callable[[ep.Knowledge, int], ep.E4],
    lifetimes: int,
    steps: int,
    life_steps: int,
) -> dict[str, object]:
    """Return what an audit and one longer life show."""
    best = ep.solve(world.cmdp)
    budget = world.cmdp.budget
    binding = np.flatnonzero(best.costs >= budget - 1e-6)
    found = ep.audit(make, world, lifetimes, steps)
    worst = found.mean_cost_to_go.max(axis=0)
    settled = slice(life_steps // 2, 3 * life_steps // 4)
    earned = []
    for knowledge in (world.knowledge, everything(world)):
        life = ep.simulate(make(knowledge, 0), world.make_env(), life_steps)
        earned.append(f"{life.value_to_go()[settled].mean():.2f}")
        if len(earned) == 1:
            phases = life.summary()["phases"]
    return {
        "world": name,
        "budgets": f"{budget[0]:g} and {budget[1]:g}",
        "binding": " and ".join(("first", "second")[k] for k in binding),
        "worst mean cost-to-go": f"{worst[0]:.3f} and {worst[1]:.3f}",
        "invariant": found.invariant_breaks,
        "steps": life_steps,
        "exploited": f"{phases['exploit'] / life_steps:.1%}",
        "waited": f"{phases['wait'] / life_steps:.1%}",
        "earned, once settled": earned[0],
        "told everything": earned[1],
        "best stationary": f"{best.value:.2f}",
    }


def rows(lifetimes: int = 100, steps: int = 1_000) -> list[dict[str, object]]:
    """Return one row for each setting of the budgets, and one for the refusal."""
    table = [
        row("two shifts", shifts(budget), agent, lifetimes, steps, 8 * steps)
        for budget in BUDGETS
    ]
    table += [
        row(
            "greenhouse",
            greenhouse(budget),
            house_agent,
            lifetimes // 5,
            2 * steps,
            20 * steps,
        )
        for budget in HOUSE_BUDGETS
    ]
    try:
        agent(shifts(BUDGETS[0], costs_known=False).knowledge, 0)
    except AssumptionError as refused:
        table.append(
            {
                "world": "two shifts, costs not known",
                "budgets": "3 and 20",
                "binding": f"refused: {refused}",
            }
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
