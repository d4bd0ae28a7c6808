"""What the agent could do at birth, and what no evidence could ever make possible."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import scipy.sparse.csgraph as csgraph

from escapade.planning.fallback import Fallback
from escapade.planning.robust_operator import RobustOperator, robust_control
from escapade.preflight.plant import Plant
from escapade.typing import BoolArray, FloatArray

__all__ = ["Outlook", "beyond_help", "dead_ends", "kept_back", "outlook"]

_MOST_KEPT = 0.25
"""Share of what the budget leaves above home that is kept back at most."""


def kept_back(share: float, cost_max: FloatArray, room: FloatArray) -> FloatArray:
    """Return what actions other than the fallback's leave of the promise, ``(K,)``.

    ``share`` is the setting ``reserve``; ``room`` is what the cap leaves above the
    least worst-case cost of any state.
    """
    kept: FloatArray = np.minimum(share * cost_max, _MOST_KEPT * room)
    return kept


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outlook:
    """What a full promise pays for at birth.

    Attributes
    ----------
    open
        ``[pairs]``; whose worst cost, with the fallback after it and what is kept
        back, is within every cap, and which stay within the promisable states whatever
        happens.
    untried
        ``[pairs]``; what a single try may cost is over a cap, with what is kept back.
        A pair's cost is learned by trying it, so no evidence will open these.
    cost
        ``(K, pairs)``; worst cost of one try with the fallback after it.
    home, kept
        ``(K,)``; the least worst-case cost of any state, and what is kept back.
    """

    open: BoolArray
    untried: BoolArray
    cost: FloatArray
    home: FloatArray
    kept: FloatArray

    def opening_caps(self, cost_max: FloatArray, share: float) -> FloatArray:
        """Return the caps at which pairs would open, ``(K, pairs)``.

        At the worst costs of now: with a larger budget more may be safe, and pairs open
        sooner.
        """
        by_share = self.cost + share * cost_max[:, np.newaxis]
        home = self.home[:, np.newaxis]
        by_room = (self.cost - _MOST_KEPT * home) / (1.0 - _MOST_KEPT)
        caps: FloatArray = np.minimum(by_share, by_room)
        return caps


def outlook(plant: Plant, found: Fallback, *, reserve: float) -> Outlook:
    """Return what an agent that keeps back ``reserve`` can do at birth."""
    cap, model = plant.cap, plant.model
    w = np.where(found.promisable, found.cost_to_go, np.inf)
    if found.promisable.any():
        home = w.min(axis=1)
    else:
        home = np.zeros_like(cap)
    kept = kept_back(reserve, model.cost_max, np.maximum(cap - home, 0.0))
    q = np.empty_like(plant.cost)
    for k, alone in enumerate(np.eye(cap.size)):
        sets, gain = plant.sets.charged(plant.cost, alone, model.discount)
        inside = np.where(found.promisable, found.cost_to_go[k], 0.0)
        q[k] = sets.backup(inside, gain, model.discount)
    limit = cap[:, np.newaxis]
    leaves = (q + kept[:, np.newaxis] <= limit).all(axis=0)
    alone_over = (plant.cost + kept[:, np.newaxis] > limit).any(axis=0)
    follows = found.policy.probabilities[model.pair_state, model.pair_action] > 0.0
    return Outlook(
        open=found.allowed & (leaves | follows),
        untried=found.allowed & alone_over & ~follows,
        cost=q,
        home=home,
        kept=kept,
    )


def beyond_help(plant: Plant) -> BoolArray:
    """Return the states whose least cost exceeds a budget whatever is true, ``[S]``.

    The kernel that is kindest among the possible ones, and the least costs that are
    possible: no evidence can do better, so no agent can ever promise these states.
    """
    model, belief = plant.model, plant.belief
    least = model.cost if belief is None else belief.confidence.cost_lower
    hopeless = np.zeros(model.n_states, dtype=np.bool_)
    for k, alone in enumerate(np.eye(plant.cap.size)):
        sets, gain = plant.sets.charged(least, alone, model.discount, sense="min")
        operator = RobustOperator(
            sets,
            model.state_ptr,
            gain,
            model.discount,
            nature="min",
            select="min",
        )
        hopeless |= robust_control(operator, precision=1e-9).lower > plant.cap[k]
    return hopeless


def dead_ends(plant: Plant, opened: BoolArray, met: BoolArray) -> BoolArray:
    """Return the states that are not left once they are entered, ``[S]``.

    Among those that can be met by pairs that are open at birth: no open pair leads
    further, though others would, and one may have come from elsewhere.  What may bring
    an agent there costs it the rest of the world, unless it learns something there.
    """
    model, sets = plant.model, plant.sets
    n = model.n_states
    source = np.repeat(model.pair_state, np.diff(sets.row_ptr))
    target = sets.successor
    usable = np.repeat(opened, np.diff(sets.row_ptr)) & sets.reachable & met[source]
    graph = sp.csr_array(
        (np.ones(int(usable.sum()), np.int8), (source[usable], target[usable])), (n, n)
    )
    count, group = csgraph.connected_components(graph, connection="strong")
    left = np.zeros(count, dtype=np.bool_)
    across = usable & (group[source] != group[target])
    left[group[source[across]]] = True
    entered = np.zeros(count, dtype=np.bool_)
    entered[group[target[across]]] = True
    could = np.zeros(count, dtype=np.bool_)
    beyond = sets.reachable & (group[source] != group[target])
    could[group[source[beyond]]] = True
    stuck = ~left & entered & could
    ends: BoolArray = stuck[group] & met
    return ends
