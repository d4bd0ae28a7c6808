"""What to do where nothing is left to explore: earn, within the promise.

First the budget is forgotten.  If the best policy that only plays affordable pairs is
expected to keep the promise from every state it may be in, it is the plan.

Otherwise the budget binds, and what is left of the promise decides.  With a moderate
number of states the plan is found by dynamic programming over states and levels of the
promise, which the ledger's own rules move (:func:`escapade.kernels.earning.earn`).
Several promises are planned as one, their sum weighted by the budgets' prices, which
the ledger's rules move as they move each; that one of them alone may run out, the plan
does not foresee.

Otherwise it is the best stationary policy of the likeliest model, which mixes actions;
the ledger sends the agent home when the promise runs low.

Either way the plan rests on means.  That it is only carried out as far as the ledger
allows is what makes it safe.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from escapade.agent.planners import Planner, plan_with
from escapade.agent.safety import Safety
from escapade.kernels.earning import earn, level_at
from escapade.kernels.earning_together import Outlook, earn_together
from escapade.kernels.ledger import Ledger
from escapade.knowledge.belief import Belief
from escapade.model.cmdp import CMDP
from escapade.model.memory_policy import MemoryPolicy
from escapade.model.policy import Policy
from escapade.planning.column_generation import ColumnGeneration
from escapade.planning.dynamic_programming import chain_values, policy_iteration
from escapade.typing import BoolArray, FloatArray, IntArray
from escapade.uncertainty.base import UncertaintySet
from escapade.uncertainty.interval import Interval
from escapade.uncertainty.rows import Rows, gather_rows

__all__ = ["Earner", "Earning"]

_LEVELS = 50
_MOST_NODES = 400_000
_MOST_TOGETHER = 60_000
_LEVELS_EACH = (5, 12)
"""Levels of each of several promises, at least and at most."""

_SHARES = (0.0625, 0.25, 0.5, 0.75)
"""Shares in which two pairs are drawn from at first; the best is then refined."""

_PRECISION = 0.01
_ROUNDS = 60
_BETWEEN = 9
_ENOUGH = 5
"""Equal samples after which a cost is taken to be always the same, in plans."""

_DOUBT = 0.5
"""What a cost that varies is thought to add, as a share of its bound, to one sample."""

_PATIENCE = 0.6
"""How much slower rewards lose weight here than they do by the discount.

A promise that is not used grows as fast as rewards lose weight, so when to use it makes
no difference to the discounted sum.  To what is earned over a whole lifetime it does:
with a little patience the promise is saved up first, and its growth is spent for ever.
"""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Earning:
    """A plan for earning.

    Attributes
    ----------
    weights
        ``[pairs]``; the stationary policy that is certified.
    levels
        ``(G,)`` levels of the promise, or ``None`` where it does not matter.
    pairs
        ``[S, G]``; the pair to take at each level.
    share
        ``[K]``; what each promise counts in a level; ``None`` where that is channel 0.
    grid
        ``(K, G)`` levels of each of several promises, or ``None``.
    drawn, part
        ``[S, G**K, 2]`` and ``[S, G**K]``; the two pairs to draw from at each
        combination of them, and the share of the first.
    binds
        Whether the budget keeps the plan from being better.
    """

    weights: FloatArray
    levels: FloatArray | None = None
    pairs: IntArray | None = None
    share: FloatArray | None = None
    grid: FloatArray | None = None
    drawn: IntArray | None = None
    part: FloatArray | None = None
    binds: bool = False

    @property
    def by_level(self) -> bool:
        """Whether what to do depends on what is left of the promises."""
        return self.levels is not None or self.grid is not None


class Earner:
    """Plans earning again and again, each time from where it last ended.

    ``planner`` is the one that was named; ``sweeps`` caps the sweeps, policies and
    linear programs of one plan.
    """

    def __init__(self, planner: Planner = "auto", *, sweeps: int | None = None) -> None:
        self._planner = planner
        self._most = 1_000 if sweeps is None else sweeps
        self._pairs: IntArray | None = None
        self._value: FloatArray | None = None
        self._by_level: FloatArray | None = None

    def state(self) -> dict[str, np.ndarray]:
        """Return where the next plan will begin, as copies of arrays by name."""
        kept = {"pairs": self._pairs, "value": self._value, "by_level": self._by_level}
        return {n: np.array(array) for n, array in kept.items() if array is not None}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Go back to what :meth:`state` returned."""
        self._pairs = arrays.get("pairs")
        self._value = arrays.get("value")
        self._by_level = arrays.get("by_level")

    def plan(
        self,
        belief: Belief,
        safety: Safety,
        ledger: Ledger,
        *,
        playable: BoolArray,
        reserve: FloatArray,
    ) -> Earning:
        """Return the plan for the likeliest model."""
        model = belief.likeliest()
        usable = playable.copy()
        usable[safety.pairs] = True
        if self._planner != "auto":
            return self._planned(belief, model, usable, safety)
        worst = -(model.reward_max + 1.0) / (1.0 - model.discount)
        best = policy_iteration(
            model,
            np.where(usable, model.reward, worst),
            pairs=self._pairs,
            value=self._value,
            max_iterations=self._most,
        )
        self._pairs, self._value = best.pairs, best.value
        free = np.zeros(model.n_pairs)
        free[best.pairs] = 1.0
        if self._keeps_promise(model, best.pairs, safety):
            return Earning(weights=free)
        weights, price = self._stationary(model, usable, safety)
        n_levels = _levels_of_each(model)
        if n_levels > 0:
            grid, drawn, part = self._together(
                model, belief, ledger, n_levels, usable=usable, reserve=reserve
            )
            return Earning(
                weights=weights, grid=grid, drawn=drawn, part=part, binds=True
            )
        if model.n_states * _LEVELS > _MOST_NODES:
            return Earning(weights=weights, binds=True)
        share = _shares(price, safety.cap)
        levels, pairs = self._over_levels(
            model, belief, ledger, share, playable=usable, reserve=reserve
        )
        return Earning(
            weights=weights, levels=levels, pairs=pairs, share=share, binds=True
        )

    def _planned(
        self, belief: Belief, model: CMDP, usable: BoolArray, safety: Safety
    ) -> Earning:
        """Return the plan by the planner that was named; else the fallback."""
        kept = CMDP.from_pairs(**restricted(model, usable, safety))
        pairs = np.flatnonzero(usable)
        found = plan_with(self._planner, kept, intervals_of(belief, pairs))
        weights = np.zeros(model.n_pairs)
        if isinstance(found.policy, Policy):
            weights[usable] = found.policy.pair_weights(kept)
            return Earning(weights=weights, binds=True)
        weights[safety.pairs] = 1.0
        if not isinstance(found.policy, MemoryPolicy):
            return Earning(weights=weights, binds=True)
        levels, chosen = _levels_of(found.policy, kept, pairs, safety)
        return Earning(weights=weights, levels=levels, pairs=chosen, binds=True)

    @staticmethod
    def _keeps_promise(model: CMDP, pairs: IntArray, safety: Safety) -> bool:
        """Tell whether the policy is expected to cost no more than is ever promised."""
        start = np.zeros(model.n_states)
        for k, cost in enumerate(model.cost):
            gain = cost[pairs]
            if not gain.any():
                continue
            costs = chain_values(model, pairs, gain, start, 1e-6 * float(gain.max()))
            if (costs[safety.promisable] > safety.cap[k]).any():
                return False
        return True

    def _stationary(
        self, model: CMDP, usable: BoolArray, safety: Safety
    ) -> tuple[FloatArray, FloatArray]:
        """Return the best stationary policy within the budgets, and their prices."""
        kept = CMDP.from_pairs(**restricted(model, usable, safety))
        found = ColumnGeneration(precision=1e-6, max_iterations=self._most).solve(kept)
        weights = np.zeros(model.n_pairs)
        if found.policy is None:
            weights[safety.pairs] = 1.0
        else:
            weights[usable] = found.policy.pair_weights(kept)  # type: ignore[union-attr]
        return weights, found.multipliers

    def _over_levels(
        self,
        model: CMDP,
        belief: Belief,
        ledger: Ledger,
        share: FloatArray,
        *,
        playable: BoolArray,
        reserve: FloatArray,
    ) -> tuple[FloatArray, IntArray]:
        """Return levels of the promise and the pair to take at each of them."""
        shape = (model.n_states, _LEVELS)
        if self._by_level is None:
            self._by_level = np.zeros(shape)
        pairs = np.zeros(shape, dtype=np.int64)
        pairs[:] = ledger.fallback[:, np.newaxis]
        cost, each_steady = _foreseen(belief)
        steady = np.logical_and.reduce(each_steady[share > 0.0], axis=0)
        cap = float(share @ ledger.cap)
        earn(
            _as_one(ledger, share),
            share[np.newaxis] @ reserve,
            playable,
            belief.knowledge.row_ptr,
            belief.knowledge.successor,
            belief.nominal,
            model.reward,
            share @ cost,
            steady,
            1.0 - _PATIENCE * (1.0 - model.discount),
            _PRECISION * model.reward_max,
            min(_ROUNDS, self._most),
            _BETWEEN,
            self._by_level,
            np.zeros(shape),
            pairs,
        )
        levels = np.array([level_at(g, _LEVELS, cap) for g in range(_LEVELS)])
        return levels, pairs

    def _together(
        self,
        model: CMDP,
        belief: Belief,
        ledger: Ledger,
        n_levels: int,
        *,
        usable: BoolArray,
        reserve: FloatArray,
    ) -> tuple[FloatArray, IntArray, FloatArray]:
        """Return levels of each promise, the pairs to draw from, and their shares."""
        home = np.where(np.isfinite(ledger.w), ledger.w, np.inf).min(axis=1)
        rising = [level_at(g, n_levels, 1.0) for g in range(n_levels)]
        grid = home[:, np.newaxis] + np.outer(ledger.cap - home, rising)
        shape = (model.n_states, n_levels**model.n_costs)
        if self._by_level is None:
            self._by_level = np.zeros(shape)
        drawn = np.zeros((*shape, 2), dtype=np.int64)
        drawn[:] = ledger.fallback[:, np.newaxis, np.newaxis]
        part = np.ones(shape)
        cost, steady = _foreseen(belief)
        earn_together(
            ledger,
            Outlook(
                grid=grid,
                row_ptr=belief.knowledge.row_ptr,
                successor=belief.knowledge.successor,
                probability=belief.nominal,
                reward=model.reward,
                cost=cost,
                steady=steady,
                gamma=1.0 - _PATIENCE * (1.0 - model.discount),
                reserve=reserve,
                usable=usable,
                shares=np.array(_SHARES),
            ),
            _PRECISION * model.reward_max,
            min(_ROUNDS, self._most),
            _BETWEEN,
            self._by_level,
            drawn,
            part,
        )
        return grid, drawn, part


def _levels_of_each(model: CMDP) -> int:
    """Return how many levels each of several promises is given; 0 for none."""
    if model.n_costs == 1:
        return 0
    least, most = _LEVELS_EACH
    fits = int((_MOST_TOGETHER / model.n_states) ** (1.0 / model.n_costs))
    return min(fits, most) if fits >= least else 0


def _shares(price: FloatArray, cap: FloatArray) -> FloatArray:
    """Return what each promise counts: by its price; if none has one, by its cap."""
    share = np.zeros(cap.size)
    if cap.size == 1:
        share[0] = 1.0
    elif price.size == cap.size and float(price @ cap) > 0.0:
        share[:] = price / float(price @ cap)
    else:
        np.divide(1.0, cap, out=share, where=cap > 0.0)
    return share


def _as_one(ledger: Ledger, share: FloatArray) -> Ledger:
    """Return the ledger of the weighted sum of all promises."""

    def total(each: FloatArray) -> FloatArray:
        counted = share > 0.0  # what may be infinite elsewhere does not count
        return share[np.newaxis, counted] @ each[counted]

    return ledger._replace(
        channels=(0,),
        w=total(ledger.w),
        q=total(ledger.q),
        ahead=total(ledger.ahead),
        reach=total(ledger.reach),
        cap=total(ledger.cap),
        cost_max=total(ledger.cost_max),
    )


def _foreseen(belief: Belief) -> tuple[FloatArray, BoolArray]:
    """Return the costs to plan with, and which never vary, ``[K, pairs]`` both.

    Costs that vary are taken to be two standard errors above their mean, and more where
    little was seen: a pair must not look cheap for want of having been tried.
    """
    evidence, knowledge = belief.evidence, belief.knowledge
    n = evidence.cost_count
    most, bound = knowledge.cost_max[:, np.newaxis], belief.cost_upper
    variance = evidence.cost_variance()
    steady = (n >= _ENOUGH) & (variance == 0.0)
    steady |= knowledge.exact_costs | (bound == belief.confidence.cost_lower)
    error = 2.0 * np.sqrt(np.nan_to_num(variance) / np.maximum(n, 1))
    foreseen = belief.mean_cost() + error + _DOUBT * most / (n + 1)
    return np.where(steady, belief.mean_cost(), np.minimum(foreseen, bound)), steady


def intervals_of(belief: Belief, pairs: IntArray) -> UncertaintySet:
    """Return what is possible after some pairs, as intervals."""
    knowledge, confidence = belief.knowledge, belief.confidence
    pointers, entries = gather_rows(knowledge.row_ptr, pairs)
    nominal = belief.nominal[entries]
    rows = Rows(
        n_states=knowledge.n_states,
        stored_ptr=pointers,
        stored=knowledge.successor[entries],
        stored_nominal=nominal,
        pair_state=knowledge.pairs.pair_state[pairs],
        pair_action=knowledge.pairs.pair_action[pairs],
    )
    return Interval.around(
        rows,
        np.minimum(confidence.lower[entries], nominal),
        np.maximum(confidence.upper[entries], nominal),
    )


def _levels_of(
    policy: MemoryPolicy, kept: CMDP, pairs: IntArray, safety: Safety
) -> tuple[FloatArray, IntArray]:
    """Return a policy that remembers its promise as levels and the pair at each.

    Where a node tosses a coin, the likelier pair stands for both.
    """
    levels = np.asarray(float(safety.cap[0]) / (_LEVELS - 1) * np.arange(_LEVELS))
    number = np.full((kept.n_states, kept.n_actions), -1, dtype=np.int64)
    number[kept.pair_state, kept.pair_action] = pairs
    action = policy.choice.probabilities.argmax(axis=1)
    chosen = np.repeat(safety.pairs[:, np.newaxis], _LEVELS, axis=1)
    for state in range(kept.n_states):
        nodes = np.flatnonzero(policy.node_state == state)
        if nodes.size == 0:
            continue
        nodes = nodes[np.argsort(policy.memory[nodes, 0], kind="stable")]
        promises = policy.memory[nodes, 0]
        place = np.searchsorted(promises, levels, side="right") - 1
        inside = place >= 0
        chosen[state, inside] = number[state, action[nodes[place[inside]]]]
    return levels, chosen


def restricted(model: CMDP, usable: BoolArray, safety: Safety) -> dict[str, Any]:
    """Return the arrays of the model with the usable pairs alone."""
    entries = np.repeat(usable, np.diff(model.row_ptr))
    lengths = np.diff(model.row_ptr)[usable]
    counts = np.add.reduceat(usable, model.state_ptr[:-1], dtype=np.int64)
    return {
        "state_ptr": np.concatenate([[0], np.cumsum(counts)]),
        "pair_action": model.pair_action[usable],
        "row_ptr": np.concatenate([[0], np.cumsum(lengths)]),
        "successor": model.successor[entries],
        "probability": model.probability[entries],
        "reward": model.reward[usable],
        "cost": model.cost[:, usable],
        "n_actions": model.n_actions,
        "discount": model.discount,
        "budget": safety.cap,
        "start": model.start,
        "reward_max": model.reward_max,
        "cost_max": model.cost_max,
    }
