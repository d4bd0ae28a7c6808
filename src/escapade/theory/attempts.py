r"""How many exploration attempts, and how many actions, until all states are known.

An attempt succeeds with probability at least p, given everything before it.  How many
attempts N make at least m successes likely?  For a sum X of such attempts, Chernoff's
bound :math:`P[X \le (1-\Delta)Np] \le e^{-\Delta^2 Np/2}` gives (E32)

.. math:: N = \frac{2}{p}\left(m + \ln\frac{S}{\delta}\right):

with L = ln(S/δ) the exponent is :math:`(m+2L)^2 / (4(m+L)) \ge L`.  The paper prints
half of it, by a limit taken in the wrong variable; for p = .01 and m = 100 that fails
about once in four times where once in a thousand is promised.

:func:`sample_complexity` and :func:`time_complexity` evaluate the bounds of Theorem 1
with these counts in place of O(·).  A successful attempt adds one visit to *some*
unknown state, so S·A·m successes make every state known; Chernoff's bound is used once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy.special import betaincc

from escapade.errors import refusal
from escapade.theory.arguments import (
    finite_ceiling,
    read_amount,
    read_count,
    read_positive,
    read_probability,
    read_steps,
)
from escapade.theory.explore_or_exploit import theorem_margins
from escapade.theory.horizons import horizon_time, value_bound, value_bound_as_printed
from escapade.theory.known_states import known_visits, known_visits_as_printed

__all__ = [
    "SampleComplexity",
    "attempts_failure",
    "exploration_attempts",
    "exploration_attempts_as_printed",
    "sample_complexity",
    "sample_complexity_as_printed",
    "time_complexity",
    "time_complexity_as_printed",
]

_THEOREM_ACCURACY = 0.125  # eps/8 throughout, see theorem_margins


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleComplexity:
    """Bound on the actions taken before a nearly optimal policy can be returned.

    Attributes
    ----------
    horizon
        T, the length of an attempt.
    known_visits
        m, visits that make a pair known.
    success_probability
        p, chance that an attempt reaches an unknown state.
    successes
        S·A·m, the successful attempts that make every state known.
    attempts
        N, the attempts that yield so many successes.
    exploring_actions
        N·T, actions of exploration attempts: the paper's count.
    returning_actions
        N·T, actions of the safe return after each attempt.
    unknown_actions
        Expected actions in unknown states: for each success one of wandering and the
        escape.
    """

    horizon: int
    known_visits: int
    success_probability: float
    successes: int
    attempts: int
    exploring_actions: int
    returning_actions: int
    unknown_actions: float

    @property
    def actions(self) -> float:
        """All actions together."""
        return self.exploring_actions + self.returning_actions + self.unknown_actions


def exploration_attempts(
    *, visits: int, probability: float, n_states: int, delta: float
) -> int:
    """Return N = 2 (m + ln(S/δ)) / p attempts, which yield m successes surely enough.

    Parameters
    ----------
    visits
        m, the successes wanted.
    probability
        p, a lower bound on the chance of success given the past.
    n_states
        S; each state may fail with probability ``delta / n_states``.
    delta
        Failure probability over all states.
    """
    return finite_ceiling(
        "probability",
        2.0
        * exploration_attempts_as_printed(
            visits=visits, probability=probability, n_states=n_states, delta=delta
        ),
    )


def exploration_attempts_as_printed(
    *, visits: int, probability: float, n_states: int, delta: float
) -> float:
    """Return N = (m + ln(S/δ)) / p, as Appendix C prints it; too few (E32)."""
    wanted = read_count("visits", visits)
    chance = _read_chance(probability)
    states = read_count("n_states", n_states)
    failure = read_probability("delta", delta)
    return (wanted + math.log(states) - math.log(failure)) / chance


def _read_chance(probability: float) -> float:
    chance = read_positive("probability", probability)
    if chance > 1.0:
        raise refusal("probability", "a number in (0, 1]", chance)
    return chance


def attempts_failure(*, attempts: int, visits: int, probability: float) -> float:
    """Return the probability that N independent attempts succeed fewer than m times.

    The exact binomial, at the least chance of success that is allowed: attempts that
    depend on the past fail no more often, as long as each succeeds with at least this
    probability given all before it.
    """
    number = read_count("attempts", attempts, least=0)
    wanted = read_count("visits", visits)
    chance = _read_chance(probability)
    if number < wanted:
        return 1.0
    return float(betaincc(wanted, number - wanted + 1, chance))


def sample_complexity(
    *,
    n_states: int,
    n_actions: int,
    discount: float,
    epsilon: float,
    delta: float,
    reward_max: float,
    cost_max: float,
    n_costs: int = 1,
    visits: int | None = None,
    escape_steps: float = 1.0,
) -> SampleComplexity:
    """Return the bound of Theorem 1 on the number of actions, with its constants.

    Accuracies are ε/8 (E31); δ/4 goes to each of the paper's failure events.

    Parameters
    ----------
    n_states, n_actions, discount, epsilon, delta, reward_max, cost_max, n_costs
        As in :func:`~escapade.theory.known_states.known_visits`.
    visits
        m, visits that make a pair known; by default the lemma's at accuracy ε/8.
    escape_steps
        Expected steps from an unknown state back to the known ones.
    """
    eps = read_positive("epsilon", epsilon)
    share = read_probability("delta", delta) / 4.0
    steps = read_steps("escape_steps", escape_steps)
    accuracy = _THEOREM_ACCURACY * eps
    horizon = horizon_time(
        discount=discount, epsilon=accuracy, reward_max=reward_max, cost_max=cost_max
    )
    needed = (
        known_visits(
            n_states=n_states,
            n_actions=n_actions,
            discount=discount,
            epsilon=accuracy,
            delta=share,
            reward_max=reward_max,
            cost_max=cost_max,
            n_costs=n_costs,
        )
        if visits is None
        else read_count("visits", visits)
    )
    largest = value_bound(
        discount=discount,
        maximum=read_positive("reward_max", reward_max),
        horizon=horizon,
    )
    gap = theorem_margins(accuracy=_THEOREM_ACCURACY).planned_exploration_gap
    chance = min(gap * eps / largest, 1.0)
    successes = n_states * n_actions * needed
    attempts = exploration_attempts(
        visits=successes, probability=chance, n_states=1, delta=share
    )
    return SampleComplexity(
        horizon=horizon,
        known_visits=needed,
        success_probability=chance,
        successes=successes,
        attempts=attempts,
        exploring_actions=attempts * horizon,
        returning_actions=attempts * horizon,
        unknown_actions=successes * (1.0 + steps),
    )


def sample_complexity_as_printed(
    *,
    n_states: int,
    n_actions: int,
    discount: float,
    epsilon: float,
    delta: float,
    reward_max: float,
    cost_max: float,
) -> float:
    """Return T (G/ε) S m ln(S/δ'), the argument of the paper's O(·), δ' = δ/4."""
    share = read_probability("delta", delta) / 4.0
    eps = read_positive("epsilon", epsilon)
    horizon = horizon_time(
        discount=discount, epsilon=eps / 4.0, reward_max=reward_max, cost_max=cost_max
    )
    needed = known_visits_as_printed(
        n_states=n_states,
        n_actions=n_actions,
        discount=discount,
        epsilon=eps,
        delta=share,
        reward_max=reward_max,
        cost_max=cost_max,
    )
    largest = value_bound_as_printed(discount=discount, maximum=reward_max)
    logarithm = math.log(n_states) - math.log(share)
    return horizon * largest / eps * n_states * needed * logarithm


def time_complexity(
    samples: SampleComplexity,
    *,
    optimisation_operations: float,
    optimisations_per_attempt: int = 3,
) -> float:
    """Return a bound on all operations: planning at each attempt, and the actions.

    Parameters
    ----------
    samples
        What :func:`sample_complexity` returned.
    optimisation_operations
        Operations of one offline optimisation.
    optimisations_per_attempt
        Exploitation, exploration and escape: three.
    """
    once = read_amount("optimisation_operations", optimisation_operations)
    number = read_count("optimisations_per_attempt", optimisations_per_attempt)
    return samples.attempts * number * once + samples.actions


def time_complexity_as_printed(
    samples_as_printed: float, *, optimisation_operations: float
) -> float:
    """Return Opt times the paper's sample bound: one optimisation an *action*."""
    once = read_amount("optimisation_operations", optimisation_operations)
    return once * read_amount("samples_as_printed", samples_as_printed)
