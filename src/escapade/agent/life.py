"""What compiled code reads and writes of an agent, wrapped up once a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from escapade.kernels.life import COST, LIFE, NOTHING, REWARD, Counts, Life, hear
from escapade.kernels.parcels import Parcel
from escapade.typing import FloatArray

if TYPE_CHECKING:
    from escapade.agent.e4 import E4

__all__ = ["conclude", "wrap_up"]


def wrap_up(agent: E4) -> Parcel:
    """Return the parcel of an agent's life under the plan that is in force.

    All but the plan stays in place as long as the agent lives.
    """
    evidence, surely = agent.belief.evidence, agent.surely
    planned = agent.planned
    return Parcel(
        LIFE,
        Life(
            ledger=planned.ledger,
            plan=planned.plan,
            rules=planned.rules,
            counts=Counts(
                row_ptr=evidence.row_ptr,
                successor=evidence.successor,
                visits=evidence.visits,
                pair_visits=evidence.pair_visits,
                reward_sum=evidence.reward_sum,
                cost_count=evidence.cost_count,
                cost_sum=evidence.cost_sum,
                cost_square=evidence.cost_square,
                changed=agent.changed,
                wish=agent.wish,
                least_reward=surely.least_reward,
                most_reward=surely.most_reward,
                least_cost=surely.least_cost,
                most_cost=surely.most_cost,
            ),
            action=agent.knowledge.pairs.pair_action,
            promise=agent.promise,
            memory=agent.memory,
            course=agent.course,
            pending=agent.pending,
            paid=np.zeros(agent.promise.size),
            missing=np.array([NOTHING]),
        ),
    )


def conclude(
    parcel: Parcel,
    pair: int,
    state: int,
    next_state: int,
    reward: float | None,
    cost: FloatArray | None,
    *,
    learns: bool,
) -> int:
    """Conclude a step; return what it leaves to be done.

    Costs that were not seen are charged at their largest.
    """
    life: Life = parcel.content
    missing = NOTHING
    if cost is None:
        missing, cost = COST, life.ledger.cost_max
    if reward is None:
        missing, reward = REWARD, 0.0
    life.paid[:] = cost
    life.missing[0] = missing
    channels = life.ledger.channels
    why = hear(parcel.table, channels, pair, state, next_state, reward, learns)
    life.missing[0] = NOTHING
    return why
