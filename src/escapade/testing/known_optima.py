"""Small problems with known optima, on which a solver has to be right.

Each is there for one reason: a budget that binds, one that does not, one that no policy
can keep, two that can be kept apart but not together, one without any room to spare,
states with different actions, a start that is spread out, no look-ahead at all.  Their
optima are worked out by hand; the arithmetic stands beside each.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from escapade.model.cmdp import CMDP

__all__ = ["Instance", "instances"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """A problem and what is known about it.

    Attributes
    ----------
    name
        What it is called in messages.
    cmdp
        The problem.
    optimum
        The best value within the budgets; ``None`` if no policy keeps them.
    source
        How the optimum is known.
    """

    name: str
    cmdp: CMDP
    optimum: float | None
    source: str


def instances() -> tuple[Instance, ...]:
    """Return the instances, always the same ones in the same order."""
    return (
        *_one_state(),
        *_machines(),
        _no_look_ahead(),
        _nothing_to_earn(),
        _different_actions(),
        _spread_start(),
        _gate(),
    )


def _shop(reward: Any, cost: Any, *, discount: float, budget: Any) -> CMDP:
    """Return a problem with a single state, in which every action stays."""
    actions = len(reward)
    return CMDP(
        np.ones((1, actions, 1)),
        np.array([reward]),
        np.array(cost)[:, np.newaxis, :],
        discount=discount,
        budget=budget,
    )


def _one_state() -> list[Instance]:
    """Return fractional knapsacks: ``1 / (1 − γ)`` visits to share among actions."""
    return [
        Instance(
            name="a budget that binds",
            cmdp=_shop([1.0, 0.5], [[1.0, 0.0]], discount=0.5, budget=1.0),
            optimum=1.5,
            source="2 visits; 1 of them may cost: 1 + 0.5",
        ),
        Instance(
            name="a budget that does not bind",
            cmdp=_shop([1.0, 0.5], [[1.0, 0.0]], discount=0.5, budget=3.0),
            optimum=2.0,
            source="2 visits, all of which may cost",
        ),
        Instance(
            name="a budget of nothing",
            cmdp=_shop([1.0, 0.25], [[1.0, 0.0]], discount=0.75, budget=0.0),
            optimum=1.0,
            source="4 visits, none of which may cost: 4 / 4",
        ),
        Instance(
            name="a budget without room",
            cmdp=_shop([1.0, 0.5], [[1.0, 0.5]], discount=0.5, budget=1.0),
            optimum=1.0,
            source="2 visits at the least cost, 0.5 each",
        ),
        Instance(
            name="a budget out of reach",
            cmdp=_shop([1.0, 0.5], [[1.0, 0.5]], discount=0.5, budget=0.75),
            optimum=None,
            source="2 visits cost at least 1",
        ),
        Instance(
            name="two budgets that bind",
            cmdp=_shop(
                [1.0, 0.75, 0.0],
                [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]],
                discount=0.9,
                budget=[2.0, 4.0],
            ),
            optimum=5.0,
            source="10 visits: 2 at 1, 4 at 0.75, 4 at nothing",
        ),
        Instance(
            name="two budgets, each within reach but not both",
            cmdp=_shop(
                [1.0, 1.0], [[1.0, 0.0], [0.0, 1.0]], discount=0.9, budget=[4.0, 4.0]
            ),
            optimum=None,
            source="each of 10 visits costs 1 of one kind or the other",
        ),
    ]


def _machines() -> list[Instance]:
    """Return a machine that breaks with probability ½ when run hard.

    It works for 1 (hard) or ½ (gently); broken, it costs 1 and works again after one
    step.  Run hard it visits "works" x and "broken" y times, ``x = 1 + γ (x/2 + y)``
    and ``y = γ x/2``: at γ = ½, ``x = 8/5`` and ``y = 2/5``.
    """
    rows = [[[0.5, 0.5], [1.0, 0.0]], [[1.0, 0.0], [1.0, 0.0]]]
    machine = CMDP(
        rows,
        [[1.0, 0.5], [0.0, 0.0]],
        [[0.0, 0.0], [1.0, 1.0]],
        discount=0.5,
        budget=1.0,
        state_names=["works", "broken"],
        action_names=["hard", "gently"],
    )
    return [
        Instance(
            name="a machine run hard",
            cmdp=machine,
            optimum=1.6,
            source="x = 8/5 visits at 1, y = 2/5 of cost within 1",
        ),
        Instance(
            name="a machine run hard for a share of the time",
            cmdp=machine.replace(budget=0.2),
            optimum=1.3,
            source="y = γ h/2 = 0.2 gives h = 0.8 hard visits; 2 − h − y = 1 gentle",
        ),
        Instance(
            name="a machine that starts broken",
            cmdp=machine.replace(budget=0.5, start=1),
            optimum=None,
            source="the first step costs 1",
        ),
    ]


def _no_look_ahead() -> Instance:
    return Instance(
        name="no look-ahead",
        cmdp=CMDP(
            [[[0.0, 1.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]],
            [[1.0, 0.25], [1.0, 1.0]],
            [[1.0, 0.0], [1.0, 1.0]],
            discount=0.0,
            budget=0.5,
        ),
        optimum=0.625,
        source="one visit, half of it at 1 and half at 0.25",
    )


def _nothing_to_earn() -> Instance:
    return Instance(
        name="nothing to earn",
        cmdp=_shop([0.0, 0.0], [[1.0, 0.0]], discount=0.9, budget=1.0),
        optimum=0.0,
        source="no action pays",
    )


def _different_actions() -> Instance:
    """Return three states with one, two and three actions; only the last one costs."""
    rows = np.zeros((3, 3, 3))
    rows[0, 1, 1] = 1.0
    rows[1, 0, 2] = rows[1, 2, 0] = 1.0
    rows[2, :, 2] = 1.0
    reward = np.array([[9.0, 0.0, 9.0], [0.5, 9.0, 1.0], [0.25, 0.5, 1.0]])
    cost = np.array([[9.0, 0.0, 9.0], [0.0, 9.0, 0.0], [0.0, 0.25, 1.0]])
    available = np.array([[False, True, False], [True, False, True], [True] * 3])
    return Instance(
        name="different actions in different states",
        cmdp=CMDP(
            rows,
            np.where(available, reward, 0.0),
            np.where(available, cost, 0.0),
            discount=0.5,
            budget=0.25,
            available=available,
        ),
        # To and fro between 0 and 1 earns 1 at every second step: γ / (1 − γ²) = 2/3.
        # On to 2 at the first chance, and working hard there, earns γ/2 + 2 γ² = 3/4 at
        # the cost 2 γ² = 1/2; the budget allows that with probability ½.
        optimum=17.0 / 24.0,
        source="half of the time 2/3 at no cost, half of the time 3/4 at cost 1/2",
    )


def _spread_start() -> Instance:
    """Return two islands, in each of which one may earn at a cost."""
    rows = np.zeros((2, 2, 2))
    rows[0, :, 0] = rows[1, :, 1] = 1.0
    return Instance(
        name="a start that is spread out",
        cmdp=CMDP(
            rows,
            [[1.0, 0.0], [0.5, 0.0]],
            [[1.0, 0.0], [1.0, 0.0]],
            discount=0.5,
            budget=1.0,
            start=[0.25, 0.75],
        ),
        optimum=0.75,
        source="½ visit on the first island at 1, ½ on the second at ½",
    )


def _gate() -> Instance:
    """Return a corridor with a toll: through it for ever, or back for nothing."""
    rows = np.zeros((3, 2, 3))
    rows[0, 0, 0] = rows[0, 1, 1] = 1.0
    rows[1, 0, 0] = rows[1, 1, 2] = 1.0
    rows[2, :, 2] = 1.0
    return Instance(
        name="a toll paid with some probability",
        cmdp=CMDP(
            rows,
            [[0.0, 0.0], [0.0, 0.0], [1.0, 1.0]],
            [[0.0, 0.0], [0.0, 1.0], [0.0, 0.0]],
            discount=0.9,
            budget=0.45,
        ),
        optimum=4.05,
        source="the toll 0.9 may be paid with probability ½: ½ · 0.81 · 10",
    )
