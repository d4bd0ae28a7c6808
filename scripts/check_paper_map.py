"""Check that each row of the paper map points to code and to a test that exist.

``docs/paper-map.md`` holds tables with the columns *Paper*, *Corrected by*, *Code* and
*Test*.  Each of their rows must name at least one dotted name, which is imported
attribute by attribute, at least one test, which is looked up in the syntax tree of its
file, and only errata that ``docs/errata.md`` has.  Tables with other columns (the parts
that are not built yet) may name no code.  Of the errata and of the page on notation,
every name and every test that they mention must exist as well.

Prints one line a failure and exits with 1 if there was any.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[1]
MAP = Path("docs/paper-map.md")
ERRATA = Path("docs/errata.md")
OTHERS = (ERRATA, Path("docs/notation.md"))

COLUMNS = ("paper", "corrected by", "code", "test")
NAME = re.compile(r"`(escapade(?:\.\w+)+)`")
TEST = re.compile(r"`(tests/[\w/]+\.py(?:::\w+)+)`")
IN_CODE = re.compile(r"`([^`]+)`")
ERRATUM = re.compile(r"\bE\d+\b")
HEADING = re.compile(r"^#+ (E\d+)\b", re.MULTILINE)
RULE = re.compile(r"^\|(?:\s*:?-+:?\s*\|)+$")


@dataclass(frozen=True)
class Row:
    """A row of a table, with its line and the columns of the table."""

    line: int
    columns: tuple[str, ...]
    cells: tuple[str, ...]

    def cell(self, column: str) -> str:
        """Return the text of one column, empty if the row is too short."""
        index = self.columns.index(column)
        return self.cells[index] if index < len(self.cells) else ""


def split(line: str) -> tuple[str, ...]:
    """Return the cells of a line of a table."""
    return tuple(cell.strip() for cell in line.strip().strip("|").split("|"))


def rows(text: str) -> Iterator[Row]:
    """Yield the rows of every table of a page."""
    columns: tuple[str, ...] | None = None
    lines = text.splitlines()
    for number, line in enumerate(lines, start=1):
        if not line.startswith("|"):
            columns = None
        elif columns is None:
            if number < len(lines) and RULE.match(lines[number].strip()):
                columns = tuple(name.lower() for name in split(line))
        elif not RULE.match(line.strip()):
            yield Row(number, columns, split(line))


def missing_name(dotted: str) -> str | None:
    """Return what is wrong with a dotted name, or None."""
    parts = dotted.split(".")
    value: object = import_module(parts[0])
    for k, part in enumerate(parts[1:], start=1):
        parent = ".".join(parts[:k])
        try:
            value = attribute(value, part, parent)
        except ImportError as error:
            # A module that is not there, or that needs one that is not.
            return f"{dotted}: {error}"
        except AttributeError:
            return f"{dotted}: {parent} has no {part}"
    return None


def attribute(value: object, name: str, parent: str) -> object:
    """Return an attribute, a submodule, or the type of a dataclass's field."""
    if hasattr(value, name):
        return getattr(value, name)
    if isinstance(value, ModuleType) and hasattr(value, "__path__"):
        return import_module(f"{parent}.{name}")
    fields = getattr(value, "__dataclass_fields__", {})
    if name in fields:
        return fields[name].type
    raise AttributeError(name)


@cache
def tests_of(path: Path) -> frozenset[str]:
    """Return the test functions of a file; those of a class as ``Class::test``."""
    tree = ast.parse(path.read_text("utf-8"))
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    found = {node.name for node in tree.body if isinstance(node, functions)}
    for group in tree.body:
        if isinstance(group, ast.ClassDef):
            for node in group.body:
                if isinstance(node, functions):
                    found.add(f"{group.name}::{node.name}")
    return frozenset(name for name in found if name.split("::")[-1].startswith("test"))


def missing_test(identifier: str, root: Path) -> str | None:
    """Return what is wrong with a test's identifier, or None."""
    file, _, name = identifier.partition("::")
    path = root / file
    if not path.is_file():
        return f"{identifier}: no such file"
    if name not in tests_of(path):
        return f"{identifier}: no such test in the file"
    return None


def check_names(text: str, root: Path) -> Iterator[str]:
    """Yield what is wrong with the names and tests of a text."""
    problems = [missing_name(name) for name in NAME.findall(text)]
    problems += [missing_test(name, root) for name in TEST.findall(text)]
    yield from (problem for problem in problems if problem is not None)


def check_map(text: str, known_errata: set[str], root: Path) -> Iterator[str]:
    """Yield ``line: problem`` for each failure of the paper map."""
    mapped = 0
    for row in rows(text):
        if row.columns != COLUMNS:
            if "code" in row.columns or "test" in row.columns:
                yield f"{row.line}: columns {row.columns}, expected {COLUMNS}"
            elif NAME.search(" ".join(row.cells)):
                yield f"{row.line}: code in a table without a column for it"
            continue
        mapped += 1
        if len(row.cells) != len(COLUMNS):
            yield f"{row.line}: {len(row.cells)} cells, expected {len(COLUMNS)}"
        if not row.cell("paper"):
            yield f"{row.line}: no paper cell"
        for column, pattern in (("code", NAME), ("test", TEST)):
            cell = row.cell(column)
            if not pattern.search(cell):
                yield f"{row.line}: no {column} cell ({row.cell('paper')})"
            for written in IN_CODE.findall(cell):
                if not pattern.fullmatch(f"`{written}`"):
                    yield f"{row.line}: `{written}` cannot be a {column} name"
        for erratum in ERRATUM.findall(row.cell("corrected by")):
            if erratum not in known_errata:
                yield f"{row.line}: {erratum} is not among the errata"
    if not mapped:
        yield f"1: no table with the columns {COLUMNS}"
    for number, line in enumerate(text.splitlines(), start=1):
        for problem in check_names(line, root):
            yield f"{number}: {problem}"


def check(root: Path = ROOT) -> list[str]:
    """Return ``page:line: problem`` for each failure of the pages under ``root``."""
    if not (root / MAP).is_file():
        return [f"{MAP}: no such page"]
    errata = (root / ERRATA).read_text("utf-8") if (root / ERRATA).is_file() else ""
    known = set(HEADING.findall(errata))
    text = (root / MAP).read_text("utf-8")
    failures = [f"{MAP}:{problem}" for problem in check_map(text, known, root)]
    for page in OTHERS:
        if not (root / page).is_file():
            failures.append(f"{page}: no such page")
            continue
        lines = (root / page).read_text("utf-8").splitlines()
        for number, line in enumerate(lines, start=1):
            failures += [f"{page}:{number}: {it}" for it in check_names(line, root)]
    return failures


def main() -> int:
    """Print the failures and return the exit code."""
    failures = check()
    for failure in failures:
        print(failure)
    if not failures:
        count = sum(row.columns == COLUMNS for row in rows((ROOT / MAP).read_text()))
        print(f"{count} rows of the paper map point to code and tests that exist")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
