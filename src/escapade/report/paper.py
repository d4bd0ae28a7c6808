"""Figures for papers: what stands on a page, drawn by Matplotlib as SVG or PDF.

The same descriptions that Plotly draws on a page are drawn here on paper: light, of the
width of a column, without a title, for the caption is the author's.  Colours are those
of the page's light style and told apart by colour-blind people; what has a symbol or a
dash there has one here.  Letters are embedded, as outlines in SVG and as TrueType in
PDF.  Neither dates nor random names go in: the same run gives the same file, with the
same versions.

Of Plotly's language only what our figures use is understood; anything else is an error.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from escapade.errors import MissingExtraError, refusal
from escapade.experiment import Comparison, Run
from escapade.experiment.schema import storing
from escapade.model.archives import write_atomically
from escapade.report.comparison import comparison_figures
from escapade.report.figures import figures
from escapade.report.material import gather
from escapade.report.scaffold import Figure, asset

__all__ = ["FORMATS", "figure_names", "write_figures"]

FORMATS = ("svg", "pdf")
"""Into which figures are written."""

_NARROWEST, _WIDEST = 2.0, 20.0
_COLOUR = re.compile(r"--([\w-]+): (#[0-9a-f]{6}|rgba\([^)]*\));")
_STYLE = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],  # comes with Matplotlib: the same everywhere
    "font.size": 8.0,
    "axes.labelsize": 8.0,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.formatter.use_mathtext": True,
    "grid.linewidth": 0.4,
    "xtick.labelsize": 7.0,
    "ytick.labelsize": 7.0,
    "legend.fontsize": 7.0,
    "legend.frameon": False,
    "svg.fonttype": "path",
    "svg.hashsalt": "escapade",
    "pdf.fonttype": 42,
}
_DASHES: Mapping[str, Any] = {
    "solid": "-",
    "dash": (0, (4, 2)),
    "dot": (0, (1, 1.2)),
    "dashdot": (0, (4, 1.5, 1, 1.5)),
    "longdash": (0, (8, 2.5)),
}
_SYMBOLS = {
    "circle": "o",
    "diamond": "D",
    "square": "s",
    "triangle-up": "^",
    "triangle-down": "v",
    "cross": "P",
    "x": "X",
    "star": "*",
    "line-ns": "|",
}
_UNDERSTOOD = {
    *("type", "mode", "x", "y", "name", "line", "marker", "fill", "fillcolor", "yaxis"),
    *("text", "textposition", "error_x", "showlegend", "cliponaxis", "hovertemplate"),
}
_SHAPE = 0.6
"""Height over width of a figure that has the usual height on a page."""

_POINTS = 0.45
"""Of a pixel on the page: figures for paper are smaller."""


def figure_names(found: Run | Comparison) -> list[str]:
    """Return the names of the figures that there are of a run or a comparison."""
    return list(_by_name(_figures(found)))


def write_figures(
    found: Run | Comparison,
    path: Path,
    names: Sequence[str] | None = None,
    *,
    width: float = 5.5,
    logarithmic: bool | None = None,
) -> list[Path]:
    """Write figures for a paper.

    Parameters
    ----------
    found
        What to show.
    path
        A file that ends in ``.svg`` or ``.pdf``, for one figure; otherwise a directory,
        into which each figure goes in both formats.
    names
        Which; see :func:`figure_names`.  All if not given.
    width
        In inches; of a column 3.4 or so, of a page 5.5 to 7.
    logarithmic
        Whether steps are shown by their logarithm; if not given, where a page would.

    Returns
    -------
    list of Path
        The files.
    """
    _require_matplotlib()
    if not _NARROWEST <= width <= _WIDEST:
        raise refusal("width", f"inches in [{_NARROWEST:g}, {_WIDEST:g}]", width)
    there = _by_name(_figures(found))
    chosen = list(there) if names is None else list(names)
    for name in chosen:
        if name not in there:
            raise refusal("figure", f"one of {', '.join(there)}", repr(name))
    one = path.suffix.removeprefix(".")
    if one in FORMATS:
        if len(chosen) != 1:
            expected = f"one of {', '.join(there)} for a file"
            raise refusal("figure", expected, f"{len(chosen)} of them")
        places = [(chosen[0], path)]
    elif one:
        raise refusal("path", "a directory, or a name in .svg or .pdf", str(path))
    else:
        with storing(path):
            path.mkdir(parents=True, exist_ok=True)
        places = [
            (name, path / f"{name}.{kind}") for name in chosen for kind in FORMATS
        ]
    if logarithmic is None:
        logarithmic = isinstance(found, Run) and _is_long(found)
    for name, place in places:
        _write(there[name], place, width=width, logarithmic=logarithmic)
    return [place for _, place in places]


def _require_matplotlib() -> None:
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise MissingExtraError("matplotlib", "figures") from None


def _figures(found: Run | Comparison) -> list[Figure]:
    if isinstance(found, Comparison):
        return comparison_figures(found)
    return figures(gather(found))


def _by_name(shown: list[Figure]) -> dict[str, Figure]:
    """Return figures by name; the number of the budget is told if there are several."""
    several = any(figure["id"].endswith("-1") for figure in shown)
    return {
        figure["id"] if several else figure["id"].removesuffix("-0"): figure
        for figure in shown
    }


def _write(figure: Figure, place: Path, *, width: float, logarithmic: bool) -> None:
    from matplotlib import style

    kind = place.suffix.removeprefix(".")
    undated = {"Date": None} if kind == "svg" else {"CreationDate": None}
    ruled = {"grid.color": _colours()["var(--rule)"]}
    with style.context(["default", _STYLE, ruled]):
        drawn = _Drawing(figure, width=width, logarithmic=logarithmic).figure
        with storing(place):
            write_atomically(
                place, lambda file: drawn.savefig(file, format=kind, metadata=undated)
            )


def _colours() -> dict[str, Any]:
    """Return the colours of the page's light style, as Matplotlib has them."""
    light = asset("page.css").partition("}")[0]
    found: dict[str, Any] = {}
    for name, value in _COLOUR.findall(light):
        found[f"var(--{name})"] = value
        if value.startswith("rgba"):
            *levels, alpha = map(float, value[5:-1].split(","))
            found[f"var(--{name})"] = (*(level / 255.0 for level in levels), alpha)
    return found


def _plain(text: str) -> str:
    """Return a label of a page as plain text, for which nothing is mathematics."""
    shown = html.unescape(text).replace("$", r"\$")
    return f" {shown}" if shown.startswith("_") else shown  # else it is left out


class _Drawing:
    """A figure while it is drawn."""

    def __init__(self, figure: Figure, *, width: float, logarithmic: bool) -> None:
        from matplotlib.figure import Figure as Paper

        self._data, self._layout = figure["data"], figure["layout"]
        self._colours = _colours()
        self._rows: list[str] = []
        second = self._layout.get("yaxis2", {})
        lanes = "domain" in second
        height = _SHAPE * width * self._layout.get("height", 380) / 380
        self.figure = Paper(figsize=(width, height), layout="constrained")
        if lanes:
            shares = [axis["domain"] for axis in (self._layout["yaxis"], second)]
            heights = [high - low for low, high in shares]
            self._upper, self._lower = self.figure.subplots(
                2, 1, sharex=True, height_ratios=heights
            )
            self._bottom = self._lower
        else:
            self._upper = self._bottom = self.figure.subplots()
            self._lower = self._upper.twinx() if second else None
        self._before: tuple[Any, Any] | None = None
        for series in self._data:
            self._draw(series)
        self._axes(logarithmic and bool(figure.get("log")))
        self._legend()

    # -- what is drawn -------------------------------------------------------------

    def _draw(self, series: Mapping[str, Any]) -> None:
        unknown = set(series) - _UNDERSTOOD
        assert not unknown, f"not understood on paper: {unknown}"
        ax = self._lower if series.get("yaxis") == "y2" else self._upper
        x = np.asarray(series["x"], dtype=np.float64)
        y = self._places(series["y"])
        label = _plain(series["name"]) if series.get("showlegend", True) else "_"
        if "error_x" in series and series["error_x"]["visible"]:
            colour = self._colours[series["marker"]["color"]]
            half = series["error_x"]["array"]
            ax.errorbar(x, y, xerr=half, color=colour, capsize=3, linewidth=1)
        if "lines" in series["mode"]:
            self._line(ax, x, y, series, label)
        else:
            self._marks(ax, x, y, series, label)
        for at, height, words in zip(x, y, series.get("text", ()), strict=False):
            ax.annotate(
                _plain(words),
                (at, height),
                xytext=(0, 6),
                textcoords="offset points",
                ha="center",
                fontsize=7,
                annotation_clip=False,
            )

    def _places(self, y: Any) -> Any:
        """Return heights; a category has the next free row."""
        if len(y) and isinstance(y[0], str):
            self._rows += [name for name in y if name not in self._rows]
            return np.array([self._rows.index(name) for name in y], dtype=np.float64)
        return np.asarray(y, dtype=np.float64)

    def _line(
        self, ax: Any, x: Any, y: Any, series: Mapping[str, Any], label: str
    ) -> None:
        look = series["line"]
        steps = look.get("shape") == "hv"
        marker = series.get("marker", {}) if "markers" in series["mode"] else {}
        ax.plot(
            x,
            y,
            color=self._colours[look["color"]],
            linestyle=_DASHES[look.get("dash", "solid")],
            linewidth=0.7 * look["width"],
            drawstyle="steps-post" if steps else "default",
            label=label,
            **(
                {"marker": _SYMBOLS[marker["symbol"]], "markersize": 3}
                if marker
                else {}
            ),
        )
        if "fill" in series:
            upper = self._before[1] if series["fill"] == "tonexty" else 0.0  # type: ignore[index]
            ax.fill_between(
                x,
                y,
                upper,
                step="post" if steps else None,
                color=self._colours[series["fillcolor"]],
                linewidth=0,
            )
        self._before = (x, y)

    def _marks(
        self, ax: Any, x: Any, y: Any, series: Mapping[str, Any], label: str
    ) -> None:
        look = series["marker"]
        ax.plot(
            x,
            y,
            linestyle="none",
            marker=_SYMBOLS[look["symbol"]],
            color=self._colours[look["color"]],
            markersize=_POINTS * look["size"],
            markeredgewidth=1.5 if look["symbol"] == "line-ns" else 0.0,
            clip_on=series.get("cliponaxis", True),
            label=label,
        )

    # -- what is around it ---------------------------------------------------------

    def _axes(self, logarithmic: bool) -> None:
        layout = self._layout
        below = layout["xaxis"]
        if logarithmic:
            self._bottom.set_xscale("log")
        elif below.get("rangemode") == "tozero":
            self._bottom.set_xlim(left=0)
        if "range" in below:
            self._bottom.set_xlim(below["range"])
        self._bottom.set_xlabel(below["title"]["text"])
        pairs = [(self._upper, layout["yaxis"])]
        if self._lower is not None:
            pairs.append((self._lower, layout["yaxis2"]))
        for ax, told in pairs:
            ax.grid(visible=told.get("showgrid", True))
            if told.get("rangemode") == "tozero" and not ax.dataLim.ymin < 0.0:
                ax.set_ylim(bottom=-0.02 * ax.get_ylim()[1])
            if "title" in told:
                ax.set_ylabel(told["title"]["text"])
            if told.get("side") == "right":
                ax.spines["right"].set_visible(True)
            if "tickvals" in told:
                ax.set_yticks(told["tickvals"], told["ticktext"])
            elif told.get("type") == "category":
                ax.set_yticks(range(len(self._rows)), map(_plain, self._rows))
            if "range" in told:
                ax.set_ylim(told["range"])

    def _legend(self) -> None:
        entries: dict[str, Any] = {}
        for ax in self.figure.axes:
            handles, labels = ax.get_legend_handles_labels()
            for handle, label in zip(handles, labels, strict=True):
                entries.setdefault(label, handle)
        if len(entries) > 1:
            self.figure.legend(
                list(entries.values()),
                list(entries),
                loc="outside lower center",
                ncols=max(1, min(len(entries), int(self.figure.get_figwidth() / 1.4))),
            )


def _is_long(run: Run) -> bool:
    from escapade.report.binning import Bins

    return Bins.over(run.n_steps).downsampled
