"""Workers on this machine, by joblib's process pools.

Each worker is a pool of its own.  joblib breaks a whole pool when one of its processes
dies, and does not say whose death it was; here the others do not even notice, and it is
certain which run the dead one had in hand.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

from escapade.experiment.spec import RunSpec
from escapade.experiment.sweeps.engines import Ended
from escapade.experiment.sweeps.work import ONE_THREAD, attend, greet, work

__all__ = ["OnThisMachine"]


class OnThisMachine:
    """So many processes on this machine.

    Parameters
    ----------
    root, stop_file
        The folder of the runs, and the file that tells workers to stop.
    workers
        How many; as many as there are cores if not said.
    """

    def __init__(self, root: Path, stop_file: Path, *, workers: int | None) -> None:
        from joblib import cpu_count

        self._root, self._stop = str(root), str(stop_file)
        self._idle: list[Any] = [None] * (workers or cpu_count())
        self._busy: dict[Future[Any], tuple[RunSpec | None, Any]] = {}

    def __enter__(self) -> OnThisMachine:
        first, *others = self._idle
        self._idle = []
        try:
            self._submit(None, first)  # kernels are compiled once, not by all at once
            self.wait(None)
        except BaseException as error:
            self.__exit__(type(error), error, error.__traceback__)
            raise
        self._idle += others
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        busy = [pool for _, pool in self._busy.values()]
        for pool in [*self._idle, *busy]:
            if pool is not None:
                pool.shutdown(wait=True, kill_workers=pool in busy)
        self._idle.clear()
        self._busy.clear()

    @property
    def room(self) -> int:
        """Workers with nothing to do."""
        return len(self._idle)

    @property
    def in_hand(self) -> tuple[RunSpec, ...]:
        """What is being lived."""
        return tuple(run for run, _ in self._busy.values() if run is not None)

    def hand_over(self, run: RunSpec) -> None:
        """Give a run to a worker that has nothing to do."""
        self._submit(run, self._idle.pop())

    def wait(self, seconds: float | None) -> list[Ended]:
        """Wait for a worker to be done, or to die."""
        from joblib.externals.loky import wait

        done, _ = wait(self._busy, timeout=seconds, return_when=FIRST_COMPLETED)
        ended = []
        for future in done:
            run, pool = self._busy.pop(future)
            outcome, death = None, ""
            try:
                outcome = future.result()
            except BrokenProcessPool as error:
                death = _in_a_line(error)
                pool.shutdown(wait=True, kill_workers=True)
                pool = None
            self._idle.append(pool)
            if run is not None:
                ended.append(Ended(run=run, outcome=outcome, death=death))
        return ended

    def _submit(self, run: RunSpec | None, pool: Any) -> None:
        words = (
            (greet,) if run is None else (work, self._root, run.to_toml(), self._stop)
        )
        with _ctrl_c_waits():
            try:
                pool = pool or _one_process()
                future = pool.submit(*words)
            except BrokenProcessPool:  # it died with nothing in hand
                pool.shutdown(wait=True, kill_workers=True)
                pool = _one_process()
                future = pool.submit(*words)
        self._busy[future] = (run, pool)


def _one_process() -> Any:
    from joblib.externals.loky import ProcessPoolExecutor

    return ProcessPoolExecutor(max_workers=1, initializer=attend, env=dict(ONE_THREAD))


@contextmanager
def _ctrl_c_waits() -> Iterator[None]:
    """Let processes be born deaf to Ctrl-C, which is for this one alone to hear."""
    if os.name != "posix":
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _in_a_line(error: BaseException) -> str:
    """Return what joblib knows of a death: how the process ended."""
    said = " ".join(str(error).split())
    _, found, codes = said.partition("exit codes of the workers are ")
    return f"its worker died, {codes.strip('{}')}" if found else "its worker died"
