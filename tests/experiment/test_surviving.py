"""Runs that are killed, or whose disk fails, go on as if nothing had happened."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from tests.experiment.conftest import assert_same, derived, small

from escapade.errors import InvalidFileError, InvalidInputError, StorageError
from escapade.experiment import Run, live
from escapade.experiment.verification import verify

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(
    not hasattr(os, "fork"), reason="processes are killed by POSIX signals"
)


def soak(*words):
    """Run the soak, which says how often it killed and how many runs differ."""
    done = subprocess.run(
        [sys.executable, "scripts/soak.py", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "NUMBA_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (kills, differ) = re.findall(r"^(\d+) .*, (\d+) runs differ$", done.stdout, re.M)[0]
    return int(kills), int(differ)


def test_killed_at_a_few_moments_a_run_is_the_same():
    assert soak("--kills", "3", "--seed", "1") == (3, 0)


def test_killed_at_a_few_moments_beside_the_disk_a_run_is_the_same():
    kills, differ = soak("--moments", "--stride", "13")
    assert kills >= 4
    assert differ == 0


@pytest.mark.slow
@pytest.mark.parametrize("durable", [(), ("--durable",)])
def test_killed_at_random_moments_a_run_is_the_same(durable):
    assert soak("--kills", "10", "--seed", "2", *durable) == (10, 0)


# -- a run that was interrupted, whose files are then damaged ------------------------


@pytest.fixture
def begun(tmp_path, spec):
    """Return a run that was interrupted after 600 steps; its log is not folded."""
    run = Run.create(tmp_path / "run", spec)
    asked = iter([False, False, True])
    assert (
        live(run, block=200, checkpoint_seconds=0.0, stop=lambda: next(asked)) is None
    )
    return run


def assert_goes_on(run, undisturbed):
    assert derived(live(run)) == derived(undisturbed.summary)
    assert_same(run.trace(), undisturbed.trace())
    assert run.events() == undisturbed.events()
    assert verify(run).holds


@pytest.mark.parametrize(
    ("name", "harm"),
    [
        ("checkpoint.npz", "gone"),
        ("checkpoint.npz", "torn"),
        ("checkpoint.json", "gone"),
        ("checkpoint.json", "torn"),
        ("checkpoint.json", "newer"),
    ],
)
def test_without_its_checkpoint_a_run_is_lived_again(begun, undisturbed, name, harm):
    path = begun.directory / name
    if harm == "gone":
        path.unlink()
    elif harm == "torn":
        path.write_bytes(path.read_bytes()[:-20])
    else:
        content = json.loads(path.read_text("utf-8"))
        path.write_text(json.dumps({**content, "version": 2}), "utf-8")
    assert_goes_on(begun, undisturbed)
    lost = [row for row in begun.progress() if "checkpoint_lost" in row]
    assert len(lost) == (0 if (name, harm) == ("checkpoint.json", "gone") else 1)


@pytest.mark.parametrize("leave", [0, 1, 4096, 9000])
def test_with_a_torn_last_page_a_run_goes_on(begun, undisturbed, tmp_path, leave):
    # what a crash leaves: the database as it was last folded, and a log cut short
    reader = begun.journal()
    source = sqlite3.connect(begun.directory / "journal.sqlite")
    source.execute("PRAGMA wal_autocheckpoint = 0")
    source.execute("UPDATE progress SET at = at + 1")
    source.commit()
    log = begun.directory / "journal.sqlite-wal"
    torn = shutil.copytree(begun.directory, tmp_path / "torn")
    assert log.stat().st_size > 4096
    with (torn / log.name).open("r+b") as file:
        file.truncate(max(log.stat().st_size - leave, 0))
    (torn / "journal.sqlite-shm").unlink()
    source.close()
    reader.close()
    assert_goes_on(Run(torn), undisturbed)


def test_a_journal_behind_its_checkpoint_is_lived_again(begun, undisturbed):
    with contextlib.closing(sqlite3.connect(begun.directory / "journal.sqlite")) as db:
        db.execute("DELETE FROM steps WHERE step >= 400")
        db.execute("DELETE FROM events WHERE step > 400")
        (digest,) = db.execute("SELECT sha256 FROM seals").fetchone()
        assert digest
        db.commit()
    # the seal of the last block does not fit any more: told, not mended
    with pytest.raises(InvalidFileError, match="as they were written"):
        live(begun)
    from tests.experiment.test_verification import reseal

    reseal(begun)
    assert_goes_on(begun, undisturbed)


def test_an_altered_journal_is_not_gone_on_with(begun):
    with contextlib.closing(sqlite3.connect(begun.directory / "journal.sqlite")) as db:
        db.execute("UPDATE steps SET reward = 0.25 WHERE step = 100")
        db.commit()
    with pytest.raises(InvalidFileError, match="as they were written"):
        live(begun)
    from tests.experiment.test_verification import reseal

    reseal(begun)
    (begun.directory / "checkpoint.json").unlink()
    with pytest.raises(InvalidFileError, match="step 100 as it comes about again"):
        live(begun)


def test_a_journal_from_a_newer_version_is_refused(begun):
    with contextlib.closing(sqlite3.connect(begun.directory / "journal.sqlite")) as db:
        db.execute("PRAGMA user_version = 2")
    for act in (live, Run.trace):
        with pytest.raises(InvalidFileError, match="a newer Escapade wrote it"):
            act(begun)


def test_what_is_no_journal_is_refused(begun, tmp_path):
    path = begun.directory / "journal.sqlite"
    path.write_bytes(b"something else" * 100)
    with pytest.raises(InvalidFileError, match="cannot be read"):
        begun.trace()
    path.unlink()
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE steps (step INTEGER)")
    with pytest.raises(InvalidFileError, match="another file"):
        begun.trace()


# -- two at once -----------------------------------------------------------------------


def test_a_second_process_is_refused(begun):
    program = (
        "import sys\n"
        "from escapade.experiment.locking import RunLock\n"
        "from pathlib import Path\n"
        "with RunLock(Path(sys.argv[1])):\n"
        "    print('mine', flush=True)\n"
        "    sys.stdin.read()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(begun.directory)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "mine\n"
    with pytest.raises(InvalidInputError, match=rf"process {process.pid}"):
        live(begun)
    assert len(begun.trace()) == 600  # readers are not kept out
    process.communicate("")
    assert live(begun) is not None


# -- the disk --------------------------------------------------------------------------


@contextlib.contextmanager
def small_disk(place, size):
    """Mount a small file system, where that is allowed."""
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip("a file system cannot be mounted here")
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


needs_root = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0 or shutil.which("mount") is None,
    reason="mounting a file system takes root",
)


@needs_root
def test_a_full_disk_stops_a_run_that_then_goes_on(tmp_path, undisturbed, spec):
    with small_disk(tmp_path / "disk", "600k") as place:
        ballast = place / "ballast"
        ballast.write_bytes(bytes(440 * 1024))
        run = Run.create(place / "run", spec)
        with pytest.raises(StorageError, match=r"full|No space left"):
            live(run, block=50, checkpoint_seconds=0.0)
        ballast.unlink()
        assert 0 <= run.n_steps < spec.steps
        assert_goes_on(run, undisturbed)


@needs_root
def test_a_run_on_a_read_only_disk_is_read_and_not_written(
    tmp_path, undisturbed, begun
):
    with small_disk(tmp_path / "disk", "4m") as place:
        shutil.copytree(undisturbed.directory, place / "whole")
        shutil.copytree(begun.directory, place / "begun")
        remount = ["mount", "-o", "remount,ro", str(place)]
        subprocess.run(remount, check=True)
        whole = Run(place / "whole")
        assert_same(whole.trace(), undisturbed.trace())
        assert verify(whole).holds
        assert live(whole) == undisturbed.summary
        with pytest.raises(InvalidInputError, match="a directory that can be written"):
            live(Run(place / "begun"))
        with pytest.raises(StorageError, match="cannot be written"):
            Run.create(place / "new", small())
