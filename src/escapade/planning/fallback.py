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
own rounding.  Where the policy surely never meets a cost again, ``w`` is exactly 0.
With several budgets one policy serves all: it minimises the sum of costs scaled by
their budgets, and is then bounded channel by channel.  Where that does not hold the
start, others are tried: more weight on one channel, and smaller budgets, since whoever
keeps those keeps these.  A start outside ``X`` proves, for one budget and a convex set,
that nobody can promise the budget; for several it proves nothing about other policies.

A lifetime asks again whenever its sets have shrunk.  ``warm`` begins where the last
answer ended, which leaves a few sweeps to do; ``policy`` holds a policy still and
bounds its cost-to-go, which is valid whatever the policy.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from escapade.errors import check_kind, refusal
from escapade.model.arguments import read_count, read_number
from escapade.model.cmdp import CMDP
from escapade.model.policy import Policy
from escapade.planning.fallback_attempts import attempts, priced
from escapade.planning.robust_operator import (
    FixedPoint,
    RobustOperator,
    robust_control,
    robust_policy_value,
)
from escapade.typing import ArrayLike, BoolArray, FloatArray, IntArray
from escapade.uncertainty.base import UncertaintySet

__all__ = ["Fallback", "fallback"]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
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
        ``(K, S)`` worst-case cost of the least-cost policy when nothing is forbidden;
        with several budgets, of least cost in proportion to them.
    removed_in_round
        ``(S,)``: 0 for promisable states, else the round in which a state fell out: 1
        for states whose own least cost exceeds a budget, more for those that cannot
        avoid such states.
    converged
        Whether the bounds reached the precision; they hold either way.
    width
        Largest distance between the cost-to-go and a lower bound on it.
    iterations
        Applications of a robust operator.
    message
        One sentence on the outcome.
    state_names
        The problem's names of states, if it has any.
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
    state_names: tuple[str, ...] | None = None

    def __repr__(self) -> str:
        return f"Fallback({self.message})"

    def covers(self, start: FloatArray) -> bool:
        """Tell whether every state of a start distribution is promisable."""
        return bool(self.promisable[start > 0.0].all())

    def why(self, state: int) -> str:
        """Say why ``state`` can be promised, or why not."""
        if not 0 <= state < self.promisable.size:
            raise refusal("state", f"a state in 0..{self.promisable.size - 1}", state)
        label = f" ({self.state_names[state]})" if self.state_names else ""
        name = f"state {state}{label}"
        if self.promisable[state]:
            costs = ", ".join(f"{w:.6g}" for w in self.cost_to_go[:, state])
            return f"{name} can be promised: its worst-case cost is {costs}"
        over = self.unrestricted_cost[:, state] > self.budget
        k = int(np.argmax(over))
        if self.budget.size > 1:
            reason = (
                f"{name} cannot be promised by any fallback that was tried, "
                f"which proves nothing about other policies"
            )
            if over.any():
                reason += (
                    f": the one of least cost in proportion to the budgets costs "
                    f"{self.unrestricted_cost[k, state]:.6g} in channel {k} from it at "
                    f"worst, over the budget {self.budget[k]:g}"
                )
            return reason
        if over.any():
            return (
                f"{name} cannot be promised: the least worst-case cost "
                f"from it is {self.unrestricted_cost[k, state]:.6g}, over the budget "
                f"{self.budget[k]:g}"
            )
        return (
            f"{name} cannot be promised: each action either may enter a state "
            f"that cannot be promised or leads to a cost over the budget "
            f"(removed in round {self.removed_in_round[state]})"
        )


def fallback(
    cmdp: CMDP,
    sets: UncertaintySet,
    *,
    cost: ArrayLike | None = None,
    budget: ArrayLike | None = None,
    policy: Policy | None = None,
    warm: Fallback | None = None,
    precision: float = 1e-9,
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
        problem's own by default.  Where the set ties costs to next states, the worst of
        both together counts.
    budget
        ``(K,)`` budgets; the problem's own by default.
    policy
        A policy to hold still: the promisable states are then those from which it
        alone keeps the budgets.
    warm
        An earlier answer to begin from; it changes the work, not what is certified.
    precision
        Largest distance between the certified bounds on the cost-to-go, relative to
        the largest (absolute below 1).
    max_iterations
        Applications of the operator in one round after which to stop; the cost-to-go
        is an upper bound all the same.

    Examples
    --------
    A cheap action that may lead, with one chance in a hundred, to where too much must
    be spent is no way to keep a promise; the dearer, safe one is.

    >>> import escapade as ep
    >>> cmdp = ep.CMDP(
    ...     [
    ...         [[0.0, 0.99, 0.01], [0.0, 1.0, 0.0]],
    ...         [[0.0, 1.0, 0.0], [0.0, 1.0, 0.0]],
    ...         [[0.0, 0.0, 1.0], [0.0, 0.0, 1.0]],
    ...     ],
    ...     [[0.0, 0.0]] * 3,
    ...     [[0.0, 5.0], [0.0, 0.0], [10.0, 10.0]],
    ...     discount=0.5,
    ...     budget=10.0,
    ... )
    >>> found = ep.fallback(cmdp, ep.uncertainty.L1Ball(cmdp, radius=0.0))
    >>> found.promisable.tolist(), found.policy.actions.tolist()[:1]
    ([True, True, False], [1])
    >>> found.cost_to_go.round(6).tolist()
    [[5.0, 0.0, inf]]
    """
    check_kind("cmdp", cmdp, CMDP)
    check_kind("sets", sets, UncertaintySet)
    sets.check_matches(cmdp)
    if not sets.rectangular:
        raise refusal(
            "sets",
            "a set that is rectangular over pairs",
            "one model throughout; take its rectangular hull",
        )
    precision = read_number("precision", precision)
    if not 0.0 < precision < np.inf:
        raise refusal("precision", "a finite number above 0", precision)
    limit = read_count("max_iterations", max_iterations, least=1)
    costs = _read_costs(cmdp, cost)
    limits = _read_budget(cmdp, budget)
    if warm is not None and warm.cost_to_go.shape != (cmdp.n_costs, cmdp.n_states):
        raise refusal(
            "warm",
            f"an answer for {cmdp.n_costs} costs and {cmdp.n_states} states",
            f"one for {' and '.join(map(str, warm.cost_to_go.shape))}",
        )
    problem = _Problem(
        cmdp=cmdp,
        sets=sets,
        costs=costs,
        prices=priced(cmdp, limits),
        reachable=sets.reachable,
        weights=None if policy is None else policy.pair_weights(cmdp),
        precision=precision,
        max_iterations=limit,
    )
    found = _greatest_fixed_point(problem, limits, warm, policy)
    if cmdp.n_costs == 1 or policy is not None or found.covers(cmdp.start):
        return found
    return _another(problem, limits, found)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Problem:
    """What stays the same from round to round."""

    cmdp: CMDP
    sets: UncertaintySet
    costs: FloatArray
    prices: FloatArray
    reachable: BoolArray
    weights: FloatArray | None
    precision: float
    max_iterations: int

    def charged(self, weights: FloatArray) -> tuple[UncertaintySet, FloatArray]:
        """Return what backs up the weighted costs, tied to next states where they are.

        See :meth:`UncertaintySet.charged`.
        """
        return self.sets.charged(self.costs, weights, self.cmdp.discount)

    def control(self, prices: FloatArray, allowed: BoolArray) -> RobustOperator:
        """Return the operator that minimises priced costs over the allowed pairs."""
        sets, gain = self.charged(prices)
        return RobustOperator(
            sets,
            self.cmdp.state_ptr,
            gain,
            self.cmdp.discount,
            nature="max",
            select="min",
            allowed=None if allowed.all() else allowed,
        )

    def staying(self, inside: BoolArray) -> BoolArray:
        """Return the pairs that stay inside a set of states whatever happens."""
        allowed = np.repeat(inside, np.diff(self.cmdp.state_ptr))
        if not inside.all():
            strays = self.reachable & ~inside[self.sets.successor]
            row_ptr = self.sets.row_ptr
            allowed &= np.add.reduceat(strays, row_ptr[:-1], dtype=np.int64) == 0
        return allowed

    def closed(self, inside: BoolArray) -> tuple[BoolArray, BoolArray]:
        """Return the largest part of a set that need not be left, and its pairs.

        Bounds on a cost-to-go are tight on such a set alone: elsewhere some live states
        lead to states that are left out.
        """
        while True:
            allowed = self.staying(inside)
            starts = self.cmdp.state_ptr[:-1]
            if self.weights is None:
                able = np.logical_or.reduceat(allowed, starts)
            else:
                able = ~np.logical_or.reduceat((self.weights > 0.0) & ~allowed, starts)
            if able[inside].all():
                return inside, allowed
            inside = inside & able


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Round:
    """The least cost-to-go, and its policy, when only some pairs are allowed."""

    cost_to_go: FloatArray
    policy: Policy
    converged: bool
    width: float
    iterations: int


def _greatest_fixed_point(
    problem: _Problem,
    limits: FloatArray,
    warm: Fallback | None,
    policy: Policy | None,
    within: BoolArray | None = None,
) -> Fallback:
    cmdp = problem.cmdp
    promisable = np.ones(cmdp.n_states, dtype=np.bool_)
    if within is not None:
        promisable = within.copy()
    removed_in_round = np.zeros(cmdp.n_states, dtype=np.int64)
    guess = None if warm is None else warm.unrestricted_cost
    iterations = 0
    first: _Round | None = None
    for round_ in range(1, cmdp.n_states + 2):
        promisable, allowed = problem.closed(promisable)
        removed_in_round[~promisable & (removed_in_round == 0)] = round_
        found = (
            _least(problem, allowed, guess)
            if problem.weights is None
            else _held(problem, allowed, policy, guess)
        )
        iterations += found.iterations
        first = first or found
        keep = promisable & (found.cost_to_go <= limits[:, np.newaxis]).all(axis=0)
        if np.array_equal(keep, promisable):
            break
        removed_in_round[promisable & ~keep] = round_
        promisable = keep
        guess = found.cost_to_go
        if warm is not None and np.array_equal(promisable, warm.promisable):
            guess = warm.cost_to_go
    assert first is not None
    cost_to_go = np.where(promisable, found.cost_to_go, np.inf)
    chosen = first.policy.probabilities.copy()
    chosen[promisable] = found.policy.probabilities[promisable]
    return Fallback(
        cost_to_go=cost_to_go,
        policy=Policy(chosen),
        promisable=promisable,
        allowed=allowed,
        unrestricted_cost=first.cost_to_go,
        removed_in_round=removed_in_round,
        budget=limits,
        converged=found.converged,
        width=found.width,
        iterations=iterations,
        message=_message(cmdp, promisable, round_, found.converged),
        state_names=cmdp.state_names,
    )


def _another(problem: _Problem, limits: FloatArray, first: Fallback) -> Fallback:
    """Look for a policy of another kind that keeps several budgets from the start.

    Returns the first that does, or what holds most states.
    """
    start = problem.cmdp.start
    outer = _not_ruled_out(problem, limits)
    if not outer[start > 0.0].all():
        return first
    best = first
    iterations = first.iterations
    for caps, prices in attempts(problem.cmdp, limits):
        tried = replace(problem, prices=prices)
        found = _greatest_fixed_point(tried, caps, None, None, outer)
        iterations += found.iterations
        if found.covers(start):
            best = _widened(problem, limits, found, first, outer)
            iterations += best.iterations
            break
        if found.promisable.sum() > best.promisable.sum():
            best = found
    return replace(
        best,
        policy=_inside(best, first),
        budget=limits,
        unrestricted_cost=first.unrestricted_cost,
        iterations=iterations,
    )


def _widened(
    problem: _Problem,
    limits: FloatArray,
    found: Fallback,
    first: Fallback,
    outer: BoolArray,
) -> Fallback:
    """Hold a policy that keeps smaller budgets still, and see where it keeps these."""
    policy = _inside(found, first)
    held = replace(problem, weights=policy.pair_weights(problem.cmdp))
    wider = _greatest_fixed_point(held, limits, found, policy, outer)
    if (wider.promisable >= found.promisable).all():
        return wider
    return replace(found, iterations=wider.iterations)  # by a rounding


def _inside(found: Fallback, first: Fallback) -> Policy:
    """Return a policy where it promises something, and the first one elsewhere."""
    chosen = first.policy.probabilities.copy()
    chosen[found.promisable] = found.policy.probabilities[found.promisable]
    return Policy(chosen)


def _not_ruled_out(problem: _Problem, limits: FloatArray) -> BoolArray:
    """Return the states from which each budget can be kept, by a policy of its own.

    All within states of the same kind.  The start outside means, for convex sets, that
    nobody keeps all of them together.
    """
    cmdp = problem.cmdp
    inside = np.ones(cmdp.n_states, dtype=np.bool_)
    while True:
        inside, allowed = problem.closed(inside)
        keep = inside.copy()
        for k, alone in enumerate(np.eye(cmdp.n_costs)):
            operator = problem.control(alone, allowed)
            point = robust_control(
                operator,
                precision=problem.precision,
                max_iterations=problem.max_iterations,
            )
            keep &= point.lower <= limits[k]
        if np.array_equal(keep, inside):
            return inside
        inside = keep


def _least(problem: _Problem, allowed: BoolArray, guess: FloatArray | None) -> _Round:
    """Minimise the priced costs over the allowed pairs, then bound every channel."""
    cmdp = problem.cmdp
    operator = problem.control(problem.prices, allowed)
    chosen = robust_control(
        operator,
        precision=problem.precision,
        guess=None if guess is None else problem.prices @ guess,
        max_iterations=problem.max_iterations,
    )
    assert chosen.pairs is not None
    pairs, live = chosen.pairs, operator.live
    if cmdp.n_costs == 1:  # its price is 1
        points = [chosen]
    else:
        weights = np.zeros(cmdp.n_pairs)
        weights[pairs] = 1.0
        points = _channels(problem, weights, live, guess)
    found = _bounded(problem, points, live, pairs)
    return _Round(
        cost_to_go=found,
        policy=Policy.deterministic(cmdp.pair_action[pairs], cmdp.n_actions),
        converged=all(p.converged for p in [chosen, *points]),
        width=max(p.width for p in points),
        iterations=chosen.iterations
        + sum(p.iterations for p in points if p is not chosen),
    )


def _held(
    problem: _Problem,
    allowed: BoolArray,
    policy: Policy | None,
    guess: FloatArray | None,
) -> _Round:
    """Bound every channel of a policy where all it may do is allowed."""
    assert problem.weights is not None
    assert policy is not None
    cmdp = problem.cmdp
    used = problem.weights > 0.0
    strays = used & ~allowed
    live = np.add.reduceat(strays, cmdp.state_ptr[:-1], dtype=np.int64) == 0
    points = _channels(problem, problem.weights, live, guess)
    return _Round(
        cost_to_go=_bounded(problem, points, live, np.flatnonzero(used)),
        policy=policy,
        converged=all(p.converged for p in points),
        width=max(p.width for p in points),
        iterations=sum(p.iterations for p in points),
    )


def _channels(
    problem: _Problem,
    weights: FloatArray,
    live: BoolArray,
    guess: FloatArray | None,
) -> list[FixedPoint]:
    """Bound every cost channel of a policy on the live states."""
    cmdp = problem.cmdp
    found = []
    for k, alone in enumerate(np.eye(cmdp.n_costs)):
        sets, gain = problem.charged(alone)
        operator = RobustOperator(
            sets,
            cmdp.state_ptr,
            gain,
            cmdp.discount,
            nature="max",
            weights=weights,
            live=None if live.all() else live,
        )
        point = robust_policy_value(
            operator,
            precision=problem.precision,
            guess=None if guess is None else guess[k],
            max_iterations=problem.max_iterations,
        )
        found.append(point)
    return found


def _bounded(
    problem: _Problem, points: list[FixedPoint], live: BoolArray, pairs: IntArray
) -> FloatArray:
    """Return the upper bounds: infinite where dead, 0 where no cost can come again."""
    bounds = np.array([np.maximum(point.upper, 0.0) for point in points])
    bounds[:, ~live] = np.inf
    for bound, channel in zip(bounds, problem.costs, strict=True):
        if not channel[pairs].all():
            bound[_free_for_ever(problem, channel, live, pairs)] = 0.0
    return bounds


def _free_for_ever(
    problem: _Problem, channel: FloatArray, live: BoolArray, pairs: IntArray
) -> BoolArray:
    """Return the live states from which the pairs never meet a cost of a channel."""
    cmdp, sets = problem.cmdp, problem.sets
    states = cmdp.pair_state[pairs]
    free = live.copy()
    free[states[channel[pairs] > 0.0]] = False
    if not free.any():
        return free
    owner = np.full(cmdp.n_pairs, -1)
    owner[pairs] = states
    source = np.repeat(owner, np.diff(sets.row_ptr))
    link = problem.reachable & (source >= 0)
    source, target = source[link], sets.successor[link]
    while True:  # the greatest set that cannot be left
        leaving = free[source] & ~free[target]
        if not leaving.any():
            return free
        free[source[leaving]] = False


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
