"""Example 2 on a field of 10 by 10: how soon all is known, and how soon it pays.

    python benchmarks/walk.py [--seeds 20]

``wall_cycle(10)``: discount .99, budget 10, moves that fail one time in twenty.  The
agent is told what ``world.knowledge`` holds and nothing else: that moves fail at most
one time in ten, by any law within distance 2; that ``stay`` never fails, and costs
nothing in the known cells; that opposite walls are at least five cells apart; and 2,000
recorded steps of each action in the cells (1, 1) to (9, 1).

- *all known*: the step after which every pair has been taken ``known_after`` times;
- *policy at 99 %*: the step from which on the policy that the agent thinks best, looked
  at every 500 steps up to 8,000 and evaluated in the true model, is worth at least 99 %
  of the oracle's 97.66793 from (1, 1);
- *reward a step*: what was earned in the last 2,000 steps, beside .97668 for a policy
  as good as the oracle's;
- *invariant*: in how many steps of all lives ``w <= b <= d`` did not hold.
"""

from __future__ import annotations

import argparse
import copy

import numpy as np

import escapade as ep
from escapade.model import evaluate

LIVES = ((5, 10_000), (20, 20_000))
EVERY, LOOKED_AT = 500, 8_000


def policy_value(agent: ep.E4, world: ep.environments.World) -> tuple[float, float]:
    """Return the true value and cost, from the start, of the policy thought best."""
    planning = copy.deepcopy(agent.planning)  # looking on must not change the life
    weights = planning.earning(agent.belief, agent.safety, agent.planned).weights
    layout = agent.knowledge.pairs
    table = np.zeros((layout.n_states, layout.n_actions))
    table[layout.pair_state, layout.pair_action] = weights
    found = evaluate(world.cmdp, ep.Policy(table))
    return (
        float(world.cmdp.start @ found.value),
        float(world.cmdp.start @ found.costs[0]),
    )


def all_known_at(
    agent: ep.E4, before: np.ndarray, settled: np.ndarray, pairs: np.ndarray
) -> float:
    """Return the step at which the last pair had its visits; infinite if never."""
    quota = agent.settings.known_after
    last = 0.0
    for pair in np.flatnonzero(~settled & (before < quota)):
        visits = np.flatnonzero(pairs == pair)
        missing = quota - int(before[pair])
        if visits.size < missing:
            return np.inf
        last = max(last, float(visits[missing - 1] + 1))
    return last


def live(
    world: ep.environments.World, settings: ep.E4Settings, steps: int
) -> dict[str, float]:
    """Live once; return what the table is made of."""
    agent, env = ep.E4(world.knowledge, settings), world.make_env()
    before = agent.belief.evidence.pair_visits.copy()
    settled = agent.knowledge.exact_pairs
    traces, values = [], []
    for _ in range(0, LOOKED_AT, EVERY):
        traces.append(ep.simulate(agent, env, EVERY))
        values.append(policy_value(agent, world)[0])
    traces.append(ep.simulate(agent, env, steps - LOOKED_AT))
    pairs = np.concatenate(
        [agent.knowledge.pairs_of(t.states[:-1], t.actions) for t in traces]
    )
    short = np.flatnonzero(np.array(values) < 0.99 * world.optimum)
    first = 0 if short.size == 0 else int(short[-1]) + 1
    budget = world.cmdp.budget
    return {
        "known": all_known_at(agent, before, settled, pairs),
        "policy": np.inf if first == len(values) else EVERY * (first + 1.0),
        "reward": float(traces[-1].rewards[-2_000:].mean()),
        "broken": float(
            sum(
                ((t.reserved > t.promise) | (t.promise > budget)).any(axis=1).sum()
                for t in traces
            )
            + len(agent.breaks)
        ),
    }


def rows(seeds: int = 20) -> list[dict[str, object]]:
    """Return the table, one row a quota: medians over seeds, and the worst."""
    world = ep.environments.wall_cycle(10)
    table: list[dict[str, object]] = []
    for quota, steps in LIVES:
        lives = [
            live(world, ep.E4Settings(known_after=quota, seed=seed), steps)
            for seed in range(seeds)
        ]
        numbers = {name: np.array([life[name] for life in lives]) for name in lives[0]}
        table.append(
            {
                "known_after": quota,
                "steps": steps,
                "seeds": seeds,
                "all known, median": f"{np.median(numbers['known']):.0f}",
                "worst": f"{numbers['known'].max():.0f}",
                "policy at 99 %, median": f"{np.median(numbers['policy']):.0f}",
                "worst ": f"{numbers['policy'].max():.0f}",
                "reward a step": f"{np.median(numbers['reward']):.4f}",
                "invariant": int(numbers["broken"].sum()),
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
