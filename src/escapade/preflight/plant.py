"""A plant as preflight sees it: the kernels that are possible, and the worst costs.

For knowledge these are the belief at birth and the budget less what δ costs, the very
ones that an agent of :mod:`escapade.agent` begins with; for a model they are the model
alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import scipy.sparse.csgraph as csgraph

from escapade.errors import check_kind
from escapade.knowledge.belief import Belief
from escapade.knowledge.birth import at_birth
from escapade.knowledge.knowledge import Knowledge
from escapade.model.cmdp import CMDP
from escapade.planning.fallback import Fallback, fallback
from escapade.typing import BoolArray, FloatArray
from escapade.uncertainty.base import UncertaintySet
from escapade.uncertainty.l1_ball import L1Ball

__all__ = ["LeastBudget", "Plant", "least_budget"]

_PRECISION = 1e-9
_SEARCH = 1e-6
"""Relative width to which the least budget is narrowed."""
_ROUNDS = 60


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Plant:
    """What is possible, at birth.

    Attributes
    ----------
    model
        The likeliest model, or the model itself.
    sets
        The kernels that are possible.
    cost
        ``[K, pairs]`` upper bounds on the mean costs.
    cap
        ``(K,)``; the most that would be promised.
    kept
        ``(K,)``; which share of the budget that is.
    belief
        What the agent would hold possible; ``None`` for a model.
    """

    model: CMDP
    sets: UncertaintySet
    cost: FloatArray
    cap: FloatArray
    kept: float
    belief: Belief | None

    @classmethod
    def of(cls, problem: Knowledge | CMDP, *, delta: float, margin: float) -> Plant:
        """Return the plant that knowledge or a model describes."""
        if isinstance(problem, CMDP):
            return cls(
                model=problem,
                sets=L1Ball(problem, radius=0.0),
                cost=problem.cost,
                cap=problem.budget,
                kept=1.0,
                belief=None,
            )
        check_kind("problem", problem, Knowledge, CMDP)
        belief, cap = at_birth(problem, delta=delta, margin=margin)
        sure = belief.failure_probability == 0.0
        return cls(
            model=belief.likeliest(),
            sets=belief.sets,
            cost=belief.cost_upper,
            cap=cap,
            kept=1.0 if sure else 1.0 - margin,
            belief=belief,
        )

    @property
    def start(self) -> BoolArray:
        """Mask ``[S]`` of the states in which life may begin."""
        return self.model.start > 0.0

    @property
    def most(self) -> FloatArray:
        """``(K,)``; no policy can cost more than these."""
        largest: FloatArray = self.cost.max(axis=1) / (1.0 - self.model.discount)
        return largest

    def fallback(self, cap: FloatArray | None = None) -> Fallback:
        """Return the fallback that keeps the cap, or another one."""
        return fallback(
            self.model,
            self.sets,
            cost=self.cost,
            budget=self.cap if cap is None else cap,
            precision=_PRECISION,
        )

    def reached(self, found: Fallback | None = None) -> BoolArray:
        """Return the states that can be met from the start, ``[S]``.

        By any actions, or by those of a fallback policy; under any possible kernel.
        """
        model = self.model
        if found is None:
            return self.reached_by(np.ones(model.n_pairs, dtype=np.bool_))
        taken = found.policy.probabilities[model.pair_state, model.pair_action]
        return self.reached_by(taken > 0.0)

    def reached_by(self, pairs: BoolArray) -> BoolArray:
        """Return the states that can be met from the start by some pairs, ``[S]``."""
        model, sets = self.model, self.sets
        entries = sets.reachable & np.repeat(pairs, np.diff(sets.row_ptr))
        source = np.repeat(model.pair_state, np.diff(sets.row_ptr))[entries]
        target = sets.successor[entries]
        n = model.n_states  # one more node leads to every start
        starts = np.flatnonzero(self.start)
        graph = sp.csr_array(
            (
                np.ones(source.size + starts.size, dtype=np.int8),
                (
                    np.concatenate([source, np.full(starts.size, n)]),
                    np.concatenate([target, starts]),
                ),
            ),
            shape=(n + 1, n + 1),
        )
        order = csgraph.breadth_first_order(graph, n, return_predecessors=False)
        mask = np.zeros(n + 1, dtype=np.bool_)
        mask[order] = True
        return mask[:n]


@dataclass(frozen=True, slots=True, kw_only=True)
class LeastBudget:
    """The least budgets found that can be promised from the start, and a hair less.

    Attributes
    ----------
    sufficient
        ``(K,)``; these can be promised.
    too_little
        ``(K,)``; these, which are less by a hair, cannot, or not by any fallback that
        was tried.
    """

    sufficient: FloatArray
    too_little: FloatArray


def least_budget(plant: Plant, found: Fallback) -> LeastBudget:
    """Return the least budgets that could be promised from the start.

    ``found`` is the fallback at the plant's own cap.  With one budget the answer is the
    least one.  With several it is the least common multiple of them for which a
    fallback was found, or, where no multiple will do, the first on the way
    from them to what nobody can exceed; another policy may need less.
    """
    covered = found.covers(plant.model.start)
    line: Callable[[float], FloatArray]
    if plant.cap.size == 1:
        low, high = _between(plant, found, covered=covered)
        line = np.atleast_1d
    else:
        low, high, line = _direction(plant, covered=covered)
        if covered and plant.fallback(line(low)).covers(plant.model.start):
            high = low  # it need not cost anything
    for _ in range(_ROUNDS):
        if high - low <= _SEARCH * max(high, 1e-300):
            break
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        tried = plant.fallback(line(middle))
        if tried.covers(plant.model.start):
            high = middle
            if plant.cap.size == 1:
                high = min(high, _needed(plant, tried))
        else:
            low = middle
    scale = 1.0 / plant.kept
    return LeastBudget(sufficient=line(high) * scale, too_little=line(low) * scale)


def _needed(plant: Plant, found: Fallback) -> float:
    """Return the largest cost-to-go of a fallback on what it can meet: a budget for it.

    For one channel, and a start that it covers.
    """
    inside = plant.reached(found) & found.promisable
    return float(found.cost_to_go[0, inside].max())


def _between(plant: Plant, found: Fallback, *, covered: bool) -> tuple[float, float]:
    """Return budgets of one channel below and above the least one."""
    cost = found.unrestricted_cost[0]
    low = float(np.nextafter(cost[plant.start].max(), -np.inf))
    if covered:
        return max(low, -1.0), min(_needed(plant, found), float(plant.cap[0]))
    free = plant.fallback(plant.most * (1.0 + 1e-9))
    return max(low, float(plant.cap[0])), _needed(plant, free)


def _direction(
    plant: Plant, *, covered: bool
) -> tuple[float, float, Callable[[float], FloatArray]]:
    """Return along which line several budgets are varied, and both its ends."""
    cap, most = plant.cap, plant.most * (1.0 + 1e-9)

    def multiple(at: float) -> FloatArray:
        grown: FloatArray = np.minimum(at * cap, np.maximum(most, cap))
        return grown

    if covered:
        return 0.0, 1.0, multiple
    ratio = np.divide(most, cap, out=np.ones_like(cap), where=cap > 0.0)
    top = max(float(ratio.max()), 1.0)
    if plant.fallback(multiple(top)).covers(plant.model.start):
        return 1.0, top, multiple

    def onwards(at: float) -> FloatArray:
        way: FloatArray = cap + at * np.maximum(most - cap, 0.0)
        return way

    return 0.0, 1.0, onwards
