"""The conformance suite of uncertainty sets passes sets and catches what is none."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from escapade.model import CMDP
from escapade.testing import check_uncertainty_set, cmdps
from escapade.uncertainty import Intersection, Interval, KLBall, L1Ball, Models


def model():
    rng = np.random.default_rng(4)
    return CMDP(
        rng.dirichlet(np.ones(4), size=(4, 2)),
        rng.random((4, 2)),
        rng.random((4, 2)),
        discount=0.9,
        budget=1.0,
    )


@pytest.mark.parametrize("radius", [0.0, 0.3, 2.0])
@settings(max_examples=8)
@given(cmdp=cmdps())
def test_true_sets_pass(radius, cmdp):
    check_uncertainty_set(L1Ball(cmdp, radius=radius), cmdp, draws=4)


def mixed(cmdp, share):
    """The transitions with some of their mass spread evenly."""
    rows = cmdp.transition_matrix.toarray()
    return (1.0 - share) * rows + share * (rows > 0) / (rows > 0).sum(axis=1)[:, None]


SETS = {
    "Interval": lambda m: Interval(m, radius=0.1),
    "KLBall": lambda m: KLBall(m, radius=0.05),
    "Models": lambda m: Models(m, [mixed(m, 0.0), mixed(m, 0.2), mixed(m, 0.7)]),
    "Intersection": lambda m: Intersection(
        L1Ball(m, radius=0.2), Interval(m, radius=0.08)
    ),
}


@pytest.mark.parametrize("kind", SETS)
@settings(max_examples=5)
@given(cmdp=cmdps(max_states=4))
def test_every_kind_of_set_conforms(kind, cmdp):
    check_uncertainty_set(SETS[kind](cmdp), cmdp, draws=3)


class Spoilt:
    """A true set, one of whose answers is another."""

    def __init__(self, **answers):
        self._inner = L1Ball(model(), radius=0.3)
        self._answers = answers

    def __getattr__(self, name):
        return self._answers.get(name, getattr(self._inner, name))


TRUE = L1Ball(model(), radius=0.3)
TINY = L1Ball(model(), radius=0.01)


def beside(v, immediate, discount, *, sense="max", out=None):
    return TRUE.backup(v, immediate, discount, sense=sense, out=out) + 0.01


def stretched(v, *, sense="max", out=None):
    """Right for large values, off by a constant that does not scale."""
    return TRUE.worst(v, sense=sense) + (1e-3 if sense == "max" else -1e-3)


def not_shifted(v, *, sense="max", out=None):
    return TRUE.worst(v - v.mean(), sense=sense)


FAR = np.zeros_like(TRUE.nominal)
FAR[TRUE.row_ptr[:-1]] = 1.0
BROKEN = {
    "too few states": ({"n_states": 3}, "fits the problem"),
    "an unreachable nominal": (
        {"reachable": np.zeros_like(TRUE.reachable)},
        "reaches what its nominal kernel reaches",
    ),
    "successors out of order": (
        {"successor": TRUE.successor[::-1].copy()},
        "lists successors in increasing order",
    ),
    "a nominal that is no kernel": (
        {"nominal": 0.5 * TRUE.nominal},
        "the nominal kernel: is a kernel",
    ),
    "draws outside": ({"sample": lambda _rng: FAR}, "draw 1: is in the set"),
    "an extreme that members go beyond": (
        {"worst": TINY.worst},
        "no member goes beyond the extreme",
    ),
    "a kernel that does not attain it": (
        {"worst_kernel": lambda v, *, sense="max": TRUE.nominal},
        "the extreme kernel attains the extreme",
    ),
    "an extreme that nobody attains": (
        {"worst": stretched},
        "the extreme kernel attains the extreme",
    ),
    "a backup of something else": ({"backup": beside}, "is what a backup is made of"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_set_that_breaks_a_law_is_caught(name):
    answers, law = BROKEN[name]
    with pytest.raises(AssertionError, match=law):
        check_uncertainty_set(Spoilt(**answers), model(), draws=6)


def test_a_pair_without_successors_is_caught():
    rows = TRUE.row_ptr.copy()
    rows[1] = rows[2]
    with pytest.raises(AssertionError, match="has a successor for every pair"):
        check_uncertainty_set(Spoilt(row_ptr=rows), model())


def test_unreachable_draws_are_caught():
    kept = TRUE.nominal.copy()
    kept[0] += kept[1]
    kept[1] = 0.0
    reachable = TRUE.reachable.copy()
    reachable[1] = False
    spoilt = Spoilt(
        nominal=kept, reachable=reachable, sample=lambda _rng: TRUE.nominal.copy()
    )
    with pytest.raises(AssertionError, match="reaches what is reachable only"):
        check_uncertainty_set(spoilt, model())


def test_a_set_that_only_bounds_may_have_its_extreme_outside():
    def outside(v, *, sense="max"):
        return TRUE.worst_kernel(v, sense=sense)

    check_uncertainty_set(Spoilt(exact=False, worst_kernel=outside), model(), draws=3)
