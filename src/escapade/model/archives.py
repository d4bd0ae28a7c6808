"""Files of this library: npz archives with arrays and one line of JSON, never objects.

An archive says its format, its version and the SHA-256 of its contents.  Reading uses
no pickle, and refuses a truncated, foreign, altered or newer file with the reason.
Writing goes to a temporary neighbour first, so a crash leaves the old file or the new
one, never half of one.

The digest finds accidents and edits by hand; whoever alters a file on purpose can write
a new one.  So what is read is checked again by the one who asked, as if a stranger had
passed it.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import struct
import zipfile
import zlib
from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from escapade.errors import InvalidFileError, refusal

__all__ = [
    "archive_kind",
    "digest",
    "first_line",
    "read_archive",
    "write_archive",
    "write_atomically",
]

# What a damaged archive raises, depending on where the damage is: in the directory, in
# a compressed stream, in the header of an array (which may then claim any size).
_UNREADABLE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    OSError,
    ValueError,
    KeyError,
    EOFError,
    TypeError,
    SyntaxError,
    OverflowError,
    MemoryError,
    AttributeError,  # an array or a file of another kind
    RuntimeError,  # an unknown compression, encryption, nesting without end
)


def digest(content: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> str:
    """Return the SHA-256 of everything that an archive holds."""
    total = hashlib.sha256(json.dumps(content, sort_keys=True).encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        total.update(f"{name}{array.dtype.str}{array.shape}".encode())
        total.update(array.data)
    return total.hexdigest()


def write_archive(
    path: str | PathLike[str],
    *,
    kind: str,
    version: int,
    content: Mapping[str, Any],
    arrays: Mapping[str, np.ndarray],
) -> None:
    """Write ``content`` (fit for JSON) and arrays to ``path`` in one atomic step."""
    header = {
        "format": kind,
        "version": version,
        "fingerprint": digest(content, arrays),
        "content": dict(content),
    }
    members = {
        "header": np.frombuffer(json.dumps(header).encode(), dtype=np.uint8),
        **arrays,
    }

    def write(file: BinaryIO) -> None:
        # what numpy.savez_compressed does, at the lowest level: three times as fast,
        # and probabilities compress no better at a higher one
        with zipfile.ZipFile(
            file, "w", compression=zipfile.ZIP_DEFLATED, compresslevel=1
        ) as archive:
            for name, array in members.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, array, allow_pickle=False)

    write_atomically(path, write)


def read_archive(
    path: str | PathLike[str],
    *,
    kind: str,
    version: int,
    what: str,
    argument: str = "path",
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return content and arrays of an archive.

    ``what`` names it in refusals, and ``argument`` is how the caller calls the path.
    """
    try:
        header, arrays = _read(Path(path))
    except FileNotFoundError:
        raise InvalidFileError(
            f"{argument}: expected a file, found none at {path}"
        ) from None
    except _UNREADABLE as error:
        raise InvalidFileError(
            f"{argument}: expected {what}, found {path} which cannot be read as one "
            f"({first_line(error)})"
        ) from error
    if header.get("format") != kind:
        raise InvalidFileError(
            f"{argument}: expected format {kind!r} in {path}, "
            f"found {header.get('format')!r}"
        )
    if header.get("version") != version:
        raise InvalidFileError(
            f"{argument}: expected format version {version} in {path}, found version "
            f"{header.get('version')!r}; another version of Escapade wrote it"
        )
    content = header.get("content")
    if (
        not isinstance(content, dict)
        or digest(content, arrays) != header["fingerprint"]
    ):
        raise InvalidFileError(
            f"{argument}: expected contents that match the recorded fingerprint in "
            f"{path}, found others: the file was altered after it was written"
        )
    return content, arrays


def archive_kind(path: str | PathLike[str]) -> str | None:
    """Return what an archive says that it is; None if the file is no archive."""
    try:
        with (
            Path(path).open("rb") as file,
            np.load(file, allow_pickle=False) as archive,
        ):
            kind = json.loads(archive["header"].tobytes().decode())["format"]
    except _UNREADABLE:
        return None
    return kind if isinstance(kind, str) else None


def _read(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    if not zipfile.is_zipfile(path):
        path.open("rb").close()  # a missing file says so itself
        raise ValueError("it is no npz archive")
    # NumPy leaves a file that it opened itself open if the archive is damaged
    with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    if "header" not in arrays:
        raise ValueError("it has no header")
    for name, array in arrays.items():
        if not isinstance(array, np.ndarray):  # NumPy hands on what it cannot read
            raise ValueError(f"its member {name!r} is no array")
    header = json.loads(arrays.pop("header").tobytes().decode())
    if not isinstance(header, dict) or "fingerprint" not in header:
        raise ValueError("its header is not that of a file of this library")
    return header, arrays


def write_atomically(
    path: str | PathLike[str], write: Callable[[BinaryIO], object]
) -> None:
    """Call ``write(file)`` on a temporary neighbour of ``path``, then rename it."""
    try:
        target = Path(path)
    except TypeError:
        raise refusal("path", "a path", f"a {type(path).__name__}") from None
    if not target.parent.is_dir() or target.is_dir():
        raise refusal("path", "a file in a directory that exists", str(target))
    temporary = target.parent / f".{target.name[:100]}.{secrets.token_hex(8)}"
    try:
        with temporary.open("xb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def first_line(error: BaseException) -> str:
    """Return the first line of an error, or its name if it says nothing."""
    return (str(error).splitlines() or [type(error).__name__])[0]
