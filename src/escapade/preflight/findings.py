"""What an examination found, as one value that can be printed or turned into JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from escapade.planning.fallback import Fallback
from escapade.theory.conditions import Condition
from escapade.typing import BoolArray, FloatArray, IntArray

__all__ = ["Preflight"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Preflight:
    """What is known before a life begins.

    *Proved*, for every kernel that is possible: ``promisable``, ``least_budget``,
    ``fallback_cost``, ``unpromisable_states``, ``never_promisable`` and the robust
    numbers.  *Of the likeliest model alone*: ``diameter`` and whether the budget binds.

    Attributes
    ----------
    examined
        ``"knowledge"`` or ``"model"``.
    n_states, n_actions, n_pairs, n_costs, n_entries
        Sizes; entries are the transitions that are possible.
    discount, budget, cap
        As given, and the most that would be promised: the budget, less what pays for
        what is known with confidence only.
    reachable
        Mask ``(S,)`` of the states that can be met from the start, by any actions.
    known
        Mask ``(S,)`` of the states that count as known at birth.
    horizon
        Steps after which what is left of any discounted sum is at most ``epsilon / 2``.
    theory_visits
        Visits of each pair after which the paper's theory calls it known.
    practical_visits
        The quota of visits with which an agent wanders; what is certain is said by its
        certificate.
    diameter
        Bounds on the largest expected time between two states by the quickest policy;
        ``None`` for problems that are too large to look at every pair of states.
    robust_diameter
        The same under the worst kernel, each time against another one.
    escape_steps
        The longest robust time to the known states from unknown ones; 0 if all are.
    promisable
        Whether the budget can be promised from the start.
    least_budget
        ``(K,)``; the least budget that can be.  With several, the least in proportion
        for which a fallback was found; other policies may do with less.
    fallback_cost
        ``(K,)``; the least worst-case cost-to-go at the start, nothing forbidden.  With
        several budgets, of the policy of least cost in proportion to them.
    unpromisable_states
        States from which the budget cannot be promised, as far as is known.
    never_promisable
        Those of them that cost more than a budget whatever is true.
    open_pairs, open_states
        How many pairs a full promise pays for at birth, less what an agent keeps back,
        and how many states those can meet from the start: where it can go at first.
    untried_pairs
        Pairs of those states that will never be tried, as one try may cost more than
        is ever promised, less what is kept back.
    requirements
        The requirements of the Escape Budget Lemma, one tuple a channel.
    budget_binds
        Whether the best policy of the likeliest model would earn more with a larger
        budget; ``None`` if no policy keeps it, or it was not asked.
    mend
        Sentences that say what to change, each tried; empty if nothing needs to be.
    warnings
        Sentences on what else to know.
    """

    examined: str
    n_states: int
    n_actions: int
    n_pairs: int
    n_costs: int
    n_entries: int
    discount: float
    budget: FloatArray
    cap: FloatArray
    reachable: BoolArray
    known: BoolArray
    horizon: int
    theory_visits: int
    practical_visits: int
    diameter: tuple[float, float] | None
    robust_diameter: tuple[float, float] | None
    escape_steps: float
    promisable: bool
    least_budget: FloatArray
    fallback_cost: FloatArray
    unpromisable_states: IntArray
    never_promisable: IntArray
    open_pairs: int
    open_states: int
    untried_pairs: IntArray
    requirements: tuple[tuple[Condition, ...], ...]
    budget_binds: bool | None
    mend: tuple[str, ...]
    warnings: tuple[str, ...]
    fallback: Fallback

    @property
    def binding(self) -> Condition | None:
        """The requirement of the lemma with the least slack, over all channels.

        ``None`` where nothing can cost anything.
        """
        every = [one for channel in self.requirements for one in channel]
        return min(every, key=lambda one: one.slack) if every else None

    @property
    def lemma_holds(self) -> bool:
        """Whether the paper's own rule could make the promise."""
        return all(one.holds for channel in self.requirements for one in channel)

    def why(self, state: int) -> str:
        """Say why ``state`` can be promised, or why not."""
        return self.fallback.why(state)

    def facts(self) -> dict[str, str]:
        """Return what was found as names and words, in the order to be read."""
        binding = self.binding
        facts = {
            "examined": f"{self.examined}: {self.n_states} states, {self.n_actions} "
            f"actions, {self.n_pairs} pairs, {self.n_entries} possible transitions",
            "budget": _joined(self.budget)
            + (
                ""
                if (self.cap == self.budget).all()
                else f", of which {_joined(self.cap)} is promised"
            ),
            "reachable": f"{int(self.reachable.sum())} states; "
            f"{int(self.known.sum())} known at birth",
            "horizon": f"{self.horizon} steps at discount {self.discount:g}",
            "visits": f"{self.theory_visits:.3g} by the theory, "
            f"{self.practical_visits} in practice",
            "diameter": _between(self.diameter),
            "robust diameter": _between(self.robust_diameter),
            "escape": f"{self.escape_steps:.6g} steps at worst",
            "promisable": "yes" if self.promisable else "no",
            "least budget": _joined(self.least_budget)
            + (", in proportion to each other" if self.n_costs > 1 else ""),
            "fallback": f"costs {_joined(self.fallback_cost)} from the start at worst, "
            f"wherever it may lead",
            "not promisable": f"{self.unpromisable_states.size} states, "
            f"{self.never_promisable.size} of them whatever is true",
            "open at birth": f"{self.open_pairs} pairs, {self.open_states} states; "
            f"{self.untried_pairs.size} pairs there will never be tried",
            "the paper's rule": "could promise it"
            if self.lemma_holds
            else "could not promise it",
        }
        if binding is not None:
            sign = "<=" if binding.holds else ">"
            facts["binding"] = (
                f"({binding.name}) {binding.sentence}: "
                f"{'holds' if binding.holds else 'fails'}, {binding.left:.6g} {sign} "
                f"{binding.right:.6g}"
            )
        open_ = "not known, as rewards are not"
        if self.examined == "model":
            open_ = "no policy keeps it"
        binds = {True: "yes", False: "no", None: open_}
        facts["budget binds"] = binds[self.budget_binds]
        return facts

    def describe(self) -> dict[str, Any]:
        """Return what was found as an object of plain values, for JSON."""
        binding = self.binding
        return {
            "examined": self.examined,
            "states": self.n_states,
            "actions": self.n_actions,
            "pairs": self.n_pairs,
            "costs": self.n_costs,
            "entries": self.n_entries,
            "discount": self.discount,
            "budget": self.budget,
            "cap": self.cap,
            "reachable_states": int(self.reachable.sum()),
            "known_states": int(self.known.sum()),
            "horizon": self.horizon,
            "theory_visits": float(self.theory_visits),
            "practical_visits": self.practical_visits,
            "diameter": self.diameter,
            "robust_diameter": self.robust_diameter,
            "escape_steps": self.escape_steps,
            "promisable": self.promisable,
            "least_budget": self.least_budget,
            "fallback_cost": self.fallback_cost,
            "unpromisable_states": self.unpromisable_states,
            "never_promisable": self.never_promisable,
            "open_pairs": self.open_pairs,
            "open_states": self.open_states,
            "untried_pairs": self.untried_pairs,
            "lemma_holds": self.lemma_holds,
            "binding": None if binding is None else _condition(binding),
            "requirements": [
                [_condition(one) for one in channel] for channel in self.requirements
            ],
            "budget_binds": self.budget_binds,
            "mend": self.mend,
            "warnings": self.warnings,
        }

    def __str__(self) -> str:
        facts = self.facts()
        width = max(len(name) for name in facts)
        lines = [f"{name:{width}}  {value}" for name, value in facts.items()]
        for title, sentences in (
            ("what would mend it", self.mend),
            ("warnings", self.warnings),
        ):
            if sentences:
                lines += ["", f"{title}:", *(f"- {one}" for one in sentences)]
        return "\n".join(lines)

    def __repr__(self) -> str:
        answer = "promisable" if self.promisable else "not promisable"
        return (
            f"Preflight({answer}, least budget {_joined(self.least_budget)} of "
            f"{_joined(self.budget)}, {self.unpromisable_states.size} of "
            f"{self.n_states} states not promisable)"
        )


def _joined(values: FloatArray) -> str:
    return ", ".join(f"{value:.6g}" for value in np.atleast_1d(values))


def _between(bounds: tuple[float, float] | None) -> str:
    if bounds is None:
        return "not looked at: too large"
    low, high = bounds
    if np.isinf(low):
        return "infinite"
    return f"{high:.6g} steps"


def _condition(one: Condition) -> dict[str, Any]:
    return {
        "name": one.name,
        "left": one.left,
        "right": one.right,
        "holds": one.holds,
        "slack": one.slack,
        "sentence": one.sentence,
    }
