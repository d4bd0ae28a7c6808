"""When a pair has been sampled enough, and a state is known.

A state is known when each of its pairs has its visits (E25).  With adaptive sampling a
pair is done sooner, once the confidence intervals of its transitions, reward and costs
are as narrow as was asked for, each by its own measure: the paper's separate α.
"""

from __future__ import annotations

import numpy as np

from escapade.agent.paper.settings import PaperSettings
from escapade.knowledge.belief import Belief
from escapade.typing import BoolArray, FloatArray, IntArray

__all__ = ["all_sampled", "enough_visits", "widths"]


def widths(belief: Belief) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return how wide a pair's intervals are, ``[pairs]`` each.

    For transitions that is the widest entry; rewards and costs are measured in shares
    of their bounds, costs by the widest channel.
    """
    knowledge, confidence = belief.knowledge, belief.confidence
    rows = np.maximum.reduceat(
        confidence.upper - confidence.lower, knowledge.row_ptr[:-1]
    )
    reward = confidence.reward_upper - confidence.reward_lower
    cost = (confidence.cost_upper - confidence.cost_lower).T
    return (
        np.asarray(rows),
        reward / (knowledge.reward_max or 1.0),
        (cost / np.where(knowledge.cost_max > 0.0, knowledge.cost_max, 1.0)).max(
            axis=1
        ),
    )


def enough_visits(
    belief: Belief, settled: BoolArray, *, quota: int, settings: PaperSettings
) -> IntArray:
    """Return the visits after which each pair is sampled enough, ``[pairs]``.

    ``settled`` marks the pairs about which there is nothing to learn.
    """
    enough = np.where(settled, 0, quota).astype(np.int64)
    if settings.sampling == "adaptive":
        narrow = np.ones(enough.size, dtype=np.bool_)
        for width, least in zip(widths(belief), settings.accuracies, strict=True):
            narrow &= width <= least
        visits = belief.evidence.pair_visits
        enough[narrow] = np.minimum(enough, visits)[narrow]
    return enough


def all_sampled(belief: Belief, enough: IntArray) -> BoolArray:
    """Return the states each of whose pairs has its visits, ``[S]``."""
    missing = belief.evidence.pair_visits < enough
    starts = belief.knowledge.pairs.state_ptr[:-1]
    done: BoolArray = ~np.logical_or.reduceat(missing, starts)
    return done
