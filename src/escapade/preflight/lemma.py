"""The Escape Budget Lemma, asked of a plant: which of its requirements binds.

The lemma is the paper's way to a promise: rest in the known states at a cost of at most
d_s, wander one step, and escape from the unknown states within D expected steps.  Here
d_s is the worst cost-to-go of the fallback on the known states, and D the robust time
in which some policy surely reaches them from any unknown state that can be met (E20).
The ledger needs none of the requirements; they say how far the paper's rule would be
from working, and why.
"""

from __future__ import annotations

import numpy as np

from escapade.planning.fallback import Fallback
from escapade.planning.robust_hitting import robust_hitting_times
from escapade.preflight.plant import Plant
from escapade.theory.escape_budget import EscapeBudget, escape_budget
from escapade.typing import BoolArray

__all__ = ["known_at_birth", "requirements"]


def known_at_birth(plant: Plant, *, known_after: int) -> BoolArray:
    """Return the states that count as known before the first step, ``[S]``."""
    belief = plant.belief
    if belief is None:
        return np.ones(plant.model.n_states, dtype=np.bool_)
    enough = belief.evidence.pair_visits >= known_after
    enough |= belief.knowledge.exact_pairs
    known = np.logical_and.reduceat(enough, plant.model.state_ptr[:-1])
    mask: BoolArray = known | belief.knowledge.known_states
    return mask


def requirements(
    plant: Plant,
    found: Fallback,
    *,
    known: BoolArray,
    reachable: BoolArray,
    epsilon: float,
) -> tuple[float, tuple[EscapeBudget, ...]]:
    """Return D, and the budgets of the lemma for each channel."""
    unknown = reachable & ~known
    steps = 0.0
    if unknown.any():
        steps = np.inf
        if known.any():
            times = robust_hitting_times(plant.model, plant.sets, np.flatnonzero(known))
            steps = float(times.upper[unknown].max())
    rest = reachable & known
    channels = []
    for k in range(plant.model.n_costs):
        most = float(plant.model.cost_max[k])
        if most == 0.0:
            continue
        returning = found.unrestricted_cost[k]
        channels.append(
            escape_budget(
                budget=float(plant.model.budget[k]),
                discount=plant.model.discount,
                cost_max=most,
                epsilon=epsilon,
                safe_return_budget=float(returning[rest].max(initial=0.0)),
                escape_steps=steps,
            )
        )
    return steps, tuple(channels)
