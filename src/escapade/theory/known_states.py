r"""How many visits make a state known (Known State Lemma, Equations for m_known).

A state is *known* once each of its actions has been tried m times, where m is such that
every mean reward, mean cost and transition probability of the model is within
α = K_1 (ε/(STG))² of the truth with probability at least 1 − δ
(:mod:`escapade.theory.accuracy`).  Three concentration inequalities give three counts:

Hoeffding
    :math:`m = \frac{M^2}{2\alpha^2} \ln\frac{2}{\delta'}` with
    :math:`M = \max(r_{\max}, c_{\max}, 1)`.
Bernstein
    :math:`m = \frac{2}{\alpha^2}(\mathscr{V} + M\alpha/3) \ln\frac{2}{\delta'}`, when
    all variances are at most :math:`\mathscr{V}`.
Deterministic rewards and costs
    Hoeffding with M = 1 for the transitions alone.

Each visited pair estimates S + 2 numbers (S + 1 + K with K cost channels), so δ is
shared: :math:`\delta' = \delta / (S A (S + 1 + K))`.  The counts are per state-action
pair, which is why the paper's factor A is gone (E10, E11).  The paper's own formulas
end in ``as_printed`` and return floats; the corrected ones return Python integers,
which may be as large as 1e31 and more.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from escapade.errors import refusal
from escapade.theory.accuracy import ACCURACY_CONSTANT, required_accuracy
from escapade.theory.arguments import (
    finite_ceiling,
    read_amount,
    read_count,
    read_positive,
    read_probability,
)
from escapade.theory.horizons import horizon_time, value_bound_as_printed

__all__ = [
    "Stage",
    "adaptive_schedule",
    "bernstein_gain",
    "bernstein_gain_as_printed",
    "known_visits",
    "known_visits_as_printed",
    "known_visits_bernstein",
    "known_visits_bernstein_as_printed",
    "known_visits_deterministic",
    "known_visits_deterministic_as_printed",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One stage of a schedule of falling ε, with the numbers that go with its ε.

    Attributes
    ----------
    epsilon, delta
        Accuracy of this stage, and its share of the failure probability.
    horizon
        T, the (ε/2)-horizon time.
    value_bound
        G, the largest T-step value or cost.
    accuracy
        α.
    known_visits
        Visits of a pair after which it is known at this accuracy.
    """

    epsilon: float
    delta: float
    horizon: int
    value_bound: float
    accuracy: float
    known_visits: int


def _per_bound(
    n_states: int, n_actions: int, delta: float, estimates_per_pair: int
) -> float:
    """Return ln(2/δ') for a union over all estimates of all pairs."""
    pairs = read_count("n_states", n_states) * read_count("n_actions", n_actions)
    failure = read_probability("delta", delta)
    return math.log(2 * pairs * estimates_per_pair) - math.log(failure)


def _scale(reward_max: float, cost_max: float) -> float:
    return max(
        read_amount("reward_max", reward_max), read_amount("cost_max", cost_max), 1.0
    )


def known_visits(
    *,
    n_states: int,
    n_actions: int,
    discount: float,
    epsilon: float,
    delta: float,
    reward_max: float,
    cost_max: float,
    n_costs: int = 1,
    horizon: int | None = None,
) -> int:
    """Return m_known by Hoeffding's inequality, per state-action pair.

    Parameters
    ----------
    n_states, n_actions
        S and A.
    discount, epsilon, reward_max, cost_max, horizon
        As in :func:`~escapade.theory.accuracy.required_accuracy`.
    delta
        Probability with which any estimate of any pair may be off.
    n_costs
        K, the number of cost channels.
    """
    alpha = required_accuracy(
        n_states=n_states,
        discount=discount,
        epsilon=epsilon,
        reward_max=reward_max,
        cost_max=cost_max,
        horizon=horizon,
    ).accuracy
    channels = read_count("n_costs", n_costs)
    logarithm = _per_bound(n_states, n_actions, delta, n_states + 1 + channels)
    scale = _scale(reward_max, cost_max)
    ratio = scale / alpha
    return finite_ceiling("epsilon", 0.5 * ratio * ratio * logarithm)


def known_visits_bernstein(
    *,
    n_states: int,
    n_actions: int,
    discount: float,
    epsilon: float,
    delta: float,
    reward_max: float,
    cost_max: float,
    variance: float,
    n_costs: int = 1,
    horizon: int | None = None,
) -> int:
    """Return m_known by Bernstein's inequality, per state-action pair.

    Parameters
    ----------
    n_states, n_actions, discount, epsilon, delta, reward_max, cost_max
        As in :func:`known_visits`.
    n_costs, horizon
        As in :func:`known_visits`.
    variance
        The largest variance of a reward, of a cost, or of the indicator of one
        transition (which is at most 1/4).
    """
    alpha = required_accuracy(
        n_states=n_states,
        discount=discount,
        epsilon=epsilon,
        reward_max=reward_max,
        cost_max=cost_max,
        horizon=horizon,
    ).accuracy
    channels = read_count("n_costs", n_costs)
    logarithm = _per_bound(n_states, n_actions, delta, n_states + 1 + channels)
    spread = read_amount("variance", variance)
    spread += _scale(reward_max, cost_max) * alpha / 3.0
    return finite_ceiling("epsilon", 2.0 * spread / alpha / alpha * logarithm)


def known_visits_deterministic(
    *,
    n_states: int,
    n_actions: int,
    discount: float,
    epsilon: float,
    delta: float,
    reward_max: float,
    cost_max: float,
    horizon: int | None = None,
) -> int:
    """Return m_known when rewards and costs are functions of the pair.

    One sample settles each of them; only the transitions are estimated.
    """
    alpha = required_accuracy(
        n_states=n_states,
        discount=discount,
        epsilon=epsilon,
        reward_max=reward_max,
        cost_max=cost_max,
        horizon=horizon,
    ).accuracy
    logarithm = _per_bound(n_states, n_actions, delta, n_states)
    return finite_ceiling("epsilon", 0.5 / alpha / alpha * logarithm)


def _printed_core(
    n_states: int,
    n_actions: int,
    discount: float,
    epsilon: float,
    reward_max: float,
    cost_max: float,
) -> tuple[int, float]:
    """Return A and K_1^-2 (STG/ε)^4 with the paper's T and its infinite G."""
    horizon = horizon_time(
        discount=discount, epsilon=epsilon, reward_max=reward_max, cost_max=cost_max
    )
    largest = value_bound_as_printed(
        discount=discount, maximum=max(reward_max, cost_max)
    )
    ratio = read_count("n_states", n_states) * horizon * largest / epsilon
    square = ratio * ratio / ACCURACY_CONSTANT  # not a power, which may not overflow
    return read_count("n_actions", n_actions), square * square


def known_visits_as_printed(
    *,
    n_states: int,
    n_actions: int,
    discount: float,
    epsilon: float,
    delta: float,
    reward_max: float,
    cost_max: float,
) -> float:
    """Return ½ A ln(2/δ) M² K_1⁻² (STG/ε)⁴, the paper's formula for practice."""
    actions, core = _printed_core(
        n_states, n_actions, discount, epsilon, reward_max, cost_max
    )
    logarithm = math.log(2.0) - math.log(read_probability("delta", delta))
    scale = _scale(reward_max, cost_max)
    return 0.5 * actions * logarithm * scale * scale * core


def known_visits_bernstein_as_printed(
    *,
    n_states: int,
    n_actions: int,
    discount: float,
    epsilon: float,
    delta: float,
    reward_max: float,
    cost_max: float,
    variance: float,
    accuracy: float,
) -> float:
    """Return 2 A α⁻² (𝒱 + α/3) ln(2δ) K_1⁻² (STG/ε)⁴, as the paper prints it.

    It counts α⁻² twice, and ln(2δ) makes it negative for every δ below one half (E11).

    Parameters
    ----------
    n_states, n_actions, discount, epsilon, delta, reward_max, cost_max, variance
        As in :func:`known_visits_bernstein`.
    accuracy
        α, which the paper treats as a number apart from ε.
    """
    actions, core = _printed_core(
        n_states, n_actions, discount, epsilon, reward_max, cost_max
    )
    alpha = read_positive("accuracy", accuracy)
    logarithm = math.log(2.0 * read_probability("delta", delta))
    spread = read_amount("variance", variance) + alpha / 3.0
    return 2.0 * actions * spread / alpha / alpha * logarithm * core


def known_visits_deterministic_as_printed(
    *,
    n_states: int,
    n_actions: int,
    discount: float,
    epsilon: float,
    delta: float,
    reward_max: float,
    cost_max: float,
) -> float:
    """Return ½ A ln(2/δ) K_1⁻² (STG/ε)⁴."""
    actions, core = _printed_core(
        n_states, n_actions, discount, epsilon, reward_max, cost_max
    )
    logarithm = math.log(2.0) - math.log(read_probability("delta", delta))
    return 0.5 * actions * logarithm * core


def bernstein_gain(*, scale: float, variance: float, accuracy: float) -> float:
    """Return how many times fewer visits Bernstein asks than Hoeffding.

    M² / (4 (𝒱 + M α/3)) with M = ``scale``; below 1 the variance is too large for
    Bernstein to help.

    Examples
    --------
    >>> round(bernstein_gain(scale=100.0, variance=1.0, accuracy=0.1))
    577
    """
    top = read_positive("scale", scale)
    spread = read_amount("variance", variance)
    alpha = read_positive("accuracy", accuracy)
    return top * top / (4.0 * (spread + top * alpha / 3.0))


def bernstein_gain_as_printed(
    *, scale: float, variance: float, accuracy: float
) -> float:
    """Return the paper's ¼ α² M² / (𝒱 + α/3): 24-fold in its example."""
    top = read_positive("scale", scale)
    spread = read_amount("variance", variance)
    alpha = read_positive("accuracy", accuracy)
    product = alpha * top
    return 0.25 * product * product / (spread + alpha / 3.0)


def adaptive_schedule(
    *,
    n_states: int,
    n_actions: int,
    discount: float,
    epsilon: float,
    first_epsilon: float,
    stages: int,
    delta: float,
    reward_max: float,
    cost_max: float,
    n_costs: int = 1,
) -> tuple[Stage, ...]:
    """Return a schedule of falling ε, with the T, G, α and m of every stage.

    The paper suggests to begin with a large ε and lower it later in the lifetime, as T,
    G and m fall with it.  ε falls by a constant factor from stage to stage and δ is
    shared evenly, so that all stages together fail with probability at most ``delta``.

    Parameters
    ----------
    n_states, n_actions, discount, delta, reward_max, cost_max, n_costs
        As in :func:`known_visits`.
    epsilon
        Accuracy of the last stage.
    first_epsilon
        Accuracy of the first stage, at least ``epsilon``.
    stages
        Number of stages.
    """
    last = read_positive("epsilon", epsilon)
    first = read_positive("first_epsilon", first_epsilon)
    number = read_count("stages", stages)
    if first < last:
        raise refusal(
            "first_epsilon", f"a number of at least epsilon = {last:g}", first
        )
    if number == 1 and first != last:
        raise refusal("stages", "at least 2 stages to lower epsilon", number)
    share = read_probability("delta", delta) / number
    schedule = []
    for index in range(number):
        fraction = index / (number - 1) if number > 1 else 1.0
        eps = last if index == number - 1 else first * (last / first) ** fraction
        needed = required_accuracy(
            n_states=n_states,
            discount=discount,
            epsilon=eps,
            reward_max=reward_max,
            cost_max=cost_max,
        )
        visits = known_visits(
            n_states=n_states,
            n_actions=n_actions,
            discount=discount,
            epsilon=eps,
            delta=share,
            reward_max=reward_max,
            cost_max=cost_max,
            n_costs=n_costs,
        )
        schedule.append(
            Stage(
                epsilon=eps,
                delta=share,
                horizon=needed.horizon,
                value_bound=needed.value_bound,
                accuracy=needed.accuracy,
                known_visits=visits,
            )
        )
    return tuple(schedule)
