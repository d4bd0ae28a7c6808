"""The defaults: what other settings would have earned, world by world.

    python benchmarks/defaults.py [--seeds 1]

Lives of 8,000 steps, learning and waiting included, in worlds that differ in what binds
and in what is known: what E4 earned as a share of what the oracle earned in a life as
long, the mean over seeds.  The first row has the defaults; each row below changes what
it names.  The garnets have 15 states, Bernoulli costs and rewards that vary; three
of them are drawn, and each is lived in once a seed.

How often a pair is tried, `known_after`, matters most by far: where the budget binds,
every visit is paid for with promise that could have earned instead.  `turn_home` comes
next: a promise grows in proportion to what is left of it, so little should be spent
before the agent goes home, unless nothing was had for it yet.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

import escapade as ep
from escapade import environments

STEPS = 8_000
GARNETS = range(3)
SETTINGS: tuple[dict[str, object], ...] = (
    {},
    {"known_after": 20, "turn_home": 0.3},
    {"known_after": 20},
    {"known_after": 1},
    {"turn_home": 0.3},
    {"turn_home": 0.5},
    {"turn_home": 0.8},
    {"turn_home": 0.9, "recharge": 0.95},
    {"recharge": 0.8},
    {"recharge": 0.97},
    {"reserve": 0.25},
    {"reserve": 1.0},
    {"refine": False},
)


def garnets() -> Iterator[environments.World]:
    """Return random worlds whose costs and rewards vary."""
    for seed in GARNETS:
        world = environments.garnet(15, 3, 3, seed=seed)
        yield replace(world, cost_noise="bernoulli", reward_noise="uniform")


def worlds() -> dict[str, list[environments.World]]:
    """Return the worlds of each column."""
    single: dict[str, Callable[[], environments.World]] = {
        "wall_cycle(10)": lambda: environments.wall_cycle(10),
        "toll_cycle(4)": lambda: environments.toll_cycle(4),
        "toll_cycle(10)": lambda: environments.toll_cycle(10),
        "moat_grid": environments.moat_grid,
        "moat_grid, d = 10": lambda: environments.moat_grid(budget=10.0),
        "three_state_loop": environments.three_state_loop,
        "frozen_lake": environments.frozen_lake,
        "inventory": environments.inventory,
        "queue": environments.queue,
    }
    return {name: [make()] for name, make in single.items()} | {
        "garnets": list(garnets())
    }


def earned(world: environments.World, agent: ep.typing.Agent, seed: int) -> float:
    """Return the average reward a step of one life."""
    trace = ep.simulate(agent, world.make_env(), STEPS, seed=seed)
    return float(trace.rewards.mean())


def by_oracle(world: environments.World, seeds: int) -> float:
    """Return what the oracle earns a step, on average over seeds."""
    return float(
        np.mean(
            [
                earned(
                    world,
                    ep.baselines.OracleLP(
                        world.knowledge, cmdp=world.cmdp, seed=seed, horizon="average"
                    ),
                    seed,
                )
                for seed in range(seeds)
            ]
        )
    )


def rows(seeds: int = 1) -> list[dict[str, object]]:
    """Return one row a setting."""
    table: list[dict[str, object]] = [
        {"settings": ", ".join(f"`{k}={v}`" for k, v in chosen.items()) or "defaults"}
        for chosen in SETTINGS
    ]
    for name, places in worlds().items():
        best = [by_oracle(world, seeds) for world in places]
        for row, chosen in zip(table, SETTINGS, strict=True):
            shares = [
                earned(
                    world,
                    ep.E4(world.knowledge, ep.E4Settings(seed=seed, **chosen)),
                    seed,
                )
                / most
                for world, most in zip(places, best, strict=True)
                for seed in range(seeds)
            ]
            row[name] = f"{np.mean(shares):.0%}"
    return table


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=1)
    for line in rows(parser.parse_args().seeds):
        print(line)


if __name__ == "__main__":
    main()
