"""One course of a policy gradient: draw, climb, reprice, judge, keep.

What differs between policies is how probabilities are made of parameters and how the
parameters climb; an :class:`Actor` knows that.  Everything else is here, once: the
settings that all policy gradients share, the trajectories, the baselines, the prices of
the budgets, the judgement of the policies on the way, progress and checkpoints.

A run that is resumed from a checkpoint goes on as it would have: the file holds the
parameters, the generator of random numbers, the averages, and the kernels that nature
last chose.
"""

from __future__ import annotations

import json
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, TypeAlias

import numpy as np

from escapade.errors import refusal
from escapade.kernels.policy_gradient import add_trajectories
from escapade.kernels.sampling import fill_cumulative
from escapade.model.cmdp import CMDP
from escapade.model.policy import Policy
from escapade.planning.base import Objective, check_limits, check_robust
from escapade.planning.checkpoint import read_checkpoint, set_digest, write_checkpoint
from escapade.planning.iterate_mixture import IterateMixture, policy_of_visits
from escapade.planning.learning_rate import LearningRate, read_rate
from escapade.planning.saddle_game import SaddleGame, Scene, Verdict, make_scene
from escapade.planning.solution import Solution, Status
from escapade.typing import FloatArray
from escapade.uncertainty.base import UncertaintySet

__all__ = [
    "Actor",
    "Baseline",
    "GradientProgress",
    "GradientSolver",
    "check_count",
    "default_horizon",
]

Baseline: TypeAlias = Literal["none", "average", "state"]
"""What is taken off the returns: nothing, their average, or that of their state."""

_TAIL = 1e-3  # share of a lifetime's weight that the default horizon leaves out
_FORGET = 0.1  # share of the old baseline that one new return replaces
_OF_A_SCENE = ("row_ptr", "successor", "probability", "gains")
_MOST_AT_ONCE = 4_000_000  # uniform numbers drawn for one call of the kernel
_COUNTS = (
    "iterations",
    "trajectories",
    "refresh_every",
    "judge_every",
    "checkpoint_every",
)
MULTIPLIER_RATE = LearningRate(0.5, "sqrt", 300.0)


class Actor(Protocol):
    """Parameters of a policy that can climb."""

    def weights(self) -> FloatArray:
        """Return the probability of each pair given its state, ``[pairs]``."""
        ...

    def climb(self, score: FloatArray, rate: float) -> None:
        """Move the parameters by ``rate`` along ``Σ score · ∇ log π``."""
        ...

    def arrays(self) -> dict[str, Any]:
        """Return everything that a checkpoint must hold of the parameters."""
        ...

    def restore(self, arrays: dict[str, Any]) -> None:
        """Take the parameters from a checkpoint."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class GradientProgress:
    """How far a run is, as its callback hears.

    ``value`` and ``costs`` are those of the present policy, evaluated; ``best`` is the
    certified value of the best policy so far that keeps every budget, if there is one.
    """

    iteration: int
    iterations: int
    value: float
    costs: FloatArray
    multipliers: FloatArray
    best: float | None
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class GradientSolver(ABC):
    """What all policy gradients have in common.

    :class:`~escapade.planning.policy_gradient.PolicyGradient` explains the settings.
    """

    iterations: int = 2_000
    trajectories: int = 32
    horizon: int | None = None
    policy_rate: float | LearningRate = 1.0
    multiplier_rate: float | LearningRate = MULTIPLIER_RATE
    per_visit: bool = True
    baseline: Baseline = "state"
    refresh_every: int = 20
    judge_every: int = 25
    seed: int = 0
    time_limit: float | None = None
    progress: Callable[[GradientProgress], None] | None = None
    checkpoint: str | PathLike[str] | None = None
    checkpoint_every: int = 500

    robust: ClassVar[bool] = True
    nominal: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for name in _COUNTS:
            check_count(name, getattr(self, name))
        if self.horizon is not None:
            check_count("horizon", self.horizon)
        if self.baseline not in ("none", "average", "state"):
            raise refusal(
                "baseline", "'none', 'average' or 'state'", repr(self.baseline)
            )
        read_rate("policy_rate", self.policy_rate)
        read_rate("multiplier_rate", self.multiplier_rate)
        check_limits(precision=0.5, time_limit=self.time_limit)

    def solve(
        self,
        problem: CMDP,
        *,
        uncertainty: UncertaintySet | None = None,
        objective: Objective = "nominal",
    ) -> Solution:
        """Return the best policy found within the budgets, with bounds."""
        began = time.perf_counter()
        check_robust(problem, uncertainty, objective)
        game = SaddleGame(problem, uncertainty, objective)
        rng = np.random.default_rng(self.seed)
        return _Run(self, game, self.make_actor(problem, rng), rng, began).finish()

    @abstractmethod
    def make_actor(self, problem: CMDP, rng: np.random.Generator) -> Actor:
        """Return the actor that begins a run; each policy gradient has its own."""

    def settings(self, game: SaddleGame) -> dict[str, Any]:
        """Name everything that the course of a run depends on."""
        named: dict[str, Any] = {name: getattr(self, name) for name in _COUNTS}
        del named["checkpoint_every"]  # says when to write, not what
        return {
            **named,
            "solver": type(self).__name__,
            "problem": game.problem.fingerprint,
            "uncertainty": set_digest(game.problem, game.sets),
            "objective": game.objective,
            "horizon": self.horizon,
            "policy_rate": repr(read_rate("policy_rate", self.policy_rate)),
            "multiplier_rate": repr(read_rate("multiplier_rate", self.multiplier_rate)),
            "per_visit": self.per_visit,
            "baseline": self.baseline,
            "seed": self.seed,
        }


def check_count(name: str, value: Any) -> None:
    """Refuse what is not a whole number of at least 1."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or value < 1:
        raise refusal(name, "a whole number of at least 1", repr(value))


def default_horizon(discount: float) -> int:
    """Return how many steps carry all but a thousandth of a lifetime's weight."""
    if discount == 0.0:
        return 1
    return max(1, math.ceil(math.log(_TAIL) / math.log(discount)))


class _Run:
    """The state of one run; everything that a checkpoint must hold."""

    def __init__(
        self,
        solver: GradientSolver,
        game: SaddleGame,
        actor: Actor,
        rng: np.random.Generator,
        began: float,
    ) -> None:
        self.solver = solver
        self.game = game
        self.actor = actor
        self.rng = rng
        self.began = began
        problem = game.problem
        self.iteration = 0
        self.multipliers = np.zeros(problem.n_costs)
        self.scenes: list[Scene] = []
        self.baselines = np.zeros((1 + problem.n_costs, problem.n_states))
        self.visits = np.zeros(problem.n_pairs)
        self.price_sum = np.zeros(problem.n_costs)
        self.best: Verdict | None = None
        self.mixture = IterateMixture(game)
        self.start_cumulative = np.empty(problem.n_states)
        whole = np.array([0, problem.n_states])
        fill_cumulative(whole, problem.start, self.start_cumulative)
        self.path = None if solver.checkpoint is None else Path(solver.checkpoint)
        if self.path is not None and self.path.exists():
            self.restore(self.path)

    # -- the course --------------------------------------------------------------------

    def finish(self) -> Solution:
        """Iterate until the iterations or the time run out."""
        solver, stopped = self.solver, None
        while self.iteration < solver.iterations:
            if self.iteration % solver.refresh_every == 0 or not self.scenes:
                self.scenes = self.game.scenes(self.policy())
            if self.iteration % solver.judge_every == 0:
                self.judge()
                stopped = self.out_of_time()
                if stopped is not None:
                    break
            self.step()
            self.iteration += 1
            if self.iteration % solver.checkpoint_every == 0:
                self.save()
        if stopped is None:
            self.judge()
        self.save()
        later = self.iteration - solver.iterations // 2
        multipliers = self.price_sum / later if later > 0 else self.multipliers
        return self.game.solution(
            self.best,
            [self.average(), self.mixture.policy() or self.policy()],
            self.game.prices(multipliers),
            solver=type(solver).__name__,
            iterations=self.iteration,
            stopped=stopped,
            began=self.began,
        )

    def out_of_time(self) -> Status | None:
        limit = self.solver.time_limit
        if limit is not None and time.perf_counter() - self.began >= limit:
            return "time_limit"
        return None

    def step(self) -> None:
        """Draw trajectories, climb, and reprice."""
        solver, game, problem = self.solver, self.game, self.game.problem
        actions = np.empty(problem.n_pairs)
        fill_cumulative(problem.state_ptr, self.actor.weights(), actions)
        climb = np.zeros(problem.n_pairs)
        costs = np.empty(problem.n_costs)
        for scene, baseline in zip(self.scenes, self.baselines, strict=False):
            score, visits, totals = self.draw(scene, actions, baseline)
            if solver.per_visit:  # a state that was hardly visited must not leap
                mass = np.add.reduceat(visits, problem.state_ptr[:-1])
                score /= np.maximum(mass, 1.0 / solver.trajectories)[problem.pair_state]
            climb += score
            charged = scene.gains > 0
            costs[scene.gains[charged] - 1] = totals[charged]
            if scene is self.scenes[0] and self.late:
                self.visits += visits
        if self.late:
            self.price_sum += self.multipliers
        rate = read_rate("policy_rate", solver.policy_rate)
        self.actor.climb(climb, rate.at(self.iteration, solver.iterations))
        rate = read_rate("multiplier_rate", solver.multiplier_rate)
        eta = rate.at(self.iteration, solver.iterations)
        self.multipliers = np.maximum(
            self.multipliers + eta * (costs - game.budgets), 0.0
        )

    def draw(
        self, scene: Scene, actions: FloatArray, baseline: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return mean score and visits a trajectory, and mean gains from the start."""
        solver, problem = self.solver, self.game.problem
        horizon = solver.horizon or default_horizon(problem.discount)
        score, visits = np.zeros(problem.n_pairs), np.zeros(problem.n_pairs)
        to_go, counts = np.zeros(problem.n_states), np.zeros(problem.n_states)
        totals = np.zeros(scene.gains.size)
        signs = np.concatenate([[1.0], -self.multipliers])[scene.gains]
        left = solver.trajectories
        while left > 0:
            at_once = min(left, max(1, _MOST_AT_ONCE // (2 * horizon + 1)))
            add_trajectories(
                problem.state_ptr,
                actions,
                scene.row_ptr,
                scene.successor,
                scene.cumulative,
                self.start_cumulative,
                self.game.gains[scene.gains],
                signs,
                problem.discount,
                baseline,
                self.rng.random((at_once, 2 * horizon + 1)),
                score,
                visits,
                to_go,
                counts,
                totals,
            )
            left -= at_once
        self.learn_baseline(baseline, to_go, counts)
        n = float(solver.trajectories)
        return score / n, visits / n, totals / n

    def learn_baseline(
        self, baseline: FloatArray, to_go: FloatArray, counts: FloatArray
    ) -> None:
        """Move the baseline towards the returns that were seen, in place."""
        if self.solver.baseline == "none":
            return
        if self.solver.baseline == "average":
            target = to_go.sum() / counts.sum()
            baseline += _FORGET * (target - baseline)
            return
        seen = counts > 0.0
        share = 1.0 - (1.0 - _FORGET) ** counts[seen]
        baseline[seen] += share * (to_go[seen] / counts[seen] - baseline[seen])

    def judge(self) -> None:
        """Evaluate the present policy; keep it if it is the best within the budgets."""
        verdict = self.game.judge(self.policy())
        self.mixture.offer(verdict)
        if verdict.within and (self.best is None or verdict.lower > self.best.lower):
            self.best = verdict
        if self.solver.progress is not None:
            self.solver.progress(
                GradientProgress(
                    iteration=self.iteration,
                    iterations=self.solver.iterations,
                    value=verdict.value,
                    costs=verdict.costs,
                    multipliers=self.game.prices(self.multipliers),
                    best=None if self.best is None else self.best.lower,
                    seconds=time.perf_counter() - self.began,
                )
            )

    # -- policies ----------------------------------------------------------------------

    @property
    def late(self) -> bool:
        """Whether the averages have begun."""
        return self.iteration >= self.solver.iterations // 2

    def policy(self) -> Policy:
        """Return the present policy."""
        return Policy.from_pair_weights(self.game.problem, self.actor.weights())

    def average(self) -> Policy:
        """Return the policy of the averaged visits; the present one where none are."""
        return policy_of_visits(self.game.problem, self.visits, self.policy())

    # -- checkpoints -------------------------------------------------------------------

    def save(self) -> None:
        if self.path is None:
            return
        arrays: dict[str, Any] = {
            **self.actor.arrays(),
            "multipliers": self.multipliers,
            "baselines": self.baselines,
            "visits": self.visits,
            "price_sum": self.price_sum,
        }
        for number, scene in enumerate(self.scenes):
            for name in _OF_A_SCENE:
                arrays[f"scene_{number}_{name}"] = getattr(scene, name)
        for number, verdict in enumerate(self.mixture.verdicts):
            arrays[f"mixed_{number}"] = verdict.policy.probabilities
        if self.best is not None:
            arrays["best"] = self.best.policy.probabilities
        write_checkpoint(
            self.path,
            run=self.solver.settings(self.game),
            state={
                "iteration": self.iteration,
                "scenes": len(self.scenes),
                "mixed": self.mixture.weights.tolist(),
                "rng": json.dumps(self.rng.bit_generator.state),
            },
            arrays=arrays,
        )

    def restore(self, path: Path) -> None:
        state, arrays = read_checkpoint(path, run=self.solver.settings(self.game))
        self.iteration = int(state["iteration"])
        self.rng.bit_generator.state = json.loads(state["rng"])
        self.actor.restore(arrays)
        self.multipliers = arrays["multipliers"]
        self.baselines = arrays["baselines"]
        self.visits = arrays["visits"]
        self.price_sum = arrays["price_sum"]
        self.scenes = [
            make_scene(*(arrays[f"scene_{number}_{name}"] for name in _OF_A_SCENE))
            for number in range(int(state["scenes"]))
        ]
        self.mixture.weights = np.array(state["mixed"])
        self.mixture.verdicts = [
            self.game.judge(Policy(arrays[f"mixed_{number}"]))
            for number in range(len(state["mixed"]))
        ]
        if "best" in arrays:
            self.best = self.game.judge(Policy(arrays["best"]))
