"""Write ``docs/results.md``: every table of results, each by its own program.

    python benchmarks/results.py [program ...]

A program of this folder that has a function ``rows`` makes a table: its docstring says
what is in it, ``rows()`` returns the rows as dictionaries, and the first line of the
docstring is the heading.  Programs that are named are run and their sections replaced;
without a name all are run, which takes about half an hour.  Nothing on the page is
typed in by hand.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import re
import sys
from pathlib import Path

import numpy as np

import escapade as ep

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "docs" / "results.md"
FIRST = ("walk", "toll", "audits")
OPENING = """# Results

What the agent does in the shipped worlds, measured. This page is written by
`make results`; each section by the program that it names, with the seeds and settings
that stand there. Worlds and what is known of them are described on
[their page](environments.md).
"""
SECTION = re.compile(r"^<!-- (\w+) -->\n(.*?)(?=^<!-- |\Z)", re.MULTILINE | re.DOTALL)


def programs() -> list[str]:
    """Return the programs that make a table, the main ones first."""
    found = []
    for path in sorted(HERE.glob("*.py")):
        tree = ast.parse(path.read_text("utf-8"))
        names = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        if "rows" in names:
            found.append(path.stem)
    return sorted(found, key=lambda n: (FIRST.index(n) if n in FIRST else 99, n))


def table(rows: list[dict[str, object]]) -> str:
    """Return rows as a table in Markdown."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    lines = ["| " + " | ".join(name.strip() for name in columns) + " |"]
    lines.append("|" + " --- |" * len(columns))
    for row in rows:
        cells = (str(row.get(name, "")) for name in columns)
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def section(name: str) -> str:
    """Run a program; return its heading, its text, its table and the versions."""
    module = importlib.import_module(name)
    heading, _, text = (module.__doc__ or name).strip().partition("\n")
    text = text.strip("\n").replace("``", "`")
    versions = (
        f"Python {sys.version_info.major}.{sys.version_info.minor}, "
        f"NumPy {np.__version__}, Escapade {ep.__version__}"
    )
    return (
        f"## {heading.strip().rstrip('.')}\n\n{text}\n\n{table(module.rows())}\n\n"
        f"{versions}\n"
    )


def main() -> None:
    """Run programs and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programs", nargs="*", metavar="program")
    known = programs()
    chosen = parser.parse_args().programs or known
    for name in chosen:
        if name not in known:
            parser.error(f"program: expected some of {known}, found {name!r}")
    kept = dict(SECTION.findall(PAGE.read_text("utf-8"))) if PAGE.exists() else {}
    for name in chosen:
        print(f"== {name}", flush=True)
        kept[name] = section(name)
        parts = [
            f"<!-- {key} -->\n{kept[key].rstrip()}\n\n" for key in known if key in kept
        ]
        PAGE.write_text(OPENING + "\n" + "".join(parts).rstrip() + "\n", "utf-8")


if __name__ == "__main__":
    main()
