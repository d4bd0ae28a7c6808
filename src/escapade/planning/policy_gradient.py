"""The policy gradient for constrained problems, robust or not: Algorithm 2, corrected.

A softmax policy with one number a pair climbs ``V − Σ_k λ_k (C_k − d_k)`` while the
prices ``λ`` descend it.  Each iteration draws trajectories in the scenes of
:mod:`escapade.planning.saddle_game` (under a set: the kernels that are worst for the
costs) and then, with ``G_t = Σ_{i >= t} γ^{i−t} (r_i − λ c_i)``,

    θ ← θ + η₁ · mean over trajectories of Σ_t γ^t (G_t − b(s_t)) ∇ log π(a_t | s_t)
    λ_k ← [ λ_k + η₂ (mean of C_k from the start − d_k) ]₊

Against the paper's listing (errata E26): costs are summed from costs, not from values;
``λ`` rises when a budget is exceeded, once an iteration, and stays at 0 or above; the
score carries ``γ^t``; the worst kernel of a cost is used for that cost alone.

Iterates need not settle, so what comes back is the best of three: the best policy on
the way that keeps every budget, the average of the later ones, and the best mixture of
those that were judged (:mod:`escapade.planning.iterate_mixture`), averages and mixtures
being of visits.  Each is evaluated by itself.  A robust problem has a duality gap
(errata E34): the answer never claims to be optimal, and says by its bounds how far from
it it can be.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from escapade.model.cmdp import CMDP
from escapade.planning.gradient_run import Actor, GradientSolver
from escapade.planning.learning_rate import LearningRate
from escapade.typing import FloatArray

__all__ = ["PolicyGradient"]

_POLICY_RATE = LearningRate(5.0, "sqrt", 300.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyGradient(GradientSolver):
    """Climbs by sampled gradients; for problems with a set, or to compare with.

    Parameters
    ----------
    iterations
        Steps of the policy and of the prices.
    trajectories
        Trajectories that are drawn for each step, in each scene.
    horizon
        Steps of a trajectory; by default as many as carry all but a thousandth of a
        lifetime's weight.
    policy_rate, multiplier_rate
        Learning rates, numbers or :class:`~escapade.planning.LearningRate`; they mean
        the same for every problem, as rewards and costs are scaled.
    per_visit
        Whether a state's step is divided by how often it was visited, so that states
        that are seldom seen learn as fast as others.
    baseline
        ``"state"``, ``"average"`` or ``"none"``: what is taken off the returns.
    refresh_every
        Iterations after which nature chooses its kernels anew; only with a set.
    judge_every
        Iterations after which the present policy is evaluated, and kept if it is the
        best within the budgets.
    seed
        Seed of the trajectories; the same seed gives the same answer.
    time_limit
        Seconds after which to stop, looked at when policies are judged.
    progress
        Called with a :class:`GradientProgress` whenever a policy was judged.
    checkpoint
        A file to keep the run in.  Where it exists, the run goes on from there, and
        ends as it would have without the interruption; a file of another problem, set
        or setting is refused.
    checkpoint_every
        Iterations after which the file is written; a multiple of them and the end.

    Examples
    --------
    >>> import escapade as ep
    >>> shop = ep.CMDP(
    ...     [[[1.0], [1.0]]], [[1.0, 0.5]], [[1.0, 0.0]], discount=0.5, budget=1.0
    ... )
    >>> answer = ep.solve(shop, ep.PolicyGradient(iterations=500))
    >>> answer.status, bool(answer.value > 1.48), bool(answer.costs[0] <= 1.0)
    ('feasible', True, True)
    """

    policy_rate: float | LearningRate = _POLICY_RATE

    def make_actor(self, problem: CMDP, rng: np.random.Generator) -> Actor:
        """Return a softmax that begins by drawing evenly."""
        del rng  # nothing is drawn
        return _Softmax(problem)


class _Softmax:
    """One number a pair; the policy is their softmax in each state."""

    def __init__(self, problem: CMDP) -> None:
        self.starts = problem.state_ptr[:-1]
        self.of_pair = problem.pair_state
        self.theta = np.zeros(problem.n_pairs)

    def weights(self) -> FloatArray:
        """Return the softmax of ``θ``, ``[pairs]``."""
        highest = np.maximum.reduceat(self.theta, self.starts)
        raised = np.exp(self.theta - highest[self.of_pair])
        shares: FloatArray = raised / np.add.reduceat(raised, self.starts)[self.of_pair]
        return shares

    def climb(self, score: FloatArray, rate: float) -> None:
        """Add ``rate · Σ score ∇ log π``, which for a softmax is no sum at all."""
        mass = np.add.reduceat(score, self.starts)[self.of_pair]
        self.theta += rate * (score - self.weights() * mass)

    def arrays(self) -> dict[str, Any]:
        """Return ``θ`` for a checkpoint."""
        return {"theta": self.theta}

    def restore(self, arrays: dict[str, Any]) -> None:
        """Take ``θ`` from a checkpoint."""
        self.theta = arrays["theta"]
