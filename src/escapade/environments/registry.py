"""Worlds by name, for the command line, for sweeps and for ``gymnasium.make``.

A name is written with hyphens, and the keywords of a world are those of the function
that builds it.  Every world can be made without any.  Gymnasium knows them, once this
package is imported, as ``escapade/WallCycle-v0`` and so on.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import gymnasium

from escapade import errors
from escapade.environments.battery import battery
from escapade.environments.cmdp_env import CMDPEnv
from escapade.environments.cycles import toll_cycle, wall_cycle
from escapade.environments.gamble import wandering_gamble
from escapade.environments.garnets import garnet
from escapade.environments.gridworlds import barrier_grid, moat_grid
from escapade.environments.inventory import inventory
from escapade.environments.lakes import cliff_walk, frozen_lake
from escapade.environments.lava import lava_gap
from escapade.environments.loop import three_state_loop
from escapade.environments.pendulum import pendulum
from escapade.environments.queueing import queue
from escapade.environments.world import World
from escapade.errors import refusal

__all__ = ["did_you_mean", "make", "names", "parameters"]

_WORLDS: Mapping[str, Callable[..., World]] = MappingProxyType(
    {
        "barrier-grid": barrier_grid,
        "battery": battery,
        "cliff-walk": cliff_walk,
        "frozen-lake": frozen_lake,
        "garnet": garnet,
        "inventory": inventory,
        "lava-gap": lava_gap,
        "moat-grid": moat_grid,
        "pendulum": pendulum,
        "queue": queue,
        "three-state-loop": three_state_loop,
        "toll-cycle": toll_cycle,
        "wall-cycle": wall_cycle,
        "wandering-gamble": wandering_gamble,
    }
)


def names() -> tuple[str, ...]:
    """Return the names of all worlds, in alphabetical order.

    Examples
    --------
    >>> import escapade as ep
    >>> ep.environments.names()[:3]
    ('barrier-grid', 'battery', 'cliff-walk')
    """
    return tuple(_WORLDS)


def parameters(name: str) -> dict[str, Any]:
    """Return what a world can be made with, and the defaults.

    Examples
    --------
    >>> import escapade as ep
    >>> ep.environments.parameters("wall-cycle")
    {'size': 10, 'failure': 0.05, 'discount': 0.99, 'budget': 10.0}
    """
    signature = inspect.signature(_builder(name))
    return {key: value.default for key, value in signature.parameters.items()}


def make(name: str, **keywords: Any) -> World:
    """Return the world with this name.

    Parameters
    ----------
    name
        One of :func:`names`.
    keywords
        Those of the function that builds it; see :func:`parameters`.

    Examples
    --------
    >>> import escapade as ep
    >>> ep.environments.make("wall-cycle", size=4)
    World('wall-cycle', 16 states, 5 actions, 80 pairs, 1 cost, discount 0.99, ...)
    """
    build = _builder(name)
    known = parameters(name)
    for key in keywords:
        if key not in known:
            raise refusal(
                "keywords", f"names among {list(known)}", repr(key), f"world {name!r}"
            )
    return build(**keywords)


def _builder(name: str) -> Callable[..., World]:
    if isinstance(name, str) and name in _WORLDS:
        return _WORLDS[name]
    raise refusal("name", f"one of {list(_WORLDS)}", f"{name!r}{did_you_mean(name)}")


def did_you_mean(name: str) -> str:
    """Return a question about the name that is nearest to a wrong one, if one is near.

    Examples
    --------
    >>> did_you_mean("wall_cycle")
    " (did you mean 'wall-cycle'?)"
    """
    return errors.did_you_mean(name, _WORLDS)


def _make_env(
    world: str, *, render_mode: str | None = None, **keywords: Any
) -> CMDPEnv:
    """Make an environment for ``gymnasium.make``."""
    return make(world, **keywords).make_env(render_mode=render_mode)


# Gymnasium looks at the creator for the render modes it may ask for.
_make_env.metadata = CMDPEnv.metadata  # type: ignore[attr-defined]


def _register() -> None:
    for name in _WORLDS:
        title = "".join(part.capitalize() for part in name.split("-"))
        gymnasium.register(
            id=f"escapade/{title}-v0",
            entry_point=f"{__name__}:_make_env",
            kwargs={"world": name},
        )


_register()
