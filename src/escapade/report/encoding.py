"""Text and data that may stand in a page, whatever somebody has named things."""

from __future__ import annotations

import base64
import html
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

__all__ = [
    "against",
    "data_link",
    "downloads",
    "escape",
    "grid",
    "label",
    "number",
    "numbers",
    "script_json",
    "table",
]

_NOTHING = 1e-12
"""What rounding leaves of zero."""


def escape(text: object) -> str:
    """Return text that HTML shows as it is; control characters are shown as codes."""
    return html.escape(_shown(text), quote=True)


def label(text: object) -> str:
    """Return text for a figure, where Plotly takes tags and mathematics for such.

    It reads few names of entities, but the numbers of all.
    """
    return "".join(f"&#{ord(c)};" if c in "&<>$" else c for c in _shown(text))


def _shown(text: object) -> str:
    return "".join(
        c if c.isprintable() or c in "\n\t" else c.encode("unicode_escape").decode()
        for c in str(text)
    )


def number(value: float) -> str:
    """Return a number as people read it."""
    if math.isnan(value):
        return "none"
    if abs(value) < _NOTHING:
        return "0"
    if math.isfinite(value) and value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:.6g}"


def numbers(values: Iterable[float]) -> str:
    """Return numbers, one a budget."""
    return ", ".join(number(float(value)) for value in values)


def against(values: Iterable[float], budget: Iterable[float]) -> str:
    """Return costs in a few digits, each with its budget."""
    return "; ".join(
        f"{value:.4g} of {number(float(most))}"
        for value, most in zip(values, budget, strict=True)
    )


def script_json(value: Any) -> str:
    """Return JSON that cannot end the script around it; what is no number is null."""
    text = json.dumps(_plain(value), allow_nan=False, separators=(",", ":"))
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, float):
        return float(f"{value:.7g}") if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(entry) for entry in value]
    return value


def data_link(text: str, *, kind: str) -> str:
    """Return an address that holds the text itself."""
    inside = base64.b64encode(text.encode()).decode()
    return f"data:{kind};charset=utf-8;base64,{inside}"


def downloads(files: Iterable[tuple[str, str, str, str]]) -> str:
    """Return links that hold files themselves: name, kind, text, and what it is."""
    links = "\n".join(
        f'<li><a download="{name}" href="{data_link(text, kind=kind)}">'
        f"{escape(words)} ({name})</a></li>"
        for name, kind, text, words in files
    )
    return f"<ul>\n{links}\n</ul>"


def table(caption: str, rows: Iterable[tuple[str, str]]) -> str:
    """Return a table of two columns; names and values are escaped here."""
    lines = "\n".join(
        f'<tr><th scope="row">{escape(name)}</th><td>{escape(value)}</td></tr>'
        for name, value in rows
    )
    return f"<table><caption>{escape(caption)}</caption>\n{lines}\n</table>"


def grid(caption: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table with a row of names above; all is escaped here.

    The first column names the rows and stands to the left, the others to the right.
    What is too wide is scrolled on its own.
    """
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in header)
    lines = "\n".join(
        f'<tr><th scope="row">{escape(name)}</th>'
        + "".join(f"<td>{escape(cell)}</td>" for cell in cells)
        + "</tr>"
        for name, *cells in rows
    )
    return (
        f'<div class="scrolled" tabindex="0" role="group" '
        f'aria-label="{escape(caption)}"><table class="grid">'
        f"<caption>{escape(caption)}</caption>\n"
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{lines}\n</tbody></table></div>"
    )
