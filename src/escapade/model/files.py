"""CMDPs on disk: what an archive of :mod:`escapade.model.archives` holds of one.

What is read goes through the checks that every new problem goes through, so a file
cannot hold a problem that the constructor refuses.
"""

from __future__ import annotations

from os import PathLike
from typing import Any

from escapade.errors import InvalidFileError, InvalidInputError
from escapade.model.archives import first_line, read_archive, write_archive
from escapade.model.cmdp import CMDP

__all__ = ["load_cmdp", "save_cmdp"]

_FORMAT = "escapade-cmdp"
_VERSION = 1
_ARRAYS = (
    "state_ptr",
    "pair_action",
    "row_ptr",
    "successor",
    "probability",
    "reward",
    "cost",
    "budget",
    "start",
    "cost_max",
)
_CONTENT = ("n_actions", "discount", "reward_max", "state_names", "action_names")


def save_cmdp(cmdp: CMDP, path: str | PathLike[str]) -> None:
    """Write ``cmdp`` to ``path`` in one atomic step."""
    arrays = {name: getattr(cmdp, name) for name in _ARRAYS}
    if cmdp.coordinates is not None:
        arrays["coordinates"] = cmdp.coordinates
    write_archive(
        path,
        kind=_FORMAT,
        version=_VERSION,
        content={name: getattr(cmdp, name) for name in _CONTENT},
        arrays=arrays,
    )


def load_cmdp(path: str | PathLike[str]) -> CMDP:
    """Read the CMDP that :func:`save_cmdp` wrote to ``path``."""
    content, arrays = read_archive(
        path, kind=_FORMAT, version=_VERSION, what="an Escapade CMDP file"
    )
    told: dict[str, Any] = {**content, **arrays}
    try:
        return CMDP.from_pairs(**told)
    except (InvalidInputError, TypeError) as error:
        raise InvalidFileError(
            f"path: expected a valid CMDP in {path}, found {first_line(error)}"
        ) from error
