"""Pictures: where a state stands, what marks it, and how large it gets."""

from __future__ import annotations

import numpy as np
import pytest

import escapade as ep
from escapade.environments.rendering import Board, draw_pixels, draw_text


def corridor(n, coordinates=None, cost=0.0, reward=0.0):
    """Return a model of n states with one action that stays."""
    return ep.CMDP(
        np.eye(n)[:, np.newaxis, :],
        np.full((n, 1), reward),
        np.full((n, 1), cost),
        discount=0.9,
        budget=1.0,
        coordinates=coordinates,
    )


def test_a_field_as_text():
    board = Board.of(ep.environments.wall_cycle(4).cmdp)
    assert draw_text(board, 5).splitlines() == [
        "+ + + +",
        "+ . . +",
        "+ @ . +",
        "+ + + +",
    ]


def test_costs_hide_rewards_and_gaps_stay_empty():
    world = ep.environments.wandering_gamble()
    lines = draw_text(Board.of(world.cmdp), world.state("u0")).splitlines()
    assert len(lines) == 3
    assert lines[0].split() == ["x"] * 10  # the bad chain, above
    assert lines[1].split() == ["@", "x", "x", "x", "x", "."]  # the path and K
    assert lines[2].split() == ["x"] * 5  # G and the good chain, below


def test_states_without_places_fill_a_square():
    assert draw_text(Board.of(corridor(7)), 6) == ". . .\n. . .\n@"
    assert draw_text(Board.of(corridor(2, reward=1.0)), 0) == "@ +"


def test_states_on_a_line_stand_in_a_row():
    places = np.array([[3.0], [1.0], [2.0]])
    assert draw_text(Board.of(corridor(3, places)), 0) == ". . @"


def test_pixels():
    colours = {
        "agent": (0, 114, 178),
        "costly": (213, 94, 0),
        "rewarded": (0, 158, 115),
        "plain": (224, 224, 224),
    }
    image = draw_pixels(Board.of(ep.environments.wall_cycle(4).cmdp), 5)
    assert (image.shape, image.dtype) == ((128, 128, 3), np.uint8)
    cells = image.reshape(4, 32, 4, 32, 3)
    assert tuple(cells[2, 16, 1, 16]) == colours["agent"]
    assert tuple(cells[2, 3, 1, 3]) == colours["plain"]  # its corner
    assert tuple(cells[0, 16, 0, 16]) == colours["rewarded"]
    assert tuple(cells[1, 16, 2, 16]) == colours["plain"]
    hot = draw_pixels(Board.of(corridor(4, cost=1.0)), 0)
    assert tuple(hot[-1, -1]) == colours["costly"]


@pytest.mark.parametrize("n", [300, 70_000])
def test_a_board_of_any_size_is_a_picture_of_bounded_size(n):
    board = Board.of(
        corridor(n, np.arange(float(n))[:, np.newaxis]) if n < 1000 else _large(n)
    )
    assert max(board.height, board.width) <= 256
    image = draw_pixels(board, n - 1)
    assert max(image.shape) <= 512
    assert "@" in draw_text(board, n - 1)


def _large(n):
    import scipy.sparse as sp

    return ep.CMDP(
        [sp.eye_array(n)], np.zeros((n, 1)), np.zeros((n, 1)), discount=0.9, budget=0
    )
