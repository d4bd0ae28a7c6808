"""PRISM programs, by Storm.  It is an extra: without it, one line."""

from __future__ import annotations

import builtins

import numpy as np
import pytest

import escapade as ep
from escapade.environments import from_prism
from escapade.errors import InvalidFileError, InvalidInputError, MissingExtraError
from escapade.uncertainty import Interval

WALK = """mdp
const double slip;
module walk
  x : [0..3] init 0;
  [go] x<3 -> 1-slip : (x'=x+1) + slip : (x'=x);
  [back] x>0 -> (x'=x-1);
  [rest] true -> true;
endmodule
label "danger" = x=2;
rewards "gain"
  [go] x=2 : 1;
  x=3 : 0.5;
endrewards
rewards "wear"
  [go] true : 0.25;
endrewards
"""

RANGES = """mdp
module walk
  x : [0..1] init 0;
  [go] x=0 -> [0.7,0.9] : (x'=1) + [0.1,0.3] : (x'=0);
  [back] x=1 -> (x'=0);
endmodule
rewards "gain"
  x=1 : 1;
endrewards
label "up" = x=1;
"""

POMDP = RANGES.replace("mdp", "pomdp\nobservables x endobservables", 1)
POMDP = POMDP.replace("[0.7,0.9]", "0.7").replace("[0.1,0.3]", "0.3")


@pytest.fixture
def write(tmp_path):
    def to_file(text):
        path = tmp_path / "walk.prism"
        path.write_text(text, "utf-8")
        return path

    return to_file


def walk(path, **changes):
    keywords = {
        "reward": "gain",
        "cost": "danger",
        "discount": 0.9,
        "budget": 2.0,
        "constants": {"slip": 0.1},
        **changes,
    }
    return from_prism(path, **keywords)


def test_without_the_extra_its_line_is_named(monkeypatch, tmp_path):
    imported = builtins.__import__

    def lacking(name, *rest):
        if name.startswith("stormpy"):
            raise ImportError(name)
        return imported(name, *rest)

    monkeypatch.setattr(builtins, "__import__", lacking)
    with pytest.raises(MissingExtraError, match=r"escapade\[prism\]"):
        walk(tmp_path)


@pytest.mark.extras
def test_masks_labels_and_reward_models(write):
    cmdp = walk(write(WALK), cost=["danger", "wear"], budget=[2.0, 1.0]).cmdp
    assert (cmdp.n_states, cmdp.n_pairs) == (4, 10)
    assert cmdp.action_names == ("back", "go", "rest")
    assert cmdp.available.tolist() == [
        [False, True, True],
        [True, True, True],
        [True, True, True],
        [True, False, True],
    ]
    two = [s for s in range(4) if "x=2" in cmdp.state_names[s].replace(" ", "")]
    assert len(two) == 1
    go = cmdp.pair(two[0], 1)
    assert cmdp.reward[go] == 1.0
    np.testing.assert_array_equal(cmdp.cost[:, go], [1.0, 0.25])
    assert sorted(cmdp.successors(two[0], 1)[1].tolist()) == pytest.approx([0.1, 0.9])
    assert cmdp.start[0] == 1.0
    rest = cmdp.pair(3, 2)
    assert cmdp.reward[rest] == 0.5


@pytest.mark.extras
def test_intervals_become_a_set_that_the_agent_is_told(write):
    world = walk(write(RANGES), cost="up", constants=None)
    told = world.knowledge
    assert isinstance(told.models, Interval)
    go = world.cmdp.pair(0, world.cmdp.action_names.index("go"))
    rows = slice(told.row_ptr[go], told.row_ptr[go + 1])
    assert told.models.lower[rows].tolist() == pytest.approx([0.1, 0.7])
    assert told.models.upper[rows].tolist() == pytest.approx([0.3, 0.9])
    assert world.cmdp.probability[rows].tolist() == pytest.approx([0.2, 0.8])
    policy = ep.Policy(world.cmdp.available.astype(float))
    robust = ep.robust_evaluate(world.cmdp, policy, told.models)
    assert robust.value_lower[0] < robust.value_upper[0]
    told = walk(write(RANGES), cost="up", constants=None, exact_costs=True).knowledge
    assert told.exact_costs.all()


@pytest.mark.extras
def test_a_chain_is_a_problem_with_one_choice(write):
    text = WALK.replace("mdp", "dtmc", 1)
    for line in ("  [back] x>0 -> (x'=x-1);\n", "  [rest] true -> true;\n"):
        text = text.replace(line, "")
    text = text.replace("[go] x<3", "[] x<3").replace("[go] x=2", "x=2")
    text = text.replace("[go] true", "x<3")
    cmdp = walk(write(text)).cmdp
    assert cmdp.n_pairs == cmdp.n_states == 4
    assert cmdp.n_actions == 1


@pytest.mark.extras
@pytest.mark.parametrize(
    ("text", "changes", "error", "reason"),
    [
        (WALK, {"cost": "nothing"}, InvalidInputError, r"^cost: .*'danger'"),
        (WALK, {"reward": "loss"}, InvalidInputError, r"^reward: expected a reward mo"),
        (WALK, {"constants": None}, InvalidFileError, "undefined constants"),
        (WALK, {"constants": {"slop": 1}}, InvalidFileError, "^path: expected a PRISM"),
        ("chess", {}, InvalidFileError, "^path: expected a PRISM program"),
        (WALK.replace("mdp", "ctmc", 1), {}, InvalidFileError, "is a CTMC"),
        (POMDP, {"constants": None}, InvalidInputError, "a DTMC or an MDP, found a PO"),
        (WALK, {"discount": 1.0}, InvalidInputError, "^discount"),
    ],
)
def test_what_is_wrong_is_one_line(write, text, changes, error, reason):
    with pytest.raises(error, match=reason) as caught:
        walk(write(text), **changes)
    assert "\n" not in str(caught.value)


@pytest.mark.extras
def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(InvalidFileError, match="found none at"):
        walk(tmp_path / "nowhere.prism")
