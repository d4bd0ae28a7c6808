"""The outcome of a run in words, before any picture.

What is promised is a statement about expectations, under what the agent was told; what
was measured is one life.  The words keep them apart.
"""

from __future__ import annotations

from dataclasses import dataclass

from escapade.experiment.summary import realised
from escapade.report.encoding import number, numbers
from escapade.report.material import Material
from escapade.report.scaffold import headline

__all__ = ["Verdict", "judge"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The outcome: ``kept``, ``broken`` or ``open``, and sentences."""

    outcome: str
    headline: str
    sentences: tuple[str, ...]

    def html(self) -> str:
        """Return it as a section's inside."""
        return headline(self.outcome, self.headline, self.sentences)


def judge(material: Material) -> Verdict:
    """Return the verdict on a run."""
    summary = material.summary
    if summary is None:
        broken = [event.content["what"] for event in material.happened("break")]
        return Verdict(
            outcome="broken" if broken else "open",
            headline=(
                f"An assumption broke: {broken[0]}" if broken else "Not ended so far."
            ),
            sentences=(f"{len(material.trace):,} steps so far.", *_measured(material)),
        )
    kept = bool(summary["promise_kept"])
    if not kept:
        said = "The promise was not kept."
        if summary["breaks"]:
            said = "An assumption broke, and the fallback was played."
    elif summary["certified"]:
        said = (
            "The promise was kept at every step, and the policy found is certain to be "
            "as good as was asked."
        )
    else:
        said = "The promise was kept at every step."
    return Verdict(
        outcome="kept" if kept else "broken",
        headline=said,
        sentences=(
            f"{summary['verdict']}.",
            f"The bound {summary['assumption']}."
            if summary["assumption"].startswith("holds")
            else f"{summary['assumption'].capitalize()}.",
            *_measured(material),
            *_in_own_units(material),
            *_against_truth(material),
        ),
    )


def _measured(material: Material) -> list[str]:
    """Say what this one life paid."""
    found = realised(material.trace, material.knowledge.cost_max)
    budget = numbers(material.trace.budget)
    largest = numbers(found["largest_cost_to_go"])
    over = found["steps_over_budget"]
    times = "no step" if not over else "1 step" if over == 1 else f"{over:,} steps"
    unknown = found.get("unknown_costs", 0)
    if unknown:
        each = "1 unknown cost is" if unknown == 1 else f"{unknown:,} unknown costs are"
        times += f"{' at most' if over else ''}, where {each} counted as cost_max"
    said = [
        f"Measured: the discounted cost from a step on was {largest} at most, the "
        f"budget is {budget}; it was over budget from {times}."
    ]
    if over and not unknown:
        said.append(
            "The promise is about the expected cost: one life may cost more than that "
            "by chance, and this one did at times."
        )
    return said


def _in_own_units(material: Material) -> list[str]:
    """Say what is certified as the problem itself counts, where it counts otherwise."""
    found, told = material.certificate, material.knowledge
    if found is None or not told.rescaled:
        return []
    lower, upper, most = (
        number(told.raw_value(value))
        for value in (found.value_lower, found.value_upper, found.upper_bound)
    )
    return [
        f"In the problem's own units, in which {told.reward_map}, the policy found "
        f"earns from {lower} to {upper}, and nobody within budget more than {most}; "
        f"the gap is {number(told.reward_scale * found.gap)} there."
    ]


def _against_truth(material: Material) -> list[str]:
    oracle, certificate = material.oracle, material.certificate
    if oracle is None or certificate is None:
        return []
    own = material.knowledge.raw_value
    inside = certificate.value_lower <= oracle.value <= certificate.value_upper
    return [
        "Judged by the true model, the policy found earns "
        f"{number(own(oracle.value))}, {'within' if inside else 'OUTSIDE'} its "
        f"certified bounds, and costs "
        f"{numbers(oracle.costs)}; the best policy within budget earns "
        f"{number(own(oracle.best))} from the same state."
    ]
