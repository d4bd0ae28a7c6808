"""Rows and the tables they are read from: supports, shapes, refusals, new labels."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import escapade as ep
from escapade.errors import InvalidInputError
from escapade.testing import cmdps
from escapade.uncertainty.rows import (
    Rows,
    as_input,
    gather_rows,
    improper,
    read_per_pair,
    read_rows_of,
    row_sums,
)
from escapade.uncertainty.tables import Frame, read_table


def _cmdp(**keywords):
    P = np.zeros((3, 2, 3))
    P[0, 0] = [0.5, 0.5, 0.0]
    P[0, 1] = [0.0, 1.0, 0.0]
    P[1, 0] = [0.2, 0.3, 0.5]
    P[1, 1] = [1.0, 0.0, 0.0]
    P[2, 0] = [0.0, 0.0, 1.0]
    P[2, 1] = [0.0, 0.1, 0.9]
    flat = np.zeros((3, 2))
    return ep.CMDP(P, flat, flat, discount=0.9, budget=1.0, **keywords)


def _masked():
    return _cmdp(available=np.array([[True, False], [True, True], [False, True]]))


def _dense(rows):
    table = np.zeros((rows.n_rows, rows.n_states))
    for row in range(rows.n_rows):
        own = slice(rows.row_ptr[row], rows.row_ptr[row + 1])
        table[row, rows.successor[own]] = rows.nominal[own]
    return table


@given(st.data())
def test_every_support_keeps_the_nominal_rows(data):
    cmdp = data.draw(cmdps(max_states=4))
    plain = cmdp.transition_matrix.toarray()
    mask = (plain > 0) | (np.arange(plain.size).reshape(plain.shape) % 3 == 0)
    for support, size in (
        (None, (plain > 0).sum()),
        ("everywhere", plain.size),
        (mask, mask.sum()),
        (sp.csr_array(mask), mask.sum()),
    ):
        rows = read_rows_of(cmdp, support)
        assert rows.successor.size == size == rows.row_ptr[-1]
        assert np.array_equal(_dense(rows), plain)
        assert np.array_equal(rows.support_size, np.diff(rows.row_ptr))
        assert rows.seen_nominal.min() > 0
        assert np.array_equal(rows.seen_ptr, cmdp.row_ptr)
        assert np.array_equal(rows.seen, cmdp.successor)
        spread = rows.spread(rows.stored_nominal)
        assert np.array_equal(spread, rows.nominal)
        if not rows.everywhere and rows.unseen_ptr.size:
            assert rows.unseen.size + rows.seen.size == rows.successor.size


def test_the_problems_own_rows_are_not_copied():
    cmdp = _cmdp()
    rows = read_rows_of(cmdp)
    assert rows.successor is cmdp.successor
    assert rows.nominal is cmdp.probability
    assert rows.seen is cmdp.successor


def test_a_mask_over_all_actions_serves_a_problem_that_lacks_some():
    cmdp = _masked()
    rows = read_rows_of(cmdp, np.ones((3, 2, 3), dtype=bool))
    assert rows.n_rows == cmdp.n_pairs == 4
    assert np.array_equal(_dense(rows), cmdp.transition_matrix.toarray())


def test_a_stored_zero_is_a_possible_successor():
    cmdp = _cmdp()
    matrix = cmdp.transition_matrix.tolil()
    matrix[1, 2] = 1e-9
    support = sp.csr_array(matrix)
    support.data[support.data == 1e-9] = 0.0
    rows = read_rows_of(cmdp, support)
    assert rows.successor.size == cmdp.nnz + 1
    assert rows.unseen.tolist() == [2]


@pytest.mark.parametrize(
    ("support", "message"),
    [
        ("somewhere", "support: expected None, 'everywhere' or a mask"),
        (np.ones((3, 2, 3)), "support: expected a boolean array"),
        (np.ones((3, 3, 3), dtype=bool), None),
        (np.ones((3, 2), dtype=bool), "support: expected shape"),
        (np.ones(3, dtype=bool), "support: expected shape"),
        (
            np.eye(3, dtype=bool)[:, np.newaxis].repeat(2, axis=1),
            "support: expected a mask that holds every transition of the problem, "
            "found none for next state 1 at state 0, action 0",
        ),
    ],
)
def test_supports_are_refused_by_name(support, message):
    if message is None:  # an action more than the problem has: its rows are not read
        assert read_rows_of(_cmdp(), support).successor.size == 18
        return
    with pytest.raises(InvalidInputError, match="support") as caught:
        read_rows_of(_cmdp(), support)
    assert message in str(caught.value)


def test_numbers_per_pair_are_read_in_three_shapes():
    rows = read_rows_of(_masked())
    assert read_per_pair("radius", 0.5, rows).tolist() == [0.5] * 4
    grid = np.arange(6.0).reshape(3, 2)
    assert read_per_pair("radius", grid, rows).tolist() == [0.0, 2.0, 3.0, 5.0]
    assert read_per_pair("radius", np.arange(4.0), rows).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("value", "most", "message"),
    [
        (-0.1, np.inf, "radius: expected numbers of at least 0, found -0.1"),
        (np.nan, np.inf, "found nan at state 0, action 0"),
        ([0.0, 0.0, 3.0, 0.0], 2.0, "numbers in [0, 2], found 3 at state 1, action 1"),
        (np.zeros(3), 2.0, "a number, shape (S, A) or (4,), found shape (3,)"),
        (np.zeros((3, 1)), 2.0, "shape (3, 2)"),
        ("wide", 2.0, "radius: expected an array of numbers"),
    ],
)
def test_numbers_per_pair_are_refused_with_their_place(value, most, message):
    with pytest.raises(InvalidInputError) as caught:
        read_per_pair("radius", value, read_rows_of(_masked()), most=most)
    assert message in str(caught.value)


def test_infinity_is_a_number_where_nothing_is_the_most():
    rows = read_rows_of(_cmdp())
    assert np.isinf(read_per_pair("radius", np.inf, rows)).all()


def test_row_sums_know_empty_rows():
    row_ptr = np.array([0, 0, 2, 2, 3, 3])
    sums = row_sums(np.array([1.0, 2.0, 4.0]), row_ptr)
    assert sums.tolist() == [0.0, 3.0, 0.0, 4.0, 0.0]


def test_gathered_rows_may_repeat_and_be_empty():
    row_ptr = np.array([0, 2, 2, 5])
    pointers, entries = gather_rows(row_ptr, np.array([2, 0, 1, 2]))
    assert pointers.tolist() == [0, 3, 5, 5, 8]
    assert entries.tolist() == [2, 3, 4, 0, 1, 2, 3, 4]


def test_improper_measures_sums_and_signs():
    row_ptr = np.array([0, 2, 4, 6])
    far = improper(np.array([0.5, 0.5, 0.5, 0.4, 1.2, -0.2]), row_ptr)
    np.testing.assert_allclose(far, [0.0, 0.1, 0.2])


def test_inputs_are_read_only_views():
    v = np.arange(3.0)
    view = as_input(v)
    assert np.shares_memory(view, v)
    assert not view.flags.writeable
    assert v.flags.writeable
    assert as_input([1, 2]).dtype == np.float64


def test_lifted_rows_are_copies_with_new_labels():
    rows = read_rows_of(_cmdp(), "everywhere")
    target = np.array([0, 2, 4, 1, 3, 5])
    lifted = rows.lift(np.array([2, 2]), target, 6)
    assert lifted.n_states == 6
    assert lifted.successor.tolist() == target.tolist()
    assert lifted.nominal.tolist() == [0.2, 0.3, 0.5] * 2
    assert lifted.name(1) == "pair 1"


@pytest.mark.parametrize(
    ("pairs", "target", "message"),
    [
        ([9], [0], "pairs: expected pairs in 0..5, found 9"),
        ([-1], [0], "pairs: expected pairs in 0..5, found -1"),
        ([0.5], [0, 1], "pairs: expected a one-dimensional array of integers"),
        ([0], [0], "target: expected 2 states"),
        ([0], [0, 7], "target: expected states in 0..5, found 7"),
        ([0, 0], [0, 1, 3, 3], "states that increase within a row, found 3 after 3"),
        ([3, 0, 0], [5, 0, 1, 3, 2], "2 after 3 at row 2"),
    ],
)
def test_lifting_is_refused_by_name(pairs, target, message):
    with pytest.raises(InvalidInputError) as caught:
        read_rows_of(_cmdp()).lift(np.array(pairs), np.array(target), 6)
    assert message in str(caught.value)


def test_kernels_are_read_in_the_order_of_the_entries():
    rows = read_rows_of(_cmdp())
    assert np.array_equal(rows.read_kernel(rows.nominal), rows.nominal)
    with pytest.raises(InvalidInputError, match=r"probability: expected shape \(10,\)"):
        rows.read_kernel(np.ones(3))
    broken = rows.nominal.copy()
    broken[4] = np.nan
    with pytest.raises(InvalidInputError, match="finite numbers, found nan at state 1"):
        rows.read_kernel(broken)


def test_tables_of_every_shape_are_one_matrix():
    cmdp = _masked()
    frame = Frame.of(cmdp)
    rng = np.random.default_rng(0)
    dense = rng.integers(0, 3, (3, 2, 3)).astype(float)
    expected = dense[cmdp.pair_state, cmdp.pair_action]
    for table in (
        dense,
        dense.reshape(6, 3),
        sp.csr_array(dense.reshape(6, 3)),
        sp.coo_array(expected),
        expected,
    ):
        assert np.array_equal(read_table("counts", table, frame).toarray(), expected)


def test_repeated_entries_of_a_sparse_table_add_up():
    table = sp.coo_array(([1.0, 2.0], ([0, 0], [1, 1])), shape=(6, 3))
    read = read_table("counts", table, Frame.of(_cmdp()))
    assert read.nnz == 1
    assert read[0, 1] == 3.0


@pytest.mark.parametrize(
    "table", [np.zeros((2, 2, 2)), np.zeros((3, 1, 3)), np.zeros((5, 3)), np.zeros(4)]
)
def test_tables_of_other_shapes_are_refused(table):
    with pytest.raises(
        InvalidInputError, match=r"expected shape \(3, 2, 3\), \(6, 3\)"
    ):
        read_table("counts", table, Frame.of(_cmdp()))


def test_tables_of_words_are_refused():
    with pytest.raises(InvalidInputError, match="counts: expected an array of numbers"):
        read_table("counts", np.full((3, 2, 3), "x"), Frame.of(_cmdp()))


def test_rows_of_a_problem_name_their_pairs():
    rows = read_rows_of(_masked())
    assert rows.name(3) == "state 2, action 1"
    assert isinstance(rows, Rows)
