"""Cells of continuous worlds, and sets that hold what the cutting leaves open."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import escapade as ep
from escapade.environments import Discretizer, from_gymnasium
from escapade.errors import AssumptionError, InvalidInputError

SHRINK, NOISE = 0.8, 0.02


class Slide(gymnasium.Env):
    """A point on a line that is drawn to the middle, and pushed; the ends cost."""

    metadata = {"render_modes": []}  # noqa: RUF012

    def __init__(self, actions=None):
        self.observation_space = spaces.Box(-1.0, 1.0, (1,), np.float64)
        self.action_space = actions or spaces.Box(-0.3, 0.3, (1,), np.float64)
        self.x = np.zeros(1)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x = np.zeros(1)
        return self.x.copy(), {}

    def step(self, action):
        noise = self.np_random.uniform(-NOISE, NOISE, 1)
        self.x = np.clip(mean_next(self.x, action) + noise, -1.0, 1.0)
        cost = float(abs(self.x[0]) > 0.8)
        return self.x.copy(), float(self.x[0]), False, False, {"cost": cost}


def mean_next(x, action):
    return SHRINK * x + action


def cut(**changes):
    keywords = {"bins": 10, "actions": 3, "outside": "edge", **changes}
    return Discretizer(Slide(), **keywords)


def test_every_cell_holds_its_middle():
    cells = Discretizer(gymnasium.make("Pendulum-v1"), bins=(3, 4, 5), actions=[[0.0]])
    assert cells.n_cells == 60
    for cell in range(cells.n_cells):
        assert cells.cell(cells.middle(cell)) == cell
    state, _ = cells.reset(seed=3)
    assert cells.observation_space.contains(state)
    assert isinstance(cells.step(0)[0], int)


def test_points_beyond_count_to_the_edge_or_stop():
    space = cut()
    assert space.cell([5.0]) == 9
    assert space.cell([1.0]) == 9
    strict = cut(outside="error")
    with pytest.raises(AssumptionError, match=r"^observation: .*found 5 on axis 0"):
        strict.cell([5.0])
    for bad in ([np.nan], [0.0, 1.0]):
        with pytest.raises(AssumptionError, match=r"^observation: expected 1 finite"):
            space.cell(bad)


def test_a_lipschitz_constant_holds_every_step():
    cells = cut()
    found = cells.from_lipschitz(mean_next, lipschitz=SHRINK, noise=NOISE)
    assert "0.8 times the distance" in found.assumes
    assert "beyond the cells" in found.assumes
    possible = found.support.toarray() > 0
    rng = np.random.default_rng(0)
    state, _ = cells.reset(seed=1)
    for _ in range(3_000):
        cells.env.x = rng.uniform(-1.0, 1.0, 1)
        state, action = cells.cell(cells.env.x), int(rng.integers(3))
        assert possible[state * 3 + action, cells.step(action)[0]]
    # and not everything is possible
    assert possible.mean() < 0.5
    cells.check(found)
    # a simulator of another plant misses steps that happen
    wrong = cells.from_lipschitz(lambda x, action: SHRINK * x, lipschitz=SHRINK)
    with pytest.raises(AssumptionError, match=r"^step \d+: expected a cell that is po"):
        cells.check(wrong)


def walled(x, action):
    """Moves on, but for a wall that stops everything at .5."""
    return mean_next(x, action) if x[0] < 0.5 else np.zeros(1)


@pytest.mark.parametrize(
    ("simulate", "lipschitz", "place"),
    [
        (mean_next, 0.7, r"found 0.0799.* at \[-0.8\] in cell 0, action 0$"),
        (walled, SHRINK, r"in cell 7, action 2$"),
        (mean_next, [[0.7]], "in cell 0, action 0$"),
    ],
)
def test_a_constant_that_points_of_a_cell_break_is_refused(simulate, lipschitz, place):
    cells = cut(low=-0.95 if simulate is walled else None)
    with pytest.raises(InvalidInputError, match=rf"^lipschitz: .*{place}"):
        cells.from_lipschitz(simulate, lipschitz=lipschitz, noise=NOISE)


class Drift(gymnasium.Env):
    """A place and a speed, in other scales; the speed moves the place."""

    def __init__(self, whole=False):
        low, high = np.array([0.0, -0.01]), np.array([10.0, 0.01])
        self.observation_space = spaces.Box(low, high, dtype=np.float64)
        if whole:
            self.observation_space = spaces.Box(0, 3, (2,), np.int64)
        self.action_space = spaces.Discrete(2)


def drifted(x, action):
    return np.array([x[0] + x[1], 0.5 * x[1] + (0.002 if action else -0.002)])


def test_a_constant_for_each_pair_of_coordinates_is_tighter_where_scales_differ():
    cells = Discretizer(Drift(), bins=(10, 10))
    loose = cells.from_lipschitz(drifted, lipschitz=[2.0, 0.5])
    tight = cells.from_lipschitz(drifted, lipschitz=[[1.0, 1.0], [0.0, 0.5]])
    assert "((1, 1), (0, 0.5)) times the distances within a cell" in tight.assumes
    assert ((tight.support > 0) > (loose.support > 0)).nnz == 0
    assert tight.support.nnz < 0.3 * loose.support.nnz
    rng = np.random.default_rng(3)
    rows = tight.support.toarray() > 0
    for _ in range(500):
        point, action = rng.uniform(cells.low, cells.high), int(rng.integers(2))
        after = cells.cell(drifted(point, action))
        assert rows[2 * cells.cell(point) + action, after]


def test_whole_numbers_are_alone_in_their_cells():
    cells = Discretizer(Drift(whole=True), bins=4, low=-0.5, high=3.5)

    def hop(x, action):
        return np.clip(np.rint(x) + np.eye(2)[0] * action, 0, 3)

    found = cells.from_lipschitz(hop, lipschitz=0.0, one_law=True)
    assert found.support.nnz == 32
    assert found.told()["support"] is found.support
    assert "varying" not in found.told()


def test_frequencies_of_cells_narrow_nothing_unless_somebody_vouches_for_one_law():
    cells = cut()
    how = {"lipschitz": SHRINK, "noise": NOISE}
    bare = cells.from_lipschitz(mean_next, **how)
    vouched = cells.from_lipschitz(mean_next, **how, one_law=True)
    assert vouched.assumes == (
        bare.assumes + "; steps from a cell have one law, wherever in it one stands"
    )
    narrowed = []
    for found in (bare, vouched):
        world = from_gymnasium(
            cells, cost="cost", discount=0.9, budget=3.0, reward_range=(-1.0, 1.0),
            start=cells.cell([0.0]), cost_bounds=_bounds(cells), **found.told(),
        )  # fmt: skip
        agent = ep.E4(world.knowledge)
        ep.simulate(agent, world.env, steps=1_500, seed=2)
        assert agent.breaks == []
        held = agent.belief.confidence
        narrowed.append((held.upper < world.knowledge.upper).any())
        assert (agent.belief.failure_probability == 0.0) == (found is bare)
    assert narrowed == [False, True]


def test_the_set_from_samples_holds_the_laws_of_all_parts():
    cells = cut(bins=5)
    rng = np.random.default_rng(4)

    def draw(x, action):
        return np.clip(mean_next(x, action) + rng.uniform(-NOISE, NOISE, 1), -1, 1)

    found = cells.from_samples(draw, samples=400, parts=4, delta=0.01, seed=2)
    sets = found.models
    assert "off by more than" in found.assumes
    rows = found.support.toarray()
    # the law of points spread over a part, by many more draws; the intervals are as
    # wide as .11 or more, and such means are off by .02 with probability below 1e-14
    for cell, action in ((0, 0), (2, 1), (4, 2)):
        pair = cell * 3 + action
        entries = slice(sets.row_ptr[pair], sets.row_ptr[pair + 1])
        base = cells.middle(cell) - 0.5 * cells.widths
        for part in range(4):
            points = base + (rng.random((20_000, 1)) + part) * cells.widths / 4
            after = np.array(
                [cells.cell(draw(x, cells.choices[action])) for x in points]
            )
            share = np.bincount(after, minlength=5) / after.size
            assert (rows[pair][share > 0] > 0).all()
            law = share[sets.successor[entries]]
            assert (law >= sets.lower[entries] - 0.02).all()
            assert (law <= sets.upper[entries] + 0.02).all()


def test_an_agent_lives_on_the_cells():
    cells = cut()
    found = cells.from_lipschitz(mean_next, lipschitz=SHRINK, noise=NOISE)
    world = from_gymnasium(
        cells,
        cost="cost",
        discount=0.9,
        budget=3.0,
        reward_range=(-1.0, 1.0),
        start=cells.cell([0.0]),
        cost_bounds=_bounds(cells),
        **found.told(),
    )
    found = ep.preflight(world.knowledge)
    assert found.promisable, found.mend
    agent = ep.E4(world.knowledge)
    trace = ep.simulate(agent, world.env, steps=400, seed=2)
    assert agent.breaks == []
    assert (trace.reserved <= trace.promise).all()
    assert len(np.unique(trace.states)) > 2


def test_episodes_begin_where_they_are_said_to():
    cells = cut()
    found = cells.from_lipschitz(mean_next, lipschitz=SHRINK, resets=[5])
    assert (found.support.toarray()[:, 5] > 0).all()


def test_an_end_for_good_is_one_more_state():
    cells = cut(bins=5)
    rng = np.random.default_rng(7)

    def draw(x, action):
        return mean_next(x, action) + rng.uniform(-NOISE, NOISE, 1)

    def fell(x):
        return abs(x[0]) > 0.8

    sure = cells.from_lipschitz(mean_next, lipschitz=SHRINK, noise=NOISE, resets="end")
    likely = cells.from_samples(draw, samples=200, seed=3, resets="end", ended=fell)
    for found in (sure, likely):
        assert found.support.shape == (18, 6)
        np.testing.assert_array_equal(
            found.support.toarray()[15:], np.eye(6)[[5, 5, 5]]
        )
        assert found.assumes.endswith(", for good")
        world = from_gymnasium(
            cells, cost="cost", on_done="absorb", discount=0.9, budget=3.0,
            reward_range=(-1.0, 1.0), start=2, **found.told(),
        )  # fmt: skip
        assert world.knowledge.exact_pairs[15:].all()
    assert (sure.support.toarray()[:, 5] > 0).all()
    ending = likely.support.toarray()[:, 5] > 0
    assert ending[4 * 3 + 2]
    assert not ending[2 * 3 + 1]
    with pytest.raises(InvalidInputError, match="resets: expected cells, or 'end'"):
        cells.from_lipschitz(mean_next, lipschitz=SHRINK, resets="ends")


def test_ends_that_are_told_count_for_the_cell_where_the_next_episode_begins():
    cells = cut(bins=5)
    rng = np.random.default_rng(7)

    def draw(x, action):
        return mean_next(x, action) + rng.uniform(-NOISE, NOISE, 1)

    def fell(x):
        return abs(x[0]) > 0.8

    def sampled(**how):
        return cells.from_samples(draw, samples=200, parts=2, seed=3, **how)

    told = sampled(resets=[2], ended=fell)
    assert "episodes end as told, and the next begins in cell 2" in told.assumes
    # pushed to the right from the rightmost cell, nearly every point is beyond .8
    pair = 4 * 3 + 2
    entries = slice(told.models.row_ptr[pair], told.models.row_ptr[pair + 1])
    lower = dict(
        zip(told.models.successor[entries], told.models.lower[entries], strict=True)
    )
    assert lower[2] > 0.5
    # the middle never ends: the same interval as without ends
    pair, plain = 2 * 3 + 1, sampled().models
    for name in ("lower", "upper", "successor"):
        mine, theirs = (
            getattr(sets, name)[sets.row_ptr[pair] : sets.row_ptr[pair + 1]]
            for sets in (told.models, plain)
        )
        np.testing.assert_allclose(mine, theirs, atol=0.05)

    # of two cells nobody knows which: each may take all of it, or nothing
    two = sampled(resets=[1, 2], ended=fell).models
    pair = 4 * 3 + 2
    entries = slice(two.row_ptr[pair], two.row_ptr[pair + 1])
    among = np.isin(two.successor[entries], [1, 2])
    assert (two.lower[entries][among] == 0.0).all()
    assert (two.upper[entries][among] > 0.8).all()

    # and if nobody says what ends, any step may
    anywhere = sampled(resets=[2])
    assert "any step may end an episode" in anywhere.assumes
    assert (anywhere.support.toarray()[:, 2] > 0).all()
    assert (anywhere.models.lower == 0.0).all()
    assert (anywhere.models.upper[anywhere.models.successor == 2] == 1.0).all()

    with pytest.raises(InvalidInputError, match=r"^resets: expected some cells"):
        sampled(ended=fell)


def test_a_set_with_ends_holds_the_law_of_the_cells():
    """Hoeffding's intervals miss an entry with probability .01 in all at most."""
    cells = cut(bins=4)
    rng = np.random.default_rng(11)

    def draw(x, action):
        return mean_next(x, action) + rng.uniform(-NOISE, NOISE, 1)

    def fell(x):
        return x[0] > 0.7

    sets = cells.from_samples(
        draw, samples=300, parts=1, seed=5, resets=[0], ended=fell
    ).models
    for cell, action in np.ndindex(4, 3):
        pair = cell * 3 + action
        entries = slice(sets.row_ptr[pair], sets.row_ptr[pair + 1])
        base = cells.middle(cell) - 0.5 * cells.widths
        after = [
            draw(x, cells.choices[action])
            for x in base + rng.random((4_000, 1)) * cells.widths
        ]
        places = [0 if fell(x) else cells.cell(x) for x in after]
        law = np.bincount(places, minlength=4)[sets.successor[entries]] / len(places)
        # means over 4,000 are off by .05 with probability below 1e-8
        assert (law >= sets.lower[entries] - 0.05).all()
        assert (law <= sets.upper[entries] + 0.05).all()


def _bounds(cells):
    """Where a step cannot end near an end, it costs nothing."""
    bounds = np.ones((cells.n_cells, 3))
    for cell in range(cells.n_cells):
        for k, action in enumerate(cells.choices):
            reach = 0.5 * SHRINK * cells.widths[0] + NOISE
            farthest = abs(mean_next(cells.middle(cell), action)[0]) + reach
            bounds[cell, k] = float(farthest > 0.8)
    return bounds


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (
            lambda: Discretizer(gymnasium.make("FrozenLake-v1"), bins=2),
            "observation_sp",
        ),
        (lambda: Discretizer(gymnasium.make("CartPole-v1"), bins=2), "low"),
        (lambda: cut(bins=0), "bins"),
        (lambda: cut(bins=[2, 2]), "bins"),
        (lambda: cut(bins=2_000_000), "bins"),
        (lambda: cut(low=1.0, high=0.0), "high"),
        (lambda: cut(outside="wrap"), "outside"),
        (lambda: cut(actions=None), "actions"),
        (lambda: cut(actions=[[7.0]]), "actions"),
        (lambda: cut(actions=[0.0]), "actions"),
        (lambda: Discretizer(Slide(spaces.Discrete(2)), bins=2, actions=3), "actions"),
        (lambda: Discretizer(Slide(spaces.MultiBinary(2)), bins=2), "action_space"),
        (lambda: cut().from_lipschitz(mean_next, lipschitz=-1.0), "lipschitz"),
        (lambda: cut().from_lipschitz(mean_next, lipschitz=[1, 1]), "lipschitz"),
        (lambda: cut().from_lipschitz(lambda x, a: np.nan, lipschitz=1.0), "simulate"),
        (
            lambda: cut(outside="error").from_lipschitz(mean_next, lipschitz=9.0),
            "outside",
        ),
        (
            lambda: cut().from_lipschitz(mean_next, lipschitz=1.0, resets=[10]),
            "resets",
        ),
        (
            lambda: cut().from_samples(mean_next, samples=1, resets=[-1]),
            "resets",
        ),
        (lambda: cut(bins=2**40), "bins"),
        (lambda: cut(actions=10**30), "actions"),
        (lambda: cut().from_samples(mean_next, samples=0), "samples"),
        (lambda: cut().from_samples(mean_next, samples=1, delta=0.0), "delta"),
    ],
)
def test_what_is_wrong_is_named(make, named):
    with pytest.raises(InvalidInputError, match=f"^{named}"):
        make()
