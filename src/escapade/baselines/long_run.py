r"""The best stationary policy in the long run, with costs a step held to rates.

Regret is counted against the average reward a step, and so the algorithms from that
literature plan for it.  A discounted budget d allows a rate of (1 − γ) d for ever: that
is the rate that they are given.

Let x(s, a) be the share of time in the long run, and y(s, a) the expected number of
visits before it, from a start β.  The linear program of Hordijk and Kallenberg,

.. math:: \max_{x, y \ge 0} r \cdot x \quad \text{with} \quad
    (E - P)^\top x = 0, \quad E^\top x + (E - P)^\top y = β, \quad c \cdot x \le ρ,

where E names the state of each pair, asks for no more than can be reached from the
start, whatever recurrent classes the model has.

Two things the program leaves open.  On the way to where x is positive the policy takes
the cheapest quick way.  And x may be made of several classes that do not lead to each
other: costs then average out over classes, and a stationary policy would be caught in
one.  Here the classes are visited in turn, each for its share (:class:`Follower`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from escapade.baselines.base import draw_pair
from escapade.errors import SolverError
from escapade.kernels.exploration import reach_values
from escapade.model.cmdp import CMDP
from escapade.planning.highs import LinearAnswer, LinearProgram, maximise
from escapade.typing import FloatArray

__all__ = ["Follower", "LongRun", "long_run_policy"]

_NEGLIGIBLE = 1e-9

_HASTE = 1e-7
"""What a visit on the way is charged, as a share of the largest reward: next to
nothing, but without it the program has many answers, over which HiGHS breaks down."""

_AHEAD = 0.99
"""Discount on the way to a class."""

_TOLL = 0.03
"""What costs weigh on the way to a class: as much as some steps more."""

_TURN = 25
"""Steps that a class is visited for at a time, if there are several."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LongRun:
    """A policy for the long run.

    Attributes
    ----------
    weights
        ``[classes, pairs]``; what to do while a recurrent class is being visited: they
        sum to 1 in each state.
    shares
        ``[classes]``; the share of time that each class should get.
    gain, rates
        The reward and, ``(K,)``, the costs a step that the model expects.
    feasible
        Whether the rates can be kept in the model; if not, the policy is that of the
        least costs, each relative to its bound.
    """

    weights: FloatArray
    shares: FloatArray
    gain: float
    rates: FloatArray
    feasible: bool


class Follower:
    """Follows a long-run policy: one class after the other, each for its share.

    A stationary policy would draw one of the classes, once, and stay; the costs of its
    long run would be right on average over such draws, and wrong in every life.
    """

    def __init__(self, policy: LongRun) -> None:
        self.policy = policy
        self._spent = np.zeros(policy.shares.size)
        self._now = int(np.argmax(policy.shares))

    def pair(self, first: int, last: int, rng: np.random.Generator) -> int:
        """Return one of the pairs ``first`` to ``last`` of a state."""
        steps = int(self._spent.sum())
        if steps and steps % _TURN == 0:
            self._now = int(np.argmax(steps * self.policy.shares - self._spent))
        self._spent[self._now] += 1.0
        return draw_pair(self.policy.weights[self._now], first, last, rng)


def long_run_policy(cmdp: CMDP, rates: FloatArray, start: FloatArray) -> LongRun:
    """Return the best policy of a model in the long run.

    Parameters
    ----------
    cmdp
        The model; its discount and budgets are not used.
    rates
        ``(K,)``; what each cost may come to in a step, in the long run.
    start
        ``(S,)``; where the model is now, as a distribution.
    """
    n = cmdp.n_pairs
    shape = (n, cmdp.n_states)
    own = sp.csr_array((np.ones(n), (np.arange(n), cmdp.pair_state)), shape=shape)
    flow = sp.csr_array((own - cmdp.transition_matrix).T)
    costs = sp.csr_array(cmdp.cost)
    blocks: list[list[Any]] = [[flow, None], [own.T, flow], [costs, None]]
    matrix = sp.csc_array(sp.block_array(blocks))
    balance = np.concatenate([np.zeros(cmdp.n_states), start])

    def answer(objective: FloatArray, most: FloatArray) -> LinearAnswer:
        haste = np.full(n, -_HASTE * max(float(np.abs(objective).max()), 1.0))
        return maximise(
            LinearProgram(
                objective=np.concatenate([objective, haste]),
                matrix=matrix,
                row_lower=np.concatenate([balance, np.full(most.size, -np.inf)]),
                row_upper=np.concatenate([balance, most]),
                lower=np.zeros(2 * n),
                upper=np.concatenate([np.ones(n), np.full(n, np.inf)]),
            )
        )

    found = answer(cmdp.reward, rates)
    feasible = found.outcome == "optimal"
    if not feasible:
        scale = np.where(cmdp.cost_max > 0.0, cmdp.cost_max, 1.0)[:, np.newaxis]
        found = answer(-(cmdp.cost / scale).sum(axis=0), np.full(rates.size, np.inf))
    if found.outcome != "optimal" or found.x is None:
        raise SolverError(f"HiGHS calls a long-run program {found.outcome!r}")
    often = np.maximum(found.x[:n], 0.0)
    parts = _classes(cmdp, often)
    shares = np.array([part.sum() for part in parts])
    return LongRun(
        weights=np.array([_weights(cmdp, part) for part in parts]),
        shares=shares / shares.sum(),
        gain=float(often @ cmdp.reward),
        rates=cmdp.cost @ often,
        feasible=feasible,
    )


def _classes(cmdp: CMDP, often: FloatArray) -> list[FloatArray]:
    """Return the parts of x ``[pairs]``, one for each recurrent class."""
    used = np.repeat(often > _NEGLIGIBLE, np.diff(cmdp.row_ptr))
    source = np.repeat(cmdp.pair_state, np.diff(cmdp.row_ptr))[used]
    graph = sp.csr_array(
        (np.ones(source.size), (source, cmdp.successor[used])),
        shape=(cmdp.n_states, cmdp.n_states),
    )
    _, label = connected_components(graph, directed=False)
    of_pair = label[cmdp.pair_state]
    names = np.unique(of_pair[often > _NEGLIGIBLE])
    return [np.where(of_pair == name, often, 0.0) for name in names]


def _weights(cmdp: CMDP, often: FloatArray) -> FloatArray:
    """Return what to do in every state: stay in a class, or go there."""
    first = cmdp.state_ptr[:-1]
    spent = np.add.reduceat(often, first)
    inside = spent > _NEGLIGIBLE
    share = np.where(inside, spent, 1.0)[cmdp.pair_state]
    weights = np.where(inside[cmdp.pair_state], often / share, 0.0)
    best = np.empty(cmdp.n_states, dtype=np.int64)
    scale = np.where(cmdp.cost_max > 0.0, cmdp.cost_max, 1.0)[:, np.newaxis]
    reach_values(
        cmdp.state_ptr,
        cmdp.row_ptr,
        cmdp.successor,
        cmdp.probability,
        np.ones(cmdp.n_pairs, dtype=np.bool_),
        _TOLL * (cmdp.cost / scale).sum(axis=0),
        inside,
        _AHEAD,
        1e-7,
        20 * cmdp.n_states + 100,
        np.empty(cmdp.n_states),
        np.empty(cmdp.n_pairs),
        best,
    )
    weights[np.where(best >= 0, best, first)[~inside]] = 1.0
    return np.asarray(weights)
