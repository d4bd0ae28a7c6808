"""The problem itself: ways to write it down, what it owns, how it is told apart."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from escapade.errors import InvalidInputError
from escapade.model import CMDP
from escapade.testing import cmdps, relabelled

P = np.array([[[0.8, 0.2], [1.0, 0.0]], [[0.25, 0.75], [0.0, 1.0]]])
R = np.array([[1.0, 0.4], [0.0, 0.2]])
C = np.array([[0.0, 0.1], [1.0, 0.5]])
REST = {"discount": 0.9, "budget": 1.0}


def same_arrays(one, other):
    for name in ("state_ptr", "pair_action", "row_ptr", "successor", "probability"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def forms(dense):
    """The same transitions in every accepted form."""
    n_states, n_actions, _ = dense.shape
    flat = dense.reshape(-1, n_states)
    by_action = [sp.csr_array(dense[:, action]) for action in range(n_actions)]
    return {
        "dense": dense,
        "nested lists": dense.tolist(),
        "csr": sp.csr_array(flat),
        "csc": sp.csc_array(flat),
        "coo": sp.coo_array(flat),
        "matrix": sp.csr_matrix(flat),
        "list of sparse": by_action,
        "tuple of sparse": tuple(sp.lil_array(matrix) for matrix in by_action),
    }


@pytest.mark.parametrize("form", forms(P))
def test_every_way_to_write_transitions_gives_the_same_problem(form):
    assert CMDP(forms(P)[form], R, C, **REST) == CMDP(P, R, C, **REST)


@settings(max_examples=40)
@given(cmdps())
def test_a_problem_is_rebuilt_from_its_own_arrays_bit_for_bit(cmdp):
    again = cmdp.replace()
    assert again == cmdp
    assert hash(again) == hash(cmdp)
    same_arrays(again, cmdp)


@settings(max_examples=40)
@given(cmdps(masked=False), st.booleans())
def test_dense_and_by_pairs_are_the_same_problem(cmdp, flat):
    shape = (cmdp.n_states, cmdp.n_actions)
    dense = cmdp.transition_matrix.toarray().reshape(*shape, cmdp.n_states)
    again = CMDP(
        dense,
        cmdp.reward if flat else cmdp.reward.reshape(shape),
        cmdp.cost if flat else cmdp.cost.reshape(-1, *shape),
        discount=cmdp.discount,
        budget=cmdp.budget,
        start=cmdp.start,
        reward_max=cmdp.reward_max,
        cost_max=cmdp.cost_max,
        state_names=cmdp.state_names,
        action_names=cmdp.action_names,
        coordinates=cmdp.coordinates,
    )
    assert again == cmdp


def test_one_cost_needs_no_ceremony():
    plain = CMDP(P, R, C, **REST)
    for cost in (C[np.newaxis], C.ravel(), C.reshape(1, -1)):
        assert CMDP(P, R, cost, **REST) == plain
    assert CMDP(P, R, C, discount=0.9, budget=[1.0]) == plain
    assert plain.replace(cost=C) == plain  # a grid may replace what stands by pairs
    assert plain.replace(cost=2 * C, cost_max=2.0).cost.max() == 2.0


def test_replace_takes_what_the_constructor_takes():
    mask = [[True, False], [True, True]]
    before = CMDP(P, R, C, available=mask, **REST)
    other = P[::-1, ::-1]
    after = before.replace(P=other, R=R / 2, C=C / 2, budget=2.0)
    assert after == CMDP(
        other, R / 2, C / 2, available=mask, discount=0.9, budget=2.0,
        reward_max=before.reward_max, cost_max=before.cost_max,
    )  # fmt: skip
    with pytest.raises(InvalidInputError, match="replace: expected R or reward, found"):
        before.replace(R=R, reward=R)
    with pytest.raises(
        InvalidInputError, match=r"names among \['P', 'R', 'C', 'action_names"
    ):
        before.replace(available=mask)


def test_the_budgets_settle_whether_a_square_is_a_grid_or_channels():
    one_state = np.ones((1, 2, 1))
    grid = CMDP(one_state, [[0.0, 0.0]], [[0.5, 1.0]], **REST)
    assert grid.n_costs == 1
    assert grid.cost.tolist() == [[0.5, 1.0]]
    # two states, three pairs: (2, 3) is a grid to one budget and channels to two
    mask = np.array([[True, True, False], [False, False, True]])
    rows = np.zeros((2, 3, 2))
    rows[..., 0] = 1.0
    square = np.arange(6.0).reshape(2, 3)
    keys = {"discount": 0.5, "available": mask}
    as_grid = CMDP(rows, np.zeros((2, 3)), square, budget=1.0, **keys)
    as_channels = CMDP(rows, np.zeros((2, 3)), square, budget=[1.0, 1.0], **keys)
    assert as_grid.cost.tolist() == [[0.0, 1.0, 5.0]]
    assert as_channels.cost.tolist() == square.tolist()


def test_several_costs_have_a_budget_and_a_bound_each():
    cmdp = CMDP(P, R, [C, 2 * C], discount=0.9, budget=[1.0, 3.0])
    assert cmdp.n_costs == 2
    assert cmdp.cost_max.tolist() == [1.0, 2.0]
    assert CMDP(
        P, R, [C, C], discount=0, budget=[1, 1], cost_max=4
    ).cost_max.tolist() == [
        4.0,
        4.0,
    ]
    assert repr(cmdp).endswith("4 pairs, 2 costs, discount 0.9, budget (1, 3))")


def test_the_entries_of_unavailable_pairs_are_not_read():
    spoilt = P.copy()
    spoilt[0, 1] = np.nan
    nonsense = np.array([[0.0, -9.0], [0.0, 0.0]])
    mask = np.array([[True, False], [True, True]])
    cmdp = CMDP(spoilt, nonsense, nonsense, available=mask, **REST)
    assert cmdp.n_pairs == 3
    assert cmdp.pair_state.tolist() == [0, 1, 1]
    assert cmdp.pair_action.tolist() == [0, 0, 1]
    np.testing.assert_array_equal(cmdp.available, mask)
    assert [cmdp.pair(1, 0), cmdp.pair(1, 1)] == [1, 2]


def test_rows_are_put_in_order_and_cleaned():
    jumbled = sp.csr_array(
        ([0.5, 0.25, 0.25, 0.0], [2, 0, 2, 1], [0, 4, 4, 4]), shape=(3, 3)
    ) + sp.csr_array(([1.0, 1.0], [1, 2], [0, 0, 1, 2]), shape=(3, 3))
    cmdp = CMDP(jumbled, np.zeros((3, 1)), np.zeros((3, 1)), **REST)
    states, chances = cmdp.successors(0, 0)
    assert states.tolist() == [0, 2]
    assert chances.tolist() == [0.25, 0.75]
    assert cmdp.nnz == 4


def test_unsorted_and_repeated_successors_of_the_layout_are_merged():
    cmdp = CMDP.from_pairs(
        state_ptr=[0, 1, 2],
        pair_action=[0, 0],
        row_ptr=[0, 3, 4],
        successor=[1, 0, 1, 1],
        probability=[0.25, 0.5, 0.25, 1.0],
        reward=[0.0, 0.0],
        cost=[0.0, 0.0],
        n_actions=1,
        **REST,
    )
    assert cmdp.successor.tolist() == [0, 1, 1]
    assert cmdp.probability.tolist() == [0.5, 0.5, 1.0]


def test_sums_that_differ_by_more_than_rounding_are_put_right():
    third = np.full((3, 1, 3), 0.333333333)
    third[:, :, 0] += 1e-9
    cmdp = CMDP(third, np.zeros((3, 1)), np.zeros((3, 1)), **REST)
    np.testing.assert_allclose(cmdp.transition_matrix.sum(axis=1), 1.0, rtol=1e-15)
    single = np.full((3, 1, 3), 1 / 3, dtype=np.float32)
    cmdp = CMDP(single, np.zeros((3, 1)), np.zeros((3, 1)), **REST)
    np.testing.assert_allclose(cmdp.transition_matrix.sum(axis=1), 1.0, rtol=1e-15)


def test_the_bounds_default_to_the_largest_means():
    cmdp = CMDP(P, R, C, **REST)
    assert cmdp.reward_max == 1.0
    assert cmdp.cost_max.tolist() == [1.0]
    noisy = CMDP(P, R, C, reward_max=2, cost_max=[3], **REST)
    assert noisy.reward_max == 2.0
    assert noisy.cost_max.tolist() == [3.0]
    nothing = CMDP(P, 0 * R, 0 * C, **REST)
    assert nothing.reward_max == 0.0
    assert nothing.cost_max.tolist() == [0.0]


def test_a_start_is_a_state_or_a_distribution():
    assert CMDP(P, R, C, **REST).start.tolist() == [1.0, 0.0]
    assert CMDP(P, R, C, start=np.int64(1), **REST).start.tolist() == [0.0, 1.0]
    assert CMDP(P, R, C, start=[0, 1], **REST).start.tolist() == [0.0, 1.0]
    nearly = CMDP(P, R, C, start=[0.5, 0.5 + 1e-9], **REST)
    assert nearly.start.sum() == pytest.approx(1.0, abs=1e-15)


@settings(max_examples=40)
@given(cmdps())
def test_the_arrays_are_read_only_and_not_the_callers(cmdp):
    for name in cmdp.__slots__:
        value = getattr(cmdp, name)
        if isinstance(value, np.ndarray):
            with pytest.raises(ValueError, match="read-only"):
                value[...] = value
    cmdp.transition_matrix.data[:] = 7.0  # a copy
    assert cmdp.probability.max() <= 1.0


def test_the_callers_arrays_stay_his():
    mine = [P.copy(), R.copy(), C.copy()]
    sparse = sp.csr_array(P.reshape(-1, 2))
    cmdp = CMDP(sparse, mine[1], mine[2], **REST)
    before = cmdp.fingerprint
    sparse.data[:] = 0.5
    mine[1][:] = mine[2][:] = 9.0
    assert CMDP(P, R, C, **REST).fingerprint == before == cmdp.replace().fingerprint
    with pytest.raises(AttributeError):
        cmdp.discount = 0.5


@settings(max_examples=40)
@given(cmdps())
def test_a_problem_travels_to_another_process_unchanged(cmdp):
    for again in (pickle.loads(pickle.dumps(cmdp)), copy.deepcopy(cmdp)):
        assert again == cmdp
        assert not again.reward.flags.writeable


CHANGES = {
    "discount": 0.5,
    "budget": 2.0,
    "start": 1,
    "reward": [0.1, 0.1, 0.1, 0.1],
    "cost": [0.1, 0.1, 0.1, 0.1],
    "reward_max": 5.0,
    "cost_max": 5.0,
    "probability": [0.5, 0.5, 1.0, 0.25, 0.75, 1.0],
    "n_actions": 3,
    "state_names": ["up", "down"],
    "action_names": ["go", "stop"],
    "coordinates": [[0.0], [1.0]],
}


@pytest.mark.parametrize("field", CHANGES)
def test_the_fingerprint_tells_every_field(field):
    cmdp = CMDP(P, R, C, **REST)
    changed = cmdp.replace(**{field: CHANGES[field]})
    assert changed != cmdp
    assert changed.fingerprint != cmdp.fingerprint
    assert cmdp != "a CMDP"


def test_minus_zero_is_zero():
    assert CMDP(P, R, -0.0 * C, **REST) == CMDP(P, R, 0.0 * C, **REST)


def test_names_serve_people():
    cmdp = CMDP(
        P, R, C, state_names=np.array(["up", "down"]), action_names=("go", "no"), **REST
    )
    assert cmdp.state_names == ("up", "down")
    assert cmdp.describe_pair(3) == "state 1 (down), action 1 (no)"
    assert CMDP(P, R, C, **REST).describe_pair(0) == "state 0, action 0"
    assert repr(cmdp) == (
        "CMDP(2 states, 2 actions, 4 pairs, 1 cost, discount 0.9, budget 1)"
    )


@settings(max_examples=40)
@given(cmdps(), st.data())
def test_relabelling_there_and_back_changes_no_bit(cmdp, data):
    order = np.array(data.draw(st.permutations(range(cmdp.n_states))))
    there = relabelled(cmdp, order)
    assert relabelled(there, np.argsort(order)) == cmdp
    assert there.nnz == cmdp.nnz
    assert there.n_pairs == cmdp.n_pairs


@settings(max_examples=40)
@given(cmdps())
def test_pairs_are_found_by_state_and_action(cmdp):
    for pair in range(cmdp.n_pairs):
        state, action = int(cmdp.pair_state[pair]), int(cmdp.pair_action[pair])
        assert cmdp.pair(state, action) == pair
        states, chances = cmdp.successors(state, action)
        row = np.zeros(cmdp.n_states)
        row[states] = chances
        np.testing.assert_array_equal(row, cmdp.transition_matrix.toarray()[pair])
