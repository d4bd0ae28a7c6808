"""Action models: what an expert knows of places that nobody has seen.

An expert cannot name the transition probabilities of an unknown place, but can say how
things typically work: a step north leads one cell north, unless a wall is there; now
and then it fails and ends near by.  Each such case is an *action model* ``g_i``, valid
in some places and not in others.  With a rate τ of failure and a neighbourhood ``N``
it stands for the kernels

    ``(1 − τ) δ_{g_i(s,a)} + τ q,    τ_min <= τ <= τ_max,  q a law on N(g_i(s,a)),``

all of them: τ is a continuum, and ``q`` is uniform or any law at all.  The uncertainty
set of a pair is the union over the models that are *active* there.

It shrinks in three ways, and never grows.  An outcome that is impossible under a model
rules it out at once.  What is merely unlikely rules it out when the evidence reaches
``1/δ`` (:mod:`escapade.uncertainty.action_models_evidence`): a true model is ever ruled
out anywhere with probability at most ``error``.  And what holds in one place may say
what holds elsewhere: pairs can share their model (``groups``), and a
:class:`Transfer` rules out combinations, such as two opposite walls too close together.

A model may bound what a step costs or earns.  Then the worst case of cost and next
state is taken *together*, model by model (:meth:`ActionModels.charged`).

Sets are values: :meth:`~ActionModels.observe` and :meth:`~ActionModels.rule_out` return
a new set, which shares what did not change.  Only pairs whose counts changed, and what
follows from them, are looked at again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from escapade.errors import refusal
from escapade.model.arguments import read_number
from escapade.model.layout import read_array
from escapade.typing import ArrayLike, BoolArray, FloatArray, IntArray
from escapade.uncertainty.action_models_branches import (
    BranchSet,
    Charge,
    first_largest,
    uniform_rows,
)
from escapade.uncertainty.action_models_description import (
    ActionModel,
    Failures,
    Spaces,
    Transfer,
    read_pairs_mask,
)
from escapade.uncertainty.action_models_evidence import (
    gain_evidence,
    transition_evidence,
)
from escapade.uncertainty.action_models_samples import Samples
from escapade.uncertainty.action_models_statement import (
    Statement,
    read_statement,
    settle,
)
from escapade.uncertainty.base import Sense, UncertaintySet
from escapade.uncertainty.buffers import read_sense
from escapade.uncertainty.rows import frozen, gather_rows

__all__ = ["ActionModels", "Weighed"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Weighed:
    """What was seen, one number a branch: evidence against it, its fit, its rate."""

    evidence: FloatArray
    fit: FloatArray
    rate: FloatArray


class ActionModels(BranchSet):
    """The union of action models, each pair for itself, less those ruled out.

    Parameters
    ----------
    spaces
        What says which states, actions and pairs there are: a problem, whose numbers
        are not used (but for the bounds on costs and rewards), or its pairs.
    models
        The models by name; where a pair has several, the first is thought likeliest.
    failures
        How actions fail: one way, or several of which one is true for each pair.
    groups
        Labels ``(S, A)`` or ``(pairs,)`` of pairs that are known to have the same model
        and the same way of failing, each with a rate and law of its own; −1, and by
        default all, for pairs by themselves.
    transfers
        Rules on the models of different pairs.
    error
        Probability with which a true model may ever be ruled out by mistake.  With 0
        only outcomes that are impossible under a model rule it out.
    cost_max, reward_max
        Bounds on samples, where models speak of costs or rewards; those of the problem
        by default.

    Examples
    --------
    Two cells, and a wall that may stand between them.

    >>> import escapade as ep
    >>> cmdp = ep.CMDP(
    ...     [[[0.0, 1.0]], [[0.0, 1.0]]],
    ...     [[1.0], [1.0]],
    ...     [[0.0], [0.0]],
    ...     discount=0.9,
    ...     budget=1.0,
    ... )
    >>> walls = ep.uncertainty.ActionModels(
    ...     cmdp,
    ...     {
    ...         "free": ep.uncertainty.ActionModel(typical=[1, 1]),
    ...         "wall": ep.uncertainty.ActionModel(typical=[0, -1]),
    ...     },
    ...     failures=ep.uncertainty.Failures(around=[[True] * 2] * 2, rate=(0.0, 0.1)),
    ...     error=0.01,
    ... )
    >>> walls.active_at(0)
    {0: ('free', 'wall')}
    >>> walls.observe([[[20, 0]], [[0, 0]]]).active_at(0)
    {0: ('wall',)}
    """

    def __init__(
        self,
        spaces: Spaces,
        models: Mapping[str, ActionModel],
        *,
        failures: Failures | Sequence[Failures],
        groups: ArrayLike | None = None,
        transfers: Transfer | Sequence[Transfer] = (),
        error: float = 0.0,
        cost_max: ArrayLike | None = None,
        reward_max: float | None = None,
    ) -> None:
        statement, left = read_statement(
            spaces, models, failures, groups, transfers, error, cost_max, reward_max
        )
        branches = statement.branches
        self._own(
            statement,
            left,
            Weighed(
                evidence=np.zeros(branches.size),
                fit=np.zeros(branches.size),
                rate=0.5 * (branches.low + branches.high),
            ),
            None,
            np.arange(statement.rows.n_rows),
        )

    @classmethod
    def restored(
        cls, statement: Statement, left: BoolArray, weighed: Weighed
    ) -> ActionModels:
        """Return the set with these parts, such as those that a file holds."""
        models = cls.__new__(cls)
        everything = np.arange(statement.rows.n_rows)
        models._own(statement, left, weighed, None, everything)
        return models

    def _own(
        self,
        statement: Statement,
        left: BoolArray,
        weighed: Weighed,
        before: ActionModels | None,
        changed: IntArray,
    ) -> None:
        """Own what is left, and work out what follows for the pairs that changed."""
        self._statement = statement
        self._left = frozen(left)
        self._weighed = weighed
        branches, rows = statement.branches, statement.rows
        ptr, chosen = gather_rows(branches.ptr, changed)
        still = left[
            statement.groups.of[statement.pair[chosen]], statement.kind[chosen]
        ]
        if before is None:
            active = np.zeros(branches.size, dtype=np.bool_)
            reachable = np.zeros(rows.stored.size, dtype=np.bool_)
            nominal = np.zeros(rows.stored.size)
        else:
            active = before.active.copy()
            reachable = before.reachable.copy()
            nominal = before.nominal.copy()
        active[chosen] = still
        likeliest = first_largest(np.where(still, weighed.fit[chosen], -np.inf), ptr)
        best = chosen[likeliest]
        uniform_rows(rows, branches, changed, best, weighed.rate[best], nominal)
        super().__init__(
            rows.with_nominal(nominal),
            branches,
            frozen(active),
            reachable=reachable,
        )
        self._mark_reachable(changed, self.active, reachable)
        frozen(reachable)

    def _narrowed(
        self, left: BoolArray, groups: IntArray, weighed: Weighed, seen: IntArray
    ) -> ActionModels:
        """Return the set with less left in some groups, and what follows from that."""
        statement = self._statement
        shrunk = groups[(left[groups] != self._left[groups]).any(axis=1)]
        settle(statement, left, shrunk)
        moved = (
            np.flatnonzero((left != self._left).any(axis=1)) if shrunk.size else shrunk
        )
        _, place = gather_rows(statement.groups.ptr, moved)
        changed = np.union1d(statement.groups.members[place], seen)
        narrowed = ActionModels.__new__(ActionModels)
        narrowed._own(statement, left, weighed, self, changed)
        return narrowed

    # -- what is left ------------------------------------------------------------------

    @property
    def statement(self) -> Statement:
        """What the expert said."""
        return self._statement

    @property
    def left_in_groups(self) -> BoolArray:
        """``(groups, kinds)``; which models and ways may still be true of a group."""
        return self._left

    @property
    def weighed(self) -> Weighed:
        """What was seen so far says of each branch."""
        return self._weighed

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the models."""
        return self._statement.names

    @property
    def error(self) -> float:
        """Probability with which a true model may ever be ruled out by mistake."""
        return self._statement.error

    @property
    def left(self) -> BoolArray:
        """``(pairs, M, ways)``; which models and ways of failing may still be true."""
        statement = self._statement
        mask = np.zeros((self.n_pairs, statement.n_kinds), dtype=np.bool_)
        mask[statement.pair[self.active], statement.kind[self.active]] = True
        return mask.reshape(self.n_pairs, len(statement.names), statement.n_ways)

    def same_statement(self, other: ActionModels) -> bool:
        """Tell whether both sets were made by evidence from the same statement."""
        return self._statement is other._statement

    def active_at(self, state: int) -> dict[int, tuple[str, ...]]:
        """Return the names of the models that may be true, for each action."""
        statement = self._statement
        if not 0 <= state < self.n_states:
            raise refusal("state", f"a state in 0..{self.n_states - 1}", state)
        found: dict[int, tuple[str, ...]] = {}
        spaces = statement.spaces
        for pair in range(spaces.state_ptr[state], spaces.state_ptr[state + 1]):
            mine = slice(statement.branches.ptr[pair], statement.branches.ptr[pair + 1])
            models = statement.kind[mine][self.active[mine]] // statement.n_ways
            found[int(spaces.pair_action[pair])] = tuple(
                statement.names[m] for m in np.unique(models)
            )
        return found

    @property
    def log_evidence(self) -> FloatArray:
        """``(pairs, M)``; log of the evidence against each model, all told.

        Of the group of the pair, and the least over the ways of failing; infinite for
        models that are impossible.  A model goes when this reaches the
        :attr:`threshold`.
        """
        statement = self._statement
        everything = np.arange(statement.groups.size)
        sums = statement.sums(self._weighed.evidence, everything)
        shape = (statement.groups.size, len(statement.names), statement.n_ways)
        least: FloatArray = sums.reshape(shape).min(axis=2)[statement.groups.of]
        return least

    @property
    def threshold(self) -> float:
        """What :attr:`log_evidence` must reach to rule a model out."""
        return self._statement.threshold

    # -- learning ----------------------------------------------------------------------

    def observe(
        self,
        counts: Any,
        *,
        costs: ArrayLike | None = None,
        cost_visits: ArrayLike | None = None,
        rewards: ArrayLike | None = None,
        reward_visits: ArrayLike | None = None,
        pairs: ArrayLike | None = None,
    ) -> ActionModels:
        """Return the set without the models that what was seen rules out.

        Parameters
        ----------
        counts
            How often each transition was seen, *in all*: ``[entries]`` beside the
            set's own rows, or any table of transitions.
        costs, rewards
            Sums of the samples of each pair, in all: ``(K, pairs)`` or ``(pairs,)``.
            Left out where nothing is said of them.
        cost_visits, reward_visits
            How many samples the sums have, if not one for each transition counted.
            Whether a sample is missing must not depend on its size.
        pairs
            The pairs whose counts have changed since this set was made; all of them by
            default.

        Raises
        ------
        AssumptionError
            If no model is left for some pair: the world is none of those described, or
            the error of probability :attr:`error` was made.
        """
        statement = self._statement
        samples = Samples(statement)
        seen = samples.read_pairs(pairs)
        numbers = samples.read_counts(counts, seen)
        fresh = transition_evidence(self._rows, statement.branches, seen, numbers)
        ptr, chosen = gather_rows(statement.branches.ptr, seen)
        against = [fresh.log_evidence]
        if statement.bound.size:
            least, most = statement.mean_range
            sums = samples.read_sums(
                costs, cost_visits, rewards, reward_visits, numbers, seen
            )
            here = np.repeat(np.arange(seen.size), np.diff(ptr))
            for k, (total, number) in enumerate(sums):
                against.append(
                    gain_evidence(
                        least[k, chosen], most[k, chosen], total[here], number[here]
                    )
                )
        evidence = self._weighed.evidence.copy()
        evidence[chosen] = np.logaddexp.reduce(against, axis=0) - math.log(len(against))
        fit, rate = self._weighed.fit.copy(), self._weighed.rate.copy()
        fit[chosen], rate[chosen] = fresh.log_fit, fresh.rate
        weighed = Weighed(evidence=evidence, fit=fit, rate=rate)

        watched = np.unique(statement.groups.of[seen])
        limit = np.where(statement.contested[watched], statement.threshold, np.inf)
        out = statement.sums(evidence, watched) >= limit[:, np.newaxis]
        return self._apply(watched, out, weighed, seen)

    def keep(self, left: ArrayLike) -> ActionModels:
        """Return the set without what a mask leaves out.

        ``left`` is ``(pairs, M)`` or ``(pairs, M, ways)``, such as :attr:`left` of a
        set that was saved.  What follows from the rules is ruled out as well.
        """
        statement = self._statement
        mask = read_array("left", "a boolean mask", left)
        shape = (self.n_pairs, len(statement.names), statement.n_ways)
        if mask.dtype != np.bool_ or mask.shape not in (shape, shape[:2]):
            raise refusal(
                "left",
                f"a boolean mask of shape {shape[:2]} or {shape}",
                f"{mask.dtype} of shape {mask.shape}",
            )
        full = np.broadcast_to(mask.reshape(*shape[:2], -1), shape)
        out = np.zeros((statement.groups.size, statement.n_kinds), dtype=np.bool_)
        np.logical_or.at(
            out, statement.groups.of, ~full.reshape(self.n_pairs, statement.n_kinds)
        )
        nothing = np.empty(0, dtype=np.int64)
        return self._apply(np.arange(len(out)), out, self._weighed, nothing)

    def rule_out(self, model: str, where: ArrayLike) -> ActionModels:
        """Return the set without a model in some places, and without what follows.

        ``where`` is a mask of states ``(S,)`` or of pairs ``(S, A)`` or ``(pairs,)``.
        """
        gone = np.zeros((self.n_pairs, len(self.names)), dtype=np.bool_)
        gone[:, self._index(model)] = self._read_places(where)
        return self.keep(~gone)

    def establish(self, model: str, where: ArrayLike) -> ActionModels:
        """Return the set in which a model is the true one in some places.

        ``where`` as in :meth:`rule_out`; pairs of which the model says nothing are
        passed over.
        """
        index = self._index(model)
        statement = self._statement
        speaks = np.zeros(self.n_pairs, dtype=np.bool_)
        speaks[statement.pair[statement.kind // statement.n_ways == index]] = True
        places = self._read_places(where) & speaks
        kept = np.ones((self.n_pairs, len(self.names)), dtype=np.bool_)
        kept[places] = False
        kept[:, index] = True
        return self.keep(kept)

    def with_error(self, error: float) -> ActionModels:
        """Return the set in which models may be ruled out with another error.

        What has been ruled out already stays so, whatever error that was done with.
        """
        delta = read_number("error", error)
        if not 0.0 <= delta < 1.0:
            raise refusal("error", "a number in [0, 1)", delta)
        nothing = np.empty(0, dtype=np.int64)
        same = ActionModels.__new__(ActionModels)
        same._own(
            replace(self._statement, error=delta),
            self._left,
            self._weighed,
            self,
            nothing,
        )
        return same

    def _apply(
        self, groups: IntArray, out: BoolArray, weighed: Weighed, seen: IntArray
    ) -> ActionModels:
        left = self._left.copy()
        left[groups] &= ~out
        return self._narrowed(left, groups, weighed, seen)

    # -- costs and rewards -------------------------------------------------------------

    @property
    def ties_costs(self) -> bool:
        """Whether the models say what steps cost."""
        return self._statement.n_costs > 0

    @property
    def ties_rewards(self) -> bool:
        """Whether the models say what steps earn."""
        return self._statement.ties_rewards

    def cost_bounds(self, channel: int = 0) -> tuple[FloatArray, FloatArray]:
        """Return the least and the most that mean costs can be, ``(pairs,)`` each.

        Under the models that are left; see :meth:`charged` for the worst of costs and
        next states together.
        """
        if not 0 <= channel < self._statement.n_costs:
            raise refusal(
                "channel",
                f"one of the {self._statement.n_costs} costs that the models speak of",
                channel,
            )
        return self._mean_bounds(channel)

    def reward_bounds(self) -> tuple[FloatArray, FloatArray]:
        """Return the least and the most that mean rewards can be, ``(pairs,)`` each."""
        statement = self._statement
        if not statement.ties_rewards:
            raise refusal("models", "models that speak of rewards", "none that does")
        return self._mean_bounds(statement.n_costs)

    def _mean_bounds(self, channel: int) -> tuple[FloatArray, FloatArray]:
        statement = self._statement
        least, most = statement.mean_range[:, channel]
        starts = statement.branches.ptr[:-1]
        low = np.minimum.reduceat(np.where(self.active, least, np.inf), starts)
        high = np.maximum.reduceat(np.where(self.active, most, -np.inf), starts)
        bound = statement.bound[channel]
        return low * bound, high * bound

    def charged(
        self,
        cost: FloatArray,
        weights: FloatArray,
        discount: float,
        *,
        sense: Sense = "max",
    ) -> tuple[UncertaintySet, FloatArray]:
        """Return the set and the gain that back costs up together with next states.

        The worst of ``Σ_k weights_k c_k + discount · P · v``, in which costs and next
        states are those of one model and one rate; see the base class.  ``cost`` bounds
        the means from the other side as well: no mean is above it (below, for
        ``"min"``), whatever the model.
        """
        base, gain = super().charged(cost, weights, discount, sense=sense)
        statement = self._statement
        if statement.n_costs == 0:
            return base, gain
        if len(cost) != statement.n_costs:
            raise refusal("cost", f"{statement.n_costs} channels", len(cost))
        sign = read_sense(sense)
        side = 1 if sense == "max" else 0
        means = statement.gains[:, : statement.n_costs]
        means = means * statement.bound[: statement.n_costs, np.newaxis]
        cap = np.asarray(cost)[:, statement.pair]
        scale = sign * np.asarray(weights)[:, np.newaxis]
        charge = Charge(
            sense=sense,
            discount=float(discount),
            at_target=frozen(scale * (means[side] - cap)),
            at_miss=frozen(scale * (means[2 + side] - cap)),
        )
        charged = BranchSet(
            self._rows,
            self.branches,
            self.active,
            charge=charge,
            reachable=self.reachable,
        )
        return charged, gain

    # -- reading -----------------------------------------------------------------------

    def _index(self, model: str) -> int:
        if model not in self.names:
            raise refusal("model", f"one of {list(self.names)}", repr(model))
        return self.names.index(model)

    def _read_places(self, where: ArrayLike) -> BoolArray:
        return read_pairs_mask("where", where, self._statement.spaces)
