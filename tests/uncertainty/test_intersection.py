"""Intersections: exact where they can be, bounds elsewhere, and what empties them."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import escapade as ep
from escapade.model.layout import Pairs
from escapade.planning.robust_evaluation import robust_evaluate
from escapade.testing import check_uncertainty_set
from escapade.uncertainty import (
    ActionModel,
    ActionModels,
    Failures,
    Intersection,
    Interval,
    KLBall,
    L1Ball,
    Models,
    within,
)

SENSES = ("min", "max")


def problem(seed: int, n_states=5, n_actions=2) -> ep.CMDP:
    rng = np.random.default_rng(seed)
    rows = rng.dirichlet(np.full(n_states, 0.6), size=(n_states, n_actions))
    zeros = np.zeros((n_states, n_actions))
    return ep.CMDP(rows, zeros, zeros + 1.0, discount=0.9, budget=1.0)


def action_models(seed: int, law=("any", "uniform"), n_states=5) -> ActionModels:
    rng = np.random.default_rng(seed)
    pairs = Pairs.from_mask(np.ones((n_states, 2), dtype=bool))
    typical = [rng.integers(n_states, size=(n_states, 2)) for _ in range(2)]
    ways = []
    for one in law:
        near = rng.random((n_states, n_states)) < 0.5
        near[np.arange(n_states), rng.integers(n_states, size=n_states)] = True
        low = rng.choice([0.0, 0.1], size=(n_states, 2))
        ways.append(Failures(around=near, rate=(low, low + 0.4), law=one))
    return ActionModels(
        pairs,
        {
            "one": ActionModel(typical=typical[0]),
            "two": ActionModel(typical=typical[1]),
        },
        failures=ways,
    )


def on_all_states(sets) -> np.ndarray:
    """Return where each entry stands in a dense ``(pairs, S)`` matrix."""
    pair = np.repeat(np.arange(sets.n_pairs), np.diff(sets.row_ptr))
    return pair * sets.n_states + sets.successor


def dense(sets, kernel) -> np.ndarray:
    out = np.zeros(sets.n_pairs * sets.n_states)
    out[on_all_states(sets)] = kernel
    return out.reshape(sets.n_pairs, sets.n_states)


def bounds_around(models: ActionModels, seed: int, reach=0.15) -> Interval:
    """Bounds on every entry around a member of the models, over all states."""
    member = dense(models, models.sample(np.random.default_rng(seed)))
    n = models.n_states
    zeros = np.zeros((n, 2))
    cmdp = ep.CMDP(member.reshape(n, 2, n), zeros, zeros, discount=0.9, budget=1.0)
    return Interval(cmdp, reach, support="everywhere")


def lp_of_branches_in_box(models, lower, upper, pair, v, sign):
    """Extreme over the branches of a pair within bounds, one LP a branch."""
    branches, n = models.branches, models.n_states
    best = -np.inf
    for b in range(branches.ptr[pair], branches.ptr[pair + 1]):
        if not models.active[b]:
            continue
        g, h = int(branches.target[b]), int(branches.around[b])
        near = branches.near[branches.near_ptr[h] : branches.near_ptr[h + 1]]
        if h < 0:
            near = near[:0]
        # variables: the row, τ, and the mass of misses on each state
        equal = [np.concatenate([np.ones(n), [0.0], np.zeros(n)])]
        limit = [1.0]
        for s in range(n):
            row = np.zeros(2 * n + 1)
            row[s], row[n + 1 + s] = 1.0, -1.0
            if s == g:
                row[n] = 1.0
            equal.append(row)
            limit.append(1.0 if s == g else 0.0)
        equal.append(np.concatenate([np.zeros(n), [-1.0], np.ones(n)]))
        limit.append(0.0)
        allowed = [(0.0, None if s in near else 0.0) for s in range(n)]
        if h >= 0 and branches.uniform[h]:
            for s in near:
                row = np.zeros(2 * n + 1)
                row[n], row[n + 1 + s] = -1.0 / near.size, 1.0
                equal.append(row)
                limit.append(0.0)
        done = linprog(
            np.concatenate([-sign * v, np.zeros(n + 1)]),
            A_eq=np.array(equal),
            b_eq=np.array(limit),
            bounds=[
                *zip(lower, upper, strict=True),
                (branches.low[b], branches.high[b]),
                *allowed,
            ],
        )
        if done.status == 0:
            best = max(best, -done.fun)
    return sign * best


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("sense", SENSES)
def test_action_models_within_bounds_are_exact_by_linear_programs(seed, sense):
    law = [("any", "uniform"), ("any",), ("uniform",)][seed % 3]
    models = action_models(seed, law)
    box = bounds_around(models, seed)
    both = Intersection(models, box)
    assert both.exact
    v = np.random.default_rng(seed).normal(size=5)
    sign = 1.0 if sense == "max" else -1.0
    low, high = dense(box, box.lower), dense(box, box.upper)
    expected = [
        lp_of_branches_in_box(models, low[p], high[p], p, v, sign) for p in range(10)
    ]
    found = both.worst(v, sense=sense)
    np.testing.assert_allclose(found, expected, atol=1e-9)
    gain = np.arange(10.0)
    np.testing.assert_allclose(
        both.backup(v, gain, 0.9, sense=sense), gain + 0.9 * found, atol=1e-12
    )
    kernel = both.worst_kernel(v, sense=sense)
    assert both.contains(kernel).all()
    np.testing.assert_allclose(dense(both, kernel) @ v, found, atol=1e-9)
    # no wider than either, and strictly narrower than both somewhere
    apart = np.stack([models.worst(v, sense=sense), box.worst(v, sense=sense)])
    assert (sign * found <= sign * apart + 1e-9).all()
    assert both.contains(both.nominal).all()
    for _ in range(5):
        member = both.sample(np.random.default_rng(seed))
        assert both.contains(member).all()
        assert models.contains(dense(both, member).ravel()[on_all_states(models)]).all()
        assert not member[~both.reachable].any()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("sense", SENSES)
def test_intervals_intersect_in_an_interval(seed, sense):
    cmdp = problem(seed)
    rng = np.random.default_rng(seed)
    moved = cmdp.probability + 0.0
    near = L1Ball(cmdp, 0.2).sample(rng)
    other = cmdp.replace(probability=np.maximum(near, 0.0))
    one = Interval(cmdp, 0.3)
    two = Interval(other, 0.2, support="everywhere")
    both = Intersection(one, two)
    assert both.exact
    v = rng.normal(size=5)
    sign = 1.0 if sense == "max" else -1.0
    low = np.maximum(dense(one, one.lower), dense(two, two.lower))
    high = np.minimum(dense(one, one.upper), dense(two, two.upper))
    expected = [
        -sign
        * linprog(
            -sign * v,
            A_eq=np.ones((1, 5)),
            b_eq=[1.0],
            bounds=list(zip(low[p], high[p], strict=True)),
        ).fun
        for p in range(10)
    ]
    np.testing.assert_allclose(both.worst(v, sense=sense), expected, atol=1e-9)
    assert both.contains(both.nominal).all()
    assert moved.size == cmdp.nnz


def lp_of_ball_in_box(ball, box, pair, v, sign):
    """Exact extreme over an L1 ball within bounds: the row and its distances."""
    n = ball.n_states
    p, low, high = (
        dense(ball, ball.nominal)[pair],
        dense(box, box.lower)[pair],
        dense(box, box.upper)[pair],
    )
    eye = np.eye(n)
    done = linprog(
        np.concatenate([-sign * v, np.zeros(n)]),
        A_ub=np.block([[eye, -eye], [-eye, -eye], [np.zeros((1, n)), np.ones((1, n))]]),
        b_ub=np.concatenate([p, -p, [ball.radius[pair]]]),
        A_eq=np.concatenate([np.ones(n), np.zeros(n)])[np.newaxis],
        b_eq=[1.0],
        bounds=[*zip(low, high, strict=True), *[(0.0, None)] * n],
    )
    return -sign * done.fun


@settings(max_examples=20)
@given(seed=st.integers(0, 10_000), sense=st.sampled_from(SENSES))
def test_a_ball_cut_by_bounds_is_exact(seed, sense):
    cmdp = problem(seed)
    rng = np.random.default_rng(seed)
    ball = L1Ball(cmdp, 0.5)
    box = Interval(cmdp, rng.random(10) * 0.4)
    both = Intersection(ball, box)
    assert both.exact
    v = rng.normal(size=5)
    sign = 1.0 if sense == "max" else -1.0
    found = sign * both.worst(v, sense=sense)
    exact = [sign * lp_of_ball_in_box(ball, box, p, v, sign) for p in range(10)]
    np.testing.assert_allclose(found, exact, atol=1e-9)
    kernel = both.worst_kernel(v, sense=sense)
    assert both.contains(kernel).all()
    assert ball.contains(kernel).all()
    assert box.contains(kernel).all()


@settings(max_examples=20)
@given(seed=st.integers(0, 10_000), sense=st.sampled_from(SENSES))
def test_unlike_parts_bound_what_they_have_in_common(seed, sense):
    cmdp = problem(seed)
    rng = np.random.default_rng(seed)
    ball = KLBall(cmdp, 0.2)
    box = Interval(cmdp, rng.random(10) * 0.4)
    both = Intersection(ball, box)
    assert not both.exact
    v = rng.normal(size=5)
    sign = 1.0 if sense == "max" else -1.0
    found = sign * both.worst(v, sense=sense)
    for part in (ball, box):
        assert (found <= sign * part.worst(v, sense=sense) + 1e-12).all()
    kernel = both.worst_kernel(v, sense=sense)
    np.testing.assert_allclose(dense(both, kernel) @ v, sign * found, atol=1e-9)
    member = both.sample(rng)
    assert both.contains(member).all()
    assert both.contains(both.nominal).all()
    assert (sign * (dense(both, member) @ v) <= found + 1e-9).all()


@pytest.mark.parametrize("shape", [L1Ball, KLBall])
def test_what_only_says_which_successors_are_possible_cuts_a_ball(shape):
    rng = np.random.default_rng(0)
    rows = rng.dirichlet(np.ones(5), size=(5, 2))
    possible = rng.random((5, 2, 5)) < 0.6
    possible[:, :, 0] = True
    rows[~possible] = 0.0
    rows /= rows.sum(axis=2, keepdims=True)
    zeros = np.zeros((5, 2))
    cmdp = ep.CMDP(rows, zeros, zeros, discount=0.9, budget=1.0)
    wide = shape(cmdp, 0.3, support="everywhere")
    support = Interval(cmdp, 1.0, support=possible)
    both = Intersection(wide, support)
    assert both.exact
    v = rng.normal(size=5)
    narrow = shape(cmdp, 0.3, support=possible)
    for sense in SENSES:
        np.testing.assert_allclose(
            both.worst(v, sense=sense), narrow.worst(v, sense=sense), atol=1e-9
        )
    assert (both.worst(v) < wide.worst(v) - 1e-3).any()


def test_a_ball_cut_by_action_models_reaches_no_further_than_they_do():
    models = action_models(3, ("any",))
    member = models.sample(np.random.default_rng(0))
    n = 5
    zeros = np.zeros((n, 2))
    cmdp = ep.CMDP(
        dense(models, member).reshape(n, 2, n), zeros, zeros, discount=0.9, budget=1.0
    )
    ball = L1Ball(cmdp, 0.2, support="everywhere")
    both = Intersection(models, ball)
    assert (both.reachable.sum() <= models.reachable.sum()).all()
    v = np.random.default_rng(1).normal(size=n)
    bound = np.minimum(models.worst(v), ball.worst(v))
    assert (both.worst(v) <= bound + 1e-12).all()
    assert (both.worst(v) < bound - 1e-6).any()
    # the member itself is in both
    assert both.contains(both.nominal).all()
    inside = np.zeros(both.successor.size)
    place = {key: i for i, key in enumerate(on_all_states(both))}
    for key, p in zip(on_all_states(models), member, strict=True):
        if p:
            inside[place[key]] = p
    assert both.contains(inside).all()


def test_sets_over_time_narrow_and_never_grow():
    """What was known before counts as well: intervals do not pile up."""
    cmdp = problem(0)
    rng = np.random.default_rng(0)
    v = rng.normal(size=5)
    counts = np.zeros(cmdp.nnz)
    known: Intersection | None = None
    before = np.inf
    for _ in range(6):
        for p in range(cmdp.n_pairs):
            row = slice(cmdp.row_ptr[p], cmdp.row_ptr[p + 1])
            counts[row] += rng.multinomial(20, cmdp.probability[row])
        now = Interval.from_counts(counts, bound="kt", delta=0.01, cmdp=cmdp)
        known = Intersection(now) if known is None else Intersection(known, now)
        worst = known.worst(v)
        assert (worst <= now.worst(v) + 1e-12).all()
        assert (worst <= before + 1e-12).all()
        assert len(known.parts) == 1
        before = worst


def test_evidence_from_one_statement_merges():
    field = ep.uncertainty.unknown_walls(
        Pairs.from_mask(np.ones((9, 3), dtype=bool)),
        [[1.0], [-1.0], [0.0]],
        coordinates=np.arange(9.0)[:, None],
        names=["right", "left", "stay"],
        cost_max=1.0,
    )
    x = np.arange(9)
    one = field.rule_out("right", x == 4)
    two = field.rule_out("right", x == 5)
    both = Intersection(one, two)
    assert both.exact
    (part,) = both.parts
    assert part.active_at(4)[0] == part.active_at(5)[0] == ("free",)
    assert part.active_at(6)[0] == ("free", "right")


def test_costs_tied_to_models_stay_tied():
    field = ep.uncertainty.unknown_walls(
        Pairs.from_mask(np.ones((6, 2), dtype=bool)),
        [[1.0], [0.0]],
        coordinates=np.arange(6.0)[:, None],
        names=["right", "stay"],
        reach=1.0,
        cost_max=1.0,
    )
    keys = on_all_states(field)
    rows = np.zeros(12 * 6)
    rows[keys] = field.nominal
    zeros = np.zeros((6, 2))
    cmdp = ep.CMDP(rows.reshape(6, 2, 6), zeros, zeros, discount=0.9, budget=1.0)
    both = Intersection(field, L1Ball(cmdp, 0.1))
    cap = np.full((1, 12), 0.8)
    v = np.linspace(0.0, 1.0, 6)
    charged, gain = both.charged(cap, np.ones(1), 0.9)
    alone, _ = field.charged(cap, np.ones(1), 0.9)
    found = charged.backup(v, gain, 0.9)
    plain = both.backup(v, gain, 0.9)
    np.testing.assert_allclose(
        found, np.minimum(plain, alone.backup(v, gain, 0.9)), atol=1e-12
    )
    assert (found < plain - 0.1).any()
    ahead = dense(charged, charged.worst_kernel(v)) @ v
    np.testing.assert_allclose(
        charged.worst_gain(v, gain) + 0.9 * ahead, found, atol=1e-12
    )
    same, gain = Intersection(L1Ball(cmdp, 0.1), KLBall(cmdp, 0.1)).charged(
        cap, np.ones(1), 0.9
    )
    assert isinstance(same, Intersection)
    np.testing.assert_array_equal(gain, cap[0])


@pytest.mark.parametrize("kind", ["exact", "boxed", "bounded"])
def test_a_lifted_intersection_is_that_of_each_copy(kind):
    cmdp = problem(1)
    models = action_models(1)
    sets = {
        "exact": lambda: Intersection(Interval(cmdp, 0.3), Interval(cmdp, 0.2)),
        "boxed": lambda: Intersection(models, bounds_around(models, 1)),
        "bounded": lambda: Intersection(L1Ball(cmdp, 0.3), Interval(cmdp, 0.1)),
    }[kind]()
    copies = np.array([3, 0, 3, 9])
    entries = np.concatenate(
        [np.arange(sets.row_ptr[p], sets.row_ptr[p + 1]) for p in copies]
    )
    shift = np.repeat([0, 5, 5, 0], np.diff(sets.row_ptr)[copies])
    lifted = sets.lift(copies, sets.successor[entries] + shift, 10)
    assert lifted.exact == sets.exact
    v = np.random.default_rng(0).normal(size=10)
    first, second = sets.worst(v[:5].copy()), sets.worst(v[5:].copy())
    np.testing.assert_allclose(
        lifted.worst(v), [first[3], second[0], second[3], first[9]], atol=1e-12
    )
    assert lifted.contains(lifted.sample(np.random.default_rng(0))).all()
    np.testing.assert_array_equal(lifted.reachable, sets.reachable[entries])


def test_robust_costs_of_an_intersection_are_at_most_those_of_its_parts():
    cmdp = problem(2)
    policy = ep.Policy(np.full((5, 2), 0.5))
    cost = np.random.default_rng(0).random((5, 2))
    cmdp = ep.CMDP(
        cmdp.transition_matrix, np.zeros((5, 2)), cost, discount=0.9, budget=1.0
    )
    ball, box = L1Ball(cmdp, 0.3), Interval(cmdp, 0.12)
    most = [
        robust_evaluate(cmdp, policy, sets).costs_upper[0]
        for sets in (ball, box, Intersection(ball, box))
    ]
    assert (most[2] <= np.minimum(most[0], most[1]) + 1e-7).all()
    shrunk = Intersection(ball, box).shrink(0.5)
    less = robust_evaluate(cmdp, policy, shrunk).costs_upper[0]
    assert (less <= most[2] + 1e-7).all()


def test_nested_intersections_are_taken_apart():
    cmdp = problem(0)
    parts = L1Ball(cmdp, 0.3), KLBall(cmdp, 0.1), Interval(cmdp, 0.2)
    flat = Intersection(*parts)
    nested = Intersection(Intersection(*parts[:2]), parts[2])
    assert len(nested.given) == 3
    v = np.random.default_rng(0).normal(size=5)
    np.testing.assert_array_equal(flat.worst(v), nested.worst(v))
    for one, two in itertools.permutations(range(3), 2):
        pair = Intersection(parts[one], parts[two])
        assert (flat.worst(v) <= pair.worst(v) + 1e-12).all()


@pytest.mark.parametrize("kind", ["intervals", "boxed", "bounded"])
def test_intersections_pass_the_conformance_suite(kind):
    cmdp = problem(4)
    if kind == "boxed":
        models = action_models(4)
        member = dense(models, models.sample(np.random.default_rng(4)))
        cmdp = ep.CMDP(
            member.reshape(5, 2, 5),
            np.zeros((5, 2)),
            np.ones((5, 2)),
            discount=0.9,
            budget=1.0,
        )
        sets = Intersection(models, Interval(cmdp, 0.15, support="everywhere"))
    elif kind == "intervals":
        sets = Intersection(Interval(cmdp, 0.3), Interval(cmdp, 0.2))
    else:
        sets = Intersection(L1Ball(cmdp, 0.3), Interval(cmdp, 0.1), KLBall(cmdp, 0.1))
    check_uncertainty_set(sets, cmdp, draws=4)
    copy = pickle.loads(pickle.dumps(sets))
    v = np.random.default_rng(0).normal(size=5)
    np.testing.assert_array_equal(copy.worst(v), sets.worst(v))


# -- what empties them ----------------------------------------------------------------


def two_states(p: float) -> ep.CMDP:
    zeros = np.zeros((2, 1))
    return ep.CMDP([[[1 - p, p]], [[0.0, 1.0]]], zeros, zeros, discount=0.9, budget=1.0)


def test_parts_without_a_common_row_are_told():
    stopped = ep.errors.AssumptionError
    with pytest.raises(
        stopped, match="in all of them for state 0, action 0, found none"
    ):
        Intersection(Interval(two_states(0.1), 0.1), Interval(two_states(0.5), 0.1))
    # bounds that cross nowhere, and still hold no distribution together
    low = Interval(two_states(0.5), lower=np.zeros(3), upper=[0.5, 1.0, 1.0])
    high = Interval(two_states(0.5), lower=np.zeros(3), upper=[1.0, 0.5, 1.0])
    assert Intersection(low, high).worst(np.array([0.0, 1.0]))[0] == 0.5
    never = Interval(two_states(0.0), 0.4)
    surely = Interval(two_states(1.0), 0.4)
    with pytest.raises(stopped, match="for state 0, action 0, found none"):
        Intersection(never, surely)
    pairs = Pairs.from_mask(np.ones((2, 1), dtype=bool))
    models = ActionModels(
        pairs,
        {"on": ActionModel(typical=[1, 1])},
        failures=Failures(around=within([[0.0], [1.0]], 1.0), rate=0.1, law="any"),
    )
    with pytest.raises(stopped, match="for state 0, action 0, found none"):
        Intersection(models, Interval(two_states(0.3), 0.1))
    with pytest.raises(stopped, match="for state 1, action 0, found none"):
        Intersection(
            models.__class__(
                pairs,
                {"on": ActionModel(typical=[1, 0])},
                failures=Failures(around=np.eye(2, dtype=bool), rate=0.0),
            ),
            Interval(two_states(0.5), 0.5),
        )


def test_what_cannot_be_intersected_is_refused():
    refused = ep.errors.InvalidInputError
    cmdp = problem(0)
    with pytest.raises(refused, match="parts: expected at least one set"):
        Intersection()
    with pytest.raises(refused, match="sets over 5 states and 10 pairs, found 2"):
        Intersection(L1Ball(cmdp, 0.1), L1Ball(two_states(0.1), 0.1))
    with pytest.raises(refused, match="one model throughout"):
        Intersection(Models(cmdp, [cmdp], throughout=True))
