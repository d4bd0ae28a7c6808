"""What a sweep found, combination by combination, over its seeds.

A combination is a world with what was chosen of the axes that the sweep varies.  Of its
seeds the mean and both ends are told: with a handful of them there is no more to say
about the spread.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from escapade.experiment.sweeps.table import Row

__all__ = ["Combination", "Spread", "combinations", "varied"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Mean and ends of what some runs came to."""

    mean: float
    least: float
    most: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Combination:
    """Runs that differ in their seed only.

    Attributes
    ----------
    world
        Its name.
    choices
        The values of the axes that the sweep varies; ``None`` where one does not apply.
    rows
        Of the runs that came to something.
    failed
        How many did not.
    """

    world: str
    choices: Mapping[str, Any]
    rows: Sequence[Row]
    failed: int

    def spread(self, name: str) -> Spread | None:
        """Return the spread of a column; ``None`` if it has no number in any run."""
        values = [float(row[name]) for row in self.rows if row[name] is not None]
        if not values:
            return None
        mean = sum(values) / len(values)
        return Spread(mean=mean, least=min(values), most=max(values))


def varied(rows: Sequence[Row]) -> tuple[str, ...]:
    """Return the axes that differ between rows."""
    axes = [name for name in (rows[0] if rows else ()) if "." in name]
    return tuple(a for a in axes if len({_key(row[a]) for row in rows}) > 1)


def combinations(rows: Sequence[Row]) -> list[Combination]:
    """Return the combinations in the order in which rows first have them."""
    axes = varied(rows)
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        key = (row["world"], *(_key(row[axis]) for axis in axes))
        groups.setdefault(key, []).append(row)
    return [
        Combination(
            world=group[0]["world"],
            choices={axis: group[0][axis] for axis in axes},
            rows=[row for row in group if not row["error"]],
            failed=sum(1 for row in group if row["error"]),
        )
        for group in groups.values()
    ]


def _key(value: Any) -> str:
    """Return what tells values apart, lists and tables among them."""
    return repr(value)
