"""The instances that every benchmark is run on: five actions, eight successors.

``garnet``
    eight successors anywhere, with random probabilities: it mixes in a few steps, and
    a backup reads memory all over the place;
``grid``
    a walk on a torus that mostly goes where it is meant to and otherwise somewhere
    next to where it was: it mixes slowly, and a backup reads memory nearby.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

import escapade as ep

N_ACTIONS = 5
N_SUCCESSORS = 8
SIZES = (1_000, 10_000, 100_000)
KINDS = ("garnet", "grid")
_SHAPES = {
    1_000: (25, 40),
    2_500: (50, 50),
    10_000: (100, 100),
    25_000: (125, 200),
    100_000: (250, 400),
    1_000_000: (1_000, 1_000),
}
_BLOCK = [(dy, dx) for dy in (-1, 0, 1) for dx in (-1, 0, 1)]
_MOVES = [(0, 0), (-1, 0), (0, 1), (1, 0), (0, -1)]
_AS_MEANT = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """A problem as plain arrays, for any library to read.

    Attributes
    ----------
    kind, n_states
        Which instance it is.
    transitions
        ``(S * A, S)`` sparse; row ``s * A + a``.
    reward, cost
        ``(S, A)`` in [0, 1].
    """

    kind: str
    n_states: int
    transitions: sp.csr_array
    reward: np.ndarray
    cost: np.ndarray

    def cmdp(self, *, discount: float, budget: float = 1.0) -> ep.CMDP:
        """Return the problem, checked."""
        return ep.CMDP(
            self.transitions, self.reward, self.cost, discount=discount, budget=budget
        )


def make(kind: str, n_states: int, *, seed: int = 0) -> Instance:
    """Return an instance; the same one for the same seed."""
    rng = np.random.default_rng([seed, n_states])
    if kind == "garnet":
        successor, probability = _garnet(n_states, rng)
    elif kind == "grid":
        successor, probability = _grid(*_SHAPES[n_states])
    else:
        raise ValueError(f"kind: expected one of {KINDS}, found {kind!r}")
    rows = n_states * N_ACTIONS
    order = np.argsort(successor, axis=1)
    transitions = sp.csr_array(
        (
            np.take_along_axis(probability, order, axis=1).ravel(),
            np.take_along_axis(successor, order, axis=1).ravel().astype(np.int32),
            np.arange(rows + 1, dtype=np.int32) * N_SUCCESSORS,
        ),
        shape=(rows, n_states),
    )
    return Instance(
        kind=kind,
        n_states=n_states,
        transitions=transitions,
        reward=rng.random((n_states, N_ACTIONS)),
        cost=rng.random((n_states, N_ACTIONS)),
    )


def _garnet(n_states: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    rows = n_states * N_ACTIONS
    successor = rng.integers(n_states, size=(rows, N_SUCCESSORS))
    while True:  # draw again where a successor came twice
        ordered = np.sort(successor, axis=1)
        twice = (np.diff(ordered, axis=1) == 0).any(axis=1)
        if not twice.any():
            break
        successor[twice] = rng.integers(n_states, size=(int(twice.sum()), N_SUCCESSORS))
    weights = rng.exponential(size=(rows, N_SUCCESSORS))
    return successor, weights / weights.sum(axis=1, keepdims=True)


def _grid(height: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    y, x = np.divmod(np.arange(height * width), width)
    successor = np.empty((height * width, N_ACTIONS, N_SUCCESSORS), dtype=np.int64)
    probability = np.full(successor.shape, (1.0 - _AS_MEANT) / (N_SUCCESSORS - 1))
    probability[:, :, 0] = _AS_MEANT
    for action, meant in enumerate(_MOVES):
        # where it is meant to go first, then seven of the eight other cells around
        others = [step for step in _BLOCK if step != meant][: N_SUCCESSORS - 1]
        for place, (dy, dx) in enumerate([meant, *others]):
            successor[:, action, place] = (y + dy) % height * width + (x + dx) % width
    rows = height * width * N_ACTIONS
    return successor.reshape(rows, -1), probability.reshape(rows, -1)
