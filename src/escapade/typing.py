"""Names for what crosses the boundaries between layers: data, and agents.

An agent is anything that can be asked what to do and told what came of it
(:class:`Agent`).  Nothing here says how it decides, so the one loop of
:func:`escapade.simulate` runs them all.
"""

from __future__ import annotations

from typing import Any, Protocol, SupportsIndex, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = [
    "Agent",
    "ArrayLike",
    "BoolArray",
    "CodeArray",
    "Decision",
    "FloatArray",
    "IndexArray",
    "IntArray",
    "Seed",
    "Terms",
]

FloatArray: TypeAlias = NDArray[np.float64]
"""Values, probabilities, costs."""

IntArray: TypeAlias = NDArray[np.int64]
"""Row pointers and counts."""

IndexArray: TypeAlias = NDArray[np.int32]
"""State, action and pair indices inside compiled kernels."""

CodeArray: TypeAlias = NDArray[np.int8]
"""Phases, reasons and other small codes, one a step."""

BoolArray: TypeAlias = NDArray[np.bool_]
"""Masks."""

Seed: TypeAlias = int | np.random.SeedSequence | np.random.Generator | None
"""Anything :func:`numpy.random.default_rng` takes as a seed."""

JSON: TypeAlias = dict[str, Any]
"""A JSON object."""


class Terms(Protocol):
    """On what terms an agent lives; :class:`escapade.Knowledge` holds them."""

    @property
    def n_costs(self) -> int:
        """The number K of cost channels."""
        ...

    @property
    def discount(self) -> float:
        """Discount factor."""
        ...

    @property
    def budget(self) -> FloatArray:
        """``(K,)``; what the expected discounted cost from every step on may be."""
        ...


class Decision(Protocol):
    """What an agent wants to do, and what it rests on."""

    @property
    def id(self) -> int:
        """Number of the decision, from 0."""
        ...

    @property
    def state(self) -> int:
        """Where it was made."""
        ...

    @property
    def action(self) -> int:
        """What to do."""
        ...

    @property
    def phase(self) -> int:
        """What the agent is doing, by the numbers of :class:`escapade.agent.Phase`."""
        ...

    @property
    def reason(self) -> str:
        """Why, in words."""
        ...

    @property
    def promise(self) -> tuple[float, ...]:
        """``(K,)``; what the expected discounted cost from now on stays within.

        NaN in every channel if the agent promises nothing.
        """
        ...

    @property
    def reserved(self) -> tuple[float, ...]:
        """``(K,)``; how much of the promise the fallback needs, NaN without one."""
        ...


@runtime_checkable
class Agent(Protocol):
    """Whoever lives in a world: it is asked, acts, and is told."""

    @property
    def knowledge(self) -> Terms:
        """What it was told at birth, the terms of its life among it."""
        ...

    @property
    def seed(self) -> int | None:
        """Seed of its own draws; a world without a seed follows from it."""
        ...

    @property
    def state(self) -> int | None:
        """Where the last step led; ``None`` before the first."""
        ...

    @property
    def plans(self) -> int:
        """How often it has planned; a rise is written into the trace."""
        ...

    def ask(self, state: SupportsIndex, /) -> Decision:
        """Return what to do in ``state``."""
        ...

    def tell(
        self,
        decision: Any,
        /,
        *,
        reward: float,
        cost: ArrayLike | None,
        next_state: SupportsIndex,
    ) -> None:
        """Say what came of a decision that :meth:`ask` returned."""
        ...
