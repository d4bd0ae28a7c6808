"""Action models: extremes against linear programs, members, laws, derived sets."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import escapade as ep
from escapade.model.layout import Pairs
from escapade.testing import check_uncertainty_set
from escapade.uncertainty import (
    ActionModel,
    ActionModels,
    Failures,
    Transfer,
    within,
)

SENSES = ("min", "max")


def random_models(seed: int, *, channels: int = 0, n_states: int = 5) -> ActionModels:
    """Two to three models, two ways of failing, random places, rates and costs."""
    rng = np.random.default_rng(seed)
    n_actions, n_models = 2, int(rng.integers(1, 4))
    pairs = Pairs.from_mask(np.ones((n_states, n_actions), dtype=bool))
    shape = (n_states, n_actions)

    def around(law: str) -> Failures:
        near = rng.random((n_states, n_states)) < 0.4
        near[np.arange(n_states), rng.integers(n_states, size=n_states)] = True
        low = rng.choice([0.0, 0.2], size=shape)
        high = low + rng.choice([0.0, 0.3, 0.8], size=shape)
        return Failures(around=near, rate=(low, high), law=law)

    def ends() -> tuple[np.ndarray, np.ndarray]:
        low = rng.choice([0.0, 0.5, 1.0], size=(channels, *shape))
        return low, np.maximum(low, rng.choice([0.5, 1.0], size=low.shape))

    models = {}
    for m in range(n_models):
        typical = rng.integers(n_states, size=shape)
        if m:
            typical[rng.random(shape) < 0.3] = -1
        says = {"cost": ends(), "missed_cost": ends()} if channels else {}
        models[f"model {m}"] = ActionModel(typical=typical, **says)
    return ActionModels(
        pairs,
        models,
        failures=[around("any"), around("uniform")],
        cost_max=np.ones(channels) if channels else None,
        error=0.05,
    )


def branches_of(models: ActionModels, pair: int):
    """Yield target, neighbourhood, low, high and law of each active branch."""
    branches = models.branches
    for b in range(branches.ptr[pair], branches.ptr[pair + 1]):
        if models.active[b]:
            h = branches.around[b]
            near = branches.near[branches.near_ptr[h] : branches.near_ptr[h + 1]]
            near = near if h >= 0 else np.empty(0, dtype=int)
            yield (
                b,
                int(branches.target[b]),
                near,
                branches.low[b],
                branches.high[b],
                bool(h >= 0 and branches.uniform[h]),
            )


def extreme_by_lp(models, pair, v, sign, discount=1.0, charge=()):
    """Best ``Σ_k min(c_k(τ), cap_k) w_k + γ P·v`` over the branches, by one LP each.

    Variables: τ, the mass sent to each state of the neighbourhood, and one gain for
    each channel, below the line of its mean in τ and below its cap.
    """
    best = -np.inf
    for b, g, near, low, high, uniform in branches_of(models, pair):
        n, k = near.size, len(charge)
        cost = np.zeros(1 + n + k)
        cost[0] = sign * discount * v[g]
        cost[1 : 1 + n] = -sign * discount * v[near]
        equal = [np.concatenate([[-1.0], np.ones(n), np.zeros(k)])]
        if uniform:
            for i in range(n):
                row = np.zeros(1 + n + k)
                row[0], row[1 + i] = -1.0 / n, 1.0
                equal.append(row)
        if n == 0:
            equal = [np.concatenate([[1.0], np.zeros(k)])]  # τ = 0
        above, limit, bounds = [], [], [(low, high)] + [(0.0, None)] * n
        for i, (weight, works, fails, cap) in enumerate(charge):
            cost[1 + n + i] = -1.0
            row = np.zeros(1 + n + k)
            row[0] = -sign * weight * (fails[b] - works[b])
            row[1 + n + i] = 1.0
            above.append(row)
            limit.append(sign * weight * works[b])
            bounds.append((None, sign * weight * cap[pair]))
        done = linprog(
            cost,
            A_ub=np.array(above) if above else None,
            b_ub=np.array(limit) if above else None,
            A_eq=np.array(equal),
            b_eq=np.zeros(len(equal)),
            bounds=bounds,
        )
        assert done.status == 0, done.message
        best = max(best, -done.fun + sign * discount * v[g])
    return sign * best


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("sense", SENSES)
def test_extremes_equal_those_of_linear_programs(seed, sense):
    models = random_models(seed)
    v = np.random.default_rng(seed).normal(size=models.n_states)
    sign = 1.0 if sense == "max" else -1.0
    by_lp = [extreme_by_lp(models, p, v, sign) for p in range(models.n_pairs)]
    np.testing.assert_allclose(models.worst(v, sense=sense), by_lp, atol=1e-9)
    gain = np.arange(models.n_pairs, dtype=float)
    np.testing.assert_allclose(
        models.backup(v, gain, 0.9, sense=sense),
        gain + 0.9 * np.array(by_lp),
        atol=1e-9,
    )


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("sense", SENSES)
def test_the_worst_kernel_is_a_member_and_attains_the_worst(seed, sense):
    models = random_models(seed)
    v = np.random.default_rng(seed).normal(size=models.n_states)
    kernel = models.worst_kernel(v, sense=sense)
    assert models.contains(kernel).all()
    attained = np.add.reduceat(kernel * v[models.successor], models.row_ptr[:-1])
    np.testing.assert_allclose(attained, models.worst(v, sense=sense), atol=1e-12)
    assert (kernel[~models.reachable] == 0.0).all()


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("sense", SENSES)
def test_costs_and_next_states_are_worst_together_as_by_linear_programs(seed, sense):
    models = random_models(seed, channels=2)
    rng = np.random.default_rng(seed)
    v, weights = rng.normal(size=models.n_states), np.array([0.5, 2.0])
    cap = rng.choice([0.3, 0.7, 1.0], size=(2, models.n_pairs))
    sign = 1.0 if sense == "max" else -1.0
    side = 1 if sense == "max" else 0
    gains = models._statement.gains
    charge = [(weights[k], gains[side, k], gains[2 + side, k], cap[k]) for k in (0, 1)]
    charged, gain = models.charged(cap, weights, 0.9, sense=sense)
    by_lp = [
        extreme_by_lp(models, p, v, sign, 0.9, charge) for p in range(models.n_pairs)
    ]
    found = charged.backup(v, gain, 0.9, sense=sense)
    np.testing.assert_allclose(found, by_lp, atol=1e-9)
    # taken together they are no worse than apart
    apart = models.backup(v, gain, 0.9, sense=sense)
    assert (sign * found <= sign * apart + 1e-12).all()
    # the kernel and the gain that attain it
    kernel = charged.worst_kernel(v, sense=sense)
    assert charged.contains(kernel).all()
    ahead = np.add.reduceat(kernel * v[models.successor], models.row_ptr[:-1])
    paid = charged.worst_gain(v, gain, sense=sense)
    np.testing.assert_allclose(paid + 0.9 * ahead, found, atol=1e-12)


def test_a_charge_serves_its_own_sense_alone():
    models = random_models(1, channels=1)
    charged, _ = models.charged(np.ones((1, models.n_pairs)), np.ones(1), 0.9)
    with pytest.raises(ep.errors.InvalidInputError, match="sense: expected that of"):
        charged.worst(np.zeros(models.n_states), sense="min")
    with pytest.raises(ep.errors.InvalidInputError, match="cost: expected 1 channels"):
        models.charged(np.ones((2, models.n_pairs)), np.ones(2), 0.9)


def test_sets_that_say_nothing_of_costs_charge_what_they_are_given():
    models = random_models(1)
    cost = np.arange(2.0 * models.n_pairs).reshape(2, -1)
    same, gain = models.charged(cost, np.array([1.0, 0.5]), 0.9)
    assert same is models
    np.testing.assert_array_equal(gain, cost[0] + 0.5 * cost[1])
    assert models.worst_gain(np.zeros(models.n_states), gain) is gain


@settings(max_examples=25)
@given(seed=st.integers(0, 10_000))
def test_samples_are_members_and_lie_between_the_extremes(seed):
    models = random_models(seed)
    rng = np.random.default_rng(seed)
    kernel = models.sample(rng)
    assert models.contains(kernel).all()
    assert models.contains(models.nominal).all()
    v = rng.normal(size=models.n_states)
    mean = np.add.reduceat(kernel * v[models.successor], models.row_ptr[:-1])
    assert (models.worst(v, sense="min") <= mean + 1e-12).all()
    assert (mean <= models.worst(v) + 1e-12).all()
    again = models.sample(np.random.default_rng(seed))
    np.testing.assert_array_equal(kernel, again)


def test_rows_outside_every_branch_are_told_apart():
    pairs = Pairs.from_mask(np.ones((4, 1), dtype=bool))
    near = within(np.arange(4.0)[:, None], 1.0)

    def excess(row, law, rate):
        models = ActionModels(
            pairs,
            {"on": ActionModel(typical=[[1], [1], [1], [1]])},
            failures=Failures(around=near, rate=rate, law=law),
        )
        assert models.successor[:3].tolist() == [0, 1, 2]
        return float(models.excess(np.tile(row, 4))[0])

    assert excess([0.0, 0.9, 0.1], "any", (0.0, 0.1)) == pytest.approx(0.0, abs=1e-15)
    assert excess([0.1, 0.7, 0.2], "any", (0.0, 0.1)) == pytest.approx(0.2)
    assert excess([0.1, 0.8, 0.1], "uniform", (0.0, 0.3)) == pytest.approx(0.0)
    assert excess([0.0, 0.8, 0.2], "uniform", (0.0, 0.3)) == pytest.approx(0.1)
    assert excess([0.2, 0.6, 0.2], "uniform", (0.0, 0.3)) == pytest.approx(0.2)
    # too few misses are hidden where a miss may land on the typical state itself
    assert excess([0.0, 1.0, 0.0], "any", (0.2, 0.3)) == pytest.approx(0.0)
    assert excess([0.0, 1.0, 0.0], "uniform", (0.3, 0.3)) == pytest.approx(0.2)
    assert excess([0.0, 0.5, 0.0], "any", (0.0, 1.0)) == pytest.approx(0.5)


def test_too_few_misses_show_where_no_miss_lands_on_the_typical_state():
    pairs = Pairs.from_mask(np.ones((2, 1), dtype=bool))
    models = ActionModels(
        pairs,
        {"on": ActionModel(typical=[0, 0])},
        failures=Failures(
            around=np.array([[False, True]] * 2), rate=(0.2, 0.3), law="any"
        ),
    )
    np.testing.assert_allclose(models.excess([1.0, 0.0, 0.6, 0.4]), [0.2, 0.1])


def test_an_error_rate_of_0_leaves_the_typical_state_alone():
    pairs = Pairs.from_mask(np.ones((3, 1), dtype=bool))
    models = ActionModels(
        pairs,
        {"on": ActionModel(typical=[1, 2, 0])},
        failures=Failures(around=np.zeros((3, 3), dtype=bool), rate=0.0),
    )
    assert models.successor.tolist() == [1, 2, 0]
    np.testing.assert_array_equal(models.worst(np.array([5.0, 6.0, 7.0])), [6, 7, 5])
    assert models.contains(models.sample(np.random.default_rng(0))).all()


def test_neighbourhoods_may_belong_to_pairs_and_be_sparse():
    pairs = Pairs.from_mask(np.ones((2, 2), dtype=bool))
    near = sp.csr_array(np.array([[1, 0], [0, 1], [1, 1], [0, 1]], dtype=bool))
    models = ActionModels(
        pairs,
        {"on": ActionModel(typical=[[0, 0], [1, 1]])},
        failures=Failures(around=near, rate=(0.0, 0.5), law="any"),
    )
    v = np.array([0.0, 1.0])
    np.testing.assert_allclose(models.worst(v), [0.0, 0.5, 1.0, 1.0])
    np.testing.assert_allclose(models.worst(v, sense="min"), [0.0, 0.0, 0.5, 1.0])


@pytest.mark.parametrize("seed", range(4))
def test_larger_rates_and_more_models_give_larger_sets(seed):
    rng = np.random.default_rng(seed)
    pairs = Pairs.from_mask(np.ones((5, 1), dtype=bool))
    near = np.eye(5, dtype=bool) | (rng.random((5, 5)) < 0.4)
    one = ActionModel(typical=rng.integers(5, size=5))
    two = ActionModel(typical=rng.integers(5, size=5))

    def most(models, rate, law):
        sets = ActionModels(
            pairs, models, failures=Failures(around=near, rate=rate, law=law)
        )
        return sets.worst(v)

    v = rng.normal(size=5)
    small = most({"one": one}, (0.1, 0.2), "uniform")
    for larger in (
        most({"one": one}, (0.0, 0.3), "uniform"),
        most({"one": one}, (0.1, 0.2), "any"),
        most({"one": one, "two": two}, (0.1, 0.2), "uniform"),
    ):
        assert (small <= larger + 1e-12).all()


@pytest.mark.parametrize("charged", [False, True])
def test_a_lifted_set_is_the_set_of_each_copy(charged):
    models = random_models(3, channels=1)
    sets, gain = (
        models.charged(np.full((1, models.n_pairs), 0.6), np.ones(1), 0.9)
        if charged
        else (models, np.zeros(models.n_pairs))
    )
    copies = np.array([3, 0, 3, 9])
    lengths = np.diff(models.row_ptr)[copies]
    # state s of copy i becomes state (i mod 2) · S + s
    entries = np.concatenate(
        [np.arange(models.row_ptr[p], models.row_ptr[p + 1]) for p in copies]
    )
    shift = np.repeat([0, 5, 5, 0], lengths)
    lifted = sets.lift(copies, models.successor[entries] + shift, 10)
    v = np.random.default_rng(0).normal(size=10)
    found = lifted.backup(v, gain[copies], 0.9)
    first = sets.backup(v[:5].copy(), gain, 0.9)
    second = sets.backup(v[5:].copy(), gain, 0.9)
    expected = [first[3], second[0], second[3], first[9]]
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert lifted.contains(lifted.sample(np.random.default_rng(1))).all()
    np.testing.assert_array_equal(lifted.reachable, models.reachable[entries])
    np.testing.assert_array_equal(lifted.nominal, models.nominal[entries])


def test_mean_costs_and_rewards_lie_between_those_of_the_models_left():
    pairs = Pairs.from_mask(np.ones((2, 1), dtype=bool))
    models = ActionModels(
        pairs,
        {
            "free": ActionModel(typical=[1, 1], cost=0.0, missed_cost=(0.0, 2.0)),
            "wall": ActionModel(
                typical=[0, -1], cost=2.0, missed_cost=1.0, reward=(0.5, 1.0)
            ),
        },
        failures=Failures(around=np.ones((2, 2), dtype=bool), rate=(0.0, 0.25)),
        cost_max=2.0,
        reward_max=3.0,
    )
    low, high = models.cost_bounds()
    np.testing.assert_allclose(low, [0.0, 0.0])
    np.testing.assert_allclose(high, [2.0, 0.5])
    low, high = models.rule_out("free", [True, False]).cost_bounds()
    np.testing.assert_allclose([low[0], high[0]], [1.75, 2.0])
    low, high = models.rule_out("free", [True, False]).reward_bounds()
    np.testing.assert_allclose([low[0], high[0]], [0.375, 1.5])
    np.testing.assert_allclose(models.reward_bounds()[1], [3.0, 3.0])


def test_places_within_a_distance():
    grid = np.array([[0, 0], [1, 0], [1, 1], [3, 0]])
    euclidean = within(grid, 1.0).toarray()
    assert euclidean.diagonal().all()
    assert euclidean.sum() == 4 + 2 * 2
    assert within(grid, np.sqrt(2.0)).sum() == 4 + 2 * 3
    assert within(grid, 1.0, norm=np.inf).sum() == 4 + 2 * 3
    assert within(grid, 0.0).sum() == 4


def shell(sets, seed=0) -> ep.CMDP:
    """A problem over the states and pairs of a set, its nominal kernel included."""
    rng = np.random.default_rng(seed)
    n_actions = sets.n_pairs // sets.n_states
    positive = sets.nominal > 0.0
    return ep.CMDP.from_pairs(
        state_ptr=np.arange(sets.n_states + 1) * n_actions,
        pair_action=np.tile(np.arange(n_actions), sets.n_states),
        row_ptr=np.concatenate([[0], np.cumsum(positive)])[sets.row_ptr],
        successor=sets.successor[positive],
        probability=sets.nominal[positive],
        reward=rng.random(sets.n_pairs),
        cost=rng.random(sets.n_pairs),
        n_actions=n_actions,
        discount=0.9,
        budget=5.0,
    )


@pytest.mark.parametrize("seed", range(3))
def test_action_models_pass_the_conformance_suite(seed):
    models = random_models(seed)
    check_uncertainty_set(models, shell(models), draws=4)


def test_action_models_survive_a_process_boundary():
    models = random_models(2, channels=1)
    copy = pickle.loads(pickle.dumps(models))
    v = np.random.default_rng(0).normal(size=models.n_states)
    np.testing.assert_array_equal(copy.worst(v), models.worst(v))
    np.testing.assert_array_equal(copy.left, models.left)
    nothing = np.zeros(models.successor.size)
    np.testing.assert_array_equal(copy.observe(nothing).left, models.left)
    # kernels are compiled for read-only arrays, and would be again for others
    assert not any(array.flags.writeable for array in copy._layout)


# -- transfer --------------------------------------------------------------------------


def corridor(length: int = 6, **extra) -> ActionModels:
    """One action, ``on``, in a corridor; a wall may stand before each cell."""
    pairs = Pairs.from_mask(np.ones((length, 1), dtype=bool))
    cells = np.arange(length)
    return ActionModels(
        pairs,
        {
            "free": ActionModel(typical=np.minimum(cells + 1, length - 1)),
            "wall": ActionModel(typical=cells),
        },
        failures=Failures(
            around=within(cells[:, None], 2.0), rate=(0.0, 0.1), law="any"
        ),
        **extra,
    )


def names_at(models: ActionModels) -> list[str]:
    return ["+".join(models.active_at(s)[0]) for s in range(models.n_states)]


def test_a_rule_carries_what_is_known_from_pair_to_pair():
    """Free behind a free cell: ``rho`` forbids a wall followed by a free cell."""
    rule = Transfer(source=np.arange(5), target=np.arange(1, 6), rho=[[1, 1], [0, 0.2]])
    models = corridor(transfers=rule)
    assert names_at(models) == ["free+wall"] * 6
    forward = models.establish("wall", np.arange(6) == 2)
    assert names_at(forward) == ["free+wall"] * 2 + ["wall"] * 4
    back = models.establish("free", np.arange(6) == 3)
    assert names_at(back) == ["free"] * 4 + ["free+wall"] * 2
    both = forward.establish("free", np.arange(6) == 1)
    assert names_at(both) == ["free"] * 2 + ["wall"] * 4


@settings(max_examples=30)
@given(seed=st.integers(0, 100_000))
def test_rules_never_rule_out_what_all_of_them_allow(seed):
    """Any assignment that the rules allow survives evidence that agrees with it."""
    rng = np.random.default_rng(seed)
    n = 5
    truth = rng.integers(2, size=n)
    rules = []
    for _ in range(4):
        source, target = rng.permutation(n)[:2]
        rho = (rng.random((2, 2)) < 0.5).astype(float)
        rho[truth[source], truth[target]] = 1.0
        rules.append(Transfer(source=[source], target=[target], rho=rho))
    models = corridor(n, transfers=rules)
    own = np.arange(n)
    assert models.left[own, truth, 0].all()
    for cell in rng.permutation(n)[:3]:
        name = models.names[truth[cell]]
        smaller = models.establish(name, own == cell)
        assert not (smaller.left & ~models.left).any()
        assert smaller.left[own, truth, 0].all()
        assert (smaller.worst(own * 1.0) <= models.worst(own * 1.0)).all()
        models = smaller
    kept = corridor(n, transfers=rules).keep(models.left)
    np.testing.assert_array_equal(kept.left, models.left)


def test_groups_share_what_is_known():
    models = corridor(groups=[[0], [0], [-1], [-1], [7], [7]])
    after = models.establish("wall", np.arange(6) == 4)
    assert names_at(after) == ["free+wall"] * 4 + ["wall"] * 2
    assert after.rule_out("free", np.arange(6) == 2).active_at(2) == {0: ("wall",)}


def test_contradictions_stop():
    rule = Transfer(source=[0], target=[1], rho=[[1, 0], [0, 1]])
    models = corridor(transfers=rule).establish("free", np.arange(6) == 0)
    with pytest.raises(ep.errors.AssumptionError, match=r"state 1, action 0.*none"):
        models.establish("wall", np.arange(6) == 1)
    with pytest.raises(ep.errors.AssumptionError, match="explains what was seen"):
        models.rule_out("free", np.arange(6) == 0)
    with pytest.raises(ep.errors.InvalidInputError, match="a model for every pair"):
        corridor(transfers=Transfer(source=[0], target=[1], rho=np.zeros((2, 2))))


# -- refusals --------------------------------------------------------------------------

SPACES = Pairs.from_mask(np.ones((2, 2), dtype=bool))
ON = ActionModel(typical=[[0, 1], [1, 0]])
NEAR = np.ones((2, 2), dtype=bool)


def build(models=None, failures=None, **extra):
    return ActionModels(
        SPACES,
        {"on": ON} if models is None else models,
        failures=Failures(around=NEAR, rate=0.1) if failures is None else failures,
        **extra,
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"models": {}}, "models: expected at least one model"),
        ({"failures": []}, "failures: expected at least one way"),
        ({"error": 1.0}, r"error: expected a number in \[0, 1\), found 1"),
        (
            {"models": {"on": ActionModel(typical=[[0, 1], [2, 0]])}},
            r"typical of 'on': expected states in 0..1, or -1, found 2 at state 1",
        ),
        (
            {"models": {"on": ActionModel(typical=[[0.0, 1.0], [1.0, 0.0]])}},
            "expected an array of states, found dtype float64",
        ),
        (
            {"models": {"on": ActionModel(typical=[[0, 1], [-1, 0]])}},
            "models: expected a model for every pair, found none at state 1, action 0",
        ),
        (
            {"models": {"on": ActionModel(typical=[0, 1, 1])}},
            r"expected shape \(2, 2\) or \(4,\), found shape \(3,\)",
        ),
        (
            {"models": {"on": ActionModel(typical=ON.typical, where=[1, 0])}},
            "where: expected a boolean array, found dtype int64",
        ),
        (
            {"failures": Failures(around=NEAR, rate=(0.2, 0.1))},
            r"failures.rate: expected rates in \[0, 1\].*found 0.2 to 0.1 at state 0",
        ),
        (
            {"failures": Failures(around=NEAR, rate=(0.1, 0.2, 0.3))},
            "a tuple of two, found a tuple of 3",
        ),
        (
            {"failures": Failures(around=NEAR, rate=0.1, law="even")},
            "failures.law: expected 'uniform' or 'any', found 'even'",
        ),
        (
            {"failures": Failures(around=np.ones((3, 2), dtype=bool), rate=0.1)},
            r"failures.around: expected shape \(2, 2\) or \(4, 2\)",
        ),
        (
            {"failures": Failures(around=np.ones((2, 2)), rate=0.1)},
            "failures.around: expected a boolean matrix, found dtype float64",
        ),
        (
            {"failures": [Failures(around=np.eye(2, dtype=bool) & False, rate=0.1)]},
            "at least one state in each neighbourhood, found none at typical state 0",
        ),
        (
            {"models": {"on": ActionModel(typical=ON.typical, cost=1.0)}},
            "cost_max: expected a bound, as models speak of costs, found none",
        ),
        (
            {
                "models": {"on": ActionModel(typical=ON.typical, cost=2.0)},
                "cost_max": 1.0,
            },
            r"cost of 'on': expected numbers in \[0, 1\].*found 2 to 2 at state 0",
        ),
        (
            {
                "models": {"on": ActionModel(typical=ON.typical, cost=(0, 1, 2))},
                "cost_max": 1.0,
            },
            "cost of 'on': expected an array, or a tuple of two",
        ),
        ({"cost_max": -1.0}, "cost_max: expected finite numbers of at least 0"),
        ({"groups": [0, 1]}, r"groups: expected shape \(2, 2\) or \(4,\)"),
        ({"groups": [0, 1, -2, 0]}, "labels of at least 0, or -1, found -2"),
        (
            {"transfers": Transfer(source=[0], target=[1], rho=[[1, 0]])},
            r"transfers.rho: expected shape \(1, 1\)",
        ),
        (
            {"transfers": Transfer(source=[0], target=[1], rho=[[-1.0]])},
            "transfers.rho: expected numbers of at least 0",
        ),
        (
            {"transfers": [Transfer(source=[0], target=[4], rho=[[1.0]])] * 2},
            r"transfers\[0\].target: expected pairs in 0..3, found 4",
        ),
        (
            {"transfers": Transfer(source=[0, 1], target=[2], rho=[[1.0]])},
            "transfers.target: expected 2 pairs, as many as sources, found 1",
        ),
        (
            {"transfers": Transfer(source=[1], target=[1], rho=[[1.0]])},
            "one of the same group at position 0",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(change, message):
    with pytest.raises(ep.errors.InvalidInputError, match=message):
        build(**change)


def test_groups_without_a_common_model_are_refused():
    one = ActionModel(typical=[[0, -1], [1, 0]])
    two = ActionModel(typical=[[-1, 1], [1, 0]])
    with pytest.raises(ep.errors.InvalidInputError, match="that all pairs of a group"):
        build({"one": one, "two": two}, groups=[0, 0, 1, 1])


def test_questions_that_make_no_sense_are_refused():
    models = build()
    refused = ep.errors.InvalidInputError
    with pytest.raises(refused, match=r"state: expected a state in 0\.\.1, found 2"):
        models.active_at(2)
    with pytest.raises(refused, match=r"model: expected one of \['on'\]"):
        models.rule_out("off", [True, False])
    with pytest.raises(refused, match="left: expected a boolean mask"):
        models.keep(np.ones((4, 2), dtype=bool))
    with pytest.raises(refused, match="channel: expected one of the 0 costs"):
        models.cost_bounds()
    with pytest.raises(refused, match="models that speak of rewards"):
        models.reward_bounds()
    with pytest.raises(refused, match=r"v: expected shape \(2,\)"):
        models.worst(np.zeros(3))
    with pytest.raises(refused, match="distance: expected a number of at least 0"):
        within([[0.0]], -1.0)
    with pytest.raises(refused, match="norm: expected a number of at least 1"):
        within([[0.0]], 1.0, norm=0.5)
