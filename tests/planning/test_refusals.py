"""What is no problem, no policy, no set and no solver is refused by its name."""

from __future__ import annotations

import numpy as np
import pytest

import escapade as ep
from escapade.errors import InvalidInputError

CMDP = ep.CMDP(
    [[[1.0, 0.0], [0.8, 0.2]], [[0.5, 0.5], [0.5, 0.5]]],
    [[0.4, 1.0], [0.0, 0.0]],
    [[0, 0], [1, 1]],
    discount=0.9,
    budget=1.0,
)
EVEN = ep.Policy.uniform(CMDP)
SETS = ep.uncertainty.L1Ball(CMDP, radius=0.1)

REFUSALS = {
    "solve what": (lambda: ep.solve(3), "problem: expected a CMDP, found"),
    "solve how": (lambda: ep.solve(CMDP, "lp"), "solver: expected a solver"),
    "solve against what": (
        lambda: ep.solve(CMDP, ep.SlackDP(), uncertainty=0.1),
        "uncertainty: expected a set",
    ),
    "evaluate what over sets": (
        lambda: ep.robust_evaluate(None, EVEN, SETS),
        "cmdp: expected a CMDP, found a NoneType",
    ),
    "evaluate whom": (
        lambda: ep.robust_evaluate(CMDP, np.ones((2, 2)) / 2, SETS),
        "policy: expected a Policy or a MemoryPolicy, found a ndarray",
    ),
    "evaluate against what": (
        lambda: ep.robust_evaluate(CMDP, EVEN, 0.1),
        "sets: expected a UncertaintySet, found a float",
    ),
    "fall back where": (
        lambda: ep.fallback("wall-cycle", SETS),
        "cmdp: expected a CMDP, found a str",
    ),
    "fall back against what": (
        lambda: ep.fallback(CMDP, None),
        "sets: expected a UncertaintySet, found a NoneType",
    ),
    "a set around what": (
        lambda: ep.uncertainty.L1Ball([[1.0]], radius=0.1),
        "cmdp: expected a CMDP, found a list",
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_what_is_of_another_kind_is_refused_by_its_name(name):
    act, message = REFUSALS[name]
    with pytest.raises(InvalidInputError) as caught:
        act()
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_everything_is_fine_otherwise():
    assert ep.robust_evaluate(CMDP, EVEN, SETS).costs_upper.shape == (1, 2)
    assert ep.solve(CMDP).status == "optimal"
