"""Example 2 of the paper: walls at unknown places, opposite ones at least 5 apart."""

from __future__ import annotations

import numpy as np
import pytest

import escapade as ep
from escapade.model.layout import Pairs
from escapade.uncertainty import unknown_walls

NORTH, WEST, SOUTH, EAST, STAY = range(5)
MOVES = [(0, 1), (-1, 0), (0, -1), (1, 0), (0, 0)]
SIZE = 10


@pytest.fixture(scope="module")
def world():
    return ep.environments.wall_cycle(SIZE)


@pytest.fixture(scope="module")
def at_birth(world):
    """What the agent of Example 2 knows: north and east walls at unknown places."""
    walls = unknown_walls(world.cmdp, MOVES, apart=5, error=0.01)
    x, y = world.cmdp.coordinates.T
    walls = walls.establish("south", y == 1).establish("west", x == 1)
    return walls.rule_out("south", y > 1).rule_out("west", x > 1)


def cell(x: int, y: int) -> int:
    return (y - 1) * SIZE + x - 1


def beside(sets, cmdp) -> np.ndarray:
    """Return the kernel of a problem on the entries of a set that holds them."""
    matrix = cmdp.transition_matrix.toarray()
    pair = np.repeat(np.arange(sets.n_pairs), np.diff(sets.row_ptr))
    return matrix[pair, sets.successor]


def lived(sets, cmdp, visits, rng):
    """Return counts and sums of costs after ``visits`` of each pair, ``[pairs]``."""
    kernel = beside(sets, cmdp)
    counts = np.zeros(kernel.size)
    for pair in range(sets.n_pairs):
        row = slice(sets.row_ptr[pair], sets.row_ptr[pair + 1])
        counts[row] = rng.multinomial(visits[pair], kernel[row])
    return counts, rng.binomial(visits, cmdp.cost[0]).astype(float)


def test_the_truth_is_among_what_is_possible(world, at_birth):
    assert at_birth.contains(beside(at_birth, world.cmdp)).all()
    low, high = at_birth.cost_bounds()
    assert (low <= world.cmdp.cost[0]).all()
    assert (world.cmdp.cost[0] <= high).all()


def test_staying_may_cost_where_it_is_not_known_to_be_free(world):
    x, y = world.cmdp.coordinates.T
    known = np.repeat(((y == 1) & (x <= 9))[:, None], 5, axis=1)
    walls = unknown_walls(
        world.cmdp, MOVES, apart=5, stay_cost=(0.0, np.where(known, 0.0, 1.0))
    )
    walls = walls.establish("south", y == 1).rule_out("south", y > 1)
    walls = walls.establish("west", x == 1).rule_out("west", x > 1)
    low, high = (bound.reshape(100, 5) for bound in walls.cost_bounds())
    np.testing.assert_array_equal(high[:, STAY], np.where(known[:, STAY], 0.0, 1.0))
    assert not low[:, STAY].any()
    # then the way back from the corner is to (9, 1), and to stay there
    plan = ep.fallback(world.cmdp, walls, cost=np.ones((1, walls.n_pairs)))
    actions = plan.policy.probabilities.argmax(axis=1)
    assert actions[cell(10, 1)] == WEST
    assert actions[cell(9, 1)] == STAY
    assert plan.cost_to_go[0, cell(9, 1)] == pytest.approx(0.0, abs=1e-9)
    assert 0.1 < plan.cost_to_go[0, cell(10, 1)] < 1.0


def test_walls_may_stand_only_five_steps_from_the_opposite_wall(at_birth):
    for x in range(1, 11):
        found = at_birth.active_at(cell(x, 3))
        assert ("east" in found[EAST]) == (x >= 6)
        assert ("free" in found[EAST]) == (x <= 9)
        assert found[WEST] == (("free",) if x > 1 else ("west",))
        assert found[STAY] == ("free",)
    # where no wall is known but the ends of the world, one may stand inside
    bare = unknown_walls(ep.environments.wall_cycle(SIZE).cmdp, MOVES, apart=5)
    assert bare.active_at(cell(6, 3))[WEST] == ("free",)
    assert bare.active_at(cell(5, 3))[WEST] == ("free", "west")


def test_at_the_corner_the_south_and_east_bounds_are_active(world, at_birth):
    """Known by 2,000 samples a pair: the cells (1, 1) to (9, 1)."""
    rng = np.random.default_rng(0)
    x, y = world.cmdp.coordinates.T
    known = (y == 1) & (x <= 9)
    visits = np.where(known[world.cmdp.pair_state], 2_000, 0)
    counts, costs = lived(at_birth, world.cmdp, visits, rng)
    walls = at_birth.observe(counts, costs=costs)

    corner = cell(10, 1)
    found = walls.active_at(corner)
    assert found == {
        NORTH: ("free",),
        WEST: ("free",),
        SOUTH: ("south",),
        EAST: ("east",),
        STAY: ("free",),
    }
    bounds = {name for names in found.values() for name in names} - {"free"}
    assert bounds == {"south", "east"}
    # `east` hits with probability 1 in the worst case, moves into the open with .1
    _, most = walls.cost_bounds()
    pairs = walls.row_ptr.size // (SIZE * SIZE)
    np.testing.assert_allclose(
        most.reshape(-1, pairs)[corner], [0.1, 0.1, 1.0, 1.0, 0.0]
    )
    # and the worst of hitting and of where that leads is one and the same model's
    value = np.zeros(SIZE * SIZE)
    value[cell(9, 1)] = 10.0
    charged, gain = walls.charged(np.ones((1, walls.n_pairs)), np.ones(1), 0.99)
    together = charged.backup(value, gain, 0.99).reshape(-1, pairs)[corner]
    hit = 1.0 + 0.99 * 0.1 * 10.0  # a miss may cost as much, and end at (9, 1)
    np.testing.assert_allclose(together[EAST], hit)
    np.testing.assert_allclose(together[STAY], 0.0)


def test_late_in_life_only_the_north_bound_is_left_at_the_north(world, at_birth):
    """Everything is known but the last row: its models are those of its bound."""
    rng = np.random.default_rng(1)
    _, y = world.cmdp.coordinates.T
    visits = np.where((y < SIZE)[world.cmdp.pair_state], 30, 0)
    walls = at_birth.observe(lived(at_birth, world.cmdp, visits, rng)[0])
    for x in range(1, SIZE + 1):
        assert walls.active_at(cell(x, SIZE))[NORTH] == ("north",)
        for row in range(1, SIZE):
            assert walls.active_at(cell(x, row))[NORTH] == ("free",)
    bound = walls.active_at(cell(5, SIZE))
    assert {n for names in bound.values() for n in names} - {"free"} == {"north"}
    assert walls.contains(beside(walls, world.cmdp)).all()


def test_a_life_never_rules_out_the_truth_and_ends_with_it_alone(world, at_birth):
    rng = np.random.default_rng(2)
    walls = at_birth
    truth = np.where(world.cmdp.cost[0] > 0.0, "", "free")
    counts, costs = np.zeros(walls.successor.size), np.zeros(walls.n_pairs)
    for _ in range(15):
        more, paid = lived(walls, world.cmdp, np.ones(walls.n_pairs, dtype=int), rng)
        counts, costs = counts + more, costs + paid
        smaller = walls.observe(counts, costs=costs)
        assert not (smaller.left & ~walls.left).any()
        assert smaller.contains(beside(smaller, world.cmdp)).all()
        walls = smaller
    assert (walls.left.sum(axis=(1, 2)) == 1).all()
    for pair in np.flatnonzero(truth == "free"):
        state, action = world.cmdp.pair_state[pair], world.cmdp.pair_action[pair]
        assert walls.active_at(int(state))[int(action)] == ("free",)


def test_hitting_a_straight_wall_once_tells_where_all_of_it_is():
    """A field of 9 by 9 cells in which a wall stands behind row 7."""
    size, behind = 9, 7
    pairs = Pairs.from_mask(np.ones((size * size, 5), dtype=bool))
    x, y = np.arange(size * size) % size + 1, np.arange(size * size) // size + 1
    given = {
        "coordinates": np.stack([x, y], axis=1),
        "names": ["north", "west", "south", "east", "stay"],
        "apart": 5,
        "error": 0.01,
        "cost_max": 1.0,
    }
    straight = unknown_walls(pairs, MOVES, straight=True, **given)
    apart = unknown_walls(pairs, MOVES, **given)
    start = [s.establish("south", y == 1) for s in (straight, apart)]
    hits = np.zeros(straight.successor.size)
    pair = 5 * ((behind - 1) * size + 3) + NORTH
    row = slice(straight.row_ptr[pair], straight.row_ptr[pair + 1])
    hits[row][straight.successor[row] == pair // 5] = 5
    costs = np.zeros(straight.n_pairs)
    costs[pair] = 5
    found = [s.observe(hits, costs=costs, pairs=[pair]) for s in start]
    for column in range(1, size + 1):
        state = (behind - 1) * size + column - 1
        assert found[0].active_at(state)[NORTH] == ("north",)
        only = found[1].active_at(state)[NORTH]
        assert only == (("north",) if column == 4 else ("free", "north"))
    # five apart: no wall to the south of it within four steps
    below = int((behind - 1 - 4) * size + 3)
    assert found[0].active_at(below)[SOUTH] == ("free",)
    assert found[1].active_at(below)[SOUTH] == ("free",)


def test_pairs_that_do_not_exist_are_passed_over():
    mask = np.ones((4, 4), dtype=bool)
    mask[2, 3] = mask[0, 0] = False
    line = np.arange(4.0)[:, None]
    walls = unknown_walls(
        Pairs.from_mask(mask),
        [[1.0], [-1.0], [0.0], [2.0]],
        coordinates=line,
        names=["right", "left", "stay", "leap"],
        apart=2,
        straight=True,
        law="uniform",
        reach=1.0,
        cost_max=1.0,
    )
    assert walls.active_at(0) == {
        1: ("left",),
        2: ("free",),
        3: ("free", "leap"),
    }
    assert walls.active_at(1)[0] == ("free",)  # the wall at the left end is too near
    assert walls.active_at(2)[0] == ("free", "right")
    assert walls.active_at(3)[3] == ("leap",)
    assert walls.contains(walls.sample(np.random.default_rng(0))).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"moves": MOVES[:4]}, r"moves: expected shape \(5, 2\), found shape \(4, 2\)"),
        ({"apart": -1}, "apart: expected a whole number of at least 0"),
        ({"names": ["free", "b", "c", "d", "e"]}, "names other than that of the model"),
        (
            {"coordinates": np.zeros((3, 2))},
            r"coordinates: expected shape \(100, dim\)",
        ),
    ],
)
def test_fields_that_make_no_sense_are_refused(world, change, message):
    given = {"moves": MOVES} | change
    with pytest.raises(ep.errors.InvalidInputError, match=message):
        unknown_walls(world.cmdp, **given)


def test_places_and_names_are_needed():
    pairs = Pairs.from_mask(np.ones((4, 2), dtype=bool))
    refused = ep.errors.InvalidInputError
    with pytest.raises(refused, match="coordinates: expected a place for each state"):
        unknown_walls(pairs, [[1.0], [0.0]])
    with pytest.raises(refused, match="names: expected a name for each action"):
        unknown_walls(pairs, [[1.0], [0.0]], coordinates=np.arange(4.0)[:, None])
