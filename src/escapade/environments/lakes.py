"""Ice and cliffs: the two slippery grids of Gymnasium, as lives without end.

A move goes as meant with probability ``success_rate`` and else, evenly, to either side;
whoever would leave the grid stays.  Breaking in, or falling off, costs 1 and leads back
to the start, and so does the goal, which earns 1.  (Gymnasium's cliff charges a reward
of −1 a step and −100 a fall; in a life without end the first is the same everywhere,
and the second is what the budget is for.)

An agent is told the map: where ice could break and where not, where the goal is, and
that nothing is earned elsewhere.  It is also told what Gymnasium's documentation says,
that a move slips with a known probability, to one side as often as to the other; or,
with ``doubt``, that it does so with a probability within a share of the true one.  How
slippery it then is, pair by pair, and what the goal earns, it finds out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from escapade.environments.telling import costs_of, tell
from escapade.environments.world import World
from escapade.errors import refusal
from escapade.knowledge.knowledge import Knowledge
from escapade.model.arguments import read_number
from escapade.model.cmdp import CMDP
from escapade.typing import BoolArray, FloatArray, IntArray
from escapade.uncertainty.action_models import ActionModels
from escapade.uncertainty.action_models_description import ActionModel, Failures

__all__ = ["cliff_walk", "frozen_lake"]

_LAKES = {
    4: ("SFFF", "FHFH", "FFFH", "HFFG"),
    8: (
        "SFFFFFFF",
        "FFFFFFFF",
        "FFFHFFFF",
        "FFFFFHFF",
        "FFFHFFFF",
        "FHHFFFHF",
        "FHFFHFHF",
        "FFFHFFFG",
    ),
}
_CLIFF = ("F" * 12, "F" * 12, "F" * 12, "S" + "H" * 10 + "G")
_MOVES = {
    "lake": (("left", 0, -1), ("down", 1, 0), ("right", 0, 1), ("up", -1, 0)),
    "cliff": (("up", -1, 0), ("right", 0, 1), ("down", 1, 0), ("left", 0, -1)),
}
_THIRD = 1.0 / 3.0
_BUDGETS = {4: 0.9, 8: 0.2}


def frozen_lake(
    size: int = 4,
    *,
    success_rate: float = _THIRD,
    doubt: float = 0.0,
    discount: float = 0.995,
    budget: float | None = None,
) -> World:
    """Return the lake of Gymnasium's FrozenLake: a hole costs 1.

    Parameters
    ----------
    size
        4 or 8.
    success_rate
        Probability that a move goes as meant.
    doubt
        By which share of it the probability of a slip may be off, as far as is told.
    discount
        Of the problem.
    budget
        By default .9 on the small lake and .2 on the large one; both bind.

    Examples
    --------
    >>> import escapade as ep
    >>> ep.environments.frozen_lake()
    World('frozen-lake', 16 states, 4 actions, 64 pairs, 1 cost, discount 0.995, ...)
    """
    if size not in _LAKES:
        raise refusal("size", "4 or 8", size)
    return _world(
        "frozen-lake",
        "Cross a frozen lake to the goal; ice breaks at holes.",
        _Grid.of(_LAKES[size], "lake"),
        success_rate,
        doubt,
        discount,
        _BUDGETS[size] if budget is None else budget,
    )


def cliff_walk(
    *,
    success_rate: float = _THIRD,
    doubt: float = 0.0,
    discount: float = 0.98,
    budget: float = 0.5,
) -> World:
    """Return the cliff of Gymnasium's CliffWalkingSlippery: a fall costs 1.

    Parameters
    ----------
    success_rate
        Probability that a move goes as meant.
    doubt
        By which share of it the probability of a slip may be off, as far as is told.
    discount, budget
        Of the problem.

    Examples
    --------
    >>> import escapade as ep
    >>> ep.environments.cliff_walk()
    World('cliff-walk', 48 states, 4 actions, 192 pairs, 1 cost, discount 0.98, ...)
    """
    return _world(
        "cliff-walk",
        "Walk along a slippery cliff to the goal.",
        _Grid.of(_CLIFF, "cliff"),
        success_rate,
        doubt,
        discount,
        budget,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Grid:
    """Where moves lead on a map, before anybody is sent back to the start.

    ``targets`` is ``[S, 3, A]``: as meant, and to either side.
    """

    letters: tuple[str, ...]
    action_names: tuple[str, ...]
    targets: IntArray

    @classmethod
    def of(cls, rows: Sequence[str], moves: str) -> _Grid:
        height, width = len(rows), len(rows[0])
        row, column = np.divmod(np.arange(height * width), width)
        ahead = np.empty((height * width, 4), dtype=np.int64)
        for a, (_, down, right) in enumerate(_MOVES[moves]):
            to_row = np.clip(row + down, 0, height - 1)
            ahead[:, a] = to_row * width + np.clip(column + right, 0, width - 1)
        # directions stand in a circle, so the sides of one are its neighbours
        targets = np.stack(
            [ahead, ahead[:, [3, 0, 1, 2]], ahead[:, [1, 2, 3, 0]]], axis=1
        )
        names = tuple(name for name, _, _ in _MOVES[moves])
        return cls(letters=tuple("".join(rows)), action_names=names, targets=targets)

    @property
    def n_states(self) -> int:
        return len(self.letters)

    def is_letter(self, letter: str) -> BoolArray:
        return np.array([found == letter for found in self.letters])

    @property
    def start(self) -> int:
        return self.letters.index("S")

    @property
    def returned(self) -> IntArray:
        """Where moves lead in a life without end, ``[S, 3, A]``."""
        over = self.is_letter("H") | self.is_letter("G")
        led: IntArray = np.where(over[self.targets], self.start, self.targets)
        led[over] = self.start  # nobody stands there
        return led

    @property
    def harm(self) -> BoolArray:
        """Which moves end in a hole, ``[S, 3, A]``."""
        harm: BoolArray = self.is_letter("H")[self.targets]
        harm[self.is_letter("H") | self.is_letter("G")] = False
        return harm


def _world(
    name: str,
    description: str,
    grid: _Grid,
    success_rate: float,
    doubt: float,
    discount: float,
    budget: float,
) -> World:
    success = read_number("success_rate", success_rate)
    unsure = read_number("doubt", doubt)
    for argument, number in (("success_rate", success), ("doubt", unsure)):
        if not 0.0 <= number <= 1.0:
            raise refusal(argument, "a number in [0, 1]", number)
    slips = np.array([success, 0.5 * (1.0 - success), 0.5 * (1.0 - success)])
    n = grid.n_states
    led, harm = grid.returned, grid.harm
    earns = grid.is_letter("G")[grid.targets]
    earns[grid.is_letter("H") | grid.is_letter("G")] = False
    rows = np.zeros((n, 4, n))
    given = np.zeros((n, 4, n))
    for way, chance in enumerate(slips):
        place = (np.arange(n)[:, None], np.arange(4), led[:, way])
        np.add.at(rows, place, chance)
        np.add.at(given, place, chance * harm[:, way])
    width = len(_CLIFF[0]) if name == "cliff-walk" else int(np.sqrt(n))
    row, column = np.divmod(np.arange(n), width)
    cmdp = CMDP(
        rows,
        (slips[:, None] * earns).sum(axis=1),
        np.minimum((slips[:, None] * harm).sum(axis=1), 1.0),
        discount=discount,
        budget=budget,
        start=grid.start,
        reward_max=1.0,
        cost_max=1.0,
        action_names=grid.action_names,
        coordinates=np.column_stack([column, -row]).astype(np.float64),
    )
    return World(
        name=name,
        description=description,
        cmdp=cmdp,
        reward_noise="bernoulli",
        cost_noise="bernoulli",
        cost_given_next=_given_next(cmdp, given),
        told=partial(_told, cmdp, grid, 1.0 - success, unsure),
    )


def _given_next(cmdp: CMDP, harm: FloatArray) -> FloatArray:
    """Return the chance of harm given where a step led, one an entry, ``(1, nnz)``."""
    pair = np.repeat(np.arange(cmdp.n_pairs), np.diff(cmdp.row_ptr))
    place = (cmdp.pair_state[pair], cmdp.pair_action[pair], cmdp.successor)
    chance: FloatArray = harm[place] / cmdp.probability
    return np.clip(chance, 0.0, 1.0)[np.newaxis]


def _told(cmdp: CMDP, grid: _Grid, slip: float, doubt: float) -> Knowledge:
    """Return the map, and how often a move slips, or within which bounds."""
    n = grid.n_states
    rewards = np.zeros((n, 4))
    rewards[grid.is_letter("G")[grid.targets].any(axis=1)] = np.nan
    if doubt == 0.0:
        return tell(
            cmdp,
            known_rows=cmdp.transition_matrix,
            costs=costs_of(cmdp),
            rewards=rewards,
        )
    led, harm = grid.returned, grid.harm
    around = np.zeros((n, 4, n), dtype=np.bool_)
    for way in (1, 2):
        around[np.arange(n)[:, None], np.arange(4), led[:, way]] = True
    models = ActionModels(
        cmdp,
        {
            "moves": ActionModel(
                typical=led[:, 0],
                cost=harm[:, 0].astype(np.float64),
                missed_cost=harm[:, 1:].mean(axis=1),
            )
        },
        failures=Failures(
            around=around.reshape(-1, n),
            rate=(slip * (1.0 - doubt), min(slip * (1.0 + doubt), 1.0)),
            law="uniform",
        ),
    )
    return tell(cmdp, models=models, rewards=rewards, known_states=np.arange(n))
