"""How fast an agent lives: compiled lives beside plain ones, and how planning grows.

    python benchmarks/lifetimes.py [--largest 100] [--steps 1000000] [--json FILE]

On ``wall_cycle(10)`` with ``known_after=20``, everything in one run:

- the compiled lifetime between two plans, beside the bare compiled sampler, which
  draws an action and a next state and writes both down;
- a life of 50,000 steps with all its planning: compiled, as a loop of asking and
  telling, and the same loop with every kernel left in plain Python;
- asking and telling once, beside a step of Gymnasium's FrozenLake.

Then fields of growing size, up to ``largest`` cells a side: how long a plan takes there
on average while a part is explored, for each non-zero of the kernel, and on the largest
how long a life of ``steps`` lasts and what memory it takes.  Times are of the
processor, short ones the least of several rounds.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import gymnasium
import numpy as np

import escapade as ep
from escapade.kernels.sampling import fill_cumulative, rollout

ROUNDS = 3
SIZES = (10, 20, 40, 70, 100)


def least(task: Callable[[], object], rounds: int = ROUNDS) -> float:
    """Return the least processor time of several calls, in seconds."""
    best = np.inf
    for _ in range(rounds):
        begin = time.process_time()
        task()
        best = min(best, time.process_time() - begin)
    return best


def in_turns(**tasks: Callable[[], object]) -> dict[str, float]:
    """Return the least processor time of each task, in seconds; they take turns."""
    best = dict.fromkeys(tasks, np.inf)
    for _ in range(2 * ROUNDS):
        for name, task in tasks.items():
            best[name] = min(best[name], least(task, rounds=1))
    return best


def grown(world: ep.environments.World, steps: int) -> tuple[ep.E4, object]:
    """Return an agent that has lived, and its world."""
    agent = ep.E4(world.knowledge, ep.E4Settings(known_after=20, seed=0))
    env = world.make_env()
    ep.simulate(agent, env, steps)
    return agent, env


def between_plans(world: ep.environments.World, steps: int = 1_000_000) -> dict:
    """Time the compiled lifetime without plans, and the sampler, in ns a step."""
    agent, env = grown(world, 100_000)
    agent.planned.plan.watch[:] = np.iinfo(np.int64).max  # no plan from here on
    plans = agent.plans
    cmdp = world.cmdp
    cumulative = np.empty_like(cmdp.probability)
    fill_cumulative(cmdp.row_ptr, cmdp.probability, cumulative)
    actions = np.empty(cmdp.n_pairs)
    earning = agent.planning.earning(agent.belief, agent.safety, agent.planned)
    fill_cumulative(cmdp.state_ptr, earning.weights, actions)
    states = np.zeros(steps + 1, dtype=np.int32)
    pairs = np.zeros(steps, dtype=np.int32)
    rng = np.random.default_rng(0)

    def sample() -> None:
        rollout(
            cmdp.state_ptr, actions, cmdp.row_ptr, cmdp.successor, cumulative, 0, rng,
            states, pairs,
        )  # fmt: skip

    sample()
    found = in_turns(lifetime=lambda: ep.simulate(agent, env, steps), sampler=sample)
    assert agent.plans == plans
    found = {name: 1e9 * seconds / steps for name, seconds in found.items()}
    return {**found, "times": found["lifetime"] / found["sampler"]}


class Timed(ep.E4):
    """An agent that knows how long its plans took, in seconds."""

    planning_time = 0.0

    def replan(self) -> None:
        """Plan as any agent does."""
        begin = time.process_time()
        super().replan()
        self.planning_time += time.process_time() - begin


def live(world: ep.environments.World, steps: int, *, compiled: bool) -> Timed:
    """Return an agent that has lived a whole life with all its planning."""
    agent = Timed(world.knowledge, ep.E4Settings(known_after=20, seed=0))
    ep.simulate(agent, world.make_env(), steps, compiled=compiled)
    return agent


def whole_life(world: ep.environments.World, steps: int = 50_000) -> dict:
    """Time whole lives with all their planning, in seconds."""
    agents = [live(world, steps, compiled=True) for _ in range(1 + ROUNDS)]
    command = [sys.executable, __file__, "--uncompiled", str(steps)]
    switched_off = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    told = subprocess.run(
        command, env=switched_off, check=True, capture_output=True, text=True
    )
    return {
        "plans": agents[0].plans,
        "compiled": least(lambda: live(world, steps, compiled=True)),
        "of it plans": min(agent.planning_time for agent in agents),
        "asking and telling": least(
            lambda: live(world, steps, compiled=False), rounds=1
        ),
        "in plain Python": float(told.stdout),
    }


def single_steps(world: ep.environments.World, steps: int = 10_000) -> dict:
    """Time one question and answer, and one step of FrozenLake, in µs."""
    agent, _ = grown(world, 100_000)
    agent.planned.plan.watch[:] = np.iinfo(np.int64).max

    def converse() -> None:
        state = agent.state
        for _ in range(steps):  # the move that surely stays where it is
            decision = agent.ask(state)
            state = int(stays[state, decision.action])
            agent.tell(decision, reward=0.0, cost=0.0, next_state=state)

    cmdp = world.cmdp
    stays = np.full((cmdp.n_states, cmdp.n_actions), -1)
    likeliest = np.array(
        [
            cmdp.successor[low + np.argmax(cmdp.probability[low:high])]
            for low, high in zip(cmdp.row_ptr[:-1], cmdp.row_ptr[1:], strict=True)
        ]
    )
    stays[cmdp.pair_state, cmdp.pair_action] = likeliest
    lake = gymnasium.make("FrozenLake-v1")
    lake.reset(seed=0)
    lake.action_space.seed(0)

    def slide() -> None:
        for _ in range(steps):
            _, _, ended, cut_off, _ = lake.step(lake.action_space.sample())
            if ended or cut_off:
                lake.reset()

    converse()
    found = in_turns(converse=converse, slide=slide)
    return {
        "ask and tell": 1e6 * found["converse"] / steps,
        "frozen lake": 1e6 * found["slide"] / steps,
        "times": found["converse"] / found["slide"],
    }


def growth(largest: int, steps: int) -> list[dict]:
    """Time plans on growing fields, and a long life on the largest."""
    rows = []
    for size in (*[s for s in SIZES if s < largest], largest):
        world = ep.environments.wall_cycle(size)
        begin = time.process_time()
        agent = Timed(world.knowledge, ep.E4Settings(known_after=5, seed=0))
        birth = time.process_time() - begin
        env = world.make_env()
        ep.simulate(agent, env, 2_000)  # loads what is compiled
        agent.planning_time, plans = 0.0, agent.plans
        lived = max(20_000, 8 * size * size)
        ep.simulate(agent, env, lived)
        plan = agent.planning_time / (agent.plans - plans)
        nnz = int(agent.knowledge.successor.size)
        rows.append(
            {
                "size": size,
                "non-zeros": nnz,
                "birth, s": birth,
                "plans": agent.plans - plans,
                "a plan, ms": 1e3 * plan,
                "ns a non-zero": 1e9 * plan / nnz,
            }
        )
        print(rows[-1], flush=True)
    begin = time.process_time()
    ep.simulate(agent, env, max(steps - 2_000 - lived, 1))
    rows[-1] |= {
        "steps": steps,
        "life, s": time.process_time() - begin,
        "of it plans, s": agent.planning_time,
        "all plans": agent.plans,
        "known": int(agent.planned.plan.known.sum()),
        "memory, MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }
    print(rows[-1], flush=True)
    return rows


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--largest", type=int, default=100)
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--uncompiled", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    world = ep.environments.wall_cycle(10)
    if options.uncompiled:
        steps = options.uncompiled
        print(least(lambda: live(world, steps, compiled=False), rounds=1))
        return
    found: dict[str, object] = {}
    for name, measure in (
        ("ns a step", between_plans),
        ("a life of 50,000 steps, s", whole_life),
        ("one step, µs", single_steps),
    ):
        found[name] = measure(world)
        print(name, found[name], flush=True)
    found["growth"] = growth(options.largest, options.steps)
    if options.json:
        options.json.write_text(json.dumps(found, indent=2), "utf-8")


if __name__ == "__main__":
    main()
