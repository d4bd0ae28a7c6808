"""The worst-case cost of escape from unknown states, through a lifetime.

``t(s)`` is the least expected discounted time that a policy spends in unknown states
before a known one is reached, under the worst kernel that is possible; it is what the
paper's Worst-case Escape CMDP is to minimise (errata E8, E12).  At ``c_max`` a step,
``Ĉ = c_max t`` is the cost of that escape.  With bounds on costs in place of ``c_max``
the cost of the same policy is worked out in the same way.

Both are supersolutions, found by sweeps from above, so a sweep may be the last at any
time; and as the sets shrink and more becomes known, those of the last plan stay ones.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from escapade.agent.paper.settings import EscapeCost
from escapade.agent.safety import Safety
from escapade.knowledge.belief import Belief
from escapade.typing import BoolArray, FloatArray

__all__ = ["Escape"]

_UP = 1.0 + 1e-11
_SWEEPS = 400
_PRECISION = 1e-9


class Escape:
    """The escape policy and what it costs at worst.

    Attributes
    ----------
    time
        ``[S]``; discounted steps until a known state is reached, 0 in known states.
    cost
        ``[K, S]``; Ĉ.
    weights
        ``[pairs]``; the policy.
    """

    def __init__(self, belief: Belief, charge: EscapeCost) -> None:
        knowledge = belief.knowledge
        self._charge = charge
        self._longest = 1.0 / (1.0 - knowledge.discount)
        self.time: FloatArray = np.full(knowledge.n_states, self._longest)
        self.cost: FloatArray = knowledge.cost_max[:, np.newaxis] * self.time
        self.weights: FloatArray = np.zeros(knowledge.n_pairs)
        self.weights[knowledge.pairs.state_ptr[:-1]] = 1.0
        self._chosen: FloatArray | None = None

    def follow(self, weights: FloatArray) -> None:
        """Take another policy ``[pairs]`` for the escape; it is evaluated afresh."""
        self._chosen = weights

    def refresh(self, belief: Belief, safety: Safety, known: BoolArray) -> None:
        """Bring time, cost and policy up to date."""
        if self._chosen is not None:
            self.time[:] = self._longest
        self.time[known] = 0.0
        usable = _usable(belief, safety)
        for _ in range(_SWEEPS):
            spent = 1.0 + belief.knowledge.discount * belief.ahead(self.time)
            offered = self._offered(belief, spent, usable) * _UP
            offered[known] = 0.0
            gain = self.time - offered
            self.time = np.minimum(self.time, offered)
            if not (gain > _PRECISION * (1.0 + self.time)).any():
                break
        if self._chosen is not None:
            self.weights = self._chosen
        else:
            self.weights = self._fastest(belief, usable)
        self.cost = belief.knowledge.cost_max[:, np.newaxis] * self.time
        if self._charge != "worst":
            self._charge_less(belief, known)

    def _offered(
        self, belief: Belief, spent: FloatArray, usable: BoolArray
    ) -> FloatArray:
        starts = belief.knowledge.pairs.state_ptr[:-1]
        if self._chosen is not None:
            return np.add.reduceat(self._chosen * spent, starts)
        return np.minimum.reduceat(np.where(usable, spent, np.inf), starts)

    def _fastest(self, belief: Belief, usable: BoolArray) -> FloatArray:
        layout = belief.knowledge.pairs
        spent = 1.0 + belief.knowledge.discount * belief.ahead(self.time)
        spent = np.where(usable, spent, np.inf)
        best = np.minimum.reduceat(spent, layout.state_ptr[:-1])
        numbers = np.arange(spent.size)
        hits = np.where(spent == best[layout.pair_state], numbers, spent.size)
        weights = np.zeros(spent.size)
        weights[np.minimum.reduceat(hits, layout.state_ptr[:-1])] = 1.0
        return weights

    def _charge_less(self, belief: Belief, known: BoolArray) -> None:
        """Evaluate the policy with less than ``c_max`` a step, from above."""
        starts = belief.knowledge.pairs.state_ptr[:-1]
        gamma = belief.knowledge.discount
        charges = self.charges(belief)
        for k, charge in enumerate(charges):
            value = self.cost[k]
            for _ in range(_SWEEPS):
                q = charge + gamma * belief.ahead(value)
                offered = np.add.reduceat(self.weights * q, starts) * _UP
                offered[known] = 0.0
                gain = value - offered
                value = np.minimum(value, offered)
                if not (gain > _PRECISION * (1.0 + value)).any():
                    break
            self.cost[k] = value

    # -- what wandering is asked -------------------------------------------------------

    def charges(self, belief: Belief) -> FloatArray:
        """Return what a step with each pair is charged, ``[K, pairs]``."""
        most = np.repeat(
            belief.knowledge.cost_max[:, np.newaxis], belief.knowledge.n_pairs, axis=1
        )
        if self._charge == "worst":
            return most
        if self._charge == "confidence":
            return np.array(belief.cost_upper)
        count = np.maximum(belief.evidence.cost_count, 1)
        # the largest variance of a cost in [0, c_max] is c_max² / 4
        error = most / (2.0 * np.sqrt(count))
        mean = np.nan_to_num(belief.evidence.mean_cost(), nan=np.inf)
        return np.minimum(mean + error, most)

    def ahead(self, belief: Belief) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return what the three tests of wandering look at.

        The left sides of the corrected one and of the one in expectation, both
        ``[K, pairs]``, and the worst mean of Ĉ over a state's pairs, ``[K, S]``.
        """
        knowledge = belief.knowledge
        charges = self.charges(belief)
        worst, mean = np.empty_like(charges), np.empty_like(charges)
        largest = np.empty_like(self.cost)
        for k, cost in enumerate(self.cost):
            entries = np.where(belief.reachable, cost[knowledge.successor], 0.0)
            most = np.maximum.reduceat(entries, knowledge.row_ptr[:-1])
            expected = belief.ahead(cost)
            worst[k] = (charges[k] + knowledge.discount * most) * _UP
            mean[k] = charges[k] + knowledge.discount * expected
            largest[k] = np.maximum.reduceat(expected, knowledge.pairs.state_ptr[:-1])
        return worst, mean, largest

    # -- files -------------------------------------------------------------------------

    def state(self) -> dict[str, np.ndarray]:
        """Return time, cost and policy, as copies of arrays by name."""
        kept = {"time": self.time, "cost": self.cost, "weights": self.weights}
        if self._chosen is not None:
            kept["chosen"] = self._chosen
        return {name: np.array(array) for name, array in kept.items()}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Go back to what :meth:`state` returned."""
        self.time = np.array(arrays["time"])
        self.cost = np.array(arrays["cost"])
        self.weights = np.array(arrays["weights"])
        chosen = arrays.get("chosen")
        self._chosen = None if chosen is None else np.array(chosen)


def _usable(belief: Belief, safety: Safety) -> BoolArray:
    """Return the pairs that the ledger may let pass; all, where it lets none pass."""
    layout = belief.knowledge.pairs
    some = np.logical_or.reduceat(safety.allowed, layout.state_ptr[:-1])
    usable: BoolArray = safety.allowed | ~some[layout.pair_state]
    return usable
