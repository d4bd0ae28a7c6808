"""How much faster a sweep is with more workers, and that its table stays the same.

    python benchmarks/sweeps.py [--workers 2] [--repeats 3] [--steps 400000]

Eight lives in Example 2 on a field of 4 by 4.  One worker and several take turns, each
time in a new directory, so that what else the machine does falls on both.  Told are the
time of the whole call; that between the first run's beginning and the last one's end,
which leaves the start of processes out; and the processor time of the workers, which
says what sharing the work costs, also on a machine that has no core free.  How busy the
machine was with one worker is told, too: one core of two is 50 %, and where it is much
more the first two ratios say little.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from escapade.experiment import SweepSpec, sweep


def processor_time() -> tuple[float, float]:
    """Return the processor time that was spent on this machine, and all there was."""
    fields = Path("/proc/stat").read_text("ascii").splitlines()[0].split()[1:]
    ticks = [float(field) for field in fields]
    return sum(ticks) - ticks[3] - ticks[4], sum(ticks)


@dataclass(frozen=True)
class Taken:
    """Times of a call, of its runs and of the workers' processors; and the table."""

    call: float
    runs: float
    processor: float
    table: bytes


def children() -> float:
    """Return the processor time of the processes that this one had."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def take(spec: SweepSpec, workers: int) -> Taken:
    """Live the sweep in a new place."""
    before = children()
    with tempfile.TemporaryDirectory() as place:
        begun = time.perf_counter()
        found = sweep(spec, Path(place) / "sweep", workers=workers)
        whole = time.perf_counter() - begun
        at = [line["at"] for line in found.log()]
        return Taken(
            call=whole,
            runs=max(at) - min(at),
            processor=children() - before,
            table=found.results_path.read_bytes(),
        )


def main() -> None:
    """Take turns, and print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--steps", type=int, default=400_000)
    chosen = parser.parse_args()
    spec = SweepSpec(
        worlds=[{"name": "wall-cycle", "parameters": {"size": 4}}],
        settings={"known_after": 10},
        seeds=8,
        steps=chosen.steps,
    )
    turns: list[tuple[Taken, Taken]] = []
    for turn in range(chosen.repeats):
        spent, there_was = processor_time()
        one = take(spec, 1)
        used, passed = processor_time()
        busy = (used - spent) / (passed - there_was)
        many = take(spec, chosen.workers)
        turns.append((one, many))
        print(f"turn {turn + 1}: the machine was {busy:.0%} busy with one worker")
        for workers, taken in ((1, one), (chosen.workers, many)):
            print(
                f"  {workers} at once: call {taken.call:.2f} s, "
                f"runs {taken.runs:.2f} s, "
                f"processors {taken.processor:.2f} s"
            )
    for name in ("call", "runs", "processor"):
        ratio = statistics.median(
            getattr(one, name) / getattr(many, name) for one, many in turns
        )
        print(f"{name:9} {ratio:.2f} times that of {chosen.workers} workers with one")
    tables = {taken.table for turn in turns for taken in turn}
    print(f"the tables are {'the same' if len(tables) == 1 else 'NOT THE SAME'}")


if __name__ == "__main__":
    main()
