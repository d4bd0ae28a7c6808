"""The frame of every page: one file that loads nothing.

A page is sections below each other.  Whoever makes one escapes what it says
(:mod:`escapade.report.encoding`); the frame brings the style, light and dark, the list
of contents, the script that draws the figures, and Plotly, inlined once.  A content
security policy in the page forbids every request, so that not even a mistake of ours
could make one.  No clock and no path goes in: the same material gives the same bytes,
with the same versions.  It is used so::

    curve = line([1, 2, 3], [0.1, 0.4, 0.5], "mean", "series-0")
    figure = {
        "id": "curve", "title": "What was earned", "words": "Of all seeds.",
        "data": [curve], "layout": {"xaxis": {"title": {"text": "step"}}}, "log": True,
    }
    text = build_html(
        title="sweep",
        about="Three worlds, ten seeds.",
        sections=[
            Section(id="verdict", title="Verdict", html=headline("kept", "All kept.")),
            figure_section(figure),
            Section(id="runs", title="Runs", html=grid("Runs", ("world", "gap"), rows)),
        ],
        figures=[figure],
    )
    write_html(text, Path("sweep.html"))

Colours in figures are names of the style sheet, ``var(--series-0)`` to
``var(--series-7)`` among them, so that they fit light and dark.  Plotly takes names for
HTML and mathematics: :func:`~escapade.report.encoding.label` those that others chose.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from escapade.experiment.schema import storing
from escapade.model.archives import write_atomically
from escapade.report.encoding import escape, script_json

__all__ = [
    "Figure",
    "Looks",
    "Section",
    "asset",
    "build_html",
    "figure_section",
    "headline",
    "line",
    "looks_of",
    "tiles",
    "write_html",
]

Figure = dict[str, Any]
"""``id``, ``title``, ``words``, ``data`` and ``layout``, as Plotly has the last two.

``log`` is true where x is a step, from 1 on, and may be shown by its logarithm.
"""

_PLACE = re.compile(r"\{\{(\w+)\}\}")
_COLOURS = 8
_SYMBOLS = (
    "circle",
    "diamond",
    "square",
    "triangle-up",
    "triangle-down",
    "cross",
    "x",
    "star",
)
_DASHES = ("solid", "dash", "dot", "dashdot", "longdash")
_SIGNS = {"kept": "✓", "broken": "✗", "open": "…"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of a page: where links lead, its heading, and what stands below it."""

    id: str
    title: str
    html: str


def build_html(
    *,
    title: str,
    about: str,
    sections: Sequence[Section],
    figures: Sequence[Figure],
    logarithmic: bool = False,
    data: Mapping[str, Any] | None = None,
    scripts: Iterable[str] = (),
    heading: str | None = None,
) -> str:
    """Return a page.

    Parameters
    ----------
    title
        Of the page, plain text.
    about
        What stands below the heading, plain text.
    sections
        In order; among them a :func:`figure_section` for each figure.
    figures
        What is drawn.
    logarithmic
        Whether steps are shown by their logarithm at first.
    data
        What the scripts need besides; they find it in ``given``.
    scripts
        Names of assets to run after the figures are drawn.
    heading
        Above it all; the title if not given.
    """
    from plotly.offline import get_plotlyjs

    given = {"figures": figures, "logarithmic": logarithmic, **(data or {})}
    parts = {
        "title": escape(title),
        "heading": escape(title if heading is None else heading),
        "about": escape(about),
        "style": asset("page.css"),
        "contents": "\n".join(
            f'<li><a href="#{s.id}">{escape(s.title)}</a></li>' for s in sections
        ),
        "sections": "\n".join(
            f'<section id="{s.id}"><h2>{escape(s.title)}</h2>\n{s.html}\n</section>'
            for s in sections
        ),
        "data": script_json(given),
        "plotly": get_plotlyjs(),
        "script": "".join(map(asset, ("page.js", *scripts))),
    }
    # in one pass: what is put in is not looked at again
    return _PLACE.sub(lambda found: parts[found[1]], asset("page.html"))


def write_html(text: str, place: Path) -> Path:
    """Write a page, whole or not at all."""
    content = text.encode()
    with storing(place):
        write_atomically(place, lambda file: file.write(content))
    return place


def asset(name: str) -> str:
    """Return a file of the frame."""
    return (resources.files("escapade.report") / "assets" / name).read_text("utf-8")


# -- what stands in sections ---------------------------------------------------------


def headline(outcome: str, words: str, sentences: Iterable[str] = ()) -> str:
    """Return an outcome, ``kept``, ``broken`` or ``open``, in words; plain text."""
    said = "\n".join(f"<li>{escape(sentence)}</li>" for sentence in sentences)
    return (
        f'<p class="headline {outcome}"><span aria-hidden="true">{_SIGNS[outcome]}'
        f"</span> {escape(words)}</p>\n" + (f"<ul>\n{said}\n</ul>" if said else "")
    )


def tiles(facts: Iterable[tuple[str, str]]) -> str:
    """Return a few numbers to be seen first, each with what it is; plain text."""
    found = "\n".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>"
        for name, value in facts
    )
    return f'<dl class="tiles">\n{found}\n</dl>'


def figure_section(figure: Figure, *, logarithmic: bool = False) -> Section:
    """Return the section of a figure, with its switch where x is a step."""
    name = figure["id"]
    scale = ""
    if figure.get("log"):
        pressed = "true" if logarithmic else "false"
        scale = (
            f'<button type="button" class="scale" aria-pressed="{pressed}" '
            f'data-figure="{name}">Logarithmic steps</button>\n'
        )
    return Section(
        id=f"figure-{name}",
        title=figure["title"],
        html=(
            f"<p>{escape(figure['words'])}</p>\n{scale}"
            f'<div class="figure" id="{name}" role="img" '
            f'aria-label="{escape(figure["title"])}"></div>'
        ),
    )


# -- what stands in figures ----------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Looks:
    """What one of several series is told from the others by."""

    colour: str
    symbol: str
    dash: str


def looks_of(place: int) -> Looks:
    """Return the looks of the series in a place; without colour they differ, too."""
    return Looks(
        colour=f"series-{place % _COLOURS}",
        symbol=_SYMBOLS[place % len(_SYMBOLS)],
        dash=_DASHES[place % len(_DASHES)],
    )


def line(
    x: Any, y: Any, name: str, colour: str, *, dash: str = "solid", **more: Any
) -> dict[str, Any]:
    """Return a line; ``colour`` is a name of the style sheet, without its dashes."""
    return {
        "type": "scatter",
        "mode": "lines",
        "x": x,
        "y": y,
        "name": name,
        "line": {"color": f"var(--{colour})", "dash": dash, "width": 1.5},
        **more,
    }
