"""Kernels of hitting times against plain NumPy, and the certificate against an LP."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.sparse.csgraph import shortest_path

import escapade as ep
from escapade.kernels import hitting
from escapade.testing import cmdps
from escapade.theory.hitting_times import ShortestPath


@st.composite
def searches(draw, max_states=6):
    """Draw a shortest-path problem, targets, and what is usable towards them."""
    cmdp = draw(cmdps(min_states=2, max_states=max_states))
    problem = ShortestPath(cmdp)
    is_target = np.zeros(cmdp.n_states, dtype=np.bool_)
    is_target[draw(st.integers(0, cmdp.n_states - 1))] = True
    return cmdp, problem, is_target


def everything(problem):
    """Return rows as a dense matrix ``(pairs, S)``."""
    rows = np.zeros((problem.duration.size, problem.n_states))
    pair = np.repeat(np.arange(problem.duration.size), np.diff(problem.row_ptr))
    np.add.at(rows, (pair, problem.successor), problem.probability)
    return rows


def inside_of(problem, is_target):
    inside = np.zeros(problem.n_states, dtype=np.bool_)
    usable = np.zeros(problem.duration.size, dtype=np.bool_)
    count = hitting.surely_reaching(
        problem.state_ptr,
        problem.row_ptr,
        problem.successor,
        is_target,
        inside,
        usable,
    )
    assert count == inside.sum()
    return inside, usable & problem.usable


def best(problem, usable, h, order):
    """Return the operator T on the states of ``order``."""
    values = problem.duration + everything(problem) @ h
    values[~usable] = np.inf
    least = np.minimum.reduceat(values, problem.state_ptr[:-1])
    return values, least[order]


@given(search=searches())
def test_distances_are_those_of_a_breadth_first_search(search):
    _, problem, is_target = search
    order = np.empty(problem.n_states, dtype=np.int32)
    distance = np.empty(problem.n_states, dtype=np.int32)
    count = hitting.distance_order(
        problem.source_ptr, problem.source, is_target, order, distance
    )
    links = np.zeros((problem.n_states, problem.n_states))
    into = np.repeat(np.arange(problem.n_states), np.diff(problem.source_ptr))
    links[problem.source, into] = 1.0
    exact = shortest_path(links, unweighted=True)[:, is_target].min(axis=1)
    found = np.where(distance < 0, np.inf, distance)
    assert found.tolist() == exact.tolist()
    assert count == np.isfinite(exact).sum()
    assert (np.diff(distance[order[:count]]) >= 0).all()
    assert sorted(order[:count]) == np.flatnonzero(distance >= 0).tolist()


@settings(max_examples=50)
@given(search=searches())
def test_the_states_that_surely_reach_are_the_greatest_such_set(search):
    _, problem, is_target = search
    inside, usable = inside_of(problem, is_target)
    steps = everything(problem) > 0.0
    pair_state = np.repeat(np.arange(problem.n_states), np.diff(problem.state_ptr))
    keep = np.ones(problem.n_states, dtype=bool)
    while True:
        stays = ~(steps & ~keep).any(axis=1) & keep[pair_state]
        reached = is_target.copy()
        for _ in range(problem.n_states):
            hits = stays & (steps & reached).any(axis=1)
            reached[pair_state[hits]] = True
        if (reached == keep).all():
            break
        keep = reached
    assert (inside == keep).all()
    assert not (steps[usable][:, ~inside]).any()


@given(search=searches(), seed=st.integers(0, 100))
def test_a_sweep_is_the_operator_state_by_state(search, seed):
    _, problem, is_target = search
    order, _ = problem.search(is_target)
    h = np.random.default_rng(seed).uniform(0.0, 9.0, problem.n_states)
    h[is_target] = 0.0
    expected = h.copy()
    for state in order:
        _, value = best(problem, problem.usable, expected, [state])
        expected[state] = value[0]
    hitting.sweep(*problem.rows(), problem.usable, order, h)
    assert h == pytest.approx(expected)


@given(search=searches(), seed=st.integers(0, 100))
def test_greedy_pairs_are_the_best_and_stay_when_they_are_as_good(search, seed):
    _, problem, is_target = search
    order, _ = problem.search(is_target)
    h = np.random.default_rng(seed).integers(0, 4, problem.n_states).astype(float)
    h[is_target] = 0.0
    values, least = best(problem, problem.usable, h, order)
    chosen = np.full(problem.n_states, -1, dtype=np.int64)
    at = (*problem.rows(), problem.usable, order, h, chosen)
    assert hitting.greedy_pairs(*at, 0.0) == order.size
    assert values[chosen[order]] == pytest.approx(least)
    before = chosen.copy()
    assert hitting.greedy_pairs(*at, 1e-12) == 0
    assert (chosen == before).all()


@settings(max_examples=50)
@given(search=searches(), seed=st.integers(0, 100), noise=st.sampled_from([0.0, 0.2]))
def test_the_certificate_encloses_the_least_times(search, seed, noise):
    cmdp, problem, is_target = search
    inside, usable = inside_of(problem, is_target)
    assume(inside.all())
    order, _ = problem.search(is_target)
    rows = everything(problem)
    matrix = np.eye(problem.n_states)[cmdp.pair_state] - rows
    kept = usable & ~is_target[cmdp.pair_state]
    solved = linprog(
        -np.ones(problem.n_states),
        A_ub=matrix[kept],
        b_ub=problem.duration[kept],
        bounds=[(0, 0) if target else (0, None) for target in is_target],
    )
    exact = solved.x
    h = exact * np.random.default_rng(seed).uniform(1 - noise, 1 + noise, exact.size)
    up, low, largest, where = hitting.certify(*problem.rows(), usable, order, h)
    assert (h / (1 + low) <= exact * (1 + 1e-6)).all()
    if up < 1:
        assert (exact <= h / (1 - up) * (1 + 1e-6)).all()
    assert largest == h[order].max(initial=-1.0)
    assert order.size == 0 or h[where] == largest
    if noise == 0.0:
        assert max(up, low) < 1e-6


@given(search=searches())
def test_a_first_guess_is_finite_and_no_quicker_than_one_step(search):
    _, problem, is_target = search
    order, distance = problem.search(is_target)
    h = np.empty(problem.n_states)
    hitting.first_guess(*problem.rows(), problem.usable, order, distance, h)
    assert np.isfinite(h).all()
    assert (h[order] >= 1.0).all()
    assert (np.delete(h, order) == 0.0).all()


def test_a_geometric_sequence_is_extrapolated_to_its_limit():
    limit, error = np.array([10.0, 20.0, 30.0]), np.array([1.0, 2.0, 3.0])
    order = np.arange(3, dtype=np.int32)
    older, old, h = (limit - error * 0.9**k for k in range(3))
    assert hitting.extrapolate(older, old, h, order)
    assert h == pytest.approx(limit)
    # steps that grow, or turn, are no geometric sequence
    still = np.array([5.0, 5.0, 5.0])
    assert not hitting.extrapolate(still, still, still.copy(), order)
    growing = [np.array([1.0, 1.0, 1.0]) * k for k in (1.0, 2.0, 4.0)]
    assert not hitting.extrapolate(*growing, order)
    turning = [np.zeros(3), np.array([1.0, 0, 0]), np.array([1.0, 0.5, 0])]
    assert not hitting.extrapolate(*turning, order)


def slow_walk(size):
    """Return a walk that drifts back from its target."""
    rows = np.zeros((size, 1, size))
    rows[0, 0, 1] = rows[-1, 0, -1] = 1.0
    for state in range(1, size - 1):
        rows[state, 0, [state - 1, state + 1]] = 0.55, 0.45
    zeros = np.zeros((size, 1))
    return ep.CMDP(rows, zeros, zeros, discount=0.9, budget=1.0)


def start(problem, target):
    is_target = np.zeros(problem.n_states, dtype=np.bool_)
    is_target[target] = True
    order, distance = problem.search(is_target)
    h = np.empty(problem.n_states)
    hitting.first_guess(*problem.rows(), problem.usable, order, distance, h)
    return order, h, np.zeros((3, problem.n_states))


def test_blocks_of_sweeps_end_solved_pruned_or_unfinished():
    size = 9
    problem = ShortestPath(slow_walk(size))
    exact = np.linalg.solve(
        np.eye(size - 1) - everything(problem)[:-1, :-1], problem.duration[:-1]
    ).max()
    order, h, scratch = start(problem, size - 1)
    at = (*problem.rows(), problem.usable, order)
    status, lower, upper, where = hitting.approach(*at, -1.0, 1e-9, 500, h, scratch)
    assert status == hitting.SOLVED
    assert lower <= exact * (1 + 1e-12)
    assert exact <= upper * (1 + 1e-12)
    assert upper <= lower * (1 + 1e-8)
    assert where == 0

    order, h, scratch = start(problem, size - 1)
    status, lower, upper, _ = hitting.approach(*at, 1e9, 1e-9, 500, h, scratch)
    assert status == hitting.PRUNED
    assert lower <= exact <= upper

    order, h, scratch = start(problem, size - 1)
    status, lower, upper, _ = hitting.approach(*at, -1.0, 1e-12, 1, h, scratch)
    assert status == hitting.UNFINISHED
    assert lower <= exact <= upper


@settings(max_examples=50)
@given(search=searches())
def test_a_search_over_targets_bounds_each(search):
    _, problem, _ = search
    for state in range(problem.n_states):  # all can reach all
        alone = np.arange(problem.n_states) == state
        assume(problem.search(alone)[0].size == problem.n_states - 1)
        assume(inside_of(problem, alone)[0].all())
    targets = np.arange(problem.n_states)
    lower, upper = np.zeros(targets.size), np.full(targets.size, np.inf)
    farthest = np.full(targets.size, -1)
    status = np.full(targets.size, hitting.UNFINISHED)
    floor = hitting.search_targets(
        *problem.rows(),
        problem.usable,
        problem.source_ptr,
        problem.source,
        targets,
        0.0,
        1e-6,
        200,
        lower,
        upper,
        farthest,
        status,
    )
    assert floor == lower.max()
    for target in targets:
        order, h, scratch = start(problem, target)
        _, low, high, _ = hitting.approach(
            *problem.rows(), problem.usable, order, -1.0, 1e-9, 500, h, scratch
        )
        assert lower[target] <= high * (1 + 1e-9)
        assert low <= upper[target] * (1 + 1e-9)
        if status[target] == hitting.PRUNED:
            assert upper[target] <= floor * (1 + 1e-6)


@given(search=searches(), data=st.data())
def test_an_improper_policy_is_mended(search, data):
    _, problem, is_target = search
    inside, usable = inside_of(problem, is_target)
    order, _ = problem.search(is_target)
    order = order[inside[order]]
    chosen = np.full(problem.n_states, -1, dtype=np.int64)
    for state in order:
        pairs = np.arange(problem.state_ptr[state], problem.state_ptr[state + 1])
        chosen[state] = data.draw(st.sampled_from(pairs[usable[pairs]].tolist()))
    before = chosen.copy()
    changes = hitting.make_proper(
        problem.state_ptr,
        problem.row_ptr,
        problem.successor,
        usable,
        is_target,
        order,
        chosen,
    )
    assert changes >= (chosen != before).sum()
    steps = everything(problem) > 0.0
    reached = is_target.copy()
    for _ in range(problem.n_states):
        for state in order:
            reached[state] |= (steps[chosen[state]] & reached).any()
    assert reached[order].all()
    assert usable[chosen[order]].all()
