"""MiniGrid's worlds with the whole state seen: place, direction, and what is carried.

An agent in MiniGrid sees a few cells ahead of it, which is no state.  Here one layout
is fixed by its seed, every state that can be reached in it is enumerated by stepping
the environment itself, and the agent is told the number of the state it is in.

- A step that ends on lava (or another cell that is named) costs 1.
- MiniGrid pays ``1 − 0.9 · steps / limit`` at the goal, which depends on when it is
  reached; here the goal pays 1, and the discount sees to the hurry.  The reward as it
  was paid stands in ``info["paid"]``.
- The limit on steps is taken off, and the end of an episode leads to the start of the
  same layout.

Worlds whose steps are drawn at random (obstacles that move) are refused.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, TypeAlias

import gymnasium
import numpy as np

from escapade.environments.brought import Brought, OnDone
from escapade.environments.gymnasium_adapter import from_gymnasium
from escapade.errors import AssumptionError, MissingExtraError, refusal
from escapade.typing import ArrayLike

__all__ = ["from_minigrid"]

_DIRECTIONS = ("east", "south", "west", "north")
_NO_LIMIT = 2**62

Key: TypeAlias = tuple[Any, ...]


class _Whole(gymnasium.Env[int, int]):
    """A MiniGrid world whose observation is the number of its state."""

    metadata: dict[str, Any]

    def __init__(
        self,
        inner: Any,
        *,
        layout: int,
        actions: Sequence[str] | None,
        costly: Sequence[str],
        max_states: int,
    ) -> None:
        self._inner = inner
        self._layout = layout
        self._costly = frozenset(costly)
        inner.max_steps = _NO_LIMIT
        inner.reset(seed=layout)
        known = {action.name: int(action) for action in inner.actions}
        chosen = list(known) if actions is None else list(actions)
        for name in chosen:
            if name not in known:
                raise refusal("actions", f"names among {list(known)}", repr(name))
        self.action_names = chosen
        self._action = [known[name] for name in chosen]
        self.keys: list[Key] = []
        self.number: dict[Key, int] = {}
        self.P: dict[int, dict[int, list[tuple[float, int, float, bool]]]] = {}
        self._paid: set[tuple[int, int]] = set()
        self._enumerate(max_states)
        self.observation_space: gymnasium.Space[Any] = gymnasium.spaces.Discrete(
            len(self.keys)
        )
        self.action_space: gymnasium.Space[Any] = gymnasium.spaces.Discrete(
            len(self._action)
        )
        self.initial_state_distrib = np.eye(1, len(self.keys))[0]
        self.metadata = dict(inner.metadata)
        self.render_mode = inner.render_mode
        self.spec = inner.spec

    # -- enumeration -------------------------------------------------------------------

    def _enumerate(self, max_states: int) -> None:
        """Step from every state by every action, beginning at the start."""
        inner = self._inner
        waiting = [(self._see(), self._snapshot())]
        while waiting:
            here, place = waiting.pop()
            lines: dict[int, list[tuple[float, int, float, bool]]] = {}
            ended = self.keys[here][3]
            for a, action in enumerate(self._action):
                if ended:  # as in Gymnasium's tables, ends lead nowhere
                    lines[a] = [(1.0, here, 0.0, True)]
                    continue
                self._restore(place)
                before = inner.np_random.bit_generator.state
                _, reward, done, _, _ = inner.step(action)
                if inner.np_random.bit_generator.state != before:
                    raise refusal(
                        "env",
                        "a world whose steps are certain",
                        "one that draws them at random",
                        f"state {here}, action {self.action_names[a]!r}",
                    )
                size = len(self.keys)
                after = self._see(ended=bool(done))
                if len(self.keys) > size:
                    waiting.append((after, self._snapshot()))
                if len(self.keys) > max_states:
                    raise refusal("env", f"at most {max_states} states", "more")
                if self._is_costly():
                    self._paid.add((here, a))
                lines[a] = [(1.0, after, float(reward > 0.0), bool(done))]
            self.P[here] = lines
        inner.reset(seed=self._layout)

    def _see(self, *, ended: bool = False) -> int:
        """Return the number of the state that the world is in, a new one if need be."""
        key = self._key(ended=ended)
        if key not in self.number:
            self.number[key] = len(self.keys)
            self.keys.append(key)
        return self.number[key]

    def _key(self, *, ended: bool) -> Key:
        inner = self._inner
        held = inner.carrying
        x, y = (int(place) for place in inner.agent_pos)
        return (
            (x, y),
            int(inner.agent_dir),
            None if held is None else tuple(int(code) for code in held.encode()),
            ended,
            inner.grid.encode().tobytes(),
        )

    def _snapshot(self) -> tuple[Any, ...]:
        inner = self._inner
        parts = (inner.grid, inner.agent_pos, inner.agent_dir, inner.carrying)
        return copy.deepcopy(parts)

    def _restore(self, place: tuple[Any, ...]) -> None:
        inner = self._inner
        (
            inner.grid,
            inner.agent_pos,
            inner.agent_dir,
            inner.carrying,
        ) = copy.deepcopy(place)

    def _is_costly(self) -> bool:
        cell = self._inner.grid.get(*self._inner.agent_pos)
        return cell is not None and cell.type in self._costly

    # -- life --------------------------------------------------------------------------

    def paid(self, state: int, action: int, after: int, info: Any) -> float:  # noqa: ARG002
        """Return the cost of a step."""
        return float((state, action) in self._paid)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[int, dict[str, Any]]:
        """Go back to the start of the same layout."""
        super().reset(seed=seed)
        self._inner.reset(seed=self._layout, options=options)
        return self._look(ended=False), {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        """Take an action."""
        _, reward, done, _, info = self._inner.step(self._action[action])
        earned = float(reward > 0.0)
        after = self._look(ended=bool(done))
        return after, earned, bool(done), False, {**info, "paid": float(reward)}

    def _look(self, *, ended: bool) -> int:
        key = self._key(ended=ended)
        if key not in self.number:
            raise AssumptionError(
                f"state: expected one of the {len(self.keys)} that were enumerated, "
                f"found another at {key[0]}, facing {_DIRECTIONS[key[1]]}"
            )
        return self.number[key]

    def render(self) -> Any:
        """Return MiniGrid's own picture."""
        return self._inner.render()

    # -- names -------------------------------------------------------------------------

    def names(self) -> list[str]:
        """Return a name for each state."""
        names = []
        for number, ((x, y), direction, held, ended, _) in enumerate(self.keys):
            name = f"({x}, {y}) {_DIRECTIONS[direction]}"
            if held is not None:
                name += ", carrying"
            if ended:
                name += ", ended"
            names.append(f"{name} #{number}" if name in names else name)
        return names

    def coordinates(self) -> np.ndarray:
        """Return where each state is, y upwards."""
        return np.array([(key[0][0], -key[0][1]) for key in self.keys], dtype=float)


def from_minigrid(
    env: gymnasium.Env[Any, Any] | str,
    *,
    discount: float,
    budget: ArrayLike,
    seed: int = 0,
    actions: Sequence[str] | None = None,
    costly: Sequence[str] = ("lava",),
    on_done: OnDone = "reset",
    max_states: int = 20_000,
    **told: Any,
) -> Brought:
    """Bring one layout of a MiniGrid world in, every state of it numbered.

    Parameters
    ----------
    env
        The environment, or its id.
    discount, budget
        Of the problem that an agent is to solve.
    seed
        Which layout; resets during life do not change it.
    actions
        Names of the actions to keep, such as ``("left", "right", "forward")``; all of
        them by default.
    costly
        Types of cells that cost 1 to end a step on.
    on_done
        As in :func:`~escapade.environments.from_gymnasium`.
    max_states
        Number of states after which to refuse.
    told
        Keywords of :class:`escapade.Knowledge`.

    Raises
    ------
    MissingExtraError
        If MiniGrid is not installed.
    """
    try:
        import minigrid  # registers its worlds
        from minigrid.minigrid_env import MiniGridEnv
    except ImportError:
        raise MissingExtraError("minigrid", "minigrid") from None
    del minigrid
    made = gymnasium.make(env) if isinstance(env, str) else env
    inner = getattr(made, "unwrapped", None)
    if not isinstance(inner, MiniGridEnv):
        raise refusal("env", "a MiniGrid environment, or its id", type(env).__name__)
    whole = _Whole(
        inner, layout=seed, actions=actions, costly=costly, max_states=max_states
    )
    named = {
        "action_names": whole.action_names,
        **({} if on_done == "absorb" else _named(whole)),
        **told,
    }
    return from_gymnasium(
        whole,
        cost=whole.paid,
        on_done=on_done,
        discount=discount,
        budget=budget,
        reward_range=(0.0, 1.0),
        **named,
    )


def _named(whole: _Whole) -> dict[str, Any]:
    return {"state_names": whole.names(), "coordinates": whole.coordinates()}
