"""What Plotly draws: traces and layouts as plain data.

Colours are names of the page's style sheet, ``var(--…)``, so that the same figure fits
light and dark; a phase has a symbol and a lane of its own besides its colour.  No name
that a user chose goes into a figure.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from escapade.agent.phases import Phase
from escapade.report.binning import Bins
from escapade.report.material import MOST_PAIRS, Material
from escapade.report.scaffold import Figure, line
from escapade.typing import FloatArray

__all__ = ["PHASES", "figures"]

PHASES = (
    (Phase.EXPLOIT, "circle", "●"),
    (Phase.EXPLORE, "diamond", "◆"),
    (Phase.WANDER, "square", "■"),
    (Phase.ESCAPE, "triangle-up", "▲"),
    (Phase.RETURN, "triangle-down", "▼"),
    (Phase.WAIT, "cross", "✚"),
)
"""Each phase with its symbol, for Plotly and in text."""


_RATES = 60
"""Bins each way of which a mean is drawn."""


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


def _steps(material: Material) -> FloatArray:
    """Return where bins are drawn: steps from 1, as a logarithmic axis needs."""
    return (material.bins.first + 1).astype(np.float64)


def _budget(material: Material, channel: int) -> dict[str, Any]:
    ends = [1, len(material.trace)]
    budget = float(material.trace.budget[channel])
    return line(ends, [budget, budget], "budget", "bad", dash="dash")


def _step_axis(title: str = "step") -> dict[str, Any]:
    return {"title": {"text": title}, "rangemode": "tozero"}


def _promise(material: Material, channel: int) -> Figure:
    trace, bins, x = material.trace, material.bins, _steps(material)
    promise = trace.promise[:, channel]
    quiet = {"shape": "hv", "color": "var(--quiet)", "width": 1}
    lowest, highest = bins.lowest(promise), bins.highest(promise)
    data = [
        line(x, highest, "promise, most", "quiet", showlegend=False) | {"line": quiet},
        line(x, lowest, "promise, least to most", "quiet")
        | {"line": quiet, "fill": "tonexty", "fillcolor": "var(--band)"},
        line(
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
            "name": phase.label,
            "showlegend": False,  # its lane says which it is
        }
        data.append({**common, "y": least})
        lane = {**common, "y": [row] * at.size, "yaxis": "y2"}
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
    known = line(x, y, "known states", "explore", fill="tozeroy")
    known["line"]["shape"] = "hv"
    known["fillcolor"] = "var(--band)"
    data = [
        known,
        line([1, x[-1]], [whole, whole], "all states", "quiet", dash="dash"),
    ]
    gaps = [(p.step, p.content["gap"]) for p in plans if p.content["gap"] is not None]
    if gaps:
        steps = [step for step, _ in gaps]
        sizes = [material.knowledge.reward_scale * gap for _, gap in gaps]
        gap = line(steps, sizes, "certificate gap (right)", "escape")
        marker = {"symbol": "circle", "size": 6, "color": "var(--escape)"}
        data.append(gap | {"mode": "lines+markers", "marker": marker, "yaxis": "y2"})
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
            "yaxis2": {
                "overlaying": "y",
                "side": "right",
                "rangemode": "tozero",
                "tickmode": "auto",
                "showgrid": False,
                "title": {"text": "gap"},
            },
        },
        "log": True,
    }


def _own_units(material: Material) -> str:
    told = material.knowledge
    if not told.rescaled:
        return ""
    return f" In the problem's own units, in which {told.reward_map}."


def _earned(material: Material) -> Figure:
    told = material.knowledge
    # few bins: the mean of few steps is mostly noise
    bins = Bins.over(len(material.trace), each_way=_RATES)
    x = (bins.first + 1).astype(np.float64)
    rate = bins.total(material.trace.rewards) / bins.lengths
    rate = told.reward_scale * rate + told.reward_offset
    data = [line(x, rate, "mean reward a step", "exploit")]
    world, oracle = material.world, material.oracle
    best = None if world is None else world.raw_average_optimum
    name = "best in the long run"
    words = "The mean reward a step, bin by bin."
    if best is None and oracle is not None and np.isfinite(oracle.best):
        best = (1.0 - told.discount) * told.raw_value(oracle.best)
        name = "the oracle's value, a step"
        words += (
            " Beside it, the value of the best policy within budget, from where the "
            "life ended, spread over its steps: (1 − discount) times that value."
        )
    if best is not None:
        ends = [1, len(material.trace)]
        data.append(line(ends, [best, best], name, "bad", dash="dash"))
    return {
        "id": "earned",
        "title": "What was earned",
        "words": words + _own_units(material),
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
    lower, upper = told.raw_value(found.value_lower), told.raw_value(found.value_upper)
    bounds = f"{lower:.6g} to {upper:.6g}"
    rows = [("certified bounds", middle, half, "circle", "exploit", bounds)]
    if oracle is not None:
        rows += [
            ("its true value", oracle.value, 0.0, "diamond", "explore", ""),
            ("oracle: best in budget", oracle.best, 0.0, "square", "escape", ""),
        ]
    rows += [("nobody earns more", found.upper_bound, 0.0, "line-ns", "bad", "")]
    rows = [row for row in rows if np.isfinite(row[1])]
    data = [
        {
            "type": "scatter",
            "mode": "markers+text",
            "x": [told.raw_value(at)],
            "y": [name],
            "text": [words or f"{told.raw_value(at):.6g}"],
            "textposition": "top center",
            "cliponaxis": False,
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
        for name, at, width, symbol, colour, words in rows
    ]
    return {
        "id": "value",
        "title": "Value against the oracle" if oracle else "Value",
        "words": (
            "What the certified policy earns from the state in which the life ended, "
            f"discounted, by its bounds{_judged_by(material)}{_own_units(material)}"
        ),
        "data": data,
        "layout": {
            "height": 300,
            "xaxis": {"title": {"text": "discounted value"}},
            "yaxis": {
                "type": "category",
                "range": [len(rows) - 0.5, -0.7],
                "automargin": True,
            },
        },
    }


def _judged_by(material: Material) -> str:
    """Say what stands beside the bounds, or why nothing does."""
    if material.oracle is not None:
        return (
            ", by the true model, and beside the best that any policy earns from there "
            "within the budget. The last two are known to who knows the world; the "
            "agent does not."
        )
    if material.world is None:
        return ". There is no oracle: nobody knows the truth about a plant."
    return (
        f". There is no oracle: it is asked in worlds of up to {MOST_PAIRS:,} "
        f"state-action pairs, and this one has {material.world.cmdp.n_pairs:,}."
    )


def _predicted(material: Material, channel: int) -> Figure:
    trace, bins, x = material.trace, material.bins, _steps(material)
    realised, promise = material.to_go[:, channel], trace.promise[:, channel]
    above = realised > promise
    most = float(np.max((realised - promise)[above], initial=0.0))
    tightest = bins.place_of_lowest(promise - realised)
    at = np.flatnonzero(above[tightest])
    words = (
        f"above its promise from {int(above.sum()):,} of {len(trace):,} steps, by "
        f"{most:.4g} at most"
        if most
        else f"above its promise from none of {len(trace):,} steps"
    )
    if material.unknown:
        words += f", with cost_max for each of {material.unknown:,} unknown costs"
    data = [
        line(x, promise[tightest], "predicted: the promise", "explore"),
        line(x, realised[tightest], "realised from that step on", "escape"),
        _budget(material, channel),
        {
            "type": "scatter",
            "mode": "markers",
            "x": x[at],
            "y": realised[tightest][at],
            "name": "realised above its promise",
            "marker": {"symbol": "x", "size": 8, "color": "var(--bad)"},
            "showlegend": at.size > 0,
        },
    ]
    if bins.downsampled:
        words += ". Of each bin the step is shown at which the two come nearest"
        highest = bins.highest(realised)
        data.insert(
            0, line(x, highest, "realised, most in the bin", "quiet", dash="dot")
        )
    return {
        "id": f"predicted-{channel}",
        "title": f"Predicted against realised{_which(material, channel)}",
        "words": (
            "The promise bounds the expected cost from a step on. Beside it, what this "
            f"life came to cost from that step on: {words}. What comes after the last "
            "step is not in it."
        ),
        "data": data,
        "layout": {
            "xaxis": _step_axis(),
            "yaxis": {"rangemode": "tozero", "title": {"text": "discounted cost"}},
        },
        "log": True,
    }
