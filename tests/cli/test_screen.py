"""What a person sees while a run is lived, on a terminal of forty columns."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import re
import struct
import sys
import termios
from types import SimpleNamespace

from escapade.cli import screen
from escapade.experiment import Run, RunSpec, live

STEPS, COLUMNS = 3_000_000, 40
CTRL_C = b"\x03"


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_the_ledger_is_live_and_stays_when_it_ends(tmp_path, monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "xterm")
    spec = RunSpec(
        world="wall-cycle",
        parameters={"size": 3},
        settings={"known_after": 5},
        steps=600,
    )
    run = Run.create(tmp_path / "run", spec)
    with screen.Screen("walk", 600, run=run) as shown:
        assert "the first plan is made" in terminal.getvalue()
        live(run, callbacks=[shown], block=200)
        assert "what was lived is summed up" in terminal.getvalue()
        shown.working("the report is written")
    said = terminal.getvalue()
    last = said[said.rindex("walk") :]
    assert "step 600 of 600 (100%)" in last
    for fact in ("phase", "known states", "promise", "realised", "certificate gap"):
        assert fact in last
    assert "the report is written" not in last
    (run.directory / "summary.json").unlink()
    with screen.Screen("walk", 600, run=run):
        again = terminal.getvalue().removeprefix(said)
    assert "the journal is read" in again
    assert "begun before, 600 in all" in again
    assert "the first plan is made" not in again


def test_kernels_that_were_not_compiled_are_told(tmp_path, monkeypatch):
    from escapade.kernels import lifetime

    monkeypatch.setattr(lifetime, "live", SimpleNamespace(stats=None))
    assert screen._is_compiled()  # as without a compiler
    stats = SimpleNamespace(cache_path=str(tmp_path))
    monkeypatch.setattr(lifetime, "live", SimpleNamespace(stats=stats))
    assert screen.Screen._opening(begun=False).startswith("kernels are compiled")
    (tmp_path / "lifetime.live-1.py311.nbi").touch()
    assert screen.Screen._opening(begun=False) == "the first plan is made"


def test_long_work_says_how_far_it_is(monkeypatch, capsys):
    now = [0.0]
    monkeypatch.setattr(screen.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(screen, "_A_LINE_EVERY", 2.0)
    with screen.Ticker(100, unit="life") as tell:
        for done in range(1, 7):
            now[0] += 1.0
            tell(done * 2, 200)
    assert capsys.readouterr().err.splitlines() == [
        "life 4 of 200 (2%), 2/s, 1 min 38 s left",
        "life 8 of 200 (4%), 2/s, 1 min 36 s left",
        "life 12 of 200 (6%), 2/s, 1 min 34 s left",
    ]
    with screen.Ticker(10, quiet=True) as tell:
        now[0] += 60.0
        tell(1)
    assert capsys.readouterr().err == ""


def test_on_a_terminal_it_stays_in_its_line_and_is_gone_in_the_end(monkeypatch):
    terminal, now = Terminal(), [0.0]
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(screen.time, "monotonic", lambda: now[0])
    monkeypatch.setenv("COLUMNS", "20")
    with screen.Ticker(10, unit="life") as tell:
        for done in (1, 2):
            now[0] += 10.0
            tell(done)
    wiped = "\r\x1b[K"
    first, second, nothing = terminal.getvalue().split(wiped)[1:]
    assert (first, nothing) == ("life 1 of 10 (10%)", "")
    assert second == "life 2 of 10 (20%),"  # as much as fits


def test_what_takes_seconds_each_is_told_so(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(screen.time, "monotonic", lambda: now[0])
    progress = screen.Progress(4, unit="life", at_most=True)
    progress.at(0)
    now[0] = 30.0
    words = progress.at(1)
    assert words == "life 1 of 4 (25%), 30 s a life, 1 min 30 s left at most"


def test_ctrl_c_on_a_terminal_sets_the_run_aside(tmp_path):
    words = ["run", "wall-cycle", "--set", "size=3", "--setting", "known_after=5"]
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(tmp_path)
        os.environ.update(TERM="xterm", NUMBA_NUM_THREADS="1")
        for told in ("COLUMNS", "LINES"):  # else the terminal would not be asked
            os.environ.pop(told, None)
        more = ["--steps", str(STEPS), "--out", "here"]
        os.execv(sys.executable, [sys.executable, "-m", "escapade", *words, *more])
    size = struct.pack("HHHH", 24, COLUMNS, 0, 0)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, size)
    said, asked = b"", False
    while True:
        try:
            part = os.read(terminal, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        said += part
        if not asked and said.count(b"promise") > 1:  # one whole frame at least
            os.write(terminal, CTRL_C)
            asked = True
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 130
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", said.decode())
    assert "go on with: escapade resume here" in shown.splitlines()[-1]
    # what is being drawn when the key is pressed may be torn
    drawn = [line.rstrip() for line in shown.partition("^C")[0].splitlines()[:-1]]
    assert any(line.startswith("promise") for line in drawn)
    assert max(map(len, drawn)) <= COLUMNS
    assert not any("…" in line for line in drawn)
    assert 0 < Run(tmp_path / "here").n_steps < STEPS
