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
converge at the rate of the span rather than of ``γ``, and never slower than ``γ``.

*Slow mixing.*  When the span shrinks too slowly, a jump is tried.  For a policy it is
policy iteration for nature: the kernel that nature chose is held still and its linear
system solved, which is sound because nature alone chooses.  With actions to choose as
well, holding both choices still and solving is Newton's method.  It ends in a few
steps or it may cycle, so it is given up once its bounds narrow no more; then the policy
alone is held still and evaluated against nature to a fraction of the present error, and
improved (partial policy iteration), which always gets there.  A jump that did not
narrow the bounds is taken back.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from escapade.errors import refusal
from escapade.kernels.backups import chain_residual
from escapade.kernels.robust_reduction import average_pairs, select_pairs
from escapade.kernels.value_iteration import solve_chain
from escapade.model.evaluation import discounted_sums
from escapade.typing import BoolArray, FloatArray, IntArray
from escapade.uncertainty.base import Sense, UncertaintySet

__all__ = [
    "FixedPoint",
    "Image",
    "RobustOperator",
    "robust_control",
    "robust_policy_value",
]

_EPS = float(np.finfo(np.float64).eps)
_SWEEPS_BEFORE_JUDGING = 4
_SWEEPS_WORTH_A_JUMP = 40
_MOST_PATIENCE = 4_096
_NEWTON_SWEEPS = 3  # smooth out what a step leaves rough
_NEWTON_QUIET = 12  # steps without narrower bounds that end the method
_NEWTON_DIGITS = 1e-2  # of a step: more is wasted while the choices still change
_SOLVED = 1e-12  # of what was missing before a linear system was solved
_KRYLOV_ITERATIONS = 300
_SMALL = 600  # states up to which every digit costs next to nothing
_EVERY_STATE: BoolArray = np.empty(0, dtype=np.bool_)


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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Image:
    """What one application of an operator to ``x`` tells about its fixed point.

    The fixed point lies between ``tx + below`` and ``tx + above`` on the live states;
    ``rounding`` is the part of either that stands for rounding.
    """

    x: FloatArray
    tx: FloatArray
    below: float
    above: float
    rounding: float
    pairs: IntArray | None

    @property
    def width(self) -> float:
        """Distance between the bounds, the same in every live state."""
        return self.above - self.below


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
    live
        ``[S]`` mask of the states that are not left out, for a policy.
    spread
        ``(n, S)`` sparse; the set is then over ``n`` entries whose values are
        ``spread @ x``, as for policies with a memory.
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
        live: BoolArray | None = None,
        spread: sp.csr_array | None = None,
    ) -> None:
        self.sets = sets
        self.state_ptr = state_ptr
        self.gain = gain
        self.discount = discount
        self.nature: Sense = nature
        self.weights = weights
        self.spread = spread
        self.n_states = state_ptr.size - 1
        self._sign = 1.0 if select == "max" else -1.0
        self._allowed = _EVERY_STATE if allowed is None else allowed
        if allowed is not None:
            live = np.add.reduceat(allowed, state_ptr[:-1], dtype=np.int64) > 0
        self._live = _EVERY_STATE if live is None else live
        self._q: FloatArray = np.empty(gain.size)
        self._largest = float(np.abs(gain).max(initial=0.0))
        # roundings in a pair value, the mean over a policy, and the change itself
        self._roundings = sets.longest_row + 8
        if spread is not None:
            self._roundings += int(np.diff(spread.indptr).max(initial=0))
        if weights is not None:
            self._roundings += int(np.diff(state_ptr).max(initial=0))

    @property
    def live(self) -> BoolArray:
        """Mask ``(S,)`` of the states that are not left out."""
        if self._live.size:
            return self._live
        return np.ones(self.n_states, dtype=np.bool_)

    def pair_values(self, x: FloatArray) -> FloatArray:
        """Return ``b + γ extreme P·x`` for every pair (a buffer that is reused)."""
        values = x if self.spread is None else self.spread @ x
        self._q = self.sets.backup(
            values, self.gain, self.discount, sense=self.nature, out=self._q
        )
        return self._q

    def apply(self, x: FloatArray) -> Image:
        """Apply the operator once; states that are left out get 0."""
        q = self.pair_values(x)
        tx = np.empty(self.n_states)
        pairs: IntArray | None = None
        if self.weights is not None:
            low, high, size = average_pairs(
                self.state_ptr, q, self.weights, self._live, x, tx
            )
        else:
            pairs = np.empty(self.n_states, dtype=np.int64)
            low, high, size = select_pairs(
                self.state_ptr, q, self._allowed, self._sign, x, tx, pairs
            )
        factor = self.discount / (1.0 - self.discount)
        shift = factor * max(abs(low), abs(high))
        scale = self._largest + 2.0 * size + shift
        rounding = self._roundings * _EPS * scale / (1.0 - self.discount)
        return Image(
            x=x,
            tx=tx,
            below=factor * low - rounding,
            above=factor * high + rounding,
            rounding=rounding,
            pairs=pairs,
        )

    def middle(self, image: Image) -> FloatArray:
        """Return the middle of the bounds; 0 in states that are left out."""
        values = image.tx + 0.5 * (image.below + image.above)
        if self._live.size:
            values[~self._live] = 0.0
        return values

    def nature_solved(
        self, x: FloatArray, precision: float, *, digits: float = 0.0
    ) -> FloatArray:
        """Return the value of the policy under the kernel that is extreme at ``x``.

        To an error of ``precision``, or of ``digits`` times the way from ``x``.
        """
        assert self.weights is not None
        values = x if self.spread is None else self.spread @ x
        kernel = self.sets.worst_kernel(values, sense=self.nature)
        taken = self.sets.worst_gain(values, self.gain, sense=self.nature)
        solved = self._solved_quickly(x, kernel, taken, precision, digits)
        if solved is not None:
            return solved
        matrix = sp.csr_array(
            (kernel, self.sets.successor, self.sets.row_ptr),
            shape=(self.gain.size, values.size),
        )
        if self.spread is not None:
            matrix = sp.csr_array(matrix @ self.spread)
        weights = self.weights
        if self._live.size:
            weights = weights * np.repeat(self._live, np.diff(self.state_ptr))
        mixing = sp.csr_array(
            (weights, np.arange(self.gain.size), self.state_ptr),
            shape=(self.n_states, self.gain.size),
        )
        chain = sp.csr_array(mixing @ matrix)
        rest = np.asarray(mixing @ taken) + self.discount * (chain @ x) - x
        scale = float(np.abs(rest).max(initial=0.0))
        if scale == 0.0:
            return x
        # what is missing is at most scale / (1 − γ)
        enough = precision * (1.0 - self.discount) / scale
        step, _, _ = discounted_sums(
            chain,
            rest[:, np.newaxis] / scale,
            self.discount,
            max(enough, digits, 1e-13),
            strict=False,  # the bounds judge the answer
        )
        return np.asarray(x + scale * step[:, 0])

    def _solved_quickly(
        self,
        x: FloatArray,
        kernel: FloatArray,
        taken: FloatArray,
        precision: float,
        digits: float,
    ) -> FloatArray | None:
        """Return the same for a policy without chance, by a method that may fail.

        Then, and for other policies, ``None``.
        """
        chosen = self._chosen
        if chosen is None:
            return None
        gamma = self.discount
        rows = (self.sets.row_ptr, self.sets.successor, kernel)
        rest, step = np.empty_like(x), np.empty_like(x)
        chain_residual(chosen, *rows, taken[chosen], gamma, x, rest)
        level = float(rest.mean())
        size = float(np.abs(rest).mean())
        rest -= level  # what all states have in common is solved at once
        # what is missing is at most this over 1 − γ
        enough = max(precision * (1.0 - gamma), _SOLVED * size)
        if x.size > _SMALL:
            enough = max(enough, 0.25 * digits * size)
        _, left = solve_chain(
            chosen, *rows, gamma, rest, step, enough, _KRYLOV_ITERATIONS
        )
        return x + (step + level / (1.0 - gamma)) if left <= enough else None

    @cached_property
    def _chosen(self) -> IntArray | None:
        """The pair of each state, ``[S]``, if the policy takes one in all of them."""
        assert self.weights is not None
        taken = np.flatnonzero(self.weights)
        plain = taken.size == self.n_states and self.spread is None
        if not plain or not (self.weights[taken] == 1.0).all() or not self.live.all():
            return None
        owner = np.searchsorted(self.state_ptr, taken, side="right") - 1
        return taken if (owner == np.arange(self.n_states)).all() else None

    def for_pairs(self, pairs: IntArray) -> RobustOperator:
        """Return the operator of the policy that takes ``pairs`` in the live states."""
        weights = np.zeros(self.gain.size)
        weights[pairs] = 1.0
        return RobustOperator(
            self.sets,
            self.state_ptr,
            self.gain,
            self.discount,
            nature=self.nature,
            weights=weights,
            live=self._live if self._live.size else None,
            spread=self.spread,
        )


_Goal = Callable[[FloatArray], float]
_Jump = Callable[[Image, float], tuple[FloatArray, int]]


def robust_policy_value(
    operator: RobustOperator,
    *,
    precision: float,
    guess: FloatArray | None = None,
    max_iterations: int = 100_000,
) -> FixedPoint:
    """Bound the fixed point of a policy's operator."""
    goal = _relative(precision)
    image, iterations, jumps = _iterate(
        operator, _first(operator, guess), goal, max_iterations, _nature(operator)
    )
    method = "nature's policy iteration" if jumps else "sweeps"
    return _fixed_point(operator, image, goal, iterations, method)


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
    goal = _relative(precision)

    newton = True

    def solve(image: Image, aim: float) -> tuple[FloatArray, int]:
        nonlocal newton
        used = 0
        if newton:
            found, used = _newton(operator, image, aim, max_iterations)
            newton = found.width <= 0.5 * image.width
            if newton:
                return found.x, used
        assert image.pairs is not None
        policy = operator.for_pairs(image.pairs)
        enough = max(aim, 0.1 * image.width)
        inner, more, _ = _iterate(
            policy,
            operator.middle(image),
            lambda _: enough,
            max_iterations,
            _nature(policy),
        )
        return policy.middle(inner), used + more

    image, iterations, jumps = _iterate(
        operator, _first(operator, guess), goal, max_iterations, solve
    )
    method = "sweeps"
    if jumps:
        method = "Newton's method" if newton else "partial policy iteration"
    return _fixed_point(operator, image, goal, iterations, method)


def _newton(
    operator: RobustOperator, image: Image, aim: float, max_iterations: int
) -> tuple[Image, int]:
    """Hold both choices still, solve, and choose again, while the bounds narrow.

    Returns the image with the narrowest bounds and the iterations used.
    """
    best, own, quiet, used = image, np.inf, 0, 0
    while quiet < _NEWTON_QUIET and used < max_iterations:
        quiet += 1
        assert image.pairs is not None
        policy = operator.for_pairs(image.pairs)
        x = policy.nature_solved(
            operator.middle(image), 0.05 * aim, digits=_NEWTON_DIGITS
        )
        for _ in range(1 + _NEWTON_SWEEPS):
            image = operator.apply(x)
            used += 1
            if image.width < best.width:
                best = image
            if best.width <= max(aim, 3.0 * best.rounding):
                return best, used
            x = operator.middle(image)
        # the first steps from afar may widen the bounds: progress is among themselves
        if image.width < 0.9 * own:
            own, quiet = image.width, 0
    return best, used


def _nature(operator: RobustOperator) -> _Jump:
    """Return the jump of a policy's operator: solve the kernel that nature chose."""

    def solve(image: Image, aim: float) -> tuple[FloatArray, int]:
        return operator.nature_solved(operator.middle(image), 0.05 * aim), 1

    return solve


def _iterate(
    operator: RobustOperator,
    x: FloatArray,
    goal: _Goal,
    max_iterations: int,
    jump: _Jump,
) -> tuple[Image, int, int]:
    """Sweep, and jump where sweeps are slow, until the bounds are within ``goal``.

    Returns the image with the narrowest bounds, the iterations and the jumps made.
    """
    best = operator.apply(x)
    iterations, jumps, quiet = 1, 0, 0
    patience = _SWEEPS_BEFORE_JUDGING
    widths = [best.width]
    while iterations < max_iterations:
        aim = goal(best.tx)
        # below a few roundings the bounds cannot be narrowed
        if best.width <= aim or best.width <= 3.0 * best.rounding or quiet > 8:
            break
        jumped = len(widths) >= patience and _too_slow(widths, aim)
        if jumped:
            x, used = jump(best, aim)
            iterations += used
            jumps += 1
            widths.clear()
        else:
            x = operator.middle(best)
        image = operator.apply(x)
        iterations += 1
        if image.width < best.width:
            best, quiet = image, 0
            widths.append(image.width)
        elif jumped:  # take it back, and be slower to try again
            patience = min(2 * patience, _MOST_PATIENCE)
            widths.append(best.width)
        else:  # rounding alone can do this
            quiet += 1
    return best, iterations, jumps


def _too_slow(widths: list[float], goal: float) -> bool:
    """Tell whether a jump would pay, from how fast the span has shrunk."""
    back = min(len(widths), _SWEEPS_BEFORE_JUDGING)
    rate = (widths[-1] / widths[-back]) ** (1.0 / (back - 1))
    if goal <= 0.0 or rate >= 1.0:
        return True
    return bool(np.log(goal / widths[-1]) / np.log(rate) > _SWEEPS_WORTH_A_JUMP)


def _fixed_point(
    operator: RobustOperator, image: Image, goal: _Goal, iterations: int, method: str
) -> FixedPoint:
    lower, upper = image.tx + image.below, image.tx + image.above
    if operator._live.size:
        lower[~operator._live] = upper[~operator._live] = 0.0
    return FixedPoint(
        lower=lower,
        upper=upper,
        converged=bool(
            image.width <= goal(image.tx) or image.width <= 3.0 * image.rounding
        ),
        iterations=iterations,
        method=method,
        pairs=image.pairs,
    )


def _relative(precision: float) -> _Goal:
    return lambda x: precision * max(1.0, float(np.abs(x).max(initial=0.0)))


def _first(operator: RobustOperator, guess: FloatArray | None) -> FloatArray:
    if guess is None:
        return np.zeros(operator.n_states)
    first = np.array(guess, dtype=np.float64)
    if first.shape != (operator.n_states,):
        raise refusal("guess", f"shape ({operator.n_states},)", f"shape {first.shape}")
    # states that were left out before may be live now
    first[~(np.isfinite(first) & operator.live)] = 0.0
    return first
