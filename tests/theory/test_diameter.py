"""The diameter: against every target by itself, closed forms, and its certificate."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import escapade as ep
from escapade.errors import InvalidInputError
from escapade.testing import cmdps
from escapade.theory import diameter as module
from escapade.theory.diameter import diameter, sampled_diameter_lower_bound
from escapade.theory.hitting_times import hitting_times


def problem(rows):
    rows = np.asarray(rows, dtype=float)
    zeros = np.zeros(rows.shape[:2])
    return ep.CMDP(rows, zeros, zeros, discount=0.9, budget=1.0)


def line(size):
    """Return a fair walk on a line that reflects at both ends."""
    rows = np.zeros((size, 1, size))
    rows[0, 0, 1] = rows[-1, 0, -2] = 1.0
    for state in range(1, size - 1):
        rows[state, 0, [state - 1, state + 1]] = 0.5
    return problem(rows)


@settings(max_examples=50)
@given(data=st.data())
def test_it_is_the_largest_of_all_least_times(data):
    cmdp = data.draw(cmdps(min_states=2, max_states=5))
    every = np.array(
        [hitting_times(cmdp, target).upper for target in range(cmdp.n_states)]
    )
    found = diameter(cmdp)
    assert found.certified
    assert found.upper == pytest.approx(every.max(), rel=1e-5)
    assert found.is_finite == math.isfinite(every.max())
    assert every[found.target, found.source] == pytest.approx(every.max(), rel=1e-5)
    if found.is_finite:
        assert found.lower <= every.max() * (1 + 1e-9)
        assert every.max() <= found.upper * (1 + 1e-8)
    else:
        assert f"state {found.source} to state {found.target}" in found.message


@settings(max_examples=50)
@given(data=st.data())
def test_relabelling_states_changes_nothing(data):
    cmdp = data.draw(cmdps(min_states=2, max_states=5, masked=False, sparse=False))
    order = np.array(data.draw(st.permutations(range(cmdp.n_states))))
    rows = cmdp.transition_matrix.toarray().reshape(
        cmdp.n_states, cmdp.n_actions, cmdp.n_states
    )
    moved = problem(rows[order][:, :, order])
    before, after = diameter(cmdp), diameter(moved)
    assume(before.is_finite)
    assert after.upper == pytest.approx(before.upper, rel=1e-5)


@pytest.mark.parametrize("size", [2, 5, 30])
def test_a_fair_walk_has_the_diameter_of_its_square(size):
    assert diameter(line(size)).upper == pytest.approx((size - 1) ** 2, rel=1e-6)


def test_one_state_has_nowhere_to_go():
    alone = problem([[[1.0]]])
    assert diameter(alone).upper == 0.0
    assert diameter(alone).certified
    assert sampled_diameter_lower_bound(alone).lower_bound == 0.0


def test_a_trap_makes_it_infinite():
    rows = np.zeros((3, 1, 3))
    rows[0, 0] = [0.0, 0.5, 0.5]
    rows[1, 0, 0] = 1.0
    rows[2, 0, 2] = 1.0
    found = diameter(problem(rows))
    assert found.lower == found.upper == math.inf
    assert found.certified
    assert found.source == 2
    assert found.target in (0, 1)
    sampled = sampled_diameter_lower_bound(problem(rows))
    assert sampled.lower_bound == math.inf
    assert sampled.source == 2


@settings(max_examples=50)
@given(data=st.data(), samples=st.integers(1, 6), seed=st.integers(0, 9))
def test_the_sampled_bound_is_a_lower_bound(data, samples, seed):
    cmdp = data.draw(cmdps(min_states=2, max_states=5))
    whole = diameter(cmdp)
    assume(whole.is_finite)
    found = sampled_diameter_lower_bound(cmdp, samples=samples, seed=seed)
    assert found.targets == min(samples, cmdp.n_states)
    assert found.lower_bound <= whole.upper
    time = hitting_times(cmdp, found.target).upper[found.source]
    assert found.lower_bound == pytest.approx(time, rel=1e-5)
    if found.targets == cmdp.n_states:
        assert found.lower_bound == pytest.approx(whole.lower, rel=1e-5)


def test_the_same_seed_samples_the_same_targets():
    world = ep.environments.garnet(60, 2, 3, seed=1).cmdp
    first, second = (
        sampled_diameter_lower_bound(world, samples=8, seed=3) for _ in range(2)
    )
    assert first == second


def test_progress_counts_up_to_all_targets(monkeypatch):
    monkeypatch.setattr(module, "_CHUNK", 7)
    seen = []
    diameter(line(20), progress=lambda done, total: seen.append((done, total)))
    done = [d for d, _ in seen]
    assert done == sorted(done)
    assert seen[-1] == (20, 20)


def test_what_sweeps_leave_open_is_solved_exactly(monkeypatch):
    monkeypatch.setattr(module, "_BLOCKS", 1)
    seen = []
    found = diameter(line(40), progress=lambda done, total: seen.append((done, total)))
    assert found.certified
    assert found.upper == pytest.approx(39**2, rel=1e-6)
    assert seen[-1] == (40, 40)


def test_more_states_than_it_can_search_are_refused():
    many = ep.environments.garnet(2001, 1, 2, seed=0).cmdp
    with pytest.raises(InvalidInputError, match=r"^cmdp: expected at most 2000 states"):
        diameter(many)
    assert sampled_diameter_lower_bound(many, samples=2).targets <= 2


@pytest.mark.slow
def test_five_hundred_and_two_thousand_states_are_certified():
    for size, states in ((22, 484), (44, 1936)):
        world = ep.environments.wall_cycle(size=size).cmdp
        assert world.n_states == states
        found = diameter(world)
        assert found.certified
        corner = hitting_times(world, states - 1).upper[0]
        assert found.upper >= corner * (1 - 1e-6)
        assert found.upper <= 1.05 * corner
