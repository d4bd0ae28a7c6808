"""What a policy earns and costs under the best and the worst kernel of a set.

Values and costs are bounded one at a time: the kernel that is worst for one cost need
not be worst for another, nor for the reward.  Where the set is a finite family of whole
models ("one model throughout"), each model is evaluated by itself; taking the worst
pair by pair would be a wider, different set.

A policy with a memory is evaluated on its nodes, over the set lifted to its rows:
nature may then choose a pair's row anew whenever the policy remembers something else.
That bounds every kernel that stays the same, and it is what plans with a memory are
made against.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import scipy.sparse as sp

from escapade.errors import AssumptionError, check_kind, refusal
from escapade.model.arguments import read_count, read_number
from escapade.model.cmdp import CMDP
from escapade.model.evaluation import evaluate
from escapade.model.memory_policy import MemoryPolicy
from escapade.model.policy import Policy
from escapade.planning.robust_operator import (
    FixedPoint,
    RobustOperator,
    robust_policy_value,
)
from escapade.typing import FloatArray
from escapade.uncertainty.base import Sense, UncertaintySet

__all__ = [
    "RobustEvaluation",
    "operators_of",
    "per_state",
    "robust_evaluate",
    "start_mean",
]

_EPS = float(np.finfo(np.float64).eps)
Build: TypeAlias = Callable[[FloatArray, Sense], RobustOperator]
"""From a gain a pair and the sense of nature to the operator of a policy."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RobustEvaluation:
    """Bounds on value and costs that hold for every kernel of the set.

    Each bound is certified: rounded outward, and valid whether or not the precision
    was reached.

    Attributes
    ----------
    value_lower, value_upper
        ``(S,)``; least and greatest value from each state.
    costs_lower, costs_upper
        ``(K, S)``; least and greatest costs.
    start_value_lower, start_value_upper
        The same from the start distribution.  Where one model holds throughout, they
        belong to the worst and the best single model, and may be narrower than the
        average of the bounds of the states.
    start_costs_lower, start_costs_upper
        ``(K,)``.
    converged
        Whether the precision was reached.
    width
        Largest distance between a bound and the extreme that it bounds.
    message
        How the bounds were found.
    """

    value_lower: FloatArray
    value_upper: FloatArray
    costs_lower: FloatArray
    costs_upper: FloatArray
    start_value_lower: float
    start_value_upper: float
    start_costs_lower: FloatArray
    start_costs_upper: FloatArray
    converged: bool
    width: float
    message: str

    def __repr__(self) -> str:
        value = f"[{self.start_value_lower:.6g}, {self.start_value_upper:.6g}]"
        costs = ", ".join(
            f"[{low:.6g}, {high:.6g}]"
            for low, high in zip(
                self.start_costs_lower, self.start_costs_upper, strict=True
            )
        )
        return f"RobustEvaluation(value {value}, costs {costs}; {self.message})"


def robust_evaluate(
    cmdp: CMDP,
    policy: Policy | MemoryPolicy,
    sets: UncertaintySet,
    *,
    precision: float = 1e-8,
    max_iterations: int = 100_000,
) -> RobustEvaluation:
    """Bound value and costs of a policy over an uncertainty set.

    Parameters
    ----------
    cmdp
        The problem; its rewards and costs are used, its kernel only through ``sets``.
    policy
        A policy, stationary or with a memory.
    sets
        The kernels that are possible.
    precision
        Largest distance between certified bounds, relative to the largest value.
    max_iterations
        Applications of the operator after which to stop; the bounds hold anyway.

    Examples
    --------
    >>> import escapade as ep
    >>> coin = ep.CMDP(
    ...     [[[0.5, 0.5]], [[0.0, 1.0]]],
    ...     [[1.0], [0.0]],
    ...     [[0.0], [1.0]],
    ...     discount=0.5,
    ...     budget=1.0,
    ... )
    >>> ball = ep.uncertainty.L1Ball(coin, radius=0.2)
    >>> bounds = ep.robust_evaluate(coin, ep.Policy.uniform(coin), ball)
    >>> bounds.value_lower.round(4).tolist(), bounds.value_upper.round(4).tolist()
    ([1.25, 0.0], [1.4286, 0.0])
    """
    check_kind("cmdp", cmdp, CMDP)
    check_kind("policy", policy, Policy, MemoryPolicy)
    check_kind("sets", sets, UncertaintySet)
    sets.check_matches(cmdp)
    precision = read_number("precision", precision)
    if not 0.0 < precision < np.inf:
        raise refusal("precision", "a finite number above 0", precision)
    limit = read_count("max_iterations", max_iterations, least=1)
    if not sets.rectangular:
        return _over_members(cmdp, policy, sets, precision)
    build = operators_of(cmdp, policy, sets)
    points = [
        _within_range(
            robust_policy_value(
                build(gain, sense), precision=precision, max_iterations=limit
            ),
            float(gain.max()) / (1.0 - cmdp.discount),
        )
        for gain in (cmdp.reward, *cmdp.cost)
        for sense in ("min", "max")
    ]
    converged = all(point.converged for point in points)
    width = max(point.width for point in points)
    methods = ", ".join(sorted({point.method for point in points}))
    message = f"bounds within {width:.2g} of the extremes, by {methods}"
    if not converged:
        message += (
            f"; precision {precision:g} was not reached: the bounds hold, allow more "
            f"iterations for tighter ones"
        )
    low = np.array([point.lower for point in points[0::2]])
    high = np.array([point.upper for point in points[1::2]])
    low, high = per_state(policy, low, "min"), per_state(policy, high, "max")
    return _assembled(
        low,
        high,
        start_mean(cmdp, low, "min"),
        start_mean(cmdp, high, "max"),
        converged=converged,
        width=width,
        message=message,
    )


def operators_of(
    cmdp: CMDP, policy: Policy | MemoryPolicy, sets: UncertaintySet
) -> Build:
    """Return what builds a policy's operators, from a gain a pair and nature's sense.

    They act on states, or on the nodes of a policy with a memory; the set must be
    rectangular.
    """
    if isinstance(policy, MemoryPolicy):
        return _on_nodes(cmdp, policy, sets)
    return _on_states(cmdp, policy, sets)


def per_state(
    policy: Policy | MemoryPolicy, bounds: FloatArray, sense: Sense
) -> FloatArray:
    """Turn bounds a node into bounds a state started afresh, rounded outward."""
    if isinstance(policy, Policy):
        return bounds
    longest = int(np.diff(policy.initial.indptr).max())
    return _outward(policy.from_start(bounds), longest, sense)


def start_mean(cmdp: CMDP, bounds: FloatArray, sense: Sense) -> FloatArray:
    """Average bounds over the start distribution, rounded outward."""
    mean: FloatArray = np.asarray(bounds @ cmdp.start)
    return _outward(mean, int(np.count_nonzero(cmdp.start)), sense)


def _on_states(cmdp: CMDP, policy: Policy, sets: UncertaintySet) -> Build:
    """Return what builds the operators of a stationary policy."""
    weights = policy.pair_weights(cmdp)

    def build(gain: FloatArray, nature: Sense) -> RobustOperator:
        return RobustOperator(
            sets, cmdp.state_ptr, gain, cmdp.discount, nature=nature, weights=weights
        )

    return build


def _on_nodes(cmdp: CMDP, policy: MemoryPolicy, sets: UncertaintySet) -> Build:
    """Return what builds the operators of a policy with a memory, on its nodes."""
    policy.check_matches(cmdp)
    entries = int(np.diff(sets.row_ptr)[policy.pairs].sum())
    lifted = sets.lift(policy.pairs, np.arange(entries), entries)
    spread = _spread(policy, sets)
    node_ptr = policy.node_ptr
    node, action = np.nonzero(policy.choice.probabilities)
    weights = policy.choice.probabilities[node, action]

    def build(gain: FloatArray, nature: Sense) -> RobustOperator:
        return RobustOperator(
            lifted,
            node_ptr,
            gain[policy.pairs],
            cmdp.discount,
            nature=nature,
            weights=weights,
            spread=spread,
        )

    return build


def _spread(policy: MemoryPolicy, sets: UncertaintySet) -> sp.csr_array:
    """Return for each entry of each row the distribution over nodes it leads to.

    Entries that no member of the set reaches lead nowhere.
    """
    lengths = np.diff(sets.row_ptr)[policy.pairs]
    row = np.repeat(np.arange(policy.pairs.size), lengths)
    first = np.cumsum(lengths) - lengths
    source = np.arange(row.size) - first[row] + sets.row_ptr[:-1][policy.pairs][row]
    own = np.repeat(np.arange(policy.pairs.size), np.diff(policy.row_ptr))
    keys = own * policy.n_states + policy.successor
    wanted = row * policy.n_states + sets.successor[source]
    place = np.searchsorted(keys, wanted)
    found = place < keys.size
    found[found] = keys[place[found]] == wanted[found]
    missing = ~found & sets.reachable[source]
    if missing.any():
        entry = int(np.argmax(missing))
        raise AssumptionError(
            f"support: expected successors that the policy was planned for, found "
            f"state {int(sets.successor[source[entry]])} after "
            f"{sets.name(int(policy.pairs[row[entry]]))}"
        )
    # as it is drawn from: rows that sum to 1
    sums = np.asarray(policy.split.sum(axis=1)).ravel()
    split = sp.csr_array(sp.diags_array(1.0 / sums) @ policy.split)
    chooser = sp.csr_array(
        (
            np.ones(int(found.sum())),
            place[found],
            np.concatenate([[0], np.cumsum(found)]),
        ),
        shape=(row.size, policy.successor.size),
    )
    return sp.csr_array(chooser @ split)


def _within_range(point: FixedPoint, most: float) -> FixedPoint:
    """Cut bounds to what discounted sums of nonnegative gains can be."""
    return FixedPoint(
        lower=np.maximum(point.lower, 0.0),
        upper=np.minimum(point.upper, np.nextafter(most, np.inf)),
        converged=point.converged,
        iterations=point.iterations,
        method=point.method,
    )


def _outward(bounds: FloatArray, terms: int, sense: Sense) -> FloatArray:
    if terms <= 1:
        return bounds
    side = 1.0 if sense == "max" else -1.0
    moved: FloatArray = bounds + side * (terms + 2) * _EPS * np.abs(bounds)
    return moved


def _assembled(
    least: FloatArray,
    most: FloatArray,
    start_least: FloatArray,
    start_most: FloatArray,
    *,
    converged: bool,
    width: float,
    message: str,
) -> RobustEvaluation:
    """Divide numbers for reward and costs, ``(1 + K, ...)``, among their fields."""
    return RobustEvaluation(
        value_lower=least[0],
        value_upper=most[0],
        costs_lower=least[1:],
        costs_upper=most[1:],
        start_value_lower=float(start_least[0]),
        start_value_upper=float(start_most[0]),
        start_costs_lower=start_least[1:],
        start_costs_upper=start_most[1:],
        converged=converged,
        width=width,
        message=message,
    )


def _over_members(
    cmdp: CMDP,
    policy: Policy | MemoryPolicy,
    sets: UncertaintySet,
    precision: float,
) -> RobustEvaluation:
    """Evaluate under every member of a finite family, and take the extremes."""
    results = [
        evaluate(model, policy, precision=precision) for model in sets.members(cmdp)
    ]
    values = np.array([np.vstack([r.value, r.costs]) for r in results])
    errors = np.array([result.error for result in results])
    low = np.maximum(values - errors[:, None, None], 0.0)
    high = values + errors[:, None, None]
    return _assembled(
        low.min(axis=0),
        high.max(axis=0),
        start_mean(cmdp, low, "min").min(axis=0),
        start_mean(cmdp, high, "max").max(axis=0),
        converged=True,
        width=2.0 * float(errors.max()),
        message=f"each of {len(results)} models evaluated by itself",
    )
