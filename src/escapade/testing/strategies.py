"""Hypothesis strategies for small problems and what belongs to them.

Probabilities, rewards and costs are ratios of small whole numbers, so that examples
shrink to ones that can be read and worked out by hand: one state, one action, nothing
earned and nothing charged.  Rows are sparse: most entries of a drawn row are zero, and
a row without weight is a self-loop.

Feasibility is arranged, not hoped for.  A budget drawn with ``feasible=True`` is the
cost of a drawn policy or more; one drawn with ``feasible=False`` is less than the least
cost of some channel, which value iteration bounds from below.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from escapade.errors import MissingExtraError, refusal
from escapade.model.cmdp import CMDP
from escapade.model.evaluation import evaluate
from escapade.model.policy import Policy
from escapade.typing import FloatArray

try:
    from hypothesis import assume
    from hypothesis import strategies as st
    from hypothesis.extra.numpy import arrays
except ImportError as error:
    raise MissingExtraError("hypothesis", "testing") from error

__all__ = ["budgets", "cmdps", "distributions", "kernels", "policies"]

_DISCOUNTS = (0.5, 0.0, 0.75, 0.9, 0.99)
_LEVELS = 8  # rewards and costs are multiples of 1 / 8


@st.composite
def distributions(draw: st.DrawFn, rows: int, columns: int) -> FloatArray:
    """Draw an array ``(rows, columns)`` whose rows are distributions.

    A row without weight puts everything on its first column.
    """
    weights = draw(_whole_numbers((rows, columns), most=4)).astype(np.float64)
    weights[weights.sum(axis=1) == 0.0, 0] = 1.0
    normalised: FloatArray = weights / weights.sum(axis=1, keepdims=True)
    return normalised


@st.composite
def cmdps(
    draw: st.DrawFn,
    *,
    min_states: int = 1,
    max_states: int = 5,
    max_actions: int = 3,
    max_costs: int = 2,
    discounts: tuple[float, ...] = _DISCOUNTS,
    masked: bool | None = None,
    sparse: bool | None = None,
    named: bool | None = None,
    feasible: bool | None = None,
) -> CMDP:
    """Draw a problem.

    Parameters
    ----------
    min_states, max_states
        How many states.
    max_actions, max_costs
        At most how many actions and cost channels; at least one of each.
    discounts
        The discount factors to choose among.
    masked
        Whether some states may lack actions.
    sparse
        Whether transitions are handed over as one sparse matrix or as a dense array;
        the problem is the same, only another reader checks it.
    named
        Whether states and actions have names and states have coordinates.
    feasible
        Whether some policy keeps the budgets.

    Notes
    -----
    ``None`` leaves the choice of ``masked``, ``sparse``, ``named`` and ``feasible`` to
    each example.
    """
    if not 1 <= min_states <= max_states:
        raise refusal("min_states", f"a number in 1..{max_states}", min_states)
    n_states = draw(st.integers(min_states, max_states))
    n_actions = draw(st.integers(1, max_actions))
    n_costs = draw(st.integers(1, max_costs))
    grid = (n_states, n_actions)

    weights = draw(_whole_numbers((*grid, n_states), most=4)).astype(np.float64)
    own = np.arange(n_states)
    # a row without weight stays where it is
    weights[own, :, own] += weights.sum(axis=2) == 0.0
    rows = weights / weights.sum(axis=2, keepdims=True)
    reward = draw(_whole_numbers(grid, most=_LEVELS)) / _LEVELS
    cost = draw(_whole_numbers((n_costs, *grid), most=_LEVELS)) / _LEVELS

    available = np.ones(grid, dtype=np.bool_)
    if _decide(draw, masked):
        available = draw(arrays(np.bool_, grid))
        available[~available.any(axis=1), 0] = True
    extras: dict[str, Any] = {}
    if _decide(draw, named):
        extras["state_names"] = [f"s{state}" for state in range(n_states)]
        extras["action_names"] = [f"a{action}" for action in range(n_actions)]
        extras["coordinates"] = np.stack([own, own % 2], axis=1)
    if draw(st.booleans()):
        extras["reward_max"] = 2.0
        extras["cost_max"] = np.full(n_costs, 2.0)
    transitions: Any = rows
    if _decide(draw, sparse):
        import scipy.sparse as sp

        transitions = sp.csr_array(rows.reshape(-1, n_states))
    cmdp = CMDP(
        transitions,
        reward,
        cost,
        discount=draw(st.sampled_from(discounts)),
        budget=np.zeros(n_costs),
        start=draw(_starts(n_states)),
        available=available,
        **extras,
    )
    return cmdp.replace(budget=draw(budgets(cmdp, feasible=feasible)))


@st.composite
def policies(
    draw: st.DrawFn, cmdp: CMDP, *, deterministic: bool | None = None
) -> Policy:
    """Draw a policy that plays available actions of ``cmdp`` only."""
    if _decide(draw, deterministic):
        counts = np.diff(cmdp.state_ptr)
        chosen = [draw(st.integers(0, int(count) - 1)) for count in counts]
        actions = cmdp.pair_action[cmdp.state_ptr[:-1] + np.array(chosen)]
        return Policy.deterministic(actions, cmdp.n_actions)
    weights = draw(_whole_numbers((cmdp.n_pairs,), most=4)).astype(np.float64)
    sums = np.add.reduceat(weights, cmdp.state_ptr[:-1])
    weights[cmdp.state_ptr[:-1][sums == 0.0]] = 1.0
    sums = np.add.reduceat(weights, cmdp.state_ptr[:-1])
    return Policy.from_pair_weights(cmdp, weights / sums[cmdp.pair_state])


@st.composite
def budgets(draw: st.DrawFn, cmdp: CMDP, *, feasible: bool | None = None) -> FloatArray:
    """Draw budgets for ``cmdp``, one a channel.

    With ``feasible=None`` they are anywhere between nothing and the largest cost that
    there could be.  Examples for which no budget is infeasible, as nothing need cost
    anything, are discarded with ``feasible=False``.
    """
    if feasible is None:
        share = draw(_whole_numbers((cmdp.n_costs,), most=_LEVELS)) / _LEVELS
        scale = np.maximum(cmdp.cost_max, cmdp.cost.max(axis=1, initial=0.0))
        anywhere: FloatArray = share * scale / (1.0 - cmdp.discount)
        return anywhere
    if feasible:
        result = evaluate(cmdp, draw(policies(cmdp)))
        slack = draw(_whole_numbers((cmdp.n_costs,), most=2)) / 2.0
        kept: FloatArray = (result.start_costs + result.error) * (1.0 + slack)
        return kept
    least = _least_costs(cmdp)
    short = np.flatnonzero(least > 1e-3)
    assume(short.size > 0)
    broken = int(draw(st.sampled_from(short.tolist())))
    budget = np.asarray(cmdp.cost_max / (1.0 - cmdp.discount), dtype=np.float64)
    budget[broken] = least[broken] * draw(st.sampled_from([0.5, 0.0, 0.9]))
    return budget


@st.composite
def kernels(
    draw: st.DrawFn, cmdp: CMDP, *, radius: float = 0.2, on_support: bool = True
) -> CMDP:
    """Draw a problem whose transitions are near those of ``cmdp``.

    Every row differs from the original by at most ``radius`` in the 1-norm; nothing
    else differs.  With ``on_support`` no row has successors that it had not before.
    """
    if not 0.0 <= radius <= 2.0:
        raise refusal("radius", "a number in [0, 2]", radius)
    shape = (cmdp.n_pairs, cmdp.n_states)
    before = cmdp.transition_matrix.toarray()
    weights = draw(_whole_numbers(shape, most=4)).astype(np.float64)
    if on_support:
        weights *= before > 0.0
    empty = weights.sum(axis=1) == 0.0
    weights[empty] = before[empty]
    target = weights / weights.sum(axis=1, keepdims=True)
    share = draw(_whole_numbers((cmdp.n_pairs, 1), most=4)) / 4.0
    # p + t (q − p) is at most 2 t away from p
    after = before + share * (radius / 2.0) * (target - before)
    pairs, successors = np.nonzero(after)
    return cmdp.replace(
        row_ptr=np.searchsorted(pairs, np.arange(cmdp.n_pairs + 1)),
        successor=successors,
        probability=after[pairs, successors],
    )


def _whole_numbers(
    shape: tuple[int, ...], *, most: int
) -> st.SearchStrategy[np.ndarray[Any, np.dtype[np.int64]]]:
    return arrays(
        np.int64, shape, elements=st.integers(0, most), fill=st.integers(0, most)
    )


def _starts(n_states: int) -> st.SearchStrategy[Any]:
    spread = distributions(1, n_states).map(lambda rows: rows[0])
    return st.integers(0, n_states - 1) | spread


def _decide(draw: st.DrawFn, choice: bool | None) -> bool:
    return draw(st.booleans()) if choice is None else choice


def _least_costs(cmdp: CMDP) -> FloatArray:
    """Bound the least cost of every channel from below, by iterating from zero."""
    matrix = cmdp.transition_matrix
    values = np.zeros((cmdp.n_states, cmdp.n_costs))
    for _ in range(200):
        pairs = cmdp.cost.T + cmdp.discount * (matrix @ values)
        values = np.minimum.reduceat(pairs, cmdp.state_ptr[:-1], axis=0)
    least: FloatArray = cmdp.start @ values
    return least
