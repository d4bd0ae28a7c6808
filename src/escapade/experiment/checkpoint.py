"""A run set aside: the agent and the world as they were after some step.

``checkpoint.npz`` holds the agent; ``checkpoint.json`` says after which step that was,
where the world's generator stood, and which npz belongs to it.  The two are replaced
one after the other, so the new agent waits under a name of its own until the JSON that
points to it is in place: whenever the process is killed, one of the agents there is the
one that the JSON means.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from escapade.agent.e4 import E4
from escapade.environments.cmdp_env import CMDPEnv
from escapade.errors import InvalidFileError
from escapade.experiment.schema import canonical, storing
from escapade.model.archives import write_atomically

__all__ = [
    "Checkpoint",
    "load_checkpoint",
    "read_sealed",
    "restore_world",
    "save_checkpoint",
    "seal_text",
    "tidy",
    "world_state",
]

_AGENT, _NEXT, _HEAD = "checkpoint.npz", "checkpoint.next.npz", "checkpoint.json"
_FORMAT, _VERSION = "escapade-checkpoint", 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """An agent with the step it had reached, and its world's state if simulated."""

    step: int
    agent: E4
    world: Mapping[str, Any] | None


def world_state(env: CMDPEnv) -> dict[str, Any]:
    """Return where a world is and what it will draw, fit for JSON."""
    generator: Any = env.np_random.bit_generator.state
    return {"state": env.state, "generator": generator}


def restore_world(env: CMDPEnv, state: Mapping[str, Any]) -> None:
    """Put a world to where :func:`world_state` found it."""
    env.np_random.bit_generator.state = dict(state["generator"])
    env.place(state["state"])


def save_checkpoint(
    directory: Path, agent: E4, *, step: int, world: Mapping[str, Any] | None
) -> None:
    """Replace the checkpoint in a run directory; at any moment one is whole."""
    agent_file, head_file = directory / _NEXT, directory / _HEAD
    with storing(directory):
        agent.save(agent_file)
        content = {
            "format": _FORMAT,
            "version": _VERSION,
            "step": step,
            "agent": _digest(agent_file),
            "world": world,
        }
        text = seal_text(content)
        write_atomically(head_file, lambda file: file.write(text.encode()))
        agent_file.replace(directory / _AGENT)


def tidy(directory: Path) -> None:
    """Finish what a death in the midst of writing left; the caller holds the lock."""
    head_file, waiting = directory / _HEAD, directory / _NEXT
    with storing(directory):
        if waiting.exists() and _digest(waiting) == _meant(head_file):
            waiting.replace(directory / _AGENT)
        for name in (_NEXT, _HEAD):  # what write_atomically had not renamed yet
            for left in directory.glob(f".{name}.*"):
                left.unlink()


def _meant(head_file: Path) -> object:
    """Return the digest of the agent that the JSON points to, if it can be read."""
    try:
        return read_sealed(head_file).get("agent")
    except InvalidFileError:
        return None  # whoever loads the checkpoint is told


def seal_text(content: Mapping[str, Any]) -> str:
    """Return JSON for people to read, with the digest of all that it says."""
    sha256 = hashlib.sha256(canonical(content).encode()).hexdigest()
    return json.dumps({**content, "sha256": sha256}, indent=1, sort_keys=True) + "\n"


def read_sealed(path: Path) -> dict[str, Any]:
    """Read what :func:`seal_text` wrote; refuse it if a single bit is another."""
    try:
        text = path.read_text("utf-8")
        content = json.loads(text)
        kept = {key: value for key, value in content.items() if key != "sha256"}
        if seal_text(kept) != text:
            raise ValueError("it is not as it was written")
    except (OSError, ValueError, AttributeError, RecursionError) as error:
        raise InvalidFileError(
            f"{path.name}: expected it as it was written, found that it cannot be read "
            f"or was altered ({str(error).splitlines()[0]})"
        ) from None
    return kept


def load_checkpoint(directory: Path) -> Checkpoint | None:
    """Return the checkpoint of a run, ``None`` if none was written yet.

    Raises
    ------
    InvalidFileError
        If it is damaged, or from a newer version.
    """
    head_file = directory / _HEAD
    if not head_file.exists():
        return None
    head = read_sealed(head_file)
    if head.get("format") != _FORMAT or head.get("version") != _VERSION:
        raise InvalidFileError(
            f"{_HEAD}: expected version {_VERSION}, found {head.get('version')!r}; "
            f"another version of Escapade wrote it"
        )
    for name in (_AGENT, _NEXT):
        path = directory / name
        if path.exists() and _digest(path) == head["agent"]:
            return Checkpoint(
                step=int(head["step"]), agent=E4.load(path), world=head["world"]
            )
    raise InvalidFileError(
        f"{_AGENT}: expected the agent that {_HEAD} means, found another or none"
    )


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
