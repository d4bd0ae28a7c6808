"""Figures for papers: whole, of the same bytes, with their letters, in plain words."""

from __future__ import annotations

import re
import sys
from xml.etree import ElementTree

import pytest
from tests.report.conftest import HOSTILE, lived
from typer.testing import CliRunner

from escapade.cli import app
from escapade.errors import InvalidInputError, MissingExtraError
from escapade.experiment import Run
from escapade.report import figure_names, write_figures

extras = pytest.mark.extras

OF_RUN = ["promise", "known", "earned", "value", "predicted"]


def test_figures_have_names(run, compared):
    assert figure_names(run) == OF_RUN
    assert figure_names(compared) == ["tradeoff", "rewards", "costs-0", "costs-1"]


@extras
def test_every_figure_comes_in_both_formats_and_with_the_same_bytes(run, tmp_path):
    files = write_figures(run, tmp_path / "a")
    assert [file.name for file in files] == [
        f"{name}.{kind}" for name in OF_RUN for kind in ("svg", "pdf")
    ]
    again = write_figures(Run(run.directory), tmp_path / "b")
    for one, other in zip(files, again, strict=True):
        assert one.read_bytes() == other.read_bytes(), one.name


@extras
def test_letters_are_in_the_file_and_dates_are_not(compared, tmp_path):
    vector, portable = write_figures(compared, tmp_path, ["tradeoff"], width=3.4)
    drawn = vector.read_text("utf-8")
    tree = ElementTree.fromstring(drawn)
    assert float(tree.get("width").removesuffix("pt")) == pytest.approx(3.4 * 72)
    assert "<text" not in drawn  # outlines
    assert "date" not in drawn.lower()
    links = [v for e in tree.iter() for k, v in e.items() if k.endswith("href")]
    assert links
    assert all(link.startswith("#") for link in links)  # all that it needs is in it
    content = portable.read_bytes()
    assert b"/FontFile2" in content
    assert b"DejaVuSans" in content
    assert b"/CreationDate" not in content


@extras
def test_a_name_is_no_mathematics_and_no_markup(compared, tmp_path):
    from matplotlib import pyplot

    before = dict(pyplot.rcParams)
    (file,) = write_figures(compared, tmp_path / "a.svg", ["tradeoff"])
    drawn = file.read_text("utf-8")
    ElementTree.fromstring(drawn)
    comments = re.findall("<!-- (.*?) -->", drawn)
    assert "e4" in comments
    # Matplotlib notes each label; what would end a comment is written otherwise there
    assert any("onerror" in said for said in comments)
    assert not any("mathdefault" in said for said in comments if "onerror" in said)
    assert HOSTILE not in drawn
    assert dict(pyplot.rcParams) == before


@extras
def test_steps_are_shown_by_their_logarithm_where_a_page_would(run, tmp_path):
    def ticks(**how):
        (file,) = write_figures(run, tmp_path / "a.svg", ["earned"], **how)
        said = re.findall("<!-- (.*?) -->", file.read_text("utf-8"))
        return {re.sub(r"[^\d.^{]", "", text) for text in said}

    assert "{1000" in ticks(logarithmic=False)
    assert "{1000" not in ticks(logarithmic=True)
    assert ticks() == ticks(logarithmic=True)  # 1,200 steps are downsampled


@extras
def test_two_budgets_have_a_figure_each(tmp_path):
    run = lived(tmp_path / "run", world="battery", parameters={}, settings={}, steps=60)
    files = write_figures(run, tmp_path / "figures", ["promise-0", "promise-1"])
    assert len(files) == 4


def test_a_missing_extra_is_named_in_one_line(run, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r'pip install "escapade\[figures\]"'):
        write_figures(run, tmp_path / "figures")
    words = ["export", str(run.directory), "--figure", "all", "--out", "figures"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 2
    assert done.stderr.count("\n") == 1
    assert "matplotlib is not installed" in done.stderr


@extras
@pytest.mark.parametrize(
    ("place", "how", "message"),
    [
        ("a.svg", {}, r"^figure: expected one of promise, .* for a file, found 5"),
        ("a", {"names": ["x"]}, r"^figure: expected one of promise, .*found 'x'"),
        ("a.png", {}, r"^path: expected a directory, or a name in .svg or .pdf"),
        ("a", {"width": 0.0}, r"^width: expected inches in \[2, 20\], found 0"),
    ],
)
def test_what_is_wrong_is_named(run, tmp_path, place, how, message):
    with pytest.raises(InvalidInputError, match=message):
        write_figures(run, tmp_path / place, **how)
    assert not list(tmp_path.iterdir())


@extras
def test_the_command_writes_a_figure(run, tmp_path):
    place = tmp_path / "known.pdf"
    words = ["export", str(run.directory), "--figure", "known", "--linear"]
    done = CliRunner().invoke(app, [*words, "--width", "3.4", "--out", str(place)])
    assert (done.exit_code, done.stdout) == (0, f"{place}\n")
    assert place.read_bytes().startswith(b"%PDF")
