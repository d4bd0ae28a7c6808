"""Stationary policies: a distribution over the available actions in every state.

Optimal policies of a constrained problem randomise, so a policy is a matrix of
probabilities; a deterministic one is the special case with a single 1 in each row.
Policies that remember something are built on top of these by the planners that need
them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from escapade.errors import refusal
from escapade.model.arguments import MOST_INDEX, read_count, read_numbers
from escapade.model.cmdp import CMDP
from escapade.model.layout import read_array
from escapade.typing import ArrayLike, FloatArray, IntArray

__all__ = ["Policy"]

_TOLERANCE = 1e-8


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class Policy:
    """A stationary policy.

    Parameters
    ----------
    probabilities
        ``(S, A)``; row ``s`` is the distribution over actions in state ``s``.

    Examples
    --------
    >>> import escapade as ep
    >>> ep.Policy([[0.5, 0.5], [1.0, 0.0]]).is_deterministic
    False
    >>> ep.Policy.deterministic([1, 0], n_actions=2).probabilities
    array([[0., 1.],
           [1., 0.]])
    """

    probabilities: FloatArray

    def __init__(self, probabilities: ArrayLike) -> None:
        matrix = read_numbers("probabilities", probabilities)
        if matrix.ndim != 2 or 0 in matrix.shape:
            raise refusal("probabilities", "shape (S, A)", f"shape {matrix.shape}")
        bad = ~(np.isfinite(matrix) & (matrix >= 0))
        if bad.any():
            state, action = np.argwhere(bad)[0]
            raise refusal(
                "probabilities",
                "finite numbers of at least 0",
                float(matrix[state, action]),
                f"state {state}, action {action}",
            )
        sums = matrix.sum(axis=1)
        off = np.abs(sums - 1.0) > _TOLERANCE
        if off.any():
            state = int(np.argmax(off))
            raise refusal(
                "probabilities",
                "rows that sum to 1",
                f"a sum of {sums[state]:.10g}",
                f"state {state}",
            )
        uneven = np.abs(sums - 1.0) > 1e-12
        matrix[uneven] /= sums[uneven, np.newaxis]
        matrix.flags.writeable = False
        object.__setattr__(self, "probabilities", matrix)

    @classmethod
    def deterministic(cls, actions: ArrayLike, n_actions: int) -> Policy:
        """Return the policy that takes ``actions[s]`` in state ``s``."""
        chosen = read_array("actions", "one action a state, as integers", actions)
        n_actions = read_count("n_actions", n_actions, least=1, most=MOST_INDEX)
        if chosen.ndim != 1 or chosen.dtype.kind not in "iu" or chosen.size == 0:
            raise refusal(
                "actions",
                "one action a state, as integers",
                f"dtype {chosen.dtype}, shape {chosen.shape}",
            )
        out = (chosen < 0) | (chosen >= n_actions)
        if out.any():
            state = int(np.argmax(out))
            raise refusal(
                "actions",
                f"actions in 0..{n_actions - 1}",
                int(chosen[state]),
                f"state {state}",
            )
        matrix = np.zeros((chosen.size, n_actions))
        matrix[np.arange(chosen.size), chosen] = 1.0
        return cls(matrix)

    @classmethod
    def uniform(cls, cmdp: CMDP) -> Policy:
        """Return the policy that draws evenly among the available actions."""
        mask = cmdp.available
        return cls(mask / mask.sum(axis=1, keepdims=True))

    @classmethod
    def from_pair_weights(cls, cmdp: CMDP, weights: FloatArray) -> Policy:
        """Return the policy with these probabilities, one an available pair."""
        numbers = read_numbers("weights", weights)
        if numbers.shape != (cmdp.n_pairs,):
            raise refusal(
                "weights", f"shape ({cmdp.n_pairs},)", f"shape {numbers.shape}"
            )
        matrix = np.zeros((cmdp.n_states, cmdp.n_actions))
        matrix[cmdp.pair_state, cmdp.pair_action] = numbers
        return cls(matrix)

    @property
    def n_states(self) -> int:
        """Number of states."""
        return int(self.probabilities.shape[0])

    @property
    def n_actions(self) -> int:
        """Number of actions."""
        return int(self.probabilities.shape[1])

    @property
    def actions(self) -> IntArray:
        """The likeliest action in each state (the first, among equals)."""
        best: IntArray = self.probabilities.argmax(axis=1)
        return best

    @property
    def is_deterministic(self) -> bool:
        """Whether every state has one action with probability 1."""
        return bool((self.probabilities.max(axis=1) == 1.0).all())

    def pair_weights(self, cmdp: CMDP) -> FloatArray:
        """Return the probability of each available pair of ``cmdp`` given its state.

        Refuses a policy of another shape, or one that plays an unavailable action.
        """
        shape = (cmdp.n_states, cmdp.n_actions)
        if self.probabilities.shape != shape:
            raise refusal(
                "policy", f"shape {shape}", f"shape {self.probabilities.shape}"
            )
        weights = self.probabilities[cmdp.pair_state, cmdp.pair_action]
        if cmdp.n_pairs < cmdp.n_states * cmdp.n_actions:
            stray = np.where(cmdp.available, 0.0, self.probabilities)
            if stray.any():
                state, action = np.argwhere(stray)[0]
                raise refusal(
                    "policy",
                    "probability 0 for unavailable actions",
                    float(stray[state, action]),
                    f"state {state}, action {action}",
                )
        return weights

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Policy):
            return NotImplemented
        return np.array_equal(self.probabilities, other.probabilities)

    def __hash__(self) -> int:
        return hash((self.probabilities.shape, self.probabilities.tobytes()))

    def __repr__(self) -> str:
        kind = "deterministic" if self.is_deterministic else "stochastic"
        return f"Policy({self.n_states} states, {self.n_actions} actions, {kind})"

    def __reduce__(self) -> tuple[type[Policy], tuple[FloatArray]]:
        return (Policy, (np.array(self.probabilities),))
