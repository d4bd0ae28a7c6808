"""Constraints on single paths: what is kept back so that few of them cost over d.

A path may cost more than its expectation.  Promising d_p = d − k S_C in place of d,
with S_C the standard deviation of a path's cost, leaves at most 1/(1 + k²) of them over
d (Cantelli).  S_C is at most c_max / (2 (1 − γ)) for costs in [0, c_max] (E33); where a
smaller bound is known, it may be told, and the statement rests on it.
"""

from __future__ import annotations

import numpy as np

from escapade.agent.settings import E4Settings
from escapade.errors import AssumptionError
from escapade.knowledge.knowledge import Knowledge
from escapade.theory.paths import path_constraint
from escapade.typing import FloatArray

__all__ = ["paths_margin"]


def paths_margin(knowledge: Knowledge, settings: E4Settings) -> FloatArray:
    """Return d − d_p, ``(K,)``: what is kept back of each budget for single paths."""
    margin = np.zeros(knowledge.budget.size)
    if settings.path_deviations == 0.0:
        return margin
    for k, (budget, most) in enumerate(
        zip(knowledge.budget, knowledge.cost_max, strict=True)
    ):
        if most == 0.0:
            continue
        found = path_constraint(
            budget=float(budget),
            cost_max=float(most),
            discount=knowledge.discount,
            deviation=settings.path_deviation,
            deviations=settings.path_deviations,
        )
        if found.path_budget <= 0.0:
            raise AssumptionError(
                f"path_deviations: expected d - k S_C above 0, found d_p = "
                f"{found.path_budget:g} with S_C = {found.deviation:g}"
                + (f" in channel {k}" if margin.size > 1 else "")
            )
        margin[k] = budget - found.path_budget
    return margin
