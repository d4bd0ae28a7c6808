"""The page of a comparison: who earned how much, and who kept within the budget.

What is measured here are means over a few lives; the page says so, and says of whom the
budget is promised and of whom it is not.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from escapade.experiment.comparison import Comparison, Contestant
from escapade.experiment.comparison_files import (
    COMPARISON,
    comparison_text,
    parts,
    rows_of,
)
from escapade.report.encoding import (
    against,
    downloads,
    escape,
    grid,
    label,
    number,
    numbers,
    table,
)
from escapade.report.scaffold import (
    Figure,
    Section,
    build_html,
    figure_section,
    headline,
    line,
    looks_of,
    tiles,
    write_html,
)
from escapade.typing import FloatArray

__all__ = ["build_comparison_page", "comparison_figures", "write_comparison_page"]

_OWN, _ORACLE = "e4", "oracle"
HEADER = (
    "agent",
    "reward a step",
    "of the oracle's",
    "worst mean cost",
    "budget",
    "steps over",
    "lives over",
    "steps to 90 %",
    "seconds a life",
)


def build_comparison_page(found: Comparison) -> str:
    """Return the page of a comparison, as HTML."""
    shown = comparison_figures(found)
    return build_html(
        title=f"{found.world}: side by side",
        about=(
            f"{found.description} {len(found.contestants):,} agents, "
            f"{found.lifetimes:,} {'life' if found.lifetimes == 1 else 'lives'} of "
            f"{found.steps:,} steps each."
        ),
        sections=list(_sections(found, shown)),
        figures=shown,
    )


def write_comparison_page(found: Comparison, path: Path) -> Path:
    """Write the page of a comparison."""
    return write_html(build_comparison_page(found), path)


def _sections(found: Comparison, shown: list[Figure]) -> Iterator[Section]:
    yield Section(id="verdict", title="Verdict", html=_verdict(found))
    figures = map(figure_section, shown)
    yield next(figures)
    yield Section(id="agents", title="In numbers", html=_numbers(found))
    yield from figures
    yield Section(id="reading", title="How to read it", html=_reading(found))
    rows = [
        ("world", found.world),
        ("lives of each agent", f"{found.lifetimes:,}"),
        ("steps in a life", f"{found.steps:,}"),
        ("steps whose cost is judged", f"{found.judged:,}"),
        ("budget", numbers(found.budget)),
        ("seed", str(found.seed)),
        *((f"version of {k}", what) for k, what in sorted(found.versions.items())),
    ]
    made = table("All that it takes to compare them again", rows)
    yield Section(id="settings", title="Settings, seed and versions", html=made)
    files = [
        (COMPARISON, "application/json", comparison_text(found), "All of it"),
        ("agents.csv", "text/csv", _csv(found, "agents"), "One row an agent"),
        ("curves.csv", "text/csv", _csv(found, "curves"), "The curves"),
    ]
    yield Section(id="downloads", title="Data", html=downloads(files))


# -- in words ------------------------------------------------------------------------


def _verdict(found: Comparison) -> str:
    lived = [c for c in found.contestants if not c.note]
    inside = [c.name for c in lived if not c.violates]
    outside = [c.name for c in lived if c.violates]
    sentences = []
    if inside:
        sentences.append(
            f"Mean cost-to-go within the budget at every step: {', '.join(inside)}."
        )
    if outside:
        sentences.append(f"Above it at some step: {', '.join(outside)}.")
    sentences += [
        f"{c.name} did not live: {c.note}" for c in found.contestants if c.note
    ]
    own = next((c for c in found.contestants if c.name == _OWN), None)
    if own is None or own.note:
        return headline("open", "Measured, agent by agent.", sentences)
    outcome = "broken" if own.violates else "kept"
    kept = "went above the budget" if own.violates else "stayed within the budget"
    words = f"E⁴'s mean cost-to-go {kept}"
    words += " at some step" if own.violates else " at every step"
    if np.isfinite(own.share):
        words += f", and it earned {own.share:.0%} of what the oracle did"
    rivals = [c for c in lived if c.name != _ORACLE and not c.violates]
    first = [
        (
            "E⁴: worst mean cost",
            against(own.worst_cost, found.budget),
        ),
        ("E⁴: of the oracle's reward", _percent(own.share)),
        ("agents within the budget", f"{len(inside)} of {len(lived)}"),
    ]
    if len(rivals) > 1:
        best = max(rivals, key=lambda c: c.reward)
        first.append(("of these but the oracle, earned most", best.name))
    return headline(outcome, f"{words}.", sentences) + "\n" + tiles(first)


def _reading(found: Comparison) -> str:
    said = [
        "The mean cost-to-go of a step is the discounted cost from there on, averaged "
        "over the lives. A budget is about its expectation: a mean of few lives lies "
        "above or below that by chance, and the worst of many such means lies above "
        "the worst expectation. An audit bounds what this page only measures.",
        "Steps over: at which share of steps that mean was above a budget. Lives over: "
        "at which share of all lives and steps the realised cost was; one life may be "
        "over a budget that is kept in expectation.",
        "The oracle is told the true model, and keeps its budget from the start on "
        "average, not from every later step on: it may be over the budget too. All "
        "others are told the same, and less.",
        "Steps to 90 %: until a window of a twentieth of a life earns nine tenths of "
        "what the oracle earns on average.",
    ]
    if found.judged < found.steps:
        said.append(
            f"Costs after the last step are not seen, so costs are judged from the "
            f"first {found.judged:,} of {found.steps:,} steps on."
        )
    return "\n".join(f"<p>{escape(sentence)}</p>" for sentence in said)


def _numbers(found: Comparison) -> str:
    rows = [
        (
            c.name,
            _short(c.reward),
            _percent(c.share),
            _several(c.worst_cost),
            numbers(found.budget),
            _percent(c.steps_over),
            _percent(c.over),
            "–" if c.steps_to_oracle is None else f"{c.steps_to_oracle:,}",
            "–" if np.isnan(c.seconds) else f"{c.seconds:.2f}",
        )
        for c in found.contestants
    ]
    return grid("Means over all lives", HEADER, rows)


def _short(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:.4g}"


def _several(values: FloatArray) -> str:
    return ", ".join(map(_short, values.tolist()))


def _percent(value: float) -> str:
    return "–" if np.isnan(value) else f"{100.0 * value:.1f} %"


def _csv(found: Comparison, name: str) -> str:
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows(rows_of(found, name))
    return file.getvalue()


# -- in pictures ---------------------------------------------------------------------


def comparison_figures(found: Comparison) -> list[Figure]:
    """Return the figures of a comparison, in order."""
    lived = [(k, c) for k, c in enumerate(found.contestants) if not c.note]
    return [
        _tradeoff(found, lived),
        _earned(found, lived),
        *(_paid(found, lived, channel) for channel in range(found.budget.size)),
    ]


Lived = list[tuple[int, Contestant]]
"""Who lived, with a place that gives the agent the same looks in every figure."""


def _curve(place: int, c: Contestant, x: Any, y: Any) -> dict[str, Any]:
    """Return a curve that is told from the others by colour, dash and symbol."""
    looks = looks_of(place)
    drawn = line(x, y, label(c.name), looks.colour, dash=looks.dash)
    drawn["line"]["width"] = 3 if c.name == _OWN else 1.5
    return drawn


def _marks(place: int, c: Contestant, x: Any, y: Any) -> dict[str, Any]:
    looks = looks_of(place)
    return {
        "type": "scatter",
        "mode": "markers",
        "x": x,
        "y": y,
        "name": label(c.name),
        "cliponaxis": False,
        "marker": {
            "symbol": looks.symbol,
            "size": 15 if c.name == _OWN else 11,
            "color": f"var(--{looks.colour})",
        },
    }


def _limit(x: list[float], at: float, name: str) -> dict[str, Any]:
    return line(x, [at, at], name, "bad", dash="dash")


def _tradeoff(found: Comparison, lived: Lived) -> Figure:
    positive = np.maximum(found.budget, 1e-12)
    data = [
        _marks(place, c, [100.0 * c.share], [float((c.worst_cost / positive).max())])
        for place, c in lived
    ]
    most = max([100.0, *(100.0 * c.share for _, c in lived if np.isfinite(c.share))])
    most *= 1.08
    data.append(_limit([0.0, most], 1.0, "budget"))
    several = "; of several budgets the one that was overrun most" * (
        found.budget.size > 1
    )
    return {
        "id": "tradeoff",
        "title": "Value against the oracle, cost against the budget",
        "words": (
            "To the right is what an agent earned, as a share of the oracle's reward; "
            "upwards its worst mean cost-to-go, as a multiple of the budget"
            f"{several}. Below the line is within the budget."
        ),
        "data": data,
        "layout": {
            "height": 440,
            "xaxis": {
                "title": {"text": "reward, % of the oracle's"},
                "range": [0.0, most],
            },
            "yaxis": {
                "title": {"text": "worst mean cost / budget"},
                "rangemode": "tozero",
            },
        },
    }


def _middles(steps: int, count: int) -> FloatArray:
    """Return the middle steps of the parts of a life."""
    first = parts(steps, count).astype(np.float64)
    middle: FloatArray = (first + np.append(first[1:], steps) + 1.0) / 2.0
    return middle


def _earned(found: Comparison, lived: Lived) -> Figure:
    data = [
        _curve(place, c, _middles(found.steps, c.rewards.size), c.rewards)
        for place, c in lived
    ]
    return {
        "id": "rewards",
        "title": "What was earned",
        "words": "The mean reward a step over all lives, in parts of a life.",
        "data": data,
        "layout": {
            "height": 440,
            "xaxis": {"title": {"text": "step"}, "rangemode": "tozero"},
            "yaxis": {"title": {"text": "reward a step"}, "rangemode": "tozero"},
        },
        "log": True,
    }


def _paid(found: Comparison, lived: Lived, channel: int) -> Figure:
    data = [
        _curve(place, c, _middles(found.judged, len(c.costs)), c.costs[:, channel])
        for place, c in lived
    ]
    budget = float(found.budget[channel])
    data.append(_limit([1.0, float(found.steps)], budget, "budget"))
    which = "" if found.budget.size == 1 else f", budget {channel}"
    return {
        "id": f"costs-{channel}",
        "title": f"What was paid{which}",
        "words": (
            "The mean cost-to-go over all lives, averaged over parts of a life; the "
            f"worst single step is in the table. The budget is {number(budget)}."
        ),
        "data": data,
        "layout": {
            "height": 440,
            "xaxis": {"title": {"text": "step"}, "rangemode": "tozero"},
            "yaxis": {"title": {"text": "mean cost-to-go"}, "rangemode": "tozero"},
        },
        "log": True,
    }
