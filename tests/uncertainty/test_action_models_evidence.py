"""Ruling out models: what the evidence is, what it costs, how often it errs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import betaln, gammaln
from scipy.stats import binom

import escapade as ep
from escapade.model.layout import Pairs
from escapade.uncertainty import ActionModel, ActionModels, Failures, within
from escapade.uncertainty.action_models_evidence import gain_evidence

CELLS = 6
NEAR = within(np.arange(float(CELLS))[:, None], 2.0)


def corridor(law="any", rate=(0.0, 0.1), *, error=0.05, costs=False, **extra):
    """One action, ``on``, that moves to the next of six cells or runs into a wall."""
    pairs = Pairs.from_mask(np.ones((CELLS, 1), dtype=bool))
    cells = np.arange(CELLS)
    says = {"missed_cost": (0.0, 1.0)} if costs else {}
    return ActionModels(
        pairs,
        {
            "free": ActionModel(
                typical=np.minimum(cells + 1, CELLS - 1),
                where=cells < CELLS - 1,
                cost=0.0 if costs else None,
                **says,
            ),
            "wall": ActionModel(typical=cells, cost=1.0 if costs else None, **says),
        },
        failures=Failures(around=NEAR, rate=rate, law=law),
        cost_max=1.0 if costs else None,
        error=error,
        **extra,
    )


def counts_at(models, **seen: int) -> np.ndarray:
    """Counts at state 1, ``to0=…, to1=…, to2=…``."""
    counts = np.zeros(models.successor.size)
    first, last = models.row_ptr[1], models.row_ptr[2]
    for name, number in seen.items():
        place = models.successor[first:last].tolist().index(int(name[2:]))
        counts[first + place] = number
    return counts


# -- the evidence is what it is said to be ---------------------------------------------


def log_likelihood(counts, target, tau, law):
    p = tau * law
    p[target] += 1.0 - tau
    seen = counts > 0
    with np.errstate(divide="ignore"):
        return float(counts[seen] @ np.log(p[seen]))


def best_uniform(counts, target, near, low, high):
    grid = np.linspace(low, high, 20_001)
    law = near / near.sum()
    return max(log_likelihood(counts, target, tau, law.copy()) for tau in grid)


@pytest.mark.parametrize("seed", range(4))
def test_the_fit_of_a_uniform_law_is_the_best_over_all_rates(seed):
    rng = np.random.default_rng(seed)
    models = corridor("uniform", (0.05, 0.3), error=0.0)
    ptr = models.row_ptr[1:3]
    counts = np.zeros(models.successor.size)
    numbers = rng.multinomial(12, [0.7, 0.1, 0.1, 0.1])
    counts[ptr[0] : ptr[0] + 4] = numbers
    after = models.observe(counts)
    row = np.zeros(CELLS)
    row[models.successor[ptr[0] : ptr[0] + 4]] = numbers
    fit = after._weighed.fit[models.branches.ptr[1] : models.branches.ptr[2]]
    for value, target in zip(fit, (2, 1), strict=True):
        near = NEAR.toarray()[target].astype(float)
        if row[(near == 0) & (np.arange(CELLS) != target)].any():
            assert value == -np.inf
        else:
            best = best_uniform(row, target, near, 0.05, 0.3)
            assert value == pytest.approx(best, abs=1e-5)
            assert value >= best - 1e-9


def test_the_fit_of_any_law_is_the_best_over_rates_and_laws():
    models = corridor("any", (0.0, 0.3))
    counts = counts_at(models, to1=3, to2=5, to3=2)
    fit = models.observe(counts)._weighed.fit[models.branches.ptr[1]]
    row = np.array([0, 3, 5, 2, 0, 0], dtype=float)

    def loss(x):  # rate and law on cells 0..4, the neighbourhood of cell 2
        tau = 0.3 / (1.0 + np.exp(-x[0]))
        law = np.zeros(CELLS)
        law[:5] = np.exp(x[1:] - x[1:].max())
        return -log_likelihood(row, 2, tau, law / law.sum())

    runs = [
        minimize(loss, start, method="Nelder-Mead", options={"maxiter": 20_000})
        for start in np.random.default_rng(0).normal(size=(6, 6))
    ]
    best = -min(run.fun for run in runs)
    assert fit >= best - 1e-9
    assert fit == pytest.approx(best, abs=1e-3)
    # three of ten missed at most: 5 at the target, 3 and 2 elsewhere
    tau = 0.3
    assert fit == pytest.approx(
        5 * np.log(1 - tau) + 5 * np.log(tau) + 3 * np.log(0.6) + 2 * np.log(0.4)
    )


def test_the_evidence_is_that_of_the_mixture_in_the_text():
    models = corridor("any", (0.0, 0.1))
    counts = counts_at(models, to1=4, to2=1)
    evidence = models.observe(counts).log_evidence[1]
    # the wall model: typical cell 1 was hit 4 times, missed once, 3 other cells near
    nodes = np.linspace(0.0, 0.1, 200_001)
    inside = np.mean((1 - nodes) ** 4 * nodes)
    wall = inside * np.exp(gammaln(1.5) - gammaln(2.5) + gammaln(1.5) - gammaln(0.5))
    # any law on the four successors of cell 1
    free_law = np.exp(
        gammaln(2.5) - gammaln(7.5) + gammaln(4.5) + gammaln(1.5) - 2 * gammaln(0.5)
    )
    width = models.row_ptr[2] - models.row_ptr[1]
    assert width == 5
    # the free model: typical cell 2, hit once of five: at best one in ten elsewhere
    best = np.log(0.9) + 4 * np.log(0.1)
    expected = np.log(0.5 * (wall + free_law)) - best
    assert evidence[0] == pytest.approx(expected, rel=1e-6)


@settings(max_examples=60)
@given(
    total=st.integers(0, 20),
    rest=st.integers(0, 20),
    ends=st.tuples(st.integers(0, 10), st.integers(0, 10)),
)
def test_the_evidence_of_costs_is_a_likelihood_ratio(total, rest, ends):
    low, high = min(ends) / 10.0, max(ends) / 10.0
    n = total + rest
    found = float(gain_evidence(*(np.array([x]) for x in (low, high, total, n)))[0])
    p = np.linspace(low, high, 2001)
    best = binom.pmf(total, n, p).max() / binom.pmf(total, n, 0.5) * 0.5**n
    free = np.exp(betaln(total + 0.5, rest + 0.5) - betaln(0.5, 0.5))
    if best == 0.0:
        assert found == np.inf
    else:
        assert found == pytest.approx(np.log(free / best), abs=1e-4)


# -- what follows ----------------------------------------------------------------------


def test_impossible_outcomes_rule_out_at_once_even_without_error():
    models = corridor("any", error=0.0)
    assert models.threshold == np.inf
    after = models.observe(counts_at(models, to4=1))
    assert after.active_at(1) == {0: ("free",)}
    assert after.log_evidence[1, 1] == np.inf
    many = models.observe(counts_at(models, to1=1000))
    assert many.active_at(1) == {0: ("free", "wall")}
    # a cost that a model rules out does the same
    free = corridor("any", error=0.0, costs=True)
    harmless = ActionModels(
        Pairs.from_mask(np.ones((2, 1), dtype=bool)),
        {
            "free": ActionModel(typical=[1, 1], cost=0.0, missed_cost=0.0),
            "wall": ActionModel(typical=[0, -1], cost=1.0),
        },
        failures=Failures(around=np.ones((2, 2), dtype=bool), rate=(0.0, 0.1)),
        cost_max=1.0,
    )
    counts = np.array([1.0, 0.0, 0.0, 0.0])
    assert harmless.observe(counts, costs=[1.0, 0.0]).active_at(0) == {0: ("wall",)}
    assert harmless.observe(counts, costs=[0.0, 0.0]).active_at(0)[0] == (
        "free",
        "wall",
    )
    assert (
        free.observe(counts_at(free, to1=1), costs=[0, 1, 0, 0, 0, 0]).left.sum() == 11
    )


def test_likely_outcomes_rule_out_in_a_few_visits_and_never_the_truth():
    models = corridor("any", error=0.01)
    needed = next(
        n
        for n in range(1, 50)
        if models.observe(counts_at(models, to1=n)).active_at(1)[0] == ("wall",)
    )
    assert needed <= 5
    after = models.observe(counts_at(models, to1=needed))
    assert after.log_evidence[1, 0] >= after.threshold > after.log_evidence[1, 1]
    # groups gather their evidence: one visit at each of five places does the same
    shared = corridor("any", error=0.01, groups=[0, 0, 0, 0, 0, -1])
    counts = np.zeros(shared.successor.size)
    for state in range(5):
        row = slice(shared.row_ptr[state], shared.row_ptr[state + 1])
        counts[row][shared.successor[row] == state] = 1.0
    assert all(shared.observe(counts).active_at(s)[0] == ("wall",) for s in range(5))
    alone = corridor("any", error=0.01).observe(counts)
    assert all(len(alone.active_at(s)[0]) == 2 for s in range(5))


def test_what_was_ruled_out_stays_so_and_nothing_grows():
    models = corridor("any", error=0.01, costs=True)
    visits = np.array([0.0, 20.0, 0.0, 0.0, 0.0, 0.0])
    after = models.observe(counts_at(models, to1=20), costs=visits)
    assert after.active_at(1) == {0: ("wall",)}
    calmer = after.observe(counts_at(models, to1=20, to2=1), costs=visits)
    assert calmer.active_at(1) == {0: ("wall",)}
    assert (after.reachable <= models.reachable).all()
    assert not after.reachable[after.row_ptr[1] :][
        after.successor[after.row_ptr[1] :] == 4
    ][0]
    assert (after.cost_bounds()[0] >= models.cost_bounds()[0]).all()
    v = np.arange(float(CELLS))
    assert (after.worst(v) <= models.worst(v)).all()
    np.testing.assert_array_equal(models.left.sum(), 11)  # the old set is as it was
    # a saved mask brings it back
    np.testing.assert_array_equal(models.keep(after.left).left, after.left)


def test_looking_at_the_changed_pairs_alone_is_enough():
    models = corridor("any", error=0.01, costs=True)
    rng = np.random.default_rng(0)
    counts, costs = np.zeros(models.successor.size), np.zeros(CELLS)
    step = models
    for _ in range(60):
        state = int(rng.integers(CELLS - 1))
        row = slice(models.row_ptr[state], models.row_ptr[state + 1])
        near = models.successor[row]
        lands = (
            state if rng.random() < 0.95 else int(rng.choice(near[near < state + 3]))
        )
        counts[row][near == lands] += 1.0
        costs[state] += rng.random() < 0.95
        step = step.observe(counts, costs=costs, pairs=[state])
    whole = models.observe(counts, costs=costs)
    np.testing.assert_array_equal(step.log_evidence, whole.log_evidence)
    np.testing.assert_array_equal(step.nominal, whole.nominal)
    np.testing.assert_array_equal(step.left & whole.left, step.left)
    np.testing.assert_array_equal(step.left[: CELLS - 1, 0, 0], False)


def test_the_nominal_kernel_follows_what_was_seen():
    models = corridor("any", (0.0, 0.4))
    row = slice(models.row_ptr[1], models.row_ptr[2])
    at = models.successor[row].tolist()
    assert models.nominal[row][at.index(2)] == pytest.approx(0.8 + 0.2 / 5)
    after = models.observe(counts_at(models, to1=30, to2=10))
    assert after.contains(after.nominal).all()
    assert after.active_at(1) == {0: ("wall",)}
    rate = (10 + 0.2) / 41  # misses, and the middle of the rates as one visit more
    assert after.nominal[row][at.index(1)] == pytest.approx(1 - rate + rate / 4)


def test_counts_may_be_tables_and_samples_may_be_missing():
    models = corridor("any", error=0.01, costs=True)
    table = np.zeros((CELLS, 1, CELLS))
    table[1, 0, 1] = 2
    flat = models.observe(counts_at(models, to1=2))
    np.testing.assert_array_equal(models.observe(table).log_evidence, flat.log_evidence)
    sums, visits = np.zeros(CELLS), np.zeros(CELLS)
    sums[1] = visits[1] = 2.0
    less = models.observe(table, costs=sums, cost_visits=visits)
    more = models.observe(table, costs=10 * sums, cost_visits=10 * visits)
    assert flat.log_evidence[1, 0] < less.log_evidence[1, 0] < more.log_evidence[1, 0]
    impossible = table.copy()
    impossible[0, 0, 5] = 1
    with pytest.raises(
        ep.errors.AssumptionError, match="state 0, action 0, found state 5"
    ):
        models.observe(impossible)


def test_a_world_that_no_model_describes_is_noticed():
    models = corridor("any", error=0.01)
    with pytest.raises(
        ep.errors.AssumptionError, match="explains what was seen at state 1"
    ):
        models.observe(counts_at(models, to0=60, to3=60))
    alone = models.rule_out("wall", np.arange(CELLS) == 0)
    with pytest.raises(ep.errors.AssumptionError, match="state 0"):
        alone.observe(np.where(np.arange(models.successor.size) == 0, 200.0, 0.0))


def test_rewards_speak_as_costs_do():
    models = ActionModels(
        Pairs.from_mask(np.ones((2, 1), dtype=bool)),
        {
            "good": ActionModel(typical=[1, 1], reward=(0.8, 1.0), missed_reward=1.0),
            "bad": ActionModel(typical=[1, 1], reward=(0.0, 0.2), missed_reward=0.0),
        },
        failures=Failures(around=np.ones((2, 2), dtype=bool), rate=(0.0, 0.1)),
        reward_max=2.0,
        error=0.01,
    )
    counts = np.array([0.0, 60.0, 0.0, 0.0])
    after = models.observe(counts, rewards=[12.0, 0.0])
    assert after.active_at(0) == {0: ("bad",)}
    seen = models.observe(counts, rewards=[12.0, 0.0], reward_visits=[60.0, 0.0])
    np.testing.assert_array_equal(seen.left, after.left)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"counts": np.zeros(3)}, r"counts: expected shape \(\d+,\)"),
        (
            {"counts": -1.0},
            "counts: expected finite numbers of at least 0, found -1 at",
        ),
        ({"pairs": [0.5]}, "pairs: expected an array of pairs"),
        ({"pairs": [9]}, r"pairs: expected pairs in 0\.\.5, found 9"),
        ({"pairs": [-1]}, r"pairs: expected pairs in 0\.\.5, found -1"),
        ({"costs": np.ones((2, 6))}, "costs: expected 1 sums a pair, found 2"),
        ({"costs": np.ones(6)}, r"costs: expected sums of 0 samples in \[0, 1\]"),
    ],
)
def test_evidence_that_makes_no_sense_is_refused(arguments, message):
    models = corridor(costs=True)
    size = models.successor.size
    counts = arguments.pop("counts", 0.0)
    counts = np.full(size, counts) if np.ndim(counts) == 0 else counts
    with pytest.raises(ep.errors.InvalidInputError, match=message):
        models.observe(counts, **arguments)


# -- how often it errs -----------------------------------------------------------------


@pytest.mark.statistical
@pytest.mark.parametrize("law", ["any", "uniform"])
def test_a_true_model_is_ruled_out_with_at_most_the_stated_probability(law):
    """Looked at 8 times in 400 visits, in 250 lives, where the stated error is .04.

    Kernel and costs sit where the models are hardest to tell apart.  If the true
    probability were .04, more than 21 errors would have probability below 10⁻³.
    """
    rng = np.random.default_rng(20)
    share = 0.04
    models = corridor(law, (0.0, 0.4), error=1e-9, costs=True)  # rules nothing out
    first, last = int(models.row_ptr[1]), int(models.row_ptr[2])
    row = np.zeros(last - first)
    at = models.successor[first:last].tolist()
    if law == "any":  # all misses on the cell where a wall would leave the agent
        row[at.index(2)], row[at.index(1)] = 0.6, 0.4
    else:
        row[[at.index(c) for c in (0, 1, 2, 3, 4)]] = 0.4 / 5
        row[at.index(2)] += 0.6
    mean = 0.4  # every miss costs
    looks = np.unique(np.geomspace(2, 400, 8).astype(int))
    lives, errors = 250, 0
    for _ in range(lives):
        landed = rng.choice(row.size, size=400, p=row)
        paid = rng.random(400) < mean
        for n in looks:
            counts = np.zeros(models.successor.size)
            counts[first:last] = np.bincount(landed[:n], minlength=row.size)
            costs = np.zeros(CELLS)
            costs[1] = paid[:n].sum()
            evidence = models.observe(counts, costs=costs, pairs=[1]).log_evidence
            if evidence[1, 0] >= np.log(1.0 / share):
                errors += 1
                break
    assert errors <= binom.ppf(1.0 - 1e-3, lives, share)


@pytest.mark.statistical
def test_the_evidence_is_at_most_one_on_average():
    """The mean of a nonnegative variable of mean at most 1, over 4,000 draws.

    Its variance is bounded by hand here: evidence above 50 is cut to 50, so a mean
    above 1.25 would have probability below 10⁻³ (Bernstein).
    """
    rng = np.random.default_rng(3)
    models = corridor("any", (0.0, 0.2), costs=True)
    first, last = int(models.row_ptr[1]), int(models.row_ptr[2])
    at = models.successor[first:last].tolist()
    row = np.zeros(last - first)
    row[at.index(2)], row[at.index(1)] = 0.8, 0.2
    cut = []
    seen = {}
    for _ in range(4_000):
        numbers = rng.multinomial(6, row)
        paid = int(rng.binomial(6, 0.2))
        key = (*numbers, paid)
        if key not in seen:
            counts = np.zeros(models.successor.size)
            counts[first:last] = numbers
            costs = np.zeros(CELLS)
            costs[1] = paid
            after = ActionModels.observe(models, counts, costs=costs, pairs=[1])
            seen[key] = float(np.exp(after.log_evidence[1, 0]))
        cut.append(min(seen[key], 50.0))
    assert np.mean(cut) <= 1.25
