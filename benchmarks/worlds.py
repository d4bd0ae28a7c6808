"""Worlds with a recipe: what each budget allows, what E4 earns, and who overspends.

Each world as it ships, or with the parameters that stand beside it, and each agent told
`world.knowledge`, with default settings.  Budgets come first:

- *promisable from*: the least budget that can be promised from the start with what is
  told, by `preflight`;
- *binds below*: what the cheapest policy costs among those that earn the most without
  a budget.  A budget below that binds; where it says *never*, the best way is free.

What is earned is the mean reward a step in the last quarter of three lives of 40,000
steps each:

- *best*: the most that any policy earns in the long run with costs a step within
  (1 − γ) d, which whoever keeps the budget from every moment on must be within too;
- *told everything*: E4 with the true rows, costs and rewards, and nothing to learn:
  what lies between it and the best is the price of a promise for every moment, as this
  agent keeps it;
- *E4*: told what the recipe tells.

*Cost-to-go* is that of an audit: first its mean over all lives and steps, then the mean
over lives at the worst step with its standard error; one of each a budget.  The worst
of thousands of means lies some standard errors above its expectation.  So the verdict
is left to the bounds of the audit, which hold at all steps at once with 95 %
confidence: *broken* is a budget that was surely exceeded, *over* one that the worst
mean exceeds by four standard errors or more.  E4 lives 40 lives, the others 20 each,
of 4,000 steps, or 6,000 where γ is .995.  *Breaks* counts broken invariants and
assumptions of E4 in all lives and steps.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial

import numpy as np

import escapade as ep
from escapade.baselines.long_run import long_run_policy
from escapade.environments.telling import costs_of, rows_of, tell
from escapade.typing import Agent

RECIPES: tuple[tuple[str, dict[str, object]], ...] = (
    ("frozen-lake", {}),
    ("frozen-lake", {"success_rate": 0.9}),
    ("frozen-lake", {"success_rate": 0.9, "doubt": 0.25}),
    ("frozen-lake", {"size": 8}),
    ("frozen-lake", {"size": 8, "success_rate": 0.9, "budget": 1.0}),
    ("cliff-walk", {}),
    ("cliff-walk", {"success_rate": 0.9, "discount": 0.99, "budget": 0.3}),
    ("lava-gap", {}),
    ("inventory", {}),
    ("queue", {}),
    ("battery", {}),
    ("pendulum", {}),
)
STEPS = 40_000
LIVES, OTHERS = 40, 20
SEEDS = 3
OTHER = ("e3", "lagrangian-q")
_SAME = 1e-6
_FREE = 1e-4
_CLEAR = 4.0


def binds_below(cmdp: ep.CMDP) -> str:
    """Return what the cheapest of the best unbudgeted policies costs, a channel."""
    horizon = 1.0 / (1.0 - cmdp.discount)
    best = ep.solve(cmdp.replace(budget=cmdp.cost_max * horizon))
    scale = cmdp.cost_max.sum()
    # the same problem turned round: what is not earned is the cost, and what is not
    # paid the reward
    turned = cmdp.replace(
        reward=scale - cmdp.cost.sum(axis=0),
        reward_max=scale,
        cost=cmdp.reward_max - cmdp.reward[np.newaxis],
        cost_max=cmdp.reward_max,
        budget=cmdp.reward_max * horizon - best.value * (1.0 - _SAME),
    )
    cheap = ep.evaluate(cmdp, ep.solve(turned).policy).start_costs
    return "never" if (cheap < _FREE).all() else numbers(cheap)


def numbers(values: object) -> str:
    """Return numbers with a comma between them."""
    return ", ".join(f"{value:.3g}" for value in np.atleast_1d(np.asarray(values)))


def everything(cmdp: ep.CMDP) -> ep.Knowledge:
    """Return knowledge of all there is."""
    rewards = np.full((cmdp.n_states, cmdp.n_actions), np.nan)
    rewards[cmdp.pair_state, cmdp.pair_action] = cmdp.reward
    rows = rows_of(cmdp, np.ones(cmdp.n_pairs, dtype=np.bool_))
    return tell(cmdp, known_rows=rows, rewards=rewards, costs=costs_of(cmdp))


def e4(knowledge: ep.Knowledge, seed: int) -> Agent:
    """Return E4 with its default settings."""
    return ep.E4(knowledge, ep.E4Settings(seed=seed))


def baseline(name: str, knowledge: ep.Knowledge, seed: int) -> Agent:
    """Return a baseline."""
    return ep.baselines.make(name, knowledge, seed=seed)


def late(world: ep.environments.World, knowledge: ep.Knowledge) -> float:
    """Return what E4 earns a step in the last quarter of its lives."""
    earned = [
        ep.simulate(e4(knowledge, seed), world.make_env(), STEPS).rewards
        for seed in range(SEEDS)
    ]
    return float(np.mean([rewards[-STEPS // 4 :] for rewards in earned]))


def paid(
    world: ep.environments.World, make: Callable[..., Agent], lives: int
) -> tuple[str, int]:
    """Return the cost-to-go in words, and broken invariants and assumptions."""
    steps = 6_000 if world.cmdp.discount > 0.99 else 4_000
    found = ep.audit(make, world, lives, steps, seed=2)
    at = found.mean_cost_to_go.argmax(axis=0), np.arange(world.cmdp.n_costs)
    most, error = found.mean_cost_to_go[at], found.standard_error[at]
    said = "; ".join(
        f"{mean:.3g}, {top:.3g} ± {off:.2g}"
        for mean, top, off in zip(
            found.mean_cost_to_go.mean(axis=0), most, error, strict=True
        )
    )
    if found.broken:
        said += ": **broken**"
    elif (most > world.cmdp.budget + _CLEAR * error).any():
        said += ": over"
    return said, found.invariant_breaks + found.assumption_breaks


def row(
    name: str, keywords: dict[str, object], *, lives: int, others: int
) -> dict[str, object]:
    """Return what came of one world."""
    world = ep.environments.make(name, **keywords)
    cmdp = world.cmdp
    rate = (1.0 - cmdp.discount) * cmdp.budget
    best = long_run_policy(cmdp, rate, cmdp.start).gain
    begun = time.perf_counter()
    earned = late(world, world.knowledge)
    took = (time.perf_counter() - begun) / SEEDS
    kept, breaks = paid(world, e4, lives)
    words = ", ".join(
        f"`{key}={value:g}`" for key, value in keywords.items() if key != "budget"
    )
    shown = {
        "world": f"`{name}`" + (f", {words}" if words else ""),
        "budget": numbers(cmdp.budget),
        "promisable from": numbers(ep.preflight(world.knowledge).least_budget),
        "binds below": binds_below(cmdp),
        "best": f"{best:.4f}",
        "told everything": f"{late(world, everything(cmdp)):.4f}",
        "E4": f"{earned:.4f} ({earned / best:.0%})",
        "cost-to-go of E4": kept,
        "breaks": breaks,
    }
    for other in OTHER:
        shown[f"of {other}"] = paid(world, partial(baseline, other), others)[0]
    return {**shown, "seconds a life": f"{took:.1f}"}


def rows(lives: int = LIVES, others: int = OTHERS) -> list[dict[str, object]]:
    """Return one row a world."""
    return [row(name, how, lives=lives, others=others) for name, how in RECIPES]


def main() -> None:
    """Print the rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lives", type=int, default=LIVES)
    parser.add_argument("--others", type=int, default=OTHERS)
    given = parser.parse_args()
    for name, how in RECIPES:
        print(row(name, how, lives=given.lives, others=given.others), flush=True)


if __name__ == "__main__":
    main()
