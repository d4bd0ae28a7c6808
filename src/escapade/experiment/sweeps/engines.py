"""Who lives the runs: workers on this machine, or on those of a cluster.

An engine is handed runs one at a time, as many as it has room for, and says which have
ended.  It knows nothing of tables, retries or seeds; that a worker died is an end like
any other, and what is done about it is settled by :mod:`~.sweeping`.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import TracebackType
from typing import Protocol

from escapade.experiment.spec import RunSpec
from escapade.experiment.sweeps.work import Outcome

__all__ = ["Ended", "Engine"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A run that is in nobody's hands any more.

    Attributes
    ----------
    run
        Which.
    outcome
        What its worker said, ``None`` if it died.
    death
        What is known of that.
    """

    run: RunSpec
    outcome: Outcome | None
    death: str = ""


class Engine(Protocol):
    """Workers, from when the context is entered until it is left."""

    def __enter__(self) -> Engine:
        """Start the workers, and let one of them compile what all need."""
        ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the workers, whatever they have in hand."""
        ...

    @property
    def room(self) -> int:
        """How many runs can be handed over now."""
        ...

    @property
    def in_hand(self) -> tuple[RunSpec, ...]:
        """Those that are being lived, or wait for a worker."""
        ...

    def hand_over(self, run: RunSpec) -> None:
        """Let a run be lived."""
        ...

    def wait(self, seconds: float) -> list[Ended]:
        """Wait until something ends, but no longer than this, and say what did."""
        ...
