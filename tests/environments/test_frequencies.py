"""What is drawn agrees with the model: every test states how often it may fail.

A frequency p̂ of n independent draws with chance p obeys, by Chernoff's bound,
``P(n kl(p̂, p) ≥ x) ≤ 2 e^{-x}``, whatever n and p are.  With x = ln(2 m / δ) all of m
frequencies pass at once except with probability δ; here δ = 1e-9.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

import escapade as ep
from escapade.environments import CMDPEnv
from escapade.model import Sampler

DELTA = 1e-9

pytestmark = pytest.mark.statistical


def divergence(p, q):
    """Return kl(p, q) of two coins."""
    total = 0.0
    for a, b in ((p, q), (1.0 - p, 1.0 - q)):
        if a > 0.0:
            total += a * math.log(a / b) if b > 0.0 else math.inf
    return total


def assert_agrees(counts, chances, checks):
    """Hold a count a outcome to its chance, as one of so many groups of checks."""
    n = int(sum(counts))
    limit = math.log(2.0 * checks / DELTA)
    for count, chance in zip(counts, chances, strict=True):
        assert n * divergence(count / n, chance) < limit, (count, n, chance)


def by_state(cmdp, states):
    return np.bincount(states, minlength=cmdp.n_states)


def row(cmdp, state, action):
    chances = np.zeros(cmdp.n_states)
    after, chance = cmdp.successors(state, action)
    chances[after] = chance
    return chances


@pytest.mark.parametrize("build", ["sampler", "environment"])
def test_next_states_are_drawn_from_the_rows(build):
    """Fails with probability at most 1e-9: 5 rows of 16 states each."""
    world = ep.environments.wall_cycle(4, failure=0.4)
    cmdp, env, n = world.cmdp, world.make_env(), 4_000
    env.reset(seed=17)
    rng = np.random.default_rng(17)
    sampler = Sampler(cmdp)
    pairs = [(0, 2), (0, 4), (5, 3), (6, 0), (15, 1)]
    for state, action in pairs:
        if build == "sampler":
            drawn = [sampler.next_state(state, action, rng) for _ in range(n)]
        else:
            drawn = []
            for _ in range(n):
                env.reset(options={"state": state})
                drawn.append(env.step(action)[0])
        counts = by_state(cmdp, drawn)
        assert_agrees(counts, row(cmdp, state, action), len(pairs) * cmdp.n_states)


def test_starts_are_drawn_from_the_start_distribution():
    """Fails with probability at most 1e-9: twice 36 states."""
    cmdp = ep.environments.barrier_grid().cmdp
    env, rng, n = CMDPEnv(cmdp), np.random.default_rng(3), 4_000
    env.reset(seed=4)
    sampler = Sampler(cmdp)
    for drawn in (
        [sampler.start_state(rng) for _ in range(n)],
        [env.reset()[0] for _ in range(n)],
    ):
        assert_agrees(by_state(cmdp, drawn), cmdp.start, 2 * cmdp.n_states)


def test_a_path_draws_every_row_afresh():
    """Fails with probability at most 1e-9: first n visits of 10 pairs, 5 states each.

    The outcomes of the first n visits of a pair are independent draws from its row,
    whatever the path does in between; pairs visited less often are left out.
    """
    cmdp = ep.environments.garnet(5, 2, 3, seed=5).cmdp
    policy, n = ep.Policy.uniform(cmdp), 700
    path = Sampler(cmdp).rollout(policy, 12_000, seed=8)
    here, after = path.states[:-1], path.states[1:]
    checked = 0
    for state in range(5):
        for action in range(2):
            visits = np.flatnonzero((here == state) & (path.actions == action))[:n]
            if visits.size == n:
                counts = by_state(cmdp, after[visits])
                assert_agrees(counts, row(cmdp, state, action), 50)
                checked += 1
    assert checked >= 6


def test_actions_are_drawn_from_the_policy():
    """Fails with probability at most 1e-9: three actions."""
    cmdp = ep.CMDP(
        np.ones((1, 3, 1)), np.zeros((1, 3)), np.zeros((1, 3)), discount=0.5, budget=0
    )
    policy = ep.Policy([[0.7, 0.05, 0.25]])
    path = Sampler(cmdp).rollout(policy, 10_000, seed=2)
    counts = np.bincount(path.actions, minlength=3)
    assert_agrees(counts, policy.probabilities[0], 3)


def test_coins_have_the_means_of_the_model():
    """Fails with probability at most 1e-9: a reward and two costs."""
    cmdp = ep.CMDP(
        np.ones((1, 1, 1)),
        [[0.6]],
        [[[0.02]], [[2.7]]],
        discount=0.5,
        budget=[1.0, 1.0],
        reward_max=2.0,
        cost_max=[1.0, 3.0],
    )
    env = CMDPEnv(cmdp, reward_noise="bernoulli", cost_noise="bernoulli")
    env.reset(seed=9)
    seen = []
    for _ in range(5_000):
        _, reward, _, _, info = env.step(0)
        seen.append([reward / 2.0, *(info["cost"] / [1.0, 3.0])])
    seen = np.array(seen)
    assert set(np.unique(seen)) == {0.0, 1.0}
    for heads, chance in zip(seen.sum(axis=0), (0.3, 0.02, 0.9), strict=True):
        assert_agrees([heads, len(seen) - heads], [chance, 1.0 - chance], 6)


def test_even_laws_are_even():
    """Fails with probability at most 1e-9, by Dvoretzky, Kiefer, Wolfowitz and Massart.

    An empirical distribution function strays by more than e with probability at most
    2 exp(−2 n e²).
    """
    cmdp = ep.CMDP(
        np.ones((1, 1, 1)),
        [[0.5]],
        [[0.25]],
        discount=0.5,
        budget=1.0,
        reward_max=2.0,
        cost_max=0.3,
    )
    env = CMDPEnv(cmdp, reward_noise="uniform", cost_noise="uniform")
    env.reset(seed=10)
    n = 5_000
    steps = [env.step(0) for _ in range(n)]
    stray = math.sqrt(math.log(2 * 2 / DELTA) / (2 * n))
    for samples, low, high in (
        ([step[1] for step in steps], 0.0, 1.0),
        ([step[4]["cost"] for step in steps], 0.2, 0.3),
    ):
        place = (np.sort(samples) - low) / (high - low)
        assert place[0] >= 0.0
        assert place[-1] <= 1.0
        rank = np.arange(1, n + 1) / n
        assert np.abs(place - rank).max() < stray + 1 / n


def test_a_wall_is_charged_when_the_step_did_not_fail():
    """Fails with probability at most 1e-9: six cells, charged or not."""
    world = ep.environments.wall_cycle(4, failure=0.4)
    env, n = world.make_env(), 4_000
    env.reset(seed=12)
    counts = {}
    for _ in range(n):
        env.reset(options={"state": 0})
        state, _, _, _, info = env.step(2)
        counts[state, info["cost"]] = counts.get((state, info["cost"]), 0) + 1
    chances = {(0, 1.0): 0.6}
    chances |= {(cell, 0.0): 0.4 / 6 for cell in (0, 1, 2, 4, 5, 8)}
    assert counts.keys() == chances.keys()
    assert_agrees(
        [counts[key] for key in chances], list(chances.values()), len(chances)
    )


def test_the_check_sees_a_wrong_chance():
    rng = np.random.default_rng(1)
    heads = int((rng.random(4_000) < 0.5).sum())
    assert_agrees([heads, 4_000 - heads], [0.5, 0.5], 2)
    with pytest.raises(AssertionError):
        assert_agrees([heads, 4_000 - heads], [0.4, 0.6], 2)
