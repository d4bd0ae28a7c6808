"""The ledger beside the paper's algorithm: how long until all states are known.

    python benchmarks/paper_mode.py [--seeds 20] [--sizes 5 10] [--json FILE]

On `wall_cycle` with the knowledge that the world comes with, and a quota of five visits
a pair: the steps until every pair has been taken five times.  Algorithm 1 is the
corrected one, each escape followed by T steps of safe return; as Example 2 breaks the
Escape Budget Lemma's requirements at its own diameter (E18), D is that of the unknown
states that can be entered.

*Lemma* is the number of visits a pair that the paper's Known State Lemma asks for;
*invariant* counts the steps of all lives, of both, at which `w <= b <= d` did not hold.
A life that has not come to know all states after 400,000 steps counts as infinite.
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path
from typing import Any

import numpy as np

import escapade as ep
from escapade.agent import PaperSettings
from escapade.agent.paper.report import known_after_by_lemma

SIZES = (5, 10)
SEEDS = 20
KNOWN_AFTER = 5
STRETCH = 2_000
MOST = 400_000


def settings(mode: str, seed: int, known_after: int) -> ep.E4Settings:
    """Return the settings of one life."""
    if mode == "ledger":
        return ep.E4Settings(seed=seed, known_after=known_after)
    return ep.E4Settings(
        mode="paper",
        seed=seed,
        known_after=known_after,
        paper=PaperSettings(diameter="reversible"),
    )


def steps_until_known(
    agent: ep.E4, env: Any, *, known_after: int, most: int = MOST
) -> tuple[float, int]:
    """Return the steps until each pair of each state has its visits; infinite: never.

    States that were known at birth need none.  The second number is at how many steps
    the promise was not kept.
    """
    knowledge = agent.knowledge
    layout = knowledge.pairs
    number = np.full((layout.n_states, layout.n_actions), -1, dtype=np.int64)
    number[layout.pair_state, layout.pair_action] = np.arange(layout.n_pairs)
    missing = np.maximum(known_after - agent.belief.evidence.pair_visits, 0)
    missing[knowledge.known_states[layout.pair_state]] = 0
    broken = 0
    for begun in range(0, most, STRETCH):
        trace = ep.simulate(agent, env, steps=STRETCH)
        kept = (trace.reserved <= trace.promise) & (trace.promise <= agent.cap)
        broken += int((~kept).any(axis=1).sum())
        pairs = number[trace.states[:-1], trace.actions]
        for pair in np.flatnonzero(missing):
            visits = np.flatnonzero(pairs == pair)
            if visits.size < missing[pair]:
                break
        else:
            last = [
                np.flatnonzero(pairs == pair)[missing[pair] - 1]
                for pair in np.flatnonzero(missing)
            ]
            return begun + max(last, default=-1) + 1.0, broken
        missing = np.maximum(missing - np.bincount(pairs, minlength=layout.n_pairs), 0)
    return np.inf, broken


def measured(
    *,
    seeds: int = SEEDS,
    sizes: tuple[int, ...] = SIZES,
    known_after: int = KNOWN_AFTER,
) -> list[dict[str, Any]]:
    """Return for each size the median of each mode, their ratio, and every life."""
    table = []
    for size in sizes:
        world = ep.environments.wall_cycle(size=size)
        lives: dict[str, list[float]] = {"ledger": [], "paper": []}
        broken = 0
        for mode, steps in lives.items():
            for seed in range(seeds):
                agent = ep.E4(world.knowledge, settings(mode, seed, known_after))
                found, bad = steps_until_known(
                    agent, world.make_env(), known_after=known_after
                )
                steps.append(found)
                broken += bad + len(agent.breaks)
        medians = {mode: statistics.median(steps) for mode, steps in lives.items()}
        table.append(
            {
                "world": f"wall_cycle({size})",
                "known_after": known_after,
                "known_after_by_lemma": known_after_by_lemma(agent),
                "seeds": seeds,
                "ledger_median_steps": medians["ledger"],
                "paper_median_steps": medians["paper"],
                "ratio": medians["paper"] / medians["ledger"],
                "broken": broken,
                "ledger_steps": lives["ledger"],
                "paper_steps": lives["paper"],
            }
        )
    return table


def rows(seeds: int = SEEDS) -> list[dict[str, object]]:
    """Return the table: one row a size."""
    return [
        {
            "world": row["world"],
            "known_after": row["known_after"],
            "lemma": f"{row['known_after_by_lemma']:.1e}",
            "seeds": row["seeds"],
            "ledger, median": f"{row['ledger_median_steps']:.0f}",
            "ledger, worst": f"{max(row['ledger_steps']):.0f}",
            "Algorithm 1, median": f"{row['paper_median_steps']:.0f}",
            "Algorithm 1, worst": f"{max(row['paper_steps']):.0f}",
            "times as long": f"{row['ratio']:.1f}",
            "invariant": row["broken"],
        }
        for row in measured(seeds=seeds)
    ]


def main() -> None:
    """Print the rows, and write them where asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--known-after", type=int, default=KNOWN_AFTER)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    table = measured(
        seeds=given.seeds, sizes=tuple(given.sizes), known_after=given.known_after
    )
    for row in table:
        print(
            f"{row['world']:15} ledger {row['ledger_median_steps']:>8,.0f}   "
            f"paper {row['paper_median_steps']:>8,.0f}   ratio {row['ratio']:.1f}   "
            f"(quota {row['known_after']}; the lemma asks for "
            f"{row['known_after_by_lemma']:.1e} visits a pair)"
        )
    if given.json is not None:
        given.json.write_text(json.dumps(table, indent=2) + "\n")


if __name__ == "__main__":
    main()
