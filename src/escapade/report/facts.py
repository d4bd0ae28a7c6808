"""Conditions, settings and versions: what the verdict rests on, with numbers."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from escapade.report.encoding import number, numbers, table
from escapade.report.material import Material

__all__ = ["condition_rows", "facts_html", "setting_rows"]

Row = tuple[str, str]


def condition_rows(material: Material) -> list[Row]:
    """Return each condition under which the promise holds, with its numbers."""
    return [*_told(material), *_held(material)]


def _told(material: Material) -> Iterator[Row]:
    told = material.knowledge
    yield "budget", numbers(told.budget)
    yield "discount", number(told.discount)
    yield "a step earns at most", number(told.reward_max)
    if told.rescaled:
        yield "as the problem itself counts", told.reward_map
    yield "a step costs at most", numbers(told.cost_max)
    yield "states, actions", f"{told.n_states:,}, {told.n_actions:,}"
    exact = int(told.exact_pairs.sum())
    yield "transitions told exactly", f"{exact:,} of {told.n_pairs:,} pairs"
    yield "pairs told to be free", f"{int(told.free.sum()):,} of {told.n_pairs:,}"
    models = "none" if told.models is None else type(told.models).__name__
    yield "set that holds the true kernel", models
    yield "δ, allowed probability of being wrong", number(material.settings.delta)


def _held(material: Material) -> Iterator[Row]:
    trace, summary = material.trace, material.summary
    slack = (trace.promise - trace.reserved).min(axis=0)
    yield "largest promise at any step", numbers(trace.promise.max(axis=0))
    yield "least promise beyond what the fallback needs", numbers(slack)
    if summary is not None:
        yield "cap on the promise", numbers(summary["cap"])
        yield "δ that was spent", number(summary["failure_probability"])
        yield "a state is known after", f"{summary['known_after']:,} visits"
        lemma = float(summary["known_after_by_lemma"])
        yield "the paper's lemma asks for", f"{lemma:.3g} visits"
        known = f"{summary['known_states']:,} of {summary['states']:,}"
        yield "states known at the end", known
    if material.certificate is not None:
        found = material.certificate
        own = material.knowledge.raw_value
        yield "certified value", f"{number(own(found.value_lower))} at least"
        yield "certified cost", f"{numbers(found.cost_upper)} at most"
        yield "nobody within budget earns more than", number(own(found.upper_bound))
        yield "probability that this certificate is wrong", number(found.exposure)
    for kind, name in (("break", "assumption that broke"), ("drift", "drift seen")):
        events = material.happened(kind)
        for event in events[:20]:
            yield name, f"step {event.step:,}: {event.content['what']}"
        if not events:
            yield name, "none"
        elif len(events) > 20:
            yield name, f"and {len(events) - 20:,} more"


def setting_rows(material: Material) -> list[Row]:
    """Return the agent's settings, seed and the versions the run was lived with."""
    settings = material.settings
    rows = [
        (field.name, str(getattr(settings, field.name)))
        for field in dataclasses.fields(settings)
        if getattr(settings, field.name) is not None
    ]
    for versions in material.versions:
        rows += [(f"version of {name}", str(what)) for name, what in versions.items()]
    return rows


def facts_html(material: Material) -> tuple[str, str]:
    """Return the tables of conditions and of settings."""
    return (
        table("What the agent was told, and what came of it", condition_rows(material)),
        table("All that it takes to live the run again", setting_rows(material)),
    )
