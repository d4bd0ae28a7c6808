"""Example 2 with a toll: how much of the oracle's value is lived.

    python benchmarks/toll.py [--seeds 20]

``toll_cycle(10)``: each paid step is charged .15, so that the budget of 10 binds, and
the oracle earns 10 / .15 = 66.6667 from the start.  Over windows of 5,000 steps the
table has what was earned and paid a step, both over 1 − discount, which is the mean of
the discounted sums from every step of the window on.

- *within 2 %*: the end of the first window from which on every window earns at least
  98 % of the oracle's value; the median over seeds;
- *earned*, *paid*: in the last window of all, the median and the most;
- *dearest window*: the most that any window of any life paid;
- *invariant*: in how many steps ``w <= b <= d`` did not hold.

The second row is the same agent, told everything: rows, costs and rewards exactly.
Nothing is estimated then, so nothing is kept back for δ and nothing has to be learned:
what it earns less than the oracle is what the promise itself costs, with the plan that
serves it.  Its budget is kept at every moment, and the oracle's only from the start.
"""

from __future__ import annotations

import argparse

import numpy as np

import escapade as ep

STEPS = 30_000
WINDOW = 5_000
QUOTA = 5


def told_everything(world: ep.environments.World) -> ep.Knowledge:
    """Return the truth as knowledge."""
    cmdp = world.cmdp
    shape = (cmdp.n_states, cmdp.n_actions)
    return world.knowledge.replace(
        models=None,
        log=None,
        free=None,
        known_rows=cmdp.transition_matrix,
        rewards=cmdp.reward.reshape(shape).copy(),
        costs=cmdp.cost.reshape(1, *shape).copy(),
    )


def live(
    world: ep.environments.World, knowledge: ep.Knowledge, settings: ep.E4Settings
) -> tuple[np.ndarray, np.ndarray, int]:
    """Return what each window earned and paid, and how often the invariant broke."""
    agent = ep.E4(knowledge, settings)
    trace = ep.simulate(agent, world.make_env(), STEPS)
    horizon = 1.0 / (1.0 - world.cmdp.discount)
    earned = trace.rewards.reshape(-1, WINDOW).mean(axis=1) * horizon
    paid = trace.costs[:, 0].reshape(-1, WINDOW).mean(axis=1) * horizon
    bad = (trace.reserved > trace.promise) | (trace.promise > world.cmdp.budget)
    return earned, paid, int(bad.any(axis=1).sum()) + len(agent.breaks)


def rows(seeds: int = 20) -> list[dict[str, object]]:
    """Return the table: as it is known, and with everything told."""
    world = ep.environments.toll_cycle(10)
    table: list[dict[str, object]] = []
    for name, knowledge, count in (
        ("E4", world.knowledge, seeds),
        ("E4, told everything", told_everything(world), max(seeds // 4, 1)),
    ):
        lives = [
            live(world, knowledge, ep.E4Settings(known_after=QUOTA, seed=seed))
            for seed in range(count)
        ]
        earned = np.array([life[0] for life in lives])
        paid = np.array([life[1] for life in lives])
        reached = []
        for windows in earned:
            short = np.flatnonzero(windows < 0.98 * world.optimum)
            first = 0 if short.size == 0 else int(short[-1]) + 1
            reached.append(np.inf if first == windows.size else WINDOW * (first + 1.0))
        last = float(np.median(earned[:, -1]))
        table.append(
            {
                "agent": name,
                "known_after": QUOTA,
                "seeds": count,
                "within 2 %, median": f"{np.median(reached):.0f}",
                "earned, median": f"{last:.2f}",
                "of the oracle's": f"{last / world.optimum:.2%}",
                "paid, most": f"{paid[:, -1].max():.3f}",
                "dearest window": f"{paid.max():.3f}",
                "invariant": sum(life[2] for life in lives),
            }
        )
    return table


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20)
    for row in rows(parser.parse_args().seeds):
        print(row)


if __name__ == "__main__":
    main()
