"""Turn the markup of the docstrings into Markdown while the reference is built.

The docstrings are read in editors and by ``help()`` first, and use a little of
reStructuredText: roles such as ``:func:``, blocks of code behind ``::``, and tables
drawn with ``=``.  The reference is Markdown.  Griffe calls :class:`Markup` for every
object that has a docstring.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from griffe import Extension, Object

ROLE = re.compile(r":(attr|class|exc|func|meth|mod):`(~?)([\w.]+)`")
MATH = re.compile(r":math:`([^`]+)`")
FORMULA = re.compile(r"^( *)\.\. math:: *(.*)\n", re.MULTILINE)
RULE = re.compile(r"^\s*=+( +=+)+\s*$")


def to_markdown(text: str, names: Mapping[str, str] | None = None) -> str:
    """Return a docstring as Markdown.

    ``names`` holds the full name of what a docstring may name by its last part alone.
    """
    known = names or {}
    text = "\n".join(_tables(text.splitlines()))
    text = re.sub(r"^ *::$", "", text, flags=re.MULTILINE)
    text = re.sub(r"::$", ":", text, flags=re.MULTILINE)
    text = MATH.sub(lambda found: f"`{' '.join(found[1].split())}`", text)
    text = FORMULA.sub(lambda found: f"{found[1]}    {found[2]}\n", text)

    def link(found: re.Match[str]) -> str:
        """Return a link to what a role names, where the reference has it."""
        target = known.get(found[3], found[3])
        shown = found[3].rpartition(".")[2] if found[2] else found[3]
        return f'<autoref identifier="{target}" optional><code>{shown}</code></autoref>'

    return ROLE.sub(link, text)


def _tables(lines: list[str]) -> Iterator[str]:
    """Yield the lines, with tables of ``=`` redrawn."""
    k = 0
    while k < len(lines):
        rules = [j for j in range(k, len(lines)) if RULE.match(lines[j])]
        if not RULE.match(lines[k]) or len(rules) < 3:
            yield lines[k]
            k += 1
            continue
        _, middle, last = rules[:3]
        spans = [(run.start(), run.end()) for run in re.finditer(r"=+", lines[k])]
        yield ""
        yield from _rows(lines[k + 1 : middle], spans)
        yield "|" + " --- |" * len(spans)
        yield from _rows(lines[middle + 1 : last], spans)
        yield ""
        k = last + 1


def _rows(lines: list[str], spans: list[tuple[int, int]]) -> Iterator[str]:
    """Yield rows; a line whose first cell is empty goes on with the one before."""
    rows: list[list[str]] = []
    for line in lines:
        ends = [start for start, _ in spans[1:]] + [len(line)]
        cells = [
            line[start:end].strip() for (start, _), end in zip(spans, ends, strict=True)
        ]
        if cells[0] or not rows:
            rows.append(cells)
        else:
            rows[-1] = [
                f"{above} {below}".strip()
                for above, below in zip(rows[-1], cells, strict=True)
            ]
    for cells in rows:
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


class Markup(Extension):
    """Rewrites every docstring before it is parsed."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Rewrite the docstring of one object."""
        if obj.docstring:
            scopes = [obj.module, obj]
            names = {
                name: f"{scope.path}.{name}"
                for scope in scopes
                for name, member in scope.members.items()
                if not member.is_alias
            }
            obj.docstring.value = to_markdown(obj.docstring.value, names)
