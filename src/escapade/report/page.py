"""The page of a run, put together."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from escapade.experiment import Run
from escapade.report.downloads import downloads_html
from escapade.report.encoding import against, escape
from escapade.report.facts import facts_html
from escapade.report.figures import PHASES, figures
from escapade.report.material import Material, gather
from escapade.report.replay import replay
from escapade.report.scaffold import (
    Figure,
    Section,
    asset,
    build_html,
    figure_section,
    tiles,
    write_html,
)
from escapade.report.verdict import judge

__all__ = ["build_page", "write_page"]


def build_page(run: Run) -> str:
    """Return the page of a run, as HTML.

    Parameters
    ----------
    run
        Simulated or beside a plant, ended or not; with at least one step.
    """
    material = gather(run)
    shown, told = figures(material), replay(material)
    logarithmic = material.bins.downsampled  # long lives learn most of it early
    return build_html(
        title=material.name,
        heading=material.name if material.world is None else material.world.name,
        about=_about(material),
        sections=list(_sections(material, shown, told is not None)),
        figures=shown,
        logarithmic=logarithmic,
        data={"replay": told},
        scripts=["replay.js"],
    )


def write_page(run: Run, path: Path | None = None) -> Path:
    """Write the page of a run, into its directory if not told where else."""
    place = run.directory / "report.html" if path is None else path
    return write_html(build_page(run), place)


def _sections(
    material: Material, shown: list[Figure], mapped: bool
) -> Iterator[Section]:
    verdict = judge(material).html() + "\n" + tiles(_first_numbers(material))
    yield Section(id="verdict", title="Verdict", html=verdict)
    phases = f'{_legend()}\n<p id="sampling">{escape(_sampling(material))}</p>'
    yield Section(id="phases", title="Phases", html=phases)
    for figure in shown:
        yield figure_section(figure, logarithmic=material.bins.downsampled)
    moving = asset("replay.html") if mapped else _no_replay(material)
    yield Section(id="replay", title="Replay", html=moving)
    conditions, settings = facts_html(material)
    yield Section(id="conditions", title="Conditions", html=conditions)
    settings += (
        "\n<details><summary>The specification, spec.toml</summary>"
        f'<pre tabindex="0">{escape(material.specification)}</pre></details>'
    )
    yield Section(id="settings", title="Settings, seed and versions", html=settings)
    yield Section(id="downloads", title="Data", html=downloads_html(material))


def _first_numbers(material: Material) -> Iterator[tuple[str, str]]:
    trace = material.trace
    yield "steps lived", f"{len(trace):,}"
    most = material.to_go.max(axis=0)
    counted = f", {material.unknown:,} unknown counted as cost_max"
    yield (
        f"realised cost at most{counted if material.unknown else ''}",
        against(most, trace.budget),
    )
    plans = material.happened("plan")
    if plans:
        states = f"{plans[-1].content['known']:,} of {material.knowledge.n_states:,}"
        yield "states known", states
    if material.certificate is not None:
        gap = material.knowledge.reward_scale * material.certificate.gap
        yield "certificate gap", f"{gap:.4g}"


def _about(material: Material) -> str:
    if material.world is None:
        return "A life beside a plant."
    said = material.world.description
    return f"{said} The life of one agent: {material.name}."


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
    phases = "\n".join(
        f'<li><span class="{phase.label}" aria-hidden="true">{sign}</span> '
        f"{phase.label}</li>"
        for phase, _, sign in PHASES
    )
    return f'<ul class="legend">\n{phases}\n</ul>'


def _no_replay(material: Material) -> str:
    if material.world is None:
        why = "a life beside a plant has no map"
    elif material.world.cmdp.coordinates is None:
        why = "the states of this world have no coordinates"
    else:
        why = f"a map of {material.knowledge.n_states:,} states is too large for a page"
    return f"<p>There is no replay: {escape(why)}.</p>"
