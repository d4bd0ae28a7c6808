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

of the simulated one, in every coordinate; or, with a constant for each pair of
coordinates, within

.. math:: r_i = \tfrac12 \sum_j L_{ij} \, \text{widths}_j + \text{noise}_i,

which is much less where their scales differ.  Every cell that meets that box is
possible after the pair, and no other is; which of them, with what probability, is left
open.  *Assumes:* the constant and the bound on the noise.  Given these it holds surely,
and no statistics are involved.  Some points of every cell are held to the constant, as
a jump or a wall within a cell would break it.

**From data** (:meth:`Discretizer.from_samples`).  Points are drawn evenly in every
cell and stepped by a simulator that can be put anywhere.  For every pair the points
fall into groups, the parts of the cell; each part has its own frequencies.  The
interval of an entry reaches from the least frequency over the parts to the largest,
widened by a Hoeffding radius that holds for all parts and entries at once with
probability :math:`1 - \delta`.  *Assumes:* that within a part the law is one law
(parts fine enough), that the plant is the simulator, and that every successor was drawn
once.

**What is learned.**  In both, what is possible at birth stays so, whatever is counted
later: see :mod:`escapade.environments.abstraction`.  Whoever knows that a cell has one
law, as where its points are all alike, may say so (``one_law``); then counting narrows.

**Ends of episodes.**  Where a step may end an episode, it leads to a cell in which
another begins.  If nobody says which points end one, any step may, with any
probability.  From data it can be said: a drawn point that ends an episode then counts
for the cells in which one may begin, for all of them where there are several, as
nothing is assumed of how they are chosen.  ``resets="end"`` is for a life in which an
end is for good (``on_done="absorb"``): it leads to one more state, behind the cells.

With ``outside="edge"`` both also assume that points beyond the cells behave like those
of the cell at the edge; with ``"error"`` such a point stops the life instead.

Costs and rewards of a cell are told as bounds only: what the environment pays is
checked as it comes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, Literal

import gymnasium
import numpy as np
import scipy.sparse as sp

from escapade.environments.abstraction import (
    Abstraction,
    counted,
    of_ends,
    of_law,
)
from escapade.environments.discretizer_arguments import (
    named,
    per_axis,
    reach,
    read_choices,
    read_limits,
    read_rates,
    shown,
)
from escapade.errors import AssumptionError, refusal
from escapade.model.arguments import (
    read_count,
    read_number,
)
from escapade.model.cmdp import CMDP
from escapade.typing import ArrayLike, FloatArray, IntArray
from escapade.uncertainty.interval import Interval

__all__ = ["Abstraction", "Discretizer"]

Step = Callable[[FloatArray, Any], ArrayLike]
"""The next point, given a point and an action (as the environment takes it)."""

_MOST_CELLS = 1_000_000
_NEVER = 1e-12
_INSIDE = 1.0 - 1e-9
"""A corner of a cell, moved inward by this share: on the rim another cell begins."""
_MORE = 1.0 + 1e-9
"""More than rounding can do to a distance."""


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
        self.low = read_limits("low", low, np.asarray(space.low, dtype=np.float64))
        self.high = read_limits("high", high, np.asarray(space.high, dtype=np.float64))
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
        self.choices = read_choices(env.action_space, actions)
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
        resets: Sequence[int] | Literal["end"] = (),
        one_law: bool = False,
    ) -> Abstraction:
        """Return which cells are possible, from a constant that the user gives.

        Parameters
        ----------
        simulate
            The mean next point, given a point and an action.
        lipschitz
            How much each coordinate of the next point may vary, in the largest norm,
            per unit of the largest distance within a cell; a number, or one a
            coordinate.  Or ``(dim, dim)``: how much coordinate i may vary per unit of
            coordinate j, the others held; best where their scales differ.
        noise
            How far a step may end from its mean, in each coordinate.
        resets
            Cells in which an episode may begin, where any step may end one; ``"end"``
            where an end is for good.
        one_law
            Whether steps from a cell have one law, wherever in it one stands, so that
            counting may narrow what is possible.

        Raises
        ------
        InvalidInputError
            If a point within a cell is found to move otherwise than the constant says.
        """
        rates = read_rates(lipschitz, self.low.size)
        spread = per_axis("noise", noise, self.low.size)
        within = reach(rates, 0.5 * self.widths) + spread
        begins = self._begins(resets)
        rng = np.random.default_rng(0)
        row, column = [], []
        for cell, action in np.ndindex(self.n_cells, len(self.choices)):
            after = self._simulated(simulate, self.middle(cell), action)
            self._try_rates(simulate, rates, cell, action, after, rng)
            for target in {*self._box(after - within, after + within), *begins}:
                row.append(cell * len(self.choices) + action)
                column.append(target)
        far = "distances" if rates.ndim == 2 else "distance"
        return Abstraction(
            support=self._mask(row, column, begins),
            models=None,
            one_law=one_law,
            assumes=(
                f"the next point varies by at most {named(rates)} times the {far} "
                f"within a cell, and steps end at most {named(spread)} from their mean"
                + self._beyond()
                + of_law(one_law=one_law)
                + of_ends(begins, self.n_cells, told=False)
            ),
        )

    def _try_rates(
        self,
        simulate: Step,
        rates: FloatArray,
        cell: int,
        action: int,
        after: FloatArray,
        rng: np.random.Generator,
    ) -> None:
        """Hold a corner of a cell, and a point within, to the constant.

        Of whole numbers there are no others in a cell than its own.
        """
        middle = self.middle(cell)
        whole = np.issubdtype(self.env.observation_space.dtype, np.integer)
        corner = rng.integers(0, 2, self.low.size) - 0.5
        for part in (_INSIDE * corner, rng.random(self.low.size) - 0.5):
            point = middle + part * self.widths
            if whole:
                point = np.rint(point)
                if self.cell(point) != cell:
                    continue
            away = np.abs(point - middle)
            most = reach(rates, away)
            moved = np.abs(self._simulated(simulate, point, action) - after)
            over = moved > most * _MORE + _NEVER
            if over.any():
                k = int(np.argmax(over))
                raise refusal(
                    "lipschitz",
                    f"coordinate {k} of the next point to vary by at most "
                    f"{most[k]:.6g}, {shown(away)} from the middle",
                    float(moved[k]),
                    f"{shown(point)} in cell {cell}, action {action}",
                )

    def check(self, found: Abstraction, *, steps: int = 1_000, seed: int = 0) -> None:
        """Live some steps by random actions, and hold each to what was found possible.

        For simulators: the environment itself is reset and stepped.

        Parameters
        ----------
        found
            What :meth:`from_lipschitz` or :meth:`from_samples` returned.
        steps
            How many.
        seed
            Of the environment and of the actions.

        Raises
        ------
        AssumptionError
            At the first step that was held impossible, with the place.
        """
        rng = np.random.default_rng(seed)
        point, _ = self.env.reset(seed=seed)
        for t in range(read_count("steps", steps)):
            action = int(rng.integers(len(self.choices)))
            cell = self.cell(point)
            answer = self.env.step(self.choices[action])
            after, ended, cut = answer[0], bool(answer[-3]), bool(answer[-2])
            target = self.cell(after)
            row = cell * len(self.choices) + action
            possible = found.support.indices[
                found.support.indptr[row] : found.support.indptr[row + 1]
            ]
            if not ended and target not in possible:
                raise AssumptionError(
                    f"step {t}: expected a cell that is possible after action {action} "
                    f"in cell {cell}, found cell {target}: {shown(point)} led to "
                    f"{shown(after)}"
                )
            point = self.env.reset()[0] if ended or cut else after

    def from_samples(
        self,
        simulate: Step,
        *,
        samples: int,
        parts: int = 2,
        delta: float = 0.01,
        seed: int | None = 0,
        resets: Sequence[int] | Literal["end"] = (),
        ended: Callable[[FloatArray], bool] | None = None,
        one_law: bool = False,
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
            Cells in which an episode may begin, where a step may end one; ``"end"``
            where an end is for good.
        ended
            Whether an episode ends at a point; left out, any step may end one.
        one_law
            Whether steps from a cell have one law, wherever in it one stands, so that
            counting may narrow what is possible.
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
        rows, columns, counts = counted(found, ends, begins, anywhere=anywhere)
        families = self.n_cells * (self.n_cells + 1) * n_actions * len(corners)
        radius = float(np.sqrt(np.log(2.0 * families / delta) / (2.0 * draws)))
        lower = np.clip(counts[0].min(axis=1) / draws - radius, 0.0, 1.0)
        upper = np.clip(counts[1].max(axis=1) / draws + radius, 0.0, 1.0)
        shares = counts[2].mean(axis=1) / draws
        if anywhere:  # one end a part, for a guess that holds all that is possible
            lower[:] = 0.0
            upper[np.isin(columns, begins)] = 1.0
            shares *= draws / (draws + 1.0)
            shares[np.isin(columns, begins)] += 1.0 / ((draws + 1.0) * len(begins))
        if begins == (self.n_cells,):
            rest = np.ones(n_actions)
            lower, upper = np.append(lower, rest), np.append(upper, rest)
        nominal = self._nominal(rows, columns, shares, begins)
        return Abstraction(
            support=self._mask(rows, columns, begins),
            models=Interval(nominal, lower=lower, upper=upper),
            one_law=one_law,
            assumes=(
                f"the plant is the simulator, its law is one law within each of "
                f"{len(corners)} parts of a cell, every successor was drawn at least "
                f"once, and no frequency is off by more than {radius:.3g} (probability "
                f"{1.0 - delta:g})"
                + self._beyond()
                + of_law(one_law=one_law)
                + of_ends(begins, self.n_cells, told=ended is not None)
            ),
        )

    def _begins(self, resets: Sequence[int] | Literal["end"]) -> tuple[int, ...]:
        """Return the cells in which an episode may begin, or the end behind them."""
        if isinstance(resets, str):
            if resets != "end":
                raise refusal("resets", "cells, or 'end'", repr(resets))
            return (self.n_cells,)
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

    def _mask(
        self, rows: Sequence[int], columns: Sequence[int], begins: tuple[int, ...]
    ) -> sp.csr_array:
        return self._table(rows, columns, np.ones(len(rows)), begins)

    def _table(
        self,
        rows: Sequence[int],
        columns: Sequence[int],
        values: FloatArray,
        begins: tuple[int, ...],
    ) -> sp.csr_array:
        """Return a table ``(S · A, S)``; an end that is for good stays where it is."""
        n, n_actions = self.n_cells, len(self.choices)
        row, column = list(rows), list(columns)
        if begins == (n,):
            row += [n * n_actions + action for action in range(n_actions)]
            column += [n] * n_actions
            values = np.append(values, np.ones(n_actions))
            n += 1
        return sp.csr_array(
            sp.coo_array((values, (row, column)), shape=(n * n_actions, n))
        )

    def _nominal(
        self,
        rows: Sequence[int],
        columns: Sequence[int],
        shares: FloatArray,
        begins: tuple[int, ...],
    ) -> CMDP:
        """Return a model that carries the rows; nothing is earned or paid in it."""
        table = self._table(rows, columns, shares, begins)
        nothing = np.zeros((table.shape[1], len(self.choices)))
        return CMDP(table, nothing, nothing, discount=0.0, budget=0.0)
