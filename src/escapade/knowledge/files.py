"""Knowledge on disk: what an archive of :mod:`escapade.model.archives` holds of it.

What is written are the arguments from which the same knowledge is built again, so that
reading goes through the same checks as building.  :func:`pack_knowledge` and
:func:`unpack_knowledge` do it without a file, for those that keep knowledge in files of
their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Any

import numpy as np
import scipy.sparse as sp

from escapade.errors import EscapadeError, InvalidFileError
from escapade.knowledge.counts import Counts
from escapade.knowledge.knowledge import Knowledge
from escapade.knowledge.log import Log
from escapade.model.archives import (
    archive_kind,
    digest,
    first_line,
    read_archive,
    write_archive,
)
from escapade.uncertainty.packing import pack_set, unpack_set

__all__ = [
    "fingerprint_of",
    "first_difference",
    "holds_knowledge",
    "load_knowledge",
    "pack_knowledge",
    "save_knowledge",
    "unpack_knowledge",
]

_FORMAT = "escapade-knowledge"
_VERSION = 1
_LOG = ("states", "actions", "rewards", "costs", "next_states")
_TALLY = ("rewards", "costs", "cost_steps")


# -- packing ---------------------------------------------------------------------------


def pack_knowledge(
    knowledge: Knowledge,
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return a header that JSON can hold, and arrays."""
    pairs = knowledge.pairs
    grid = (knowledge.n_states, knowledge.n_actions)

    def table(values: np.ndarray, fill: Any) -> np.ndarray:
        out = np.full((*values.shape[:-1], *grid), fill)
        out[..., pairs.pair_state, pairs.pair_action] = values
        return out

    reward_known = knowledge.reward_lower == knowledge.reward_upper
    cost_known = knowledge.cost_lower == knowledge.cost_upper
    arrays: dict[str, np.ndarray] = {
        "budget": knowledge.budget,
        "cost_max": knowledge.cost_max,
        "start": knowledge.start,
        "available": table(np.ones(knowledge.n_pairs, dtype=np.bool_), fill=False),
        "rewards": table(np.where(reward_known, knowledge.reward_lower, np.nan), 0.0),
        "costs": table(np.where(cost_known, knowledge.cost_lower, np.nan), 0.0),
        "cost_bounds": table(knowledge.cost_upper, np.nan),
        "free": table(knowledge.free, fill=False),
        "exact_rewards": table(knowledge.exact_rewards, fill=False),
        "exact_costs": table(knowledge.exact_costs, fill=False),
        "known_states": knowledge.known_states,
    }
    header: dict[str, Any] = {
        "n_states": knowledge.n_states,
        "n_actions": knowledge.n_actions,
        "discount": knowledge.discount,
        "reward_max": knowledge.reward_max,
        "state_names": knowledge.state_names,
        "action_names": knowledge.action_names,
        "models": None,
        "log": None,
        "counts": False,
    }
    if knowledge.rescaled:
        header["reward_map"] = [knowledge.reward_scale, knowledge.reward_offset]
    if knowledge.varying.any():
        arrays["varying"] = table(knowledge.varying, fill=False)
    if knowledge.coordinates is not None:
        arrays["coordinates"] = knowledge.coordinates
    exact = np.repeat(knowledge.exact_pairs, np.diff(knowledge.row_ptr))
    arrays["row_ptr"], arrays["successor"] = knowledge.row_ptr, knowledge.successor
    arrays["known_rows"] = np.where(exact, knowledge.lower, np.nan)
    if knowledge.models is not None:
        header["models"], own = pack_set(knowledge.models, "models")
        arrays.update(own)
    if knowledge.log is not None:
        log = knowledge.log
        header["log"] = log.source
        arrays.update({f"log.{name}": getattr(log, name) for name in _LOG})
        if log.lines is not None:
            arrays["log.lines"] = log.lines
    if knowledge.tally is not None:
        tally = knowledge.tally
        header["counts"] = True
        arrays["counts.row_ptr"] = tally.row_ptr
        arrays["counts.successor"] = tally.successor
        arrays["counts.visits"] = tally.visits
        for name in _TALLY:
            arrays[f"counts.{name}"] = table(getattr(tally, name), 0)
    return header, arrays


def unpack_knowledge(
    header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
) -> Knowledge:
    """Return what :func:`pack_knowledge` took apart.

    Raises
    ------
    EscapadeError, KeyError, TypeError, ValueError, IndexError
        If the parts do not fit together.
    """
    available = np.array(arrays["available"])
    shape = (available.size, int(header["n_states"]))
    flat = np.flatnonzero(available)

    def rows(
        pointers: np.ndarray, successor: np.ndarray, data: np.ndarray
    ) -> sp.csr_array:
        """Return rows of the available pairs as rows of ``(S · A, S)``."""
        row = np.repeat(flat, np.diff(pointers))
        return sp.csr_array(sp.coo_array((data, (row, successor)), shape=shape))

    row_ptr, successor = arrays["row_ptr"], arrays["successor"]
    told = np.array(arrays["known_rows"])
    known = ~np.isnan(told)
    owner = np.repeat(flat, np.diff(row_ptr))
    known_rows = sp.csr_array(
        sp.coo_array(
            (told[known], (owner[known], successor[known])),
            shape=shape,
        )
    )
    models = header["models"]
    log = header["log"]
    scale, offset = header.get("reward_map", (1.0, 0.0))
    return Knowledge(
        header["n_states"],
        header["n_actions"],
        discount=header["discount"],
        budget=arrays["budget"],
        reward_max=header["reward_max"],
        cost_max=arrays["cost_max"],
        start=arrays["start"],
        available=available,
        support=None if models else rows(row_ptr, successor, np.ones(successor.size)),
        known_rows=known_rows,
        models=unpack_set(models, arrays) if models else None,
        rewards=arrays["rewards"],
        costs=arrays["costs"],
        cost_bounds=arrays["cost_bounds"],
        free=arrays["free"],
        exact_rewards=arrays["exact_rewards"],
        exact_costs=arrays["exact_costs"],
        varying=arrays.get("varying", False),
        log=None
        if log is None
        else Log(
            **{name: arrays[f"log.{name}"] for name in _LOG},
            lines=arrays.get("log.lines"),
            source=log,
        ),
        counts=Counts(
            transitions=rows(
                arrays["counts.row_ptr"],
                arrays["counts.successor"],
                arrays["counts.visits"],
            ),
            **{name: arrays[f"counts.{name}"] for name in _TALLY},
        )
        if header["counts"]
        else None,
        known_states=arrays["known_states"],
        state_names=header["state_names"],
        action_names=header["action_names"],
        coordinates=arrays.get("coordinates"),
        reward_scale=scale,
        reward_offset=offset,
    )


def fingerprint_of(knowledge: Knowledge) -> str:
    """Return the SHA-256 of everything that is known."""
    return digest(*pack_knowledge(knowledge))


def first_difference(mine: Knowledge, theirs: Knowledge) -> str | None:
    """Return in words where two differ first; ``None`` where they are the same."""
    (told, arrays), (other, others) = pack_knowledge(mine), pack_knowledge(theirs)
    mine_all, theirs_all = {**told, **arrays}, {**other, **others}
    first = ("n_states", "n_actions", "discount", "budget", "cost_max")
    for name in dict.fromkeys([*first, *mine_all, *theirs_all]):
        one, two = mine_all.get(name), theirs_all.get(name)
        if _bytes_of(one) != _bytes_of(two):
            shown = _as_number(one), _as_number(two)
            if None in shown:
                return f"other {name}"
            return f"{name} {shown[0]} instead of {shown[1]}"
    return None


def _as_number(part: Any) -> float | int | None:
    """Return a part that is one number as such; ``None`` for any other."""
    if isinstance(part, np.ndarray):
        part = part.item() if part.size == 1 else None
    return part if isinstance(part, int | float) else None


def _bytes_of(part: Any) -> str:
    """Return the digest of one part, header or array."""
    if isinstance(part, np.ndarray):
        return digest({}, {"part": part})
    return digest({"part": part}, {})


# -- files -----------------------------------------------------------------------------


def save_knowledge(knowledge: Knowledge, path: str | PathLike[str]) -> None:
    """Write ``knowledge`` to ``path`` in one atomic step."""
    content, arrays = pack_knowledge(knowledge)
    write_archive(path, kind=_FORMAT, version=_VERSION, content=content, arrays=arrays)


def load_knowledge(path: str | PathLike[str]) -> Knowledge:
    """Read the knowledge that :func:`save_knowledge` wrote to ``path``."""
    content, arrays = read_archive(
        path, kind=_FORMAT, version=_VERSION, what="an Escapade knowledge file"
    )
    try:
        return unpack_knowledge(content, arrays)
    except (EscapadeError, KeyError, TypeError, ValueError, IndexError) as error:
        raise InvalidFileError(
            f"path: expected valid knowledge in {path}, found {first_line(error)}"
        ) from error


def holds_knowledge(path: str | PathLike[str]) -> bool:
    """Tell whether a file says that it holds knowledge, rather than something else."""
    return archive_kind(path) == _FORMAT
