"""Foreign environments: brought in whole, or refused in one line."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
import scipy.sparse as sp
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env

import escapade as ep
from escapade.environments import SIX_TUPLE, Flattening, from_gymnasium
from escapade.errors import AssumptionError, InvalidInputError

HOLES = {5, 7, 11, 12}


def in_a_hole(state, action, after, info):
    return after in HOLES


def lake(**changes):
    keywords = {"cost": in_a_hole, "discount": 0.95, "budget": 2.0, **changes}
    return from_gymnasium("FrozenLake-v1", **keywords)


class Walk(gymnasium.Env):
    """Three rooms in a row; the last one ends an episode.  Speaks as it is told to."""

    metadata = {"render_modes": []}  # noqa: RUF012

    def __init__(self, space=None, say=None, six=False, rewards=(-1.0, 0.0, 2.0)):
        self.observation_space = space or spaces.Discrete(3)
        self.action_space = spaces.Discrete(2)
        self.say = say if say is not None else {"cost": 0.25}
        self.six, self.rewards = six, rewards
        self.room = 0
        self.spec = None

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.room = 0
        return self.room, {}

    def step(self, action):
        self.room = min(self.room + int(action), 2)
        done = self.room == 2
        head = (self.room, self.rewards[self.room])
        tail = (done, False, dict(self.say))
        return (*head, 0.5, *tail) if self.six else (*head, *tail)


def walk(env=None, **changes):
    keywords = {
        "cost": "cost",
        "discount": 0.9,
        "budget": 5.0,
        "reward_range": (-1.0, 2.0),
        "start": 0,
        **changes,
    }
    return from_gymnasium(env or Walk(), **keywords)


# -- spaces ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "space",
    [
        spaces.Discrete(4, start=-1),
        spaces.MultiDiscrete([2, 3], start=[1, 0]),
        spaces.MultiDiscrete([[2, 2], [1, 3]]),
        spaces.MultiBinary(3),
        spaces.Tuple((spaces.Discrete(2), spaces.MultiBinary(2))),
        spaces.Dict(b=spaces.Discrete(2), a=spaces.Tuple((spaces.Discrete(3),))),
    ],
    ids=str,
)
def test_members_have_numbers_and_numbers_members(space):
    flat = Flattening(space)
    seen = set()
    for number in range(flat.n):
        member = flat.member(number)
        assert space.contains(member)
        assert flat.number(member) == number
        seen.add(repr(member))
    assert len(seen) == flat.n
    space.seed(3)
    for _ in range(20):
        drawn = space.sample()
        back = flat.member(flat.number(drawn))
        assert repr(space.to_jsonable([back])) == repr(space.to_jsonable([drawn]))


@pytest.mark.parametrize(
    ("space", "stranger"),
    [
        (spaces.Discrete(3), 3),
        (spaces.Discrete(3), "1"),
        (spaces.Discrete(3, start=1), 0),
        (spaces.MultiDiscrete([2, 2]), np.array([0, 2])),
        (spaces.MultiDiscrete([2, 2]), np.array([0.0, 1.0])),
        (spaces.Tuple((spaces.Discrete(2),)), (0, 1)),
        (spaces.Dict(a=spaces.Discrete(2)), {"b": 0}),
        (spaces.Dict(a=spaces.Discrete(2)), {"a": 2}),
    ],
    ids=str,
)
def test_strangers_have_no_number(space, stranger):
    with pytest.raises(AssumptionError, match=r"^space: expected a member of"):
        Flattening(space).number(stranger)


def test_spaces_without_an_end_are_refused():
    with pytest.raises(InvalidInputError, match=r"space: .*\(see Discretizer\).*Box"):
        Flattening(spaces.Tuple((spaces.Discrete(2), spaces.Box(0, 1))))
    with pytest.raises(InvalidInputError, match="at most 2147483647 members"):
        Flattening(spaces.MultiDiscrete([2**20, 2**20]))


def test_blackjack_is_flattened_and_never_ends():
    hand = from_gymnasium(
        "Blackjack-v1",
        cost=lambda s, a, t, info: 0.0,
        discount=0.9,
        budget=1.0,
        reward_range=(-1.0, 1.0),
    )
    assert hand.knowledge.n_states == 32 * 11 * 2
    assert hand.cmdp is None
    assert "no table" in hand.model_source
    hand.env.reset(seed=0)
    rewards = {hand.env.step(t % 2)[1] for t in range(300)}
    assert rewards == {0.0, 1.0, 2.0}
    assert hand.raw_value(10.0) == pytest.approx(0.0)
    assert hand.knowledge.start.sum() == pytest.approx(1.0)


# -- costs -----------------------------------------------------------------------------


def test_a_cost_has_to_be_named():
    with pytest.raises(TypeError, match="cost"):
        from_gymnasium("FrozenLake-v1", discount=0.9, budget=1.0)
    with pytest.raises(InvalidInputError, match="nothing is assumed to be free"):
        lake(cost=None)


@pytest.mark.parametrize(
    ("env", "cost", "paid"),
    [
        (Walk(), "cost", 0.25),
        (Walk(say={"harm": True}), "harm", 1.0),
        (Walk(six=True), SIX_TUPLE, 0.5),
        (Walk(say={}), lambda s, a, t, info: 0.125 * (s + a + t), 0.25),
    ],
)
def test_costs_stand_where_they_are_said_to(env, cost, paid):
    world = walk(env, cost=cost)
    world.env.reset(seed=0)
    assert world.env.step(1)[4]["cost"] == paid


def test_several_channels():
    world = walk(cost=["cost", lambda s, a, t, info: t / 2], budget=[1.0, 2.0])
    world.env.reset(seed=0)
    np.testing.assert_array_equal(world.env.step(1)[4]["cost"], [0.25, 0.5])
    with pytest.raises(InvalidInputError, match=r"^budget: expected 2"):
        walk(cost=["cost", "cost"])


@pytest.mark.parametrize(
    ("env", "cost", "reason"),
    [
        (Walk(say={}), "cost", r"info\['cost'\]: expected a cost at every step"),
        (Walk(say={"cost": 1.5}), "cost", r"cost: .*\[0, 1\], found 1.5 at step 0"),
        (Walk(say={"cost": -1}), "cost", "found -1"),
        (Walk(say={"cost": np.nan}), "cost", "found nan"),
        (Walk(say={"cost": "much"}), "cost", "found 'much'"),
        (Walk(say={"cost": None}), "cost", "found nan at step 0"),
        (Walk(), SIX_TUPLE, "step: expected 6 values, found 5"),
        (Walk(six=True), "cost", "step: expected 5 values, found 6"),
        (Walk(rewards=(9.0, 9.0, 9.0)), "cost", r"reward: .*\[-1, 2\], found 9"),
        (Walk(space=spaces.Discrete(1)), "cost", "observation: expected a member"),
    ],
)
def test_a_step_that_breaks_its_word_is_one_error(env, cost, reason):
    world = walk(env, cost=cost)
    world.env.reset(seed=0)
    with pytest.raises(AssumptionError, match=reason) as caught:
        world.env.step(1)
    assert "\n" not in str(caught.value)


# -- ends ------------------------------------------------------------------------------


def test_an_end_leads_to_the_start():
    world = walk()
    world.env.reset(seed=0)
    world.env.step(1)
    after, reward, done, cut, info = world.env.step(1)
    assert (after, reward, done, cut) == (0, 3.0, False, False)
    assert info["ended"]
    assert info["raw_reward"] == 2.0


def test_an_end_absorbs():
    world = walk(on_done="absorb")
    assert world.knowledge.n_states == 4
    world.env.reset(seed=0)
    world.env.step(1)
    assert world.env.step(1)[0] == 3
    for action in (0, 1):
        after, reward, done, cut, info = world.env.step(action)
        assert (after, reward, info["cost"]) == (3, 1.0, 0.0)  # 0 before the shift
        assert not done
        assert not cut
    assert world.env.reset(seed=0)[0] == 0


class Doubled(gymnasium.RewardWrapper):
    """Somebody's own wrapper."""

    def reward(self, reward):
        return 2.0 * reward


@pytest.mark.parametrize(
    "around",
    [
        lambda env: env,
        gymnasium.wrappers.RecordEpisodeStatistics,
        lambda env: gymnasium.wrappers.TimeLimit(Doubled(env), 5),
        lambda env: Doubled(gymnasium.wrappers.OrderEnforcing(env)),
    ],
)
@pytest.mark.parametrize("on_done", ["reset", "absorb"])
def test_time_limits_are_taken_off_wherever_they_stand(around, on_done):
    limited = around(gymnasium.wrappers.TimeLimit(Walk(), 3))
    world = walk(limited, on_done=on_done, reward_range=(-2.0, 4.0))
    for env in (world.env, world.make_env()):
        env.reset(seed=0)
        ended = [env.step(t == 9)[4]["ended"] for t in range(12)]
        assert not any(ended)


def test_cells_go_on_beyond_a_time_limit():
    made = gymnasium.make("MountainCar-v0", max_episode_steps=7)
    cells = ep.environments.Discretizer(made, bins=4)
    car = walk(cells, cost=lambda s, a, t, info: 0.0, reward_range=(-1, 0))
    assert cells.env is car.env.inner.env
    car.env.reset(seed=0)
    for _ in range(20):
        car.env.step(1)
    assert not car.env.inner.unwrapped.state[0] > 0.5


class Cut(Walk):
    """Cuts its episodes itself."""

    def step(self, action):
        *said, _, info = super().step(action)
        return (*said, True, info)


def test_a_time_limit_of_the_environments_own_is_refused_when_it_cuts():
    world = walk(Cut())
    world.env.reset(seed=0)
    message = r"^truncated: .* cuts at step 0; .* give env\.unwrapped, or turn it off"
    with pytest.raises(AssumptionError, match=message):
        world.env.step(0)


# -- tables ----------------------------------------------------------------------------


@pytest.mark.parametrize("on_done", ["reset", "absorb"])
def test_the_table_says_what_the_environment_does(on_done):
    world = lake(on_done=on_done)
    cmdp, env = world.cmdp, world.env
    assert cmdp is not None
    assert cmdp.n_states == 16 + (on_done == "absorb")
    rng = np.random.default_rng(0)
    draws = 1500
    sums = np.zeros((3, cmdp.n_states))
    state, action = 10, 2  # beside two holes
    for _ in range(draws):
        env.reset(seed=int(rng.integers(2**31)))
        env.inner.unwrapped.s = state
        env._state = state
        after, reward, *_, info = env.step(action)
        sums[0, after] += 1
        sums[1, 0] += reward
        sums[2, 0] += info["cost"]
    row = np.zeros(cmdp.n_states)
    successors, chances = cmdp.successors(state, action)
    row[successors] = chances
    # eight standard deviations: fails with probability below 1e-14
    assert np.abs(sums[0] / draws - row).max() < 8 * 0.5 / np.sqrt(draws)
    pair = cmdp.pair(state, action)
    assert abs(sums[1, 0] / draws - cmdp.reward[pair]) < 8 * 0.5 / np.sqrt(draws)
    assert abs(sums[2, 0] / draws - cmdp.cost[0, pair]) < 8 * 0.5 / np.sqrt(draws)


class Turned(gymnasium.ActionWrapper):
    def action(self, action):
        return (action + 2) % 4


class Mirrored(gymnasium.ObservationWrapper):
    def observation(self, observation):
        return 15 - observation


class Limit(gymnasium.wrappers.TimeLimit):
    """More than a time limit, for all anybody knows."""


def frozen_lake(**keywords):
    return gymnasium.make("FrozenLake-v1", **keywords)


@pytest.mark.parametrize(
    ("around", "name"),
    [
        (Turned, "Turned"),
        (Mirrored, "Mirrored"),
        (lambda env: gymnasium.wrappers.TransformReward(env, abs), "TransformReward"),
        (lambda env: gymnasium.wrappers.TimeLimit(Turned(env), 9), "Turned"),
        (lambda env: Limit(env, 5), "Limit"),
    ],
)
def test_a_table_within_a_wrapper_that_may_change_it_is_not_believed(around, name):
    env = around(frozen_lake())
    keywords = {"cost": in_a_hole, "discount": 0.95, "budget": 2.0}
    with pytest.raises(InvalidInputError, match=f"reward_range: .* what {name} makes"):
        from_gymnasium(env, **keywords)
    world = from_gymnasium(env, **keywords, reward_range=(0, 1))
    assert world.cmdp is None
    assert f"its table may not be what {name} makes of it" in repr(world)
    assert world.knowledge.start[15 if name == "Mirrored" else 0] == 1.0


def test_a_table_within_wrappers_that_change_nothing_is_believed():
    env = gymnasium.wrappers.RecordEpisodeStatistics(frozen_lake())
    world = from_gymnasium(env, cost=in_a_hole, discount=0.95, budget=2.0)
    np.testing.assert_array_equal(
        world.cmdp.transition_matrix.toarray(), lake().cmdp.transition_matrix.toarray()
    )
    assert env.episode_count == 0  # nothing was lived on the way


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ((0.5, 1, 0.0, False), None),
        ((1.0, 1, 0.0, True), "action 1 in state 0 led to state 1 and earned 0"),
        ((1.0, 2, 0.0, False), "action 1 in state 0 led to state 1 and earned 0"),
        ((1.0, 1, 1.0, False), "action 1 in state 0 led to state 1 and earned 0"),
    ],
)
def test_a_table_that_is_not_what_the_environment_does_is_not_believed(line, reason):
    env = Walk()
    stay = [[(1.0, s, r, s == 2)] for s, r in enumerate(env.rewards)]
    env.P = [
        [stay[0], [line, (1.0 - line[0], 0, 0.0, False)]],
        [stay[1], stay[2]],
        [stay[2], stay[2]],
    ]
    world = walk(env, cost=lambda s, a, t, info: 0.0)
    assert (world.cmdp is None) == (reason is not None)
    if reason is not None:
        words = f"none, as its table does not hold what it does: {reason}"
        assert world.model_source == words


def test_rewards_below_0_are_shifted_and_shifted_back():
    cliff = from_gymnasium(
        "CliffWalking-v1",
        cost=lambda s, a, t, info: t == 36 and s != 36,
        discount=0.9,
        budget=1.0,
    )
    assert str(cliff.rewards) == "rewards in [-100, 0], seen as reward + 100"
    assert cliff.knowledge.reward_max == 100.0
    assert cliff.cmdp is not None
    best = ep.solve(cliff.cmdp)
    # thirteen steps at -1 each, round and round: -1/(1 - .9)
    assert cliff.raw_value(best.value) == pytest.approx(-10.0, abs=1e-6)
    assert cliff.world.raw_optimum == pytest.approx(-10.0, abs=1e-6)


def test_costs_that_need_info_leave_no_model():
    world = lake(cost=lambda s, a, t, info: 1.0 - info["prob"])
    assert world.cmdp is None
    assert "'prob' of info" in world.model_source
    assert lake(cost="prob").cmdp is None
    with pytest.raises(InvalidInputError, match=r"^cmdp: expected an environment with"):
        _ = world.world


def test_an_agent_is_never_told_the_table():
    world = lake()
    assert not world.knowledge.exact_pairs.any()
    assert not ep.preflight(world.knowledge).promisable
    assert "support" in " ".join(ep.preflight(world.knowledge).mend)


# -- what follows from how it is brought in --------------------------------------------


def test_whole_numbers_between_bounds_are_flattened():
    space = spaces.Box(np.array([-1, 0]), np.array([1, 3]), dtype=np.int32)
    flat = Flattening(space)
    assert flat.n == 12
    for number in range(12):
        assert flat.number(flat.member(number)) == number
        assert space.contains(flat.member(number))
    with pytest.raises(AssumptionError, match=r"^space: expected a member"):
        flat.number(np.array([2, 0]))
    with pytest.raises(AssumptionError, match=r"^space: expected a member"):
        flat.number(np.array([0.0, 0.0]))
    with pytest.raises(InvalidInputError, match="found far more"):
        Flattening(spaces.Box(0, 255, (84, 84), np.uint8))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"supports": 1}, r"^keyword: .*supports= \(did you mean 'support'\?\)"),
        ({"n_states": 3}, r"^keyword: .*n_states="),
        ({"reward_max": 3}, r"^keyword: .*reward_max="),
        ({"cost": lambda s, a: 0.0}, r"^cost: .*four arguments.*found one of \(s, a\)"),
        ({"cost": lambda s, a, r, t, i: 0.0}, r"^cost: expected a function of four"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_one_line(changes, reason):
    with pytest.raises(InvalidInputError, match=reason):
        walk(**changes)


def test_an_environment_by_its_id_is_tried_out_at_once():
    with pytest.raises(
        AssumptionError, match=r"^info\['hole'\]: .* \(keys \['prob'\]\)"
    ):
        lake(cost="hole")
    world = lake(cost="prob")
    with pytest.raises(InvalidInputError, match=r"^env: expected a call of reset"):
        world.env.step(0)


ROWS = np.array([[[1, 0, 0], [0, 1, 0]], [[0, 1, 0], [0, 0, 1]], [[0, 0, 1]] * 2], bool)


@pytest.mark.parametrize("form", [np.array, lambda t: sp.csr_array(t.reshape(6, 3))])
def test_of_its_own_end_the_agent_is_told_everything(form):
    world = walk(
        Walk(say={"cost": 0.0}),
        on_done="absorb",
        support=form(ROWS),
        free=[[True, False], [False, False], [False, False]],
        costs=np.full((3, 2), np.nan),
        state_names=["a", "b", "c"],
        coordinates=[[0.0], [1.0], [2.0]],
        known_states=[True, False, False],
    )
    known = world.knowledge
    assert known.n_states == 4
    end = known.pair(3, 0), known.pair(3, 1)
    for pair in end:
        assert known.exact_pairs[pair]
        assert known.cost_upper[0, pair] == 0.0
        assert known.reward_lower[pair] == known.reward_upper[pair] == 1.0
        assert known.successor[known.row_ptr[pair]] == 3
    for pair in range(6):  # nobody said which steps end, so any may
        assert 3 in known.successor[known.row_ptr[pair] : known.row_ptr[pair + 1]]
    assert known.state_names[3] == "end"
    assert known.known_states.tolist() == [True, False, False, True]
    found = ep.preflight(known)
    assert found.promisable
    agent = ep.E4(known)
    ep.simulate(agent, world.env, steps=60, seed=0)
    assert agent.breaks == []
    bare = ep.preflight(walk(on_done="absorb").knowledge)
    assert 3 not in bare.unpromisable_states


def test_what_is_told_over_all_states_may_hold_the_end():
    table = lake(on_done="absorb").cmdp
    assert table is not None
    told = lake(on_done="absorb", support=table.transition_matrix).knowledge
    np.testing.assert_array_equal(told.successor, table.successor)
    set_ = ep.uncertainty.L1Ball(lake().cmdp, radius=0.1)
    with pytest.raises(InvalidInputError, match=r"^models: .*17 states.*resets='end'"):
        lake(on_done="absorb", models=set_)


def test_costs_that_are_functions_may_be_told():
    table = lake().cmdp
    assert table is not None
    rows = lake(known_costs=True, known_rows=table.transition_matrix).knowledge
    np.testing.assert_allclose(rows.cost_upper, table.cost, atol=1e-15)
    np.testing.assert_array_equal(rows.cost_lower, rows.cost_upper)
    bare = lake(known_costs=True).knowledge  # the largest that the table lets happen
    np.testing.assert_array_equal(bare.cost_upper, np.ceil(table.cost))
    assert not (bare.cost_lower > 0).all()


@pytest.mark.parametrize("on_done", ["reset", "absorb"])
def test_costs_of_ends_that_a_support_does_not_show_are_not_forgotten(on_done):
    rows = np.array([[[1, 0, 0], [0, 1, 0]], [[0, 1, 0], [1, 0, 1]], [[1, 0, 0]] * 2])

    def cost(s, a, t, info):
        return 0.5 * (t == 2) + 0.25 * (t == 1)

    world = walk(
        cost=cost, known_costs=True, support=rows > 0, on_done=on_done, start=0
    )
    upper = world.knowledge.cost_upper[0, :6].reshape(3, 2)
    if on_done == "reset":  # a step to 0 may have been the end of an episode, in 2
        assert upper.tolist() == [[0.5, 0.25], [0.25, 0.5], [0.5, 0.5]]
    else:  # and with an end for good any step may
        assert upper.tolist() == [[0.5, 0.5], [0.5, 0.5], [0.5, 0.5]]
    unsure = walk(cost=cost, known_costs=True, support=rows > 0, start=None)
    assert (unsure.knowledge.cost_upper == 0.5).all()


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"cost": "cost"}, "costs that are functions"),
        ({"cost": lambda s, a, t, info: info["x"]}, "do not look into info.*'x'"),
        ({"cost": lambda *_: 0.0, "costs": np.zeros((3, 2))}, "False beside costs"),
    ],
)
def test_costs_that_cannot_be_told_are_refused(changes, reason):
    with pytest.raises(InvalidInputError, match=rf"^known_costs: expected .*{reason}"):
        walk(known_costs=True, **changes)


# -- life ------------------------------------------------------------------------------


def test_an_agent_lives_in_a_foreign_world():
    table = lake().cmdp
    assert table is not None
    world = lake(
        support=table.transition_matrix,
        costs=_costs(table),
        known_rows=_rows(table, table.cost[0] == 0.0),
    )
    agent = ep.E4(world.knowledge)
    trace = ep.simulate(agent, world.env, steps=300, seed=1)
    assert agent.breaks == []
    assert (trace.promise >= trace.reserved).all()
    again = ep.simulate(ep.E4(world.knowledge), world.make_env(), steps=300, seed=1)
    np.testing.assert_array_equal(trace.states, again.states)


def test_gymnasium_finds_nothing_wrong():
    check_env(lake().env, skip_render_check=True)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"on_done": "stop"}, "on_done"),
        ({"env": 3}, "env"),
        ({"env": Walk(), "reward_range": (1.0, -1.0)}, "reward_range"),
        ({"env": Walk(), "reward_range": None}, "reward_range"),
        ({"env": Walk(space=spaces.Box(0, 1))}, "observation"),
        ({"env": Walk(), "cost_max": [1.0, 1.0]}, "cost_max"),
        ({"env": Walk(), "cost": []}, "cost"),
    ],
)
def test_what_is_wrong_is_named(changes, named):
    with pytest.raises(InvalidInputError, match=f"^{named}: expected"):
        walk(**{"env": Walk(), **changes})


def _costs(cmdp):
    table = np.zeros((1, 16, 4))
    table[0, cmdp.pair_state, cmdp.pair_action] = cmdp.cost[0]
    return table


def _rows(cmdp, chosen):
    rows = cmdp.transition_matrix.toarray()
    rows[~chosen] = 0.0
    return rows
