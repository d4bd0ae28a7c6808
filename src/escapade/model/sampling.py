"""Sampling from a CMDP: one step at a time, or a whole path under a policy.

Rewards and costs are not drawn here: a CMDP holds their means.  Environments add
noise to them; see :mod:`escapade.environments`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from escapade.errors import refusal
from escapade.model.arguments import read_count, read_generator
from escapade.model.cmdp import CMDP
from escapade.model.policy import Policy
from escapade.typing import FloatArray, IndexArray, Seed

__all__ = ["Rollout", "Sampler"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollout:
    """A path through a CMDP, with the mean rewards and costs along it.

    ``states`` is ``(T + 1,)``, ``actions`` and ``rewards`` are ``(T,)``, ``costs`` is
    ``(T, K)``.
    """

    states: IndexArray
    actions: IndexArray
    rewards: FloatArray
    costs: FloatArray


class Sampler:
    """Draws next states of a CMDP from its cumulative distributions.

    Examples
    --------
    >>> import numpy as np
    >>> import escapade as ep
    >>> coin = ep.CMDP(
    ...     [[[0.5, 0.5]], [[0.5, 0.5]]], [[1.0], [0.0]], [[0.0], [0.0]],
    ...     discount=0.9, budget=0.0,
    ... )
    >>> path = ep.model.Sampler(coin).rollout(ep.Policy.uniform(coin), 4, seed=1)
    >>> path.states.tolist()
    [0, 0, 0, 1, 1]
    """

    __slots__ = ("_cumulative", "_draw", "_start", "cmdp")

    def __init__(self, cmdp: CMDP) -> None:
        from escapade.kernels.sampling import draw, fill_cumulative  # not for all

        self.cmdp = cmdp
        self._draw = draw
        self._cumulative = np.empty_like(cmdp.probability)
        fill_cumulative(cmdp.row_ptr, cmdp.probability, self._cumulative)
        self._start = np.cumsum(cmdp.start)
        self._start[np.flatnonzero(cmdp.start)[-1] :] = 1.0  # no draw falls behind it

    def next_state(self, state: int, action: int, rng: np.random.Generator) -> int:
        """Draw the state that follows ``action`` in ``state``; uses one number."""
        pair = self.cmdp.pair(state, action)
        entry = self._draw(self.cmdp.row_ptr, self._cumulative, pair, rng.random())
        return int(self.cmdp.successor[entry])

    def start_state(self, rng: np.random.Generator) -> int:
        """Draw a state from the start distribution; uses one number."""
        return int(np.searchsorted(self._start, rng.random(), side="right"))

    def rollout(
        self, policy: Policy, steps: int, *, seed: Seed = None, start: int | None = None
    ) -> Rollout:
        """Follow ``policy`` for ``steps`` steps, from ``start`` or a drawn state."""
        from escapade.kernels.sampling import fill_cumulative, rollout

        steps = read_count("steps", steps)
        cmdp = self.cmdp
        rng = read_generator("seed", seed)
        if start is None:
            state = self.start_state(rng)
        else:
            state = read_count("start", start)
            if state >= cmdp.n_states:
                raise refusal("start", f"a state in 0..{cmdp.n_states - 1}", start)
        weights = policy.pair_weights(cmdp)
        action_cumulative = np.empty_like(weights)
        fill_cumulative(cmdp.state_ptr, weights, action_cumulative)
        states = np.empty(steps + 1, dtype=np.int32)
        pairs = np.empty(steps, dtype=np.int32)
        rollout(
            cmdp.state_ptr,
            action_cumulative,
            cmdp.row_ptr,
            cmdp.successor,
            self._cumulative,
            state,
            rng,
            states,
            pairs,
        )
        return Rollout(
            states=states,
            actions=cmdp.pair_action[pairs],
            rewards=cmdp.reward[pairs],
            costs=cmdp.cost[:, pairs].T,
        )
