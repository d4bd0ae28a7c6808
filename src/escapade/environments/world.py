"""A world: a problem whose truth we hold, the environment over it, and what is known.

Tests, audits and comparisons need both sides of a problem: the true model, to judge by,
and an environment, to live in.  Where the best value is known it stands here with its
source, so that a solver can be held to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from escapade.environments.noise import Noise, read_noise
from escapade.errors import refusal
from escapade.model.cmdp import CMDP

if TYPE_CHECKING:
    from escapade.environments.cmdp_env import CMDPEnv

__all__ = ["World"]


@dataclass(frozen=True, kw_only=True, repr=False)
class World:
    """A problem with everything that is known about it.

    Attributes
    ----------
    name
        The name by which :func:`escapade.environments.make` finds it.
    description
        One sentence.
    cmdp
        The true model.
    optimum
        The best value of ``cmdp`` from its start within its budgets, if known.
    optimum_source
        How ``optimum`` is known, or why it is not.
    reward_noise, cost_noise
        Laws of the samples in ``env``.
    average_optimum
        The best long-run average reward a step, in the units of ``cmdp``, with the
        costs a step held to ``(1 − discount) · budget``; if known.
    value_scale, value_offset
        ``value_scale · V + value_offset`` turns a value of ``cmdp`` into the units in
        which the problem was first stated.
    """

    name: str
    description: str
    cmdp: CMDP
    optimum: float | None
    optimum_source: str
    reward_noise: Noise = "deterministic"
    cost_noise: Noise = "deterministic"
    average_optimum: float | None = None
    value_scale: float = 1.0
    value_offset: float = 0.0

    def __post_init__(self) -> None:
        read_noise("reward_noise", self.reward_noise)
        read_noise("cost_noise", self.cost_noise)
        if not self.optimum_source:
            raise refusal("optimum_source", "words that say how it is known", "none")

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
            render_mode=render_mode,
        )

    def raw_value(self, value: float) -> float:
        """Return a value of ``cmdp`` in the units of the problem as first stated."""
        return self.value_scale * value + self.value_offset

    @property
    def raw_optimum(self) -> float | None:
        """The optimum in the units of the problem as first stated."""
        return None if self.optimum is None else self.raw_value(self.optimum)

    def __repr__(self) -> str:
        best = "unknown" if self.optimum is None else f"{self.optimum:.10g}"
        return f"World({self.name!r}, {self.cmdp!r}, optimum {best})"
