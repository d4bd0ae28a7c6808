"""Every code block of the README and the pages runs, and prints what it is said to.

The blocks of a page run in order and share their names, in an empty directory.  A
``python`` block is executed; of a ``sh`` block the ``escapade`` commands are run, and
the ``make`` commands must name recipes.  A ``toml`` or ``json`` block with a title
becomes the file of that name.  A ``text`` block that follows a block directly is what
that block prints; ``...`` stands for anything.
"""

from __future__ import annotations

import contextlib
import doctest
import importlib
import io
import pkgutil
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from scripts.docstring_markup import to_markdown
from scripts.reference_pages import address, modules, packages, page

import escapade

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
MODULES = sorted(
    module.name for module in pkgutil.walk_packages(escapade.__path__, "escapade.")
)
GENERATED = {address(package) for package in packages()}

FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>[^\n`]*)\n(?P<code>.*?)^(?P=indent)```[ ]*$",
    re.DOTALL | re.MULTILINE,
)
TITLED = re.compile(r'(?P<language>toml|json) title="(?P<name>[\w.-]+)"')
LANGUAGES = {"python", "sh", "text", "toml", "json"}


@dataclass(frozen=True)
class Block:
    language: str
    code: str
    line: int
    expected: str | None


def blocks(path: Path) -> list[Block]:
    text = path.read_text("utf-8")
    found = list(FENCE.finditer(text))
    result = []
    for k, fence in enumerate(found):
        following = found[k + 1] if k + 1 < len(found) else None
        expected = None
        if (
            following
            and following["language"].strip() == "text"
            and not text[fence.end() : following.start()].strip()
        ):
            expected = following["code"]
        indent = len(fence["indent"])
        code = "\n".join(line[indent:] for line in fence["code"].splitlines()) + "\n"
        line = text.count("\n", 0, fence.start()) + 1
        result.append(Block(fence["language"].strip(), code, line, expected))
    return result


def assert_printed(found: str, block: Block, place: str) -> None:
    if block.expected is None:
        return
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    same = doctest.OutputChecker().check_output(block.expected, found, flags)
    assert same, f"{place} prints:\n{found}\nbut the page says:\n{block.expected}"


def run_shell(block: Block, place: str) -> str:
    printed = ""
    for line in block.code.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if words[:1] == ["escapade"]:
            command = [str(Path(sys.executable).parent / "escapade"), *words[1:]]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            assert done.returncode in {0, 1}, f"{place}: {line}\n{done.stderr}"
            printed += done.stdout
        elif words[:1] == ["make"]:
            recipes = [word for word in words[1:] if "=" not in word]
            makefile = (ROOT / "Makefile").read_text("utf-8")
            for recipe in recipes:
                assert re.search(rf"^{recipe}:", makefile, re.M), f"{place}: {line}"
        else:
            known = {"git", "cd", "pip", "python", ".venv/bin/pre-commit"}
            assert not words or words[0] in known, f"{place}: {line}"
    return printed


@pytest.mark.compiled
@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_every_block_of_a_page_runs(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__main__"}
    for block in blocks(path):
        place = f"{path.relative_to(ROOT)}:{block.line}"
        if titled := TITLED.fullmatch(block.language):
            (tmp_path / titled["name"]).write_text(block.code, "utf-8")
            continue
        assert block.language in LANGUAGES, f"{place}: language {block.language!r}"
        if block.language == "python":
            # blank lines ahead make a traceback point at the line of the page
            code = compile("\n" * block.line + block.code, str(path), "exec")
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                exec(code, names)
            assert_printed(printed.getvalue(), block, place)
        elif block.language == "sh":
            assert_printed(run_shell(block, place), block, place)


@pytest.mark.parametrize("module", MODULES)
def test_the_examples_in_a_module_run(module):
    if module == "escapade.__main__":  # importing it is running the command
        return
    outcome = doctest.testmod(
        importlib.import_module(module),
        optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE,
    )
    assert outcome.failed == 0


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_every_link_to_a_file_leads_somewhere(path):
    for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", path.read_text("utf-8")):
        if target.startswith(("https:", "mailto:")) or target in GENERATED:
            continue
        assert (path.parent / target).exists(), f"{path.name}: {target}"


def test_the_runner_sees_a_wrong_page(tmp_path):
    wrong = tmp_path / "wrong.md"
    wrong.write_text("```python\nprint(1 + 1)\n```\n\n```text\n3\n```\n", "utf-8")
    first, second = blocks(wrong)
    assert (first.language, first.expected, second.language) == (
        "python",
        "3\n",
        "text",
    )
    with pytest.raises(AssertionError, match="prints"):
        assert_printed("2\n", first, "wrong.md:1")
    with pytest.raises(AssertionError, match="brew"):
        run_shell(Block("sh", "brew install escapade\n", 1, None), "wrong.md:1")


# -- the reference -------------------------------------------------------------------


def test_the_reference_has_every_public_module():
    listed = {name for package in packages() for name in modules(package)}
    front = (ROOT / "docs" / "reference.md").read_text("utf-8")
    listed |= set(re.findall(r"^::: (\S+)$", front, re.MULTILINE))
    private = re.compile(r"\._")
    assert listed == {name for name in MODULES if not private.search(name)}


def test_a_page_of_the_reference_holds_the_package_and_its_modules():
    lines = page("model").splitlines()
    assert lines[0] == "# escapade.model"
    asked = [line.removeprefix("::: ") for line in lines if line.startswith("::: ")]
    assert asked == modules("model")
    assert "escapade.model.cmdp" in asked


def test_docstrings_become_markdown():
    names = {"evaluate": "escapade.model.evaluation.evaluate"}
    assert to_markdown(":func:`evaluate` and :class:`~a.b.C`", names) == (
        '<autoref identifier="escapade.model.evaluation.evaluate" optional>'
        "<code>evaluate</code></autoref> and "
        '<autoref identifier="a.b.C" optional><code>C</code></autoref>'
    )
    assert to_markdown("As follows::\n\n    x = 1\n") == "As follows:\n\n    x = 1"
    assert to_markdown("::\n\n    tree") == "\n\n    tree"
    assert to_markdown(":math:`\\gamma\n  < 1`") == "`\\gamma < 1`"
    assert to_markdown(".. math:: x^2\n\nand") == "    x^2\n\nand"
    rule = "=====  ====="
    table = [rule, "name   what", rule, "``a``  one |", "       two", rule]
    assert to_markdown("\n".join(table)).strip().splitlines() == [
        "| name | what |",
        "| --- | --- |",
        "| ``a`` | one \\| two |",
    ]
    assert to_markdown("===== no table") == "===== no table"
