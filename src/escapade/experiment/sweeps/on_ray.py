"""Workers of a Ray cluster, by the extra ``ray``.

A run is a task that takes one core.  Its directory has to be one that every machine
sees, for a run goes on wherever there is room: before anything is begun each machine is
asked to read a file that was just written there, and for its versions.  Ray retries
nothing by itself; a task that a dead process or a lost machine took along ends as a
death, and is handed out again like any other.
"""

from __future__ import annotations

import os
import re
import secrets
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

from escapade.errors import MissingExtraError, refusal
from escapade.experiment.schema import storing
from escapade.experiment.spec import RunSpec
from escapade.experiment.sweeps.engines import Ended
from escapade.experiment.sweeps.work import ONE_THREAD, greet, work
from escapade.experiment.versions import versions

__all__ = ["OnRay"]

_LOOPBACK = "127.0.0.1"
_LONGEST = 200
_REACH_WITHIN = 10.0


class OnRay:
    """The cores of a cluster.

    Parameters
    ----------
    root, stop_file
        The folder of the runs, and the file that tells workers to stop.
    workers
        How many runs at once; as many as the cluster has cores if not said.
    address
        Of the cluster.  Without it Ray is started here, on this machine alone, unless
        this process is connected to one already.
    """

    def __init__(
        self, root: Path, stop_file: Path, *, workers: int | None, address: str | None
    ) -> None:
        try:
            import ray
        except ImportError:
            raise MissingExtraError("ray", "ray") from None
        self._ray: Any = ray
        self._root, self._stop = str(root), str(stop_file)
        self._probe = stop_file.with_name(".probe")
        self._workers, self._address = workers, address
        self._ours = False
        self._busy: dict[Any, RunSpec] = {}

    def __enter__(self) -> OnRay:
        ray = self._ray
        if not ray.is_initialized():
            if self._address is not None:
                _reach(self._address)
            with _signals_kept():
                try:
                    ray.init(**self._how())
                except ConnectionError as error:
                    raise refusal(
                        "address", "that of a Ray cluster", _in_a_line(error)
                    ) from None
            self._ours = True
        try:
            self._greet_all()
        except BaseException:
            self._leave()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for task in self._busy:
            self._ray.cancel(task, force=True)
        self._busy.clear()
        self._leave()

    def _how(self) -> dict[str, Any]:
        quiet = {"log_to_driver": False, "logging_level": "ERROR"}
        if self._address is not None:
            return {"address": self._address, **quiet}
        # nobody else is told that this runs, nor can anybody reach it
        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
        return {
            "address": "local",
            "num_cpus": self._workers,
            "include_dashboard": False,
            "_node_ip_address": _LOOPBACK,
            **quiet,
        }

    def _leave(self) -> None:
        with storing(self._probe):
            self._probe.unlink(missing_ok=True)
        if self._ours:
            self._ray.shutdown()

    # -- before the first run ----------------------------------------------------------

    def _greet_all(self) -> None:
        """Let every machine compile what it needs, and hear what it sees."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        token = secrets.token_hex(16)
        with storing(self._probe):
            self._probe.write_text(token, "ascii")
        nodes = [
            node
            for node in self._ray.nodes()
            if node["Alive"] and node["Resources"].get("CPU", 0) >= 1
        ]
        answers = [
            self._task(
                greet,
                scheduling_strategy=NodeAffinitySchedulingStrategy(
                    node["NodeID"], soft=False
                ),
            ).remote(str(self._probe))
            for node in nodes
        ]
        for node, answer in zip(nodes, self._ray.get(answers), strict=True):
            self._check(node["NodeManagerHostname"], answer, token)

    def _check(self, node: str, answer: dict[str, Any], token: str) -> None:
        if answer["seen"] != token:
            raise refusal(
                "directory",
                "one that every machine of the cluster sees, on a shared file system",
                f"{self._probe.parent}, which {node} does not see",
            )
        here = versions()
        differ = [name for name in here if answer["versions"].get(name) != here[name]]
        if differ:
            name = differ[0]
            raise refusal(
                "cluster",
                f"the versions of this machine everywhere, with {name} {here[name]}",
                f"{answer['versions'].get(name)} on {node}",
            )

    def _task(self, function: Any, **more: Any) -> Any:
        return self._ray.remote(function).options(
            num_cpus=1,
            max_retries=0,
            runtime_env={"env_vars": dict(ONE_THREAD)},
            **more,
        )

    # -- runs --------------------------------------------------------------------------

    @property
    def room(self) -> int:
        """Cores with nothing to do, or what is left of the workers that were asked for.

        Ray keeps what it has no core for, and one run at least is always handed over:
        that is how a cluster that grows by itself hears that it should.
        """
        cores = int(self._ray.cluster_resources().get("CPU", 0))
        return (self._workers or max(cores, 1)) - len(self._busy)

    @property
    def in_hand(self) -> tuple[RunSpec, ...]:
        """What is being lived, or waits for a core."""
        return tuple(self._busy.values())

    def hand_over(self, run: RunSpec) -> None:
        """Let a run be lived wherever there is room."""
        task = self._task(work, scheduling_strategy="SPREAD")
        self._busy[task.remote(self._root, run.to_toml(), self._stop)] = run

    def wait(self, seconds: float) -> list[Ended]:
        """Wait for a task to end, or to be lost."""
        if not self._busy:
            time.sleep(seconds)  # for a machine to join
            return []
        self._ray.wait(list(self._busy), num_returns=1, timeout=seconds)
        every = list(self._busy)
        done, _ = self._ray.wait(every, num_returns=len(every), timeout=0)
        ended = []
        for task in done:
            run = self._busy.pop(task)
            try:
                found = Ended(run=run, outcome=self._ray.get(task))
            except self._ray.exceptions.RayTaskError:
                raise  # a fault of ours, not a death
            except self._ray.exceptions.RayError as error:
                found = Ended(
                    run=run, outcome=None, death=f"its worker died, {_in_a_line(error)}"
                )
            ended.append(found)
        return ended


def _in_a_line(error: Exception) -> str:
    """Return what Ray says, without its page of advice."""
    first, _, _ = " ".join(str(error).split()).partition(". ")
    return f"{type(error).__name__}: {first}"[:_LONGEST]


def _reach(address: str) -> None:
    """Refuse an address where nobody listens; Ray would try for minutes."""
    place = re.fullmatch(r"(?:ray://)?\[?(.+?)\]?:(\d+)", address)
    if place is None:
        return  # "auto", which Ray looks up at once
    try:
        socket.create_connection((place[1], int(place[2])), _REACH_WITHIN).close()
    except (OSError, OverflowError) as error:
        reason = f"that nobody answers there ({error})"
        raise refusal(
            "address", "that of a Ray cluster", f"{address!r}, and {reason}"
        ) from None


@contextmanager
def _signals_kept() -> Iterator[None]:
    """Keep the handlers that stand, for Ray puts its own in their place."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {n: signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
