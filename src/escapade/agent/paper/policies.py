"""The policies that explore and exploit, planned in the induced problems.

Both live in the known states.  Leaving them ends the problem: the exploiting policy is
then charged what the fallback costs at worst from there (E7), the exploring one as
well, and it is paid ``r_max`` if there is something left to learn where it arrived.
Only pairs that keep to the promisable states are offered.  The cost of either may be at
most l from where the trajectory begins.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy.sparse as sp

from escapade.agent.earning import restricted
from escapade.agent.planners import Planner, plan_with
from escapade.agent.safety import Safety
from escapade.knowledge.belief import Belief
from escapade.model.cmdp import CMDP
from escapade.model.induced import InducedCMDP, escape_cmdp, induce
from escapade.model.policy import Policy
from escapade.planning.solution import Solution
from escapade.typing import BoolArray, FloatArray, IntArray
from escapade.uncertainty.base import UncertaintySet
from escapade.uncertainty.interval import Interval
from escapade.uncertainty.rows import Rows

__all__ = ["PlannedPolicy", "induced_sets", "plan_escape", "plan_inside"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlannedPolicy:
    """A policy of the known states.

    Attributes
    ----------
    weights
        ``[pairs]``; the fallback outside the known states, and inside them as well if
        no policy keeps the budget.
    feasible
        Whether the planner found one that does.
    value, cost
        What it is thought to be worth and, ``(K,)``, to cost in the induced problem.
    """

    weights: FloatArray
    feasible: bool
    value: float
    cost: FloatArray


def plan_inside(
    aim: Literal["exploit", "explore"],
    planner: Planner,
    belief: Belief,
    safety: Safety,
    *,
    known: BoolArray,
    wanted: BoolArray,
    state: int | None,
    plan_budget: FloatArray,
) -> PlannedPolicy:
    """Plan a policy of the known states, from ``state`` or from anywhere.

    ``wanted`` marks the unknown states where something can still be learned.
    """
    model = belief.likeliest()
    usable = safety.allowed.copy()
    usable[safety.pairs] = True
    kept = CMDP.from_pairs(**restricted(model, usable, safety))
    longest = kept.cost_max / (1.0 - kept.discount)
    charge = np.where(safety.promisable, safety.w, longest[:, np.newaxis])
    charge = np.minimum(charge, longest[:, np.newaxis])
    exploring = aim == "explore"
    induced = induce(
        kept,
        known,
        reward=np.zeros(kept.n_pairs) if exploring else kept.reward,
        cost=kept.cost,
        terminal_reward=0.0,
        terminal_cost=charge,
        start=_start(state, known),
    )
    problem = induced.cmdp.replace(budget=plan_budget)
    if exploring:
        problem = _paid_on_arrival(induced, problem, wanted, model.reward_max)
    sets = None
    if planner not in ("auto", "dual-linear-program"):
        sets = induced_sets(belief, induced, np.flatnonzero(usable))
    found = plan_with(planner, problem, sets)
    fallback = np.zeros(model.n_pairs)
    fallback[safety.pairs] = 1.0
    if not isinstance(found.policy, Policy):
        return PlannedPolicy(
            weights=fallback, feasible=False, value=0.0, cost=np.array(plan_budget)
        )
    weights = _lifted_weights(belief, induced, found, fallback)
    return PlannedPolicy(
        weights=weights,
        feasible=True,
        value=found.value,
        cost=np.array(found.costs),
    )


def _start(state: int | None, known: BoolArray) -> FloatArray:
    start = known / known.sum()
    if state is not None and known[state]:
        start = np.zeros(known.size)
        start[state] = 1.0
    return np.asarray(start, dtype=np.float64)


def _paid_on_arrival(
    induced: InducedCMDP, problem: CMDP, wanted: BoolArray, reward_max: float
) -> CMDP:
    """Return the exploration problem: ``r_max`` where something is left to learn."""
    reward = np.zeros(problem.n_pairs)
    first = problem.state_ptr[induced.inside.size]
    reward[first : first + induced.exits.size] = reward_max * wanted[induced.exits]
    return problem.replace(reward=reward)


def _lifted_weights(
    belief: Belief, induced: InducedCMDP, found: Solution, elsewhere: FloatArray
) -> FloatArray:
    """Return a policy of an induced problem as weights ``[pairs]`` of the whole."""
    layout = belief.knowledge.pairs
    assert isinstance(found.policy, Policy)
    table = np.zeros((layout.n_states, layout.n_actions))
    table[induced.inside] = found.policy.probabilities[: induced.inside.size]
    inside = np.zeros(layout.n_states, dtype=np.bool_)
    inside[induced.inside] = True
    chosen = table[layout.pair_state, layout.pair_action]
    return np.where(inside[layout.pair_state], chosen, elsewhere)


def plan_escape(
    planner: Planner,
    belief: Belief,
    safety: Safety,
    *,
    known: BoolArray,
    escape_budget: FloatArray,
) -> FloatArray | None:
    """Plan the escape with one of the paper's optimisers; ``None`` if it finds none.

    The problem is the Worst-case Escape CMDP, every unknown state an equally likely
    start: least discounted time inside (E8), at a cost of c_max a step within d'.
    """
    model = belief.likeliest()
    usable = safety.allowed.copy()
    usable[safety.pairs] = True
    kept = CMDP.from_pairs(**restricted(model, usable, safety))
    if known.all():
        return None
    induced = escape_cmdp(
        kept, ~known, terminal_cost=np.zeros((kept.n_costs, kept.n_states))
    )
    problem = induced.cmdp.replace(budget=escape_budget)
    sets = None
    if planner != "dual-linear-program":
        sets = induced_sets(belief, induced, np.flatnonzero(usable))
    found = plan_with(planner, problem, sets)
    if not isinstance(found.policy, Policy):
        return None
    fallback = np.zeros(model.n_pairs)
    fallback[safety.pairs] = 1.0
    return _lifted_weights(belief, induced, found, fallback)


def induced_sets(
    belief: Belief, induced: InducedCMDP, pairs: IntArray
) -> UncertaintySet:
    """Return what is possible in an induced problem, as intervals.

    ``pairs`` are those of the whole problem that were kept before it was induced.  A
    successor that is possible but not thought likely enough to have an exit of its own
    shares one with the others, the last.
    """
    knowledge, confidence = belief.knowledge, belief.confidence
    problem = induced.cmdp
    place = np.full(knowledge.n_states, induced.end - (induced.exits.size > 0))
    place[induced.inside] = np.arange(induced.inside.size)
    place[induced.exits] = induced.inside.size + np.arange(induced.exits.size)
    number = np.full((knowledge.n_states, knowledge.n_actions), -1, dtype=np.int64)
    layout = knowledge.pairs
    number[layout.pair_state[pairs], layout.pair_action[pairs]] = pairs
    last = int(problem.state_ptr[induced.inside.size])
    whole = number[
        induced.inside[problem.pair_state[:last]], problem.pair_action[:last]
    ]
    shape = (knowledge.n_pairs, induced.end + 1)
    tail = sp.csr_array(problem.transition_matrix)[last:]

    def gathered(values: FloatArray) -> sp.csr_array:
        rows = np.repeat(np.arange(knowledge.n_pairs), np.diff(knowledge.row_ptr))
        summed = sp.coo_array((values + 1.0, (rows, place[knowledge.successor])), shape)
        summed.sum_duplicates()
        return sp.csr_array(sp.vstack([sp.csr_array(summed)[whole], tail]))

    # ones keep entries that are 0; as many as there were are taken off again
    ones = gathered(np.zeros(knowledge.successor.size))
    count = np.where(np.arange(ones.nnz) < ones.indptr[last], ones.data, 0.0)
    low, mid, high = (
        gathered(values).data - count
        for values in (confidence.lower, belief.nominal, confidence.upper)
    )
    rows = Rows(
        n_states=induced.end + 1,
        stored_ptr=ones.indptr.astype(np.int64),
        stored=ones.indices.astype(np.int32),
        stored_nominal=mid,
        pair_state=problem.pair_state,
        pair_action=problem.pair_action,
    )
    return Interval.around(rows, np.minimum(low, mid), np.minimum(high, 1.0).clip(mid))
