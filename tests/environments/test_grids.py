"""Moves on a grid against walking on it cell by cell."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from escapade.environments.grids import EAST, NORTH, SOUTH, WEST, Grid, stack_rows

grids = st.builds(Grid, st.integers(1, 6), st.integers(1, 6))


@given(grids, st.integers(-3, 3), st.integers(-3, 3))
def test_a_shift_leads_where_it_says_or_nowhere(grid, dx, dy):
    cells = np.arange(grid.size)
    shifted, inside = grid.shifted(cells, dx, dy)
    for cell in cells:
        x, y = grid.x[cell] + dx, grid.y[cell] + dy
        assert inside[cell] == (0 <= x < grid.width and 0 <= y < grid.height)
        there = (x, y) if inside[cell] else (grid.x[cell], grid.y[cell])
        assert (grid.x[shifted[cell]], grid.y[shifted[cell]]) == there


@given(grids)
def test_moves_there_and_back(grid):
    targets, hits = grid.moves(4)
    cells = np.arange(grid.size)
    for there, back in ((NORTH, SOUTH), (EAST, WEST), (SOUTH, NORTH), (WEST, EAST)):
        went = ~hits[:, there]
        assert (targets[targets[went, there], back] == cells[went]).all()
        assert (targets[~went, there] == cells[~went]).all()
    assert hits[:, NORTH].sum() == hits[:, SOUTH].sum() == grid.width
    assert hits[:, EAST].sum() == hits[:, WEST].sum() == grid.height
    assert not grid.moves(5)[1][:, 4].any()


def test_states_are_numbered_row_by_row_from_the_south_west():
    grid = Grid(3, 2)
    assert grid.coordinates.tolist() == [[1, 1], [2, 1], [3, 1], [1, 2], [2, 2], [3, 2]]
    assert grid.moves(4)[0][0].tolist() == [3, 0, 0, 1]  # north, west, south, east


def test_terms_that_lead_to_one_state_add_up():
    here, there = np.array([[0], [1]]), np.array([[1], [1]])
    rows = stack_rows([here, there], [np.full((2, 1), 0.25), np.full((2, 1), 0.75)], 2)
    assert rows.toarray().tolist() == [[0.25, 0.75], [0.0, 1.0]]
    none = stack_rows([here, there], [np.zeros((2, 1)), np.ones((2, 1))], 2)
    assert none.nnz == 2
    with pytest.raises(ValueError, match="exceeds"):
        stack_rows([there + 1], [np.ones((2, 1))], 2)
