"""The page of a sweep: what came of it, over worlds and settings, with its spread.

Every combination of world and settings is shown by its mean over seeds, with the least
and the most; the seeds stand behind it as small marks.  The pictures are drawn along
one axis at a time, the rest tells the series apart; which axis is for the reader to
choose.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from escapade.experiment.sweeps import Sweep
from escapade.experiment.sweeps.combinations import Combination, combinations
from escapade.experiment.sweeps.store import RESULTS_FILE, SPEC_FILE
from escapade.experiment.sweeps.table import Row
from escapade.experiment.toml_text import toml_value
from escapade.report.encoding import downloads, escape, grid, label, table
from escapade.report.scaffold import (
    Figure,
    Section,
    build_html,
    figure_section,
    headline,
    looks_of,
    tiles,
    write_html,
)

__all__ = ["build_sweep_page", "write_sweep_page"]

_MOST_SERIES, _MOST_LINES, _MOST_SEEDS = 16, 500, 5_000
_MOST_BYTES = 500_000
"""What a page can show of a large sweep; it says what it leaves out."""

_WORLD = "world"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Measure:
    """A number that is made of a row; NaN where there is none."""

    id: str
    title: str
    axis: str
    words: str
    of: Callable[[Row], float]
    from_zero: bool = True


def _number(name: str) -> Callable[[Row], float]:
    return lambda row: math.nan if row[name] is None else float(row[name])


def _worst(row: Row) -> float:
    """Return the dearest step's cost, as a multiple of the budget it was nearest to."""
    shares = []
    for name, value in row.items():
        if name.startswith("largest_cost_to_go") and value is not None:
            budget = row[f"budget{name.removeprefix('largest_cost_to_go')}"]
            shares.append(value / max(budget, 1e-12))
    return max(shares, default=math.nan)


def _known(row: Row) -> float:
    if row["known_states"] is None:
        return math.nan
    return 100.0 * float(row["known_states"]) / float(row["states"])


_MEASURES = (
    _Measure(
        id="reward",
        title="What was earned",
        axis="reward a step",
        words="The mean reward a step.",
        of=_number("reward_per_step"),
    ),
    _Measure(
        id="worst",
        title="What was paid at worst",
        axis="worst realised cost / budget",
        words=(
            "The realised discounted cost from the dearest step on, as a multiple of "
            "the budget; of several budgets the one that was overrun most. The promise "
            "is about its expectation: one life may be above the line by chance."
        ),
        of=_worst,
        from_zero=False,
    ),
    _Measure(
        id="value",
        title="What is certain to be earned",
        axis="certified value, at least",
        words="The lower bound that the certificate puts on the value of its policy.",
        of=_number("value_lower"),
        from_zero=False,
    ),
    _Measure(
        id="gap",
        title="How far from the best",
        axis="certificate gap",
        words=(
            "How much better than the certified policy any other within the budget may "
            "be."
        ),
        of=_number("gap"),
    ),
    _Measure(
        id="known",
        title="What became known",
        axis="known states, %",
        words="States that count as known at the end, as a share of all.",
        of=_known,
    ),
    _Measure(
        id="steps",
        title="How long it took",
        axis="steps",
        words="Steps until the run ended.",
        of=_number("steps"),
    ),
)


def build_sweep_page(found: Sweep) -> str:
    """Return the page of a sweep, as HTML.

    Parameters
    ----------
    found
        Finished, or with some runs that have ended.
    """
    rows = found.rows()
    groups = combinations(rows)
    told = [group for group in groups if group.rows]
    along = _axes(told)
    variants = {axis: _figures(found, told, axis) for axis in along}
    shown = variants[along[0]]
    names = list(dict.fromkeys(world.name for world in found.spec.worlds))
    return build_html(
        title=f"Sweep of {', '.join(names)}",
        about=(
            f"{len(groups):,} combinations of world and settings, "
            f"{len(found.spec.seeds):,} seeds each, up to {found.spec.steps:,} steps a "
            f"run."
        ),
        sections=list(_sections(found, rows, groups, along, shown)),
        figures=shown,
        data={"along": variants},
        scripts=["sweep.js"],
    )


def write_sweep_page(found: Sweep, path: Path | None = None) -> Path:
    """Write the page of a sweep, into its directory if not told where else."""
    place = found.directory / "report.html" if path is None else path
    return write_html(build_sweep_page(found), place)


def _sections(
    found: Sweep,
    rows: Sequence[Row],
    groups: Sequence[Combination],
    along: Sequence[str],
    shown: Sequence[Figure],
) -> Iterator[Section]:
    yield Section(id="verdict", title="Verdict", html=_verdict(found, rows))
    yield Section(id="numbers", title="In numbers", html=_numbers(groups))
    yield Section(id="pictures", title="In pictures", html=_choice(groups, along))
    yield from map(figure_section, shown)
    failures = found.failures()
    if failures:
        made = table("The runs that came to nothing, and why", _some(failures))
        yield Section(id="failures", title="Failures", html=made)
    yield Section(id="reading", title="How to read it", html=_reading(found))
    yield Section(id="settings", title="Settings and versions", html=_facts(found))
    yield Section(id="downloads", title="Data", html=_data(found))


# -- in words ------------------------------------------------------------------------


def _verdict(found: Sweep, rows: Sequence[Row]) -> str:
    asked, failed = len(found.spec.runs), sum(1 for row in rows if row["error"])
    lived = len(rows) - failed
    kept = sum(1 for row in rows if row["promise_kept"])
    if len(rows) < asked:
        outcome = "open"
        words = f"{len(rows):,} of {asked:,} runs have ended so far."
    elif failed or kept < lived:
        outcome = "broken"
        words = f"{failed:,} of {asked:,} runs failed" if failed else ""
        if kept < lived:
            words += " and " if words else ""
            words += f"the promise was not kept in {lived - kept:,} of {lived:,} runs"
        words += "."
    else:
        outcome, words = "kept", "Every run was lived, and its promise was kept."
    over = sum(1 for row in rows if row["steps_over_budget"])
    said = []
    if over:
        said.append(
            f"The realised cost from some step on was over the budget in {over:,} of "
            f"{lived:,} runs. The promise is about the expected cost, so that is no "
            f"broken promise by itself."
        )
    certified = sum(1 for row in rows if row["certified"])
    facts = [
        ("runs ended", f"{len(rows):,} of {asked:,}"),
        ("promise kept", f"{kept:,} of {lived:,}"),
        ("certified as near the best as asked", f"{certified:,} of {lived:,}"),
        ("failed", f"{failed:,}"),
    ]
    return f"{headline(outcome, words, said)}\n{tiles(facts)}"


def _numbers(groups: Sequence[Combination]) -> str:
    axes = list(groups[0].choices) if groups else []
    header = [_WORLD, *map(_plainly, axes), "runs", *(m.axis for m in _MEASURES)]
    made = grid(
        "Mean over seeds, with the least and the most",
        header,
        [
            [
                group.world,
                *(_word(group.choices[axis]) for axis in axes),
                f"{len(group.rows)}" + f", {group.failed} failed" * bool(group.failed),
                *(_cell(group, measure) for measure in _MEASURES),
            ]
            for group in groups[:_MOST_LINES]
        ],
    )
    if len(groups) > _MOST_LINES:
        left = len(groups) - _MOST_LINES
        made += f"<p>And {left:,} more, which stand in {RESULTS_FILE}.</p>"
    return made


def _values(group: Combination, measure: _Measure) -> list[float]:
    return [v for v in map(measure.of, group.rows) if math.isfinite(v)]


def _cell(group: Combination, measure: _Measure) -> str:
    values = _values(group, measure)
    if not values:
        return "–"
    mean, least, most = sum(values) / len(values), min(values), max(values)
    if least == most:
        return f"{mean:.4g}"
    return f"{mean:.4g} ({least:.4g} to {most:.4g})"


def _some(failures: Mapping[str, str]) -> list[tuple[str, str]]:
    said = list(failures.items())[:_MOST_LINES]
    left = len(failures) - len(said)
    return [*said, *([("and more", f"{left:,} of them")] if left else [])]


def _reading(found: Sweep) -> str:
    said = [
        f"A combination is a world with what the sweep varies in it and in the agent. "
        f"Its {len(found.spec.seeds):,} seeds give a mean, and what lies between the "
        f"least and the most of them; another seed may lie outside.",
        "What differs between combinations by less than between seeds may differ by "
        "chance.",
        "A promise is kept if at every step of the run it covered what the fallback "
        "needed, and no assumption broke.",
    ]
    return "\n".join(f"<p>{escape(sentence)}</p>" for sentence in said)


def _facts(found: Sweep) -> str:
    first = next((run for run in found.runs if run.summary), None)
    summary = first.summary if first else None
    versions = dict(summary["versions"]) if summary else {}
    spec = found.spec
    seeds = ", ".join(map(str, spec.seeds[:20]))
    rows = [
        ("worlds", ", ".join(dict.fromkeys(world.name for world in spec.worlds))),
        ("runs", f"{len(spec.runs):,}"),
        ("seeds", seeds + " ..." * (len(spec.seeds) > 20)),
        ("steps of a run at most", f"{spec.steps:,}"),
        *((f"version of {name}", what) for name, what in sorted(versions.items())),
    ]
    return (
        table("All that it takes to live it again", rows)
        + f"\n<details><summary>The specification, {SPEC_FILE}</summary>"
        f'<pre tabindex="0">{escape(spec.to_toml())}</pre></details>'
    )


def _data(found: Sweep) -> str:
    results = found.results_path.read_text("utf-8")
    files = [(SPEC_FILE, "text/plain", found.spec.to_toml(), "The specification")]
    if len(results) <= _MOST_BYTES:
        one_row = (RESULTS_FILE, "text/csv", results, "One row a run")
        return downloads([one_row, *files])
    said = f"<p>The table is too large for a page; it is {RESULTS_FILE} itself.</p>"
    return said + downloads(files)


# -- along an axis -------------------------------------------------------------------


def _plainly(axis: str) -> str:
    """Return the name of an axis as in the specification, less its table."""
    return axis.partition(".")[2] or axis


def _word(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:g}"
    return value if isinstance(value, str) else toml_value(value)


def _axes(groups: Sequence[Combination]) -> list[str]:
    """Return the axes to draw along: those that vary in all worlds, numbers first."""
    axes = [
        axis
        for axis in (groups[0].choices if groups else ())
        if len(_values_along(groups, axis)) > 1
    ]
    axes.sort(key=lambda a: (not _varies(groups, a), not _is_scale(groups, a)))
    if len({group.world for group in groups}) > 1 or not axes:
        axes.append(_WORLD)
    return axes


def _values_along(groups: Sequence[Combination], axis: str) -> set[str]:
    """Return the values that an axis has, in words."""
    return {_word(v) for v in (_at(group, axis) for group in groups) if v is not None}


def _varies(groups: Sequence[Combination], axis: str) -> bool:
    """Whether an axis has several values in every world."""
    return all(
        len(_values_along([g for g in groups if g.world == world], axis)) > 1
        for world in {group.world for group in groups}
    )


def _lacking(groups: Sequence[Combination], axes: Sequence[str]) -> Iterator[str]:
    """Say what is not drawn along the axes, and what has one value only."""
    worlds = list(dict.fromkeys(group.world for group in groups))
    for axis in axes:
        have = {group.world for group in groups if _at(group, axis) is not None}
        without = [world for world in worlds if world not in have]
        if without:
            yield (
                f"Along {_plainly(axis)} there is nothing of {', '.join(without)}, "
                f"where it is no choice."
            )
    for axis in groups[0].choices if groups else ():
        values = _values_along(groups, axis)
        if len(values) == 1:
            yield f"{_plainly(axis)} has one value, {values.pop()}: it is no axis."


def _at(group: Combination, axis: str) -> Any:
    return group.world if axis == _WORLD else group.choices[axis]


def _is_scale(groups: Sequence[Combination], axis: str) -> bool:
    """Whether all that there is along an axis are numbers."""
    values = [v for v in (_at(group, axis) for group in groups) if v is not None]
    return bool(values) and all(type(value) in (int, float) for value in values)


def _choice(groups: Sequence[Combination], along: Sequence[str]) -> str:
    options = "\n".join(
        f'<option value="{escape(axis)}">{escape(_plainly(axis))}</option>'
        for axis in along
    )
    said = (
        "Lines join means over seeds; bars reach from the least to the most, and small "
        "marks are single seeds."
    )
    told = [group for group in groups if group.rows]
    said = " ".join([said, *_lacking(told, along)])
    left = max(len(_series(told, axis)) for axis in along) - _MOST_SERIES
    if left > 0:
        said += (
            f" Of {left + _MOST_SERIES} series the first {_MOST_SERIES} are drawn; all "
            f"stand in the table."
        )
    return (
        f"<p>{escape(said)}</p>\n"
        f'<p class="controls"><label>Along <select id="along">{options}</select>'
        f"</label></p>"
    )


def _series(groups: Sequence[Combination], axis: str) -> dict[str, list[Combination]]:
    """Return combinations that differ along an axis only, by what they share."""
    found: dict[str, list[Combination]] = {}
    worlds = len({group.world for group in groups}) > 1
    for group in groups:
        if _at(group, axis) is None:
            continue  # this world has no such parameter
        shared = [group.world] if worlds and axis != _WORLD else []
        shared += [
            f"{_plainly(other)} {_word(value)}"
            for other, value in group.choices.items()
            if other != axis and value is not None
        ]
        found.setdefault(", ".join(shared) or "all", []).append(group)
    return found


def _figures(found: Sweep, groups: Sequence[Combination], axis: str) -> list[Figure]:
    series = list(_series(groups, axis).items())[:_MOST_SERIES]
    scale = _is_scale(groups, axis)
    made = []
    for measure in _MEASURES:
        if measure.id == "steps" and found.spec.until == "steps":
            continue  # as many as were asked for
        data: list[dict[str, Any]] = []
        for place, (name, members) in enumerate(series):
            data += _drawn(place, name, members, axis, measure, scale=scale)
        if measure.id == "worst":
            data += _budget_line(groups, axis)
        made.append(
            {
                "id": measure.id,
                "title": measure.title,
                "words": measure.words,
                "data": data,
                "layout": {
                    "height": 440,
                    "xaxis": _x_axis(groups, axis, scale=scale),
                    "yaxis": {
                        "title": {"text": measure.axis},
                        "rangemode": "tozero" if measure.from_zero else "normal",
                    },
                },
            }
        )
    return made


def _x_axis(groups: Sequence[Combination], axis: str, *, scale: bool) -> dict[str, Any]:
    title = {"title": {"text": _plainly(axis)}}
    if not scale:
        return {**title, "type": "category"}
    values = sorted({float(v) for g in groups if (v := _at(g, axis)) is not None})
    ticks = {"tickvals": values, "ticktext": [f"{v:g}" for v in values]}
    if values[0] > 0.0 and values[-1] > 10.0 * values[0]:
        return {**title, **ticks, "type": "log"}
    return {**title, **ticks, "type": "linear"}


def _budget_line(groups: Sequence[Combination], axis: str) -> list[dict[str, Any]]:
    places = [_place(group, axis) for group in groups if _at(group, axis) is not None]
    ends = list(dict.fromkeys(places))
    return [
        {
            "type": "scatter",
            "mode": "lines",
            "x": ends,
            "y": [1.0] * len(ends),
            "name": "budget",
            "line": {"color": "var(--bad)", "dash": "dash", "width": 1.5},
        }
    ]


def _place(group: Combination, axis: str) -> Any:
    value = _at(group, axis)
    return value if type(value) in (int, float) else label(_word(value))


def _drawn(
    place: int,
    name: str,
    members: Sequence[Combination],
    axis: str,
    measure: _Measure,
    *,
    scale: bool,
) -> list[dict[str, Any]]:
    """Return the means of a series with their ranges, and its seeds."""
    looks = looks_of(place)
    colour = f"var(--{looks.colour})"
    told = [(g, values) for g in members if (values := _values(g, measure))]
    if scale:
        told.sort(key=lambda pair: float(_at(pair[0], axis)))
    x = [_place(group, axis) for group, _ in told]
    means = [sum(values) / len(values) for _, values in told]
    most = [max(v) - mean for (_, v), mean in zip(told, means, strict=True)]
    least = [mean - min(v) for (_, v), mean in zip(told, means, strict=True)]
    common = {"type": "scatter", "name": label(name), "legendgroup": str(place)}
    series = {
        **common,
        "mode": "lines+markers" if scale and len(told) > 1 else "markers",
        "x": x,
        "y": means,
        "line": {"color": colour, "dash": looks.dash, "width": 1.5},
        "marker": {"symbol": looks.symbol, "size": 10, "color": colour},
        "error_y": {
            "type": "data",
            "symmetric": False,
            "array": most,
            "arrayminus": least,
            "color": colour,
            "thickness": 1.5,
        },
        "cliponaxis": False,
    }
    seeds = [
        (at, value)
        for at, (_, values) in zip(x, told, strict=True)
        for value in values
        if len(values) > 1
    ]
    if not 0 < len(seeds) <= _MOST_SEEDS:
        return [series]
    marks = {
        **common,
        "mode": "markers",
        "x": [at for at, _ in seeds],
        "y": [value for _, value in seeds],
        "marker": {"symbol": f"{looks.symbol}-open", "size": 5, "color": colour},
        "showlegend": False,
        "cliponaxis": False,
    }
    return [series, marks]
