"""Example 2 against a reading of its rules, cell by cell."""

from __future__ import annotations

import numpy as np
import pytest

import escapade as ep
from escapade.errors import InvalidInputError

wall_cycle, toll_cycle = ep.environments.wall_cycle, ep.environments.toll_cycle

MOVES = {"north": (0, 1), "west": (-1, 0), "south": (0, -1), "east": (1, 0)}


def by_the_rules(size, failure, toll=0.0):
    """Return P, R, C and the joint law of (next state, cost 1), from the text."""
    cells = [(x, y) for y in range(1, size + 1) for x in range(1, size + 1)]
    number = {cell: (cell[1] - 1) * size + cell[0] - 1 for cell in cells}
    ring = [(x, 1) for x in range(1, size)]
    ring += [(size, y) for y in range(1, size)]
    ring += [(x, size) for x in range(size, 1, -1)]
    ring += [(1, y) for y in range(size, 1, -1)]
    onward = dict(zip(ring, [*ring[1:], ring[0]], strict=True))
    n = size * size
    P, joint = np.zeros((n, 5, n)), np.zeros((n, 5, n))
    R, C = np.zeros((n, 5)), np.zeros((n, 5))
    for x, y in cells:
        s = number[x, y]
        P[s, 4, s] = 1.0
        for a, (dx, dy) in enumerate(MOVES.values()):
            meant = (x + dx, y + dy)
            hit = meant not in number
            g = (x, y) if hit else meant
            P[s, a, number[g]] += 1.0 - failure
            near = [c for c in cells if (c[0] - g[0]) ** 2 + (c[1] - g[1]) ** 2 <= 4]
            for cell in near:
                P[s, a, number[cell]] += failure / len(near)
            if hit:
                C[s, a] = P[s, a, number[g]] if toll else 1.0 - failure
                joint[s, a, number[g]] = C[s, a]
            elif onward.get((x, y)) == meant:
                R[s, a] = 1.0
                C[s, a] = toll
                joint[s, a] = toll * P[s, a]
    return P, R, C, joint


def dense(cmdp):
    return cmdp.transition_matrix.toarray().reshape(
        cmdp.n_states, cmdp.n_actions, cmdp.n_states
    )


@pytest.mark.parametrize("size", [2, 3, 4, 6])
@pytest.mark.parametrize("failure", [0.0, 0.05, 0.5])
@pytest.mark.parametrize("toll", [0.0, 0.15])
def test_the_world_follows_the_rules(size, failure, toll):
    if toll:
        world = toll_cycle(size, toll=toll, failure=failure)
    else:
        world = wall_cycle(size, failure=failure)
    P, R, C, joint = by_the_rules(size, failure, toll)
    cmdp = world.cmdp
    np.testing.assert_allclose(dense(cmdp), P, atol=1e-15)
    np.testing.assert_array_equal(cmdp.reward.reshape(R.shape), R)
    np.testing.assert_allclose(cmdp.cost.reshape(C.shape), C, atol=1e-15)
    # the joint law of where a step ends and whether it is charged
    charged = cmdp.transition_matrix
    charged.data = charged.data * world.cost_given_next[0]
    np.testing.assert_allclose(charged.toarray().reshape(P.shape), joint, atol=1e-15)


def test_the_numbers_of_the_paper():
    cmdp = wall_cycle().cmdp
    assert (cmdp.n_states, cmdp.n_actions, cmdp.discount) == (100, 5, 0.99)
    assert cmdp.start[0] == 1.0
    assert cmdp.coordinates[[0, 9, 10]].tolist() == [[1, 1], [10, 1], [1, 2]]
    assert cmdp.action_names == ("north", "west", "south", "east", "stay")
    assert (cmdp.reward_max, cmdp.cost_max.tolist()) == (1.0, [1.0])
    # of the 13 cells around an inner one, the corner keeps 6
    inner = cmdp.transition_matrix[[cmdp.pair(44, 3)]]
    assert inner.nnz == 13
    assert inner.max() == pytest.approx(0.95 + 0.05 / 13)
    assert cmdp.successors(0, 1)[1].tolist() == pytest.approx(
        [0.95 + 0.05 / 6, *[0.05 / 6] * 5]
    )


def test_the_optimum_is_stated_for_the_numbers_of_the_paper_alone():
    assert wall_cycle().known_optimum is not None
    for world in (wall_cycle(9), wall_cycle(failure=0.1), wall_cycle(discount=0.9)):
        assert world.known_optimum is None
    assert wall_cycle(budget=0.0).known_optimum == wall_cycle().known_optimum
    assert toll_cycle(4, toll=0.2).known_optimum is None
    assert toll_cycle(4, budget=9.0).known_optimum is None


@pytest.mark.parametrize(
    ("build", "keywords", "message"),
    [
        (wall_cycle, {"size": 1}, "size: expected a whole number of at least 2"),
        (wall_cycle, {"size": 3.5}, "size: expected a whole number"),
        (wall_cycle, {"failure": 1.0}, r"failure: expected a number in \[0, 1\)"),
        (wall_cycle, {"discount": 1.0}, "discount"),
        (toll_cycle, {"toll": 0.0}, r"toll: expected a number in \(0, 1\], found 0"),
        (toll_cycle, {"budget": -1.0}, "budget"),
    ],
)
def test_what_is_refused(build, keywords, message):
    with pytest.raises(InvalidInputError, match=message):
        build(**keywords)
