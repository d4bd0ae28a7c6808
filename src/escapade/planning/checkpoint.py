"""Checkpoints of long optimisations: one npz file, arrays and a line of JSON.

The header names what the run was about: the problem's fingerprint, a digest of the
uncertainty set, the settings.  A checkpoint of another run is refused with the first
difference, so that resuming goes on with exactly the run that was interrupted.  Nothing
is pickled, and a crash while writing leaves the last whole file.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from escapade.errors import InvalidFileError
from escapade.model.archives import read_archive, write_archive
from escapade.model.cmdp import CMDP
from escapade.uncertainty.base import UncertaintySet

__all__ = ["read_checkpoint", "set_digest", "write_checkpoint"]

_FORMAT = "escapade-optimisation"
_VERSION = 1


def write_checkpoint(
    path: Path,
    *,
    run: Mapping[str, Any],
    state: Mapping[str, Any],
    arrays: Mapping[str, Any],
) -> None:
    """Write a checkpoint; ``run`` says of what, ``state`` and ``arrays`` how far."""
    write_archive(
        path,
        kind=_FORMAT,
        version=_VERSION,
        content={"run": dict(run), "state": dict(state)},
        arrays=arrays,
    )


def read_checkpoint(
    path: Path, *, run: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return state and arrays of a checkpoint, which must be of this very run."""
    content, arrays = read_archive(
        path,
        kind=_FORMAT,
        version=_VERSION,
        what="a whole file that Escapade wrote",
        argument="checkpoint",
    )
    found, state = content["run"], content["state"]
    wanted = json.loads(json.dumps(dict(run)))
    for name in sorted({*wanted, *found}):
        if wanted.get(name) != found.get(name):
            raise InvalidFileError(
                f"checkpoint: expected {name} {wanted.get(name)!r}, found "
                f"{found.get(name)!r} in {path.name}"
            )
    return state, arrays


def set_digest(problem: CMDP, sets: UncertaintySet | None) -> str | None:
    """Return a digest that differs for sets that plan differently."""
    if sets is None:
        return None
    digest = hashlib.sha256(type(sets).__name__.encode())
    probe = np.cos(np.arange(sets.n_states, dtype=np.float64))
    arrays = [sets.row_ptr, sets.successor, sets.nominal]
    if sets.rectangular:  # the extremes tell radii apart
        arrays += [sets.worst(probe, sense="max"), sets.worst(probe, sense="min")]
    else:
        digest.update("".join(m.fingerprint for m in sets.members(problem)).encode())
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
