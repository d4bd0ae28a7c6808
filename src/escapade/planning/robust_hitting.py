r"""Expected hitting times under the worst kernel: how long an escape can take.

How many steps does the best policy need to reach some targets when nature slows it down
as much as the set allows?

.. math:: h(s) = \min_a \Big[ 1 + \max_{P \in \mathcal{P}_{sa}} P \cdot h \Big],
          \qquad h = 0 \text{ on the targets}.

The paper's requirement (a) asks this of the unknown states, with the known ones as
targets (E20), and its worst-transition diameter is the largest such time between two
states.

*Where it is finite.*  A pair makes sure progress towards a set of states if every
kernel gives that set a positive probability.  The states from which such pairs lead to
the targets without ever risking to leave them, a greatest fixed point, are exactly
those whose time is finite: elsewhere nature can keep any policy away for ever.

*What it is.*  Policy iteration, begun at the pairs that make progress, each policy
evaluated against nature by nature's own policy iteration; every policy on the way
reaches the targets surely.  The last word has the certificate: with
:math:`-\kappa_1 \le T h - h \le \kappa_2 < 1`,

.. math:: \frac{h}{1 + \kappa_1} \;\le\; h^* \;\le\; \frac{h}{1 - \kappa_2},

as for a single kernel, since ``T`` is monotone and ``T(λ h) − 1 = λ (T h − 1)``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spla

from escapade.errors import refusal
from escapade.kernels.robust_reduction import select_pairs
from escapade.model.arguments import read_number
from escapade.model.cmdp import CMDP
from escapade.theory.conditions import Condition
from escapade.theory.escape_budget import escape_cost_bound
from escapade.typing import BoolArray, FloatArray, IntArray
from escapade.uncertainty.base import UncertaintySet

__all__ = [
    "RobustHittingTimes",
    "WorstTransitionDiameter",
    "robust_hitting_times",
    "worst_transition_diameter",
]

DIAMETER_UP_TO_STATES = 1_000
"""Largest number of states for which the diameter looks at every target."""

_EPS = float(np.finfo(np.float64).eps)
_NO_PROGRESS = 1e-12  # a probability this small may be rounding
_DENSE_UP_TO_STATES = 300
_ROUNDS = 200
_SWEEPS = 20
_ROUNDINGS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class RobustHittingTimes:
    """Least expected steps to the targets under the worst kernel, between two bounds.

    Attributes
    ----------
    lower, upper
        Certified bounds ``(S,)``; infinite where nature can keep every policy away.
    finite
        Mask ``(S,)`` of the states from which some policy surely arrives.
    actions
        Action ``(S,)`` of a policy whose expected times are at most ``upper`` whatever
        the kernel; -1 on the targets and where the time is infinite.
    precision
        Relative width that was asked for.
    """

    lower: FloatArray
    upper: FloatArray
    finite: BoolArray
    actions: IntArray
    precision: float

    @property
    def converged(self) -> bool:
        """Whether the bounds are within the precision of each other."""
        low, high = self.lower[self.finite], self.upper[self.finite]
        return bool((high <= low * (1.0 + self.precision)).all())

    @property
    def longest(self) -> float:
        """Upper bound on the time from the farthest state."""
        return float(self.upper.max())

    def requirement(
        self, *, escape_budget: float, discount: float, cost_max: float
    ) -> Condition:
        """Return requirement (a) of the Escape Budget Lemma, asked in costs.

        One step of wandering and then the escape from the farthest state cost at most
        ``c_max (1 − γ^(D+1)) / (1 − γ)``, by Jensen's inequality; that must be within
        the budget d' for unknown states.
        """
        return Condition(
            name="a",
            left=escape_cost_bound(
                escape_steps=self.longest + 1.0, cost_max=cost_max, discount=discount
            ),
            right=float(escape_budget),
            sentence="one step of wandering and the worst-case escape cost at most d'",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class WorstTransitionDiameter:
    """The largest robust hitting time between two states, between two bounds.

    Attributes
    ----------
    lower, upper
        Certified bounds; both infinite if nature can keep some state from some other.
    source, target
        States that attain it.
    """

    lower: float
    upper: float
    source: int
    target: int

    @property
    def is_finite(self) -> bool:
        """Whether every state can surely reach every other, whatever the kernel."""
        return bool(np.isfinite(self.lower))


def robust_hitting_times(
    cmdp: CMDP,
    sets: UncertaintySet,
    targets: int | Iterable[int],
    *,
    precision: float = 1e-8,
) -> RobustHittingTimes:
    """Return the least expected number of steps to the targets, at worst.

    Parameters
    ----------
    cmdp
        The problem; only its states and actions matter.
    sets
        The kernels that are possible; must be rectangular over pairs.
    targets
        A state, or several of which any will do; for an escape, the known states.
    precision
        Relative width of the bounds.

    Examples
    --------
    >>> import escapade as ep
    >>> coin = ep.CMDP(
    ...     [[[0.5, 0.5]], [[0.0, 1.0]]],
    ...     [[0.0], [0.0]],
    ...     [[0.0], [0.0]],
    ...     discount=0.9,
    ...     budget=1.0,
    ... )
    >>> ball = ep.uncertainty.L1Ball(coin, radius=0.5)
    >>> ep.planning.robust_hitting_times(coin, ball, 1).upper.round(6).tolist()
    [4.0, 0.0]
    """
    search = _Search(cmdp, sets)
    width = read_number("precision", precision)
    if not 0.0 < width < 1.0:
        raise refusal("precision", "a number in (0, 1)", precision)
    return search.times(_read_targets(targets, cmdp.n_states), width)


def worst_transition_diameter(
    cmdp: CMDP, sets: UncertaintySet, *, precision: float = 1e-6
) -> WorstTransitionDiameter:
    """Return the largest robust hitting time between any two states.

    Parameters
    ----------
    cmdp, sets
        As in :func:`robust_hitting_times`; at most 1,000 states, as each is a target
        once.
    precision
        Relative width of the bounds.
    """
    if cmdp.n_states > DIAMETER_UP_TO_STATES:
        raise refusal(
            "cmdp",
            f"at most {DIAMETER_UP_TO_STATES} states; robust_hitting_times takes more",
            cmdp.n_states,
        )
    search = _Search(cmdp, sets)
    best = WorstTransitionDiameter(lower=0.0, upper=0.0, source=0, target=0)
    upper = 0.0
    for target in range(cmdp.n_states):
        times = search.times(_read_targets(target, cmdp.n_states), precision)
        source = int(times.lower.argmax())
        upper = max(upper, times.longest)
        if times.lower[source] > best.lower:
            best = WorstTransitionDiameter(
                lower=float(times.lower[source]),
                upper=upper,
                source=source,
                target=target,
            )
            if not best.is_finite:
                break
    return WorstTransitionDiameter(
        lower=best.lower, upper=upper, source=best.source, target=best.target
    )


class _Search:
    """Robust shortest paths in one problem, to any targets."""

    def __init__(self, cmdp: CMDP, sets: UncertaintySet) -> None:
        sets.check_matches(cmdp)
        if not sets.rectangular:
            raise refusal(
                "sets",
                "a set that is rectangular over pairs",
                "one model throughout; take its rectangular hull",
            )
        self.cmdp, self.sets = cmdp, sets
        self.reachable = sets.reachable
        self.one = np.ones(cmdp.n_pairs)

    def times(self, is_target: BoolArray, precision: float) -> RobustHittingTimes:
        """Return the certified times to some targets."""
        cmdp = self.cmdp
        finite, usable, chosen = self._surely_reaching(is_target)
        rest = np.flatnonzero(finite & ~is_target)
        h = np.zeros(cmdp.n_states)
        if rest.size:
            h, chosen = self._iterate(rest, usable, chosen, precision)
        _, low, high, _ = self._apply(h, usable)
        size = float(h.max(initial=0.0))
        rounding = (self.sets.longest_row + 8) * _EPS * (1.0 + 2.0 * size)
        below, above = max(-low, 0.0) + rounding, max(high, 0.0) + rounding
        lower = np.full(cmdp.n_states, np.inf)
        upper = np.full(cmdp.n_states, np.inf)
        lower[finite] = h[finite] / (1.0 + below)
        if above < 1.0:
            upper[finite] = h[finite] / (1.0 - above)
        upper[is_target] = 0.0
        actions = np.full(cmdp.n_states, -1, dtype=np.int64)
        actions[rest] = cmdp.pair_action[chosen[rest]]
        return RobustHittingTimes(
            lower=lower,
            upper=upper,
            finite=finite,
            actions=actions,
            precision=precision,
        )

    def _surely_reaching(
        self, is_target: BoolArray
    ) -> tuple[BoolArray, BoolArray, IntArray]:
        """Return the states of finite time, the pairs that stay there, and a policy."""
        cmdp, sets = self.cmdp, self.sets
        starts = sets.row_ptr[:-1]
        inside = np.ones(cmdp.n_states, dtype=np.bool_)
        while True:
            strays = self.reachable & ~inside[sets.successor]
            usable = np.add.reduceat(strays, starts, dtype=np.int64) == 0
            usable &= ~is_target[cmdp.pair_state]
            reached = is_target.copy()
            chosen = cmdp.state_ptr[:-1].copy()
            while True:
                sure = sets.worst(reached.astype(np.float64), sense="min")
                pairs = np.flatnonzero(
                    usable & (sure > _NO_PROGRESS) & ~reached[cmdp.pair_state]
                )
                if pairs.size == 0:
                    break
                chosen[cmdp.pair_state[pairs]] = pairs
                reached[cmdp.pair_state[pairs]] = True
            if np.array_equal(reached, inside):
                return inside, usable, chosen
            inside = reached

    def _apply(
        self, h: FloatArray, usable: BoolArray
    ) -> tuple[IntArray, float, float, FloatArray]:
        """Return the best pairs, the least and largest change, and all pair values."""
        q = self.sets.backup(h, self.one, 1.0, sense="max")
        pairs = np.empty(h.size, dtype=np.int64)
        low, high, _ = select_pairs(
            self.cmdp.state_ptr, q, usable, -1.0, h, np.empty(h.size), pairs
        )
        return pairs, low, high, q

    def _iterate(
        self, rest: IntArray, usable: BoolArray, chosen: IntArray, precision: float
    ) -> tuple[FloatArray, IntArray]:
        """Improve the policy, evaluated against nature, until nothing is gained."""
        h = np.zeros(self.cmdp.n_states)
        best = (np.inf, h, chosen)
        for _ in range(_ROUNDS):
            h = self._against_nature(rest, chosen, h, 0.1 * precision)
            greedy, low, high, q = self._apply(h, usable)
            if max(-low, 0.0) + max(high, 0.0) < best[0]:
                best = (max(-low, 0.0) + max(high, 0.0), h, greedy)
            if best[0] <= 0.5 * precision:
                break
            gain = q[chosen[rest]] - q[greedy[rest]]
            better = rest[gain > 1e-13 * q[chosen[rest]]]
            if better.size == 0:
                break
            chosen = chosen.copy()
            chosen[better] = greedy[better]
        return best[1], best[2]

    def _against_nature(
        self, rest: IntArray, chosen: IntArray, h: FloatArray, precision: float
    ) -> FloatArray:
        """Return a policy's times under the kernel that makes them longest."""
        pairs = chosen[rest]
        for _ in range(_ROUNDS):
            solved = self._solve(rest, pairs, self.sets.worst_kernel(h, sense="max"))
            h = self._sweep(rest, pairs, h) if solved is None else solved
            q = self.sets.backup(h, self.one, 1.0, sense="max")
            over = float((q[pairs] - h[rest]).max())  # may grow before it falls
            if over <= precision + _ROUNDINGS * _EPS * float(h.max()):
                break
        return h

    def _sweep(self, rest: IntArray, pairs: IntArray, h: FloatArray) -> FloatArray:
        """Apply the operator of a policy some times, which needs no kernel."""
        for _ in range(_SWEEPS):
            q = self.sets.backup(h, self.one, 1.0, sense="max")
            h = np.zeros_like(h)
            h[rest] = q[pairs]
        return h

    def _solve(
        self, rest: IntArray, pairs: IntArray, kernel: FloatArray
    ) -> FloatArray | None:
        """Solve ``h = 1 + P h`` on ``rest`` for one kernel.

        ``None`` if under that kernel some state never arrives: where a set is not
        exact its worst kernel may be a member of one part alone.
        """
        n_states = self.cmdp.n_states
        matrix = sp.csr_array(
            (kernel, self.sets.successor, self.sets.row_ptr),
            shape=(self.cmdp.n_pairs, n_states),
        )
        inner = sp.csc_array(sp.eye_array(rest.size) - matrix[pairs][:, rest])
        ones = np.ones(rest.size)
        h = np.zeros(n_states)
        try:
            if rest.size <= _DENSE_UP_TO_STATES:
                h[rest] = np.linalg.solve(inner.toarray(), ones)
            else:
                h[rest] = spla.splu(inner).solve(ones)
        except (np.linalg.LinAlgError, RuntimeError):  # exactly singular
            return None
        # every time is at least 1 where all arrive
        arrives = bool(np.isfinite(h).all() and (h[rest] >= 0.5).all())
        return h if arrives else None


def _read_targets(targets: int | Iterable[int], n_states: int) -> BoolArray:
    given = targets if isinstance(targets, (int, np.integer)) else list(targets)
    array = np.atleast_1d(np.asarray(given))
    if array.dtype.kind not in "iu" or array.ndim != 1 or array.size == 0:
        raise refusal("targets", "a state, or some states", repr(targets))
    out = (array < 0) | (array >= n_states)
    if out.any():
        raise refusal(
            "targets", f"states in 0..{n_states - 1}", int(array[int(np.argmax(out))])
        )
    is_target = np.zeros(n_states, dtype=np.bool_)
    is_target[array] = True
    return is_target
