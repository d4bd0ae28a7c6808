"""What a sweep is: worlds × settings × seeds, as data that round-trips through TOML.

::

    format = 1
    steps = 20000
    seeds = 5               # 0 to 4; a list names them
    until = "steps"

    [[worlds]]
    name = "wall-cycle"
    parameters = { size = [4, 6], failure = 0.05 }

    [[worlds]]
    name = "three-state-loop"

    [settings]              # of the agent, as in escapade.E4Settings, without its seed
    known_after = [5, 20]
    epsilon = 10.0

Lists are crossed: that is two fields and a loop, times two quotas, times five seeds.  A
value that is a list itself stands in a list, as ``budget = [[5.0, 3.0]]``.  What cannot
be crossed, because one setting asks for another, is written as several tables
``[[settings]]``, each with a grid of its own.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, ValidationError

from escapade.errors import InvalidFileError, InvalidInputError, refusal
from escapade.experiment.spec import MOST, RunSpec, in_our_words
from escapade.experiment.toml_text import (
    line_of,
    parse_toml,
    read_text,
    toml_lines,
    toml_value,
)

__all__ = ["SweepSpec", "WorldGrid", "load_sweep"]

_MOST_RUNS = 100_000


class WorldGrid(BaseModel):
    """A world, and what it is made with; each list is a choice.

    Attributes
    ----------
    name
        One of :func:`escapade.environments.names`.
    parameters
        As in a :class:`~escapade.experiment.RunSpec`; lists are crossed.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    name: str
    parameters: dict[str, Any] = Field(default_factory=dict)


class SweepSpec(BaseModel):
    """Many runs, as one thing.

    Attributes
    ----------
    format
        Version of this format.
    worlds
        Names, or tables of a name and parameters.
    settings
        A grid of settings, or several.
    seeds
        How many, from 0 on, or which.
    steps, until
        Of each run.

    Examples
    --------
    >>> spec = SweepSpec(
    ...     worlds=[{"name": "wall-cycle", "parameters": {"size": [3, 4]}}],
    ...     settings={"known_after": [5, 20]},
    ...     seeds=2,
    ...     steps=1000,
    ... )
    >>> len(spec.runs)
    8
    >>> SweepSpec.from_toml(spec.to_toml()) == spec
    True
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    format: Literal[1] = 1
    steps: int = Field(ge=1, le=MOST)
    seeds: tuple[int, ...]
    until: Literal["steps", "certified"] = "steps"
    worlds: tuple[WorldGrid, ...]
    settings: tuple[dict[str, Any], ...] = ({},)

    _runs: tuple[RunSpec, ...] = PrivateAttr()
    _n_costs: int = PrivateAttr()

    def __init__(self, **data: Any) -> None:
        read = {"seeds": _seeds, "worlds": _worlds, "settings": _settings}
        data = {
            key: read[key](value) if key in read else value
            for key, value in data.items()
        }
        try:
            super().__init__(**data)
        except ValidationError as error:
            raise in_our_words(error, SweepSpec) from None
        self._refuse_too_many()
        self._runs = tuple(self._expand())

    # -- what it asks for --------------------------------------------------------------

    @property
    def runs(self) -> tuple[RunSpec, ...]:
        """Every run, seeds fastest, then settings, then worlds."""
        return self._runs

    @property
    def n_costs(self) -> int:
        """Budgets in the world that has most of them."""
        return self._n_costs

    @property
    def axes(self) -> tuple[str, ...]:
        """Parameters and settings that the specification names, varied or not."""
        parameters = [f"parameters.{k}" for w in self.worlds for k in w.parameters]
        settings = [f"settings.{key}" for table in self.settings for key in table]
        return tuple(dict.fromkeys([*parameters, *settings]))

    @property
    def digest(self) -> str:
        """SHA-256 of the runs that are asked for, in whatever way and order."""
        names = sorted(f"{run.digest}-{run.seed}" for run in self.runs)
        return hashlib.sha256("\n".join(names).encode()).hexdigest()

    def _refuse_too_many(self) -> None:
        count = len(self.seeds)
        count *= sum(_size(world.parameters) for world in self.worlds)
        count *= sum(map(_size, self.settings))
        if count > _MOST_RUNS:
            raise refusal("sweep", f"at most {_MOST_RUNS:,} runs", f"{count:,}")

    def _expand(self) -> Iterator[RunSpec]:
        seen: dict[str, str] = {}
        made: dict[str, int] = {}
        places = [
            (f"worlds[{i}]", world.name, parameters)
            for i, world in enumerate(self.worlds)
            for parameters in _crossed(f"worlds[{i}].parameters", world.parameters)
        ]
        agents = [
            (prefix, settings)
            for prefix, table in self._tables()
            for settings in _crossed(prefix, table)
        ]
        for (place, name, parameters), (prefix, settings) in itertools.product(
            places, agents
        ):
            try:
                first = RunSpec(
                    world=name,
                    parameters=parameters,
                    settings=settings,
                    steps=self.steps,
                    until=self.until,
                )
                which = json.dumps([name, first.parameters])
                if which not in made:
                    # what cannot be made is refused before anything is begun
                    made[which] = first.make_world().cmdp.n_costs
            except InvalidInputError as error:
                raise _elsewhere(error, place, prefix) from None
            here = f"{name}, {_words(parameters, settings)}"
            if first.name in seen:
                raise refusal(
                    place,
                    "combinations that differ",
                    f"the same runs twice: {seen[first.name]}; and {here}",
                )
            seen[first.name] = here
            for seed in self.seeds:
                yield first.model_copy(update={"seed": seed})
        self._n_costs = max(made.values())

    def _tables(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the grids of settings, and what to call them."""
        for j, table in enumerate(self.settings):
            yield ("settings" if len(self.settings) == 1 else f"settings[{j}]"), table

    # -- files -------------------------------------------------------------------------

    def to_toml(self) -> str:
        """Return the specification in TOML; always the same text for the same sweep."""
        head = self.model_dump(exclude={"worlds", "settings"})
        lines = toml_lines(head)
        for world in self.worlds:
            lines += ["", "[[worlds]]", f"name = {toml_value(world.name)}"]
            if world.parameters:
                lines += [f"parameters = {toml_value(world.parameters)}"]
        for table in self.settings:
            several = len(self.settings) > 1
            lines += ["", "[[settings]]" if several else "[settings]"]
            lines += toml_lines(table)
        return "\n".join(lines) + "\n"

    @classmethod
    def from_toml(cls, text: str, *, source: str = "spec") -> SweepSpec:
        """Read a specification; an error names the key and the line that it stands in.

        Parameters
        ----------
        text
            In TOML.
        source
            What to call it in an error, such as the name of the file.
        """
        data = parse_toml(text, source=source)
        try:
            return cls(**data)
        except InvalidInputError as error:
            key = str(error).partition(":")[0]
            path = key.replace("[", ".").replace("]", "").split(".")
            if path[0] == "settings" and isinstance(data["settings"], list):
                path[1:1] = [] if path[1:] and path[1].isdigit() else ["0"]
            line = line_of(text, tuple(path))
            place = f", line {line}" if line else ""
            raise InvalidFileError(f"{source}{place}: {error}") from None


def load_sweep(path: Path) -> SweepSpec:
    """Read the specification of a sweep in a TOML file."""
    return SweepSpec.from_toml(read_text(path), source=str(path))


# -- reading what was given ------------------------------------------------------------


def _seeds(given: Any) -> tuple[int, ...]:
    expected = "a count of seeds, or a list of different ones from 0 on"
    if type(given) is int and 1 <= given <= _MOST_RUNS:
        return tuple(range(given))
    if not isinstance(given, list | tuple) or not given:
        raise refusal("seeds", expected, repr(given))
    seen: set[int] = set()
    for seed in given:
        if type(seed) is not int or not 0 <= seed <= MOST:
            raise refusal("seeds", expected, repr(seed))
        if seed in seen:
            raise refusal("seeds", expected, f"{seed} twice")
        seen.add(seed)
    return tuple(given)


def _worlds(given: Any) -> tuple[WorldGrid, ...]:
    if not isinstance(given, list | tuple) or not given:
        raise refusal("worlds", "a list of names or of tables", repr(given))
    found = []
    for i, entry in enumerate(given):
        if isinstance(entry, str):
            entry = {"name": entry}
        if isinstance(entry, WorldGrid):
            found.append(entry)
            continue
        if not isinstance(entry, Mapping):
            raise refusal(f"worlds[{i}]", "a name or a table", repr(entry))
        try:
            found.append(WorldGrid(**entry))
        except ValidationError as error:
            said = in_our_words(error, WorldGrid)
            raise InvalidInputError(f"worlds[{i}].{said}") from None
    return tuple(found)


def _settings(given: Any) -> tuple[dict[str, Any], ...]:
    if isinstance(given, Mapping):
        given = [given]
    if not isinstance(given, list | tuple) or not given:
        raise refusal("settings", "a table, or several", repr(given))
    for j, entry in enumerate(given):
        if not isinstance(entry, Mapping):
            raise refusal(f"settings[{j}]", "a table", repr(entry))
    return tuple(dict(entry) for entry in given)


# -- crossing --------------------------------------------------------------------------


def _choices(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else [value]


def _size(table: Mapping[str, Any]) -> int:
    return prod(len(_choices(value)) for value in table.values())


def _crossed(prefix: str, table: Mapping[str, Any]) -> list[dict[str, Any]]:
    for key, value in table.items():
        if not _choices(value):
            raise refusal(f"{prefix}.{key}", "at least one value", "an empty list")
    found = itertools.product(*(_choices(value) for value in table.values()))
    return [dict(zip(table, values, strict=True)) for values in found]


def _words(*tables: Mapping[str, Any]) -> str:
    said = [f"{key} = {toml_value(v)}" for table in tables for key, v in table.items()]
    return ", ".join(said) or "as it comes"


def _elsewhere(
    error: InvalidInputError, world: str, settings: str
) -> InvalidInputError:
    """Return what was wrong with a run, with the key as the sweep has it."""
    key, colon, rest = str(error).partition(":")
    first, dot, more = key.partition(".")
    if first == "world":
        key = f"{world}.name"
    elif first == "parameters":
        key = f"{world}.{key}"
    elif first == "settings":
        key = f"{settings}{dot}{more}"
    return InvalidInputError(f"{key}{colon}{rest}")
