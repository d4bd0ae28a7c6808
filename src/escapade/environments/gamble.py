r"""The gamble on which the paper's Safe Balanced Wandering Lemma comes to grief.

The known set is K, one state that keeps the agent at no cost.  Everywhere else each
step costs 1::

    u0 --> u1 --> u2 --> u3 --> u4 --> B10 --> B9 --> ... --> B1 --> K
                                  \
                                   `-> G --> X4 --> X3 --> X2 --> X1 --> K

``wander`` follows the arrows, and from u4 comes to B10 or G with ½ each; ``home`` leads
to K in one step from u0, ..., u4 and G.  In the chains of B and of X both actions do
the same.  There is one kernel and it is known, so the cost of escape from a state is
exact: C_n = (1 − γ^n) / (1 − γ) from n steps away.

The lemma lets the agent wander while C(p_t) plus γ^t times the *expected* cost of
escape after the next step is below d' − c_max.  With γ = .99 and d' = 10.02 that holds
all the way: at u4 it reads 9.0132 < 9.02.  But whoever wanders from u4 pays C_15 =
13.994 or C_10 = 9.562, each with ½: 11.778 on average, far above d'.  The test that
looks at the worst next state turns home at u4 instead;
:mod:`escapade.theory.wandering` has both.

As a problem of its own with budget d', each ``wander`` from u0, ..., u4 and G earns 1.
The price of a reward is dearest at u4, so the best policy wanders there with a
probability p that spends the budget, and everywhere else surely:

.. math:: V = C_4 + p (γ^4 + γ^5 / 2),
    p = (d' − C_5) / (γ^5 (C_10 + C_5) / 2),

for C_5 ≤ d' ≤ ½ (C_15 + C_10).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from escapade.environments.knowledge_of import of_gamble
from escapade.environments.world import World
from escapade.errors import refusal
from escapade.model.arguments import read_bound, read_number
from escapade.model.cmdp import CMDP
from escapade.model.evaluation import evaluate
from escapade.model.policy import Policy
from escapade.theory.escape_budget import spending_steps
from escapade.typing import BoolArray, FloatArray

__all__ = ["WanderingGamble", "wandering_gamble"]

_DISCOUNT = 0.99
_ESCAPE_BUDGET = 10.02
_BAD, _GOOD, _PATH = 10, 4, 5
_WANDER, _HOME = 0, 1


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class WanderingGamble(World):
    """The counterexample with everything that the lemma speaks of.

    Attributes
    ----------
    known
        ``(S,)`` mask of the known set: K alone.
    wander, home
        The policy that wanders wherever it can, and the one that always escapes.
    escape_budget
        d'.
    escape_steps
        T': the least number of steps that can spend d'; infinite if none can.
    escape_cost
        ``(S,)`` exact cost of escape: what ``home`` costs from each state.
    """

    known: BoolArray
    wander: Policy
    home: Policy
    escape_budget: float
    escape_steps: float
    escape_cost: FloatArray

    def state(self, name: str) -> int:
        """Return the number of the state with this name."""
        names = self.cmdp.state_names
        assert names is not None
        if name not in names:
            raise refusal("name", f"one of {list(names)}", repr(name))
        return names.index(name)


def wandering_gamble(*, escape_budget: float = _ESCAPE_BUDGET) -> WanderingGamble:
    """Return the counterexample to the paper's Safe Balanced Wandering Lemma.

    Parameters
    ----------
    escape_budget
        d', the budget of the problem as well.  The lemma's test lets the agent gamble
        if it is above 10.0133.

    Examples
    --------
    >>> import escapade as ep
    >>> world = ep.environments.wandering_gamble()
    >>> cost = ep.evaluate(world.cmdp, world.wander).costs[0]
    >>> round(float(cost[world.state("u0")]), 3), world.escape_budget
    (11.778, 10.02)
    >>> round(world.optimum, 4)
    5.0094
    """
    escape_budget = read_bound(
        "escape_budget", read_number("escape_budget", escape_budget)
    )
    path = [f"u{k}" for k in range(_PATH)]
    bad = [f"B{k}" for k in range(_BAD, 0, -1)]
    good = [f"X{k}" for k in range(_GOOD, 0, -1)]
    names = [*path, "G", *good, *bad, "K"]
    place = {name: index for index, name in enumerate(names)}
    follows = dict(zip([*bad, *good], [*bad[1:], "K", *good[1:], "K"], strict=True))
    n = len(names)
    matrix = np.zeros((n, 2, n))
    reward = np.zeros((n, 2))
    matrix[place["K"], :, place["K"]] = 1.0
    for name, after in follows.items():
        matrix[place[name], :, place[after]] = 1.0
    for name, after in zip([*path[:-1], "G"], [*path[1:], good[0]], strict=True):
        matrix[place[name], _WANDER, place[after]] = 1.0
    matrix[place["u4"], _WANDER, [place["G"], place[bad[0]]]] = 0.5
    for name in (*path, "G"):
        matrix[place[name], _HOME, place["K"]] = 1.0
        reward[place[name], _WANDER] = 1.0
    known = np.zeros(n, dtype=np.bool_)
    known[place["K"]] = True
    cmdp = CMDP(
        matrix,
        reward,
        np.repeat(np.where(known, 0.0, 1.0)[:, np.newaxis], 2, axis=1),
        discount=_DISCOUNT,
        budget=escape_budget,
        start=place["u0"],
        cost_max=1.0,
        state_names=names,
        action_names=("wander", "home"),
        coordinates=_places(place),
    )
    home = Policy.deterministic(np.full(n, _HOME), 2)
    cost_of_escape = evaluate(cmdp, home).costs[0]
    for array in (known, cost_of_escape):
        array.flags.writeable = False
    best = _optimum(float(cmdp.budget[0]))
    return WanderingGamble(
        name="wandering-gamble",
        description="A walk that looks safe on average and is not: wander or go home.",
        cmdp=cmdp,
        known_optimum=best,
        optimum_source=(
            ""
            if best is None
            else "closed form: gamble as often as the budget allows, wander elsewhere"
        ),
        told=partial(of_gamble, cmdp, known),
        known=known,
        wander=Policy.deterministic(np.full(n, _WANDER), 2),
        home=home,
        escape_budget=escape_budget,
        escape_steps=spending_steps(
            budget=escape_budget, cost_max=1.0, discount=_DISCOUNT
        ),
        escape_cost=cost_of_escape,
    )


def _optimum(budget: float) -> float | None:
    """Return the best value, unless the budget ends the walk before the gamble."""

    def steps(n: int) -> float:
        return (1.0 - _DISCOUNT**n) / (1.0 - _DISCOUNT)

    if budget < steps(_PATH):
        return None
    stake = _DISCOUNT**_PATH / 2.0
    chance = min((budget - steps(_PATH)) / (stake * (steps(10) + steps(5))), 1.0)
    return steps(_PATH - 1) + chance * (_DISCOUNT ** (_PATH - 1) + stake)


def _places(place: dict[str, int]) -> FloatArray:
    """Lay the path on the left, the bad chain above and the good one below."""
    where = np.zeros((len(place), 2))
    for name, index in place.items():
        number = int(name[1:]) if name[1:] else 0
        where[index] = {
            "u": (number, 0.0),
            "G": (_PATH, -1.0),
            "X": (_PATH + 1 + _GOOD - number, -1.0),
            "B": (_PATH + _BAD - number, 1.0),
            "K": (_PATH + _BAD, 0.0),
        }[name[0]]
    return where
