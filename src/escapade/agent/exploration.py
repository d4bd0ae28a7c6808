"""Where visits are wanted, and the way there that costs the promise least.

``H(s)``, the greatest expected ``γ^τ`` with τ the time until a state is reached that
wants visits, is what the paper's exploration problem amounts to.  It also bounds what
exploring can still bring: no policy gains more than ``G · H(s)`` by it, with G the
most that can be earned from a state.

A step is also charged a small price for the slack it uses up, ``Q(s, a) − w(s)``, so
that of two ways the one that costs less of the promise is taken.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from escapade.agent.safety import Safety
from escapade.kernels.exploration import price_slack, reach_values
from escapade.knowledge.belief import Belief
from escapade.typing import BoolArray, FloatArray, IntArray

__all__ = ["Frontier", "find_frontier"]

_TOLERANCE = 1e-7
_PRICE = 0.02
"""What using up the whole budget is worth, against reaching a state at once."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Frontier:
    """The best way to where visits are wanted.

    Attributes
    ----------
    wanted
        ``[S]`` mask of the states that want visits.
    value
        ``[S]``; how soon one is reached, from 1 (here) down to 0 (never).
    pairs
        ``[S]``; the pair to take, −1 where there is none.
    score
        ``[pairs]``; how soon, after this pair.
    """

    wanted: BoolArray
    value: FloatArray
    pairs: IntArray
    score: FloatArray


def find_frontier(
    belief: Belief,
    safety: Safety,
    playable: BoolArray,
    wants: BoolArray,
    *,
    sweeps: int | None = None,
) -> Frontier:
    """Return the way to the nearest state that has a playable pair wanting visits.

    ``playable`` and ``wants`` are masks ``[pairs]``; the way leads over playable pairs
    by the likeliest transitions.  ``sweeps`` caps how far it looks.
    """
    knowledge = belief.knowledge
    pairs = knowledge.pairs
    wanted = np.zeros(knowledge.n_states, dtype=np.bool_)
    wanted[pairs.pair_state[playable & wants]] = True
    price = np.empty(knowledge.n_pairs)
    price_slack(
        pairs.state_ptr, safety.w, safety.q, safety.allowed, safety.cap, _PRICE, price
    )
    value = np.empty(knowledge.n_states)
    score = np.empty(knowledge.n_pairs)
    best = np.empty(knowledge.n_states, dtype=np.int64)
    reach_values(
        pairs.state_ptr,
        knowledge.row_ptr,
        knowledge.successor,
        belief.nominal,
        playable,
        price,
        wanted,
        knowledge.discount,
        _TOLERANCE,
        sweeps or 20 * knowledge.n_states + 100,
        value,
        score,
        best,
    )
    return Frontier(wanted=wanted, value=value, pairs=best, score=score)
