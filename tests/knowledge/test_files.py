"""Knowledge in files: back bit for bit, or refused."""

from __future__ import annotations

import json
import zipfile

import numpy as np
import pytest

import escapade as ep
from escapade.errors import InvalidFileError
from escapade.knowledge import Counts, Knowledge, Log

_ARRAYS = (
    "row_ptr",
    "successor",
    "lower",
    "upper",
    "reward_lower",
    "reward_upper",
    "cost_lower",
    "cost_upper",
    "free",
    "exact_rewards",
    "exact_costs",
    "varying",
    "known_states",
    "exact_pairs",
    "start",
    "budget",
    "cost_max",
)


def assert_same(one: Knowledge, other: Knowledge) -> None:
    for name in _ARRAYS:
        a, b = getattr(one, name), getattr(other, name)
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)
    for name in ("n_states", "n_actions", "discount", "reward_max", "state_names"):
        assert getattr(one, name) == getattr(other, name)
    assert repr(one) == repr(other)
    assert one.fingerprint == other.fingerprint


@pytest.fixture
def full(told) -> Knowledge:
    """A plant of which something of every kind is known."""
    rows = np.zeros((6, 3))
    rows[2] = [1 / 3, 1 / 3, 1 / 3]
    nan = np.nan
    counts = np.zeros((3, 2, 3), dtype=int)
    counts[2, 1] = [3, 0, 4]
    return Knowledge(
        **told,
        known_rows=rows,
        start=[0.1, 0.2, 0.7],
        rewards=[[nan, 0.3], [nan, nan], [nan, nan]],
        costs=[[[0.1, nan]] * 3, [[nan, nan]] * 3],
        cost_bounds=[[[nan, 0.3]] * 3, [[2.0, nan]] * 3],
        free=[[False, False], [False, False], [False, True]],
        exact_rewards=True,
        exact_costs=[[True, False]] * 3,
        known_states=[1],
        log=Log(
            states=[0, 0],
            actions=[0, 0],
            rewards=[0.25, 0.25],
            costs=[[0.1, 2.0], [0.1, nan]],
            next_states=[0, 1],
            lines=[2, 3],
            source="steps.csv",
        ),
        counts=Counts(
            transitions=counts,
            rewards=[[0.0, 0.0], [0.0, 0.0], [0.0, 3.5]],
            costs=np.zeros((2, 3, 2)),
            cost_steps=[[0, 0], [0, 0], [0, 5]],
        ),
        state_names=["a", "b", "c"],
        action_names=["go", "stay"],
        coordinates=[[0.0, 0.0], [1.0, 0.5], [2.0, 0.0]],
        reward_scale=2.0,
        reward_offset=-3.0,
        varying=[[False, True], [False, False], [True, False]],
    )


def test_everything_comes_back(full, tmp_path):
    path = tmp_path / "plant.npz"
    full.save(path)
    back = Knowledge.load(path)
    assert_same(full, back)
    assert back.log.place(1) == "line 3 of steps.csv"
    np.testing.assert_array_equal(back.log.costs, full.log.costs)
    np.testing.assert_array_equal(back.tally.visits, full.tally.visits)
    assert back.tally.cost_steps.tolist() == full.tally.cost_steps.tolist()
    assert (back.reward_scale, back.reward_offset) == (2.0, -3.0)
    back.save(path)  # and once more
    assert_same(full, Knowledge.load(path))


@pytest.mark.parametrize("name", ["wall-cycle", "moat-grid", "garnet"])
def test_what_is_known_of_the_worlds_comes_back(name, tmp_path):
    keywords = {"size": 4} if name == "wall-cycle" else {}
    knowledge = ep.environments.make(name, **keywords).knowledge
    path = tmp_path / "world.npz"
    knowledge.save(path)
    back = Knowledge.load(path)
    assert_same(knowledge, back)
    if knowledge.models is not None:
        np.testing.assert_array_equal(back.models.left, knowledge.models.left)
        v = np.linspace(0.0, 1.0, knowledge.n_states)
        np.testing.assert_array_equal(back.models.worst(v), knowledge.models.worst(v))


def test_the_fingerprint_tells_knowledge_apart(plant):
    assert plant.fingerprint == plant.replace().fingerprint
    assert plant.fingerprint != plant.replace(budget=[2.0, 2.5]).fingerprint
    assert plant.fingerprint != plant.replace(free=True).fingerprint
    assert plant.fingerprint != plant.replace(reward_offset=-1.0).fingerprint


# -- files that were damaged -----------------------------------------------------------


def rewritten(path, change):
    """Write the archive anew with its header or arrays changed."""
    with np.load(path, allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    header = json.loads(arrays.pop("header").tobytes().decode())
    header, arrays = change(header, arrays) or (header, arrays)
    text = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    np.savez(path, header=text, **arrays)


def _format(header, _):
    header["format"] = "escapade-cmdp"


def _version(header, _):
    header["version"] = 99


def _array(_, arrays):
    arrays["budget"] = arrays["budget"] + 1.0


def _content(header, _):
    header["content"]["discount"] = 0.5


def _list(_, arrays):
    return [1, 2], arrays


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_format, "expected format 'escapade-knowledge' in .*, found 'escapade-cmdp'"),
        (_version, "expected format version 1 in .*, found version 99"),
        (_array, "the file was altered after it was written"),
        (_content, "the file was altered after it was written"),
        (_list, "its header is not that of a file of this library"),
    ],
)
def test_altered_files_are_refused(plant, tmp_path, change, message):
    path = tmp_path / "plant.npz"
    plant.save(path)
    rewritten(path, change)
    with pytest.raises(InvalidFileError, match=message):
        Knowledge.load(path)


def test_contents_that_do_not_fit_are_refused(plant, tmp_path, monkeypatch):
    """Even if whoever altered them wrote a new fingerprint as well."""
    path = tmp_path / "plant.npz"
    plant.save(path)
    monkeypatch.setattr("escapade.model.archives.digest", lambda *_: "forged")
    for name, value in (
        ("budget", np.array([-1.0, 1.0])),
        ("successor", np.array([99] * 9)),
        ("row_ptr", np.array([0, 99])),
    ):
        plant.save(path)

        def change(header, arrays, name=name, value=value):
            arrays[name] = value

        rewritten(path, change)
        with pytest.raises(InvalidFileError, match="expected valid knowledge in"):
            Knowledge.load(path)


def test_what_is_no_file_of_ours_is_refused(plant, tmp_path):
    with pytest.raises(InvalidFileError, match="path: expected a file, found none"):
        Knowledge.load(tmp_path / "nothing.npz")
    text = tmp_path / "text.npz"
    text.write_text("hello")
    with pytest.raises(InvalidFileError, match="it is no npz archive"):
        Knowledge.load(text)
    empty = tmp_path / "empty.npz"
    with zipfile.ZipFile(empty, "w") as archive:
        archive.writestr("readme.txt", "hello")
    with pytest.raises(InvalidFileError, match="cannot be read as one"):
        Knowledge.load(empty)
    short = tmp_path / "short.npz"
    plant.save(short)
    short.write_bytes(short.read_bytes()[:-200])
    with pytest.raises(InvalidFileError, match="cannot be read as one"):
        Knowledge.load(short)
