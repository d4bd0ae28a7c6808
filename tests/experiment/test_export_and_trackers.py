"""Tables for other tools, and numbers for experiment trackers."""

from __future__ import annotations

import csv
import json
import sys
import types

import numpy as np
import pytest
from tests.experiment.conftest import small

from escapade.agent import Phase
from escapade.errors import InvalidInputError, MissingExtraError, StorageError
from escapade.experiment import Callback, Run, live
from escapade.experiment.export import export
from escapade.experiment.trackers import MLflow, TensorBoard, WeightsAndBiases


def test_steps_become_csv(undisturbed, tmp_path):
    path = tmp_path / "steps.csv"
    trace = undisturbed.trace()
    assert export(undisturbed, path) == len(trace)
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["state"]) for row in rows] == trace.states[:-1].tolist()
    assert [row["phase"] for row in rows] == [Phase(p).label for p in trace.phases]
    # numbers come back bit for bit
    assert [float(row["promise"]) for row in rows] == trace.promise[:, 0].tolist()


def test_events_become_csv(undisturbed, tmp_path):
    path = tmp_path / "events.csv"
    events = undisturbed.events()
    assert export(undisturbed, path, table="events") == len(events)
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [json.loads(row["content"]) for row in rows] == [e.content for e in events]


@pytest.mark.extras
def test_steps_become_parquet(undisturbed, tmp_path):
    import duckdb

    path = tmp_path / "it's steps.parquet"
    trace = undisturbed.trace()
    assert export(undisturbed, path) == len(trace)
    with duckdb.connect() as db:
        found = db.execute(
            "SELECT state, reward, promise FROM read_parquet(?) ORDER BY step",
            [str(path)],
        ).fetchnumpy()
    assert np.array_equal(found["state"], trace.states[:-1])
    assert np.array_equal(found["promise"], trace.promise[:, 0])


def test_what_cannot_be_exported_is_refused(undisturbed, tmp_path, monkeypatch):
    with pytest.raises(InvalidInputError, match="a name that ends in"):
        export(undisturbed, tmp_path / "steps.xlsx")
    with pytest.raises(InvalidInputError, match="'steps' or 'events'"):
        export(undisturbed, tmp_path / "steps.csv", table="seals")
    with pytest.raises(StorageError, match="cannot be written"):
        export(undisturbed, tmp_path / "nowhere" / "steps.csv")
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(MissingExtraError, match="analysis"):
        export(undisturbed, tmp_path / "steps.parquet")


# -- trackers --------------------------------------------------------------------------


class Writer:
    def __init__(self):
        self.scalars, self.texts, self.flushed = [], {}, False

    def add_scalar(self, name, value, step):
        self.scalars.append((name, value, step))

    def add_text(self, name, text):
        self.texts[name] = text

    def flush(self):
        self.flushed = True


def test_every_tracker_is_told_the_same(tmp_path, monkeypatch):
    logged = {"mlflow": [], "wandb": []}
    tags, summary = {}, {}
    mlflow = types.SimpleNamespace(
        log_metrics=lambda numbers, step: logged["mlflow"].append((step, numbers)),
        set_tag=tags.__setitem__,
    )
    wandb = types.SimpleNamespace(
        log=lambda numbers, step: logged["wandb"].append((step, numbers)),
        run=types.SimpleNamespace(summary=summary),
    )
    monkeypatch.setitem(sys.modules, "mlflow", mlflow)
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    writer = Writer()
    trackers = [TensorBoard(writer), MLflow(), WeightsAndBiases()]
    assert all(isinstance(tracker, Callback) for tracker in trackers)
    run = Run.create(tmp_path / "run", small(steps=400))
    found = live(run, block=100, callbacks=trackers)
    assert [step for step, _ in logged["mlflow"]] == [100, 200, 300, 400, 400]
    assert logged["mlflow"] == logged["wandb"]
    by_block = [
        (name, value, step)
        for step, numbers in logged["wandb"]
        for name, value in numbers.items()
    ]
    assert writer.scalars == by_block
    trace = run.trace()
    first = dict(logged["mlflow"][0][1])
    assert first["reward_per_step"] == trace.rewards[:100].mean()
    assert first["promise/0"] == trace.promise[99, 0]
    assert tags["verdict"] == summary["verdict"] == writer.texts["verdict"]
    assert tags["verdict"] == found["verdict"]
    assert writer.flushed


def test_a_tracker_that_is_not_installed_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(InvalidInputError, match="pip install wandb"):
        WeightsAndBiases()
