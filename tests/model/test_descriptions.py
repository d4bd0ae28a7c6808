"""Plants in TOML and JSON: read, written, and refused with the key that is wrong."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from escapade.errors import InvalidFileError, InvalidInputError
from escapade.model import CMDP, read_description, write_description
from escapade.model.description import describe, parse_description
from escapade.testing import cmdps

PUMP = """
about = "A pump that may break."
discount = 0.95
budget = 0.5

transitions = [
  # state    action    next                              reward  cost
  ["good",   "gentle", {good = 0.95, worn = 0.05},       0.6],
  ["good",   "hard",   {good = 0.7, worn = "rest"},      1.0],
  ["worn",   "gentle", {worn = 0.9, broken = "1/10"},    0.5],
  ["worn",   "repair", "good"],
  {state = "broken", action = "repair", next = {good = "1/3", broken = "2/3"}, cost=1},
]
"""


def good(**changes):
    """A description as it is parsed, some of it spoilt."""
    document = {
        "discount": 0.9,
        "budget": 1.0,
        "transitions": [
            ["up", "go", "down", 1.0, 0.5],
            ["down", "go", {"up": 0.5, "down": 0.5}, 0.0, 1.0],
        ],
        **changes,
    }
    return {key: value for key, value in document.items() if value is not ...}


def rows(*rows, **changes):
    return good(transitions=list(rows), **changes)


UP = ["up", "go", "up"]


def saved(tmp_path, text, name="plant.toml"):
    path = tmp_path / name
    path.write_text(text, "utf-8")
    return path


def test_a_plant_as_a_person_writes_it(tmp_path):
    found = read_description(saved(tmp_path, PUMP))
    assert found.about == "A pump that may break."
    assert found.cost_names is None
    expected = CMDP.from_pairs(
        state_ptr=[0, 2, 4, 5],
        pair_action=[0, 1, 0, 2, 2],
        row_ptr=[0, 2, 4, 6, 7, 9],
        successor=[0, 1, 0, 1, 1, 2, 0, 0, 2],
        probability=[0.95, 0.05, 0.7, 1 - 0.7, 0.9, 0.1, 1.0, 1 / 3, 2 / 3],
        reward=[0.6, 1.0, 0.5, 0.0, 0.0],
        cost=[0.0, 0.0, 0.0, 0.0, 1.0],
        n_actions=3,
        discount=0.95,
        budget=0.5,
        start=0,
        state_names=["good", "worn", "broken"],
        action_names=["gentle", "hard", "repair"],
    )
    assert found.cmdp == expected


def test_json_says_the_same(tmp_path):
    text = json.dumps(
        {
            "discount": 0.9,
            "budget": 1,
            "transitions": [
                {
                    "state": "up",
                    "action": "go",
                    "next": "down",
                    "reward": 1,
                    "cost": 0.5,
                },
                ["down", "go", {"up": 0.5, "down": 0.5}, None, 1],
            ],
        }
    )
    assert (
        read_description(saved(tmp_path, text, "plant.JSON")).cmdp
        == parse_description(good()).cmdp
    )


def test_a_mark_that_windows_editors_leave_is_no_matter(tmp_path):
    path = tmp_path / "plant.toml"
    path.write_bytes(b"\xef\xbb\xbf" + PUMP.encode())
    assert read_description(path) == read_description(saved(tmp_path, PUMP, "p.toml"))


def test_states_and_actions_may_be_ordered_or_numbered():
    ordered = parse_description(
        good(states=["down", "up"], actions=["stop", "go"])
    ).cmdp
    assert ordered.state_names == ("down", "up")
    assert ordered.available.tolist() == [[False, True], [False, True]]
    assert ordered.start.tolist() == [1.0, 0.0]
    numbered = parse_description(
        rows([1, 2, {"0": 0.25, "1": "rest"}], [0, 0, 1], states=2, start={"1": 1.0})
    ).cmdp
    assert numbered.state_names is None
    assert (numbered.n_states, numbered.n_actions) == (2, 3)
    assert numbered.transition_matrix.toarray().tolist() == [[0.0, 1.0], [0.25, 0.75]]
    assert numbered.start.tolist() == [0.0, 1.0]


def test_defaults_serve_the_rows_that_say_nothing():
    cmdp = parse_description(
        rows(
            UP,
            ["up", "stop", "up", 1.0],
            ["up", "wait", "up", 0.0, 0.0],
            defaults={"reward": "1/2", "cost": 0.25},
        )
    ).cmdp
    assert cmdp.reward.tolist() == [0.5, 1.0, 0.0]
    assert cmdp.cost.tolist() == [[0.25, 0.25, 0.0]]


def test_several_costs_are_listed_or_named():
    listed = parse_description(
        rows([*UP, 0.0, [1, "1/2"]], budget=[1, 2], cost_max=[3, 4])
    )
    named = parse_description(
        rows(
            [*UP, 0.0, {"wear": 1, "fuel": 0.5}],
            budget={"wear": 1, "fuel": 2},
            cost_max={"fuel": 4, "wear": 3},
        )
    )
    assert listed.cost_names is None
    assert named.cost_names == ("wear", "fuel")
    assert listed.cmdp == named.cmdp
    assert listed.cmdp.cost.tolist() == [[1.0], [0.5]]
    assert listed.cmdp.cost_max.tolist() == [3.0, 4.0]
    partly = parse_description(
        rows(
            [*UP, 0.0, {"fuel": 0.5}],
            budget={"wear": 1, "fuel": 2},
            defaults={"cost": {"wear": 0.125}},
            cost_max=1,
        )
    )
    assert partly.cmdp.cost.tolist() == [[0.125], [0.5]]
    assert partly.cmdp.cost_max.tolist() == [1.0, 1.0]


def test_pictures_and_bounds():
    by_name = parse_description(
        good(coordinates={"down": [1, 2], "up": [0, "1/2"]}, reward_max=2)
    ).cmdp
    assert by_name.coordinates.tolist() == [[0.0, 0.5], [1.0, 2.0]]
    assert by_name.reward_max == 2.0
    listed = parse_description(good(coordinates=[[0, 0.5], [1, 2]], reward_max=2)).cmdp
    assert listed == by_name


@pytest.mark.parametrize("ending", ["toml", "json"])
@settings(max_examples=40)
@given(cmdp=cmdps(), words=st.text(max_size=20))
def test_what_is_written_is_read_back_bit_for_bit(
    tmp_path_factory, ending, cmdp, words
):
    path = tmp_path_factory.mktemp("written") / f"plant.{ending}"
    names = [f"cost {k} ÷\x7f\n\"'" for k in range(cmdp.n_costs)]
    try:
        words.encode()
    except UnicodeEncodeError:
        words = ""
    write_description(cmdp, path, cost_names=names, about=words)
    found = read_description(path)
    assert found.cmdp == cmdp
    assert found.cost_names == tuple(names)
    assert found.about == words
    write_description(cmdp, path)
    assert read_description(path).cmdp == cmdp
    assert parse_description(describe(cmdp)).cmdp == cmdp


@pytest.mark.parametrize("ending", ["toml", "json"])
@settings(max_examples=40)
@given(names=st.lists(st.text(st.characters(codec="utf-8")), min_size=3, unique=True))
def test_any_name_survives(tmp_path_factory, ending, names):
    n = len(names) - 1
    rows = np.full((n, 1, n), 1.0 / n)
    cmdp = CMDP(
        rows,
        np.zeros((n, 1)),
        np.zeros((n, 1)),
        discount=0.5,
        budget=1.0,
        state_names=names[1:],
        action_names=names[:1],
    )
    path = tmp_path_factory.mktemp("named") / f"plant.{ending}"
    write_description(cmdp, path)
    assert read_description(path).cmdp == cmdp


def test_a_written_file_can_be_read_by_a_person(tmp_path):
    description = read_description(saved(tmp_path, PUMP))
    path = tmp_path / "again.toml"
    write_description(description.cmdp, path, about=description.about)
    assert path.read_text("utf-8").splitlines()[:9] == [
        'about = "A pump that may break."',
        "discount = 0.95",
        "budget = 0.5",
        'states = ["good", "worn", "broken"]',
        'actions = ["gentle", "hard", "repair"]',
        'start = "good"',
        "reward_max = 1.0",
        "cost_max = 1.0",
        "transitions = [",
    ]


# what is wrong: (the description, the message)
WRONG = {
    "no table": (3, "file: expected a table of keys, found 3"),
    "a key misspelt": (
        good(budjet=1.0),
        "budjet: expected one of the keys about, discount, budget, states, actions, "
        "start, reward_max, cost_max, coordinates, defaults, transitions, "
        "found a key of that name (did you mean 'budget'?)",
    ),
    "no discount": (
        good(discount=...),
        "discount: expected to be given, found nothing",
    ),
    "no budget": (good(budget=...), "budget: expected to be given, found nothing"),
    "no rows": (
        good(transitions=...),
        "transitions: expected to be given, found nothing",
    ),
    "a discount of 1": (
        good(discount=1),
        "discount: expected a number in [0, 1), found 1",
    ),
    "a discount in words": (
        good(discount="high"),
        "discount: expected a finite number, or a fraction like \"1/3\", found 'high'",
    ),
    "a discount that is true": (
        good(discount=True),
        'discount: expected a finite number, or a fraction like "1/3", found true',
    ),
    "a fraction of nothing": (
        good(discount="1/0"),
        "discount: expected a finite number, or a fraction like \"1/3\", found '1/0'",
    ),
    "a number beyond all bounds": (
        good(budget=10**400),
        'budget: expected a finite number, or a fraction like "1/3", '
        "found a number too large to hold",
    ),
    "an endless word": (
        good(budget="x" * 99),
        'budget: expected a finite number, or a fraction like "1/3", '
        f"found '{'x' * 56}...",
    ),
    "a negative budget": (
        good(budget=-1.0),
        "budget: expected a number of at least 0, found -1",
    ),
    "an empty list of budgets": (
        good(budget=[]),
        "budget: expected at least one number, found an empty list",
    ),
    "an empty table of budgets": (
        good(budget={}),
        "budget: expected at least one cost, found an empty table",
    ),
    "a named budget that is negative": (
        good(budget={"the wear": -1.0}),
        'budget."the wear": expected a number of at least 0, found -1',
    ),
    "words that are a number": (good(about=3), "about: expected a string, found 3"),
    "defaults that are a number": (
        good(defaults=3),
        "defaults: expected a table, found 3",
    ),
    "a default of nothing known": (
        good(defaults={"rewards": 1.0}),
        "defaults.rewards: expected one of the keys reward, cost, "
        "found a key of that name (did you mean 'reward'?)",
    ),
    "rows that are a table": (
        good(transitions={}),
        "transitions: expected a list of rows, found a table of 0",
    ),
    "no row": (
        good(transitions=[]),
        "transitions: expected at least one row, found an empty list",
    ),
    "a row that is too short": (
        rows(UP, ["up", "go"]),
        "transitions[1]: expected [state, action, next, reward, cost] or a table, "
        "found a list of 2",
    ),
    "a row without a key": (
        rows({"state": "up", "action": "go"}),
        "transitions[0].next: expected to be given, found nothing",
    ),
    "a row with a key too many": (
        rows({"state": "up", "action": "go", "next": "up", "nxet": "up"}),
        "transitions[0].nxet: expected one of the keys state, action, next, reward, "
        "cost, found a key of that name (did you mean 'next'?)",
    ),
    "a pair twice": (
        rows(UP, ["up", "go", "up", 1.0]),
        "transitions[1]: expected one row for each action in a state, "
        "found 'up', 'go' again, after transitions[0]",
    ),
    "a next state that has no row": (
        rows(["upper", "go", "uper"]),
        "transitions[0].next: expected a state that has a row of its own, "
        "found 'uper' (did you mean 'upper'?)",
    ),
    "a next state that is not declared": (
        rows(UP, ["up", "stop", {"down": 1.0}], states=["up"]),
        "transitions[1].next: expected a state that `states` names, found 'down'",
    ),
    "an action that is not declared": (
        rows(UP, actions=["stop"]),
        "transitions[0].action: expected an action that `actions` names, found 'go'",
    ),
    "a state number out of range": (
        rows([0, 0, 1]),
        "transitions[0].next: expected a state in 0..0, found 1",
    ),
    "a state in two ways": (
        rows([0, 0, 0], ["up", 0, 0]),
        "transitions[1].state: expected a whole number, as in the first row, "
        "found 'up'",
    ),
    "an action in two ways": (
        rows(UP, ["up", 1, "up"]),
        "transitions[1].action: expected a name (a string), found 1",
    ),
    "a negative state": (
        rows([-1, 0, -1]),
        "transitions[0].state: expected a whole number, as in the first row, found -1",
    ),
    "a state without a row": (
        rows(UP, states=["up", "down"]),
        "transitions: expected a row for every state, found none for 'down'",
    ),
    "a state number without a row": (
        rows([1, 0, 1]),
        "transitions: expected a row for every state, found none for 0",
    ),
    "more states than can be": (
        good(states=2**40),
        "states: expected a number in 1..2147483647, found 1099511627776",
    ),
    "many states and few rows": (
        rows([0, 0, 0], states=2**31 - 1),
        "transitions: expected a row for every state, found none for 1",
    ),
    "states in a table": (
        good(states={}),
        "states: expected a list of names, or how many there are, found a table of 0",
    ),
    "a name that is a number": (
        good(states=["up", 2]),
        "states[1]: expected a name (a string), found 2",
    ),
    "a name twice": (
        good(states=["up", "up"]),
        "states[1]: expected different names, found 'up', as states[0]",
    ),
    "probabilities that sum to less": (
        rows(UP, ["up", "stop", {"up": 0.9}]),
        "transitions[1].next: expected probabilities that sum to 1, found a sum of 0.9",
    ),
    "a rest of less than nothing": (
        rows(["up", "go", {"up": 1.5, "down": "rest"}], ["down", "go", "up"]),
        "transitions[0].next: expected probabilities that sum to at most 1, "
        "found a sum of 1.5",
    ),
    "two rests": (
        rows(["up", "go", {"up": "rest", "down": "rest"}], ["down", "go", "up"]),
        'transitions[0].next: expected one "rest", found two',
    ),
    "a negative probability": (
        rows(["up", "go", {"up": -0.5}]),
        "transitions[0].next.up: expected a number of at least 0, found -0.5",
    ),
    "a start that is not": (
        good(start="sideways"),
        "start: expected a state that has a row of its own, found 'sideways'",
    ),
    "a start that sums to less": (
        good(start={"up": 0.5}),
        "start: expected probabilities that sum to 1, found a sum of 0.5",
    ),
    "a negative reward": (
        rows([*UP, -1.0]),
        "transitions[0].reward: expected a number of at least 0, found -1",
    ),
    "a reward above its bound": (
        rows([*UP, 2.0], reward_max=1.0),
        "transitions[0].reward: expected at most reward_max = 1.0, found 2",
    ),
    "a cost above its bound": (
        rows([*UP, 0.0, {"wear": 2.0}], budget={"wear": 1.0}, cost_max={"wear": 1.0}),
        "transitions[0].cost: expected at most cost_max = 1.0 of cost wear, found 2",
    ),
    "the first wrong row, not the first wrong pair": (
        rows(
            ["up", "go", "down", -2.0],
            ["down", "go", "up", -1.0],
            states=["down", "up"],
        ),
        "transitions[0].reward: expected a number of at least 0, found -2",
    ),
    "two costs for one budget": (
        rows([*UP, 0.0, [1.0, 2.0]]),
        "transitions[0].cost: expected a number, found a list of 2",
    ),
    "one cost for two budgets": (
        rows([*UP, 0.0, 1.0], budget=[1.0, 1.0]),
        "transitions[0].cost: expected a list of 2 numbers, found 1.0",
    ),
    "three costs for two budgets": (
        rows([*UP, 0.0, [1, 2, 3]], budget=[1.0, 1.0]),
        "transitions[0].cost: expected 2 numbers, one a budget, found a list of 3",
    ),
    "a cost for named budgets": (
        rows([*UP, 0.0, 1.0], budget={"wear": 1.0, "fuel": 1.0}),
        "transitions[0].cost: expected a list of 2 numbers or a table with the keys "
        "wear, fuel, found 1.0",
    ),
    "a cost of another name": (
        rows([*UP, 0.0, {"waer": 1.0}], budget={"wear": 1.0}),
        "transitions[0].cost.waer: expected one of the keys wear, "
        "found a key of that name (did you mean 'wear'?)",
    ),
    "a bound too few": (
        good(budget={"wear": 1.0, "fuel": 1.0}, cost_max={"wear": 1.0}),
        "cost_max.fuel: expected to be given, found nothing",
    ),
    "coordinates of some": (
        good(coordinates={"up": [0, 0]}),
        "coordinates: expected all 2 states, found 1 of them",
    ),
    "too few coordinates": (
        good(coordinates=[[0, 0]]),
        "coordinates: expected one a state, 2, found a list of 1",
    ),
    "coordinates of two lengths": (
        good(coordinates=[[0, 0], [0]]),
        "coordinates[1]: expected a list of numbers, of one length, found a list of 1",
    ),
    "a coordinate that is no list": (
        good(coordinates=[3, [0]]),
        "coordinates[0]: expected a list of numbers, of one length, found 3",
    ),
    "a coordinate in words": (
        good(coordinates=[[0, 0], [0, "far"]]),
        'coordinates[1][1]: expected a finite number, or a fraction like "1/3", '
        "found 'far'",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_named_by_its_key(name):
    document, message = WRONG[name]
    with pytest.raises(InvalidInputError) as caught:
        parse_description(document)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("plant.toml", "discount = ", "file: expected TOML, found Invalid value"),
        ("plant.toml", "discount = 1979-99-99", "file: expected TOML, found "),
        ("plant.toml", f"discount = {'9' * 5000}", "file: expected TOML, found "),
        ("plant.json", "{", "file: expected JSON, found "),
        (
            "plant.json",
            '{"a": 1, "a": 2}',
            "every key once in its table, found 'a' twice",
        ),
        ("plant.json", '{"discount": NaN}', "file: expected finite numbers, found NaN"),
        ("plant.json", "[" * 10_000, "nesting without end"),
        ("plant.json", "[]", "file: expected a table of keys, found a list of 0"),
        ("plant.toml", "budget = 1", "discount: expected to be given, found nothing"),
        ("plant.yaml", "", "expected a name that ends in .toml or .json, found .yaml"),
        ("plant", "", "expected a name that ends in .toml or .json, found no ending"),
    ],
)
def test_a_file_that_cannot_be_read_says_so_in_one_line(tmp_path, name, text, words):
    path = saved(tmp_path, text, name)
    with pytest.raises(InvalidFileError) as caught:
        read_description(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert words in message
    assert "\n" not in message


def test_files_that_are_not_there_or_no_text(tmp_path):
    with pytest.raises(InvalidFileError, match="expected a file, found none"):
        read_description(tmp_path / "none.toml")
    (tmp_path / "folder.toml").mkdir()
    with pytest.raises(InvalidFileError, match="expected a file that can be read"):
        read_description(tmp_path / "folder.toml")
    (tmp_path / "binary.toml").write_bytes(b"a = \xff")
    with pytest.raises(InvalidFileError, match="found byte 255 at position 4"):
        read_description(tmp_path / "binary.toml")


def test_what_cannot_be_described_is_refused(tmp_path):
    cmdp = parse_description(good()).cmdp
    twice = cmdp.replace(state_names=["x", "x"])
    lone = cmdp.replace(action_names=["\ud800"])
    cases = {
        "path: expected a name that ends in .toml or .json": lambda: write_description(
            cmdp, "plant.yaml"
        ),
        "state_names: expected different names, found 'x' twice at 1": lambda: (
            write_description(twice, tmp_path / "p.toml")
        ),
        "action_names: expected text that UTF-8 can hold": lambda: describe(lone),
        "cost_names: expected 1 names, found 2": lambda: describe(
            cmdp, cost_names=["a", "b"]
        ),
        "about: expected text that UTF-8 can hold": lambda: describe(
            cmdp, about="\udfff"
        ),
    }
    for message, act in cases.items():
        with pytest.raises(InvalidInputError) as caught:
            act()
        assert str(caught.value).startswith(message)
    assert not list(tmp_path.iterdir())
