"""Bad input is refused in one line: argument, expectation, finding, first place."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from escapade.errors import InvalidInputError, refusal
from escapade.model import (
    CMDP,
    Policy,
    Sampler,
    escape_cmdp,
    evaluate,
    known_state_cmdp,
    occupancy,
)

STAY = np.stack([np.eye(2), np.eye(2)], axis=1)  # two states, two actions


def arrays(**changes):
    """Arguments of a good problem, some of them spoilt."""
    good = {
        "P": STAY,
        "R": np.full((2, 2), 0.5),
        "C": np.zeros((2, 2)),
        "discount": 0.9,
        "budget": 1.0,
    }
    return {**good, **changes}


def pairs(**changes):
    """The same problem in its own layout."""
    good = {
        "state_ptr": [0, 2, 4],
        "pair_action": [0, 1, 0, 1],
        "row_ptr": [0, 1, 2, 3, 4],
        "successor": [0, 0, 1, 1],
        "probability": [1.0, 1.0, 1.0, 1.0],
        "reward": [0.5] * 4,
        "cost": [0.0] * 4,
        "n_actions": 2,
        "discount": 0.9,
        "budget": 1.0,
    }
    return {**good, **changes}


def spoilt(array, index, value):
    copy = np.array(array, dtype=np.float64)
    copy[index] = value
    return copy


def make(**changes):
    given = arrays(**changes)
    return CMDP(given.pop("P"), given.pop("R"), given.pop("C"), **given)


def make_pairs(**changes):
    return CMDP.from_pairs(**pairs(**changes))


def stray(index=None, pointers=None, kind=sp.csr_array, of=None):
    """A sparse matrix whose index arrays were written over."""
    matrix = kind(STAY.reshape(4, 2) if of is None else of)
    if index is not None:
        matrix.indices[2] = index
    if pointers is not None:
        matrix.indptr[:] = pointers
    return matrix


def two_costs(**changes):
    return make(C=np.zeros((2, 2, 2)), **{"budget": [1.0, 1.0], **changes})


GOOD = make()
MASKED = make(available=[[True, False], [True, True]])
EVEN = Policy(np.full((2, 2), 0.5))

# (what is done, the message)
REFUSALS = {
    # transitions
    "rows that sum to less": (
        lambda: make(P=spoilt(STAY, (1, 0, 1), 0.97)),
        "P: expected rows that sum to 1, found a sum of 0.97 at state 1, action 0",
    ),
    "an empty row": (
        lambda: make(P=spoilt(STAY, (1, 0, 1), 0.0)),
        "P: expected rows that sum to 1, found an empty row at state 1, action 0",
    ),
    "a negative probability": (
        lambda: make(P=spoilt(STAY, (0, 1), [1.5, -0.5])),
        "P: expected probabilities of at least 0, found -0.5 "
        "at state 0, action 1, next state 1",
    ),
    "a probability that is no number": (
        lambda: make(P=spoilt(STAY, (0, 1, 0), np.nan)),
        "P: expected finite numbers, found nan at state 0, action 1, next state 0",
    ),
    "an infinite probability": (
        lambda: make(P=spoilt(STAY, (1, 1, 0), np.inf)),
        "P: expected finite numbers, found inf at state 1, action 1, next state 0",
    ),
    "a dense array of the wrong shape": (
        lambda: make(P=np.ones((2, 3, 4))),
        "P: expected shape (S, A, S), found shape (2, 3, 4)",
    ),
    "no states": (
        lambda: make(P=np.ones((0, 1, 0))),
        "P: expected shape (S, A, S), found shape (0, 1, 0)",
    ),
    "words for probabilities": (
        lambda: make(P=[[["1"]]]),
        "P: expected an array of numbers (S, A, S), found dtype <U1",
    ),
    "ragged nesting": (
        lambda: make(P=[[[1.0]], [[1.0, 2.0]]]),
        "P: expected an array of shape (S, A, S), found ragged nesting",
    ),
    "a masked array": (
        lambda: make(R=np.ma.masked_array(np.zeros((2, 2)), mask=True)),
        "R: expected an array of numbers, found a masked array",
    ),
    "one sparse matrix of the wrong shape": (
        lambda: make(P=sp.csr_array(np.ones((5, 2)))),
        "P: expected a sparse matrix of shape (S * A, S), found shape (5, 2)",
    ),
    "sparse matrices of different shapes": (
        lambda: make(P=[sp.eye_array(2), sp.eye_array(3)]),
        "P: expected matrices of shape (2, 2), found shape (3, 3) at action 1",
    ),
    "sparse and dense together": (
        lambda: make(P=[sp.eye_array(2), np.eye(2)]),
        "P: expected sparse matrices only, when one is, found a ndarray at action 1",
    ),
    "a sparse matrix that is broken inside": (
        lambda: make(P=stray(7)),
        "P: expected next states in 0..1, found 7 at state 1, action 0",
    ),
    "a sparse matrix with pointers beyond its end": (
        lambda: make(P=stray(pointers=[0, 1, 2, 3, 10**9])),
        "P: expected a sparse matrix that is whole inside, found one in which Last "
        "value of index pointer should be less than the size of index and data arrays",
    ),
    "a sparse matrix with pointers that turn back": (
        lambda: make(P=[sp.eye_array(2), stray(pointers=[0, 3, 2], of=np.eye(2))]),
        "P: expected a sparse matrix that is whole inside, found one in which index "
        "pointers decrease at action 1",
    ),
    "a sparse matrix by columns that is broken inside": (
        lambda: make(P=stray(10**9, kind=sp.csc_array)),
        "P: expected a sparse matrix that is whole inside, found one in which indices "
        "must be < 4",
    ),
    "half precision, in which rows do not sum to 1": (
        lambda: make(P=np.array([[[0.8, 0.2]] * 2] * 2, dtype=np.float16)),
        "P: expected rows that sum to 1, found a sum of 0.9997558594 "
        "at state 0, action 0",
    ),
    "complex numbers": (
        lambda: make(P=sp.csr_array(np.eye(2) * 1j)),
        "P: expected real numbers, found dtype complex128",
    ),
    "a state without actions": (
        lambda: make(available=[[True, True], [False, False]]),
        "available: expected at least one available action in every state, found none "
        "at state 1",
    ),
    "a mask of numbers": (
        lambda: make(available=np.ones((2, 2))),
        "available: expected a boolean array, found dtype float64",
    ),
    "a mask of another shape": (
        lambda: make(available=np.ones((2, 3), dtype=bool)),
        "available: expected shape (2, 2), found shape (2, 3)",
    ),
    # rewards and costs
    "a negative reward": (
        lambda: make(R=spoilt(np.zeros((2, 2)), (1, 0), -0.25)),
        "R: expected finite numbers of at least 0, found -0.25 at state 1, action 0",
    ),
    "a reward that is no number": (
        lambda: make(R=spoilt(np.zeros((2, 2)), (0, 1), np.nan)),
        "R: expected finite numbers of at least 0, found nan at state 0, action 1",
    ),
    "a reward above its bound": (
        lambda: make(R=[[0.0, 0.0], [0.0, 2.0]], reward_max=1),
        "R: expected numbers in [0, 1.0], found 2.0 at state 1, action 1",
    ),
    "rewards of the wrong shape": (
        lambda: make(R=np.zeros((2, 3))),
        "R: expected shape (2, 2) or (4,), found shape (2, 3)",
    ),
    "a negative cost": (
        lambda: make(C=spoilt(np.zeros((2, 2)), (1, 1), -1.0)),
        "C: expected finite numbers of at least 0, found -1 at state 1, action 1",
    ),
    "a negative cost of one channel among two": (
        lambda: make(C=spoilt(np.zeros((2, 2, 2)), (1, 0, 1), -1.0), budget=[1.0, 1.0]),
        "C[1]: expected finite numbers of at least 0, found -1 at state 0, action 1",
    ),
    "an infinite cost": (
        lambda: make(C=spoilt(np.zeros((2, 2)), (0, 0), np.inf)),
        "C: expected finite numbers of at least 0, found inf at state 0, action 0",
    ),
    "a cost above its bound": (
        lambda: make(C=np.ones((2, 2)), cost_max=0.5),
        "C: expected numbers in [0, 0.5], found 1.0 at state 0, action 0",
    ),
    "costs of the wrong shape": (
        lambda: make(C=np.zeros((3, 2))),
        "C: expected shape (2, 2), (K, 2, 2), (4,) or (K, 4), found shape (3, 2)",
    ),
    "a bound on rewards that is negative": (
        lambda: make(reward_max=-1.0),
        "reward_max: expected a finite number of at least 0, found -1",
    ),
    "a bound on costs that is infinite": (
        lambda: two_costs(cost_max=[1.0, np.inf]),
        "cost_max: expected a finite number of at least 0, found inf at channel 1",
    ),
    "too many bounds on costs": (
        lambda: make(cost_max=[1.0, 1.0]),
        "cost_max: expected a number or shape (1,), found shape (2,)",
    ),
    # the rest of the problem
    "a discount of 1": (
        lambda: make(discount=1.0),
        "discount: expected a number in [0, 1), found 1",
    ),
    "a negative discount": (
        lambda: make(discount=-0.1),
        "discount: expected a number in [0, 1), found -0.1",
    ),
    "a discount that is no number": (
        lambda: make(discount=np.nan),
        "discount: expected a number in [0, 1), found nan",
    ),
    "a discount in words": (
        lambda: make(discount="0.9"),
        "discount: expected a number in [0, 1), found '0.9'",
    ),
    "a list of discounts": (
        lambda: make(discount=[0.9]),
        "discount: expected a number in [0, 1), found shape (1,)",
    ),
    "no budget": (
        lambda: make(budget=None),
        "budget: expected one number a cost channel, found None",
    ),
    "a negative budget": (
        lambda: make(budget=-1.0),
        "budget: expected a finite number of at least 0, found -1",
    ),
    "an infinite budget among two": (
        lambda: two_costs(budget=[1.0, np.inf]),
        "budget: expected a finite number of at least 0, found inf at channel 1",
    ),
    "two budgets for one cost": (
        lambda: make(C=np.zeros((1, 2, 2)), budget=[1.0, 1.0]),
        "budget: expected one number, one a cost channel, found shape (2,)",
    ),
    "one budget for two costs": (
        lambda: two_costs(budget=1.0),
        "budget: expected 2 numbers, one a cost channel, found shape ()",
    ),
    "a start out of range": (
        lambda: make(start=2),
        "start: expected a state in 0..1, found 2",
    ),
    "a start that is no state but its number": (
        lambda: make(start=0.0),
        "start: expected a state in 0..1, found 0.0",
    ),
    "a start by name": (
        lambda: make(start="one", state_names=["one", "two"]),
        "start: expected a state in 0..1, found 'one'",
    ),
    "a start that is true": (
        lambda: make(start=True),
        "start: expected a state in 0..1, found True",
    ),
    "a start that sums to more": (
        lambda: make(start=[0.5, 0.6]),
        "start: expected probabilities that sum to 1, found a sum of 1.1",
    ),
    "a negative start": (
        lambda: make(start=[1.5, -0.5]),
        "start: expected probabilities of at least 0, found -0.5 at state 1",
    ),
    "a start over other states": (
        lambda: make(start=[1.0, 0.0, 0.0]),
        "start: expected a state or shape (2,), found shape (3,)",
    ),
    "too few names": (
        lambda: make(state_names=["one"]),
        "state_names: expected 2 names, found 1",
    ),
    "one name for all": (
        lambda: make(action_names="ab"),
        "action_names: expected 2 names, found a single str",
    ),
    "a name that is a number": (
        lambda: make(state_names=["one", 2]),
        "state_names: expected strings, found 2 at position 1",
    ),
    "coordinates of other states": (
        lambda: make(coordinates=np.zeros((3, 2))),
        "coordinates: expected shape (2, dim), found shape (3, 2)",
    ),
    "a coordinate that is no number": (
        lambda: make(coordinates=[[0.0, 0.0], [0.0, np.nan]]),
        "coordinates: expected finite numbers, found nan at state 1",
    ),
    # the layout
    "pointers that decrease": (
        lambda: make_pairs(row_ptr=[0, 2, 1, 3, 4]),
        "row_ptr: expected pointers that never decrease, found 2 before 1 "
        "at position 1",
    ),
    "pointers that end early": (
        lambda: make_pairs(state_ptr=[0, 2, 3]),
        "state_ptr: expected pointers that begin at 0 and end at 4, found [0] .. [3]",
    ),
    "no pointers": (
        lambda: make_pairs(state_ptr=np.zeros(0, dtype=int)),
        "state_ptr: expected pointers that begin at 0 and end at 4, found [] .. []",
    ),
    "no pairs at all": (
        lambda: make_pairs(state_ptr=[0], pair_action=np.zeros(0, dtype=int)),
        "state_ptr: expected at least one state, found none",
    ),
    "a state without pairs": (
        lambda: make_pairs(state_ptr=[0, 0, 4]),
        "state_ptr: expected at least one action in every state, found none at state 0",
    ),
    "pointers that are not whole": (
        lambda: make_pairs(row_ptr=[0.0, 1.0, 2.0, 3.0, 4.0]),
        "row_ptr: expected a one-dimensional array of integers, "
        "found dtype float64, shape (5,)",
    ),
    "too many row pointers": (
        lambda: make_pairs(row_ptr=[0, 1, 2, 3, 4, 4]),
        "row_ptr: expected 5 pointers, found 6",
    ),
    "an action out of range": (
        lambda: make_pairs(pair_action=[0, 1, 0, 2]),
        "pair_action: expected actions in 0..1, found 2 at pair 3",
    ),
    "actions out of order": (
        lambda: make_pairs(pair_action=[0, 1, 1, 0]),
        "pair_action: expected actions in increasing order within a state, found 0 "
        "at pair 3",
    ),
    "a successor out of range": (
        lambda: make_pairs(successor=[0, 0, 1, 2**32]),
        "successor: expected states in 0..1, found 4294967296 at entry 3",
    ),
    "probabilities for other successors": (
        lambda: make_pairs(probability=[1.0, 1.0]),
        "probability: expected shape (4,), found shape (2,)",
    ),
    "rows of the layout that do not sum to 1": (
        lambda: make_pairs(probability=[1.0, 1.0, 0.5, 1.0]),
        "probability: expected rows that sum to 1, found a sum of 0.5 "
        "at state 1, action 0",
    ),
    "no actions": (
        lambda: make_pairs(n_actions=0),
        "n_actions: expected a whole number of at least 1, found 0",
    ),
    "more actions than can be": (
        lambda: make_pairs(n_actions=2**31),
        "n_actions: expected at most 2147483647, found 2147483648",
    ),
    "half an action": (
        lambda: make_pairs(n_actions=2.5),
        "n_actions: expected a whole number of at least 1, found 2.5",
    ),
    # questions to a problem
    "a pair of no state": (
        lambda: GOOD.pair(2, 0),
        "state: expected a state in 0..1, found 2",
    ),
    "half a state": (
        lambda: GOOD.pair(0.5, 0),
        "state, action: expected two whole numbers, found 0.5, 0",
    ),
    "an action by name": (
        lambda: GOOD.successors(0, "go"),
        "state, action: expected two whole numbers, found 0, 'go'",
    ),
    "a pair that is not available": (
        lambda: MASKED.pair(0, 1),
        "action: expected one of [0] in state 0, found 1",
    ),
    "a field that does not exist": (
        lambda: GOOD.replace(colour=np.zeros((2, 2))),
        "replace: expected names among ['P', 'R', 'C', 'action_names', ",
    ),
    # policies
    "a policy of numbers without shape": (
        lambda: Policy([0.5, 0.5]),
        "probabilities: expected shape (S, A), found shape (2,)",
    ),
    "a negative action probability": (
        lambda: Policy([[1.0, 0.0], [1.5, -0.5]]),
        "probabilities: expected finite numbers of at least 0, found -0.5 "
        "at state 1, action 1",
    ),
    "action probabilities that sum to less": (
        lambda: Policy([[1.0, 0.0], [0.5, 0.25]]),
        "probabilities: expected rows that sum to 1, found a sum of 0.75 at state 1",
    ),
    "actions that are not whole": (
        lambda: Policy.deterministic([0.0, 1.0], n_actions=2),
        "actions: expected one action a state, as integers, "
        "found dtype float64, shape (2,)",
    ),
    "a chosen action out of range": (
        lambda: Policy.deterministic([0, -1], n_actions=2),
        "actions: expected actions in 0..1, found -1 at state 1",
    ),
    "weights for other pairs": (
        lambda: Policy.from_pair_weights(GOOD, np.ones(3)),
        "weights: expected shape (4,), found shape (3,)",
    ),
    "a policy for another problem": (
        lambda: evaluate(GOOD, Policy([[1.0]])),
        "policy: expected shape (2, 2), found shape (1, 1)",
    ),
    "a policy that plays what is not available": (
        lambda: evaluate(MASKED, EVEN),
        "policy: expected probability 0 for unavailable actions, found 0.5 "
        "at state 0, action 1",
    ),
    # evaluation and sampling
    "a policy that is only an array": (
        lambda: evaluate(GOOD, [[0.5, 0.5], [0.5, 0.5]]),
        "policy: expected a Policy or a MemoryPolicy, found a list",
    ),
    "a problem that is only an array": (
        lambda: occupancy(STAY, EVEN),
        "cmdp: expected a CMDP, found a ndarray",
    ),
    "a seed in words": (
        lambda: Sampler(GOOD).rollout(EVEN, 1, seed="seven"),
        "seed: expected a whole number of at least 0, a SeedSequence, a Generator or "
        "None, found 'seven'",
    ),
    "a negative seed": (
        lambda: Sampler(GOOD).rollout(EVEN, 1, seed=-1),
        "seed: expected a whole number of at least 0, a SeedSequence, a Generator or "
        "None, found -1",
    ),
    "a horizon of nothing": (
        lambda: evaluate(GOOD, EVEN, horizon="ten"),
        "horizon: expected a whole number of at least 0, found 'ten'",
    ),
    "a horizon that is not whole": (
        lambda: evaluate(GOOD, EVEN, horizon=1.5),
        "horizon: expected a whole number of at least 0, found 1.5",
    ),
    "a negative horizon": (
        lambda: evaluate(GOOD, EVEN, horizon=-1),
        "horizon: expected a whole number of at least 0, found -1",
    ),
    "a precision of 0": (
        lambda: evaluate(GOOD, EVEN, precision=0.0),
        "precision: expected a finite number above 0, found 0",
    ),
    "steps that are negative": (
        lambda: Sampler(GOOD).rollout(EVEN, -1),
        "steps: expected a whole number of at least 0, found -1",
    ),
    "a path from nowhere": (
        lambda: Sampler(GOOD).rollout(EVEN, 1, start=2),
        "start: expected a state in 0..1, found 2",
    ),
    # induced problems
    "no price for leaving": (
        lambda: known_state_cmdp(GOOD, [0]),
        "terminal_cost: expected a certified cost-to-go for the states outside "
        "(or paper=True), found none",
    ),
    "a price that the paper does not have": (
        lambda: known_state_cmdp(GOOD, [0], terminal_cost=[0.0, 0.0], paper=True),
        "terminal_cost: expected none with paper=True, found one",
    ),
    "prices of the wrong shape": (
        lambda: known_state_cmdp(GOOD, [0], terminal_cost=[0.0]),
        "terminal_cost: expected shape (1, 2), found shape (1,)",
    ),
    "a negative price": (
        lambda: known_state_cmdp(GOOD, [0], terminal_cost=[0.0, -2.0]),
        "terminal_cost: expected numbers of at least 0, found -2 at channel 0, state 1",
    ),
    "a price that is infinite where it can be asked": (
        lambda: known_state_cmdp(
            make(P=STAY[::-1].copy()), [0], terminal_cost=[0.0, np.inf]
        ),
        "terminal_cost: expected finite numbers where the inside can be left, "
        "found an infinite one at state 1",
    ),
    "nothing inside": (
        lambda: known_state_cmdp(GOOD, [], paper=True),
        "known: expected at least one state, found none",
    ),
    "a known state out of range": (
        lambda: known_state_cmdp(GOOD, [0, 5], paper=True),
        "known: expected states in 0..1, found 5 at position 1",
    ),
    "a mask of other states": (
        lambda: known_state_cmdp(GOOD, [True], paper=True),
        "known: expected shape (2,), found shape (1,)",
    ),
    "known states that are not whole": (
        lambda: known_state_cmdp(GOOD, [0.5], paper=True),
        "known: expected a mask or a list of states, found dtype float64, shape (1,)",
    ),
    "an unknown state out of range": (
        lambda: escape_cmdp(GOOD, [-1], paper=True),
        "unknown: expected states in 0..1, found -1 at position 0",
    ),
    "a start outside": (
        lambda: known_state_cmdp(GOOD, [0], paper=True, start=1),
        "start: expected a start inside, found mass outside at state 1",
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_bad_input_is_refused_in_one_line_that_says_where(name):
    act, message = REFUSALS[name]
    with pytest.raises(InvalidInputError) as caught:
        act()
    assert str(caught.value).startswith(message)
    if not message.endswith((" ", "nesting")):
        assert str(caught.value) == message
    assert "\n" not in str(caught.value)
    assert isinstance(caught.value, ValueError)


def test_the_first_wrong_place_is_the_one_that_is_named():
    wrong = STAY.copy()
    wrong[0, 1, 0] = wrong[1, 0, 1] = 0.5
    with pytest.raises(InvalidInputError, match="at state 0, action 1"):
        make(P=wrong)


def test_a_horizon_of_any_size():
    long = evaluate(GOOD, EVEN, horizon=10**30)
    assert long.value == pytest.approx([5.0, 5.0])


def test_a_refusal_stays_one_line_whatever_it_quotes():
    shown = str(refusal("names", "a name", "two\nlines\x1b[31m", "state \u2028"))
    assert shown == r"names: expected a name, found two\nlines\x1b[31m at state \u2028"
    long = str(refusal("table", "little", "x" * 10_000))
    assert long == f"table: expected little, found {'x' * 300} ..."


def test_a_refused_change_changes_nothing():
    before = GOOD.fingerprint
    with pytest.raises(InvalidInputError, match="budget"):
        GOOD.replace(budget=-1.0)
    assert GOOD.fingerprint == before
