"""One plan of Algorithm 1: what is known, what may be spent, and the three policies.

A plan is made where a trajectory begins, as the algorithm has it, and whenever a state
has become known.  Where the agent stands in an unknown state, the policies of the known
ones can wait for the next trajectory; then only the escape is planned.

Exploration comes first, as in the paper's relaxed order: from every state from which an
unknown one is reached within T steps with a chance above ε/G, the exploring policy is
followed; from all others, the exploiting one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

import numpy as np

from escapade.agent.earning import Earning
from escapade.agent.exploration import Frontier
from escapade.agent.files import part_of
from escapade.agent.paper.budgets import (
    Budgets,
    escape_steps,
    failed_requirement,
    lemma_budgets,
    unfit,
)
from escapade.agent.paper.endless import why_endless
from escapade.agent.paper.escape import Escape
from escapade.agent.paper.policies import PlannedPolicy, plan_escape, plan_inside
from escapade.agent.paper.sampling import all_sampled, enough_visits
from escapade.agent.paper.settings import PaperSettings
from escapade.agent.planners import read_planners
from escapade.agent.planning import (
    Planned,
    Planning,
    at_home,
    by_state,
    home_and_room,
    reached_by,
)
from escapade.agent.safety import Safety
from escapade.agent.settings import E4Settings
from escapade.kernels.ledger import Plan
from escapade.kernels.paper import (
    AS_PRINTED,
    CORRECTED,
    FINISHED,
    IN_EXPECTATION_ONLY,
    Course,
    Rules,
)
from escapade.knowledge.belief import Belief
from escapade.theory.horizons import value_bound
from escapade.typing import BoolArray, FloatArray, IntArray

__all__ = ["PaperPlanning"]

_TESTS = {
    "corrected": CORRECTED,
    "in-expectation": IN_EXPECTATION_ONLY,
    "as-printed": AS_PRINTED,
}
_NEVER = np.iinfo(np.int64).max // 4
_LEAST_SHARE = 0.5
"""Of G, where a falling ε begins: with it, ε/G asks for an even chance."""


class PaperPlanning(Planning):
    """Plans Algorithm 1 again and again, each time from where the last plan ended.

    Attributes
    ----------
    budgets
        Those of the last plan.
    known
        ``[S]`` mask of the known states; it only grows.
    epsilon
        ε of the present stage.
    certified
        Whether the agent has a certificate, so that exploring may end.
    lapsed
        Which requirement of the Escape Budget Lemma failed first, and when; empty as
        long as all of them hold.
    """

    budgets: Budgets

    def __init__(
        self, settings: E4Settings, belief: Belief, safety: Safety, course: Course
    ) -> None:
        super().__init__(settings)
        self._paper = settings.paper_settings
        self._planners = read_planners(settings.planner)
        self._course = course
        self._settled = belief.settled
        self._escape = Escape(belief, self._paper.escape_cost)
        self.refines = False
        self.looks_early = self._paper.stop == "when-certified"
        knowledge = belief.knowledge
        self.known: BoolArray = np.array(knowledge.known_states)
        self.epsilon = settings.epsilon
        fallback = np.zeros(knowledge.n_pairs)
        fallback[safety.pairs] = 1.0
        nothing = np.zeros(safety.cap.size)
        self._exploit = PlannedPolicy(
            weights=fallback, feasible=False, value=0.0, cost=nothing
        )
        self._explore = self._exploit
        self._chance: FloatArray = np.zeros(knowledge.n_states)
        self.lapsed = ""
        self._enough: IntArray = np.zeros(knowledge.n_pairs, dtype=np.int64)
        self._learn(belief)
        self._count(belief, safety)
        failed = self._failed(belief, safety)
        if failed and self._paper.requirements == "strict":
            raise unfit(failed, reversible_helps=self._reversible_helps(belief))
        if self._paper.epsilon == "falling":
            self._raise_epsilon(belief, safety)
        self._note_failure(belief, safety)

    def draw_start(self, safety: Safety, rng: np.random.Generator) -> int | None:
        """Draw a known state to begin in, each as likely; ``None`` if one is given."""
        if self._paper.start == "given":
            return None
        choice = np.flatnonzero(self.known & safety.promisable)
        return int(choice[int(rng.random() * choice.size)]) if choice.size else None

    # -- one plan ----------------------------------------------------------------------

    def plan(self, belief: Belief, safety: Safety, state: int | None = None) -> Planned:
        """Return the plan for what is believed now, from ``state`` on."""
        grown = self._learn(belief) or not np.isfinite(self.budgets.escape_steps)
        if grown:
            self._count(belief, safety)
            self._note_failure(belief, safety)
        if self._planners["escape"] != "auto" and grown:
            self._plan_escape(belief, safety)
        self._escape.refresh(belief, safety, self.known)
        worst, mean, ahead = self._escape.ahead(belief)
        wanted = self._wanted(belief, worst)
        if self.known.any() and (state is None or self.known[state]):
            self._plan_policies(belief, safety, wanted, state)
            if self._epsilon_falls(belief, state):
                self._count(belief, safety)
                self._plan_policies(belief, safety, wanted, state)
        rules = self._rules(belief, safety, worst, mean, ahead)
        return self._planned(belief, safety, wanted, rules)

    def _learn(self, belief: Belief) -> bool:
        """Add to the known states; tell whether there are more now."""
        self._enough = enough_visits(
            belief,
            self._settled,
            quota=self._settings.known_after,
            settings=self._paper,
        )
        known = self.known | all_sampled(belief, self._enough)
        grown = bool((known != self.known).any())
        self.known = known
        return grown

    def _count(self, belief: Belief, safety: Safety) -> None:
        """Work the budgets out for the present known states and ε."""
        self._times = escape_steps(belief, self.known, self._paper)
        self.budgets = self._budgets(belief, safety, self._paper)

    def _failed(self, belief: Belief, safety: Safety) -> str:
        """Say which requirement of the lemma fails; empty if all of them hold."""
        endless = ~np.isfinite(self._times)
        why = why_endless(belief, self.known, endless) if endless.any() else ""
        return failed_requirement(self.budgets_by_lemma(belief, safety), why)

    def _reversible_helps(self, belief: Belief) -> bool:
        """Tell whether D would be finite for the states that can be entered."""
        if self._paper.diameter == "reversible":
            return False
        entered = replace(self._paper, diameter="reversible")
        return bool(np.isfinite(escape_steps(belief, self.known, entered)).all())

    def _note_failure(self, belief: Belief, safety: Safety) -> None:
        """Write down the first failure of a requirement, with what was known then."""
        failed = "" if self.lapsed else self._failed(belief, safety)
        if failed:
            self.lapsed = (
                f"with {int(self.known.sum())} of {self.known.size} states known: "
                f"expected {failed}; the ledger alone decides since"
            )

    def budgets_by_lemma(self, belief: Belief, safety: Safety) -> Budgets:
        """Return the budgets with d'' as the lemma has it, however it is split."""
        return self._budgets(belief, safety, replace(self._paper, budget_split="fixed"))

    def _budgets(
        self, belief: Belief, safety: Safety, settings: PaperSettings
    ) -> Budgets:
        return lemma_budgets(
            belief,
            safety,
            self.known,
            epsilon=self.epsilon,
            escape_steps=float(self._times.max()),
            settings=settings,
        )

    def _wanted(self, belief: Belief, worst: FloatArray) -> BoolArray:
        """Return the unknown states where some pair may be sampled, and should be."""
        layout = belief.knowledge.pairs
        missing = belief.evidence.pair_visits < self._enough
        if self._paper.test == "corrected":
            most = self.budgets.escape_budget[:, np.newaxis]
            missing &= (worst <= most).all(axis=0)
        wanted: BoolArray = np.logical_or.reduceat(missing, layout.state_ptr[:-1])
        return wanted & ~self.known

    def _plan_policies(
        self,
        belief: Belief,
        safety: Safety,
        wanted: BoolArray,
        state: int | None,
    ) -> None:
        """Plan how to explore, if there is anything to explore, and how to exploit."""
        given: dict[str, Any] = {
            "known": self.known,
            "wanted": wanted,
            "state": state,
            "plan_budget": self.budgets.plan_budget,
        }
        self._chance = np.zeros(wanted.size)
        if wanted.any() and not self._stops():
            self._explore = plan_inside(
                "explore", self._planners["explore"], belief, safety, **given
            )
            if self._explore.feasible:
                self._chance = self._arrivals(belief, wanted)
        self._exploit = plan_inside(
            "exploit", self._planners["exploit"], belief, safety, **given
        )

    def _stops(self) -> bool:
        return self._paper.stop == "when-certified" and self.certified

    def _plan_escape(self, belief: Belief, safety: Safety) -> None:
        weights = plan_escape(
            self._planners["escape"],
            belief,
            safety,
            known=self.known,
            escape_budget=self.budgets.escape_budget,
        )
        if weights is not None:
            self._escape.follow(weights)

    def _arrivals(self, belief: Belief, wanted: BoolArray) -> FloatArray:
        """Return the chance to reach a wanted state within T steps, exploring, [S]."""
        knowledge = belief.knowledge
        arrived = wanted.astype(np.float64)
        inside = self.known
        starts = knowledge.pairs.state_ptr[:-1]
        for _ in range(self.budgets.horizon):
            means = np.add.reduceat(
                belief.nominal * arrived[knowledge.successor], knowledge.row_ptr[:-1]
            )
            after = np.add.reduceat(self._explore.weights * means, starts)
            after = np.where(inside, after, wanted)
            if np.abs(after - arrived).max() <= 1e-12:
                break
            arrived = after
        return np.where(inside, arrived, 0.0)

    def _raise_epsilon(self, belief: Belief, safety: Safety) -> None:
        """Begin with the largest ε, by halves, at which the lemma still holds."""
        knowledge = belief.knowledge
        most = knowledge.reward_max / (1.0 - knowledge.discount)
        third = float(safety.cap.min()) / 3.0  # l >= 0 asks for d >= 3 ε
        least = self.epsilon
        self.epsilon = max(least, min(_LEAST_SHARE * most, third))
        while self.epsilon > least:
            if self.budgets_by_lemma(belief, safety).hold:
                break
            self.epsilon = max(self.epsilon / 2.0, least)
        self._count(belief, safety)

    # -- when to explore ---------------------------------------------------------------

    def least_chance(self, belief: Belief) -> float:
        """Return ε/G, the chance above which exploring goes on (0: always)."""
        if self._paper.stop == "when-all-known":
            return 0.0
        knowledge = belief.knowledge
        largest = value_bound(
            discount=knowledge.discount,
            maximum=knowledge.reward_max,
            horizon=self.budgets.horizon,
        )
        seen = float(self._course.earned[1])
        finished = self._course.counters[FINISHED] > 0 and seen > 0.0
        if self._paper.value_bound == "empirical" and finished:
            largest = min(largest, seen)
        return min(self.epsilon / largest, 1.0) if largest > 0.0 else 1.0

    def _explores(self, belief: Belief) -> BoolArray:
        explores: BoolArray = self._chance > self.least_chance(belief)
        return explores

    def _epsilon_falls(self, belief: Belief, state: int | None) -> bool:
        """Halve ε where nothing is left to explore at it; tell whether that was so."""
        explores = self._explores(belief)
        likely = explores.any() if state is None else explores[state]
        if self.epsilon <= self._settings.epsilon or likely:
            return False
        self.epsilon = max(self.epsilon / 2.0, self._settings.epsilon)
        return True

    # -- what the kernels read ---------------------------------------------------------

    def _rules(
        self,
        belief: Belief,
        safety: Safety,
        worst: FloatArray,
        mean: FloatArray,
        ahead: FloatArray,
    ) -> Rules:
        budgets, settings = self.budgets, self._settings
        layout = belief.knowledge.pairs
        home, room = home_and_room(safety)
        rested = np.full(safety.cap.size, np.inf)
        if self._paper.safe_return == "when-needed":
            rested = home + settings.recharge * room
        return Rules(
            on=True,
            test=_TESTS[self._paper.test],
            known=self.known.copy(),
            explores=self._explores(belief),
            enough=self._enough,
            explore=by_state(layout.state_ptr, self._explore.weights),
            exploit=by_state(layout.state_ptr, self._exploit.weights),
            escape=by_state(layout.state_ptr, self._escape.weights),
            worst=worst,
            mean=mean,
            ahead=ahead,
            reserve=belief.knowledge.discount * budgets.return_budget,
            room=budgets.escape_budget,
            rested=rested,
            nothing=np.zeros(safety.cap.size),
            horizon=budgets.horizon,
            rest=budgets.horizon,
            always_rests=self._paper.safe_return == "always",
            plans_escape=False,
        )

    def _planned(
        self, belief: Belief, safety: Safety, wanted: BoolArray, rules: Rules
    ) -> Planned:
        """Return the plan; what only the ledger's own decisions read is left empty."""
        n_states, n_pairs = belief.knowledge.n_states, belief.knowledge.n_pairs
        k = safety.cap.size
        return Planned(
            ledger=self.ledger(belief, safety),
            plan=Plan(
                known=rules.known,
                home=at_home(safety),
                goal=np.zeros(n_pairs, dtype=np.int64),
                score=np.zeros(n_pairs),
                exploring=np.zeros(n_states, dtype=np.bool_),
                node_ptr=np.zeros(n_states + 1, dtype=np.int64),
                level=np.zeros(0),
                share=np.zeros(k),
                grid=np.zeros((k, 0)),
                weight=np.zeros((0, rules.escape.shape[1])),
                reserve=np.zeros(k),
                turn_home=np.full(k, -np.inf),
                turn_back=np.full(k, -np.inf),
                recharge=np.full(k, -np.inf),
                by_level=False,
                watch=np.full(n_pairs, _NEVER, dtype=np.int64),
                urgency=np.zeros(2),
            ),
            rules=rules,
            frontier=Frontier(
                wanted=wanted,
                value=np.where(rules.explores, self._chance, 0.0),
                pairs=np.full(n_states, -1, dtype=np.int64),
                score=np.zeros(n_pairs),
            ),
            playable=safety.allowed,
            out_of_reach=~self.known & ~reached_by(belief, safety.allowed),
            earning=Earning(weights=self._exploit.weights),
            no_refund=np.zeros(safety.q.shape, dtype=np.bool_),
        )

    # -- files -------------------------------------------------------------------------

    def state(self) -> dict[str, np.ndarray]:
        """Return what the next plan will begin with, as arrays by name."""
        kept = {
            "known": np.array(self.known),
            "epsilon": np.array(self.epsilon),
            "certified": np.array(self.certified),
            "lapsed": np.array(self.lapsed),
            "chance": np.array(self._chance),
            "enough": np.array(self._enough),
        }
        for field in fields(Budgets):
            kept[f"budgets.{field.name}"] = np.array(getattr(self.budgets, field.name))
        for name in ("exploit", "explore"):
            planned: PlannedPolicy = getattr(self, f"_{name}")
            for field in fields(PlannedPolicy):
                kept[f"{name}.{field.name}"] = np.array(getattr(planned, field.name))
        for name, array in self._escape.state().items():
            kept[f"escape.{name}"] = array
        return kept

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Go back to what :meth:`state` returned."""
        self.known = np.array(arrays["known"])
        self.epsilon = float(arrays["epsilon"])
        self.certified = bool(arrays["certified"])
        self.lapsed = str(arrays["lapsed"])
        self._chance = np.array(arrays["chance"])
        for name in ("exploit", "explore"):
            planned = PlannedPolicy(
                weights=np.array(arrays[f"{name}.weights"]),
                feasible=bool(arrays[f"{name}.feasible"]),
                value=float(arrays[f"{name}.value"]),
                cost=np.array(arrays[f"{name}.cost"]),
            )
            setattr(self, f"_{name}", planned)
        self._escape.restore(part_of(arrays, "escape"))
        self._enough = np.array(arrays["enough"])
        counted = part_of(arrays, "budgets")
        kept: dict[str, Any] = {
            n: v.item() if v.ndim == 0 else np.array(v) for n, v in counted.items()
        }
        self.budgets = Budgets(**kept)
        self._steps = self.budgets.escape_steps
