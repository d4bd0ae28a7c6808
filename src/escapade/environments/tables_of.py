"""The table of an environment that has one, as a model.

Gymnasium's small environments keep ``P[state][action]``, a list of ``(probability,
next state, reward, terminated)``.  It is read for oracles and audits alone; an agent is
never told.  Rewards are shifted and ends turned as in
:mod:`escapade.environments.brought`; the rest is :meth:`escapade.CMDP.from_table`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from escapade.environments.brought import OnDone
from escapade.environments.costs_of import Costs
from escapade.environments.rewards_of import RewardMap
from escapade.errors import refusal
from escapade.model.cmdp import CMDP
from escapade.typing import FloatArray

__all__ = ["Outcomes", "read_outcomes", "to_model"]

Outcomes = list[list[list[tuple[float, int, float, bool]]]]
"""Every outcome of every action of every state."""


def read_outcomes(table: Any, *, n_states: int, n_actions: int) -> Outcomes:
    """Return ``P[state][action]``, checked to have a list for each."""
    outcomes: Outcomes = []
    for state in range(n_states):
        outcomes.append([])
        for action in range(n_actions):
            where = f"state {state}, action {action}"
            try:
                lines = [
                    (float(p), int(after), float(reward), bool(done))
                    for p, after, reward, done in table[state][action]
                ]
            except (KeyError, IndexError, TypeError, ValueError):
                raise refusal(
                    "P",
                    "outcomes (probability, next state, reward, terminated) for each "
                    f"of {n_states} states and {n_actions} actions",
                    "others",
                    where,
                ) from None
            outcomes[-1].append(lines)
    return outcomes


def to_model(
    outcomes: Outcomes,
    *,
    costs: Costs,
    rewards: RewardMap,
    start: FloatArray,
    on_done: OnDone,
    discount: float,
    budget: Any,
    names: Mapping[str, Any],
) -> CMDP:
    """Return the model in which life goes on after every end.

    Costs are functions of state, action, next state and an empty ``info``.
    """
    n, size = len(outcomes), len(outcomes) + (on_done == "absorb")
    mean = np.zeros((costs.n, size, len(outcomes[0])))
    table: dict[int, dict[int, list[tuple[float, int, float, bool]]]] = {}
    for s, actions in enumerate(outcomes):
        table[s] = {}
        for a, lines in enumerate(actions):
            table[s][a] = []
            for p, after, reward, done in lines:
                mean[:, s, a] += p * costs.of_step(s, a, after, {})
                ends = done and on_done == "absorb"
                table[s][a].append(
                    (
                        p,
                        n if ends else after,
                        rewards.shifted(reward, 0),
                        done and not ends,
                    )
                )
    for end in range(n, size):  # it leads to itself, and nothing is earned there
        rest = [(1.0, end, rewards.shifted(0.0, 0), False)]
        table[end] = dict.fromkeys(range(mean.shape[2]), rest)
    top = costs.cost_max[:, np.newaxis, np.newaxis]
    return CMDP.from_table(
        table,
        cost=np.minimum(mean, top),
        on_done="reset",
        discount=discount,
        budget=budget,
        start=np.append(start, np.zeros(size - n)),
        reward_max=rewards.reward_max,
        cost_max=costs.cost_max,
        **names,
    )
