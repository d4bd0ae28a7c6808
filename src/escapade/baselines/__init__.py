"""What E⁴ is measured against, on the same loop and logs.

One algorithm a module.  All are agents in the sense of :class:`escapade.typing.Agent`,
take what they know as :class:`escapade.Knowledge` and a seed, and promise nothing; each
module says what its algorithm assumes, what it is for, and what it does with what it is
told.

==========================  ==========================================================
class                       what it does
==========================  ==========================================================
:class:`UniformRandom`      takes any action
:class:`E3`                 explores or exploits, and minds no costs
:class:`LagrangianQLearning`  model-free, with a price on costs
:class:`CUCRL`              overestimates rewards and costs
:class:`PSRL`               draws a model and does what is best in it
:class:`OracleLP`           is told the truth
==========================  ==========================================================
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from escapade.baselines.base import Baseline, Choice
from escapade.baselines.cucrl import CUCRL
from escapade.baselines.e3 import E3
from escapade.baselines.lagrangian_q import LagrangianQLearning
from escapade.baselines.oracle_lp import OracleLP
from escapade.baselines.psrl import PSRL
from escapade.baselines.uniform import UniformRandom
from escapade.errors import did_you_mean, refusal
from escapade.knowledge.knowledge import Knowledge

__all__ = [
    "CUCRL",
    "E3",
    "PSRL",
    "Baseline",
    "Choice",
    "LagrangianQLearning",
    "OracleLP",
    "UniformRandom",
    "make",
    "names",
]

_BASELINES: Mapping[str, Callable[..., Baseline]] = MappingProxyType(
    {
        "c-ucrl": CUCRL,
        "e3": E3,
        "lagrangian-q": LagrangianQLearning,
        "psrl": PSRL,
        "random": UniformRandom,
    }
)


def names() -> tuple[str, ...]:
    """Return the names of the baselines that learn, in alphabetical order.

    The oracle is not among them: it needs the truth, which knowledge does not hold.
    """
    return tuple(_BASELINES)


def make(name: str, knowledge: Knowledge, *, seed: int | None = 0) -> Baseline:
    """Return a baseline by name, with its usual settings.

    Examples
    --------
    >>> import escapade as ep
    >>> world = ep.environments.three_state_loop()
    >>> type(ep.baselines.make("psrl", world.knowledge)).__name__
    'PSRL'
    """
    if name not in _BASELINES:
        hint = did_you_mean(name, _BASELINES)
        raise refusal("name", f"one of {list(_BASELINES)}", f"{name!r}{hint}")
    return _BASELINES[name](knowledge, seed=seed)
