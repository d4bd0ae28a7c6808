"""Sets from counts: formulas, shapes, order of sizes, and coverage by simulation."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import beta, binom

import escapade as ep
from escapade.errors import InvalidInputError
from escapade.theory.concentration import kt_budget, row_radius
from escapade.uncertainty import Interval, KLBall, L1Ball

COUNTS = np.array(
    [
        [[3.0, 1.0, 0.0], [0.0, 0.0, 0.0]],
        [[0.0, 40.0, 10.0], [0.0, 7.0, 0.0]],
        [[100.0, 100.0, 0.0], [0.0, 0.0, 1.0]],
    ]
)
OF = {
    L1Ball: ("weissman", "hoeffding", "bernstein", "kt", "bayes"),
    Interval: ("weissman", "hoeffding", "bernstein", "kt", "bayes"),
    KLBall: ("kt", "bayes"),
}
EVERY = [(cls, bound) for cls, bounds in OF.items() for bound in bounds]


@pytest.fixture
def cmdp():
    P = np.zeros((3, 2, 3))
    P[0, 0] = [0.5, 0.5, 0.0]
    P[0, 1] = [0.3, 0.3, 0.4]
    P[1, :] = [0.0, 0.5, 0.5]
    P[2, 0] = [0.5, 0.5, 0.0]
    P[2, 1] = [0.0, 0.0, 1.0]
    flat = np.zeros((3, 2))
    return ep.CMDP(P, flat, flat, discount=0.9, budget=1.0)


def _widths(sets):
    v = np.arange(float(sets.n_states))
    return sets.worst(v) - sets.worst(v, sense="min")


def test_weissman_is_the_formula_of_the_theory_layer():
    ball = L1Ball.from_counts(COUNTS, bound="weissman", delta=0.1)
    visits = COUNTS.sum(axis=2).ravel()
    expected = row_radius(visits, 3, delta=0.1, families=6)
    np.testing.assert_allclose(ball.radius, expected)
    by_hand = np.sqrt(2 / 50 * np.log((2**3 - 2) * 6 / 0.1))
    assert ball.radius[2] == pytest.approx(by_hand)


def test_known_supports_make_rows_smaller(cmdp):
    """m successors that are possible in place of S; one is certain and needs no δ."""
    ball = L1Ball.from_counts(COUNTS, delta=0.1, cmdp=cmdp)
    by_hand = np.sqrt(2 / 50 * np.log((2**2 - 2) * 5 / 0.1))
    assert ball.radius[2] == pytest.approx(by_hand)
    assert ball.radius[5] == 0.0
    assert np.array_equal(ball.successor, cmdp.successor)


def test_kt_is_the_formula_of_the_theory_layer(cmdp):
    ball = KLBall.from_counts(COUNTS, delta=0.1, cmdp=cmdp)
    row = COUNTS[1, 0, 1:]
    budget = kt_budget(row, np.array([0, 2]), support_size=2, delta=0.1, families=5)
    assert ball.radius[2] == pytest.approx(budget[0] / 50)
    assert np.isinf(ball.radius[1])
    pinsker = L1Ball.from_counts(COUNTS, bound="kt", delta=0.1, cmdp=cmdp)
    assert pinsker.radius[2] == pytest.approx(np.sqrt(2 * budget[0] / 50))


def test_bernstein_uses_the_variance_that_was_seen(cmdp):
    """Maurer and Pontil's radius, for the 0s and 1s behind a count of 40 in 50."""
    bounds = Interval.from_counts(COUNTS, bound="bernstein", delta=0.1, cmdp=cmdp)
    outcomes = np.repeat([1.0, 0.0], [40, 10])
    logarithm = np.log(4 * (1 + 3 + 1 + 1 + 1) / 0.1)
    radius = np.sqrt(2 * outcomes.var(ddof=1) * logarithm / 50)
    radius += 7 * logarithm / (3 * 49)
    entry = bounds.row_ptr[2]
    assert bounds.lower[entry] == pytest.approx(0.8 - radius)
    ball = L1Ball.from_counts(COUNTS, bound="bernstein", delta=0.1, cmdp=cmdp)
    assert ball.radius[2] == pytest.approx(2 * radius)


def test_credible_intervals_are_quantiles_of_beta_marginals(cmdp):
    bounds = Interval.from_counts(
        COUNTS, bound="bayes", delta=0.1, cmdp=cmdp, prior=0.5
    )
    entry = bounds.row_ptr[2]  # state 1 after state 1: 40 of 50, two successors
    share = 1 + 3 + 1 + 1 + 1  # rows of two successors are one statement each
    law = beta(40.5, 10.5)
    assert bounds.lower[entry] == pytest.approx(law.ppf(0.05 / share))
    assert bounds.upper[entry] == pytest.approx(law.isf(0.05 / share))
    assert bounds.nominal[entry] == pytest.approx(law.mean())


@pytest.mark.parametrize(("cls", "bound"), EVERY)
@pytest.mark.parametrize("support", [None, "everywhere", "mask"])
def test_every_bound_gives_a_set_that_obeys_the_laws(cmdp, cls, bound, support):
    from escapade.testing import check_uncertainty_set

    mask = np.ones((3, 2, 3), dtype=bool)
    sets = cls.from_counts(
        COUNTS,
        bound=bound,
        cmdp=cmdp,
        support=mask if support == "mask" else support,
    )
    check_uncertainty_set(sets, cmdp, draws=4)
    v = np.array([0.0, 1.0, 5.0])
    # nothing is known of the second pair, everything of the last if supports are
    reach = sets.worst(v)[1], sets.worst(v, sense="min")[1]
    if bound != "bayes":  # a prior knows something of every pair
        assert reach == (5.0, 0.0)
    if support is None:
        assert sets.worst(v)[5] == sets.worst(v, sense="min")[5] == 5.0


@pytest.mark.parametrize(("cls", "bound"), EVERY)
def test_more_evidence_and_less_certainty_make_smaller_sets(cls, bound):
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(4), (4, 2))
    few, many = np.round(60 * P), np.round(60 * P) * 50
    wide = _widths(cls.from_counts(few, bound=bound))
    narrow = _widths(cls.from_counts(many, bound=bound))
    assert np.all(narrow < wide)
    bolder = _widths(cls.from_counts(few, bound=bound, delta=0.3))
    assert np.all(bolder <= wide)
    if bound != "bayes":
        shared = _widths(cls.from_counts(few, bound=bound, families=1000))
        assert np.all(shared >= wide)
        assert np.any(shared > wide)


@pytest.mark.parametrize(
    ("cls", "bound"),
    [(cls, b) for cls, b in EVERY if b in ("weissman", "hoeffding", "bernstein")],
)
def test_all_times_at_once_cost_something(cls, bound):
    fixed = _widths(cls.from_counts(COUNTS * 9, bound=bound))
    always = _widths(cls.from_counts(COUNTS * 9, bound=bound, anytime=True))
    assert np.all(always >= fixed)
    assert np.any(always > fixed)


def test_counts_are_read_in_every_form(cmdp):
    expected = L1Ball.from_counts(COUNTS, cmdp=cmdp)
    flat = COUNTS.reshape(6, 3)
    entries = flat[np.repeat(np.arange(6), np.diff(cmdp.row_ptr)), cmdp.successor]
    for counts in (flat, sp.csr_array(flat), entries, COUNTS.astype(int)):
        ball = L1Ball.from_counts(counts, cmdp=cmdp)
        assert np.array_equal(ball.radius, expected.radius)
        assert np.array_equal(ball.nominal, expected.nominal)
    sparse = L1Ball.from_counts(sp.csr_array(flat))
    assert np.array_equal(sparse.nominal, L1Ball.from_counts(COUNTS).nominal)


def test_the_nominal_row_is_what_was_seen_and_uniform_where_nothing_was(cmdp):
    ball = L1Ball.from_counts(COUNTS)
    assert ball.nominal.reshape(6, 3)[0].tolist() == [0.75, 0.25, 0.0]
    np.testing.assert_allclose(ball.nominal.reshape(6, 3)[1], 1 / 3)
    assert L1Ball.from_counts(COUNTS, cmdp=cmdp).nominal[2:5] == pytest.approx(1 / 3)


def test_the_seed_settles_the_draws_of_the_posterior():
    one, same, other = (
        L1Ball.from_counts(COUNTS, bound="bayes", draws=99, seed=s).radius
        for s in (1, 1, 2)
    )
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)


@pytest.mark.parametrize(
    ("cls", "counts", "keywords", "message"),
    [
        (
            L1Ball,
            -COUNTS,
            {},
            "counts: expected finite numbers of at least 0, found -3",
        ),
        (L1Ball, COUNTS * np.nan, {}, "found nan at state 0, action 0, next state 0"),
        (L1Ball, COUNTS[:2], {}, "counts: expected shape (S, A, S) or (S * A, S)"),
        (L1Ball, COUNTS, {"support": np.ones(3)}, "support: expected a problem (cmdp)"),
        (L1Ball, COUNTS, {"bound": "wish"}, "bound: expected 'weissman' | 'hoeffding'"),
        (
            KLBall,
            COUNTS,
            {"bound": "weissman"},
            "expected 'kt' | 'bayes' for a KL ball",
        ),
        (L1Ball, COUNTS, {"delta": 0.0}, "delta: expected a number in (0, 1), found 0"),
        (
            L1Ball,
            COUNTS,
            {"families": 0.5},
            "families: expected a number of at least 1",
        ),
        (
            L1Ball,
            COUNTS,
            {"bound": "bayes", "anytime": True},
            "anytime: expected False with bound='bayes'",
        ),
        (
            Interval,
            COUNTS,
            {"bound": "bayes", "families": 3},
            "families: expected None with bound='bayes'",
        ),
        (L1Ball, COUNTS, {"bound": "bayes", "prior": 0.0}, "prior: expected a finite"),
        (
            KLBall,
            COUNTS,
            {"bound": "bayes", "draws": 18},
            "draws: expected at least 19 to set a level of 0.95, found 18",
        ),
    ],
)
def test_bad_evidence_is_refused(cls, counts, keywords, message):
    with pytest.raises(InvalidInputError) as caught:
        cls.from_counts(counts, **keywords)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        (
            np.ones((3, 2, 3)),
            "counts: expected no count of a transition outside the support, "
            "found 1 at state 0, action 0, next state 2",
        ),
        (np.ones(5), "counts: expected shape (12,), found shape (5,)"),
        (-np.ones(12), "counts: expected finite numbers of at least 0, found -1"),
    ],
)
def test_counts_that_a_problem_cannot_have_are_refused(cmdp, counts, message):
    with pytest.raises(InvalidInputError) as caught:
        L1Ball.from_counts(counts, cmdp=cmdp)
    assert message in str(caught.value)


# -- coverage ------------------------------------------------------------------------

TRUTH = np.array(
    [[0.7, 0.2, 0.1, 0.0], [0.25, 0.25, 0.25, 0.25], [0.97, 0.01, 0.01, 0.01]]
)
RUNS = 400
FALSE_ALARM = 1e-9


def _most_misses(delta, runs=RUNS):
    """Return the count of misses that chance exceeds with FALSE_ALARM only."""
    return int(binom.isf(FALSE_ALARM, runs, delta))


def _as_counts(rows):
    """Spread rows over a table of 4 states and 3 actions, rows of state 0 only."""
    counts = np.zeros((4, 3, 4))
    counts[0] = rows
    return counts


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("cls", "bound"), [(cls, bound) for cls, bound in EVERY if bound != "bayes"]
)
def test_the_truth_is_covered(cls, bound):
    """Fails by chance with probability 1e-9 a case, if coverage is exactly 1 − δ."""
    rng = np.random.default_rng(5)
    by_rows = bound == "weissman" or (bound == "kt" and cls is not Interval)
    families = 3 if by_rows else 12
    misses, excluded = 0, 0
    for _ in range(RUNS):
        visits = rng.choice([5, 30, 200], 3)
        rows = [rng.multinomial(n, p) for n, p in zip(visits, TRUTH, strict=True)]
        sets = cls.from_counts(
            _as_counts(rows), bound=bound, delta=0.2, families=families
        )
        member = sets.nominal.reshape(4, 3, 4).copy()
        member[0] = TRUTH
        misses += not sets.contains(member.ravel())[:3].all()
        member[0] = TRUTH[:, ::-1]  # far from the truth: told apart by evidence
        excluded += not sets.contains(member.ravel())[:3].all()
    assert misses <= _most_misses(0.2)
    assert excluded > RUNS / 4


@pytest.mark.statistical
def test_kt_covers_at_all_times_at_once():
    """Fails by chance with probability 1e-9, if the bound is exactly δ = 0.2."""
    rng = np.random.default_rng(6)
    flat = np.zeros((4, 40))
    moments = ep.CMDP(np.full((4, 40, 4), 0.25), flat, flat, discount=0.9, budget=1.0)
    truth = np.tile(TRUTH[2], 160)
    misses = 0
    for _ in range(300):
        seen = np.eye(4)[rng.choice(4, 160, p=TRUTH[2])]
        # each moment of one life is a pair of its own, and all are one family
        counts = np.cumsum(seen, axis=0)
        ball = KLBall.from_counts(counts, cmdp=moments, delta=0.2, families=1)
        misses += not ball.contains(truth).all()
    assert 0 < misses <= _most_misses(0.2, 300)
