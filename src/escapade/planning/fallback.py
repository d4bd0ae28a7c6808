"""The fallback: the least cost-to-go that can be promised, and where it can be.

``w(s)`` bounds from above what the fallback policy ``f`` costs from ``s`` on, under
every kernel of the set.  It is finite on the *promisable* states ``X`` alone, the
greatest fixed point of

    ``X ← { s in X : w_X(s) <= d }``,

where ``w_X`` uses only actions all of whose possible successors lie in ``X``.  The
closure matters: an action that costs nothing now and enters, with one chance in a
hundred, a state from which more than the budget must be spent, would break the promise
there, however small its expected cost.

``w`` is a supersolution of its policy's robust Bellman equation, rounded up, so
``Q(s, f(s)) <= w(s)`` holds in double arithmetic with room to spare for the caller's
own rounding.  With several budgets one policy serves all: it minimises the sum of
costs scaled by their budgets, and is then bounded channel by channel.  A start outside
``X`` proves, for one budget and a convex set, that nobody can promise the budget; for
several it proves nothing about other policies.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from escapade.errors import refusal
from escapade.model.cmdp import CMDP
from escapade.model.policy import Policy
from escapade.planning.robust_operator import (
    FixedPoint,
    RobustOperator,
    robust_control,
)
from escapade.typing import ArrayLike, BoolArray, FloatArray, IntArray
from escapade.uncertainty.base import UncertaintySet

__all__ = ["Fallback", "fallback"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fallback:
    """A policy that can always be afforded, and what it may cost at worst.

    Attributes
    ----------
    cost_to_go
        ``(K, S)`` upper bounds on the discounted cost of ``policy``, infinite outside
        the promisable states.
    policy
        The fallback policy.  Outside the promisable states it plays the action of
        least worst-case cost, and promises nothing.
    promisable
        Mask ``(S,)`` of the states from which the budgets can be promised.
    allowed
        Mask ``(pairs,)`` of the actions that stay within the promisable states
        whatever happens.
    unrestricted_cost
        ``(K, S)`` worst-case cost of the least-cost policy when nothing is forbidden.
    removed_in_round
        ``(S,)``: 0 for promisable states, else the round in which a state fell out: 1
        for states whose own least cost exceeds a budget, more for those that cannot
        avoid such states.
    converged
        Whether the bounds reached the precision; they hold either way.
    width
        Largest distance between the cost-to-go and a lower bound on it.
    message
        One sentence on the outcome.
    """

    cost_to_go: FloatArray
    policy: Policy
    promisable: BoolArray
    allowed: BoolArray
    unrestricted_cost: FloatArray
    removed_in_round: IntArray
    budget: FloatArray
    converged: bool
    width: float
    iterations: int
    message: str

    def why(self, state: int) -> str:
        """Say why ``state`` can be promised, or why not."""
        if not 0 <= state < self.promisable.size:
            raise refusal("state", f"a state in 0..{self.promisable.size - 1}", state)
        if self.promisable[state]:
            costs = ", ".join(f"{w:.6g}" for w in self.cost_to_go[:, state])
            return f"state {state} can be promised: its worst-case cost is {costs}"
        over = self.unrestricted_cost[:, state] > self.budget
        if over.any():
            k = int(np.argmax(over))
            channel = f" of channel {k}" if self.budget.size > 1 else ""
            return (
                f"state {state} cannot be promised: the least worst-case cost{channel} "
                f"from it is {self.unrestricted_cost[k, state]:.6g}, over the budget "
                f"{self.budget[k]:g}"
            )
        return (
            f"state {state} cannot be promised: each action either may enter a state "
            f"that cannot be promised or leads to a cost over the budget "
            f"(removed in round {self.removed_in_round[state]})"
        )


def fallback(
    cmdp: CMDP,
    sets: UncertaintySet,
    *,
    cost: ArrayLike | None = None,
    budget: ArrayLike | None = None,
    precision: float = 1e-10,
    max_iterations: int = 100_000,
) -> Fallback:
    """Find the promisable states, the fallback policy and its certified cost-to-go.

    Parameters
    ----------
    cmdp
        The problem; its rewards play no part.
    sets
        The kernels that are possible; must be rectangular over pairs.
    cost
        ``(K, pairs)`` upper bounds on the mean costs, where they are not known; the
        problem's own by default.
    budget
        ``(K,)`` budgets; the problem's own by default.
    precision
        How tight the cost-to-go should be, relative to the largest.
    max_iterations
        Limit for each of the fixed points; bounds that stop early are valid, but may
        leave out states that could have been promised.
    """
    sets.check_matches(cmdp)
    if not sets.rectangular:
        raise refusal(
            "sets",
            "a set that is rectangular over pairs",
            "one model throughout; take its rectangular hull",
        )
    costs = _read_costs(cmdp, cost)
    limits = _read_budget(cmdp, budget)
    scaled = _scaled(cmdp, costs, limits)
    reachable = sets.reachable
    starts = sets.row_ptr[:-1]
    state_ptr = cmdp.state_ptr

    promisable = np.ones(cmdp.n_states, dtype=np.bool_)
    removed_in_round = np.zeros(cmdp.n_states, dtype=np.int64)
    unrestricted: FloatArray | None = None
    policy_everywhere: IntArray | None = None
    guess: FloatArray | None = None
    iterations, round_ = 0, 0
    while True:
        round_ += 1
        strays = reachable & ~promisable[sets.successor]
        allowed = np.add.reduceat(strays, starts, dtype=np.int64) == 0
        allowed &= promisable[cmdp.pair_state]
        operator = RobustOperator(
            sets,
            state_ptr,
            scaled,
            cmdp.discount,
            nature="max",
            select="min",
            allowed=allowed,
        )
        if not operator.live.any():
            removed_in_round[promisable] = round_
            promisable[:] = False
            cost_to_go = np.full((len(costs), cmdp.n_states), np.inf)
            pairs = state_ptr[:-1].copy()
            points: list[FixedPoint] = []
            break
        chosen = robust_control(
            operator,
            precision=precision,
            guess=guess,
            max_iterations=max_iterations,
        )
        iterations += chosen.iterations
        assert chosen.pairs is not None
        pairs = chosen.pairs
        points = _channels(
            operator, costs, pairs, chosen, limits, precision, max_iterations
        )
        iterations += sum(point.iterations for point in points)
        cost_to_go = np.array([point.upper for point in points])
        cost_to_go[:, ~operator.live] = np.inf
        if unrestricted is None:
            unrestricted = cost_to_go.copy()
            policy_everywhere = pairs.copy()
        keep = promisable & (cost_to_go <= limits[:, np.newaxis]).all(axis=0)
        lost = promisable & ~keep
        if not lost.any():
            break
        removed_in_round[lost] = round_
        promisable = keep
        guess = np.where(promisable, (chosen.lower + chosen.upper) / 2, 0.0)
    assert unrestricted is not None
    assert policy_everywhere is not None
    cost_to_go[:, ~promisable] = np.inf
    pairs = np.where(promisable, pairs, policy_everywhere)
    live = promisable
    width = max(
        (float((p.upper - p.lower)[live].max(initial=0.0)) for p in points), default=0.0
    )
    converged = all(point.converged for point in points)
    return Fallback(
        cost_to_go=cost_to_go,
        policy=Policy.deterministic(cmdp.pair_action[pairs], cmdp.n_actions),
        promisable=promisable,
        allowed=allowed & promisable[cmdp.pair_state],
        unrestricted_cost=unrestricted,
        removed_in_round=removed_in_round,
        budget=limits,
        converged=converged,
        width=width,
        iterations=iterations,
        message=_message(cmdp, promisable, round_, converged),
    )


def _channels(
    operator: RobustOperator,
    costs: FloatArray,
    pairs: IntArray,
    chosen: FixedPoint,
    limits: FloatArray,
    precision: float,
    max_iterations: int,
) -> list[FixedPoint]:
    """Bound every cost channel of the policy ``pairs`` on the live states."""
    if len(costs) == 1 and limits[0] > 0:  # the scaled cost is the cost over d
        return [
            FixedPoint(
                lower=chosen.lower * limits[0],
                upper=np.nextafter(chosen.upper * limits[0], np.inf),
                converged=chosen.converged,
                iterations=0,
                method=chosen.method,
            )
        ]
    points = []
    for channel in costs:
        single = np.zeros(channel.size, dtype=np.bool_)
        single[pairs] = True
        live_pairs = single & np.repeat(operator.live, np.diff(operator.state_ptr))
        held = RobustOperator(
            operator.sets,
            operator.state_ptr,
            channel,
            operator.discount,
            nature="max",
            select="min",
            allowed=live_pairs,
        )
        points.append(
            robust_control(held, precision=precision, max_iterations=max_iterations)
        )
    return points


def _read_costs(cmdp: CMDP, cost: ArrayLike | None) -> FloatArray:
    if cost is None:
        return cmdp.cost
    costs = np.array(cost, dtype=np.float64)
    if costs.shape == (cmdp.n_pairs,) and cmdp.n_costs == 1:
        costs = costs[np.newaxis]
    if costs.shape != cmdp.cost.shape:
        raise refusal("cost", f"shape {cmdp.cost.shape}", f"shape {costs.shape}")
    bad = ~(np.isfinite(costs) & (costs >= 0))
    if bad.any():
        k, pair = np.argwhere(bad)[0]
        raise refusal(
            "cost",
            "finite numbers of at least 0",
            float(costs[k, pair]),
            f"channel {k}, {cmdp.describe_pair(int(pair))}",
        )
    return costs


def _read_budget(cmdp: CMDP, budget: ArrayLike | None) -> FloatArray:
    if budget is None:
        return cmdp.budget
    limits = np.array(budget, dtype=np.float64).reshape(-1)
    if limits.shape != cmdp.budget.shape:
        raise refusal("budget", f"{cmdp.n_costs} numbers", limits.size)
    if not (limits >= 0).all():
        k = int(np.argmin(limits >= 0))
        raise refusal("budget", "numbers of at least 0", float(limits[k]))
    return limits


def _scaled(cmdp: CMDP, costs: FloatArray, limits: FloatArray) -> FloatArray:
    """Return the sum of the costs over their budgets.

    A budget of 0 weighs a channel so heavily that no saving elsewhere can pay for it.
    """
    if len(costs) == 1 and limits[0] > 0:
        single: FloatArray = np.nextafter(costs[0] / limits[0], np.inf)
        return single
    most = cmdp.cost_max / (1.0 - cmdp.discount)
    floor = np.where(most > 0, 1e-6 * most, 1.0)
    total: FloatArray = (costs / np.maximum(limits, floor)[:, np.newaxis]).sum(axis=0)
    return total


def _message(cmdp: CMDP, promisable: BoolArray, rounds: int, converged: bool) -> str:
    count, total = int(promisable.sum()), promisable.size
    outside = float(cmdp.start[~promisable].sum())
    if outside == 0.0:
        text = f"the budget can be promised from the start; {count} of {total} states"
    else:
        text = (
            f"the budget cannot be promised from {outside:.3g} of the start; "
            f"{count} of {total} states"
        )
    text += f" are promisable, settled in round {rounds}"
    if not converged:
        text += "; the precision was not reached, so some may be missing"
    return text
