"""Policies with a memory: finite controllers whose nodes belong to states.

A plan that keeps a promise needs to remember it: how much may still be spent, say.
Such a policy lives on *nodes*.  Each node belongs to one state and has a distribution
over the actions there; the state that comes next decides, perhaps by a further draw,
which of its nodes is entered.  On the nodes the policy is stationary, so everything
that holds for stationary policies holds for it in the *product* problem, whose states
are the nodes: values, costs, occupancies and worst cases are computed there and read
off at the nodes in which a lifetime begins.

The product's pairs are called rows here: one for each node and each action it may take.
Row ``i`` copies the transitions of pair ``pairs[i]``; its entries are the successors
that are possible, which may be more than the model at hand gives a positive
probability.  ``split`` says for each entry into which nodes of that successor it leads.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from escapade.errors import AssumptionError, refusal
from escapade.model.arguments import check_pointers
from escapade.model.cmdp import CMDP
from escapade.model.policy import Policy
from escapade.typing import FloatArray, IntArray

__all__ = ["MemoryPolicy", "MemoryRun"]

_TOLERANCE = 1e-12


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class MemoryPolicy:
    """A policy whose nodes remember; made by planners, not by hand.

    Attributes
    ----------
    n_states
        States of the problem the policy is for.
    node_state
        ``[M]``; the state of each node.
    choice
        The distribution over actions in each node, a stationary policy of the product.
    initial
        ``(S, M)`` sparse; the distribution over nodes in which a lifetime that begins
        in a state starts.
    pairs, row_ptr, successor
        ``[R]``, ``[R + 1]``, ``[E]``; the rows of the product by node and action: the
        pair each one copies, and its possible successors in increasing order.
    split
        ``(E, M)`` sparse; the distribution over nodes that each entry leads to.
    memory
        ``(M, K)`` what each node remembers, such as its promise for each cost.
    memory_name
        What that is, in a word.
    """

    n_states: int
    node_state: IntArray
    choice: Policy
    initial: sp.csr_array
    pairs: IntArray
    row_ptr: IntArray
    successor: IntArray
    split: sp.csr_array
    memory: FloatArray
    memory_name: str

    def __post_init__(self) -> None:
        m, e = self.n_nodes, self.successor.size
        if self.choice.n_states != m:
            raise refusal("choice", f"{m} nodes", f"{self.choice.n_states}")
        rows = self._row_node.size
        if self.pairs.shape != (rows,):
            raise refusal(
                "pairs",
                f"{rows}, one for each action of positive probability in a node",
                f"{self.pairs.size}",
            )
        check_pointers("row_ptr", self.row_ptr, e)
        if self.row_ptr.size != rows + 1:
            raise refusal("row_ptr", f"{rows + 1} pointers", f"{self.row_ptr.size}")
        for name, matrix, shape in (
            ("initial", self.initial, (self.n_states, m)),
            ("split", self.split, (e, m)),
        ):
            if matrix.shape != shape:
                raise refusal(name, f"shape {shape}", f"shape {matrix.shape}")
            sums = np.asarray(matrix.sum(axis=1)).ravel()
            off = ~(np.abs(sums - 1.0) <= _TOLERANCE)
            if off.any():
                row = int(np.argmax(off))
                raise refusal(
                    name,
                    "rows that sum to 1",
                    f"a sum of {sums[row]:.15g}",
                    f"row {row}",
                )
        for name, matrix, states in (
            ("initial", self.initial, np.arange(self.n_states)),
            ("split", self.split, self.successor),
        ):
            entries = sp.coo_array(matrix)
            wrong = self.node_state[entries.coords[1]] != states[entries.coords[0]]
            wrong &= entries.data != 0
            if wrong.any():
                row = int(entries.coords[0][np.argmax(wrong)])
                raise refusal(
                    name, "nodes of the state that is entered", "others", f"row {row}"
                )

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return int(self.node_state.size)

    @property
    def n_actions(self) -> int:
        """Number of actions."""
        return self.choice.n_actions

    @cached_property
    def node_ptr(self) -> IntArray:
        """``[M + 1]``; the rows of each node."""
        counts = np.bincount(self._row_node, minlength=self.n_nodes)
        pointers: IntArray = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        return pointers

    def product(self, cmdp: CMDP) -> CMDP:
        """Return the problem on the nodes; :attr:`choice` is a policy of it.

        Raises
        ------
        AssumptionError
            If the model reaches a successor for which the policy has no entry.
        """
        self.check_matches(cmdp)
        n_rows = self.pairs.size
        places = self._places(cmdp)
        spread = sp.csr_array(
            (cmdp.probability[places.source], places.entry, places.row_ptr),
            shape=(n_rows, self.successor.size),
        )
        rows = sp.csr_array(spread @ self.split)
        rows.sort_indices()
        node_ptr = self.node_ptr
        return CMDP.from_pairs(
            state_ptr=node_ptr,
            pair_action=cmdp.pair_action[self.pairs],
            row_ptr=rows.indptr,
            successor=rows.indices,
            probability=rows.data,
            reward=cmdp.reward[self.pairs],
            cost=cmdp.cost[:, self.pairs],
            n_actions=cmdp.n_actions,
            discount=cmdp.discount,
            budget=cmdp.budget,
            start=self.initial.T @ cmdp.start,
            reward_max=cmdp.reward_max,
            cost_max=cmdp.cost_max,
        )

    def from_start(self, values: FloatArray) -> FloatArray:
        """Turn numbers a node, ``(..., M)``, into numbers a state started afresh."""
        spread: FloatArray = np.asarray(self.initial @ values.T).T
        return spread

    def run(self, state: int, rng: np.random.Generator) -> MemoryRun:
        """Begin to act from ``state``."""
        return MemoryRun(self, state, rng)

    def check_matches(self, cmdp: CMDP) -> None:
        """Refuse a problem that the policy is not for."""
        node, action = np.nonzero(self.choice.probabilities)
        fits = (
            cmdp.n_states == self.n_states
            and cmdp.n_actions == self.n_actions
            and int(self.pairs.max(initial=-1)) < cmdp.n_pairs
            and bool((cmdp.pair_state[self.pairs] == self.node_state[node]).all())
            and bool((cmdp.pair_action[self.pairs] == action).all())
        )
        if not fits:
            raise refusal(
                "policy",
                f"a policy for the problem's {cmdp.n_states} states, "
                f"{cmdp.n_actions} actions and {cmdp.n_pairs} pairs",
                f"one with nodes for {self.n_states} states and "
                f"{self.n_actions} actions",
            )

    def __repr__(self) -> str:
        return (
            f"MemoryPolicy({self.n_states} states, {self.n_nodes} nodes that remember "
            f"{self.memory_name})"
        )

    @cached_property
    def _row_node(self) -> IntArray:
        node, _ = np.nonzero(self.choice.probabilities)
        nodes: IntArray = node.astype(np.int64)
        return nodes

    def _places(self, cmdp: CMDP) -> _Places:
        """Find the entry of each possible transition of each row."""
        lengths = np.diff(cmdp.row_ptr)[self.pairs]
        row_ptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        row = np.repeat(np.arange(self.pairs.size), lengths)
        source = (
            np.arange(row.size) - row_ptr[row] + cmdp.row_ptr[self.pairs][row]
        ).astype(np.int64)
        wanted = row * self.n_states + cmdp.successor[source]
        own_row = np.repeat(np.arange(self.pairs.size), np.diff(self.row_ptr))
        keys = own_row * self.n_states + self.successor
        entry = np.searchsorted(keys, wanted)
        found = entry < keys.size
        found[found] = keys[entry[found]] == wanted[found]
        if not found.all():
            k = int(np.argmin(found))
            pair = int(self.pairs[row[k]])
            raise AssumptionError(
                f"support: expected successors that the policy was planned for, found "
                f"state {int(cmdp.successor[source[k]])} after "
                f"{cmdp.describe_pair(pair)}"
            )
        return _Places(row_ptr=row_ptr, source=source, entry=entry.astype(np.int64))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Places:
    row_ptr: IntArray
    source: IntArray
    entry: IntArray


class MemoryRun:
    """A policy with memory at work: ask for an action, then tell what came.

    Examples
    --------
    >>> import numpy as np
    >>> import escapade as ep
    >>> world = ep.environments.three_state_loop()
    >>> exact = ep.uncertainty.L1Ball(world.cmdp, radius=0.0)
    >>> plan = ep.solve(world.cmdp, ep.SlackDP(), uncertainty=exact)
    >>> run = plan.policy.run(0, np.random.default_rng(1))
    >>> action = run.act()
    >>> run.observe(1 if action == 1 else 0)
    """

    __slots__ = ("_action", "_rng", "node", "policy")

    def __init__(
        self, policy: MemoryPolicy, state: int, rng: np.random.Generator
    ) -> None:
        if not 0 <= state < policy.n_states:
            raise refusal("state", f"a state in 0..{policy.n_states - 1}", state)
        self.policy = policy
        self._rng = rng
        self._action: int | None = None
        self.node = self._draw(policy.initial, state)

    @property
    def memory(self) -> FloatArray:
        """What is remembered now, ``(K,)``."""
        remembered: FloatArray = self.policy.memory[self.node]
        return remembered

    def act(self) -> int:
        """Draw the next action; again the same one until :meth:`observe` is called."""
        if self._action is None:
            row = self.policy.choice.probabilities[self.node]
            self._action = int(self._rng.choice(row.size, p=row))
        return self._action

    def observe(self, next_state: int) -> None:
        """Tell which state came after the last action."""
        if self._action is None:
            raise refusal("run", "a call of act first", "an observation")
        policy = self.policy
        rows = np.flatnonzero(policy.choice.probabilities[self.node])
        row = int(policy.node_ptr[self.node] + np.searchsorted(rows, self._action))
        first, last = int(policy.row_ptr[row]), int(policy.row_ptr[row + 1])
        place = first + int(np.searchsorted(policy.successor[first:last], next_state))
        if place >= last or policy.successor[place] != next_state:
            raise AssumptionError(
                f"support: expected a successor that the policy was planned for, "
                f"found state {next_state} after action {self._action} in state "
                f"{int(policy.node_state[self.node])}"
            )
        self.node = self._draw(policy.split, place)
        self._action = None

    def _draw(self, matrix: sp.csr_array, row: int) -> int:
        first, last = int(matrix.indptr[row]), int(matrix.indptr[row + 1])
        weights = np.maximum(matrix.data[first:last], 0.0)
        chosen = self._rng.choice(last - first, p=weights / weights.sum())
        return int(matrix.indices[first + chosen])
