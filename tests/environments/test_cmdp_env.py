"""The environment over a model: Gymnasium's contract, seeds, costs and refusals."""

from __future__ import annotations

import copy

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import given, settings
from hypothesis import strategies as st

import escapade as ep
from escapade.environments import CMDPEnv
from escapade.errors import InvalidInputError
from escapade.testing import cmdps

LAWS = ("deterministic", "bernoulli", "uniform")


@pytest.fixture
def masked():
    """Two states; the second offers only its second action."""
    return ep.CMDP(
        [[[0.5, 0.5], [1.0, 0.0]], [[0.0, 0.0], [0.3, 0.7]]],
        [[0.0, 1.0], [0.0, 0.5]],
        [[0.5, 0.0], [0.0, 1.0]],
        discount=0.9,
        budget=1.0,
        available=[[True, True], [False, True]],
    )


def walk(env, seed, steps=60):
    """Return everything seen on a walk whose actions are drawn with the same seed."""
    rng = np.random.default_rng(seed)
    state, info = env.reset(seed=seed)
    seen = [state]
    for _ in range(steps):
        action = int(rng.choice(np.flatnonzero(info["action_mask"])))
        state, reward, _, _, info = env.step(action)
        seen.append((state, reward, np.atleast_1d(info["cost"]).tolist()))
    return seen


@pytest.mark.parametrize("reward_noise", LAWS)
@pytest.mark.parametrize("cost_noise", LAWS)
def test_gymnasium_accepts_every_law(reward_noise, cost_noise):
    cmdp = ep.environments.barrier_grid().cmdp
    env = CMDPEnv(cmdp, reward_noise=reward_noise, cost_noise=cost_noise)
    env.spec = gymnasium.envs.registration.EnvSpec(
        "CMDP-v0",
        entry_point=CMDPEnv,
        kwargs={
            "cmdp": cmdp,
            "reward_noise": reward_noise,
            "cost_noise": cost_noise,
        },
    )
    check_env(env)


@settings(max_examples=30)
@given(cmdp=cmdps(), laws=st.tuples(st.sampled_from(LAWS), st.sampled_from(LAWS)))
def test_what_is_seen_is_possible(cmdp, laws):
    env = CMDPEnv(cmdp, reward_noise=laws[0], cost_noise=laws[1])
    rng = np.random.default_rng(0)
    state, info = env.reset(seed=0)
    assert cmdp.start[state] > 0.0
    for _ in range(20):
        assert info["action_mask"].tolist() == cmdp.available[state].tolist()
        assert env.observation_space.contains(state)
        assert env.action_space.sample(info["action_mask"]) in np.flatnonzero(
            cmdp.available[state]
        )
        action = int(rng.choice(np.flatnonzero(cmdp.available[state])))
        after, reward, terminated, truncated, info = env.step(action)
        assert after in cmdp.successors(state, action)[0]
        assert 0.0 <= reward <= cmdp.reward_max
        costs = np.atleast_1d(info["cost"])
        assert (costs >= 0.0).all()
        assert (costs <= cmdp.cost_max).all()
        assert not terminated
        assert not truncated
        pair = cmdp.pair(state, action)
        if laws[0] == "deterministic":
            assert reward == cmdp.reward[pair]
        if laws[1] == "deterministic":
            assert costs.tolist() == cmdp.cost[:, pair].tolist()
        state = after
        assert env.state == state


def test_one_cost_is_a_number_and_several_are_an_array():
    one, two = ep.environments.moat_grid().env, ep.environments.barrier_grid().env
    for env, kind in ((one, float), (two, np.ndarray)):
        env.reset(seed=1)
        assert type(env.step(0)[4]["cost"]) is kind
    assert two.step(0)[4]["cost"].shape == (2,)


@pytest.mark.parametrize("laws", [(law, law) for law in LAWS])
def test_the_same_seed_is_the_same_walk(laws):
    cmdp = ep.environments.garnet(6, 3, 3).cmdp
    envs = [CMDPEnv(cmdp, reward_noise=laws[0], cost_noise=laws[1]) for _ in range(2)]
    assert walk(envs[0], 5) == walk(envs[1], 5)
    assert walk(envs[0], 5) == walk(envs[0], 5)  # a walk leaves nothing behind
    assert walk(envs[0], 5) != walk(envs[0], 6)


def test_a_copy_goes_on_in_the_same_way():
    env = ep.environments.wall_cycle(3).make_env()
    walk(env, 1)
    twin = copy.deepcopy(env)
    assert [env.step(0)[:2] for _ in range(30)] == [twin.step(0)[:2] for _ in range(30)]


def test_the_order_of_the_draws():
    """One number settles the next state, the next the reward, then one a cost."""
    cmdp = ep.environments.garnet(8, 2, 3, n_costs=2).cmdp
    env = CMDPEnv(cmdp, reward_noise="bernoulli", cost_noise="uniform")
    env.reset(seed=11)
    rng = np.random.default_rng(11)
    rng.random()  # the start
    sampler = ep.model.Sampler(cmdp)
    for _ in range(20):
        pair = cmdp.pair(env.state, 1)
        expected = sampler.next_state(env.state, 1, rng)
        reward = float(rng.random() < cmdp.reward[pair])
        mean = cmdp.cost[:, pair]
        costs = mean + np.minimum(mean, 1.0 - mean) * (2.0 * rng.random(2) - 1.0)
        state, earned, _, _, info = env.step(1)
        assert (state, earned) == (expected, reward)
        np.testing.assert_allclose(info["cost"], costs, atol=1e-15)


def test_a_chosen_beginning(masked):
    env = CMDPEnv(masked)
    state, info = env.reset(seed=0, options={"state": 1})
    assert (state, info["action_mask"].tolist()) == (1, [0, 1])
    assert info["action_mask"].dtype == np.int8
    assert env.reset(options={"state": np.int64(0)})[0] == 0


# -- costs that hang on the next state -----------------------------------------------


def test_a_wall_that_is_hit_is_charged_where_it_was_hit():
    world = ep.environments.wall_cycle(4, failure=0.5)
    env = world.env
    env.reset(seed=0)
    charged, free = set(), set()
    for _ in range(400):
        env.reset(options={"state": 0})
        state, _, _, _, info = env.step(2)  # south, into the wall
        assert info["cost"] in {0.0, 1.0}
        (charged if info["cost"] else free).add(state)
    assert charged == {0}
    assert free == {0, 1, 2, 4, 5, 8}  # six cells within a distance of two


def test_the_means_given_the_next_state_are_those_that_are_seen():
    cmdp = ep.environments.garnet(5, 2, 3).cmdp
    lean = np.tile([1.0, 0.0, 0.0], cmdp.n_pairs)
    first = cmdp.probability[cmdp.row_ptr[:-1]]
    cmdp = cmdp.replace(cost=first[np.newaxis], budget=50.0)
    env = CMDPEnv(cmdp, cost_given_next=lean[np.newaxis])
    assert not env.cost_given_next.flags.writeable
    env.reset(seed=2)
    for _ in range(100):
        successors, _ = cmdp.successors(env.state, 0)
        after, _, _, _, info = env.step(0)
        assert info["cost"] == float(after == successors[0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda c: c[:, :-1],
            r"cost_given_next: expected shape \(1, 30\), found shape",
        ),
        (
            lambda c: c + 2.0,
            r"expected numbers in \[0, 1\], found 2\..* at channel 0, en",
        ),
        (lambda c: c * np.nan, r"cost_given_next: expected numbers in \[0, 1\]"),
        (
            lambda c: c * 0.9,
            r"expected an average of .* at channel 0, state 0, action 0",
        ),
        (lambda c: [["free"]], "cost_given_next: expected an array of numbers"),
    ],
)
def test_means_given_the_next_state_that_are_refused(change, message):
    cmdp = ep.environments.garnet(5, 2, 3).cmdp
    means = np.repeat(cmdp.cost, 3, axis=1)
    CMDPEnv(cmdp, cost_given_next=means)
    with pytest.raises(InvalidInputError, match=message):
        CMDPEnv(cmdp, cost_given_next=change(means))


# -- pictures ------------------------------------------------------------------------


def test_pictures_follow_the_state():
    world = ep.environments.wall_cycle(3)
    text = world.make_env(render_mode="ansi")
    text.reset(seed=0, options={"state": 4})
    assert text.render() == "+ + +\n+ @ +\n+ + +"
    pixels = world.make_env(render_mode="rgb_array")
    pixels.reset(seed=0)
    before = pixels.render()
    assert (before.dtype, before.shape) == (np.uint8, (96, 96, 3))
    pixels.reset(options={"state": 8})
    assert (pixels.render() != before).any()
    world.env.reset(seed=0)
    assert world.env.render() is None


# -- refusals ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"cmdp": 3}, "cmdp: expected a CMDP, found int"),
        ({"render_mode": "human"}, "render_mode: expected None or one of"),
        ({"reward_noise": "normal"}, "reward_noise: expected one of"),
        ({"cost_noise": "normal"}, "cost_noise: expected one of"),
    ],
)
def test_what_an_environment_refuses(keywords, message, masked):
    with pytest.raises(InvalidInputError, match=message):
        CMDPEnv(**{"cmdp": masked, **keywords})


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (0, r"action: expected one of \[1\] in state 1, found 0"),
        (2, r"action: expected a whole number in 0\.\.1, found 2"),
        (-1, "action: expected a whole number"),
        (1.0, "action: expected a whole number"),
        (True, "action: expected a whole number"),
        ("up", "action: expected a whole number"),
    ],
)
def test_an_action_that_is_not_there_changes_nothing(action, message, masked):
    env, twin = CMDPEnv(masked), CMDPEnv(masked)
    for one in (env, twin):
        one.reset(seed=0, options={"state": 1})
    with pytest.raises(InvalidInputError, match=message):
        env.step(action)
    assert env.state == 1
    assert [env.step(1)[0] for _ in range(5)] == [twin.step(1)[0] for _ in range(5)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"state": 2}, r"options\['state'\]: expected a whole number in 0\.\.1"),
        ({"state": "a"}, r"options\['state'\]: expected a whole number"),
        ({"stat": 1}, "options: expected no name but 'state', found 'stat'"),
    ],
)
def test_options_that_are_refused(options, message, masked):
    with pytest.raises(InvalidInputError, match=message):
        CMDPEnv(masked).reset(options=options)


@pytest.mark.parametrize("act", [lambda env: env.step(0), lambda env: env.render()])
def test_an_environment_is_reset_first(act, masked):
    with pytest.raises(InvalidInputError, match="env: expected a call of reset first"):
        act(CMDPEnv(masked, render_mode="ansi"))
