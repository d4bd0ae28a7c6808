"""Where a foreign environment says what a step costs.

There is no default: an environment that does not say what is dangerous cannot be lived
in safely, and a cost of 0 that nobody meant would be the worst of all guesses.  One
source is named for each channel of costs:

- a text: the key of ``info`` that holds it;
- :data:`SIX_TUPLE`: the third of the six values that Safety-Gymnasium's steps return;
- a function of the state, the action, the next state (as numbers) and ``info``.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from escapade.errors import AssumptionError, refusal
from escapade.typing import FloatArray

__all__ = ["SIX_TUPLE", "CostSource", "Costs"]


class _SixTuple:
    """The type of :data:`SIX_TUPLE`."""

    def __repr__(self) -> str:
        return "SIX_TUPLE"


SIX_TUPLE: Final = _SixTuple()
"""Steps return ``observation, reward, cost, terminated, truncated, info``."""

CostSource: TypeAlias = (
    str | _SixTuple | Callable[[int, int, int, Mapping[str, Any]], float]
)
"""Where the cost of one channel stands."""


class Costs:
    """The costs of a step, from one source a channel.

    Parameters
    ----------
    sources
        A source, or a list of them, one a channel.
    cost_max
        Bound on every sample, a number or one a channel.
    """

    def __init__(
        self, sources: CostSource | Sequence[CostSource], cost_max: Any
    ) -> None:
        listed = list(sources) if isinstance(sources, list | tuple) else [sources]
        for k, source in enumerate(listed):
            if source is None or not (
                isinstance(source, str | _SixTuple) or callable(source)
            ):
                raise refusal(
                    "cost",
                    "a key of info, SIX_TUPLE, or a function (s, a, s', info), as "
                    "nothing is assumed to be free",
                    repr(source),
                    f"channel {k}" if len(listed) > 1 else None,
                )
            if not isinstance(source, str | _SixTuple):
                _check_signature(source)
        if not listed:
            raise refusal("cost", "at least one source", "none")
        self.sources: list[Any] = listed
        most = np.asarray(cost_max, dtype=np.float64)
        if most.shape not in ((), (len(listed),)):
            raise refusal(
                "cost_max", f"a number, or {len(listed)}", f"shape {most.shape}"
            )
        self.cost_max: FloatArray = np.broadcast_to(most, (len(listed),)).copy()

    @property
    def n(self) -> int:
        """Number of channels."""
        return len(self.sources)

    @property
    def needs_six(self) -> bool:
        """Whether steps are to return six values."""
        return any(isinstance(source, _SixTuple) for source in self.sources)

    @property
    def are_functions(self) -> bool:
        """Whether every cost follows from state, action, next state and ``info``."""
        return not any(isinstance(s, str | _SixTuple) for s in self.sources)

    def of_step(
        self,
        state: int,
        action: int,
        after: int,
        info: Mapping[str, Any],
        *,
        told: Any = None,
        step: int = 0,
    ) -> FloatArray:
        """Return the costs of a step, ``(K,)``, checked.

        Raises
        ------
        AssumptionError
            If a cost is missing, is no number, or is outside ``[0, cost_max]``.
        """
        found = np.empty(self.n)
        for k, source in enumerate(self.sources):
            if isinstance(source, str):
                if source not in info:
                    raise AssumptionError(
                        f"info[{source!r}]: expected a cost at every step, found none "
                        f"at step {step} (keys {sorted(map(str, info))})"
                    )
                value = info[source]
            elif isinstance(source, _SixTuple):
                value = told
            else:
                value = source(state, action, after, info)
            found[k] = _read(value, float(self.cost_max[k]), k, self.n, step)
        return found


def _check_signature(source: Callable[..., Any]) -> None:
    """Refuse a function that cannot be called as costs are asked for."""
    try:
        signature = inspect.signature(source)
    except (TypeError, ValueError):  # one that does not say; the first step will show
        return
    try:
        signature.bind(0, 0, 0, {})
    except TypeError:
        raise refusal(
            "cost",
            "a function of four arguments, (s, a, s', info)",
            f"one of {signature}",
        ) from None


def _read(value: Any, most: float, k: int, n: int, step: int) -> float:
    where = f"step {step}" if n == 1 else f"step {step}, channel {k}"
    expected = f"a cost in [0, {most:g}]"
    try:
        number = float(np.asarray(value, dtype=np.float64).reshape(()))
    except (TypeError, ValueError):
        raise AssumptionError(
            f"cost: expected {expected}, found {value!r} at {where}"
        ) from None
    if not (math.isfinite(number) and 0.0 <= number <= most):
        raise AssumptionError(
            f"cost: expected {expected}, found {number:.10g} at {where}"
        )
    return number
