"""The fallback through a lifetime: what it costs at worst, and where it stands.

``w`` bounds what the fallback policy ``f`` costs from each promisable state on.  At
birth it comes from :func:`escapade.planning.fallback.fallback`.  Afterwards the sets of
kernels only shrink, so what was a supersolution stays one, and is improved in place:

- with one budget, ``w(s) ← min(w(s), least Q(s, a))`` over the pairs that stay within
  the promisable states, ``f(s)`` the pair that attains it;
- with several, ``w_k ← min(w_k, Q_k(·, f))`` for the same ``f``; another fallback is
  taken only where every channel's promise can follow.

Each sweep starts from a supersolution and ends with one, so it may stop at any time.
A state outside joins the promisable ones when one of its pairs leads among them for
sure at a worst cost within the budget.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from escapade.kernels.fallback import (
    Standing,
    enclose,
    fill_into,
    improve,
    keep_up,
)
from escapade.knowledge.belief import Belief
from escapade.planning.fallback import Fallback, fallback
from escapade.typing import BoolArray, FloatArray, IntArray

__all__ = ["Safety"]

_LOST = 4e-12
"""More than one backup is rounded up by, as a share of the largest cost-to-go."""

_UP = 1.0 + 1e-11
"""The same for what a backup has just offered: ``Q(s, f(s)) <= w(s)`` in doubles."""


_KEPT = ("w", "pairs", "promisable", "allowed", "q", "ahead", "reach")


class Safety:
    """Fallback, promisable states and worst-case costs, kept up to date.

    Attributes
    ----------
    w
        ``[K, S]``, infinite outside the promisable states.
    pairs
        ``[S]``; the pair of the fallback in each state.
    promisable
        ``[S]`` mask.
    allowed
        ``[pairs]`` mask: every possible successor is promisable.
    q, ahead, reach
        ``[K, pairs]``: worst cost of a pair and the fallback after it, the discounted
        share of the fallback, and the discounted worst of the fallback over every
        possible successor; infinite for pairs that are not allowed.
    at_birth
        The fallback as it was found at first, with its reasons.
    """

    w: FloatArray
    pairs: IntArray
    promisable: BoolArray
    allowed: BoolArray
    q: FloatArray
    ahead: FloatArray
    reach: FloatArray

    def __init__(
        self, belief: Belief, cap: FloatArray, *, precision: float, sweeps: int = 60
    ) -> None:
        self.cap = cap
        self._precision = precision
        self._sweeps = sweeps
        knowledge = belief.knowledge
        self._state_ptr = knowledge.pairs.state_ptr
        self._into = (
            np.zeros(knowledge.n_states + 1, dtype=np.int64),
            np.empty(knowledge.successor.size, dtype=np.int32),
        )
        fill_into(knowledge.row_ptr, knowledge.successor, *self._into)
        self._lost = _LOST / (1.0 - knowledge.discount)
        self.at_birth = self._found(belief)
        self._adopt(self.at_birth, belief)
        # the belief that pairs were last looked at by, and what they stand for
        self._read: Belief | None = None
        self._version = -1
        self._w_then, self._promisable_then = self.w, self.promisable
        self.allowed = np.zeros(knowledge.n_pairs, dtype=np.bool_)
        self.q = np.full((cap.size, knowledge.n_pairs), np.inf)
        self.ahead, self.reach = self.q, self.q
        self.refresh(belief)

    def _found(self, belief: Belief) -> Fallback:
        return fallback(
            belief.likeliest(),
            belief.sets,
            cost=belief.cost_upper,
            budget=self.cap * (1.0 - self._lost),
            precision=self._precision,
        )

    def _adopt(self, found: Fallback, belief: Belief) -> None:
        self.promisable = np.array(found.promisable)
        self.w, self.pairs = self._rounded_up(found, belief)

    def _rounded_up(
        self, found: Fallback, belief: Belief
    ) -> tuple[FloatArray, IntArray]:
        """Return cost-to-go and pairs, with what backups round up along the way."""
        inside = np.where(found.promisable, found.cost_to_go, 0.0)
        more = self._lost * inside.max(axis=1, keepdims=True)
        # where it is 0 nothing ever comes, and nothing is rounded
        lifted = np.where(inside > 0.0, inside + more, 0.0)
        layout = belief.knowledge.pairs
        table = np.zeros((layout.n_states, layout.n_actions), dtype=np.int64)
        table[layout.pair_state, layout.pair_action] = np.arange(layout.n_pairs)
        pairs = table[np.arange(layout.n_states), found.policy.actions]
        return np.where(found.promisable, lifted, np.inf), pairs

    def state(self) -> dict[str, np.ndarray]:
        """Return the fallback as it stands, as copies of arrays by name."""
        return {name: np.array(getattr(self, name)) for name in _KEPT}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Go back to what :meth:`state` returned."""
        for name in _KEPT:
            setattr(self, name, np.array(arrays[name]))
        self._read = None

    # -- keeping up --------------------------------------------------------------------

    def renew(self, belief: Belief, state: int, promise: FloatArray) -> None:
        """Look for a fallback from scratch, and take what is better.

        States outside that can only be promised together are found in no other way.
        ``promise`` is what was promised in ``state``, where life goes on: with several
        budgets another fallback is taken only if it keeps that.  With one budget, once
        every state is promisable, improving step by step leads just as far.
        """
        if len(self.w) == 1 and self.promisable.all():
            self.refresh(belief)
            return
        found = self._found(belief)
        w, pairs = self._rounded_up(found, belief)
        if len(w) == 1:
            # the least of two supersolutions is one, for the policy that attains it
            better = w[0] < self.w[0]
            self.w[0, better] = w[0, better]
            self.pairs[better] = pairs[better]
            self.promisable |= found.promisable
        elif (w[:, state] <= promise).all() and self._exceeded(found, w):
            self._adopt(found, belief)
        self.refresh(belief)

    def rebuild(self, belief: Belief) -> None:
        """Begin anew, after the belief has widened."""
        self._adopt(self._found(belief), belief)
        self.refresh(belief)

    def change_cap(
        self, belief: Belief, cap: FloatArray, states: IntArray, promise: FloatArray
    ) -> str:
        """Hold ``w`` within another cap; say why not if the promise cannot follow.

        ``promise`` holds in ``states``, where life is or begins; it is kept.  Nothing
        is changed where it cannot be.
        """
        if (cap < 0.0).any():
            return "what pays for delta is more than that"
        before = self.cap
        self.cap = cap
        covered = np.isfinite(self.w).all(axis=0)
        if (self.w[:, covered] <= cap[:, np.newaxis]).all():
            self.refresh(belief)
            return ""
        found = self._found(belief)
        w, _ = self._rounded_up(found, belief)
        for state in states:
            if not found.promisable[state]:
                self.cap = before
                return found.why(int(state))
            over = w[:, state] > promise
            if over.any():
                self.cap = before
                k = int(np.argmax(over))
                name = belief.knowledge.pairs.name_state(int(state))
                return (
                    f"from {name} at least {w[k, state]:.6g} would have to be "
                    f"promised, and {promise[k]:.6g} is"
                    + (f" in channel {k}" if len(w) > 1 else "")
                )
        self._adopt(found, belief)
        self.refresh(belief)
        return ""

    def _exceeded(self, found: Fallback, w: FloatArray) -> bool:
        """Tell whether a fallback covers more, or as much at less cost on the whole."""
        more = int(found.promisable.sum()) - int(self.promisable.sum())
        both = found.promisable & self.promisable
        saved = (self.w[:, both] - w[:, both]).sum(axis=1) / np.maximum(
            self.cap, 1e-300
        )
        return more > 0 or (more == 0 and bool(saved.sum() > 0.0))

    def refresh(self, belief: Belief) -> None:
        """Improve everything by what the belief has learned since the last time."""
        held = belief.held
        if held is None:
            for _ in range(self._sweeps):
                self._evaluate(belief)
                gain, least = improve(self._state_ptr, self.cap, _UP, self._standing())
                if not gain > self._precision * (1.0 + least):
                    break
            self._evaluate(belief)
            return
        news = self._news(belief)
        # ledgers that were handed out keep theirs
        self.allowed = self.allowed.copy()
        self.q, self.ahead = self.q.copy(), self.ahead.copy()
        self.reach = self.reach.copy()
        keep_up(
            self._sweeps,
            self._precision,
            self._state_ptr,
            self.cap,
            _UP,
            held,
            self._standing(),
            *self._into,
            news,
            self._w_then,
            self._promisable_then,
        )

    def _news(self, belief: Belief) -> BoolArray:
        """Return the pairs that the belief holds something new of, ``[pairs]``."""
        if self._read is not belief:
            self._read, self._version = belief, -1
            self._w_then = self.w.copy()
            self._promisable_then = self.promisable.copy()
        news: BoolArray = belief.news_at > self._version
        self._version = belief.version
        return news

    def _standing(self) -> Standing:
        return Standing(
            w=self.w,
            fallback=self.pairs,
            promisable=self.promisable,
            allowed=self.allowed,
            q=self.q,
            ahead=self.ahead,
            reach=self.reach,
        )

    def _evaluate(self, belief: Belief) -> None:
        """Set what pairs cost at worst under the present ``w``."""
        knowledge = belief.knowledge
        costs, afters = [], []
        for k, channel in enumerate(self.w):
            # states outside are never reached by pairs that are allowed
            cost, after = belief.worst_cost(k, np.where(self.promisable, channel, 0.0))
            costs.append(cost)
            afters.append(after)
        self.q, self.ahead = np.array(costs), np.array(afters)
        self.reach = np.empty_like(self.q)
        self.allowed = np.empty(knowledge.n_pairs, dtype=np.bool_)
        enclose(
            np.arange(knowledge.n_pairs),
            knowledge.row_ptr,
            knowledge.successor,
            belief.confidence.upper,
            knowledge.discount,
            self._standing(),
        )
        self._read = None
