"""CMDPs on disk: npz archives that hold arrays and one line of JSON, never objects.

A file carries its format, its version and the fingerprint of what it holds.  Loading
reads the arrays without pickle, checks them as if a stranger had passed them, and
compares the fingerprint: a truncated, foreign or altered file is refused with the
reason.  Writing goes to a temporary neighbour first, so that a crash leaves the old
file or the new one, never half of one.
"""

from __future__ import annotations

import json
import os
import secrets
import zipfile
import zlib
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from escapade.errors import InvalidFileError, InvalidInputError, refusal
from escapade.model.cmdp import CMDP

__all__ = ["load_cmdp", "save_cmdp", "write_atomically"]

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


def save_cmdp(cmdp: CMDP, path: str | PathLike[str]) -> None:
    """Write ``cmdp`` to ``path`` in one atomic step."""
    header = {
        "format": _FORMAT,
        "version": _VERSION,
        "fingerprint": cmdp.fingerprint,
        "n_actions": cmdp.n_actions,
        "discount": cmdp.discount,
        "reward_max": cmdp.reward_max,
        "state_names": cmdp.state_names,
        "action_names": cmdp.action_names,
    }
    arrays: dict[str, Any] = {name: getattr(cmdp, name) for name in _ARRAYS}
    if cmdp.coordinates is not None:
        arrays["coordinates"] = cmdp.coordinates
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)

    def write(file: BinaryIO) -> None:
        # what numpy.savez_compressed does, at the lowest level: three times as fast,
        # and probabilities compress no better at a higher one
        with zipfile.ZipFile(
            file, "w", compression=zipfile.ZIP_DEFLATED, compresslevel=1
        ) as archive:
            for name, array in arrays.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, array, allow_pickle=False)

    write_atomically(Path(path), write)


def write_atomically(path: Path, write: Any) -> None:
    """Call ``write(file)`` on a temporary neighbour of ``path``, then rename it."""
    if not path.parent.is_dir() or path.is_dir():
        raise refusal("path", "a file in a directory that exists", str(path))
    temporary = path.parent / f".{path.name[:100]}.{secrets.token_hex(8)}"
    try:
        with temporary.open("xb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def load_cmdp(path: str | PathLike[str]) -> CMDP:
    """Read the CMDP that :func:`save_cmdp` wrote to ``path``."""
    try:
        header, arrays = _read(Path(path))
    except FileNotFoundError:
        raise InvalidFileError(f"path: expected a file, found none at {path}") from None
    except _UNREADABLE as error:
        raise InvalidFileError(
            f"path: expected an Escapade CMDP file, found {path} which cannot be "
            f"read as one ({_first_line(error)})"
        ) from error
    _check_header(header, path)
    try:
        cmdp = CMDP.from_pairs(
            n_actions=header["n_actions"],
            discount=header["discount"],
            reward_max=header["reward_max"],
            state_names=header["state_names"],
            action_names=header["action_names"],
            **arrays,
        )
    except (InvalidInputError, KeyError, TypeError, OverflowError) as error:
        raise InvalidFileError(
            f"path: expected a valid CMDP in {path}, found {_first_line(error)}"
        ) from error
    if cmdp.fingerprint != header.get("fingerprint"):
        raise InvalidFileError(
            f"path: expected contents that match the recorded fingerprint in {path}, "
            f"found others: the file was altered after it was written"
        )
    return cmdp


# What a damaged archive raises, depending on where the damage is: in the directory, in
# a compressed stream, in the header of an array (which may then claim any size).
_UNREADABLE = (
    zipfile.BadZipFile,
    zlib.error,
    OSError,
    ValueError,
    KeyError,
    EOFError,
    TypeError,
    SyntaxError,
    OverflowError,
    MemoryError,
    RuntimeError,  # an unknown compression, encryption, nesting without end
)


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    if not zipfile.is_zipfile(path):
        path.open("rb").close()  # a missing file says so itself
        raise ValueError("it is no npz archive")
    # NumPy leaves a file that it opened itself open if the archive is damaged
    with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
        header = json.loads(np.asarray(archive["header"]).tobytes().decode())
        arrays = {name: archive[name] for name in _ARRAYS}
        if "coordinates" in archive:
            arrays["coordinates"] = archive["coordinates"]
    if not isinstance(header, dict):
        raise ValueError("its header is not an object")
    return header, arrays


def _check_header(header: dict[str, Any], path: str | PathLike[str]) -> None:
    if header.get("format") != _FORMAT:
        raise InvalidFileError(
            f"path: expected format {_FORMAT!r} in {path}, "
            f"found {header.get('format')!r}"
        )
    if header.get("version") != _VERSION:
        raise InvalidFileError(
            f"path: expected format version {_VERSION} in {path}, found version "
            f"{header.get('version')!r}; a newer Escapade may have written it"
        )


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
