"""Counts: the sums of a log, and what cannot be summed to."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from escapade.errors import InvalidInputError
from escapade.knowledge import Counts, Knowledge

TRANSITIONS = np.array([[[3, 1], [0, 0]], [[0, 2], [0, 0]]])


def knowledge(counts: Counts, **changed) -> Knowledge:
    arguments = {"discount": 0.9, "budget": 2.0, "reward_max": 1.0, "cost_max": 1.0}
    return Knowledge(2, 2, counts=counts, **{**arguments, **changed})


def counts(**changed) -> Counts:
    sums = {
        "transitions": TRANSITIONS,
        "rewards": [[2.0, 0.0], [1.0, 0.0]],
        "costs": [[0.5, 0.0], [1.0, 0.0]],
    }
    return Counts(**{**sums, **changed})


@pytest.mark.parametrize(
    "transitions",
    [TRANSITIONS, TRANSITIONS.reshape(4, 2), sp.csr_array(TRANSITIONS.reshape(4, 2))],
)
def test_counts_are_read_pair_by_pair(transitions):
    tally = knowledge(counts(transitions=transitions)).tally
    assert tally is not None
    assert tally.row_ptr.tolist() == [0, 2, 2, 3, 3]
    assert tally.successor.tolist() == [0, 1, 1]
    assert tally.visits.tolist() == [3, 1, 2]
    assert tally.rewards.tolist() == [2.0, 0.0, 1.0, 0.0]
    assert tally.costs.tolist() == [[0.5, 0.0, 1.0, 0.0]]
    assert tally.cost_steps.tolist() == [4, 0, 2, 0]


def test_costs_may_be_missing():
    told = counts(cost_steps=[[1, 0], [2, 0]])
    assert repr(told) == "Counts(6 steps)"
    assert knowledge(told).tally.cost_steps.tolist() == [1, 0, 2, 0]


@pytest.mark.parametrize(
    ("changed", "told", "message"),
    [
        ({"transitions": [[1, 2]]}, {}, r"counts: expected transitions \(4, 2\)"),
        ({"transitions": -TRANSITIONS}, {}, "counts: expected whole numbers of at lea"),
        (
            {"transitions": TRANSITIONS / 2},
            {},
            "counts: expected whole numbers of at l",
        ),
        ({"transitions": "many"}, {}, "counts: expected transitions"),
        ({"rewards": [[9.0, 0.0], [0.0, 0.0]]}, {}, "rewards: expected a sum of 4 sam"),
        ({"rewards": [0.0]}, {}, r"rewards: expected shape \(2, 2\)"),
        ({"costs": [[5.0, 0.0], [0.0, 0.0]]}, {}, "costs: expected a sum of 4 samples"),
        ({"costs": [[0.5, 0.5], [0.0, 0.0]]}, {}, "costs: expected a sum of 0 samples"),
        ({"costs": np.zeros((2, 2, 2))}, {}, r"costs: expected shape \(1, 2, 2\)"),
        ({"cost_steps": [[9, 0], [0, 0]]}, {}, "cost_steps: expected whole numbers in"),
        (
            {},
            {"available": [[True, True], [False, True]]},
            "counts: expected steps of actions that are available, found 2 at state 1, "
            "action 0",
        ),
        (
            {},
            {"support": np.array([[[1, 0], [1, 1]], [[1, 1], [1, 1]]], bool)},
            "counts: expected steps to possible successors, found 1 to state 1 "
            "at state 0, action 0",
        ),
        ({}, {"free": True}, "counts: expected no costs where it is free, found 0.5"),
        (
            {},
            {"costs": [[np.nan, np.nan], [0.0, np.nan]]},
            "counts: expected 2 times 0 as the sum of cost, as is told, found 1 at "
            "state 1, action 0",
        ),
        (
            {"cost_steps": [[1, 0], [2, 0]]},
            {"costs": [[0.25, 0.0], [0.5, 0.0]], "exact_costs": True},
            "counts: expected 1 times 0.25 as the sum of cost, as is told",
        ),
        (
            {},
            {"rewards": [[1.0, np.nan], [np.nan, np.nan]]},
            "counts: expected 4 times 1 as the sum of reward, as is told, found 2",
        ),
    ],
)
def test_counts_that_cannot_be(changed, told, message):
    with pytest.raises(InvalidInputError, match=message):
        knowledge(counts(**changed), **told)
