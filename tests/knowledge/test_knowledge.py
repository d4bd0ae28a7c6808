"""What an agent is told: reading, defaults, contradictions, refusals."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import escapade as ep
from escapade.errors import InvalidInputError
from escapade.knowledge import Counts, Knowledge, Log


def single(**changed) -> Knowledge:
    """Two states, two actions, one cost."""
    arguments = {
        "n_states": 2,
        "n_actions": 2,
        "discount": 0.9,
        "budget": 2.0,
        "reward_max": 1.0,
        "cost_max": 1.0,
    }
    return Knowledge(**{**arguments, **changed})


def log(**changed) -> Log:
    steps = {
        "states": [0, 0, 1],
        "actions": [0, 0, 1],
        "rewards": [0.5, 0.5, 1.0],
        "costs": [0.0, 0.0, 1.0],
        "next_states": [1, 1, 0],
    }
    return Log(**{**steps, **changed})


# -- what is there ---------------------------------------------------------------------


def test_the_public_name():
    assert ep.Knowledge is Knowledge
    assert ep.Log is Log


def test_little_is_known_by_default():
    knowledge = single()
    assert (knowledge.n_pairs, knowledge.n_costs) == (4, 1)
    assert np.diff(knowledge.row_ptr).tolist() == [2] * 4
    assert not knowledge.lower.any()
    assert knowledge.upper.all()
    assert not knowledge.exact_pairs.any()
    assert not knowledge.known_states.any()
    assert knowledge.start.tolist() == [1.0, 0.0]
    assert knowledge.reward_upper.tolist() == [1.0] * 4
    assert knowledge.cost_upper.tolist() == [[1.0] * 4]
    assert repr(knowledge) == (
        "Knowledge(2 states, 2 actions, 4 pairs, 1 cost, 0 rows known)"
    )


def test_pairs_that_do_not_exist_are_left_out(plant):
    assert plant.n_pairs == 5
    assert [plant.pair(s, 0) for s in range(3)] == [0, 2, 3]
    assert plant.successor.tolist() == [0, 1, 2, 0, 1, 2, 2, 0, 2]
    # a pair with one possible successor is known
    assert plant.exact_pairs.tolist() == [False, True, False, True, False]
    with pytest.raises(InvalidInputError, match=r"action: expected one of \[0\]"):
        plant.pair(1, 1)
    with pytest.raises(InvalidInputError, match=r"state: expected a state in 0\.\.2"):
        plant.pair(3, 0)


def test_a_known_row_leaves_nothing_else_possible():
    rows = sp.lil_array((4, 2))
    rows[1, 0] = 1.0
    rows[2, :] = [0.25, 0.75]
    knowledge = single(known_rows=sp.csr_array(rows))
    assert np.diff(knowledge.row_ptr).tolist() == [2, 1, 2, 2]
    assert knowledge.exact_pairs.tolist() == [False, True, True, False]
    assert knowledge.lower[knowledge.row_ptr[2] : knowledge.row_ptr[3]].tolist() == [
        0.25,
        0.75,
    ]
    dense = single(known_rows=[[[0.0, 0.0], [1.0, 0.0]], [[0.25, 0.75], [0.0, 0.0]]])
    np.testing.assert_array_equal(dense.lower, knowledge.lower)
    np.testing.assert_array_equal(dense.upper, knowledge.upper)


def test_a_support_may_leave_rows_to_what_is_known():
    support = np.array([[[1, 0], [0, 0]], [[1, 1], [1, 1]]], dtype=bool)
    knowledge = single(support=support, known_rows=[[[0, 0], [0, 1]], [[0, 0], [0, 0]]])
    assert knowledge.successor[knowledge.row_ptr[1]] == 1
    stored = sp.csr_array(
        ([True, False, True, True, True], ([0, 1, 2, 2, 3], [0, 1, 0, 1, 1])),
        shape=(4, 2),
    )
    assert np.diff(single(support=stored).row_ptr).tolist() == [1, 1, 2, 1]


def test_costs_that_are_known_bounded_or_free():
    knowledge = single(
        costs=[[0.25, np.nan], [np.nan, np.nan]],
        cost_bounds=[[np.nan, 0.5], [np.nan, np.nan]],
        free=[[False, False], [True, False]],
        rewards=[[np.nan, 1.0], [np.nan, np.nan]],
    )
    assert knowledge.cost_lower.tolist() == [[0.25, 0.0, 0.0, 0.0]]
    assert knowledge.cost_upper.tolist() == [[0.25, 0.5, 0.0, 1.0]]
    assert knowledge.reward_lower.tolist() == [0.0, 1.0, 0.0, 0.0]
    assert knowledge.reward_upper.tolist() == [1.0, 1.0, 1.0, 1.0]


def test_flags_are_one_boolean_or_one_a_pair(plant, told):
    assert not plant.exact_costs.any()
    knowledge = Knowledge(**told, exact_costs=True, exact_rewards=np.eye(3, 2) > 0)
    assert knowledge.exact_costs.all()
    assert knowledge.exact_rewards.tolist() == [True, False, False, False, False]


@pytest.mark.parametrize("given", [[1], np.array([False, True, False])])
def test_known_states_by_list_or_mask(told, given):
    knowledge = Knowledge(**told, known_states=given)
    assert knowledge.known_states.tolist() == [False, True, False]


def test_models_bring_their_own_support():
    cmdp = ep.CMDP(
        [[[0.5, 0.5]], [[0.0, 1.0]]],
        [[1.0], [0.0]],
        [[0.0], [1.0]],
        discount=0.9,
        budget=2.0,
    )
    models = ep.uncertainty.Interval(cmdp, radius=0.25)
    knowledge = single(n_actions=1, models=models)
    assert knowledge.successor.tolist() == [0, 1, 1]
    assert knowledge.models is models
    assert "Interval" in repr(knowledge)
    known = single(n_actions=1, models=models, known_rows=[[0.25, 0.75], [0.0, 0.0]])
    assert known.exact_pairs.tolist() == [True, True]


def test_nothing_that_is_known_can_be_written_to(plant):
    for name in ("lower", "upper", "budget", "start", "cost_upper", "known_states"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(plant, name)[...] = 0.0


def test_replacing_builds_anew(plant, told):
    other = plant.replace(budget=[1.0, 1.0])
    assert other.budget.tolist() == [1.0, 1.0]
    np.testing.assert_array_equal(other.successor, plant.successor)
    with pytest.raises(InvalidInputError, match="replace: expected names among"):
        plant.replace(colour="red")


def test_records_are_named(plant):
    knowledge = single(
        log=log(),
        counts=Counts(
            transitions=np.ones((2, 2, 2)),
            rewards=np.zeros((2, 2)),
            costs=np.ones((2, 2)),
        ),
    )
    assert repr(knowledge).endswith("3 steps recorded, 8 steps counted)")


# -- what is refused -------------------------------------------------------------------

UNKNOWN_ROWS = np.zeros((4, 2))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"n_states": 0}, "n_states: expected a whole number of at least 1"),
        ({"n_actions": 1.5}, "n_actions: expected a whole number of at least 1"),
        ({"discount": 1.0}, "discount: expected a number in"),
        ({"budget": -1.0}, "budget: expected"),
        (
            {"cost_max": [1.0, 2.0]},
            "budget: expected 2 numbers, as many as in cost_max",
        ),
        (
            {"budget": [1.0] * 3, "cost_max": [1.0] * 2},
            "cost_max: expected a number, or",
        ),
        (
            {"log": "log.csv"},
            r"log: expected a Log, such as Log.from_csv returns, found",
        ),
        ({"counts": 3}, "counts: expected a Counts, found 3"),
        ({"cost_max": np.inf}, "cost_max: expected a finite number"),
        ({"reward_max": -1.0}, "reward_max: expected a finite number of at least 0"),
        ({"start": 2}, "start: expected a state in 0..1"),
        ({"available": [[True, True], [False, False]]}, "available: expected at least"),
        ({"available": [[1, 1], [1, 1]]}, "available: expected a boolean, or a mask"),
        ({"available": [True, False]}, r"available: expected shape \(2, 2\)"),
        ({"free": 3}, "free: expected a boolean, or a mask"),
        ({"support": np.ones((2, 2, 2))}, r"support: expected booleans \(P > 0"),
        ({"support": np.zeros((2, 2, 2), bool)}, "support: expected at least one"),
        (
            {"support": sp.csr_array((3, 2))},
            r"support: expected shape \(2, 2, 2\) or \(4, 2\)",
        ),
        ({"known_rows": np.ones((3, 2))}, r"known_rows: expected shape \(2, 2, 2\)"),
        ({"known_rows": np.ones((4, 2))}, "known_rows: expected rows that are empty"),
        (
            {"known_rows": [[1.5, -0.5], [0, 0], [0, 0], [0, 0]]},
            "known_rows: expected finite numbers of at least 0, found -0.5 at state 0, "
            "action 0",
        ),
        (
            {
                "known_rows": [[0.5, 0.5], [0, 0], [0, 0], [0, 0]],
                "support": np.array([[[1, 0], [1, 1]], [[1, 1], [1, 1]]], bool),
            },
            "known_rows: expected successors that support allows, found state 1 "
            "at state 0, action 0",
        ),
        ({"models": "none"}, "models: expected an uncertainty set, found str"),
        ({"rewards": [[0.0, 2.0], [0.0, 0.0]]}, r"rewards: expected numbers in \[0, 1"),
        ({"rewards": [0.0]}, r"rewards: expected shape \(2, 2\)"),
        ({"costs": [[0.0, 2.0], [0.0, 0.0]]}, r"costs: expected numbers in \[0, 1\]"),
        ({"costs": [[0.0]]}, r"costs: expected shape \(1, 2, 2\)"),
        ({"cost_bounds": [[-1.0, 0.0]] * 2}, r"cost_bounds: expected numbers in"),
        (
            {"costs": [[0.5, 0.5]] * 2, "cost_bounds": [[0.25, 1.0]] * 2},
            "cost_bounds: expected at least the cost that is known, 0.5, found 0.25",
        ),
        (
            {"costs": [[0.5, 0.5]] * 2, "free": True},
            "free: expected pairs whose known costs are 0, found 0.5",
        ),
        ({"known_states": [2]}, r"known_states: expected states in 0..1, found 2"),
        ({"known_states": [0.5]}, "known_states: expected a mask or a list of states"),
        ({"known_states": [[0]]}, "known_states: expected a mask or a list of states"),
        ({"state_names": ["a"]}, "state_names: expected"),
        ({"coordinates": [[0.0]]}, "coordinates: expected"),
        ({"reward_scale": 0.0}, "reward_scale: expected a finite number above 0"),
        ({"reward_offset": np.inf}, "reward_offset: expected a finite number"),
    ],
)
def test_refusals_name_the_argument(changed, message):
    with pytest.raises(InvalidInputError, match=message):
        single(**changed)


@pytest.mark.parametrize("argument", ["support", "known_rows"])
@pytest.mark.parametrize(
    "shape", [(24,), (2, 3, 4), (3, 3, 2), (3, 6), (2, 6, 3), (6, 3, 1)], ids=str
)
def test_rows_of_the_right_size_in_another_shape_are_refused(argument, shape):
    # a size that fits says nothing of the order
    table = np.ones(shape, dtype=bool if argument == "support" else float)
    message = rf"{argument}: expected shape \(3, 2, 3\) or \(6, 3\), found shape"
    with pytest.raises(InvalidInputError, match=message):
        single(n_states=3, **{argument: table})


@pytest.mark.parametrize("argument", ["support", "known_rows"])
def test_rows_are_read_alike_in_every_shape(argument):
    P = np.zeros((3, 2, 3))
    P[:, 0, 0] = P[[0, 1, 2], 1, [1, 2, 2]] = 1.0
    table = P > 0 if argument == "support" else P
    by_action = table.transpose(1, 0, 2)
    with pytest.raises(InvalidInputError, match=r"transpose\(1, 0, 2\)"):
        single(n_states=3, **{argument: by_action})
    with pytest.raises(InvalidInputError, match=r"2 sparse matrices \(3, 3\)"):
        single(n_states=3, **{argument: [sp.csr_array(by_action[0])]})
    for given in (
        table,
        table.reshape(6, 3),
        sp.csr_array(table.reshape(6, 3)),
        [sp.coo_array(part) for part in by_action],
    ):
        knowledge = single(n_states=3, **{argument: given})
        assert knowledge.successor.tolist() == [0, 1, 0, 2, 0, 2]


def test_models_of_another_plant_are_refused():
    cmdp = ep.environments.garnet(3, 2, 2).cmdp
    with pytest.raises(InvalidInputError, match="models: expected a set over 2 states"):
        single(models=ep.uncertainty.L1Ball(cmdp, radius=0.1))
    family = ep.uncertainty.Models(cmdp, [cmdp], throughout=True)
    with pytest.raises(InvalidInputError, match="take its hull"):
        single(n_states=3, models=family)
    with pytest.raises(InvalidInputError, match="support: expected none beside models"):
        single(
            n_states=3,
            models=ep.uncertainty.L1Ball(cmdp, radius=0.1),
            support=np.ones((3, 2, 3), bool),
        )


def test_a_large_plant_needs_a_support():
    with pytest.raises(InvalidInputError, match="support: expected the possible succ"):
        single(n_states=20_000, n_actions=1)


@pytest.mark.parametrize(
    ("changed", "steps", "message"),
    [
        ({}, {"states": [0, 2, 1]}, "log: expected a state in 0..1, found 2 at row 1"),
        ({}, {"actions": [0, 0, 5]}, "log: expected a action in 0..1, found 5"),
        ({}, {"next_states": [-1, 0, 0]}, "log: expected a next state in 0..1"),
        ({}, {"rewards": [0.0, 0.0, 2.0]}, r"log: expected a reward in \[0, 1\]"),
        ({}, {"costs": [0.0, -1.0, 0.0]}, r"log: expected a cost in \[0, 1\]"),
        ({}, {"costs": np.zeros((3, 2))}, "log: expected 1 costs a step, found 2"),
        (
            {"available": [[True, True], [True, False]]},
            {},
            "log: expected actions that are available in state 1, found action 1 "
            "at row",
        ),
        (
            {"support": np.array([[[1, 0], [1, 1]], [[1, 1], [1, 1]]], bool)},
            {},
            "log: expected a possible successor of state 0, action 0, found state 1",
        ),
        (
            {"free": True},
            {},
            "log: expected no cost in state 1, action 1, as it is free, found 1 at row",
        ),
        (
            {"exact_rewards": True},
            {"rewards": [0.5, 0.25, 1.0]},
            "log: expected the same reward of 0.5 each time in state 0, action 0, "
            "found 0.25 at row 1",
        ),
        (
            {"exact_costs": True, "costs": [[0.5, np.nan], [np.nan, np.nan]]},
            {"costs": [0.5, 0.75, 1.0]},
            "log: expected cost to be 0.5 in state 0, action 0, as is told, found 0.75 "
            "at row 1",
        ),
        (
            {"exact_costs": True},
            {"costs": [0.5, 0.75, 1.0]},
            "log: expected the same cost of 0.5 each time in state 0, action 0, found "
            "0.75 at row 1",
        ),
        (
            {"costs": [[np.nan, np.nan], [np.nan, 0.0]]},
            {"costs": [0.0, 1.0, 0.5]},
            "log: expected cost to be 0 in state 1, action 1, as is told, found 0.5 at "
            "row 2",
        ),
        (
            {"cost_bounds": [[0.25, 1.0], [1.0, 1.0]], "exact_costs": True},
            {"costs": [0.25, 0.5, 0.5]},
            r"log: expected cost to be \[0, 0.25\] in state 0, action 0, as is told, "
            "found 0.5 at row 1",
        ),
        (
            {"rewards": [[1.0, np.nan], [np.nan, np.nan]]},
            {"rewards": [1.0, 0.5, 0.0]},
            "log: expected reward to be 1 in state 0, action 0, as is told, found 0.5",
        ),
    ],
)
def test_steps_that_cannot_have_happened(changed, steps, message):
    with pytest.raises(InvalidInputError, match=message):
        single(**changed, log=log(**steps))


def test_steps_that_could_are_taken():
    knowledge = single(
        exact_rewards=True,
        exact_costs=True,
        free=[[True, False], [False, False]],
        log=log(costs=[0.0, np.nan, 1.0]),
    )
    assert knowledge.log is not None
    np.testing.assert_array_equal(
        knowledge.pairs_of(np.array([0, 1]), np.array([1, 0])), [1, 2]
    )
