"""One writer a run: a lock that the system lets go of when its holder dies.

The lock stands on a file of its own, so that readers are never kept out and a reader
that copies the journal copies no lock.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import TracebackType

from escapade.errors import refusal

__all__ = ["LOCK", "RunLock", "is_held"]

LOCK = ".lock"


class RunLock:
    """Holds a run directory for one writer, until closed.

    Parameters
    ----------
    directory
        Of the run.
    what
        What is kept there.

    Raises
    ------
    InvalidInputError
        If another process, or another part of this one, holds it.
    """

    def __init__(self, directory: Path, *, what: str = "run") -> None:
        try:
            self._file = os.open(directory / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise refusal(
                what, "a directory that can be written to", f"{directory} ({error})"
            ) from None
        if not _take(self._file):
            holder = os.read(self._file, 64).decode("ascii", "replace").strip()
            os.close(self._file)
            who = f" (process {holder})" if holder.isdigit() else ""
            raise refusal(
                what,
                f"a {what} that nobody else is writing",
                f"{directory} in use{who}",
            )
        os.ftruncate(self._file, 0)
        os.write(self._file, f"{os.getpid()}\n".encode())

    @property
    def held(self) -> bool:
        """Whether it was not let go of."""
        return self._file >= 0

    def close(self) -> None:
        """Let go."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def __enter__(self) -> RunLock:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def is_held(directory: Path) -> bool:
    """Whether somebody holds a run directory just now."""
    try:
        file = os.open(directory / LOCK, os.O_RDWR)
    except OSError:
        return False  # nobody ever did; or nobody can, as whoever tries is told
    try:
        return not _take(file)
    finally:
        os.close(file)


if sys.platform == "win32":
    import msvcrt

    def _take(file: int) -> bool:
        """Lock a byte far behind what is written, so that others can read who holds."""
        os.lseek(file, 1 << 20, os.SEEK_SET)
        try:
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        finally:
            os.lseek(file, 0, os.SEEK_SET)
        return True

else:
    import fcntl

    def _take(file: int) -> bool:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True
