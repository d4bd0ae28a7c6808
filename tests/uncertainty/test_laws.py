"""Laws of every set of rows: growth, points, relabelling, lifting, and plain copies."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import escapade as ep
from escapade.testing import check_uncertainty_set, cmdps, policies
from escapade.uncertainty import Interval, KLBall, L1Ball, Models

RADII = {
    L1Ball: (0.0, 0.1, 0.5, 1.3, 2.0),
    Interval: (0.0, 0.05, 0.2, 0.6, 1.0),
    KLBall: (0.0, 0.01, 0.1, 1.0, np.inf),
}
BALLS = tuple(RADII)
SUPPORTS = (None, "everywhere")


def _extreme(sets, probability, v):
    return np.add.reduceat(probability * v[sets.successor], sets.row_ptr[:-1])


@settings(max_examples=15)
@given(st.data())
@pytest.mark.parametrize("cls", BALLS)
def test_sets_pass_the_conformance_suite(cls, data):
    cmdp = data.draw(cmdps(max_states=4))
    radius = data.draw(st.sampled_from(RADII[cls]))
    support = data.draw(st.sampled_from(SUPPORTS))
    check_uncertainty_set(cls(cmdp, radius, support=support), cmdp, draws=4)


@settings(max_examples=10)
@given(st.data())
def test_families_pass_the_conformance_suite(data):
    cmdp = data.draw(cmdps(max_states=4, masked=False))
    rng = np.random.default_rng(data.draw(st.integers(0, 9)))
    shape = (cmdp.n_pairs, cmdp.n_states)
    family = [cmdp, *rng.dirichlet(np.ones(shape[1]), (2, shape[0]))]
    check_uncertainty_set(Models(cmdp, family), cmdp, draws=4)


@settings(max_examples=20)
@given(st.data())
@pytest.mark.parametrize("cls", BALLS)
def test_extremes_grow_with_the_radius_and_with_the_support(cls, data):
    cmdp = data.draw(cmdps(max_states=4))
    v = np.array(
        data.draw(
            st.lists(st.integers(-4, 4), min_size=cmdp.n_states, max_size=cmdp.n_states)
        ),
        dtype=float,
    )
    plain = cmdp.transition_matrix @ v
    best = plain
    for radius in RADII[cls]:
        near = cls(cmdp, radius)
        far = cls(cmdp, radius, support="everywhere")
        if radius == 0.0:
            np.testing.assert_allclose(near.worst(v), plain, atol=1e-12)
        assert np.all(near.worst(v) >= best - 1e-12)
        assert np.all(far.worst(v) >= near.worst(v) - 1e-12)
        assert np.all(near.worst(v, sense="min") <= plain + 1e-12)
        best = near.worst(v)
    assert np.all(far.worst(v) == v.max())
    reach = np.maximum.reduceat(v[cmdp.successor], cmdp.row_ptr[:-1])
    np.testing.assert_allclose(best, reach, atol=1e-12)


@settings(max_examples=10)
@given(st.data())
@pytest.mark.parametrize("cls", BALLS)
def test_values_fall_and_costs_rise_as_the_set_grows(cls, data):
    cmdp = data.draw(cmdps(max_states=4, discounts=(0.5, 0.9)))
    policy = data.draw(policies(cmdp))
    before = None
    for radius in RADII[cls][:4]:
        found = ep.robust_evaluate(cmdp, policy, cls(cmdp, radius))
        if before is None:
            value = ep.evaluate(cmdp, policy).value
            np.testing.assert_allclose(found.value_lower, value, atol=1e-6)
        else:
            assert np.all(found.value_lower <= before.value_lower + 1e-6)
            assert np.all(found.value_upper >= before.value_upper - 1e-6)
            assert np.all(found.costs_upper >= before.costs_upper - 1e-6)
            assert np.all(found.costs_lower <= before.costs_lower + 1e-6)
        before = found


@settings(max_examples=15)
@given(st.data())
@pytest.mark.parametrize("cls", BALLS)
def test_shrinking_draws_the_set_together(cls, data):
    cmdp = data.draw(cmdps(max_states=4))
    support = data.draw(st.sampled_from(SUPPORTS))
    sets = cls(cmdp, RADII[cls][2], support=support)
    rng = np.random.default_rng(data.draw(st.integers(0, 9)))
    v = rng.standard_normal(cmdp.n_states)
    half = sets.shrink(0.5)
    assert sets.contains(half.sample(rng)).all()
    assert np.all(half.worst(v) <= sets.worst(v) + 1e-12)
    same, point = sets.shrink(1.0), sets.shrink(0.0)
    np.testing.assert_allclose(same.worst(v), sets.worst(v), atol=1e-15)
    np.testing.assert_allclose(point.worst(v), cmdp.transition_matrix @ v, atol=1e-12)
    assert np.array_equal(point.nominal, sets.nominal)


@settings(max_examples=15)
@given(st.data())
@pytest.mark.parametrize("cls", BALLS)
def test_relabelling_the_states_changes_nothing(cls, data):
    cmdp = data.draw(cmdps(max_states=5, masked=False))
    order = np.array(data.draw(st.permutations(range(cmdp.n_states))))
    dense = cmdp.transition_matrix.toarray().reshape(
        cmdp.n_states, cmdp.n_actions, cmdp.n_states
    )
    flat = np.zeros(dense.shape[:2])
    other = ep.CMDP(dense[order][:, :, order], flat, flat, discount=0.5, budget=1.0)
    rng = np.random.default_rng(0)
    v = rng.standard_normal(cmdp.n_states)
    radius = data.draw(st.sampled_from(RADII[cls]))
    support = data.draw(st.sampled_from(SUPPORTS))
    for sense in ("min", "max"):
        here = cls(cmdp, radius, support=support).worst(v, sense=sense)
        there = cls(other, radius, support=support).worst(v[order], sense=sense)
        np.testing.assert_allclose(
            there.reshape(flat.shape), here.reshape(flat.shape)[order], atol=1e-12
        )


@settings(max_examples=15)
@given(st.data())
@pytest.mark.parametrize("cls", BALLS)
def test_lifted_sets_are_copies_with_new_labels(cls, data):
    cmdp = data.draw(cmdps(max_states=4))
    support = data.draw(st.sampled_from(SUPPORTS))
    radius = data.draw(st.sampled_from(RADII[cls]))
    sets = cls(cmdp, radius, support=support)
    copies = 3
    # states with a memory of 3 values; memory j goes to memory j
    pairs = np.repeat(np.arange(cmdp.n_pairs), copies)
    memory = np.tile(np.arange(copies), cmdp.n_pairs)
    starts, ends = sets.row_ptr[pairs], sets.row_ptr[pairs + 1]
    target = np.concatenate(
        [
            sets.successor[a:b] * copies + m
            for a, b, m in zip(starts, ends, memory, strict=True)
        ]
    )
    lifted = sets.lift(pairs, target, cmdp.n_states * copies)
    assert type(lifted) is cls
    rng = np.random.default_rng(0)
    v = rng.standard_normal((cmdp.n_states, copies))
    for sense in ("min", "max"):
        above = lifted.worst(v.ravel(), sense=sense)
        below = np.stack([sets.worst(v[:, m], sense=sense) for m in range(copies)])
        np.testing.assert_allclose(above.reshape(-1, copies).T, below, atol=1e-12)


@pytest.mark.parametrize("cls", BALLS)
def test_samples_reach_the_boundary_and_depend_on_the_seed(cls):
    cmdp = ep.environments.three_state_loop().cmdp
    sets = cls(cmdp, RADII[cls][2], support="everywhere")
    rng = np.random.default_rng(0)
    draws = [sets.sample(rng) for _ in range(200)]
    excess = np.array([sets.excess(draw) for draw in draws])
    assert np.all(excess <= 1e-12)
    radius = 0.0 if cls is Interval else sets.radius
    assert np.median(excess + radius) >= 0.0
    assert (excess > -0.02).any()
    again = sets.sample(np.random.default_rng(0))
    assert np.array_equal(again, draws[0])
    assert not np.array_equal(draws[0], draws[1])


@pytest.mark.parametrize("cls", BALLS)
@pytest.mark.parametrize("support", SUPPORTS)
def test_a_set_survives_a_process_boundary(cls, support):
    cmdp = ep.environments.three_state_loop().cmdp
    sets = cls(cmdp, RADII[cls][2], support=support)
    v = np.arange(float(cmdp.n_states))
    before = sets.worst(v)
    copy = pickle.loads(pickle.dumps(sets))
    assert np.array_equal(copy.worst(v), before)
    one, other = (s.sample(np.random.default_rng(3)) for s in (sets, copy))
    assert np.array_equal(one, other)
    # kernels are compiled for read-only arrays, and would be again for others
    assert not any(a.flags.writeable for a in (copy.successor, copy.rows.seen_nominal))


def test_a_family_survives_a_process_boundary():
    cmdp = ep.environments.three_state_loop().cmdp
    family = Models(cmdp, [cmdp, cmdp], throughout=True).keep([False, True])
    copy = pickle.loads(pickle.dumps(family))
    assert not copy.rectangular
    assert np.array_equal(copy.active, family.active)
    assert list(copy.members(cmdp)) == [cmdp]


def test_the_tightest_ball_of_each_kind_at_equal_evidence():
    """Pinsker: the KL ball lies within the L1 ball of radius √(2ρ)."""
    cmdp = ep.environments.three_state_loop().cmdp
    rng = np.random.default_rng(1)
    for rho in (0.01, 0.1, 0.5):
        inner = KLBall(cmdp, rho, support="everywhere")
        outer = L1Ball(cmdp, min(np.sqrt(2 * rho), 2.0), support="everywhere")
        for _ in range(20):
            v = rng.standard_normal(cmdp.n_states)
            assert np.all(inner.worst(v) <= outer.worst(v) + 1e-12)
            assert outer.contains(inner.sample(rng)).all()


def test_what_was_only_counted_becomes_a_problem_to_plan_for():
    """A pair that was never tried may do anything that its support allows."""
    flat = np.zeros((2, 2))
    skeleton = ep.CMDP(
        np.full((2, 2, 2), 0.5), flat, flat, discount=0.9, budget=1.0, reward_max=1.0
    )
    counts = [[[3, 1], [0, 5]], [[2, 2], [0, 0]]]
    sets = L1Ball.from_counts(counts, cmdp=skeleton)
    plant = sets.nominal_problem(skeleton)
    expected = [[0.75, 0.25], [0.0, 1.0], [0.5, 0.5], [0.5, 0.5]]
    np.testing.assert_allclose(plant.transition_matrix.toarray(), expected)
    assert plant.successor.size == 7  # what was never seen is not stored
    assert plant.budget == skeleton.budget
    answer = ep.solve(plant, uncertainty=sets)
    assert answer.policy is not None
    assert repr(sets) == "L1Ball(4 pairs, 2 states)"
    assert repr(ep.fallback(plant, sets)).startswith("Fallback(the budget can be")
    bounds = ep.robust_evaluate(plant, answer.policy, sets)
    assert repr(bounds).startswith("RobustEvaluation(value [0, 0], costs [0, 0]; ")
