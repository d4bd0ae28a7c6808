"""Confidence sequences: the algebra, coverage at all times at once, contradictions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats

from escapade.errors import AssumptionError, InvalidInputError
from escapade.kernels.evidence import bernoulli_interval
from escapade.learning import Bounds, Confidence, Evidence

# -- the interval ----------------------------------------------------------------------


def log_martingale(total, n, mean):
    """Log of the Beta(½, ½) mixture over the likelihood of ``mean``, by scipy."""
    mixture = special.betaln(total + 0.5, n - total + 0.5) - special.betaln(0.5, 0.5)
    fit = special.xlogy(total, mean) + special.xlog1py(n - total, -mean)
    return mixture - fit


@given(
    st.integers(1, 5_000).flatmap(
        lambda n: st.tuples(st.just(n), st.floats(0.0, float(n)))
    ),
    st.floats(1e-9, 0.5),
)
def test_the_interval_ends_where_the_martingale_reaches_its_level(sample, delta):
    n, total = sample
    level = math.log(1.0 / delta)
    low, high = bernoulli_interval(total, float(n), level)
    assert 0.0 <= low <= total / n <= high <= 1.0
    for end, outward in ((low, -1.0), (high, 1.0)):
        if 0.0 < end < 1.0:
            reached = log_martingale(total, n, end)
            assert reached == pytest.approx(level, rel=1e-6, abs=1e-6)
            beyond = np.clip(end + outward * 1e-3, 1e-12, 1.0 - 1e-12)
            if (beyond - end) * outward > 0.0:
                assert log_martingale(total, n, beyond) > level


def test_samples_of_zeros_and_ones_alone_have_their_closed_form():
    for n in (1.0, 10.0, 1e6):
        level = 3.0
        least = math.exp((special.betaln(n + 0.5, 0.5) - math.log(math.pi) - level) / n)
        assert bernoulli_interval(n, n, level)[0] == pytest.approx(least, rel=1e-9)
        assert bernoulli_interval(n, n, level)[1] == 1.0
        assert bernoulli_interval(0.0, n, level)[0] == 0.0
        assert bernoulli_interval(0.0, n, level)[1] == pytest.approx(
            1.0 - least, rel=1e-6
        )
    assert bernoulli_interval(0.0, 0.0, 3.0) == (0.0, 1.0)


def test_one_sample_moves_the_martingale_by_a_factor_of_mean_at_most_one():
    """The step of the proof: for any law on [0, 1], whatever was seen before."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        n = int(rng.integers(0, 50))
        total = float(rng.random() * n)
        values = rng.random(4)
        weights = rng.dirichlet(np.ones(4))
        mean = float(weights @ values)
        now = log_martingale(total, n, mean)
        after = log_martingale(total + values, n + 1, mean)
        factor = float(weights @ np.exp(after - now))
        assert factor <= 1.0 + 1e-9
        # for zeros and ones it is exactly 1
        coin = np.array([1.0 - mean, mean]) @ np.exp(
            log_martingale(total + np.array([0.0, 1.0]), n + 1, mean) - now
        )
        assert coin == pytest.approx(1.0, rel=1e-9)


# -- coverage --------------------------------------------------------------------------

_FAILS = 1e-6
"""Probability that one statistical test below fails though all is well."""


def most_failures(runs: int, delta: float) -> int:
    """The count of failing runs that is exceeded with probability ``_FAILS``."""
    return int(stats.binom.isf(_FAILS, runs, delta))


LAWS = {
    "coin .5": (0.5, lambda rng, shape: rng.random(shape) < 0.5),
    "coin .05": (0.05, lambda rng, shape: rng.random(shape) < 0.05),
    "coin .99": (0.99, lambda rng, shape: rng.random(shape) < 0.99),
    "uniform": (0.5, lambda rng, shape: rng.random(shape)),
    "three points": (
        0.35,
        lambda rng, shape: rng.choice([0.0, 0.5, 1.0], shape, p=[0.5, 0.3, 0.2]),
    ),
    "nearly constant": (
        0.5,
        lambda rng, shape: 0.5 + 0.01 * rng.standard_normal(shape),
    ),
}


@pytest.mark.statistical
@pytest.mark.parametrize("name", LAWS)
def test_the_mean_stays_inside_at_all_times(name):
    """Fails with probability 1e-6 by chance.

    The mean is inside the interval exactly while the martingale is under its level
    (see above), so the whole path can be looked at.
    """
    mean, draw = LAWS[name]
    runs, steps, delta = 400, 3_000, 0.05
    rng = np.random.default_rng(12)
    totals = np.cumsum(np.clip(draw(rng, (runs, steps)), 0.0, 1.0), axis=1)
    n = np.arange(1, steps + 1)
    ever = (log_martingale(totals, n, mean) > math.log(1.0 / delta)).any(axis=1)
    assert ever.sum() <= most_failures(runs, delta)


@pytest.mark.statistical
def test_the_level_is_not_much_higher_than_need_be():
    """A mean that is off by .1 is found out: in 3,000 steps it always was.

    Fails with probability below 1e-9 by chance: the evidence of 3,000 coins is worth
    3,000 · kl(.5 ‖ .6) = 61 on average, with a deviation of 11 (and 3.0 is asked for).
    """
    rng = np.random.default_rng(3)
    totals = (rng.random((50, 3_000)) < 0.5).sum(axis=1)
    assert (log_martingale(totals, 3_000, 0.6) > math.log(20.0)).all()


@pytest.mark.statistical
@pytest.mark.parametrize("adversary", ["nearest to failing", "last that rose"])
def test_choosing_what_to_sample_does_not_help(adversary):
    """Two arms, sampled by what has come out so far; fails with probability 1e-6."""
    runs, steps, delta = 300, 1_500, 0.1
    mean = np.array([0.3, 0.8])
    rng = np.random.default_rng(5)
    total, n = np.zeros((runs, 2)), np.zeros((runs, 2))
    ever = np.zeros(runs, dtype=bool)
    level = math.log(2.0 / delta)  # two families
    chosen = np.zeros(runs, dtype=int)
    rows = np.arange(runs)
    statistic = np.zeros((runs, 2))
    for _ in range(steps):
        before = statistic[rows, chosen]
        hit = rng.random(runs) < mean[chosen]
        total[rows, chosen] += hit
        n[rows, chosen] += 1.0
        statistic = log_martingale(total, n, mean)
        ever |= (statistic > level).any(axis=1)
        if adversary == "nearest to failing":
            chosen = statistic.argmax(axis=1)
        else:
            chosen = np.where(statistic[rows, chosen] > before, chosen, 1 - chosen)
    assert ever.sum() <= most_failures(runs, delta)


ROW_PTR = np.array([0, 3, 5])
SUCCESSOR = np.array([0, 1, 2, 0, 2], dtype=np.int32)
TRUTH = np.array([0.7, 0.25, 0.05, 0.4, 0.6])


def bounds(**changed) -> Bounds:
    arrays = {
        "lower": np.zeros(5),
        "upper": np.ones(5),
        "reward_lower": np.zeros(2),
        "reward_upper": np.full(2, 2.0),
        "cost_lower": np.zeros((1, 2)),
        "cost_upper": np.full((1, 2), 3.0),
    }
    return Bounds(**{**arrays, **changed})


def confidence(
    evidence=None, *, delta=0.2, exact=False, varying=(False, False), **changed
) -> Confidence:
    return Confidence(
        evidence or Evidence(ROW_PTR, SUCCESSOR, 1),
        delta=delta,
        bounds=bounds(**changed),
        reward_max=2.0,
        cost_max=np.array([3.0]),
        reward_exact=np.full(2, exact),
        cost_exact=np.full(2, exact),
        name="pair {}".format,
        varying=np.array(varying),
    )


@pytest.mark.statistical
def test_all_bounds_hold_at_once_while_one_looks_again_and_again():
    """Rows, rewards and costs of two pairs, visited by what is widest, δ = .2.

    Fails with probability 1e-6 by chance.
    """
    runs, looks, delta = 60, 25, 0.2
    rng = np.random.default_rng(8)
    broken = 0
    for _ in range(runs):
        seen = Evidence(ROW_PTR, SUCCESSOR, 1)
        found = confidence(seen, delta=delta)
        failed = False
        for _ in range(looks):
            widths = np.add.reduceat(found.upper - found.lower, ROW_PTR[:-1])
            pair = int(np.argmax(widths))
            row = slice(ROW_PTR[pair], ROW_PTR[pair + 1])
            for _ in range(8):
                state = rng.choice(SUCCESSOR[row], p=TRUTH[row])
                cost = np.array([3.0 * (rng.random() < 0.2)])
                seen.record(pair, int(state), 2.0 * rng.random(), cost)
            found.refresh(np.array([pair]))
            failed |= ((found.lower > TRUTH) | (found.upper < TRUTH)).any()
            failed |= ((found.reward_lower > 1.0) | (found.reward_upper < 1.0)).any()
            failed |= ((found.cost_lower > 0.6) | (found.cost_upper < 0.6)).any()
        broken += failed
    assert broken <= most_failures(runs, delta)


# -- bounds only narrow, and only where something was seen -----------------------------


@settings(max_examples=25)
@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 2)), max_size=40))
def test_bounds_only_narrow(steps):
    seen = Evidence(ROW_PTR, SUCCESSOR, 1)
    found = confidence(seen)
    for pair, choice in steps:
        row = SUCCESSOR[ROW_PTR[pair] : ROW_PTR[pair + 1]]
        before = {n: np.array(getattr(found, n)) for n in Bounds.__slots__}
        seen.record(pair, int(row[choice % row.size]), 1.0, np.array([1.0]))
        found.refresh(np.array([pair]))
        for name, old in before.items():
            new = getattr(found, name)
            assert (new >= old).all() if "lower" in name else (new <= old).all()
        other = 1 - pair
        rest = slice(ROW_PTR[other], ROW_PTR[other + 1])
        np.testing.assert_array_equal(found.upper[rest], before["upper"][rest])
        assert found.cost_upper[0, other] == before["cost_upper"][0, other]


def test_a_missing_cost_is_no_evidence():
    seen = Evidence(ROW_PTR, SUCCESSOR, 1)
    found = confidence(seen)
    for _ in range(50):
        seen.record(0, 0, 1.0, None)
    found.refresh(np.array([0]))
    assert found.cost_upper[0, 0] == 3.0
    assert found.lower[0] > 0.5


def test_what_is_certain_takes_no_share_of_delta():
    nothing = confidence(
        lower=TRUTH,
        upper=TRUTH,
        reward_lower=np.ones(2),
        reward_upper=np.ones(2),
        cost_lower=np.zeros((1, 2)),
        cost_upper=np.zeros((1, 2)),
    )
    assert nothing.holds_surely
    assert nothing.families == 0
    everything = confidence()
    assert everything.families == 5 + 2 + 2
    assert not everything.holds_surely
    assert everything.log_families == pytest.approx(math.log(9 / 0.2))
    exact = confidence(exact=True)
    assert exact.families == 5


def test_what_varies_is_never_narrowed_but_by_what_is_exact():
    for exact in (False, True):
        seen = Evidence(ROW_PTR, SUCCESSOR, 1)
        found = confidence(seen, varying=(True, False), exact=exact)
        before = {n: np.array(getattr(found, n)) for n in Bounds.__slots__}
        assert found.families == 2 + 2 * (not exact)  # of the pair that has one law
        for pair in (0, 1):
            for _ in range(500):
                seen.record(pair, int(SUCCESSOR[ROW_PTR[pair]]), 1.0, np.array([0.5]))
        found.refresh(np.array([0, 1]))
        first = slice(ROW_PTR[0], ROW_PTR[1])
        np.testing.assert_array_equal(found.lower[first], before["lower"][first])
        np.testing.assert_array_equal(found.upper[first], before["upper"][first])
        assert found.lower[ROW_PTR[1]] > 0.9
        width = found.cost_upper[0] - found.cost_lower[0]
        assert (width[0] < 1e-8) == exact
        assert width[1] < 1.0
        assert (found.reward_upper[0] < 2.0) == exact


def test_what_no_law_allows_is_noticed_of_pairs_that_vary_too():
    seen = Evidence(ROW_PTR, SUCCESSOR, 1)
    found = confidence(
        seen, upper=np.array([1.0, 1.0, 0.0, 1.0, 1.0]), varying=(True, True)
    )
    assert found.holds_surely
    seen.record(0, 1, 0.0, None)
    found.refresh(np.array([0]))
    seen.record(0, 2, 0.0, None)
    found.refresh(np.array([1]))
    with pytest.raises(AssumptionError, match="transitions of pair 0: expected evid"):
        found.refresh(np.array([0]))


def test_one_sample_tells_what_never_varies():
    seen = Evidence(ROW_PTR, SUCCESSOR, 1)
    found = confidence(seen, exact=True)
    for n in range(1, 2_000):
        seen.record(0, 0, 0.1, np.array([0.3]))
        if n in (1, 3, 7, 100, 1_999):
            found.refresh(np.array([0]))
            assert found.reward_lower[0] <= 0.1 <= found.reward_upper[0]
            assert found.reward_upper[0] - found.reward_lower[0] < 1e-8
            assert found.cost_upper[0, 0] == pytest.approx(0.3, abs=1e-8)
    seen.record(1, 0, 0.0, np.array([0.0]))
    found.refresh(np.array([1]))
    assert found.cost_upper[0, 1] == 0.0
    assert found.reward_upper[1] == 0.0


# -- contradictions --------------------------------------------------------------------


def test_impossible_transitions_are_noticed_at_once():
    seen = Evidence(ROW_PTR, SUCCESSOR, 1)
    found = confidence(seen, upper=np.array([1.0, 1.0, 0.0, 1.0, 1.0]))
    seen.record(0, 2, 0.0, None)
    with pytest.raises(AssumptionError, match="transitions of pair 0: expected evid"):
        found.refresh(np.array([0]))


def test_impossible_transitions_of_known_rows_are_noticed_as_well():
    known = np.array([0.5, 0.5, 0.0, 0.4, 0.6])
    seen = Evidence(ROW_PTR, SUCCESSOR, 1)
    found = confidence(seen, lower=known.copy(), upper=known.copy())
    seen.record(0, 1, 0.0, None)
    found.refresh(np.array([0]))
    seen.record(0, 2, 0.0, None)
    with pytest.raises(AssumptionError, match="transitions of pair 0"):
        found.refresh(np.array([0]))


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("what", "changed"),
    [
        ("transitions", {"upper": np.array([0.5, 1.0, 1.0, 1.0, 1.0])}),
        ("rewards", {"reward_upper": np.array([0.6, 2.0])}),
        ("costs 0", {"cost_upper": np.array([[0.75, 3.0]])}),
    ],
)
def test_what_is_false_by_a_quarter_is_noticed_within_400_visits(what, changed):
    """Each mean is .25 of its range above what is said: power above 1 − 1e-9 a run.

    A bound of p is broken when the martingale at p passes its level, that is when 400
    coins of mean p + .25 show at least ``least`` heads; the exact binomial says how
    likely that is.
    """
    n, runs = 400, 20
    said, true = {"transitions": (0.5, 0.75), "rewards": (0.3, 0.55)}.get(
        what, (0.25, 0.5)
    )
    level = confidence(**changed).log_families
    heads = np.arange(int(said * n), n + 1)
    least = heads[np.argmax(log_martingale(heads, n, said) > level)]
    assert stats.binom.cdf(least - 1, n, true) < 1e-9
    rng = np.random.default_rng(2)
    for _ in range(runs):
        seen = Evidence(ROW_PTR, SUCCESSOR, 1)
        found = confidence(seen, **{k: v.copy() for k, v in changed.items()})
        high = rng.random(n) < true
        for hit in high:
            state = 0 if what != "transitions" or hit else 1
            seen.record(0, state, 2.0 * hit, np.array([3.0 * hit]))
        with pytest.raises(AssumptionError, match=f"{what} of pair 0"):
            found.refresh(np.array([0]))


@pytest.mark.parametrize("batch", [1, 10])
def test_costs_that_are_said_to_be_the_same_and_are_not(batch):
    seen = Evidence(ROW_PTR, SUCCESSOR, 1)
    found = confidence(seen, exact=True)

    def live():
        for step in range(20):
            seen.record(0, 0, 0.5, np.array([float(step % 2)]))
            if step % batch == batch - 1:
                found.refresh(np.array([0]))

    with pytest.raises(AssumptionError, match="expected"):
        live()


def test_rewards_that_are_said_to_be_the_same_and_are_not():
    seen = Evidence(ROW_PTR, SUCCESSOR, 1)
    found = confidence(seen, exact=True)
    seen.record(0, 0, 0.5, None)
    found.refresh(np.array([0]))
    seen.record(0, 0, 0.6, None)
    with pytest.raises(AssumptionError, match="rewards of pair 0"):
        found.refresh(np.array([0]))


@pytest.mark.parametrize("delta", [0.0, 1.0, -0.1, math.nan])
def test_a_probability_is_asked_for(delta):
    with pytest.raises(InvalidInputError, match="delta: expected a number in"):
        confidence(delta=delta)
