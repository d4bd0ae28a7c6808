"""The robust Bellman operator, and bounds on its fixed point that need no trust.

For a set ``𝒫`` of kernels that is rectangular over pairs, and a gain ``b`` a pair,

    ``(T x)(s) = select_a [ b(s, a) + γ · extreme over P in 𝒫_sa of P · x ]``

where nature takes the extreme (``"max"`` for costs, ``"min"`` for a guaranteed value)
and ``select`` averages over a policy, or takes the least or the greatest over the
actions that are allowed.  ``T`` is monotone and ``T(x + c) = T x + γ c``; both facts
carry everything here:

*Bounds.*  With ``low <= T x − x <= high`` the fixed point lies between
``T x + γ low / (1 − γ)`` and ``T x + γ high / (1 − γ)``, for any ``x`` at all, and the
upper one is a supersolution, ``T y <= y``.  An allowance for rounding moves both
outward.

*The shift.*  Adding the middle of that interval after a sweep is exact, so sweeps
converge at the rate of the span rather than of ``γ``.

*Slow mixing.*  When the span shrinks too slowly, the kernel that nature chose is held
still and its linear system solved: policy iteration for nature, which is sound because
nature alone chooses.  With actions to choose as well, the policy is held still and
evaluated against nature to a fraction of the present error, then improved (partial
policy iteration).  Holding both still and solving is never done: it may cycle.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from escapade.errors import SolverError
from escapade.model.evaluation import discounted_sums
from escapade.typing import BoolArray, FloatArray, IntArray
from escapade.uncertainty.base import Sense, UncertaintySet

__all__ = ["FixedPoint", "RobustOperator", "robust_control", "robust_policy_value"]

_EPS = float(np.finfo(np.float64).eps)
_SWEEPS_BEFORE_JUDGING = 4
_SWEEPS_WORTH_A_SOLVE = 40
_POLICY_ROUNDS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedPoint:
    """A fixed point between two certified bounds.

    ``upper`` is a supersolution and ``lower`` a subsolution of the operator, whether
    or not the precision was reached (``converged``).  ``pairs`` holds the pair chosen
    in each state where the operator chooses.
    """

    lower: FloatArray
    upper: FloatArray
    converged: bool
    iterations: int
    method: str
    pairs: IntArray | None = None

    @property
    def width(self) -> float:
        """Largest distance between the bounds."""
        return float((self.upper - self.lower).max(initial=0.0))


class RobustOperator:
    """The operator for one set, one gain a pair and one way of choosing actions.

    Parameters
    ----------
    sets
        A pair-rectangular uncertainty set over the pairs of the problem.
    state_ptr
        ``[S + 1]``; pairs of each state.
    gain
        ``[pairs]``; reward or cost of a step.
    discount
        ``γ``.
    nature
        Which extreme nature takes.
    weights
        ``[pairs]``; a policy, averaged over.
    select
        ``"min"`` or ``"max"`` over allowed pairs, where there is no policy.
    allowed
        ``[pairs]`` mask of the pairs that may be chosen; a state without any is left
        out (its value stays 0 and it bounds nothing).
    """

    def __init__(
        self,
        sets: UncertaintySet,
        state_ptr: IntArray,
        gain: FloatArray,
        discount: float,
        *,
        nature: Sense,
        weights: FloatArray | None = None,
        select: Sense | None = None,
        allowed: BoolArray | None = None,
    ) -> None:
        self.sets = sets
        self.state_ptr = state_ptr
        self.gain = gain
        self.discount = discount
        self.nature: Sense = nature
        self.weights = weights
        self.select = select
        self.allowed = allowed
        self.n_states = state_ptr.size - 1
        if allowed is None:
            self.live = np.ones(self.n_states, dtype=np.bool_)
        else:
            self.live = np.add.reduceat(allowed, state_ptr[:-1], dtype=np.int64) > 0
        self._q: FloatArray = np.empty(gain.size)
        self._longest = int(np.diff(sets.row_ptr).max())

    def pair_values(self, x: FloatArray) -> FloatArray:
        """Return ``b + γ extreme P·x`` for every pair (a buffer that is reused)."""
        self._q = self.sets.backup(
            x, self.gain, self.discount, sense=self.nature, out=self._q
        )
        return self._q

    def apply(self, x: FloatArray) -> FloatArray:
        """Return ``T x``; 0 in states that are left out."""
        q = self.pair_values(x)
        starts = self.state_ptr[:-1]
        if self.weights is not None:
            averaged: FloatArray = np.add.reduceat(q * self.weights, starts)
            return averaged
        if self.allowed is not None:
            q[~self.allowed] = np.inf if self.select == "min" else -np.inf
        reduce = np.minimum if self.select == "min" else np.maximum
        best: FloatArray = reduce.reduceat(q, starts)
        best[~self.live] = 0.0
        return best

    def greedy(self, x: FloatArray) -> IntArray:
        """Return the first best allowed pair of each state (its first pair if none)."""
        best = self.apply(x)
        q = self._q  # apply left the pair values there
        hits = q == np.repeat(best, np.diff(self.state_ptr))
        index = np.where(hits, np.arange(q.size), q.size)
        first: IntArray = np.minimum.reduceat(index, self.state_ptr[:-1])
        chosen: IntArray = np.where(self.live, first, self.state_ptr[:-1])
        return chosen

    def bounds(self, x: FloatArray, tx: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return certified bounds on the fixed point from one application."""
        factor = self.discount / (1.0 - self.discount)
        change = (tx - x)[self.live]
        scale = float(np.abs(self.gain).max(initial=0.0) + 2.0 * np.abs(x).max())
        rounding = (self._longest + 8) * _EPS * scale / (1.0 - self.discount)
        if change.size == 0:
            return tx, tx
        low = factor * float(change.min()) - rounding
        high = factor * float(change.max()) + rounding
        return tx + low, tx + high

    def nature_solved(self, x: FloatArray, precision: float) -> FloatArray:
        """Return the value of the policy under the kernel that is extreme at ``x``."""
        assert self.weights is not None
        kernel = self.sets.worst_kernel(x, sense=self.nature)
        matrix = sp.csr_array(
            (kernel, self.sets.successor, self.sets.row_ptr),
            shape=(self.gain.size, self.n_states),
        )
        mixing = sp.csr_array(
            (self.weights, np.arange(self.gain.size), self.state_ptr),
            shape=(self.n_states, self.gain.size),
        )
        gain = np.add.reduceat(self.gain * self.weights, self.state_ptr[:-1])
        solved, _, _ = discounted_sums(
            sp.csr_array(mixing @ matrix),
            gain[:, np.newaxis],
            self.discount,
            precision,
            strict=False,  # the bounds judge the answer
        )
        value: FloatArray = solved[:, 0]
        return value

    def for_pairs(self, pairs: IntArray) -> RobustOperator:
        """Return the operator of the policy that takes ``pairs``."""
        weights = np.zeros(self.gain.size)
        weights[pairs] = 1.0
        return RobustOperator(
            self.sets,
            self.state_ptr,
            self.gain,
            self.discount,
            nature=self.nature,
            weights=weights,
        )


def robust_policy_value(
    operator: RobustOperator,
    *,
    precision: float,
    guess: FloatArray | None = None,
    max_iterations: int = 100_000,
) -> FixedPoint:
    """Bound the fixed point of a policy's operator."""
    goal = _goal(precision)
    x, tx, iterations, method = _descend(
        operator, _first(operator, guess), goal, max_iterations
    )
    lower, upper = operator.bounds(x, tx)
    return FixedPoint(
        lower=lower,
        upper=upper,
        converged=bool(float((upper - lower).max()) <= goal(tx)),
        iterations=iterations,
        method=method,
    )


def robust_control(
    operator: RobustOperator,
    *,
    precision: float,
    guess: FloatArray | None = None,
    max_iterations: int = 100_000,
) -> FixedPoint:
    """Bound the fixed point of an operator that chooses actions, and its policy.

    ``upper`` (``lower`` when actions maximise) is attained by the returned pairs: it is
    a supersolution of the operator of that very policy.
    """
    goal = _goal(precision)
    live = operator.live
    x = _first(operator, guess)
    tx = operator.apply(x)
    iterations = 1
    method = "sweeps"
    spans: list[float] = []
    best: tuple[float, FloatArray, FloatArray] | None = None
    stalled = 0
    for _ in range(_POLICY_ROUNDS):
        lower, upper = operator.bounds(x, tx)
        width = float((upper - lower)[live].max(initial=0.0))
        if best is None or width < best[0]:
            best = (width, x, tx)
            stalled = 0
        else:
            stalled += 1
        if width <= goal(tx) or stalled > 8 or iterations >= max_iterations:
            break
        spans.append(width)
        if _too_slow(spans, goal(tx)):
            method = "partial policy iteration"
            policy = operator.for_pairs(operator.greedy(x))
            inner = max(goal(tx), 0.1 * width)
            x, _, used, _ = _descend(
                policy, (lower + upper) / 2, _constant(inner), max_iterations
            )
            x[~live] = 0.0
            iterations += used
            spans.clear()
        else:
            x = (lower + upper) / 2
            x[~live] = 0.0
        tx = operator.apply(x)
        iterations += 1
    assert best is not None
    _, x, tx = best
    pairs = operator.greedy(x)
    lower, upper = operator.bounds(x, tx)
    return FixedPoint(
        lower=lower,
        upper=upper,
        converged=best[0] <= goal(tx),
        iterations=iterations,
        method=method,
        pairs=pairs,
    )


def _descend(
    operator: RobustOperator,
    x: FloatArray,
    goal: Callable[[FloatArray], float],
    max_iterations: int,
) -> tuple[FloatArray, FloatArray, int, str]:
    """Iterate a policy's operator until its bounds are within ``goal`` of each other.

    Returns the best point, its image, the iterations used and the method.
    """
    tx = operator.apply(x)
    best = (np.inf, x, tx)
    iterations, stalled = 1, 0
    method = "sweeps"
    spans: list[float] = []
    while True:
        lower, upper = operator.bounds(x, tx)
        width = float((upper - lower).max())
        if width < 0.999 * best[0]:
            best = (width, x, tx)
            stalled = 0
        else:
            stalled += 1
        if width <= goal(tx) or stalled > 8 or iterations >= max_iterations:
            return best[1], best[2], iterations, method
        spans.append(width)
        middle = (lower + upper) / 2
        if _too_slow(spans, goal(tx)):
            method = "nature's policy iteration"
            tolerance = 0.05 * goal(tx) / max(1.0, float(np.abs(tx).max()))
            x = operator.nature_solved(middle, max(tolerance, 1e-12))
            spans.clear()
        else:
            x = middle
        tx = operator.apply(x)
        iterations += 1


def _too_slow(spans: list[float], goal: float) -> bool:
    """Tell whether a linear solve would pay, from how fast the span has shrunk."""
    if len(spans) < _SWEEPS_BEFORE_JUDGING or goal <= 0:
        return False
    rate = (spans[-1] / spans[-_SWEEPS_BEFORE_JUDGING]) ** (
        1.0 / (_SWEEPS_BEFORE_JUDGING - 1)
    )
    if rate >= 1.0:
        return True
    return bool(np.log(goal / spans[-1]) / np.log(rate) > _SWEEPS_WORTH_A_SOLVE)


def _constant(goal: float) -> Callable[[FloatArray], float]:
    return lambda _: goal


def _goal(precision: float) -> Callable[[FloatArray], float]:
    return lambda x: precision * max(1.0, float(np.abs(x).max(initial=0.0)))


def _first(operator: RobustOperator, guess: FloatArray | None) -> FloatArray:
    if guess is None:
        return np.zeros(operator.n_states)
    if guess.shape != (operator.n_states,) or not np.isfinite(guess).all():
        raise SolverError("a first guess must be finite and have one entry a state")
    return np.array(guess, dtype=np.float64)
