"""The page, put together: one file that loads nothing.

Its template, style and script are files under ``assets``.  Plotly's script is inlined
once.  A content security policy in the page forbids every request, so that not even a
mistake of ours could make one.  The same run gives the same bytes, with the same
versions: no clock and no path goes in.
"""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path

from escapade.experiment import Run
from escapade.experiment.schema import storing
from escapade.model.archives import write_atomically
from escapade.report.downloads import downloads_html
from escapade.report.encoding import escape, script_json
from escapade.report.facts import facts_html
from escapade.report.figures import PHASES, Figure, figures
from escapade.report.material import Material, gather
from escapade.report.replay import replay
from escapade.report.verdict import judge

__all__ = ["build_page", "write_page"]

_PLACE = re.compile(r"\{\{(\w+)\}\}")


def build_page(run: Run) -> str:
    """Return the page of a run, as HTML.

    Parameters
    ----------
    run
        Simulated or beside a plant, ended or not; with at least one step.
    """
    from plotly.offline import get_plotlyjs

    material = gather(run)
    shown, told = figures(material), replay(material)
    conditions, settings = facts_html(material)
    logarithmic = material.bins.downsampled  # long lives learn most of it early
    return _fill(
        _asset("page.html"),
        {
            "name": escape(material.name),
            "about": escape(_about(material)),
            "style": _asset("page.css"),
            "verdict": judge(material).html(),
            "sampling": escape(_sampling(material)),
            "legend": _legend(),
            "figures": "\n".join(_section(figure, logarithmic) for figure in shown),
            "replay": _asset("replay.html") if told else _no_replay(material),
            "conditions": conditions,
            "settings": settings,
            "specification": escape(material.specification),
            "downloads": downloads_html(material),
            "data": script_json(
                {"figures": shown, "logarithmic": logarithmic, "replay": told}
            ),
            "plotly": get_plotlyjs(),
            "script": _asset("page.js") + _asset("replay.js"),
        },
    )


def write_page(run: Run, path: Path | None = None) -> Path:
    """Write the page of a run, into its directory if not told where else."""
    place = run.directory / "report.html" if path is None else path
    text = build_page(run).encode()
    with storing(place):
        write_atomically(place, lambda file: file.write(text))
    return place


def _asset(name: str) -> str:
    return (resources.files("escapade.report") / "assets" / name).read_text("utf-8")


def _fill(template: str, parts: dict[str, str]) -> str:
    """Put parts in their places, in one pass: what is put in is not looked at again."""
    return _PLACE.sub(lambda found: parts[found[1]], template)


def _about(material: Material) -> str:
    if material.world is None:
        return "A life beside a plant."
    return f"A life in {material.world.name}: {material.world.description}"


def _sampling(material: Material) -> str:
    steps = f"{len(material.trace):,} steps"
    if not material.bins.downsampled:
        return f"The figures show each of the {steps}."
    return (
        f"The figures are downsampled: {steps} in {len(material.bins):,} bins, each "
        f"shown by its least or largest value, so that no excess is hidden. Every step "
        f"stands in the run's journal."
    )


def _legend() -> str:
    return "\n".join(
        f'<li><span class="{phase.label}" aria-hidden="true">{sign}</span> '
        f"{phase.label}</li>"
        for phase, _, sign in PHASES
    )


def _section(figure: Figure, logarithmic: bool) -> str:
    pressed = "true" if logarithmic else "false"
    scale = (
        f'<button type="button" class="scale" aria-pressed="{pressed}" '
        f'data-figure="{figure["id"]}">Logarithmic steps</button>'
        if figure.get("log")
        else ""
    )
    return (
        f"<section><h2>{escape(figure['title'])}</h2>\n"
        f"<p>{escape(figure['words'])}</p>\n{scale}\n"
        f'<div class="figure" id="{figure["id"]}" role="img" '
        f'aria-label="{escape(figure["title"])}"></div></section>'
    )


def _no_replay(material: Material) -> str:
    if material.world is None:
        why = "a life beside a plant has no map"
    elif material.world.cmdp.coordinates is None:
        why = "the states of this world have no coordinates"
    else:
        why = f"a map of {material.knowledge.n_states:,} states is too large for a page"
    return f"<p>There is no replay: {escape(why)}.</p>"
