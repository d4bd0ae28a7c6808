"""Random problems of a given shape, after the Garnets of Archibald and others (1995).

From every state-action pair ``branching`` states can be reached, drawn evenly from all
sets of that size; their probabilities are the gaps between ``branching − 1`` points
drawn evenly on [0, 1].  Mean rewards and mean costs are drawn evenly from [0, 1], one a
pair.  The start is state 0.

A budget drawn out of the air would mostly be infeasible or idle.  Here it is placed
between two policies: the *cautious* one, which costs least (in sum, where there are
several costs), and the *greedy* one, which earns most.  With slack σ every budget is
``(1 − σ) C(cautious) + σ C(greedy)``, rounded up to six decimals, so that the name of a
problem does not hang on the last bit of a linear solve.  Drawing one of the two at the
start, with chances 1 − σ and σ, keeps all budgets at once: the problem is feasible.
With one cost and σ < 1 the greedy policy alone overspends.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from escapade.environments.knowledge_of import of_garnet
from escapade.environments.world import World
from escapade.errors import refusal
from escapade.model.arguments import check_room, read_count, read_number
from escapade.model.cmdp import CMDP
from escapade.model.evaluation import evaluate
from escapade.planning.dynamic_programming import policy_iteration
from escapade.typing import ArrayLike, FloatArray, IntArray

__all__ = ["garnet"]

_DECIMALS = 1e6


def garnet(
    n_states: int = 20,
    n_actions: int = 4,
    branching: int = 3,
    seed: int = 0,
    *,
    n_costs: int = 1,
    slack: float = 0.5,
    discount: float = 0.95,
    budget: ArrayLike | None = None,
) -> World:
    """Return a random problem; the same arguments give the same problem.

    Parameters
    ----------
    n_states, n_actions
        Its size.
    branching
        Number of states that can follow a pair, at most ``n_states``.
    seed
        Settles every draw.
    n_costs
        Number of cost channels.
    slack
        Where the budgets lie: 0 for the least possible, 1 for what the best policy
        costs anyway.
    discount
        Discount factor.
    budget
        Instead of ``slack``: the budgets themselves, which may be infeasible.

    Examples
    --------
    >>> import escapade as ep
    >>> world = ep.environments.garnet(50, 3, 4, seed=7)
    >>> world.cmdp.n_pairs, world.cmdp.nnz
    (150, 600)
    >>> ep.solve(world.cmdp).status
    'optimal'
    """
    n_states = read_count("n_states", n_states, least=1)
    n_actions = read_count("n_actions", n_actions, least=1)
    n_costs = read_count("n_costs", n_costs, least=1)
    branching = read_count("branching", branching, least=1)
    if branching > n_states:
        raise refusal("branching", f"at most {n_states}, the states", branching)
    check_room(
        "n_states",
        f"{n_states} with {n_actions} actions, {n_costs} costs, {branching} branches",
        n_states * n_actions * max(branching, n_costs),
    )
    slack = read_number("slack", slack)
    if not 0.0 <= slack <= 1.0:
        raise refusal("slack", "a number in [0, 1]", slack)
    rng = np.random.default_rng(read_count("seed", seed))
    n_pairs = n_states * n_actions
    successor = _subsets(n_pairs, n_states, branching, rng)
    cuts = np.sort(rng.random((n_pairs, branching - 1)), axis=1)
    gaps = np.diff(cuts, axis=1, prepend=0.0, append=1.0)
    cmdp = CMDP.from_pairs(
        state_ptr=np.arange(n_states + 1) * n_actions,
        pair_action=np.tile(np.arange(n_actions), n_states),
        row_ptr=np.arange(n_pairs + 1) * branching,
        successor=successor.ravel(),
        probability=gaps.ravel(),
        reward=rng.random(n_pairs),
        cost=rng.random((n_costs, n_pairs)),
        n_actions=n_actions,
        discount=discount,
        budget=np.zeros(n_costs) if budget is None else budget,
        reward_max=1.0,
        cost_max=1.0,
    )
    if budget is None:
        cmdp = cmdp.replace(budget=_between(cmdp, slack))
    return World(
        name="garnet",
        description=f"A random problem, drawn with seed {seed}.",
        cmdp=cmdp,
        told=partial(of_garnet, cmdp),
    )


def _subsets(rows: int, n_states: int, size: int, rng: np.random.Generator) -> IntArray:
    """Draw sets of ``size`` states, one a row, sorted (Floyd's method, all at once)."""
    drawn = np.empty((rows, size), dtype=np.int64)
    for k, last in enumerate(range(n_states - size, n_states)):
        candidate = rng.integers(0, last + 1, size=rows)
        taken = (drawn[:, :k] == candidate[:, np.newaxis]).any(axis=1)
        drawn[:, k] = np.where(taken, last, candidate)
    drawn.sort(axis=1)
    return drawn


def _between(cmdp: CMDP, slack: float) -> FloatArray:
    """Return budgets between the costs of the cautious and of the greedy policy."""
    cautious = policy_iteration(cmdp, -cmdp.cost.sum(axis=0)).policy(cmdp)
    greedy = policy_iteration(cmdp).policy(cmdp)
    least = evaluate(cmdp, cautious).start_costs
    most = evaluate(cmdp, greedy).start_costs
    budgets: FloatArray = (
        np.ceil(((1.0 - slack) * least + slack * most) * _DECIMALS) / _DECIMALS
    )
    return budgets
