"""What would mend a plant that cannot be promised, each tried before it is stated.

Three things can help: a larger budget; knowledge of where some actions lead; knowledge
of what they cost.  To find the pairs that matter the fallback is planned as if rows
were as is thought likeliest, and then as if costs too were the least possible.  The
pairs that this fallback needs and that are not known are named, and an examination of
the same knowledge with their rows known says whether that would do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from escapade.errors import AssumptionError
from escapade.knowledge.knowledge import Knowledge
from escapade.preflight.plant import LeastBudget, Plant
from escapade.typing import BoolArray, FloatArray, IntArray
from escapade.uncertainty.l1_ball import L1Ball

__all__ = ["mends"]

_NAMED = 8
_FEW = 2
_GROWTH = 1.02
_TRIES = 20
_TRIVIAL = 0.999
"""Share of the most that can be paid at all beyond which a budget promises nothing."""


def mends(
    problem: Any, plant: Plant, least: LeastBudget, *, delta: float, margin: float
) -> tuple[str, ...]:
    """Return sentences that say what to change, the surest first."""
    found = [_raise_budget(problem, plant, least, delta=delta, margin=margin)]
    if isinstance(problem, Knowledge):
        found.append(_give_support(problem, plant))
        found.append(_give_rows(problem, plant, delta=delta, margin=margin))
    return tuple(sentence for sentence in found if sentence)


# -- budgets ---------------------------------------------------------------------------


def _raise_budget(
    problem: Any, plant: Plant, least: LeastBudget, *, delta: float, margin: float
) -> str:
    """Return the least budget, in three figures, that was tried and can be promised."""
    most = plant.most / plant.kept
    if plant.belief is not None and (least.sufficient >= _TRIVIAL * most).all():
        if most.size > 1:
            return (
                f"no fallback was found for budgets below {_numbers(most)}, which "
                f"nothing can exceed, with what is known"
            )
        return (
            f"no budget below {_numbers(most)}, which nothing can exceed, can be "
            f"promised from the start with what is known"
        )
    budget = np.array([_round_up(value) for value in least.sufficient])
    for _ in range(_TRIES):
        tried = Plant.of(problem.replace(budget=budget), delta=delta, margin=margin)
        if tried.fallback().covers(tried.model.start):
            if budget.size > 1:  # others, in other proportions, may do as well
                return f"raise the budgets to {_numbers(budget)}"
            return f"raise the budget to at least {_numbers(budget)}"
        budget = np.array([_round_up(value * _GROWTH) for value in budget])
    return ""


def _round_up(value: float) -> float:
    """Return a number of three figures that is not below ``value``."""
    if value <= 0.0:
        return 0.0
    digits = 2 - math.floor(math.log10(value))
    step = 10.0**-digits
    rounded = round(math.ceil(value / step) * step, max(digits, 0))
    return rounded if rounded >= value else rounded + step


def _numbers(values: FloatArray) -> str:
    return ", ".join(f"{value:.6g}" for value in values)


# -- knowledge -------------------------------------------------------------------------


def _give_support(knowledge: Knowledge, plant: Plant) -> str:
    """Ask for possible successors where every state is one."""
    unknown = ~knowledge.exact_pairs & plant.reached()[plant.model.pair_state]
    everywhere = unknown & (np.diff(knowledge.row_ptr) == knowledge.n_states)
    if knowledge.n_states <= _FEW or not everywhere[unknown].all():
        return ""  # somebody has said what is possible
    return (
        f"give the possible successors (support): for {int(everywhere.sum())} of "
        f"{knowledge.n_pairs} actions every state is held possible"
    )


def _give_rows(
    knowledge: Knowledge, plant: Plant, *, delta: float, margin: float
) -> str:
    """Say which rows, or costs, would do if they are as is thought likeliest."""
    belief = plant.belief
    assert belief is not None
    sure_rows = L1Ball(plant.model, radius=0.0)
    kinder = replace(plant, sets=sure_rows)
    least = belief.confidence.cost_lower
    hopes = (
        (kinder, False),
        (replace(plant, cost=least), True),
        (replace(kinder, cost=least), True),
    )
    for hoped, cheap in hopes:
        found = hoped.fallback()
        if not found.covers(plant.model.start):
            continue
        model = plant.model
        chosen = found.policy.probabilities[model.pair_state, model.pair_action] > 0.0
        needed = chosen & hoped.reached(found)[model.pair_state]
        rows = needed & ~knowledge.exact_pairs
        if hoped.sets is not sure_rows:
            rows[:] = False
        costs = needed & (plant.cost > least).any(axis=0) if cheap else rows & False
        if not _helps(knowledge, plant, rows, costs, delta=delta, margin=margin):
            continue
        return _sentence(plant, rows, costs)
    return (
        "better knowledge of where actions lead and what they cost would not be "
        "enough: raise the budget, or add an action that is safe"
    )


def _helps(
    knowledge: Knowledge,
    plant: Plant,
    rows: BoolArray,
    costs: BoolArray,
    *,
    delta: float,
    margin: float,
) -> bool:
    """Examine the same knowledge with these rows and costs known."""
    belief = plant.belief
    assert belief is not None
    told = knowledge.exact_pairs | rows
    changes: dict[str, Any] = {"known_rows": _table(knowledge, belief.nominal, told)}
    if costs.any():
        shape = (knowledge.n_costs, knowledge.n_states, knowledge.n_actions)
        bounds = np.full(shape, np.nan)
        bounds[:, plant.model.pair_state, plant.model.pair_action] = np.where(
            costs, belief.confidence.cost_lower, plant.cost
        )
        changes["cost_bounds"] = np.fmin(bounds, knowledge.cost_max[:, None, None])
    try:
        better = Plant.of(knowledge.replace(**changes), delta=delta, margin=margin)
    except AssumptionError:  # the likeliest rows contradict the models
        return False
    return better.fallback().covers(plant.model.start)


def _table(
    knowledge: Knowledge, probability: FloatArray, told: BoolArray
) -> sp.csr_array:
    """Return rows as ``(S · A, S)``, empty where they are not told."""
    lengths = np.diff(knowledge.row_ptr)
    kept = np.repeat(told, lengths)
    layout = knowledge.pairs
    flat = layout.pair_state.astype(np.int64) * knowledge.n_actions + layout.pair_action
    return sp.csr_array(
        sp.coo_array(
            (
                np.where(
                    np.repeat(knowledge.exact_pairs, lengths),
                    knowledge.lower,
                    probability,
                )[kept],
                (np.repeat(flat, lengths)[kept], knowledge.successor[kept]),
            ),
            shape=(knowledge.n_states * knowledge.n_actions, knowledge.n_states),
        )
    )


def _sentence(plant: Plant, rows: BoolArray, costs: BoolArray) -> str:
    parts = []
    if rows.any():
        parts.append(
            f"say where {_places(plant, np.flatnonzero(rows))} may lead, by a log, "
            f"action models or known_rows; that is enough if it is where is thought "
            f"likeliest now"
        )
    if costs.any():
        parts.append(
            f"say what {_places(plant, np.flatnonzero(costs))} may cost, by costs, "
            f"cost_bounds or free; that is enough if it is the least that is held "
            f"possible now"
        )
    return ", and ".join(parts)


def _places(plant: Plant, pairs: IntArray) -> str:
    """Name pairs: their states, and the actions where these are few."""
    model = plant.model
    states: Sequence[int] = np.unique(model.pair_state[pairs]).tolist()
    names = model.action_names
    where = ", ".join(map(str, states[:_NAMED]))
    if len(states) > _NAMED:
        where += f" and {len(states) - _NAMED} more"
    place = f"state{'s' if len(states) > 1 else ''} {where}"
    actions = np.unique(model.pair_action[pairs])
    if actions.size == 1:
        only = int(actions[0])
        return f"action {only if names is None else names[only]} in {place}"
    return f"the fallback's actions in {place}"
