"""How a run is watched: the live ledger on a terminal, plain lines elsewhere.

Both go to standard error, so that standard output holds nothing but the answer.
"""

from __future__ import annotations

import math
import shutil
import sys
import time
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np

from escapade.cli.output import amount, one_line
from escapade.experiment.callbacks import Moment
from escapade.experiment.summary import assumption
from escapade.simulation.trace import discounted_from
from escapade.typing import FloatArray

if TYPE_CHECKING:
    from rich.console import Group
    from rich.live import Live

    from escapade.experiment.store import Run

__all__ = ["Progress", "Screen", "Ticker", "duration"]

_A_LINE_EVERY = 2.0
_AT_ONCE = 200_000
"""Steps that are read at once from the journal of a run that is taken up again."""

_REPLACED_EVERY = 0.2
_FROM_THE_START = "\r\x1b[K"
"""Sends the cursor to the start of the line, and wipes it."""

_COMPILED = "kernels are compiled, a minute or two, once"
_RATE_OVER = 3.0
"""Seconds over which a rate is taken, at least."""

_NEGLECTED = 1e-3
"""Share of the budget that may be left out of a realised cost-to-go."""


def duration(seconds: float) -> str:
    """Return a time to wait as people say it."""
    if seconds < 60.0:
        return f"{seconds:.0f} s"
    minutes, seconds = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {seconds:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


class Progress:
    """How many steps are done, how fast, and how long the rest takes.

    The rate is that of the last seconds, so that what is done once, such as compiling,
    is forgotten; it is told from the second time on.

    Parameters
    ----------
    steps
        How many there are to do at most.
    unit
        What a step is called.
    at_most
        Whether it may be over sooner.
    """

    def __init__(
        self, steps: int, *, unit: str = "step", at_most: bool = False
    ) -> None:
        self.steps = steps
        self._unit = unit
        self._left = "left at most" if at_most else "left"
        self._seen: deque[tuple[float, int]] = deque()
        self.rate = 0.0

    def at(self, done: int) -> str:
        """Return it in words."""
        now = time.monotonic()
        self._seen.append((now, done))
        while len(self._seen) > 2 and now - self._seen[1][0] >= _RATE_OVER:
            self._seen.popleft()
        earlier, before = self._seen[0]
        self.rate = (done - before) / (now - earlier) if now > earlier else 0.0
        words = f"{self._unit} {done:,} of {self.steps:,} ({done / self.steps:.0%})"
        if self.rate > 0.0:
            left = (self.steps - done) / self.rate
            words += f", {self._speed()}, {duration(left)} {self._left}"
        return words

    def _speed(self) -> str:
        if self.rate >= 10.0:
            return f"{self.rate:,.0f}/s"
        if self.rate >= 1.0:
            return f"{self.rate:.2g}/s"
        return f"{duration(1.0 / self.rate)} a {self._unit}"


class Ticker:
    """Says on standard error how far long work is, as a line every few seconds.

    On a terminal the line stays in its place, and is gone once the work is done.

    Parameters
    ----------
    total
        How much there is to do.
    unit
        What one of it is called.
    quiet
        Whether to say nothing.
    """

    def __init__(self, total: int, *, unit: str = "step", quiet: bool = False) -> None:
        self._progress = Progress(total, unit=unit)
        self._quiet = quiet
        self._in_place = sys.stderr.isatty()
        self._said = time.monotonic()

    def __enter__(self) -> Ticker:
        return self

    def __exit__(self, *_: object) -> None:
        if self._in_place and not self._quiet:
            sys.stderr.write(_FROM_THE_START)
            sys.stderr.flush()

    def say(self, text: str) -> None:
        """Say what happened, in a line that stays."""
        if not self._quiet:
            start = _FROM_THE_START if self._in_place else ""
            sys.stderr.write(f"{start}{one_line(text)}\n")
            sys.stderr.flush()

    def __call__(self, done: int, total: int | None = None, *, first: str = "") -> None:
        """Say it, behind what is to be said first, if it is time to."""
        if total is not None:
            self._progress.steps = total
        words = first + self._progress.at(done)
        now = time.monotonic()
        every = _REPLACED_EVERY if self._in_place else _A_LINE_EVERY
        if self._quiet or now - self._said < every:
            return
        self._said = now
        if self._in_place:
            width = shutil.get_terminal_size().columns
            sys.stderr.write(_FROM_THE_START + words[: width - 1])
        else:
            sys.stderr.write(words + "\n")
        sys.stderr.flush()


class _Paid:
    """Realised cost-to-go, as far as later costs no longer matter."""

    def __init__(self, budget: FloatArray, cost_max: FloatArray, discount: float):
        self._budget, self._discount = budget, discount
        most = float(np.max(cost_max / (1.0 - discount) / np.maximum(budget, 1e-12)))
        window = 1
        if discount > 0.0 and most > _NEGLECTED:
            window = math.ceil(math.log(_NEGLECTED / most) / math.log(discount))
        self._window = max(window, 1)
        self._open: FloatArray = np.zeros((0, budget.size))
        self.over = 0
        self.largest: FloatArray = np.zeros(budget.size)

    def add(self, costs: FloatArray) -> None:
        """Add what was paid in the steps that follow."""
        known = np.concatenate([self._open, costs])
        settled = max(len(known) - self._window, 0)
        to_go = discounted_from(known, self._discount)[:settled]
        self.over += int((to_go > self._budget).any(axis=1).sum())
        self.largest = np.maximum(self.largest, to_go.max(axis=0, initial=0.0))
        self._open = known[settled:]


def _is_compiled() -> bool:
    """Whether the kernel of a lifetime was compiled before, or never is."""
    from escapade.kernels.lifetime import live

    stats = getattr(live, "stats", None)
    if stats is None:
        return True  # the interpreter takes it as it stands
    return any(Path(stats.cache_path).glob("lifetime.live*.nbi"))


class Screen:
    """A callback that shows a run while it is lived.

    Parameters
    ----------
    title
        What is run.
    steps
        How many steps at most.
    run
        Which, if it may have begun before: what was paid then is counted in.
    at_most
        Whether it is over as soon as the agent is certified.
    """

    def __init__(
        self, title: str, steps: int, *, run: Run | None = None, at_most: bool = False
    ) -> None:
        self._title = title
        self._run = run
        self._at_most = at_most
        self._progress = Progress(steps, at_most=at_most)
        self._paid: _Paid | None = None
        self._live: Live | None = None
        self._said = time.monotonic()
        self._rows: list[tuple[str, str]] = []

    def __enter__(self) -> Screen:
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.live import Live

            self._live = Live(
                console=Console(stderr=True),
                refresh_per_second=8,
                redirect_stdout=False,  # the answer is not shown, but printed
            )
            self._live.__enter__()
            begun = self._run is not None and self._run.status == "begun"
            all_of_them = f"{self._progress.steps:,}"
            so_far = (
                f"begun before, {all_of_them} in all"
                if begun
                else f"step 0 of {all_of_them}"
            )
            self._rows = [("so far", so_far)]
            self.working(self._opening(begun=begun))
        return self

    @staticmethod
    def _opening(*, begun: bool) -> str:
        """Say what is done before the first step."""
        what = "the journal is read" if begun else "the first plan is made"
        return what if _is_compiled() else f"{_COMPILED}; then {what}"

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.update(self._drawn())
            self._live.__exit__(kind, error, trace)
            self._live = None

    def working(self, words: str) -> None:
        """Show, on a terminal, what is done that is no step."""
        if self._live is not None:
            self._live.update(self._drawn(now=words), refresh=True)

    def on_step(self, moment: Moment) -> None:
        """Show where the run is."""
        terms = moment.agent.knowledge
        if self._paid is None:
            self._paid = _Paid(terms.budget, terms.cost_max, terms.discount)
            self._count_in(moment.first, self._paid)
        self._paid.add(moment.trace.costs)
        words = self._progress.at(moment.steps)
        now = time.monotonic()
        if self._live is not None:
            self._rows = [("so far", words), *self._facts(moment).items()]
            if moment.steps >= self._progress.steps or (
                self._at_most and moment.agent.certified
            ):
                self.working("what was lived is summed up")
            else:
                self._live.update(self._drawn())
        elif now - self._said >= _A_LINE_EVERY:
            self._said = now
            facts = self._facts(moment)
            line = "; ".join([words, *(f"{k} {v}" for k, v in facts.items())])
            sys.stderr.write(line + "\n")
            sys.stderr.flush()

    def _count_in(self, steps: int, paid: _Paid) -> None:
        """Add what was paid before the run was taken up again."""
        if self._run is not None:
            for first in range(0, steps, _AT_ONCE):
                paid.add(self._run.trace(first, min(first + _AT_ONCE, steps)).costs)

    def on_replan(self, step: int, content: Mapping[str, Any]) -> None:
        """Do nothing: the next block shows it."""

    def on_end(self, summary: Mapping[str, Any]) -> None:
        """Do nothing: the command says how it ended."""

    def _facts(self, moment: Moment) -> dict[str, str]:
        """Return the ledger as it stands."""
        agent, trace = moment.agent, moment.trace
        terms = agent.knowledge
        assert self._paid is not None
        state = int(trace.states[-1])
        phase = trace.phase_names[int(trace.phases[-1])]
        known = int(agent.planned.plan.known.sum())
        promise = ", ".join(map(amount, agent.promise))
        reserved = ", ".join(map(amount, agent.planned.ledger.w[:, state]))
        gap = "not looked at yet"
        if agent.gap is not None:
            gap = amount(terms.reward_scale * agent.gap)
        largest = ", ".join(map(amount, self._paid.largest))
        budget = ", ".join(map(amount, trace.budget))
        return {
            "phase": phase,
            "known states": f"{known} of {terms.n_states}",
            "reward a step": f"{terms.raw_reward(trace.rewards.mean()):.4f}",
            "promise": f"{promise}, of which {reserved} reserved for the fallback",
            "realised": (
                f"at most {largest} of {budget} from a step on, over it at "
                f"{self._paid.over} steps"
            ),
            "certificate gap": gap,
            "the bound": assumption(agent),
        }

    def _drawn(self, *, now: str = "") -> Group:
        from rich.console import Group
        from rich.spinner import Spinner
        from rich.table import Table
        from rich.text import Text

        table = Table.grid(padding=(0, 2, 0, 0))
        for name, fact in self._rows:
            table.add_row(Text(name, style="dim"), Text(fact))
        if now:
            table.add_row(Text("now", style="dim"), Spinner("line", Text(now)))
        return Group(Text(self._title, style="bold"), table)
