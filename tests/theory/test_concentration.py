"""Radii for all numbers of visits at once: exact laws, inversions, and crossings."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from escapade.errors import InvalidInputError
from escapade.theory.concentration import (
    bernoulli_kl_bounds,
    empirical_bernstein_radius,
    entry_radius,
    hoeffding_mixture_radius,
    kt_budget,
    kt_excess,
    log_kt,
    relative_entropy,
    row_radius,
    spread_over_time,
)

ONE_ROW = np.array([0, 3])


def _rows(count, width):
    return np.arange(0, (count + 1) * width, width)


@pytest.mark.parametrize(("length", "support"), [(1, 2), (5, 2), (4, 3), (3, 5)])
def test_kt_is_a_distribution_over_sequences(length, support):
    counts = [
        np.bincount(sequence, minlength=support)
        for sequence in product(range(support), repeat=length)
    ]
    found = log_kt(
        np.concatenate(counts), _rows(len(counts), support), support_size=support
    )
    assert np.exp(found).sum() == pytest.approx(1.0)


@given(counts=st.lists(st.integers(0, 50), min_size=3, max_size=3))
def test_kt_is_the_product_of_its_predictions(counts):
    # the next outcome i has probability (N_i + 1/2) / (n + m/2)
    seen, total = np.zeros(3), 0.0
    for outcome, number in enumerate(counts):
        for _ in range(number):
            total += math.log((seen[outcome] + 0.5) / (seen.sum() + 1.5))
            seen[outcome] += 1
    assert log_kt(counts, ONE_ROW, support_size=3)[0] == pytest.approx(total, abs=1e-9)


@given(
    counts=st.lists(st.integers(0, 40), min_size=3, max_size=3),
    weights=st.lists(st.integers(1, 9), min_size=3, max_size=3),
)
def test_the_budget_says_when_the_martingale_is_small(counts, weights):
    # n KL(p̂ ‖ p) ≤ ln(F/δ) + R is KT(N) / p(N) ≤ F/δ, written with p̂
    N, p = np.array(counts, dtype=float), np.array(weights) / sum(weights)
    n = N.sum()
    if n == 0:
        return
    at = {"support_size": 3, "delta": 0.05, "families": 4}
    budget = kt_budget(N, ONE_ROW, **at)[0]
    divergence = n * relative_entropy(N / n, p, ONE_ROW)[0]
    log_ratio = log_kt(N, ONE_ROW, support_size=3)[0] - (N * np.log(p)).sum()
    assert budget - divergence == pytest.approx(math.log(80) - log_ratio, abs=1e-8)


@given(
    counts=st.lists(st.integers(0, 1000), min_size=3, max_size=3),
    support=st.integers(3, 30),
)
def test_the_excess_is_the_regret_of_kt(counts, support):
    found = kt_excess(counts, ONE_ROW, support_size=support)[0]
    n = sum(counts)
    assert found >= 0.0
    # Known worst case of the Krichevsky-Trofimov mixture.
    limit = (support - 1) / 2 * math.log(max(n, 1)) + math.log(support)
    assert found <= limit + 1e-9


def test_entries_that_never_occurred_may_be_left_out():
    dense = log_kt([4, 0, 2], ONE_ROW, support_size=3)
    sparse = log_kt([4, 2], np.array([0, 2]), support_size=3)
    assert dense == pytest.approx(sparse)
    empty = kt_budget([], np.array([0, 0]), support_size=3, delta=0.1)
    assert empty == pytest.approx(math.log(10))


@pytest.mark.statistical
@pytest.mark.parametrize("row", [(0.5, 0.5), (0.02, 0.98), (0.7, 0.2, 0.1)])
def test_the_kt_set_is_hardly_ever_left(row):
    # Each lifetime leaves with probability at most .1 over all n; more than 140 of 800
    # do with probability below 1e-9.
    rng = np.random.default_rng(5)
    p = np.array(row)
    draws = rng.choice(p.size, p=p, size=(800, 400))
    counts = np.cumsum(draws[..., np.newaxis] == np.arange(p.size), axis=1)
    flat = counts.reshape(-1)
    rows = _rows(800 * 400, p.size)
    budget = kt_budget(flat, rows, support_size=p.size, delta=0.1)
    n = np.tile(np.arange(1, 401), 800)
    empirical = flat / np.repeat(n, p.size)
    divergence = n * relative_entropy(empirical, np.tile(p, n.size), rows)
    left = (divergence > budget).reshape(800, 400).any(axis=1)
    assert left.sum() <= 140


@pytest.mark.statistical
def test_samples_between_zero_and_one_count_as_part_of_a_coin():
    # KT with fractional counts is a supermartingale for any samples in [0, 1]; more
    # than 90 of 400 lifetimes leave with probability below 1e-9.
    rng = np.random.default_rng(9)
    for a, b in ((1.0, 1.0), (0.1, 0.4)):
        samples = rng.beta(a, b, size=(400, 200))
        heads = np.cumsum(samples, axis=1)
        n = np.arange(1, 201)
        counts = np.stack([heads, n - heads], axis=2).reshape(-1)
        counts = np.maximum(counts, 0.0)  # rounding of n less the sum
        budget = kt_budget(counts, _rows(400 * 200, 2), support_size=2, delta=0.1)
        low, high = bernoulli_kl_bounds(
            np.clip(heads / n, 0.0, 1.0), budget.reshape(400, 200) / n
        )
        mean = a / (a + b)
        assert ((mean < low) | (mean > high)).any(axis=1).sum() <= 90


@pytest.mark.statistical
def test_the_hoeffding_mixture_is_hardly_ever_crossed():
    # As above: at most .1 each; more than 140 of 800 have probability below 1e-9.
    rng = np.random.default_rng(6)
    sums = np.cumsum(rng.integers(0, 2, size=(800, 2000)) - 0.5, axis=1)
    n = np.arange(1, 2001)
    radius = hoeffding_mixture_radius(n, delta=0.1)
    crossed = (np.abs(sums) / n > radius).any(axis=1)
    assert 0 < crossed.sum() <= 140


@pytest.mark.statistical
def test_stopping_at_the_worst_moment_does_not_help():
    # An adversary who looks at every step and stops where a fixed-n radius fails does
    # fool Hoeffding's (twice the 80 of 800 lifetimes that δ = .1 allows), not its
    # spread form, which fails more than 140 times with probability below 1e-9.
    rng = np.random.default_rng(7)
    sums = np.cumsum(rng.integers(0, 2, size=(800, 2000)), axis=1)
    n = np.arange(1, 2001)
    off = np.abs(sums / n - 0.5)
    fixed = entry_radius(n, delta=0.1)
    spread = entry_radius(n, delta=spread_over_time(0.1, n))
    assert (off > fixed).any(axis=1).sum() > 160
    assert (off > spread).any(axis=1).sum() <= 140


@pytest.mark.statistical
def test_the_empirical_bernstein_radius_covers():
    # At most .1 each; more than 700 of 5000 have probability below 1e-12.
    rng = np.random.default_rng(8)
    samples = rng.random((5000, 100)) < 0.05
    off = np.abs(samples.mean(axis=1) - 0.05)
    radius = empirical_bernstein_radius(
        np.full(5000, 100), samples.var(axis=1, ddof=1), delta=0.1
    )
    assert (off > radius).sum() <= 700


@given(n=st.integers(2, 10**7), variance=st.floats(0.0, 0.25))
def test_the_empirical_bernstein_radius_is_that_of_its_authors(n, variance):
    found = empirical_bernstein_radius(n, variance, maximum=1.0, delta=0.1, families=5)
    logarithm = math.log(4 * 5 / 0.1)
    expected = math.sqrt(2 * variance * logarithm / n) + 7 * logarithm / (3 * (n - 1))
    assert found == pytest.approx(min(expected, 1.0))


def test_one_sample_has_no_variance():
    assert empirical_bernstein_radius([0, 1], [0.0, 0.0], maximum=2.0, delta=0.1) == (
        pytest.approx([2.0, 2.0])
    )


@given(n=st.integers(1, 10**8), m=st.integers(2, 2000), families=st.integers(1, 10_000))
def test_row_radius_is_weissmans_with_its_own_support(n, m, families):
    found = float(row_radius(n, m, delta=0.05, families=families))
    exact = m * math.log(2) + math.log1p(-(2.0 ** (1 - m))) + math.log(families / 0.05)
    assert found == pytest.approx(min(math.sqrt(2 * exact / n), 2.0))


def test_one_successor_leaves_no_doubt():
    assert row_radius([0, 10, 0], [1, 1, 2], delta=0.1).tolist() == [0.0, 0.0, 2.0]
    assert entry_radius([0], delta=0.1) == 1.0


@given(mean=st.floats(0.0, 1.0), radius=st.floats(0.0, 5.0))
def test_coin_bounds_invert_the_relative_entropy_outwards(mean, radius):
    low, high = (float(x) for x in bernoulli_kl_bounds(mean, radius))
    assert 0.0 <= low <= mean <= high <= 1.0

    def kl(q):
        with np.errstate(divide="ignore"):
            rows = relative_entropy([mean, 1 - mean], [q, 1 - q], np.array([0, 2]))
        return float(rows[0])

    for bound, end in ((low, 0.0), (high, 1.0)):
        if bound != end:
            assert kl(bound) >= radius - 1e-9
            inside = bound + 1e-6 * (mean - bound)
            assert kl(inside) <= radius + 1e-4
        else:
            # as close to the end as floats get, nothing is beyond the radius yet
            near = end + 2.0**-50 * (mean - end)
            near = np.nextafter(end, mean) if near == end else near
            assert kl(near) <= radius + 1e-9


def test_coin_bounds_without_visits_are_everything():
    low, high = bernoulli_kl_bounds([0.0, 0.5, 1.0], math.inf)
    assert low.tolist() == [0.0] * 3
    assert high.tolist() == [1.0] * 3
    exact = bernoulli_kl_bounds(0.0, math.log(2))  # kl(0 ‖ q) = −ln(1−q)
    assert exact[1] == pytest.approx(0.5)


def test_the_mixture_is_tightest_where_it_says():
    n = np.arange(60, 2000)  # below, the radius is the whole range
    ratio = hoeffding_mixture_radius(n, delta=0.05, rho=20.0) / np.sqrt(1.0 / n)
    wide = 2 * math.log(20)
    said = 20.0 * (wide + math.log1p(wide))
    assert n[ratio.argmin()] == pytest.approx(said, rel=0.1)


def test_spread_over_time_sums_to_delta():
    n = np.arange(1, 100_000)
    assert spread_over_time(0.2, n).sum() == pytest.approx(0.2, rel=1e-4)
    assert spread_over_time(0.2, 0) == 0.2


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: entry_radius([1], delta=0.0), r"^delta: .* at position 0"),
        (lambda: entry_radius([1], delta=[0.1, 1.0]), r"^delta: .* 1 at position 1"),
        (lambda: entry_radius([1], delta=0.1, families=0), r"^families: "),
        (lambda: entry_radius([1, math.nan], delta=0.1), r"^visits: .* position 1"),
        (
            lambda: empirical_bernstein_radius([9], [-0.1], delta=0.1),
            r"^variance: .* -0.1 at position 0",
        ),
        (lambda: hoeffding_mixture_radius(1, delta=0.1, rho=0.0), r"^rho: "),
        (lambda: bernoulli_kl_bounds([0.5, 1.5], 1.0), r"^mean: .* position 1"),
        (lambda: bernoulli_kl_bounds(0.5, math.nan), r"^radius: "),
        (lambda: bernoulli_kl_bounds(0.5, -1.0), r"^radius: "),
    ],
)
def test_wrong_numbers_are_refused(call, message):
    with pytest.raises(InvalidInputError, match=message):
        call()
