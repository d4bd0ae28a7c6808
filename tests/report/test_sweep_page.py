"""The page of a sweep, without a browser."""

from __future__ import annotations

import json

import pytest
from tests.report.conftest import HOSTILE
from tests.report.test_page import MOST_BYTES, data_of, downloads, parsed
from typer.testing import CliRunner

from escapade.cli import app
from escapade.errors import InvalidInputError
from escapade.experiment import Sweep, SweepSpec
from escapade.experiment.export import export
from escapade.experiment.sweeps.table import TableWriter, columns, row_of
from escapade.report import build_sweep_page, write_sweep_page


def text_of(page):
    return " ".join(" ".join(parsed(page).text).split())


def rewritten(swept, directory, change):
    """Return the sweep with other rows, elsewhere; its runs are not there."""
    again = Sweep.take(directory, swept.spec)
    rows = [found for row in swept.rows() if (found := change(dict(row)))]
    names = columns(swept.spec)
    TableWriter(again.results_path, names).replace_all(rows)
    return again


@pytest.fixture(scope="module")
def page(swept):
    return build_sweep_page(swept)


def test_the_verdict_counts_runs_promises_and_failures(swept, page, tmp_path):
    text = text_of(page)
    assert "4 of 16 runs failed." in text
    assert "16 of 16" in text
    assert "12 of 12" in text
    assert HOSTILE in text  # the reason, as text
    broken = {"promise_kept": False, "error": None, "steps_over_budget": 3}
    other = rewritten(swept, tmp_path / "b", lambda row: {**row, **broken})
    text = text_of(build_sweep_page(other))
    assert "the promise was not kept in 16 of 16 runs." in text
    assert "was over the budget in 16 of 16 runs" in text
    whole = rewritten(
        swept, tmp_path / "c", lambda r: {**r, "error": None, "promise_kept": True}
    )
    assert "Every run was lived, and its promise was kept." in text_of(
        build_sweep_page(whole)
    )
    part = rewritten(swept, tmp_path / "d", lambda r: None if r["error"] else r)
    assert "12 of 16 runs have ended so far." in text_of(build_sweep_page(part))
    none = rewritten(swept, tmp_path / "e", lambda r: None)
    assert "0 of 16 runs have ended so far." in text_of(build_sweep_page(none))


def test_names_stay_text_and_nothing_is_loaded(page):
    found = parsed(page)
    assert len(page.encode()) < MOST_BYTES
    assert len(found.scripts) == 3
    assert not [tag for tag, _ in found.tags if tag == "img"]
    assert not [a for _, a in found.tags if (a.get("href") or "").startswith("http")]
    assert "default-src 'none'" in page


def test_every_axis_that_varies_can_be_drawn_along(swept, page):
    along = data_of(page)["along"]
    # first the one that varies in both worlds
    assert list(along) == ["settings.known_after", "parameters.size", "world"]
    assert "Along size there is nothing of queue" in text_of(page)
    for figures in along.values():
        ids = [figure["id"] for figure in figures]
        assert ids == ["reward", "worst", "value", "gap", "known"]
    assert data_of(page)["figures"] == along["settings.known_after"]
    rows = [row for row in swept.rows() if not row["error"]]
    chosen = [
        row["reward_per_step"]
        for row in rows
        if (row["parameters.size"], row["settings.known_after"]) == (4, 3)
    ]
    lines = {
        line["name"]: line
        for line in along["parameters.size"][0]["data"]
        if "error_y" in line
    }
    line = lines["wall-cycle, known_after 3"]
    assert line["x"] == [3, 4]
    mean = sum(chosen) / len(chosen)
    assert line["y"][1] == pytest.approx(mean, rel=1e-6)
    assert line["error_y"]["array"][1] == pytest.approx(max(chosen) - mean, rel=1e-4)
    assert line["error_y"]["arrayminus"][1] == pytest.approx(
        mean - min(chosen), rel=1e-4
    )
    seeds = [
        entry
        for entry in along["parameters.size"][0]["data"]
        if entry["legendgroup"] == line["legendgroup"] and "error_y" not in entry
    ]
    assert seeds[0]["y"][2:] == pytest.approx(chosen, rel=1e-6)
    # a queue has no size, and is not drawn along it; along worlds it is
    assert {name.partition(",")[0] for name in lines} == {"wall-cycle"}
    worlds = {x for line in along["world"][0]["data"] for x in line["x"]}
    assert worlds == {"wall-cycle", "queue"}
    # series are told apart without their colours
    looks = {(v["marker"]["symbol"], v["line"]["dash"]) for v in lines.values()}
    assert len(looks) == len(lines) == 2


def test_what_has_one_value_is_no_axis(swept, tmp_path):
    def small_only(row):
        return None if row["parameters.size"] == 4 else row

    page = build_sweep_page(rewritten(swept, tmp_path / "small", small_only))
    assert list(data_of(page)["along"]) == ["settings.known_after", "world"]
    assert "size has one value, 3: it is no axis." in text_of(page)


def test_the_table_has_mean_and_ends(swept, page):
    text = text_of(page)
    rewards = [row["reward_per_step"] for row in swept.rows()[:2]]
    mean = sum(rewards) / 2
    assert f"{mean:.4g} ({min(rewards):.4g} to {max(rewards):.4g})" in text
    assert "0, 2 failed" in text


def test_the_data_can_be_taken_along(swept, page, monkeypatch):
    files = downloads(page)
    assert files["results.csv"] == swept.results_path.read_text("utf-8")
    assert SweepSpec.from_toml(files["sweep.toml"]) == swept.spec
    monkeypatch.setattr("escapade.report.sweep._MOST_BYTES", 10)
    large = build_sweep_page(swept)
    assert "results.csv" not in downloads(large)
    assert "too large for a page" in text_of(large)


def test_a_large_sweep_says_what_is_left_out(swept, monkeypatch):
    monkeypatch.setattr("escapade.report.sweep._MOST_LINES", 3)
    monkeypatch.setattr("escapade.report.sweep._MOST_SERIES", 1)
    monkeypatch.setattr("escapade.report.sweep._MOST_SEEDS", 1)
    page = build_sweep_page(swept)
    text = text_of(page)
    assert "And 5 more, which stand in results.csv." in text
    assert "series the first 1 are drawn" in text
    assert "1 of them" in text  # failures
    names = {
        line["name"]
        for line in data_of(page)["figures"][0]["data"]
        if "error_y" in line
    }
    assert len(names) == 1


def test_the_same_sweep_gives_the_same_page_elsewhere(swept, page, tmp_path):
    place = write_sweep_page(swept, tmp_path / "page.html")
    assert place.read_text("utf-8") == page
    assert str(swept.directory) not in page


def test_the_commands_know_a_sweep(swept, tmp_path):
    done = CliRunner().invoke(
        app, ["report", str(swept.directory), "-o", str(tmp_path / "a.html")]
    )
    assert done.exit_code == 0
    assert (tmp_path / "a.html").read_text("utf-8") == build_sweep_page(swept)
    out = tmp_path / "results.csv"
    done = CliRunner().invoke(
        app, ["export", str(swept.directory), "-o", str(out), "--json"]
    )
    assert json.loads(done.stdout)["rows"] == 16
    assert out.read_text("utf-8") == swept.results_path.read_text("utf-8")
    done = CliRunner().invoke(
        app, ["export", str(swept.directory), "-o", str(tmp_path / "a.svg")]
    )
    assert done.exit_code == 2
    assert "--figure: expected none of a sweep" in done.stderr
    with pytest.raises(InvalidInputError, match="table: expected 'results'"):
        export(swept, out, table="steps")


def test_a_row_is_written_and_read_as_it_was(swept):
    names = columns(swept.spec)
    row = swept.rows()[0]
    run = swept.spec.runs[0]
    assert row_of(run, names, row) == row


@pytest.mark.extras
def test_a_sweep_goes_to_parquet(swept, tmp_path):
    import duckdb

    path = tmp_path / "results.parquet"
    assert export(swept, path) == 16
    with duckdb.connect() as db:
        (mean,) = db.execute(
            f"SELECT avg(reward_per_step) FROM '{path}' WHERE error IS NULL"
        ).fetchone()
    rewards = [r["reward_per_step"] for r in swept.rows() if not r["error"]]
    assert mean == pytest.approx(sum(rewards) / len(rewards))
