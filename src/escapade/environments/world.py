"""A world: a problem whose truth we hold, the environment over it, and what is known.

Tests, audits and comparisons need both sides of a problem: the true model, to judge by,
and an environment, to live in.  Where the best value is known it stands here with its
source, so that a solver can be held to it; elsewhere it is computed when first asked
for, and kept.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from escapade.environments.noise import Noise, read_noise
from escapade.errors import refusal
from escapade.model.cmdp import CMDP
from escapade.typing import FloatArray

if TYPE_CHECKING:
    from escapade.environments.cmdp_env import CMDPEnv
    from escapade.knowledge.knowledge import Knowledge

__all__ = ["World"]

_COMPUTED = "computed by escapade.solve when asked for"


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class World:
    """A problem with everything that is known about it.

    Attributes
    ----------
    name
        A short name; :func:`escapade.environments.make` finds the shipped worlds by it.
    description
        One sentence.
    cmdp
        The true model.
    known_optimum
        The best value of ``cmdp`` from its start within its budgets, where it is known
        beforehand; ``None`` where it has to be computed.
    optimum_source
        How the optimum is known.
    reward_noise, cost_noise
        Laws of the samples in ``env``.
    cost_given_next
        Mean costs given the next state as well, one an entry of the transitions,
        ``(K, nnz)``; ``None`` where the next state says nothing about the cost.
    average_optimum
        The best long-run average reward a step, in the units of ``cmdp``, with the
        costs a step held to ``(1 − discount) · budget``; if known.
    value_scale, value_offset
        ``value_scale · V + value_offset`` turns a value of ``cmdp`` into the units in
        which the problem was first stated.
    told
        Builds :attr:`knowledge`; ``None`` where nobody has said what may be assumed.
    """

    name: str
    description: str
    cmdp: CMDP
    known_optimum: float | None = None
    optimum_source: str = ""
    reward_noise: Noise = "deterministic"
    cost_noise: Noise = "deterministic"
    cost_given_next: FloatArray | None = None
    average_optimum: float | None = None
    value_scale: float = 1.0
    value_offset: float = 0.0
    told: Callable[[], Knowledge] | None = None

    def __post_init__(self) -> None:
        if self.told is not None and not callable(self.told):
            kind = type(self.told).__name__
            raise refusal("told", "a function that returns Knowledge", f"a {kind}")
        read_noise("reward_noise", self.reward_noise)
        read_noise("cost_noise", self.cost_noise)
        if self.known_optimum is None:
            object.__setattr__(self, "optimum_source", _COMPUTED)
        elif not self.optimum_source:
            raise refusal("optimum_source", "words that say how it is known", "none")

    @cached_property
    def optimum(self) -> float:
        """The best value of ``cmdp`` from its start within its budgets.

        Known, or computed by :func:`escapade.solve` on first use, which may take long
        for a large problem; NaN if no policy keeps the budgets.
        """
        if self.known_optimum is not None:
            return self.known_optimum
        from escapade.planning.solve import solve

        return solve(self.cmdp).value

    @cached_property
    def knowledge(self) -> Knowledge:
        """What an agent is told of this world: assumptions, and a log if there is one.

        :mod:`escapade.environments.knowledge_of` states them, world by world.
        """
        if self.told is None:
            raise refusal(
                "knowledge",
                "a world that says what an agent may assume",
                f"{self.name!r}, which does not; build an escapade.Knowledge",
            )
        from escapade.environments.telling import check_told

        knowledge = self.told()
        check_told(self.cmdp, knowledge)
        return knowledge

    @cached_property
    def env(self) -> CMDPEnv:
        """The Gymnasium environment of this world, made on first use and then kept."""
        return self.make_env()

    def make_env(self, *, render_mode: str | None = None) -> CMDPEnv:
        """Return a new environment of this world."""
        from escapade.environments.cmdp_env import CMDPEnv

        return CMDPEnv(
            self.cmdp,
            reward_noise=self.reward_noise,
            cost_noise=self.cost_noise,
            cost_given_next=self.cost_given_next,
            render_mode=render_mode,
        )

    def raw_value(self, value: float) -> float:
        """Return a value of ``cmdp`` in the units of the problem as first stated."""
        return self.value_scale * value + self.value_offset

    @property
    def raw_optimum(self) -> float:
        """The optimum in the units of the problem as first stated."""
        return self.raw_value(self.optimum)

    @property
    def raw_average_optimum(self) -> float | None:
        """The best average reward a step as first stated, if known."""
        if self.average_optimum is None:
            return None
        rate = 1.0 - self.cmdp.discount
        return self.value_scale * self.average_optimum + self.value_offset * rate

    def __repr__(self) -> str:
        return f"World({self.name!r}, {repr(self.cmdp)[len('CMDP(') :]}"
