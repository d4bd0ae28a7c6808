r"""Continuous worlds cut into cells, and what the cutting does to a promise.

A :class:`Discretizer` cuts ``Box`` observations into cells and offers some actions of a
``Box``.  The agent sees the cell alone, and the cell is no state: where a step leads
depends on the point within it.  If the agent took frequencies of cells for a kernel,
its promise would rest on an accident.  So the abstraction error goes into the
uncertainty set, in one of two ways, and the claim names which.

**From a Lipschitz constant** (:meth:`Discretizer.from_lipschitz`).  The user gives a
simulator of the mean next point, a constant L with which it varies within a cell, and a
bound on the noise.  From the middle of a cell the next point is then within

.. math:: r = \tfrac12 L \, \lVert \text{widths} \rVert_\infty + \text{noise}

of the simulated one, in every coordinate.  Every cell that meets that box is possible
after the pair, and no other is; which of them, with what probability, is left open.
*Assumes:* the constant and the bound on the noise.  Given these it holds surely, and no
statistics are involved.

**From data** (:meth:`Discretizer.from_samples`).  Points are drawn evenly in every
cell and stepped by a simulator that can be put anywhere.  For every pair the points
fall into groups, the parts of the cell; each part has its own frequencies.  The
interval of an entry reaches from the least frequency over the parts to the largest,
widened by a Hoeffding radius that holds for all parts and entries at once with
probability :math:`1 - \delta`.  *Assumes:* that within a part the law is one law
(parts fine enough), that the plant is the simulator, and that every successor was drawn
once.

**Ends of episodes.**  Where a step may end an episode, it leads to a cell in which
another begins.  If nobody says which points end one, any step may, with any
probability.  From data it can be said: a drawn point that ends an episode then counts
for the cells in which one may begin, for all of them where there are several, as
nothing is assumed of how they are chosen.

With ``outside="edge"`` both also assume that points beyond the cells behave like those
of the cell at the edge; with ``"error"`` such a point stops the life instead.

Costs and rewards of a cell are told as bounds only: what the environment pays is
checked as it comes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import gymnasium
import numpy as np
import scipy.sparse as sp

from escapade.errors import AssumptionError, refusal
from escapade.model.arguments import check_room, read_count, read_number
from escapade.model.cmdp import CMDP
from escapade.typing import ArrayLike, FloatArray, IntArray
from escapade.uncertainty.interval import Interval

__all__ = ["Abstraction", "Discretizer"]

Step = Callable[[FloatArray, Any], ArrayLike]
"""The next point, given a point and an action (as the environment takes it)."""

_MOST_CELLS = 1_000_000
_NEVER = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Abstraction:
    """What is possible between cells, and what that rests on.

    Attributes
    ----------
    support
        ``(S * A, S)`` sparse; the possible successors.
    models
        An interval set over them, or ``None`` where all of the support is possible.
    assumes
        One sentence that a safety claim has to name.
    """

    support: sp.csr_array
    models: Interval | None
    assumes: str

    def told(self) -> dict[str, Any]:
        """Return the keywords for ``from_gymnasium`` or :class:`escapade.Knowledge`."""
        if self.models is not None:
            return {"models": self.models}
        return {"support": self.support}


class Discretizer(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment whose ``Box`` observations and actions are cut into cells.

    Parameters
    ----------
    env
        The environment: observations in a ``Box`` of one axis, actions discrete or in a
        ``Box``.
    bins
        Cells a coordinate: one number for all, or one each.
    low, high
        Where cells begin and end, for coordinates without bounds of their own.
    actions
        For a ``Box`` of actions: the ones to offer, ``(A, dim)``, or how many evenly
        spaced values a coordinate.
    outside
        ``"edge"`` counts a point beyond the cells to the nearest one, ``"error"``
        refuses it.

    Examples
    --------
    >>> import gymnasium
    >>> from escapade.environments import Discretizer
    >>> cells = Discretizer(
    ...     gymnasium.make("Pendulum-v1"), bins=(5, 5, 7), actions=3)
    >>> cells.observation_space, cells.action_space
    (Discrete(175), Discrete(3))
    >>> cell, info = cells.reset(seed=0)
    >>> cells.cell(cells.middle(cell)) == cell
    True
    """

    def __init__(
        self,
        env: gymnasium.Env[Any, Any],
        *,
        bins: int | Sequence[int],
        low: ArrayLike | None = None,
        high: ArrayLike | None = None,
        actions: int | ArrayLike | None = None,
        outside: Literal["edge", "error"] = "edge",
    ) -> None:
        super().__init__(env)
        space = env.observation_space
        if not isinstance(space, gymnasium.spaces.Box) or len(space.shape) != 1:
            raise refusal("observation_space", "a Box of one axis", str(space))
        if outside not in ("edge", "error"):
            raise refusal("outside", "'edge' or 'error'", repr(outside))
        self.outside = outside
        dim = int(space.shape[0])
        self.low = _limits("low", low, np.asarray(space.low, dtype=np.float64))
        self.high = _limits("high", high, np.asarray(space.high, dtype=np.float64))
        if not (self.low < self.high).all():
            k = int(np.argmin(self.low < self.high))
            raise refusal(
                "high", f"more than {self.low[k]:g}", float(self.high[k]), f"axis {k}"
            )
        counts = (
            np.broadcast_to(np.asarray(bins), (dim,))
            if np.ndim(bins) == 0
            else (np.asarray(bins))
        )
        if counts.shape != (dim,):
            raise refusal(
                "bins", f"a number, or {dim} of them", f"shape {counts.shape}"
            )
        self.bins = tuple(read_count("bins", int(n), least=1) for n in counts)
        self.n_cells = math.prod(self.bins)
        if self.n_cells > _MOST_CELLS:
            raise refusal("bins", f"at most {_MOST_CELLS} cells", self.n_cells)
        self.widths: FloatArray = (self.high - self.low) / np.array(self.bins)
        self.choices = _choices(env.action_space, actions)
        self.observation_space: gymnasium.Space[Any] = gymnasium.spaces.Discrete(
            self.n_cells
        )
        self.action_space: gymnasium.Space[Any] = gymnasium.spaces.Discrete(
            len(self.choices)
        )

    # -- cells -------------------------------------------------------------------------

    def cell(self, point: ArrayLike) -> int:
        """Return the number of the cell that holds a point.

        Raises
        ------
        AssumptionError
            If the point is not finite, or outside while ``outside="error"``.
        """
        place = np.asarray(point, dtype=np.float64)
        if place.shape != self.low.shape or not np.isfinite(place).all():
            raise AssumptionError(
                f"observation: expected {self.low.size} finite numbers, found {point!r}"
            )
        beyond = (place < self.low) | (place > self.high)
        if beyond.any() and self.outside == "error":
            k = int(np.argmax(beyond))
            raise AssumptionError(
                f"observation: expected a number in [{self.low[k]:g}, "
                f"{self.high[k]:g}], found {place[k]:g} on axis {k}"
            )
        index = np.floor((place - self.low) / self.widths).astype(np.int64)
        index = np.clip(index, 0, np.array(self.bins) - 1)
        return int(np.ravel_multi_index(tuple(index), self.bins))

    def middle(self, cell: int) -> FloatArray:
        """Return the middle of a cell."""
        index = np.array(np.unravel_index(cell, self.bins), dtype=np.float64)
        middle: FloatArray = self.low + (index + 0.5) * self.widths
        return middle

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[int, dict[str, Any]]:
        """Begin anew; return the cell."""
        point, info = self.env.reset(seed=seed, options=options)
        return self.cell(point), dict(info)

    def step(self, action: int) -> tuple[int, Any, bool, bool, dict[str, Any]]:
        """Take an action by its number; return the cell that it led to."""
        answer = self.env.step(self.choices[int(action)])
        return (self.cell(answer[0]), *answer[1:])

    # -- what the cutting leaves open --------------------------------------------------

    def from_lipschitz(
        self,
        simulate: Step,
        *,
        lipschitz: ArrayLike,
        noise: ArrayLike = 0.0,
        resets: Sequence[int] = (),
    ) -> Abstraction:
        """Return which cells are possible, from a constant that the user gives.

        Parameters
        ----------
        simulate
            The mean next point, given a point and an action.
        lipschitz
            How much each coordinate of the next point may vary, in the largest norm,
            per unit of the largest distance within a cell; a number, or one a
            coordinate.
        noise
            How far a step may end from its mean, in each coordinate.
        resets
            Cells in which an episode may begin, where any step may end one.
        """
        rate = _per_axis("lipschitz", lipschitz, self.low.size)
        spread = _per_axis("noise", noise, self.low.size)
        reach = rate * 0.5 * float(self.widths.max()) + spread
        begins = self._begins(resets)
        row, column = [], []
        for cell, action in np.ndindex(self.n_cells, len(self.choices)):
            after = self._simulated(simulate, self.middle(cell), action)
            for target in {*self._box(after - reach, after + reach), *begins}:
                row.append(cell * len(self.choices) + action)
                column.append(target)
        return Abstraction(
            support=self._mask(row, column),
            models=None,
            assumes=(
                f"the next point varies by at most {_named(rate)} times the distance "
                f"within a cell, and steps end at most {_named(spread)} from their mean"
                + self._beyond()
                + _of_ends(begins, None)
            ),
        )

    def from_samples(
        self,
        simulate: Step,
        *,
        samples: int,
        parts: int = 2,
        delta: float = 0.01,
        seed: int | None = 0,
        resets: Sequence[int] = (),
        ended: Callable[[FloatArray], bool] | None = None,
    ) -> Abstraction:
        """Return intervals around frequencies, from a simulator.

        Parameters
        ----------
        simulate
            A next point, drawn at random, given a point and an action.
        samples
            Points a part of a cell, for each action.
        parts
            Parts a coordinate into which each cell is cut.
        delta
            Probability with which the intervals may miss, over everything.
        seed
            For the points.
        resets
            Cells in which an episode may begin, where a step may end one.
        ended
            Whether an episode ends at a point; left out, any step may end one.
        """
        draws = read_count("samples", samples, least=1)
        pieces = read_count("parts", parts, least=1)
        if not 0.0 < read_number("delta", delta) < 1.0:
            raise refusal("delta", "a number in (0, 1)", delta)
        rng = np.random.default_rng(seed)
        n_actions, dim = len(self.choices), self.low.size
        corners = list(itertools.product(range(pieces), repeat=dim))
        begins = self._begins(resets)
        ends = np.zeros((self.n_cells * n_actions, len(corners)), dtype=np.int64)
        found: dict[tuple[int, int], IntArray] = {}
        for cell, action in np.ndindex(self.n_cells, n_actions):
            base = self.middle(cell) - 0.5 * self.widths
            for k, corner in enumerate(corners):
                points = rng.random((draws, dim)) + np.array(corner)
                for point in base + points * (self.widths / pieces):
                    after = self._simulated(simulate, point, action)
                    row = cell * n_actions + action
                    if ended is not None and ended(after):
                        ends[row, k] += 1
                        continue
                    key = (row, self.cell(after))
                    if key not in found:
                        found[key] = np.zeros(len(corners), dtype=np.int64)
                    found[key][k] += 1
        if ends.any() and not begins:
            raise refusal("resets", "some cells, as there are steps that end", "none")
        anywhere = bool(begins) and ended is None
        rows, columns, counts = _counted(found, ends, begins, anywhere=anywhere)
        families = self.n_cells**2 * n_actions * len(corners)
        radius = float(np.sqrt(np.log(2.0 * families / delta) / (2.0 * draws)))
        lower = np.clip(counts[0].min(axis=1) / draws - radius, 0.0, 1.0)
        upper = np.clip(counts[1].max(axis=1) / draws + radius, 0.0, 1.0)
        shares = counts[2].mean(axis=1) / draws
        if anywhere:  # one end a part, for a guess that holds all that is possible
            lower[:] = 0.0
            upper[np.isin(columns, begins)] = 1.0
            shares *= draws / (draws + 1.0)
            shares[np.isin(columns, begins)] += 1.0 / ((draws + 1.0) * len(begins))
        nominal = self._nominal(rows, columns, shares)
        return Abstraction(
            support=self._mask(rows, columns),
            models=Interval(nominal, lower=lower, upper=upper),
            assumes=(
                f"the plant is the simulator, its law is one law within each of "
                f"{len(corners)} parts of a cell, every successor was drawn at least "
                f"once, and no frequency is off by more than {radius:.3g} (probability "
                f"{1.0 - delta:g})" + self._beyond() + _of_ends(begins, ended)
            ),
        )

    def _begins(self, resets: Sequence[int]) -> tuple[int, ...]:
        """Return the cells in which an episode may begin."""
        cells = tuple(sorted({int(cell) for cell in resets}))
        for cell in cells:
            if not 0 <= cell < self.n_cells:
                raise refusal("resets", f"cells in 0..{self.n_cells - 1}", cell)
        return cells

    def _beyond(self) -> str:
        """Return what is assumed of points beyond the cells, if there are any."""
        if self.outside == "error":
            return ""
        return "; points beyond the cells behave like those of the cell at the edge"

    def _simulated(self, simulate: Step, point: FloatArray, action: int) -> FloatArray:
        after = np.asarray(simulate(point, self.choices[action]), dtype=np.float64)
        if after.shape != self.low.shape or not np.isfinite(after).all():
            raise refusal(
                "simulate",
                f"a function that returns {self.low.size} finite numbers",
                repr(after),
            )
        return after

    def _box(self, least: FloatArray, most: FloatArray) -> list[int]:
        """Return the cells that meet a box, those at the edge for what is beyond."""
        if self.outside == "error" and ((least < self.low) | (most > self.high)).any():
            raise refusal(
                "outside", "'edge', as steps may end beyond the cells", "'error'"
            )
        last = np.array(self.bins) - 1
        first = np.floor((least - self.low) / self.widths - _NEVER).astype(np.int64)
        final = np.floor((most - self.low) / self.widths + _NEVER).astype(np.int64)
        ranges = [
            range(int(a), int(b) + 1)
            for a, b in zip(
                np.clip(first, 0, last), np.clip(final, 0, last), strict=True
            )
        ]
        return [
            int(np.ravel_multi_index(index, self.bins))
            for index in itertools.product(*ranges)
        ]

    def _mask(self, rows: Sequence[int], columns: Sequence[int]) -> sp.csr_array:
        shape = (self.n_cells * len(self.choices), self.n_cells)
        return sp.csr_array(
            sp.coo_array((np.ones(len(rows)), (list(rows), list(columns))), shape=shape)
        )

    def _nominal(
        self, rows: Sequence[int], columns: Sequence[int], shares: FloatArray
    ) -> CMDP:
        """Return a model that carries the rows; nothing is earned or paid in it."""
        shape = (self.n_cells * len(self.choices), self.n_cells)
        table = sp.csr_array(
            sp.coo_array((shares, (list(rows), list(columns))), shape=shape)
        )
        nothing = np.zeros((self.n_cells, len(self.choices)))
        return CMDP(table, nothing, nothing, discount=0.0, budget=0.0)


def _counted(
    found: dict[tuple[int, int], IntArray],
    ends: IntArray,
    begins: tuple[int, ...],
    *,
    anywhere: bool,
) -> tuple[list[int], list[int], FloatArray]:
    """Return rows, columns, and how often each was met by the parts, ``[3, n, parts]``.

    At least, at most and by a guess: an end counts for the one cell in which an episode
    begins, or for each of several at most.
    """
    ending = range(len(ends)) if anywhere else np.flatnonzero(ends.any(axis=1)).tolist()
    keys = sorted({*found, *itertools.product(ending, begins)})
    own = np.array([found.get(key, np.zeros(ends.shape[1])) for key in keys])
    rows, columns = (list(side) for side in zip(*keys, strict=True))
    ended = ends[rows] * np.isin(columns, begins)[:, np.newaxis]
    if len(begins) == 1:
        own = own + ended
        ended = np.zeros_like(ended)
    counts = np.stack([own, own + ended, own + ended / max(len(begins), 1)])
    return rows, columns, counts


def _of_ends(begins: tuple[int, ...], ended: Callable[..., bool] | None) -> str:
    """Return what is assumed of ends, if there are any."""
    if not begins:
        return ""
    which = "any step may end an episode" if ended is None else "episodes end as told"
    where = " or ".join(map(str, begins))
    return f"; {which}, and the next begins in cell {where}"


def _limits(argument: str, given: ArrayLike | None, own: FloatArray) -> FloatArray:
    limits = (
        own
        if given is None
        else np.broadcast_to(np.asarray(given, dtype=np.float64), own.shape).copy()
    )
    if not np.isfinite(limits).all() or (np.abs(limits) > 1e30).any():
        k = int(np.argmax(~np.isfinite(limits) | (np.abs(limits) > 1e30)))
        raise refusal(
            argument,
            "finite numbers, as the space has no bounds",
            float(limits[k]),
            f"axis {k}",
        )
    return np.array(limits)


def _per_axis(argument: str, value: ArrayLike, dim: int) -> FloatArray:
    numbers = np.asarray(value, dtype=np.float64)
    if numbers.shape not in ((), (dim,)):
        raise refusal(argument, f"a number, or {dim}", f"shape {numbers.shape}")
    if not (np.isfinite(numbers) & (numbers >= 0.0)).all():
        raise refusal(argument, "finite numbers of at least 0", numbers.tolist())
    return np.broadcast_to(numbers, (dim,)).copy()


def _named(values: FloatArray) -> str:
    if (values == values[0]).all():
        return f"{values[0]:g}"
    return "(" + ", ".join(f"{value:g}" for value in values) + ")"


def _choices(space: gymnasium.Space[Any], actions: Any) -> list[Any]:
    """Return the actions to offer, as the environment takes them."""
    if isinstance(space, gymnasium.spaces.Discrete):
        if actions is not None:
            raise refusal("actions", "None, as they are discrete", actions)
        return [int(space.start) + k for k in range(int(space.n))]
    if not isinstance(space, gymnasium.spaces.Box) or len(space.shape) != 1:
        raise refusal("action_space", "Discrete, or a Box of one axis", str(space))
    if actions is None:
        raise refusal("actions", "some, or how many, as they are continuous", None)
    if np.ndim(actions) == 0:
        count = read_count("actions", actions, least=1)
        check_room("actions", count, count ** max(space.shape[0], 1))
        low = _limits("action_space", None, np.asarray(space.low, dtype=np.float64))
        high = _limits("action_space", None, np.asarray(space.high, dtype=np.float64))
        grids = [np.linspace(a, b, count) for a, b in zip(low, high, strict=True)]
        given = np.array(list(itertools.product(*grids)))
    else:
        given = np.asarray(actions, dtype=np.float64)
    if given.ndim != 2 or given.shape[1:] != space.shape:
        raise refusal("actions", f"shape (A, {space.shape[0]})", f"shape {given.shape}")
    chosen = given.astype(space.dtype)
    for k, action in enumerate(chosen):
        if not space.contains(action):
            raise refusal("actions", f"members of {space}", action.tolist(), f"row {k}")
    return list(chosen)
