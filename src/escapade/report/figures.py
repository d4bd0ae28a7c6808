"""What Plotly draws: traces and layouts as plain data.

Colours are names of the page's style sheet, ``var(--…)``, so that the same figure fits
light and dark; a phase has a symbol and a lane of its own besides its colour.  No name
that a user chose goes into a figure.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from escapade.agent.phases import Phase
from escapade.report.material import Material
from escapade.typing import FloatArray

__all__ = ["PHASES", "Figure", "figures"]

Figure = dict[str, Any]
"""``id``, ``title``, ``words``, ``data`` and ``layout``; ``log`` where x is a step."""

PHASES = (
    (Phase.EXPLOIT, "circle", "●"),
    (Phase.EXPLORE, "diamond", "◆"),
    (Phase.WANDER, "square", "■"),
    (Phase.ESCAPE, "triangle-up", "▲"),
    (Phase.RETURN, "triangle-down", "▼"),
    (Phase.WAIT, "cross", "✚"),
)
"""Each phase with its symbol, for Plotly and in text."""


def figures(material: Material) -> list[Figure]:
    """Return the figures of a page, in order."""
    found: list[Figure] = []
    channels = range(material.trace.budget.size)
    found += [_promise(material, channel) for channel in channels]
    found += [_known(material)]
    found += [_earned(material)]
    found += [_value(material)]
    found += [_predicted(material, channel) for channel in channels]
    return [figure for figure in found if figure]


def _which(material: Material, channel: int) -> str:
    return "" if material.trace.budget.size == 1 else f", budget {channel}"


def _line(
    x: Any, y: Any, name: str, colour: str, *, dash: str = "solid", **more: Any
) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines",
        "x": x,
        "y": y,
        "name": name,
        "line": {"color": f"var(--{colour})", "dash": dash, "width": 1.5},
        **more,
    }


def _steps(material: Material) -> FloatArray:
    """Return where bins are drawn: steps from 1, as a logarithmic axis needs."""
    return (material.bins.first + 1).astype(np.float64)


def _budget(material: Material, channel: int) -> dict[str, Any]:
    ends = [1, len(material.trace)]
    budget = float(material.trace.budget[channel])
    return _line(ends, [budget, budget], "budget", "bad", dash="dash")


def _step_axis(title: str = "step") -> dict[str, Any]:
    return {"title": {"text": title}, "rangemode": "tozero"}


def _promise(material: Material, channel: int) -> Figure:
    trace, bins, x = material.trace, material.bins, _steps(material)
    promise = trace.promise[:, channel]
    quiet = {"shape": "hv", "color": "var(--quiet)", "width": 1}
    lowest, highest = bins.lowest(promise), bins.highest(promise)
    data = [
        _line(x, highest, "promise, most", "quiet", showlegend=False) | {"line": quiet},
        _line(x, lowest, "promise, least to most", "quiet")
        | {"line": quiet, "fill": "tonexty", "fillcolor": "var(--band)"},
        _line(
            x,
            bins.highest(trace.reserved[:, channel]),
            "reserved for the fallback, most",
            "text",
            dash="dot",
        ),
        _budget(material, channel),
    ]
    for row, (phase, symbol, _) in enumerate(PHASES):
        at, least = bins.lowest_where(promise, trace.phases == phase)
        marker = {"color": f"var(--{phase.label})", "symbol": symbol, "size": 6}
        common = {
            "type": "scatter",
            "mode": "markers",
            "x": at + 1,
            "marker": marker,
            "legendgroup": phase.label,
            "name": phase.label,
        }
        data.append({**common, "y": least})
        lane = {**common, "y": [row] * at.size, "yaxis": "y2", "showlegend": False}
        data.append({**lane, "hovertemplate": f"{phase.label}, step %{{x}}"})
    return {
        "id": f"promise-{channel}",
        "title": f"Promise and reserve{_which(material, channel)}",
        "words": (
            "What the agent promised that life will cost at most from each step on, "
            "and how much of it the fallback needed. A symbol marks the least promise "
            "in a phase; below, each phase has a lane of its own."
        ),
        "data": data,
        "layout": {
            "height": 520,
            "xaxis": {**_step_axis(), "anchor": "y2"},
            "yaxis": {
                "domain": [0.36, 1],
                "rangemode": "tozero",
                "title": {"text": "discounted cost"},
            },
            "yaxis2": {
                "domain": [0, 0.29],
                "tickvals": list(range(len(PHASES))),
                "ticktext": [phase.label for phase, _, _ in PHASES],
                "range": [len(PHASES) - 0.5, -0.5],
                "fixedrange": True,
            },
        },
        "log": True,
    }


def _known(material: Material) -> Figure:
    plans = material.happened("plan")
    if not plans:
        return {}
    born = plans[0].content["known"] - len(plans[0].content["newly_known"])
    x = [1, *(max(plan.step, 1) for plan in plans), len(material.trace)]
    y = [born, *(plan.content["known"] for plan in plans), plans[-1].content["known"]]
    whole = material.knowledge.n_states
    known = _line(x, y, "known states", "explore", fill="tozeroy")
    known["line"]["shape"] = "hv"
    known["fillcolor"] = "var(--band)"
    data = [
        known,
        _line([1, x[-1]], [whole, whole], "all states", "quiet", dash="dash"),
    ]
    gaps = [(p.step, p.content["gap"]) for p in plans if p.content["gap"] is not None]
    if gaps:
        steps, sizes = zip(*gaps, strict=True)
        gap = _line(steps, sizes, "certificate gap (right)", "escape")
        data.append({**gap, "mode": "lines+markers", "yaxis": "y2"})
    return {
        "id": "known",
        "title": "What became known",
        "words": (
            f"States that count as known: {born:,} at birth, {y[-1]:,} of {whole:,} at "
            "the end. The gap is how much better than the certified policy any other "
            "within budget may be."
        ),
        "data": data,
        "layout": {
            "xaxis": _step_axis(),
            "yaxis": {"rangemode": "tozero", "title": {"text": "states"}},
            "yaxis2": {"overlaying": "y", "side": "right", "rangemode": "tozero"},
        },
        "log": True,
    }


def _own_units(material: Material) -> str:
    told = material.knowledge
    if not told.rescaled:
        return ""
    return f" In the problem's own units, in which {told.reward_map}."


def _earned(material: Material) -> Figure:
    bins, x = material.bins, _steps(material)
    told = material.knowledge
    rate = bins.total(material.trace.rewards) / bins.lengths
    rate = told.reward_scale * rate + told.reward_offset
    data = [_line(x, rate, "mean reward a step", "exploit")]
    world = material.world
    best = None if world is None else world.raw_average_optimum
    if best is not None:
        ends = [1, len(material.trace)]
        data.append(
            _line(ends, [best, best], "best in the long run", "bad", dash="dash")
        )
    return {
        "id": "earned",
        "title": "What was earned",
        "words": "The mean reward a step, bin by bin." + _own_units(material),
        "data": data,
        "layout": {
            "xaxis": _step_axis(),
            "yaxis": {"rangemode": "tozero", "title": {"text": "reward a step"}},
        },
        "log": True,
    }


def _value(material: Material) -> Figure:
    found, oracle, told = material.certificate, material.oracle, material.knowledge
    if found is None or not np.isfinite(found.value_lower):
        return {}
    middle = (found.value_lower + found.value_upper) / 2
    half = told.reward_scale * (found.value_upper - found.value_lower) / 2
    rows = [("certified bounds", middle, half, "circle", "exploit")]
    if oracle is not None:
        rows += [
            ("its true value", oracle.value, 0.0, "diamond", "explore"),
            ("oracle: best in budget", oracle.best, 0.0, "square", "escape"),
        ]
    rows += [("nobody earns more", found.upper_bound, 0.0, "line-ns", "bad")]
    data = [
        {
            "type": "scatter",
            "mode": "markers",
            "x": [told.raw_value(at)],
            "y": [name],
            "name": name,
            "showlegend": False,
            "error_x": {"type": "data", "array": [width], "visible": width > 0},
            "marker": {
                "symbol": symbol,
                "size": 12,
                "color": f"var(--{colour})",
                "line": {"width": 2, "color": f"var(--{colour})"},
            },
        }
        for name, at, width, symbol, colour in rows
    ]
    return {
        "id": "value",
        "title": "Value against the oracle" if oracle else "Value",
        "words": (
            "What the certified policy earns from where the life ended, by its bounds"
            + (
                ", by the true model, and beside the best that keeps the budget."
                if oracle
                else ". No oracle: no truth is at hand, or one too large to solve here."
            )
            + _own_units(material)
        ),
        "data": data,
        "layout": {
            "height": 280,
            "xaxis": {"title": {"text": "discounted value"}},
            "yaxis": {"autorange": "reversed", "automargin": True, "type": "category"},
        },
    }


def _predicted(material: Material, channel: int) -> Figure:
    trace, bins, x = material.trace, material.bins, _steps(material)
    realised, promise = material.to_go[:, channel], trace.promise[:, channel]
    above = realised > promise
    most = float(np.max((realised - promise)[above], initial=0.0))
    at = np.flatnonzero(bins.count(above) > 0)
    data = [
        _line(x, bins.lowest(promise), "predicted: promise, least", "explore"),
        _line(x, bins.highest(realised), "realised cost, most", "escape"),
        _budget(material, channel),
        {
            "type": "scatter",
            "mode": "markers",
            "x": x[at],
            "y": bins.highest(np.where(above, realised, np.nan))[at],
            "name": "realised above its promise",
            "marker": {"symbol": "x", "size": 8, "color": "var(--bad)"},
        },
    ]
    return {
        "id": f"predicted-{channel}",
        "title": f"Predicted against realised{_which(material, channel)}",
        "words": (
            f"The promise bounds the expected cost from a step on. Beside it, what "
            f"this life came to cost from that step on: above its promise from "
            f"{int(above.sum()):,} of {len(trace):,} steps, by {most:.4g} at most. "
            "What comes after the last step is not in it."
        ),
        "data": data,
        "layout": {
            "xaxis": _step_axis(),
            "yaxis": {"rangemode": "tozero", "title": {"text": "discounted cost"}},
        },
        "log": True,
    }
