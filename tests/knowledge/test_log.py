"""Logs: from arrays, from text, from Parquet; every bad line is named."""

from __future__ import annotations

import sys
import types

import numpy as np
import pytest

from escapade.errors import InvalidFileError, InvalidInputError, MissingExtraError
from escapade.knowledge import Knowledge, Log

HEADINGS = "time,state,action,reward,cost,next_state\n"
STEPS = HEADINGS + "7:00,0,1,0.5,0.25,1\n7:01,1,0,1,,0\n\n7:02,0,1,0,1e0,1\n"


def written(tmp_path, text, name="steps.csv"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


# -- arrays ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"states": [0.5]}, "states: expected"),
        ({"actions": [0, 1]}, "actions: expected 1 steps"),
        ({"rewards": [0.0, 1.0]}, r"rewards: expected shape \(1,\)"),
        ({"costs": [[0.0], [1.0]]}, r"costs: expected shape \(1, K\)"),
        ({"costs": np.zeros((1, 0))}, r"costs: expected shape \(1, K\)"),
        ({"lines": [1, 2]}, "lines: expected 1 steps"),
    ],
)
def test_columns_must_fit_together(changed, message):
    columns = {
        "states": [0],
        "actions": [0],
        "rewards": [0.0],
        "costs": [0.0],
        "next_states": [0],
    }
    assert len(Log(**columns)) == 1
    with pytest.raises(InvalidInputError, match=message):
        Log(**{**columns, **changed})


def test_a_log_keeps_copies():
    states = np.array([0, 1])
    log = Log(
        states=states, actions=[0, 0], rewards=[0, 0], costs=[0, 1], next_states=[1, 1]
    )
    states[0] = 5
    assert log.states.tolist() == [0, 1]
    assert log.n_costs == 1
    assert repr(log) == "Log(2 steps, 1 cost)"
    assert log.place(1) == "row 1"
    with pytest.raises(ValueError, match="read-only"):
        log.costs[0] = 1.0


# -- text ------------------------------------------------------------------------------


def test_a_text_file_is_read_by_its_headings(tmp_path):
    log = Log.from_csv(written(tmp_path, STEPS))
    assert log.states.tolist() == [0, 1, 0]
    assert log.actions.tolist() == [1, 0, 1]
    assert log.rewards.tolist() == [0.5, 1.0, 0.0]
    np.testing.assert_array_equal(log.costs, [[0.25], [np.nan], [1.0]])
    assert log.next_states.tolist() == [1, 0, 1]
    assert log.lines.tolist() == [2, 3, 5]
    assert log.place(2) == "line 5 of steps.csv"


def test_columns_may_be_called_otherwise_and_states_have_names(tmp_path):
    text = (
        "\ufeffs;what;gain;spill;noise;then\nhot; off ;1;0;2;cold\ncold;on;0;1;;hot\n"
    )
    log = Log.from_csv(
        written(tmp_path, text),
        columns={
            "state": "s",
            "action": "what",
            "reward": "gain",
            "cost_0": "spill",
            "cost_1": "noise",
            "next_state": "then",
        },
        delimiter=";",
        state_names=["cold", "hot"],
        action_names=["off", "on"],
    )
    assert log.states.tolist() == [1, 0]
    assert log.actions.tolist() == [0, 1]
    np.testing.assert_array_equal(log.costs, [[0.0, 2.0], [1.0, np.nan]])


def test_a_file_without_steps_is_an_empty_log(tmp_path):
    assert len(Log.from_csv(written(tmp_path, HEADINGS))) == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            HEADINGS + "x,0,1,0.5,0,1\nx,0.5,1,0,0,1\n",
            "state: expected a whole number, found '0.5' at line 3 of steps.csv",
        ),
        (
            HEADINGS + "x,0,1,lots,0,1\n",
            "reward: expected a number, found 'lots' at line 2 of steps.csv",
        ),
        (HEADINGS + "x,0,1,,0,1\n", "reward: expected a number, found ''"),
        (HEADINGS + "x,0,1,0,dear,1\n", "cost_0: expected a number, found 'dear'"),
        (
            HEADINGS + "x,0,1,0,0\n",
            "path: expected 6 cells, as in the headings, "
            "found 5 at line 2 of steps.csv",
        ),
        (HEADINGS + "x,inf,1,0,0,1\n", "state: expected a whole number, found 'inf'"),
        (HEADINGS + "x,1e30,1,0,0,1\n", "state: expected a whole number, found '1e30'"),
        ("state,action,reward,cost\n", "columns: expected a column 'next_state'"),
        ("state,action,reward,next_state\n", "columns: expected a column 'cost', or"),
        ("", "columns: expected a column 'state'"),
        ("state,state\n", "path: expected headings that differ, found 'state' twice"),
    ],
)
def test_the_first_bad_line_is_named(tmp_path, text, message):
    with pytest.raises(InvalidInputError, match=message):
        Log.from_csv(written(tmp_path, text))


def test_names_that_are_not_on_the_list(tmp_path):
    path = written(tmp_path, STEPS)
    with pytest.raises(InvalidInputError, match="state: expected one of the 2 names"):
        Log.from_csv(path, state_names=["cold", "hot"])


def test_arguments_that_make_no_sense(tmp_path):
    path = written(tmp_path, STEPS)
    with pytest.raises(InvalidInputError, match="columns: expected names among"):
        Log.from_csv(path, columns={"colour": "red"})
    with pytest.raises(InvalidInputError, match="delimiter: expected one character"):
        Log.from_csv(path, delimiter="--")


def test_files_that_are_none(tmp_path):
    with pytest.raises(InvalidFileError, match="path: expected a file, found none"):
        Log.from_csv(tmp_path / "nothing.csv")
    path = tmp_path / "bytes.csv"
    path.write_bytes(b"state,action\n\xff\xfe\n")
    with pytest.raises(InvalidFileError, match="which cannot be read as one"):
        Log.from_csv(path)


def test_lines_are_named_when_the_world_disagrees(tmp_path):
    log = Log.from_csv(written(tmp_path, STEPS))
    with pytest.raises(InvalidInputError, match=r"reward in \[0, 0.5\].*line 3 of st"):
        Knowledge(2, 2, discount=0.9, budget=1.0, reward_max=0.5, cost_max=1.0, log=log)


# -- Parquet ---------------------------------------------------------------------------


class StandIn(types.ModuleType):
    """What is used of DuckDB, over columns that are given."""

    class Error(Exception):
        pass

    def __init__(self, columns):
        super().__init__("duckdb")
        self.columns = columns

    def connect(self):
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def execute(self, query, parameters):
        assert query == "SELECT * FROM read_parquet(?)"
        if not parameters[0].endswith(".parquet"):
            raise self.Error("No magic bytes found\nat all")
        return self

    def fetchnumpy(self):
        return self.columns


@pytest.fixture
def duckdb(monkeypatch):
    columns = {
        "state": np.array([0, 1, 0], dtype=np.int64),
        "action": np.array([1, 0, 1], dtype=np.int32),
        "reward": np.array([0.5, 1.0, 0.0]),
        "cost": np.ma.array([0.25, 9.0, 1.0], mask=[False, True, False]),
        "next_state": np.array([1, 0, 1]),
    }
    monkeypatch.setitem(sys.modules, "duckdb", StandIn(columns))
    return columns


def test_a_parquet_file_is_the_same_log(tmp_path, duckdb):
    path = written(tmp_path, "", "steps.parquet")
    log = Log.from_parquet(path)
    text = Log.from_csv(written(tmp_path, STEPS))
    for name in ("states", "actions", "rewards", "costs", "next_states"):
        np.testing.assert_array_equal(getattr(log, name), getattr(text, name))
    assert log.place(1) == "line 2 of steps.parquet"
    duckdb["reward"] = np.ma.array([0.5, 1.0, 0.0], mask=[False, True, False])
    with pytest.raises(InvalidInputError, match="reward: expected a number, found Non"):
        Log.from_parquet(path)


def test_files_that_are_no_parquet(tmp_path, duckdb):
    with pytest.raises(InvalidFileError, match="path: expected a file, found none"):
        Log.from_parquet(tmp_path / "nothing.parquet")
    with pytest.raises(InvalidFileError, match="No magic bytes found"):
        Log.from_parquet(written(tmp_path, STEPS))


@pytest.mark.extras
def test_duckdb_itself_reads_parquet(tmp_path):
    import duckdb

    path = tmp_path / "steps [1]*.parquet"
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE steps AS SELECT * FROM (VALUES "
            "(0::UTINYINT, 1::BIGINT, .5::FLOAT, .25::DECIMAL(4, 2), 1::INTEGER, 'x'),"
            "(1, 0, 1, NULL, 0, NULL), (0, 1, 0, 1, 1, 'y')"
            ") AS t(state, action, reward, cost, next_state, note)"
        )
        quoted = str(path).replace("'", "''")
        connection.execute(f"COPY steps TO '{quoted}' (FORMAT parquet)")
    log = Log.from_parquet(path)
    text = Log.from_csv(written(tmp_path, STEPS))
    for name in ("states", "actions", "rewards", "costs", "next_states"):
        np.testing.assert_array_equal(getattr(log, name), getattr(text, name))
    with pytest.raises(InvalidFileError, match="cannot be read as one") as caught:
        Log.from_parquet(written(tmp_path, STEPS))
    assert "\n" not in str(caught.value)
    with pytest.raises(InvalidInputError, match="columns: expected a column 'from'"):
        Log.from_parquet(path, columns={"state": "from"})


def test_without_duckdb_its_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(MissingExtraError, match=r'pip install "escapade\[analysis\]"'):
        Log.from_parquet(tmp_path / "steps.parquet")
