"""E⁴: one lifetime, safe from the first step.

The agent is asked what to do in a state, and told what came of it.  Before every action
the ledger is consulted; after every outcome the promise is settled.  In between stand a
belief, which narrows with what is seen, a fallback that can always be afforded, and a
plan that says what would be worth doing.

When the world does what was held impossible, the theorem behind the promise no longer
applies.  The agent says so (:attr:`E4.breaks`), plays the fallback from then on, and
promises what that costs at worst, as far as it can still tell.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from os import PathLike
from typing import Any, SupportsIndex

import numpy as np

from escapade.agent import diary
from escapade.agent.budget_change import change_budget
from escapade.agent.certificate import Certificate, certify, nothing_certain
from escapade.agent.decision import Decision, Told, not_open, number_of
from escapade.agent.drift import Drift, promise_anew
from escapade.agent.late import LateCosts
from escapade.agent.life import conclude, wrap_up
from escapade.agent.paper.planning import PaperPlanning
from escapade.agent.path_budget import paths_margin
from escapade.agent.phases import PHASES, REASONS
from escapade.agent.planners import check_channels
from escapade.agent.planning import Planned, Planning
from escapade.agent.refinement import further_goals, worth_refining
from escapade.agent.safety import Safety
from escapade.agent.settings import E4Settings
from escapade.errors import AssumptionError, check_kind, refusal
from escapade.kernels.ledger import Pending
from escapade.kernels.life import GOES_ON, IMPOSSIBLE, SURPRISING, answer
from escapade.kernels.paper import CORRECTED, Course, begin
from escapade.kernels.parcels import Parcel
from escapade.knowledge.birth import at_birth
from escapade.knowledge.knowledge import Knowledge
from escapade.knowledge.observations import (
    Surely,
    read_cost,
    read_reward,
    read_state,
)
from escapade.typing import ArrayLike, FloatArray, IntArray

__all__ = ["E4", "Decision"]

_DOWN = 1.0 - 2.0**-52

_OWN_STREAM = (4,)

_LOOK_AGAIN = 1.5
"""By how much a life must have grown before what takes long is looked at again."""


class E4:
    """Explicit explore, exploit, or escape.

    Parameters
    ----------
    knowledge
        All that the agent is told about its world.
    settings
        See :class:`E4Settings`.

    Attributes
    ----------
    knowledge, born_with
        What it was told, with the present budget and with that at birth.
    cap
        ``(K,)``; the most that is ever promised: the budget, less the margin that pays
        for what is only known with confidence.
    promise
        ``(K,)``; the present promise.
    breaks
        What the world did against the assumptions, in words; empty while all holds.
    drifts
        What has changed in the world, and what became of the promise, in words.
    plans, decisions
        How often the agent has planned and decided.
    learning
        Whether it learns; see :mod:`escapade.agent.operators`.
    certified
        Whether, when it last looked, the earning policy was certified to be within
        ``epsilon`` of the best; see :meth:`certificate`.
    gap
        How far from the best that policy might be, as seen then; ``None`` before it
        has looked, or if the policy is not certain to keep the budget.

    Raises
    ------
    AssumptionError
        If the budget cannot be promised from the start; the message says why.
    """

    def __init__(
        self, knowledge: Knowledge, settings: E4Settings | None = None
    ) -> None:
        check_kind("knowledge", knowledge, Knowledge)
        self.knowledge = knowledge
        self.born_with = knowledge
        if settings is not None:
            check_kind("settings", settings, E4Settings)
        self.settings = settings or E4Settings()
        check_channels(self.settings.planner, knowledge.n_costs)
        self.cap: FloatArray
        self.belief, self.cap = at_birth(
            knowledge,
            delta=self.settings.delta,
            margin=self.settings.margin,
            reopens=self.settings.drift_window is not None,
        )
        self.cap = self.cap - paths_margin(knowledge, self.settings)
        self._kept = knowledge.budget - self.cap
        limit = self.settings.planning_sweeps
        self.safety = Safety(
            self.belief, self.cap, precision=1e-9, sweeps=min(limit or 60, 60)
        )
        self._check_start()
        self.promise: FloatArray = np.array(self.cap)
        self.memory: IntArray = np.zeros(1, dtype=np.int64)
        # a stream of its own, for worlds are given the same seeds
        stream = np.random.SeedSequence(self.settings.seed, spawn_key=_OWN_STREAM)
        self.rng = np.random.default_rng(stream)
        k = knowledge.n_costs
        self.pending = Pending(
            rule=np.zeros(k, dtype=np.int64),
            q=np.zeros(k),
            ahead=np.zeros(k),
            reach=np.zeros(k),
            shift=np.zeros(k),
        )
        self.course: Course = begin(k)
        self.planning: Planning | PaperPlanning = Planning(self.settings)
        if self.settings.mode == "paper":
            if knowledge.varying.any():
                raise refusal(
                    "mode",
                    "'ledger' where pairs are varying, as the paper's rules rest on "
                    "frequencies",
                    "'paper'",
                    knowledge.pairs.name(int(np.argmax(knowledge.varying))),
                )
            self.planning = PaperPlanning(
                self.settings, self.belief, self.safety, self.course
            )
        self.changed = np.zeros(knowledge.n_pairs, dtype=np.bool_)
        self.wish: FloatArray = np.zeros(1)
        self.planned: Planned = self.planning.plan(self.belief, self.safety)
        self.plans = 1
        self.decisions = 0
        self.breaks: list[str] = []
        self._broken: set[str] = set()
        self.drifts: list[str] = []
        self.drift: Drift | None = None
        if self.settings.drift_window is not None:
            self.drift = Drift(
                self.belief,
                delta=self.settings.drift_delta,
                window=self.settings.drift_window,
            )
        self.certified = False
        self.gap: float | None = None
        self._look_at = 0
        self._renew_at = 0
        self.state: int | None = None
        self.learning = True
        self.surely = Surely(knowledge)
        self.late = LateCosts(knowledge.discount)
        self._life: tuple[Planned, Parcel] | None = None
        self._open: tuple[Decision, int] | None = None
        self._last: Told | None = None

    def _check_start(self) -> None:
        start = np.flatnonzero(self.knowledge.start)
        outside = start[~self.safety.promisable[start]]
        if outside.size:
            less = (self.cap < self.knowledge.budget).any()
            raise AssumptionError(
                f"knowledge: expected a budget that can be promised from the start, "
                f"found that {self.safety.at_birth.why(int(outside[0]))}"
                f"{' (the budget less its margin)' if less else ''}; "
                f"escapade.preflight(knowledge) tells the least budget and what else "
                f"would mend it"
            )

    @property
    def seed(self) -> int | None:
        """Seed of the agent's own draws."""
        return self.settings.seed

    @property
    def unguarded(self) -> bool:
        """Whether a rule of the paper's decides that the ledger does not check."""
        return self.planned.rules.test != CORRECTED

    def draw_start(self) -> int | None:
        """Return the state in which life shall begin; ``None`` leaves it to the world.

        Only ``PaperSettings(start="random-known")`` asks for one.
        """
        if isinstance(self.planning, PaperPlanning) and self.state is None:
            return self.planning.draw_start(self.safety, self.rng)
        return None

    # -- ask and tell ------------------------------------------------------------------

    def ask(self, state: SupportsIndex) -> Decision:
        """Return what to do in ``state``.

        Between a question and what came of it no other question is answered, and the
        state must be the one that the last step was told to lead to.
        """
        if self._open is not None:
            raise refusal(
                "ask", "what came of the last decision first", self._open[0].id
            )
        here = read_state(self.knowledge, "state", state)
        if self.state is not None and here != self.state:
            raise refusal("state", f"the state told last, {self.state}", here)
        if not (self.safety.promisable[here] or self.breaks or self.unguarded):
            raise AssumptionError(
                f"state: expected one from which the budget can be promised, found "
                f"that {self.safety.at_birth.why(here)}"
            )
        life = self.life()
        ledger = life.content.ledger
        pair, phase, reason = answer(
            life.table, ledger.channels, here, self.rng.random()
        )
        decision = Decision(
            id=self.decisions,
            state=here,
            action=life.content.action.item(pair),
            phase=PHASES[phase],
            reason=REASONS[reason],
            promise=tuple(self.promise.tolist()),
            reserved=tuple(ledger.w[:, here].tolist()),
            reason_code=reason,
        )
        self._open = (decision, int(pair))
        return decision

    def tell(
        self,
        decision: Decision,
        *,
        reward: float,
        cost: ArrayLike | None,
        next_state: SupportsIndex,
    ) -> None:
        """Say what came of a decision.

        Telling the same thing twice does nothing the second time.

        Parameters
        ----------
        decision
            As :meth:`ask` returned it.
        reward
            In ``[0, reward_max]``.
        cost
            One number for each channel, or ``None`` if it is not known: then
            ``cost_max`` is charged, and nothing is learned from it, unless
            :meth:`tell_cost` brings it later.  Whether a cost is missing must not
            depend on what it is; if it may, tell ``cost_max`` instead.
        next_state
            Where the step led.

        Raises
        ------
        AssumptionError
            If a number is outside the bounds that were told at birth.  Nothing is
            changed then, and the decision stays open.
        """
        number = number_of(decision)
        after = read_state(self.knowledge, "next_state", next_state)
        earned = read_reward(self.knowledge, reward)
        paid = None if cost is None else read_cost(self.knowledge, cost)
        told = (number, earned, None if paid is None else tuple(paid.tolist()), after)
        self._conclude(told, paid, learns=self.learning)

    def forget(self, decision: Decision, *, next_state: SupportsIndex) -> None:
        """Say that what came of a decision was lost, but for where it led.

        As after a crash: ``cost_max`` is charged, and nothing is learned.  Whether an
        outcome gets lost must not depend on what it was; if it may, tell what is known
        (:meth:`tell`), with ``cost_max`` for the cost.  Forgetting the same decision
        twice does nothing the second time; its cost may still be told late.

        Parameters
        ----------
        decision
            As :meth:`ask` returned it, or :attr:`open_decision`.
        next_state
            Where the plant is now, one step later.
        """
        number = number_of(decision)
        after = read_state(self.knowledge, "next_state", next_state)
        self._conclude((number, None, None, after), None, learns=False)

    def tell_cost(self, decision: Decision | int, cost: ArrayLike) -> None:
        """Bring the cost of a decision that was told without it, or forgotten.

        It is learned from.  As much is given back of what had been charged as the rule
        that was chosen at the decision allows, had it known the cost at once; where
        that rule was "in expectation", or the promise has met its cap since, that is
        nothing (see :mod:`escapade.agent.late`).

        Parameters
        ----------
        decision
            As :meth:`ask` returned it, or its number.
        cost
            One number for each channel.
        """
        paid = read_cost(self.knowledge, cost)
        number = decision.id if isinstance(decision, Decision) else decision
        if number not in self.late:
            raise refusal("decision", "one whose cost is awaited", number)
        pair, raised = self.late.settle(
            number, self.knowledge.cost_max - paid, self.promise
        )
        np.minimum(raised * _DOWN, self.cap, out=raised)
        np.maximum(self.promise, raised, out=self.promise)
        if self.learning:
            self.belief.evidence.record_cost(pair, paid)
            self.changed[pair] = True
        wrong = self.surely.contradicted(pair, None, paid)
        if wrong:
            self.break_down(wrong, late=number)

    def _opened(self, told: Told) -> int:
        """Return the pair of the open decision; −1 if this was told before."""
        if self._open is None or told[0] != self._open[0].id:
            if told == self._last:
                return -1
            raise not_open(told[0], self.open_decision, answered=self.decisions)
        return self.open_pair

    def life(self) -> Parcel:
        """Return what compiled code reads and writes under the plan in force."""
        if self._life is None or self._life[0] is not self.planned:
            self._life = (self.planned, wrap_up(self))
        return self._life[1]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_life": None}  # a copy has its own arrays

    def _conclude(self, told: Told, paid: FloatArray | None, *, learns: bool) -> None:
        """Settle the promise, and close the open decision; unless told before."""
        pair = self._opened(told)
        if pair < 0:
            return
        assert self._open is not None
        number, earned, _, after = told
        state = self._open[0].state
        why = conclude(self.life(), pair, state, after, earned, paid, learns=learns)
        self._open, self._last = None, told
        drifts = len(self.drifts)
        self.finish_step(pair, after, why=why, reward=earned, cost=paid)
        if paid is None and why != IMPOSSIBLE:
            rule = self.pending.rule
            self.late.expect(number, pair, rule, self.promise, self.cap)
            if self.breaks or len(self.drifts) > drifts:
                self.late.give_up()

    def finish_step(
        self,
        pair: int,
        next_state: int,
        *,
        why: int,
        reward: float | None,
        cost: FloatArray | None,
    ) -> None:
        """Close a step that was concluded; ``why`` says what is to be done then."""
        self.state = next_state
        self.decisions += 1
        self.late.carry_on(self.decisions, self.promise, self.cap)
        if why == GOES_ON:
            return
        if why == SURPRISING:
            self.break_down(self.surely.contradicted(pair, reward, cost))
        elif why == IMPOSSIBLE:
            named = self.knowledge.pairs
            self.break_down(
                f"successor: expected one that is possible after {named.name(pair)}, "
                f"found {named.name_state(next_state)}"
            )
        elif not self.breaks and self.learning:
            self.replan()

    def replan(self) -> None:
        """Bring belief, fallback and plan up to date with what was seen."""
        if self.breaks:
            return
        changed = np.flatnonzero(self.changed)
        self.changed[:] = False
        self.wish[0] = 0.0
        self.plans += 1
        try:
            reopened = self._reopen_what_moved(changed)
            self.belief.update(changed)
        except AssumptionError as error:
            self.break_down(str(error))
            return
        if reopened:
            self._begin_anew(reopened)
            if self.breaks:
                return
        else:
            self._keep_safe()
        self.planned = self.planning.plan(self.belief, self.safety, self.state)
        self._look_at_certificate()

    def _reopen_what_moved(self, pairs: IntArray) -> str:
        """Reopen those of ``pairs`` that have changed; return their names."""
        if self.drift is None:
            return ""
        moved, told = self.drift.look(self.belief, pairs)
        if told:
            raise AssumptionError(told)
        if moved.size:
            self.belief.reopen(moved)
        self.drift.go_on(self.belief, pairs, moved)
        return ", ".join(self.knowledge.pairs.name(int(pair)) for pair in moved)

    def _begin_anew(self, reopened: str) -> None:
        """Find fallback and promise again, after the belief has widened."""
        self.safety.rebuild(self.belief)
        self.late.give_up()
        self.planning.refine = None
        self.certified, self.gap = False, None
        self.planned = replace(
            self.planned,
            ledger=self.planning.ledger(self.belief, self.safety),
            no_refund=np.zeros_like(self.planned.no_refund),
        )
        outcome = promise_anew(self.promise, self.safety.w[:, self.state or 0])
        self.drifts.append(f"decision {self.decisions - 1}: {reopened} {outcome}")
        if not np.isfinite(self.promise).all():
            self.break_down(f"{reopened}: expected no change, found one")

    def _keep_safe(self) -> None:
        """Bring the fallback up to date; at times that grow apart, from scratch."""
        capped = self.settings.planning_sweeps is not None
        if capped or self.state is None or self.decisions < self._renew_at:
            self.safety.refresh(self.belief)
            return
        self._renew_at = int(_LOOK_AGAIN * self.decisions) + 1
        self.safety.renew(self.belief, self.state, self.promise)

    def _look_at_certificate(self) -> None:
        """Ask, once nothing is left to explore, if the gap is closed, or what would.

        That costs more than a plan, so it is asked at times that grow apart.
        """
        state = self.state
        if state is None or self.decisions < self._look_at:
            return
        if self.settings.planning_sweeps is not None:
            return
        if self.planned.frontier.value[state] > 0.0 and not self.planning.looks_early:
            return
        self._look_at = int(_LOOK_AGAIN * self.decisions) + 1
        found = self._certify(state, search=False)
        self.certified = found.safe and found.gap <= self.settings.epsilon
        self.gap = found.gap if found.safe else None
        self.planning.certified |= self.certified
        if self.certified or not self.planning.refines:
            return
        if not worth_refining(found, self.settings.epsilon):
            return
        earning = self.planning.earning(self.belief, self.safety, self.planned)
        self.planning.refine = further_goals(
            self.belief,
            self.belief.likeliest(),
            found.optimism,
            state=state,
            earning=earning.weights,
            playable=self.planned.playable,
            decisions=self.decisions,
        )
        self.planned = self.planning.plan(self.belief, self.safety, state)

    def break_down(self, what: str, *, late: int | None = None) -> None:
        """Note that an assumption broke, and keep to the fallback from now on.

        What breaks again and again is noted once.  ``late`` is the decision that it
        is about, if that is not the last one.
        """
        if what not in self._broken:
            self._broken.add(what)
            about = "" if late is None else f"decision {late}, whose cost came after "
            self.breaks.append(f"{about}decision {self.decisions - 1}: {what}")
        self.certified, self.gap = False, None
        self.late.give_up()
        self.planned = self.planning.nothing_but_fallback(self.planned)
        if self.state is not None:
            self.promise[:] = np.maximum(
                np.minimum(self.promise, self.cap), self.safety.w[:, self.state]
            )

    def change_budget(self, budget: ArrayLike) -> None:
        """Live within another budget from now on, if the promise can follow.

        A larger budget lets the promise grow, step by step; what was promised before
        is kept as well.  A smaller one cuts the promise to it at once, and is taken
        only if the fallback from here costs no more at worst, by way of states of
        which that is true.  What pays for ``delta`` stays as it was at birth, in
        absolute terms.

        Parameters
        ----------
        budget
            One number, or one for each channel.

        Raises
        ------
        InvalidInputError
            If the promise cannot follow; the message says why, and nothing is changed.
        """
        change_budget(self, budget)

    def certificate(self) -> Certificate:
        """Return what is certain about the earning policy from the present state.

        Before the first step that is the first possible start.  If the policy that the
        agent thinks best is not certain to keep the budget, the best one is searched
        for that is, which can take seconds.  After a break nothing is certain, and the
        certificate says so.
        """
        here = self.state
        if here is None:
            here = int(np.flatnonzero(self.knowledge.start)[0])
        if self.breaks:
            found = self._certify(here, search=False)
            return nothing_certain(found, self.knowledge, self.breaks[0])
        return self._certify(here, search=True)

    def _certify(self, state: int, *, search: bool) -> Certificate:
        weights = self.planning.earning(self.belief, self.safety, self.planned).weights
        epsilon = self.settings.epsilon
        return certify(
            self.belief,
            self.planned,
            weights,
            state=state,
            epsilon=epsilon,
            search=search,
        )

    # -- files -------------------------------------------------------------------------

    def save(self, path: str | PathLike[str]) -> None:
        """Write the agent to an npz file, whole or not at all."""
        from escapade.agent.files import save_agent

        save_agent(self, path)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> E4:
        """Read an agent that :meth:`save` wrote; it goes on bit for bit."""
        from escapade.agent.files import load_agent

        return load_agent(path)

    def journal(self) -> dict[str, Any]:
        """Return what is not an array: counters, breaks, what is open, for JSON."""
        return diary.write(self)

    def restore_journal(self, journal: Mapping[str, Any]) -> None:
        """Go back to what :meth:`journal` returned."""
        diary.read(self, journal)

    @property
    def open_decision(self) -> Decision | None:
        """The decision whose outcome has not been told, if there is one."""
        return None if self._open is None else self._open[0]

    def take_instead(self, decision: Decision, pair: int) -> None:
        """Put another decision in the place of the one that is open."""
        self._open = (decision, pair)

    @property
    def open_pair(self) -> int:
        """Its pair; −1 if none."""
        return -1 if self._open is None else self._open[1]
