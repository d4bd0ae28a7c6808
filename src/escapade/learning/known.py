"""Which states are known: by the number of visits, or by what they prove.

*By quota.*  The paper calls a state known when each of its actions has been taken
``m_known`` times.  Its formula asks for astronomical numbers
(:mod:`escapade.theory.known_states`), so in practice ``m_known`` is a setting.

*By certificate.*  A state is known to an accuracy α when every action's bounds leave no
kernel farther than α from another in L1 distance, and no mean farther than α times its
range: what the quota is meant to achieve, and with the confidence of the bounds.
"""

from __future__ import annotations

import numpy as np

from escapade.errors import refusal
from escapade.learning.confidence import Confidence
from escapade.model.arguments import read_count
from escapade.typing import BoolArray, FloatArray, IntArray

__all__ = ["known_by_certificate", "known_by_quota", "row_widths"]


def known_by_quota(
    pair_visits: IntArray, state_ptr: IntArray, quota: int, *, exact: BoolArray
) -> BoolArray:
    """Return the states whose every action has been taken ``quota`` times, ``[S]``.

    ``pair_visits`` is ``[pairs]``; ``exact`` marks the pairs that need no visits.

    Examples
    --------
    >>> import numpy as np
    >>> from escapade.learning import known_by_quota
    >>> visits, none = np.array([5, 5, 5, 4]), np.zeros(4, dtype=bool)
    >>> known_by_quota(visits, np.array([0, 2, 4]), 5, exact=none).tolist()
    [True, False]
    """
    wanted = read_count("quota", quota, least=1)
    enough = exact | (pair_visits >= wanted)
    known: BoolArray = np.logical_and.reduceat(enough, state_ptr[:-1])
    return known


def row_widths(lower: FloatArray, upper: FloatArray, row_ptr: IntArray) -> FloatArray:
    """Bound the L1 distance of two distributions within bounds, ``[pairs]``.

    What one of them has more in some entries it has less in others.  So it is at most
    all the room there is, twice what the lower bounds leave to hand out, and twice what
    the upper bounds leave to take away.
    """
    starts = row_ptr[:-1]
    room = np.add.reduceat(upper - lower, starts)
    give = 1.0 - np.add.reduceat(lower, starts)
    take = np.add.reduceat(upper, starts) - 1.0
    widths: FloatArray = np.minimum.reduce([room, 2.0 * give, 2.0 * take])
    return np.maximum(widths, 0.0)


def known_by_certificate(
    confidence: Confidence, state_ptr: IntArray, accuracy: float
) -> BoolArray:
    """Return the states that are known to an accuracy α, ``[S]``; see the module."""
    if not 0.0 < accuracy <= 2.0:
        raise refusal("accuracy", "a number in (0, 2]", accuracy)
    row_ptr = confidence.evidence.row_ptr
    fine = row_widths(confidence.lower, confidence.upper, row_ptr) <= accuracy
    reward_max, cost_max = confidence.reward_max, confidence.cost_max[:, np.newaxis]
    fine &= confidence.reward_upper - confidence.reward_lower <= accuracy * reward_max
    narrow = confidence.cost_upper - confidence.cost_lower <= accuracy * cost_max
    fine &= narrow.all(axis=0)
    known: BoolArray = np.logical_and.reduceat(fine, state_ptr[:-1])
    return known
