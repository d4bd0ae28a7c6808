r"""How accurate a model must be for its values to be right (Simulation Lemma).

A model is an *α-approximation* of another (Definition 2, with item 2 within α rather
than ε, E2) when rewards, costs and every single transition probability differ by at
most α.  The Constrained Simulation Lemma then bounds the difference of all values and
costs by ε, if

.. math:: \alpha = K_1 \left( \frac{\epsilon}{S T G} \right)^2, \qquad K_1 = 1/144,

with T the (ε/2)-horizon time and :math:`G = \max(G^r(T), G^c(T))`.  The proof splits
paths by whether they use a transition of probability at most :math:`\beta =
\sqrt{\alpha}`, and asks four inequalities of :math:`\alpha` and :math:`\Delta =
\alpha / \beta`; :func:`accuracy_conditions` gives them with their numbers.  The one on
Δ is :math:`\Delta \le \ln(1 + \epsilon / 8G) / T`; the paper prints ε/(4TG), which
rests on an inequality used the wrong way (E10).  For the kernel K_1 survives the
correction for every S ≥ 1 while ε ≤ 9 G, that is wherever there is anything to
estimate.

Rewards and costs are another matter: α is a pure number and they are not.  Where all
sums are small, :math:`G \ll 1`, K_1 (ε/(STG))² may exceed what the errors along a path
allow, :math:`\alpha \le \epsilon / (8 T (1 + \epsilon / 8G))`;
:func:`required_accuracy` therefore takes the smaller of the two.  Where
:math:`\epsilon \le 8 G` and :math:`G \ge 1` that is always the first.

A second, direct bound on the difference of two given models, free of α and T, is
:func:`simulation_error_bound`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from escapade.errors import refusal
from escapade.theory.arguments import (
    read_amount,
    read_count,
    read_discount,
    read_positive,
)
from escapade.theory.conditions import Condition
from escapade.theory.horizons import simulation_horizon, value_bound

if TYPE_CHECKING:
    from escapade.model.cmdp import CMDP

__all__ = [
    "ACCURACY_CONSTANT",
    "ApproximationError",
    "ModelAccuracy",
    "SeparateAccuracies",
    "accuracy_conditions",
    "approximation_error",
    "is_alpha_approximation",
    "model_accuracy",
    "required_accuracy",
    "separate_accuracies",
    "simulation_error_bound",
    "step_ratio_limit",
    "step_ratio_limit_as_printed",
]

ACCURACY_CONSTANT = 1.0 / 144.0
"""K_1 of the paper: α = K_1 (ε / (S T G))²."""

_LEAST_ACCURACY = 1e-70  # of which the squares of counts still fit a float


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAccuracy:
    """The accuracy that makes a model's values ε-correct, and what it is made of.

    Attributes
    ----------
    epsilon
        Accuracy wanted of values and costs.
    horizon
        T, the (ε/2)-horizon time.
    value_bound
        G, the largest T-step value or cost.
    accuracy
        α, the accuracy wanted of rewards, costs and transition probabilities: K_1
        (ε/(STG))², or what errors along a path allow if that is less.
    conditions
        The inequalities of the proof.
    """

    epsilon: float
    horizon: int
    value_bound: float
    accuracy: float
    conditions: tuple[Condition, ...]

    @property
    def holds(self) -> bool:
        """Whether every inequality of the proof holds for these numbers."""
        return all(condition.holds for condition in self.conditions)


@dataclass(frozen=True, slots=True, kw_only=True)
class SeparateAccuracies:
    """One accuracy for each thing estimated; all three together give ε."""

    transition: float
    reward: float
    cost: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ApproximationError:
    """How far apart two models are, and where.

    Attributes
    ----------
    reward, cost, transition
        Largest absolute difference of a mean reward, a mean cost (over all channels)
        and a single transition probability.
    row_distance
        Largest L1 distance of two rows of the kernel.
    reward_pair, cost_pair, transition_pair
        The pairs at which the first three are attained.
    """

    reward: float
    cost: float
    transition: float
    row_distance: float
    reward_pair: int
    cost_pair: int
    transition_pair: int

    @property
    def alpha(self) -> float:
        """The least α for which each model is an α-approximation of the other."""
        return max(self.reward, self.cost, self.transition)


def model_accuracy(
    *, n_states: int, horizon: int, value_bound: float, epsilon: float
) -> float:
    """Return α = K_1 (ε / (S T G))²."""
    states = read_count("n_states", n_states)
    steps = read_count("horizon", horizon)
    largest = read_positive("value_bound", value_bound)
    eps = read_positive("epsilon", epsilon)
    share = eps / (states * steps * largest)
    alpha = ACCURACY_CONSTANT * share * share
    if alpha < _LEAST_ACCURACY:
        raise refusal("epsilon", "a value whose accuracy is at least 1e-70", alpha)
    return alpha


def step_ratio_limit(*, horizon: int, value_bound: float, epsilon: float) -> float:
    """Return the largest Δ with (1 + Δ)^T G ≤ G + ε/8, up to ln(1+Δ) ≤ Δ."""
    steps = read_count("horizon", horizon)
    largest = read_positive("value_bound", value_bound)
    eps = read_positive("epsilon", epsilon)
    return math.log1p(eps / (8.0 * largest)) / steps


def step_ratio_limit_as_printed(
    *, horizon: int, value_bound: float, epsilon: float
) -> float:
    """Return the paper's limit on Δ, ε/(4TG); about twice what is allowed (E10)."""
    steps = read_count("horizon", horizon)
    largest = read_positive("value_bound", value_bound)
    return read_positive("epsilon", epsilon) / (4.0 * steps * largest)


def accuracy_conditions(
    *,
    n_states: int,
    horizon: int,
    value_bound: float,
    epsilon: float,
    accuracy: float,
) -> tuple[Condition, ...]:
    """Return the inequalities that the proof of the Simulation Lemma asks of α."""
    states = read_count("n_states", n_states)
    steps = read_count("horizon", horizon)
    largest = read_positive("value_bound", value_bound)
    eps = read_positive("epsilon", epsilon)
    alpha = read_positive("accuracy", accuracy)
    beta = math.sqrt(alpha)
    limit = step_ratio_limit(horizon=steps, value_bound=largest, epsilon=eps)
    growth = math.exp(min(steps * math.log1p(beta), 700.0))
    return (
        Condition(
            name="alpha at most 1",
            left=alpha,
            right=1.0,
            sentence="then alpha + 2 beta <= 3 beta, with beta = sqrt(alpha)",
        ),
        Condition(
            name="rare transitions",
            left=(alpha + 2.0 * beta) * steps * states * largest,
            right=eps / 4.0,
            sentence="paths with a transition of probability <= beta add eps/4",
        ),
        Condition(
            name="ratio of path probabilities",
            left=beta,
            right=limit,
            sentence="(1 + Delta)^T moves the value of the other paths by eps/8",
        ),
        Condition(
            name="rewards and costs along a path",
            left=growth * steps * alpha,
            right=eps / 8.0,
            sentence="errors of T rewards or costs add eps/8",
        ),
    )


def required_accuracy(
    *,
    n_states: int,
    discount: float,
    epsilon: float,
    reward_max: float,
    cost_max: float,
    horizon: int | None = None,
) -> ModelAccuracy:
    """Return the accuracy α that makes values and costs ε-correct.

    Parameters
    ----------
    n_states
        S, the number of states (or of possible successors, if that is known).
    discount, epsilon, reward_max, cost_max
        As in :func:`~escapade.theory.horizons.horizon_time`.
    horizon
        T; by default the (ε/2)-horizon time.

    Examples
    --------
    >>> found = required_accuracy(
    ...     n_states=4, discount=0.9, epsilon=0.5, reward_max=1.0, cost_max=1.0
    ... )
    >>> found.horizon, found.holds
    (37, True)
    """
    steps = (
        simulation_horizon(
            discount=discount, epsilon=epsilon, reward_max=reward_max, cost_max=cost_max
        )
        if horizon is None
        else read_count("horizon", horizon)
    )
    largest = max(
        value_bound(discount=discount, maximum=reward_max, horizon=steps),
        value_bound(discount=discount, maximum=cost_max, horizon=steps),
    )
    alpha = min(
        model_accuracy(
            n_states=n_states, horizon=steps, value_bound=largest, epsilon=epsilon
        ),
        _along_path(horizon=steps, value_bound=largest, epsilon=epsilon),
    )
    return ModelAccuracy(
        epsilon=float(epsilon),
        horizon=steps,
        value_bound=largest,
        accuracy=alpha,
        conditions=accuracy_conditions(
            n_states=n_states,
            horizon=steps,
            value_bound=largest,
            epsilon=epsilon,
            accuracy=alpha,
        ),
    )


def separate_accuracies(
    *,
    n_states: int,
    discount: float,
    epsilon: float,
    reward_max: float,
    cost_max: float,
    horizon: int | None = None,
) -> SeparateAccuracies:
    """Return one accuracy each for transitions, rewards and costs.

    Only the transitions need K_1 (ε/(STG))².  Rewards and costs meet the proof as soon
    as (1+Δ)^T T α ≤ ε/8, which (1+Δ)^T ≤ 1 + ε/(8G) turns into
    α ≤ ε / (8 T (1 + ε/(8G))): larger by many orders of magnitude, unless all sums are
    small.  This is the fourth relaxation that the paper suggests.
    """
    needed = required_accuracy(
        n_states=n_states,
        discount=discount,
        epsilon=epsilon,
        reward_max=reward_max,
        cost_max=cost_max,
        horizon=horizon,
    )
    transition = model_accuracy(
        n_states=n_states,
        horizon=needed.horizon,
        value_bound=needed.value_bound,
        epsilon=epsilon,
    )
    signal = _along_path(
        horizon=needed.horizon, value_bound=needed.value_bound, epsilon=epsilon
    )
    return SeparateAccuracies(transition=transition, reward=signal, cost=signal)


def _along_path(*, horizon: int, value_bound: float, epsilon: float) -> float:
    """Return the error of rewards or costs that T steps turn into ε/8."""
    growth = 1.0 + epsilon / (8.0 * value_bound)
    return epsilon / (8.0 * horizon * growth)


def approximation_error(model: CMDP, estimate: CMDP) -> ApproximationError:
    """Return how far ``estimate`` is from ``model``, pair by pair.

    Both must have the same states, available actions and cost channels.
    """
    for name in ("state_ptr", "pair_action", "cost"):
        ours, theirs = getattr(model, name), getattr(estimate, name)
        if ours.shape != theirs.shape:
            raise refusal("estimate", f"{name} of shape {ours.shape}", theirs.shape)
    if not (
        np.array_equal(model.state_ptr, estimate.state_ptr)
        and np.array_equal(model.pair_action, estimate.pair_action)
    ):
        differing = np.flatnonzero(
            (model.pair_state != estimate.pair_state)
            | (model.pair_action != estimate.pair_action)
        )
        pair = int(differing[0])
        raise refusal(
            "estimate",
            f"the same actions as the model ({model.describe_pair(pair)})",
            estimate.describe_pair(pair),
            f"pair {pair}",
        )
    difference = abs(model.transition_matrix - estimate.transition_matrix).tocsr()
    by_entry = difference.max(axis=1).toarray().reshape(-1)
    by_row = np.asarray(difference.sum(axis=1)).reshape(-1)
    by_reward = np.abs(model.reward - estimate.reward)
    by_cost = np.abs(model.cost - estimate.cost).max(axis=0)
    return ApproximationError(
        reward=float(by_reward.max()),
        cost=float(by_cost.max()),
        transition=float(by_entry.max()),
        row_distance=float(by_row.max()),
        reward_pair=int(by_reward.argmax()),
        cost_pair=int(by_cost.argmax()),
        transition_pair=int(by_entry.argmax()),
    )


def is_alpha_approximation(model: CMDP, estimate: CMDP, *, alpha: float) -> bool:
    """Tell whether ``estimate`` is an α-approximation of ``model`` (Definition 2)."""
    within = read_amount("alpha", alpha)
    return approximation_error(model, estimate).alpha <= within


def simulation_error_bound(
    *,
    discount: float,
    maximum: float,
    signal_error: float,
    row_distance: float,
) -> float:
    """Bound the difference of one policy's values in two models directly.

    For rewards (or costs) in ``[0, maximum]`` that differ by at most ``signal_error``
    and rows of the kernel at L1 distance at most ``row_distance``,

        |V − V̂| ≤ (signal_error + γ · row_distance · maximum / (2 (1−γ))) / (1−γ),

    since V has a span of at most ``maximum / (1−γ)`` and a difference of two
    distributions weighs it by at most half their L1 distance.

    Parameters
    ----------
    discount
        Discount factor in [0, 1).
    maximum
        Largest reward (or cost) of one step.
    signal_error
        Largest difference of a mean reward (or cost).
    row_distance
        Largest L1 distance of two rows; at most S·α for an α-approximation.
    """
    gamma = read_discount(discount)
    top = read_amount("maximum", maximum)
    error = read_amount("signal_error", signal_error)
    distance = min(read_amount("row_distance", row_distance), 2.0)
    weighed = gamma * distance * top / (2.0 * (1.0 - gamma))
    return min((error + weighed) / (1.0 - gamma), top / (1.0 - gamma))
