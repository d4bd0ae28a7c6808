r"""Many lifetimes, and whether what was promised was kept.

A promise is about an expectation, so one lifetime can neither keep nor break it.  An
audit lives many, from independent seeds, and looks at every step t at

- the *realised cost-to-go* :math:`J_t = \sum_{k \ge t} γ^{k-t} c_k`, whose mean over
  lifetimes has to stay within the budget;
- what was realised beyond what was promised, :math:`J_t - \min(b_t, d)`, whose mean
  must not be positive;
- the ledger's invariant w ≤ b ≤ d, which has to hold in every single lifetime.

**After the last step** T nothing is seen.  For what comes then the cost-to-go holds
:math:`γ^{T-t} \min(b_T, c_{\max}/(1-γ))`, or without the minimum's first term if the
agent promises nothing.  Only those steps are audited, from the first on, for which
:math:`γ^{T-t} c_{\max}/(1-γ)` is at most a hundredth of every budget; in a life too
short for that, the first step alone.

**Confidence.**  The worst of many means lies above the mean of the worst, and the worst
step is chosen after the fact; so the bound holds for all steps at once.  Time is cut
into blocks, of about :math:`0.1/(1-γ)` steps, at most 2,000 of them.  For each
lifetime, block and channel the largest cost-to-go in the block is taken, which no mean
at a step of the block can exceed on average; its mean is bounded by betting
(:func:`escapade.theory.betting.upper_mean_bound`) at an equal share of the error
probability.  So with the stated confidence no mean cost-to-go, at any step and in any
channel, exceeds :attr:`Audit.upper_confidence`.  Nothing is assumed but that lifetimes
are independent and costs bounded; whoever wants a narrow bound needs many lifetimes, as
a disaster that happens to one in a hundred is not seen in fifty.

The other way round, the means of the cost-to-go and of what was realised beyond the
promise are bounded from below at the first step of every block, and nothing that was
not seen is held against the agent.  If such a bound is above the budget, or positive,
the promise was broken: an agent that keeps it is found guilty with a probability of at
most twice the error probability.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from escapade.agent.e4 import E4
from escapade.agent.phases import Phase
from escapade.errors import refusal
from escapade.model.arguments import MOST_INDEX, read_count, read_number
from escapade.simulation.audit_report import Audit, PhaseAccount
from escapade.simulation.makers import MakeAgent, check_maker
from escapade.simulation.simulate import live_through
from escapade.simulation.trace import Trace, discounted_from
from escapade.theory.betting import upper_mean_bound
from escapade.typing import Agent, CodeArray, FloatArray, IntArray

if TYPE_CHECKING:
    from escapade.environments.world import World

__all__ = ["audit"]


_BLOCK = 0.1
"""Steps in a block, as a share of the horizon 1/(1 − γ)."""

_MOST_BLOCKS = 2_000

_UNSEEN = 0.01
"""What may be charged for the time after the last step, as a share of a budget."""


def audit(
    make_agent: MakeAgent,
    world: World,
    lifetimes: int = 200,
    steps: int = 10_000,
    *,
    seed: int = 0,
    jobs: int = 1,
    confidence: float = 0.95,
    on_life: Callable[[int], None] | None = None,
) -> Audit:
    """Let an agent live many lives in a world, and hold it to its promise.

    Parameters
    ----------
    make_agent
        ``make_agent(knowledge, seed)`` returns a new agent.
    world
        Where to live; agents are told ``world.knowledge``.
    lifetimes, steps
        How many lives, and how long each is.
    seed
        Seeds of agents and worlds follow from it, life by life.
    jobs
        Processes to share the lives among; the result does not depend on it.
    confidence
        Probability with which the bounds hold at all steps at once.
    on_life
        Called after every life with the number of lives so far.

    Returns
    -------
    Audit

    Examples
    --------
    >>> import escapade as ep
    >>> world = ep.environments.three_state_loop()
    >>> found = ep.audit(
    ...     lambda knowledge, seed: ep.E4(knowledge, ep.E4Settings(seed=seed)),
    ...     world, lifetimes=5, steps=200)
    >>> found.invariant_breaks, found.worst_mean_cost_to_go <= 5.0
    (0, True)
    """
    lifetimes = read_count("lifetimes", lifetimes, least=2, most=MOST_INDEX)
    steps = read_count("steps", steps, least=1, most=MOST_INDEX)
    jobs = read_count("jobs", jobs, least=1)
    if not 0.0 < read_number("confidence", confidence) < 1.0:
        raise refusal("confidence", "a number in (0, 1)", confidence)
    seeds = np.random.SeedSequence(read_count("seed", seed)).generate_state(
        2 * lifetimes, np.uint32
    )
    check_maker("make_agent", make_agent)
    if not callable(getattr(world, "make_env", None)):
        raise refusal("world", "a World, such as those of environments", repr(world))
    knowledge = world.knowledge
    live = partial(_live, make_agent, world, steps)
    tally = _Tally(
        discount=knowledge.discount,
        budget=np.array(knowledge.budget),
        cost_max=np.array(knowledge.cost_max),
        steps=steps,
    )
    for life in _lives(live, seeds.reshape(-1, 2).tolist(), jobs):
        tally.add(life)
        if on_life is not None:
            on_life(tally.lives)
    return tally.close(confidence)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Life:
    """What an audit keeps of a lifetime."""

    costs: FloatArray
    promise: FloatArray
    phases: CodeArray
    last_promise: FloatArray
    invariant_breaks: int
    assumption_breaks: int
    reward: float


def _lives(
    live: Callable[[int, int], _Life], seeds: list[list[int]], jobs: int
) -> Iterable[_Life]:
    """Return the lives in the order of their seeds, however they are shared out."""
    if jobs == 1:
        return (live(*pair) for pair in seeds)
    from joblib import Parallel, delayed

    found: Iterator[_Life] = Parallel(n_jobs=jobs, return_as="generator")(
        delayed(live)(*pair) for pair in seeds
    )
    return found


def _live(
    make_agent: MakeAgent, world: World, steps: int, seed: int, world_seed: int
) -> _Life:
    agent = make_agent(world.knowledge, seed)
    if not isinstance(agent, Agent):
        raise refusal(
            "make_agent",
            "a function that returns an escapade.typing.Agent",
            type(agent).__name__,
        )
    trace = live_through(agent, world.make_env(), steps, seed=world_seed)
    last = agent.ask(int(trace.states[-1]))
    return _Life(
        costs=trace.costs,
        promise=trace.promise,
        phases=trace.phases,
        last_promise=np.array(last.promise, dtype=np.float64),
        invariant_breaks=_breaks(trace),
        assumption_breaks=len(agent.breaks) if isinstance(agent, E4) else 0,
        reward=float(trace.rewards.mean()),
    )


def _breaks(trace: Trace) -> int:
    """Count the steps at which ``w <= b <= d`` does not hold; NaN promises nothing."""
    promised = ~np.isnan(trace.promise).all(axis=1)
    kept = (trace.reserved <= trace.promise) & (trace.promise <= trace.budget)
    return int((promised & ~kept.all(axis=1)).sum())


class _Tally:
    """Sums over lifetimes, taken one by one in their order."""

    def __init__(
        self, *, discount: float, budget: FloatArray, cost_max: FloatArray, steps: int
    ) -> None:
        self.discount, self.budget, self.steps = discount, budget, steps
        self.most = cost_max / (1.0 - discount)
        self.audited = self._settled()
        block = max(int(_BLOCK / (1.0 - discount)), -(-self.audited // _MOST_BLOCKS), 1)
        self.starts: IntArray = np.arange(0, self.audited, block)
        self.lives = 0
        shape = (steps, budget.size)
        self.sums = {
            name: np.zeros(shape) for name in ("mean", "square", "excess", "over")
        }
        self.peaks: list[FloatArray] = []  # largest cost-to-go in each block
        self.seen: list[FloatArray] = []  # cost-to-go at the start of each block
        self.beyond: list[FloatArray] = []  # and what of it was not promised
        self.invariant_breaks = self.assumption_breaks = 0
        self.reward = 0.0
        self.promises = True
        self.phases = {
            name: np.zeros((len(Phase), budget.size))
            for name in ("steps", "cost", "cost_to_go", "promise", "excess")
        }

    def add(self, life: _Life) -> None:
        """Count a life in."""
        promises = not np.isnan(life.promise).any()
        if self.lives == 0:
            self.promises = promises
        elif promises != self.promises:
            raise refusal(
                "make_agent",
                "agents that all promise something, or all nothing",
                "both",
            )
        seen = discounted_from(life.costs, self.discount)
        later = self.discount ** np.arange(self.steps, 0, -1)[:, np.newaxis]
        word = life.last_promise if promises else self.most
        to_go = seen + later * np.minimum(word, self.most)
        promise = np.minimum(life.promise, self.budget)
        excess = to_go - promise
        self.lives += 1
        off = to_go - self.sums["mean"]
        self.sums["mean"] += off / self.lives
        self.sums["square"] += off * (to_go - self.sums["mean"])
        self.sums["excess"] += excess
        self.sums["over"] += seen > self.budget
        self.peaks.append(np.maximum.reduceat(to_go[: self.audited], self.starts))
        self.seen.append(seen[self.starts])
        self.beyond.append((seen - promise)[self.starts])
        self.invariant_breaks += life.invariant_breaks
        self.assumption_breaks += life.assumption_breaks
        self.reward += life.reward
        parts = {
            "steps": np.ones_like(to_go),
            "cost": life.costs,
            "cost_to_go": to_go,
            "promise": life.promise,
            "excess": excess,
        }
        for name, values in parts.items():
            np.add.at(
                self.phases[name],
                life.phases[: self.audited],
                values[: self.audited],
            )

    def _settled(self) -> int:
        """Return before which step next to nothing of the cost-to-go is unseen."""
        share = _UNSEEN * self.budget / np.where(self.most > 0.0, self.most, 1.0)
        least = float(np.where(self.most > 0.0, share, 1.0).min())
        if self.discount == 0.0:
            return self.steps
        if least == 0.0:
            return 1
        left = int(np.ceil(np.log(min(least, 1.0)) / np.log(self.discount)))
        return max(self.steps - left + 1, 1)

    def close(self, confidence: float) -> Audit:
        """Return the account."""
        n, shown = self.lives, slice(0, self.audited)
        delta = (1.0 - confidence) / (self.starts.size * self.budget.size)
        upper, cost_lower, excess_lower = [], [], []
        for k, (most, d) in enumerate(zip(self.most, self.budget, strict=True)):
            peaks, seen, beyond = (
                np.array([life[:, k] for life in kept])
                for kept in (self.peaks, self.seen, self.beyond)
            )
            upper.append(_upper(peaks, 0.0, most, delta))
            cost_lower.append(-_upper(-seen, -most, 0.0, delta))
            excess_lower.append(
                -_upper(-beyond, -most, d, delta)
                if self.promises
                else np.full(self.starts.size, np.nan)
            )
        per_phase = {}
        for phase in Phase:
            count = float(self.phases["steps"][phase, 0])
            if count:
                means = {
                    name: sums[phase] / count
                    for name, sums in self.phases.items()
                    if name != "steps"
                }
                per_phase[phase.label] = PhaseAccount(
                    share=count / (n * self.audited), **means
                )
        return Audit(
            lifetimes=n,
            steps=self.steps,
            discount=self.discount,
            budget=self.budget,
            confidence=confidence,
            promises=self.promises,
            reward_per_step=self.reward / n,
            invariant_breaks=self.invariant_breaks,
            assumption_breaks=self.assumption_breaks,
            mean_cost_to_go=self.sums["mean"][shown],
            standard_error=np.sqrt(self.sums["square"][shown] / (n * (n - 1))),
            mean_excess=self.sums["excess"][shown] / n,
            over=self.sums["over"][shown] / n,
            block_starts=self.starts,
            block_upper=np.array(upper).T,
            block_lower=np.array(cost_lower).T,
            block_excess_lower=np.array(excess_lower).T,
            per_phase=per_phase,
        )


def _upper(samples: FloatArray, low: float, high: float, delta: float) -> FloatArray:
    """Return the bound on means; rounding may have left samples just outside."""
    if not low < high:
        return np.full(samples.shape[1], high)
    return upper_mean_bound(
        np.clip(samples, low, high), low=low, high=high, delta=delta
    )
