"""What may be promised at birth: the belief, and the budget less what δ costs.

While the truth stays within a belief its promises hold; with probability δ0 it leaves,
and then a step may cost ``c_max`` for ever.  Promises are therefore made for the budget
less a margin, which pays for

    δ0 = δ · margin · d (1 − γ) / c_max,

the probability that makes every expected cost-to-go stay within the budget, at all
times at once, with probability 1 − δ (Doob's maximal inequality).  Where nothing is
estimated the belief holds surely, and no margin is kept.
"""

from __future__ import annotations

import numpy as np

from escapade.errors import refusal
from escapade.knowledge.belief import Belief
from escapade.knowledge.knowledge import Knowledge
from escapade.typing import FloatArray

__all__ = ["at_birth"]


def at_birth(
    knowledge: Knowledge, *, delta: float, margin: float, reopens: bool = False
) -> tuple[Belief, FloatArray]:
    """Return what is held possible, and the most that is ever promised, ``(K,)``.

    Parameters
    ----------
    knowledge
        What is known at birth.
    delta
        Probability with which the promise may ever be broken.
    margin
        Share of each budget that pays for it.
    reopens
        Whether the belief may be reopened where the world has changed.

    Raises
    ------
    InvalidInputError
        If a budget is 0 and something is estimated: then nothing can pay for δ.
    """
    kept = margin * knowledge.budget
    most = knowledge.cost_max / (1.0 - knowledge.discount)
    share = np.divide(kept, most, out=np.ones_like(most), where=most > 0.0)
    paid_for = delta * min(float(share.min()), 1.0)
    belief = Belief(knowledge, delta=paid_for or delta, reopens=reopens)
    sure = belief.failure_probability == 0.0
    if paid_for == 0.0 and not sure:
        raise refusal(
            "budget",
            "a number above 0 in every channel, as what is estimated may be wrong",
            0.0,
            f"channel {int(np.argmin(share))}",
        )
    return belief, knowledge.budget - (0.0 if sure else kept)
