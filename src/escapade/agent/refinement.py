"""Where more visits would narrow the certificate, once every quota is met.

The certificate's gap is what the optimistic policy is thought to earn at most, less
what the earning policy earns at least.  Each pair that the optimistic policy visits
adds to it by how wide the bounds there are, times how often it goes there.  The earning
policy's own pairs are visited anyhow; of the others, those that add most are given a
further goal, as long as they can be played within the promise, and only so many visits
that life goes on meanwhile.

Visits elsewhere cost rewards, so they are asked for only when they can help.  As long
as most of the gap is the width of the earning policy itself, nothing narrows it as fast
as earning does.  And widths shrink as one over the root of the visits: where that of
the earning policy is still several ε, the gap cannot be closed before a life many times
as long as the one so far, whatever is done elsewhere.
"""

from __future__ import annotations

import numpy as np

from escapade.agent.certificate import Certificate
from escapade.knowledge.belief import Belief
from escapade.model.cmdp import CMDP
from escapade.model.evaluation import occupancy
from escapade.model.policy import Policy
from escapade.planning.optimistic import Optimism
from escapade.typing import BoolArray, FloatArray, IntArray

__all__ = ["further_goals", "worth_refining"]

_SHARE = 0.05
"""Of all decisions so far, how many visits may be asked for at a time."""

_GROWTH = 0.25
"""By how much the visits of a pair are to grow."""

_IN_SIGHT = 4.0
"""Up to so many ε, the earning policy's width may be narrowed to ε in time."""

_ELSEWHERE = 0.25
"""Share of the gap that has to be owed to other policies than the earning one."""


def worth_refining(found: Certificate, epsilon: float) -> bool:
    """Tell whether visits that the earning policy does not make would help."""
    own = found.value_upper - found.value_lower
    return own <= _IN_SIGHT * epsilon and found.gap - own >= _ELSEWHERE * found.gap


def further_goals(
    belief: Belief,
    model: CMDP,
    optimism: Optimism,
    *,
    state: int,
    earning: FloatArray,
    playable: BoolArray,
    decisions: int,
) -> IntArray:
    """Return the visits ``[pairs]`` that pairs should get; 0 where none are asked for.

    ``earning`` holds the earning policy's weights ``[pairs]``.
    """
    goals = np.zeros(belief.knowledge.n_pairs, dtype=np.int64)
    visits = belief.evidence.pair_visits
    added = _added_width(belief, model, optimism, state)
    added[(earning > 0.0) | ~playable | belief.knowledge.varying] = 0.0
    left = int(_SHARE * decisions)
    for pair in np.argsort(-added, kind="stable"):
        if added[pair] <= 0.0 or left <= 0:
            break
        more = min(int(np.ceil(_GROWTH * visits[pair])) + 1, left)
        goals[pair] = visits[pair] + more
        left -= more
    return goals


def _added_width(
    belief: Belief, model: CMDP, optimism: Optimism, state: int
) -> FloatArray:
    """Return what each pair adds to the width of the optimistic value, ``[pairs]``."""
    knowledge = belief.knowledge
    actions = knowledge.pairs.pair_action[optimism.pairs]
    start = np.zeros(knowledge.n_states)
    start[state] = 1.0
    often = occupancy(
        model.replace(start=start),
        Policy.deterministic(actions, knowledge.n_actions),
        precision=1e-3,
    )
    most = belief.sets.worst(optimism.value, sense="max")
    least = belief.sets.worst(optimism.value, sense="min")
    confidence = belief.confidence
    width = confidence.reward_upper - confidence.reward_lower
    width = width + knowledge.discount * (most - least)
    return np.asarray(often * width)
