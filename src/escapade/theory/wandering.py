r"""When balanced wandering must stop: the printed test, and the one that is safe.

Before a wandering action at step t, with the cost :math:`C(p_t)` spent so far, the
agent asks whether the escape that would follow still fits into d'.  The paper's Safe
Balanced Wandering Lemma goes on while

.. math:: C(p_t) + \gamma^t \max_a \sum_{s'} P(s') \hat C(s') < d' - c_{\max},

an *expected* cost of escape.  "This holds for any path" does not follow, and the lemma
is false (E14): a branch of half a chance may carry a cost of 13.994 under d' = 10.02
while the other carries 9.562, an expectation of 11.778.  The corrected test (E15) takes
the worst next state, is asked before *every* wandering action, the first included, for
the action about to be taken:

.. math:: C(p_t) + \gamma^t \left[ c_{\max} + \gamma \max_{s'} \hat C(s') \right]
          \le d',

with :math:`\hat C` of infinite horizon, 0 on known states, and s' over all states that
some kernel of the set reaches.
"""

from __future__ import annotations

from escapade.theory.arguments import (
    read_amount,
    read_count,
    read_discount,
    read_positive,
)

__all__ = [
    "wandering_allowed",
    "wandering_allowed_as_printed",
    "wandering_allowed_in_expectation",
]


def wandering_allowed(
    *,
    spent: float,
    step: int,
    worst_escape_cost: float,
    escape_budget: float,
    cost_max: float,
    discount: float,
) -> bool:
    """Tell whether one more wandering action keeps every branch within d' (E15).

    Parameters
    ----------
    spent
        C(p_t), discounted cost since the unknown states were entered.
    step
        t, steps since then.
    worst_escape_cost
        The largest cost of escape among the states that the action can reach.
    escape_budget
        d'.
    cost_max, discount
        c_max and γ.
    """
    gamma = read_discount(discount)
    ahead = read_positive("cost_max", cost_max) + gamma * read_amount(
        "worst_escape_cost", worst_escape_cost
    )
    scale = gamma ** read_count("step", step, least=0)
    return read_amount("spent", spent) + scale * ahead <= read_amount(
        "escape_budget", escape_budget
    )


def wandering_allowed_in_expectation(
    *,
    spent: float,
    step: int,
    expected_escape_cost: float,
    escape_budget: float,
    cost_max: float,
    discount: float,
) -> bool:
    """Ask the same of the expected cost of escape; unsafe, kept to show it (E15).

    Parameters
    ----------
    spent, step, escape_budget, cost_max, discount
        As in :func:`wandering_allowed`.
    expected_escape_cost
        The expected cost of escape after the action.
    """
    return wandering_allowed(
        spent=spent,
        step=step,
        worst_escape_cost=read_amount("expected_escape_cost", expected_escape_cost),
        escape_budget=escape_budget,
        cost_max=cost_max,
        discount=discount,
    )


def wandering_allowed_as_printed(
    *,
    spent: float,
    step: int,
    expected_escape_cost: float,
    escape_budget: float,
    cost_max: float,
    discount: float,
) -> bool:
    """Tell whether the paper's Safe Balanced Wandering Lemma goes on wandering.

    Parameters
    ----------
    spent, step, escape_budget, cost_max, discount
        As in :func:`wandering_allowed`.
    expected_escape_cost
        The largest expected cost of escape over all actions.
    """
    scale = read_discount(discount) ** read_count("step", step, least=0)
    ahead = scale * read_amount("expected_escape_cost", expected_escape_cost)
    limit = read_amount("escape_budget", escape_budget) - read_positive(
        "cost_max", cost_max
    )
    return read_amount("spent", spent) + ahead < limit
