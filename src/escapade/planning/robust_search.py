r"""The search for a good stationary policy under worst-case budgets.

Solvers differ in how they find candidates; what happens to a candidate is the same.  It
is judged under the worst kernels.  If it breaks a budget, it is mixed, as an occupancy,
with the safest policy known, just enough to keep them all.  The best is remembered.

*Refinement* then climbs from the best candidate to a local optimum.  By the envelope
theorem, the worst-case cost of a policy changes with the policy as its cost under the
kernel that is worst for it now:

.. math:: C_{\pi + \delta} = C_\pi + \sum_{s,a} f^P_\pi(s) \, Q^P_\pi(s,a) \,
          \delta(a \mid s) + o(\delta), \qquad P \text{ worst for } \pi,

with :math:`f^P_\pi` the discounted visits and :math:`Q^P_\pi` the pair values.  A
linear program finds the best small step under the linearised budgets, a trust region
keeps it small, and a step counts only if the judge agrees.  A family of which one model
holds throughout gives one such line for every model.  Constrained robust planning over
stationary policies is not convex, so a local optimum is all that is claimed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from escapade.model.cmdp import CMDP
from escapade.model.evaluation import discounted_sums, occupancy
from escapade.model.policy import Policy
from escapade.planning.dynamic_programming import policy_iteration
from escapade.planning.highs import LinearProgram, maximise
from escapade.planning.oracle import evaluation_precision
from escapade.planning.robust_certificate import Judge, Judged
from escapade.planning.robust_operator import (
    RobustOperator,
    robust_control,
    robust_policy_value,
)
from escapade.typing import FloatArray
from escapade.uncertainty.base import Sense

__all__ = ["Search"]

_BISECTIONS = 12
_CORRECTIONS = 3
_STEPS = 60
_LEAST_RADIUS = 1e-4
_GAIN = 1e-7  # an improvement, relative to the value, that is worth a step
_REFINED_UP_TO_PAIRS = 20_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Line:
    """A value or cost as a function of the policy, linear around the present one."""

    constant: float
    slope: FloatArray  # [pairs]


class Search:
    """Judges candidates, mends them, and keeps the best.

    Attributes
    ----------
    best
        The best policy that keeps every budget, or ``None`` so far.
    safest
        The policy whose worst excess over its budgets is the least so far.
    programs
        Linear programs solved.
    """

    def __init__(self, judge: Judge) -> None:
        self.judge = judge
        self.best: Judged | None = None
        self.safest: Judged | None = None
        self.programs = 0
        most = judge.cmdp.cost_max / (1.0 - judge.cmdp.discount)
        self._scale: FloatArray = np.where(most > 0.0, most, 1.0)

    def excess(self, judged: Judged) -> float:
        """Return by how much the worst budget is exceeded, on a common scale."""
        over = (judged.costs - self.judge.cmdp.budget) / self._scale
        return float(over.max())

    def consider(
        self, policy: Policy, *, guess: FloatArray | None = None, mend: bool = True
    ) -> Judged:
        """Judge a policy, mend it if it breaks a budget; remember what is good."""
        judged = self.judge.judge(policy, guess)
        if self.safest is None or self.excess(judged) < self.excess(self.safest):
            self.safest = judged
        if self.judge.keeps(judged):
            self._remember(judged)
        elif mend and self.judge.keeps(self.safest):
            self._mend(judged)
        return judged

    def consider_safest(self) -> None:
        """Judge the policies that make the worst-case costs small.

        For a rectangular set that is the fallback of least cost, every cost over its
        budget; for a family, the policies of least cost of its models, and their
        average.
        """
        judge, cmdp = self.judge, self.judge.cmdp
        prices = 1.0 / np.maximum(cmdp.budget, 1e-6 * self._scale)
        gain = prices @ cmdp.cost
        if not judge.models:
            operator = RobustOperator(
                judge.sets,
                cmdp.state_ptr,
                gain,
                cmdp.discount,
                nature="max",
                select="min",
            )
            found = robust_control(operator, precision=judge.precision)
            assert found.pairs is not None
            actions = cmdp.pair_action[found.pairs]
            self.consider(Policy.deterministic(actions, cmdp.n_actions))
            return
        cheap = [cheapest(model, gain) for model in judge.models]
        for policy in [*cheap, average(cheap)]:
            self.consider(policy, mend=False)

    def _remember(self, judged: Judged) -> None:
        if self.best is None or judged.lower > self.best.lower:
            self.best = judged

    def _mend(self, judged: Judged) -> None:
        """Mix a policy with one that keeps the budgets, as little as they ask."""
        assert self.safest is not None
        if self.best is not None and judged.value <= self.best.value:
            return  # a mixture earns about the mean: nothing to gain
        policy = judged.policy
        assert isinstance(policy, Policy)
        anchors = [self.safest]
        if self.best is not None and self.best is not self.safest:
            anchors.append(self.best)
        for anchor in anchors:
            self._mix(policy, anchor)

    def _mix(self, policy: Policy, anchor: Judged) -> None:
        """Bisect on the share of the anchor in a mixture of occupancies."""
        assert isinstance(anchor.policy, Policy)
        cmdp = self.judge.cmdp
        precision = evaluation_precision(cmdp)
        own = occupancy(cmdp, policy, precision=precision)
        safe = occupancy(cmdp, anchor.policy, precision=precision)
        low, high = 0.0, 1.0  # share of the anchor: too little, enough
        best: Policy | None = None
        for _ in range(_BISECTIONS):
            share = 0.5 * (low + high)
            mixed = policy_of_visits(
                cmdp, (1.0 - share) * own + share * safe, anchor.policy
            )
            if self.judge.within(mixed, anchor.cost_to_go):
                high, best = share, mixed
            else:
                low = share
            if high - low < 1e-2 * high:
                break
        if best is not None:
            self._remember(self.judge.judge(best, anchor.cost_to_go))

    # -- refinement --------------------------------------------------------------------

    def refine(self, steps: int = _STEPS) -> None:
        """Climb from the best policy (or towards the budgets) by small linear steps."""
        if self.judge.cmdp.n_pairs > _REFINED_UP_TO_PAIRS or self.safest is None:
            return
        now = self.best or self.safest
        radius = 0.3
        for _ in range(steps):
            moved = self._step(now, radius)
            if moved is not None:
                now, radius = moved, min(1.0, 1.6 * radius)
            else:
                radius *= 0.4
                if radius < _LEAST_RADIUS:
                    break

    def _step(self, now: Judged, radius: float) -> Judged | None:
        """Return a better policy within a trust region, if one is found."""
        assert isinstance(now.policy, Policy)
        judge, cmdp = self.judge, self.judge.cmdp
        feasible = judge.keeps(now)
        values, costs = self._lines(now)
        weights = now.policy.pair_weights(cmdp)
        tightened = np.zeros(cmdp.n_costs)
        for _ in range(_CORRECTIONS):
            x = self._program(
                values if feasible else None, costs, weights, radius, tightened
            )
            if x is None:
                return None
            judged = self.consider(as_policy(cmdp, x), guess=now.cost_to_go, mend=False)
            if not feasible:
                better = self.excess(judged) < self.excess(now) - 1e-12
                return judged if better else None
            over = np.maximum(judged.costs - cmdp.budget, 0.0)
            if not over.any():
                gain = judged.lower - now.lower
                return judged if gain > _GAIN * max(1.0, abs(now.lower)) else None
            tightened += 1.3 * over  # the budgets bend: aim lower
        return None

    def _lines(self, now: Judged) -> tuple[list[_Line], list[list[_Line]]]:
        """Linearise the objective and every cost, under the kernels that count."""
        assert isinstance(now.policy, Policy)
        judge, cmdp = self.judge, self.judge.cmdp
        weights = now.policy.pair_weights(cmdp)
        if judge.models:
            kernels = [model.transition_matrix for model in judge.models]
            at = kernels if judge.objective == "worst" else [cmdp.transition_matrix]
            values = [line_of(cmdp, weights, cmdp.reward, kernel) for kernel in at]
            costs = [
                [line_of(cmdp, weights, channel, kernel) for kernel in kernels]
                for channel in cmdp.cost
            ]
            return values, costs
        if judge.objective == "nominal":
            kernel = cmdp.transition_matrix
        else:
            kernel = self._worst(now, cmdp.reward, "min")
        values = [line_of(cmdp, weights, cmdp.reward, kernel)]
        costs = [
            [line_of(cmdp, weights, channel, self._kernel(now.cost_to_go[k], "max"))]
            for k, channel in enumerate(cmdp.cost)
        ]
        return values, costs

    def _kernel(self, values: FloatArray, sense: Sense) -> sp.csr_array:
        sets = self.judge.sets
        return sp.csr_array(
            (sets.worst_kernel(values, sense=sense), sets.successor, sets.row_ptr),
            shape=(sets.n_pairs, sets.n_states),
        )

    def _worst(self, now: Judged, gain: FloatArray, sense: Sense) -> sp.csr_array:
        """Return the kernel that is extreme for a policy's own value."""
        assert isinstance(now.policy, Policy)
        value = worst_value(self.judge, now.policy, gain, sense)
        return self._kernel(value, sense)

    def _program(
        self,
        values: list[_Line] | None,
        costs: list[list[_Line]],
        weights: FloatArray,
        radius: float,
        tightened: FloatArray,
    ) -> FloatArray | None:
        """Solve for the best step; towards the budgets if ``values`` is ``None``."""
        cmdp = self.judge.cmdp
        n = cmdp.n_pairs
        room = cmdp.budget - tightened
        rows, most = [], []
        for k, lines in enumerate(costs):
            for line in lines:  # constant + slope·(x − weights) − s·scale <= room
                slack = 0.0 if values is not None else -self._scale[k]
                rows.append(np.append(line.slope, slack))
                most.append(room[k] - line.constant + line.slope @ weights)
        least: list[float] = [-np.inf] * len(rows)
        for line in values or []:  # s <= constant + slope·(x − weights)
            rows.append(np.append(-line.slope, 1.0))
            least.append(-np.inf)
            most.append(line.constant - line.slope @ weights)
        simplex = sp.csr_array(
            (np.ones(n), np.arange(n), cmdp.state_ptr), shape=(cmdp.n_states, n + 1)
        )
        self.programs += 1
        found = maximise(
            LinearProgram(
                objective=np.append(np.zeros(n), 1.0 if values is not None else -1.0),
                matrix=sp.csc_array(sp.vstack([sp.csr_array(np.array(rows)), simplex])),
                row_lower=np.concatenate([least, np.ones(cmdp.n_states)]),
                row_upper=np.concatenate([most, np.ones(cmdp.n_states)]),
                lower=np.append(np.maximum(weights - radius, 0.0), -np.inf),
                upper=np.append(np.minimum(weights + radius, 1.0), np.inf),
            )
        )
        return None if found.x is None or found.outcome != "optimal" else found.x[:n]


def worst_value(
    judge: Judge, policy: Policy, gain: FloatArray, sense: Sense
) -> FloatArray:
    """Return a policy's extreme value in every state, in the middle of its bounds."""
    cmdp = judge.cmdp
    operator = RobustOperator(
        judge.sets,
        cmdp.state_ptr,
        gain,
        cmdp.discount,
        nature=sense,
        weights=policy.pair_weights(cmdp),
    )
    point = robust_policy_value(operator, precision=judge.precision)
    return 0.5 * (point.lower + point.upper)


def line_of(
    cmdp: CMDP, weights: FloatArray, gain: FloatArray, kernel: sp.csr_array
) -> _Line:
    """Linearise what a policy collects of ``gain`` under one kernel."""
    mixing = sp.csr_array(
        (weights, np.arange(cmdp.n_pairs), cmdp.state_ptr),
        shape=(cmdp.n_states, cmdp.n_pairs),
    )
    chain = sp.csr_array(mixing @ kernel)
    own: FloatArray = np.asarray(mixing @ gain)
    x, _, _ = discounted_sums(
        chain, own[:, np.newaxis], cmdp.discount, 1e-10, strict=False
    )
    f, _, _ = discounted_sums(
        sp.csr_array(chain.T),
        cmdp.start[:, np.newaxis],
        cmdp.discount,
        1e-10,
        strict=False,
        transposed=True,
    )
    value = x[:, 0]
    q = gain + cmdp.discount * np.asarray(kernel @ value)
    return _Line(constant=float(cmdp.start @ value), slope=f[cmdp.pair_state, 0] * q)


def as_policy(cmdp: CMDP, x: FloatArray) -> Policy:
    """Return the policy of some pair weights, freed of a linear program's rounding."""
    kept = np.where(x > 1e-12, x, 0.0)
    totals = np.add.reduceat(kept, cmdp.state_ptr[:-1])
    return Policy.from_pair_weights(cmdp, kept / totals[cmdp.pair_state])


def policy_of_visits(cmdp: CMDP, visits: FloatArray, elsewhere: Policy) -> Policy:
    """Return the policy of an occupancy; ``elsewhere`` where it never goes."""
    least = 1e-13 / (1.0 - cmdp.discount)
    kept = np.where(visits > least, visits, 0.0)
    totals = np.add.reduceat(kept, cmdp.state_ptr[:-1])
    seen = (totals > 0.0)[cmdp.pair_state]
    share = kept / np.where(totals > 0.0, totals, 1.0)[cmdp.pair_state]
    return Policy.from_pair_weights(
        cmdp, np.where(seen, share, elsewhere.pair_weights(cmdp))
    )


def cheapest(model: CMDP, gain: FloatArray) -> Policy:
    """Return the policy that collects least of ``gain`` in one model."""
    return policy_iteration(model, -gain).policy(model)


def average(policies: list[Policy]) -> Policy:
    """Return the policy whose probabilities are the mean of those of several."""
    return Policy(np.mean([policy.probabilities for policy in policies], axis=0))
