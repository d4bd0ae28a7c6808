"""The page of agents side by side, without a browser; and comparisons on disk."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace

import numpy as np
import pytest
from tests.report.conftest import HOSTILE, contestant
from tests.report.test_page import MOST_BYTES, data_of, downloads, parsed
from typer.testing import CliRunner

from escapade.cli import app
from escapade.errors import InvalidFileError, InvalidInputError
from escapade.experiment import Comparison
from escapade.experiment.export import export
from escapade.report import build_comparison_page, write_comparison_page


@pytest.fixture(scope="module")
def page(compared):
    return build_comparison_page(compared)


def text_of(page):
    return " ".join(" ".join(parsed(page).text).split())


def test_the_verdict_says_who_kept_the_budget_and_who_did_not(compared, page):
    text = text_of(page)
    assert "stayed within the budget at every step, and it earned 50%" in text
    assert "within the budget at every step: e4, oracle." in text
    assert f"Above it at some step: {HOSTILE}." in text
    assert "careful did not live: It can't." in text
    assert "5 of 10; 1 of 2" in text
    over = replace(compared, contestants=(contestant("e4", cost=(11.0, 1.0)),))
    assert "went above the budget at some step" in text_of(build_comparison_page(over))
    others = replace(compared, contestants=compared.contestants[1:])
    assert "Measured, agent by agent." in text_of(build_comparison_page(others))


def test_names_stay_text_and_nothing_is_loaded(page):
    found = parsed(page)
    assert len(page.encode()) < MOST_BYTES
    assert len(found.scripts) == 3
    assert not [tag for tag, _ in found.tags if tag == "img"]
    assert not [a for _, a in found.tags if (a.get("href") or "").startswith("http")]
    names = {line["name"] for line in data_of(page)["figures"][0]["data"]}
    assert HOSTILE not in names  # Plotly would take it for HTML
    assert {"e4", "oracle", "budget"} < names


def test_the_figures_are_those_of_the_comparison(compared, page):
    figures = {figure["id"]: figure for figure in data_of(page)["figures"]}
    assert list(figures) == ["tradeoff", "rewards", "costs-0", "costs-1"]
    lines = {line["name"]: line for line in figures["tradeoff"]["data"]}
    assert lines["e4"]["x"] == [50.0]
    assert lines["e4"]["y"] == [0.5]
    assert "careful" not in lines
    rewards = {line["name"]: line for line in figures["rewards"]["data"]}
    assert rewards["e4"]["y"] == pytest.approx(compared["e4"].rewards, rel=1e-6)
    assert rewards["e4"]["x"][:2] == [10.5, 30.5]  # the middles of steps 1 to 20, ...
    costs = {line["name"]: line for line in figures["costs-1"]["data"]}
    assert costs["e4"]["y"][0] == pytest.approx(1.0)
    assert costs["e4"]["x"][-1] == 792.5  # costs are judged from 800 of 1000 steps
    assert costs["budget"]["y"] == [2.0, 2.0]


def test_a_comparison_comes_back_from_disk_and_gives_the_same_page(
    compared, page, tmp_path
):
    assert compared.save(tmp_path / "kept").name == "comparison.json"
    again = Comparison.load(tmp_path / "kept")
    assert build_comparison_page(again) == page
    place = tmp_path / "page.html"
    assert write_comparison_page(again, place).read_text("utf-8") == page
    assert np.isnan(again["careful"].share)
    assert again["careful"].costs.shape == (0, 2)
    assert again[HOSTILE].steps_to_oracle == 1200


def test_an_altered_comparison_is_refused(compared, tmp_path):
    place = compared.save(tmp_path)
    whole = place.read_text("utf-8")
    place.write_text(whole.replace("0.25", "0.00", 1), "utf-8")
    with pytest.raises(InvalidFileError, match="altered"):
        Comparison.load(tmp_path)
    with pytest.raises(InvalidFileError, match="cannot be read"):
        Comparison.load(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"format": 2}, "another version"),
        ({"budget": None}, "else"),
        ({"more": 1}, "else"),
    ],
)
def test_what_is_no_comparison_is_refused(compared, tmp_path, change, named):
    from escapade.experiment.checkpoint import read_sealed, seal_text

    place = compared.save(tmp_path)
    place.write_text(seal_text({**read_sealed(place), **change}), "utf-8")
    with pytest.raises(InvalidFileError, match=named):
        Comparison.load(tmp_path)


def test_its_tables_can_be_taken_along(compared, page, tmp_path):
    assert export(compared, tmp_path / "agents.csv") == 4
    assert export(compared, tmp_path / "curves.csv", table="curves") == 3 * 50 * 3
    files = downloads(page)
    for name in ("agents.csv", "curves.csv"):
        assert files[name] == (tmp_path / name).read_text("utf-8")
    agents = list(csv.DictReader(io.StringIO(files["agents.csv"])))
    assert [row["agent"] for row in agents] == ["e4", HOSTILE, "careful", "oracle"]
    assert agents[2]["share"] == agents[2]["worst_cost_1"] == ""
    curves = list(csv.DictReader(io.StringIO(files["curves.csv"])))
    last = [row for row in curves if row["agent"] == "e4" and row["what"] == "cost_1"]
    assert (last[-1]["first_step"], last[-1]["last_step"]) == ("784", "799")
    with pytest.raises(
        InvalidInputError, match=r"^table: expected 'agents' or 'curves'"
    ):
        export(compared, tmp_path / "steps.csv", table="steps")


def test_the_command_keeps_shows_and_exports(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def run(*words):
        return CliRunner().invoke(app, list(words))

    words = ("compare", "three-state-loop", "--steps", "60", "--lifetimes", "1")
    done = run(*words, "--out", "kept", "--json")
    told = json.loads(done.stdout)
    assert told["report"] == "kept/report.html"
    assert told["judged"] <= told["steps"] == 60
    first = (tmp_path / "kept" / "report.html").read_bytes()
    assert run("report", "kept", "--out", "again.html").exit_code == 0
    assert (tmp_path / "again.html").read_bytes() == first
    done = run("export", "kept", "--out", "agents.csv")
    assert done.stdout == "agents.csv: 8 rows of agents\n"

    for wrong, named in (
        ((*words, "--out", "kept"), "--out: expected a directory that is empty or new"),
        (("report", "nowhere"), "DIR: expected the directory of a run, a comparison"),
        (("export", "kept", "--out", "a.png"), "--out: expected a name that ends in"),
        (("export", "kept", "--out", "a.csv", "--linear"), "--linear: expected none"),
        (
            ("export", "kept", "--out", "a.svg", "--table", "agents"),
            "--table: expected",
        ),
    ):
        done = run(*wrong)
        assert done.exit_code == 2
        assert named in done.stderr
        assert done.stderr.count("\n") == 1
