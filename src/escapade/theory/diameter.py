r"""The diameter of a CMDP: how far the farthest state is, at best.

.. math:: D(M) = \max_{s \ne s'} \min_\pi \mathbb{E}[W(s' \mid s, M, \pi)],

with W the number of actions from s to s' (the paper's preliminaries; requirement (a) of
the Escape Budget Lemma).  One shortest-path problem a target
(:mod:`escapade.theory.hitting_times`), of which only the largest answer counts: targets
that look hard come first, and a target is dropped as soon as its certified upper bound
falls below the largest lower bound so far.  What remains is [lower, upper], within the
tolerance of each other.

D(M) is finite exactly when every state can reach every other, by whatever actions; if
not, the answer names a state and a target that it cannot reach.

The search looks at every target, so it is offered up to 2,000 states.  Beyond that
:func:`sampled_diameter_lower_bound` looks at some targets; its name says what it is.
The diameter says nothing about how long the *worst* kernel of a set may keep an agent
among unknown states; that is a robust hitting time (E20).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import scipy.sparse.csgraph as csgraph

from escapade.errors import refusal
from escapade.kernels import hitting
from escapade.model.arguments import read_generator
from escapade.model.cmdp import CMDP
from escapade.theory.arguments import read_count, read_positive
from escapade.theory.hitting_times import ShortestPath
from escapade.typing import FloatArray, IntArray, Seed

__all__ = [
    "DIAMETER_UP_TO_STATES",
    "Diameter",
    "SampledDiameter",
    "diameter",
    "sampled_diameter_lower_bound",
]

DIAMETER_UP_TO_STATES = 2_000
"""Largest number of states for which :func:`diameter` looks at every target."""

_CHUNK = 64
_BLOCKS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Diameter:
    """The diameter, between two certified bounds.

    Attributes
    ----------
    lower, upper
        Certified bounds; both infinite if some state cannot reach some other.
    source, target
        States at which the largest time is attained; if infinite, ``target`` cannot be
        reached from ``source``.
    tolerance
        Relative width that was asked for.
    message
        What was found, in a sentence.
    """

    lower: float
    upper: float
    source: int
    target: int
    tolerance: float
    message: str

    @property
    def is_finite(self) -> bool:
        """Whether every state can reach every other."""
        return math.isfinite(self.lower)

    @property
    def certified(self) -> bool:
        """Whether the bounds are within the tolerance of each other."""
        return self.upper <= self.lower * (1.0 + self.tolerance)


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledDiameter:
    """A lower bound on the diameter from some targets only.

    Attributes
    ----------
    lower_bound
        Certified: the diameter is at least this.  It may be much larger.
    source, target
        States that attain it.
    targets
        Number of targets looked at.
    """

    lower_bound: float
    source: int
    target: int
    targets: int


def diameter(
    cmdp: CMDP,
    *,
    tolerance: float = 1e-6,
    progress: Callable[[int, int], None] | None = None,
) -> Diameter:
    """Return the diameter, certified to a relative tolerance.

    Parameters
    ----------
    cmdp
        The model, of at most 2,000 states; only its transitions matter.
    tolerance
        Relative width of the bounds.
    progress
        Called with the number of targets done, and of all targets.

    Examples
    --------
    >>> import numpy as np
    >>> ring = np.roll(np.eye(5), 1, axis=1)[:, np.newaxis, :]
    >>> zeros = np.zeros((5, 1))
    >>> round(diameter(CMDP(ring, zeros, zeros, discount=0.9, budget=1.0)).upper, 5)
    4.0
    """
    width = read_positive("tolerance", tolerance)
    if cmdp.n_states > DIAMETER_UP_TO_STATES:
        raise refusal(
            "cmdp",
            f"at most {DIAMETER_UP_TO_STATES} states "
            "(sampled_diameter_lower_bound takes more)",
            f"{cmdp.n_states}",
        )
    if cmdp.n_states == 1:
        return Diameter(
            lower=0.0,
            upper=0.0,
            source=0,
            target=0,
            tolerance=width,
            message="one state: nowhere to go",
        )
    problem = ShortestPath(cmdp)
    apart = _unreachable(problem)
    if apart is not None:
        source, target = apart
        return Diameter(
            lower=math.inf,
            upper=math.inf,
            source=source,
            target=target,
            tolerance=width,
            message=f"infinite: no policy leads from state {source} to state {target}",
        )
    targets = _hardest_first(problem)
    found = _Bounds(targets)
    floor = 0.0
    total = targets.size
    for begin in range(0, total, _CHUNK):
        floor = found.search(problem, begin, floor, width)
        if progress is not None:
            progress(total - int((found.status == hitting.UNFINISHED).sum()), total)
    # What the sweeps left open, the widest first.
    open_targets = np.flatnonzero(found.status == hitting.UNFINISHED)
    for index in open_targets[np.argsort(-found.upper[open_targets], kind="stable")]:
        if found.upper[index] > floor * (1.0 + width):
            floor = found.solve(problem, int(index), floor, width)
        found.status[index] = hitting.SOLVED
        if progress is not None:
            progress(total - int((found.status == hitting.UNFINISHED).sum()), total)
    best = int(found.lower.argmax())
    lower, upper = float(found.lower[best]), float(found.upper.max())
    source, target = int(found.farthest[best]), int(targets[best])
    return Diameter(
        lower=lower,
        upper=upper,
        source=source,
        target=target,
        tolerance=width,
        message=(
            f"{upper:.6g} steps at most, {lower:.6g} at least, "
            f"from state {source} to state {target}"
        ),
    )


def sampled_diameter_lower_bound(
    cmdp: CMDP, *, samples: int = 32, seed: Seed = 0
) -> SampledDiameter:
    """Return a lower bound on the diameter, from some targets, for any size.

    Half of the targets are the hardest by look (those that single steps enter least),
    half are drawn at random.

    Parameters
    ----------
    cmdp
        The model; only its transitions matter.
    samples
        Number of targets.
    seed
        Seed of the random half.
    """
    number = min(read_count("samples", samples), cmdp.n_states)
    if cmdp.n_states == 1:
        return SampledDiameter(lower_bound=0.0, source=0, target=0, targets=1)
    problem = ShortestPath(cmdp)
    apart = _unreachable(problem)
    if apart is not None:
        return SampledDiameter(
            lower_bound=math.inf, source=apart[0], target=apart[1], targets=1
        )
    by_look = _hardest_first(problem)
    hard = by_look[: (number + 1) // 2]
    rest = by_look[hard.size :]
    generator = read_generator("seed", seed)
    drawn = generator.permutation(rest)[: number - hard.size]
    found = _Bounds(np.concatenate([hard, drawn]))
    floor = 0.0
    for begin in range(0, number, _CHUNK):
        floor = found.search(problem, begin, floor, 1e-6)
    best = int(found.lower.argmax())
    return SampledDiameter(
        lower_bound=float(found.lower[best]),
        source=int(found.farthest[best]),
        target=int(found.targets[best]),
        targets=number,
    )


class _Bounds:
    """Bounds on the largest hitting time of each target, as they improve."""

    def __init__(self, targets: IntArray) -> None:
        size = targets.size
        self.targets = targets
        self.lower: FloatArray = np.zeros(size)
        self.upper: FloatArray = np.full(size, np.inf)
        self.farthest: IntArray = np.full(size, -1, dtype=np.int64)
        self.status: IntArray = np.full(size, hitting.UNFINISHED, dtype=np.int64)

    def search(
        self, problem: ShortestPath, begin: int, floor: float, tolerance: float
    ) -> float:
        """Sweep for a chunk of targets; return the largest lower bound so far."""
        chunk = slice(begin, begin + _CHUNK)
        return float(
            hitting.search_targets(
                *problem.rows(),
                problem.usable,
                problem.source_ptr,
                problem.source,
                self.targets[chunk],
                floor,
                tolerance,
                _BLOCKS,
                self.lower[chunk],
                self.upper[chunk],
                self.farthest[chunk],
                self.status[chunk],
            )
        )

    def solve(
        self, problem: ShortestPath, index: int, floor: float, tolerance: float
    ) -> float:
        """Solve exactly for one target that sweeps could not finish."""
        is_target = np.zeros(problem.n_states, dtype=np.bool_)
        is_target[self.targets[index]] = True
        order, distance = problem.search(is_target)
        h, up, low = problem.solve(
            is_target,
            problem.usable,
            order,
            distance,
            tolerance=tolerance,
            blocks=_BLOCKS,
        )
        farthest = int(h.argmax())
        lower = float(h[farthest]) / (1.0 + low)
        if lower > self.lower[index]:
            self.lower[index], self.farthest[index] = lower, farthest
        if up < 1.0:
            upper = float(h[farthest]) / (1.0 - up)
            self.upper[index] = min(self.upper[index], upper)
        return max(floor, float(self.lower[index]))


def _unreachable(problem: ShortestPath) -> tuple[int, int] | None:
    """Return a state and a target that it cannot reach, or None."""
    links = sp.csr_array(
        (np.ones(problem.source.size), problem.source, problem.source_ptr),
        shape=(problem.n_states, problem.n_states),
    )
    count, component = csgraph.connected_components(links, connection="strong")
    if count == 1:
        return None
    # `links` runs from a state to those that lead there: a component that nothing
    # else leads back from is one that cannot be left.
    left = np.zeros(count, dtype=np.bool_)
    into = np.repeat(np.arange(problem.n_states), np.diff(problem.source_ptr))
    crossing = component[into] != component[problem.source]
    left[component[problem.source[crossing]]] = True
    closed = int(np.flatnonzero(~left)[0])
    source = int(np.flatnonzero(component == closed)[0])
    target = int(np.flatnonzero(component != closed)[0])
    return source, target


def _hardest_first(problem: ShortestPath) -> IntArray:
    """Order targets by how little single steps enter them, the least first.

    A guess that speeds the search up; the result does not depend on it.
    """
    pair_state = np.repeat(np.arange(problem.n_states), np.diff(problem.state_ptr))
    row = np.repeat(np.arange(problem.duration.size), np.diff(problem.row_ptr))
    order = np.lexsort((-problem.probability, problem.successor, pair_state[row]))
    state, entered = pair_state[row][order], problem.successor[order]
    first = np.ones(order.size, dtype=np.bool_)
    first[1:] = (state[1:] != state[:-1]) | (entered[1:] != entered[:-1])
    ease = np.bincount(
        entered[first],
        problem.probability[order][first],
        minlength=problem.n_states,
    )
    hardest: IntArray = np.argsort(ease, kind="stable").astype(np.int64)
    return hardest
