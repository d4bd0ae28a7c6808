"""Files hold data, and what was tampered with is refused, not run."""

from __future__ import annotations

import io
import json
import os
import pickle
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from escapade.errors import InvalidFileError, InvalidInputError
from escapade.model import CMDP
from escapade.model.archives import archive_kind, digest, write_atomically
from escapade.testing import cmdps


@pytest.fixture
def plant():
    return CMDP(
        [[[0.5, 0.5], [1.0, 0.0]], [[0.25, 0.75], [0.0, 1.0]]],
        [[1.0, 1 / 3], [0.0, 0.1]],
        [[0.0, 0.1], [1.0, 0.7]],
        discount=0.9,
        budget=2.5,
        start=[0.1, 0.9],
        state_names=["gut", "schlecht ☠"],
        action_names=["go", "no"],
        coordinates=[[0.0, 1.0], [2.0, 3.0]],
    )


@pytest.fixture
def saved(plant, tmp_path):
    path = tmp_path / "plant.npz"
    plant.save(path)
    return path


def inside(folder):
    return [path.name for path in folder.iterdir()]


def members(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def rewrite(path, changes):
    """Write the archive again with some members changed (``None``: left out)."""
    contents = {**members(path), **changes}
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in contents.items():
            if data is not None:
                archive.writestr(name, data)


def as_member(array, *, allow_pickle=False):
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=allow_pickle)
    return buffer.getvalue()


def header_of(path):
    return json.loads(np.load(path)["header"].tobytes())


def with_header(path, **changes):
    text = json.dumps({**header_of(path), **changes}).encode()
    rewrite(path, {"header.npy": as_member(np.frombuffer(text, dtype=np.uint8))})


def forge(path, content=None, **arrays):
    """Change what the file holds, and record the new fingerprint as well."""
    with np.load(path) as archive:
        held = {name: archive[name] for name in archive.files if name != "header"}
    for name, array in arrays.items():
        held[name] = np.asarray(array)
        rewrite(path, {f"{name}.npy": as_member(held[name])})
    told = {**header_of(path)["content"], **(content or {})}
    with_header(path, content=told, fingerprint=digest(told, held))


def refused(path, words):
    with pytest.raises(InvalidFileError) as caught:
        CMDP.load(path)
    message = str(caught.value)
    assert message.startswith("path: ")
    assert "\n" not in message
    assert words in message


@settings(max_examples=40)
@given(cmdps())
def test_a_problem_comes_back_bit_for_bit(tmp_path_factory, cmdp):
    path = tmp_path_factory.mktemp("saved") / "plant.npz"
    cmdp.save(path)
    again = CMDP.load(path)
    assert again == cmdp
    for name in cmdp.__slots__:
        value = getattr(cmdp, name)
        if isinstance(value, np.ndarray):
            loaded = getattr(again, name)
            assert loaded.dtype == value.dtype
            assert loaded.tobytes() == value.tobytes()
        elif name != "_fingerprint":
            assert getattr(again, name) == value


def test_paths_may_be_strings_and_need_no_ending(plant, tmp_path):
    plant.save(str(tmp_path / "plant"))
    assert CMDP.load(str(tmp_path / "plant")) == plant
    assert inside(tmp_path) == ["plant"]


def test_saving_replaces_what_was_there(plant, saved):
    plant.replace(budget=9.0).save(saved)
    assert CMDP.load(saved).budget.tolist() == [9.0]
    assert inside(saved.parent) == [saved.name]


def test_a_missing_file(tmp_path):
    refused(tmp_path / "nothing.npz", "expected a file, found none")


@pytest.mark.parametrize(
    "contents", [b"", b"state,action\n", b"PK\x03\x04", b"\x00" * 99]
)
def test_a_file_of_something_else(tmp_path, contents):
    (tmp_path / "foreign").write_bytes(contents)
    refused(tmp_path / "foreign", "it is no npz archive")


def test_a_directory(tmp_path):
    refused(tmp_path, "cannot be read")


def test_an_archive_of_something_else(tmp_path):
    np.savez(tmp_path / "other.npz", weights=np.zeros(3))
    refused(tmp_path / "other.npz", "header")
    with zipfile.ZipFile(tmp_path / "text.zip", "w") as archive:
        archive.writestr("readme.txt", "hello")
    refused(tmp_path / "text.zip", "header")


def test_truncated_anywhere(saved, tmp_path):
    whole = saved.read_bytes()
    for length in range(0, len(whole), 37):
        part = tmp_path / "part.npz"
        part.write_bytes(whole[:length])
        refused(part, "expected an Escapade CMDP file")


def test_a_flipped_bit_anywhere_is_noticed_or_harmless(plant, saved, tmp_path):
    whole = saved.read_bytes()
    rng = np.random.default_rng(5)
    path = tmp_path / "flipped.npz"
    noticed = 0
    for place in rng.choice(len(whole), size=250, replace=False):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(bytes(damaged))
        try:
            loaded = CMDP.load(path)
        except InvalidFileError:
            noticed += 1
        else:
            assert loaded == plant  # a time stamp of the archive, say
    assert noticed > 100


def test_a_changed_number_is_found_by_the_fingerprint(saved):
    reward = np.load(saved)["reward"].copy()
    reward[0] = np.nextafter(reward[0], 0.0)
    rewrite(saved, {"reward.npy": as_member(reward)})
    refused(saved, "altered after it was written")


def test_numbers_that_are_no_problem_are_refused_as_ever(plant, saved):
    forge(saved)
    assert CMDP.load(saved) == plant  # the forger knows the format
    forge(saved, reward=[-1.0, 0.5, 0.0, 0.1])
    refused(saved, "reward: expected finite numbers of at least 0, found -1")
    forge(saved, reward=[1.0, 0.5, 0.0, 0.1], row_ptr=[0, 2, 9, 5, 6])
    refused(saved, "row_ptr: expected pointers that never decrease")


def test_members_that_no_problem_has(saved):
    forge(saved, stowaway=np.zeros(3))
    refused(saved, "stowaway")


HEADERS = {
    "another format": ({"format": "escapade-knowledge"}, "expected format"),
    "a newer version": ({"version": 2}, "another version of Escapade wrote it"),
    "no version": ({"version": None}, "found version None"),
    "another fingerprint": ({"fingerprint": "0" * 64}, "altered after it was written"),
    "no fingerprint": ({"fingerprint": None}, "altered after it was written"),
    "other contents": ({"content": {"discount": 0.5}}, "altered after it was written"),
    "no contents": ({"content": None}, "altered after it was written"),
}


@pytest.mark.parametrize("name", HEADERS)
def test_a_header_that_was_tampered_with(saved, name):
    changes, words = HEADERS[name]
    with_header(saved, **changes)
    refused(saved, words)


FORGERIES = {
    "a discount of nothing": ({"discount": None}, "discount: expected"),
    "actions in words": ({"n_actions": "two"}, "n_actions: expected"),
    "more actions than can be": ({"n_actions": 10**30}, "n_actions: expected"),
    "names of nothing": ({"state_names": 3}, "state_names: expected"),
    "an infinite bound": ({"reward_max": float("inf")}, "reward_max: expected"),
    "a word too many": ({"colour": "red"}, "colour"),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_contents_that_were_forged_with_their_fingerprint(saved, name):
    content, words = FORGERIES[name]
    forge(saved, content)
    refused(saved, words)


def test_a_header_that_is_no_header(saved):
    for text in (b"[1, 2]", b"{", b"\xff\xfe", b"[" * 100_000):
        member = as_member(np.frombuffer(text, dtype=np.uint8))
        rewrite(saved, {"header.npy": member})
        refused(saved, "expected an Escapade CMDP file")


@pytest.mark.parametrize("name", ["header", "reward", "row_ptr"])
def test_a_missing_member(saved, name):
    rewrite(saved, {f"{name}.npy": None})
    refused(saved, "no header" if name == "header" else "altered after")
    if name != "header":
        forge(saved)
        refused(saved, name)


def test_members_of_another_kind(saved):
    rewrite(saved, {"reward.npy": b"not an array"})
    refused(saved, "reward")
    rewrite(saved, {"reward.npy": as_member(np.array(["a", "b", "c", "d"]))})
    refused(saved, "altered after")
    forge(saved)
    refused(saved, "reward")


def test_a_member_that_claims_to_be_enormous(saved):
    small = as_member(np.zeros(4))
    huge = small.replace(b"(4,)", b"(4000000000000,)"[: len(b"(4,)") + 12])
    # the header of an array has a fixed length: take the blanks it ends in
    huge = huge.replace(b" " * 12 + b"\n", b"\n", 1)
    assert len(huge) == len(small)
    rewrite(saved, {"reward.npy": huge})
    refused(saved, "expected an Escapade CMDP file")


def test_an_archive_says_what_it_is(saved, tmp_path):
    assert archive_kind(saved) == "escapade-cmdp"
    with_header(saved, format=["escapade-cmdp"])
    assert archive_kind(saved) is None
    np.save(tmp_path / "array.npy", np.zeros(3))
    np.savez(tmp_path / "other.npz", weights=np.zeros(3))
    (tmp_path / "text").write_text("hello")
    for name in ("array.npy", "other.npz", "text", "nothing", "."):
        assert archive_kind(tmp_path / name) is None


class Bomb:
    """Leaves a trace where it is unpickled."""

    def __init__(self, trace):
        self.trace = trace

    def __reduce__(self):
        return (os.mkdir, (self.trace,))


@pytest.mark.parametrize("name", ["reward", "header", "coordinates", "stowaway"])
def test_a_pickle_in_the_file_is_never_run(saved, tmp_path, name):
    trace = tmp_path / "ran"
    bomb = np.empty(1, dtype=object)
    bomb[0] = Bomb(str(trace))
    rewrite(saved, {f"{name}.npy": as_member(bomb, allow_pickle=True)})
    refused(saved, "expected an Escapade CMDP file")
    assert not trace.exists()
    pickle.loads(pickle.dumps(bomb))  # it would have run
    assert trace.exists()


def test_a_whole_file_that_is_a_pickle_is_never_run(tmp_path):
    trace = tmp_path / "ran"
    (tmp_path / "plant.npz").write_bytes(pickle.dumps(Bomb(str(trace))))
    refused(tmp_path / "plant.npz", "it is no npz archive")
    assert not trace.exists()


def test_a_write_that_breaks_off_leaves_the_old_file(plant, saved):
    before = saved.read_bytes()

    def write(file):
        file.write(b"half of")
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="the disk is full"):
        write_atomically(saved, write)
    assert saved.read_bytes() == before
    assert inside(saved.parent) == [saved.name]


@pytest.mark.parametrize("path", [None, 3, b"plant.npz"])
def test_a_path_that_is_none(plant, path):
    with pytest.raises(
        InvalidInputError, match=r"path: expected .* a (NoneType|int|b)"
    ):
        plant.save(path)
    with pytest.raises(InvalidFileError, match="path: expected an Escapade CMDP file"):
        CMDP.load(path)


@pytest.mark.parametrize("path", ["nowhere/plant.npz", "."])
def test_a_path_that_cannot_be_written(plant, tmp_path, path):
    with pytest.raises(InvalidInputError, match="path: expected a file in a directory"):
        plant.save(tmp_path / path)


@settings(max_examples=50)
@given(st.binary(max_size=200))
def test_any_bytes_are_refused_in_one_line(tmp_path_factory, contents):
    path = tmp_path_factory.mktemp("bytes") / "plant.npz"
    path.write_bytes(contents)
    refused(path, "expected an Escapade CMDP file")
