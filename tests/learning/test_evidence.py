"""Counting steps."""

from __future__ import annotations

import numpy as np
import pytest

from escapade.learning import Evidence, known_by_certificate, known_by_quota, row_widths
from escapade.learning.confidence import Bounds, Confidence

ROW_PTR = np.array([0, 2, 3, 6])
SUCCESSOR = np.array([0, 2, 1, 0, 1, 2], dtype=np.int32)


def evidence(n_costs: int = 1) -> Evidence:
    return Evidence(ROW_PTR, SUCCESSOR, n_costs)


def test_steps_are_counted_one_by_one():
    seen = evidence(2)
    assert seen.n_pairs == 3
    assert seen.record(0, 2, 0.5, np.array([1.0, 0.0]))
    assert seen.record(0, 0, 1.0, None)
    assert seen.record(2, 1, 0.0, np.array([0.25, 1.0]))
    assert seen.visits.tolist() == [1, 1, 0, 0, 1, 0]
    assert seen.pair_visits.tolist() == [2, 0, 1]
    assert seen.cost_count.tolist() == [1, 0, 1]
    np.testing.assert_array_equal(seen.cost_sum, [[1.0, 0.0, 0.25], [0.0, 0.0, 1.0]])
    np.testing.assert_array_equal(seen.mean_reward(), [0.75, np.nan, 0.0])
    np.testing.assert_array_equal(
        seen.mean_cost(), [[1.0, np.nan, 0.25], [0.0, np.nan, 1.0]]
    )
    np.testing.assert_array_equal(seen.frequencies(), [0.5, 0.5, np.nan, 0.0, 1.0, 0.0])


@pytest.mark.parametrize(("pair", "state"), [(0, 1), (1, 0), (1, 2)])
def test_what_cannot_follow_is_not_counted(pair, state):
    seen = evidence()
    assert not seen.record(pair, state, 1.0, np.array([1.0]))
    for name in ("visits", "pair_visits", "reward_sum", "cost_sum", "cost_count"):
        assert not getattr(seen, name).any()


def test_many_steps_are_counted_as_one_by_one():
    rng = np.random.default_rng(0)
    one, all_ = evidence(2), evidence(2)
    pairs = rng.integers(3, size=200)
    entries = ROW_PTR[pairs] + rng.integers(np.diff(ROW_PTR)[pairs])
    rewards, costs = rng.random(200), rng.random((200, 2))
    costs[rng.random(200) < 0.3] = np.nan
    for pair, entry, reward, cost in zip(pairs, entries, rewards, costs, strict=True):
        seen = None if np.isnan(cost).any() else cost
        assert one.record(pair, SUCCESSOR[entry], reward, seen)
    assert all_.record_all(pairs, SUCCESSOR[entries], rewards, costs) == -1
    for name in Evidence.__slots__:
        np.testing.assert_array_equal(getattr(one, name), getattr(all_, name))


def test_the_first_step_that_cannot_happen_is_named():
    seen = evidence()
    states = np.array([0, 2, 1, 0])
    row = seen.record_all(np.zeros(4, int), states, np.zeros(4), np.zeros((4, 1)))
    assert row == 2
    assert seen.pair_visits.tolist() == [2, 0, 0]


def test_counts_are_added_to_what_was_seen():
    seen = evidence()
    seen.record(0, 2, 0.5, np.array([0.25]))
    seen.add(
        np.array([0, 1, 1, 3]),
        np.array([0, 0, 2]),
        np.array([4, 1, 2]),
        rewards=np.array([2.0, 0.0, 1.0]),
        costs=np.array([[0.5, 0.0, 3.0]]),
        cost_squares=np.array([[0.25, 0.0, 3.0]]),
        cost_steps=np.array([4, 0, 3]),
    )
    assert seen.visits.tolist() == [4, 1, 0, 1, 0, 2]
    assert seen.pair_visits.tolist() == [5, 0, 3]
    assert seen.reward_sum.tolist() == [2.5, 0.0, 1.0]
    assert seen.cost_sum.tolist() == [[0.75, 0.0, 3.0]]
    assert seen.cost_count.tolist() == [5, 0, 3]


def test_the_spread_of_costs_is_zero_where_they_are_equal():
    seen = evidence()
    for _ in range(7):
        seen.record(0, 0, 0.0, np.array([0.1]))
    seen.record(2, 0, 0.0, np.array([0.0]))
    seen.record(2, 0, 0.0, np.array([1.0]))
    variance = seen.cost_variance()[0]
    assert variance[0] == 0.0
    assert variance[2] == pytest.approx(0.25)


# -- known states ----------------------------------------------------------------------


def test_a_state_is_known_when_each_of_its_actions_is():
    visits, exact = np.array([3, 0, 3, 2]), np.array([False, True, False, False])
    ptr = np.array([0, 2, 4])
    assert known_by_quota(visits, ptr, 3, exact=exact).tolist() == [True, False]
    assert known_by_quota(visits, ptr, 2, exact=exact).tolist() == [True, True]
    with pytest.raises(ValueError, match="quota: expected a whole number"):
        known_by_quota(visits, ptr, 0, exact=exact)


def test_no_two_distributions_within_bounds_are_farther_apart_than_their_width():
    rng = np.random.default_rng(0)
    for _ in range(50):
        n = int(rng.integers(2, 6))
        p, q = rng.dirichlet(np.ones(n), 2)
        slack = rng.random((2, n)) * rng.choice([0.0, 0.1, 1.0])
        lower = np.maximum(np.minimum(p, q) - slack[0], 0.0)
        upper = np.minimum(np.maximum(p, q) + slack[1], 1.0)
        width = row_widths(lower, upper, np.array([0, n]))[0]
        assert np.abs(p - q).sum() <= width + 1e-12
    # a box whose corners are distributions: the width is attained
    assert row_widths(np.array([0.2, 0.6]), np.array([0.4, 0.8]), np.array([0, 2]))[
        0
    ] == pytest.approx(0.4)
    assert row_widths(np.zeros(3), np.ones(3), np.array([0, 3]))[0] == 2.0


def confident(visits: int) -> Confidence:
    seen = evidence()
    for pair, entry in ((0, 0), (2, 3)):
        seen.visits[entry] = seen.pair_visits[pair] = visits
        seen.cost_count[pair] = visits
    found = Confidence(
        seen,
        delta=0.1,
        bounds=Bounds(
            lower=np.array([0.0, 0.0, 1.0, 0.0, 0.0, 0.0]),
            upper=np.ones(6),
            reward_lower=np.zeros(3),
            reward_upper=np.ones(3),
            cost_lower=np.zeros((1, 3)),
            cost_upper=np.array([[1.0, 0.0, 1.0]]),
        ),
        reward_max=1.0,
        cost_max=np.ones(1),
        reward_exact=np.ones(3, dtype=bool),
        cost_exact=np.zeros(3, dtype=bool),
        name="pair {}".format,
        varying=np.zeros(3, dtype=bool),
    )
    seen.pair_visits[1] = 1
    found.refresh(np.arange(3))
    return found


def test_states_become_known_by_what_visits_prove():
    ptr = np.array([0, 2, 3])
    assert not known_by_certificate(confident(10), ptr, 0.2).any()
    assert known_by_certificate(confident(500), ptr, 0.2).all()
    assert not known_by_certificate(confident(500), ptr, 0.01).any()
    with pytest.raises(ValueError, match="accuracy: expected a number in"):
        known_by_certificate(confident(10), ptr, 0.0)
