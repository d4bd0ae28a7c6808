"""The check of the paper map: the pages pass, and each kind of mistake is found."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

import escapade as ep

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = ROOT / "scripts" / "check_paper_map.py"


@pytest.fixture(scope="module")
def script():
    specification = importlib.util.spec_from_file_location("check_paper_map", SCRIPT)
    module = importlib.util.module_from_spec(specification)
    sys.modules["check_paper_map"] = module  # its dataclass looks itself up
    specification.loader.exec_module(module)
    yield module
    del sys.modules["check_paper_map"]


GOOD = """
| Paper | Corrected by | Code | Test |
|---|---|---|---|
| One | E1 | `escapade.theory.horizons.horizon_time` | `tests/test_one.py::test_it` |
"""


@pytest.fixture
def pages(tmp_path):
    """Return a function that writes a map into a small project and checks it."""

    def write(text, errata="### E1: wrong\n", notation=""):
        (tmp_path / "docs").mkdir(exist_ok=True)
        (tmp_path / "tests").mkdir(exist_ok=True)
        (tmp_path / "docs/paper-map.md").write_text(text, "utf-8")
        (tmp_path / "docs/errata.md").write_text(errata, "utf-8")
        (tmp_path / "docs/notation.md").write_text(notation, "utf-8")
        (tmp_path / "tests/test_one.py").write_text(
            "def test_it(): ...\n\ndef helper(): ...\n\n"
            "class TestMore:\n    def test_that(self): ...\n",
            "utf-8",
        )
        return tmp_path

    return write


def test_the_pages_of_the_project_pass():
    done = subprocess.run(
        [sys.executable, str(SCRIPT)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.match(r"\d+ rows of the paper map point to code and tests", done.stdout)


def test_every_erratum_from_1_to_34_has_a_heading(script):
    text = (ROOT / "docs/errata.md").read_text("utf-8")
    assert script.HEADING.findall(text) == [f"E{k}" for k in range(1, 35)]


def test_every_erratum_of_a_row_of_bounds_has_a_heading(script):
    text = (ROOT / "docs/errata.md").read_text("utf-8")
    found = ep.theory.bounds(n_states=3, n_actions=2, discount=0.9, budget=5.0)
    cited = {row.erratum for row in found.rows()} - {""}
    assert cited <= set(script.HEADING.findall(text))


def test_a_right_page_passes(script, pages):
    assert script.check(pages(GOOD)) == []
    inside_a_class = GOOD.replace("::test_it", "::TestMore::test_that")
    assert script.check(pages(inside_a_class)) == []
    a_field = GOOD.replace(
        "horizons.horizon_time", "escape_budget.EscapeBudget.spending_steps"
    )
    assert script.check(pages(a_field)) == []


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("horizon_time`", "horizon_times`", r"horizons has no horizon_times"),
        (
            ".horizons.horizon_time`",
            ".horizon.time`",
            r"No module named .*horizon|no horizon",
        ),
        ("test_it`", "test_them`", r"no such test in the file"),
        ("test_it`", "helper`", r"no such test in the file"),
        ("test_one.py", "test_two.py", r"no such file"),
        ("| E1 |", "| E2 |", r"E2 is not among the errata"),
        ("| One |", "| |", r"no paper cell"),
        ("`escapade.theory.horizons.horizon_time`", "", r"no code cell \(One\)"),
        ("`tests/test_one.py::test_it`", "", r"no test cell \(One\)"),
        ("horizon_time` |", "horizon_time`, `T` |", r"`T` cannot be a code name"),
        ("| Test |", "| Proof |", r"columns .* expected"),
        (" | `tests/test_one.py::test_it` |", " |", r"3 cells, expected 4"),
    ],
)
def test_a_mistake_is_found(script, pages, old, new, problem):
    assert old in GOOD
    failures = script.check(pages(GOOD.replace(old, new)))
    assert any(re.search(problem, failure) for failure in failures), failures
    assert all(failure.startswith("docs/paper-map.md:") for failure in failures)


def test_code_belongs_into_a_table_that_is_checked(script, pages):
    other = GOOD + "\n| a | b |\n|---|---|\n| `escapade.theory.paths` | x |\n"
    assert script.check(pages(other)) == [
        "docs/paper-map.md:8: code in a table without a column for it"
    ]


def test_a_map_without_a_table_is_no_map(script, pages):
    (failure,) = script.check(pages("# Nothing here\n"))
    assert "no table with the columns" in failure


def test_the_other_pages_are_looked_at_as_well(script, pages):
    root = pages(GOOD, notation="see `escapade.theory.horizons.nothing`\n")
    assert script.check(root) == [
        "docs/notation.md:1: escapade.theory.horizons.nothing: "
        "escapade.theory.horizons has no nothing"
    ]
    errata = "### E1: wrong\n\n`tests/test_one.py::test_gone`\n"
    (failure,) = script.check(pages(GOOD, errata=errata))
    assert failure.startswith("docs/errata.md:3: ")


def test_missing_pages_are_named(script, tmp_path, pages):
    assert script.check(tmp_path) == ["docs/paper-map.md: no such page"]
    root = pages(GOOD)
    (root / "docs/notation.md").unlink()
    assert script.check(root) == ["docs/notation.md: no such page"]


def test_the_command_fails_where_the_check_does(script, monkeypatch, capsys):
    monkeypatch.setattr(script, "check", lambda: ["docs/x.md:1: wrong"])
    assert script.main() == 1
    assert capsys.readouterr().out == "docs/x.md:1: wrong\n"
