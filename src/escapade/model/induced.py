"""Induced CMDPs: the problem restricted to some of its states (Definition 3).

Inside the chosen states nothing changes.  Every state outside that can be entered
becomes an *exit*: it is entered, its terminal reward and terminal cost are charged
there once, and the next step leads to ``end``, which absorbs at no reward and no cost.
An exit of its own for each state outside lets terminal rewards and costs differ from
one to the next, which is what a certified cost-to-go needs.

Four problems of the algorithm are instances:

===================  =================  ==================  ==========================
problem              inside             reward              terminal
===================  =================  ==================  ==========================
known-state          known states       as it is            reward 0, cost ``w``
exploration          known states       0                   reward ``r_max``, cost ``w``
worst-case escape    unknown states     1 a step once left  cost ``c_max`` a step inside
safe return          known states       1 a step            reward 0, cost ``w``
===================  =================  ==================  ==========================

The paper charges nothing after leaving.  Then ``C(s | M_K) <= d`` says nothing about
the cost in the whole problem, so the corrected problems charge a certified bound
``w(s')`` on what is still to come (errata E7); ``paper=True`` keeps the zero.  The
paper's escape problem pays no reward anywhere outside, so that maximising a
non-negative reward prefers to stay; the corrected one minimises discounted time inside
(errata E8), written as the reward ``1`` a step after leaving, which has the same
maximisers and keeps rewards in ``[0, r_max]``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from escapade.errors import refusal
from escapade.model.arguments import read_numbers, read_start
from escapade.model.cmdp import CMDP
from escapade.model.layout import read_array
from escapade.model.policy import Policy
from escapade.typing import ArrayLike, BoolArray, FloatArray, IntArray

__all__ = [
    "InducedCMDP",
    "escape_cmdp",
    "exploration_cmdp",
    "induce",
    "known_state_cmdp",
    "safe_return_cmdp",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class InducedCMDP:
    """A problem restricted to some states, and how it maps to the whole one.

    Attributes
    ----------
    cmdp
        The restricted problem: inside states first, then exits, then the end.
    inside
        State of the whole problem for each inside state, ``(I,)``.
    exits
        State of the whole problem for each exit, ``(E,)``.
    n_whole
        Number of states of the whole problem.
    """

    cmdp: CMDP
    inside: IntArray
    exits: IntArray
    n_whole: int

    @property
    def end(self) -> int:
        """The absorbing state of the restricted problem."""
        return self.inside.size + self.exits.size

    def restricted(self, policy: Policy) -> Policy:
        """Return the policy of the whole problem, as one of the restricted problem."""
        self._check_whole("policy", policy)
        kept = policy.probabilities[self.inside]
        outside = np.zeros((self.exits.size + 1, policy.n_actions))
        first = self.cmdp.pair_action[self.cmdp.state_ptr[self.inside.size : -1]]
        outside[np.arange(outside.shape[0]), first] = 1.0
        return Policy(np.vstack([kept, outside]))

    def lifted(self, policy: Policy, elsewhere: Policy) -> Policy:
        """Return a whole policy: ``policy`` inside, ``elsewhere`` in other states."""
        self._check_whole("elsewhere", elsewhere)
        shape = (self.end + 1, self.cmdp.n_actions)
        if policy.probabilities.shape != shape:
            raise refusal(
                "policy", f"shape {shape}", f"shape {policy.probabilities.shape}"
            )
        whole = np.array(elsewhere.probabilities)
        whole[self.inside] = policy.probabilities[: self.inside.size]
        return Policy(whole)

    def spread(self, values: FloatArray, *, fill: float = np.nan) -> FloatArray:
        """Return values of the restricted states, ``(..., end + 1)``, over the whole.

        States that are neither inside nor exits get ``fill``.
        """
        if values.shape[-1:] != (self.end + 1,):
            raise refusal(
                "values", f"shape (..., {self.end + 1})", f"shape {values.shape}"
            )
        last = self.inside.size
        whole = np.full((*values.shape[:-1], self.n_whole), fill)
        whole[..., self.inside] = values[..., :last]
        whole[..., self.exits] = values[..., last:-1]
        return whole

    def _check_whole(self, argument: str, policy: Policy) -> None:
        shape = (self.n_whole, self.cmdp.n_actions)
        if policy.probabilities.shape != shape:
            raise refusal(
                argument, f"shape {shape}", f"shape {policy.probabilities.shape}"
            )


def known_state_cmdp(
    cmdp: CMDP,
    known: ArrayLike,
    *,
    terminal_cost: ArrayLike | None = None,
    paper: bool = False,
    start: ArrayLike | None = None,
) -> InducedCMDP:
    """Return the exploitation problem ``M_K``.

    Parameters
    ----------
    cmdp
        The whole problem.
    known
        The inside states: a mask ``(S,)`` or a list of states.
    terminal_cost
        Certified cost-to-go ``w``, ``(S,)`` or ``(K, S)``, charged on leaving.
    paper
        Charge nothing on leaving, as printed in the paper.
    start
        A state or a distribution over the whole problem's states that lies inside; by
        default the whole problem's start given that it lies inside, or the uniform
        distribution over the inside if it cannot.
    """
    return induce(
        cmdp,
        known,
        reward=cmdp.reward,
        cost=cmdp.cost,
        terminal_reward=0.0,
        terminal_cost=_read_terminal_cost(cmdp, terminal_cost, paper),
        start=start,
        argument="known",
    )


def exploration_cmdp(
    cmdp: CMDP,
    known: ArrayLike,
    *,
    terminal_cost: ArrayLike | None = None,
    paper: bool = False,
    start: ArrayLike | None = None,
) -> InducedCMDP:
    """Return the exploration problem ``M_K'``: reward ``r_max`` on leaving, else none.

    Its value divided by ``reward_max`` is the expected discount at the step on which
    an unknown state is entered.  Arguments as for :func:`known_state_cmdp`.
    """
    return induce(
        cmdp,
        known,
        reward=np.zeros(cmdp.n_pairs),
        cost=cmdp.cost,
        terminal_reward=cmdp.reward_max,
        terminal_cost=_read_terminal_cost(cmdp, terminal_cost, paper),
        start=start,
        argument="known",
    )


def escape_cmdp(
    cmdp: CMDP,
    unknown: ArrayLike,
    *,
    terminal_cost: ArrayLike | None = None,
    paper: bool = False,
    start: ArrayLike | None = None,
) -> InducedCMDP:
    """Return the worst-case escape problem ``M_U``: cost ``c_max`` a step inside.

    The corrected problem pays the reward 1 on every step after leaving, so that the
    value is ``1 / (1 − discount)`` less the discounted time inside, plus what the paper
    calls the terminal reward, nothing.  With ``paper`` it keeps the given rewards
    inside and pays nothing outside.
    """
    everywhere = np.broadcast_to(cmdp.cost_max[:, np.newaxis], cmdp.cost.shape)
    return induce(
        cmdp,
        unknown,
        reward=cmdp.reward if paper else np.zeros(cmdp.n_pairs),
        cost=everywhere,
        terminal_reward=0.0 if paper else 1.0,
        end_reward=0.0 if paper else 1.0,
        terminal_cost=_read_terminal_cost(cmdp, terminal_cost, paper),
        start=start,
        argument="unknown",
    )


def safe_return_cmdp(
    cmdp: CMDP,
    known: ArrayLike,
    *,
    terminal_cost: ArrayLike | None = None,
    paper: bool = False,
    start: ArrayLike | None = None,
) -> InducedCMDP:
    """Return the safe-return problem: reward 1 on every step inside, as it is named.

    Its value is the discounted time spent in the known states before leaving them.
    Arguments as for :func:`known_state_cmdp`.
    """
    return induce(
        cmdp,
        known,
        reward=np.ones(cmdp.n_pairs),
        cost=cmdp.cost,
        terminal_reward=0.0,
        terminal_cost=_read_terminal_cost(cmdp, terminal_cost, paper),
        start=start,
        argument="known",
    )


def induce(
    cmdp: CMDP,
    inside: ArrayLike,
    *,
    reward: FloatArray,
    cost: FloatArray,
    terminal_reward: float,
    terminal_cost: FloatArray,
    end_reward: float = 0.0,
    start: ArrayLike | None = None,
    argument: str = "inside",
) -> InducedCMDP:
    """Restrict ``cmdp`` to ``inside`` with the given means and terminal charges.

    ``reward`` is ``(pairs,)``, ``cost`` ``(K, pairs)``, ``terminal_cost`` ``(K, S)``;
    the terminal charges are paid once, at the step on which an exit is occupied.
    ``argument`` is what the caller calls ``inside``.
    """
    mask = _read_states(argument, inside, cmdp.n_states)
    within = np.flatnonzero(mask)
    kept = mask[cmdp.pair_state]
    transitions = cmdp.transition_matrix[np.flatnonzero(kept)]
    reached = np.zeros(cmdp.n_states, dtype=np.bool_)
    reached[transitions.indices] = True
    exits = np.flatnonzero(reached & ~mask)
    charges = terminal_cost[:, exits]
    if not np.isfinite(charges).all():
        state = int(exits[np.argmin(np.isfinite(charges).all(axis=0))])
        raise refusal(
            "terminal_cost",
            "finite numbers where the inside can be left",
            "an infinite one",
            f"state {state}",
        )
    n_inside, n_exits = within.size, exits.size
    end = n_inside + n_exits
    renumber = np.full(cmdp.n_states, -1)
    renumber[within] = np.arange(n_inside)
    renumber[exits] = n_inside + np.arange(n_exits)
    per_state = np.diff(cmdp.state_ptr)[within]
    state_ptr = np.concatenate([[0], np.cumsum(per_state)])
    tail = state_ptr[-1] + 1 + np.arange(n_exits + 1)
    row_tail = transitions.nnz + 1 + np.arange(n_exits + 1)
    full_cost = np.hstack([cost[:, kept], charges, np.zeros((cmdp.n_costs, 1))])
    full_reward = np.concatenate(
        [reward[kept], np.full(n_exits, terminal_reward), [end_reward]]
    )
    restricted = CMDP.from_pairs(
        state_ptr=np.concatenate([state_ptr, tail]).astype(np.int64),
        pair_action=np.concatenate(
            [cmdp.pair_action[kept], np.zeros(n_exits + 1, dtype=np.int32)]
        ),
        row_ptr=np.concatenate([transitions.indptr, row_tail]).astype(np.int64),
        successor=np.concatenate(
            [renumber[transitions.indices], np.full(n_exits + 1, end)]
        ),
        probability=np.concatenate([transitions.data, np.ones(n_exits + 1)]),
        reward=full_reward,
        cost=full_cost,
        n_actions=cmdp.n_actions,
        discount=cmdp.discount,
        budget=cmdp.budget,
        start=_restrict_start(cmdp, start, mask, end),
        reward_max=max(cmdp.reward_max, float(full_reward.max())),
        cost_max=np.maximum(cmdp.cost_max, full_cost.max(axis=1)),
        state_names=_names(cmdp, within, exits),
        action_names=cmdp.action_names,
    )
    return InducedCMDP(
        cmdp=restricted, inside=within, exits=exits, n_whole=cmdp.n_states
    )


def _names(cmdp: CMDP, within: IntArray, exits: IntArray) -> list[str] | None:
    if cmdp.state_names is None:
        return None
    named = [cmdp.state_names[state] for state in within]
    left = [f"exit to {cmdp.state_names[state]}" for state in exits]
    return [*named, *left, "end"]


def _read_terminal_cost(
    cmdp: CMDP, terminal_cost: ArrayLike | None, paper: bool
) -> FloatArray:
    shape = (cmdp.n_costs, cmdp.n_states)
    if paper:
        if terminal_cost is not None:
            raise refusal("terminal_cost", "none with paper=True", "one")
        return np.zeros(shape)
    if terminal_cost is None:
        raise refusal(
            "terminal_cost",
            "a certified cost-to-go for the states outside (or paper=True)",
            "none",
        )
    charges = read_numbers("terminal_cost", terminal_cost)
    if charges.shape == (cmdp.n_states,) and cmdp.n_costs == 1:
        charges = charges[np.newaxis]
    if charges.shape != shape:
        raise refusal("terminal_cost", f"shape {shape}", f"shape {charges.shape}")
    if not (charges >= 0).all():
        k, state = np.argwhere(~(charges >= 0))[0]
        raise refusal(
            "terminal_cost",
            "numbers of at least 0",
            float(charges[k, state]),
            f"channel {k}, state {state}",
        )
    return charges


def _read_states(argument: str, states: ArrayLike, n_states: int) -> BoolArray:
    given = read_array(argument, "a mask or a list of states", states)
    if given.dtype == np.bool_:
        if given.shape != (n_states,):
            raise refusal(argument, f"shape ({n_states},)", f"shape {given.shape}")
        mask = given.copy()
    else:
        listed: Any = given.astype(np.int64) if given.size == 0 else given
        if listed.ndim != 1 or listed.dtype.kind not in "iu":
            raise refusal(
                argument,
                "a mask or a list of states",
                f"dtype {listed.dtype}, shape {listed.shape}",
            )
        out = (listed < 0) | (listed >= n_states)
        if out.any():
            place = int(np.argmax(out))
            raise refusal(
                argument,
                f"states in 0..{n_states - 1}",
                int(listed[place]),
                f"position {place}",
            )
        mask = np.zeros(n_states, dtype=np.bool_)
        mask[listed] = True
    if not mask.any():
        raise refusal(argument, "at least one state", "none")
    return mask


def _restrict_start(
    cmdp: CMDP, start: ArrayLike | None, mask: BoolArray, end: int
) -> FloatArray:
    whole = cmdp.start if start is None else read_start(start, cmdp.n_states)
    if start is not None and whole[~mask].any():
        state = int(np.flatnonzero((whole > 0) & ~mask)[0])
        raise refusal("start", "a start inside", "mass outside", f"state {state}")
    kept = whole[mask]
    result = np.zeros(end + 1)
    if kept.sum() > 0:
        result[: kept.size] = kept / kept.sum()
    else:
        result[: kept.size] = 1.0 / kept.size
    return result
