"""A belief narrows, and the truth stays inside.

Truths leave a belief with probability at most δ0 = 1e-6 a life here, so that all the
statistical tests of this module together fail by chance less often than once in 10⁴.
"""

from __future__ import annotations

import numpy as np
import pytest
from tests.simulation.worlds import told, two_budgets, workshop

from escapade.environments import garnet, moat_grid, three_state_loop, wall_cycle
from escapade.errors import AssumptionError, InvalidInputError
from escapade.knowledge import Counts, Knowledge, Log
from escapade.knowledge.belief import Belief
from escapade.model import CMDP
from escapade.uncertainty import Intersection, Interval, L1Ball

DELTA = 1e-6
WORLDS = {
    "walls": lambda: wall_cycle(3),
    "moat": moat_grid,
    "loop": three_state_loop,
    "garnet": lambda: garnet(8, 3, 3, n_costs=2),
    "workshop": workshop,
    "two budgets": two_budgets,
}


def seen_at_random(belief: Belief, world, steps: int, seed: int) -> None:
    """Let chance play in the true world, and tell the belief in portions."""
    env, knowledge = world.make_env(), belief.knowledge
    rng = np.random.default_rng(seed)
    state, _ = env.reset(seed=seed)
    touched = set()
    for t in range(steps):
        first, last = knowledge.pairs.state_ptr[state : state + 2]
        pair = int(rng.integers(first, last))
        after, reward, *_, info = env.step(int(knowledge.pairs.pair_action[pair]))
        cost = np.atleast_1d(info["cost"])
        assert belief.evidence.record(pair, after, reward, cost)
        touched.add(pair)
        state = after
        if t % 50 == 49:
            belief.update(np.array(sorted(touched)))
            touched.clear()


def true_rows(belief: Belief, cmdp: CMDP) -> np.ndarray:
    """Return the true probability of every entry of the belief."""
    knowledge = belief.knowledge
    table = cmdp.transition_matrix.toarray()
    pair = np.repeat(np.arange(knowledge.n_pairs), np.diff(knowledge.row_ptr))
    return table[pair, knowledge.successor]


@pytest.mark.statistical
@pytest.mark.parametrize("world", WORLDS)
def test_the_truth_stays_inside_and_bounds_only_narrow(world):
    built = WORLDS[world]()
    truth, belief = built.cmdp, Belief(built.knowledge, delta=DELTA)
    rows = true_rows(belief, truth)
    starts = belief.knowledge.row_ptr[:-1]
    np.testing.assert_allclose(np.add.reduceat(rows, starts), 1.0)
    value = np.random.default_rng(1).random(truth.n_states) * 5.0
    before, worst = belief.state(), np.inf
    for part in range(4):
        bounds = belief.confidence
        assert (bounds.lower <= rows + 1e-12).all()
        assert (rows <= bounds.upper + 1e-12).all()
        assert belief.reachable[rows > 0.0].all()
        assert (bounds.cost_lower <= truth.cost + 1e-9).all()
        assert (truth.cost <= belief.cost_upper + 1e-9).all()
        assert (bounds.reward_lower <= truth.reward + 1e-9).all()
        assert (truth.reward <= bounds.reward_upper + 1e-9).all()
        # the likeliest model lies within what is possible
        assert (belief.nominal <= bounds.upper + 1e-9).all()
        assert (belief.nominal >= bounds.lower - 1e-9).all()
        np.testing.assert_allclose(np.add.reduceat(belief.nominal, starts), 1.0)
        # and the worst case is worse than the truth
        after = np.add.reduceat(rows * value[belief.knowledge.successor], starts)
        ahead = belief.ahead(value)
        assert (ahead >= after - 1e-9).all()
        assert (belief.sets.worst(value) >= after - 1e-9).all()
        assert (ahead <= worst + 1e-12).all()
        worst = ahead
        for k in range(truth.n_costs):
            together, alone = belief.worst_cost(k, value)
            gamma = truth.discount
            assert (together >= truth.cost[k] + gamma * after - 1e-9).all()
            assert (alone >= gamma * after - 1e-9).all()
            assert (together <= belief.cost_upper[k] + alone + 1e-9).all()
        now = belief.state()
        for name in ("lower", "reward_lower", "cost_lower"):
            assert (now[f"bounds.{name}"] >= before[f"bounds.{name}"]).all()
        for name in ("upper", "reward_upper", "cost_upper"):
            assert (now[f"bounds.{name}"] <= before[f"bounds.{name}"]).all()
        before = now
        seen_at_random(belief, built, 200, seed=part)


def test_the_likeliest_model_is_the_one_seen_most():
    built = workshop()
    belief = Belief(built.knowledge, delta=0.01)
    seen_at_random(belief, built, 4_000, seed=0)
    model = belief.likeliest()
    np.testing.assert_allclose(
        model.probability, true_rows(belief, built.cmdp), atol=0.05
    )
    np.testing.assert_allclose(model.reward, built.cmdp.reward, atol=0.1)
    np.testing.assert_allclose(model.cost, built.cmdp.cost, atol=0.1)
    assert model.budget is not None
    np.testing.assert_array_equal(model.budget, built.cmdp.budget)


def test_only_the_pairs_named_are_looked_at():
    built = workshop()
    belief, other = (Belief(built.knowledge, delta=0.01) for _ in range(2))
    for life in (belief, other):
        for _ in range(50):
            life.evidence.record(2, 1, 0.0, np.array([0.0]))
            life.evidence.record(5, 2, 0.0, np.array([0.0]))
    belief.update(np.array([2]))
    other.update(np.array([2, 5]))
    row = slice(*belief.knowledge.row_ptr[5:7])
    assert (belief.confidence.lower[row] == 0.0).all()
    assert other.confidence.lower[row].max() > 0.5
    belief.update(np.array([5]))
    for name, array in belief.state().items():
        np.testing.assert_array_equal(array, other.state()[name], err_msg=name)


def test_a_belief_goes_back_to_where_it_was():
    built = wall_cycle(3)
    belief = Belief(built.knowledge, delta=0.01)
    seen_at_random(belief, built, 100, seed=0)
    other = Belief(built.knowledge, delta=0.01)
    other.restore(belief.state())
    for name, array in belief.state().items():
        np.testing.assert_array_equal(array, other.state()[name], err_msg=name)
    value = np.arange(9.0)
    np.testing.assert_array_equal(belief.ahead(value), other.ahead(value))
    for life in (belief, other):
        seen_at_random(life, built, 100, seed=1)
    np.testing.assert_array_equal(belief.nominal, other.nominal)
    kept = belief.state()
    kept["nominal"] = kept["nominal"][:-1]
    with pytest.raises(
        InvalidInputError, match="state: expected nominal of float64, sh"
    ):
        other.restore(kept)
    del kept["nominal"]
    with pytest.raises(InvalidInputError, match=r"shape .* found none"):
        other.restore(kept)


def test_what_was_recorded_before_birth_counts():
    built = workshop()
    log = Log(
        states=[0, 0, 0, 1],
        actions=[2, 2, 0, 2],
        rewards=[0.0, 0.0, 0.0, 1.0],
        costs=[0.0, 0.0, 0.0, 0.0],
        next_states=[1, 0, 0, 2],
    )
    belief = Belief(built.knowledge.replace(log=log), delta=0.01)
    np.testing.assert_array_equal(belief.evidence.pair_visits[[0, 2, 5]], [1, 2, 1])
    counted = np.zeros((4, 3, 4), dtype=np.int64)
    counted[0, 2, :2], counted[0, 0, 0], counted[1, 2, 2] = [1, 1], 1, 1
    rewards = np.zeros((4, 3))
    rewards[1, 2] = 1.0
    counts = Counts(transitions=counted, rewards=rewards, costs=np.zeros((4, 3)))
    other = Belief(built.knowledge.replace(counts=counts), delta=0.01)
    for name in ("evidence.visits", "bounds.lower", "bounds.reward_upper", "nominal"):
        np.testing.assert_array_equal(belief.state()[name], other.state()[name], name)
    with pytest.raises(
        InvalidInputError, match=r"delta: expected a number in \(0, 1\)"
    ):
        Belief(built.knowledge, delta=0.0)


# -- several sets at once --------------------------------------------------------------


def spaces(**more) -> Knowledge:
    cmdp = CMDP(
        np.full((2, 1, 2), 0.5),
        np.ones((2, 1)),
        np.ones((2, 1)),
        discount=0.5,
        budget=2.0,
    )
    return told(cmdp, **more)


def interval(low: float, high: float) -> Interval:
    rows = np.full((2, 1, 2), 0.5)
    cmdp = CMDP(rows, np.ones((2, 1)), np.ones((2, 1)), discount=0.5, budget=2.0)
    return Interval(cmdp, lower=[[[low, 0.0]]] * 2, upper=[[[high, 1.0]]] * 2)


def test_intervals_of_an_expert_bound_the_entries():
    belief = Belief(spaces(models=interval(0.3, 0.6)), delta=0.01)
    np.testing.assert_allclose(belief.confidence.lower[[0, 2]], 0.3)
    np.testing.assert_allclose(belief.confidence.upper[[0, 2]], 0.6)
    np.testing.assert_allclose(belief.ahead(np.array([1.0, 0.0])), 0.6)
    assert belief.failure_probability == pytest.approx(0.01)


def test_sets_that_hold_at_once_all_count():
    cmdp = CMDP(
        np.full((2, 1, 2), 0.5),
        np.ones((2, 1)),
        np.ones((2, 1)),
        discount=0.5,
        budget=2.0,
    )
    both = Intersection(interval(0.3, 0.7), L1Ball(cmdp, radius=0.2))
    belief = Belief(spaces(models=both), delta=0.01)
    np.testing.assert_allclose(belief.ahead(np.array([1.0, 0.0])), 0.6)
    together, _ = belief.worst_cost(0, np.array([1.0, 0.0]))
    np.testing.assert_allclose(together, 1.0 + 0.5 * 0.6)
    np.testing.assert_allclose(belief.sets.worst(np.array([1.0, 0.0])), 0.6)


def test_evidence_against_all_that_was_held_possible_is_reported():
    belief = Belief(spaces(models=interval(0.3, 0.6)), delta=0.01)
    for _ in range(300):
        belief.evidence.record(0, 0, 0.0, np.array([0.0]))
    with pytest.raises(
        AssumptionError, match="transitions of state 0, action 0: expected evidence"
    ):
        belief.update(np.array([0]))
    belief = Belief(wall_cycle(3).knowledge, delta=0.01)
    pair = belief.knowledge.pair(4, 2)  # from the middle southward, in vain
    for _ in range(100):
        belief.evidence.record(pair, 4, 0.0, np.array([0.0]))
    with pytest.raises(
        AssumptionError, match=r"transitions of state 4, action 2 \(south\):"
    ):
        belief.update(np.array([pair]))
