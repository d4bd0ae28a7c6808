"""Why no escape is sure to end: what stands behind D = ∞, in words.

An escape needs known states to arrive at, and a policy that arrives there in finite
expected time whatever the kernel.  Three things can be missing, and each is mended in
another way: nothing is known; nothing known can be reached from somewhere; or it could
be reached, but some kernel that is held possible keeps the agent out for ever.
"""

from __future__ import annotations

import numpy as np

from escapade.kernels.exploration import spread
from escapade.knowledge.belief import Belief
from escapade.typing import BoolArray

__all__ = ["why_endless"]


def why_endless(belief: Belief, known: BoolArray, endless: BoolArray) -> str:
    """Say why the escape from the first of the ``endless`` states may never end.

    ``known`` and ``endless`` are masks ``[S]``.
    """
    if not known.any():
        return (
            "no state is known; known_states, known_rows of all its actions, or a log "
            "or counts with the quota of visits, make one so"
        )
    name = belief.knowledge.pairs.name_state
    states = np.flatnonzero(endless).tolist()
    for state in states:
        if not (_reached(belief, state) & known).any():
            return f"from {name(state)} no known state can be reached at all"
    for state in states:
        if _untold(belief, state):
            return (
                f"the escape from {name(state)} may never end, for nothing is told of "
                f"where its actions lead; support, known_rows or models would say it"
            )
    return (
        f"the escape from {name(states[0])} may never end: whatever is done, some "
        f"kernel that is possible stays among unknown states, as no probability of "
        f"leaving them is known to be above 0; known_rows, models or a log would say it"
    )


def _untold(belief: Belief, state: int) -> bool:
    """Tell whether any state may follow any action of this one."""
    knowledge = belief.knowledge
    first, last = knowledge.pairs.state_ptr[state : state + 2]
    possible = np.diff(knowledge.row_ptr)[first:last]
    return bool((possible == knowledge.n_states).all())


def _reached(belief: Belief, state: int) -> BoolArray:
    """Return the states that any actions may ever lead to from ``state``, ``[S]``."""
    knowledge = belief.knowledge
    reached: BoolArray = np.arange(knowledge.n_states) == state
    spread(
        knowledge.pairs.state_ptr,
        knowledge.row_ptr,
        knowledge.successor,
        belief.reachable.astype(np.float64),
        np.ones(knowledge.n_pairs, dtype=np.bool_),
        reached,
    )
    return reached
