"""E⁴ beside others: the same world, the same steps, the same information.

Every agent is told ``world.knowledge`` and lives the same number of lives from seeds of
its own; the oracle alone is told the truth.  Of each are kept

- the average reward a step, as a share of the oracle's over the same steps;
- the worst mean cost-to-go: over all steps, the largest mean over lives of the realised
  discounted cost from there on;
- realised violations: of all lives and steps, how often the realised cost-to-go was
  above the budget, and at how many steps its mean over lives was;
- the first step after which the mean reward, over a window, reaches 90 % of the
  oracle's average;
- the time that a life took.

A mean over few lives lies above or below the expectation by chance, and the worst of
many means lies above the worst expectation: :func:`escapade.audit` puts bounds on it.
An agent that cannot promise the budget says so and does not live; its row says why.
The paper's mode is the exception: where its lemma does not hold it goes on without a
promise, so that there is something to compare.

Costs after the last step are not seen, so the last steps are left out of what is said
about costs: those after which ``γ^n c_max / (1 − γ)`` is still more than a hundredth
of a budget.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from escapade.agent.e4 import E4
from escapade.agent.settings import E4Settings
from escapade.baselines import make as make_baseline
from escapade.baselines import names as baseline_names
from escapade.baselines.oracle_lp import OracleLP
from escapade.environments.world import World
from escapade.errors import AssumptionError, check_kind, refusal
from escapade.experiment.versions import versions
from escapade.knowledge.knowledge import Knowledge
from escapade.model.arguments import MOST_INDEX, read_count
from escapade.simulation.makers import MakeAgent, check_maker
from escapade.simulation.simulate import live_through
from escapade.simulation.trace import discounted_from
from escapade.typing import Agent, FloatArray

__all__ = ["Comparison", "Contestant", "compare"]

_PAPER = {"requirements": "reported"}
"""The paper's mode goes on where its lemma does not hold, without a promise."""

_SHARE = 0.9
_WINDOW = 0.05
_BINS = 50
_UNSEEN = 0.01


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Contestant:
    """What came of one agent.

    Attributes
    ----------
    name
        Of the agent.
    reward
        Average reward a step over all lives; NaN if it did not live.
    share
        The same, as a share of the oracle's.
    worst_cost
        ``(K,)``; the largest mean cost-to-go at any step.
    over
        Share of lives and steps whose realised cost-to-go was above a budget.
    steps_over
        Share of steps at which the mean over lives was.
    steps_to_oracle
        Steps until a window earns 90 % of the oracle's average; ``None`` if none did.
    seconds
        Time of a life.
    rewards, costs
        Average reward a step, and mean cost-to-go ``(bins, K)``, by parts of a life.
    note
        Why it did not live; empty if it did.
    """

    name: str
    reward: float
    share: float
    worst_cost: FloatArray
    over: float
    steps_over: float
    steps_to_oracle: int | None
    seconds: float
    rewards: FloatArray
    costs: FloatArray
    note: str = ""

    @property
    def violates(self) -> bool:
        """Whether the mean cost-to-go was ever above a budget."""
        return self.steps_over > 0.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Comparison:
    """Several agents in one world.

    Attributes
    ----------
    world
        Its name.
    description
        What happens there.
    steps, lifetimes, seed
        As asked for.
    judged
        Steps, from the first, whose cost-to-go is judged; what later ones come to cost
        is not seen.
    budget
        ``(K,)``.
    contestants
        E⁴ first, the oracle last.
    versions
        What it was made with.
    """

    world: str
    description: str
    steps: int
    lifetimes: int
    seed: int
    judged: int
    budget: FloatArray
    contestants: tuple[Contestant, ...]
    versions: Mapping[str, str]

    def __getitem__(self, name: str) -> Contestant:
        for contestant in self.contestants:
            if contestant.name == name:
                return contestant
        raise refusal("name", f"one of {[c.name for c in self.contestants]}", name)

    def describe(self) -> dict[str, Any]:
        """Return everything as plain values, for JSON and for a picture."""
        return {
            "world": self.world,
            "description": self.description,
            "steps": self.steps,
            "lifetimes": self.lifetimes,
            "seed": self.seed,
            "judged": self.judged,
            "budget": self.budget,
            "versions": dict(self.versions),
            "contestants": [
                {
                    "name": c.name,
                    "reward": c.reward,
                    "share": c.share,
                    "worst_cost": c.worst_cost,
                    "over": c.over,
                    "steps_over": c.steps_over,
                    "steps_to_oracle": c.steps_to_oracle,
                    "seconds": c.seconds,
                    "rewards": c.rewards,
                    "costs": c.costs,
                    "note": c.note,
                }
                for c in self.contestants
            ],
        }

    def save(self, directory: str | PathLike[str]) -> Path:
        """Write ``comparison.json`` into a directory, and return its path."""
        from escapade.experiment.comparison_files import save

        return save(self, Path(directory))

    @classmethod
    def load(cls, directory: str | PathLike[str]) -> Comparison:
        """Read what :meth:`save` wrote."""
        from escapade.experiment.comparison_files import load

        return load(Path(directory))

    def __repr__(self) -> str:
        return (
            f"Comparison({self.world!r}, {len(self.contestants)} agents, "
            f"{self.lifetimes} lives of {self.steps} steps)"
        )


def compare(
    world: World,
    *,
    steps: int = 10_000,
    lifetimes: int = 5,
    seed: int = 0,
    agents: Mapping[str, MakeAgent] | None = None,
    on_life: Callable[[int, int], None] | None = None,
) -> Comparison:
    """Let E⁴ in both modes, every baseline and the oracle live in a world.

    Parameters
    ----------
    world
        Where to live.
    steps, lifetimes
        How long, and how often.
    seed
        Seeds of all agents and worlds follow from it.
    agents
        Others instead of all of them: names, and functions of (knowledge, seed).
        The oracle is always there.
    on_life
        Called after each life with how many there were, and how many there will be.

    Examples
    --------
    >>> import escapade as ep
    >>> from escapade.experiment import compare
    >>> found = compare(ep.environments.three_state_loop(), steps=400, lifetimes=2)
    >>> [c.name for c in found.contestants]
    ['e4', 'e4-paper', 'c-ucrl', 'e3', 'lagrangian-q', 'psrl', 'random', 'oracle']
    """
    steps = read_count("steps", steps, least=_BINS, most=MOST_INDEX)
    lifetimes = read_count("lifetimes", lifetimes, least=1, most=MOST_INDEX)
    if isinstance(world, str):
        raise refusal("world", "a World, as from environments.make", repr(world))
    check_kind("world", world, World)
    chosen = _everybody() if agents is None else _read_agents(agents)
    if "oracle" in chosen:
        raise refusal("agents", "names other than 'oracle', which is there", "one")
    chosen["oracle"] = lambda knowledge, own: OracleLP(
        knowledge, cmdp=world.cmdp, seed=own
    )
    seeds = np.random.SeedSequence(read_count("seed", seed)).generate_state(
        2 * lifetimes, np.uint32
    )
    lives: dict[str, _Lives | str] = {}
    for place, (name, make) in enumerate(chosen.items()):

        def tell(done: int, before: int = place * lifetimes) -> None:
            if on_life is not None:
                on_life(before + done, lifetimes * len(chosen))

        lives[name] = _live(make, world, steps, seeds.reshape(-1, 2).tolist(), tell)
        tell(lifetimes)  # also of who did not live
    oracle = lives["oracle"]
    if isinstance(oracle, str):
        raise refusal("world", "one in which the oracle can live", oracle)
    best = float(oracle.rewards.mean())
    return Comparison(
        world=world.name,
        description=world.description,
        steps=steps,
        lifetimes=lifetimes,
        seed=seed,
        judged=_seen(world, steps),
        budget=world.cmdp.budget,
        contestants=tuple(
            _judged(name, found, world, best) for name, found in lives.items()
        ),
        versions=versions(),
    )


def _read_agents(agents: object) -> dict[str, MakeAgent]:
    if not isinstance(agents, Mapping):
        raise refusal(
            "agents",
            "a dict of names and functions of (knowledge, seed)",
            f"a {type(agents).__name__}",
        )
    for name, make in agents.items():
        check_maker(f"agents[{name!r}]", make)
    return dict(agents)


def _everybody() -> dict[str, MakeAgent]:
    """Return E⁴ in both modes, and every baseline that learns."""

    def e4(knowledge: Knowledge, seed: int) -> Agent:
        return E4(knowledge, E4Settings(seed=seed))

    def paper(knowledge: Knowledge, seed: int) -> Agent:
        return E4(knowledge, E4Settings(mode="paper", seed=seed, paper=_PAPER))

    def baseline(name: str) -> MakeAgent:
        return lambda knowledge, seed: make_baseline(name, knowledge, seed=seed)

    return {
        "e4": e4,
        "e4-paper": paper,
        **{name: baseline(name) for name in baseline_names()},
    }


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Lives:
    """What was earned, ``(lives, T)``, and paid from then on, ``(lives, T, K)``."""

    rewards: FloatArray
    to_go: FloatArray
    seconds: float


def _live(
    make: MakeAgent,
    world: World,
    steps: int,
    seeds: list[list[int]],
    tell: Callable[[int], None],
) -> _Lives | str:
    """Live some lives; return why not if the budget cannot be promised."""
    rewards, to_go = [], []
    begun = time.perf_counter()
    for own, other in seeds:
        try:
            agent = make(world.knowledge, own)
        except AssumptionError as error:
            return str(error)
        trace = live_through(agent, world.make_env(), steps, seed=other)
        rewards.append(trace.rewards)
        to_go.append(discounted_from(trace.costs, world.cmdp.discount))
        if len(rewards) < len(seeds):
            tell(len(rewards))
    return _Lives(
        rewards=np.array(rewards),
        to_go=np.array(to_go),
        seconds=(time.perf_counter() - begun) / len(seeds),
    )


def _judged(name: str, found: _Lives | str, world: World, best: float) -> Contestant:
    budget = world.cmdp.budget
    if isinstance(found, str):
        return Contestant(
            name=name,
            reward=np.nan,
            share=np.nan,
            worst_cost=np.full(budget.size, np.nan),
            over=np.nan,
            steps_over=np.nan,
            steps_to_oracle=None,
            seconds=np.nan,
            rewards=np.empty(0),
            costs=np.empty((0, budget.size)),
            note=found,
        )
    seen = _seen(world, found.rewards.shape[1])
    to_go = found.to_go[:, :seen]
    mean = to_go.mean(axis=0)
    earned = found.rewards.mean(axis=0)
    bins = min(_BINS, seen)
    return Contestant(
        name=name,
        reward=float(earned.mean()),
        share=float(earned.mean()) / best if best > 0.0 else np.nan,
        worst_cost=mean.max(axis=0),
        over=float((to_go > budget).any(axis=2).mean()),
        steps_over=float((mean > budget).any(axis=1).mean()),
        steps_to_oracle=_arrival(earned, _SHARE * best),
        seconds=found.seconds,
        rewards=np.array([part.mean() for part in np.array_split(earned, _BINS)]),
        costs=np.array([part.mean(axis=0) for part in np.array_split(mean, bins)]),
    )


def _seen(world: World, steps: int) -> int:
    """Return before which step next to nothing of the cost-to-go is unseen."""
    cmdp = world.cmdp
    most = cmdp.cost_max / (1.0 - cmdp.discount)
    if cmdp.discount == 0.0 or not (most > 0.0).any():
        return steps
    share = float((_UNSEEN * cmdp.budget[most > 0.0] / most[most > 0.0]).min())
    if share <= 0.0:
        return max(steps // 2, 1)
    unseen = int(np.ceil(np.log(min(share, 1.0)) / np.log(cmdp.discount)))
    return max(steps - unseen + 1, 1)


def _arrival(earned: FloatArray, wanted: float) -> int | None:
    """Return when a window first earned as much as is wanted on average."""
    window = max(int(_WINDOW * earned.size), 1)
    sums = np.concatenate([[0.0], np.cumsum(earned)])
    means = (sums[window:] - sums[:-window]) / window
    reached = means >= wanted
    return int(np.argmax(reached)) + window if reached.any() else None
