"""The paper's numbers: horizons, accuracies, counts, budgets, diameters, radii.

Each module is one lemma or one notion of the paper, corrected; the form that the paper
prints stands beside it, under a name that ends in ``as_printed``, where the two differ.
Everything is a function of plain numbers, except what looks at a whole
:class:`~escapade.model.cmdp.CMDP`: how far two models are apart, hitting times, and the
diameter.

===========================  =========================================================
module                       what it answers
===========================  =========================================================
``horizons``                 after how many steps a discounted sum is settled
``accuracy``                 how accurate a model must be for its values to be right
``known_states``             how many visits make a state known
``explore_or_exploit``       what the known states promise, and when to leave them
``escape_budget``            how much may be spent in unknown states
``budget_recursion``         what past costs leave for the future
``wandering``                when balanced wandering must stop
``attempts``                 how many attempts until all states are known
``paths``                    what holds for single paths rather than on average
``hitting_times``            how many steps the best policy needs to some states
``diameter``                 how far the farthest state is, at best
``radii``                    confidence radii for a fixed number of visits
``concentration``            confidence radii and sets for all numbers of visits
``betting``                  how large the mean of bounded samples may be
``example_one``              Example 1, as printed and as its formulas give it
``conditions``               an inequality of a lemma with both of its sides
``paper_bounds``             all of these numbers at once: :func:`bounds`
``paper_rows``               the rows of numbers that it collects
===========================  =========================================================
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from escapade.theory import (
        accuracy,
        attempts,
        betting,
        budget_recursion,
        concentration,
        conditions,
        diameter,
        escape_budget,
        example_one,
        explore_or_exploit,
        hitting_times,
        horizons,
        known_states,
        paper_bounds,
        paper_rows,
        paths,
        radii,
        wandering,
    )
    from escapade.theory.paper_bounds import Bounds, BoundsRow, bounds

__all__ = [
    "Bounds",
    "BoundsRow",
    "accuracy",
    "attempts",
    "betting",
    "bounds",
    "budget_recursion",
    "concentration",
    "conditions",
    "diameter",
    "escape_budget",
    "example_one",
    "explore_or_exploit",
    "hitting_times",
    "horizons",
    "known_states",
    "paper_bounds",
    "paper_rows",
    "paths",
    "radii",
    "wandering",
]

_FROM_PAPER_BOUNDS = {"Bounds", "BoundsRow", "bounds"}

if not TYPE_CHECKING:  # a type checker must see that other names do not exist

    def __getattr__(name: str) -> Any:
        """Import a module of this package on its first use (PEP 562)."""
        if name in _FROM_PAPER_BOUNDS:
            value = getattr(import_module("escapade.theory.paper_bounds"), name)
            globals()[name] = value
            return value
        if name not in __all__:
            raise AttributeError(f"module 'escapade.theory' has no attribute {name!r}")
        return import_module(f"escapade.theory.{name}")

    def __dir__() -> list[str]:
        """Every module, loaded or not."""
        return sorted({*globals(), *__all__})
