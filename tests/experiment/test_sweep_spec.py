"""Sweeps as data: what they ask for, and what is wrong with a file."""

from __future__ import annotations

import pytest

from escapade.errors import InvalidFileError, InvalidInputError
from escapade.experiment import RunSpec, SweepSpec, load_sweep

TEXT = """\
steps = 100
seeds = [3, 1]

[[worlds]]
name = "wall-cycle"
parameters = { size = [3, 4] }

[[worlds]]
name = "barrier-grid"
[worlds.parameters]
budget = [[0.5, 0.5], [1.0, 2]]

[[settings]]
known_after = [5, 10]

[[settings]]
mode = "paper"
known_after = 5
"""


def test_lists_are_crossed_seeds_fastest():
    spec = SweepSpec.from_toml(TEXT)
    assert len(spec.runs) == 2 * (2 + 2) * (2 + 1)
    assert [run.seed for run in spec.runs[:4]] == [3, 1, 3, 1]
    first, third = spec.runs[0], spec.runs[2]
    assert first == RunSpec(
        world="wall-cycle",
        parameters={"size": 3},
        settings={"known_after": 5},
        steps=100,
        seed=3,
    )
    assert third.settings["known_after"] == 10
    assert spec.runs[8].settings["mode"] == "ledger"  # the second field
    assert spec.runs[-1].parameters["budget"] == (1.0, 2.0)
    assert spec.runs[-1].settings["mode"] == "paper"
    assert len({run.name for run in spec.runs}) == len(spec.runs)
    assert spec.n_costs == 2
    assert spec.axes == (
        "parameters.size",
        "parameters.budget",
        "settings.known_after",
        "settings.mode",
    )


def test_a_sweep_goes_to_toml_and_back(tmp_path):
    spec = SweepSpec.from_toml(TEXT)
    path = tmp_path / "sweep.toml"
    path.write_text(spec.to_toml(), "utf-8")
    assert load_sweep(path) == spec
    assert load_sweep(path).to_toml() == spec.to_toml()


def test_its_digest_is_of_the_runs_however_they_are_asked_for():
    short = {"steps": 10, "seeds": 2}
    one = SweepSpec(worlds=["wall-cycle", "queue"], **short)
    other = SweepSpec(worlds=[{"name": "queue"}, "wall-cycle"], settings={}, **short)
    assert one.digest == other.digest
    assert one.digest != SweepSpec(worlds=["queue"], **short).digest
    assert SweepSpec(worlds=["queue"], steps=10, seeds=[0, 1]).seeds == (0, 1)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("steps = 100", "steps = 0", "line 1: steps: expected greater than or equal"),
        ("steps = 100", "step = 100", "line 1: step: expected a name among"),
        ("[3, 1]", "0", "line 2: seeds: expected a count of seeds, or a list"),
        ("[3, 1]", "[3, 3]", "found 3 twice"),
        ("[3, 1]", "[-1]", "found -1"),
        ("wall-cycle", "wall_cycle", "line 5: worlds[0].name: expected a world among"),
        ("size = [", "siz = [", "line 6: worlds[0].parameters.siz: expected a name"),
        ("[3, 4]", "[3, 1]", "line 6: worlds[0].parameters.size: expected"),
        ("[3, 4]", "[]", "worlds[0].parameters.size: expected at least one value"),
        ("[3, 4]", "[3, 3]", "line 4: worlds[0]: expected combinations that differ"),
        ("[0.5, 0.5]", "[0.5]", "line 11: worlds[1].parameters.budget: expected"),
        ("[5, 10]", "[5, 0]", "line 14: settings[0].known_after: expected"),
        ('"paper"', '"papr"', "line 17: settings[1].mode: expected"),
        ("known_after = 5\n", "know = 5\n", "line 18: settings[1].know: expected"),
        ('name = "barrier-grid"', "", "line 8: worlds[1].name: expected a value"),
        ('"barrier-grid"', '"queue"\nx = 1', "line 10: worlds[1].x: expected a name"),
        ("steps = 100", "steps 100", "expected TOML"),
        ("[3, 1]", "99999", "sweep: expected at most 100,000 runs, found 1,199,988"),
    ],
)
def test_what_is_wrong_is_named_with_its_key_and_line(old, new, said):
    assert old in TEXT
    with pytest.raises(InvalidFileError) as caught:
        SweepSpec.from_toml(TEXT.replace(old, new, 1), source="my.toml")
    assert str(caught.value).startswith("my.toml")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_one_table_of_settings_is_named_without_a_number():
    text = 'steps = 9\nseeds = 1\nworlds = ["queue"]\n[settings]\nepsilon = [1, -1]'
    with pytest.raises(InvalidFileError, match=r"^spec, line 5: settings\.epsilon: "):
        SweepSpec.from_toml(text)
    text = text.replace("[settings]", "[[settings]]")
    with pytest.raises(InvalidFileError, match=r"^spec, line 5: settings\.epsilon: "):
        SweepSpec.from_toml(text)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"worlds": []}, "worlds: expected a list of names or of tables"),
        ({"worlds": [3]}, r"worlds\[0\]: expected a name or a table"),
        ({"settings": 3}, "settings: expected a table, or several"),
        ({"settings": [3]}, r"settings\[0\]: expected a table"),
        ({"seeds": True}, "seeds: expected a count"),
    ],
)
def test_what_is_no_sweep_is_refused_in_python_too(changes, said):
    with pytest.raises(InvalidInputError, match=said):
        SweepSpec(**{"worlds": ["queue"], "seeds": 1, "steps": 10, **changes})
