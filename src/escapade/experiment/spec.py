"""What a run is: data that is frozen, round-trips through TOML, and names the run.

A specification holds everything on which a decision can depend, and how the run is
written down.  The hash is taken of the former alone, less the seed; so runs that differ
only in their seed share a hash, and a run is found again by
``<world>-<hash>-<seed>``.

::

    format = 1
    world = "wall-cycle"
    steps = 50000
    seed = 0
    until = "steps"
    durable = false

    [parameters]        # of the world
    size = 10

    [settings]          # of the agent, as in escapade.E4Settings, without its seed
    epsilon = 1.0
"""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
)

from escapade import errors
from escapade.agent.settings import E4Settings
from escapade.environments.registry import did_you_mean, make, names, parameters
from escapade.environments.world import World
from escapade.errors import InvalidFileError, InvalidInputError, refusal
from escapade.experiment.toml_text import line_of, parse_toml, read_text, toml_lines
from escapade.knowledge.knowledge import Knowledge

__all__ = ["MOST", "PlantSpec", "RunSpec", "in_our_words", "load_spec"]

MOST = 2**53
"""Whole numbers that TOML, JSON, SQLite and doubles all hold."""

_OF_AGENT = tuple(f.name for f in fields(E4Settings) if f.name != "seed")
_HASH_LENGTH = 10


def _known_world(name: str) -> str:
    if name not in names():
        raise ValueError(f"a world among {list(names())}{did_you_mean(name)}")
    return name


def _of_agent(settings: dict[str, Any]) -> dict[str, Any]:
    """Return settings in full; refuse a name that is none, or a value out of range."""
    for key in settings:
        if key not in _OF_AGENT:
            raise refusal(
                f"settings.{key}",
                f"a name among {list(_OF_AGENT)}",
                f"{key!r}{errors.did_you_mean(key, _OF_AGENT)}",
            )
    try:
        # TOML writes 1 for 1.0; which of them was meant is settled by the field
        made = TypeAdapter(E4Settings).validate_python(settings)
    except ValidationError as error:
        first = error.errors()[0]
        said = first["msg"].removeprefix("Value error, ")
        key, colon, rest = said.partition(": expected ")
        if colon:  # refused by the settings themselves
            expected, _, found = rest.rpartition(", found ")
            raise refusal(f"settings.{key}", expected, found) from None
        raise refusal(
            f"settings.{first['loc'][0]}",
            said.removeprefix("Input should be "),
            repr(first["input"]),
        ) from None
    return {name: _plain(getattr(made, name)) for name in _OF_AGENT}


def settings_of(settings: dict[str, Any], *, seed: int) -> E4Settings:
    """Return settings told by name; refuse those that are none or out of range."""
    return E4Settings(**_of_agent(settings), seed=seed)


def _plain(value: Any) -> Any:
    """Return a setting as TOML can hold it; what is not set is left out."""
    if is_dataclass(value) and not isinstance(value, type):
        value = asdict(value)
    if isinstance(value, Mapping):
        return {key: _plain(v) for key, v in value.items() if v is not None}
    return value


class RunSpec(BaseModel):
    """A simulated run.

    Attributes
    ----------
    format
        Version of this format.
    world
        Name of a world, with hyphens; see :func:`escapade.environments.names`.
    parameters
        What the world is made with, in full.
    steps
        Steps to live at most.
    seed
        Of agent and world.
    until
        ``"certified"`` ends the run as soon as the agent is within its ``epsilon``.
    settings
        Those of :class:`escapade.E4Settings`, in full, without the seed.
    durable
        Whether each decision is on disk before it is acted on, as beside a real plant;
        otherwise steps are written in groups.

    Examples
    --------
    >>> spec = RunSpec(world="wall-cycle", parameters={"size": 4}, steps=1000, seed=7)
    >>> spec.name
    'wall-cycle-...-7'
    >>> RunSpec.from_toml(spec.to_toml()) == spec
    True
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    format: Literal[1] = 1
    world: Annotated[str, AfterValidator(_known_world)]
    steps: int = Field(ge=1, le=MOST)
    seed: int = Field(default=0, ge=0, le=MOST)
    until: Literal["steps", "certified"] = "steps"
    durable: bool = False
    parameters: dict[str, Any] = Field(default_factory=dict)
    settings: dict[str, Any] = Field(default_factory=dict)

    def __init__(self, **data: Any) -> None:
        try:
            super().__init__(**data)
        except ValidationError as error:
            raise in_our_words(error, RunSpec) from None
        self.__dict__["settings"] = _of_agent(self.settings)
        known = parameters(self.world)
        for key in self.parameters:
            if key not in known:
                raise refusal(
                    f"parameters.{key}",
                    f"a name among {list(known)}",
                    f"{key!r}{errors.did_you_mean(key, known)}",
                )
        for key, value in self.parameters.items():
            known[key] = _parameter(key, value, known[key])
        self.__dict__["parameters"] = known

    # -- what it names -----------------------------------------------------------------

    @property
    def digest(self) -> str:
        """SHA-256 of all that decisions depend on, but for the seed."""
        content = self.model_dump(exclude={"seed", "durable"})
        text = json.dumps(content, sort_keys=True, allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def name(self) -> str:
        """``<world>-<hash>-<seed>``."""
        return f"{self.world}-{self.digest[:_HASH_LENGTH]}-{self.seed}"

    def make_world(self) -> World:
        """Return the world in which the run lives."""
        try:
            return make(self.world, **self.parameters)
        except InvalidInputError as error:
            raise InvalidInputError(f"parameters.{error}") from None

    def make_settings(self) -> E4Settings:
        """Return the settings of the agent, with the seed."""
        return E4Settings(**self.settings, seed=self.seed)

    # -- files -------------------------------------------------------------------------

    def to_toml(self) -> str:
        """Return the specification in TOML; always the same text for the same run."""
        head = self.model_dump(exclude={"parameters", "settings"})
        lines = toml_lines(head)
        for table in ("parameters", "settings"):
            lines += ["", f"[{table}]", *toml_lines(getattr(self, table))]
        return "\n".join(lines) + "\n"

    @classmethod
    def from_toml(cls, text: str, *, source: str = "spec") -> RunSpec:
        """Read a specification; an error names the key and the line that it stands in.

        Parameters
        ----------
        text
            In TOML.
        source
            What to call it in an error, such as the name of the file.
        """
        data = parse_toml(text, source=source)
        for table in ("parameters", "settings"):  # TOML has no null: a key is left out
            if not isinstance(data.get(table, {}), Mapping):
                raise InvalidFileError(
                    f"{source}, line {line_of(text, (table,))}: {table}: expected a "
                    f"table, found {data[table]!r}"
                )
        try:
            return cls(**data)
        except InvalidInputError as error:
            key = str(error).partition(":")[0]
            line = line_of(text, tuple(key.split(".")))
            place = f", line {line}" if line else ""
            raise InvalidFileError(f"{source}{place}: {error}") from None


class PlantSpec(BaseModel):
    """With what a life beside a plant began.

    Attributes
    ----------
    format, kind
        Of this format, and what it describes.
    knowledge
        Fingerprint of what the agent was told.
    seed, settings
        Of the agent.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    format: Literal[1] = 1
    kind: Literal["plant"] = "plant"
    knowledge: str
    seed: int = Field(ge=0, le=MOST)
    settings: dict[str, Any]

    @classmethod
    def of(cls, knowledge: Knowledge, settings: E4Settings) -> PlantSpec:
        """Return the specification of a life that begins."""
        if settings.seed is None:
            raise refusal(
                "settings", "a seed, so that decisions come about again", None
            )
        told = {name: _plain(getattr(settings, name)) for name in _OF_AGENT}
        return cls(
            knowledge=knowledge.fingerprint,
            seed=settings.seed,
            settings={key: v for key, v in told.items() if v is not None},
        )

    @property
    def digest(self) -> str:
        """SHA-256 of all of it."""
        text = json.dumps(self.model_dump(), sort_keys=True, allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()

    def make_settings(self) -> E4Settings:
        """Return the settings of the agent."""
        return E4Settings(**self.settings, seed=self.seed)

    def to_toml(self) -> str:
        """Return the specification in TOML."""
        head = self.model_dump(exclude={"settings"})
        lines = [*toml_lines(head), "", "[settings]", *toml_lines(self.settings)]
        return "\n".join(lines) + "\n"

    @classmethod
    def from_toml(cls, text: str, *, source: str) -> PlantSpec:
        """Read a specification."""
        try:
            told = tomllib.loads(text)
            if "world" in told:
                raise InvalidFileError(
                    f"{source}: expected what a life beside a plant began with, found "
                    f"a simulated run, which goes on by: escapade resume"
                )
            return cls(**told)
        except (tomllib.TOMLDecodeError, ValidationError) as error:
            said = str(error).splitlines()[0]
            raise InvalidFileError(
                f"{source}: expected what a life beside a plant began with, "
                f"found {said}"
            ) from None


def load_spec(path: Path) -> RunSpec:
    """Read the specification in a TOML file."""
    return RunSpec.from_toml(read_text(path), source=str(path))


def _parameter(key: str, value: Any, default: Any) -> Any:
    """Return a parameter as it is written in one way only."""
    several = isinstance(value, list | tuple)
    for entry in value if several else [value]:
        if not isinstance(entry, str | int | float | bool | None):
            raise refusal(
                f"parameters.{key}", "numbers, a word or a truth", repr(value)
            )
    if several:
        return tuple(float(v) if type(v) is int else v for v in value)
    return float(value) if type(value) is int and type(default) is float else value


def in_our_words(error: ValidationError, model: type[BaseModel]) -> InvalidInputError:
    """Return the first thing that pydantic found, as one line."""
    # a name that is none explains why another is missing
    first = min(error.errors(), key=lambda e: e["type"] != "extra_forbidden")
    key = ".".join(map(str, first["loc"]))
    if first["type"] == "missing":
        return refusal(key, "a value", "none")
    if first["type"] == "extra_forbidden":
        known = list(model.model_fields)
        hint = errors.did_you_mean(key, known)
        return refusal(key, f"a name among {known}", f"{key!r}{hint}")
    found = repr(first["input"])
    if first["type"] == "literal_error":
        words = re.findall("'([^']*)'", first["ctx"]["expected"])
        found += errors.did_you_mean(first["input"], words)
    expected = first["msg"].removeprefix("Input should be ")
    expected = expected.removeprefix("Value error, ")
    return refusal(key, expected, found)
