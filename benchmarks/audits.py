"""Audits: many lifetimes held to what was promised in them.

    python benchmarks/audits.py [--seeds 200]

Each agent lives from independent seeds, with ``known_after=5`` and the default settings
otherwise; learning, wandering and escapes are part of every life.  *Worst mean* is the
mean over lifetimes of the realised discounted cost from a step on, at the step where it
is largest; *at most* holds for the true mean at every step at once with 95 %
confidence, and is as wide as so many lives leave it (see the page on audits).
*Invariant* counts the steps of all lives at which ``w <= b <= d`` did not hold,
*assumptions* how often an agent said that an assumption broke.
"""

from __future__ import annotations

import argparse

import escapade as ep

WORLDS = (
    ("wall_cycle(10)", lambda: ep.environments.wall_cycle(10), 1.0, 10_000),
    ("toll_cycle(10)", lambda: ep.environments.toll_cycle(10), 0.25, 5_000),
)


def make_agent(knowledge: ep.Knowledge, seed: int) -> ep.E4:
    """Return a new agent."""
    return ep.E4(knowledge, ep.E4Settings(known_after=5, seed=seed))


def rows(seeds: int = 200) -> list[dict[str, object]]:
    """Return the table; ``seeds`` is the number of lifetimes in the first world."""
    table: list[dict[str, object]] = []
    for name, build, share, steps in WORLDS:
        lifetimes = max(int(share * seeds), 2)
        found = ep.audit(make_agent, build(), lifetimes=lifetimes, steps=steps, seed=0)
        table.append(
            {
                "world": name,
                "lifetimes": lifetimes,
                "steps": steps,
                "budget": f"{found.budget[0]:g}",
                "worst mean": f"{found.worst_mean_cost_to_go:.3f}",
                "at most": f"{found.upper_confidence:.3f}",
                "beyond the promise": f"{found.worst_mean_excess:.3f}",
                "lives over budget": f"{found.fraction_over:.1%}",
                "invariant": found.invariant_breaks,
                "assumptions": found.assumption_breaks,
            }
        )
    return table


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=200)
    for row in rows(parser.parse_args().seeds):
        print(row)


if __name__ == "__main__":
    main()
