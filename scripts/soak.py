"""Kill runs at random moments, and live a long one: does everything come about again.

``--kills N``: a small run is begun, and the process that lives it is killed by
``SIGKILL`` after a random time, again and again; each time the run is finished in the
end, and compared, decision by decision, with one that nobody disturbed.

``--moments``: the process dies at the first, second, third ... moment at which it
speaks to the disk: before and after each rename and flush of a file, and at each
statement of SQL but the rows of a block.

``--steps N``: a lifetime of N steps with its journal: memory while it is lived, size of
the journal, time to resume and to verify.

Exits with 1 if anything differs.  POSIX only: it forks.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from escapade.experiment import Run, RunSpec, Silent, live
from escapade.experiment import journal as journals
from escapade.experiment.verification import verify

ARRAYS = ("states", "actions", "phases", "reasons", "rewards", "costs", "promise")


def small(*, steps: int = 1000, durable: bool = False) -> RunSpec:
    """Return a run that is short, and yet learns, plans and checkpoints."""
    return RunSpec(
        world="wall-cycle",
        parameters={"size": 3},
        settings={"known_after": 5},
        steps=steps,
        seed=5,
        durable=durable,
    )


def in_a_child(act: Callable[[], None]) -> int:
    """Fork; return the child's process id.  The child ends with 0 if all went well."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        act()
        code = 0
    except BaseException as error:  # noqa: BLE001  the parent sees the code
        sys.stderr.write(f"child: {type(error).__name__}: {error}\n")
    finally:
        os._exit(code)


def same(run: Run, undisturbed: Run) -> bool:
    """Return whether two runs are the same, and the first is what it says it is."""
    one, other = run.trace(), undisturbed.trace()
    mine, theirs = run.summary, undisturbed.summary
    assert mine is not None
    assert theirs is not None
    return (
        all(np.array_equal(getattr(one, n), getattr(other, n)) for n in ARRAYS)
        and run.events() == undisturbed.events()
        and {k: v for k, v in mine.items() if k != "files"}
        == {k: v for k, v in theirs.items() if k != "files"}
        and verify(run).holds
    )


def kill_at_random(
    place: Path, undisturbed: Run, kills: int, *, seed: int
) -> Iterator[tuple[int, bool]]:
    """Yield, run after run, the kills so far, and whether the run is the same."""
    rng = random.Random(seed)
    begun = time.monotonic()
    run = Run.create(place / "paced", undisturbed.spec)
    assert os.waitpid(in_a_child(lambda: _live(run)), 0)[1] == 0
    longest = time.monotonic() - begun
    done = number = 0
    while done < kills:
        run = Run.create(place / f"killed-{number}", undisturbed.spec)
        here = 0
        while True:
            pid = in_a_child(lambda: _live(run))  # noqa: B023  it is over soon
            if here < 4 and done < kills:
                time.sleep(rng.uniform(0.0, longest))
                os.kill(pid, signal.SIGKILL)
            status = os.waitpid(pid, 0)[1]
            if not os.WIFSIGNALED(status):
                assert status == 0, "a run could not be resumed"
                break
            here, done = here + 1, done + 1
        yield done, same(run, undisturbed)
        shutil.rmtree(run.directory)
        number += 1


def _live(run: Run) -> None:
    assert live(run, block=100, checkpoint_seconds=0.0) is not None


def _die_at(moment: int) -> None:
    """Count what is said to the disk, and die at that moment."""
    left = moment

    def count(statement: str = "") -> None:
        nonlocal left
        if statement.startswith("INSERT INTO steps"):
            return  # one of many rows of a transaction
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def around(function: Callable[..., Any]) -> Callable[..., Any]:
        def watched(*values: Any, **named: Any) -> Any:
            count()
            result = function(*values, **named)
            count()
            return result

        return watched

    os.replace, os.fsync = around(os.replace), around(os.fsync)
    connect = journals.connect

    def watched_connect(*values: Any, **named: Any) -> Any:
        db = connect(*values, **named)
        db.set_trace_callback(count)
        return db

    journals.connect = watched_connect


def kill_at_every_moment(
    place: Path, undisturbed: Run, *, stride: int = 1
) -> Iterator[tuple[int, bool]]:
    """Yield each moment at which a process died, and whether the run is the same."""
    moment = 0
    while True:
        run = Run.create(place / f"moment-{moment}", undisturbed.spec)

        def act(run: Run = run, moment: int = moment) -> None:
            _die_at(moment)
            live(run, block=500, checkpoint_seconds=0.0)

        status = os.waitpid(in_a_child(act), 0)[1]
        if not os.WIFSIGNALED(status):
            assert status == 0, "a run could not be lived"
            return
        live(run)
        yield moment, same(run, undisturbed)
        shutil.rmtree(run.directory)
        moment += stride


class Watch(Silent):
    """Notes how much memory is held after a quarter of a run, and at its end.

    Kills its own process after ``deadly`` steps, if that is said.
    """

    def __init__(self, steps: int, *, deadly: int | None = None) -> None:
        self._steps, self._deadly = steps, deadly
        self.early = self.late = 0
        self.first_step_at = 0.0

    def on_step(self, moment: Any, /) -> None:
        """Look at the memory, and die if it is time."""
        if self._deadly is not None and moment.steps >= self._deadly:
            os.kill(os.getpid(), signal.SIGKILL)
        self.first_step_at = self.first_step_at or time.perf_counter()
        self.late = _resident()
        if moment.steps >= self._steps // 4 and not self.early:
            self.early = self.late


def _resident() -> int:
    """Return the bytes that are held now, or at most so far where that is not told."""
    try:
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
        return pages * resource.getpagesize()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def long_run(place: Path, steps: int) -> bool:
    """Live a long life, and print what it takes; return whether it is verified."""
    spec = RunSpec(world="wall-cycle", steps=steps, seed=1)
    run = Run.create(place / "long", spec)
    watch = Watch(steps)
    begun = time.perf_counter()
    live(run, callbacks=[watch])
    seconds = time.perf_counter() - begun
    size = (run.directory / "journal.sqlite").stat().st_size
    print(f"lived {steps:,} steps in {seconds:.1f} s, {steps / seconds:,.0f} a second")
    print(f"journal {size / steps:.1f} bytes a step")
    print(
        f"memory {watch.early / 2**20:.0f} MiB after a quarter, "
        f"{watch.late / 2**20:.0f} MiB at the end"
    )
    killed = Run.create(place / "killed", spec)
    deadly = Watch(steps, deadly=steps * 9 // 10)
    os.waitpid(in_a_child(lambda: live(killed, callbacks=[deadly])), 0)
    at = killed.n_steps
    watch = Watch(steps)
    begun = time.perf_counter()
    live(killed, callbacks=[watch])
    print(
        f"killed after {at:,} steps; the next ones were lived "
        f"{watch.first_step_at - begun:.1f} s after it was resumed"
    )
    begun = time.perf_counter()
    outcome = verify(killed)
    print(f"verified in {time.perf_counter() - begun:.1f} s: {outcome.holds}")
    return outcome.holds and same(killed, run)


def main() -> int:
    """Run what was asked for; 1 if anything differs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--moments", action="store_true")
    parser.add_argument("--stride", type=int, default=1)
    parser.add_argument("--steps", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--durable", action="store_true")
    chosen = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        spec = small(steps=60 if chosen.durable else 1000, durable=chosen.durable)
        undisturbed = Run.create(place / "undisturbed", spec)
        live(undisturbed)
        if chosen.kills:
            found = list(
                kill_at_random(place, undisturbed, chosen.kills, seed=chosen.seed)
            )
            differ = sum(not right for _, right in found)
            print(f"{found[-1][0]} kills at random moments, {differ} runs differ")
            wrong += differ
        if chosen.moments:
            found = list(kill_at_every_moment(place, undisturbed, stride=chosen.stride))
            differ = sum(not right for _, right in found)
            print(f"{len(found)} deaths beside the disk, {differ} runs differ")
            wrong += differ
        if chosen.steps:
            wrong += not long_run(place, chosen.steps)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
